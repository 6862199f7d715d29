"""Journals and transcripts in files: many that write at once, files that were cut, and damage in the middle."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from case_processes import end_of, start
from case_world import World

from tenlines import Agent, Reply, RunResult, Session, ToolCall, tool
from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.core.replay import fold
from tenlines.errors import JournalDamaged
from tenlines.journal.files import import_run, read_run, write_run
from tenlines.journal.integrity import check_runs
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.recovery import recover
from tenlines.journal.sqlite import SqliteJournal
from tenlines.wire.documents import Notice, Record, read

# --- many at once ---------------------------------------------------------------------------------------

THREADS, PROCESSES, READERS, TURNS, TIMES = 8, 4, 2, 50, 20


def write(world: World, path: Path, name: str) -> None:
    """Open the file, and have a conversation of 50 turns."""
    journal = SqliteJournal(path)
    session = Session(Agent(["ok"], journal=journal), name)
    tasks = tasks_of(name)
    if world.mode.driver == "sync":
        results = [session.run_sync(task) for task in tasks]
    else:
        results = asyncio.run(_one_by_one(session, tasks))
    assert [result.answer for result in results] == ["ok"] * TURNS
    journal.close()


def tasks_of(name: str) -> list[str]:
    """What a writer says, turn by turn."""
    return [f"{name} says {turn}" for turn in range(1, TURNS + 1)]


async def _one_by_one(session: Session, tasks: list[str]) -> list[RunResult]:
    return [await session.run(task) for task in tasks]


def poll(path: Path, is_over: threading.Event) -> None:
    """Read what there is, again and again: it is always whole."""
    journal = SqliteJournal(path)
    while not is_over.wait(0.01):
        for summary in journal.runs(20):
            log = list(journal.read(summary.run_id))
            assert len(log) >= summary.events
            assert fold(log).result().run_id == summary.run_id
    journal.close()


class _Thread(threading.Thread):
    """A thread whose error is not lost."""

    def __init__(self, both: Any, work: Any, *args: Any) -> None:
        super().__init__()
        self.both, self.work, self.args, self.error = both, work, args, None

    def run(self) -> None:
        """Wait for all the others, then begin."""
        try:
            self.both.wait(60)
            self.work(*self.args)
        except BaseException as error:
            self.error = error


def check_file(path: Path) -> None:
    """Every turn of every writer is there, in order."""
    journal = SqliteJournal(path)
    assert len(journal.runs()) == (THREADS + PROCESSES) * TURNS
    for name in [f"t{n}" for n in range(THREADS)] + [f"p{n}" for n in range(PROCESSES)]:
        runs = journal.runs(session=name)
        assert [one.turn for one in reversed(runs)] == [*range(1, TURNS + 1)]
        assert [one.task for one in reversed(runs)] == tasks_of(name)
        assert {one.status for one in runs} == {"answered"}
        said = [message.text for message in fold(journal.read(runs[0].run_id)).state.messages]
        assert said == [text for task in tasks_of(name) for text in (task, "ok")]
    journal.close()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(TIMES // 4))
def test_store_01_many_that_open_a_new_file_at_once_all_write_all_they_have(world: World, part: int) -> None:
    """Eight threads, four processes and two readers, 20 times in all."""
    path, all_are_here = (
        world.folder / "new.db",
        multiprocessing.get_context("fork").Barrier(THREADS + PROCESSES + READERS),
    )

    def process(name: str) -> None:
        all_are_here.wait(60)
        write(world, path, name)

    children = [start(lambda name=f"p{n}": process(name)) for n in range(PROCESSES)]
    is_over = threading.Event()
    writers = [_Thread(all_are_here, write, world, path, f"t{n}") for n in range(THREADS)]
    readers = [_Thread(all_are_here, poll, path, is_over) for _ in range(READERS)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    ends = [end_of(child) for child in children]
    is_over.set()
    for thread in readers:
        thread.join()
    assert [thread.error for thread in (*writers, *readers)] == [None] * (THREADS + READERS)
    assert ends == [0] * PROCESSES
    check_file(path)


# --- files that were cut, and files with damage in the middle -----------------------------------------------

RECORDS = [json.dumps({"role": "user", "content": f"Grüße {n} 日本"}, ensure_ascii=False).encode() for n in range(10)]
FIFTH = 4
"""Number of the event that is damaged, from 0."""


def read_file(data: bytes) -> tuple[list[Any], list[Notice]]:
    """The records that a file of messages gives, and what is said of the rest."""
    found = list(read([data[start : start + 7] for start in range(0, len(data), 7)]))
    return [one.value for one in found if isinstance(one, Record)], [one for one in found if isinstance(one, Notice)]


@tool
def greet() -> str:
    """Greet."""
    return "Grüße"


def ten_events() -> list[AnyEvent]:
    """The log of a run that says something in several bytes a character up to its last event."""
    asks = Reply(calls=(ToolCall("a", "greet", "{}"), ToolCall("b", "greet", "{}")))
    journal = MemoryJournal()
    log = list(journal.read(Agent([asks, "Grüße, 日本"], [greet], journal=journal).run_sync("Grüße").run_id))
    assert len(log) == 10
    return log


def run_id_of(log: list[AnyEvent]) -> str:
    """The run that a log is of."""
    assert isinstance(log[0], ev.RunStarted)
    return log[0].run_id


def lines_of(log: list[AnyEvent]) -> list[bytes]:
    """A run as the lines of a file."""
    journal = MemoryJournal()
    for event in log:
        journal.append(run_id_of(log), event)
    return list(write_run(journal, run_id_of(log)))


class Files(NamedTuple):
    """A journal as it lies on the disk: its file, and the log beside it."""

    main: bytes
    log: bytes

    def put(self, path: Path) -> Path:
        """Put them there, as a process left them that died."""
        path.write_bytes(self.main)
        Path(f"{path}-wal").write_bytes(self.log)
        return path


def files_of(path: Path) -> Files:
    """What is on the disk now."""
    log = Path(f"{path}-wal")
    return Files(path.read_bytes(), log.read_bytes() if log.exists() else b"")


def read_journal(path: Path, run_id: str) -> tuple[list[AnyEvent], str]:
    """The events that a journal gives, and what its list says of the run."""
    journal = SqliteJournal(path)
    try:
        return list(journal.read(run_id)), journal.runs()[0].status
    finally:
        journal.close()


@pytest.mark.slow
@pytest.mark.driver("sync")
def test_store_02_what_was_cut_while_it_was_written_costs_the_last_record_and_is_said(world: World) -> None:
    """A file of messages, the file of a run, and a journal."""
    whole = b"\n".join(RECORDS) + b"\n"
    begin = len(whole) - len(RECORDS[-1]) - 1
    for cut in range(begin, len(whole) + 1):
        good, notices = read_file(whole[:cut])
        assert len(good) == (10 if cut >= len(whole) - 1 else 9), cut
        assert good == [json.loads(line) for line in RECORDS[: len(good)]]
        assert len(notices) == (begin < cut < len(whole) - 1), cut
    log = ten_events()
    _cut_run_file(log, lines_of(log))
    _cut_journal(world.folder, log)


def _cut_run_file(log: list[AnyEvent], lines: list[bytes]) -> None:
    last, before = lines[-2], b"".join(lines[:-2])
    assert "日本".encode() in last
    for cut in range(len(last) + 1):
        run = read_run((before + last[:cut]).splitlines(keepends=True))
        assert run.events == tuple(log[: 10 if cut >= len(last) - 1 else 9]), cut
        (notice,) = run.notices
        assert ("all 10 events are there" if len(run.events) == 10 else "1 of 10 events are missing") in notice
        journal = MemoryJournal()
        with pytest.raises(JournalDamaged, match="not whole"):
            import_run(journal, run)
        import_run(journal, run, recover=True)
        assert tuple(journal.read(run.run_id)) == run.events


def _cut_journal(folder: Path, log: list[AnyEvent]) -> None:
    """Whoever appends to a journal appends to its log; what is cut there was not committed, and the run is `open`."""
    run_id, journal = run_id_of(log), SqliteJournal(folder / "whole.db")
    ends = []
    for event in log:
        journal.append(run_id, event)
        journal.commit(run_id)
        ends.append(len(files_of(journal.path).log))
    files = files_of(journal.path)
    journal.close()
    text = codec.encode(log[-1])
    begin = files.log.rindex(text)
    assert ends[-2] < begin < ends[-1]
    places = [ends[-2], ends[-2] + 1, *range(begin, begin + len(text) + 1), ends[-1] - 1]
    for cut in places:
        path = Files(files.main, files.log[:cut]).put(folder / f"{cut}.db")
        assert read_journal(path, run_id) == (log[:9], "open"), cut
    journal = SqliteJournal(path)
    assert Agent(["Grüße, 日本"], [greet], journal=journal).resume_sync(run_id).answer == "Grüße, 日本"
    journal.close()
    assert read_journal(files.put(folder / "all.db"), run_id) == (log, "answered")


@pytest.mark.driver("sync")
def test_store_04_damage_in_the_middle_is_named_and_never_read_as_a_shorter_run(world: World) -> None:
    """A file of messages, the file of a run, and a journal."""
    damaged = [*RECORDS[:4], b"\x00" * len(RECORDS[4]), *RECORDS[5:]]
    good, notices = read_file(b"\n".join(damaged) + b"\n")
    assert good == [json.loads(line) for line in (*RECORDS[:4], *RECORDS[5:])]
    assert [notice.line for notice in notices] == [5]
    log = ten_events()
    lines = lines_of(log)
    place = FIFTH + 1  # after the header
    for zeros in (bytes(len(lines[place])), bytes(len(lines[place]) - 1) + b"\n", lines[place][:40] + b"\n"):
        with pytest.raises(JournalDamaged, match=r"line 6 \(event 4\) is damaged"):
            read_run(b"".join([*lines[:place], zeros, *lines[place + 1 :]]).splitlines(keepends=True))
    _damage_journal(world.folder, log)
    _damage_log_of_journal(world.folder, log)


def _damage_journal(folder: Path, log: list[AnyEvent]) -> None:
    run_id, journal = run_id_of(log), SqliteJournal(folder / "whole.db")
    import_run(journal, read_run(lines_of(log)))
    journal.close()
    files, text = files_of(folder / "whole.db"), codec.encode(log[FIFTH])
    assert (files.main.count(text), files.log) == (1, b"")
    path = Files(files.main.replace(text, bytes(len(text))), b"").put(folder / "damaged.db")
    with pytest.raises(JournalDamaged, match=f"event {FIFTH} of run {run_id} is damaged"):
        read_journal(path, run_id)
    journal = SqliteJournal(path)
    with pytest.raises(JournalDamaged, match=f"event {FIFTH} of run {run_id} is damaged"):
        Agent(["never"], [greet], journal=journal).resume_sync(run_id)
    assert [(one.run_id, one.is_fatal) for one in check_runs(journal)] == [(run_id, True)]
    journal.close()
    found = recover(path, folder / "recovered.db")
    assert found.whole == ()
    (one,) = found.damaged
    assert one.events == 9
    assert one.file is not None
    assert [codec.decode(line) for line in one.file.read_bytes().splitlines()] == log[:FIFTH] + log[FIFTH + 1 :]


def _damage_log_of_journal(folder: Path, log: list[AnyEvent]) -> None:
    """The same in what a process left beside the file that died: the journal is refused, and nothing runs again."""
    run_id, journal = run_id_of(log), SqliteJournal(folder / "left.db")
    ends = []
    for event in log:
        journal.append(run_id, event)
        journal.commit(run_id)
        ends.append(len(files_of(journal.path).log))
    files, text = files_of(journal.path), codec.encode(log[FIFTH])
    journal.close()
    place = files.log.index(text)
    assert ends[FIFTH - 1] < place < ends[FIFTH]
    damaged = Files(files.main, files.log[:place] + bytes(len(text)) + files.log[place + len(text) :])
    path = damaged.put(folder / "left-damaged.db")
    for _ in range(2):
        with pytest.raises(JournalDamaged, match=r"write-ahead log .* is damaged at byte \d+, and the \d commits"):
            SqliteJournal(path)
    assert files_of(path) == damaged
    found = recover(path, folder / "left-recovered.db")  # the page was written again behind the damage
    assert (found.whole, found.damaged) == ((run_id,), ())
    assert read_journal(found.into, run_id) == (log, "answered")
