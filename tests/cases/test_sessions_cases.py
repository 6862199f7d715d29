"""Two runs that want the same turn of one conversation."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from case_laws import assert_valid, encoded
from case_processes import end_of, start
from case_world import CaseModel, World, calls, says, until

from tenlines.errors import SessionBusy
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import RunSummary
from tenlines.session import Session

TIMES = 100
TURN = ["user", "assistant", "tool", "assistant"]


def session_in(world: World, name: str) -> Session:
    """A conversation; each run of it calls `w` and then says `ok`."""
    return Session(world.agent(CaseModel([calls(("w", "w", "{}")), says("ok")])), name)


def attempt(world: World, name: str, task: str) -> str:
    """Try to have the turn, in this thread."""
    session = session_in(world, name)
    try:
        result = session.run_sync(task) if world.mode.driver == "sync" else asyncio.run(session.run(task))
    except SessionBusy:
        return "busy"
    return result.status


def check_session(world: World, name: str, turns: int) -> None:
    """The stored conversation is valid, and holds whole turns, one after the other."""
    session = session_in(world, name)
    assert [one.status for one in session.runs] == ["answered"] * turns
    assert [one.turn for one in session.runs] == [*range(turns, 0, -1)]
    messages = encoded(session.messages)
    assert_valid(messages)
    assert [message["role"] for message in messages] == TURN * turns


# --- while one is at work -------------------------------------------------------------------------------


def _while_at_work(world: World) -> None:
    """Run 2 comes while run 1 waits for its tool, which goes on once run 2 has its answer."""
    at_work, has_answer = threading.Event(), threading.Event()

    @world.tool
    async def w() -> str:
        """Work."""
        at_work.set()
        await until(has_answer.is_set)
        return "r"

    def second() -> str:
        assert at_work.wait(5)
        before = world.journal.runs()
        outcome = attempt(world, "s", "two")
        assert [one.run_id for one in world.journal.runs()] == [one.run_id for one in before]
        has_answer.set()
        return outcome

    assert side_by_side(lambda: attempt(world, "s", "one"), second) == ["answered", "busy"]
    check_session(world, "s", 1)
    assert attempt(world, "s", "two") == "answered"
    check_session(world, "s", 2)


def side_by_side(*works: Callable[[], Any]) -> list[Any]:
    """Do several things, each in a thread of its own; what each gives."""
    given: list[Any] = [None] * len(works)

    def do(place: int) -> None:
        given[place] = works[place]()

    threads = [threading.Thread(target=do, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return given


# --- at the same moment ---------------------------------------------------------------------------------


def _meeting(both: Any) -> type[SqliteJournal]:
    """A journal in which whoever looks whether the session is free waits until the other has looked too."""

    class Meeting(SqliteJournal):
        waits = True

        def runs(
            self, limit: int | None = None, *, status: str | None = None, session: str | None = None
        ) -> list[RunSummary]:
            found = super().runs(limit, status=status, session=session)
            if self.waits:
                both.wait(20)
            return found

    return Meeting


def _in_threads(world: World) -> list[list[str]]:
    store: Any = world.store(_meeting(threading.Barrier(2)))
    ends = [side_by_side(*(partial(attempt, world, f"t{n}", task) for task in "ab")) for n in range(TIMES)]
    store.waits = False
    return ends


async def _in_one_loop(world: World) -> list[list[str]]:
    store: Any = world.store(_meeting(threading.Barrier(2)))  # each looks in a thread

    async def one(name: str, task: str) -> str:
        try:
            return (await session_in(world, name).run(task)).status
        except SessionBusy:
            return "busy"

    ends = [list(await asyncio.gather(*(one(f"t{n}", task) for task in "ab"))) for n in range(TIMES)]
    store.waits = False
    return ends


def _in_processes(world: World) -> list[list[str]]:
    meeting = _meeting(multiprocessing.get_context("fork").Barrier(2))

    def attempts(task: str) -> None:
        world.store(meeting)
        (world.folder / task).write_text("\n".join(attempt(world, f"p{n}", task) for n in range(TIMES)))

    children = [start(partial(attempts, task)) for task in "ab"]
    assert [end_of(child) for child in children] == [0, 0]
    return [list(pair) for pair in zip(*((world.folder / task).read_text().splitlines() for task in "ab"), strict=True)]


@pytest.mark.slow
def test_conc_01_of_two_runs_that_want_a_turn_at_once_one_has_it_and_of_the_other_nothing_is_stored(
    world: World,
) -> None:
    """While one is at work, and 100 times at the same moment: in threads or in one loop, and in processes."""
    world.store()
    _while_at_work(world)
    world.tool(lambda: "r", name="w")
    together = _in_threads(world) if world.mode.driver == "sync" else asyncio.run(_in_one_loop(world))
    for letter, ends in (("t", together), ("p", _in_processes(world))):
        assert len(ends) == TIMES
        for n, outcomes in enumerate(ends):
            assert sorted(outcomes) == ["answered", "busy"]
            check_session(world, f"{letter}{n}", 1)
