"""A plan in the place of the model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from plan_world import World, plan, step

from tenlines import Settings
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Text, User
from tenlines.errors import PlanStopped
from tenlines.planning import Planner
from tenlines.planning.conductor import Conductor, Following
from tenlines.planning.course import End
from tenlines.planning.plan import as_json
from tenlines.planning.setup import Setup

ONE = plan(step("a", "look it", tools=("look",)))


def request(*messages: Any) -> Any:
    return type("Request", (), {"messages": messages, "step": 1})()


def test_the_reply_is_what_is_to_be_done_next_and_costs_nothing() -> None:
    said = request(Setup(plan=as_json(ONE)).message(), User((Text("the task"),)))
    for reply in (Following().complete(said, None), asyncio.run(Following().acomplete(said, None))):
        (call,) = reply.calls
        assert (call.id, call.name, reply.stop, reply.dollars) == ("1.1", "use_plan", "tool_calls", 0.0)
        assert reply.usage is not None
        assert (reply.usage.input, reply.usage.output) == (0, 0)


def test_where_nothing_can_be_done_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said: CallModel = request(Setup(plan=as_json(ONE)).message(), User((Text("the task"),)))
    monkeypatch.setattr("tenlines.planning.conductor.next_move", lambda course, start: End("no way"))
    with pytest.raises(PlanStopped, match="no way"):
        Following().complete(said, None)


def test_its_name_says_which_model_does_the_steps() -> None:
    assert Conductor("openai:gpt-5").name == "plan:openai:gpt-5"


def test_a_limit_of_tokens_is_for_the_steps_alone() -> None:
    world = World()
    agent = world.agent(settings=Settings(max_output_tokens=20), instructions="Be brief. " * 2_000)
    long = Planner(agent, limits=None)
    assert long.run_sync(ONE).status == "answered"
    start = next(iter(agent.journal.read(next(one.run_id for one in agent.journal.runs() if one.agent == "plan"))))
    assert start.counting.rate < 0.001  # type: ignore[attr-defined]
