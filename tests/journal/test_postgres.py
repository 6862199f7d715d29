"""What is Postgres' own: tables in a schema, one exchange for a group, processes, forks, damage. `test_contract.py` has
what all stores promise."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cutting_proxy import CuttingProxy
from journal_world import PATIENCE_S, log, put, said, start, together
from postgres_server import PASSWORD, PostgresServer

from tenlines.core import events as ev
from tenlines.errors import JournalConflict, JournalDamaged, JournalError, JournalFormatError, RunNotFound
from tenlines.journal import postgres, postgres_layout
from tenlines.journal.postgres import PostgresJournal
from tenlines.journal.postgres_layout import LAYOUT
from tenlines.ports import Saying


@pytest.fixture
def journal(postgres_address: str) -> Iterator[PostgresJournal]:
    """An empty one."""
    journal = PostgresJournal(postgres_address)
    yield journal
    journal.close()


def run(address: str, statement: str) -> Any:
    """Do something to the tables behind the journal's back."""
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else cursor.rowcount


def wait_for(is_so: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.005)


# --- tables ---------------------------------------------------------------------------------------------


def test_many_that_open_a_new_database_at_once_make_its_tables_once(postgres_address: str) -> None:
    ready, opened = threading.Barrier(8), []

    def work() -> None:
        ready.wait(PATIENCE_S)
        opened.append(PostgresJournal(postgres_address))

    assert together([work] * 8) == []
    assert len(opened) == 8
    assert run(postgres_address, "SELECT version FROM tenlines_layout") == [(LAYOUT,)]
    for journal in opened:
        journal.close()


def test_tables_of_a_newer_version_are_left_alone(journal: PostgresJournal, postgres_address: str) -> None:
    run(postgres_address, f"UPDATE tenlines_layout SET version = {LAYOUT + 1}")
    with pytest.raises(JournalFormatError, match=rf"layout {LAYOUT + 1}, this one knows {LAYOUT}\): upgrade tenlines"):
        PostgresJournal(postgres_address)


