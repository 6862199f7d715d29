"""Calls that spend on their own: what they are given, what they say, and that no limit is passed in any order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from crash_money import sum_of
from driver_doubles import Way, asks, log_of, of, until, wait_for

from tenlines import Agent, CallContext, Control, Limits, Reply, Settings, ToolCall, tool
from tenlines.child import ChildTool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.limits import Price, Spent
from tenlines.core.replay import fold
from tenlines.core.transcript import Usage
from tenlines.errors import BudgetExceeded, ConfigError, StepLimitReached
from tenlines.journal.memory import MemoryJournal
from tenlines.models.plain import FunctionModel

PRICED = Settings(price=Price(input=1.0, output=2.0), max_output_tokens=100)
"""A dollar is a million tokens of input."""


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end of the test, so that no thread is left behind for long."""
    gate = threading.Event()
    yield gate
    gate.set()


def said(text: str, tokens: int = 1_000) -> Reply:
    """A reply that costs something."""
    return Reply(text, usage=Usage(tokens, 10))


def child_of(*replies: Any, **options: Any) -> Agent:
    """An agent for a tool to use."""
    return Agent([*replies], journal=MemoryJournal(), name="child", **{"settings": PRICED, **options})


def parent_of(hire: Any, *replies: Any, **options: Any) -> Agent:
    """An agent with one tool."""
    return Agent([*replies], [hire], journal=MemoryJournal(), **{"settings": PRICED, **options})


def checked(agent: Agent) -> Any:
    """The sums of its newest run, in which no limit was passed and the machine agrees."""
    log = log_of(agent)
    sums, wrong = sum_of(log)
    assert wrong == []
    account = fold(log).state.account
    assert account.dollars == pytest.approx(sums.own["dollars"])
    assert account.children.dollars == pytest.approx(sums.children["dollars"])
    assert account.children.steps == sums.children["steps"]
    assert (account.held.dollars or 0.0) == pytest.approx(sums.held["dollars"])
    assert (account.held.steps or 0) == sums.held["steps"]
    return sums


# --- what a call says -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blocking", "coroutine"])
def test_what_a_child_used_is_counted_by_the_run_that_it_serves(way: Way, kind: str) -> None:
    child, given = child_of(said("42", 5_000)), []

    @tool(spends=True, name="hire")
    def blocking(ctx: CallContext) -> str:
        """Asks another agent."""
        given.append(ctx.allowance)
        return str(child.run_sync("what?", under=ctx).answer)

    @tool(spends=True, name="hire")
    async def coroutine(ctx: CallContext) -> str:
        """Asks another agent."""
        given.append(ctx.allowance)
        return str((await child.run("what?", under=ctx)).answer)

    agent = parent_of(blocking if kind == "blocking" else coroutine, asks("hire"), said("done"))
    result = way.run(agent, limits=Limits(dollars=1.0, steps=10, tokens=500_000))
    assert (result.answer, result.calls[0].text) == ("done", "42")
    sums = checked(agent)
    assert sums.children == {"steps": 1, "tool_calls": 0, "tokens": 5_010, "dollars": pytest.approx(0.00502)}
    assert result.usage.input == 6_000
    assert (result.steps, result.children.steps) == (2, 1)
    assert result.dollars is None, "the reply with the call came without counts"
    (run,) = child.journal.runs()
    assert result.children.runs == (run.run_id,)
    start = next(iter(child.journal.read(run.run_id)))
    assert isinstance(start, ev.RunStarted)
    (call,) = of(log_of(agent), ev.CallStarted)
    assert start.parent == call.key
    assert given == [call.allowance]
    limits = start.settings.limits
    assert (limits.steps, limits.tokens, limits.dollars) == (8, call.allowance.tokens, call.allowance.dollars)
    assert 0.99 < call.allowance.dollars < 1.0


def test_a_call_can_charge_what_it_used_without_a_run(way: Way) -> None:
    @tool(spends=True)
    def embed(ctx: CallContext) -> str:
        """Uses something that costs."""
        for _ in range(3):
            ctx.charge(Spent(input_tokens=1_000, dollars=0.01))
        return "ok"

    agent = parent_of(embed, asks("embed"), said("done"))
    result = way.run(agent, limits=Limits(dollars=1.0))
    assert (result.children.dollars, result.children.input_tokens) == (pytest.approx(0.03), 3_000)
    assert checked(agent).held["dollars"] == 0


