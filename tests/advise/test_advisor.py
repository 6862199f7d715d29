"""All of it: exactly what was planted is found, and on clean journals nothing is."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import Call, Log, Script, advise, aimless, planted, shipping, shuffled, spec

from tenlines.advise import Advisor, read_run
from tenlines.advise.facts import NO_TAG
from tenlines.trace.redaction import Redaction

PLANTED = {
    ("workflow", "shipping", "get_order, get_tracking, notes"),
    ("flood", "flooded", "dump"),
    ("repeats", "repeating", "search"),
    ("cache", "clocked", "a date or time in the instructions"),
}


@pytest.mark.slow
def test_exactly_what_was_planted_is_found(say: Callable[[str], None]) -> None:
    for seed in range(10):
        advice = advise(planted(Random(seed), 40), apart=12)
        assert {(one.kind, one.group, one.subject) for one in advice.findings} == PLANTED, seed
        assert len(advice.findings) == len(PLANTED)
        assert [one.dollars for one in advice.findings] == sorted((o.dollars for o in advice.findings), reverse=True)
        assert advice.runs == 200
    say(
        "advice: a workflow, a flood, repeats and a clock among 200 runs of 5 agents: found, and nothing else, 10 seeds"
    )


@pytest.mark.slow
def test_on_clean_journals_there_is_nothing_to_advise(say: Callable[[str], None]) -> None:
    for seed in range(10):
        random = Random(100 + seed)
        advice = advise([aimless(random, agent=random.choice(("a", "b"))) for _ in range(180)])
        assert advice.findings == (), seed
        assert [one.workflow for one in advice.groups] == [None, None]
        assert [one.waiting for one in advice.groups] == [(), ()]
    say("advice: nothing on 180 clean runs of 2 agents, 10 seeds")


def test_tools_in_changing_order_are_found_too() -> None:
    random = Random(1)
    advice = advise([script for _ in range(40) for script in (shuffled(random), aimless(random))], apart=20)
    assert [(one.kind, one.group, one.subject) for one in advice.findings] == [
        ("cache", "shuffled", "the tools come in another order")
    ]


def test_the_same_journal_gives_the_same_advice() -> None:
    one, two = (advise(planted(Random(3), 35), apart=12) for _ in range(2))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)


def test_groups_are_agents_models_or_tags() -> None:
    random = Random(2)
    scripts = [aimless(random, model=f"m{n % 2}") for n in range(10)]
    scripts += [shipping(random, task=f"Where is order {n}? #Ship") for n in range(5)]
    assert [(one.group, one.runs) for one in advise(scripts).groups] == [("support", 10), ("shipping", 5)]
    assert [one.group for one in advise(scripts, by="model").groups] == ["m0", "m1", "openai:gpt-5"]
    assert [(one.group, one.runs) for one in advise(scripts, by="tag").groups] == [(NO_TAG, 10), ("#ship", 5)]


def test_too_few_runs_say_how_many_are_needed() -> None:
    (group,) = advise([aimless(Random(1))]).groups
    assert group.waiting == (
        "the step cap: 1 answered run, 72 are needed",
        "a workflow: 1 answered run, 30 are needed",
    )
    empty = advise([])
    assert (empty.runs, empty.findings, empty.groups) == (0, (), ())


NAMES = st.sampled_from(("a", "b", "<b>", "\x1b[2J", "nope"))
ARGUMENTS = st.sampled_from(("{}", "{", "null", '{"a": [1, {"b": null}]}', '{"é\\ud83d": "\\u202e"}'))
CALLS = st.builds(Call, NAMES, ARGUMENTS, st.text(max_size=30), st.sampled_from(("ok", "tool_error", "timeout")))
STEPS = st.lists(st.lists(CALLS, min_size=1, max_size=3), max_size=4)
KNOWN = (spec("a"), spec("b"))
SCRIPTS = st.tuples(STEPS, st.sampled_from(("So.", "", None)), st.text(max_size=30), st.sampled_from((None, 0, 1, 20)))


@settings(max_examples=25, deadline=None)
@given(st.lists(SCRIPTS.map(lambda made: Script(*made[:3], cap=made[3], tools=KNOWN)), max_size=4))
def test_whatever_happened_there_is_advice_that_can_be_written(scripts: list[Script]) -> None:
    advisor, runs = Advisor(), 0
    for number, script in enumerate(scripts):
        log = Log(f"r{number}", script, 100.0 + number).events
        for length in {1, len(log) // 2 + 1, len(log)}:
            advisor.take(read_run(log[:length]))
            runs += 1
    advice = advisor.advice()
    assert advice.runs == runs
    assert msgspec.json.decode(msgspec.json.encode(advice), type=dict)["runs"] == runs


@pytest.mark.slow
def test_memory_does_not_grow_with_the_runs() -> None:
    random, advisor = Random(1), Advisor(redaction=Redaction())

    def take(runs: int) -> None:
        for number in range(runs):
            advisor.take(read_run(Log(f"r{number}", shipping(random), 100.0 + 400 * number).events))

    take(100)
    tracemalloc.start()
    take(200)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 60_000
