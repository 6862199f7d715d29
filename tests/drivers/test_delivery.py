"""Letters reach runs that are under way, in this process and in others, and no run pays for it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driver_doubles import PATIENCE_S, Way, asks, kinds, later, log_of, of, until

from tenlines import Agent, Control, Limits, tool
from tenlines.core import events as ev
from tenlines.drivers import delivery
from tenlines.drivers.letters import draft_of, post
from tenlines.errors import JournalError
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.models.plain import FunctionModel
from tenlines.ports import Letter, Saying, Stopping, SystemClock

CLOCK = SystemClock()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "EVERY_S", 0.01)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    journal = SqliteJournal(tmp_path / "journal.db")
    yield journal
    journal.close()


class Outsider:
    """Another process: posts to the newest run, through a journal of its own."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.path = journal.path

    def post(self, what: Saying | Stopping) -> None:
        other = SqliteJournal(self.path)
        post(other, CLOCK, other.runs(1)[0].run_id, what)
        other.close()


class Watch:
    """Sets an event when an event of a kind is recorded."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind, self.seen = kind, threading.Event()

    def on_event(self, event: Any) -> None:
        if isinstance(event, self.kind):
            self.seen.set()


def thread_of(journal: SqliteJournal) -> threading.Thread | None:
    """Who delivers the letters of a journal, if anybody does."""
    return delivery._office.postman(journal)._thread


def no_thread(journal: SqliteJournal) -> None:
    """There is none, or it ends."""
    end = time.monotonic() + PATIENCE_S
    while thread_of(journal) is not None:
        assert time.monotonic() < end, "the thread did not end with the last run"
        time.sleep(0.005)


# --- heard while something is under way -------------------------------------------------------------------


@pytest.mark.parametrize("hand", ["control", "none"])
def test_a_letter_is_heard_while_a_tool_is_at_work(way: Way, journal: SqliteJournal, hand: str) -> None:
    watch, outside = Watch(ev.MessageQueued), Outsider(journal)

    @tool
    async def work() -> str:
        outside.post(Saying("hurry", "ann"))
        await until(watch.seen.is_set)
        return "worked"

    @tool
    def blocks() -> str:
        outside.post(Saying("hurry", "ann"))
        return "worked"

    is_deaf = hand == "none" and not way.is_async  # who blocks in the caller's thread hears when that is over
    agent = Agent(
        [asks("blocks" if is_deaf else "work"), asks("wait"), "done"],
        [work, blocks, tool(name="wait")(lambda: _handed(journal))],
        journal=journal,
        observers=[watch],
    )
    result = way.run(agent, control=Control() if hand == "control" else None)
    (said,) = of(log_of(agent), ev.MessageQueued)
    assert (said.parts[0].text, said.by, said.mail) == ("hurry", "ann", 1)
    assert result.answer == "done"
    assert [record.outcome for record in result.calls] == ["ok", "ok"]


def _handed(journal: SqliteJournal) -> str:
    """Wait until the postman has handed over what there is."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if all(address.handed for address in delivery._office.postman(journal)._addresses):
            return "handed"
        time.sleep(0.002)
    raise AssertionError("the letter was never handed over")


def test_a_run_without_a_control_works_in_the_callers_thread_as_ever(journal: SqliteJournal) -> None:
    where: list[threading.Thread] = []
    agent = Agent([asks("work"), "done"], {"work": lambda: where.append(threading.current_thread())}, journal=journal)
    agent.run_sync("go")
    assert where == [threading.current_thread()]


@pytest.mark.parametrize("mode", ["now", "drain"])
def test_a_letter_that_stops_ends_a_run_as_its_control_does(way: Way, journal: SqliteJournal, mode: Any) -> None:
    outside, logs = Outsider(journal), []

    def stop_by(control: Control, by_letter: bool) -> None:
        if by_letter:
            outside.post(Stopping(mode, "enough", "ann"))
        else:
            control.cancel(now=mode == "now", reason="enough")

    for by_letter in (True, False):
        control, asked, watch = Control(), threading.Event(), Watch(ev.CancelRequested)

        async def model(messages: Any, asked: threading.Event = asked, watch: Watch = watch) -> Any:
            asked.set()
            await until(watch.seen.is_set)
            await asyncio.sleep(0.05 if mode == "now" else 0)
            return asks("work")

        agent = Agent(FunctionModel(model), {"work": lambda: "never"}, journal=journal, observers=[watch])
        later(lambda: stop_by(control, by_letter), asked)  # noqa: B023
        result = way.run(agent, control=control)
        assert (result.status, result.reason) == ("cancelled", "enough")
        logs.append(kinds(log_of(agent)))
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_letters_reach_a_run_over_postgres(way: Way, postgres_address: str) -> None:
    from tenlines.journal.postgres import PostgresJournal

    journal, other, watch = (
        PostgresJournal(postgres_address),
        PostgresJournal(postgres_address),
        Watch(ev.MessageQueued),
    )

    async def model(messages: Any) -> str:
        if not watch.seen.is_set():
            post(other, CLOCK, other.runs(1)[0].run_id, Saying("hurry"))
            await until(watch.seen.is_set)
        return "done"

    agent = Agent(FunctionModel(model), journal=journal, observers=[watch])
    assert way.run(agent, control=Control()).answer == "done"
    assert [event.mail for event in of(log_of(agent), ev.MessageQueued)] == [1]
    journal.close()
    other.close()


