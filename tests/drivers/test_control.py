"""Cancel, say, raise limits: from another thread, while a model, a tool, or nothing but the clock is at work."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from driver_doubles import Trail, Way, asks, kinds, later, log_of, of, until, wait_for

from tenlines import Agent, CallContext, Control, Limits, Reply, Settings, tool
from tenlines.core import events as ev
from tenlines.core.limits import Retry
from tenlines.core.transcript import User
from tenlines.errors import ConnectionFailed, Overloaded, RateLimited
from tenlines.models.plain import FunctionModel
from tenlines.testing import FakeClock


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end of the test, so that no thread is left behind for long."""
    gate = threading.Event()
    yield gate
    gate.set()


# --- cancel -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blocking", "coroutine"])
def test_cancel_now_does_not_wait_for_the_model(way: Way, gate: threading.Event, kind: str) -> None:
    control, asked = Control(), threading.Event()

    def blocking(messages: list[Any]) -> str:
        asked.set()
        gate.wait(20)
        return "late"

    async def coroutine(messages: list[Any]) -> str:
        asked.set()
        await until(gate.is_set)
        return "late"

    agent = Agent(FunctionModel(blocking if kind == "blocking" else coroutine), journal="memory")
    later(lambda: control.cancel(now=True, reason="enough"), asked)
    result = way.run(agent, control=control)
    assert (result.status, result.reason) == ("cancelled", "enough")
    assert result.steps == 0
    assert kinds(log_of(agent)) == ["RunStarted", "StepStarted", "CancelRequested", "RunEnded"]


def test_cancel_lets_the_model_finish_and_runs_none_of_its_calls(way: Way, gate: threading.Event) -> None:
    control, asked = Control(), threading.Event()

    class Watch:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CancelRequested):
                gate.set()

    def model(messages: list[Any]) -> Reply:
        asked.set()
        wait_for(gate)
        return asks("work")

    agent = Agent(model, {"work": lambda: "never"}, journal="memory", observers=[Watch()])
    later(control.cancel, asked)
    result = way.run(agent, control=control)
    assert result.status == "cancelled"
    assert result.steps == 1
    assert [record.outcome for record in result.calls] == ["not_executed"]


@pytest.mark.parametrize("is_read_only", [False, True])
def test_cancel_now_gives_up_a_running_tool_and_says_what_is_known(
    way: Way, gate: threading.Event, is_read_only: bool
) -> None:
    control, started, told = Control(), threading.Event(), threading.Event()

    @tool(read_only=is_read_only)
    def work(ctx: CallContext) -> str:
        ctx.on_give_up(told.set)
        started.set()
        gate.wait(20)
        return "late"

    agent = Agent([asks("work", "work"), "never"], [work], journal="memory", settings=Settings(max_parallel=1))
    later(lambda: control.cancel(now=True), started)
    result = way.run(agent, control=control)
    assert result.status == "cancelled"
    assert [record.outcome for record in result.calls] == ["cancelled" if is_read_only else "in_doubt", "not_executed"]
    wait_for(told)


def test_cancel_drains_what_is_running_and_starts_nothing_more(way: Way, gate: threading.Event) -> None:
    control, started = Control(), threading.Event()

    class Watch:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CancelRequested):
                gate.set()

    @tool(read_only=True)
    def work(n: int) -> int:
        started.set()
        wait_for(gate)
        return n

    call = {"name": "work"}
    moves = [{"tool_calls": [{**call, "id": str(n), "arguments": {"n": n}} for n in range(4)]}, "never"]
    agent = Agent(moves, [work], journal="memory", observers=[Watch()], settings=Settings(max_parallel=2))
    later(control.cancel, started)
    result = way.run(agent, control=control)
    assert result.status == "cancelled"
    assert [record.outcome for record in result.calls] == ["ok", "ok", "not_executed", "not_executed"]


