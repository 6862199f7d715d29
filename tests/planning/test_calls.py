"""What is a part's own fault, and what is not."""

from __future__ import annotations

import msgspec
import pytest
from plan_world import World, plan, step

from tenlines import Agent, Limits, RunResult, RunStopped, Settings
from tenlines.child import CALLER_STOPPED
from tenlines.core.events import Status
from tenlines.core.limits import Left
from tenlines.core.outcomes import canonical
from tenlines.planning import Planner
from tenlines.planning.calls import is_no_fault

ENDED = Agent(["done"], journal="memory").run_sync("x")


def ended(status: Status, reason: str = "") -> RunResult:
    return msgspec.structs.replace(ENDED, status=status, reason=reason, answer=None)


@pytest.mark.parametrize(
    ("result", "own", "given", "no_fault"),
    [
        (ended("max_steps"), Limits(steps=5), Left(steps=4), True),
        (ended("max_steps"), Limits(steps=5), Left(steps=5), False),
        (ended("max_steps"), Limits(steps=5), Left(), False),
        (ended("tool_limit"), Limits(), Left(tool_calls=1), True),
        (ended("tool_limit"), Limits(tool_calls=1), Left(), False),
        (ended("budget"), Limits(dollars=1.0), Left(tokens=100), True),
        (ended("budget"), Limits(dollars=1.0), Left(dollars=2.0), False),
        (ended("deadline"), Limits(), Left(seconds=3.0), True),
        (ended("model_error"), Limits(), Left(), True),
        (ended("cancelled", CALLER_STOPPED), Limits(), Left(), True),
        (ended("cancelled", "by Carla"), Limits(), Left(), False),
        (ended("stuck"), Limits(), Left(steps=1), False),
        (ended("refused"), Limits(), Left(steps=1), False),
    ],
)
def test_a_limit_of_the_whole_is_no_fault_of_the_part(
    result: RunResult, own: Limits, given: Left, no_fault: bool
) -> None:
    assert is_no_fault(result, own, given) == no_fault


def test_what_a_step_did_is_taken_back_by_undoing_the_whole() -> None:
    world, back = World(), list[str]()

    def take_back(what: str) -> None:
        back.append(what)

    agent = Agent(world.model, world.tools(undo=take_back), journal="memory")
    planner = Planner(agent)
    done = planner.run_sync(
        plan(step("a", "write 1; write 2", tools=("write",)), step("b", "write 3", "a", tools=("write",)))
    )
    assert world.written == ["1", "2", "3"]
    undone = planner.agent.undo_sync(done.run_id)
    assert back == ["3", "2", "1"]
    assert {one.name for one in undone.undone} == {"do_step"}


def test_a_plan_that_undoes_what_it_did_when_it_stops_is_not_gone_on_with() -> None:
    world, back = World(), list[str]()
    world.is_gone = True
    agent = Agent(
        world.model,
        world.tools(undo=lambda what: back.append(what)),
        settings=Settings(on_stop="undo"),
        journal="memory",
    )
    planner = Planner(agent)
    two = plan(step("a", "write 1", tools=("write",)), step("b", "gone", "a"))
    stopped = planner.run_sync(two, raise_on_stop=False)
    assert (world.written, back) == (["1"], ["1"])
    world.is_gone = False
    with pytest.raises(RunStopped, match="what its steps did was undone: begin a new run"):
        planner.resume_sync(stopped.run_id)


def test_what_a_step_is_given_stands_in_its_call() -> None:
    result = Planner(World().agent()).run_sync(plan(step("a", "say x"), step("b", "say y", "a")))
    assert canonical(result.calls[2].arguments or {}) == ('{"do":"say y","given":{"a":"x"},"step":"b","tools":[]}')