def test_what_many_threads_charge_at_once_is_not_lost(way: Way) -> None:
    @tool(spends=True)
    def embed(ctx: CallContext) -> str:
        """Uses threads."""

        def work() -> None:
            for _ in range(500):
                ctx.charge(Spent(steps=1))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return "ok"

    agent = parent_of(embed, asks("embed"), said("done"))
    assert way.run(agent, limits=Limits(steps=None)).children.steps == 4_000


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_a_tool_that_raises_after_its_child_has_spent_is_charged(way: Way, beside: bool) -> None:
    child = child_of(said("42", 5_000))

    @tool(spends=True, read_only=beside)
    def hire(ctx: CallContext) -> str:
        """Asks another agent and fails."""
        child.run_sync("what?", under=ctx)
        raise ValueError("no")

    agent = parent_of(hire, asks(*["hire"] * (1 + beside)), said("done"))
    result = way.run(agent, limits=Limits(dollars=1.0))
    assert {record.outcome for record in result.calls} == {"tool_error"}
    sums = checked(agent)
    assert (sums.children["steps"], sums.held["dollars"]) == (1 + beside, 0)


def test_a_child_that_stops_without_an_answer_is_charged_too(way: Way) -> None:
    child = child_of(Reply(calls=(ToolCall("1", "nobody", "{}"),), usage=Usage(5_000, 10)))

    @tool(spends=True)
    def hire(ctx: CallContext) -> str:
        """Asks another agent, in vain."""
        with pytest.raises(StepLimitReached):
            child.run_sync("what?", under=ctx)
        raise ValueError("no")

    agent = parent_of(hire, asks("hire"), said("done"))
    way.run(agent, limits=Limits(dollars=1.0))
    assert checked(agent).children["tokens"] == 5_010


def test_a_child_that_cannot_begin_gives_back_what_was_set_aside_for_it(way: Way) -> None:
    child = child_of(said("42"))

    @tool(spends=True)
    def hire(ctx: CallContext) -> str:
        """Asks nothing first, and then something."""
        with pytest.raises(ConfigError, match="there is nothing to do"):
            child.run_sync(None, under=ctx)
        return str(child.run_sync("what?", under=ctx).answer)

    agent = parent_of(hire, asks("hire"), said("done"))
    assert way.run(agent, limits=Limits(dollars=1.0)).calls[0].text == "42"
    (call,) = of(log_of(agent), ev.CallStarted)
    (start,) = of(log_of(child), ev.RunStarted)
    assert start.settings.limits.dollars == call.allowance.dollars


def test_a_tool_that_does_not_say_that_it_spends_is_told_how(way: Way) -> None:
    child = child_of(said("42"))

    @tool
    def hire(ctx: CallContext) -> str:
        """Does not say that it spends."""
        assert (ctx.allowance, ctx.spent) == (None, None)
        for act in (lambda: child.run_sync("what?", under=ctx), lambda: ctx.charge(Spent(steps=1))):
            with pytest.raises(ConfigError, match=r"hire spends on its own: say so, with @tool\(spends=True\)"):
                act()
        return str(child.run_sync("what?", under=ctx).answer)

    result = way.run(parent_of(hire, asks("hire"), said("done")))
    assert result.calls[0].outcome == "tool_error"
    assert "@tool(spends=True)" in result.calls[0].text
    assert child.journal.runs() == [], "nothing was asked, and nothing stored"


def test_without_limits_a_call_is_given_no_bounds_and_counted_all_the_same(way: Way) -> None:
    child = child_of(said("42", 5_000), limits=Limits(steps=3))

    @tool(spends=True)
    def hire(ctx: CallContext) -> str:
        """Asks another agent."""
        return str(child.run_sync("what?", under=ctx).answer)

    agent = parent_of(hire, Reply(calls=asks("hire").calls, usage=Usage(1, 1)), said("done"))
    result = way.run(agent, limits=Limits(steps=None))
    (call,) = of(log_of(agent), ev.CallStarted)
    assert call.allowance == type(call.allowance)()
    assert result.dollars == pytest.approx((1 + 2 + 1_000 + 20 + 5_000 + 20) / 1e6)
    (start, *_) = log_of(child)
    assert isinstance(start, ev.RunStarted)
    assert start.settings.limits == Limits(steps=3)


def test_a_child_whose_own_limit_is_nothing_is_given_nothing(way: Way) -> None:
    child = child_of("never", limits=Limits(dollars=0.0))

    @tool(spends=True)
    def hire(ctx: CallContext) -> str:
        """Asks another agent, which may spend nothing."""
        with pytest.raises(BudgetExceeded):
            child.run_sync("what?", under=ctx)
        return "nothing"

    result = way.run(parent_of(hire, asks("hire"), said("done")), limits=Limits(dollars=1.0))
    assert result.calls[0].text == "nothing"


