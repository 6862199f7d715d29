"""Calls and results that belong together: missing, orphaned, misplaced, doubled, with unusable ids."""

from __future__ import annotations

from typing import Any

from case_context import counting, cuts
from case_laws import encoded
from case_world import CaseModel, World, calls, says, until

from tenlines import Control
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.transcript import Assistant, Result


def test_pair_01_a_call_without_a_result_in_the_history_gets_a_truthful_one(world: World) -> None:
    @world.tool
    def stock(item: str) -> int:
        """Count."""
        return 12

    run = world.play().expect()
    *_, pears, filler, user = run.sent[0]
    assert (pears["tool_call_id"], filler["tool_call_id"]) == ("c1", "c2")
    assert user["content"] == "Are you still there?"
    text = filler["content"].lower()
    assert "no result" in text
    assert "not known" in text
    assert "had started" not in text  # nobody recorded that either
    assert "not executed" not in text
    assert len(run.result.repairs) == 1
    assert "'c2'" in run.result.repairs[0]
    assert run.events(ev.RunStarted)[0].repairs == run.result.repairs
    again = world.play(history=run.result.messages, task="And now?", model=[says("Yes.")])
    assert again.sent[0][: len(run.sent[0])] == run.sent[0]
    assert again.result.repairs == ()
    assert world.play(model=[says("Yes.")]).sent[0] == run.sent[0]


def test_pair_02_nothing_and_an_empty_list_are_two_different_results(world: World) -> None:
    @world.tool
    def clear() -> None:
        """Clear."""

    @world.tool
    def list_queue() -> list[str]:
        """List."""
        return []

    run = world.play().expect()
    assert run.results() == {"a": "(no output)", "b": "[]"}


def test_orph_01_a_result_without_its_call_is_dropped_and_reported(world: World) -> None:
    run = world.play().expect()
    assert [message["role"] for message in run.sent[0]] == ["user", "assistant", "user"]
    assert len(run.result.repairs) == 1
    assert "'gone'" in run.result.repairs[0]
    assert "42" in run.result.repairs[0]


def test_orph_03_what_was_compacted_away_never_comes_back_as_a_filler(world: World) -> None:
    @world.tool
    def work() -> str:
        """Work."""
        return "done"

    last = world.input["history"][-1]
    run = world.play(history=[{"role": "user", "content": "Summary: the work was done."}, last]).expect()
    ids = [call.id for one in run.result.messages if isinstance(one, Assistant) for call in one.calls]
    assert ids == ["p2"]
    assert run.result.repairs == ()
    cut = [one for one in run.result.messages if "p2" not in str(one)]
    again = world.play(history=cut, task="Next.", model=[calls(("p2", "work", "{}")), says("finished")])
    assert again.result.repairs == ()
    assert [message["role"] for message in again.sent[1]][-2:] == ["assistant", "tool"]

    past = [*world.input["history"][:2], {**world.input["history"][2], "content": "done " * 2_000}, last]
    world.tool(work)
    model = counting(world.input["model"], says("the work was done"))
    compaction = Compaction(strategies=("summarise",), keep=1, at=1)
    own = world.play(history=past, model=model, compaction=compaction).expect(model_calls=3)
    assert len(cuts(own)) == 1
    assert [one.call_id for one in own.result.messages if isinstance(one, Result)] == ["p2"]
    later = world.play(history=own.result.messages, task="And now?", model=[says("nothing")])
    assert later.result.repairs == ()
    assert later.sent[0][: len(own.sent[2])] == own.sent[2]


class _Say:
    """Says something as soon as a call has started, and knows when it was heard."""

    def __init__(self, control: Control, text: str) -> None:
        self.control, self.text, self.heard = control, text, False

    def on_event(self, event: Any) -> None:
        if isinstance(event, ev.CallStarted):
            self.control.say(self.text)
        self.heard = self.heard or isinstance(event, ev.MessageQueued)