def test_a_call_that_had_ended_when_cancel_came_keeps_its_result(way: Way) -> None:
    """Even if the driver has not looked at it yet."""
    control = Control()

    class Slow:
        """Holds the driver up while it records the first result, until the second call has ended too."""

        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CallReturned) and not control.pending:
                control.cancel(now=True)
                wait_for(second_ended)
                threading.Event().wait(0.05)  # until its thread has handed the value over

    second_ended = threading.Event()

    @tool(read_only=True)
    def first() -> str:
        return "one"

    @tool(read_only=True)
    def second() -> str:
        second_ended.set()
        return "two"

    agent = Agent([asks("first", "second"), "never"], [first, second], journal="memory", observers=[Slow()])
    result = way.run(agent, control=control)
    assert result.status == "cancelled"
    assert [record.outcome for record in result.calls] == ["ok", "ok"]


def test_cancel_ends_the_wait_before_a_retry(way: Way) -> None:
    control = Control()
    clock = FakeClock(during=lambda seconds: control.cancel())
    agent = Agent([Overloaded("busy"), "never"], journal="memory", clock=clock)
    result = way.run(agent, control=control)
    assert result.status == "cancelled"
    assert len(clock.waits) == 1
    assert clock.time == FakeClock().time


def test_cancel_before_the_run_begins_asks_nobody(way: Way) -> None:
    control = Control()
    control.cancel()
    agent = Agent(["never"], {}, journal="memory")
    assert way.run(agent, control=control).status == "cancelled"
    assert agent.model.requests == []  # type: ignore[attr-defined]


def test_a_control_that_is_used_after_the_run_does_nothing(way: Way) -> None:
    control = Control()
    agent = Agent(["done"], {}, journal="memory")
    result = way.run(agent, control=control)
    control.say("hello?")
    control.cancel(now=True)
    again = way.resume(agent, result.run_id, control=control)  # an answered run is returned as it is
    assert again.answer == "done"


# --- say, raise limits --------------------------------------------------------------------------------


def test_what_is_said_while_the_model_thinks_is_answered_too(way: Way) -> None:
    control = Control()

    def model(messages: list[Any]) -> str:
        if len(messages) == 1:
            control.say("and in Rome?")
            return "3 C in Oslo"
        return "15 C in Rome"

    result = way.run(Agent(model, journal="memory"), "Weather in Oslo?", control=control)
    assert result.answer == "15 C in Rome"
    assert [type(message).__name__ for message in result.messages] == ["User", "Assistant", "User", "Assistant"]


def test_what_is_said_ends_the_wait_before_a_retry(way: Way) -> None:
    control, said = Control(), []

    def during(seconds: float) -> None:
        if not said:
            said.append(seconds)
            control.say("are you there?")

    clock = FakeClock(during=during)
    result = way.run(Agent([Overloaded("busy"), "yes"], journal="memory", clock=clock), control=control)
    assert result.answer == "yes"
    assert [message.text for message in result.messages if isinstance(message, User)] == ["go", "are you there?"]
    assert len(clock.waits) == 2  # it still waits before it asks again


def test_limits_can_be_raised_while_the_run_goes_on(way: Way) -> None:
    control = Control()

    @tool
    def more() -> str:
        control.raise_limits(Limits(steps=5))
        return "ok"

    result = way.run(Agent([asks("more"), "done"], [more], journal="memory"), control=control, limits=Limits(steps=1))
    assert result.answer == "done"


# --- retries ------------------------------------------------------------------------------------------


def test_a_retry_waits_as_long_as_the_provider_asked_and_longer_each_time(way: Way) -> None:
    clock = FakeClock()
    moves = [RateLimited("slow down", retry_after_s=30), ConnectionFailed("broke off"), Overloaded("busy"), "done"]
    result = way.run(Agent(moves, journal="memory", clock=clock))
    assert result.answer == "done"
    assert result.retries == 3
    asked, second, third = clock.waits
    assert asked == 30
    assert 2 <= second <= 2.5
    assert 4 <= third <= 5


def test_a_retry_is_given_up_after_the_last_attempt(way: Way) -> None:
    clock = FakeClock()
    settings = Settings(retry=Retry(attempts=2))
    result = way.run(Agent([Overloaded("busy")] * 9, journal="memory", clock=clock, settings=settings))
    assert (result.status, len(clock.waits)) == ("model_error", 1)
    assert "after 2 attempts" in result.reason


