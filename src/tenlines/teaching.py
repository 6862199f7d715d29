"""The two classic forms of the agent loop, each a few lines over the same machine as everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.events import Settings, ToolSpec
from tenlines.core.limits import Limits, Repeats, Retry
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.transcript import JsonObject, Reply, Text, ToolCall, User
from tenlines.drivers import sync
from tenlines.drivers.recorder import Draft, Parts
from tenlines.errors import MalformedReply
from tenlines.journal.memory import NullJournal
from tenlines.ports import Bound, CallContext, OnDelta, Rendered, SystemClock

STOPPED = "Stopped: reached max steps."


def agent_loop(
    model_outputs: Sequence[Mapping[str, Any]], tools: Mapping[str, Mapping[str, Any]], max_steps: int
) -> dict[str, Any]:
    """Replay scripted moves over lookup-table tools. Pure; the inputs are never changed.

    Args:
        model_outputs: Moves: `{"type": "final", "text": ...}` or `{"type": "tool", "name": ..., "arg": ...}`.
        tools: `{tool name: {argument: result}}`.
        max_steps: How many moves are read at most.

    Returns:
        `{"answer", "steps", "observations", "status"}`; the status is `answered` or `max_steps`.
    """
    script = _Script(model_outputs, tools)
    result = _drive(script, tools, min(max_steps, len(model_outputs)))
    seen = [script.observed.get(call.step, "unknown_tool") for call in result.calls]
    status = "answered" if result.status == "answered" else "max_steps"
    return {"answer": result.answer, "steps": result.steps, "observations": seen, "status": status}


def run_agent(
    model: Callable[[list[Any]], Mapping[str, Any]],
    tools: Mapping[str, Callable[[Any], Any]],
    user_msg: str,
    max_steps: int = 10,
) -> Any:
    """Ask a model function, run the tools that it names, until it gives a final message.

    Args:
        model: Takes the growing list of messages; returns `{"role": "assistant", "type": "final", "content": ...}`
            or `{"role": "assistant", "type": "tool", "name": ..., "args": {...}}`.
        tools: `{name: function of the args}`. An exception becomes the text `error: MESSAGE`.
        user_msg: The first message.
        max_steps: How often the model is asked at most.

    Returns:
        The content of the final message, or `Stopped: reached max steps.`

    Raises:
        Exception: Whatever the model function raises.
    """
    talk = _Talk(model, tools, user_msg)
    result = _drive(talk, tools, max_steps)
    if talk.error is not None:
        raise talk.error
    return talk.final if result.status == "answered" else STOPPED


class _Form(Protocol):
    """A classic form: a model session that also runs the tools of its own moves."""

    name: str

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply: ...
    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply: ...
    def use(self, tool: str, step: int) -> None: ...


def _drive(form: _Form, tools: Mapping[str, Any], max_steps: int) -> RunResult:
    named = {name: _Tool(name, form) for name in tools}
    settings = Settings(
        limits=Limits(steps=max(0, max_steps)),
        repeats=Repeats(told_after=None, invalid_in_a_row=None),
        retry=Retry(attempts=1),
        empty_is_answer=True,
    )
    start = {
        "run_id": form.name,
        "agent": form.name,
        "model": form.name,
        "messages": (User((Text(""),)),),
        "tools": tuple(tool.spec for tool in named.values()),
        "settings": settings,
    }
    opening = (Draft(ev.RunStarted, start),)
    return sync.drive(Parts(Machine(), form.name, form, dict(named), NullJournal(), SystemClock(), opening=opening))


class _Script:
    """The moves of `agent_loop`: the move of step n is `moves[n - 1]`."""

    name = "agent_loop"

    def __init__(self, moves: Sequence[Mapping[str, Any]], tables: Mapping[str, Mapping[str, Any]]) -> None:
        self.moves, self.tables = moves, tables
        self.observed: dict[int, Any] = {}

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        move = self.moves[request.step - 1]
        if move["type"] == "final":
            return Reply(move["text"])
        return Reply(calls=(ToolCall("", move["name"], ""),))

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        return self.complete(request, on_delta)

    def use(self, tool: str, step: int) -> None:
        table, argument = self.tables[tool], self.moves[step - 1]["arg"]
        self.observed[step] = table.get(argument, "unknown_arg")


class _Talk:
    """The conversation of `run_agent`. Its messages hold the model's own objects and the tools' own values."""

    name = "run_agent"

    def __init__(self, model: Callable[[list[Any]], Any], tools: Mapping[str, Any], user_msg: str) -> None:
        self.model, self.tools = model, tools
        self.messages: list[Any] = [{"role": "user", "content": user_msg}]
        self.move: Any = None
        self.content: Any = None
        self.final: Any = None
        self.error: Exception | None = None

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        if self.move is not None:
            name = self.move["name"]
            self.messages += [self.move, {"role": "tool", "name": name, "content": self.content}]
        try:
            self.move = self.model(self.messages)
            kind = self.move["type"]
        except Exception as error:
            self.error = error  # the caller's own exception reaches the caller, not a translation of it
            raise
        if kind == "final":
            self.final = self.move["content"]
            return Reply()
        if kind != "tool":
            self.error = MalformedReply(f"a move must have the type 'final' or 'tool', got {kind!r}")
            raise self.error
        self.content = f"error: unknown tool {self.move['name']!r}"
        return Reply(calls=(ToolCall("", self.move["name"], ""),))

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        return self.complete(request, on_delta)

    def use(self, tool: str, step: int) -> None:
        try:
            self.content = self.tools[tool](self.move.get("args", {}))
        except Exception as error:  # noqa: BLE001  # the form says: the text of any exception goes to the model
            self.content = f"error: {error}"


class _Tool:
    """A tool whose arguments and values stay the form's own objects and never become text."""

    is_async = is_killable = False

    def __init__(self, name: str, form: _Form) -> None:
        self.spec, self.form = ToolSpec(name), form

    def check(self, arguments: JsonObject) -> Bound:
        return Bound({})

    def call(self, bound: Bound, ctx: CallContext) -> None:
        self.form.use(ctx.tool, ctx.step)

    def render(self, value: Any) -> Rendered:
        return Rendered((Text(""),))
