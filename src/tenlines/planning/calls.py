"""The calls that the run of a plan makes: a plan is made, taken up, its steps are done, the answer is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tenlines.agent import Agent
from tenlines.child import CALLER_STOPPED, Brief, ChildTool
from tenlines.core.children import bounded, child_id
from tenlines.core.events import RunStarted, ToolSpec
from tenlines.core.limits import Left, Limits
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.state import State
from tenlines.core.transcript import JsonObject, Message, Result, Text
from tenlines.drivers.control import Control
from tenlines.drivers.recorder import Parts, machine_of
from tenlines.errors import ConfigError, RunNotFound
from tenlines.planning import words
from tenlines.planning.course import STOPPED, USE
from tenlines.planning.plan import Plan, plan_of
from tenlines.planning.setup import PREFIX, read_start
from tenlines.ports import Allow, Ask, Bound, CallContext, ChildEnd, GuardedCall, Invalid, Journal, Rendered, Verdict

AgentOf: TypeAlias = Callable[[Mapping[str, Any]], Agent]
"""Makes the agent that works on a call, from its arguments."""
WHOLE = 10_000_000
"""Tokens of a result that goes to no model: it is never cut."""


class PartTool(ChildTool):
    """A part of following a plan that a model does: a run of its own, of an agent made for the call.

    Args:
        brief: Name, and how arguments become a task.
        all_of: The agent with all tools that any call may have.
        agent_of: Makes that of one call.
    """

    def __init__(
        self, brief: Brief, all_of: Agent, agent_of: AgentOf, *, final: bool = False, reads: bool = True
    ) -> None:
        options: dict[str, Any] = {
            "limits": None,
            "parallel": None,
            "final": final,
            "history": False,
            "timeout_s": None,
        }
        super().__init__(all_of, brief, **options)
        self._agent_of, self._after = agent_of, ""
        self.spec = msgspec.structs.replace(
            self.spec, repeatable=True, read_only=reads, undoable=self.spec.undoable and not reads
        )

    def _for(self, arguments: Mapping[str, Any]) -> PartTool:
        """The same, in the hands of the agent of one call."""
        same = copy(self)
        same._agent, same._after = self._agent_of(arguments), str(arguments.get("after", ""))
        return same

    async def call(self, bound: Bound, ctx: CallContext) -> ChildEnd:
        """Run it to its end."""
        return await ChildTool.call(self._for(bound.arguments), bound, ctx)

    async def undo(self, arguments: JsonObject, result: str, ctx: CallContext) -> None:
        """Take back what the run did."""
        await ChildTool.undo(self._for(arguments), arguments, result, ctx)

    def _opened(self, task: str, ctx: CallContext, control: Control) -> Parts | Machine:
        """The run, as it begins or is taken up; where an earlier call was stopped, from the transcript that it had."""
        agent = self._at_work()
        is_begun = not self._after or _found(agent.journal, child_id(ctx.key)) is not None
        earlier = None if is_begun else _earlier(agent.journal, ctx.run_id, self._after)
        if earlier is None:
            return super()._opened(task, ctx, control)
        place = {
            "run_id": child_id(ctx.key),
            "parent": ctx.key,
            "traceparent": ctx.traceparent,
            "origin": earlier.origin,
        }
        limits = bounded(agent.settings.limits, ctx.allowance or Left())
        return agent._begin(None, earlier.messages, limits, control, place=place)

    def _told(self, state: State, result: RunResult, ctx: CallContext) -> ChildEnd:
        end, own = super()._told(state, result, ctx), self._agent.settings.limits
        if result.answer is not None or end.waiting or not is_no_fault(result, own, ctx.allowance or Left()):
            return end
        return end._replace(text=STOPPED + end.text)


class _Earlier(NamedTuple):
    """What a run had come to that was stopped."""

    origin: str
    messages: list[Message]


def _earlier(journal: Journal, run_id: str, place: str) -> _Earlier | None:
    """The transcript of the run of the call at `place`, with what is known of calls that were under way."""
    step, number = place.split(".")
    earlier = child_id(f"{run_id}:{step}:{int(number) - 1}")
    machine = _found(journal, earlier)
    if machine is None:
        return None  # it never began
    state = machine.state
    messages, exchange = list(state.messages), state.exchange
    if exchange is not None:  # what has no result here is mended: that nobody knows is then said
        known = [Result(one.call.id, one.call.name, one.outcome, one.parts) for one in exchange.calls if one.outcome]
        messages += [exchange.message, *known]
    return _Earlier(f"{earlier}@{state.account.steps + 1}", messages)


def _found(journal: Journal, run_id: str) -> Machine | None:
    try:
        return machine_of(journal, run_id)
    except RunNotFound:
        return None


_LIMITS = {
    "max_steps": ("steps",),
    "tool_limit": ("tool_calls",),
    "budget": ("tokens", "dollars"),
    "deadline": ("seconds",),
}
"""How a run ends at a limit, and which ones that can be."""


def is_no_fault(result: RunResult, own: Limits, given: Left) -> bool:
    """Whether a part ended without an answer for a reason outside of it, so that it can go on later.

    Args:
        own: The limits that each part has.
        given: What was left for it of those of the whole.
    """
    if result.status == "cancelled":
        return result.reason == CALLER_STOPPED or result.reason.startswith("stopped by ")
    for name in _LIMITS.get(result.status, ()):
        mine, left = getattr(own, name), getattr(given, name)
        if left is not None and (mine is None or left < mine):
            return True
    return result.status == "model_error"


def checked_use(start: RunStarted, name: str) -> UsePlan | None:
    """What checks a changed plan; None where the call of that name is no taking up of one.

    Args:
        start: How the run begins.
        name: Of the tool that is called.
    """
    if name != USE or not start.model.startswith(PREFIX):
        return None
    return UsePlan([one.name for one in read_start(start.messages).setup.tools], None)


@dataclass(frozen=True)
class Rest:
    """What a new plan is made from."""

    steps: list[dict[str, Any]]
    """Of the plan that could not be followed to its end."""
    done: dict[str, str]
    """Results of steps that are finished."""
    failed: dict[str, str]
    """Why steps failed."""


# --- the five -----------------------------------------------------------------------------------------------


class UsePlan:
    """The call that takes a plan up. Its arguments are the plan, its result is the plan as it holds.

    Args:
        tools: Names of the tools that steps may be given.
        is_asked: Says of a call whether a person has to allow it; None where nobody is asked.
    """

    is_async = False
    is_killable = False

    def __init__(self, tools: Collection[str], is_asked: Callable[[GuardedCall], bool] | None) -> None:
        self._tools, self._is_asked = tuple(tools), is_asked
        self.spec = ToolSpec(
            USE,
            "Takes a plan up: from here on, its steps are done.",
            Plan.model_json_schema(),
            read_only=True,
            repeatable=True,
            approve=is_asked is not None,
        )

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Whether it is a plan that can be followed."""
        try:
            return Bound({"plan": plan_of(arguments, "the plan", self._tools)})
        except ConfigError as error:
            return Invalid(str(error))

    def call(self, bound: Bound, ctx: CallContext) -> str:
        """The plan as it holds."""
        text: str = bound.arguments["plan"].text()
        return text

    def render(self, value: str) -> Rendered:
        """All of it."""
        return Rendered((Text(value),))

    def permit(self, call: GuardedCall) -> Verdict:
        """Whether a person is asked."""
        if self._is_asked is None or not self._is_asked(call):
            return Allow()
        return Ask("this plan is for the rest, after a step has failed" if call.arguments.get("done") else "")


def make_plan(task: str, rest: Rest | None = None) -> str:
    """Split the task into steps; or, after a failure, what is left of it."""
    return task if rest is None else words.new_plan(task, rest.steps, rest.done, rest.failed)


def do_step(step: str, do: str, tools: list[str], given: dict[str, str], after: str = "") -> str:
    """Do one step of the plan, with the tools that it was granted.

    Args:
        step: Its id.
        do: What is to be done.
        tools: The tools that it may use.
        given: The results that it needs.
        after: The call of it that was stopped, from where it goes on.
    """
    return f"{do}\n\nWhat is known from earlier steps:\n\n{words.results(given)}" if given else do


def answer(task: str, results: dict[str, str]) -> str:
    """Answer the task from the results of its steps."""
    return f"The results of the steps:\n\n{words.results(results)}\n\nThe task that they were done for:\n{task}"
