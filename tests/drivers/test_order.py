"""What happens in which order: intent before act, results as they arrive, a window that slides."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from driver_doubles import WAYS, Trail, Way, asks, kinds, log_of, of, until, wait_for

from tenlines import Agent, CallContext, Reply, Settings, ToolCall, tool
from tenlines.core import events as ev
from tenlines.models.plain import FunctionModel


def test_nothing_acts_before_its_intent_is_durable(way: Way) -> None:
    journal = Trail()

    @tool(read_only=True)
    def look() -> str:
        journal.acts("look")
        return "seen"

    @tool(read_only=True)
    async def peek() -> str:
        journal.acts("peek")
        return "seen"

    @tool
    def send() -> str:
        journal.acts("send")
        return "sent"

    replies = iter([asks("look", "peek", "send", "nobody", "look"), asks("send"), Reply("done")])

    def model(messages: list[Any]) -> Reply:
        journal.acts("model")
        return next(replies)

    result = way.run(Agent(model, [look, peek, send], journal=journal))
    assert result.answer == "done"
    assert journal.too_early == []
    assert journal.trail.count("model") == 3
    assert journal.trail[-2:] == ["RunEnded", "commit"]
    first = journal.trail.index("send")
    assert "ModelReplied" in journal.trail[:first]
    assert journal.trail[:first].count("CallStarted") == 3


def test_each_result_is_durable_before_the_next_one_has_arrived(way: Way) -> None:
    journal, stored = Trail(), threading.Event()

    class Watch:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CallReturned) and event.position == 1:
                recorded.append(event)

    recorded: list[Any] = []
    commit = journal.commit

    def committing(run_id: str) -> None:
        commit(run_id)
        if recorded:
            stored.set()

    journal.commit = committing  # type: ignore[method-assign]

    @tool(read_only=True)
    async def slow() -> str:
        await until(stored.is_set)
        return "slow"

    @tool(read_only=True)
    async def quick() -> str:
        return "quick"

    agent = Agent([asks("slow", "quick"), "done"], [slow, quick], journal=journal, observers=[Watch()])
    result = way.run(agent)
    assert [record.text for record in result.calls] == ["slow", "quick"]
    assert [event.position for event in of(log_of(agent), ev.CallReturned)] == [1, 0]


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "coroutine"])
def test_never_more_than_max_parallel_run_at_once_and_exactly_so_many_do(way: Way, is_async: bool) -> None:
    running, most, lock = [0], [0], threading.Lock()
    full = threading.Event()

    def enter() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 3:
                full.set()

    def leave() -> None:
        with lock:
            running[0] -= 1

    @tool(read_only=True, name="work")
    def blocking(n: int) -> int:
        enter()
        wait_for(full)
        leave()
        return n

    @tool(read_only=True, name="work")
    async def coroutine(n: int) -> int:
        enter()
        await until(full.is_set)
        await asyncio.sleep(0)
        leave()
        return n

    calls = tuple(ToolCall(str(n), "work", f'{{"n": {n}}}') for n in range(12))
    work = coroutine if is_async else blocking
    agent = Agent([Reply(calls=calls), "done"], [work], settings=Settings(max_parallel=3), journal="memory")
    result = way.run(agent)
    assert most[0] == 3
    assert [record.text for record in result.calls] == [str(n) for n in range(12)]


def test_the_window_slides_and_does_not_wait_for_its_slowest_call(way: Way) -> None:
    last = threading.Event()

    @tool(read_only=True)
    def work(n: int) -> int:
        if n == 0:
            wait_for(last)  # the first call ends only after the last one has
        if n == 7:
            last.set()
        return n

    calls = tuple(ToolCall(str(n), "work", f'{{"n": {n}}}') for n in range(8))
    agent = Agent([Reply(calls=calls), "done"], [work], settings=Settings(max_parallel=2), journal="memory")
    assert way.run(agent).answer == "done"
    assert [event.position for event in of(log_of(agent), ev.CallReturned)] == [1, 2, 3, 4, 5, 6, 7, 0]


def test_calls_that_act_run_alone_and_in_the_order_asked(way: Way) -> None:
    spans: list[str] = []
    lock = threading.Lock()

    def span(name: str) -> str:
        with lock:
            spans.append(f"+{name}")
        with lock:
            spans.append(f"-{name}")
        return name

    reads = [tool(lambda name=name: span(name), name=name, read_only=True) for name in ("r1", "r2")]
    acts = [tool(lambda name=name: span(name), name=name) for name in ("a1", "a2")]
    agent = Agent([asks("a1", "r1", "r2", "a2"), "done"], [*reads, *acts], journal="memory")
    result = way.run(agent)
    assert [record.text for record in result.calls] == ["a1", "r1", "r2", "a2"]
    assert spans[:2] == ["+a1", "-a1"]
    assert spans[-2:] == ["+a2", "-a2"]


def test_tools_see_the_callers_context_and_cannot_change_it(way: Way) -> None:
    who: ContextVar[str] = ContextVar("who", default="nobody")

    @tool(read_only=True)
    def blocking() -> str:
        seen = who.get()
        who.set("a thread")
        return seen

    @tool(read_only=True)
    async def coroutine() -> str:
        seen = who.get()
        who.set("a coroutine")
        return seen

    who.set("caller")
    agent = Agent([asks("blocking", "coroutine"), asks("blocking"), "done"], [blocking, coroutine], journal="memory")
    assert [record.text for record in way.run(agent).calls] == ["caller"] * 3
    assert who.get() == "caller"


def test_blocking_tools_do_not_run_in_the_event_loop() -> None:
    async def main() -> None:
        loop_thread = threading.get_ident()

        @tool
        def here() -> bool:
            return threading.get_ident() == loop_thread

        agent = Agent([asks("here"), "done"], [here], journal="memory")
        assert (await agent.run("go")).calls[0].text == "false"

    asyncio.run(main())


def test_a_single_plain_call_runs_in_the_callers_thread() -> None:
    caller = threading.get_ident()

    @tool
    def here() -> bool:
        return threading.get_ident() == caller

    assert Agent([asks("here"), "done"], [here], journal="memory").run_sync("go").calls[0].text == "true"


def test_the_plain_driver_works_inside_a_running_event_loop() -> None:
    @tool(read_only=True)
    async def coroutine() -> str:
        await asyncio.sleep(0)
        return "from a coroutine"

    @tool(read_only=True)
    def returns_one() -> Any:
        async def inner() -> str:
            return "from an awaitable"

        return inner()

    async def model(messages: list[Any]) -> Any:
        await asyncio.sleep(0)
        return "done" if len(messages) > 1 else asks("coroutine", "returns_one")

    async def main() -> list[str]:
        result = Agent(FunctionModel(model), [coroutine, returns_one], journal="memory").run_sync("go")
        assert result.answer == "done"
        return [record.text for record in result.calls]

    assert asyncio.run(main()) == ["from a coroutine", "from an awaitable"]


def test_a_thousand_calls_at_once(way: Way) -> None:
    running, everyone = [0], asyncio.Event()

    @tool(read_only=True)
    async def work(n: int) -> int:
        running[0] += 1
        if running[0] == 1000:
            everyone.set()
        await everyone.wait()
        return n

    calls = tuple(ToolCall(str(n), "work", f'{{"n": {n}}}') for n in range(1000))
    agent = Agent([Reply(calls=calls), "done"], [work], settings=Settings(max_parallel=1000), journal="memory")
    result = way.run(agent)
    assert [record.text for record in result.calls] == [str(n) for n in range(1000)]


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(),
        StopAsyncIteration(),
        GeneratorExit(),
        SystemExit(3),
        asyncio.CancelledError(),
        MemoryError(),
        RecursionError(),
        BaseExceptionGroup("many", [KeyboardInterrupt(), ValueError("x")]),
        ExceptionGroup("many", [ValueError("x")]),
        type("Odd", (BaseException,), {})(),
        type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", ["blocking", "coroutine", "awaitable"])
def test_whatever_a_tool_raises_is_a_result(way: Way, error: BaseException, kind: str) -> None:
    async def coroutine() -> str:
        raise error

    def blocking() -> str:
        raise error

    def awaitable() -> Any:
        return coroutine()

    bad = tool({"blocking": blocking, "coroutine": coroutine, "awaitable": awaitable}[kind], name="bad")
    good = tool(lambda: "good", name="good")
    agent = Agent([asks("bad", "good"), "done"], [bad, good], journal="memory")
    result = way.run(agent)
    assert result.answer == "done"
    assert [record.outcome for record in result.calls] == ["tool_error", "ok"]
    name = type(error).__name__
    wrapped = kind != "blocking" and name == "StopIteration"  # Python itself makes a RuntimeError of it
    assert ("RuntimeError" if wrapped else name) in result.calls[0].text


def test_a_model_that_raises_odd_things_ends_the_run_as_a_model_error(way: Way) -> None:
    for error in (asyncio.CancelledError(), GeneratorExit(), StopIteration(), BaseExceptionGroup("g", [ValueError()])):

        def model(messages: list[Any], error: BaseException = error) -> str:
            raise error

        result = way.run(Agent(model, journal="memory"))
        assert result.status == "model_error"


def test_each_call_gets_its_own_key_and_place(way: Way) -> None:
    seen: list[tuple[str, int, int, str]] = []

    @tool
    def work(ctx: CallContext) -> str:
        seen.append((ctx.key, ctx.step, ctx.position, ctx.run_id))
        return "ok"

    result = way.run(Agent([asks("work", "work"), asks("work"), "done"], [work], journal="memory"))
    run_id = result.run_id
    assert seen == [
        (f"{run_id}:1:0", 1, 0, run_id),
        (f"{run_id}:1:1", 1, 1, run_id),
        (f"{run_id}:2:0", 2, 0, run_id),
    ]


def test_both_drivers_write_the_same_log() -> None:
    logs = []
    for way in WAYS:

        @tool(read_only=True)
        def look() -> str:
            return "seen"

        @tool
        async def send() -> str:
            raise ValueError("no")

        moves = [asks("look", "send"), asks("nobody"), Reply(""), asks("send"), "done"]
        agent = Agent(moves, [look, send], journal="memory")
        assert way.run(agent).answer == "done"
        logs.append(kinds(log_of(agent)))
    assert logs[0] == logs[1]
