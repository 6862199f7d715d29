"""What is said to the tables of a journal in SQLite (`migrations` makes them)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tenlines.core.events import RunStarted
from tenlines.journal.rows import Blobs, Row, check_blob, joined, parted
from tenlines.journal.summary import summary_of
from tenlines.journal.writer import Batch, conflict_of
from tenlines.ports import RunSummary

_TAKE = (
    "UPDATE runs SET events = ?, last_at = max(last_at, ?), steps = steps + ?, status = coalesce(?, status), "
    "owner = coalesce(?, owner) WHERE run_id = ? AND events = ?"
)
_EVENT = "INSERT INTO events (run_id, seq, at, schema, type, body, digest, blobs) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_BLOB = "INSERT OR IGNORE INTO blobs (digest, body) VALUES (?, ?)"
_USE = "INSERT OR IGNORE INTO uses (digest, run_id) VALUES (?, ?)"
_ROWS = (
    "SELECT seq, at, schema, type, body, digest, blobs FROM events WHERE run_id = ? AND seq >= ? AND seq < ? "
    "ORDER BY seq"
)
_FIELDS = RunSummary.__struct_fields__
_LINES = f"SELECT {', '.join(_FIELDS)} FROM runs WHERE {{}} ORDER BY number DESC LIMIT ?"
_BEGIN = f"INSERT INTO runs ({', '.join(_FIELDS)}) VALUES ({', '.join('?' * len(_FIELDS))})"
_MOST_NAMES = 500
"""Blobs that one statement asks for."""
_ARRIVAL = """
CREATE TEMP VIEW arrivals (run_id, seq, at, schema, type, body, digest, steps, status, owner) AS
    SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;
CREATE TEMP TRIGGER arrival INSTEAD OF INSERT ON arrivals WHEN new.run_id IS NOT NULL BEGIN
    UPDATE runs SET events = events + 1, last_at = max(last_at, new.at), steps = steps + new.steps,
            status = coalesce(new.status, status), owner = coalesce(new.owner, owner)
        WHERE run_id = new.run_id AND events = new.seq;
    SELECT RAISE(ABORT, 'not the next event of its run') WHERE changes() = 0;
    INSERT INTO events (run_id, seq, at, schema, type, body, digest)
        VALUES (new.run_id, new.seq, new.at, new.schema, new.type, new.body, new.digest);
END
"""
"""What is put into this view is counted in the line of its run, and stored: two tables by one statement."""
_ARRIVE = f"INSERT INTO arrivals VALUES {{}}({', '.join('?' * 10)})"
_MOST_ROWS = 2048
"""Rows of one such statement: SQLite takes 32,766 values."""
_ARRIVALS = {
    2**power: _ARRIVE.format(f"({', '.join('?' * 10)}), " * (2**power - 1)) for power in range(_MOST_ROWS.bit_length())
}
"""Few statements, that SQLite need not read again: what is missing to a power of two is NULL."""


class Count(NamedTuple):
    """How long a run is."""

    by_line: int | None
    """As its line says; None where it has none."""
    by_events: int
    """As the last of its events says; 0 where it has none."""


# --- writing --------------------------------------------------------------------------------------------


def prepare(connection: sqlite3.Connection) -> None:
    """Make a connection ready to write."""
    connection.executescript(_ARRIVAL)


def write(connection: sqlite3.Connection, batches: Sequence[Batch]) -> None:
    """Write batches in one transaction. One that may not be written gets its error, and changes nothing."""
    if not _is_written_at_once(connection, batches):
        _write_in_turn(connection, batches)


def _is_written_at_once(connection: sqlite3.Connection, batches: Sequence[Batch]) -> bool:
    """Write events that go on with their runs, by one statement; all or none.

    Each statement ends with a wait for Python's lock, up to 5 ms while an event loop is busy. So with one of them the
    next events come into being while these are written; with one for each batch, the loop and the writer take turns.
    """
    if any(batch.blobs or batch.change.start is not None for batch in batches):
        return False
    values = [value for batch in batches for row in _arrivals(batch) for value in row]
    rows = len(values) // 10
    if rows > _MOST_ROWS:
        return False
    size = 1 << (rows - 1).bit_length()
    values += [None] * (10 * (size - rows))
    try:
        connection.execute(_ARRIVALS[size], values)
    except sqlite3.IntegrityError:
        return False
    return True


def _arrivals(batch: Batch) -> Iterator[tuple[object, ...]]:
    """The rows of a batch, what it changes in the line of its run beside the first."""
    change = batch.change
    beside: tuple[object, ...] = (change.steps, change.status or None, change.owner or None)
    for row in batch.rows:
        yield (*row[:7], *beside)
        beside = (0, None, None)


def _write_in_turn(connection: sqlite3.Connection, batches: Sequence[Batch]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        taken = [batch for batch in batches if _take(connection, batch)]
        _insert(connection, (row for batch in taken for row in batch.rows))
        for batch in taken:
            if batch.blobs:
                _keep(connection, batch.run_id, batch.blobs)
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def insert_run(connection: sqlite3.Connection, line: RunSummary, rows: Iterable[Row], blobs: Blobs) -> None:
    """Put a whole run into the journal, its rows as they are.

    Raises:
        sqlite3.IntegrityError: It is there already, or the turn of its session belongs to another run.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        _begin_line(connection, line)
        _insert(connection, rows)
        _keep(connection, line.run_id, blobs)
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    """Undo what is under way, if it was not already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    connection.executemany(_EVENT, [(*row[:7], joined(row.blobs)) for row in rows])


def _keep(connection: sqlite3.Connection, run_id: str, blobs: Blobs) -> None:
    """Keep texts once for each content, and that this run needs them."""
    connection.executemany(_BLOB, blobs.items())
    connection.executemany(_USE, [(name, run_id) for name in blobs])


def _begin_line(connection: sqlite3.Connection, line: RunSummary) -> None:
    connection.execute(_BEGIN, msgspec.structs.astuple(line))


def _take(connection: sqlite3.Connection, batch: Batch) -> bool:
    """Count the events of a batch in the line of its run: only who knows the whole run may add to it."""
    change, after = batch.change, batch.first + len(batch.rows)
    if change.start is not None and batch.first == 0:
        return _begin(connection, batch, change.start)
    values = (after, change.last_at, change.steps, change.status or None, change.owner or None)
    if connection.execute(_TAKE, (*values, batch.run_id, batch.first)).rowcount == 1:
        return True
    batch.error = conflict_of(batch, count(connection, batch.run_id).by_line)
    return False


def _begin(connection: sqlite3.Connection, batch: Batch, start: RunStarted) -> bool:
    try:
        _begin_line(connection, summary_of(batch.run_id, start, batch.change, len(batch.rows)))
    except sqlite3.IntegrityError:
        batch.error = conflict_of(batch, count(connection, batch.run_id).by_line)
        return False
    return True


def delete(connection: sqlite3.Connection, run_id: str, events: int | None) -> bool:
    """Delete a run, in a transaction of its own, with the texts that no other run uses.

    Args:
        events: How many it must have; None where that does not matter.

    Returns:
        Whether there was such a run. With another number of events it is left as it is.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        columns = connection.execute("SELECT blobs FROM events WHERE run_id = ? AND blobs IS NOT NULL", (run_id,))
        names = [(name,) for name in {name for (column,) in columns for name in parted(column)}]
        gone = "DELETE FROM runs WHERE run_id = ?1 AND events = coalesce(?2, events)"
        found = connection.execute(gone, (run_id, events)).rowcount > 0
        if not found and events is not None:
            connection.execute("ROLLBACK")
            return False
        connection.execute("DELETE FROM events WHERE run_id = ?", (run_id,))
        connection.execute("DELETE FROM letters WHERE run_id = ?", (run_id,))
        connection.executemany("DELETE FROM uses WHERE digest = ? AND run_id = ?", [(*one, run_id) for one in names])
        unused = "DELETE FROM blobs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM uses WHERE digest = ?1)"
        connection.executemany(unused, names)
        connection.execute("COMMIT")
        return found
    except BaseException:
        _roll_back(connection)
        raise


