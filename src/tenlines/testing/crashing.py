"""A journal whose process dies, for tests of what is left then."""

from __future__ import annotations

from collections.abc import Iterator

from tenlines.core.events import AnyEvent
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Journal, RunSummary


class SimulatedCrash(BaseException):
    """The process died here. No `Exception`, so that nothing takes it for a failure to be handled."""


class CrashingJournal:
    """A journal that dies when a number of records is durable. What it holds and has not committed is lost, as in life.

    The records of one commit become durable one by one. Stores that write a batch whole never show that; what stands
    such a crash stands theirs. Made by `crash_after`.

    Attributes:
        survivor: The journal underneath, with all that is durable: what the next process finds.
        is_dead: Whether the crash has come.
    """

    def __init__(self, survivor: Journal, record: int, at_once: bool) -> None:
        self.survivor, self.record, self.at_once = survivor, record, at_once
        self.is_dead = False
        self._durable = 0
        self._held: dict[str, list[AnyEvent]] = {}

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Hold the next event of a run.

        Raises:
            SimulatedCrash: All records that were to be are durable.
        """
        self._live()
        self._held.setdefault(run_id, []).append(event)

    def commit(self, run_id: str) -> None:
        """Make what is held durable, as far as the process lives.

        Raises:
            SimulatedCrash: It died meanwhile, or before.
        """
        dies = self._hand_on(run_id)
        self.survivor.commit(run_id)
        self._die_if(dies)

    async def acommit(self, run_id: str) -> None:
        """The same for asyncio."""
        dies = self._hand_on(run_id)
        await self.survivor.acommit(run_id)
        self._die_if(dies)

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """What is durable of a run."""
        return self.survivor.read(run_id, from_seq)

    def runs(
        self, limit: int | None = None, *, status: str | None = None, session: str | None = None
    ) -> list[RunSummary]:
        """The runs, as far as they are durable."""
        return self.survivor.runs(limit, status=status, session=session)

    def _hand_on(self, run_id: str) -> bool:
        """Give the journal underneath what may become durable. Returns whether the process dies in this commit."""
        held = self._held.pop(run_id, [])
        if held:
            self._live()
        room = self.record - self._durable
        for event in held[:room]:
            self.survivor.append(run_id, event)
        self._durable += min(len(held), room)
        return len(held) > room or (bool(held) and self.at_once and len(held) == room)

    def _live(self) -> None:
        self._die_if(self._durable >= self.record)

    def _die_if(self, dies: bool) -> None:
        if dies or self.is_dead:
            self.is_dead = True
            raise SimulatedCrash(f"the process died after record {self.record}")


def crash_after(*, record: int, journal: Journal | None = None, at_once: bool = False) -> CrashingJournal:
    """A journal for a process that dies once `record` records are durable.

    Args:
        record: How many records, from 0.
        journal: Where they go; by default into memory.
        at_once: Die in the commit that makes the last of them durable, so that nothing acts on it. Otherwise the
            process lives until it wants to record something more: a tool whose start was that record has run by then.

    Returns:
        A journal for the `Agent` that is to die. Its `survivor` is for the one that comes after.
    """
    return CrashingJournal(MemoryJournal() if journal is None else journal, record, at_once)
