"""The laws of calls that are runs of their own: what waits in them, and when they have their turn.

Judged from the log alone, at every prefix of it. That what they are given is counted once is a law of money.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from call_facts import CallFacts

from tenlines.core import events as ev
from tenlines.core.effects import RunTools

if TYPE_CHECKING:
    from laws import Checked


def a_call_whose_run_waits_is_left_alone(run: Checked) -> None:
    """It is neither answered nor offered until its own run is taken up; and it is listed."""
    waiting = [one for one in run.facts.open if one.paused is not None]
    places = {one.position for one in waiting}
    if isinstance(run.effect, RunTools):
        assert not places & {call.position for call in run.effect.calls}, "a call would start whose own run waits"
        answered = places & {one.position for one in run.effect.refusals}
        assert not answered or run.facts.nothing_starts(run.now), "a call is answered whose own run waits"
    if not waiting and not isinstance(run.event, ev.ChildPaused | ev.RunEnded | ev.RunResumed):
        return
    listed = [(one.step, one.position, one.run_id, one.waiting) for one in run.machine.result().paused]
    wanted = [(*one.place, one.paused.run_id, one.paused.waiting) for one in waiting if one.paused is not None]
    assert listed == wanted, "the result names other runs that wait"


def handing_over_comes_last(run: Checked) -> None:
    """A run whose answer may be the answer begins when everything beside it is answered, or waits for somebody."""
    places = {run.event.position} if isinstance(run.event, ev.CallStarted) else set()
    if isinstance(run.effect, RunTools):
        places |= {call.position for call in run.effect.calls}
    for call in run.facts.open:
        if call.position in places and call.is_handed_over:
            others = (one for one in run.facts.open if not one.is_handed_over)
            assert all(_is_through(run, one) for one in others), "handed over before the calls beside it"
            earlier = (one for one in run.facts.open[: call.position] if one.is_handed_over)
            assert all(_is_through(run, one) for one in earlier), "handed over out of order"


def _is_through(run: Checked, one: CallFacts) -> bool:
    waits = one.question is not None or one.paused is not None
    return bool(one.outcome) or waits or one.is_refused or not run.facts.has_room(one)


def the_record_names_the_run_of_a_call(run: Checked) -> None:
    if not isinstance(run.event, ev.CallReturned | ev.CallFailed):
        return
    calls = run.facts.open or run.facts.expected[-8:]
    for call in calls:
        if isinstance(call, CallFacts) and call.place == (run.event.step, run.event.position):
            assert call.child == run.event.child
    if not run.facts.open:
        told = {(one.step, one.position): one.child for one in run.machine.result().calls[-8:]}
        closed = {one.place: one.child for one in calls if isinstance(one, CallFacts) and one.place in told}
        assert all(told[place] == child for place, child in closed.items()), "the record names another run"


LAWS_OF_CHILDREN = (
    a_call_whose_run_waits_is_left_alone,
    handing_over_comes_last,
    the_record_names_the_run_of_a_call,
)
