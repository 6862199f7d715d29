"""The store in a SQLite file: durability, blobs, many processes, forks, and everything that can fail."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from journal_world import PATIENCE_S, live, log, put, said, start

from tenlines import Agent, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.errors import (
    ConfigError,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalFormatError,
    RunNotFound,
)
from tenlines.journal import open_journal
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    journal = SqliteJournal(path)
    yield journal
    journal.close()


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as another program opens it."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        yield connection


def ask(path: Path, query: str) -> Any:
    with raw(path) as connection:
        return connection.execute(query).fetchone()[0]


def script(text: str, *words: object) -> subprocess.Popen[str]:
    """Another process."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def said_by(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out


# --- the file -------------------------------------------------------------------------------------------


def test_the_file_and_its_folder_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "a" / "b" / "j.db")
    put(journal, "r1", *log("r1"))
    files = list((tmp_path / "a" / "b").iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    journal.close()
    assert [file.name for file in (tmp_path / "a" / "b").iterdir()] == ["j.db"]


@pytest.mark.parametrize("name", ["file:x.db", "a?b#c%20.db", "é 🚲.db", ":memory:", "-wal"])
def test_a_file_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    journal = SqliteJournal(name)
    put(journal, "r1", *log("r1"))
    monkeypatch.chdir("/")  # where it was opened is where it stays
    assert list(journal.read("r1")) == log("r1")
    journal.close()
    assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_durability_is_how_sqlite_waits_for_the_disk(path: Path, durability: Any, synchronous: int) -> None:
    journal = SqliteJournal(path, durability=durability)
    writer = journal._file.writer()
    assert writer.execute("PRAGMA synchronous").fetchone()[0] == synchronous
    assert writer.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    put(journal, "r1", *log("r1"))
    journal.close()


def test_another_durability_is_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match="'disk'"):
        SqliteJournal(path, durability="disk")  # type: ignore[arg-type]
    assert not path.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from journal_world import log, put, said
from tenlines.journal.sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[1])
put(journal, "r1", *log("r1"))
journal.append("r1", said(3))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_what_was_committed_survives_the_death_of_the_process(path: Path) -> None:
    process = script(KILLED, path, Path(__file__).parent)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL
    journal = SqliteJournal(path)
    assert list(journal.read("r1")) == log("r1")
    journal.close()


# --- texts out of line ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_text_is_kept_once_for_all_runs(path: Path, journal: SqliteJournal) -> None:
    large = "x" * 200_000
    for _ in range(10):
        live(journal, large=large)
    for number in range(10):
        put(journal, f"r{number}", start(f"r{number}"), said(1, large), said(2, large))
    assert ask(path, "SELECT max(length(body)) FROM events") < 4096
    assert ask(path, "SELECT count(*) FROM blobs") == 3  # the two rows that were looked up, and the text alone
    assert [event.parts[0].text for event in journal.read("r3", 1)] == [large] * 2  # type: ignore[union-attr]
    assert list(journal.check()) == []


def test_a_text_goes_with_the_last_run_that_uses_it(path: Path, journal: SqliteJournal) -> None:
    for run_id in ("r1", "r2"):
        put(journal, run_id, start(run_id), said(1, "x" * 9000), said(2, run_id * 5000))
    assert ask(path, "SELECT count(*) FROM blobs") == 3
    assert journal.delete(["r1"]) == 1
    assert ask(path, "SELECT count(*) FROM blobs") == 2
    assert len(list(journal.read("r2"))) == 3
    assert list(journal.check()) == []
    assert journal.delete(["r2"]) == 1
    assert [ask(path, f"SELECT count(*) FROM {table}") for table in ("runs", "events", "blobs", "uses")] == [0] * 4


@pytest.mark.slow
def test_a_run_that_is_deleted_while_it_is_read_is_not_taken_for_damaged(journal: SqliteJournal) -> None:
    put(journal, "r1", start("r1"), *(said(seq) for seq in range(1, 2500)))
    reading = journal.read("r1")
    assert next(reading).seq == 0
    journal.delete(["r1"])
    with pytest.raises(RunNotFound):
        list(reading)


