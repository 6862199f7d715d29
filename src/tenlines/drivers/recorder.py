"""The record of a run: each event is stamped, applied, journalled, shown."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tenlines.core import events as ev
from tenlines.core.effects import Effect, Finish, RunTools
from tenlines.core.events import AnyEvent
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.result import RunResult
from tenlines.core.state import Phase
from tenlines.drivers import drafts
from tenlines.drivers.control import Control
from tenlines.drivers.drafts import Draft
from tenlines.drivers.watching import Watchers
from tenlines.errors import InternalError, InvalidEvent, JournalDamaged, JournalError
from tenlines.ports import (
    Ask,
    Clock,
    GuardedCall,
    Journal,
    Observer,
    Session,
    ToolPort,
    Verdict,
)

_log = logging.getLogger("tenlines")


Permit: TypeAlias = Callable[[ToolPort, GuardedCall], Verdict]
Leave: TypeAlias = Callable[[Effect], bool]


def _ask(tool: ToolPort, call: GuardedCall) -> Verdict:
    """Where there is no policy: a person decides."""
    return Ask()


def _stay(effect: Effect) -> bool:
    """A run is driven to its end."""
    return False


class Parts(NamedTuple):
    """Everything that a driver works with: one run's machine and its ports."""

    machine: Machine
    run_id: str
    session: Session
    tools: dict[str, ToolPort]
    journal: Journal
    clock: Clock
    observers: Sequence[Observer] = ()
    control: Control | None = None
    opening: tuple[Draft, ...] = ()
    """What the driver records first: that the run started, or that it was taken over."""
    permit: Permit = _ask
    """What the policy says of a call that needs leave to run."""
    read: Callable[[str], Any] | None = None
    """Reads the answer, where it has a schema."""
    leave: Leave = _stay
    """Whether the driver lets go of the run before it performs an effect. The log stays open, with nothing under way,
    for whoever takes the run up next."""


class Recorder:
    """The machine first, which refuses what cannot be; then the journal; then whoever watches.

    What is recorded is made durable by `commit`, and nothing acts on it before.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.machine, self.now = parts.machine, parts.clock.now
        self._append, self._run_id = parts.journal.append, parts.run_id
        self.watchers = Watchers(parts.observers, parts.run_id, self._past)

    def open(self) -> None:
        """Record how the run begins or goes on. It is made durable with the first intent to act."""
        for draft in self.parts.opening:
            self.record(draft)

    def claim(self) -> Parts:
        """Open the run and make that durable at once; the parts that are left for a driver.

        Raises:
            JournalConflict: The turn of the session belongs to another run.
        """
        self.open()
        self.commit()
        return self.parts._replace(opening=())

    async def aclaim(self) -> Parts:
        """The same for asyncio."""
        self.open()
        await self.acommit()
        return self.parts._replace(opening=())

    def record(self, draft: Draft) -> None:
        """Stamp, apply and journal an event.

        Raises:
            JournalError: It could not be journalled. The run stops here, before anything acts on it.
            InternalError: The machine refused it, which is a bug in the driver. It is not in the journal, which
                can still be read.
        """
        event: Any = draft.kind(seq=self.machine.state.seq + 1, at=self.now(), **draft.fields)
        try:
            self.machine.apply(event)
        except InvalidEvent as error:
            raise InternalError(f"the driver reported what cannot be: {error}") from error
        self._append(self._run_id, event)
        self.watchers.show(event)

    @property
    def is_between(self) -> bool:
        """Whether nothing is under way: every call that there was has its result."""
        return self.machine.state.phase is Phase.READY

    @property
    def is_ended(self) -> bool:
        """Whether nothing more can happen in this run."""
        return self.machine.state.phase is Phase.ENDED

    def commit(self) -> None:
        """Make everything durable that was recorded so far. Called before acting and before waiting."""
        self.parts.journal.commit(self._run_id)

    def acommit(self) -> Awaitable[None]:
        """The same for asyncio."""
        return self.parts.journal.acommit(self._run_id)

    def end(self, effect: Effect) -> None:
        """Record the end, unless it is already in the log, or the run is only let go of."""
        if isinstance(effect, Finish) and not self.is_ended:
            fields = {"status": effect.status, "reason": effect.reason, "answer": effect.answer}
            self.record(Draft(ev.RunEnded, fields))

    def interrupt(self, reason: str) -> None:
        """Close the log after the program was told to stop: every open call gets its truthful result.

        If that fails, the log stays as it is: open, valid, and resumable like that of a crash.
        """
        if self.machine.state.phase in (Phase.NEW, Phase.ENDED):
            return
        try:
            self._close_log(reason)
        except (JournalError, InternalError):
            _log.warning("run %s could not be closed; it can be resumed as after a crash", self._run_id, exc_info=True)

    def _close_log(self, reason: str) -> None:
        self.record(Draft(ev.CancelRequested, {"mode": "now", "reason": reason}))
        while isinstance(effect := self.machine.next(self.now()), RunTools):
            for refusal in effect.refusals:
                self.record(drafts.refused(refusal))
        if isinstance(effect, Finish):  # else there is something to undo, which the next owner does
            self.end(effect)
        self.commit()

    def result(self) -> RunResult:
        """The run as it stands."""
        result, read = self._so_far(), self.parts.read
        if result.answer is None or read is None:
            return result
        return msgspec.structs.replace(result, output=read(result.answer))

    def _so_far(self) -> RunResult:
        return msgspec.structs.replace(self.machine.result(), observer_errors=self.watchers.errors)

    def failed(self, error: JournalError) -> RunResult:
        """The result of a run that had to stop because its journal failed."""
        so_far = self._so_far()
        return msgspec.structs.replace(
            so_far,
            run_id=self._run_id,
            status="journal_error",
            reason=str(error),
            answer=None,
            partial_answer=so_far.partial_answer or so_far.answer,
        )

    def _past(self) -> Iterator[AnyEvent]:
        """What happened in the run before it came to this process."""
        seen = self.machine.state.seq
        return (
            takewhile(lambda event: event.seq <= seen, self.parts.journal.read(self._run_id)) if seen >= 0 else iter(())
        )


def machine_of(journal: Journal, run_id: str) -> Machine:
    """The machine of a run, as far as it is in the journal.

    Raises:
        RunNotFound: The journal has no such run.
        JournalDamaged: What it has is not the log of a run.
    """
    try:
        return fold(journal.read(run_id))
    except InvalidEvent as error:
        raise JournalDamaged(
            f"what the journal has of run {run_id} is not the log of a run: {error}; `tenlines doctor` looks closer"
        ) from error
