"""Tools that raise, hang, block, are cancelled, or run beside others."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from case_laws import assert_valid, check_log, encoded
from case_world import CaseModel, Mode, World, says, until

from tenlines import Agent, CallContext, Control, Limits
from tenlines.core import events as ev
from tenlines.core.replay import fold
from tenlines.core.transcript import Result
from tenlines.ports import Bound, Invalid, Rendered
from tenlines.testing import FakeClock


def test_exc_01_an_exception_is_told_to_the_model_without_its_traceback(world: World) -> None:
    @world.tool
    def read() -> str:
        """Read."""
        raise KeyError("alpha")

    world.tool(lambda: "beta", name="list")
    run = world.play().expect()
    assert "Traceback" not in run.call("a").text
    assert ".py" not in run.call("a").text
    (event,) = run.events(ev.CallFailed)
    assert event.error_type == "KeyError"
    assert "Traceback" in event.detail
    assert Path(__file__).name in event.detail


def test_exc_02_an_exception_without_a_message_is_named(world: World) -> None:
    @world.tool
    def t() -> str:
        """T."""
        raise TimeoutError

    @world.tool
    def u() -> str:
        """U."""
        raise AssertionError

    world.play().expect()


def test_exc_03_stop_iteration_out_of_a_tool_hangs_nobody(world: World) -> None:
    @world.tool(read_only=True)
    def first() -> str:
        """First."""
        return next(x for x in [])

    @world.tool(read_only=True)
    async def afirst() -> str:
        """First."""
        return next(x for x in [])

    began = time.monotonic()
    world.play().expect()
    assert time.monotonic() - began < 2


def test_base_01_a_tool_that_raises_cancelled_error_by_itself_costs_nobody_else_anything(world: World) -> None:
    failed = threading.Event()

    @world.tool(read_only=True)
    async def mcp() -> str:
        """Raises."""
        await asyncio.sleep(0)
        failed.set()
        raise asyncio.CancelledError

    @world.tool(read_only=True)
    async def ok() -> str:
        """Fine."""
        await until(failed.is_set)
        return "fine"

    world.play().expect()


_GO_ON = """
import json, sys
from tenlines import Agent
from tenlines.core.replay import fold
from tenlines.journal import open_journal
from tenlines.testing import ScriptedModel

