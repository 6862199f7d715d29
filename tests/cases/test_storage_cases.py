"""Journals in files: many that write at once, files that were cut, and files with damage in the middle."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest
from case_processes import end_of, start
from case_world import World

from tenlines import Agent, RunResult
from tenlines.core.replay import fold
from tenlines.journal.sqlite import SqliteJournal
from tenlines.session import Session

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