def test_a_child_whose_price_is_unknown_does_not_start_under_a_dollar_limit(way: Way) -> None:
    child = child_of("never", settings=Settings())

    @tool(spends=True)
    def hire(ctx: CallContext) -> str:
        """Asks another agent."""
        return str(child.run_sync("what?", under=ctx).answer)

    result = way.run(parent_of(hire, asks("hire"), said("done")), limits=Limits(dollars=1.0))
    assert "price of this model is not known" in result.calls[0].text
    assert (result.answer, result.children.steps) == ("done", 0)


# --- three levels ---------------------------------------------------------------------------------------


def test_the_sums_of_three_levels_are_right_at_each(way: Way) -> None:
    lowest = child_of(said("42", 5_000))

    @tool(spends=True)
    def ask(ctx: CallContext) -> str:
        """Asks the lowest."""
        return str(lowest.run_sync("what?", under=ctx).answer)

    middle = Agent(
        [Reply(calls=asks("ask", "ask").calls, usage=Usage(700, 10)), said("so", 900)],
        [ask],
        settings=PRICED,
        journal=MemoryJournal(),
    )

    @tool(spends=True)
    async def hire(ctx: CallContext) -> str:
        """Asks the one in the middle."""
        return str((await middle.run("what?", under=ctx)).answer)

    agent = parent_of(hire, Reply(calls=asks("hire").calls, usage=Usage(300, 10)), said("done", 400))
    result = way.run(agent, limits=Limits(dollars=1.0, steps=30, tool_calls=10))
    assert result.answer == "done"
    sums, inner = checked(agent), checked(middle)
    assert inner.children == {"steps": 2, "tool_calls": 0, "tokens": 10_020, "dollars": pytest.approx(0.01004)}
    assert sums.children["steps"] == 4
    assert sums.children["tool_calls"] == 2
    assert sums.children["tokens"] == 10_020 + 1_620
    assert result.dollars == pytest.approx((10_000 + 40 + 1_600 + 40 + 700 + 40) / 1e6)
    assert set(result.children.runs) == {run.run_id for one in (lowest, middle) for run in one.journal.runs()}
    bounds = [log_of(one)[0].settings.limits for one in (agent, middle, lowest)]  # type: ignore[union-attr]
    assert bounds[0].dollars > bounds[1].dollars > bounds[2].dollars
    assert (bounds[1].steps, bounds[1].tool_calls) == (20, 9), "its own limit is lower than what it was given"


# --- calls that are given up ----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["a value", "an exception"])
def test_what_a_call_spends_after_its_time_is_held_until_its_late_end_says(way: Way, ending: str) -> None:
    gate, ended, child = threading.Event(), threading.Event(), child_of(said("42", 5_000))

    @tool(spends=True, timeout_s=0.02)
    def hire(ctx: CallContext) -> str:
        """Takes too long."""
        wait_for(gate)
        child.run_sync("what?", under=ctx)
        ended.set()
        if ending == "a value":
            return "too late"
        raise ValueError("too late")

    @tool
    def wait() -> str:
        """Waits for the other one."""
        held.append(sum_of(log_of(agent))[0].held["dollars"])
        gate.set()
        wait_for(ended)
        threading.Event().wait(0.05)  # until its thread has handed the value over
        return "waited"

    held: list[float] = []
    agent = Agent([asks("hire"), asks("wait"), said("done")], [hire, wait], settings=PRICED, journal=MemoryJournal())
    result = way.run(agent, limits=Limits(dollars=1.0))
    assert [record.outcome for record in result.calls] == ["timeout", "ok"]
    assert held[0] > 0.99
    (late,) = of(log_of(agent), ev.LateResultArrived)
    assert late.spent.tokens == 5_010
    sums = checked(agent)
    assert (sums.held["dollars"], sums.children["tokens"]) == (0, 5_010)


def test_a_call_that_never_comes_back_keeps_what_it_was_given(way: Way, gate: threading.Event) -> None:
    @tool(spends=True, timeout_s=0.02)
    def hire(ctx: CallContext) -> str:
        """Does not come back."""
        gate.wait(20)
        return "late"

    agent = parent_of(hire, asks("hire"), asks("hire"), said("done"))
    result = way.run(agent, limits=Limits(dollars=1.0, steps=10))
    first, second = of(log_of(agent), ev.CallStarted)
    assert first.allowance.dollars > 0.99
    assert second.allowance.dollars < 0.001
    assert second.allowance.steps == 0
    assert result.dollars is None, "nobody knows what is spent there"
    assert checked(agent).held["dollars"] > 0.99


