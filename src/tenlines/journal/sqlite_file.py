"""One SQLite file: a connection that writes, some that read beside it, and none while the process forks."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from tenlines.errors import JournalError, JournalFormatError
from tenlines.journal.migrations import layout_of, migrate
from tenlines.journal.sqlite_errors import is_locked, journal_error
from tenlines.journal.sqlite_log import refuse_damaged
from tenlines.journal.sqlite_tables import prepare

Durability: TypeAlias = Literal["process", "power"]
_SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}
_MOST_IDLE = 4
"""Reading connections that are kept open for the next reader."""
_RETRY_S = 0.005
_CHECKPOINT_PAGES = 8000
"""Pages in the log from which they are moved into the file: each time costs two waits for the disk."""

_SMALLEST = 512
"""Bytes of the smallest database: SQLite would write a new one over any file that has fewer."""

T = TypeVar("T")

_making = threading.Lock()
"""Held while a file is made. To close a file takes from this process all locks that it has on it, so that what other
connections write would be lost: none may be there yet. The process does not fork meanwhile: who opens is writing."""


class SqliteFile:
    """The connections to a file. Locks of SQLite do not survive a fork: there is no connection while one happens.

    Args:
        path: The file; it and its folder are made, readable by their owner alone, when they do not exist.
        patience_s: How long another connection that is in the way is waited for.
    """

    def __init__(self, path: Path, durability: Durability, patience_s: float) -> None:
        self.path = path
        self._place = path.absolute()
        self._durability, self._patience_s = durability, patience_s
        self._writer: sqlite3.Connection | None = None
        self._is_closed = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        self._free = threading.Condition(threading.Lock())  # guards the two above

    # --- for the journal ----------------------------------------------------------------------------

    @contextmanager
    def errors(self, verb: str) -> Iterator[None]:
        """The one place where SQLite's and the file system's errors become ours."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError, MemoryError) as error:
            raise journal_error(error, self.path, verb) from error

    def writer(self) -> sqlite3.Connection:
        """The connection that writes. Only one thread at a time may use it."""
        if self._is_closed:
            raise JournalError(f"the journal {self.path} is closed: open it again to go on")
        if self._writer is None:
            self._writer = self._patiently(self._open_writer)
        return self._writer

    def give_up_writer(self) -> None:
        """Make a new connection for the next write: this one is in a state that cannot be relied on."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, for a moment. It never waits for the writer."""
        with self._free:
            if self._is_closed:
                raise JournalError(f"the journal {self.path} is closed: open it again to go on")
            self._reading += 1
            connection = self._idle.pop() if self._idle else None
        try:
            if connection is None:
                connection = self._patiently(self._open_reader)
            yield connection
        except BaseException:  # it may be in the middle of something
            if connection is not None:
                connection.close()
            self._done_reading(None)
            raise
        self._done_reading(connection)

    def _done_reading(self, connection: sqlite3.Connection | None) -> None:
        with self._free:
            self._reading -= 1
            self._free.notify_all()
            if connection is None:
                return
            if self._is_closed or len(self._idle) >= _MOST_IDLE:
                connection.close()
            else:
                self._idle.append(connection)

    def close(self) -> None:
        """Close all connections."""
        with self._free:
            self._is_closed = True
            self._close_idle()
        self.give_up_writer()

    # --- forks --------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close every connection, and let nobody open one until `after_fork`. The writer is idle."""
        self._free.acquire()
        self._free.wait_for(lambda: self._reading == 0)
        self._close_idle()
        self.give_up_writer()

    def after_fork_in_parent(self) -> None:
        """Go on: connections are made when they are needed."""
        self._free.release()

    def after_fork_in_child(self) -> None:
        """The same for the new process."""
        self._begin_anew()

    # --- connections --------------------------------------------------------------------------------

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _open_writer(self) -> sqlite3.Connection:
        self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _making:
            if not self._place.exists():
                # Transcripts hold what tools returned: nobody else's business.
                os.close(os.open(self._place, os.O_CREAT | os.O_RDWR, 0o600))
        if 0 < self._place.stat().st_size < _SMALLEST:
            raise JournalFormatError(f"{self.path} is too short to be a journal: name another file with --journal")
        is_torn = refuse_damaged(self._place, self.path)
        connection = self._connect()
        try:
            layout_of(connection, self.path)  # nothing is changed in a file that is no journal
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            migrate(connection, self.path)
            if is_torn:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self) -> sqlite3.Connection:
        if self._writer is None:  # after a fork this may be the first to open the file
            refuse_damaged(self._place, self.path)
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._place.as_uri()}?mode=rw",  # a file that was removed is not silently made anew
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=self._patience_s,
        )
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _patiently(self, work: Callable[[], T]) -> T:
        """Again and again while another connection is in the way: SQLite does not always wait by itself."""
        give_up_at = time.monotonic() + self._patience_s
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if not is_locked(error) or time.monotonic() > give_up_at:
                    raise
            time.sleep(_RETRY_S)
