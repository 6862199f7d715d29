"""Ctrl-C in three degrees: stop after what is running, stop at once, leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Protocol

FIRST = "Stopping after what is running. Press Ctrl-C again to stop at once."
SECOND = "Stopping at once."


class Stoppable(Protocol):
    """A hand on a run, or on several."""

    def cancel(self, *, now: bool = False, reason: str = "") -> None:
        """Stop: after what is running, or at once."""
        ...


class Stopper:
    """While it is entered, signals become requests to stop, and the journal is closed properly.

    A handler may interrupt the main thread anywhere, also where it holds a lock. So it only leaves a note, and a
    thread of its own does what the note asks for.

    Args:
        control: The hand on the run.
        say: Tells the person what happens now.
    """

    def __init__(self, control: Stoppable, say: Callable[[str], None]) -> None:
        self._control, self._say = control, say
        self._notes: SimpleQueue[tuple[str, bool, str] | None] = SimpleQueue()
        self._before: dict[int, Any] = {}
        self._interrupts = 0
        self.signal: int | None = None
        """The signal that asked for the stop, or None."""

    def __enter__(self) -> Stopper:
        for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)):
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays in force
                self._before[number] = signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, name="tenlines-signals", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._notes.put(None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_repeated, self.signal = self.signal is not None, number
        if number != signal.SIGINT:
            if is_repeated:
                raise SystemExit(128 + number)
            self._notes.put((SECOND, True, signal.Signals(number).name))
            return
        self._interrupts += 1
        if self._interrupts > 2:
            raise KeyboardInterrupt
        self._notes.put((FIRST, False, "Ctrl-C") if self._interrupts == 1 else (SECOND, True, "Ctrl-C"))

    def _watch(self) -> None:
        while (note := self._notes.get()) is not None:
            words, at_once, reason = note
            self._control.cancel(now=at_once, reason=reason)
            self._say(words)
