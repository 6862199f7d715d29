"""The tables of a journal in SQLite, and how an older set of them becomes this one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from tenlines.errors import JournalFormatError
from tenlines.journal.rows import digest_of

_FIRST = """
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
)
"""
_SECOND = """
ALTER TABLE events RENAME TO events_1;
ALTER TABLE runs RENAME TO runs_1;
CREATE TABLE events (
    run_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    at     REAL NOT NULL,
    schema INTEGER NOT NULL,
    type   TEXT NOT NULL,
    body   TEXT NOT NULL,
    digest BLOB NOT NULL,
    blobs  BLOB,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE TABLE blobs (digest BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE uses (
    digest BLOB NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (digest, run_id)
) WITHOUT ROWID;
CREATE TABLE runs (
    number     INTEGER PRIMARY KEY,
    run_id     TEXT NOT NULL UNIQUE,
    started_at REAL NOT NULL,
    last_at    REAL NOT NULL,
    agent      TEXT NOT NULL,
    model      TEXT NOT NULL,
    task       TEXT NOT NULL,
    status     TEXT NOT NULL,
    events     INTEGER NOT NULL,
    steps      INTEGER NOT NULL,
    owner      TEXT NOT NULL,
    session    TEXT NOT NULL,
    turn       INTEGER NOT NULL
);
CREATE UNIQUE INDEX turns ON runs (session, turn) WHERE session <> '';
INSERT INTO events SELECT run_id, seq, at, schema, type, body, digest_of(run_id, seq, schema, body), NULL FROM events_1;
INSERT INTO runs
    SELECT number, r.run_id, started_at, max(e.at), agent, model, task, status,
        count(*), sum(e.type = 'ModelReplied'), '', '', 0
    FROM runs_1 r JOIN events_1 e ON e.run_id = r.run_id
    GROUP BY number;
DROP TABLE events_1;
DROP TABLE runs_1
"""
_THIRD = """
CREATE TABLE letters (
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at     REAL NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID
"""


def _first(connection: sqlite3.Connection) -> None:
    """Events, and a line for each run."""
    _run(connection, _FIRST)


def _second(connection: sqlite3.Connection) -> None:
    """Events have digests and texts out of line; the line of a run counts them, and names its owner and session.

    Texts stay as they are. What was there is taken for whole, as nothing could say otherwise.
    """
    connection.create_function("digest_of", 4, digest_of, deterministic=True)
    _run(connection, _SECOND)


def _third(connection: sqlite3.Connection) -> None:
    """Each run has a mailbox."""
    _run(connection, _THIRD)


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _second, _third)
"""Number n brings the tables from layout n to n + 1. Never changed once released: a change is one more at the end."""
LAYOUT = len(STEPS)
"""Version of the tables, kept in `PRAGMA user_version`."""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or bring older ones up to this layout, in one transaction: all of it or nothing.

    Several processes may do it at once: the others wait, and find it done.

    Raises:
        JournalFormatError: A newer version made the tables, or the file is a database of something else.
    """
    if layout_of(connection, path) == LAYOUT:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[_layout(connection, path) :]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def layout_of(connection: sqlite3.Connection, path: Path) -> int:
    """The layout of the tables; 0 where there are none yet. Nothing is changed.

    Raises:
        JournalFormatError: A newer version made the tables, or the file is a database of something else.
    """
    connection.execute("BEGIN")  # what is looked at is of one moment: another process may just be making the tables
    try:
        return _layout(connection, path)
    finally:
        connection.execute("ROLLBACK")


def _layout(connection: sqlite3.Connection, path: Path) -> int:
    layout: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if layout > LAYOUT:
        raise JournalFormatError(
            f"{path} was written by a newer version of tenlines (layout {layout}, this one knows {LAYOUT}): "
            "upgrade tenlines, or name another file with --journal"
        )
    if layout < 0 or (tables and (layout == 0 or not tables >= {"events", "runs"})):
        raise JournalFormatError(f"{path} is a database of something else: name another file with --journal")
    return layout


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: `executescript` would end the transaction."""
    for statement in script.split(";"):
        connection.execute(statement)
