"""The log back into a machine."""

from __future__ import annotations

from collections.abc import Iterable

from tenlines.core.events import AnyEvent
from tenlines.core.machine import Machine


def fold(events: Iterable[AnyEvent]) -> Machine:
    """The machine that has seen these events: equal in state and next effect to the one that lived them.

    Args:
        events: As a journal gives them back; they are not checked again for what a journal cannot hold.

    Raises:
        InvalidEvent: The log is not the log of a run.
    """
    machine = Machine()
    replay = machine.replay
    for event in events:
        replay(event)
    return machine
