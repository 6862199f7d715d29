"""Calls, by example: who starts when, what each is told as, how an exchange closes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.transcript import Image, Json, Note, Part, Text


def test_results_follow_their_message_in_call_order_whatever_came_back_first() -> None:
    run = Run().call("look", "look").start(0).start(1).returned(1, "second").returned(0, "first")
    assert [message.text for message in run.messages[-2:]] == ["first", "second"]


def test_a_final_tool_gives_the_answer_and_stops_its_siblings() -> None:
    run = Run().call("send", "finish").start(1).returned(1, "the answer")
    (refusal,) = run.effect.refusals
    assert (refusal.position, refusal.outcome) == (0, "not_executed")
    run.failed(0, refusal.outcome, refusal.text)
    assert run.finish().answer == "the answer"


def test_a_used_up_tool_budget_refuses_the_rest_and_ends_the_run() -> None:
    run = Run(limits=Limits(tool_calls=1)).call("look", "look")
    assert len(run.effect.calls) == 1
    run.start(0).returned(0)
    (refusal,) = run.effect.refusals
    run.failed(1, refusal.outcome, refusal.text)
    assert run.finish().status == "tool_limit"


def test_a_late_result_is_recorded_once_and_stays_out_of_the_transcript() -> None:
    run = Run().call("send").start().tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="given up")
    before = list(run.messages)
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late")
    assert run.messages == before
    assert "not given up" in run.refuses(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late")


def test_a_call_that_acts_waits_for_the_reading_calls_before_it() -> None:
    run = Run().call("look", "send").start(0)
    assert run.effect.calls == ()
    run.returned(0)
    assert [call.position for call in run.effect.calls] == [1]


def test_a_driver_cannot_start_a_call_that_acts_beside_another() -> None:
    run = Run().call("send", "send", "look").start(0)
    for position in (1, 2):
        why = run.refuses(ev.CallStarted, step=1, position=position, key=f"r:1:{position}")
        assert "under way" in why
    run.returned(0).start(1)


def test_a_final_tool_runs_alone_even_if_it_only_reads() -> None:
    run = Run().call("look", "tell", "look")
    assert [call.name for call in run.effect.calls] == ["tell"]


def test_a_drain_lets_what_runs_finish() -> None:
    run = Run().call("look", "look", "send").start(0).start(1).cancel("drain")
    assert [refusal.position for refusal in run.effect.refusals] == [2]
    run.returned(0).returned(1)
    run.failed(2, "not_executed", run.effect.refusals[0].text)
    assert run.finish().status == "cancelled"


def test_a_note_of_the_loop_is_no_message_of_a_person() -> None:
    run = Run(tell_left=True).call("look").start().returned()
    assert run.messages[-1] == Note("Left for this task: 19 steps.")


def test_a_call_that_is_refused_is_told_as_what_it_is_refused_as() -> None:
    run = Run(CAREFUL).call("pry").decide().start().resume(CAREFUL)
    changed = (ev.ToolSpec("pry", "new", read_only=True, approve=True),)
    run.resume(changed).decide(verdict="deny")
    for outcome in ("in_doubt", "cancelled"):
        why = run.refuses(ev.CallAbandoned, step=1, position=0, outcome=outcome, text="x")
        assert "refused as 'denied'" in why
    assert run.refuse_all().messages[-1].outcome == "denied"


@pytest.mark.parametrize(
    ("parts", "is_told"),
    [
        (lambda n: (Json({"n": 1}),), True),
        (lambda n: (Json({"n": n}),), False),
        (lambda n: (Image("image/png", bytes([n])),), False),
        (lambda n: (Text("page"), Json({"n": n})), False),
    ],
)
def test_results_that_are_no_text_are_told_apart(parts: Callable[[int], tuple[Part, ...]], is_told: bool) -> None:
    run = Run()
    for number in range(3):
        run.call("look").start().tell(ev.CallReturned, **run.place(), parts=parts(number))
    assert any(isinstance(message, Note) and "the same result" in message.text for message in run.messages) == is_told
