"""Agents that use others: handing over, and what is said of one that stopped."""

from __future__ import annotations

from case_laws import assert_valid
from case_world import CaseModel, World, calls

from tenlines import Agent, Limits
from tenlines.core.children import child_id
from tenlines.core.events import ChildRun
from tenlines.core.replay import fold


def test_hand_01_what_was_called_beside_handing_over_is_handed_over(world: World) -> None:
    @world.tool
    def sub() -> str:
        """Subtracts."""
        return "7"

    other = CaseModel(world.input["model of B"])
    world.tools["to_archive"] = Agent(other, name="B").as_tool("to_archive", final=True, history=True)
    run = world.play().expect()
    (first,) = other.requests
    results = [one for one in first.messages if type(one).__name__ == "Result"]
    assert [(one.call_id, one.parts[0].text) for one in results] == [
        ("a", "7"),
        ("h", "The conversation is handed over to B."),
    ]
    assert_valid(run.sent[0])
    assert len(run.sent) == 1, "the answer is B's"


def test_hand_03_a_child_that_stopped_at_its_limit_is_not_told_as_a_success(world: World) -> None:
    def go() -> str:
        """Works."""
        return "go"

    def look() -> str:
        """Looks."""
        return "seen"

    looping = CaseModel(lambda request: calls(("c", "look", "{}")))
    child = Agent(looping, [look], limits=Limits(steps=2), name="child")
    world.tools["child"] = child.as_tool(task=go)
    run = world.play().expect()
    record = run.call("a")
    assert "stopped without an answer (max_steps)" in record.text
    assert "look: seen" in record.text, "what it had"
    run_id = child_id(f"{run.result.run_id}:1:0")
    assert record.child == ChildRun(run_id, "max_steps", "the limit of 2 steps was reached without an answer")
    assert fold(world.journal.read(run_id)).result().status == "max_steps"