@pytest.mark.parametrize("stop", [pytest.param("its time", marks=pytest.mark.slow), "a cancel"])
def test_a_coroutine_that_is_given_up_says_what_its_child_has_used(way: Way, stop: str) -> None:
    control, begun = Control(), threading.Event()

    async def slow(messages: list[Any]) -> Reply:
        if len(messages) == 1:
            return Reply(calls=asks("nobody").calls, usage=Usage(5_000, 10))
        begun.set()
        if stop == "a cancel":
            control.cancel(now=True)
        await asyncio.sleep(30)
        return said("late")

    child = Agent(FunctionModel(slow), settings=PRICED, journal=MemoryJournal())

    @tool(spends=True, timeout_s=0.5 if stop == "its time" else None)
    async def hire(ctx: CallContext) -> str:
        """Asks another agent, which is slow."""
        return str((await child.run("what?", under=ctx)).answer)

    @tool
    async def wait() -> str:
        """Waits until the child has closed its log."""
        await until(lambda: child.journal.runs(1)[0].status == "cancelled")
        await asyncio.sleep(0.05)  # until it has handed its end over
        return "waited"

    agent = Agent([asks("hire"), asks("wait"), said("done")], [hire, wait], settings=PRICED, journal=MemoryJournal())
    result = way.run(agent, limits=Limits(dollars=1.0), control=control)
    assert result.status == ("answered" if stop == "its time" else "cancelled")
    assert begun.is_set()
    sums = checked(agent)
    late = of(log_of(agent), ev.LateResultArrived)
    assert late or not (way.is_async or stop == "its time"), "it had time to say it"
    if late:
        assert late[0].spent.tokens == 5_010
        assert (sums.children["tokens"], sums.held["dollars"]) == (5_010, 0)
    else:
        assert sums.held["dollars"] > 0.9, "it was not waited for, so it stays held"


def test_an_interrupt_keeps_held_what_the_call_was_given_and_the_run_goes_on(way: Way) -> None:
    child = child_of(KeyboardInterrupt())

    @tool(spends=True)
    def hire(ctx: CallContext) -> str:
        """Is interrupted."""
        return str(child.run_sync("what?", under=ctx).answer)

    agent = parent_of(hire, asks("hire"))
    with pytest.raises(KeyboardInterrupt):
        way.run(agent, limits=Limits(dollars=1.0))
    assert checked(agent).held["dollars"] > 0.99
    assert child.journal.runs()[0].status == "cancelled"
    again = Agent([said("done", 10)], [hire], settings=PRICED, journal=agent.journal)
    result = way.resume(again, agent.journal.runs()[0].run_id)
    assert (result.answer, result.calls[0].outcome, result.dollars) == ("done", "in_doubt", None)
    checked(agent)


# --- shares ---------------------------------------------------------------------------------------------


def test_calls_side_by_side_are_given_equal_shares_and_one_after_the_other_what_is_left(way: Way) -> None:
    for is_read_only in (True, False):
        child = child_of(said("42", 5_000))

        @tool(spends=True, read_only=is_read_only)
        def hire(ctx: CallContext) -> str:
            """Asks another agent."""
            return str(child.run_sync("what?", under=ctx).answer)  # noqa: B023  # used within the turn

        agent = parent_of(hire, asks("hire", "hire", "hire"), said("done"))
        way.run(agent, limits=Limits(dollars=1.0, steps=12, tool_calls=20))
        given = [one.allowance for one in of(log_of(agent), ev.CallStarted)]
        if is_read_only:
            assert [one.steps for one in given] == [4, 3, 3]
            assert len({one.dollars for one in given}) == 1
        else:
            assert [one.steps for one in given] == [4, 5, 8]
            assert given[0].dollars < given[1].dollars < given[2].dollars
        checked(agent)


