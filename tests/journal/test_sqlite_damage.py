"""A damaged file never gives other events, or fewer without saying so; whole runs are copied out of it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_world import live, log, put, said, start

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.errors import JournalDamaged, JournalError
from tenlines.journal.recovery import recover
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import Saying

PAGE = 512
"""Small pages, so that a small file has many."""
Bodies = dict[str, list[bytes]]


def bodies(journal: SqliteJournal, run_id: str) -> list[bytes]:
    return [codec.encode(event) for event in journal.read(run_id)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bodies]:
    """A file of a few runs, with all its content in one file; and what they are."""
    folder = tmp_path_factory.mktemp("sound")
    journal = SqliteJournal(folder / "big.db")
    runs = [live(journal, steps=2), live(journal, large="é" * 3000, steps=2)]
    put(journal, "short", *log("short", 4, session="chat", turn=1))
    written = {run_id: bodies(journal, run_id) for run_id in [*runs, "short"]}
    journal.close()
    with sqlite3.connect(folder / "big.db", isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert [one.name for one in folder.iterdir()] == ["big.db"]
    return folder / "big.db", written


def spoiled(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def wrong_answers(path: Path, written: Bodies) -> Iterator[str]:
    """What a journal says that is neither what was written nor an error of ours."""
    try:
        journal = SqliteJournal(path, patience_s=0)
    except JournalError:
        return
    try:
        for run_id, expected in written.items():
            try:
                found = bodies(journal, run_id)
            except JournalError:
                continue
            if found != expected:
                yield f"{run_id}: {len(found)} of {len(expected)} events"
        try:
            journal.runs()
            journal.runs(status="open", session="chat")
        except JournalError:
            pass
        list(journal.check())
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
    finally:
        with contextlib.suppress(JournalError):
            journal.close()


def clean(path: Path) -> None:
    for name in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{name}").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_file_that_is_cut_anywhere_gives_what_was_written_or_an_error(
    sound: tuple[Path, Bodies], tmp_path: Path
) -> None:
    data, path = sound[0].read_bytes(), tmp_path / "cut.db"
    assert len(data) >= 30 * PAGE
    wrong = []
    for end in range(0, len(data), PAGE // 2):
        clean(path)
        path.write_bytes(data[:end])
        wrong += [f"cut at {end}: {what}" for what in wrong_answers(path, sound[1])]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x80])
def test_a_flipped_byte_gives_what_was_written_or_an_error(
    sound: tuple[Path, Bodies], tmp_path: Path, mask: int
) -> None:
    data, path = sound[0].read_bytes(), tmp_path / "flipped.db"
    wrong = []
    for at in [*range(100), *range(100 + mask % 16, len(data), 16)]:
        clean(path)
        path.write_bytes(spoiled(data, at, mask))
        wrong += [f"byte {at}: {what}" for what in wrong_answers(path, sound[1])]
    assert wrong == []


# --- recovering -----------------------------------------------------------------------------------------


def recovered(path: Path, folder: Path, written: Bodies) -> tuple[set[str], list[str]]:
    """The whole runs that come out of a file, and what is wrong with them."""
    into = folder / "new.db"
    report = recover(path, into)
    journal = SqliteJournal(into)
    whole = {run.run_id: bodies(journal, run.run_id) for run in journal.runs()}
    wrong = [run_id for run_id, found in whole.items() if found != written.get(run_id)]
    wrong += [finding.what for finding in journal.check()]
    assert set(whole) == set(report.whole)
    for run in report.damaged:
        lines = run.file.read_bytes().splitlines() if run.file is not None else []
        assert len(lines) == run.events
        if run.run_id in written and not set(lines) <= set(written[run.run_id]):
            wrong.append(f"the lines of {run.run_id}")
    journal.close()
    return set(whole), wrong


@pytest.mark.slow
def test_only_whole_runs_come_out_of_a_damaged_file_and_every_undamaged_run_does(
    sound: tuple[Path, Bodies], tmp_path: Path
) -> None:
    data, written = sound[0].read_bytes(), sound[1]
    saved = 0
    for number, at in enumerate(range(0, len(data), 211)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "bad.db").write_bytes(spoiled(data, at, 0xFF))
        found, wrong = recovered(folder / "bad.db", folder, written)
        assert wrong == [], at
        saved += len(found)
        assert (folder / "bad.db").read_bytes() == spoiled(data, at, 0xFF)  # it is not touched
        shutil.rmtree(folder)
    assert saved > number * len(written) * 0.6  # most bytes belong to one run alone


def test_a_sound_file_is_recovered_as_a_whole(sound: tuple[Path, Bodies], tmp_path: Path) -> None:
    found, wrong = recovered(sound[0], tmp_path, sound[1])
    assert (found, wrong) == (set(sound[1]), [])
    original, copy = SqliteJournal(sound[0]), SqliteJournal(tmp_path / "new.db")
    assert copy.runs() == original.runs()
    original.close()
    copy.close()
    assert list(tmp_path.glob("*.jsonl")) == []


def test_what_is_still_in_the_log_is_recovered_too(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    put(journal, "r1", *log("r1"))
    for name in ("j.db", "j.db-wal"):
        shutil.copy(tmp_path / name, tmp_path / f"crashed-{name}")
    written = {"r1": bodies(journal, "r1")}
    journal.close()
    assert (tmp_path / "crashed-j.db-wal").stat().st_size > 0
    assert recovered(tmp_path / "crashed-j.db", tmp_path, written) == ({"r1"}, [])


BREAKS: dict[str, tuple[str, int]] = {
    "an event is missing": ("DELETE FROM events WHERE run_id = 'r1' AND seq = 5", 9),
    "the last event is missing": ("DELETE FROM events WHERE run_id = 'r1' AND seq = 9", 9),
    "the first event is missing": ("DELETE FROM events WHERE run_id = 'r1' AND seq = 0", 9),
    "an event was changed": ("UPDATE events SET body = replace(body, 'r1 5', 'r1 6') WHERE seq = 5", 9),
    "an event is of another place": ("UPDATE events SET seq = 10 WHERE run_id = 'r1' AND seq = 5", 9),
    "the last event is at no place": ("UPDATE events SET seq = x'09' WHERE run_id = 'r1' AND seq = 9", 9),
    "an event has another time": ("UPDATE events SET at = 99 WHERE run_id = 'r1' AND seq = 5", 9),
    "an event has another kind": ("UPDATE events SET type = 'RunEnded' WHERE run_id = 'r1' AND seq = 5", 9),
    "an event is of another format": ("UPDATE events SET schema = 2 WHERE run_id = 'r1' AND seq = 5", 9),
    "an event is not text": ("UPDATE events SET body = CAST(body AS BLOB) WHERE run_id = 'r1' AND seq = 5", 9),
    "an event has no digest": ("UPDATE events SET digest = x'' WHERE run_id = 'r1' AND seq = 5", 9),
    "an event has texts that are not its own": ("UPDATE events SET blobs = 7 WHERE run_id = 'r1' AND seq = 5", 9),
    "an event has lost its texts": ("UPDATE events SET blobs = NULL WHERE run_id = 'r1'", 9),
    "a text is missing": ("DELETE FROM blobs", 9),
    "a text was changed": ("UPDATE blobs SET body = CAST(replace(body, 'yy', 'yz') AS BLOB)", 9),
    "a text is no bytes": ("UPDATE blobs SET body = 7", 9),
    "the line is missing": ("DELETE FROM runs WHERE run_id = 'r1'", 10),
    "the line counts too few": ("UPDATE runs SET events = 9 WHERE run_id = 'r1'", 10),
    "the line counts too many": ("UPDATE runs SET events = 11 WHERE run_id = 'r1'", 10),
    "the line does not count": ("UPDATE runs SET events = 'ten' WHERE run_id = 'r1'", 10),
}


RUN = [*log("r1", 8), said(8, "y" * 9000), said(9)]


def broken_journal(folder: Path, statement: str) -> SqliteJournal:
    """Two runs, of which the first is damaged."""
    journal = SqliteJournal(folder / "j.db")
    put(journal, "r1", *RUN)
    put(journal, "r2", *log("r2"))
    with sqlite3.connect(folder / "j.db", isolation_level=None) as connection:
        connection.execute(statement)
    connection.close()
    return journal


@pytest.mark.parametrize(("statement", "left"), BREAKS.values(), ids=BREAKS)
def test_damage_is_an_error_when_read_a_finding_when_looked_for_and_kept_out_of_the_new_journal(
    tmp_path: Path, statement: str, left: int
) -> None:
    journal = broken_journal(tmp_path, statement)
    seen: list[AnyEvent] = []
    with pytest.raises(JournalError) as caught:
        seen.extend(journal.read("r1"))
    assert isinstance(caught.value, JournalDamaged) or "format 2" in str(caught.value)
    assert str(tmp_path / "j.db") in str(caught.value)
    assert seen == RUN[: len(seen)]
    assert len(list(journal.read("r2"))) == 3
    fatal = [finding for finding in journal.check() if finding.is_fatal]
    assert {finding.run_id for finding in fatal} - {""} <= {"r1"}
    assert fatal
    journal.close()
    report = recover(tmp_path / "j.db", tmp_path / "new" / "j.db")
    assert report.whole == ("r2",)
    (lost,) = report.damaged
    assert (lost.run_id, lost.events) == ("r1", left)
    assert lost.file == tmp_path / "new" / "r1.damaged.jsonl"
    kept = [codec.decode(line) for line in lost.file.read_bytes().splitlines()]
    assert len(kept) == left
    assert all(event == RUN[event.seq] for event in kept)


def test_a_line_that_is_wrong_is_found_and_does_no_harm(tmp_path: Path) -> None:
    journal = broken_journal(tmp_path, "UPDATE runs SET status = 'answered', steps = 7 WHERE run_id = 'r1'")
    findings = list(journal.check())
    assert [(one.run_id, one.is_fatal) for one in findings] == [("r1", False)] * 2
    assert findings[0].what == "the list of runs says status 'answered', its events say 'open'"
    journal.close()
    assert recover(tmp_path / "j.db", tmp_path / "new.db").whole == ("r1", "r2")
    copy = SqliteJournal(tmp_path / "new.db")
    assert list(copy.check()) == []
    copy.close()


def test_texts_that_nobody_needs_and_uses_that_are_not_recorded_are_found(tmp_path: Path) -> None:
    journal = broken_journal(tmp_path, "DELETE FROM uses")
    assert [(one.run_id, one.is_fatal) for one in journal.check()] == [("r1", True), ("", False)]
    journal.close()


def test_a_sound_journal_has_nothing_to_find(sound: tuple[Path, Bodies], tmp_path: Path) -> None:
    shutil.copy(sound[0], tmp_path / "j.db")
    journal = SqliteJournal(tmp_path / "j.db")
    assert list(journal.check()) == list(journal.check(deep=False)) == []
    journal.close()


def test_a_log_that_is_not_that_of_a_run_is_found(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    put(journal, "r1", start("r1"), ev.CallStarted(seq=1, at=2.0, step=1, position=0, key="k"))
    put(journal, "r2", start("another"))
    assert [(one.run_id, one.is_fatal) for one in journal.check()] == [("r2", True), ("r1", True)]
    journal.close()


def test_recovering_never_writes_over_anything(sound: tuple[Path, Bodies], tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("mine")
    with pytest.raises(JournalError, match="exists already"):
        recover(sound[0], tmp_path / "there.db")
    with pytest.raises(JournalError, match="there is no journal"):
        recover(tmp_path / "nowhere.db", tmp_path / "new.db")
    assert (tmp_path / "there.db").read_text() == "mine"
    assert not (tmp_path / "new.db").exists()


def test_what_is_left_of_damaged_runs_is_never_written_over_another_file(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    for run_id in ("r/1", "r_1"):
        put(journal, run_id, *log(run_id))
    journal.close()
    with sqlite3.connect(tmp_path / "j.db", isolation_level=None) as connection:
        connection.execute("DELETE FROM events WHERE seq = 1")
    connection.close()
    (tmp_path / "r_1.damaged.jsonl").write_text("mine")
    report = recover(tmp_path / "j.db", tmp_path / "new.db")
    files = [run.file for run in report.damaged]
    assert files == [tmp_path / "r_1-2.damaged.jsonl", tmp_path / "r_1-3.damaged.jsonl"]
    assert [len(file.read_bytes().splitlines()) for file in files if file is not None] == [2, 2]
    assert (tmp_path / "r_1.damaged.jsonl").read_text() == "mine"


def test_of_a_recovery_that_fails_no_journal_is_left(
    sound: tuple[Path, Bodies], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tenlines.journal.sqlite_tables.insert_run", full)
    with pytest.raises(JournalError, match=r"new\.db could not be recovered: No space left"):
        recover(sound[0], tmp_path / "new.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_journal_gives_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database, but long enough to look like one " * 50)
    report = recover(tmp_path / "bad.db", tmp_path / "new.db")
    assert (report.whole, report.damaged) == ((), ())


def test_letters_that_cannot_be_read_or_have_no_run_are_found_and_keep_nobody_from_the_others(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    put(journal, "r1", *log("r1"))
    posted = [journal.post("r1", Saying(text), at=9.0) for text in ("one", "two", "three")]
    with contextlib.closing(sqlite3.connect(tmp_path / "j.db", isolation_level=None)) as connection:
        connection.execute("UPDATE letters SET body = '{' WHERE number = 2")
        connection.execute("""INSERT INTO letters VALUES ('gone', 1, 2.0, '{"type":"say","text":"x"}')""")
    assert journal.letters({"r1": 0}) == [posted[0], posted[2]]
    assert [(one.run_id, one.what, one.is_fatal) for one in journal.check()] == [
        ("", "1 letters are kept although their runs are not there", False),
        ("r1", "letter 2 to it cannot be read, and is never delivered", False),
    ]
    journal.close()