# --- deadlines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blocking", "coroutine"])
def test_the_deadline_ends_a_request(way: Way, gate: threading.Event, kind: str) -> None:
    def blocking(messages: list[Any]) -> str:
        gate.wait(20)
        return "late"

    async def coroutine(messages: list[Any]) -> str:
        await until(gate.is_set)
        return "late"

    agent = Agent(FunctionModel(blocking if kind == "blocking" else coroutine), journal="memory")
    result = way.run(agent, limits=Limits(seconds=0.03))
    assert result.status == "deadline"
    assert "did not answer within" in result.reason


def test_the_deadline_ends_a_request_whose_stream_never_ends(way: Way, gate: threading.Event) -> None:
    from tenlines.ports import Delta

    class Endless:
        name = "endless"

        def session(self) -> Any:
            return self

        def complete(self, request: Any, on_delta: Any) -> Reply:
            while not gate.is_set():
                on_delta(Delta(request.step, "more "))
            return Reply("late")

        async def acomplete(self, request: Any, on_delta: Any) -> Reply:
            while not gate.is_set():
                on_delta(Delta(request.step, "more "))
                await asyncio.sleep(0)
            return Reply("late")

    class Watch:
        """Slower than the model."""

        def on_event(self, event: Any) -> None: ...

        def on_delta(self, delta: Any) -> None:
            threading.Event().wait(0.001)

    agent = Agent(Endless(), journal="memory", observers=[Watch()])
    later(gate.set, stuck := threading.Event())
    timer = threading.Timer(3, stuck.set)
    timer.start()
    result = way.run(agent, limits=Limits(seconds=0.03))
    timer.cancel()
    assert not stuck.is_set()
    assert result.status == "deadline"
    stuck.set()


@pytest.mark.parametrize("kind", ["blocking", "coroutine"])
def test_the_deadline_ends_tools_and_starts_no_more_of_them(way: Way, gate: threading.Event, kind: str) -> None:
    def blocking() -> str:
        gate.wait(20)
        return "late"

    async def coroutine() -> str:
        await until(gate.is_set)
        return "late"

    work = tool(blocking if kind == "blocking" else coroutine, name="work")
    agent = Agent([asks("work", "work"), "never"], [work], journal="memory")
    result = way.run(agent, limits=Limits(seconds=0.03))
    assert result.status == "deadline"
    assert [record.outcome for record in result.calls] == ["timeout", "not_executed"]


def test_the_deadline_ends_the_wait_before_a_retry_by_not_beginning_it(way: Way) -> None:
    clock = FakeClock()
    result = way.run(Agent([Overloaded("busy")] * 9, journal="memory", clock=clock), limits=Limits(seconds=4))
    assert result.status == "deadline"
    assert len(clock.waits) == 2
    assert sum(clock.waits) < 4


# --- calls that were given up -------------------------------------------------------------------------


@pytest.mark.parametrize("has_control", [False, True], ids=["alone", "controlled"])
@pytest.mark.parametrize("ending", ["a value", "an exception"])
def test_a_late_result_is_recorded_and_never_enters_the_transcript(way: Way, has_control: bool, ending: str) -> None:
    gate, ended = threading.Event(), threading.Event()

    @tool(timeout_s=0.02)
    def slow() -> str:
        wait_for(gate)
        ended.set()
        if ending == "a value":
            return "too late"
        raise ValueError("too late")

    @tool
    def quick() -> str:
        gate.set()
        wait_for(ended)
        threading.Event().wait(0.05)  # until its thread has handed the value over
        return "quick"

    agent = Agent([asks("slow"), asks("quick"), "done"], [slow, quick], journal="memory")
    result = way.run(agent, control=Control() if has_control else None)
    assert result.answer == "done"
    assert [record.outcome for record in result.calls] == ["timeout", "ok"]
    (late,) = of(log_of(agent), ev.LateResultArrived)
    assert (late.step, late.position) == (1, 0)
    assert (late.outcome, "too late" in late.text) == ("ok" if ending == "a value" else "tool_error", True)
    assert "too late" not in str(result.messages)


