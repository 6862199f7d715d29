"""One way to run an agent for each driver, and a journal that writes down what happened in which order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tenlines import Agent, Control, Delta, Limits, Reply, RunResult, ToolCall
from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.errors import JournalError
from tenlines.journal.memory import MemoryJournal
from tenlines.testing import ScriptedModel

PATIENCE_S = 5.0
"""How long something that must happen is waited for."""


class Way:
    """Runs agents with one driver."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_async = name == "aio"

    def __str__(self) -> str:
        return self.name

    def run(
        self, agent: Agent, task: Any = "go", *, control: Control | None = None, limits: Limits | None = None
    ) -> RunResult:
        """Run a task, however it ends."""
        if self.is_async:
            return asyncio.run(agent.run(task, control=control, limits=limits, raise_on_stop=False))
        return agent.run_sync(task, control=control, limits=limits, raise_on_stop=False)

    def resume(
        self, agent: Agent, run_id: str, *, control: Control | None = None, limits: Limits | None = None
    ) -> RunResult:
        """Go on with a run, however it ends."""
        if self.is_async:
            return asyncio.run(agent.resume(run_id, control=control, limits=limits, raise_on_stop=False))
        return agent.resume_sync(run_id, control=control, limits=limits, raise_on_stop=False)


WAYS = [Way("sync"), Way("aio")]


def asks(*names: str, **arguments: str) -> Reply:
    """A reply with calls: of tools by name, with raw arguments where they are given."""
    calls = [ToolCall(f"c{place}", name, arguments.get(name, "{}")) for place, name in enumerate(names)]
    return Reply(calls=tuple(calls))


def log_of(agent: Agent, run_id: str | None = None) -> list[AnyEvent]:
    """The log of a run; of the newest where none is named."""
    return list(agent.journal.read(run_id or agent.journal.runs(1)[0].run_id))


def kinds(log: Iterable[Any]) -> list[str]:
    """The names of events."""
    return [type(event).__name__ for event in log]


def of(log: Iterable[Any], *wanted: type[Any]) -> list[Any]:
    """The events of some kinds."""
    return [event for event in log if isinstance(event, wanted)]


def wait_for(event: threading.Event) -> None:
    """Wait in a thread for what must happen."""
    assert event.wait(PATIENCE_S), "what was waited for did not happen"


async def until(happened: Callable[[], bool]) -> None:
    """The same in a coroutine, whichever thread its loop runs in."""
    for _ in range(int(PATIENCE_S * 1000)):
        if happened():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("what was waited for did not happen")


def later(action: Callable[[], Any], after: threading.Event) -> threading.Thread:
    """Do something in another thread once an event is set."""

    def work() -> None:
        wait_for(after)
        action()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


class Streaming:
    """A model that writes its replies piece by piece for those who watch."""

    name = "streaming"

    def __init__(self, *replies: Any) -> None:
        self.replies = replies
        self.watched: list[bool] = []

    def session(self) -> Any:
        inner = ScriptedModel(self.replies).session()
        watched = self.watched

        class Session:
            def complete(self, request: Any, on_delta: Any) -> Reply:
                watched.append(on_delta is not None)
                reply = inner.complete(request, None)
                if on_delta is not None:
                    for letter in reply.text:
                        on_delta(Delta(request.step, letter))
                return reply

            async def acomplete(self, request: Any, on_delta: Any) -> Reply:
                return self.complete(request, on_delta)

        return Session()


class Trail(MemoryJournal):
    """A journal that loses what was not committed, writes down what happened, and fails when it is told to.

    Attributes:
        trail: What happened: names of events as they were appended, `commit`, and what was noted with `acts`.
        fail_at: Number of the operation (append or commit, from 0) from which on it fails.
        fail_on: The event that it cannot make durable.
    """

    def __init__(self, fail_at: int | None = None, fail_on: type[Any] | None = None) -> None:
        super().__init__()
        self.fail_on = fail_on
        self.trail: list[str] = []
        self.fail_at, self.operations = fail_at, 0
        self.pending: list[AnyEvent] = []
        self.too_early: list[str] = []
        self.after_failure: list[str] = []
        self.has_failed = False

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Write it down."""
        self._operate(type(event).__name__)
        self.pending.append(event)

    def commit(self, run_id: str) -> None:
        """Keep what was appended. With nothing to keep there is nothing that could fail."""
        if not self.pending:
            return
        self._operate("commit")
        for event in self.pending:
            super().append(run_id, event)
        self.pending.clear()

    def acts(self, what: str) -> None:
        """Something acts on the world: all intents before must be durable. (A sibling's result may be on its way.)"""
        self.trail.append(what)
        if any(not isinstance(event, ev.CallReturned) for event in self.pending):
            self.too_early.append(what)
        if self.has_failed:
            self.after_failure.append(what)

    def _operate(self, what: str) -> None:
        number, self.operations = self.operations, self.operations + 1
        hits = what == "commit" and self.fail_on is not None and bool(of(self.pending, self.fail_on))
        if hits or (self.fail_at is not None and number >= self.fail_at):
            self.has_failed = True
            raise JournalError(f"the disk is full ({what})")
        self.trail.append(what)


def durable(journal: Trail, run_id: str, kind: type[Any]) -> list[Any]:
    """Committed events of a kind."""
    return of(journal._runs.get(run_id, []), kind)
