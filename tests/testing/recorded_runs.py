"""A small office whose tools leave traces in files, and ways to run an agent in it with both drivers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tenlines import Agent, CallContext, Reply, RunResult, ToolCall, tool
from tenlines.core.events import AnyEvent
from tenlines.ports import NOT_DONE


def asks(*calls: tuple[str, str]) -> Reply:
    """A reply with calls: names and raw arguments."""
    return Reply(calls=tuple(ToolCall(f"c{place}", *call) for place, call in enumerate(calls)))


class Office:
    """Tools of every kind, which write down that they ran."""

    def __init__(self, folder: Path) -> None:
        self.trail = folder / "trail.txt"

    @property
    def done(self) -> list[str]:
        """What has run, in order."""
        return self.trail.read_text().split() if self.trail.exists() else []

    def note(self, what: str) -> str:
        """Leave a trace."""
        with self.trail.open("a") as file:
            file.write(f"{what}\n")
        return f"{what} is done"

    @property
    def tools(self) -> list[Any]:
        """All of them."""

        @tool(read_only=True)
        def look(city: str) -> str:
            """Look at a city."""
            return self.note(f"look:{city}")

        @tool
        def send(to: str) -> str:
            """Send a letter."""
            return self.note(f"send:{to}")

        @tool(idempotent=True)
        def put(key: str) -> str:
            """Put it there."""
            if f"put:{key}" not in self.done:
                self.note(f"put:{key}")
            return f"{key} is there"

        def cancel(to: str) -> None:
            self.note(f"cancel:{to}")

        def find(to: str, ctx: CallContext) -> Any:
            return f"book:{to} is done" if f"book:{to}" in self.done else NOT_DONE

        @tool(undo=cancel, reconcile=find)
        def book(to: str) -> str:
            """Book a seat."""
            return self.note(f"book:{to}")

        @tool
        def fail(why: str) -> str:
            """Fail."""
            raise ValueError(why)

        return [look, send, put, book, fail]


def run(driver: str, agent: Agent, task: str = "go", **options: Any) -> RunResult:
    """Run a task with one of the drivers, however it ends."""
    if driver == "sync":
        return agent.run_sync(task, raise_on_stop=False, **options)
    return asyncio.run(agent.run(task, raise_on_stop=False, **options))


def log_of(agent: Agent) -> list[AnyEvent]:
    """The log of its newest run."""
    return list(agent.journal.read(agent.journal.runs(1)[0].run_id))


class Unreachable:
    """A model that cannot even be connected to."""

    def __init__(self, name: str = "scripted") -> None:
        self.name = name

    def session(self) -> Any:
        """Never."""
        raise AssertionError("a conversation with the model was begun")


def refuse_to_run(tools: list[Any]) -> list[Any]:
    """The same tools, whose bodies must not run."""

    class Sealed:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        @property
        def spec(self) -> Any:
            return self.inner.spec

        def call(self, bound: Any, ctx: Any) -> Any:
            raise AssertionError(f"{self.inner.name} ran")

        reconcile = undo = call

    return [Sealed(one) for one in tools]


DRIVERS = ("sync", "asyncio")
