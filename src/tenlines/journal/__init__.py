"""Stores of events: in memory, in a SQLite file, in Postgres. `open_journal` finds the right one for a name."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Literal

from tenlines.errors import ConfigError, MissingExtra
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Journal

_POSTGRES = ("postgresql://", "postgres://")


def default_journal() -> str:
    """Where runs are journalled when nothing else is said: a file, or a database.

    `$TENLINES_JOURNAL`, else `tenlines/journal.db` in `$XDG_STATE_HOME`, else in `~/.local/state`.
    """
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return os.environ.get("TENLINES_JOURNAL") or str(Path(state) / "tenlines" / "journal.db")


def open_journal(name: str | Path | None = None, *, durability: Literal["process", "power"] | None = None) -> Journal:
    """The journal of that name.

    Args:
        name: A file; None for the default (`default_journal`); `memory`; or a database, `postgresql://USER@HOST/NAME`.
        durability: What committed events survive: the death of the `process`, or a `power` cut as well. None is the
            store's own: a file survives the process, Postgres both.

    Raises:
        ConfigError: The name is of a kind that is not supported, or the store cannot have that durability.
        MissingExtra: The database needs a package that is not installed.
        JournalError: The journal cannot be opened, or is none.
    """
    text = default_journal() if name is None else str(name)
    if text == "memory":
        _refuse(durability, None, "a journal in memory is gone when the process ends")
        return MemoryJournal()
    if text.startswith(_POSTGRES):
        _refuse(
            durability, "power", "a journal in Postgres waits for the server, which decides when an event is durable"
        )
        return _postgres(text)
    if "://" in text and not isinstance(name, Path):
        raise ConfigError(f"a journal at {text.split('://')[0]}:// is not supported; name a file, or postgresql://...")
    from tenlines.journal.sqlite import SqliteJournal

    return SqliteJournal(Path(text).expanduser(), durability=durability or "process")


def _postgres(address: str) -> Journal:
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtra("a Postgres journal", "postgres")
    from tenlines.journal.postgres import PostgresJournal

    return PostgresJournal(address)


def _refuse(durability: str | None, only: str | None, why: str) -> None:
    if durability not in (None, only):
        raise ConfigError(f"durability is {durability!r}, but {why}: leave it out")
