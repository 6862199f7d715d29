"""Runs in one SQLite file: append-only, each row proven by a digest, each run fenced by the count of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tenlines.core.events import AnyEvent
from tenlines.core.outcomes import encodable
from tenlines.errors import ConfigError, JournalDamaged, JournalError, RunNotFound
from tenlines.journal import sqlite_letters as mailbox
from tenlines.journal import sqlite_tables as tables
from tenlines.journal.integrity import Finding, Watch, check_runs, unwatched
from tenlines.journal.letters import letters_of, written
from tenlines.journal.rows import Row, contiguous, event_of
from tenlines.journal.sqlite_check import check_tables
from tenlines.journal.sqlite_errors import is_locked
from tenlines.journal.sqlite_file import Durability, SqliteFile
from tenlines.journal.summary import expected_events
from tenlines.journal.writer import Batch, WrittenInGroups
from tenlines.ports import Letter, News, RunSummary, Saying, Stopping

_AT_ONCE = 1000
"""Events that are fetched with one statement, so that a long run is never held as a whole."""


class SqliteJournal(WrittenInGroups):
    """A journal in a file. Safe to share between threads, between processes, and over a fork.

    Args:
        path: The file; it and its folder are made, readable by their owner alone, when they do not exist.
        durability: What committed events survive. `process`: the death of the process, at any moment; a power cut or
            a crash of the machine may take the last moments, never more of the file. `power`: those as well, as far as
            the disk keeps its word; each group of commits then waits for the disk.
        patience_s: Seconds for which a file that another program has locked is waited for.

    Raises:
        JournalError: The file cannot be opened, or is no journal.
    """

    _is_quick = True

    def __init__(self, path: str | Path, *, durability: Durability = "process", patience_s: float = 30.0) -> None:
        if durability not in ("process", "power"):
            raise ConfigError(f"durability is {durability!r}; a journal in a file knows 'process' and 'power'")
        self.path = Path(path)
        self._file = SqliteFile(self.path, durability, patience_s)
        super().__init__(f"the journal {path}")
        with self._file.errors("opened"), self._writing:
            self._file.writer()

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order, as they are committed at this moment. Each is proven before it is given.

        Raises:
            RunNotFound: There is no such run.
            JournalDamaged: What is read is not what was written; after the events before the damage.
        """
        return self._events(run_id, from_seq, self._count(run_id))

    def runs(
        self, limit: int | None = None, *, status: str | None = None, session: str | None = None
    ) -> list[RunSummary]:
        """The newest runs first; only those with this status, or of this session."""
        wanted = None if session is None else encodable(session)
        with self._file.errors("read"), self._file.reader() as connection:
            found = tables.lines(connection, limit, status, wanted)
        return [self._summary(line) for line in found]

    def delete(self, runs: Iterable[str | RunSummary]) -> int:
        """Delete runs as a whole: their events, and the texts that no other run uses. Whoever works on one is fenced.

        Each run is a transaction of its own. The file does not shrink; what is freed is used for later runs.

        Args:
            runs: Ids; or lines, of which a run is only deleted if no event was added to it since.

        Returns:
            How many there were.
        """
        with self._file.errors("written"), self._writing:
            wanted = expected_events(runs).items()
            return sum(tables.delete(self._file.writer(), run_id, events) for run_id, events in wanted)

    def post(self, run_id: str, what: Saying | Stopping, *, at: float, above: int = 0) -> Letter:
        """Put a letter into the mailbox of a run.

        Raises:
            RunNotFound: There is no such run.
        """
        with self._file.errors("written"), self._writing:
            number = mailbox.post(self._file.writer(), run_id, written(what), at, above)
        if number is None:
            raise self._not_found(run_id)
        return Letter(run_id, number, at, what)

    def letters(self, above: Mapping[str, int]) -> list[Letter]:
        """The letters of these runs whose numbers are above what is stated for each, in order."""
        with self._file.errors("read"), self._file.reader() as connection:
            return letters_of(mailbox.letters(connection, above))

    def news(self, since: float) -> list[News]:
        """The runs that wait for people, about which something is new since then."""
        with self._file.errors("read"), self._file.reader() as connection:
            return [News(*row) for row in mailbox.news(connection, since)]

    def check(self, *, deep: bool = True, watch: Watch = unwatched) -> Iterator[Finding]:
        """Look for damage. Nothing is changed, and nothing is raised for what is found.

        Args:
            deep: Read and replay every event, and prove every text out of line; otherwise only pages and counts.
            watch: Told how far it is.
        """
        try:
            with self._file.errors("read"), self._file.reader() as connection:
                found = check_tables(connection, deep)
        except JournalError as error:
            found = [Finding("", str(error), True)]
        yield from found
        if deep:
            known = {finding.run_id for finding in found if finding.is_fatal}
            yield from (
                finding for finding in check_runs(self, watch) if finding.run_id not in known or not finding.run_id
            )

    def close(self) -> None:
        """Close the file. Events that were not committed are lost, as they would be in a crash."""
        self._stop_writing()
        with self._file.errors("closed"), self._writing:
            self._file.close()

    # --- writing ------------------------------------------------------------------------------------

    def _write(self, batches: Sequence[Batch]) -> None:
        """All in one transaction; when one of them breaks it, each in one of its own."""
        with self._file.errors("written"):
            try:
                self._write_together(batches)
            except Exception as error:
                if len(batches) == 1 or is_locked(error):
                    raise
                for batch in batches:
                    self._write_alone(batch)

    def _write_alone(self, batch: Batch) -> None:
        batch.error = None
        try:
            with self._file.errors("written"):
                self._write_together([batch])
        except JournalError as error:
            batch.error = error

    def _write_together(self, batches: Sequence[Batch]) -> None:
        connection = self._file.writer()
        try:
            tables.write(connection, batches)
        except BaseException:
            if connection.in_transaction:  # it could not even be rolled back
                self._file.give_up_writer()
            raise

    def _before_fork(self) -> Callable[[], None]:
        self._file.before_fork()
        return self._file.after_fork_in_parent

    def _after_fork(self) -> None:
        self._file.after_fork_in_child()

    # --- reading ------------------------------------------------------------------------------------

    def _count(self, run_id: str) -> int:
        """How many events a run has.

        Raises:
            RunNotFound: There is no such run.
            JournalDamaged: Its line and its events do not agree.
        """
        known = encodable(run_id)  # a name that no encoder takes is nobody's
        with self._file.errors("read"), self._file.reader() as connection:
            by_line, by_events = tables.count(connection, known)
        if known != run_id or (by_line is None and not by_events):
            raise self._not_found(run_id)
        if by_line != by_events:
            said = "has no line in the list of runs" if by_line is None else f"is said to have {by_line!r} events"
            raise JournalDamaged(
                f"the journal {self.path} is damaged: run {run_id} {said}, and {by_events} were found; "
                "`tenlines doctor` says what can still be read"
            )
        return by_events

    def _not_found(self, run_id: str) -> RunNotFound:
        return RunNotFound(f"there is no run {run_id!r} in {self.path}; `tenlines runs` lists them")

    def _events(self, run_id: str, first: int, count: int) -> Iterator[AnyEvent]:
        try:
            for row in contiguous(run_id, self._rows(run_id, first, count), first, count):
                yield event_of(row, self._blobs(row.blobs) if row.blobs else {})
        except JournalDamaged as error:
            self._count(run_id)  # it may have been deleted meanwhile
            raise type(error)(f"the journal {self.path}: {error}; `tenlines doctor` says what can be read") from error

    def _rows(self, run_id: str, first: int, count: int) -> Iterator[Row]:
        for begin in range(first, count, _AT_ONCE):
            with self._file.errors("read"), self._file.reader() as connection:
                some = tables.rows(connection, run_id, begin, min(begin + _AT_ONCE, count))
            yield from some

    def _blobs(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._file.errors("read"), self._file.reader() as connection:
            return dict(tables.blobs(connection, names))

    def _summary(self, line: tuple[object, ...]) -> RunSummary:
        try:
            return tables.summary(line)
        except msgspec.ValidationError as error:
            raise JournalDamaged(
                f"the journal {self.path} is damaged: the line of run {line[0]!r} cannot be read ({error}); "
                "`tenlines doctor` says what can"
            ) from error
