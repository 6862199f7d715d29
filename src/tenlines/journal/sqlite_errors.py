"""What SQLite and the file system say when something fails, in our words: what happened, and the next move."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from tenlines.errors import JournalDamaged, JournalError, JournalFormatError


class _Meaning(NamedTuple):
    kind: type[JournalError]
    what: str
    advice: str


_LOCKED = _Meaning(
    JournalError, "another program holds it", "close that, or name another file with --journal, then resume the run"
)
_CLOSED_TO_US = _Meaning(
    JournalError,
    "it cannot be written",
    "make the file and its folder writable, or name another file with --journal",
)
_DAMAGED = _Meaning(JournalDamaged, "it is damaged", "`tenlines doctor` says what can still be read")
_MEANINGS = {
    sqlite3.SQLITE_FULL: _Meaning(JournalError, "the disk is full", "free some space, then resume the run"),
    sqlite3.SQLITE_IOERR: _Meaning(
        JournalError, "the disk failed", "look at the disk and at limits on the size of files, then resume the run"
    ),
    sqlite3.SQLITE_READONLY: _CLOSED_TO_US,
    sqlite3.SQLITE_PERM: _CLOSED_TO_US,
    sqlite3.SQLITE_CANTOPEN: _CLOSED_TO_US,
    sqlite3.SQLITE_AUTH: _CLOSED_TO_US,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_NOTADB: _Meaning(
        JournalFormatError, "it is no journal, or its first page is damaged", "name another file with --journal"
    ),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_FORMAT: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,  # our statements are right: what they name is not there any more
    sqlite3.SQLITE_MISMATCH: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: _DAMAGED,
    sqlite3.SQLITE_TOOBIG: _DAMAGED,
}


def journal_error(error: Exception, path: Path, verb: str) -> JournalError:
    """Our error for theirs.

    Args:
        verb: What could not be done: `opened`, `read`, `written`.
    """
    if isinstance(error, OSError):
        return JournalError(f"the journal {path} could not be {verb}: {error.strerror or error}")
    meaning = _MEANINGS.get(_code(error) & 0xFF)
    if meaning is None:
        return JournalError(f"the journal {path} could not be {verb}: {error}")
    kind, what, advice = meaning
    return kind(f"the journal {path} could not be {verb}: {what} ({error}); {advice}")


def is_locked(error: Exception) -> bool:
    """Whether another connection was in the way, so that it may work a moment later."""
    return _code(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def _code(error: Exception) -> int:
    if isinstance(error, sqlite3.OperationalError | UnicodeDecodeError) and not hasattr(error, "sqlite_errorcode"):
        return sqlite3.SQLITE_CORRUPT  # text that is not UTF-8
    return getattr(error, "sqlite_errorcode", 0)
