"""Whether a SQLite file holds what was written: its pages, its runs, its texts out of line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from tenlines.errors import JournalDamaged
from tenlines.journal import sqlite_tables as tables
from tenlines.journal.integrity import Finding
from tenlines.journal.letters import letters_of
from tenlines.journal.rows import check_blob, parted

_EVENT_RUNS = """
WITH RECURSIVE ids(id) AS (
    SELECT min(run_id) FROM events
    UNION ALL SELECT (SELECT min(run_id) FROM events WHERE run_id > id) FROM ids WHERE id IS NOT NULL
)
SELECT id FROM ids WHERE id IS NOT NULL
"""
"""The runs that have events, without visiting every event."""
_UNUSED = "SELECT count(*) FROM blobs WHERE digest NOT IN (SELECT digest FROM uses)"


def check_pages(connection: sqlite3.Connection, deep: bool) -> Iterator[Finding]:
    """What SQLite itself finds; `deep` compares its indexes with its tables as well."""
    for (said,) in connection.execute(f"PRAGMA {'integrity_check' if deep else 'quick_check'}"):
        if said != "ok":
            yield Finding("", f"SQLite finds: {said}", True)


def check_counts(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Whether each run has as many events as its line says, and each that has events has a line."""
    lines = {str(run_id) for (run_id,) in connection.execute("SELECT run_id FROM runs")}
    for run_id in sorted(lines | {str(run_id) for (run_id,) in connection.execute(_EVENT_RUNS)}):
        count = tables.count(connection, run_id)
        if run_id not in lines:
            yield Finding(run_id, f"{count.by_events} events of it were found, but it is not in the list of runs", True)
        elif count.by_line != count.by_events:
            yield Finding(run_id, f"its line counts {count.by_line} events, {count.by_events} were found", True)


def check_blobs(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Whether each text out of line is what was written, and is kept for as long as a run needs it."""
    for name, text in connection.execute("SELECT digest, body FROM blobs"):
        try:
            check_blob(name if isinstance(name, bytes) else b"damaged", text)
        except JournalDamaged as error:
            yield Finding("", str(error), True)
    used = set(connection.execute("SELECT run_id, digest FROM uses"))
    needed = {
        (run_id, name)
        for run_id, column in connection.execute("SELECT run_id, blobs FROM events WHERE blobs IS NOT NULL")
        for name in parted(column)
    }
    for run_id, name in sorted(needed - used, key=repr):
        yield Finding(run_id, f"that it needs the text {name.hex()[:16]}, kept out of line, is not recorded", True)
    unused = connection.execute(_UNUSED).fetchone()[0] + len(used - needed)
    if unused:
        yield Finding("", f"{unused} texts out of line are kept although no run needs them", False)


def check_letters(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Whether each letter can be read, and is one to a run that is there."""
    strays = connection.execute("SELECT count(*) FROM letters WHERE run_id NOT IN (SELECT run_id FROM runs)").fetchone()
    if strays[0]:
        yield Finding("", f"{strays[0]} letters are kept although their runs are not there", False)
    for row in connection.execute("SELECT run_id, number, at, body FROM letters ORDER BY run_id, number"):
        if not letters_of([row]):
            yield Finding(str(row[0]), f"letter {row[1]} to it cannot be read, and is never delivered", False)


def check_tables(connection: sqlite3.Connection, deep: bool) -> list[Finding]:
    """All of it, as it is at one moment, but for what each event says.

    Raises:
        sqlite3.Error: So much is damaged that it cannot be looked at.
    """
    connection.execute("BEGIN")
    try:
        found = [*check_pages(connection, deep), *check_counts(connection)]
        return [*found, *check_blobs(connection), *check_letters(connection)] if deep else found
    finally:
        connection.execute("ROLLBACK")
