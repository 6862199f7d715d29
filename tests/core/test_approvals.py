"""Leave to run, by example."""

from __future__ import annotations

from typing import Any

import pytest
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core.effects import AskHuman, CallModel, Finish, RunTools
from tenlines.core.limits import Limits
from tenlines.core.transcript import Note, ToolCall


def paying(*more: str, **settings: Any) -> Run:
    """The model has asked for `pay` with `{"n":1}`, and for more."""
    calls = (ToolCall("p", "pay", '{"n": 1}'), *(ToolCall(f"m{i}", name, "{}") for i, name in enumerate(more)))
    return Run(CAREFUL, **settings).reply("", *calls)


def questions(run: Run) -> list[tuple[str, str]]:
    assert isinstance(run.effect, AskHuman)
    return [(one.call.name, one.about) for one in run.effect.questions]


def runnable(run: Run) -> list[tuple[str, Any]]:
    assert isinstance(run.effect, RunTools)
    return [(call.name, call.arguments) for call in run.effect.calls]


def test_all_calls_that_need_leave_are_asked_about_at_once_and_before_anything_runs() -> None:
    run = paying("look", "keep")
    assert questions(run) == [("pay", "call"), ("keep", "call")]
    assert run.effect.questions[0].digest == run.digest(0)
    assert "needs somebody's leave" in run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0")


def test_a_call_that_was_allowed_runs() -> None:
    run = paying().decide(by="policy")
    assert runnable(run) == [("pay", {"n": 1})]
    run.start().returned()
    assert not any(isinstance(message, Note) for message in run.messages)


def test_a_call_that_was_denied_does_not_run_and_the_model_is_told_why() -> None:
    run = paying().decide(verdict="deny", reason="too much.")
    (refusal,) = run.effect.refusals
    assert refusal.outcome == "denied"
    run.refuse_all()
    assert (
        run.messages[-1].text == "pay was not run: ann did not allow it: too much. Do not ask for the same call again."
    )
    assert run.machine.result().calls[0].outcome == "denied"


def test_what_reads_runs_while_a_person_is_asked_and_what_acts_waits_its_turn() -> None:
    run = Run(CAREFUL).call("look", "pry", "send").question(1)
    assert runnable(run) == [("look", {})]
    run.start(0).returned(0)
    assert runnable(run) == [("send", {})], "a call that only reads holds up nobody while it waits"
    waits = paying("send").question()
    assert isinstance(waits.effect, Finish), "what comes after a call that acts waits with it"


def test_a_run_pauses_when_only_a_person_can_go_on_and_says_for_what() -> None:
    run = Run(CAREFUL).reply("", ToolCall("l", "look", "{}"), ToolCall("p", "pay", '{"n": 1}'))
    run.question(1, reason="it is a lot").start(0)
    assert isinstance(run.effect, RunTools), "a call that is under way is waited for"
    run.returned(0)
    end = run.finish()
    assert (end.status, end.answer) == ("awaiting_approval", None)
    assert end.reason == "the call of pay waits for somebody's decision"
    (one,) = run.machine.result().pending
    assert (one.place, one.name, one.arguments, one.reason) == ("1.2", "pay", {"n": 1}, "it is a lot")
    assert run.messages == run.messages[:1], "the exchange is still open"


def test_several_calls_that_wait_are_all_named() -> None:
    run = Run(CAREFUL).call("pry", "pay").question(0).question(1)
    assert run.finish().reason == "2 calls wait (pry, pay) for somebody's decision"


def test_a_pause_is_refused_while_something_can_be_done() -> None:
    reason = "the call of pay waits for somebody's decision"
    run = Run(CAREFUL).call("look", "pay").question(1)
    assert "has to go on" in run.refuses(ev.RunEnded, status="awaiting_approval", reason=reason), "a call can run"
    run.start(0)
    assert "has to go on" in run.refuses(ev.RunEnded, status="awaiting_approval", reason=reason), "it is under way"
    run = paying("keep").question(0)
    assert "has to go on" in run.refuses(ev.RunEnded, status="awaiting_approval", reason=reason), "one was not asked"
    run = paying().question().cancel("drain")
    assert "has to go on" in run.refuses(ev.RunEnded, status="awaiting_approval", reason=reason), "it is cancelled"


