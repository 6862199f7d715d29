"""An agent as a tool: its call is one run, found by the key of the call, under the limits of the run that calls.

Whoever starts the call, the first time or after a crash, comes to the same run: it is started, taken up, or, where it
has ended, only read. What a child ended as is told as it is; one without an answer is never a success.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tenlines.core import events as ev
from tenlines.core.children import bounded, child_id
from tenlines.core.events import ChildRun, ToolSpec, WaitingCall
from tenlines.core.limits import Left, Limits, Spent
from tenlines.core.machine import Machine
from tenlines.core.outcomes import bounded as shortened
from tenlines.core.outcomes import not_executed
from tenlines.core.result import RunResult
from tenlines.core.state import OpenCall, Phase, State, call_key
from tenlines.core.transcript import JsonObject, Message, Outcome, Result, System, Text
from tenlines.drivers import aio, sync
from tenlines.drivers.control import Control
from tenlines.drivers.drafts import Draft
from tenlines.drivers.recorder import Parts, machine_of
from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, JournalError, RunNotFound
from tenlines.ports import Bound, CallContext, ChildEnd, GuardedCall, Invalid, Journal, Opinion, Rendered, ToolPort
from tenlines.tools.tool import Tool, tool

if TYPE_CHECKING:
    from tenlines.agent import Agent

CALLER_STOPPED = "the run that it serves does not wait for it any more"
"""Why a child was cancelled whose caller stopped. It goes on when that does."""
SO_FAR_CHARS = 2_000
"""How much of what a child has so far its caller is shown."""


class Brief(NamedTuple):
    """What a model is shown of an agent that is a tool, and how its arguments become a task."""

    name: str
    description: str | None = None
    task: Callable[..., str] | None = None
    approve: Any = False
    max_result: int = 8_000

    def tool(self, *, has_history: bool) -> Tool[..., str]:
        """A function of the arguments that gives the task.

        Raises:
            ConfigError: It cannot be a tool.
        """
        usual = _go_on if has_history else _work
        description = self.description
        if description is None and self.task is None:
            description = _HANDED.format(self.name) if has_history else _ASKED.format(self.name)
        options = {"name": self.name, "approve": self.approve, "max_result": self.max_result}
        made: Tool[..., str] = tool(self.task or usual, description=description, **options)
        if made.is_async:
            raise ConfigError(f"task= of {self.name} has to be a plain function that returns the task, as text")
        return made


_ASKED = "Gives a task to the agent {}, which works on it by itself and answers. It knows only what the task says."
_HANDED = "Hands this conversation over to the agent {}, which has read it."


def _work(task: str) -> str:
    """The task as it is."""
    return task


def _go_on(task: str = "") -> str:
    """More to say than the conversation does, or nothing."""
    return task


class ChildTool:
    """An agent as a tool (`Agent.as_tool`).

    Args:
        agent: Who works on the task.
        brief: What the model is shown.
        options: As in `Agent.as_tool`.
    """

    is_async = True
    is_killable = False

    _caller: Agent | None = None
    """The agent that has the tool. Its journal keeps the runs."""

    def __init__(self, agent: Agent, brief: Brief, **options: Any) -> None:
        self._agent, self._options = agent, options
        self._limits: Limits | None = options["limits"]
        self._task = brief.tool(has_history=options["history"])
        self.spec = self._spec(self._task.spec)

    def _spec(self, plain: ToolSpec) -> ToolSpec:
        acting = [one.spec.name for one in self._agent.tools.values() if not one.spec.read_only]
        parallel = self._options["parallel"]
        if parallel and acting:
            raise ConfigError(
                f"{plain.name} cannot run beside others, since its tools do not only read: {', '.join(acting)}. "
                "Leave parallel out"
            )
        return msgspec.structs.replace(
            plain,
            read_only=not acting if parallel is None else parallel,
            idempotent=True,
            spends=True,
            child=True,
            final=self._options["final"],
            undoable=any(one.spec.undoable for one in self._agent.tools.values()),
            timeout_s=self._options["timeout_s"],
        )

    def under(self, caller: Agent) -> ChildTool:
        """The same tool, in the hands of the agent that has it."""
        same = copy(self)
        same._caller = caller
        return same

    def loaded_from(self, source: str) -> ChildTool:
        """The same tool, with the file that it can be loaded from again."""
        same = copy(self)
        same.spec = msgspec.structs.replace(self.spec, source=source)
        return same

    def __repr__(self) -> str:
        return f"<agent {self._agent.name} as tool {self.spec.name}>"

    # --- the tool as a driver uses it -----------------------------------------------------------------

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Validate strictly; nothing has run yet."""
        return self._task.check(arguments)

    def permit(self, call: GuardedCall) -> Opinion:
        """What `approve` says of a call."""
        return self._task.permit(call)

    def render(self, value: Any) -> Rendered:
        """The answer, at most `max_result` tokens of it."""
        return self._task.render(value)

    async def call(self, bound: Bound, ctx: CallContext) -> ChildEnd:
        """Run it to its end, also where this is cancelled: then it is told to stop, and closes its log."""
        control = Control()
        ctx.on_drain(partial(control.cancel, reason=CALLER_STOPPED))
        ctx.on_give_up(partial(control.cancel, now=True, reason=CALLER_STOPPED))
        task: str = self._task(**bound.arguments)
        # an interrupt that went through a task of its own would end the loop itself
        run = asyncio.ensure_future(aio.attempted(partial(self._come_to_an_end, task, ctx, control)))
        try:
            end = await asyncio.shield(run)
        except asyncio.CancelledError:
            control.cancel(now=True, reason=CALLER_STOPPED)
            end = await run
        if end.error is not None:
            raise end.error
        came: ChildEnd = end.value
        return came

    async def undo(self, arguments: JsonObject, result: str, ctx: CallContext) -> None:
        """Take back what the run did. Raises where something of it still stands."""
        agent, run_id = self._at_work(), child_id(ctx.key)
        if await in_thread(partial(_found, agent.journal, run_id)) is None:
            return
        undone = await agent.undo(run_id, reason=f"the call {ctx.key} is undone")
        if undone.standing:
            stands = ", ".join(one.name for one in undone.standing)
            raise RuntimeError(f"of what run {run_id} did this stands, or may stand: {stands}")

    def close(self, key: str) -> Draft | None:
        """What became of the run of a call that was given up, where the process died before it said so. It is ended, if
        it has not; None where its log cannot be written.

        Raises:
            JournalError: Its log cannot be read.
        """
        agent, run_id = self._at_work(), child_id(key)
        found = _found(agent.journal, run_id)
        if found is None:
            return _late(key, "cancelled", f"{self.spec.name} never began", Spent(), None)
        stopping = None if _is_over(found.state) else agent._stopping(run_id, None, CALLER_STOPPED)
        result = found.result() if stopping is None else sync.drive(stopping)
        if result.status == "journal_error":
            return None
        text = result.answer or unanswered(self.spec.name, result)
        outcome: Outcome = "ok" if result.status == "answered" else "tool_error"
        run = ChildRun(run_id, result.status, result.reason)
        return _late(key, outcome, text, _spent(found.state if stopping is None else stopping.machine.state), run)

    # --- the run --------------------------------------------------------------------------------------

    def _at_work(self) -> Agent:
        """The agent, with the journal of the run that calls, and its observers that can have a run of their own.

        Raises:
            ConfigError: No agent has the tool.
        """
        if self._caller is None:
            raise ConfigError(f"{self.spec.name} is a tool for an agent: give it to one, as in Agent(model, [it])")
        agent = self._agent._recording_in(self._caller.journal, self._caller._asking)
        watching = (one for one in self._caller.observers if hasattr(one, "for_run") and one not in agent.observers)
        agent.observers = (*agent.observers, *watching)
        return agent

    async def _come_to_an_end(self, task: str, ctx: CallContext, control: Control) -> ChildEnd:
        parts = await in_thread(partial(self._opened, task, ctx, control))
        if isinstance(parts, Machine):
            return self._told(parts.state, parts.result(), ctx)
        try:
            result = await aio.drive(parts)
        except BaseException:
            _charge(parts.machine.state, ctx)
            raise
        if result.status == "journal_error":
            raise JournalError(f"run {result.run_id}, which is the call {ctx.key}: {result.reason}")
        return self._told(parts.machine.state, result, ctx)

    def _opened(self, task: str, ctx: CallContext, control: Control) -> Parts | Machine:
        """The run, as it begins or is taken up; or as it has ended."""
        agent, run_id = self._at_work(), child_id(ctx.key)
        try:
            before = _found(agent.journal, run_id)
        except JournalError:
            ctx.spent = None  # it may have spent: that stays set aside
            raise
        if before is not None and _is_over(before.state):
            return before
        own = agent.settings.limits if self._limits is None else self._limits
        given = Left() if ctx.allowance is None else ctx.allowance
        if before is not None:
            limits = bounded(own, _with_time_worked(given, before.state))
            return agent._reopen(run_id, None if limits == before.state.limits else limits, control, None)
        place = {"run_id": run_id, "parent": ctx.key, "traceparent": ctx.traceparent}
        history = self._history(ctx.key) if self._options["history"] else []
        return agent._begin(task or (None if history else task), history, bounded(own, given), control, place=place)

    def _history(self, key: str) -> list[Message]:
        """The conversation of the run that calls, as its log has it."""
        assert self._caller is not None
        run_id, _, position = key.rsplit(":", 2)
        return conversation(machine_of(self._caller.journal, run_id).state, int(position), self._agent.name)

    def _told(self, state: State, result: RunResult, ctx: CallContext) -> ChildEnd:
        """How it ended, for the model and for the record; what it used is charged."""
        _charge(state, ctx)
        run = ChildRun(result.run_id, result.status, result.reason)
        if result.status == "answered":
            return ChildEnd(run, result.answer or "")
        return ChildEnd(run, unanswered(self.spec.name, result), waiting_in(result))


