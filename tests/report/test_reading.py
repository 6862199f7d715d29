"""Events in, a view out."""

from __future__ import annotations

from random import Random
from typing import Any, get_args

import msgspec
import pytest
from costly_runs import CostlyRun
from hostile_logs import TEXTS, hostile_logs
from hypothesis import given
from hypothesis import strategies as st
from shops import Shop, as_read, shop, texts_in
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core.ledger import ledger_of
from tenlines.core.transcript import Text, ToolCall, Usage
from tenlines.errors import InvalidEvent
from tenlines.report.model import CallItem, EndItem, RemarkItem, RunView, StartItem, StepItem
from tenlines.report.reading import Reading, read_run
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import clean


def steps(view: RunView) -> list[StepItem]:
    return [item for item in view.items if isinstance(item, StepItem)]


def calls(view: RunView) -> dict[str, CallItem]:
    return {call.id: call for step in steps(view) for call in step.calls}


def remarks(view: RunView) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in view.items if isinstance(item, RemarkItem)]


def test_a_run_is_its_beginning_its_steps_and_its_end() -> None:
    view = read_run(shop(5))
    assert [item.id for item in view.items] == ["start", *(f"step-{n}" for n in range(1, 6)), "end"]
    start, end = view.items[0], view.items[-1]
    assert isinstance(start, StartItem)
    assert isinstance(end, EndItem)
    assert [message.role for message in start.messages] == ["instructions", "user"]
    assert (end.status, end.answer) == ("answered", "Order 1042 was shipped as TRK77 and is in Leipzig.")
    assert [step.standing for step in steps(view)] == ["1 call", "1 call", "1 call", "2 calls", "answers"]


def test_a_call_has_its_arguments_its_result_and_its_time() -> None:
    call = calls(read_run(shop(5)))["call-4-2"]
    assert (call.place, call.name, call.standing, call.tone) == ("4.2", "get_tracking", "ok", "good")
    assert call.line == 'get_tracking(number="TRK1")'
    assert call.arguments == '{\n  "number": "TRK1"\n}'
    assert call.result.startswith("2026-11-01 08:11  hub 4\n2026-11-02")
    facts = {fact.name: fact.value for fact in call.facts}
    assert facts["time"] == "400 ms"
    assert facts["carried"].startswith("in 1 request: ~")


def test_a_step_says_what_of_its_request_was_new() -> None:
    view = read_run(Run().exchange().say("wait").exchange().log)
    first, second = steps(view)
    assert [(link.id, link.text) for link in first.sent] == [("start", "the beginning")]
    assert [link.id for link in second.sent] == ["call-1-1", "remark-1"]


def test_reasoning_is_shown_beside_the_text() -> None:
    fifth = steps(read_run(shop(7)))[4]
    assert fifth.reasoning == "I need order 1005 first."


def test_what_the_model_was_not_told_is_there_too() -> None:
    run = Run().call("look").start()
    whole: dict[str, Any] = {"full": "all of it", "truncated": True, "shown_chars": 4, "original_chars": 9}
    run.tell(ev.CallReturned, step=1, position=0, parts=(Text("part"),), remarks=("it was cut",), **whole)
    call = calls(read_run(run.log))["call-1-1"]
    assert (call.result, call.full, call.remarks) == ("part", "all of it", ("it was cut",))


def test_who_was_asked_and_what_they_said_stands_with_the_call() -> None:
    run = Run(CAREFUL).call("pay").question(reason="money").decide(by="ann", arguments='{"n": 2}').start()
    call = calls(read_run(run.log))["call-1-1"]
    assert call.notes == ("somebody has to allow it: money", 'allowed by ann, with other arguments: {"n": 2}')
    assert (call.standing, call.tone, call.result) == ("open", "info", "")


def test_a_call_whose_run_waits_says_for_what() -> None:
    run = Run((ev.ToolSpec("ask", spends=True, child=True),)).call("ask").start()
    waiting = (ev.WaitingCall("inner", "2.1", "pay"),)
    run.tell(ev.ChildPaused, step=1, position=0, run_id="under", waiting=waiting)
    call = calls(read_run(run.log))["call-1-1"]
    assert (call.standing, call.notes[-1]) == ("waits", "its run under waits for a decision: pay (2.1 of run inner)")


def test_a_step_that_is_asked_for_again_after_a_crash_is_another_item() -> None:
    run = Run().ask().resume().reply("done")
    run.finish()
    view = read_run(run.log)
    assert [item.id for item in view.items] == ["start", "step-1", "remark-1", "step-1-again", "end"]
    assert [step.standing for step in steps(view)] == ["no reply", "answers"]


def test_a_request_that_failed_is_counted() -> None:
    run = Run().ask().tell(ev.ModelFailed, step=1, attempt=1, kind="Overloaded", message="busy", retryable=True)
    run.at += 30
    view = read_run(run.reply("done").log)
    assert ("requests", "2") in [(fact.name, fact.value) for fact in steps(view)[0].facts]
    assert remarks(view) == [("failed", "busy")]


