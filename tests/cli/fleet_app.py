"""A file with an agent for workers, an engine that only writes down, and a worker that is this process."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenlines import Agent
from tenlines.core.limits import Limits
from tenlines.core.result import RunResult
from tenlines.errors import EngineError
from tenlines.journal import open_journal
from tenlines.ports import Crew, Lane, News, Order, Timetable

APP = '''
import json, os, pathlib, time
from tenlines import Agent, Reply, ToolCall, tool

@tool(read_only=True)
def look(number: int) -> str:
    """Look."""
    return f"seen {number}"

@tool(approve=True)
def pay(amount: int) -> str:
    """Pay."""
    with open("paid.txt", "a") as out:
        out.write(f"{amount}\\n")
    return "paid"

@tool
def hang() -> str:
    """Hang until there is a file."""
    pathlib.Path("hanging").touch()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "hung"

def call(name, **arguments):
    return Reply(calls=(ToolCall("", name, json.dumps(arguments)),))

def model(messages):
    task = next(one["content"] for one in messages if one["role"] == "user")
    steps = sum(one["role"] == "assistant" for one in messages)
    if task == "pay" and steps == 0:
        return call("pay", amount=5)
    if task == "hang" and steps == 0:
        return call("hang")
    if task == "look" and steps < 3:
        return call("look", number=steps)
    return f"done: {task}"

support = Agent(model, [look, pay, hang], name="support", version="2")
'''


class NotingEngine:
    """Writes down what it is asked for, and has nothing done.

    Attributes:
        at_work: How many workers it says that there are.
        refuses: How often an order is known already.
    """

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.at_work, self.refuses, self.is_lost = 1, 0, False

    async def start(self, order: Order) -> bool:
        self.refuses -= 1
        if self.refuses < 0:
            self.orders.append(order)
        return self.refuses < 0

    async def wake(self, run_id: str, news: News) -> bool:
        return False

    async def plan(self, timetables: Sequence[Timetable]) -> None:
        pass

    async def workers(self, lane: Lane) -> int:
        if self.is_lost:
            raise EngineError("there is nothing here")
        return self.at_work

    async def work(self, crew: Crew, lanes: Mapping[Lane, int], leaving: Awaitable[object]) -> None:
        await leaving


def app_agent() -> Agent:
    """The agent of `app.py`, with the journal of the test."""
    from tenlines.cli.fleets import load_fleet

    (agent,) = load_fleet(["app.py"]).agents
    return agent._recording_in(open_journal())


def queued(task: Any = "look", **options: Any) -> str:
    """A run that was handed to a fleet, and that nobody has begun; its id."""
    return app_agent().submit_sync(task, NotingEngine(), **options)


def worked_on(run_id: str, limits: Limits | None = None) -> RunResult:
    """The run after a worker has done what can be done."""
    return app_agent().resume_sync(run_id, limits=limits, raise_on_stop=False)


def write_app(home: Path) -> None:
    (home / "app.py").write_text(APP)