def test_a_pause_is_recorded_even_if_the_time_ran_out_while_it_was() -> None:
    run = paying(limits=Limits(seconds=5)).question(expires_at=103.0)
    end = run.effect
    run.at = 200.0
    run.tell(ev.RunEnded, status=end.status, reason=end.reason)
    assert run.effect == end


def test_a_decision_about_a_paused_run_is_acted_on_by_whoever_resumes_it() -> None:
    run = paying("keep").question(0).question(1)
    run.finish()
    run.decide(0).decide(1, "deny", reason="no")
    assert run.machine.result().pending == ()
    assert isinstance(run.effect, Finish), "nothing runs before it is resumed"
    run.resume(CAREFUL)
    assert runnable(run) == [("pay", {"n": 1})]
    run.start(0).returned(0).refuse_all()
    assert [message.outcome for message in run.messages[-2:]] == ["ok", "denied"]


def test_a_call_that_was_not_decided_about_is_still_waited_for_after_a_resume() -> None:
    run = paying("keep").question(0).question(1)
    run.finish()
    run.decide(0).resume(CAREFUL).start(0).returned(0)
    assert run.finish().reason == "the call of keep waits for somebody's decision"


def test_arguments_that_a_person_put_in_place_run_and_the_model_is_told() -> None:
    run = paying().question()
    run.finish()
    run.decide(arguments=' {"n": 2, "a": 1}').resume(CAREFUL)
    assert runnable(run) == [("pay", {"n": 2, "a": 1})]
    run.start().returned()
    note = run.messages[-1]
    assert note == Note('ann changed the arguments of your call p of pay before it ran. It ran with: {"a":1,"n":2}')
    assert run.messages[1].calls[0].arguments == '{"n": 1}', "what the model wrote stays what it wrote"
    assert run.machine.result().calls[0].arguments == {"n": 2, "a": 1}


def test_an_edit_is_told_even_if_nobody_signed_it() -> None:
    run = paying().decide(arguments="{}", by="").start().returned()
    assert run.messages[-1].text.startswith("A person changed the arguments")


def test_an_edit_of_a_call_that_did_not_run_is_not_told() -> None:
    run = paying().decide(arguments='{"n":2}').failed(0, "invalid_arguments")
    assert not any(isinstance(message, Note) for message in run.messages)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "3", '{"a":NaN}', "{}{}"])
def test_only_an_object_can_be_put_in_place(text: str) -> None:
    run, place = paying().question(), {"step": 1, "position": 0}
    given = {"digest": run.digest(), "verdict": "allow", "by": "ann", "arguments": text}
    if text:
        run.refuses(ev.ApprovalGiven, **place, **given)
    else:
        assert runnable(run.tell(ev.ApprovalGiven, **place, **given)) == [("pay", {})], "nothing is no arguments"


def test_a_denial_puts_nothing_in_place() -> None:
    why = paying().refuses(
        ev.ApprovalGiven, step=1, position=0, digest=paying().digest(), verdict="deny", by="ann", arguments="{}"
    )
    assert "only a call that is allowed" in why


# --- what an answer is bound to -----------------------------------------------------------------------------


def test_an_answer_to_another_question_is_none() -> None:
    run = paying("keep").question(0).question(1)
    for digest in ("", "0" * 32, run.digest(1), run.digest(0)[:-1]):
        why = run.refuses(ev.ApprovalGiven, step=1, position=0, digest=digest, verdict="allow", by="eve")
        assert "about another call" in why


