"""One run, as the advice looks at it: its figures are those of its ledger and its result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journals import PRICE, Call, Log, Script, read, spec

from tenlines import Agent, Limits, tool
from tenlines.advise.facts import NO_TAG, NOTHING, Worth, of_step, read_run
from tenlines.core import events as ev
from tenlines.core.replay import fold
from tenlines.core.transcript import Json, Text
from tenlines.errors import InvalidEvent
from tenlines.journal.memory import MemoryJournal

DOLLARS = st.none() | st.floats(0, 10)
WORTHS = st.builds(Worth, st.integers(0, 10**6), DOLLARS)


def run_of(script: Script) -> object:
    return next(read([script]))


def test_its_figures_are_those_of_its_result() -> None:
    script = Script([[Call("look", '{"a": 1}', "seen")], [Call("look", "{", "no", "invalid_arguments")]])
    log = Log("k2v9", script, 100.0).events
    run, result = read_run(log), fold(log).result()
    assert (run.run_id, run.steps, run.is_answered) == ("k2v9", result.steps, True)
    assert run.spent == (result.usage.total, result.dollars)
    assert [(call.tool, call.outcome, call.text) for call in run.calls] == [
        (call.name, call.outcome, call.text) for call in result.calls
    ]
    assert [call.arguments for call in run.calls] == [{"a": 1}, None]
    assert run.task == "Where is order 1042?"


def test_a_run_of_a_real_agent_is_read_from_its_journal() -> None:
    @tool(read_only=True)
    def look(place: str) -> dict[str, int]:
        """Look there."""
        return {place: 3}

    from tenlines import Reply, ToolCall

    journal = MemoryJournal()
    replies = [Reply("", (ToolCall("1", "look", '{"place": "here"}'),)), Reply("Three.")]
    result = Agent(replies, [look], journal=journal, limits=Limits(steps=7)).run_sync("How many are here? #count")
    run = read_run(journal.read(result.run_id))
    assert (run.limits.steps, run.group("tag"), run.group("agent")) == (7, "#count", "agent")
    assert [(call.arguments, "3" in call.text) for call in run.calls] == [({"place": "here"}, True)]


def test_limits_are_those_of_its_end_and_a_structured_result_is_its_text() -> None:
    log = Log("r", Script([[Call("look")]], answer=None), 100.0)
    log.tell(ev.LimitsRaised, limits=Limits(steps=40))
    assert read_run(log.events).limits.steps == 40
    returned = next(one for one in log.events if isinstance(one, ev.CallReturned))
    log.events[returned.seq] = ev.CallReturned(
        seq=returned.seq, at=returned.at, step=1, position=0, parts=(Text("a"), Json({"b": 1}))
    )
    assert read_run(log.events).calls[0].text == 'a\n\n{"b":1}'


def test_what_is_no_log_is_refused() -> None:
    log = Log("r", Script(), 100.0).events
    with pytest.raises(InvalidEvent):
        read_run(log[1:])
    with pytest.raises(ValueError, match="RunStarted"):
        read_run([])


@pytest.mark.parametrize(
    ("task", "tag"),
    [
        ("Refund it #Refund #now", "#refund"),
        ("#a-b_c: do it", "#a-b_c"),
        ("Where is order #1042?", NO_TAG),
        ("see http://x/y#part and a&#b", NO_TAG),
        ("", NO_TAG),
        ("C#sharp, ##no", NO_TAG),
    ],
)
def test_tags_are_words_with_a_hash(task: str, tag: str) -> None:
    assert next(read([Script(task=task)])).group("tag") == tag


def test_input_tokens_are_worth_what_one_cost_on_average() -> None:
    run = next(read([Script([[Call("look")]], tools=(spec("look"),))]))
    own = run.ledger.own
    whole = run.worth(own.input_tokens)
    assert whole.dollars == pytest.approx(own.dollars - own.output_tokens * PRICE.output / 1e6)
    assert next(read([Script(price=None)])).worth(100) == (100, None)


@given(WORTHS, WORTHS, WORTHS)
def test_worths_add_up_in_any_order_and_what_is_not_known_stays_so(one: Worth, two: Worth, three: Worth) -> None:
    left, right = one.plus(two).plus(three), three.plus(one).plus(two)
    assert left.tokens == right.tokens
    assert (left.dollars is None) == any(w.dollars is None for w in (one, two, three)) == (right.dollars is None)
    assert one.plus(NOTHING) == one
    assert one.plus(two).less(two).tokens == one.tokens


def test_where_nobody_says_what_was_used_it_is_what_was_expected() -> None:
    script = Script([[Call("look")]], tools=(spec("look"),), price=None)
    counted, guessed = read([script, script._replace(is_counted=False)])
    assert (counted.is_measured, guessed.is_measured) == (True, False)
    assert (guessed.spent.tokens, guessed.input_tokens) == (guessed.input_tokens, counted.input_tokens)
    assert sum(of_step(line).tokens for line in guessed.ledger.steps) == guessed.spent.tokens
    assert sum(of_step(line).tokens for line in counted.ledger.steps) == counted.spent.tokens
