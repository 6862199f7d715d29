"""A clock and an observer that do what they are told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from tenlines.core.events import AnyEvent
from tenlines.ports import Delta


class FakeClock:
    """A clock on which waiting takes no time: it jumps to the end of the wait.

    It is for the waits of a run between requests. A tool's time limit and the run's deadline end real work, so while
    a tool or a model is at work they are waited for in real time.

    Args:
        start: What time it is (Unix seconds).
        during: Called at each wait with its seconds, before time moves: what happens meanwhile. If it wakes the
            run (with a `Control`), time stays where it is.

    Attributes:
        time: What time it is; set it, or call `advance`.
        waits: The seconds of each wait that was asked for.
    """

    def __init__(self, start: float = 1_000_000.0, during: Callable[[float], None] | None = None) -> None:
        self.time, self.during = start, during
        self.waits: list[float] = []

    def now(self) -> float:
        """The time that was set."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.time += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Jump to the end of the wait, unless the event is set."""
        self._begin(seconds)
        if not event.is_set():
            self.advance(seconds)

    async def sleep(self, seconds: float) -> None:
        """Jump to the end of the wait, unless cancelled first."""
        self._begin(seconds)
        for _ in range(3):  # whoever was woken comes first
            await asyncio.sleep(0)
        self.advance(seconds)

    def _begin(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self.during is not None:
            self.during(seconds)


class RecordingObserver:
    """Keeps what it sees.

    Attributes:
        events: The events, in order.
        deltas: The pieces of replies. Having this observer makes models stream.
    """

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.deltas: list[Delta] = []

    def on_event(self, event: AnyEvent) -> None:
        """Keep it."""
        self.events.append(event)

    def on_delta(self, delta: Delta) -> None:
        """Keep it."""
        self.deltas.append(delta)
