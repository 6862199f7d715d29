"""What changes in the middle of a group goes back to the machine, and what it refuses is not in the journal."""

from __future__ import annotations

import asyncio

import pytest

from tenlines import Agent, Control, Limits, Reply, Settings, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.machine import Machine
from tenlines.core.transcript import Text
from tenlines.drivers.drafts import Draft
from tenlines.drivers.recorder import Parts, Recorder
from tenlines.errors import InternalError
from tenlines.journal.memory import MemoryJournal
from tenlines.models.plain import ScriptedModel
from tenlines.ports import SystemClock


@pytest.mark.parametrize("way", ["sync", "asyncio"])
def test_a_limit_that_is_lowered_in_the_middle_of_a_group_holds_for_the_rest_of_it(way: str) -> None:
    control = Control()

    @tool(read_only=True)
    def look(n: int) -> str:
        """Look."""
        control.raise_limits(Limits(tool_calls=1, on_tool_limit="continue"))
        return str(n)

    calls = tuple(ToolCall(f"c{n}", "look", f'{{"n": {n}}}') for n in range(3))
    settings = Settings(max_parallel=1)
    agent = Agent([Reply(calls=calls), "done"], [look], settings=settings, journal=MemoryJournal())
    sync = way == "sync"
    result = agent.run_sync("go", control=control) if sync else asyncio.run(agent.run("go", control=control))
    assert [call.outcome for call in result.calls] == ["ok", "not_executed", "not_executed"]
    assert result.answer == "done"


def test_an_event_that_the_machine_refuses_is_not_in_the_journal() -> None:
    journal, machine = MemoryJournal(), Machine()
    session = ScriptedModel([]).session()
    recorder = Recorder(Parts(machine, "r", session, {}, journal, SystemClock()))
    start = {"run_id": "r", "agent": "a", "model": "m", "messages": ()}
    recorder.record(Draft(ev.RunStarted, start))
    with pytest.raises(InternalError):
        recorder.record(Draft(ev.CallReturned, {"step": 1, "position": 0, "parts": (Text("x"),)}))
    assert [type(event) for event in journal.read("r")] == [ev.RunStarted]