def test_order_01_a_message_that_comes_while_a_tool_runs_waits_for_the_end_of_the_exchange(world: World) -> None:
    control = Control()
    say = _Say(control, "use the release profile")

    @world.tool
    async def build() -> str:
        """Build."""
        await until(lambda: say.heard)
        return "built"

    run = world.play(control=control, observers=[say]).expect()
    assert run.results() == {"b1": "built"}
    assert run.sent[1][-1]["content"] == "use the release profile"


def test_order_03_of_two_results_for_one_call_the_first_stays_and_the_other_is_reported(world: World) -> None:
    run = world.play().expect()
    for messages in (run.sent[0], encoded(run.result.messages)):
        results = [message for message in messages if message["role"] == "tool"]
        assert [(one["tool_call_id"], one["content"]) for one in results] == [("d1", "error: bad input")]
    assert len(run.result.repairs) == 1
    assert "exit 0" in run.result.repairs[0]


def test_order_04_late_results_never_replace_or_double_a_result(world: World) -> None:
    """They can come as a new message; handed in as results they are dropped and reported."""
    late = [{"role": "tool", "tool_call_id": one, "content": text} for one, text in (("a", "1"), ("b", "2"))]
    news = {"role": "user", "content": "Results that came late: a is 1, b is 2."}
    past = world.input["history"]
    for more, repairs in (([news], 0), (late, 2)):
        run = world.play(history=[*past, *more]).expect()
        results = [(one["tool_call_id"], one["content"]) for one in run.sent[0] if one["role"] == "tool"]
        assert results == [("a", "pending"), ("b", "pending"), ("c", "9")]
        assert len(run.result.repairs) == repairs
    assert "'a'" in run.result.repairs[0]
    assert "'1'" in run.result.repairs[0]
    assert "'b'" in run.result.repairs[1]
    assert "'2'" in run.result.repairs[1]


def test_ids_01_equal_ids_are_made_different_and_paired_by_position(world: World) -> None:
    @world.tool(read_only=True)
    def weather(city: str) -> str:
        """Weather."""
        return {"Oslo": "3 C", "Rome": "15 C"}[city]

    run = world.play().expect()
    _, assistant, first, second = run.sent[1]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids
    assert "Oslo" in assistant["tool_calls"][0]["function"]["arguments"]
    assert (first["content"], second["content"]) == ("3 C", "15 C")
    assert [record.provider_id for record in run.result.calls] == ["weather", "weather"]


def test_ids_02_missing_ids_are_made_of_the_position(world: World) -> None:
    @world.tool(read_only=True)
    def kv(k: str) -> str:
        """Upper."""
        return k.upper()

    run = world.play().expect()
    assert list(run.results().values()) == ["A", "B", "C"]
    again = world.play()
    assert again.sent == run.sent
    taken = [
        {"role": "user", "content": "Before."},
        {"role": "assistant", "tool_calls": [{"id": "call_1_0", "name": "kv", "arguments": '{"k": "z"}'}]},
        {"role": "tool", "tool_call_id": "call_1_0", "content": "Z"},
    ]
    after = world.play(history=taken)  # `play` asserts that all ids differ
    assert len(after.results()) == 4


def test_ids_04_long_ids_become_short_ones_that_stay_different(world: World) -> None:
    run = world.play().expect()
    ids = [call["id"] for message in run.sent[0] for call in message.get("tool_calls", ())]
    assert len(set(ids)) == 2
    assert all(len(one) <= 40 and one.replace("_", "").replace("-", "").isalnum() for one in ids)
    stored = [call.id for one in run.result.messages if isinstance(one, Assistant) for call in one.calls]
    assert stored == ["fc_" + "7" * 48 + "|A", "fc_" + "7" * 48 + "|B"]
    resent = [call["id"] for message in encoded(run.result.messages) for call in message.get("tool_calls", ())]
    assert resent == ids
    again = world.play(history=run.result.messages, task="More?", model=CaseModel([says("ok")]))
    assert again.sent[0][: len(run.sent[0])] == run.sent[0]
