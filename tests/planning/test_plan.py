"""Plans as data: what is checked, and how it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tenlines.errors import ConfigError
from tenlines.planning import Plan, PlanStep, load_plan, read_plan
from tenlines.planning.plan import as_json, draft_type

TOOLS = ("get_order", "get_tracking")


def step(id: str, *needs: str, tools: tuple[str, ...] = ()) -> PlanStep:
    return PlanStep(id=id, do=f"do {id}", needs=needs, tools=tools)


def plan(*steps: PlanStep, done: tuple[str, ...] = ()) -> Plan:
    return Plan(task="the task", steps=steps, done=done)


def test_a_plan_comes_out_of_a_file_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    made = plan(step("find", tools=("get_order",)), step("track", "find"))
    file.write_text(made.text())
    assert load_plan(file, TOOLS) == made
    assert json.loads(made.text()) == as_json(made)
    assert "done" not in made.text()


def test_steps_of_one_wave_need_none_of_each_other() -> None:
    made = plan(step("c", "a", "b"), step("a"), step("b"), step("d", "c", "old"), done=("old",))
    assert [[one.id for one in wave] for wave in made.waves()] == [["a", "b"], ["c"], ["d"]]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (plan(step("a"), step("a")), "two steps are called a: give each a name of its own"),
        (
            plan(step("find"), step("b", "fnd")),
            "step b needs 'fnd', which is no step (did you mean find?); steps: find, b",
        ),
        (plan(step("a", "a")), "steps wait for one another (a -> a, each needs the next): take one of these needs out"),
        (plan(step("x"), step("a", "b", "x"), step("b", "a")), "steps wait for one another (a -> b -> a"),
        (plan(step("a", tools=("get_ordr",))), "step a may use 'get_ordr', which is no tool (did you mean get_order?)"),
        (
            plan(step("a"), done=("a",)),
            "step a is finished already: leave it out (others can still need it), or give a new one another name",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_step_and_the_way_out(made: Plan, said: str) -> None:
    (fault,) = made.faults(TOOLS)
    assert said in fault


def test_without_tools_none_can_be_granted() -> None:
    assert plan(step("a", tools=("x",))).faults(()) == [
        "step a may use 'x', which is no tool; there are none: leave `tools` empty"
    ]
    assert plan(step("a", tools=("x",))).faults() == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("{", "plan.json is not JSON"),
        ("[]", "plan.json is no plan: the whole: "),
        ('{"task": "t"}', "plan.json is no plan: steps: Field required"),
        ('{"task": "t", "steps": []}', "steps: Tuple should have at least 1 item"),
        ('{"task": "t", "steps": [{"id": "a"}]}', "plan.json is no plan: step a, do: Field required"),
        (
            '{"task": "t", "steps": [{"id": "a", "do": "x", "tool": []}]}',
            "step a, tool: Extra inputs are not permitted",
        ),
        ('{"task": "t", "steps": [{"id": "a", "do": "x", "needs": [1]}]}', "step a, needs, 1"),
        ('{"task": "t", "steps": [{"id": "a b", "do": "x"}]}', "step a b, id: String should match"),
        ('{"task": "t", "steps": [{"do": "x"}]}', "step 1, id: Field required"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_the_place(raw: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_plan(raw, "plan.json", TOOLS)
    assert said in str(caught.value)


def test_every_fault_of_a_file_is_named_at_once() -> None:
    made = plan(step("a", "x", tools=("y",)), step("a"))
    with pytest.raises(ConfigError) as caught:
        read_plan(made.text(), "plan.json", TOOLS)
    assert str(caught.value).count("\n- ") == 3


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"none\.json cannot be read: No such file"):
        load_plan("none.json")


def test_what_a_model_writes_is_checked_by_its_type() -> None:
    made = draft_type(TOOLS, ["old"])
    fine = {"steps": [{"id": "a", "do": "x", "needs": ["old"], "tools": ["get_order"]}]}
    made.model_validate(fine)
    named: Any = made.model_json_schema()["$defs"]["PlanStep"]["properties"]["tools"]["items"]
    assert named == {"type": "string", "enum": list(TOOLS)}
    fine["steps"][0] |= {"id": "old", "tools": ["rm"]}
    with pytest.raises(ValidationError) as caught:
        made.model_validate(fine)
    assert "step old is finished already" in str(caught.value)
    assert "step old may use 'rm', which is no tool" in str(caught.value)


# --- laws -----------------------------------------------------------------------------------------------------

ids = st.sampled_from("abcdef")
plans = st.builds(
    lambda steps: plan(*steps),
    st.lists(
        st.builds(
            lambda id, do, needs, tools: PlanStep(id=id, do=do, needs=tuple(needs), tools=tuple(tools)),
            ids,
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
            st.lists(ids, max_size=3),
            st.lists(st.sampled_from((*TOOLS, "rm")), max_size=2),
        ),
        min_size=1,
        max_size=6,
    ),
)


@given(plans)
def test_a_plan_without_a_fault_can_be_done_and_one_with_a_fault_cannot(made: Plan) -> None:
    ordered = [one for wave in made.waves() for one in wave]
    unique = len({one.id for one in made.steps}) == len(made.steps)
    granted = all(name in TOOLS for one in made.steps for name in one.tools)
    can_be_done = unique and granted and len(ordered) == len(made.steps)
    assert (not made.faults(TOOLS)) == can_be_done
    known: set[str] = set()
    for wave in made.waves():
        assert all(known.issuperset(one.needs) for one in wave)
        known |= {one.id for one in wave}


@given(plans)
def test_a_plan_survives_its_file(made: Plan) -> None:
    if not made.faults(TOOLS):
        assert read_plan(made.text(), "x", TOOLS) == made
        return
    with pytest.raises(ConfigError) as caught:
        read_plan(made.text(), "x", TOOLS)
    assert all(fault in str(caught.value) for fault in made.faults(TOOLS))
