"""The laws of leave, doubt and undoing: who may run, who is asked, what is taken back.

Judged from the log alone, at every prefix of it, like the eleven others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from call_facts import CallFacts, Place, as_object, holds, plain
from facts import Facts

from tenlines.core import events as ev
from tenlines.core.effects import AskHuman, CallModel, Finish, Reconcile, RunnableCall, RunTools, Sleep, UndoCall
from tenlines.core.state import Phase
from tenlines.core.transcript import Text

if TYPE_CHECKING:
    from laws import Checked


# --- what the log says about who may run ------------------------------------------------------------------


def to_reconcile(facts: Facts) -> list[CallFacts]:
    """Calls whose tools have to be asked what became of them."""
    calls = (one for one in facts.open if not one.outcome and not one.is_refused)
    return [one for one in calls if one.can_be_reconciled and not one.verdict and not one.to_person]


def to_ask(facts: Facts) -> list[CallFacts]:
    """Calls about which nobody was asked yet: the policy speaks, or a person, before anything runs."""
    calls = (one for one in facts.open if not one.outcome and not one.is_refused and not one.in_hand)
    unasked = (one for one in calls if one.question is None and one.leave is None)
    return [one for one in unasked if facts.needs_leave(one) and facts.has_room(one)]


class Turns(NamedTuple):
    """Whose turn it is in the open exchange, from its start on."""

    can_end: list[CallFacts]
    """Calls that run, or are answered, without anybody's help."""
    over: list[CallFacts]
    """Calls that could run if the leave to run them were not over."""
    waiting: list[CallFacts]
    """Calls that a person was asked about, or whose own run waits for one."""


def turns(facts: Facts, now: float) -> Turns:
    """In the order of running. What acts waits for its turn, and what comes after it waits with it."""
    can_end, over, waiting = Turns([], [], [])
    in_hand = [one for one in facts.open if one.in_hand]
    for one in facts.in_running_order():
        if one.outcome:
            continue
        if one.is_refused or not facts.has_room(one):
            can_end.append(one)
            continue
        alone = facts.runs_alone(one)
        if in_hand and (alone or any(facts.runs_alone(other) for other in in_hand)):
            break
        if alone and any(not other.is_refused and facts.has_room(other) for other in can_end):
            break
        if one.question is not None or one.paused is not None:
            waiting.append(one)
        elif not one.in_hand:
            (over if one.leave is not None and not holds(one.leave, now) else can_end).append(one)
        if alone:
            break
    return Turns(can_end, over, waiting)


def only_people_can_go_on(facts: Facts, now: float) -> bool:
    """Whether a run may pause: somebody is waited for, and everything else is done or comes after that."""
    if not facts.open or facts.nothing_starts(now) or any(one.in_hand for one in facts.open):
        return False
    if to_reconcile(facts) or to_ask(facts):
        return False
    can_end, over, waiting = turns(facts, now)
    return bool(waiting) and not can_end and not over


EVER = float("-inf")
"""A time before which nothing is over: whether a run may pause does not depend on the time."""


QUESTIONS: dict[str, Any] = {}
"""What each digest stood for, in all the logs of this process: an answer to one question is none to another."""


# --- the laws ---------------------------------------------------------------------------------------------


def nothing_guarded_starts_without_leave(run: Checked) -> None:
    """Leave for this very call, by a tool that did not change, with the arguments that were allowed."""
    facts = run.facts
    if isinstance(run.event, ev.CallStarted):
        call = facts.open[run.event.position]
        start = call.start
        assert start is not None
        assert not start.was_refused, "a call that was refused, or denied, started"
        if facts.tools[call.name].approve:
            assert start.leave is not None, "a guarded call started without leave"
        if start.leave is not None:
            assert start.leave.verdict == "allow"
            assert start.bound_to == facts.tools[call.name], "leave for a tool that has changed since"
    if isinstance(run.effect, RunTools):
        for one in run.effect.calls:
            call = facts.open[one.position]
            assert not call.is_refused, "a call would run that was refused"
            assert not call.in_hand, "a call would run twice at once"
            if facts.needs_leave(call):
                assert holds(call.leave, run.now), "a call would run without leave, or with leave that is over"
                assert call.bound_to == facts.tools[call.name], "leave for a tool that has changed since"
            assert not call.is_unsettled, "a call in doubt would run again"


def only_an_open_question_is_answered(run: Checked) -> None:
    """Once, in time, and by the policy alone where no person was asked."""
    event = run.event
    if not isinstance(event, ev.ApprovalGiven):
        return
    call = run.facts.open[event.position]
    assert call.decision is not None
    question, leave, was_paused = call.decision.question, call.decision.leave, call.decision.was_paused
    assert not holds(leave, event.at), "decided about twice"
    if was_paused or call.to_person:
        assert question is not None, "nobody was asked"
        assert holds(question, event.at), "the answer came too late"
    assert question is None or holds(question, event.at), "the answer came too late"
    assert leave is None or event.by == "policy", "nobody was asked again"
    stood_for = QUESTIONS.get(event.digest)
    assert stood_for is None or stood_for[1] == call.place, "an answer about another call"