def test_of_two_children_at_once_under_one_call_the_second_has_what_the_first_one_leaves(way: Way) -> None:
    both = threading.Barrier(2, timeout=10)

    def model(messages: list[Any], request: CallModel) -> Reply:
        both.wait()
        return said("42", request.reserved.input_tokens)

    child = Agent(model, settings=PRICED, journal=MemoryJournal())

    @tool(spends=True)
    async def hire(ctx: CallContext) -> str:
        """Asks two others at once."""
        runs = [child.run("what?", under=ctx, limits=Limits(dollars=one, steps=3)) for one in (0.25, None)]
        return ", ".join([str(one.answer) for one in await asyncio.gather(*runs)])

    agent = parent_of(hire, asks("hire"), said("done", 10))
    result = way.run(agent, limits=Limits(dollars=1.0, steps=9))
    assert result.calls[0].text == "42, 42"
    (call,) = of(log_of(agent), ev.CallStarted)
    starts = [next(iter(child.journal.read(run))).settings.limits for run in result.children.runs]  # type: ignore[union-attr]
    first, second = sorted(starts, key=lambda limits: limits.dollars)
    assert (first.dollars, first.steps, second.steps) == (0.25, 3, 3)
    assert second.dollars == pytest.approx(call.allowance.dollars - 0.25)
    assert checked(agent).children["steps"] == 2


@pytest.mark.parametrize("max_parallel", [1, 2])
def test_a_provider_that_uses_more_than_was_reserved_leaves_less_for_the_calls_that_wait(
    way: Way, max_parallel: int
) -> None:
    """The limit is passed by what nobody could foresee; nothing breaks, and no more is given than there is."""
    child = child_of(said("42", 400_000))

    @tool(spends=True, read_only=True)
    def hire(ctx: CallContext) -> str:
        """Asks another agent."""
        result = child.run_sync("what?", under=ctx, raise_on_stop=False)
        return result.status

    settings = Settings(price=PRICED.price, max_output_tokens=100, max_parallel=max_parallel)
    agent = parent_of(hire, asks(*["hire"] * 6), said("done"), settings=settings)
    result = way.run(agent, limits=Limits(dollars=1.0))
    assert result.status == "budget"
    given = [one.allowance.dollars for one in of(log_of(agent), ev.CallStarted)]
    assert len(given) == 6
    assert given[-1] == 0.0
    assert {record.text for record in result.calls} == {"answered", "budget"}


# --- ten at once, in any order --------------------------------------------------------------------------

COSTS = Price(input=100.0, output=400.0, cache_read=10.0, cache_write=125.0)


@tool(read_only=True)
async def look() -> str:  # a coroutine, so that no thread makes the order another one
    """Sees."""
    return "seen"


def random_child(random: Random, journal: MemoryJournal) -> Agent:
    """One that takes some steps of any length and cost, up to what was reserved for each."""

    async def model(messages: list[Any], request: CallModel) -> Reply:
        for _ in range(random.randrange(5)):
            await asyncio.sleep(0)
        assert request.max_output_tokens is not None
        held, written = request.reserved.input_tokens, request.max_output_tokens
        usage = Usage(random.randint(1, held), random.randint(0, written), cache_write=random.choice([None, 0]))
        move = random.choice(["call", "call", "say", "fail"])
        if move == "fail":
            raise ValueError("a bug")
        return Reply("42", usage=usage) if move == "say" else Reply(calls=asks("look").calls, usage=usage)

    settings = Settings(price=COSTS)
    return Agent(FunctionModel(model), [look], settings=settings, journal=journal, name="child")


def one_schedule(seed: int) -> tuple[Any, str]:
    """Ten calls at once with up to three children each, of which some fail; what came of it."""
    random = Random(seed)
    journal = MemoryJournal()
    children = [random_child(random, journal) for _ in range(10)]

    @tool(spends=True, read_only=random.random() < 0.9)
    async def hire(n: int, ctx: CallContext) -> str:
        """Asks another agent."""
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        own = Limits(dollars=random.choice([None, 0.0, 0.02]), steps=random.choice([1, 3, 20]))
        results = [await children[n].run("what?", under=ctx, raise_on_stop=random.random() < 0.3, limits=own)]
        if random.random() < 0.3:  # and two more at once
            runs = (children[n].run(task, under=ctx, raise_on_stop=False) for task in ("and?", "or?"))
            results += await asyncio.gather(*runs)
        return ", ".join(one.status for one in results)

    replies = [
        tuple(ToolCall(f"{n}", "hire", f'{{"n": {n}}}') for n in range(10)),
        (ToolCall("again", "hire", '{"n": 0}'),),
    ]

    async def model(messages: list[Any], request: CallModel) -> Reply:
        assert request.max_output_tokens is not None
        usage = Usage(random.randint(1, request.reserved.input_tokens), random.randint(0, request.max_output_tokens))
        return Reply(
            "done" * (request.step > 2), calls=replies[request.step - 1] if request.step < 3 else (), usage=usage
        )

    limits = Limits(
        dollars=random.choice([0.3, 1.0, 5.0]),
        steps=random.choice([12, 25, 60]),
        tool_calls=random.choice([None, 12, 40]),
        on_tool_limit="continue",
    )
    settings = Settings(price=COSTS, max_parallel=random.choice([1, 3, 8, 10]), max_output_tokens=50)
    agent = Agent(FunctionModel(model), [hire], settings=settings, journal=journal)
    result = asyncio.run(agent.run("go", limits=limits, raise_on_stop=False))
    sums, wrong = sum_of([*journal.read(result.run_id)])
    runs = [fold(journal.read(run)).state.account for run in result.children.runs]
    if sum(one.dollars for one in runs) != pytest.approx(sums.children["dollars"]):
        wrong.append("the runs did not cost what the call was charged with")
    if any(sums.held.values()):
        wrong.append(f"{sums.held} stays held")
    return result, "; ".join(f"seed {seed}: {one}" for one in wrong)


