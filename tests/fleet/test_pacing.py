"""Rates of models: laws of the schedule, and that several real processes keep to one."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import psycopg
import pytest
from cutting_proxy import CuttingProxy
from hypothesis import given, settings
from hypothesis import strategies as st
from limited import most_in, processes
from postgres_server import PostgresServer

from tenlines import Agent
from tenlines.core.effects import CallModel
from tenlines.core.limits import Reservation
from tenlines.core.transcript import Reply, ToolCall, Usage
from tenlines.drivers.control import Control
from tenlines.errors import ConfigError, ConnectionFailed, JournalError, RunCancelled
from tenlines.fleet.pacing import AHEAD_S, LocalPace, Paced, Rate, Schedule, booked
from tenlines.fleet.postgres_pace import PostgresPace
from tenlines.models.plain import FunctionModel, ScriptedModel
from tenlines.models.text_protocol import TextProtocol
from tenlines.ports import Model, OnDelta
from tenlines.testing import FakeClock

MODEL = "openai:gpt-5"
LOOK = Reply("", (ToolCall("1", "look", "{}"),))


class Ask(NamedTuple):
    """Somebody wants to ask: so long after the one before, with so many tokens."""

    after_s: float
    tokens: int


rates = st.builds(
    Rate,
    requests=st.floats(0.5, 500),
    tokens=st.none() | st.floats(100, 10_000),
    per_s=st.sampled_from([1.0, 60.0]),
    burst_s=st.sampled_from([0.0, 0.0, 0.5, 10.0]),
)
few = settings(max_examples=60)
asks = st.lists(
    st.builds(Ask, st.sampled_from([0.0, 0.0, 0.001, 0.3, 7.0, 100.0]) | st.floats(0, 20), st.integers(0, 3_000)),
    min_size=1,
    max_size=25,
)


async def places(pace: LocalPace, clock: FakeClock, asked: Sequence[Ask], model: str = MODEL) -> list[float]:
    """When each may be sent. Nobody waits for the one before to be sent."""
    sent: list[float] = []
    arrival = clock.time
    for one in asked:
        arrival += one.after_s
        clock.time = max(clock.time, arrival)  # it was waited for near places meanwhile
        ahead = await pace.take(model, one.tokens)
        sent.append(clock.time + ahead)
    return sent


def earliest(rate: Rate, asked: Sequence[Ask], arrivals: Sequence[float]) -> Iterator[float]:
    """The same by the definition: for each that was sent, what has been used since then must have been given since."""
    costs = [(rate.request_s, rate.tokens_s(one.tokens)) for one in asked]
    sent: list[float] = []
    for here, arrival in enumerate(arrivals):
        used = (sent[j] + sum(cost[kind] for cost in costs[j:here]) for j in range(here) for kind in (0, 1))
        sent.append(max([arrival, *(at - rate.burst_s for at in used)]))
        yield sent[-1]


# --- laws -----------------------------------------------------------------------------------------------


@few
@given(rates, asks)
def test_each_is_sent_as_soon_as_the_rate_allows_and_no_sooner(rate: Rate, asked: list[Ask]) -> None:
    clock = FakeClock()
    arrivals = list(accumulate((one.after_s for one in asked), initial=clock.time))[1:]
    sent = asyncio.run(places(LocalPace({MODEL: rate}, clock), clock, asked))
    assert sent == pytest.approx(list(earliest(rate, asked, arrivals)), abs=1e-4)
    assert sent == sorted(sent), "who asks first is sent first"


@few
@given(rates, asks, st.sampled_from([0.1, 1.0, 30.0, 60.0]))
def test_no_window_holds_more_than_the_rate(rate: Rate, asked: list[Ask], window: float) -> None:
    clock = FakeClock()
    sent = asyncio.run(places(LocalPace({MODEL: rate}, clock), clock, asked))
    assert rate.requests is not None
    share = (window + rate.burst_s) / rate.per_s
    assert most_in(window, [(at, 1) for at in sent]) < rate.requests * share + 1 + 1e-3
    if rate.tokens is not None:
        largest = max(one.tokens for one in asked)
        used = [(at, one.tokens) for at, one in zip(sent, asked, strict=True)]
        assert most_in(window, used) <= rate.tokens * share + largest + 0.1


@few
@given(st.integers(1, 40))
def test_in_the_time_that_a_rate_is_stated_for_there_are_never_more_than_it_says(requests: int) -> None:
    clock = FakeClock()
    rate = Rate(requests=requests, per_s=1.0)
    sent = asyncio.run(places(LocalPace({MODEL: rate}, clock), clock, [Ask(0.0, 0)] * (3 * requests)))
    assert most_in(1.0, [(at, 1) for at in sent]) == requests


@few
@given(rates, rates, asks)
def test_two_models_do_not_slow_each_other(one: Rate, two: Rate, asked: list[Ask]) -> None:
    async def both() -> list[float]:
        clock = FakeClock()
        pace = LocalPace({MODEL: one, "another": two}, clock)
        for _ in range(3):
            await pace.ask("another", two, 100_000)
        return await places(pace, clock, asked)

    async def alone() -> list[float]:
        clock = FakeClock()
        return await places(LocalPace({MODEL: one}, clock), clock, asked)

    assert asyncio.run(both()) == pytest.approx(asyncio.run(alone()), abs=1e-6)


@few
@given(rates, asks, st.floats(1, 1e5))
def test_a_clock_that_is_set_back_makes_nobody_wait_for_it(rate: Rate, asked: list[Ask], back_s: float) -> None:
    schedule, now = None, 1e6
    for one in asked:
        now += one.after_s
        schedule = booked(schedule, rate, one.tokens, now)
    assert schedule is not None
    forward = booked(schedule, rate, 7, now)
    turned = booked(schedule, rate, 7, now - back_s)
    assert turned.send_at - turned.taken_at == pytest.approx(forward.send_at - forward.taken_at, abs=1e-6)


def test_what_is_not_near_is_not_taken_so_that_who_is_cancelled_loses_little() -> None:
    async def crowd() -> float:
        pace = LocalPace({MODEL: Rate(requests=100, per_s=1.0)})
        waiting = [asyncio.create_task(pace.take(MODEL, 0)) for _ in range(5_000)]  # 50 s of the rate
        await asyncio.sleep(0.05)
        for task in waiting:
            task.cancel()
        return await pace.take(MODEL, 0)

    assert asyncio.run(crowd()) <= AHEAD_S


# --- what is said in the settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "limits nothing"),
        ({"requests": 0}, "Rate.requests must be a number above 0, got 0"),
        ({"tokens": -1.0}, "Rate.tokens"),
        ({"requests": 1, "per_s": float("inf")}, "Rate.per_s"),
        ({"requests": float("nan")}, "Rate.requests"),
        ({"requests": 1, "burst_s": -1.0}, "Rate.burst_s"),
    ],
)
def test_a_rate_that_makes_no_sense_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Rate(**fields)


def test_a_number_is_no_rate() -> None:
    with pytest.raises(
        ConfigError, match=r"the rate of openai:gpt-5 must be a Rate\(requests=..., tokens=...\), got 5"
    ):
        LocalPace({MODEL: 5})  # type: ignore[dict-item]


# --- models -----------------------------------------------------------------------------------------------


class Noting:
    """A pace that keeps what it was asked. `waits` are its answers; an error is raised."""

    def __init__(self, *waits: float | Exception, models: Sequence[str] = ("scripted",)) -> None:
        self.waits, self.models = list(waits), models
        self.taken: list[tuple[str, int]] = []
        self.asked = asyncio.Event()

    def limits(self, model: str) -> bool:
        return model in self.models

    async def take(self, model: str, tokens: int) -> float:
        self.taken.append((model, tokens))
        self.asked.set()
        wait = self.waits.pop(0) if self.waits else 0.0
        if isinstance(wait, Exception):
            raise wait
        return wait

    def close(self) -> None:
        pass


def request(input_tokens: int, output_tokens: int | None) -> CallModel:
    fields: dict[str, Any] = dict.fromkeys(CallModel.__struct_fields__)
    return CallModel(**fields | {"reserved": Reservation(input_tokens, output_tokens)})


class Counted:
    """A model whose replies have this usage."""

    name = "counted"

    def __init__(self, *usages: Usage | None) -> None:
        self.usages = list(usages)

    def session(self) -> Counted:
        return self

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        return Reply("ok", usage=self.usages.pop(0))

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        return self.complete(request, on_delta)


def test_a_run_waits_before_each_request_in_both_drivers() -> None:
    for drive in (Agent.run_sync, lambda agent, task: asyncio.run(agent.run(task))):
        pace, clock = Noting(0.0, 3.0, 5.0), FakeClock()
        model = Paced(ScriptedModel([LOOK, LOOK, "done"]), pace, clock)
        result = drive(Agent(model, {"look": lambda: "seen"}, journal="memory", clock=clock), "Look")
        assert result.answer == "done"
        assert [name for name, _ in pace.taken] == [model.name] * 3
        assert all(tokens > 0 for _, tokens in pace.taken), "what the run set aside"
        assert clock.waits == [3.0, 5.0]


def test_a_model_without_a_rate_is_asked_as_if_there_were_no_pace() -> None:
    inner = ScriptedModel(["done"])
    pace = Noting(models=())
    assert type(Paced(inner, pace).session()) is type(inner.session())
    assert asyncio.run(LocalPace({MODEL: Rate(requests=1)}).take("another", 10)) == 0.0


def test_it_is_the_same_model_to_everybody_else() -> None:
    inner = ScriptedModel(["done"])
    paced = Paced(inner, Noting())
    assert paced.name == inner.name
    assert paced.replies is inner.replies
    assert not hasattr(paced, "session_with")
    assert not hasattr(paced, "protocol")


def test_a_model_has_one_rate_however_its_tools_are_written() -> None:
    def say(messages: list[dict[str, Any]]) -> str:
        return "Final Answer: 42"

    for wrap in (
        lambda inner, pace: Paced(TextProtocol(inner), pace),
        lambda inner, pace: TextProtocol(Paced(inner, pace)),
    ):
        inner = FunctionModel(say)
        pace = Noting(models=(inner.name,))
        model: Model = wrap(inner, pace)
        assert Agent(model, journal="memory").run_sync("?").status == "answered"
        assert model.name == f"text+{inner.name}"
        assert [name for name, _ in pace.taken] == [inner.name]
    assert LocalPace({f"text+{MODEL}": Rate(requests=1)}).limits(MODEL)


def test_a_session_that_is_begun_with_more_is_paced_too() -> None:
    class Stopping(Counted):
        def session_with(self, stops: Sequence[str]) -> Counted:
            assert stops == ("STOP",)
            return self

    pace = Noting(models=("counted",))
    Paced(Stopping(None), pace).session_with(("STOP",)).complete(request(10, None), None)
    assert pace.taken == [("counted", 10)]


def test_what_was_used_beyond_what_was_set_aside_is_counted_with_the_next_request() -> None:
    pace = Noting(models=("counted",))
    session = Paced(Counted(Usage(120, 500), Usage(10, 5), None, Usage(1, 1), Usage(1, 1)), pace).session()
    for _ in range(5):
        session.complete(request(100, None), None)
    more, less = 620 - 100, 15 - 100
    assert [tokens for _, tokens in pace.taken] == [100, 100 + more, 100 + less, 100, 100 - 98]


def test_what_was_not_used_is_given_back_over_several_requests() -> None:
    pace = Noting(models=("counted",))
    session = Paced(Counted(Usage(10, 10), None, None, None), pace).session()
    session.complete(request(1_000, 4_000), None)
    for _ in range(3):
        session.complete(request(1_000, 1_000), None)
    assert [tokens for _, tokens in pace.taken] == [5_000, 0, 0, 6_000 - 4_980]


def test_when_nobody_can_say_the_run_asks_again() -> None:
    pace, clock = Noting(ConnectionFailed("the journal is out of reach")), FakeClock()
    agent = Agent(Paced(ScriptedModel(["done"]), pace), journal="memory", clock=clock)
    assert agent.run_sync("?").answer == "done"
    assert len(pace.taken) == 2


def test_who_waits_can_be_stopped() -> None:
    async def stop() -> None:
        pace = Noting(1_000.0)
        control = Control()
        inner = ScriptedModel(["done"])
        run = asyncio.create_task(Agent(Paced(inner, pace), journal="memory").run("?", control=control))
        await pace.asked.wait()
        control.cancel(now=True)
        with pytest.raises(RunCancelled):
            await run
        assert inner.requests == []

    asyncio.run(asyncio.wait_for(stop(), 5))


# --- Postgres -----------------------------------------------------------------------------------------------


@pytest.fixture
def paces() -> Iterator[Callable[..., PostgresPace]]:
    made: list[PostgresPace] = []

    def make(*args: Any, **options: Any) -> PostgresPace:
        made.append(PostgresPace(*args, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_statement_says_what_the_schedule_says(postgres_address: str, paces: Callable[..., PostgresPace]) -> None:
    rate = Rate(requests=600, tokens=90_000, burst_s=0.3)
    pace = paces(postgres_address, {MODEL: rate})
    columns = ", ".join(Schedule._fields)
    with psycopg.connect(postgres_address, autocommit=True) as connection:

        def row() -> Schedule:
            return Schedule._make(connection.execute(f"SELECT {columns} FROM tenlines_pace").fetchall()[0])

        schedule: Schedule | None = None
        for tokens in (0, 100, 1_500, 0, 10, 30, 700, 3):
            answer = asyncio.run(pace.ask(MODEL, rate, tokens))
            after = row()
            assert answer.is_taken
            assert after == pytest.approx(booked(schedule, rate, tokens, after.taken_at), abs=1e-5)
            assert 0 <= after.send_at - after.taken_at - answer.ahead_s < 1.0, "what is left when it is told"
            schedule = after
        change = ", ".join(f"{name} = {name} + 5000" for name in Schedule._fields)
        connection.execute(f"UPDATE tenlines_pace SET {change}")  # as if the clock were set back
        before = row()
        assert asyncio.run(pace.ask(MODEL, rate, 5)).is_taken
        assert row() == pytest.approx(booked(before, rate, 5, row().taken_at), abs=1e-5)
        connection.execute("UPDATE tenlines_pace SET tokens_at = taken_at + 100")
        before = row()
        answer = asyncio.run(pace.ask(MODEL, rate, 5))
        assert not answer.is_taken
        assert answer.ahead_s == pytest.approx(99.7, abs=1.0)
        assert row() == before


def test_many_may_begin_at_once(postgres_address: str, paces: Callable[..., PostgresPace]) -> None:
    failures: list[BaseException] = []

    def begin() -> None:
        try:
            asyncio.run(paces(postgres_address, {MODEL: Rate(requests=10_000)}).take(MODEL, 1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_server_that_is_lost_is_waited_for_and_then_said_to_be(
    postgres_address: str, postgres_server: PostgresServer, paces: Callable[..., PostgresPace]
) -> None:
    with CuttingProxy(postgres_server.port) as proxy:
        address = postgres_server.address(postgres_address.rpartition("/")[2], port=proxy.port)
        pace = paces(address, {MODEL: Rate(requests=10_000)}, patience_s=0.1)
        asyncio.run(pace.take(MODEL, 1))
        proxy.cut("before", then_be_deaf=True)
        with pytest.raises(ConnectionFailed, match=r"could not be asked for a place: .*it was tried for 0.1 s"):
            asyncio.run(pace.take(MODEL, 1))
        proxy.is_deaf = False
        asyncio.run(pace.take(MODEL, 1))
        proxy.is_deaf = True
        with pytest.raises(JournalError, match="the rates of models cannot be kept in the journal"):
            paces(address, {MODEL: Rate(requests=1)})


LOG = """
CREATE TABLE sent (model text, at float8, tokens_at float8);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO sent VALUES (NEW.model, NEW.send_at, NEW.tokens_at); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON tenlines_pace FOR EACH ROW EXECUTE FUNCTION note();
"""
"""Every place that was ever given."""


@pytest.mark.slow
def test_four_processes_keep_to_one_rate_and_use_it(
    postgres_address: str, paces: Callable[..., PostgresPace], say: Callable[[str], None]
) -> None:
    seconds, window = 1.6, 0.5
    requests, tokens = 120.0, 12_000.0  # in a second; a request has about 100 tokens
    rates = {
        "requests": {"requests": requests, "per_s": 1.0},
        "tokens": {"tokens": tokens, "per_s": 1.0},
        "slow": {"requests": 1, "per_s": 1.0},
    }
    paces(postgres_address, {MODEL: Rate(requests=1)})
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute(LOG)
        with processes(4, "pace", postgres_address, str(seconds), json.dumps(rates)) as four:
            said = [json.loads(one.communicate(timeout=30)[0]) for one in four]
        given = connection.execute("SELECT model, at FROM sent ORDER BY at").fetchall()
    assert all(said), "each process had its share"
    sent = sorted((at, due, model, size) for one in said for model, due, at, size in one)
    last = sent[0][0] + seconds
    assert all(at > due - 1e-3 for at, due, *_ in sent), "nobody was early"

    def weights(model: str, is_counted: bool) -> list[tuple[float, float]]:
        return [(at, size if is_counted else 1) for at, _, name, size in sent if name == model]

    for model, rate, is_counted in (("requests", requests, False), ("tokens", tokens, True), ("slow", 1.0, False)):
        places = [(at, 1.0) for name, at in given if name == model]
        used = weights(model, is_counted)
        # What is late comes closer to what follows it. Nothing else does: the schedule itself is exact.
        lateness = [at - place for (at, _), (place, _) in zip(used, places, strict=False)]
        assert min(lateness) > -1e-3, "by the clock of the database neither"
        late, most = max(lateness), most_in(window, used)
        share = sum(weight for at, weight in used if at <= last) / (rate * seconds)
        of_it = "" if model == "slow" else f", {share:.0%} of the rate used"
        say(
            f"{model}: {len(used)} requests by 4 processes in {seconds:g} s{of_it}; most in {window:g} s: {most:g} of "
            f"{rate * window:g} (latest: {late * 1000:.0f} ms)"
        )
        if not is_counted:
            assert most_in(1.0, places) <= rate
        extra = 200 if is_counted else 1
        assert most <= rate * (window + late) + extra
        if model != "slow":
            assert share >= 0.9
