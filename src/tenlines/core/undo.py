"""Taking back what a run did: the compensations of its calls, in reverse order of their start."""

from __future__ import annotations

from tenlines.core import events as ev
from tenlines.core.changes import check_tools, restart_clock, set_tools
from tenlines.core.deciding import next_effect, still_to_undo, without_undo
from tenlines.core.effects import UndoCall
from tenlines.core.state import Phase, State, Stop, call_key
from tenlines.errors import InvalidEvent


def on_undo_requested(state: State, event: ev.UndoRequested) -> None:
    """A run that has ended is taken back; what failed before is tried again."""
    assert state.ended is not None
    if state.exchange is not None:
        raise InvalidEvent("the run waits for a decision about a call: cancel it before it is undone")
    check_tools(event.tools)
    set_tools(state, event.tools)
    restart_clock(state, event.at)
    _begin(state, event, Stop(state.ended.status, state.ended.reason))


def _begin(state: State, event: ev.UndoRequested | ev.UndoStarted, stop: Stop) -> None:
    """From here on nothing else happens until all is tried; then the run ends as it would have, or had."""
    state.stop, state.phase = stop, Phase.UNDOING
    state.undo, state.undo_since = still_to_undo(state), event.seq


def on_undo_started(state: State, event: ev.UndoStarted) -> None:
    """The compensation may be called."""
    place, effect = (event.step, event.position), next_effect(state, event.at)
    if not isinstance(effect, UndoCall) or (effect.call.step, effect.call.position) != place or state.undo_under_way:
        raise InvalidEvent(f"UndoStarted: call {event.position!r} of step {event.step!r} is not the next to be undone")
    if event.key != call_key(state, *place):
        raise InvalidEvent(f"UndoStarted has key {event.key!r}, expected {call_key(state, *place)!r}")
    if state.phase is Phase.READY:  # of itself, because the run stops (`Settings.on_stop`)
        end = without_undo(state, event.at)
        _begin(state, event, Stop(end.status, end.reason))
    state.undo_under_way = True


def on_call_undone(state: State, event: ev.CallUndone) -> None:
    """The compensation came back. One that failed does not keep the others from being tried."""
    place = (event.step, event.position)
    if not state.undo_under_way or type(event.position) is not int or state.undo[-1] != place:
        raise InvalidEvent(f"CallUndone: call {event.position!r} of step {event.step!r} is not being undone")
    state.undo.pop()
    state.undo_under_way = False
    state.undone.pop(place, None)  # it is told in the order in which it was done
    state.undone[place] = event
