"""What a new owner makes of what the last one left, by example."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.effects import AskHuman, Reconcile
from tenlines.core.limits import Limits


def test_what_was_said_while_the_model_wrote_survives_a_crash_in_order() -> None:
    run = Run().ask().say("first").resume().say("second")
    assert [message.text for message in run.messages] == ["task", "first", "second"]


@pytest.mark.parametrize("name", ["put", "look"])
def test_a_call_that_started_before_a_crash_is_never_told_as_not_executed(name: str) -> None:
    run = Run().call(name).start().resume().cancel("now")
    (refusal,) = run.effect.refusals
    assert refusal.outcome == ("in_doubt" if name == "put" else "cancelled")
    run.tell(ev.CallAbandoned, step=1, position=0, outcome=refusal.outcome, text=refusal.text)
    assert run.finish().status == "cancelled"


def test_a_call_that_crashed_twice_before_it_ran_again_is_still_in_doubt() -> None:
    run = Run().call("put").start().resume().resume(())
    (refusal,) = run.effect.refusals
    assert (refusal.outcome, "may have" in refusal.text) == ("in_doubt", True)


def test_a_call_is_not_run_again_by_a_tool_that_lost_its_promise() -> None:
    run = Run().call("put").start().resume((ev.ToolSpec("put"),))
    assert (run.effect.calls, run.effect.refusals[0].outcome) == ((), "in_doubt")


def test_the_weaker_promise_holds_for_what_has_run() -> None:
    run = Run().call("put").start().resume((ev.ToolSpec("put", read_only=True),)).cancel("now")
    assert run.effect.refusals[0].outcome == "in_doubt"


def test_what_ran_before_a_crash_is_not_judged_by_the_tool_as_it_is_now() -> None:
    reading = (ev.ToolSpec("put", read_only=True),)
    run = Run().call("put").start().resume(reading).start()
    text = outcomes.timed_out("put", 2.0, read_only=True)
    run.tell(ev.CallTimedOut, step=1, position=0, after_s=2.0, text=text)
    assert "may have taken effect" in run.messages[-1].text


def test_arguments_that_no_longer_fit_after_a_crash_do_not_undo_what_the_call_did() -> None:
    run = Run().call("put").start().resume().failed(0, "invalid_arguments", "put did not run")
    assert run.messages[-1].outcome == "in_doubt"
    assert "did not run" not in run.messages[-1].text


def test_crashes_do_not_buy_more_last_words() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned()
    run.call("look").resume()
    (refusal,) = run.effect.refusals
    run.failed(0, refusal.outcome, refusal.text)
    assert run.finish().status == "max_steps"


def test_a_new_cancel_does_not_give_the_reason_of_the_old_one() -> None:
    run = Run().tell(ev.CancelRequested, mode="now", reason="lunch")
    run.finish()
    assert run.resume().cancel("now").finish().reason == "the run was cancelled"


# --- doubt --------------------------------------------------------------------------------------------------


def crashed(name: str, **settings: Any) -> Run:
    """The call had started when the process died."""
    run = Run(CAREFUL, **settings).call(name)
    if isinstance(run.effect, AskHuman):
        run.decide()
    return run.start().resume(CAREFUL)


def about(run: Run) -> str:
    assert isinstance(run.effect, AskHuman)
    (question,) = run.effect.questions
    return question.about


def test_nobody_is_asked_where_the_model_is_to_be_told() -> None:
    run = crashed("send")
    assert [one.outcome for one in run.effect.refusals] == ["in_doubt"]


def test_a_person_decides_whether_a_call_in_doubt_runs_again() -> None:
    run = crashed("send", on_in_doubt="ask")
    assert about(run) == "in_doubt"
    run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0")
    run.question(about="in_doubt").finish()
    assert run.machine.result().pending[0].about == "in_doubt"
    run.decide().resume(CAREFUL)
    assert [call.key for call in run.effect.calls] == ["r:1:0"]
    run.start().returned()
    assert run.machine.result().tool_calls == 1, "it is the same call"


def test_a_person_may_leave_a_call_in_doubt() -> None:
    run = crashed("send", on_in_doubt="ask").question(about="in_doubt")
    run.finish()
    run.decide(verdict="deny", reason="I saw it arrive").resume(CAREFUL).refuse_all()
    result = run.messages[-1]
    assert result.outcome == "in_doubt"
    assert "It was not run again. ann says: I saw it arrive" in result.text


@pytest.mark.parametrize("crashes", [1, 2, 3])
def test_a_doubt_that_somebody_settled_stays_settled_until_the_call_runs(crashes: int) -> None:
    run = crashed("send", on_in_doubt="ask").question(about="in_doubt").decide()
    for _ in range(crashes):
        run.resume(CAREFUL)
    assert [call.name for call in run.effect.calls] == ["send"]
    run.start().resume(CAREFUL)
    assert about(run) == "in_doubt", "it may have taken effect once more"


def test_leave_to_run_is_no_leave_to_run_again() -> None:
    run = crashed("pay", on_in_doubt="ask")
    assert about(run) == "in_doubt"


def test_an_old_answer_lets_nothing_run_once_more() -> None:
    run = Run(CAREFUL, on_in_doubt="ask").call("pay")
    answers = [run.digest()]
    run.decide().start().resume(CAREFUL)
    answers.append(run.digest())
    run.question(about="in_doubt").decide().start().resume(CAREFUL).question(about="in_doubt")
    answers.append(run.digest())
    assert len(set(answers)) == 3
    for digest in answers[:2]:
        run.refuses(ev.ApprovalGiven, step=1, position=0, digest=digest, verdict="allow", by="eve")


def test_leave_to_run_again_that_is_over_is_asked_for_again() -> None:
    run = crashed("send", on_in_doubt="ask").question(about="in_doubt").decide(expires_at=110.0)
    run.at = 110.0
    assert about(run.resume(CAREFUL)) == "in_doubt"


def test_a_call_in_doubt_of_a_tool_that_changed_is_asked_about_again() -> None:
    changed = tuple(msgspec.structs.replace(spec, description="new") for spec in CAREFUL)
    run = crashed("send", on_in_doubt="ask").question(about="in_doubt").decide().resume(changed)
    assert about(run) == "in_doubt"


def test_what_has_run_with_other_arguments_is_asked_about_with_those() -> None:
    run = Run(CAREFUL, on_in_doubt="ask").call("pay").decide(arguments='{"n":2}').start().resume(CAREFUL)
    assert run.effect.questions[0].call.arguments == {"n": 2}
    run.question(about="in_doubt").decide().start().returned()
    assert "It ran with" in run.messages[-1].text


def test_arguments_cannot_be_changed_between_two_tries_of_a_call_in_doubt() -> None:
    run = crashed("send", on_in_doubt="ask").question(about="in_doubt")
    answer = {"digest": run.digest(), "verdict": "allow", "by": "ann", "arguments": "{}"}
    run.refuses(ev.ApprovalGiven, step=1, position=0, **answer)


def test_a_guarded_call_that_is_safe_to_repeat_runs_again_under_the_same_leave() -> None:
    run = Run(CAREFUL).call("keep").decide(expires_at=200.0).start().resume(CAREFUL)
    assert [call.key for call in run.effect.calls] == ["r:1:0"]
    run.at = 200.0
    assert about(run) == "call"
    run.decide(verdict="deny", by="policy")
    assert [one.outcome for one in run.effect.refusals] == ["in_doubt"], "it may have taken effect before"
    assert "did not allow" not in run.effect.refusals[0].text


# --- reconciliation -------------------------------------------------------------------------------------------


def test_a_tool_that_can_tell_is_asked_before_anything_else_happens_to_its_call() -> None:
    run = crashed("wire")
    assert isinstance(run.effect, Reconcile)
    assert [call.key for call in run.effect.calls] == ["r:1:0"]
    place = {"step": 1, "position": 0}
    run.refuses(ev.CallStarted, **place, key="r:1:0")
    run.refuses(ev.CallAbandoned, **place, outcome="in_doubt", text="x")
    run.refuses(ev.CallFailed, **place, outcome="invalid_arguments", text="x")
    run.refuses(ev.ApprovalAsked, **place, digest=run.digest(), about="in_doubt")


def test_the_value_that_a_tool_had_returned_before_the_crash_is_the_result() -> None:
    run = crashed("wire").returned(0, "sent")
    assert (run.messages[-1].outcome, run.messages[-1].text) == ("ok", "sent")
    assert run.machine.result().tool_calls == 1


def test_a_call_that_was_not_done_runs_once_more_with_the_same_key() -> None:
    run = crashed("wire").reconciled("not_done")
    assert [call.key for call in run.effect.calls] == ["r:1:0"]
    run.start()
    run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0")
    assert isinstance(run.resume(CAREFUL).effect, Reconcile), "it may have been done this time"


def test_a_crash_after_the_tool_was_asked_has_it_asked_again() -> None:
    assert isinstance(crashed("wire").reconciled("not_done").resume(CAREFUL).effect, Reconcile)


def test_what_the_tool_does_not_know_is_told_to_the_model() -> None:
    run = crashed("wire").reconciled("unknown").refuse_all()
    assert run.messages[-1].outcome == "in_doubt"


def test_what_the_tool_does_not_know_a_person_decides_and_the_tool_is_not_asked_again() -> None:
    run = crashed("wire", on_in_doubt="ask").reconciled("unknown")
    assert about(run) == "in_doubt"
    run.question(about="in_doubt").finish()
    run.decide().resume(CAREFUL)
    assert [call.name for call in run.effect.calls] == ["wire"]


def test_a_tool_that_cannot_tell_any_more_is_not_asked() -> None:
    plain = (ev.ToolSpec("wire"),)
    assert [one.outcome for one in crashed("wire").resume(plain).effect.refusals] == ["in_doubt"]
    assert about(crashed("wire", on_in_doubt="ask").resume(plain)) == "in_doubt"


def test_only_a_doubt_can_be_reconciled() -> None:
    run = Run(CAREFUL).call("wire")
    run.refuses(ev.CallReconciled, step=1, position=0, verdict="not_done")
    run = crashed("send", on_in_doubt="ask")
    run.refuses(ev.CallReconciled, step=1, position=0, verdict="not_done")
    run = crashed("wire").reconciled("unknown")
    run.refuses(ev.CallReconciled, step=1, position=0, verdict="not_done")


def test_a_cancel_ends_doubts_as_what_they_are() -> None:
    for run in (crashed("wire"), crashed("send", on_in_doubt="ask")):
        run.cancel("now")
        assert [one.outcome for one in run.effect.refusals] == ["in_doubt"]
        assert run.refuse_all().finish().status == "cancelled"


def test_the_time_between_two_owners_is_not_charged() -> None:
    run = Run(limits=Limits(seconds=50))
    run.at = 120.0
    run.say("still there").at = 1_000.0
    run.resume()
    assert run.effect.deadline_at == 1_030.0