# --- reading --------------------------------------------------------------------------------------------


def count(connection: sqlite3.Connection, run_id: str) -> Count:
    """How many events a run has, by both tables, at one moment. What is no number, in a damaged file, counts as -1."""
    query = "SELECT (SELECT events FROM runs WHERE run_id = ?1), (SELECT max(seq) FROM events WHERE run_id = ?1)"
    by_line, last = (
        one if one is None or isinstance(one, int) else -1 for one in connection.execute(query, (run_id,)).fetchone()
    )
    return Count(by_line, 0 if last is None else last + 1 if last >= 0 else -1)


def rows(connection: sqlite3.Connection, run_id: str, first: int, end: int) -> list[Row]:
    """The rows of a run from one `seq` up to another, as they are."""
    found = connection.execute(_ROWS, (run_id, first, end)).fetchall()
    return [
        Row(run_id, seq, at, schema, kind, body, digest, parted(blobs) if blobs else ())
        for seq, at, schema, kind, body, digest, blobs in found
    ]


def blobs(connection: sqlite3.Connection, names: Sequence[bytes]) -> Blobs:
    """Texts that are out of line; without those that are missing.

    Raises:
        JournalDamaged: One is not what was written.
    """
    found: dict[bytes, bytes] = {}
    for at in range(0, len(names), _MOST_NAMES):
        some = names[at : at + _MOST_NAMES]
        query = f"SELECT digest, body FROM blobs WHERE digest IN ({', '.join('?' * len(some))})"
        for name, text in connection.execute(query, some):
            found[name] = check_blob(name, text)
    return found


def lines(
    connection: sqlite3.Connection, limit: int | None, status: str | None, session: str | None
) -> list[tuple[object, ...]]:
    """The lines of runs as they are, the newest first."""
    terms, values = [], []
    for column, wanted in (("status", status), ("session", session)):
        if wanted is not None:
            terms.append(f"{column} = ?")
            values.append(wanted)
    if session:
        terms.append("session <> ''")  # so that the index of turns is used
    query = _LINES.format(" AND ".join(terms) or "1")
    return connection.execute(query, (*values, -1 if limit is None else limit)).fetchall()


def summary(line: tuple[object, ...]) -> RunSummary:
    """A line as it is shown.

    Raises:
        msgspec.ValidationError: SQLite takes anything in any column, and this is not what was written.
    """
    return msgspec.convert(dict(zip(_FIELDS, line, strict=True)), RunSummary)