def test_a_long_run_is_read_in_pieces_without_gaps(journal: SqliteJournal) -> None:
    whole = [start("r1"), *(said(seq) for seq in range(1, 3001))]
    put(journal, "r1", *whole)
    assert list(journal.read("r1")) == whole
    for first in (0, 1, 999, 1000, 1001, 2999, 3000, 3001, 5000):
        assert list(journal.read("r1", first)) == whole[first:]


# --- many at once ---------------------------------------------------------------------------------------

WRITER = """
import sys, threading
sys.path.insert(0, sys.argv[2])
from journal_world import log, put
from tenlines.journal.sqlite import SqliteJournal

def work(number):
    journal = SqliteJournal(sys.argv[1])
    for at in range(3):
        run_id = f"{sys.argv[3]}-{number}-{at}"
        for event in log(run_id, 5):
            put(journal, run_id, event)
    journal.close()

sys.stdin.readline()
threading.excepthook = lambda failure: print("failed", failure.exc_value)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.slow
def test_eight_threads_in_each_of_four_processes_make_a_file_and_write_at_once(path: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen([*words, str(number)], text=True, **pipes) for number in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert (out, err, process.returncode) == ("", "", 0)
    journal = SqliteJournal(path)
    runs = journal.runs()
    assert len(runs) == 4 * 8 * 3
    assert all(list(journal.read(run.run_id)) == log(run.run_id, 5) for run in runs)
    assert list(journal.check()) == []
    journal.close()


def test_reading_does_not_wait_for_who_writes(path: Path, journal: SqliteJournal) -> None:
    put(journal, "r1", *log("r1"))
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE runs SET events = 99")
        assert list(journal.read("r1")) == log("r1")
        assert journal.runs()[0].events == 3


def test_a_file_that_another_program_holds_is_waited_for_and_then_said_to_be(path: Path) -> None:
    patient, hasty = SqliteJournal(path), SqliteJournal(path, patience_s=0.05)
    put(patient, "r1", *log("r1"))
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match=r"journal\.db could not be written: another program holds it .*; close"):
            put(hasty, "r1", said(3))
        waiting = threading.Thread(target=put, args=(patient, "r1", said(3)))
        waiting.start()
        other.execute("COMMIT")
        waiting.join(PATIENCE_S)
    assert list(hasty.read("r1")) == [*log("r1"), said(3)]
    patient.close()
    hasty.close()


def test_one_run_of_a_group_that_fails_leaves_the_others_their_events(journal: SqliteJournal) -> None:
    put(journal, "lost", *log("lost"))

    async def commit(run_id: str, *events: ev.Event) -> str:
        for event in events:
            journal.append(run_id, event)  # type: ignore[arg-type]
        try:
            await journal.acommit(run_id)
        except JournalError as error:
            return type(error).__name__
        return "written"

    async def main() -> list[str]:
        batches = [commit(f"r{number}", *log(f"r{number}")) for number in range(30)]
        batches.insert(10, commit("lost", said(7)))
        batches.insert(20, commit("half \ud800 a name", *log("x")))  # breaks the statement itself
        return await asyncio.gather(*batches)

    with journal._writing:  # all of them gather behind this
        loop = threading.Thread(target=lambda: results.extend(asyncio.run(main())))
        results: list[str] = []
        loop.start()
        while journal._unsettled < 32:
            pass
    loop.join(PATIENCE_S)
    assert results.count("written") == 30
    assert (results[10], results[20]) == ("JournalConflict", "JournalError")
    assert len(journal.runs()) == 31
    assert list(journal.check()) == []


# --- forks ----------------------------------------------------------------------------------------------


def test_a_forked_process_and_its_parent_both_go_on(path: Path, journal: SqliteJournal) -> None:
    put(journal, "r1", *log("r1"))
    asyncio.run(journal.acommit("r1"))
    ready, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            put(journal, "child", *log("child"))
            assert list(journal.read("r1")) == log("r1")
            os.write(ready[1], b"x")
            os.read(go_on[0], 1)  # the parent closes its last connection meanwhile
            put(journal, "child", said(3))
            code = 0
        finally:
            os._exit(code)
    os.read(ready[0], 1)
    put(journal, "parent", *log("parent"))
    journal.close()
    os.write(go_on[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    for end in (*ready, *go_on):
        os.close(end)
    again = SqliteJournal(path)
    assert list(again.read("child")) == [*log("child"), said(3)]
    assert list(again.read("parent")) == log("parent")
    assert list(again.check()) == []
    again.close()


@pytest.mark.slow
def test_a_process_that_forks_while_others_write_and_read_stops_neither(path: Path, journal: SqliteJournal) -> None:
    put(journal, "read", *log("read"))
    ended = threading.Event()

    def write() -> None:
        for seq, event in enumerate(log("written", 400)):
            put(journal, "written", event)
            assert len(list(journal.read("read"))) == 3, seq
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    forks = 0
    while not ended.is_set() or forks < 5:
        child = os.fork()
        if child == 0:
            try:
                put(journal, f"child{forks}", *log(f"child{forks}"))
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        forks += 1
    thread.join(PATIENCE_S)
    assert len(list(journal.read("written"))) == 400
    assert len(journal.runs()) == forks + 2
    assert list(journal.check()) == []


# --- failures -------------------------------------------------------------------------------------------


def acting_agent(journal: Any, before: Any) -> tuple[Agent, list[str]]:
    """An agent whose tool must not run when its intent cannot be written; `before` spoils the journal by then."""
    acted: list[str] = []

    @tool
    def send() -> str:
        """Act."""
        acted.append("send")
        return "sent"

    def model(messages: list[Any]) -> Reply:
        before()
        return Reply("x" * 50_000, calls=(ToolCall("c1", "send", "{}"),))

    return Agent(model, [send], journal=journal), acted


def test_on_a_full_disk_the_run_stops_before_it_acts_and_goes_on_when_there_is_room(
    path: Path, journal: SqliteJournal
) -> None:
    def fill() -> None:
        journal._file.writer().execute("PRAGMA max_page_count = 1")  # raised to what the file has

    agent, acted = acting_agent(journal, fill)
    result = agent.run_sync("go", raise_on_stop=False)
    assert (result.status, acted) == ("journal_error", [])
    assert result.reason.startswith(f"the journal {path} could not be written: the disk is full")
    assert result.reason.endswith("free some space, then resume the run")
    log_before = list(journal.read(result.run_id))
    assert isinstance(log_before[-1], ev.StepStarted)
    assert list(journal.check()) == []
    journal._file.writer().execute("PRAGMA max_page_count = 1000000")
    again = Agent(["done"], agent.tools.values(), journal=journal)
    assert again.resume_sync(result.run_id).answer == "done"


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sqlite import acting_agent
from tenlines.journal.sqlite import SqliteJournal

path = Path(sys.argv[1])
journal = SqliteJournal(path)

def limit():
    size = Path(f"{path}-wal").stat().st_size + 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

agent, acted = acting_agent(journal, limit)
result = agent.run_sync("go", raise_on_stop=False)
print(result.run_id, result.status, acted, result.reason)
journal.close()
"""


