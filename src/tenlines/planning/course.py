"""What has come of a plan so far, and what is next. Pure: worked out from the transcript of its run alone.

A call has ended in one of four ways. `ok`, `failed` and `denied` are facts. `stopped` is none: something kept the call
from being done to its end (a limit of the whole run, a cancel, a model out of reach), so it is asked again when the run
is taken up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from tenlines.core.outcomes import bounded, undone
from tenlines.core.transcript import Assistant, JsonObject, Message, Note, Result, text_of
from tenlines.planning.plan import Plan, PlanStep, as_json
from tenlines.planning.setup import Start
from tenlines.planning.words import results, shortened

MAKE, USE, READ, DO, ANSWER = "make_plan", "use_plan", "read_step", "do_step", "answer"
STOPPED = "not finished: "
"""How the result of a call begins that was stopped by what is no fault of its own."""
NEW_PLANS = 1
"""How often a plan is made anew after a step has failed."""
REASON_CHARS = 1_000

Ending: TypeAlias = Literal["ok", "failed", "denied", "stopped"]


class Asked(NamedTuple):
    """A call that has its result."""

    name: str
    arguments: JsonObject
    place: str
    """`STEP.NUMBER`, both from 1."""
    ending: Ending
    text: str
    is_new: bool
    """Whether it came since the run was taken up last."""


class Course(NamedTuple):
    """What is known."""

    plan: Plan | None = None
    """The one that is followed."""
    draft: JsonObject | None = None
    """One that a model made and that nobody follows yet."""
    results: Mapping[str, str] = {}
    failures: Mapping[str, str] = {}
    """Of the plan that is followed: steps that failed, and why."""
    stopped: Mapping[str, str] = {}
    """Steps that were stopped, and the places of their calls."""
    new_plans: int = 0
    over: str = ""
    """Why there will be no answer."""
    hindrance: str = ""
    """What stopped something, since the run was taken up last."""
    is_told: bool = False
    """Whether it was said what is known."""


# --- what has happened --------------------------------------------------------------------------------------


def course_of(messages: Sequence[Message], start: Start, since: int) -> Course:
    """What is known by now.

    Args:
        messages: The transcript.
        start: How the run begins.
        since: How many messages there were when the run was begun, or taken up last.
    """
    course = Course(over=_UNDONE if any(map(_says_undone, messages)) else "")
    for asked in _asked(messages, start.size, since):
        course = taken(course, asked, start.task)
    is_told = bool(messages) and isinstance(messages[-1], Assistant) and not messages[-1].calls
    return course._replace(is_told=is_told)


_UNDONE = "what its steps did was undone: begin a new run"


def _says_undone(message: Message) -> bool:
    return isinstance(message, Note) and message.text.startswith(undone([]).partition(":")[0])


def _asked(messages: Sequence[Message], first: int, since: int) -> Iterator[Asked]:
    """The calls with their results, in order."""
    step, calls = 0, list[tuple[str, JsonObject]]()
    for index in range(first, len(messages)):
        match messages[index]:
            case Assistant() as reply:
                step, number = step + 1, 0
                calls = [(one.name, msgspec.json.decode(one.arguments, type=dict)) for one in reply.calls]
            case Result() as result:
                name, arguments = calls[number]
                number += 1
                text = text_of(result.parts)
                yield Asked(name, arguments, f"{step}.{number}", ending_of(result, text), text, index >= since)


def ending_of(result: Result, text: str) -> Ending:
    """How a call has ended."""
    if result.outcome == "tool_error":
        return "stopped" if text.startswith(STOPPED) else "failed"
    return result.outcome if result.outcome in ("ok", "denied") else "stopped"


def taken(course: Course, asked: Asked, task: str) -> Course:
    """The course after one more result."""
    match asked.name, asked.ending:
        case name, "stopped":
            stopped = {**course.stopped, str(asked.arguments["step"]): asked.place} if name in (READ, DO) else {}
            hindrance = _about(asked) if asked.is_new and not course.hindrance else course.hindrance
            return course._replace(stopped={**course.stopped, **stopped}, hindrance=hindrance)
        case "make_plan", "ok":
            made: JsonObject = {"task": task, "steps": msgspec.json.decode(asked.text)["steps"]}
            done: JsonObject = {"done": list(course.results)} if course.results else {}
            return course._replace(draft={**made, **done}, new_plans=course.new_plans + bool(course.failures))
        case "use_plan", "ok":
            plan = Plan.model_validate_json(asked.text)
            return course._replace(plan=plan, draft=None, failures={}, stopped={})
        case (("read_step" | "do_step"), "ok"):
            return course._replace(results={**course.results, str(asked.arguments["step"]): asked.text})
        case (("read_step" | "do_step"), _):
            return course._replace(failures={**course.failures, str(asked.arguments["step"]): asked.text})
        case "answer", "ok":
            return course
        case "make_plan", _ if course.failures:
            return course._replace(over=f"{_failed(course)}; and {_about(asked)}")
        case _:
            return course._replace(over=_about(asked))


_WHAT = {MAKE: "no plan was made", USE: "the plan is not followed", ANSWER: "no answer was written"}


def _about(asked: Asked) -> str:
    said = _WHAT.get(asked.name) or f"step {asked.arguments['step']}"
    return f"{said}: {bounded(asked.text.removeprefix(STOPPED), REASON_CHARS)}"


# --- what is next ---------------------------------------------------------------------------------------------


class Ask(NamedTuple):
    """Make these calls."""

    calls: tuple[tuple[str, JsonObject], ...]


class Tell(NamedTuple):
    """Say what is known, before the run ends without an answer."""

    text: str


class End(NamedTuple):
    """Nothing more can be done: now, or at all."""

    reason: str


Move: TypeAlias = Ask | Tell | End


def next_move(course: Course, start: Start) -> Move:
    """What is to be done."""
    over = course.over or _failed_again(course)
    if over:
        return End(over) if course.is_told or not course.results else Tell(_known(course))
    if course.hindrance:
        return End(course.hindrance)
    if course.draft is not None:
        return Ask(((USE, course.draft),))
    if course.plan is None:
        given = start.setup.plan
        return Ask(((MAKE, {"task": start.task}) if given is None else (USE, given),))
    if course.failures:  # what is under way comes to its end first: a new plan shall know of it
        left = [one for one in course.plan.steps if one.id in course.stopped and one.id not in course.failures]
        return _steps(course, left, course.plan, start) or Ask(((MAKE, _anew(course, course.plan)),))
    answer: JsonObject = {"task": course.plan.task, "results": {**course.results}}
    return _steps(course, course.plan.steps, course.plan, start) or Ask(((ANSWER, answer),))


def _failed_again(course: Course) -> str:
    """Why a plan is not made anew once more, or ""."""
    if not course.failures or course.new_plans < NEW_PLANS or course.draft is not None:
        return ""
    return f"the new plan failed as well: {_failed(course)}"


def _failed(course: Course) -> str:
    return "; ".join(f"step {name}: {bounded(text, REASON_CHARS)}" for name, text in course.failures.items())


def _known(course: Course) -> str:
    return f"There is no answer. What is known:\n\n{results(shortened(course.results))}"


def _anew(course: Course, plan: Plan) -> JsonObject:
    """The arguments of `make_plan` after a failure."""
    known: JsonObject = {"done": {**shortened(course.results)}, "failed": {**shortened(course.failures)}}
    return {"task": plan.task, "rest": {"steps": as_json(plan)["steps"], **known}}


def _steps(course: Course, wanted: Sequence[PlanStep], plan: Plan, start: Start) -> Ask | None:
    """Those of the steps that can be done now: the ones that only read first, so that they run beside one another."""
    own = {one.id for one in plan.steps}
    waiting = [one for one in wanted if one.id not in course.results]
    ready = [one for one in waiting if all(need in course.results or need not in own for need in one.needs)]
    reading = {one.name for one in start.setup.tools if one.read_only}
    calls = [(READ if reading.issuperset(one.tools) else DO, _arguments(course, one)) for one in ready]
    return Ask(tuple(sorted(calls, key=lambda call: call[0] == DO))) if calls else None


def _arguments(course: Course, step: PlanStep) -> JsonObject:
    given: JsonObject = {need: course.results[need] for need in step.needs if need in course.results}
    asked: JsonObject = {"step": step.id, "do": step.do, "tools": list(step.tools), "given": given}
    return {**asked, "after": course.stopped[step.id]} if step.id in course.stopped else asked
