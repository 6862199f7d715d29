"""What a fleet does, whatever engine hands it its runs: ours of seventy lines, and Temporal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from own_engine import OwnEngine
from temporal_server import TemporalServer

from tenlines import Agent, ConfigError, Limits, Reply, RunResult, ToolCall, tool
from tenlines.core import events as ev
from tenlines.drivers.letters import post
from tenlines.errors import RateLimited
from tenlines.fleet import Fleet, Queue, Rate, Schedule, advance
from tenlines.fleet import worker as worker_module
from tenlines.fleet.pacing import LocalPace
from tenlines.fleet.places import LocalPlaces
from tenlines.fleet.temporal import Temporal
from tenlines.fleet.worker import Limits as FleetLimits
from tenlines.fleet.worker import Turn, Worker
from tenlines.journal import open_journal
from tenlines.ports import Engine, Journal, Lane, Order, Saying, Stopping, SystemClock

PATIENCE_S = 30.0
Story = Callable[["Yard"], Coroutine[Any, Any, None]]


class Yard:
    """An engine, a journal, and workers that come and go."""

    def __init__(self, engine: Engine, journal: Journal) -> None:
        self.engine, self.journal = engine, journal
        self.turns: list[Turn] = []

    def agent(self, model: Any, tools: Any = (), **options: Any) -> Agent:
        return Agent(model, tools, journal=self.journal, **options)

    @asynccontextmanager
    async def worker(self, fleet: Fleet, **options: Any) -> AsyncIterator[Worker]:
        """A worker that is told to leave in the end, and does."""
        limits = FleetLimits(LocalPace(fleet.rates), LocalPlaces())
        one, leaving = (
            Worker(fleet, self.journal, self.engine, limits, watch=self.turns.append, **options),
            asyncio.Event(),
        )
        serving = asyncio.create_task(one.serve(leaving))
        try:
            yield one
        finally:
            leaving.set()
            await asyncio.wait_for(serving, PATIENCE_S)

    async def end(self, agent: Agent, run_id: str) -> RunResult:
        return await asyncio.wait_for(agent.wait(run_id, raise_on_stop=False), PATIENCE_S)


@pytest.fixture(params=["own", pytest.param("temporal", marks=pytest.mark.slow)])
def tell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], None]:
    """Have a story told with an engine."""
    monkeypatch.setattr(worker_module, "NEWS_EVERY_S", 0.1)
    if request.param == "own":
        engine: Engine = OwnEngine()
    else:
        server: TemporalServer = request.getfixturevalue("temporal_server")
        engine = Temporal(server.address, heartbeat_s=3.0)

    def run(story: Story) -> None:
        journal = open_journal(tmp_path / "journal.db")
        asyncio.run(story(Yard(engine, journal)))
        journal.close()

    return run


async def until(is_so: Callable[[], object]) -> None:
    """Wait for something."""
    for _ in range(int(PATIENCE_S / 0.02)):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to that")


def put_thrice(done: list[str], gate: Callable[[], Awaitable[None]] | None = None) -> dict[str, Any]:
    """Model and tools of an agent that acts three times."""

    @tool
    async def put(item: str) -> str:
        """Puts."""
        done.append(item)
        if gate is not None:
            await gate()
        return "put"

    def model(messages: Any, request: Any) -> Any:
        if request.step > 3:
            return "done"
        return Reply(calls=(ToolCall("c", "put", f'{{"item": "{request.step}"}}'),))

    return {"model": model, "tools": [put]}


def test_a_task_is_submitted_worked_on_and_answered(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        done: list[str] = []
        agent = yard.agent(**put_thrice(done), name="putter")
        run_id = await agent.submit("go", yard.engine)
        (line,) = yard.journal.runs()
        assert (line.run_id, line.status, line.owner) == (run_id, "open", "")
        assert await yard.engine.workers(Lane("default", "putter")) == 0
        async with yard.worker(Fleet([agent])):
            result = await yard.end(agent, run_id)
            await until(lambda: yard.turns and yard.turns[-1].what == "handed back")
            assert await yard.engine.workers(Lane("default", "putter")) == 1
        assert (result.status, result.answer, done) == ("answered", "done", ["1", "2", "3"])
        kinds = [type(event).__name__ for event in yard.journal.read(run_id)]
        assert kinds[:2] == ["RunStarted", "RunResumed"]
        assert kinds.count("RunResumed") == 1
        assert [turn.what for turn in yard.turns] == ["began", "handed back"]
        assert yard.turns[1].steps == 4

    tell(story)


def test_a_key_is_one_run_and_not_for_another_task(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        agent = yard.agent(lambda messages, request: "done", name="keyed")
        run_ids = {await agent.submit("go", yard.engine, key="order 7") for _ in range(3)}
        run_ids |= set(await asyncio.gather(*(agent.submit("go", yard.engine, key="order 7") for _ in range(3))))
        assert len(run_ids) == 1
        with pytest.raises(ConfigError, match="'order 7' was used for another task"):
            await agent.submit("go away", yard.engine, key="order 7")
        other = yard.agent(lambda messages, request: "done", name="other")
        assert await other.submit("go", yard.engine, key="order 7") not in run_ids
        async with yard.worker(Fleet([agent, other])):
            await yard.end(agent, next(iter(run_ids)))
        assert await agent.submit("go", yard.engine, key="order 7") in run_ids  # also when it has ended
        assert len(yard.journal.runs()) == 2

    tell(story)


def pay_once(paid: list[int]) -> dict[str, Any]:
    @tool(approve=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def model(messages: Any, request: Any) -> Any:
        last = messages[-1]["content"]
        if request.step == 1 or last == "again":
            return Reply(calls=(ToolCall("c", "pay", '{"amount": 5}'),))
        return f"{last!s:.40}"

    return {"model": model, "tools": [pay]}


@pytest.mark.parametrize("decision", ["approve", "deny", "edit", "cancel"])
def test_a_run_that_waits_for_people_goes_on_by_itself_when_they_have_spoken(
    tell: Callable[[Story], None], decision: str
) -> None:
    async def story(yard: Yard) -> None:
        paid: list[int] = []
        agent = yard.agent(**pay_once(paid), name="payer")
        async with yard.worker(Fleet([agent])):
            run_id = await agent.submit("pay", yard.engine)
            result = await yard.end(agent, run_id)
            assert (result.status, [one.name for one in result.pending], paid) == ("awaiting_approval", ["pay"], [])
            await asyncio.sleep(0.3)  # that it paused is news to whoever had not heard so from the turn itself
            turns = len(yard.turns)
            await asyncio.sleep(0.3)
            assert len(yard.turns) == turns <= 4
            match decision:
                case "approve":
                    agent.approve(run_id, by="ann")
                case "edit":
                    agent.approve(run_id, arguments={"amount": 3})
                case "deny":
                    agent.deny(run_id, reason="too much")
                case _:
                    post(yard.journal, SystemClock(), run_id, Stopping("now", "enough", "ann"))
            await until(lambda: yard.journal.runs()[0].status in ("answered", "cancelled"))
            result = await yard.end(agent, run_id)
        expected = {"approve": [5], "edit": [3], "deny": [], "cancel": []}[decision]
        assert paid == expected
        assert result.status == ("cancelled" if decision == "cancel" else "answered")

    tell(story)


def test_what_waits_under_a_call_is_decided_there_and_the_outer_run_goes_on(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        paid: list[int] = []
        payer = yard.agent(**pay_once(paid), name="payer").as_tool()

        def boss(messages: Any, request: Any) -> Any:
            return Reply(calls=(ToolCall("p", "payer", '{"task": "pay"}'),)) if request.step == 1 else "all done"

        agent = yard.agent(boss, [payer], name="boss")
        async with yard.worker(Fleet([agent])):
            run_id = await agent.submit("go", yard.engine)
            result = await yard.end(agent, run_id)
            (paused,) = result.paused
            child = paused.waiting[0].run_id
            assert child != run_id
            agent.approve(child)
            await until(lambda: {one.status for one in yard.journal.runs()} == {"answered"})
        assert (await yard.end(agent, run_id)).answer == "all done"
        assert paid == [5]

    tell(story)


def test_a_run_hears_what_is_said_to_it_while_it_is_worked_on_elsewhere(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        done: list[str] = []
        gate = asyncio.Event()
        agent = yard.agent(**put_thrice(done, gate.wait), name="putter")
        async with yard.worker(Fleet([agent])):
            run_id = await agent.submit("go", yard.engine)
            await until(lambda: done)
            post(yard.journal, SystemClock(), run_id, Saying("hurry", "ann"))
            await asyncio.sleep(0.7)  # letters are fetched twice a second
            gate.set()
            result = await yard.end(agent, run_id)
        assert result.status == "answered"
        assert any(isinstance(event, ev.MessageQueued) for event in yard.journal.read(run_id))

    tell(story)


def test_who_has_another_version_leaves_a_run_alone_until_somebody_takes_its_version(
    tell: Callable[[Story], None],
) -> None:
    async def story(yard: Yard) -> None:
        done: list[str] = []
        old, new = (yard.agent(**put_thrice(done), name="putter", version=one) for one in ("1", "2"))
        run_id = await old.submit("go", yard.engine)
        async with yard.worker(Fleet([new])):
            other = await new.submit("go", yard.engine)
            await yard.end(new, other)
            assert [turn.order.run_id for turn in yard.turns] == [other] * 2
            assert done == ["1", "2", "3"]
        async with yard.worker(Fleet([new], also={"putter": ["1"]})):
            assert (await yard.end(old, run_id)).status == "answered"
        start = next(iter(yard.journal.read(run_id)))
        assert isinstance(start, ev.RunStarted)
        assert (start.version, start.queue) == ("1", "default")

    tell(story)


def test_a_worker_that_leaves_hands_back_at_the_next_step_and_another_goes_on(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        done: list[str] = []
        gate = asyncio.Event()
        agent = yard.agent(**put_thrice(done, gate.wait), name="putter")
        run_id = await agent.submit("go", yard.engine)
        async with yard.worker(Fleet([agent])) as first:
            await until(lambda: done)
            assert list(first.under_way) == [run_id]
            asyncio.get_running_loop().call_later(0.2, gate.set)
        assert yard.turns[-1].handback is not None
        assert yard.turns[-1].handback.why == "left"
        assert done == ["1"]
        assert yard.journal.runs()[0].status == "open"
        async with yard.worker(Fleet([agent])):
            result = await yard.end(agent, run_id)
        assert (result.status, done) == ("answered", ["1", "2", "3"])

    tell(story)


def test_a_worker_that_leaves_waits_for_no_place(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        done: list[str] = []
        gate = asyncio.Event()
        agent = yard.agent(**put_thrice(done, gate.wait), name="putter")
        run_ids = [await agent.submit(f"go {n}", yard.engine) for n in range(2)]
        fleet = Fleet([agent], queues=[Queue("default", at_once=1)])
        async with yard.worker(fleet):
            await until(lambda: done and len([turn for turn in yard.turns if turn.what == "began"]) == 2)
            asyncio.get_running_loop().call_later(0.3, gate.set)
        assert [turn.handback and turn.handback.why for turn in yard.turns[2:]] == ["left", "left"]
        assert done == ["1"]
        async with yard.worker(fleet):
            for run_id in run_ids:
                assert (await yard.end(agent, run_id)).status == "answered"

    tell(story)


def test_a_long_sleep_is_handed_back_and_kept_by_the_engine(
    tell: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advance, "SHORT_S", 0.2)

    async def story(yard: Yard) -> None:
        asked: list[float] = []

        def model(messages: Any, request: Any) -> Any:
            asked.append(SystemClock.now())
            if len(asked) == 1:
                raise RateLimited("slow down", retry_after_s=1.0)
            return "done"

        agent = yard.agent(model, name="sleeper")
        async with yard.worker(Fleet([agent])):
            result = await yard.end(agent, await agent.submit("go", yard.engine))
        assert result.answer == "done"
        assert asked[1] - asked[0] >= 1.0
        assert [turn.handback.why for turn in yard.turns if turn.handback is not None] == ["asleep", "ended"]

    tell(story)


def test_a_run_that_ended_without_an_answer_is_put_back_with_other_limits(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        done: list[str] = []
        agent = yard.agent(**put_thrice(done), name="putter", limits=Limits(steps=2))
        async with yard.worker(Fleet([agent])):
            run_id = await agent.submit("go", yard.engine)
            assert (await yard.end(agent, run_id)).status == "max_steps"
            await until(lambda: len(yard.turns) == 2)
            order = Order(run_id, "putter", again=True, limits=Limits(steps=10))
            for _ in range(100):  # the engine may still be about to hear that it has ended
                if await yard.engine.start(order):
                    break
                await asyncio.sleep(0.05)
            await until(lambda: yard.journal.runs()[0].status == "answered")
        assert done == ["1", "2", "3"]

    tell(story)


def test_a_delay_is_kept_and_a_queue_is_that_of_those_who_take_it(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        agent = yard.agent(lambda messages, request: "done", name="quick")
        began = SystemClock.now()
        later = await agent.submit("go", yard.engine, delay_s=1.0)
        slow = await agent.submit("go", yard.engine, queue="slow")
        async with yard.worker(Fleet([agent])):
            await yard.end(agent, later)
            assert SystemClock.now() - began >= 1.0
            assert {turn.order.run_id for turn in yard.turns} == {later}
        async with yard.worker(Fleet([agent]), queues=["slow", "default"]):
            await yard.end(agent, slow)
        for wrong in ({"queue": ""}, {"queue": "a/b"}, {"priority": 0}, {"priority": 6}, {"delay_s": -1.0}):
            with pytest.raises(ConfigError):
                await agent.submit("go", yard.engine, **wrong)  # type: ignore[arg-type]
        assert len(yard.journal.runs()) == 2

    tell(story)


def test_limits_of_queues_and_models_hold_under_load(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        at_once, most, asked = 0, 0, []

        @tool
        async def work() -> str:
            """Takes a while."""
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.02)
            at_once -= 1
            return "worked"

        async def model(messages: Any, request: Any) -> Any:
            asked.append(SystemClock.now())
            return Reply(calls=(ToolCall("c", "work", "{}"),)) if request.step == 1 else "done"

        agent = yard.agent(model, [work], name="busy")
        fleet = Fleet(
            [agent], queues=[Queue("narrow", at_once=3)], rates={agent.model.name: Rate(requests=40, per_s=1)}
        )
        async with yard.worker(fleet, queues=["narrow"]):
            run_ids = [await agent.submit(f"go {n}", yard.engine, queue="narrow") for n in range(25)]
            for run_id in run_ids:
                assert (await yard.end(agent, run_id)).answer == "done"
        assert most <= 3
        assert len(asked) == 50
        for first, later in zip(asked, asked[20:], strict=False):
            assert later - first >= 20 / 40 - 0.06  # the clock of whoever is asked is not the one of the pace

    tell(story)


def test_an_order_whose_run_never_came_is_no_harm(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        agent = yard.agent(lambda messages, request: "done", name="quick")
        await yard.engine.start(Order("nobody", "quick"))
        async with yard.worker(Fleet([agent])):
            assert (await yard.end(agent, await agent.submit("go", yard.engine))).answer == "done"
            await until(lambda: any(turn.handback is not None and turn.handback.why == "absent" for turn in yard.turns))

    tell(story)


def test_a_schedule_submits_one_run_for_each_time_that_it_is_due(tell: Callable[[Story], None]) -> None:
    async def story(yard: Yard) -> None:
        agent = yard.agent(lambda messages, request: "done", name="daily")
        plan = Schedule("tick", agent="daily", task="look around", cron="0 6 * * *")
        async with yard.worker(Fleet([agent], schedules=[plan])) as worker:
            first = await worker.submit_due("tick", "2026-11-30T06:00:00Z")
            assert await worker.submit_due("tick", "2026-11-30T06:00:00Z") == first
            assert await worker.submit_due("tick", "2026-12-01T06:00:00Z") != first
            await until(lambda: [one.status for one in yard.journal.runs()] == ["answered"] * 2)
            with pytest.raises(ConfigError, match="no schedule named 'tock'"):
                await worker.submit_due("tock", "x")

    tell(story)


def test_a_fleet_says_what_does_not_fit() -> None:
    def agent(name: str, version: str = "") -> Agent:
        return Agent(lambda messages, request: "done", name=name, version=version)

    with pytest.raises(ConfigError, match="two agents are called 'a'"):
        Fleet([agent("a"), agent("a")])
    with pytest.raises(ConfigError, match="in version '1'"):
        Fleet([agent("a", "1"), agent("a", "2")], also={"a": ["1"]})
    for name in ("", "a/b", "a@b"):
        with pytest.raises(ConfigError, match="give it a name"):
            Fleet([agent(name)])
    for wrong in ({"also": {"b": ["1"]}}, {"schedules": [Schedule("s", agent="b", task="t", cron="* * * * *")]}):
        with pytest.raises(ConfigError, match="no agent named 'b' in this fleet; agents: a"):
            Fleet([agent("a")], **wrong)  # type: ignore[arg-type]
    assert Fleet([agent("a", "1"), agent("a", "2")]).named("a").version == "2"


def test_no_temporal_at_the_address_is_said_so() -> None:
    from tenlines.errors import EngineError

    agent = Agent(lambda messages, request: "done", journal="memory")
    with pytest.raises(EngineError, match=r"no Temporal at 127\.0\.0\.1:9"):
        agent.submit_sync("go", Temporal("127.0.0.1:9"))
    assert agent.journal.runs() == []
    with suppress(EngineError):
        asyncio.run(Temporal("127.0.0.1:9").workers(Lane("default", "a")))


@pytest.mark.slow
def test_a_worker_that_is_cancelled_leaves_as_if_it_had_been_told_to(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    async def story() -> None:
        yard = Yard(Temporal(temporal_server.address), open_journal(tmp_path / "journal.db"))
        agent = yard.agent(lambda messages, request: "done", name="quick")
        limits = FleetLimits(LocalPace({}), LocalPlaces())
        serving = asyncio.create_task(Worker(Fleet([agent]), yard.journal, yard.engine, limits).serve(asyncio.Event()))
        await yard.end(agent, await agent.submit("go", yard.engine))
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(serving, PATIENCE_S)

    asyncio.run(story())
