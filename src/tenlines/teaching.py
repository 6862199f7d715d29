"""The two classic forms of the agent loop, each a few lines over the same machine as everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.events import Settings, ToolSpec
from tenlines.core.limits import Limits, Repeats, Retry
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.transcript import JsonObject, Reply, Text, ToolCall, User
from tenlines.drivers import sync
from tenlines.drivers.drafts import Draft
from tenlines.drivers.recorder import Parts
from tenlines.errors import MalformedReply
from tenlines.journal.memory import NullJournal
from tenlines.ports import Bound, CallContext, OnDelta, Rendered, SystemClock

T = TypeVar("T")

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
    result = _drive(script, min(max_steps, len(model_outputs)))
    seen = [script.observed.get(call.step, "unknown_tool") for call in result.calls]
    status = "answered" if result.status == "answered" else "max_steps"
    return {"answer": script.answer, "steps": result.steps, "observations": seen, "status": status}


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
    result = _drive(talk, max_steps)
    return talk.final if result.status == "answered" else STOPPED


_KNOWN, _UNKNOWN = "tool", "unknown"
"""What the machine calls the tools of a form: any object that can be a key may be the name of one."""


class _Form(ABC):
    """A classic form: a model session whose moves, results and exceptions stay the caller's own objects."""

    name: str

    def __init__(self) -> None:
        self.error: BaseException | None = None

    @abstractmethod
    def move(self, step: int) -> str | None:
        """Make the move of a step: `_KNOWN` or `_UNKNOWN` for a tool, None for the final one."""

    @abstractmethod
    def use(self, step: int) -> None:
        """Run the tool of that move."""

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        if self.error is not None:
            raise self.error
        tool = self.catch(partial(self.move, request.step))
        return Reply() if tool is None else Reply(calls=(ToolCall("", tool, ""),))

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        return self.complete(request, on_delta)

    def catch(self, call: Callable[[], T]) -> T:
        """Remember what is raised: the caller's own exception reaches the caller, not a translation of it."""
        try:
            return call()
        except BaseException as error:
            self.error = error
            raise


def _drive(form: _Form, max_steps: int) -> RunResult:
    tool = _Tool(form)
    settings = Settings(
        limits=Limits(steps=min(max(0, max_steps), 1 << 53)),
        repeats=Repeats(told_after=None, invalid_in_a_row=None),
        retry=Retry(attempts=1),
        empty_is_answer=True,
    )
    start = {
        "run_id": form.name,
        "agent": form.name,
        "model": form.name,
        "messages": (User((Text(""),)),),
        "tools": (tool.spec,),
        "settings": settings,
    }
    opening = (Draft(ev.RunStarted, start),)
    parts = Parts(Machine(), form.name, form, {_KNOWN: tool}, NullJournal(), SystemClock(), opening=opening)
    result = sync.drive(parts)
    if form.error is not None:
        raise form.error
    return result


def _is_final(move: Mapping[str, Any]) -> bool:
    kind = move["type"]
    if kind not in ("final", "tool"):
        raise MalformedReply(f"a move must have the type 'final' or 'tool', got {kind!r}")
    return bool(kind == "final")


class _Script(_Form):
    """The moves of `agent_loop`: the move of step n is `moves[n - 1]`."""

    name = "agent_loop"

    def __init__(self, moves: Sequence[Mapping[str, Any]], tables: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        self.moves, self.tables = moves, tables
        self.now: Mapping[str, Any] = {}
        self.observed: dict[int, Any] = {}
        self.answer: Any = None

    def move(self, step: int) -> str | None:
        self.now = self.moves[step - 1]
        if _is_final(self.now):
            self.answer = self.now["text"]
            return None
        return _KNOWN if self.now["name"] in self.tables else _UNKNOWN

    def use(self, step: int) -> None:
        table, argument = self.tables[self.now["name"]], self.now["arg"]
        is_known = argument in table  # membership only: a table may have its own idea of `get`
        self.observed[step] = table[argument] if is_known else "unknown_arg"


class _Talk(_Form):
    """The conversation of `run_agent`. Its messages hold the model's own objects and the tools' own values."""

    name = "run_agent"

    def __init__(self, model: Callable[[list[Any]], Any], tools: Mapping[str, Any], user_msg: str) -> None:
        super().__init__()
        self.model, self.tools = model, tools
        self.messages: list[Any] = [{"role": "user", "content": user_msg}]
        self.now: Any = None
        self.content: Any = None
        self.final: Any = None

    def move(self, step: int) -> str | None:
        if self.now is not None:
            self.messages += [self.now, {"role": "tool", "name": self.now["name"], "content": self.content}]
        self.now = self.model(self.messages)
        if _is_final(self.now):
            self.final = self.now["content"]
            return None
        name = self.now["name"]
        self.content = f"error: unknown tool '{name}'"
        return _KNOWN if name in self.tools else _UNKNOWN

    def use(self, step: int) -> None:
        try:
            self.content = self.tools[self.now["name"]](self.now.get("args", {}))
        except Exception as error:  # noqa: BLE001  # the form says: the text of any exception goes to the model
            self.content = f"error: {error}"


class _Tool:
    """Stands for all tools of a form, whose arguments and values never become text."""

    is_async = is_killable = False

    def __init__(self, form: _Form) -> None:
        self.spec, self.form = ToolSpec(_KNOWN), form

    def check(self, arguments: JsonObject) -> Bound:
        return Bound({})

    def call(self, bound: Bound, ctx: CallContext) -> None:
        self.form.catch(partial(self.form.use, ctx.step))

    def render(self, value: Any) -> Rendered:
        return Rendered((Text(""),))
