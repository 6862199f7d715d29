"""`doctor`, `prune`, `export` and `import`: a journal is looked at, saved, thinned out and moved, and nothing is lost
or made up on the way."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from journal_world import live, log, postgres_store, put, said, start

from tenlines.cli import options, prune
from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.errors import JournalError
from tenlines.journal import migrations, sqlite_tables, sqlite_upkeep
from tenlines.journal.owner import new_owner
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import RunSummary

Tenlines = Callable[..., Any]
LARGE = "y" * 9000


def file_of(home: Path) -> Path:
    return home / "journal.db"


@contextmanager
def journal_at(path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(path)) as journal:
        yield journal


def bodies(path: Path, run_id: str) -> list[bytes]:
    with journal_at(path) as journal:
        return [codec.encode(event) for event in journal.read(run_id)]


def run_ids(path: Path) -> set[str]:
    with journal_at(path) as journal:
        return {one.run_id for one in journal.runs()}


def ended(run_id: str, at: float = 4.0, text: str = LARGE, **fields: Any) -> list[ev.AnyEvent]:
    """A run that ended at that time, with a text that is kept out of line."""
    stop = ev.CancelRequested(seq=2, at=3.0, mode="now", reason=run_id)
    end = ev.RunEnded(seq=3, at=at, status="cancelled", reason=run_id)
    return [start(run_id, **fields), said(1, text), stop, end]


def say(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.fixture
def three(home: Path) -> Path:
    """A journal of three runs, all of it in one file."""
    path = file_of(home)
    with journal_at(path) as journal:
        for run_id in ("r1", "r2", "r3"):
            put(journal, run_id, *ended(run_id))
    return path


# --- doctor: what is well -------------------------------------------------------------------------------


def test_a_sound_journal_is_said_to_be_well_and_what_it_is(tenlines: Tenlines, three: Path) -> None:
    done = tenlines("doctor")
    assert (done.code, done.err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in done.out.splitlines()[:-1])
    assert facts["journal"] == str(three)
    assert facts["layout"] == str(migrations.LAYOUT)
    assert facts["runs"] == "3 runs, 0 open; 12 events"
    assert facts["log"] == "none waited"
    assert facts["size"].endswith("kB")
    assert facts["disk"].endswith("free")
    assert facts["durability"].startswith("process: ")
    assert done.out.endswith("all is well\n")


def test_for_programs_it_is_one_object(tenlines: Tenlines, three: Path) -> None:
    size = three.stat().st_size
    value = json.loads(tenlines("doctor", "--json").out)
    assert value.pop("free_disk_bytes") > 0
    assert value == {
        "journal": str(three),
        "layout": migrations.LAYOUT,
        "layout_before": None,
        "bytes": size,
        "log_bytes": 0,
        "durability": "process",
        "runs": 3,
        "open": 0,
        "events": 12,
        "findings": [],
    }


def test_looking_never_makes_a_journal(tenlines: Tenlines, home: Path) -> None:
    for words in (["doctor"], ["prune", "--older-than", "1d"], ["export", "last"], ["doctor", "--recover", "new.db"]):
        done = tenlines(*words)
        assert (done.code, done.out) == (2, "")
        assert "there is no journal" in done.err
    assert [one.name for one in home.iterdir()] == ["tools.py"]


def test_a_log_that_waits_is_said_to_be_a_part_of_the_journal(tenlines: Tenlines, home: Path, tmp_path: Path) -> None:
    with journal_at(tmp_path / "live.db") as journal:
        put(journal, "r1", *ended("r1"))
        for name in ("live.db", "live.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / name.replace("live", "crashed"))
    done = tenlines("doctor", "--journal", "crashed.db")
    assert done.code == 0
    assert "waited in crashed.db-wal, a part of the journal" in done.out
    assert "none waited" in tenlines("doctor", "--journal", "crashed.db").out


def test_an_older_layout_is_brought_up_and_that_is_said_once(tenlines: Tenlines, home: Path) -> None:
    events = log("r1")
    with closing(sqlite3.connect(file_of(home), isolation_level=None)) as connection:
        migrations.STEPS[0](connection)
        connection.execute("PRAGMA user_version = 1")
        rows = [(one.seq, one.at, 3, type(one).__name__, codec.encode(one).decode()) for one in events]
        connection.executemany("INSERT INTO events VALUES ('r1', ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO runs VALUES (1, 'r1', 1.0, 'a', 'm', 'do it', 'open')")
    done = tenlines("doctor")
    assert done.code == 0
    assert f"layout      {migrations.LAYOUT}, brought to it from layout 1 just now" in done.out
    assert "just now" not in tenlines("doctor").out


# --- doctor: what is found ------------------------------------------------------------------------------

DAMAGE = {
    "an event was changed": "UPDATE events SET body = replace(body, 'r1', 'r9') WHERE run_id = 'r1' AND seq = 2",
    "an event is missing": "DELETE FROM events WHERE run_id = 'r1' AND seq = 2",
    "the line is missing": "DELETE FROM runs WHERE run_id = 'r1'",
    "the line counts too many": "UPDATE runs SET events = 9 WHERE run_id = 'r1'",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_run_is_named_with_the_next_move_and_the_others_are_saved(
    tenlines: Tenlines, three: Path, statement: str
) -> None:
    before = {run_id: bodies(three, run_id) for run_id in ("r2", "r3")}
    say(three, statement)
    done = tenlines("doctor", "--journal", "journal.db")
    assert done.code == 1
    assert "run r1: " in done.out
    assert "next: tenlines doctor --journal journal.db --recover NEW.db" in done.out
    assert "run r2" not in done.out
    assert tenlines("doctor", "r2").code == 0
    assert tenlines("doctor", "--recover", "saved.db").code == 1
    assert {run_id: bodies(Path("saved.db"), run_id) for run_id in run_ids(Path("saved.db"))} == before


def test_findings_for_programs_have_a_kind_and_a_next_move(tenlines: Tenlines, three: Path) -> None:
    say(three, "UPDATE runs SET steps = 7 WHERE run_id = 'r2'")
    say(three, DAMAGE["an event was changed"])
    done = tenlines("doctor", "--json")
    assert done.code == 1
    found = json.loads(done.out)["findings"]
    assert [(one["kind"], one["run_id"]) for one in found] == [("remark", "r2"), ("damage", "r1")]
    assert found[0]["next"].startswith("no run is lost; ")
    assert set(found[0]) == {"kind", "run_id", "what", "next"}
    (alone,) = json.loads(tenlines("doctor", "r1", "--json").out)["findings"]
    assert alone == found[1]


def test_runs_are_named_as_everywhere(tenlines: Tenlines, three: Path) -> None:
    assert tenlines("doctor", "last", "r2").code == 0
    done = tenlines("doctor", "nobody")
    assert done.code == 2
    assert "no run begins with" in done.err


def test_a_run_that_lost_its_process_is_found(tenlines: Tenlines, three: Path) -> None:
    fields = new_owner().split("/")
    dead, there = "/".join([*fields[:3], "1", "00"]), "/".join(["elsewhere", *fields[1:]])
    with journal_at(three) as journal:
        put(journal, "alive", *log("alive", owner=new_owner()))
        put(journal, "dead", *log("dead", owner=dead))
        put(journal, "there", *log("there", owner=there))
    done = tenlines("doctor")
    assert done.code == 1
    assert f"run dead: it is open, and process {os.getpid()} on {fields[0]} is gone" in done.out
    assert "tenlines resume dead, or all of them: tenlines resume --all" in done.out
    assert "1 finding\n" in done.out
    assert [one["kind"] for one in json.loads(tenlines("doctor", "dead", "--json").out)["findings"]] == ["crashed"]
    assert tenlines("doctor", "alive", "there").code == 0


def test_a_disk_that_is_nearly_full_is_found(tenlines: Tenlines, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(three.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1_200_000))
    done = tenlines("doctor")
    assert done.code == 1
    assert "the disk has 1.2 MB left" in done.out
    assert "tenlines prune" in done.out


@pytest.mark.parametrize("content", ["", "my notes"])
def test_a_file_that_is_too_short_for_a_journal_is_found_and_left_as_it_is(
    tenlines: Tenlines, home: Path, content: str
) -> None:
    file_of(home).write_text(content)
    done = tenlines("doctor")
    assert done.code == 1
    assert f"has {len(content)} bytes: it holds no journal" in done.out
    assert file_of(home).read_text() == content


def test_a_short_file_of_something_else_is_never_made_a_journal(tenlines: Tenlines, home: Path) -> None:
    Path("notes.txt").write_text("my notes")
    done = tenlines("runs", "--journal", "notes.txt")
    assert done.code == 4
    assert "is too short to be a journal" in done.err
    assert Path("notes.txt").read_text() == "my notes"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def spoiled_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The same journal with something wrong, in many places."""
    page = 4096
    for at in range(50, len(data), len(data) // 9):
        yield f"byte {at}", flipped(data, at)
    for number in range(len(data) // page):
        yield f"page {number}", data[: number * page] + bytes(page) + data[(number + 1) * page :]
    for cut in (1, 99, 100, page, len(data) // 2, len(data) - 1):
        yield f"cut at {cut}", data[:cut]


@pytest.mark.slow
def test_whatever_is_wrong_with_a_file_it_is_found_or_it_cannot_be_read_and_what_is_saved_is_as_it_was(
    tenlines: Tenlines, three: Path, tmp_path: Path
) -> None:
    whole, data = {run_id: bodies(three, run_id) for run_id in ("r1", "r2", "r3")}, three.read_bytes()
    codes = set()
    for number, (what, spoiled) in enumerate(spoiled_files(data)):
        bad, new = tmp_path / f"{number}.db", tmp_path / f"{number}-new.db"
        bad.write_bytes(spoiled)
        kept = tenlines("doctor", "--journal", str(bad), "--recover", str(new))
        assert bad.read_bytes() == spoiled, what
        done = tenlines("doctor", "--journal", str(bad))
        codes.add(done.code)
        assert done.code in (0, 1, 4), (what, done.err)
        assert kept.code in (0, 1, 4), (what, kept.err)
        saved = {run_id: bodies(new, run_id) for run_id in run_ids(new)} if new.exists() else {}
        assert saved.items() <= whole.items(), what
        if done.code == 0 or kept.code == 0:
            assert saved == whole, what
        if done.code == 4:
            assert ("saves" in done.err) == (kept.code != 4), (what, done.err, kept.err)
    assert codes >= {1, 4}


# --- doctor: what cannot be read ------------------------------------------------------------------------


def test_a_file_that_is_cut_cannot_be_opened_and_it_is_said_what_can_be_saved(tenlines: Tenlines, three: Path) -> None:
    data = three.read_bytes()
    three.write_bytes(data[: -4096 * 2])
    done = tenlines("doctor")
    assert done.code == 4
    assert f"size        {(len(data) - 8192) / 1000:.1f} kB" in done.out
    assert "--recover NEW.db saves " in done.err
    assert " of the 3 runs found in it" in done.err
    value = json.loads(tenlines("doctor", "--json").out)
    assert set(value) == {
        *("journal", "layout", "bytes", "log_bytes", "free_disk_bytes", "durability", "error", "advice")
    }
    assert value["advice"] in done.err


GARBAGE = {"random bytes": os.urandom(20_000), "text": b"no journal at all\n" * 2000, "zeros": bytes(8192)}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_file_of_something_else_cannot_be_read_and_nothing_is_made_of_it(
    tenlines: Tenlines, home: Path, content: bytes
) -> None:
    file_of(home).write_bytes(content)
    done = tenlines("doctor")
    assert done.code == 4
    assert "--recover cannot help, no run was found in it" in done.err
    done = tenlines("doctor", "--recover", "new.db")
    assert done.code == 4
    assert "no run was found" in done.err
    assert file_of(home).read_bytes() == content
    assert not Path("new.db").exists()


def test_a_database_of_something_else_cannot_be_read(tenlines: Tenlines, home: Path) -> None:
    say(file_of(home), "CREATE TABLE songs (title)")
    done = tenlines("doctor")
    assert done.code == 4
    assert "is a database of something else" in done.err
    assert "--recover cannot help" in done.err


def test_a_directory_is_no_journal(tenlines: Tenlines, home: Path) -> None:
    done = tenlines("doctor", "--journal", str(home))
    assert (done.code, done.out) == (4, "")
    assert "is a directory; name the file of the journal" in done.err


def test_a_newer_journal_needs_a_newer_tenlines_and_no_recovery(tenlines: Tenlines, three: Path) -> None:
    say(three, f"PRAGMA user_version = {migrations.LAYOUT + 1}")
    done = tenlines("doctor")
    assert done.code == 4
    assert "upgrade tenlines" in done.err
    assert "--recover" not in done.err
    assert f"layout      {migrations.LAYOUT + 1}" in done.out
    done = tenlines("doctor", "--recover", "new.db")
    assert done.code == 4
    assert "upgrade tenlines" in done.err
    assert not Path("new.db").exists()


# --- doctor --recover -----------------------------------------------------------------------------------


def test_what_was_saved_and_what_was_not_is_said_with_the_file_of_its_events(tenlines: Tenlines, three: Path) -> None:
    written = bodies(three, "r1")
    say(three, DAMAGE["an event was changed"])
    done = tenlines("doctor", "--recover", "new.db", "--json")
    assert done.code == 1
    value = json.loads(done.out)
    (lost,) = value.pop("damaged")
    assert value == {"into": "new.db", "whole": ["r2", "r3"]}
    assert (lost["run_id"], lost["events"], lost["file"]) == ("r1", 3, "r1.damaged.jsonl")
    assert "does not match its digest" in lost["why"]
    assert Path("r1.damaged.jsonl").read_bytes().splitlines() == [*written[:2], written[3]]
    done = tenlines("doctor", "--recover", "again.db")
    assert "2 runs saved into again.db, byte for byte" in done.out
    assert "run r1 is not whole: " in done.out
    assert "3 events of it in r1-2.damaged.jsonl" in done.out
    assert "tenlines runs --journal again.db" in done.out


def test_recovering_overwrites_nothing(tenlines: Tenlines, three: Path) -> None:
    Path("new.db").write_text("mine")
    done = tenlines("doctor", "--recover", "new.db")
    assert done.code == 2
    assert "is not overwritten" in done.err
    assert Path("new.db").read_text() == "mine"


def test_recovering_takes_the_whole_of_a_file(tenlines: Tenlines, three: Path) -> None:
    assert "name no run" in tenlines("doctor", "r1", "--recover", "new.db").err
    done = tenlines("doctor", "--recover", "new.db", "--journal", "postgresql://nobody@127.0.0.1/x")
    assert done.code == 2
    assert "restore a database from its backup" in done.err


@pytest.fixture
def holder(three: Path) -> Iterator[None]:
    """Another process that has the journal open."""
    script = f"import sys\nfrom tenlines.journal.sqlite import SqliteJournal\nSqliteJournal({str(three)!r}).runs()\n"
    words = [sys.executable, "-c", script + "print('open', flush=True)\nsys.stdin.read()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield
        process.communicate()


@pytest.mark.slow
@pytest.mark.usefixtures("holder")
def test_a_journal_that_another_process_has_open_is_not_recovered_nor_made_smaller(
    tenlines: Tenlines, three: Path
) -> None:
    done = tenlines("doctor", "--recover", "new.db")
    assert done.code == 4
    assert "another process has" in done.err
    assert not Path("new.db").exists()
    done = tenlines("prune", "--older-than", "1d", "--yes")
    assert done.code == 0
    assert "3 runs deleted\n" in done.out
    assert "because another process has it open; what was freed is used for later runs" in done.out
    assert tenlines("doctor").code == 0


# --- prune: what goes -----------------------------------------------------------------------------------


def line(run_id: str, last_at: float, status: str = "answered", session: str = "", turn: int = 0) -> RunSummary:
    return RunSummary(run_id, last_at - 1, last_at, "a", "m", "t", status, 3, session=session, turn=turn)


def chosen(*lines: RunSummary, statuses: tuple[str, ...] = ("answered", "max_steps"), keep: int = 0) -> list[str]:
    """What goes of what happened before 100; the lines are the newest first."""
    return [one.run_id for one in prune._chosen(lines, 100.0, frozenset(statuses), keep)]


def test_what_ended_before_goes_the_oldest_first() -> None:
    assert chosen(line("c", 100), line("b", 99), line("a", 50, "max_steps")) == ["a", "b"]


def test_only_some_statuses_go() -> None:
    assert chosen(line("b", 99), line("a", 50, "max_steps"), statuses=("max_steps",)) == ["a"]


def test_the_newest_are_kept_however_old() -> None:
    assert chosen(line("c", 60), line("b", 99), line("a", 50), keep=1) == ["a", "c"]
    assert chosen(line("b", 99), line("a", 50), keep=5) == []


def test_a_session_that_is_in_use_keeps_all_its_runs() -> None:
    assert chosen(line("b", 100, session="s", turn=2), line("a", 50, session="s", turn=1)) == []
    for status in ("open", "awaiting_approval"):
        assert chosen(line("b", 99, status, "s", 2), line("a", 50, session="s", turn=1)) == []


def test_a_session_goes_its_oldest_run_first_whatever_the_order_in_the_journal() -> None:
    assert chosen(line("a", 50, session="s", turn=1), line("b", 51, session="s", turn=2)) == ["a", "b"]


def test_the_end_of_a_session_stays_while_more_of_it_stays() -> None:
    session = (line("b", 99, "max_steps", "s", 2), line("a", 50, "answered", "s", 1))
    assert chosen(*session, statuses=("answered",)) == ["a"]
    assert chosen(*session, statuses=("max_steps",)) == []
    assert chosen(*session, keep=1) == ["a"]
    assert chosen(line("x", 99, session="other", turn=1), *session, keep=1) == ["a", "b"]


@pytest.mark.parametrize("text", ["30", "d", "-1d", "1.5d", "30 days", "", "1m", "99999999d"])
def test_an_age_is_a_number_of_hours_days_or_weeks(tenlines: Tenlines, three: Path, text: str) -> None:
    done = tenlines("prune", f"--older-than={text}", "--yes")
    assert done.code == 2
    assert "--older-than must be a number of hours, days or weeks" in done.err
    assert options.read_age("--older-than", " 2W ") == 14 * 86_400
    assert options.read_age("--older-than", "12h") == 43_200


@pytest.mark.parametrize(
    ("status", "says"), [("open", "did not end"), ("awaiting_approval", "did not end"), ("done", "must be answered")]
)
def test_only_runs_that_ended_can_be_named(tenlines: Tenlines, three: Path, status: str, says: str) -> None:
    done = tenlines("prune", "--older-than", "1d", "--status", status, "--yes")
    assert done.code == 2
    assert says in done.err


# --- prune: the deed ------------------------------------------------------------------------------------


def test_what_went_is_gone_and_what_shares_texts_with_it_is_whole(tenlines: Tenlines, three: Path) -> None:
    with journal_at(three) as journal:
        put(journal, "open", *log("open", 2), said(2, LARGE))
        put(journal, "young", *ended("young", at=4e9))
        young = [codec.encode(event) for event in journal.read("young")]
    done = tenlines("prune", "--older-than", "2w", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "3 runs deleted\n" in done.out
    assert run_ids(three) == {"open", "young"}
    assert bodies(three, "young") == young
    assert len(bodies(three, "open")) == 3
    assert tenlines("doctor").code == 0


def test_the_file_becomes_smaller(tenlines: Tenlines, home: Path) -> None:
    with journal_at(file_of(home)) as journal:
        for number in range(30):
            put(journal, f"r{number}", *ended(f"r{number}", text=f"{number}" * 9000))
    before = file_of(home).stat().st_size
    done = tenlines("prune", "--older-than", "1d", "--keep", "1", "--yes", "--json")
    value, after = json.loads(done.out), file_of(home).stat().st_size
    assert value["bytes_given_back"] == before - after > 200_000
    assert value["deleted"] == len(value["runs"]) == 29
    assert tenlines("doctor").code == 0


def test_a_plan_says_how_much_and_changes_nothing(tenlines: Tenlines, three: Path) -> None:
    before = three.read_bytes()
    done = tenlines("prune", "--older-than", "30d", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "3 runs would be deleted\n" in done.out
    assert "status      cancelled 3\n" in done.out
    assert "content     12 events, " in done.out
    assert " days ago, the newest " in done.out
    value = json.loads(tenlines("prune", "--older-than", "30d", "--dry-run", "--json").out)
    assert value.pop("text_bytes") == pytest.approx(12000, abs=1500)  # the large text is there once
    assert value == {
        "runs": ["r1", "r2", "r3"],
        "statuses": {"cancelled": 3},
        "events": 12,
        "oldest_at": 4.0,
        "newest_at": 4.0,
        "deleted": 0,
    }
    assert three.read_bytes() == before
    assert "no run is to be deleted" in tenlines("prune", "--older-than", "9999w", "--yes").out


def test_what_only_a_run_that_stays_needs_is_not_counted(three: Path) -> None:
    some, others = sqlite_upkeep.bytes_of(three, ["r1"]), sqlite_upkeep.bytes_of(three, ["r1", "r2", "r3"])
    assert 3 * some < others - 8000


def test_without_a_terminal_nothing_goes_unless_that_is_said(tenlines: Tenlines, three: Path) -> None:
    for words in ((), ("--json",)):
        done = tenlines("prune", "--older-than", "1d", *words)
        assert (done.code, done.out) == (2, "")
        assert "say --yes" in done.err
    assert len(run_ids(three)) == 3


@pytest.mark.slow
def test_on_a_terminal_it_is_asked_first(process: Callable[..., Any], three: Path) -> None:
    refused = process("prune", "--older-than", "1d", terminal=True)
    refused.wait_for("Delete for good? [y/N]")
    assert "3 runs would be deleted" in refused.seen
    refused.type("n\n")
    assert refused.end().code == 1
    assert len(run_ids(three)) == 3
    agreed = process("prune", "--older-than", "1d", terminal=True)
    agreed.wait_for("Delete for good? [y/N]")
    agreed.type("y\n")
    assert agreed.end().code == 0
    assert run_ids(three) == set()


def test_ctrl_c_in_the_middle_of_a_run_leaves_that_run_and_a_whole_journal(
    tenlines: Tenlines, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parted, seen = sqlite_tables.parted, []

    def interrupted(column: object) -> tuple[bytes, ...]:
        seen.append(column)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return parted(column)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_tables, "parted", interrupted)
        done = tenlines("prune", "--older-than", "1d", "--yes")
    assert done.code == 130
    assert "1 of 3 runs deleted; what is left went on meanwhile, or was not reached before Ctrl-C" in done.out
    assert run_ids(three) == {"r2", "r3"}
    assert tenlines("doctor").code == 0
    assert tenlines("prune", "--older-than", "1d", "--yes").code == 0


class Interrupted(sqlite3.Connection):
    """Ctrl-C comes while the file is written anew."""

    def set_progress_handler(self, handler: Any, n: int) -> None:
        def asked() -> Any:
            signal.raise_signal(signal.SIGINT)
            return handler()

        super().set_progress_handler(asked, 1)


def test_ctrl_c_while_the_file_is_written_anew_leaves_it_as_it_was(
    tenlines: Tenlines, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_upkeep, "sqlite3", type("Patched", (), {**vars(sqlite3)}))
        patch.setattr(sqlite_upkeep.sqlite3, "connect", lambda *a, **k: connect(*a, factory=Interrupted, **k))
        done = tenlines("prune", "--older-than", "1d", "--yes")
    assert done.code == 0
    assert "3 runs deleted" in done.out
    assert "the file was not made smaller: interrupted" in done.out
    assert tenlines("doctor").code == 0


def test_a_disk_that_is_too_full_to_write_the_file_anew_is_no_failure(
    tenlines: Tenlines, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> str:
        raise JournalError(f"the journal {path} could not be made smaller: the disk is full")

    monkeypatch.setattr(sqlite_upkeep, "give_back", full)
    done = tenlines("prune", "--older-than", "1d", "--yes")
    assert done.code == 0
    assert "the file was not made smaller: the journal" in done.out


def test_a_run_that_goes_on_while_it_is_asked_stays(
    tenlines: Tenlines, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = prune._chosen

    def slow(*given: Any) -> list[RunSummary]:
        lines = choose(*given)
        with journal_at(three) as journal:
            put(journal, "r2", ev.RunResumed(seq=4, at=2e9, owner="me"))
        return lines

    monkeypatch.setattr(prune, "_chosen", slow)
    done = tenlines("prune", "--older-than", "1d", "--yes")
    assert "2 of 3 runs deleted" in done.out
    assert len(bodies(three, "r2")) == 5


# --- export and import ----------------------------------------------------------------------------------


def test_a_run_goes_to_another_journal_as_it_is(tenlines: Tenlines, home: Path) -> None:
    with journal_at(file_of(home)) as journal:
        run_id = live(journal, large="é" * 5000)
    assert tenlines("export", "last", "-o", "run.jsonl").code == 0
    assert tenlines("export", run_id[:5]).out == Path("run.jsonl").read_text()
    done = tenlines("import", "run.jsonl", "--journal", "other.db")
    events = bodies(file_of(home), run_id)
    assert (done.code, done.out, done.err) == (0, f"run {run_id}: {len(events)} events, answered\n", "")
    assert bodies(Path("other.db"), run_id) == events
    assert tenlines("doctor", "--journal", "other.db").code == 0


def test_a_run_can_come_from_standard_input(tenlines: Tenlines, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tenlines("export", "r2").out.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = tenlines("import", "-", "--journal", "other.db", "--json")
    assert json.loads(done.out) == {"run_id": "r2", "events": 4, "status": "cancelled", "notices": []}
    assert run_ids(Path("other.db")) == {"r2"}


def test_a_run_that_is_there_already_is_not_stored_again(tenlines: Tenlines, three: Path) -> None:
    assert tenlines("export", "r2", "-o", "run.jsonl").code == 0
    done = tenlines("import", "run.jsonl")
    assert (done.code, done.out) == (4, "")
    assert "has a run r2 already" in done.err


def test_the_turn_of_a_session_is_not_taken_twice(tenlines: Tenlines, three: Path) -> None:
    for name, run_id in (("one.db", "s1"), ("two.db", "s2")):
        with journal_at(Path(name)) as journal:
            put(journal, run_id, *ended(run_id, session="trip", turn=1))
    assert tenlines("export", "s1", "--journal", "one.db", "-o", "run.jsonl").code == 0
    done = tenlines("import", "run.jsonl", "--journal", "two.db")
    assert done.code == 4
    assert run_ids(Path("two.db")) == {"s2"}
    assert tenlines("doctor", "--journal", "two.db").code == 0


def test_nothing_is_overwritten_and_nothing_half_written(tenlines: Tenlines, three: Path) -> None:
    Path("there.jsonl").write_text("mine")
    done = tenlines("export", "r1", "-o", "there.jsonl")
    assert done.code == 2
    assert "is not overwritten" in done.err
    assert Path("there.jsonl").read_text() == "mine"
    say(three, DAMAGE["an event was changed"])
    done = tenlines("export", "r1", "-o", "new.jsonl")
    assert (done.code, done.out) == (4, "")
    assert "tenlines doctor" in done.err
    assert not Path("new.jsonl").exists()
    assert tenlines("export", "r1").out == ""
    assert tenlines("export", "nobody").code == 2


def test_a_run_that_did_not_end_is_said_to_be_so(tenlines: Tenlines, home: Path) -> None:
    with journal_at(file_of(home)) as journal:
        put(journal, "r1", *log("r1"))
    assert "did not end" in tenlines("export", "r1", "-o", "run.jsonl").err
    done = tenlines("import", "run.jsonl", "--journal", "other.db")
    assert done.code == 0
    assert "go on with it in one journal only" in done.err


def test_a_file_that_is_cut_is_only_taken_when_that_is_said(tenlines: Tenlines, three: Path) -> None:
    data = tenlines("export", "r1").out.encode()
    Path("cut.jsonl").write_bytes(data[: data.rindex(b'{"type":"RunEnded"') + 20])
    done = tenlines("import", "cut.jsonl", "--journal", "new.db")
    assert (done.code, done.out) == (4, "")
    assert "cut.jsonl: run r1: the file is cut in line 5, after 20 bytes: 1 of 4 events are missing" in done.err
    assert "--recover" in done.err
    assert not Path("new.db").exists()
    done = tenlines("import", "cut.jsonl", "--journal", "new.db", "--recover")
    assert (done.code, done.out) == (0, "run r1: 3 events, open\n")
    assert "1 of 4 events are missing, from event 3 on" in done.err
    assert bodies(Path("new.db"), "r1") == bodies(three, "r1")[:3]
    done = tenlines("import", "cut.jsonl", "--journal", "more.db", "--recover", "--json")
    assert "1 of 4" in json.loads(done.out)["notices"][0]


def test_what_show_prints_can_be_taken_too_but_proves_nothing(tenlines: Tenlines, three: Path) -> None:
    Path("shown.jsonl").write_text(tenlines("show", "r3", "--json").out)
    assert "neither header nor end" in tenlines("import", "shown.jsonl", "--journal", "new.db").err
    assert tenlines("import", "shown.jsonl", "--journal", "new.db", "--recover").code == 0
    assert bodies(Path("new.db"), "r3") == bodies(three, "r3")


def no_log() -> str:
    """Events that are well written, but not those of a run."""
    events = [start("r1"), ev.CallStarted(seq=1, at=2.0, step=1, position=0, key="k")]
    return "".join(codec.encode(event).decode() + "\n" for event in events)


REFUSED: dict[str, tuple[Callable[[str], str], str]] = {
    "a line was changed": (lambda text: text.replace('"r1"', '"r7"', 1), "is damaged"),
    "a text was changed": (lambda text: text.replace("yyy", "yyz", 1), "was changed"),
    "it is newer": (lambda text: text.replace('"tenlines_run":1', '"tenlines_run":9'), "upgrade tenlines"),
    "it is no run": (lambda _: '{"messages": []}\n', "this is not the file of a run"),
    "it is no JSON": (lambda _: "To whom it may concern\n", "this is not the file of a run"),
    "it is empty": (lambda _: "", "holds no event"),
    "it is not a log": (lambda _: no_log(), "not the log of a run"),
}


@pytest.mark.parametrize(("change", "says"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_not_what_was_written_is_refused_even_then(
    tenlines: Tenlines, three: Path, change: Callable[[str], str], says: str
) -> None:
    Path("bad.jsonl").write_text(change(tenlines("export", "r1").out))
    done = tenlines("import", "bad.jsonl", "--journal", "new.db", "--recover")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("tenlines: bad.jsonl: ")
    assert says in done.err
    assert not Path("new.db").exists()


def test_what_is_not_there_or_keeps_nothing_is_a_mistake(tenlines: Tenlines, three: Path) -> None:
    Path("run.jsonl").write_text(tenlines("export", "r1").out)
    for words, says in (
        (("nothing.jsonl",), "name a file with a run"),
        (("run.jsonl", "--journal", "memory"), "name a file or a database"),
        (("run.jsonl", "--journal", "mysql://x"), "not supported"),
    ):
        done = tenlines("import", *words)
        assert done.code == 2
        assert says in done.err


# --- Postgres -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_goes_through_a_database_and_back_and_the_database_is_kept_by_the_same_commands(
    tenlines: Tenlines, home: Path, postgres_server: Any
) -> None:
    address = postgres_server.new_database()
    with journal_at(file_of(home)) as journal:
        run_id = live(journal, large="x" * 5000)
        put(journal, "old", *ended("old"))
    for one in (run_id, "old"):
        assert tenlines("export", one, "-o", f"{one}.jsonl").code == 0
        assert tenlines("import", f"{one}.jsonl", "--journal", address).code == 0
    assert tenlines("export", run_id, "--journal", address).out == Path(f"{run_id}.jsonl").read_text()
    assert tenlines("export", run_id, "--journal", address, "-o", "back.jsonl").code == 0
    assert tenlines("import", "back.jsonl", "--journal", "back.db").code == 0
    assert bodies(Path("back.db"), run_id) == bodies(file_of(home), run_id)

    done = tenlines("doctor", "--journal", address)
    assert (done.code, done.err) == (0, "")
    assert "runs        2 runs, 0 open; 16 events" in done.out
    assert "durability  power" in done.out
    assert "a-word-nobody-may-see" not in done.out
    done = tenlines("prune", "--older-than", "1d", "--yes", "--journal", address)
    assert done.out == "1 run deleted\nwhat was freed is used for later runs\n"

    database = address.rpartition("/")[2]
    postgres_server.run("UPDATE tenlines_events SET body = body || ' ' WHERE seq = 2", database)
    done = tenlines("doctor", "--journal", address, "--json")
    assert done.code == 1
    (found,) = json.loads(done.out)["findings"]
    assert (found["kind"], found["run_id"]) == ("damage", run_id)
    assert "backup" in found["next"]
    store = postgres_store(address)
    assert len(store.open().runs()) == 1
    store.close()


def test_a_database_that_cannot_be_reached_is_the_error_of_every_command(tenlines: Tenlines, home: Path) -> None:
    address = "postgresql://me:secret@127.0.0.1:1/x"
    for words in (["doctor"], ["export", "last"], ["prune", "--older-than", "1d"]):
        done = tenlines(*words, "--journal", address)
        assert done.code == 4
        assert "could not be opened" in done.err
        assert "secret" not in done.err
