"""A server of tools made with the SDK: the newer revision, every kind of content, resources, prompts.

`python small_server.py` serves standard input and output; `make(small)` gives the server for HTTP.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: dict[str, Any] = {"type": "object"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
READS = types.ToolAnnotations(read_only_hint=True)
GIVES = {"type": "object", "properties": {"b": {"type": "string", "pattern": "(a+)+$"}}}
"""What `structured` does not keep to; and a pattern that would take ages."""
NAMES = ("meta", "kinds", "grow", "a name with spaces/and more")


def text(said: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)], **more)


class Small:
    """Its tools."""

    def __init__(self) -> None:
        self.has_extra = False
        self.bus = InMemorySubscriptionBus()
        self.requests: list[Any] = []
        """Headers of what came over HTTP."""

    def tools(self) -> list[types.Tool]:
        listed = [types.Tool(name=name, input_schema=NOTHING) for name in NAMES]
        listed += [
            types.Tool(name="echo", input_schema=TEXT, annotations=READS),
            types.Tool(name="fail", input_schema=TEXT),
            types.Tool(name="structured", input_schema=NOTHING, output_schema=GIVES),
            types.Tool(name="wait", input_schema=NOTHING),
        ]
        return [*listed, types.Tool(name="extra", input_schema=NOTHING)] if self.has_extra else listed

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        listed, half = self.tools(), 3
        if params is None or params.cursor is None:
            return types.ListToolsResult(tools=listed[:half], next_cursor="rest")
        return types.ListToolsResult(tools=listed[half:])

    async def call_tool(self, ctx: Any, params: Any) -> types.CallToolResult:
        if ctx.request is not None:
            self.requests.append(ctx.request.headers)
        said, name = (params.arguments or {}).get("text", "odd"), params.name
        match name:
            case "meta":
                return await meta(ctx)
            case "kinds":
                return types.CallToolResult(content=kinds())
            case "structured":
                return text('{"b": [1, 2], "a": "x"}', structured_content={"a": "x", "b": [1, 2]})
            case "wait":
                await asyncio.sleep(60)
            case "grow":
                self.has_extra = True
                await self.bus.publish(ToolsListChanged())
                await ctx.session.send_tool_list_changed()
        return text(said, is_error=name == "fail")


async def meta(ctx: Any) -> types.CallToolResult:
    await ctx.session.report_progress(1, 3, "on the way")
    mine = {key: value for key, value in (ctx.meta or {}).items() if "modelcontextprotocol" not in key}
    return types.CallToolResult(content=[], structured_content={**mine, "protocol": ctx.protocol_version})


def kinds() -> list[types.ContentBlock]:
    in_it = types.TextResourceContents(uri="x://a", mime_type="text/plain", text="in it")
    blob = types.BlobResourceContents(uri="x://a/logo.png", mime_type="image/png", blob=PNG)
    return [
        types.TextContent(text="hello"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        types.ImageContent(data="!!", mime_type="image/png"),
        types.ImageContent(data=PNG, mime_type="image/x-odd\nheader: yes"),
        types.AudioContent(data=base64.b64encode(b"RIFF").decode(), mime_type="audio/wav"),
        types.EmbeddedResource(resource=in_it),
        types.EmbeddedResource(resource=blob),
        types.ResourceLink(uri="x://b", name="b", size=1200, mime_type="text/csv", description="rows"),
    ]


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    notes = types.Resource(uri="x://notes", name="notes", description="Some notes.", mime_type="text/plain")
    return types.ListResourcesResult(resources=[notes])


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    contents = types.TextResourceContents(uri=params.uri, text=f"the notes of {params.uri}")
    return types.ReadResourceResult(contents=[contents])


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    takes = [types.PromptArgument(name="whom", required=True)]
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", description="Greets.", arguments=takes)])


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    said = types.TextContent(text=f"Greet {params.arguments['whom']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])


def make(small: Small) -> Server[Any]:
    """The server."""
    return Server(
        "small",
        version="1",
        on_list_tools=small.list_tools,
        on_call_tool=small.call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_subscriptions_listen=ListenHandler(small.bus),
    )


async def serve() -> None:
    server = make(Small())
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    asyncio.run(serve())