@pytest.mark.slow
def test_ten_children_at_once_pass_no_limit_in_any_order(say: Callable[[str], None]) -> None:
    found = [one_schedule(seed) for seed in range(200)]
    assert [wrong for _, wrong in found if wrong] == []
    ends = {result.status for result, _ in found}
    assert {"answered", "budget"} <= ends
    runs = sum(len(result.children.runs) for result, _ in found)
    say(f"200 schedules of ten calls with children: {runs:,} child runs, {', '.join(sorted(ends))}; no limit passed")


# --- ten agents that are tools --------------------------------------------------------------------------


def families(random: Random) -> list[ChildTool]:
    """Agents as tools: whose calls run side by side or one after the other, with limits of their own or hardly any."""
    child = random_child(random, MemoryJournal())
    limits = (Limits(steps=3), Limits(steps=1), Limits(steps=3, dollars=0.02), Limits(steps=20, dollars=0.0))
    return [child.as_tool("hire", limits=one, parallel=way) for one in limits for way in (True, True, False)]


def one_family(random: Random, hired: ChildTool) -> tuple[Any, str]:
    """Ten runs at once, each of which is a call; what came of it."""
    journal = MemoryJournal()
    asked = tuple(ToolCall(f"{n}", "hire", '{"task": "what?"}') for n in range(10))

    async def model(messages: list[Any], request: CallModel) -> Reply:
        assert request.max_output_tokens is not None
        usage = Usage(random.randint(1, request.reserved.input_tokens), random.randint(0, request.max_output_tokens))
        return Reply("" if request.step == 1 else "done", asked if request.step == 1 else (), usage=usage)

    settings = Settings(price=COSTS, max_parallel=random.choice([1, 3, 8, 10]), max_output_tokens=50)
    agent = Agent(FunctionModel(model), [hired], settings=settings, journal=journal)
    own = Limits(dollars=random.choice([0.2, 0.5, 2.0]), steps=random.choice([8, 12, 40]))
    result = asyncio.run(agent.run("go", limits=own, raise_on_stop=False))
    sums, wrong = sum_of([*journal.read(result.run_id)])
    runs = [fold(journal.read(run)).state.account for run in result.children.runs]
    if sum(one.dollars for one in runs) != pytest.approx(sums.children["dollars"]):
        wrong.append("the runs did not cost what the calls were charged with")
    if any(sums.held.values()):
        wrong.append(f"{sums.held} stays held")
    if len(journal.runs()) != 1 + len(set(result.children.runs)):
        wrong.append(f"{len(journal.runs())} runs for {len(result.calls)} calls")
    return result, "; ".join(wrong)


@pytest.mark.slow
def test_ten_agents_that_are_tools_pass_no_limit_in_any_of_a_thousand_orders(say: Callable[[str], None]) -> None:
    random = Random(5)
    tools = families(random)
    found = [one_family(random, random.choice(tools)) for _ in range(1_000)]
    assert [wrong for _, wrong in found if wrong] == []
    ends = {result.status for result, _ in found}
    assert {"answered", "budget"} <= ends
    children = [record.child.status for result, _ in found for record in result.calls if record.child is not None]
    assert {"answered", "max_steps", "budget", "model_error"} <= set(children)
    runs = sum(len(result.children.runs) for result, _ in found)
    say(f"1,000 schedules of ten agents as tools: {runs:,} child runs, {', '.join(sorted(ends))}; no limit passed")