def test_a_given_up_coroutine_is_cancelled_and_may_clean_up(way: Way) -> None:
    cleaned: list[str] = []
    done = threading.Event()

    @tool(timeout_s=0.02)
    async def slow() -> str:
        try:
            await asyncio.sleep(30)
        finally:
            cleaned.append("closed")
            done.set()
        return "late"

    result = way.run(Agent([asks("slow"), "done"], [slow], journal="memory"))
    assert result.answer == "done"
    wait_for(done)
    assert cleaned == ["closed"]


def test_several_overdue_calls_are_given_up_together_and_the_next_ones_start(way: Way, gate: threading.Event) -> None:
    @tool(timeout_s=0.02, read_only=True)
    def hang() -> str:
        gate.wait(20)
        return "late"

    @tool(read_only=True)
    def quick() -> str:
        return "quick"

    moves = [asks("hang", "hang", "quick", "hang", "quick"), "done"]
    result = way.run(Agent(moves, [hang, quick], journal="memory", settings=Settings(max_parallel=2)))
    assert [record.outcome for record in result.calls] == ["timeout", "timeout", "ok", "timeout", "ok"]
    assert result.answer == "done"


# --- the program is told to stop ----------------------------------------------------------------------


def closed_log(journal: Any) -> tuple[str, list[str]]:
    """How the newest run ended, and what became of its calls."""
    from tenlines.core.replay import fold

    (summary,) = journal.runs(1)
    result = fold(journal.read(summary.run_id)).result()
    return summary.status, [record.outcome for record in result.calls]


@pytest.mark.parametrize("kind", ["blocking", "coroutine", "beside another", "bounded", "in its check"])
def test_keyboard_interrupt_out_of_a_tool_closes_the_log_first(way: Way, gate: threading.Event, kind: str) -> None:
    journal = Trail()

    def interrupt() -> str:
        raise KeyboardInterrupt

    async def interrupt_async() -> str:
        raise KeyboardInterrupt

    def held() -> str:
        gate.wait(20)
        return "late"

    options: dict[str, Any] = {"read_only": True} if kind == "beside another" else {}
    if kind == "bounded":
        options["timeout_s"] = 5
    bad = tool(interrupt_async if kind == "coroutine" else interrupt, name="bad", **options)
    port: Any = bad
    if kind == "in its check":
        port = _Interrupting(bad)
    tools = [port, tool(held, read_only=True)]
    moves = [asks("held", "bad") if kind == "beside another" else asks("bad", "held"), "never"]
    agent = Agent(moves, tools, journal=journal)
    with pytest.raises(KeyboardInterrupt):
        way.run(agent)
    status, outcomes = closed_log(journal)
    assert status == "cancelled"
    expected = {"beside another": ["cancelled", "cancelled"], "in its check": ["not_executed", "not_executed"]}
    assert outcomes == expected.get(kind, ["in_doubt", "not_executed"])
    assert journal.pending == []


class _Interrupting:
    def __init__(self, inner: Any) -> None:
        self.spec, self.is_async, self.is_killable = inner.spec, False, False

    def check(self, arguments: Any) -> Any:
        raise KeyboardInterrupt

    def call(self, bound: Any, ctx: Any) -> Any: ...

    def render(self, value: Any) -> Any: ...


def test_keyboard_interrupt_out_of_a_model_closes_the_log_first(way: Way) -> None:
    for control in (None, Control()):
        journal = Trail()

        def model(messages: list[Any]) -> str:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            way.run(Agent(model, journal=journal), control=control)
        assert closed_log(journal) == ("cancelled", [])


