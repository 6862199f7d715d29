"""Taking back what a run did, by example."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Finish, UndoCall
from tenlines.core.limits import Limits, Reservation
from tenlines.core.transcript import Note


def acted(**settings: Any) -> Run:
    """Three calls have come back: `book`, which can be undone; `send`, which cannot; `wire`, which can."""
    run = Run(CAREFUL, **settings).call("book", "look", "send", "wire")
    for position, text in enumerate(("table 4", "row", "sent", "100")):
        run.start(position).returned(position, text)
    return run


def undone(run: Run) -> str:
    """The call that is to be undone next."""
    assert isinstance(run.effect, UndoCall)
    return run.effect.call.name


def ended(**settings: Any) -> Run:
    run = acted(**settings).cancel("now")
    run.finish()
    return run


def test_calls_are_undone_in_the_reverse_order_of_their_start() -> None:
    run = ended().request_undo()
    assert undone(run) == "wire"
    assert undone(run.undo()) == "book"
    assert run.undo().finish().status == "cancelled", "it ends as it had ended"
    result = run.machine.result()
    assert [(one.name, one.outcome) for one in result.undone] == [("wire", "ok"), ("book", "ok")]
    assert [one.name for one in result.standing] == ["send"], "what has no compensation stands"


def test_a_compensation_is_given_the_call_as_it_ran_and_what_came_of_it() -> None:
    effect = ended().request_undo().undo().effect
    assert (effect.call.key, effect.call.arguments, effect.result, effect.outcome) == ("r:1:0", {}, "table 4", "ok")


def test_a_call_that_was_edited_is_undone_with_the_arguments_that_it_ran_with() -> None:
    run = Run(CAREFUL).call("pay").decide(arguments='{"n":2}').start().resume(CAREFUL).refuse_all().reply("done")
    run.finish()
    effect = run.request_undo().effect
    assert (effect.call.arguments, effect.result, effect.outcome) == ({"n": 2}, "", "in_doubt")


@pytest.mark.parametrize("outcome", ["tool_error", "timeout"])
def test_whatever_came_back_a_started_call_may_have_had_effect(outcome: str) -> None:
    run = Run(CAREFUL).call("book").start()
    if outcome == "tool_error":
        run.failed(0, "tool_error")
    else:
        run.tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="x")
    run.reply("sorry").finish()
    assert run.request_undo().effect.outcome == outcome


def test_what_never_started_is_not_undone() -> None:
    run = Run(CAREFUL).call("book", "wire").cancel("now").refuse_all()
    run.finish()
    assert isinstance(run.request_undo().effect, Finish)


def test_a_compensation_that_failed_does_not_keep_the_others_from_being_tried() -> None:
    run = ended().request_undo().undo("tool_error")
    assert undone(run) == "book"
    run.undo("timeout").finish()
    assert [one.name for one in run.machine.result().standing] == ["book", "send", "wire"]


def test_a_second_request_tries_again_what_failed_and_only_that() -> None:
    run = ended().request_undo().undo("tool_error").undo()
    run.finish()
    assert undone(run.request_undo()) == "wire"
    run.undo().finish()
    assert [(one.name, one.outcome) for one in run.machine.result().undone] == [("book", "ok"), ("wire", "ok")]
    assert isinstance(run.request_undo().effect, Finish), "nothing is left"


def test_the_order_is_kept_and_nothing_is_undone_twice_at_once() -> None:
    run = ended().request_undo()
    keys = {0: "r:1:0", 1: "r:1:1", 2: "r:1:2", 3: "r:1:3"}
    for position in (0, 1, 2):
        assert "not the next" in run.refuses(ev.UndoStarted, step=1, position=position, key=keys[position])
    assert "has key" in run.refuses(ev.UndoStarted, step=1, position=3, key="r:1:0")
    run.refuses(ev.CallUndone, step=1, position=3, outcome="ok")
    run.tell(ev.UndoStarted, step=1, position=3, key=keys[3])
    run.refuses(ev.UndoStarted, step=1, position=3, key=keys[3])
    run.refuses(ev.CallUndone, step=1, position=0, outcome="ok")
    run.refuses(ev.RunEnded, status="cancelled", reason="the run was cancelled")


def test_nothing_else_starts_while_a_run_is_undone() -> None:
    run = ended().request_undo()
    run.refuses(ev.StepStarted, step=2, attempt=1, reserved=Reservation())
    run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0")


def test_a_crash_in_between_goes_on_undoing() -> None:
    run = ended().request_undo().undo()
    run.tell(ev.UndoStarted, step=1, position=0, key="r:1:0").resume(CAREFUL)
    assert undone(run) == "book", "a compensation may be called twice"
    assert run.undo().finish().status == "cancelled"


def test_what_failed_before_a_crash_waits_for_a_second_request() -> None:
    run = ended().request_undo().undo("tool_error").resume(CAREFUL)
    assert undone(run) == "book"
    assert isinstance(run.undo().effect, Finish)


def test_who_goes_on_undoing_does_so_with_the_tools_that_are_here() -> None:
    fewer = tuple(spec for spec in CAREFUL if spec.name != "wire")
    assert undone(ended().request_undo().resume(fewer)) == "book"
    more = tuple(msgspec.structs.replace(spec, undoable=spec.name != "look") for spec in CAREFUL)
    run = ended().request_undo().undo().resume(more)
    assert undone(run) == "send"
    assert undone(run.undo()) == "book"


def test_an_answered_run_can_be_undone_and_taken_over_meanwhile_but_not_resumed() -> None:
    run = acted().reply("done")
    run.finish()
    run.refuses(ev.RunResumed, tools=CAREFUL)
    run.request_undo().resume(CAREFUL).undo().undo()
    end = run.finish()
    assert (end.status, end.answer) == ("answered", "done")
    run.refuses(ev.RunResumed, tools=CAREFUL)


def test_the_model_is_told_once_what_was_undone() -> None:
    run = ended().request_undo().undo().undo("timeout")
    run.finish()
    run.resume(CAREFUL)
    notes = [message.text for message in run.messages if isinstance(message, Note)]
    assert notes == ["What these calls did was undone after the run had stopped: wire. Take it as not done."]
    assert isinstance(run.effect, CallModel)
    run.resume(CAREFUL)
    assert len([message for message in run.messages if isinstance(message, Note)]) == 1


def test_a_run_that_waits_for_a_decision_is_not_undone() -> None:
    run = Run(CAREFUL).call("pay").question()
    run.finish()
    assert "waits for a decision" in run.refuses(ev.UndoRequested, tools=CAREFUL)
    run.resume(CAREFUL).cancel("now").refuse_all().finish()
    run.request_undo()


def test_two_tools_of_one_name_are_refused_when_a_run_is_undone() -> None:
    assert "'look'" in ended().refuses(ev.UndoRequested, tools=(CAREFUL[0], CAREFUL[0]))


def test_what_people_say_while_a_run_is_undone_is_heard_when_it_goes_on() -> None:
    run = ended().request_undo().say("try again").undo().undo()
    run.finish()
    run.resume(CAREFUL)
    assert [message.text for message in run.messages[-2:]] == [
        "try again",
        "What these calls did was undone after the run had stopped: wire, book. Take it as not done.",
    ]


def test_undoing_later_is_not_charged_to_the_time_of_the_run() -> None:
    run = ended(limits=Limits(seconds=50))
    run.at = 100_000.0
    run.request_undo().undo().undo().finish()
    run.resume(CAREFUL)
    assert run.effect.deadline_at == 100_050.0


# --- of itself ------------------------------------------------------------------------------------------------


def test_a_run_that_is_to_be_undone_on_a_stop_is_undone_before_it_ends() -> None:
    run = acted(on_stop="undo", limits=Limits(steps=1))
    assert undone(run) == "wire"
    run.refuses(ev.RunEnded, status="max_steps", reason="the limit of 1 steps was reached without an answer")
    end = run.undo().undo("tool_error").finish()
    assert end.status == "max_steps"


def test_an_answer_is_no_stop() -> None:
    assert acted(on_stop="undo").reply("done").finish().status == "answered"


def test_a_stop_that_is_taken_back_before_anything_was_undone_undoes_nothing() -> None:
    run = acted(on_stop="undo", limits=Limits(steps=1)).tell(ev.LimitsRaised, limits=Limits(steps=2))
    assert isinstance(run.effect, CallModel)


def test_once_it_has_begun_it_is_gone_through_with() -> None:
    run = acted(on_stop="undo", limits=Limits(steps=1)).undo().tell(ev.LimitsRaised, limits=Limits(steps=9))
    assert undone(run) == "book"
    assert run.undo().finish().status == "max_steps"


def test_a_run_that_stops_again_after_it_was_undone_tries_again_what_failed() -> None:
    run = acted(on_stop="undo").cancel("now").undo("timeout").undo()
    run.finish()
    run.resume(CAREFUL).cancel("now")
    assert undone(run) == "wire"
