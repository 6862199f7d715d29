"""A hand on a run that is under way."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.transcript import Text
from tenlines.drivers.drafts import Draft


class Control:
    """A hand on a run that is under way. Safe to use from any thread.

    Give one to `Agent.run`, `run_sync` or `resume`, or take the `Run` that `Agent.stream` returns. One run at a time.

    Args:
        interrupts: Whether it can stop a request or a call that blocks: such work is then done in a thread of its own.
            If not, it is heard when that has ended.
    """

    def __init__(self, *, interrupts: bool = True) -> None:
        self.interrupts = interrupts
        self._inbox: deque[Draft] = deque()
        self._wakers: list[Callable[[], None]] = []
        self.woken = threading.Event()

    def say(self, text: str) -> None:
        """Tell the model something as soon as the exchange at hand is closed. Nothing is interrupted."""
        self._post(Draft(ev.MessageQueued, {"parts": (Text(text),)}))

    def cancel(self, *, now: bool = False, reason: str = "") -> None:
        """Stop the run: after what is running, or at once. The journal stays valid and the run can be resumed."""
        mode = "now" if now else "drain"
        self._post(Draft(ev.CancelRequested, {"mode": mode, "reason": reason}))

    def raise_limits(self, limits: Limits) -> None:
        """Set the limits that hold from now on."""
        self._post(Draft(ev.LimitsRaised, {"limits": limits}))

    def deliver(self, letter: Draft) -> None:
        """For delivery: what another process has to say, as it comes out of the mailbox of the run."""
        self._post(letter)

    def forget_letters(self) -> None:
        """For delivery: the run is over. What it has not heard is still in its mailbox, and not here any more."""
        if self.pending:
            self._inbox.extend(draft for draft in self.take() if not draft.fields.get("mail"))

    @property
    def pending(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._inbox)

    def take(self) -> list[Draft]:
        """For drivers: what came in since the last time."""
        self.woken.clear()
        return [self._inbox.popleft() for _ in range(len(self._inbox))]

    def wake_with(self, waker: Callable[[], None]) -> None:
        """For drivers: have `waker` called, from any thread, when something comes in."""
        self._wakers.append(waker)

    def _post(self, draft: Draft) -> None:
        self._inbox.append(draft)
        self.woken.set()
        for waker in self._wakers:
            waker()
