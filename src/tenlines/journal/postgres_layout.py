"""The tables of a journal in Postgres, and how an older set of them becomes this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenlines.errors import JournalError, JournalFormatError

if TYPE_CHECKING:
    from psycopg import Connection

MIGRATIONS = (
    """
    CREATE TABLE tenlines_layout (version integer NOT NULL);
    INSERT INTO tenlines_layout VALUES (0);
    CREATE TABLE tenlines_events (
        run_id text COLLATE "C" NOT NULL,
        seq    bigint NOT NULL,
        at     double precision NOT NULL,
        schema integer NOT NULL,
        type   text NOT NULL,
        body   text NOT NULL,
        digest bytea NOT NULL,
        blobs  bytea[] NOT NULL,
        PRIMARY KEY (run_id, seq)
    );
    CREATE INDEX tenlines_uses ON tenlines_events USING gin (blobs) WHERE blobs <> '{}';
    CREATE TABLE tenlines_blobs (digest bytea PRIMARY KEY, body bytea NOT NULL);
    CREATE TABLE tenlines_runs (
        number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run_id     text COLLATE "C" NOT NULL UNIQUE,
        started_at double precision NOT NULL,
        last_at    double precision NOT NULL,
        agent      text NOT NULL,
        model      text NOT NULL,
        task       text NOT NULL,
        status     text NOT NULL,
        events     bigint NOT NULL,
        steps      bigint NOT NULL,
        owner      text NOT NULL,
        session    text COLLATE "C" NOT NULL,
        turn       integer NOT NULL
    ) WITH (fillfactor = 70);
    CREATE UNIQUE INDEX tenlines_turns ON tenlines_runs (session, turn) WHERE session <> '';
    CREATE INDEX tenlines_status ON tenlines_runs (status, number);
    """,
    """
    CREATE TABLE tenlines_letters (
        run_id text COLLATE "C" NOT NULL REFERENCES tenlines_runs (run_id) ON DELETE CASCADE,
        number bigint NOT NULL,
        at     double precision NOT NULL,
        body   text NOT NULL,
        PRIMARY KEY (run_id, number)
    );
    """,
)
"""Each brings the tables to the next layout. Never changed once released: a change is one more at the end.

The line of a run changes with every commit; `fillfactor` leaves room for its next version on the same page.
"""
LAYOUT = len(MIGRATIONS)
"""Version of the tables, kept in `tenlines_layout`."""

_LOCK = 0x74656E6C696E6573
"""Key of the advisory lock under which tables are made: the word `tenlines` in bytes."""


def migrate(connection: Connection[tuple[object, ...]], label: str) -> None:
    """Make the tables, or bring older ones up to this layout. Many processes may do it at once.

    Args:
        connection: In autocommit mode.
        label: What the journal is called in errors.

    Raises:
        JournalFormatError: A newer version made them.
        JournalError: The database does not keep text as UTF-8.
    """
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise JournalError(
            f"{label} keeps text as {encoding}, a journal needs UTF8: make a database with `createdb --encoding=UTF8 "
            "--template=template0`"
        )
    found = _layout(connection)
    if found < LAYOUT:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            for migration in MIGRATIONS[_layout(connection) :]:
                connection.execute(migration)
            connection.execute("UPDATE tenlines_layout SET version = greatest(version, %s)", (LAYOUT,))
            found = _layout(connection)
    if found > LAYOUT:
        raise JournalFormatError(
            f"{label} was written by a newer version of tenlines (layout {found}, this one knows {LAYOUT}): "
            "upgrade tenlines, or name another database"
        )


def _layout(connection: Connection[tuple[object, ...]]) -> int:
    """Which layout the tables have; 0 where there are none.

    `to_regclass` alone may say what it said before, from a cache that waiting for an advisory lock does not renew.
    Reading a table (`pg_class`) renews it.
    """
    exists = "SELECT 1 FROM pg_class WHERE oid = to_regclass('tenlines_layout')"
    if connection.execute(exists).fetchone() is None:
        return 0
    row = connection.execute("SELECT version FROM tenlines_layout").fetchone()
    return row[0] if row is not None and isinstance(row[0], int) else 0
