"""Runs kept in this process: for tests, for the classic forms, and for those who need no record."""

from __future__ import annotations

from collections.abc import Iterator

from tenlines.core.events import AnyEvent
from tenlines.errors import JournalConflict, RunNotFound
from tenlines.journal.summary import summarise
from tenlines.ports import RunSummary


class MemoryJournal:
    """A dict of lists. Durable until the process ends."""

    def __init__(self) -> None:
        self._runs: dict[str, list[AnyEvent]] = {}

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Add the next event of a run."""
        log = self._runs.get(run_id)
        if log is None:
            log = self._runs[run_id] = []
        if event.seq != len(log):
            raise JournalConflict(f"run {run_id} already has an event {event.seq}; another owner appended first")
        log.append(event)

    def commit(self, run_id: str) -> None:
        """Nothing to do: memory holds what it was given."""

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order."""
        if run_id not in self._runs:
            raise RunNotFound(f"there is no run {run_id!r} in this journal")
        return iter(self._runs[run_id][from_seq:])

    def runs(self, limit: int | None = None) -> list[RunSummary]:
        """The newest runs first."""
        newest = list(self._runs)[::-1][:limit]
        return [summarise(run_id, self._runs[run_id]) for run_id in newest]


class NullJournal(MemoryJournal):
    """Keeps nothing: for the classic forms, which promise to leave no trace."""

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Forget it."""