path, run_id = sys.argv[1:]
journal = open_journal(path)
past = fold(journal.read(run_id)).state.messages
model = ScriptedModel(["ok"])
result = Agent(model, {}, journal=journal).run_sync("go on", messages=past)
print(json.dumps([result.answer, len(model.requests), result.tool_calls, result.repairs]))
"""


@pytest.mark.slow
def test_base_02_keyboard_interrupt_reaches_the_caller_after_the_log_was_closed(world: World) -> None:
    store = world.store()
    world.tool(lambda: "1", name="t1")
    world.tool(lambda: "3", name="t3")

    @world.tool
    def t2() -> str:
        """Stop."""
        raise KeyboardInterrupt

    model = CaseModel(world.input["model"])
    with pytest.raises(KeyboardInterrupt):
        world.play(model=model)
    (summary,) = store.runs()
    machine = fold(store.read(summary.run_id))
    assert summary.status == machine.result().status == "cancelled"
    assert_valid(encoded(machine.state.messages))
    assert [record.outcome for record in machine.result().calls] == ["ok", "in_doubt", "not_executed"]
    assert [world.tools[name].runs for name in ("t1", "t2", "t3")] == [1, 1, 0]
    assert len(model.requests) == 1
    store.close()
    other = [sys.executable, "-c", _GO_ON, str(store.path), summary.run_id]
    done = subprocess.run(other, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == ["ok", 1, 0, []]
    assert world.tools["t1"].runs == 1


def _cancel_01_tools(world: World, wrote: list[str], stop: Any) -> None:
    world.tool(lambda: "1", name="one")
    world.tool(lambda: "3", name="three")

    @world.tool
    async def two() -> str:
        """Write, then wait."""
        wrote.append("x")
        stop()
        await asyncio.sleep(60)
        return "2"


def test_cancel_01_what_was_done_stays_and_what_was_running_is_in_doubt(world: World) -> None:
    world.store()
    control, wrote = Control(), list[str]()
    _cancel_01_tools(world, wrote, lambda: control.cancel(now=True))
    run = world.play(control=control).expect()
    assert wrote == ["x"]
    assert "had started" in run.call("b").text
    assert "not known" in run.call("b").text
    assert "before it started" in run.call("c").text
    after = world.play(history=run.result.messages, task="What now?", model=[says("Look first.")])
    assert after.result.answer == "Look first."
    assert after.result.repairs == ()


def test_cancelling_the_task_leaves_the_same_log_as_cancelling_by_hand(tmp_path: Path) -> None:
    world = World({"input": {"user": "go"}, "expected": {}}, Mode("aio", False), tmp_path)

    async def main() -> str:
        _cancel_01_tools(world, [], lambda: task.cancel())
        asked = [{"id": one, "name": name} for one, name in (("a", "one"), ("b", "two"), ("c", "three"))]
        agent = Agent([{"tool_calls": asked}], list(world.tools.values()), journal=world.journal)
        task = asyncio.create_task(agent.run("go"))
        with pytest.raises(asyncio.CancelledError):
            await task
        return world.journal.runs()[0].run_id

    machine = fold(world.journal.read(asyncio.run(main())))
    assert machine.result().status == "cancelled"
    assert [record.outcome for record in machine.result().calls] == ["ok", "in_doubt", "not_executed"]
    assert_valid(encoded(machine.state.messages))


@pytest.mark.driver("aio")
def test_cancel_02_a_cancelled_task_is_cancelled_and_asyncio_knows_it(world: World) -> None:
    """Awaited plainly, in a timeout, and in `wait_for`."""
    world.store()
    cleaned: list[str] = []
    started = asyncio.Event()

    @world.tool
    async def slow() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append("slow")
        return "late"

    model = CaseModel(world.input["model"])
    agent = Agent(model, list(world.tools.values()), journal=world.journal)

    async def plainly() -> None:
        task = asyncio.create_task(agent.run("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    async def in_a_timeout() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await agent.run("go")
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0

    async def in_wait_for() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.run("go"), 0.02)

    for number, way in enumerate((plainly, in_a_timeout, in_wait_for), 1):
        began = time.monotonic()
        asyncio.run(way())
        assert time.monotonic() - began < 0.5
        assert len(cleaned) == number
        assert len(model.requests) == number
        log = list(world.journal.read(world.journal.runs(1)[0].run_id))
        check_log(log, fold(log).result())
        assert fold(log).result().status == "cancelled"


def test_cancel_04_a_cancel_reaches_the_agent_inside_a_tool(world: World) -> None:
    """An async tool is cancelled with the run; a blocking one passes the cancel on through its context."""
    world.store()
    control, ticks = Control(), [0]

    async def tick() -> str:
        """Tick."""
        while True:
            ticks[0] += 1
            if ticks[0] == 3:
                control.cancel(now=True)
            await asyncio.sleep(0.002)

    child = Agent(CaseModel([{"tool_calls": [{"id": "t", "name": "tick"}]}]), [tick], journal=world.journal)

    async def delegate() -> str:
        """Delegate."""
        return (await child.run("tick")).answer or ""

    def delegate_blocking(ctx: CallContext) -> str:
        inner = Control()
        ctx.on_give_up(lambda: inner.cancel(now=True))
        return child.run_sync("tick", control=inner).answer or ""

    for number, way in enumerate((delegate, delegate_blocking), 1):
        control, ticks[0] = Control(), 0
        world.tool(way, name="delegate")
        world.play(control=control).expect()
        log = _ended(world, 2 * number)
        assert log.status == "cancelled"
        assert log.steps == 1
        assert log.usage.input == 100
        assert [record.outcome for record in log.calls] == ["in_doubt"]
        seen = ticks[0]
        time.sleep(0.02)
        assert ticks[0] == seen


def _ended(world: World, runs: int) -> Any:
    """The result of the child's run, which may end a moment after its parent's."""
    for _ in range(500):
        named = world.journal.runs()
        (child,) = [one for one in named[:2] if one.task == "tick"]
        if child.status != "open":
            break
        time.sleep(0.001)
    assert len(named) == runs
    return fold(world.journal.read(child.run_id)).result()


def test_par_01_a_failing_call_takes_nothing_from_its_siblings(world: World) -> None:
    """Each waits for another one to have started or ended, so they must run at once."""
    ok_started, bad_ended, ok_ended = threading.Event(), threading.Event(), threading.Event()

    @world.tool(read_only=True)
    async def ok() -> str:
        """Fine."""
        ok_started.set()
        await until(bad_ended.is_set)
        ok_ended.set()
        return "fine"

    @world.tool(read_only=True)
    async def bad() -> str:
        """Bad."""
        await until(ok_started.is_set)
        bad_ended.set()
        raise ValueError("x")

    @world.tool(read_only=True)
    async def slow() -> str:
        """Late."""
        await until(ok_ended.is_set)
        return "late"

    world.play().expect()


def test_par_02_results_stand_in_call_order_whichever_came_first(world: World) -> None:
    cairo = threading.Event()

    class Watch:
        """Lets Lima end once Cairo's result is recorded."""

        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CallReturned) and event.position == 1:
                cairo.set()

    @world.tool(read_only=True)
    async def temp(c: str) -> str:
        """Temperature."""
        if c == "Lima":
            await until(cairo.is_set)
            return "19 C"
        return "33 C"

    run = world.play(observers=[Watch()]).expect()
    assert [event.position for event in run.events(ev.CallReturned)] == [1, 0]
    assert list(run.results().items()) == [("s", "19 C"), ("t", "33 C")]
    assert [m["tool_call_id"] for m in run.sent[1] if m["role"] == "tool"] == ["s", "t"]