def under(one: ToolPort, caller: Agent) -> ToolPort:
    """A tool in the hands of the agent that has it."""
    put = getattr(one, "under", None) if one.spec.child else None
    made: ToolPort = one if put is None else put(caller)
    return made


def _found(journal: Journal, run_id: str) -> Machine | None:
    try:
        return machine_of(journal, run_id)
    except RunNotFound:
        return None


def _is_over(state: State) -> bool:
    """Whether it has ended for good. One that waits, or that stopped because its caller did, goes on."""
    if state.phase is not Phase.ENDED or state.ended is None or state.exchange is not None:
        return False
    by_itself = state.ended.reason == CALLER_STOPPED or state.ended.reason.startswith("stopped by ")
    return not (state.ended.status == "cancelled" and by_itself)


def _charge(state: State, ctx: CallContext) -> None:
    """What the run used; the call says it once, when it has ended."""
    if ctx.spent is not None:
        ctx.charge(_spent(state))


def _spent(state: State) -> Spent:
    """What a run and those under it used since it began."""
    spent, run_id = state.account.charged, "" if state.start is None else state.start.run_id
    return msgspec.structs.replace(spent, runs=(run_id, *spent.runs)) if run_id else spent


def given_up(state: State, tools: Iterable[ToolPort]) -> list[Draft]:
    """What runs under calls used that were given up before the process died, which nobody has said yet."""
    named: dict[str, Any] = {one.spec.name: one for one in tools if one.spec.child and hasattr(one, "close")}
    late = (
        named[one.call.name].close(call_key(state, *place))
        for place, one in state.given_up.items()
        if one.allowance is not None and one.spec is not None and one.spec.child and one.call.name in named
    )
    return [draft for draft in late if draft is not None]


