"""A run as a file of lines: what is written is read again, and what is missing or changed is never overlooked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.transcript import Text, User
from tenlines.errors import JournalConflict, JournalDamaged, JournalError, JournalFormatError, RunNotFound
from tenlines.journal.files import RunFile, import_run, read_run, write_run
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal

VECTORS = sorted((Path(__file__).parent.parent / "vectors" / "events").glob("schema-*.jsonl"))


def log(*texts: str) -> list[ev.AnyEvent]:
    """A run in which somebody says these things."""
    start = ev.RunStarted(seq=0, at=1.0, run_id="run-1", agent="a", model="m", messages=(User((Text("Bjørn"),)),))
    return [start, *(ev.MessageQueued(seq=n, at=1.0 + n, parts=(Text(one),)) for n, one in enumerate(texts, 1))]


def journal_of(events: list[ev.AnyEvent]) -> MemoryJournal:
    journal = MemoryJournal()
    for event in events:
        journal.append("run-1", event)
    return journal


def file_of(events: list[ev.AnyEvent]) -> bytes:
    return b"".join(write_run(journal_of(events), "run-1"))


def read(data: bytes) -> RunFile:
    """As an open file gives its lines."""
    return read_run(data.splitlines(keepends=True))


TEN = log(*(f"né {number} 🚲" for number in range(1, 10)))
FILE = file_of(TEN)
LINES = FILE.splitlines(keepends=True)


def with_end(lines: list[bytes]) -> bytes:
    """The lines with an end that fits them."""
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return b"".join([*lines, json.dumps({"tenlines_run_end": 1, "sha256": digest}).encode()])


# --- there and back -------------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was() -> None:
    run = read(FILE)
    assert run == RunFile("run-1", tuple(TEN), ())
    assert run.is_whole


def test_the_file_is_a_header_one_event_a_line_and_an_end() -> None:
    assert json.loads(LINES[0]) == {"tenlines_run": 1, "run_id": "run-1", "schema": ev.SCHEMA, "events": 10}
    assert [line.rstrip(b"\n") for line in LINES[1:-1]] == [codec.encode(event) for event in TEN]
    assert json.loads(LINES[-1])["sha256"] == hashlib.sha256(b"".join(LINES[:-1])).hexdigest()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda file: file.stem)
def test_events_of_every_kind_and_format_come_back(vector: Path) -> None:
    schema = int(vector.stem.rpartition("-")[2])
    lines = vector.read_bytes().splitlines(keepends=True)
    events = tuple(codec.decode(line, schema) for line in lines)
    run_id = events[0].run_id if isinstance(events[0], ev.RunStarted) else ""
    journal = MemoryJournal()
    import_run(journal, RunFile(run_id, events))
    assert read_run(write_run(journal, run_id)) == RunFile(run_id, events)
    header = msgspec.json.encode({"tenlines_run": 1, "run_id": run_id, "schema": schema, "events": len(events)})
    assert read(with_end([header + b"\n", *lines])) == RunFile(run_id, events)


@settings(max_examples=50)
@given(st.lists(st.text(st.characters())), st.data())
def test_a_run_with_any_text_comes_back_and_a_part_of_it_is_a_part(texts: list[str], data: st.DataObject) -> None:
    events = [codec.decode(codec.encode(event)) for event in log(*texts)]
    whole = file_of(events)
    assert read(whole) == RunFile("run-1", tuple(events))
    cut = read(whole[: data.draw(st.integers(0, len(whole) - 2))])
    assert cut.events == tuple(events[: len(cut.events)])
    assert not cut.is_whole


def test_line_breaks_of_another_system_do_no_harm() -> None:
    for data in (FILE.replace(b"\n", b"\r\n"), FILE.rstrip(b"\n"), FILE + b"\n\r\n"):
        assert read(data) == RunFile("run-1", tuple(TEN))


def test_a_run_that_is_not_there_is_missed_before_a_file_is_made() -> None:
    with pytest.raises(RunNotFound):
        write_run(MemoryJournal(), "run-2")


# --- cut ----------------------------------------------------------------------------------------------


def test_a_file_that_is_cut_in_its_last_event_gives_all_the_others_and_says_so() -> None:
    start = sum(map(len, LINES[:10]))
    for place in range(start, start + len(LINES[10]) - 1):
        run = read(FILE[:place])
        assert run.events == tuple(TEN[:9])
        where = f"is cut in line 11, after {place - start} bytes" if place > start else "ends after line 10"
        assert run.notices == (f"the file {where}: 1 of 10 events are missing, from event 9 on",)


def test_a_file_that_is_cut_in_its_end_has_all_events_and_does_not_prove_them() -> None:
    start = sum(map(len, LINES[:11]))
    for place in range(start - 1, len(FILE) - 1):
        run = read(FILE[:place])
        assert run.events == tuple(TEN)
        assert run.notices[0].endswith("all 10 events are there, and the end that proves them is missing")


def test_a_file_that_is_cut_in_its_header_holds_nothing() -> None:
    for place in range(len(LINES[0]) - 1):
        assert read(FILE[:place]) == RunFile(
            "", (), (f"the file is cut in line 1, after {place} bytes: it holds no event",)
        )


def test_a_file_that_is_cut_after_its_header_knows_its_run() -> None:
    run = read(LINES[0] + LINES[1][:50])
    assert (run.run_id, run.events) == ("run-1", ())
    assert run.notices == ("the file is cut in line 2, after 50 bytes: 10 of 10 events are missing, from event 0 on",)


# --- damaged ------------------------------------------------------------------------------------------


def test_an_event_that_was_overwritten_with_zero_bytes_is_named() -> None:
    body = LINES[6].rstrip(b"\n")
    for spoiled in (
        b"\x00" * len(body) + b"\n",
        b"\x00" * len(LINES[6]),
        body[:40] + b"\x00" * (len(body) - 40) + b"\n",
    ):
        data = FILE.replace(LINES[6], spoiled)
        assert len(data) == len(FILE)
        with pytest.raises(
            JournalDamaged, match=rf"line 7 \(event 5\) is damaged: it holds {spoiled.count(0)} zero bytes"
        ):
            read(data)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*LINES[:6], *LINES[7:]], r"line 7 \(event 5\) is damaged: event 6 stands there"),
        ([*LINES[:6], LINES[5], *LINES[6:]], r"line 7 \(event 5\) is damaged: event 4 stands there"),
        ([*LINES[:6], LINES[6][:30] + b"\n", *LINES[7:]], r"line 7 \(event 5\) is damaged: not an event of format"),
        ([*LINES[:6], LINES[6][:30], *LINES[7:]], r"line 7 \(event 5\) is damaged: not an event"),
        ([*LINES[:6], LINES[6][:-2] + b"\n", *LINES[7:]], r"line 7 \(event 5\) is damaged: not an event"),
        ([*LINES[:6], b"\n", *LINES[6:]], r"line 7 \(event 5\) is damaged"),
        ([*LINES[:6], b"\xff" + LINES[6], *LINES[7:]], r"line 7 \(event 5\) is damaged"),
        ([*LINES[:6], b"\t" + LINES[6], *LINES[7:10]], r"line 7 \(event 5\) is damaged: it holds control"),
        ([*LINES[:10], LINES[11]], r"line 11 is damaged: the end stands where event 9 should be"),
        ([*LINES[:11], b"\x00" * len(LINES[11])], rf"line 12 \(event 10\) is damaged: it holds {len(LINES[11])} zero"),
        ([*LINES[:11], LINES[11][:-20] + b"\n"], r"line 12 \(event 10\) is damaged: the header says .* has 10 events"),
        ([*LINES, *LINES], r"line 12 \(event 10\) is damaged: the header says that the run has 10 events"),
        ([*LINES, b"more\n"], r"line 12 \(event 10\) is damaged"),
        ([b"\x00" * len(LINES[0]), *LINES[1:]], r"line 1 is damaged: it holds"),
        (
            [LINES[0].replace(b"run-1", b"run-2"), *LINES[1:]],
            r"line 2 \(event 0\).*of run 'run-1', the header of 'run-2'",
        ),
        ([LINES[0], LINES[2].replace(b'"seq":1', b'"seq":0')], r"a run begins with RunStarted, not MessageQueued"),
        (
            [*LINES[:6], LINES[6].replace(b"5", b"4"), *LINES[7:]],
            r"line 7 \(event 5\) is damaged: event 4 stands there",
        ),
        ([*LINES[:6], LINES[6].replace("🚲".encode(), b"?"), *LINES[7:]], r"lines 1 to 12 was changed: .* the digest"),
        ([LINES[1], *LINES[3:11]], r"line 2 \(event 1\) is damaged: event 2 stands there"),
        (LINES[1:], r"line 11 \(event 10\) is damaged: not an event"),
    ],
)
def test_damage_in_the_middle_is_named_and_nothing_is_used(lines: list[bytes], message: str) -> None:
    with pytest.raises(JournalDamaged, match=message):
        read(b"".join(lines))


def test_no_byte_can_be_changed_without_being_noticed() -> None:
    noticed = 0
    for place in range(len(FILE)):
        for byte in (FILE[place] ^ 1, FILE[place] ^ 0x80, 0, ord("\n")):
            if byte == FILE[place]:
                continue
            try:
                run = read(FILE[:place] + bytes([byte]) + FILE[place + 1 :])
            except JournalError:
                noticed += 1
                continue
            assert run.events == tuple(TEN)
            assert run.is_whole or place == len(FILE) - 1
    assert noticed > 3 * len(FILE) - 10


def test_a_cut_file_that_is_also_damaged_is_refused() -> None:
    data = b"".join(LINES[:9])
    for tail in (LINES[9][:40] + b"\x00" * 20, b"\x00" * 20, b"nonsense", b"\xff"):
        with pytest.raises(JournalDamaged, match=r"line 10 \(event 8\) is damaged"):
            read(data + tail)


# --- other files --------------------------------------------------------------------------------------


def test_events_alone_can_be_read_and_prove_nothing() -> None:
    run = read(b"".join(LINES[1:11]))
    assert (run.run_id, run.events) == ("run-1", tuple(TEN))
    assert run.notices == (
        "the file has neither header nor end, so nothing proves that its events are all and unchanged",
    )
    cut = read(b"".join(LINES[1:11])[:-30])
    assert cut.events == tuple(TEN[:9])
    assert "is cut in line 10, after" in cut.notices[1]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"tenlines_run": 2}, "the file has format 2, this tenlines reads up to 1: upgrade tenlines"),
        (
            {"tenlines_run": 1, "run_id": "r", "schema": ev.SCHEMA + 1, "events": 0},
            "events of format .*upgrade tenlines",
        ),
        ({"tenlines_run": 1, "run_id": "r", "schema": "x", "events": 0}, "line 1 is no header"),
        ({"tenlines_run": "1"}, "line 1 is no header"),
        ({"messages": []}, "this is not the file of a run: line 1 is no header"),
        ([], "line 1 is no JSON object"),
    ],
)
def test_what_this_version_cannot_read_is_said(header: object, message: str) -> None:
    with pytest.raises(JournalFormatError, match=message):
        read(json.dumps(header).encode() + b"\n" + b"".join(LINES[1:]))


@pytest.mark.parametrize("data", [b"hello\n", b"hello", b"\xff\xfe{\n", b"[" * 100_000, b"null\n", b"1"])
def test_a_file_of_something_else_is_no_run(data: bytes) -> None:
    with pytest.raises(JournalFormatError, match="this is not the file of a run"):
        read(data)


# --- storing ------------------------------------------------------------------------------------------


def test_a_run_moves_to_another_journal_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(FILE)
    journal = SqliteJournal(tmp_path / "j.db")
    try:
        with (tmp_path / "run.jsonl").open("rb") as file:
            import_run(journal, read_run(file))
        assert list(journal.read("run-1")) == TEN
        assert [(one.run_id, one.events, one.task) for one in journal.runs()] == [("run-1", 10, "Bjørn")]
        assert b"".join(write_run(journal, "run-1")) == FILE
    finally:
        journal.close()


def test_a_run_that_the_journal_has_is_left_alone() -> None:
    journal = journal_of(TEN[:3])
    with pytest.raises(JournalConflict, match="the journal has a run run-1 already; nothing was stored"):
        import_run(journal, read(FILE))
    assert list(journal.read("run-1")) == TEN[:3]


def test_a_file_that_is_not_whole_is_only_stored_when_asked_for() -> None:
    for data in (FILE[:-200], b"".join(LINES[1:11])):
        journal, run = MemoryJournal(), read(data)
        with pytest.raises(JournalDamaged, match=r"run run-1 is not whole: .*recover=True.*may do again"):
            import_run(journal, run)
        assert journal.runs() == []
        import_run(journal, run, recover=True)
        assert tuple(journal.read("run-1")) == run.events


def test_a_file_without_events_stores_nothing() -> None:
    journal = MemoryJournal()
    with pytest.raises(JournalDamaged, match="there is nothing to store: the file is cut in line 1"):
        import_run(journal, read(b""), recover=True)
    assert journal.runs() == []
