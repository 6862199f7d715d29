"""The file of a journal from outside: what is said of it before it is opened, how much a run takes, and how what was
freed is given back to the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from tenlines.journal.sqlite_errors import is_locked, journal_error

_MAGIC = b"SQLite format 3\0"
_LAYOUT_AT = 60
"""Where a SQLite file keeps `PRAGMA user_version`, in four bytes."""
_SHARED_FIRST, _SHARED_BYTES = 0x40000002, 510
"""The bytes of the file on which every connection in WAL mode holds a lock for as long as it is open."""
_WORTH = 10
"""The file is written anew where at least one page in so many is free."""

Given: TypeAlias = Literal["given", "busy", "little"]


class FileState(NamedTuple):
    """A file as it lies on the disk."""

    bytes: int
    log_bytes: int
    """What waits in the write-ahead log beside it: a part of the journal that is not in the file yet."""
    layout: int | None
    """Version of its tables as the file itself says; None where it does not begin as a SQLite database does."""


def look(path: Path) -> FileState:
    """What a file is. Nothing in this process may have it open: to read it takes from SQLite the locks that it has.

    Raises:
        OSError: It cannot be read.
    """
    log = Path(f"{path}-wal")
    with path.open("rb") as file:
        head = file.read(100)
    layout = int.from_bytes(head[_LAYOUT_AT : _LAYOUT_AT + 4]) if head.startswith(_MAGIC) and len(head) == 100 else None
    return FileState(path.stat().st_size, log.stat().st_size if log.exists() else 0, layout)


def is_in_use(path: Path) -> bool:
    """Whether another process has the journal open, as far as that can be known. The same holds as for `look`."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        return False
    with suppress(PermissionError), path.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_BYTES, _SHARED_FIRST)
        except OSError:
            return True
    return False


# --- room -----------------------------------------------------------------------------------------------

_EVENT_BYTES = "SELECT total(length(CAST(body AS BLOB))) FROM events WHERE run_id IN (SELECT run_id FROM chosen)"
_BLOB_BYTES = """
SELECT total(length(body)) FROM blobs
WHERE digest NOT IN (SELECT digest FROM uses WHERE run_id NOT IN (SELECT run_id FROM chosen))
"""


def bytes_of(path: Path, run_ids: Iterable[str]) -> int:
    """How much text these runs take: that of their events, and what is kept out of line for them alone.

    Raises:
        JournalError: The journal cannot be read.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("CREATE TEMP TABLE chosen (run_id TEXT PRIMARY KEY)")
            connection.executemany("INSERT INTO chosen VALUES (?)", [(run_id,) for run_id in run_ids])
            sums = [connection.execute(query).fetchone()[0] for query in (_EVENT_BYTES, _BLOB_BYTES)]
    except sqlite3.Error as error:
        raise journal_error(error, path, "read") from error
    return int(sum(sums))


def give_back(path: Path) -> Given:
    """Write the file anew without its free pages, where they are many and nobody else has the journal open.

    Whoever opens it meanwhile waits, so that this is not done while others are at work. It needs room for a second
    copy. When it is interrupted or fails, the file is as it was.

    Returns:
        `given`; `busy` where another connection is open, `little` where little is free.

    Raises:
        JournalError: The disk is full, or the file cannot be written.
    """
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            return _vacuum(connection)
    except sqlite3.Error as error:
        if is_locked(error):
            return "busy"
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from None
        raise journal_error(error, path, "made smaller") from error


def _vacuum(connection: sqlite3.Connection) -> Given:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # from the next statement on, nobody else has it open
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")
    free, pages = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    if free * _WORTH < pages:
        return "little"
    connection.set_progress_handler(lambda: None, 10_000)  # now and then Python is asked, and so notices a Ctrl-C
    connection.execute("VACUUM")
    return "given"