@pytest.mark.parametrize("where", ["a tool in a thread", "a model in a thread"])
def test_ctrl_c_while_the_driver_waits_closes_the_log_first(way: Way, gate: threading.Event, where: str) -> None:
    journal = Trail()

    def press() -> None:
        threading.Event().wait(0.05)  # until the main thread waits; a signal just before that is seen only after it
        os.kill(os.getpid(), signal.SIGINT)
        gate.wait(20)

    @tool(timeout_s=10)
    def work() -> str:
        press()
        return "late"

    def model(messages: list[Any]) -> Reply:
        if where == "a model in a thread":
            press()
        return asks("work")

    control = Control() if where == "a model in a thread" else None
    with pytest.raises(KeyboardInterrupt):
        way.run(Agent(model, [work], journal=journal), control=control)
    assert closed_log(journal) == ("cancelled", ["in_doubt"] if where == "a tool in a thread" else [])


def cancelled_from_within(make: Callable[[Callable[[], Any]], Agent], journal: Trail, times: int = 1) -> None:
    """Run a task that cancels itself from within a tool or a model, once or twice."""

    async def main() -> None:
        def stop() -> None:
            task.cancel()

        task = asyncio.create_task(make(stop).run("go"))
        for _ in range(times - 1):
            await until(lambda: bool(task.cancelling()))
            await asyncio.sleep(0.01)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("where", ["model", "tool"])
def test_a_cancelled_task_closes_the_log_also_when_it_is_cancelled_twice(where: str, times: int) -> None:
    journal = Trail()

    def make(stop: Callable[[], Any]) -> Agent:
        @tool
        async def work() -> str:
            stop()
            try:
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(0.05)  # slow to clean up
            return "late"

        async def model(messages: list[Any]) -> Reply:
            if where == "model":
                stop()
                await asyncio.sleep(30)
            return asks("work")

        return Agent(FunctionModel(model), [work], journal=journal)

    cancelled_from_within(make, journal, times)
    assert closed_log(journal) == ("cancelled", ["in_doubt"] if where == "tool" else [])


def test_a_timeout_around_a_run_that_is_waiting_to_retry() -> None:
    async def main() -> None:
        agent = Agent([RateLimited("slow down", retry_after_s=60)], journal="memory")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await agent.run("go")
        assert agent.journal.runs(1)[0].status == "cancelled"

    asyncio.run(main())


def test_an_interrupt_whose_log_cannot_be_closed_is_raised_all_the_same(way: Way) -> None:
    journal = Trail(fail_on=ev.RunEnded)

    @tool
    def bad() -> str:
        raise KeyboardInterrupt

    agent = Agent([asks("bad")], [bad], journal=journal)
    with pytest.raises(KeyboardInterrupt):
        way.run(agent)
    assert journal.runs(1)[0].status == "open"
    journal.fail_on = None
    journal.pending.clear()
    result = way.resume(Agent(["done"], [bad], journal=journal), journal.runs(1)[0].run_id)
    assert result.answer == "done"
    assert [record.outcome for record in result.calls] == ["in_doubt"]


def test_a_model_that_gives_something_else_than_a_reply_is_a_model_error(way: Way) -> None:
    class Odd:
        name = "odd"

        def session(self) -> Any:
            return self

        def complete(self, request: Any, on_delta: Any) -> Any:
            return "text"

        async def acomplete(self, request: Any, on_delta: Any) -> Any:
            return None

    for control in (None, Control()):
        result = way.run(Agent(Odd(), journal="memory"), control=control)
        assert result.status == "model_error"
        assert "not a Reply" in result.reason


def test_the_earlier_of_a_tools_own_time_limit_and_the_runs_holds(way: Way, gate: threading.Event) -> None:
    def hang() -> str:
        gate.wait(20)
        return "late"

    short = Agent([asks("hang"), "done"], [tool(hang, timeout_s=0.02)], journal="memory")
    result = way.run(short, limits=Limits(seconds=60))
    assert (result.answer, result.calls[0].outcome) == ("done", "timeout")
    long = Agent([asks("hang"), "never"], [tool(hang, timeout_s=60)], journal="memory")
    result = way.run(long, limits=Limits(seconds=0.03))
    assert (result.status, result.calls[0].outcome) == ("deadline", "timeout")
