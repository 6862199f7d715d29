"""Runs that are calls of other runs: who goes on with them, and which of their calls still wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenlines.errors import RunNotFound

if TYPE_CHECKING:
    from tenlines.core.events import WaitingCall
    from tenlines.core.result import PausedCall
    from tenlines.ports import Journal


def is_waited_for(store: Journal, run_id: str) -> str:
    """The run that takes this one up when it is taken up itself; "" where none will, as it has ended."""
    from tenlines.core.state import Phase
    from tenlines.drivers.callers import caller_of
    from tenlines.drivers.recorder import machine_of

    caller = caller_of(store, run_id)
    if not caller:
        return ""
    state = machine_of(store, caller).state
    return "" if state.phase is Phase.ENDED and state.exchange is None else caller


def undecided(store: Journal, paused: PausedCall) -> list[WaitingCall]:
    """What of it nobody has decided since."""
    from tenlines.drivers import decisions

    found: list[WaitingCall] = []
    for one in paused.waiting:
        try:
            waiting = decisions.pending(store, one.run_id)
        except RunNotFound:
            continue
        found += [one] if any(call.place == one.place for call in waiting) else []
    return found
