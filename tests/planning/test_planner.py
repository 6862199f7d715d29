"""Plans that are made, reviewed, followed, made anew and taken up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from plan_world import World, plan, step
from pydantic import BaseModel

from tenlines import Agent, Control, Limits, RunResult, RunStopped, Settings
from tenlines.core import events as ev
from tenlines.core.limits import Price
from tenlines.drivers import decisions
from tenlines.drivers.decisions import Decision
from tenlines.errors import ConfigError
from tenlines.journal.memory import MemoryJournal
from tenlines.planning import Plan, Planner, load_plan
from tenlines.testing import SimulatedCrash, crash_after

SHOP = plan(
    step("find", "look order", tools=("look",)),
    step("stock", "look stock", tools=("look",)),
    step("note", "write it", "find", "stock", tools=("write",)),
)
Follow = Callable[..., RunResult]


@pytest.fixture(params=["sync", "asyncio"])
def follow(request: pytest.FixtureRequest) -> Follow:
    """Follows with both drivers."""
    if request.param == "sync":
        return lambda planner, what, **options: planner.run_sync(what, **options)
    return lambda planner, what, **options: asyncio.run(planner.run(what, **options))


def calls_of(result: RunResult) -> list[tuple[str, str, str]]:
    """Name, step and outcome of each call."""
    return [(one.name, (one.arguments or {}).get("step", ""), one.outcome) for one in result.calls]


def starts(agent: Agent) -> dict[str, ev.RunStarted]:
    """The first events of the runs of a journal, by agent."""
    found = [next(agent.journal.read(one.run_id)) for one in agent.journal.runs()]
    return {one.agent: one for one in found if isinstance(one, ev.RunStarted)}


# --- made -----------------------------------------------------------------------------------------------------


def test_a_plan_is_one_run_without_the_tools_which_is_told_them(follow: Follow) -> None:
    world = World(SHOP.steps)
    agent = world.agent(instructions="Be brief.")
    planner = Planner(agent)
    assert planner.plan_sync("the task") == SHOP
    (told,) = world.makers
    assert "- look: Look at something.\n- write: Write something down." in told[0]["content"]
    assert told[1:] == [{"role": "user", "content": "the task"}]
    assert [one.name for one in starts(agent)["plan.make"].tools] == ["finish"]
    assert world.looked == world.written == []


def test_what_cannot_be_followed_goes_back_with_the_reasons() -> None:
    world = World([step("a", "x", "b", tools=("lok",))], "Here is my plan: do it!", SHOP.steps)
    assert Planner(world.agent()).plan_sync("the task") == SHOP
    said = [str(one["content"]) for one in world.makers[-1]]
    assert any("step a needs 'b', which is no step; steps: a" in one for one in said)
    assert any("step a may use 'lok', which is no tool (did you mean look?)" in one for one in said)


def test_a_model_that_makes_no_plan_ends_as_such() -> None:
    world = World(*["words"] * 4)
    with pytest.raises(RunStopped) as stopped:
        Planner(world.agent()).plan_sync("the task")
    assert stopped.value.result.status == "stuck"


# --- followed -------------------------------------------------------------------------------------------------


def test_steps_know_their_words_and_the_results_that_they_need_and_nothing_else(follow: Follow) -> None:
    world = World()
    agent = world.agent(instructions="Be brief.")
    result = follow(Planner(agent), SHOP)
    assert result.status == "answered"
    assert result.answer == "so it is: [find]\nseen order\n\n[stock]\nseen stock\n\n[note]\nwritten it"
    assert (sorted(world.looked), world.written) == (["order", "stock"], ["it"])
    tasks = {one[0]["content"].split("\n\n")[0]: one[1]["content"] for one in world.asked}
    assert set(tasks) == {"Be brief."}
    given = {one[1]["content"] for one in world.asked[:-1]}
    after = "What is known from earlier steps:\n\n[find]\nseen order\n\n[stock]\nseen stock"
    assert given == {"look order", "look stock", f"write it\n\n{after}"}
    assert [one.name for one in starts(agent)["plan.note"].tools] == ["write"]
    assert calls_of(result) == [
        ("use_plan", "", "ok"),
        ("read_step", "find", "ok"),
        ("read_step", "stock", "ok"),
        ("do_step", "note", "ok"),
        ("answer", "", "ok"),
    ]


def test_a_plan_that_was_edited_by_hand_runs_as_edited(tmp_path: Path, follow: Follow) -> None:
    file = tmp_path / "plan.json"
    file.write_text(SHOP.text().replace("write it", "write that").replace("look stock", "look shelf"))
    world = World()
    assert follow(Planner(world.agent()), load_plan(file)).status == "answered"
    assert (sorted(world.looked), world.written) == (["order", "shelf"], ["that"])


def test_a_tool_outside_the_grant_is_refused_with_the_names_of_those_inside(follow: Follow) -> None:
    world = World()
    agent = world.agent()
    result = follow(Planner(agent), plan(step("a", "write x", tools=("look",)), step("b", "write y")))
    assert world.written == []
    texts = {name: text for name, _, text in [(one.arguments["step"], 0, one.text) for one in result.calls[1:3]]}
    assert "There is no tool named 'write'; nothing was run. Available tools: look." in texts["a"]
    assert "There is no tool named 'write'; nothing was run. Available tools: none." in texts["b"]
    assert {
        name: [tool.name for tool in one.tools] for name, one in starts(agent).items() if name[-2:] in (".a", ".b")
    } == {
        "plan.a": ["look"],
        "plan.b": [],
    }


def test_steps_that_read_run_at_once_and_at_most_so_many() -> None:
    running, most = 0, 0

    async def slow(messages: Any) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    many = plan(*(step(f"s{number}", "think") for number in range(7)))
    assert asyncio.run(Planner(Agent(slow, journal="memory"), parallel=3).run(many)).answer == "ok"
    assert most == 3


def test_steps_that_may_act_run_alone_after_those_that_read(follow: Follow) -> None:
    world = World()
    both = plan(
        step("w", "write a", tools=("write",)),
        step("r", "look b", tools=("look",)),
        step("v", "write c", tools=("write",)),
    )
    result = follow(Planner(world.agent()), both)
    assert [one[1] for one in calls_of(result)[1:4]] == ["r", "w", "v"]
    assert world.written == ["a", "c"]


def test_a_plan_for_other_tools_is_refused_before_anything_runs() -> None:
    world = World()
    with pytest.raises(ConfigError, match="step a may use 'rm', which is no tool"):
        Planner(world.agent()).run_sync(plan(step("a", "x", tools=("rm",))))
    with pytest.raises(ConfigError, match="nothing is finished yet"):
        Planner(world.agent()).run_sync(Plan(task="t", steps=SHOP.steps, done=("x",)))
    with pytest.raises(ConfigError, match="write 'always' or 'never'"):
        Planner(world.agent(), review="maybe")  # type: ignore[arg-type]


def test_the_answer_has_the_type_of_the_agent() -> None:
    class Said(BaseModel):
        words: str

    def model(messages: list[dict[str, Any]]) -> str:
        return '{"words": "done"}' if messages[0]["content"].startswith("Answer") else "a result"

    agent = Agent(model, output=Said, journal="memory")
    assert Planner(agent).run_sync(plan(step("a", "x"))).output == Said(words="done")


@pytest.mark.parametrize(("name", "most"), [("steps", 17), ("tool_calls", 14), ("tokens", 1_700), ("dollars", 0.0018)])
def test_limits_hold_over_all_steps_also_side_by_side(name: str, most: float) -> None:
    world = World()
    settings = Settings(max_output_tokens=20, price=Price(input=1.0, output=2.0))
    many = plan(*(step(f"s{number}", "look a; look b", tools=("look",)) for number in range(6)))
    limits = msgspec.structs.replace(Limits(steps=None), **{name: most})
    result = asyncio.run(Planner(world.agent(settings=settings), limits=limits).run(many, raise_on_stop=False))
    used = {
        "steps": len(world.asked) + result.steps,
        "tool_calls": len(world.looked) + len(result.calls),
        "tokens": result.usage.total,
        "dollars": result.dollars or 0.0,
    }
    assert result.status != "answered"
    assert most / 3 < used[name] <= most


# --- reviewed -------------------------------------------------------------------------------------------------


def test_a_plan_that_a_model_made_waits_for_a_person_and_runs_as_changed(follow: Follow) -> None:
    world = World(SHOP.steps)
    planner = Planner(world.agent())
    waiting = follow(planner, "the task")
    assert (waiting.status, world.asked) == ("awaiting_approval", [])
    (asked,) = waiting.pending
    assert (asked.name, asked.arguments["task"], len(asked.arguments["steps"])) == ("use_plan", "the task", 3)
    with pytest.raises(ConfigError, match="step a may use 'rm', which is no tool"):
        planner.agent.approve(
            waiting.run_id, arguments={"task": "t", "steps": [{"id": "a", "do": "x", "tools": ["rm"]}]}
        )
    planner.agent.approve(waiting.run_id, by="Carla", arguments={"task": "t", "steps": [{"id": "a", "do": "look it"}]})
    result = planner.resume_sync(waiting.run_id)
    assert calls_of(result)[1:] == [("use_plan", "", "ok"), ("read_step", "a", "ok"), ("answer", "", "ok")]
    assert world.looked == []  # the person took the tool away


def test_a_plan_that_is_not_allowed_is_not_followed() -> None:
    world = World(SHOP.steps)
    planner = Planner(world.agent())
    waiting = planner.run_sync("the task")
    planner.agent.deny(waiting.run_id, by="Carla", reason="too dear")
    with pytest.raises(RunStopped, match=r"the plan is not followed: .*Carla did not allow it: too dear"):
        planner.resume_sync(waiting.run_id)
    assert world.asked == []


def test_nobody_is_asked_where_that_was_said() -> None:
    world = World(SHOP.steps)
    assert Planner(world.agent(), review="never").run_sync("the task").status == "answered"


def test_a_change_that_makes_it_no_plan_is_not_followed_and_the_plan_is_asked_about_again() -> None:
    world = World(SHOP.steps)
    agent = world.agent()
    planner = Planner(agent)
    waiting = planner.run_sync("the task")
    broken = Decision("allow", "somebody", "", {"task": "t", "steps": []}, None)
    decisions.decide(agent.journal, agent.clock, waiting.run_id, None, broken)
    again = planner.resume_sync(waiting.run_id)
    assert "the plan is no plan: steps: Tuple should have at least 1 item" in again.calls[1].text
    assert (again.status, again.pending[0].arguments["steps"][0]["id"]) == ("awaiting_approval", "find")
    planner.agent.approve(waiting.run_id)
    assert planner.resume_sync(waiting.run_id).status == "answered"


def test_calls_inside_of_a_step_wait_for_people_in_the_step() -> None:
    world = World()
    agent = Agent(world.model, world.tools(approve=True), journal="memory")
    planner = Planner(agent)
    waiting = planner.run_sync(SHOP)
    assert waiting.status == "awaiting_approval"
    (paused,) = waiting.paused
    (inner,) = paused.waiting
    assert (inner.name, world.written) == ("write", [])
    agent.approve(inner.run_id)
    result = planner.resume_sync(waiting.run_id)
    assert (result.status, world.written) == ("answered", ["it"])
    assert sorted(world.looked) == ["order", "stock"]


# --- a step that fails ----------------------------------------------------------------------------------------

BROKEN = plan(
    step("find", "look order", tools=("look",)),
    step("bad", "refuse"),
    step("note", "write it", "bad", tools=("write",)),
)
REST = (step("other", "look archive", "find", tools=("look",)), step("note", "write it", "other", tools=("write",)))


def test_a_failed_step_leads_to_a_new_plan_for_the_rest_that_a_person_sees(follow: Follow) -> None:
    world = World(REST)
    planner = Planner(world.agent())
    waiting = follow(planner, BROKEN)
    assert waiting.status == "awaiting_approval"
    (asked,) = waiting.pending
    assert asked.arguments["done"] == ["find"]
    assert asked.reason == "this plan is for the rest, after a step has failed"
    told = world.makers[0][1]["content"]
    assert "Finished, with these results:\n[find]\nseen order" in told
    assert "Failed:\n[bad]\nread_step stopped without an answer (refused)" in told
    planner.agent.approve(waiting.run_id)
    result = planner.resume_sync(waiting.run_id)
    assert (result.status, world.looked, world.written) == ("answered", ["order", "archive"], ["it"])
    assert "[find]\nseen order" in str(result.answer)


def test_finished_steps_are_known_to_the_new_plan_and_not_done_again() -> None:
    world = World(REST)
    assert Planner(world.agent(), review="never").run_sync(BROKEN).status == "answered"
    assert world.looked == ["order", "archive"]
    other = next(one for one in world.asked if one[1]["content"].startswith("look archive"))
    assert "[find]\nseen order" in other[1]["content"]


def test_a_second_failure_ends_the_run_with_what_is_known(follow: Follow) -> None:
    world = World([step("worse", "refuse", "find")])
    planner = Planner(world.agent(), review="never")
    with pytest.raises(RunStopped) as stopped:
        follow(planner, BROKEN)
    result = stopped.value.result
    assert result.answer is None
    assert "the new plan failed as well: step worse: read_step stopped without an answer (refused)" in result.reason
    assert result.partial_answer == "There is no answer. What is known:\n\n[find]\nseen order"
    before = len(world.asked)
    with pytest.raises(RunStopped, match="the new plan failed as well"):
        planner.resume_sync(result.run_id)
    assert len(world.asked) == before


def test_no_new_plan_is_an_end_too() -> None:
    world = World(*["words"] * 4)
    with pytest.raises(RunStopped, match=r"step bad: .*refused.*; and no plan was made: .*stuck"):
        Planner(world.agent(), review="never").run_sync(BROKEN)


# --- stopped, and taken up ------------------------------------------------------------------------------------

LONG = plan(
    step("a", "write 1; write 2; write 3; write 4", tools=("write",)), step("b", "write 5", "a", tools=("write",))
)


@pytest.mark.parametrize("limits", [Limits(steps=6), Limits(tool_calls=4), Limits(tokens=600)])
def test_a_step_that_the_limit_of_the_whole_stopped_goes_on_where_it_was(limits: Limits, follow: Follow) -> None:
    world = World()
    planner = Planner(world.agent(settings=Settings(max_output_tokens=20)), limits=limits)
    with pytest.raises(RunStopped) as stopped:
        follow(planner, LONG)
    result = stopped.value.result
    assert 0 < len(world.written) < 5
    assert world.makers == []  # it is no failure of the plan
    done = planner.resume_sync(result.run_id, limits=Limits(steps=None))
    assert done.status == "answered"
    assert world.written == ["1", "2", "3", "4", "5"]


def test_a_step_with_too_few_steps_of_its_own_has_failed() -> None:
    world = World([step("short", "write 9", tools=("write",))])
    result = Planner(world.agent(limits=Limits(steps=3)), review="never", limits=Limits(steps=99)).run_sync(LONG)
    assert (result.status, world.written) == ("answered", ["1", "2", "3", "9"])


def test_a_model_out_of_reach_is_no_failure_of_the_plan(follow: Follow) -> None:
    world = World()
    world.is_gone = True
    planner = Planner(world.agent())
    two = plan(step("a", "write 1; gone", tools=("write",)), step("b", "look 2", tools=("look",)))
    with pytest.raises(RunStopped, match=r"step a: do_step stopped without an answer.*no such key"):
        follow(planner, two)
    world.is_gone = False
    (run,) = [one.run_id for one in planner.agent.journal.runs() if one.agent == "plan"]
    assert planner.resume_sync(run).status == "answered"
    assert (world.written, world.looked) == (["1"], ["2"])


def test_a_plan_that_was_cancelled_goes_on(follow: Follow) -> None:
    world, control = World(), Control()

    class Stop:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CallReturned) and world.written == ["1"]:
                control.cancel(now=True)

    planner = Planner(world.agent(observers=[Stop()]))
    with pytest.raises(RunStopped) as stopped:
        follow(planner, LONG, control=control)
    assert stopped.value.result.status == "cancelled"
    assert planner.resume_sync(stopped.value.result.run_id).status == "answered"
    assert world.written == ["1", "2", "3", "4", "5"]


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["sync", "asyncio"])
def test_after_a_crash_at_any_record_nothing_finished_is_done_again(driver: str) -> None:
    def go(planner: Planner) -> RunResult:
        return planner.run_sync("t") if driver == "sync" else asyncio.run(planner.run("t"))

    def fresh(journal: Any) -> tuple[World, Planner]:
        world = World(BROKEN.steps, REST)
        return world, Planner(world.agent(journal=journal), review="never")

    _, whole = fresh(MemoryJournal())
    expected = go(whole).answer
    records = sum(one.events for one in whole.agent.journal.runs())
    for record in range(1 if driver == "sync" else 2, records, 5):
        journal = crash_after(record=record)
        world, first = fresh(journal)
        with pytest.raises(SimulatedCrash):
            go(first)
        again = Planner(world.agent(journal=journal.survivor), review="never")
        mains = [one.run_id for one in journal.survivor.runs() if one.agent == "plan"]
        result = again.resume_sync(mains[0], raise_on_stop=False)
        assert (result.status, result.answer) == ("answered", expected) or doubts(journal.survivor), record
        assert world.written == ["it"], record
        agents = [one.agent for one in journal.survivor.runs()]
        assert len(agents) == len(set(agents)) + (agents.count("plan.make") - 1), record


def doubts(journal: MemoryJournal) -> bool:
    """Whether some call is in doubt: its tool had begun, and it cannot be told what became of it."""
    logs = [list(journal.read(one.run_id)) for one in journal.runs()]
    return any(isinstance(one, ev.CallAbandoned) and one.outcome == "in_doubt" for log in logs for one in log)
