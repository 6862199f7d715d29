"""Observers that want a run of their own, or to be around calls: none of them can break a run."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from driver_doubles import Way, asks, log_of

from tenlines import Agent, CallContext, Limits, tool
from tenlines.core import events as ev
from tenlines.core.surroundings import span_id, trace_id

inside: contextvars.ContextVar[str] = contextvars.ContextVar("inside", default="")


class Around:
    """Is around each call, and says so in a context variable."""

    def __init__(self) -> None:
        self.left: list[str] = []

    def on_event(self, event: ev.AnyEvent) -> None:
        """Nothing."""

    @contextmanager
    def around_call(self, ctx: CallContext) -> Iterator[None]:
        token = inside.set(ctx.key)
        try:
            yield
        finally:
            inside.reset(token)
            self.left.append(ctx.key)


def seeing() -> tuple[dict[str, str], list[Any]]:
    """Tools of each colour that note which call they are in."""
    seen: dict[str, str] = {}

    @tool(read_only=True)
    def plain(ctx: CallContext) -> str:
        seen["plain"] = inside.get()
        seen[ctx.key] = ctx.traceparent
        return "1"

    @tool(read_only=True, timeout_s=30)
    def threaded(ctx: CallContext) -> str:
        seen["threaded"] = inside.get()
        return "2"

    @tool(read_only=True)
    async def waiting(ctx: CallContext) -> str:
        seen["waiting"] = inside.get()
        return "3"

    @tool(read_only=True)
    def bad(ctx: CallContext) -> str:
        seen["bad"] = inside.get()
        raise StopIteration("no")

    return seen, [plain, threaded, waiting, bad]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_a_tool_runs_inside_of_what_is_around_its_call(way: Way, together: bool) -> None:
    seen, tools = seeing()
    around, names = Around(), ("plain", "threaded", "waiting", "bad")
    replies = [asks(*names)] if together else [asks(name) for name in names]
    result = way.run(Agent([*replies, "done"], tools, journal="memory", observers=[around]))
    keys = [f"{result.run_id}:1:{n}" if together else f"{result.run_id}:{n + 1}:0" for n in range(4)]
    assert [seen[name] for name in names] == keys
    assert sorted(around.left) == sorted(keys)
    assert inside.get() == ""
    assert [call.outcome for call in result.calls] == ["ok", "ok", "ok", "tool_error"]
    assert result.observer_errors == 0


def test_the_call_names_the_span_that_its_start_began(way: Way) -> None:
    seen, tools = seeing()
    agent = Agent([asks("plain"), asks("plain", "plain"), "done"], tools, journal="memory")
    run_id = way.run(agent).run_id
    starts = [event for event in log_of(agent) if isinstance(event, ev.CallStarted)]
    assert len(starts) == 3
    for start in starts:
        assert seen[start.key] == f"00-{trace_id(run_id)}-{span_id(run_id, start.seq)}-01"


class Broken:
    """Fails wherever it can."""

    def __init__(self, where: str) -> None:
        self.where = where

    def on_event(self, event: Any) -> None:
        """Nothing."""

    def around_call(self, ctx: CallContext) -> Any:
        if self.where == "call":
            raise RuntimeError("not today")
        return self

    def __enter__(self) -> None:
        if self.where == "enter":
            raise RuntimeError("not today")

    def __exit__(self, *raised: object) -> bool:
        assert raised == (None, None, None), "who is around a call does not learn what it raises"
        if self.where == "exit":
            raise RuntimeError("not today")
        return True


@pytest.mark.parametrize("where", ["call", "enter", "exit", "swallow"])
def test_who_is_around_a_call_cannot_break_it(way: Way, where: str) -> None:
    _, tools = seeing()
    around = Around()
    agent = Agent([asks("plain", "waiting", "bad"), "done"], tools, journal="memory", observers=[Broken(where), around])
    result = way.run(agent)
    assert [call.outcome for call in result.calls] == ["ok", "ok", "tool_error"]
    assert result.observer_errors == (0 if where == "swallow" else 3)
    assert len(around.left) == 3


@pytest.mark.parametrize("where", ["call", "enter", "exit", "swallow"])
def test_who_is_around_a_request_cannot_break_it_either(way: Way, where: str) -> None:
    class Asking(Broken):
        def around_request(self) -> Any:
            return self.around_call(None)  # type: ignore[arg-type]

    agent = Agent(["", "done"], journal="memory", observers=[Asking(where)])
    result = way.run(agent)
    assert result.answer == "done"
    assert result.observer_errors == (0 if where == "swallow" else 2)


class PerRun:
    """Has an observer for each run."""

    def __init__(self) -> None:
        self.runs: dict[str, list[ev.AnyEvent]] = {}
        self.past: list[int] = []
        self.fails = False

    def on_event(self, event: ev.AnyEvent) -> None:
        raise AssertionError("each run has an observer of its own")

    def for_run(self, run_id: str, past: Iterable[ev.AnyEvent]) -> Any:
        if self.fails:
            raise RuntimeError("not today")
        known = list(past)
        self.past.append(len(known))
        events = self.runs.setdefault(run_id, [])
        events[:] = known
        return type("One", (), {"on_event": staticmethod(events.append)})()


def test_each_run_has_an_observer_of_its_own_that_knows_what_was_before(way: Way) -> None:
    observer = PerRun()
    _, tools = seeing()
    agent = Agent([asks("plain"), "done"], tools, journal="memory", observers=[observer], limits=Limits(steps=1))
    stopped = way.run(agent)
    other = way.run(agent, limits=Limits(steps=5))
    assert way.resume(agent, stopped.run_id, limits=Limits(steps=5)).status == "answered"
    assert observer.past[:2] == [0, 0]
    assert observer.past[2] == 6, "all that was recorded until it stopped"
    for run_id in (stopped.run_id, other.run_id):
        assert observer.runs[run_id] == log_of(agent, run_id)


def test_an_observer_that_cannot_be_had_is_counted_and_missed(way: Way) -> None:
    observer = PerRun()
    observer.fails = True
    result = way.run(Agent(["done"], journal="memory", observers=[observer]))
    assert (result.answer, result.observer_errors) == ("done", 1)


@pytest.mark.parametrize("is_async", [False, True], ids=["function", "coroutine"])
def test_who_is_around_an_undo_is_there_too(way: Way, is_async: bool) -> None:
    seen: list[tuple[str, bool]] = []

    def take_back(ctx: CallContext) -> None:
        seen.append((inside.get(), bool(ctx.traceparent)))

    async def take_back_later(ctx: CallContext) -> None:
        await asyncio.sleep(0)
        take_back(ctx)

    @tool(undo=take_back_later if is_async else take_back)
    def pay() -> str:
        return "paid"

    agent = Agent([asks("pay"), "done"], [pay], journal="memory", observers=[Around()])
    run_id = way.run(agent).run_id
    if way.is_async:
        asyncio.run(agent.undo(run_id))
    else:
        agent.undo_sync(run_id)
    assert seen == [(f"{run_id}:1:0", True)]


def test_a_child_is_surrounded_by_the_call_that_it_serves(way: Way) -> None:
    child = Agent(["found"], journal="memory", name="child")
    named: list[str] = []

    @tool(spends=True)
    def ask(ctx: CallContext) -> str:
        named.append(ctx.traceparent)
        return child.run_sync("go", under=ctx).answer or ""

    way.run(Agent([asks("ask"), "done"], [ask], journal="memory"))
    start = log_of(child)[0]
    assert isinstance(start, ev.RunStarted)
    assert [start.traceparent] == named
