"""A file of an older layout becomes one of this layout: all of it or nothing, with every event as it was."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from journal_world import PATIENCE_S, log, put, together

from tenlines import Agent, tool
from tenlines.core import codec
from tenlines.errors import JournalError
from tenlines.journal import migrations
from tenlines.journal.migrations import LAYOUT, STEPS
from tenlines.journal.recovery import recover
from tenlines.journal.rows import digest_of
from tenlines.journal.sqlite import SqliteJournal
from tenlines.journal.summary import summarise
from tenlines.ports import Saying

JOURNALS = Path(__file__).parent.parent / "vectors" / "journals"
OLD, BEFORE = JOURNALS / "layout-1.db", JOURNALS / "layout-2.db"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of a file that the version with layout 1 wrote."""
    return Path(shutil.copy(OLD, tmp_path / "journal.db"))


def everything(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All tables, as they are."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        return {**found, "layout": connection.execute("PRAGMA user_version").fetchall()}


@pytest.fixture
def journal(old: Path) -> Iterator[SqliteJournal]:
    journal = SqliteJournal(old)
    yield journal
    journal.close()


def test_the_events_of_an_older_file_are_the_same_and_proven(old: Path, journal: SqliteJournal) -> None:
    before, after = everything(OLD), everything(old)
    assert before["layout"] == [(1,)]
    assert after["layout"] == [(LAYOUT,)]
    assert [row[:6] for row in after["events"]] == before["events"]
    assert all(digest_of(*row[:2], row[3], row[5]) == row[6] for row in after["events"])
    assert set(after) == {"events", "runs", "blobs", "uses", "letters", "layout"}
    for run in journal.runs():
        bodies = [row[5] for row in before["events"] if row[0] == run.run_id]
        schemas = [row[3] for row in before["events"] if row[0] == run.run_id]
        assert list(journal.read(run.run_id)) == list(map(codec.decode, bodies, schemas))
    assert list(journal.check()) == []


def test_the_lines_of_its_runs_say_what_their_events_say(journal: SqliteJournal) -> None:
    shown = [(run.run_id, run.status, run.events, run.steps) for run in journal.runs()]
    assert shown == [
        ("openrun33333", "open", 4, 1),
        ("limitedrun22", "max_steps", 6, 1),
        ("answeredrun1", "answered", 10, 2),
    ]
    assert journal.runs() == [summarise(run.run_id, list(journal.read(run.run_id))) for run in journal.runs()]


def test_its_runs_can_be_gone_on_with(journal: SqliteJournal) -> None:
    @tool
    def send(to: str) -> str:
        """Send it."""
        return f"sent to {to}"

    for run_id in ("openrun33333", "limitedrun22"):
        agent = Agent(["done"], [send], journal=journal)
        raised = agent.settings.limits
        assert agent.resume_sync(run_id, limits=raised).answer == "done"
    assert {run.status for run in journal.runs()} == {"answered"}
    assert list(journal.check()) == []


def test_a_new_file_is_made_by_the_same_steps(tmp_path: Path, journal: SqliteJournal, old: Path) -> None:
    SqliteJournal(tmp_path / "new.db").close()
    schemas = []
    for path in (old, tmp_path / "new.db"):
        with closing(sqlite3.connect(path)) as connection:
            schemas.append(connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall())
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("statement", range(migrations._SECOND.count(";") + 1))
def test_a_failure_at_any_statement_leaves_the_old_file(
    old: Path, statement: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        for number, one in enumerate(migrations._SECOND.split(";")):
            connection.create_function("digest_of", 4, digest_of)
            if number == statement:
                raise sqlite3.OperationalError("the power went off")
            connection.execute(one)

    monkeypatch.setattr(migrations, "STEPS", (STEPS[0], fail))
    with pytest.raises(JournalError):
        SqliteJournal(old)
    assert everything(old) == everything(OLD)
    monkeypatch.undo()
    journal = SqliteJournal(old)
    assert len(journal.runs()) == 3
    journal.close()


KILLED = """
import os, signal, sys
from tenlines.journal import migrations
from tenlines.journal.sqlite import SqliteJournal

def die(connection):
    migrations._second(connection)
    connection.execute("PRAGMA cache_spill = 1")
    os.kill(os.getpid(), signal.SIGKILL)

migrations.STEPS = (migrations.STEPS[0], die)
SqliteJournal(sys.argv[1])
"""


@pytest.mark.slow
def test_a_process_that_is_killed_in_the_middle_leaves_the_old_file(old: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(old)], check=False, timeout=PATIENCE_S)
    assert everything(old) == everything(OLD)


def test_many_may_open_an_older_file_at_once(old: Path) -> None:
    opened: list[SqliteJournal] = []
    barrier = threading.Barrier(8)

    def open_it() -> None:
        barrier.wait(PATIENCE_S)
        opened.append(SqliteJournal(old))

    assert together([open_it] * 8) == []
    assert len(opened) == 8
    for number, journal in enumerate(opened):
        put(journal, f"r{number}", *log(f"r{number}"))
    for journal in opened:
        assert len(journal.runs()) == 11
        journal.close()


def test_a_version_that_knows_only_the_old_layout_cannot_write_into_the_new_one(
    old: Path, journal: SqliteJournal
) -> None:
    insert = "INSERT INTO events (run_id, seq, at, schema, type, body) VALUES ('openrun33333', 4, 1.0, 2, 'x', '{}')"
    with closing(sqlite3.connect(old)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(insert)


def test_an_older_file_is_recovered_like_a_new_one(old: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("DELETE FROM events WHERE run_id = 'limitedrun22' AND seq = 2")
    report = recover(old, tmp_path / "new.db")
    assert report.whole == ("answeredrun1", "openrun33333")
    assert [(run.run_id, run.events) for run in report.damaged] == [("limitedrun22", 5)]


# --- from the layout before -------------------------------------------------------------------------------


def test_a_file_of_the_layout_before_gets_mailboxes_and_keeps_every_row(tmp_path: Path) -> None:
    path = Path(shutil.copy(BEFORE, tmp_path / "journal.db"))
    before = everything(BEFORE)
    assert before.pop("layout") == [(2,)]
    journal = SqliteJournal(path)
    after = everything(path)
    assert (after.pop("layout"), after.pop("letters")) == ([(LAYOUT,)], [])
    assert after == before
    assert [(run.run_id, run.status) for run in journal.runs()] == [
        ("answeredrun1", "answered"),
        ("talkedrun222", "cancelled"),
        ("openrun33333", "open"),
    ]
    assert journal.runs() == [summarise(run.run_id, list(journal.read(run.run_id))) for run in journal.runs()]
    assert journal.post("openrun33333", Saying("hello"), at=9.0).number == 1
    assert list(journal.check()) == []
    journal.close()


def test_a_file_of_the_layout_before_is_recovered(tmp_path: Path) -> None:
    path = Path(shutil.copy(BEFORE, tmp_path / "journal.db"))
    assert set(recover(path, tmp_path / "new.db").whole) == {"answeredrun1", "talkedrun222", "openrun33333"}


def test_letters_are_recovered_with_their_runs(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    put(journal, "r1", *log("r1"))
    letters = [journal.post("r1", Saying(text), at=9.0) for text in ("one", "two")]
    journal.close()
    recover(tmp_path / "journal.db", tmp_path / "new.db")
    saved = SqliteJournal(tmp_path / "new.db")
    assert saved.letters({"r1": 0}) == letters
    saved.close()