def a_denied_call_is_told_as_denied(run: Checked) -> None:
    if not isinstance(run.event, ev.CallFailed | ev.CallAbandoned | ev.CallReturned | ev.CallTimedOut):
        return
    for call in run.facts.open or run.facts.expected[-8:]:
        if isinstance(call, CallFacts) and call.denied and call.outcome:
            wanted = "in_doubt" if call.may_have_had_effect else "denied"
            assert call.outcome == wanted, f"a denied call is told as {call.outcome}"


def what_has_to_be_asked_is_asked_first(run: Checked) -> None:
    """Tools about doubts; then the policy, or people, about everything that needs leave, at once."""
    facts, effect = run.facts, run.effect
    if run.phase is not Phase.AWAITING_TOOLS:
        assert not isinstance(effect, AskHuman | Reconcile)
        return
    stopped = facts.nothing_starts(run.now)
    doubts = [] if stopped else to_reconcile(facts)
    questions = [] if stopped or doubts else to_ask(facts)
    if not (stopped or doubts or questions):
        can_end, over, _ = turns(facts, run.now)
        questions = [] if can_end else over[:1]
    asked = [one.place for one in doubts] if doubts else [one.place for one in questions]
    assert isinstance(effect, Reconcile) == bool(doubts), "a tool has to be asked about its call, or was asked in vain"
    assert isinstance(effect, AskHuman) == bool(questions), "somebody has to be asked, or would be asked in vain"
    if isinstance(effect, Reconcile):
        assert [(one.step, one.position) for one in effect.calls] == asked
        for call in effect.calls:
            _is_the_call(facts, call)
    if isinstance(effect, AskHuman):
        assert sorted((one.call.step, one.call.position) for one in effect.questions) == asked
        _are_good_questions(run, effect)


def _are_good_questions(run: Checked, effect: AskHuman) -> None:
    facts = run.facts
    assert facts.start is not None
    lasts = facts.start.settings.approval_expires_s
    for question in effect.questions:
        call = facts.open[question.call.position]
        assert question.about == ("in_doubt" if call.to_person else "call")
        assert question.expires_at == (None if lasts is None else run.now + lasts)
        _is_the_call(facts, question.call, as_it_was_written=not call.runs)
        asked = (facts.start.run_id, call.place, facts.tools[call.name], plain(as_object(call.raw)))
        once_more = len(call.runs) if call.to_person else 0
        assert QUESTIONS.setdefault(question.digest, (*asked, once_more)) == (*asked, once_more), (
            "one answer would do for two questions"
        )


def _is_the_call(facts: Facts, one: RunnableCall, as_it_was_written: bool = False) -> None:
    call = facts.open[one.position]
    assert facts.start is not None
    assert (one.step, one.name) == (call.step, call.name)
    assert one.key == f"{facts.start.run_id}:{call.step}:{call.position}"
    if as_it_was_written:
        call = CallFacts(call.step, call.position, call.name, call.raw, call.spec)
    assert one.arguments == call.arguments


def a_run_pauses_only_where_people_have_to_decide(run: Checked) -> None:
    facts, effect = run.facts, run.effect
    if run.phase is Phase.AWAITING_TOOLS:
        assert isinstance(effect, Finish) == only_people_can_go_on(facts, run.now), (
            "a run pauses though it could go on, or waits for what never comes"
        )
        assert not isinstance(effect, Finish) or effect.status == "awaiting_approval"
    if isinstance(run.event, ev.RunEnded):
        assert (run.event.status == "awaiting_approval") == bool(facts.open), "an exchange was left open"
        assert not facts.open or only_people_can_go_on(facts, EVER), "a run paused though it could go on"
    if run.phase in (Phase.AWAITING_TOOLS, Phase.ENDED):
        _lists_who_waits(run)


def _lists_who_waits(run: Checked) -> None:
    """Every call with a question and without an answer, and no other."""
    wanted = [one for one in run.facts.open if one.question is not None and not one.outcome and not one.is_refused]
    if not wanted and not isinstance(run.event, ev.ApprovalGiven | ev.RunEnded):
        return
    pending = run.machine.result().pending
    assert [(one.step, one.position) for one in pending] == [one.place for one in wanted], "the list is another"
    for one, call in zip(pending, wanted, strict=True):
        question = call.question
        assert question is not None
        assert (one.digest, one.reason, one.expires_at) == (question.digest, question.reason, question.expires_at)
        assert (one.name, one.about, one.arguments) == (call.name, question.about, call.arguments)


