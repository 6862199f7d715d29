"""A plan as data: steps, what each needs, which tools it may use. Checked, read and written here."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic_core import from_json

from tenlines.errors import ConfigError

MOST_STEPS = 50
"""Steps that a plan may have."""
_ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"


class PlanStep(BaseModel):
    """One step of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=_ID, description="A short name of the step, as in find_order.")]
    do: Annotated[str, Field(min_length=1, description="What is to be done, in full: nothing else is known there.")]
    needs: Annotated[tuple[str, ...], Field(description="Ids of other steps, whose results it has to know.")] = ()
    tools: Annotated[tuple[str, ...], Field(description="Names of the tools that it may use, and of no others.")] = ()


class Plan(BaseModel):
    """A task, split into steps. Steps that do not need one another may be done at once.

    Attributes:
        task: What is to be done in the end; the answer is written to it.
        steps: The steps, in the order in which they are shown.
        done: Of a new plan for the rest: ids of steps that were finished before it. They may be needed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Annotated[str, Field(min_length=1)]
    steps: Annotated[tuple[PlanStep, ...], Field(min_length=1, max_length=MOST_STEPS)]
    done: tuple[str, ...] = ()

    def faults(self, tools: Collection[str] | None = None) -> list[str]:
        """What is wrong with it, a sentence each; none where it can be followed.

        Args:
            tools: Names of the tools that there are; None where that is not known.
        """
        return list(faults(self.steps, tools, self.done))

    def waves(self) -> list[list[PlanStep]]:
        """The steps in the order in which they can be done: those of one list need none of the same list."""
        found: list[list[PlanStep]] = []
        done, rest = set(self.done), list(self.steps)
        while ready := [one for one in rest if done.issuperset(one.needs)]:
            found.append(ready)
            done.update(one.id for one in ready)
            rest = [one for one in rest if one not in ready]
        return found

    def text(self) -> str:
        """As it stands in a file: JSON that is easy to edit, a line for each thing that is said of a step."""
        value = as_json(self)
        steps = [
            ",\n     ".join(f'"{name}": {_line(said)}' for name, said in one.items()) for one in value.pop("steps")
        ]
        head = [f'  "{name}": {_line(said)}' for name, said in value.items()]
        listed = ",\n".join(f"    {{{one}}}" for one in steps)
        return ",\n".join(["{\n" + head[0], *head[1:], f'  "steps": [\n{listed}\n  ]']) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- what can be wrong ----------------------------------------------------------------------------------


def faults(steps: Sequence[PlanStep], tools: Collection[str] | None, done: Collection[str] = ()) -> Iterator[str]:
    """What is wrong with these steps, a sentence each."""
    ids = [one.id for one in steps]
    for one in dict.fromkeys(one for one in ids if ids.count(one) > 1):
        yield f"two steps are called {one}: give each a name of its own"
    for one in dict.fromkeys(one for one in ids if one in done):
        yield f"step {one} is finished already: leave it out (others can still need it), or give a new one another name"
    known = [*ids, *done]
    for step in steps:
        yield from _unknown_needs(step, known)
        yield from _unknown_tools(step, tools)
    if circle := _circle(steps):
        path = " -> ".join([*circle, circle[0]])
        yield f"steps wait for one another ({path}, each needs the next): take one of these needs out"


def _unknown_needs(step: PlanStep, known: Sequence[str]) -> Iterator[str]:
    for need in step.needs:
        if need not in known:
            yield f"step {step.id} needs {need!r}, which is no step{_meant(need, known)}; steps: {', '.join(known)}"


def _unknown_tools(step: PlanStep, tools: Collection[str] | None) -> Iterator[str]:
    for name in step.tools if tools is not None else ():
        if name not in (tools or ()):
            there = f"tools: {', '.join(tools)}" if tools else "there are none: leave `tools` empty"
            yield f"step {step.id} may use {name!r}, which is no tool{_meant(name, tools or ())}; {there}"


def _meant(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _circle(steps: Sequence[PlanStep]) -> list[str]:
    """Steps each of which needs the next, and the last the first; none where there is no such circle."""
    needs = {one.id: [need for need in one.needs if any(need == other.id for other in steps)] for one in steps}
    while free := [one for one, its in needs.items() if not any(need in needs for need in its)]:
        for one in free:
            del needs[one]
    path: list[str] = []
    here = next(iter(needs), None)
    while here is not None and here not in path:
        path.append(here)
        here = next(need for need in needs[here] if need in needs)
    return path[path.index(here) :] if here is not None else []


# --- files ------------------------------------------------------------------------------------------------


def read_plan(text: str | bytes, name: str, tools: Collection[str] | None = None) -> Plan:
    """A plan from its JSON.

    Args:
        text: The JSON.
        name: What it is called in messages.
        tools: Names of the tools that there are; None where that is not known.

    Raises:
        ConfigError: It is no plan, or one that cannot be followed. Every fault is named.
    """
    try:
        raw = from_json(text)
    except ValueError as error:
        raise ConfigError(f"{name} is not JSON: {error}") from error
    return plan_of(raw, name, tools)


def plan_of(raw: Any, name: str, tools: Collection[str] | None = None) -> Plan:
    """The same from a value of JSON types."""
    try:
        plan = Plan.model_validate(raw)
    except ValidationError as error:
        found = error.errors(include_url=False)
        real = [
            one for one in found if one["type"] != "too_short" or one["loc"] != ("steps",)
        ]  # wrong ones not counted
        wrong = [f"{_place(one['loc'], raw)}: {one['msg']}" for one in real or found]
        raise ConfigError(_listed(f"{name} is no plan", wrong)) from error
    if wrong := plan.faults(tools):
        raise ConfigError(_listed(f"{name} cannot be followed", wrong))
    return plan


def load_plan(path: str | Path, tools: Collection[str] | None = None) -> Plan:
    """A plan from a file.

    Raises:
        ConfigError: As in `read_plan`; or it cannot be read.
    """
    try:
        text = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    return read_plan(text, str(path), tools)


def _listed(head: str, wrong: Sequence[str]) -> str:
    return f"{head}: {wrong[0]}" if len(wrong) == 1 else "\n- ".join([f"{head}:", *wrong])


def _place(loc: tuple[int | str, ...], raw: Any) -> str:
    """Where something is wrong, a step by its name: `step find, needs`."""
    match loc:
        case ("steps", int(index), *inner):
            step = raw["steps"][index]
            named = step.get("id") if isinstance(step, dict) else None
            words = [f"step {named if isinstance(named, str) and named else index + 1}", *inner]
        case _:
            words = [*loc]
    return ", ".join(str(one + 1) if isinstance(one, int) else one for one in words) or "the whole"


# --- plans that a model writes ------------------------------------------------------------------------------


def draft_type(tools: Collection[str], done: Collection[str] = ()) -> type[BaseModel]:
    """The type of the answer of whoever makes a plan: its steps, checked as above.

    Args:
        tools: Names of the tools that there are.
        done: Ids of steps that are finished.
    """
    name: Any = Annotated[str, WithJsonSchema({"type": "string", "enum": list(tools)})] if tools else str
    field = PlanStep.model_fields["tools"]
    step: Any = create_model("PlanStep", __base__=PlanStep, tools=(Annotated[tuple[name, ...], field], ()))
    checked = AfterValidator(partial(_checked, tuple(tools), tuple(done)))
    steps: Any = Annotated[tuple[step, ...], Field(min_length=1, max_length=MOST_STEPS), checked]
    return create_model("Steps", __config__=ConfigDict(extra="forbid"), steps=(steps, ...))


def _checked(tools: Sequence[str], done: Sequence[str], steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    if wrong := list(faults(steps, tools, done)):
        raise ValueError("; ".join(wrong))
    return steps


def as_json(plan: Plan) -> dict[str, Any]:
    """A plan as a value of JSON types."""
    found: dict[str, Any] = plan.model_dump(mode="json", exclude=set() if plan.done else {"done"})
    return found
