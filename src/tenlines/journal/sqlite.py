"""Runs in one SQLite file. Append-only; `(run_id, seq)` is unique, which is how a second owner is noticed."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenlines.core import codec
from tenlines.core.events import SCHEMA, AnyEvent, RunEnded, RunResumed, RunStarted
from tenlines.errors import JournalConflict, JournalError, JournalFormatError, RunNotFound
from tenlines.journal.summary import task_of
from tenlines.ports import RunSummary

LAYOUT = 1
"""Version of the tables, kept in `PRAGMA user_version`."""

_TABLES = """
CREATE TABLE events (
    run_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    at     REAL NOT NULL,
    schema INTEGER NOT NULL,
    type   TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE TABLE runs (
    number     INTEGER PRIMARY KEY,
    run_id     TEXT NOT NULL UNIQUE,
    started_at REAL NOT NULL,
    agent      TEXT NOT NULL,
    model      TEXT NOT NULL,
    task       TEXT NOT NULL,
    status     TEXT NOT NULL
);
"""
_SUMMARY = """
SELECT r.run_id, r.started_at, e.at, r.agent, r.model, r.task, r.status, e.seq + 1
FROM runs r JOIN events e ON e.run_id = r.run_id
    AND e.seq = (SELECT max(seq) FROM events WHERE run_id = r.run_id)
ORDER BY r.number DESC LIMIT ?
"""
_INSERT = "INSERT INTO events (run_id, seq, at, schema, type, body) VALUES (?, ?, ?, ?, ?, ?)"


class SqliteJournal:
    """A journal in a file. Safe to share between threads and between processes.

    Committed events survive the death of the process. With `synchronous=NORMAL` and a write-ahead log, a power
    cut may lose the last moments, never the file.

    Args:
        path: The file; it and its folder are made, readable by their owner alone, when they do not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()  # guards the connection: one transaction at a time
        self._held: dict[str, list[AnyEvent]] = {}
        with self._errors("opened"):
            self._connection = self._open()

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Hold the next event of a run until `commit`."""
        held = self._held.get(run_id)
        if held is None:
            held = self._held[run_id] = []
        held.append(event)

    def commit(self, run_id: str) -> None:
        """Write what is held for this run in one transaction.

        Raises:
            JournalConflict: Another owner has written one of these events.
            JournalError: The file cannot be written.
        """
        held = self._held.pop(run_id, None)
        if not held:
            return
        rows = [(run_id, e.seq, e.at, SCHEMA, type(e).__name__, codec.encode(e).decode()) for e in held]
        with self._errors("written"), self._lock:
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_INSERT, rows)
                for event in held:
                    self._index(run_id, event)
                run("COMMIT")
            except sqlite3.IntegrityError as error:
                run("ROLLBACK")
                raise JournalConflict(
                    f"run {run_id} already has an event {held[0].seq}: another process has taken the run over"
                ) from error
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise

    async def acommit(self, run_id: str) -> None:
        """The same for asyncio."""
        self.commit(run_id)

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order."""
        query = "SELECT body, schema FROM events WHERE run_id = ? AND seq >= ? ORDER BY seq"
        with self._errors("read"), self._lock:
            rows = self._connection.execute(query, (run_id, from_seq)).fetchall()
        if not rows and not self._knows(run_id):
            raise RunNotFound(f"there is no run {run_id!r} in {self.path}; `tenlines runs` lists them")
        return (codec.decode(body, schema) for body, schema in rows)

    def runs(
        self, limit: int | None = None, *, status: str | None = None, session: str | None = None
    ) -> list[RunSummary]:
        """The newest runs first."""
        with self._errors("read"), self._lock:
            rows = self._connection.execute(_SUMMARY, (-1 if limit is None else limit,)).fetchall()
        return [RunSummary(*row) for row in rows]

    def close(self) -> None:
        """Close the file. Events that were not committed are lost, as they would be in a crash."""
        with self._lock:
            self._connection.close()

    def _index(self, run_id: str, event: AnyEvent) -> None:
        """Keep the table of runs: a few columns that `tenlines runs` shows, all of them also in the events."""
        if isinstance(event, RunStarted):
            row = (run_id, event.at, event.agent, event.model, task_of(event))
            self._connection.execute(
                "INSERT INTO runs (run_id, started_at, agent, model, task, status) VALUES (?, ?, ?, ?, ?, 'open')", row
            )
        elif isinstance(event, RunEnded | RunResumed):
            status = event.status if isinstance(event, RunEnded) else "open"
            self._connection.execute("UPDATE runs SET status = ? WHERE run_id = ?", (status, run_id))

    def _knows(self, run_id: str) -> bool:
        with self._errors("read"), self._lock:
            return self._connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone() is not None

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.path.exists():
            # Transcripts hold what tools returned: nobody else's business.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=30.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once
        layout = connection.execute("PRAGMA user_version").fetchone()[0]
        if layout == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
        if layout > LAYOUT:
            raise JournalFormatError(
                f"{self.path} was written by a newer version of tenlines (layout {layout}, this one knows {LAYOUT}): "
                "upgrade tenlines, or name another file with --journal"
            )

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """The one place where SQLite's and the file system's errors become ours."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise JournalError(f"the journal {self.path} could not be {verb}: {error}{_advice(str(error))}") from error
        except OSError as error:
            raise JournalError(f"the journal {self.path} could not be {verb}: {error.strerror or error}") from error


def _advice(error: str) -> str:
    if "not a database" in error:
        return "; it is no journal: name another file with --journal"
    if "locked" in error:
        return "; another program holds it: close that, or name another file with --journal"
    if "readonly" in error or "unable to open" in error:
        return "; make it writable, or name another file with --journal"
    if "full" in error:
        return "; free some space, then resume the run"
    return ""
