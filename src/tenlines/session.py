"""A conversation of several tasks: a chain of runs, each of which goes on from where the one before it ended.

Each run has its own log, limits and end. Who may have the next turn is decided by the journal, in the same write that
stores the run's first event: of two that want it, one is told that the session is busy, and nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tenlines.agent import Agent, outcome
from tenlines.core.limits import Limits
from tenlines.core.result import RunResult
from tenlines.core.transcript import Message, Part
from tenlines.drivers import aio, sync
from tenlines.drivers.control import Control
from tenlines.drivers.recorder import Parts, Recorder, machine_of
from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, JournalConflict, SessionBusy
from tenlines.journal.owner import is_alive
from tenlines.ports import RunSummary


class Session:
    """A conversation with an agent, by name, in the agent's journal.

    Any process can go on with it. One task at a time: while a run of it is open, the session is busy.

    Args:
        agent: Who answers. Another process, or a later turn, may use another agent: its tools hold, and its
            instructions where it has any. Where that breaks the provider's cache, the log says so
            (`RunStarted.changed`).
        name: The name of the conversation in the journal.
    """

    def __init__(self, agent: Agent, name: str) -> None:
        if not name.strip():
            raise ConfigError("a session needs a name")
        self.agent, self.name = agent, name

    @property
    def runs(self) -> list[RunSummary]:
        """Its runs, the newest first."""
        return self.agent.journal.runs(session=self.name)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        last = self._last()
        return () if last is None else tuple(machine_of(self.agent.journal, last.run_id).state.messages)

    def run_sync(
        self,
        task: str | Sequence[Part],
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """Do the next task of the conversation.

        Raises:
            SessionBusy: Another run of it is open. Nothing was stored; the message says what to do.
            RunStopped: As in `Agent.run_sync`.
        """
        parts = self._next_turn(task, limits, control)
        try:
            parts = Recorder(parts).claim()
        except JournalConflict as error:
            raise self._too_late() from error
        return outcome(sync.drive(parts), raise_on_stop)

    async def run(
        self,
        task: str | Sequence[Part],
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """The same as `run_sync`, for asyncio."""
        parts = await in_thread(partial(self._next_turn, task, limits, control))
        try:
            parts = await Recorder(parts).aclaim()
        except JournalConflict as error:
            raise self._too_late() from error
        return outcome(await aio.drive(parts), raise_on_stop)

    def _last(self) -> RunSummary | None:
        return next(iter(self.agent.journal.runs(1, session=self.name)), None)

    def _next_turn(self, task: str | Sequence[Part], limits: Limits | None, control: Control | None) -> Parts:
        last, turn = self._last(), 1
        history: tuple[Message, ...] = ()
        before = None
        if last is not None:
            if last.status in ("open", "awaiting_approval"):
                raise SessionBusy(_why_busy(self.name, last), last.run_id)
            turn = last.turn + 1
            before = machine_of(self.agent.journal, last.run_id).state
            history = tuple(before.messages)
        place = {"session": self.name, "turn": turn}
        return self.agent._begin(task, history, limits, control, place=place, before=before)

    def _too_late(self) -> SessionBusy:
        return SessionBusy(f"the session {self.name!r} is busy: another run took the turn first")


def _why_busy(name: str, last: RunSummary) -> str:
    """What keeps the session, and the next move."""
    what = f"the session {name!r} is busy: its run {last.run_id}"
    if last.status == "awaiting_approval":
        return f"{what} waits for somebody's decision; approve or deny it, then resume it"
    if is_alive(last.owner) is False:
        return f"{what} was cut off when its process died; resume it first"
    return f"{what} is still being worked on; wait for it, or cancel it"
