"""Runs kept in this process: for tests, for the classic forms, and for those who need no record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tenlines.core.codec import as_read
from tenlines.core.events import AnyEvent, RunStarted
from tenlines.core.outcomes import encodable
from tenlines.errors import JournalConflict, RunNotFound
from tenlines.journal.summary import expected_events, summarise
from tenlines.ports import RunSummary


class MemoryJournal:
    """A dict of lists. Durable until the process ends."""

    def __init__(self) -> None:
        self._runs: dict[str, list[AnyEvent]] = {}
        self._turns: dict[tuple[str, int], str] = {}

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Add the next event of a run."""
        log = self._runs.get(run_id, [])
        if event.seq != len(log):
            raise JournalConflict(f"run {run_id} already has an event {event.seq}; another owner appended first")
        if not log:
            if isinstance(event, RunStarted) and event.session:
                self._claim(event)
            self._runs[run_id] = log
        log.append(event)

    def _claim(self, start: RunStarted) -> None:
        if self._turns.setdefault((start.session, start.turn), start.run_id) != start.run_id:
            raise JournalConflict(f"turn {start.turn} of the session {start.session!r} belongs to another run")

    def commit(self, run_id: str) -> None:
        """Nothing to do: memory holds what it was given."""

    async def acommit(self, run_id: str) -> None:
        """The same for asyncio."""
        self.commit(run_id)

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order, as any journal gives them back."""
        if run_id not in self._runs:
            raise RunNotFound(f"there is no run {run_id!r} in this journal")
        return map(as_read, self._runs[run_id][from_seq:])

    def runs(
        self, limit: int | None = None, *, status: str | None = None, session: str | None = None
    ) -> list[RunSummary]:
        """The newest runs first; only those with this status, or of this session."""
        wanted = None if session is None else encodable(session)
        newest = (summarise(run_id, log) for run_id, log in reversed(list(self._runs.items())))
        fitting = (one for one in newest if status in (None, one.status) and wanted in (None, one.session))
        return list(islice(fitting, limit))

    def delete(self, runs: Iterable[str | RunSummary]) -> int:
        """Forget runs; one that is given by its line only if it is as the line says. Returns how many there were."""
        wanted = {run_id: events for run_id, events in expected_events(runs).items() if run_id in self._runs}
        gone = {run_id for run_id, events in wanted.items() if events in (None, len(self._runs[run_id]))}
        for run_id in gone:
            del self._runs[run_id]
        self._turns = {place: run_id for place, run_id in self._turns.items() if run_id not in gone}
        return len(gone)

    def close(self) -> None:
        """Nothing to do."""


class NullJournal(MemoryJournal):
    """Keeps nothing: for the classic forms, which promise to leave no trace."""

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Forget it."""