def test_a_run_that_goes_on_waits_for_its_reply() -> None:
    view = read_run(Run().ask().log)
    assert steps(view)[0].standing == "waits for the reply"
    assert view.items[-1].status == "open"  # type: ignore[union-attr]


def test_a_key_stands_before_every_id() -> None:
    view = read_run(Run().exchange().say("x").exchange().log, Reading(key="r7"))
    assert [item.id for item in view.items] == ["r7-start", "r7-step-1", "r7-remark-1", "r7-step-2", "r7-end"]
    assert [link.id for link in steps(view)[1].sent] == ["r7-call-1-1", "r7-remark-1"]


def test_a_log_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidEvent):
        read_run(shop(3)[1:])


# --- as events come -------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 10_000))
def test_what_it_says_has_changed_is_all_that_has(seed: int) -> None:
    log = as_read(CostlyRun(seed, 25).log)
    reading, shown = Reading(), dict[str, Any]()
    for event in log:
        changed = set(reading.take(event))
        now = {item.id: item for item in reading.items()}
        for id, item in now.items():
            if id not in changed:
                assert _without_estimates(shown[id]) == _without_estimates(item), (type(event).__name__, id)
        assert changed <= set(now)
        shown = now
    assert reading.view() == read_run(log)


def _without_estimates(item: Any) -> Any:
    """What a result was in all requests rises with each of them; that is told when the step is looked at anew."""
    if not isinstance(item, StepItem):
        return msgspec.structs.replace(item, at="") if isinstance(item, EndItem) else item
    calls = tuple(msgspec.structs.replace(call, facts=()) for call in item.calls)
    return msgspec.structs.replace(item, calls=calls)


@pytest.mark.slow
@given(st.integers(0, 10_000))
def test_its_sums_are_those_of_the_ledger(seed: int) -> None:
    log = as_read(CostlyRun(seed, 40).log)
    view, ledger = read_run(log), ledger_of(log)
    assert (view.head.tokens, view.head.dollars) == (ledger.all.tokens, ledger.dollars)
    assert len({item.id for item in view.items}) == len(view.items)
    assert [point.step for point in view.series.points] == [line.step for line in ledger.steps]


def test_work_for_an_event_does_not_grow_with_the_log() -> None:
    reading = Reading()
    for event in shop(400):
        reading.take(event)
    assert len(reading.item("step-399").calls) == 1  # type: ignore[union-attr]
    with pytest.raises(KeyError):
        reading.item("step-401")


# --- secrets and hostile texts --------------------------------------------------------------------------

SECRET = "sk-live-4711-abcdef"


def test_a_secret_is_nowhere_in_the_view_though_it_is_named_late() -> None:
    run = Run()
    run.reply(f"I use {SECRET}", ToolCall("a", "look", "{}"), usage=Usage(10, 5)).start()
    run.returned(text=f"with {SECRET} inside").say(f"take {SECRET}")
    run.reply("", ToolCall("b", "send", f'{{"api_key": "{SECRET}"}}')).start()
    run.failed(0, "tool_error", f"refused: {SECRET}")
    run.tell(ev.CancelRequested, mode="now", reason=f"leaked {SECRET}")
    run.finish()
    assert any(SECRET in text for text in texts_in(read_run(run.log)))
    shown = read_run(run.log, Reading(Redaction()))
    assert [text for text in texts_in(shown) if SECRET in text] == []
    assert any("[redacted]" in text for text in texts_in(shown))


def test_hostile_logs_have_every_kind_of_event() -> None:
    assert {type(event) for log in hostile_logs() for event in log} == set(get_args(ev.AnyEvent))


def test_no_text_of_a_view_hides_or_turns_anything() -> None:
    for log in hostile_logs():
        for text in texts_in(read_run(log)):
            assert text == clean(text)


@pytest.mark.slow
def test_every_hostile_text_is_in_some_view_as_text() -> None:
    logs = [log for first in (0, 19) for log in hostile_logs(first)]
    told = "\n".join(text for log in logs for text in texts_in(read_run(log)))
    assert [text for text in TEXTS if clean(text) not in told] == []


def test_arguments_that_are_no_json_are_shown_as_they_came() -> None:
    run = Run().reply("", ToolCall("a", "look", "{broken"))
    assert calls(read_run(run.log))["call-1-1"].arguments == "{broken"


def test_any_reading_order_of_a_log_in_pieces_is_the_same() -> None:
    log = Shop(30).log
    whole, pieces, chance = read_run(log), Reading(), Random(3)
    at = 0
    while at < len(log):
        more = chance.randint(1, 9)
        for event in log[at : at + more]:
            pieces.take(event)
        at += more
        pieces.view()
    assert pieces.view() == whole


def test_a_reply_without_counts_says_so() -> None:
    step = steps(read_run(Run().reply("x").log))[0]
    assert ("tokens", "not reported") in [(fact.name, fact.value) for fact in step.facts]