def test_letters_go_to_the_run_that_they_are_for(journal: SqliteJournal) -> None:
    """Many runs in one process, one thread for all."""
    told: set[str] = set()

    class Hear:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.MessageQueued):
                told.add(event.parts[0].text)

    other = SqliteJournal(journal.path)
    seen: set[threading.Thread | None] = set()

    async def model(messages: Any) -> str:
        task = messages[0]["content"]
        run_id = next(run.run_id for run in other.runs() if run.task == task)
        post(other, CLOCK, run_id, Saying(f"to {task}"))
        await until(lambda: f"to {task}" in told)
        seen.add(thread_of(journal))
        return task

    async def main() -> list[Any]:
        agent = Agent(FunctionModel(model), journal=journal, observers=[Hear()])
        return await asyncio.gather(*(agent.run(f"task {number}", limits=Limits(steps=1)) for number in range(6)))

    asyncio.run(asyncio.wait_for(_ending(main()), PATIENCE_S))
    for run in journal.runs():
        said = of(journal.read(run.run_id), ev.MessageQueued)
        assert [(event.parts[0].text, event.mail) for event in said] == [(f"to {run.task}", 1)]
    assert len(seen) == 1
    other.close()
    no_thread(journal)


async def _ending(work: Any) -> None:
    """To the end, though there is no answer: what was said after the last step is never heard by the model."""
    from tenlines.errors import RunStopped

    try:
        await work
    except RunStopped:
        await asyncio.sleep(0.2)


# --- the thread -------------------------------------------------------------------------------------------


def test_a_journal_has_a_thread_only_while_a_run_is_under_way(journal: SqliteJournal) -> None:
    seen: list[bool] = []
    no_thread(journal)
    tools = {"look": lambda: seen.append(thread_of(journal) is not None)}
    Agent([asks("look"), "done"], tools, journal=journal).run_sync("go")
    assert seen == [True]
    no_thread(journal)


def test_a_journal_without_a_mailbox_has_none() -> None:
    journal = MemoryJournal()
    Agent(["done"], journal=journal).run_sync("go", control=Control())
    assert journal not in delivery._office._postmen


def test_a_mailbox_that_fails_is_told_once_and_the_run_goes_on(
    way: Way, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    def letters(above: Any) -> list[Letter]:
        asked.append(1)
        raise JournalError("the disk is gone")

    monkeypatch.setattr(journal, "letters", letters)

    async def model(messages: Any) -> str:
        await until(lambda: len(asked) >= 3)
        return "done"

    assert way.run(Agent(FunctionModel(model), journal=journal)).answer == "done"
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "the mailboxes of runs cannot be read; it is tried again: the disk is gone"
    ]


def test_what_was_handed_over_and_not_heard_waits_in_the_mailbox_alone() -> None:
    control = Control()
    control.say("from here")
    control.deliver(draft_of(Letter("r", 1, 1.0, Saying("from there"))))
    control.forget_letters()
    assert [draft.fields.get("mail") for draft in control.take()] == [None]


def test_a_new_process_has_nobody_to_deliver_to(journal: SqliteJournal) -> None:
    postman = delivery.Postman(journal)
    address = postman.join("r", Control(), 0)
    thread = postman._thread
    postman.begin_anew()  # as after a fork
    assert (postman._addresses, postman._thread) == ([], None)
    postman.leave(address)
    assert thread is not None
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


# --- kill -9 ----------------------------------------------------------------------------------------------

KILLED = """
import os, pathlib, signal, sys, time
from tenlines import Agent, Control, tool
from tenlines.drivers import control, delivery
from tenlines.models.plain import FunctionModel
from tenlines.core import events as ev

path, where = sys.argv[1:]
delivery.EVERY_S = 0.01

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Dies:
    def on_event(self, event):
        if where == "recorded" and isinstance(event, ev.MessageQueued):
            die()  # not committed yet

deliver = control.Control.deliver
def taken(self, letter):
    if where == "taken":
        die()
    deliver(self, letter)
control.Control.deliver = taken

def model(messages):
    if any(message.get("content") == "hurry" for message in messages):
        die()  # committed: the model is asked
    pathlib.Path(path + ".asked").touch()
    time.sleep(0.1)
    return {"tool_calls": [{"id": "1", "name": "look", "arguments": {}}]}

@tool(read_only=True, repeatable=True)
def look():
    return "x"

Agent(FunctionModel(model), [look], journal=path, observers=[Dies()]).run_sync("go", control=Control())
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["taken", "recorded", "committed"])
def test_a_process_that_is_killed_with_a_letter_in_hand_neither_loses_nor_repeats_it(
    tmp_path: Path, where: str
) -> None:
    path = tmp_path / "journal.db"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), where])
    asked, end = Path(f"{path}.asked"), time.monotonic() + 20
    while not asked.exists():
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.005)
    journal = SqliteJournal(path)
    run_id = journal.runs(1)[0].run_id
    post(journal, CLOCK, run_id, Saying("hurry"))
    assert process.wait(20) == -signal.SIGKILL
    heard = [event.mail for event in of(journal.read(run_id), ev.MessageQueued)]
    assert heard == ([1] if where == "committed" else [])
    seen: list[Any] = []
    agent = Agent(lambda messages: seen.append(messages) or "done", {"look": lambda: "x"}, journal=journal)
    assert agent.resume_sync(run_id).answer == "done"
    assert [event.mail for event in of(journal.read(run_id), ev.MessageQueued)] == [1]
    assert [message["content"] for message in seen[0]].count("hurry") == 1
    journal.close()