def a_doubt_is_settled_before_anything_else_happens_to_the_call(run: Checked) -> None:
    """By its tool where it can tell; else by a person, or by saying so to the model."""
    event, facts = run.event, run.facts
    if isinstance(event, ev.CallStarted):
        start = facts.open[event.position].start
        assert start is not None
        if start.doubt:
            again = start.verdict == "not_done" or (start.to_person and start.leave is not None)
            assert again, "a call in doubt ran again, and nobody had said that it may"
    if isinstance(event, ev.CallFailed | ev.CallAbandoned):
        for call in facts.open or facts.expected[-8:]:
            if isinstance(call, CallFacts) and call.place == (event.step, event.position):
                settled = not call.is_unsettled or call.is_refused
                ended = facts.nothing_starts(event.at) or facts.last_final is not None
                assert settled or ended, "a doubt was dropped"


def undoing_goes_backwards_and_leaves_nothing_out(run: Checked) -> None:
    event, facts, effect = run.event, run.facts, run.effect
    assert (run.phase is Phase.UNDOING) == facts.undoing
    if isinstance(event, ev.CallStarted | ev.StepStarted):
        assert not facts.undoing, "something started while the run is undone"
    if isinstance(event, ev.UndoStarted):
        _is_next_to_undo(facts, (event.step, event.position), event.key)
    if isinstance(effect, UndoCall):
        call = facts.acted[effect.call.step, effect.call.position]
        _is_next_to_undo(facts, call.place, effect.call.key)
        assert effect.call.arguments == call.arguments, "undone with other arguments than it ran with"
        assert effect.outcome == (call.outcome or "in_doubt")
        texts = [part.text for part in call.parts if isinstance(part, Text)]
        assert effect.result == ("\n\n".join(texts) if call.outcome == "ok" else "")
    if run.phase is Phase.READY and facts.start is not None and facts.start.settings.on_stop == "keep":
        assert not isinstance(effect, UndoCall), "undone, and nobody wanted it"
    if run.phase is Phase.UNDOING:
        assert isinstance(effect, UndoCall) == bool(facts.to_undo), "the undoing ends too early, or never"
    if isinstance(effect, Finish) and run.phase is Phase.READY and facts.start is not None:
        keeps = effect.status == "answered" or facts.start.settings.on_stop == "keep"
        assert keeps or not facts.to_undo, "the run ends, and something is left to be undone"


def _is_next_to_undo(facts: Facts, place: Place, key: str) -> None:
    assert facts.start is not None
    assert facts.to_undo, "nothing is left to undo"
    assert place == facts.to_undo[-1], "undone out of order"
    assert key == f"{facts.start.run_id}:{place[0]}:{place[1]}"


def an_undone_run_ends_as_it_had_ended(run: Checked) -> None:
    if not isinstance(run.event, ev.RunEnded):
        return
    ends = [one for one in run.facts.log[-40:] if isinstance(one, ev.RunEnded | ev.RunResumed | ev.UndoRequested)]
    match ends[-3:]:
        case [ev.RunEnded() as first, ev.UndoRequested(), ev.RunEnded() as second]:
            assert (first.status, first.reason, first.answer) == (second.status, second.reason, second.answer)


def the_result_tells_what_was_undone_and_what_stands(run: Checked) -> None:
    if not isinstance(run.event, ev.RunEnded | ev.CallUndone | ev.RunResumed):
        return
    facts, result = run.facts, run.machine.result()
    undone = [(one.step, one.position, one.name, one.outcome, one.text) for one in result.undone]
    assert undone == [
        (*place, facts.acted[place].name, one.outcome, one.text) for place, one in facts.undone.items()
    ], "the result tells of other undoing"
    fine = {place for place, one in facts.undone.items() if one.outcome == "ok"}
    wanted = [place for place, call in facts.acted.items() if call.outcome and place not in fine]
    assert [(one.step, one.position) for one in result.standing] == wanted, "the result tells of other effects"


def nobody_waits_in_vain(run: Checked) -> None:
    """What was decided is acted on by whoever takes the run over; what was undone is not asked about again."""
    if not isinstance(run.event, ev.RunResumed) or not run.facts.open:
        return
    if isinstance(run.effect, AskHuman):
        for question in run.effect.questions:
            call = run.facts.open[question.call.position]
            assert not holds(call.leave, run.now), "somebody is asked again who has allowed it"
    assert not isinstance(run.effect, CallModel | Sleep)


LAWS_OF_LEAVE = (
    nothing_guarded_starts_without_leave,
    only_an_open_question_is_answered,
    a_denied_call_is_told_as_denied,
    what_has_to_be_asked_is_asked_first,
    a_run_pauses_only_where_people_have_to_decide,
    a_doubt_is_settled_before_anything_else_happens_to_the_call,
    undoing_goes_backwards_and_leaves_nothing_out,
    an_undone_run_ends_as_it_had_ended,
    the_result_tells_what_was_undone_and_what_stands,
    nobody_waits_in_vain,
)