def _late(key: str, outcome: Outcome, text: str, spent: Spent, child: ChildRun | None) -> Draft:
    _, step, position = key.rsplit(":", 2)
    fields = {"step": int(step), "position": int(position), "outcome": outcome, "text": text}
    return Draft(ev.LateResultArrived, {**fields, "spent": spent, "child": child})


def _with_time_worked(given: Left, state: State) -> Left:
    """What is given, the time counted from the beginning of the run."""
    if given.seconds is None:
        return given
    until = state.at if state.ended is None else state.ended.at
    worked = state.worked_s + max(0.0, until - state.session_began)
    return msgspec.structs.replace(given, seconds=given.seconds + worked)


# --- what is said of it ---------------------------------------------------------------------------------


def unanswered(name: str, result: RunResult) -> str:
    """For the model: why there is no answer, what there is so far, and what was done."""
    said = f"{name} stopped without an answer ({result.status}): {result.reason.rstrip('.') or 'no reason was given'}."
    if result.partial_answer:
        said += f" What it had so far: {shortened(result.partial_answer, SO_FAR_CHARS)}"
    elif seen := [f"{one.name}: {one.text}" for one in result.calls if one.outcome == "ok"][-3:]:
        said += " It said nothing so far; its last calls gave: " + shortened("; ".join(seen), SO_FAR_CHARS)
    else:
        said += " It had nothing so far."
    if acted := sorted({one.name for one in result.standing}):
        said += f" What it did, or may have done, stands: {', '.join(acted)}."
    return said


def waiting_in(result: RunResult) -> tuple[WaitingCall, ...]:
    """The calls that wait for somebody, in the run and in runs under it."""
    own = (WaitingCall(result.run_id, one.place, one.name) for one in result.pending)
    return (*own, *(waiting for one in result.paused for waiting in one.waiting))


def conversation(state: State, position: int, name: str) -> list[Message]:
    """The transcript of a run in the middle of an exchange, from the call at `position` on in other hands.

    Args:
        name: Of the agent that has it from here on.
    """
    exchange = state.exchange
    messages: list[Message] = [one for one in state.messages if not isinstance(one, System)]
    if exchange is None:
        return messages
    results = (_result(one, name if place == position else "") for place, one in enumerate(exchange.calls))
    return [*messages, exchange.message, *results]


def _result(one: OpenCall, handed_to: str) -> Result:
    if handed_to:
        return Result(one.call.id, one.call.name, "ok", (Text(f"The conversation is handed over to {handed_to}."),))
    if one.outcome is not None:
        return Result(one.call.id, one.call.name, one.outcome, one.parts)
    why = "the conversation was handed over before it started"
    return Result(one.call.id, one.call.name, "not_executed", (Text(not_executed(one.call.name, why)),))
