"""A tool that says that it does not know whether its call took effect."""

from __future__ import annotations

import asyncio

import pytest

from tenlines import Agent, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.transcript import Result
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import InDoubt, ToolPort
from tenlines.tools import tool as make

ASKED = Reply("", (ToolCall("1", "pay", "{}"), ToolCall("2", "pay", "{}")))
tried: list[str] = []


@tool
def pay() -> str:
    """Pays, perhaps."""
    tried.append("plain")
    raise InDoubt("the line went dead")


@make(name="pay")
async def pay_async() -> str:
    """The same."""
    raise InDoubt("the line went dead")


@pytest.mark.parametrize("chosen", [pay, pay_async], ids=["plain", "async"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "aio"])
def test_the_call_is_in_doubt_and_the_run_goes_on(chosen: ToolPort, is_async: bool) -> None:
    agent = Agent([ASKED, "I am not sure."], tools=[chosen], journal="memory")
    run = asyncio.run(agent.run("pay")) if is_async else agent.run_sync("pay")
    told = [one for one in run.messages if isinstance(one, Result)]
    assert [(one.outcome, one.text) for one in told] == [("in_doubt", "the line went dead")] * 2
    ends = [one for one in agent.journal.read(run.run_id) if isinstance(one, ev.CallAbandoned)]
    assert [one.outcome for one in ends] == ["in_doubt"] * 2
    assert run.answer == "I am not sure."


def test_it_is_not_repeated_when_the_run_goes_on() -> None:
    tried.clear()
    journal = MemoryJournal()
    stopped = Agent([ASKED], tools=[pay], journal=journal, limits=Limits(steps=1)).run_sync("go", raise_on_stop=False)
    assert stopped.status == "max_steps"
    again = Agent(["ok"], tools=[pay], journal=journal).resume_sync(stopped.run_id, limits=Limits(steps=3))
    assert (again.answer, tried) == ("ok", ["plain"] * 2)


def test_of_a_tool_that_spends_it_is_an_error() -> None:
    @tool(spends=True, name="pay")
    def spending() -> str:
        """Pays, and spends."""
        raise InDoubt("the line went dead")

    agent = Agent([Reply("", (ToolCall("1", "pay", "{}"),)), "ok"], tools=[spending], journal="memory")
    [told] = [one for one in agent.run_sync("pay").messages if isinstance(one, Result)]
    assert told.outcome == "tool_error"
    assert "the line went dead" in told.text