def test_equal_calls_in_other_places_have_other_digests() -> None:
    run = Run(CAREFUL).call("pay", "pay")
    first = run.digest(0)
    assert first != run.digest(1)
    other = Run(CAREFUL).reply("", ToolCall("x", "pay", '{"n":1}'))
    assert first != other.digest(0), "the arguments are another"
    same = Run(CAREFUL).reply("", ToolCall("y", "pay", ' { "n" :1} '))
    assert other.digest(0) == same.digest(0), "the same arguments, however they are written"


def test_a_question_about_a_tool_that_changed_is_asked_anew() -> None:
    changed = tuple(ev.ToolSpec("pay", "dearer", approve=True) if one.name == "pay" else one for one in CAREFUL)
    for before in (paying().question(), paying().question().decide(), paying().decide(arguments='{"n":2}')):
        run = before.resume(changed)
        assert questions(run) == [("pay", "call")]
        assert run.effect.questions[0].call.arguments == {"n": 1}
        assert run.machine.result().pending == ()
        run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0")


@pytest.mark.parametrize("taken", ["resumed", "gone", "undone"])
def test_who_takes_a_run_over_cannot_take_the_mark_off_a_tool(taken: str) -> None:
    unmarked = (ev.ToolSpec("pay"),)
    run = Run(CAREFUL)
    if taken == "gone":
        run.resume(())
    if taken == "undone":
        run.cancel("now").finish()
        run.request_undo(unmarked).finish()
    run.resume(unmarked).reply("", ToolCall("p", "pay", "{}"))
    assert questions(run) == [("pay", "call")]


def test_a_tool_that_is_marked_later_needs_leave_from_then_on() -> None:
    marked = (ev.ToolSpec("send", approve=True),)
    run = Run(CAREFUL).call("send").resume(marked)
    assert questions(run) == [("send", "call")]


# --- twice, too late, about nothing ---------------------------------------------------------------------------


def given(run: Run, position: int = 0, **fields: Any) -> dict[str, Any]:
    answer = {"digest": run.digest(position), "verdict": "allow", "by": "ann"}
    return {"step": 1, "position": position, **answer, **fields}


def test_nobody_can_answer_twice() -> None:
    run = paying().question().decide()
    assert "allowed already" in run.refuses(ev.ApprovalGiven, **given(run))
    assert "allowed already" in run.refuses(ev.ApprovalAsked, step=1, position=0, digest=run.digest())
    run = paying().question().decide(verdict="deny")
    assert "waits for nobody" in run.refuses(ev.ApprovalGiven, **given(run))


@pytest.mark.parametrize("position", [1, 2, 3])
def test_a_call_that_waits_for_nobody_cannot_be_decided_about(position: int) -> None:
    run = paying("look", "send", "nope").question()
    assert "waits for nobody" in run.refuses(ev.ApprovalGiven, **given(run, position))


def test_a_call_that_runs_or_has_run_cannot_be_decided_about() -> None:
    run = paying().decide().start()
    run.refuses(ev.ApprovalGiven, **given(run))
    run = paying("look").decide().start().returned()
    run.refuses(ev.ApprovalGiven, **given(run))


def test_a_run_that_has_ended_otherwise_takes_no_decision() -> None:
    run = Run(CAREFUL).reply("42")
    run.finish()
    run.refuses(ev.ApprovalGiven, step=1, position=0, digest="0", verdict="allow", by="ann")


def test_an_answer_that_comes_too_late_is_refused_and_the_question_asked_anew() -> None:
    run = paying(approval_expires_s=10.0)
    assert run.effect.questions[0].expires_at == 110.0
    run.question(expires_at=110.0)
    run.finish()
    run.at = 110.0
    assert "too late" in run.refuses(ev.ApprovalGiven, **given(run))
    run.resume(CAREFUL)
    assert questions(run) == [("pay", "call")]
    run.question(expires_at=120.0).decide()


