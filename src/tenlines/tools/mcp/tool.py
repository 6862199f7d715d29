"""A tool of a server, as a driver uses it; and the tools with which a model gets at its resources and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeAlias

from tenlines.core import outcomes
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject
from tenlines.ports import Bound, CallContext, InDoubt, Invalid, Rendered
from tenlines.tools.mcp import results
from tenlines.tools.mcp.connection import Lost, McpError, Unreachable
from tenlines.tools.mcp.link import Link
from tenlines.tools.mcp.loop import thread
from tenlines.tools.mcp.schemas import Checker
from tenlines.tools.render import render

if TYPE_CHECKING:
    from mcp import Client

Request: TypeAlias = "Callable[[Client, JsonObject, dict[str, Any]], Awaitable[Any]]"
"""Sends arguments and `_meta` to a server; gives the value of the call."""
KEY = "tenlines/key"
"""In `_meta` of a call: its idempotency key."""
LIST_RESOURCES, READ_RESOURCE, GET_PROMPT = "list_resources", "read_resource", "get_prompt"
TOLD_CHARS = 500
"""Of how a server was lost, its own last words included."""
MOST_LISTED = 200
"""Resources that are listed."""


class McpTool:
    """A tool of a server.

    Args:
        spec: As the machine and the model know it.
        link: The way to its server.
        checker: Checks arguments.
        request: Calls it.
        max_bytes: Of a result, at most.
    """

    is_async = False
    is_killable = False

    def __init__(self, spec: ToolSpec, link: Link, checker: Checker, request: Request, max_bytes: int) -> None:
        self.spec, self._link, self._checker = spec, link, checker
        self._request, self._max_bytes = request, max_bytes

    def __repr__(self) -> str:
        return f"<tool {self.spec.name} of MCP server {self._link.server.name}>"

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Validate strictly; nothing is sent."""
        problem = self._checker.problem(arguments)
        if not problem:
            return Bound(arguments)
        mended, remarks = self._checker.mended(arguments)
        if remarks and not self._checker.problem(mended):
            return Bound(mended, remarks)
        return Invalid(problem)

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        """Have the server do it, and wait. Where the call is given up, the server is told.

        Raises:
            McpError: The server failed, or is not there: the message says which.
            InDoubt: The server was lost before it answered.
        """
        meta = {"traceparent": ctx.traceparent, KEY: ctx.key}
        may_repeat = self.spec.read_only or self.spec.idempotent
        request = self._request
        ask = self._link.ask(lambda client: request(client, bound.arguments, meta), may_repeat=may_repeat)
        future = thread.submit(ask)

        def give_up() -> None:
            future.cancel()

        ctx.on_give_up(give_up)
        try:
            return future.result()
        except CancelledError:
            raise asyncio.CancelledError("the call was given up, and the server was told") from None
        except Unreachable as error:
            raise McpError(f"nothing was done: {self._link.server.label} {error}") from error
        except Lost as error:
            raise self._lost(error) from error
        except BaseException:
            future.cancel()
            raise

    def _lost(self, error: Lost) -> Exception:
        name, why = self.spec.name, outcomes.bounded(f"{self._link.server.label} {error}", TOLD_CHARS)
        if not error.sent:
            return McpError(f"nothing was done: {why}")
        if self.spec.read_only:
            return McpError(f"it only reads, so nothing was changed. {why}")
        return InDoubt(
            f"{name} was sent to its server, which was lost before it answered. Whether it took effect is not known: "
            f"it may have. Check before you do it again. ({why})"
        )

    def render(self, value: Any) -> Rendered:
        """The value in bounded parts."""
        return render(value, self._max_bytes)


# --- what is asked of a server ------------------------------------------------------------------------


async def call_tool(client: Client, arguments: JsonObject, meta: dict[str, Any], *, name: str) -> Any:
    """Call a tool of a server. What it gives is not checked against its own schema: that would be foreign code."""
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    params = CallToolRequestParams.model_validate({"name": name, "arguments": arguments, "_meta": meta})
    either: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)
    result = await client.session.send_request(CallToolRequest(params=params), either, progress_callback=_progress)
    if isinstance(result, InputRequiredResult):
        raise McpError("the server asks for more input from a person, which is not supported here")
    if result.is_error:
        raise McpError(results.words_of(result))
    return results.of_call(result)


async def _progress(progress: float, total: float | None, message: str | None) -> None:
    """It goes on; that is all that is needed."""


async def list_resources(client: Client, arguments: JsonObject, meta: dict[str, Any]) -> Any:
    """The resources of a server, and the patterns of those that it makes when they are read."""
    from mcp import MCPError

    page = await client.list_resources(cursor=str(arguments["cursor"]) if "cursor" in arguments else None)
    found: JsonObject = {"resources": [_about(one, uri=one.uri) for one in page.resources[:MOST_LISTED]]}
    if page.next_cursor is not None:
        found["next_cursor"] = page.next_cursor
    if "cursor" not in arguments:
        try:
            templates = (await client.list_resource_templates()).resource_templates
        except MCPError:  # many servers have none and do not know the question
            templates = []
        if templates:
            found["templates"] = [_about(one, uri_template=one.uri_template) for one in templates[:MOST_LISTED]]
    return found


def _about(one: Any, **where: str) -> JsonObject:
    facts = {"name": one.title or one.name, "description": one.description, "media_type": one.mime_type}
    return {**where, **{key: value for key, value in facts.items() if value}}


async def read_resource(client: Client, arguments: JsonObject, meta: dict[str, Any]) -> Any:
    """The contents of a resource."""
    return results.of_resource(await client.read_resource(str(arguments["uri"])))


async def get_prompt(client: Client, arguments: JsonObject, meta: dict[str, Any]) -> Any:
    """The messages of a prompt."""
    given: Any = arguments.get("arguments") or {}
    return results.of_prompt(
        await client.get_prompt(str(arguments["name"]), {key: str(one) for key, one in given.items()})
    )
