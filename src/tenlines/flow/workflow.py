"""`Flow`: a plain async function of stages and steps, run as any other run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack, get_type_hints, overload

import msgspec
from pydantic import TypeAdapter

from tenlines.agent import Agent
from tenlines.child import Brief, ChildTool
from tenlines.core.events import Settings
from tenlines.core.limits import Limits, Price
from tenlines.core.result import RunResult
from tenlines.core.state import State
from tenlines.core.transcript import Json, JsonObject, Outcome
from tenlines.errors import ConfigError, StageFailed
from tenlines.flow.rounds import Failure, Want
from tenlines.flow.script import Reader, Script, Stopped
from tenlines.flow.stages import Stage, as_json, reader, returned_type
from tenlines.ports import CallContext, ChildEnd, Clock, Invalid, Journal, Model, Observer
from tenlines.tools import Tool, tool
from tenlines.tools.tool import ToolOptions

R = TypeVar("R")
WHOLE = 10_000_000
"""Tokens of a value that goes to the function and to no model: it is never cut."""


class Step:
    """A tool that a workflow awaits instead of calling it: what it does is in the log, and is not done again."""

    def __init__(self, made: Tool[..., Any]) -> None:
        self.tool, self.name = tool(made, max_result=WHOLE), made.name
        self.function = made.__wrapped__
        shown = inspect.signature(self.function).parameters.values()
        hints = get_type_hints(self.function)
        self.signature = inspect.Signature([one for one in shown if hints.get(one.name) is not CallContext])

    def __call__(self, *args: Any, **kwargs: Any) -> Want[Any]:
        """Do it; to be awaited in a workflow."""
        return Want(self.name, as_json(self.signature, args, kwargs))

    def __repr__(self) -> str:
        return f"<step {self.name}>"


@overload
def step(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> Step: ...
@overload
def step(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Step]: ...
def step(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function, or a tool, a step of workflows: what is done once and recorded (files, time, chance, money).

    Args:
        function: As for `tool`.
        **options: As for `tool`: `read_only`, `idempotent`, `timeout_s`, `approve`, `undo`, ...
    """

    def make(decorated: Callable[..., Any]) -> Step:
        return Step(tool(decorated, **options))

    return make if function is None else make(function)


class Flow(Generic[R]):
    """A workflow: the path is yours, and each stage asks a model one thing.

    It is a run: recorded, limited, resumed, undone and shown as those of an agent. Each stage is a child run with a
    small context of its own, so what is sent grows with the number of stages and not with its square.

    Args:
        function: An async function. It may await its stages, its steps, `together` and `map_over` of them, and async
            functions that do. From the same results it must come to the same calls: time, chance and files belong into
            steps.
        stages: The stages and steps that it awaits.
        model: For stages that name none.
        limits: For the run and all its stages together. By default there is none.
        name: How runs of it are called in the journal; by default the function's name.
        journal: As for `Agent`.
        observers: As for `Agent`; they see the events of the workflow, and those of its stages.
        parallel: How many stages of one round run at once.
        clock: Where the time comes from.

    Raises:
        ConfigError: Something does not fit.
    """

    def __init__(
        self,
        function: Callable[..., Coroutine[Any, Any, R]],
        stages: Sequence[Stage[..., Any] | Step],
        *,
        model: str | Model | Any = None,
        limits: Limits | None = None,
        name: str | None = None,
        journal: Journal | str | Path | None = None,
        observers: Sequence[Observer] = (),
        parallel: int = 8,
        clock: Clock | None = None,
    ) -> None:
        if not inspect.iscoroutinefunction(function):
            raise ConfigError(f"a workflow is an async function; {getattr(function, '__name__', function)!r} is none")
        self.function, self.name = function, name or function.__name__
        self._takes = tool(_signed(function, inspect.signature(function)), name="workflow")
        self._gives = TypeAdapter(returned_type(function, Any)).validate_json
        parts = {one.name: one for one in stages}
        if len(parts) != len(stages):
            raise ConfigError("two stages of the workflow have the same name: rename one")
        script = Script(f"flow:{self.name}", self._start, {name: _reader(one) for name, one in parts.items()})
        watching: dict[str, Any] = {"observers": observers, "clock": clock}
        self.agent = Agent(
            script,
            [one.tool if isinstance(one, Step) else _asked(one, self.name, model, watching) for one in stages],
            limits=limits or Limits(steps=None),
            settings=Settings(price=Price(input=0.0, output=0.0), max_parallel=parallel, max_output_tokens=1),
            name=self.name,
            journal=journal,
            **watching,
        )
        """The run behind it, for all that is not here: streams, approvals, undo, forks."""

    def run_sync(self, *args: Any, **kwargs: Any) -> RunResult:
        """Run it; the arguments are those of the function.

        Returns:
            The result: `output` is what the function returned, `answer` its JSON.

        Raises:
            ConfigError: The arguments do not fit.
            RunStopped: It came to no end: a limit, a stage that failed and was not caught, an error of the function.
        """
        return self._typed(self.agent.run_sync(self._task(args, kwargs)))

    async def run(self, *args: Any, **kwargs: Any) -> RunResult:
        """The same as `run_sync`, for asyncio."""
        return self._typed(await self.agent.run(self._task(args, kwargs)))

    def resume_sync(self, run_id: str, *, limits: Limits | None = None) -> RunResult:
        """Go on with a run of it: stages that are finished are not asked again, steps that are done not done again.

        Raises:
            RunNotFound: The journal has no such run.
            RunStopped: As in `run_sync`; also where the function goes another way than it did.
        """
        return self._typed(self.agent.resume_sync(run_id, limits=limits))

    async def resume(self, run_id: str, *, limits: Limits | None = None) -> RunResult:
        """The same as `resume_sync`, for asyncio."""
        return self._typed(await self.agent.resume(run_id, limits=limits))

    # --- how ----------------------------------------------------------------------------------------------

    def _task(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Json]:
        given = as_json(inspect.signature(self.function), args, kwargs)
        self._checked(given)
        return [Json(given)]

    def _checked(self, given: JsonObject) -> Mapping[str, Any]:
        bound = self._takes.check(given)
        if isinstance(bound, Invalid):
            raise ConfigError(f"the arguments do not fit the workflow {self.name}: {bound.text}")
        return bound.arguments

    def _start(self, given: Mapping[str, Any]) -> Coroutine[Any, Any, R]:
        return self.function(**self._checked(dict(given)))

    def _typed(self, result: RunResult) -> RunResult:
        output = None if result.answer is None else self._gives(result.answer)
        return msgspec.structs.replace(result, output=output)


