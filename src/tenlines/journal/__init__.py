"""Stores of events: in memory, and SQLite. `open_journal` finds the right one for a name."""

from __future__ import annotations

import os
from pathlib import Path

from tenlines.errors import ConfigError
from tenlines.ports import Journal


def default_path() -> Path:
    """Where runs are journalled when nothing else is said.

    `$TENLINES_JOURNAL`, else `tenlines/journal.db` in `$XDG_STATE_HOME`, else in `~/.local/state`.
    """
    named = os.environ.get("TENLINES_JOURNAL")
    if named:
        return Path(named).expanduser()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "tenlines" / "journal.db"


def open_journal(name: str | Path | None = None) -> Journal:
    """The journal of that name: a file, `memory`, or None for the default file.

    Raises:
        ConfigError: The name is of a kind that is not supported.
        JournalError: The file cannot be opened, or is not a journal.
    """
    from tenlines.journal.memory import MemoryJournal
    from tenlines.journal.sqlite import SqliteJournal

    if name == "memory":
        return MemoryJournal()
    if isinstance(name, str) and "://" in name:
        scheme = name.split("://")[0]
        raise ConfigError(f"a journal at {scheme}:// is not supported; name a file, or `memory`")
    return SqliteJournal(default_path() if name is None else Path(name).expanduser())