def test_tables_of_the_layout_before_get_mailboxes_and_keep_every_row(
    postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setattr(postgres_layout, "MIGRATIONS", postgres_layout.MIGRATIONS[:1])
        then.setattr(postgres_layout, "LAYOUT", 1)
        before = PostgresJournal(postgres_address)
        put(before, "r1", *log("r1", 5))
        lines, events = before.runs(), list(before.read("r1"))
        before.close()
    after = PostgresJournal(postgres_address)
    assert (after.runs(), list(after.read("r1"))) == (lines, events)
    assert after.letters({"r1": 0}) == []
    assert after.post("r1", Saying("hello"), at=9.0).number == 1
    assert run(postgres_address, "SELECT version FROM tenlines_layout") == [(LAYOUT,)]
    after.close()


def test_each_schema_is_a_journal_of_its_own(postgres_server: PostgresServer) -> None:
    one, two = (PostgresJournal(postgres_server.new_schema()) for _ in range(2))
    put(one, "r1", *log("r1"))
    put(two, "r1", *log("r1", 5))
    assert (len(list(one.read("r1"))), len(list(two.read("r1")))) == (3, 5)
    assert postgres_server.run("SELECT to_regclass('public.tenlines_runs')") == [(None,)]
    one.close()
    two.close()


def test_a_database_that_does_not_keep_text_as_utf_8_is_refused(postgres_server: PostgresServer) -> None:
    postgres_server.run("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(JournalError, match="keeps text as SQL_ASCII, a journal needs UTF8: make a database with"):
        PostgresJournal(postgres_server.address("plain"))


def test_a_user_without_rights_is_told_so(postgres_server: PostgresServer) -> None:
    address = postgres_server.new_database()
    postgres_server.run("DO $$ BEGIN CREATE ROLE guest LOGIN PASSWORD 'x'; EXCEPTION WHEN others THEN NULL; END $$")
    guests = address.replace(f"tenlines:{PASSWORD}@", "guest:x@")
    with pytest.raises(JournalError, match="permission denied for schema public"):
        PostgresJournal(guests)
    PostgresJournal(address).close()
    run(address, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    reading = PostgresJournal(guests)  # the tables are there: nothing has to be made
    assert reading.runs() == []
    with pytest.raises(JournalError, match=r"permission denied for table tenlines_.*grant its user the right"):
        put(reading, "r1", *log("r1"))
    reading.close()


# --- writing --------------------------------------------------------------------------------------------


def write_together(journal: PostgresJournal, address: str, work: list[Any]) -> dict[str, Exception]:
    """Commit in as many threads, all in one group but the first. Returns what failed, by run."""
    failed: dict[str, Exception] = {}

    def commit(run_id: str, events: list[Any]) -> None:
        try:
            put(journal, run_id, *events)
        except JournalError as error:
            failed[run_id] = error

    threads = [threading.Thread(target=commit, args=one) for one in work]
    with psycopg.connect(address) as connection:
        connection.execute("LOCK TABLE tenlines_runs")  # the first group waits, and all others behind it
        threads[0].start()
        wait_for(lambda: journal._unsettled == 1 and journal._queue.empty())
        for thread in threads[1:]:
            thread.start()
        wait_for(lambda: journal._unsettled == len(threads))
    for thread in threads:
        thread.join(PATIENCE_S)
    return failed


def test_a_group_of_commits_is_one_exchange(postgres_server: PostgresServer, postgres_address: str) -> None:
    database = postgres_address.rpartition("/")[2]
    with CuttingProxy(postgres_server.port) as proxy:
        journal = PostgresJournal(postgres_server.address(database, port=proxy.port))
        put(journal, "r0", *log("r0"))
        before = proxy.messages
        put(journal, "r0", said(3), said(4, "x" * 5000))
        assert proxy.messages == before + 1
        work = [(f"r{number}", log(f"r{number}")) for number in range(1, 22)]
        assert write_together(journal, postgres_address, work) == {}
        assert proxy.messages <= before + 4  # the first, then all others; the client may have the statement prepared
        assert {line.events for line in journal.runs()} == {3, 5}
        journal.close()


def test_in_a_group_only_those_fail_that_conflict(journal: PostgresJournal, postgres_address: str) -> None:
    put(journal, "taken", *log("taken", session="chat", turn=1))
    work = [
        ("r1", log("r1")),
        ("r2", log("r2")),
        ("r3", log("r3", session="chat", turn=1)),
        ("r4", log("r4", session="chat", turn=2)),
        ("taken", [said(7)]),
        ("r5", [said(1)]),
    ]
    failed = write_together(journal, postgres_address, work)
    assert {run_id: type(error) for run_id, error in failed.items()} == dict.fromkeys(
        ("r3", "taken", "r5"), JournalConflict
    )
    assert {line.run_id: line.events for line in journal.runs()} == {"r1": 3, "r2": 3, "r4": 3, "taken": 3}


def test_in_a_group_only_that_fails_which_the_server_refuses(journal: PostgresJournal, postgres_address: str) -> None:
    work = [(f"r{number}", log(f"r{number}")) for number in range(5)]
    failed = write_together(journal, postgres_address, [*work, ("bad", log("bad", session="a\0b", turn=1))])
    assert list(failed) == ["bad"]
    assert "NUL" in str(failed["bad"])
    assert len(journal.runs()) == 5
    assert list(journal.read("r4")) == log("r4")


def test_text_without_a_place_in_a_column_is_shown_in_another_way_and_kept_as_it_is(journal: PostgresJournal) -> None:
    first = start("r1", agent="a\0b", owner="o\0")
    put(journal, "r1", first)
    assert list(journal.read("r1")) == [first]
    assert [(line.agent, line.owner) for line in journal.runs()] == [("a\ufffdb", "o\ufffd")]


def test_much_text_goes_in_several_statements(journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "MOST_BYTES", 12_000)
    batches = [postgres.Batch(f"r{number}", log(f"r{number}", 30)) for number in range(20)]
    assert [len(group) for group in postgres._groups(batches)] == [3] * 6 + [2]
    journal._write(batches)
    assert [line.events for line in journal.runs()] == [30] * 20


def test_a_deadlock_is_tried_again(journal: PostgresJournal, postgres_address: str) -> None:
    run(
        postgres_address,
        """
        CREATE SEQUENCE times;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('times') <= 2 THEN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END IF;
            RETURN new;
        END $$;
        CREATE TRIGGER fail BEFORE INSERT ON tenlines_events FOR EACH ROW EXECUTE FUNCTION fail();
        """,
    )
    put(journal, "r1", *log("r1"))
    assert list(journal.read("r1")) == log("r1")
    assert run(postgres_address, "SELECT last_value > 2 FROM times") == [(True,)]


def test_large_texts_are_kept_once_and_as_long_as_a_run_needs_them(
    journal: PostgresJournal, postgres_address: str
) -> None:
    for run_id in ("r1", "r2"):
        put(journal, run_id, start(run_id), said(1, "x" * 9000), said(2, "x" * 9000), said(3, run_id * 3000))
    count = "SELECT count(*) FROM tenlines_blobs"
    assert run(postgres_address, count) == [(3,)]
    assert journal.delete(["r1"]) == 1
    assert run(postgres_address, count) == [(2,)]
    assert len(list(journal.read("r2"))) == 4
    assert journal.delete(["r2", "r1"]) == 1
    assert run(postgres_address, count) == [(0,)]


def test_a_text_that_is_used_while_its_last_user_is_deleted_stays(
    journal: PostgresJournal, postgres_address: str
) -> None:
    put(journal, "old", start("old"), said(1, "x" * 9000))
    deleting = PostgresJournal(postgres_address)
    with psycopg.connect(postgres_address) as connection:  # somebody writes the same text, and has not committed
        batch = postgres.Batch("new", [start("new"), said(1, "x" * 9000)])
        connection.execute(postgres._WRITE, postgres._parameters([batch]))
        thread = threading.Thread(target=deleting.delete, args=(["old"],))
        thread.start()
        waits = "SELECT 1 FROM pg_locks WHERE NOT granted"
        wait_for(lambda: run(postgres_address, waits) or not thread.is_alive())
        assert thread.is_alive()
    thread.join(PATIENCE_S)
    deleting.close()
    assert [line.run_id for line in journal.runs()] == ["new"]
    assert list(journal.read("new"))[1] == said(1, "x" * 9000)


# --- reading --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [postgres.CHUNK - 1, postgres.CHUNK, postgres.CHUNK + 1, 2 * postgres.CHUNK])
def test_a_run_is_read_whole_however_it_falls_into_chunks(journal: PostgresJournal, count: int) -> None:
    events = log("r1", count)
    put(journal, "r1", *events)
    assert list(journal.read("r1")) == events
    for first in (1, count - 1, count, count + 5):
        assert list(journal.read("r1", first)) == events[first:]


@pytest.mark.slow
def test_ten_thousand_events_are_read_in_a_moment(journal: PostgresJournal) -> None:
    put(journal, "r1", *log("r1", 10_000))
    began = time.process_time()
    assert sum(1 for _ in journal.read("r1")) == 10_000
    assert time.process_time() - began < 1.0  # 0.06 s; the server's own time comes to about as much


def test_many_threads_read_at_once_over_few_connections(postgres_address: str) -> None:
    journal = PostgresJournal(postgres_address, connections=2)
    put(journal, "r1", *log("r1", 500))
    unfinished = [iter(journal.read("r1")) for _ in range(10)]
    assert [next(events).seq for events in unfinished] == [0] * 10  # who reads slowly holds no connection
    read: list[int] = []
    threads = [threading.Thread(target=lambda: read.append(len(list(journal.read("r1"))))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert read == [500] * 10
    journal.close()


DAMAGES = {
    "a flipped byte": (
        "UPDATE tenlines_events SET body = replace(body, '\"r1 1', '\"r1 7')",
        "does not match its digest",
    ),
    "another time": ("UPDATE tenlines_events SET at = 77 WHERE seq = 1", "columns do not say what its text says"),
    "another place": ("UPDATE tenlines_events SET seq = 9 WHERE seq = 3", "event 3 of run r1 is missing"),
    "a missing event": ("DELETE FROM tenlines_events WHERE seq = 1", "event 1 of run r1 is missing"),
    "a missing end": ("DELETE FROM tenlines_events WHERE seq = 3", "has 3 events, but 4 were written"),
    "no events": ("DELETE FROM tenlines_events", "has 0 events, but 4 were written"),
    "an event too many": ("UPDATE tenlines_runs SET events = 3", "has 4 events, but 3 were written"),
    "no line": ("DELETE FROM tenlines_runs", "has no line in the list of runs, and 4 events"),
    "a missing text": ("DELETE FROM tenlines_blobs", "kept out of line, is missing"),
    "another text": ("UPDATE tenlines_blobs SET body = 'y'", "the text .* is damaged"),
    "other texts": ("UPDATE tenlines_events SET blobs = '{}'", "does not match its digest"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_changed_behind_its_back_is_damaged(
    journal: PostgresJournal, postgres_address: str, damage: str
) -> None:
    put(journal, "r1", *log("r1"), said(3, "x" * 9000))
    assert len(list(journal.read("r1"))) == 4
    statement, words = DAMAGES[damage]
    assert run(postgres_address, statement)
    with pytest.raises(JournalDamaged, match=words):
        list(journal.read("r1"))


def test_a_run_that_is_deleted_while_it_is_read_is_not_called_damaged(journal: PostgresJournal) -> None:
    put(journal, "r1", *log("r1", 500))
    events = journal.read("r1")
    next(events)
    journal.delete(["r1"])
    with pytest.raises(RunNotFound):
        list(events)


# --- processes ------------------------------------------------------------------------------------------

TAKES_OVER = """
import sys
from tenlines.core.events import RunResumed
from tenlines.journal.owner import new_owner
from tenlines.journal.postgres import PostgresJournal
journal = PostgresJournal(sys.argv[1])
seq = len(list(journal.read("r1")))
journal.append("r1", RunResumed(seq=seq, at=9.0, owner=new_owner()))
journal.commit("r1")
"""

FORKS = """
import os, sys
sys.path.insert(0, sys.argv[2])
from journal_world import log, put, said
from tenlines.journal.postgres import PostgresJournal
journal = PostgresJournal(sys.argv[1])
put(journal, "r1", *log("r1"))
assert len(list(journal.read("r1"))) == 3
for number in range(2):
    child = os.fork()
    if child == 0:
        assert len(list(journal.read("r1"))) == 3 + number
        put(journal, f"child{number}", *log(f"child{number}"))
        journal.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    put(journal, "r1", said(3 + number))
    assert len(list(journal.read("r1"))) == 4 + number
print(sorted(line.run_id for line in journal.runs()))
"""


def python(script: str, *arguments: str) -> str:
    """Run a script in another process, in which every warning is an error. Returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


@pytest.mark.slow
def test_who_is_overtaken_by_another_process_writes_nothing_more(
    journal: PostgresJournal, postgres_address: str
) -> None:
    put(journal, "r1", *log("r1"))
    python(TAKES_OVER, postgres_address)
    with pytest.raises(JournalConflict, match="run r1 already has an event 3: another process has taken the run over"):
        put(journal, "r1", said(3))
    assert [type(event) for event in journal.read("r1", 3)] == [ev.RunResumed]


@pytest.mark.slow
def test_a_forked_process_has_connections_of_its_own_and_none_needs_closing(postgres_address: str) -> None:
    began = time.monotonic()
    assert python(FORKS, postgres_address, str(Path(__file__).parent)) == "['child0', 'child1', 'r1']\n"
    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.slow
def test_nothing_of_it_is_imported_before_it_is_used() -> None:
    script = "import sys, tenlines.cli, tenlines.journal; print('psycopg' in sys.modules)"
    assert python(script) == "False\n"
