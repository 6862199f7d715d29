"""What is said to the tables: that events which go on with their runs are written by one statement changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from journal_world import log, said, start

from tenlines.core import events as ev
from tenlines.core.limits import Reservation
from tenlines.core.transcript import Reply
from tenlines.errors import JournalConflict
from tenlines.journal import sqlite_tables as tables
from tenlines.journal.migrations import migrate
from tenlines.journal.writer import Batch

Write: TypeAlias = Callable[[sqlite3.Connection, Sequence[Batch]], object]


def opened() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path("memory"))
    tables.prepare(connection)
    return connection


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = opened()
    yield connection
    connection.close()


def began(connection: sqlite3.Connection, runs: int) -> None:
    """So many runs, each with three events."""
    tables.write(connection, [Batch(f"r{number}", log(f"r{number}")) for number in range(runs)])


def content(connection: sqlite3.Connection) -> list[Any]:
    return [connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in ("runs", "events")]


def later(number: int) -> list[Any]:
    """What comes next in a run, another thing in each: words, a step, an end, a new owner."""
    more: list[list[Any]] = [
        [said(3), said(4, "\0 and \ud7ff")],
        [
            ev.StepStarted(seq=3, at=9.5, step=1, attempt=1, reserved=Reservation()),
            ev.ModelReplied(seq=4, at=0.25, step=1, reply=Reply("done")),
        ],
        [ev.RunEnded(seq=3, at=1764540000.1234567, status="answered", reason="", answer="done")],
        [ev.RunResumed(seq=3, at=7.0, owner="another"), said(4), said(5)],
    ]
    return more[number % len(more)]


@pytest.mark.parametrize("runs", [1, 2, 3, 4, 7, 33])
def test_both_ways_write_the_same(runs: int) -> None:
    found = []
    for write in (tables.write, tables._write_in_turn, _at_once):
        connection = opened()
        began(connection, runs)
        write(connection, [Batch(f"r{number}", later(number)) for number in range(runs)])
        found.append(content(connection))
        connection.close()
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) > 3 * runs


def _at_once(connection: sqlite3.Connection, batches: Sequence[Batch]) -> None:
    assert tables._is_written_at_once(connection, batches)
    assert not connection.in_transaction


def test_where_one_is_not_next_all_others_are_written(connection: sqlite3.Connection) -> None:
    began(connection, 5)
    batches = [Batch(f"r{number}", [said(4 if number == 2 else 3)]) for number in range(5)]
    before = content(connection)
    assert not tables._is_written_at_once(connection, batches)
    assert content(connection) == before
    tables.write(connection, batches)
    assert [type(batch.error) for batch in batches] == [type(None), type(None), JournalConflict, *[type(None)] * 2]
    assert [events for (events,) in connection.execute("SELECT events FROM runs")] == [4, 4, 3, 4, 4]


def test_a_batch_that_is_not_whole_leaves_nothing(connection: sqlite3.Connection) -> None:
    began(connection, 1)
    before = content(connection)
    gap = Batch("r0", [said(3), said(5)])
    assert not tables._is_written_at_once(connection, [gap])
    assert content(connection) == before


def test_a_row_that_is_there_already_is_not_overwritten(connection: sqlite3.Connection) -> None:
    began(connection, 2)
    connection.execute("UPDATE runs SET events = 2 WHERE run_id = 'r1'")  # damage
    before = content(connection)
    with pytest.raises(sqlite3.IntegrityError):
        tables.write(connection, [Batch("r0", [said(3)]), Batch("r1", [said(2)])])
    assert content(connection) == before
    assert not connection.in_transaction


@pytest.mark.parametrize("event", [said(3, "x" * 5000), start("r0")], ids=["a large text", "a start"])
def test_what_concerns_more_tables_or_a_new_line_is_written_in_turn(connection: sqlite3.Connection, event: Any) -> None:
    began(connection, 1)
    assert not tables._is_written_at_once(connection, [Batch("r0", [event])])


def test_a_batch_of_any_length_is_written(connection: sqlite3.Connection) -> None:
    began(connection, 1)
    long = Batch("r0", [said(seq) for seq in range(3, 3 + tables._MOST_ROWS + 1)])
    tables.write(connection, [long])
    assert long.error is None
    assert tables.count(connection, "r0") == (long.first + len(long.rows), long.first + len(long.rows))
