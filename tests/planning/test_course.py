"""What has come of a plan, and what is next: from the transcript alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_world import plan, step

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import undone
from tenlines.core.transcript import Assistant, Message, Note, Outcome, Result, Text, ToolCall, User
from tenlines.planning.course import STOPPED, Ask, End, Move, Tell, course_of, next_move
from tenlines.planning.plan import Plan, PlanStep, as_json
from tenlines.planning.setup import Setup, Start

TOOLS = (ToolSpec("look", read_only=True), ToolSpec("write"))


class Walk:
    """A run whose calls end as somebody says."""

    def __init__(self, made: Plan | None) -> None:
        setup = Setup(TOOLS, plan=None if made is None else as_json(made))
        self.start, self.since = Start(setup, "the task", 2), 2
        self.messages: list[Message] = [setup.message(), User((Text("the task"),))]

    @property
    def next(self) -> Move:
        return next_move(course_of(self.messages, self.start, self.since), self.start)

    def go(self, *ends: tuple[Outcome, str]) -> list[tuple[str, Any]]:
        """Make the calls that are next, with these ends."""
        move = self.next
        assert isinstance(move, Ask), move
        step = sum(isinstance(one, Assistant) for one in self.messages) + 1
        ids = [f"{step}.{number}" for number in range(1, len(move.calls) + 1)]
        calls = [
            ToolCall(id, name, msgspec.json.encode(arguments).decode())
            for id, (name, arguments) in zip(ids, move.calls, strict=True)
        ]
        self.messages.append(Assistant("", tuple(calls)))
        for call, (outcome, text) in zip(calls, ends, strict=True):
            self.messages.append(Result(call.id, call.name, outcome, (Text(text),)))
        return [*move.calls]

    def use(self) -> Any:
        """Take up what is offered."""
        move = self.next
        assert isinstance(move, Ask)
        ((name, arguments),) = move.calls
        assert name == "use_plan"
        self.go(("ok", msgspec.json.encode(arguments).decode()))
        return arguments

    def resume(self) -> None:
        self.since = len(self.messages)


def steps_of(asked: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(name, arguments["step"]) for name, arguments in asked]


THREE = plan(
    step("w", "write", tools=("write",)),
    step("r", "look", tools=("look",)),
    step("last", "think", "w", "r", tools=("look",)),
)


def test_a_plan_is_made_taken_up_and_followed() -> None:
    walk = Walk(None)
    made = msgspec.json.encode({"steps": as_json(THREE)["steps"]}).decode()
    assert walk.go(("ok", made)) == [("make_plan", {"task": "the task"})]
    assert walk.use() == as_json(THREE)
    assert steps_of(walk.go(("ok", "R"), ("ok", "W"))) == [("read_step", "r"), ("do_step", "w")]
    ((name, arguments),) = walk.go(("ok", "L"))
    assert (name, arguments["given"]) == ("read_step", {"w": "W", "r": "R"})
    assert walk.next == Ask((("answer", {"task": "the task", "results": {"r": "R", "w": "W", "last": "L"}}),))


def test_what_was_stopped_ends_the_run_and_is_asked_again_later() -> None:
    walk = Walk(THREE)
    walk.use()
    walk.go(("ok", "R"), ("tool_error", f"{STOPPED}no money"))
    assert walk.next == End("step w: no money")
    walk.resume()
    ((name, arguments),) = walk.go(("ok", "W"))
    assert (name, arguments["step"], arguments["after"]) == ("do_step", "w", "2.2")
    assert steps_of(walk.go(("ok", "L"))) == [("read_step", "last")]


@pytest.mark.parametrize(
    "outcome", ["cancelled", "in_doubt", "not_executed", "unknown_tool", "timeout", "invalid_arguments"]
)
def test_no_outcome_but_an_error_is_a_failure(outcome: Outcome) -> None:
    walk = Walk(THREE)
    walk.use()
    walk.go(("ok", "R"), (outcome, "why"))
    assert walk.next == End("step w: why")


def test_a_new_plan_knows_what_is_done_and_what_failed() -> None:
    walk = Walk(THREE)
    walk.use()
    walk.go(("ok", "R"), ("tool_error", "broken"))
    ((name, arguments),) = walk.go(("ok", '{"steps": [{"id": "w", "do": "again", "needs": ["r"]}]}'))
    assert name == "make_plan"
    assert (arguments["rest"]["done"], arguments["rest"]["failed"]) == ({"r": "R"}, {"w": "broken"})
    assert walk.use()["done"] == ["r"]
    ((_, asked),) = walk.go(("tool_error", "broken again"))
    assert (asked["step"], asked["given"], "after" in asked) == ("w", {"r": "R"}, False)
    assert walk.next == Tell("There is no answer. What is known:\n\n[r]\nR")
    walk.messages.append(Assistant("There is no answer."))
    assert walk.next == End("the new plan failed as well: step w: broken again")


def test_a_plan_that_is_denied_ends_it_and_one_that_does_not_fit_is_offered_again() -> None:
    walk = Walk(THREE)
    walk.go(("invalid_arguments", "no plan"))
    assert walk.next == End("the plan is not followed: no plan")
    walk.resume()
    walk.go(("denied", "not allowed"))
    walk.resume()
    assert walk.next == End("the plan is not followed: not allowed")


def test_what_is_under_way_comes_to_its_end_before_a_new_plan_is_made() -> None:
    walk = Walk(THREE)
    walk.use()
    walk.go(("tool_error", "broken"), ("tool_error", f"{STOPPED}no money"))
    walk.resume()
    ((name, arguments),) = walk.go(("ok", "W"))
    assert (name, arguments["step"], arguments["after"]) == ("do_step", "w", "2.2")
    ((name, arguments),) = walk.go(("ok", '{"steps": [{"id": "n", "do": "x"}]}'))
    assert (name, arguments["rest"]["done"]) == ("make_plan", {"w": "W"})


def test_what_was_undone_is_not_taken_for_done() -> None:
    walk = Walk(THREE)
    walk.use()
    walk.go(("ok", "R"), ("ok", "W"))
    walk.messages.append(Note(undone(["do_step"])))
    assert isinstance(walk.next, Tell)
    walk.messages.append(Assistant("There is no answer."))
    assert walk.next == End("what its steps did was undone: begin a new run")


# --- laws -----------------------------------------------------------------------------------------------------

ENDS: tuple[tuple[Outcome, str], ...] = (
    ("ok", "fine"),
    ("ok", "fine"),
    ("ok", "fine"),
    ("tool_error", "broken"),
    ("tool_error", f"{STOPPED}later"),
    ("cancelled", "cancelled"),
)


@st.composite
def sound_plans(draw: st.DrawFn) -> Plan:
    """Plans that can be followed."""
    count = draw(st.integers(1, 5))
    made = []
    for number in range(count):
        needs = draw(st.lists(st.sampled_from([f"s{one}" for one in range(number)]), unique=True)) if number else []
        tools = draw(st.sampled_from([(), ("look",), ("write",)]))
        made.append(PlanStep(id=f"s{number}", do="x", needs=tuple(needs), tools=tools))
    return Plan(task="the task", steps=tuple(draw(st.permutations(made))))


@given(sound_plans(), st.data())
def test_whatever_happens_needs_are_met_nothing_finished_is_asked_again_and_it_comes_to_an_end(
    made: Plan, data: st.DataObject
) -> None:
    walk, done, new_plans = Walk(made), set[str](), 0
    for turn in range(80):
        move = walk.next
        if isinstance(move, Tell):
            walk.messages.append(Assistant(move.text))
            assert isinstance(walk.next, End)
            return
        if isinstance(move, End):
            if "failed as well" in move.reason or "no plan was made" in move.reason:
                return
            walk.resume()
            continue
        names = [name for name, _ in move.calls]
        if names == ["answer"]:
            assert new_plans or done == {one.id for one in made.steps}
            return
        if names == ["use_plan"]:
            walk.use()
            continue
        if names == ["make_plan"]:
            new_plans += 1
            assert new_plans == 1
            rest = [{"id": f"n{new_plans}", "do": "x", "needs": sorted(done)[:1], "tools": ["look"]}]
            walk.go(("ok", msgspec.json.encode({"steps": rest}).decode()))
            continue
        asked = [arguments for _, arguments in move.calls]
        assert done.isdisjoint(one["step"] for one in asked)
        needs = {one.id: set(one.needs) for one in made.steps}
        assert all(needs.get(one["step"], set()) <= done for one in asked)
        ends = [data.draw(st.sampled_from(ENDS if turn < 40 else ENDS[:1])) for _ in asked]
        walk.go(*ends)
        done |= {one["step"] for one, (outcome, _) in zip(asked, ends, strict=True) if outcome == "ok"}
    raise AssertionError("it goes on for ever")
