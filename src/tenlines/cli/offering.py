"""An agent as an MCP server: one tool whose call is a run in the journal; its own tools where that was asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.outcomes import sendable, timed_out
from tenlines.core.transcript import File, Image, Json, JsonObject, Part, Text
from tenlines.drivers.control import Control
from tenlines.errors import TenlinesError

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp_types import CallToolResult, ContentBlock, Tool

    from tenlines.agent import Agent
    from tenlines.core.result import RunResult
    from tenlines.ports import Bound, CallContext, Observer, ToolPort

ANSWERED_S = 10.0
"""Seconds that a run has to close its log after the client gave it up."""


class Offer(NamedTuple):
    """What is offered."""

    name: str
    description: str
    limits: Limits
    """What a run may use; a client may ask for fewer steps, never for more of anything."""
    agent: Callable[[Sequence[Observer]], Agent]
    """Makes the agent of a call, with who watches it."""
    tools: Mapping[str, ToolPort]
    """Tools that are offered one by one. Their calls are in no journal."""
    way_on: Callable[[RunResult], str]
    """What a person can do about a run that stopped."""
    now: Callable[[], float]


def server_of(offer: Offer) -> Server[Any]:
    """The server."""
    import mcp_types as types
    from mcp.server import Server

    from tenlines import __version__

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_task_tool(offer), *map(_single_tool, offer.tools.values())])

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        arguments = params.arguments or {}
        if params.name in offer.tools:
            return await _call(offer, offer.tools[params.name], arguments)
        if params.name != offer.name:
            return _failed(f"there is no tool {params.name!r}; tools: {', '.join([offer.name, *offer.tools])}")
        return await _run(offer, ctx.session.report_progress, arguments)

    return Server("tenlines", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _task_tool(offer: Offer) -> Tool:
    import mcp_types as types

    steps: JsonObject = {"type": "integer", "minimum": 1, "description": "At most so many replies of its model."}
    task: JsonObject = {"type": "string", "description": "What is to be done, with all that has to be known for it."}
    status: JsonObject = {"type": "string"}
    takes: JsonObject = {"type": "object", "properties": {"task": task, "max_steps": steps}, "required": ["task"]}
    gives: JsonObject = {
        "type": "object",
        "properties": {"run_id": status, "status": status, "answer": {"type": ["string", "null"]}},
        "required": ["run_id", "status"],
    }
    return types.Tool(name=offer.name, description=offer.description, input_schema=takes, output_schema=gives)


def _single_tool(tool: ToolPort) -> Tool:
    import mcp_types as types

    spec = tool.spec
    hints = types.ToolAnnotations(read_only_hint=spec.read_only, idempotent_hint=spec.idempotent or spec.read_only)
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema={"type": "object", **spec.parameters},
        annotations=hints,
    )


# --- a run ----------------------------------------------------------------------------------------------


async def _run(offer: Offer, report: Callable[..., Awaitable[None]], arguments: JsonObject) -> CallToolResult:
    """Do a task. Where the client gives the call up, the run is stopped and its log closed."""
    task, steps = arguments.get("task"), arguments.get("max_steps", offer.limits.steps)
    if not isinstance(task, str) or not task.strip():
        return _failed("`task` has to be a text that says what is to be done")
    if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool) or steps < 1):
        return _failed("`max_steps` has to be a whole number of 1 or more")
    limits = msgspec.structs.replace(offer.limits, steps=_lesser(steps, offer.limits.steps))
    progress, control = Progress(report, limits.steps), Control()
    agent = offer.agent([progress])
    run = asyncio.ensure_future(agent.run(task, limits=limits, control=control, raise_on_stop=False))
    try:
        result = await asyncio.shield(run)
        await progress.told()
    except asyncio.CancelledError:
        await _stopped(run, control)
        raise
    except TenlinesError as error:
        return _failed(str(error))
    return _result(offer, result)


def _lesser(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


async def _stopped(run: asyncio.Future[RunResult], control: Control) -> None:
    import anyio

    control.cancel(now=True, reason="the MCP client gave the call up")
    with anyio.CancelScope(shield=True):
        await asyncio.wait({run}, timeout=ANSWERED_S)


def _result(offer: Offer, result: RunResult) -> CallToolResult:
    import mcp_types as types

    facts: dict[str, Any] = {
        "run_id": result.run_id,
        "status": result.status,
        "answer": result.answer,
        "steps": result.steps,
    }
    if result.dollars is not None:
        facts["dollars"] = result.dollars
    text = result.answer or ""
    if result.status != "answered":
        facts["reason"] = result.reason
        text = f"run {result.run_id} gave no answer ({result.status}): {result.reason}\n{offer.way_on(result)}".strip()
    content = types.TextContent(text=sendable(text))
    return types.CallToolResult(content=[content], structured_content=facts, is_error=result.status != "answered")


def _failed(text: str) -> CallToolResult:
    import mcp_types as types

    return types.CallToolResult(content=[types.TextContent(text=sendable(text))], is_error=True)


class Progress:
    """Tells the client of each step, in order. A client that cannot be told is no reason to stop.

    Args:
        report: Sends one notification: progress, total, message.
        steps: At most so many; None where there is no limit.
    """

    def __init__(self, report: Callable[..., Awaitable[None]], steps: int | None) -> None:
        self._report, self._steps = report, steps
        self._last: asyncio.Future[None] | None = None

    def on_event(self, event: ev.AnyEvent) -> None:
        """A step was made."""
        if isinstance(event, ev.ModelReplied):
            calls = ", ".join(call.name for call in event.reply.calls)
            text = sendable(f"step {event.step}: {f'calls {calls}' if calls else 'answers'}")
            self._last = asyncio.ensure_future(self._tell(self._last, event.step, text))

    async def _tell(self, before: asyncio.Future[None] | None, step: int, text: str) -> None:
        if before is not None:
            await before
        await self._report(step, self._steps, text)

    async def told(self) -> None:
        """Wait until all is said."""
        if self._last is not None:
            await asyncio.wait({self._last})


# --- a tool of the agent --------------------------------------------------------------------------------


async def _call(offer: Offer, tool: ToolPort, arguments: JsonObject) -> CallToolResult:
    """Call one of the agent's tools, outside of any run. It is checked, bounded and given up as in one."""
    from tenlines.agent import new_run_id
    from tenlines.drivers.drafts import attempt
    from tenlines.drivers.threads import in_thread
    from tenlines.ports import CallContext, Invalid

    bound, lasts, name = tool.check(arguments), tool.spec.timeout_s, tool.spec.name
    if isinstance(bound, Invalid):
        return _failed(bound.text)
    ctx = CallContext(f"{new_run_id()}:1:0", name, None if lasts is None else offer.now() + lasts)
    try:
        async with asyncio.timeout(lasts):
            end = await in_thread(partial(attempt, _whole, tool, bound, ctx))
    except TimeoutError:
        ctx.give_up()
        return _failed(timed_out(name, lasts or 0, tool.spec.read_only, tool.is_killable))
    except asyncio.CancelledError:
        ctx.give_up()
        raise
    if end.error is not None:
        return _failed(f"{name} failed: {type(end.error).__name__}: {end.error}")
    rendered = attempt(tool.render, end.value)
    if rendered.error is not None:
        return _failed(f"{name} ran, but its result could not be shown: {rendered.error}")
    return _content(rendered.value.parts)


def _whole(tool: ToolPort, bound: Bound, ctx: CallContext) -> Any:
    """A call to its very end, also where what it gives has to be awaited."""
    from tenlines.drivers.threads import loop_thread

    value = tool.call(bound, ctx)
    return loop_thread.wait_for(value) if isawaitable(value) else value


def _content(parts: Sequence[Part]) -> CallToolResult:
    import mcp_types as types

    return types.CallToolResult(content=[_block(part) for part in parts])


def _block(part: Part) -> ContentBlock:
    import base64

    import mcp_types as types

    match part:
        case Text(text):
            return types.TextContent(text=text)
        case Image(media_type=media_type, data=data) if data:
            return types.ImageContent(data=base64.b64encode(data).decode(), mime_type=media_type)
        case File(media_type=media_type, data=data, name=name):
            blob = base64.b64encode(data).decode()
            contents = types.BlobResourceContents(uri=f"file:///{name or 'file'}", mime_type=media_type, blob=blob)
            return types.EmbeddedResource(resource=contents)
        case Json(value):
            return types.TextContent(text=json.dumps(value, ensure_ascii=False))
    return types.TextContent(text=cast(str, getattr(part, "url", "")))