def test_leave_that_is_over_lets_nothing_run() -> None:
    run = paying().decide(expires_at=110.0)
    assert runnable(run) == [("pay", {"n": 1})]
    run.at = 110.0
    assert questions(run) == [("pay", "call")]
    assert "nobody was asked" in run.refuses(ev.ApprovalGiven, **given(run))
    run.decide(by="policy")
    assert runnable(run) == [("pay", {"n": 1})]


def test_a_question_that_is_over_is_asked_anew_only_when_somebody_comes_back_to_the_run() -> None:
    run = paying().question(expires_at=100.0)
    assert run.finish().status == "awaiting_approval", "else it would be asked for ever"
    assert questions(run.resume(CAREFUL)) == [("pay", "call")]


def test_leave_is_asked_for_again_when_it_is_the_turn_of_the_call_and_not_before() -> None:
    run = Run(CAREFUL).call("pay", "keep", "pry").decide(0).decide(1, expires_at=110.0).decide(2, expires_at=110.0)
    run.at = 110.0
    assert runnable(run) == [("pay", {})]
    run.start(0)
    assert run.effect == RunTools((), (), 8, None), "it is waited for"
    assert questions(run.returned(0)) == [("keep", "call")]


def test_what_reads_does_not_run_beside_a_call_that_acts_and_passed_it_while_it_waited() -> None:
    run = Run(CAREFUL).call("pry", "send").question(0).start(1).decide(0)
    assert run.effect == RunTools((), (), 8, None)
    assert runnable(run.returned(1)) == [("pry", {})]


def test_a_slow_policy_gets_through_though_leave_is_over_before_it_has_spoken_about_all_calls() -> None:
    run, asked = Run(CAREFUL, approval_expires_s=60.0).call("pay", "keep", "pry", "pay", "pry"), 0
    while not isinstance(effect := run.effect, CallModel):
        for question in effect.questions if isinstance(effect, AskHuman) else ():
            asked, run.at = asked + 1, run.at + 25.0
            run.decide(question.call.position, by="policy", expires_at=question.expires_at)
        for call in effect.calls if isinstance(effect, RunTools) else ():
            run.start(call.position).returned(call.position)
    assert asked == 10, "each call twice"


def test_an_edit_is_over_with_the_leave_that_it_came_with() -> None:
    run = paying().decide(arguments='{"n":2}', expires_at=110.0)
    run.at = 110.0
    assert run.effect.questions[0].call.arguments == {"n": 1}
    run.question()
    assert run.machine.result().pending[0].arguments == {"n": 1}
    run.decide().start().returned()
    assert not any(isinstance(message, Note) for message in run.messages)


def test_a_question_to_nobody_is_not_asked() -> None:
    run = paying(limits=Limits(tool_calls=0))
    assert [one.outcome for one in run.effect.refusals] == ["not_executed"], "there is no room for it to run"
    run = paying().cancel("drain")
    assert [one.outcome for one in run.effect.refusals] == ["not_executed"]


def test_a_call_for_which_there_is_no_room_any_more_is_not_waited_for() -> None:
    run = Run(CAREFUL, limits=Limits(tool_calls=1)).call("look", "pay").question(1).start(0).returned(0)
    assert [(one.position, one.outcome) for one in run.effect.refusals] == [(1, "not_executed")]


def test_the_question_has_to_be_the_right_one() -> None:
    run = paying()
    about = {"step": 1, "position": 0, "digest": run.digest(), "about": "in_doubt"}
    assert "not the question" in run.refuses(ev.ApprovalAsked, **about)


def test_a_pause_is_not_charged_to_the_time_of_the_run() -> None:
    run = paying(limits=Limits(seconds=50)).question()
    run.at = 110.0
    run.finish()
    run.at = 100_000.0
    run.decide().resume(CAREFUL)
    assert runnable(run) == [("pay", {"n": 1})]
    assert run.effect.deadline_at == 100_040.0