class StageTool(ChildTool):
    """A stage as a tool: its call is a run of one question, and what the log has of it says how that ended."""

    def __init__(self, agent: Agent, one: Stage[..., Any]) -> None:
        signed = _signed(partial(_question, one.signature), one.signature, one.function)
        brief = Brief(one.name, one.instructions, signed, max_result=WHOLE)
        options = {"limits": None, "parallel": True, "final": False, "history": False, "timeout_s": None}
        super().__init__(agent, brief, **options)
        self.spec = msgspec.structs.replace(self.spec, repeatable=True)
        self._attempts = one.attempts

    def _told(self, state: State, result: RunResult, ctx: CallContext) -> ChildEnd:
        return super()._told(state, result, ctx)._replace(text=told(result, self._attempts))


def _asked(one: Stage[..., Any], flow: str, model: Any, watching: Mapping[str, Any]) -> StageTool:
    """A stage as a tool.

    Raises:
        ConfigError: Nobody says which model is asked.
    """
    chosen = one.model if one.model is not None else model
    if chosen is None:
        raise ConfigError(f"stage {one.name!r} has no model: Flow(..., model=...), or @stage(model=...)")
    typed = {} if one.output is str else {"output": one.output}
    limits, name = Limits(steps=one.attempts), f"{flow}.{one.name}"
    return StageTool(Agent(chosen, instructions=one.instructions, limits=limits, name=name, **typed, **watching), one)


_ASKED_IN_VAIN = ("refused", "empty_reply", "truncated_reply", "stuck", "tool_limit")
"""The model was asked, and gave no answer: nothing changes that by asking again."""


def told(result: RunResult, attempts: int) -> str:
    """What came of a stage, as the log has it: its answer, or how it stopped."""
    if result.answer is not None:
        return msgspec.json.encode({"answer": result.answer}).decode()
    is_vain = result.status in _ASKED_IN_VAIN or (result.status == "max_steps" and result.steps >= attempts)
    what = "failed" if is_vain else "stopped"
    return msgspec.json.encode({what: result.status, "reason": result.reason, "run": result.run_id}).decode()


def _reader(one: Stage[..., Any] | Step) -> Reader:
    """Reads from the log what came of a stage or step."""
    read, name = reader(one.output if isinstance(one, Stage) else returned_type(one.function)), one.name

    def of_step(outcome: Outcome, text: str) -> Any:
        return read(text) if outcome == "ok" else Failure(StageFailed(name, outcome, text))

    def of_stage(outcome: Outcome, text: str) -> Any:
        found = _as_object(text)
        if outcome == "ok":
            return read(found["answer"])
        if "stopped" in found:
            return Stopped(found["stopped"], f"{name}: {found['reason']}")
        return Failure(StageFailed(name, found.get("failed", outcome), found.get("reason", text)))

    return of_stage if isinstance(one, Stage) else of_step


def _as_object(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=dict)
    except msgspec.MsgspecError:
        return {}  # the call did not come to a run: its outcome says why
    return found


def _question(signature: inspect.Signature, **given: Any) -> str:
    """What a stage is given: its only text as it stands, else a JSON object."""
    named = as_json(signature, (), given)
    (first, *more) = named.values() or ("Go on.",)
    return first if isinstance(first, str) and first.strip() and not more else msgspec.json.encode(named).decode()


def _signed(
    function: Callable[..., Any], signature: inspect.Signature, typed: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function with the parameters of another one, their types resolved."""
    hints = get_type_hints(typed or function, include_extras=True)
    own = [one.replace(annotation=hints.get(one.name, Any)) for one in signature.parameters.values()]

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    vars(called)["__signature__"] = inspect.Signature(own)
    called.__annotations__ = {one.name: one.annotation for one in own}
    called.__name__ = getattr(typed or function, "__name__", "called")
    called.__doc__ = (typed or function).__doc__
    return called
