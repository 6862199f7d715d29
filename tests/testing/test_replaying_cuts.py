"""Runs that were cut, summarised, priced and that paid for others: replayed offline, and crashed everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import DRIVERS, Office, Unreachable, asks, log_of, refuse_to_run, run

from tenlines import Agent, CallContext, Limits, Reply, Settings, tool
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.limits import Price
from tenlines.core.transcript import Usage
from tenlines.errors import ContextTooLong, Overloaded
from tenlines.journal.memory import MemoryJournal
from tenlines.testing import (
    CrashReport,
    Recorded,
    ReplayMismatch,
    ScriptedModel,
    crash_everywhere,
    replay,
)

ELIDES = Compaction(strategies=("elide",), keep=1, at=1_000)
SUMMARISES = Compaction(strategies=("summarise",), keep=1, at=1_000)
BOTH = Compaction(keep=1, at=700, least_gain=1.0, summary_tokens=60)
"""The long result is left out first; when the short ones are too many, they are summarised."""
SUMMARY = Reply("The page was read.", usage=Usage(3_000, 20))
READ, JOT, SEND = asks(("read", "{}")), asks(("jot", "{}")), asks(("send", '{"to":"me"}'))


@tool(read_only=True, repeatable=True, max_result=20_000)
def read() -> str:
    """Returns much."""
    return "word " * 2_000


@tool(read_only=True, repeatable=True)
def jot() -> str:
    """Returns what is too short to be left out."""
    return "word " * 75


TOOLS = [read, jot]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def recorded_agent(office: Office, script: Any, compaction: Compaction | None, **options: Any) -> Agent:
    return Agent(script, [*TOOLS, *office.tools], journal=MemoryJournal(), compaction=compaction, **options)


def todays_agent(office: Office, compaction: Compaction | None, tools: Any = None, **options: Any) -> Agent:
    """Its model and tools must not be used."""
    sealed = refuse_to_run([*TOOLS, *office.tools] if tools is None else tools)
    return Agent(Unreachable(), sealed, compaction=compaction, **options)


def replayed(agent: Agent, today: Agent) -> Any:
    return replay(today, agent.journal, agent.journal.runs(1)[0].run_id)


def mismatch(agent: Agent, today: Agent) -> ReplayMismatch:
    with pytest.raises(ReplayMismatch) as caught:
        replayed(agent, today)
    assert max(map(len, str(caught.value).splitlines())) < 250
    return caught.value


# --- replays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "compaction"),
    [
        ([READ, SEND, "done"], ELIDES),
        ([READ, SEND, "done"], Compaction(strategies=("drop",), keep=1, at=1_000)),
        ([READ, SEND, SUMMARY, "done"], SUMMARISES),
        ([READ, JOT, JOT, JOT, SUMMARY, "done"], BOTH),
        ([READ, SEND, "", READ, Overloaded("busy"), "done"], SUMMARISES),
        ([READ, ContextTooLong("too long"), "done"], Compaction(keep=1)),
        ([READ, ContextTooLong("too long"), ContextTooLong("too long")], Compaction(keep=1)),
        ([READ, SEND, READ, SEND, "done"], Compaction(keep=1, window=4_000)),
        ([READ, SEND, READ, SEND, READ, SEND, READ, SEND, "done"], Compaction(strategies=("elide",), keep=1)),
    ],
    ids=["elide", "drop", "summarise", "both", "failed", "too long", "overflow", "window", "pays"],
)
def test_a_run_that_was_cut_is_replayed_offline(
    office: Office, driver: str, script: list[Any], compaction: Compaction
) -> None:
    agent = recorded_agent(office, script, compaction)
    live = run(driver, agent)
    log = log_of(agent)
    assert any(isinstance(event, ev.ContextCompacted | ev.SummaryStarted) for event in log)
    done = office.done
    assert replayed(agent, todays_agent(office, compaction)) == live
    assert office.done == done


def test_a_run_that_was_cut_and_resumed_with_another_strategy_is_replayed(office: Office, driver: str) -> None:
    agent = recorded_agent(office, [READ, SEND, ContextTooLong("too long")], None)
    stopped = run(driver, agent)
    assert stopped.status == "context_overflow"
    again = Agent(["done"], agent.tools, journal=agent.journal)
    live = again.resume_sync(stopped.run_id, compaction=Compaction(strategies=("elide",), keep=1))
    assert any(isinstance(event, ev.ContextCompacted) for event in log_of(agent))
    assert replayed(agent, todays_agent(office, None)) == live


def test_another_strategy_is_a_mismatch_that_says_so(office: Office) -> None:
    agent = recorded_agent(office, [READ, SEND, "done"], ELIDES)
    agent.run_sync("go")
    error = mismatch(agent, todays_agent(office, Compaction(strategies=("drop",), keep=1, at=1_000)))
    assert (error.step, error.part) == (3, "how it goes on")
    assert error.recorded.startswith("messages 2 to 3 are cut: elide")
    assert error.now.startswith("messages 2 to 3 are cut: drop")
    assert error.changed == ("compaction.strategies ('elide',) -> ('drop',)",)


def test_a_summary_that_would_be_asked_for_today_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office, [READ, SEND, "done"], ELIDES)
    agent.run_sync("go")
    error = mismatch(agent, todays_agent(office, SUMMARISES))
    assert error.now == "a summary of messages 2 to 3 is asked for"
    agent = recorded_agent(office, [READ, SEND, SUMMARY, "done"], SUMMARISES)
    agent.run_sync("go")
    assert mismatch(agent, todays_agent(office, ELIDES)).recorded == "a summary of messages 2 to 3 is asked for"


def test_a_cut_that_would_not_be_made_today_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office, [READ, SEND, "done"], ELIDES)
    agent.run_sync("go")
    error = mismatch(agent, todays_agent(office, Compaction(strategies=("elide",), keep=1, least_gain=1.0)))
    assert error.now == "the model is asked (attempt 1)"
    assert error.changed == ("compaction.at 1000 -> None", "compaction.least_gain 0.01 -> 1.0")
    without = mismatch(agent, todays_agent(office, None, read_results=True))
    assert without.changed == ("compaction Compaction(...) -> None",)


def test_another_length_of_summaries_is_a_mismatch_of_the_question(office: Office) -> None:
    agent = recorded_agent(office, [READ, SEND, SUMMARY, "done"], SUMMARISES)
    agent.run_sync("go")
    error = mismatch(
        agent, todays_agent(office, Compaction(strategies=("summarise",), keep=1, at=1_000, summary_tokens=200))
    )
    assert (error.step, error.part) == (3, "message 6 of the request (note)")
    assert "at most 500 words" in error.recorded
    assert "at most 100 words" in error.now


def test_a_text_that_changed_behind_a_cut_is_found(office: Office) -> None:
    """After a cut the comparison begins anew where it was made."""
    agent = recorded_agent(office, [READ, SEND, "done"], ELIDES, instructions="Be brief.")
    agent.run_sync("go")
    assert replayed(agent, todays_agent(office, ELIDES, instructions="Be brief.")).answer == "done"
    other = Settings(tell_left=True)
    error = mismatch(agent, todays_agent(office, ELIDES, instructions="Be brief.", settings=other))
    assert error.step == 2


# --- what was looked up -------------------------------------------------------------------------------


def named(agent: Agent, name: str) -> Agent:
    agent.model.name = name  # type: ignore[misc]
    return agent


def test_the_price_and_the_window_of_then_hold_in_a_replay(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = tmp_path / "prices.toml"
    monkeypatch.setenv("TENLINES_PRICES", str(prices))
    prices.write_text('["openai:mine"]\ninput = 1\noutput = 2\nwindow = 4000\n')
    script = [READ, SEND, READ, SEND, Reply("done", usage=Usage(1_000, 10))]
    agent = named(recorded_agent(office, script, Compaction(keep=1), limits=Limits(dollars=1.0)), "openai:mine")
    live = agent.run_sync("go")
    assert any(isinstance(event, ev.ContextCompacted) for event in log_of(agent))
    prices.write_text('["openai:mine"]\ninput = 90\noutput = 90\nwindow = 9000000\n')
    today = named(todays_agent(office, Compaction(keep=1), limits=Limits(dollars=1.0)), "openai:mine")
    assert replayed(agent, today) == live


def test_a_price_that_the_agent_states_is_its_own(office: Office) -> None:
    settings = Settings(price=Price(input=1.0, output=1.0))
    agent = recorded_agent(
        office, [Reply("done", usage=Usage(10, 10))], None, settings=settings, limits=Limits(dollars=1.0)
    )
    live = agent.run_sync("go")
    assert replayed(agent, todays_agent(office, None, settings=settings, limits=Limits(dollars=1.0))) == live
    dear = Settings(price=Price(input=90_000.0, output=90_000.0))
    error = mismatch(agent, todays_agent(office, None, settings=dear, limits=Limits(dollars=1.0)))
    assert error.now.startswith("the run ends as budget")
    assert error.changed == ("price.input 1.0 -> 90000.0", "price.output 1.0 -> 90000.0")


# --- runs under calls -----------------------------------------------------------------------------------


def hiring(child: Callable[[], Agent]) -> Any:
    @tool(spends=True, idempotent=True)
    def hire(ctx: CallContext) -> str:
        """Asks another agent."""
        return child().run_sync("what?", under=ctx, raise_on_stop=False).last

    return hire


PRICED = Settings(price=Price(input=1.0, output=2.0))


def child() -> Agent:
    return Agent([Reply("42", usage=Usage(100, 10))], settings=PRICED, journal="memory")


def test_what_calls_were_given_and_spent_is_replayed(office: Office, driver: str) -> None:
    moves = [asks(("hire", "{}"), ("hire", "{}")), SEND, "done"]
    agent = Agent(moves, [hiring(child), *office.tools], journal=MemoryJournal(), settings=PRICED)
    live = run(driver, agent, limits=Limits(dollars=1.0, steps=9))
    assert live.children.steps == 2
    tools = [hiring(child), *office.tools]
    today = todays_agent(office, None, tools, settings=PRICED, limits=Limits(dollars=1.0, steps=9))
    assert replayed(agent, today) == live
    more = todays_agent(office, None, tools, settings=PRICED, limits=Limits(dollars=2.0, steps=9))
    assert replayed(agent, more).answer == "done", "what a call is given is not what the run decided"
    less = todays_agent(office, None, tools, settings=PRICED, limits=Limits(dollars=1.0, steps=4))
    assert mismatch(agent, less).changed == ("limits.steps 9 -> 4",)


def test_a_tool_that_spends_now_is_told_of(office: Office) -> None:
    agent = Agent([asks(("hire", "{}")), "done"], [tool(lambda: "42", name="hire")], journal=MemoryJournal())
    agent.run_sync("go")
    with pytest.raises(ReplayMismatch) as caught:
        replay(
            todays_agent(office, None, [tool(lambda: "42", name="hire", spends=True, final=True)]),
            agent.journal,
            agent.journal.runs(1)[0].run_id,
        )
    assert "tool hire: spends False -> True" in caught.value.changed


# --- recordings -----------------------------------------------------------------------------------------


def test_a_recording_of_a_run_that_was_cut_is_replayed(office: Office, tmp_path: Path) -> None:
    def fixture() -> Recorded:
        return Recorded(tmp_path / "test_x.py", "test_x.py::test_y", may_record=True, records_anew=False)

    agent = recorded_agent(office, ScriptedModel([READ, SEND, SUMMARY, "done"]), SUMMARISES)
    live = fixture()(agent, "go")
    assert len(agent.model.requests) == 4  # type: ignore[attr-defined]
    today = todays_agent(office, SUMMARISES)
    assert fixture()(today, "go") == live
    assert asyncio.run(fixture().arun(today, "go")) == live
    with pytest.raises(ReplayMismatch):
        fixture()(todays_agent(office, ELIDES), "go")
    assert agent.journal.runs() == []


def count(report: CrashReport, kind: type[Any]) -> int:
    return sum(isinstance(event, kind) for event in report.log)


# --- crashes --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "compaction"),
    [
        ([READ, SEND, "done"], ELIDES),
        ([READ, SEND, SUMMARY, "done"], SUMMARISES),
        ([READ, SEND, "", "done"], SUMMARISES),
        ([READ, JOT, JOT, JOT, SUMMARY, "done"], BOTH),
    ],
    ids=["elide", "summarise", "failed", "both"],
)
def test_an_agent_that_cuts_stands_a_crash_after_every_record(
    office: Office, script: list[Any], compaction: Compaction
) -> None:
    model = ScriptedModel(script)
    undisturbed: list[CrashReport] = []
    lost: list[CrashReport] = []

    def check(report: CrashReport) -> None:
        office.trail.unlink(missing_ok=True)
        if not report.record:
            undisturbed.append(report)
        elif isinstance(report.log[report.record - 1], ev.SummaryStarted):
            lost.append(report)
        assert count(report, ev.ContextCompacted) == count(undisturbed[0], ev.ContextCompacted)

    reports = crash_everywhere(lambda: Agent(model, [*TOOLS, *office.tools], compaction=compaction), "go", check=check)
    assert len(model.requests) == len(script), "the model is asked in the first run only"
    assert {report.result.answer for report in reports} == {"done"}
    assert len(lost) == 2 * count(undisturbed[0], ev.SummaryStarted)
    for report in lost:
        starts = [event for event in report.log if isinstance(event, ev.SummaryStarted)]
        assert starts[0].start == starts[1].start, "it is asked for once more"


def test_an_agent_whose_tools_spend_stands_a_crash_after_every_record(office: Office) -> None:
    def make_agent() -> Agent:
        moves = [asks(("hire", "{}")), Reply("done", usage=Usage(200, 10))]
        return Agent(moves, [hiring(child), *office.tools], settings=PRICED, limits=Limits(dollars=1.0))

    def check(report: CrashReport) -> None:
        left = report.result.left.dollars
        assert left is not None
        assert 0 < left < 1.0

    reports = crash_everywhere(make_agent, "go", check=check)
    again = [one for one in reports if count(one, ev.CallStarted) == 2]
    assert len(again) == 4, "before and after the effect, with both drivers"
    assert all(one.result.dollars is None for one in again), "nobody knows what was spent before the crash"