class _Hooked:
    """A tool whose check or rendering raises."""

    def __init__(self, inner: Any, where: str, error: BaseException) -> None:
        self.inner, self.where, self.error, self.runs = inner, where, error, 0
        self.spec, self.is_async, self.is_killable = inner.spec, False, False

    def check(self, arguments: dict[str, Any]) -> Bound | Invalid:
        if self.where == "check":
            raise self.error
        return self.inner.check(arguments)

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        self.runs += 1
        return self.inner.call(bound, ctx)

    def render(self, value: Any) -> Rendered:
        if self.where == "render":
            raise self.error
        return self.inner.render(value)


def test_par_04_a_hook_that_raises_before_or_after_a_tool_is_a_result_of_that_call(world: World) -> None:
    """Before the tool it fails closed: the tool does not run."""
    world.tool(lambda: "A", name="a", read_only=True)
    world.tool(lambda: "B", name="b", read_only=True)
    plain = world.tools["b"]
    for error in (RuntimeError("hook"), SystemExit("hook"), asyncio.CancelledError("hook")):
        for where, outcome, runs in (("check", "invalid_arguments", 0), ("render", "tool_error", 1)):
            world.tools["b"] = _Hooked(plain, where, error)
            run = world.play().expect()
            assert [one.call_id for one in run.result.messages if isinstance(one, Result)] == ["1", "2"]
            assert run.call("2").outcome == outcome
            assert "hook" in run.call("2").text
            assert world.tools["b"].runs == runs


def test_time_01_an_async_tool_that_never_returns_is_given_up_and_cleans_up(world: World) -> None:
    cleaned = threading.Event()

    @world.tool(timeout_s=0.03)
    async def hang() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        return "never"

    began = time.monotonic()
    run = world.play().expect()
    assert time.monotonic() - began < 1
    assert cleaned.wait(1)
    assert "may have taken effect" in run.call("a").text


def test_time_02_a_blocking_tool_is_given_up_and_its_late_end_changes_nothing(world: World) -> None:
    gate, ended, late = threading.Event(), threading.Event(), []

    @world.tool(timeout_s=0.03)
    def block() -> str:
        """Block."""
        gate.wait(10)
        late.append("late")
        ended.set()
        return "late"

    began = time.monotonic()
    run = world.play().expect()  # with asyncio, closing the loop does not wait for the thread either
    assert time.monotonic() - began < 1
    assert late == []
    assert "still be going on" in run.call("a").text
    gate.set()
    assert ended.wait(5)
    assert late == ["late"]
    assert run.results() == {"a": run.call("a").text}
    check_log(list(world.journal.read(run.result.run_id)), run.result)


def test_time_04_the_deadline_is_seen_before_a_wait_that_would_pass_it(world: World) -> None:
    clock = FakeClock()
    run = world.play(clock=clock, limits=Limits(seconds=1)).expect()
    assert clock.waits == []
    assert "too many requests" in run.result.reason
    assert [message["role"] for message in encoded(run.result.messages)] == ["user"]


def test_loop_01_blocking_tools_run_beside_each_other_and_beside_the_event_loop(world: World) -> None:
    """Both wait for each other, and under asyncio also for a heartbeat that beats meanwhile."""
    together, beats = threading.Barrier(2, timeout=5), [0]

    @world.tool(read_only=True)
    def s() -> str:
        """Block."""
        together.wait()
        before = beats[0]
        while world.mode.driver == "aio" and beats[0] < before + 3:
            time.sleep(0.001)
            assert time.monotonic() < latest, "the event loop stood still"
        return "x"

    async def heartbeat() -> None:
        while True:
            beats[0] += 1
            await asyncio.sleep(0.001)

    class Starts:
        """Starts the heartbeat in the loop that runs the agent."""

        beating: Any = None

        def on_event(self, event: Any) -> None:
            if world.mode.driver == "aio" and self.beating is None:
                self.beating = asyncio.get_running_loop().create_task(heartbeat())

    latest = time.monotonic() + 5
    world.play(observers=[Starts()]).expect()


def test_the_harness_would_notice_a_broken_transcript() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "a", "content": "r"}
    user = {"role": "user", "content": "u"}
    assert_valid([user, asks, result])
    for broken in (
        [user, asks],
        [user, asks, user, result],
        [user, result],
        [user, asks, result, result],
        [user, asks, result, asks, result],
        [user, {**asks, "tool_calls": []}],
        [user, {**asks, "tool_calls": [{**call, "function": {"name": "a b", "arguments": "{}"}}]}, result],
        [user, {**asks, "tool_calls": [{**call, "function": {"name": "t", "arguments": "[]"}}]}, result],
        [user, {"role": "system", "content": "s"}],
        [asks, result],
        [{"role": "user", "content": "\ud800"}],
        [{"role": "user", "content": float("nan")}],
    ):
        with pytest.raises((AssertionError, ValueError)):
            assert_valid(broken)