@pytest.mark.slow
def test_at_the_limit_on_the_size_of_files_the_run_stops_before_it_acts(path: Path) -> None:
    out = said_by(script(LIMITED, path, Path(__file__).parent))
    run_id, rest = out.split(" ", 1)
    assert rest.startswith(
        f"journal_error [] the journal {path} could not be written: the disk failed (disk I/O error)"
    )
    journal = SqliteJournal(path)
    assert isinstance(list(journal.read(run_id))[-1], ev.StepStarted)
    assert list(journal.check()) == []
    journal.close()


def test_a_file_that_cannot_be_written_is_said_to_be(path: Path) -> None:
    """Permissions do not stop root, so the connection itself is told not to write."""
    journal = SqliteJournal(path)
    put(journal, "r1", *log("r1"))
    journal._file.writer().execute("PRAGMA query_only = ON")
    with pytest.raises(
        JournalError, match=r"journal\.db could not be written: .*make the file and its folder writable"
    ):
        put(journal, "r1", said(3))
    journal._file.give_up_writer()
    assert list(journal.read("r1")) == log("r1")
    put(journal, "r1", ev.RunResumed(seq=3, at=9.0))
    journal.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_file_system_that_is_read_only_is_said_to_be(tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        SqliteJournal(place / "j.db").close()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        for name in ("j.db", "new.db", "folder/new.db"):
            with pytest.raises(JournalError, match=str(place)):
                SqliteJournal(place / name)
    finally:
        subprocess.run(["umount", place], check=True)


def test_what_is_no_journal_is_said_to_be_and_not_touched(tmp_path: Path) -> None:
    text, folder, other = tmp_path / "text", tmp_path / "folder", tmp_path / "other.db"
    text.write_bytes(b"no database, but long enough to look like one " * 50)
    folder.mkdir()
    with raw(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    before = other.read_bytes()
    for path, words in ((text, "no journal"), (folder, "folder"), (other, "something else")):
        with pytest.raises(JournalError, match=words) as caught:
            SqliteJournal(path)
        assert str(path) in str(caught.value)
    assert other.read_bytes() == before


def test_a_journal_of_a_newer_version_is_not_opened(path: Path, journal: SqliteJournal) -> None:
    with raw(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(JournalFormatError, match=r"newer version of tenlines \(layout 99.*upgrade"):
        SqliteJournal(path)


def test_events_of_a_newer_version_are_not_read(path: Path, journal: SqliteJournal) -> None:
    from tenlines.journal.rows import digest_of

    put(journal, "r1", *log("r1"))
    with raw(path) as connection:
        connection.create_function("digest_of", 4, digest_of)
        connection.execute("UPDATE events SET schema = 99, digest = digest_of(run_id, seq, 99, body) WHERE seq = 2")
    with pytest.raises(JournalFormatError, match=r"event 2 of run r1: .*upgrade"):
        list(journal.read("r1"))


def test_a_file_that_is_torn_while_it_is_open_is_an_error_of_ours(path: Path) -> None:
    journal = SqliteJournal(path)
    put(journal, "r1", *log("r1"), *(said(seq, "y" * 900) for seq in range(3, 200)))
    with raw(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(JournalDamaged, match="tenlines doctor"):
        list(SqliteJournal(path).read("r1"))
    with pytest.raises(JournalError):
        put(SqliteJournal(path), "r1", said(200))
    assert any(finding.is_fatal for finding in SqliteJournal(path).check())
    journal.close()


def test_a_conflict_says_who_it_was_lost_to(journal: SqliteJournal) -> None:
    put(journal, "r1", *log("r1"))
    for seq, words in ((1, "another process has taken the run over"), (9, "3 events, and 9 cannot be the next")):
        with pytest.raises(JournalConflict, match=words):
            put(journal, "r1", said(seq))
    with pytest.raises(JournalConflict, match="was it deleted"):
        put(journal, "r2", said(1))


# --- finding the journal of a name ----------------------------------------------------------------------


def test_a_name_leads_to_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENLINES_JOURNAL", str(tmp_path / "default.db"))
    assert isinstance(open_journal("memory"), MemoryJournal)
    for name in (str(tmp_path / "a.db"), tmp_path / "b.db", None):
        journal = open_journal(name, durability="power")
        assert isinstance(journal, SqliteJournal)
        journal.close()
    assert sorted(file.name for file in tmp_path.glob("*.db")) == ["a.db", "b.db", "default.db"]


def test_a_name_of_another_kind_is_a_mistake_of_the_user() -> None:
    with pytest.raises(ConfigError, match="mysql://"):
        open_journal("mysql://here/runs")
    with pytest.raises(ConfigError, match="Postgres waits for the server"):
        open_journal("postgresql://here/runs", durability="process")
    with pytest.raises(ConfigError, match="memory is gone"):
        open_journal("memory", durability="power")


def test_the_default_may_be_a_database_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENLINES_JOURNAL", "mysql://here/runs")
    with pytest.raises(ConfigError, match="mysql://"):
        open_journal()
    monkeypatch.setenv("TENLINES_JOURNAL", "postgresql://here/runs")
    with pytest.raises(ConfigError, match="Postgres waits for the server"):
        open_journal(durability="process")


def test_postgres_is_asked_for_where_its_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"tenlines\[postgres\]"):
        open_journal("postgres://here/runs")


def test_an_address_of_a_database_leads_there(postgres_address: str) -> None:
    journal: Any = open_journal(postgres_address, durability="power")
    put(journal, "r1", *log("r1"))
    assert list(journal.read("r1")) == log("r1")
    journal.close()
