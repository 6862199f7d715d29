"""A server of tools for the tests, over standard input and output. It does as its arguments say, also what is wrong.

It is started as `python small_server.py [--junk] [--more] [--legacy] ...`; see the bottom.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FILE = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
NOTHING: dict[str, Any] = {"type": "object"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
READS = types.ToolAnnotations(read_only_hint=True)
REPEATS = types.ToolAnnotations(idempotent_hint=True)
LIES = types.ToolAnnotations(read_only_hint=True, destructive_hint=True)


def text(said: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)], **more)


def note(file: str, word: str) -> int:
    """Write a word into a file; how many are there now."""
    with Path(file).open("a") as stream:
        stream.write(f"{word}\n")
    return len(Path(file).read_text().splitlines())


class Small:
    """Its tools, and what was asked of it."""

    def __init__(self, extra: bool) -> None:
        self.has_extra = extra
        self.cancelled = 0

    def tools(self) -> list[types.Tool]:
        listed = [
            types.Tool(name="echo", description="Say it again.\u202e\u200b", input_schema=TEXT, annotations=READS),
            types.Tool(name="die", description="Die, noting it first.", input_schema=FILE),
            types.Tool(name="die_reading", description="The same.", input_schema=FILE, annotations=READS),
            types.Tool(name="die_repeatable", description="The same.", input_schema=FILE, annotations=REPEATS),
            types.Tool(
                name="lies", description="Says that it reads and destroys.", input_schema=NOTHING, annotations=LIES
            ),
            types.Tool(name="wait", description="Wait for ever.", input_schema=FILE),
            types.Tool(name="meta", description="What came in _meta.", input_schema=NOTHING),
            types.Tool(name="pid", description="Its process.", input_schema=NOTHING, annotations=READS),
            types.Tool(name="fail", description="Fails.", input_schema=TEXT),
            types.Tool(
                name="many",
                description="Megabytes.",
                input_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
            ),
            types.Tool(name="kinds", description="Every kind of content.", input_schema=NOTHING),
            types.Tool(name="structured", description="Structured.", input_schema=NOTHING),
            types.Tool(name="no-result", description="What is no result.", input_schema=NOTHING),
            types.Tool(name="junk", description="Junk lines first.", input_schema=NOTHING),
            types.Tool(name="grow", description="From now on there is one more tool.", input_schema=NOTHING),
            types.Tool(name="a name with spaces/and more", description="Odd.", input_schema=NOTHING),
        ]
        return (
            [*listed, types.Tool(name="extra", description="New.", input_schema=NOTHING)] if self.has_extra else listed
        )

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        listed, half = self.tools(), 8
        if params is None or params.cursor is None:
            return types.ListToolsResult(tools=listed[:half], next_cursor="rest")
        return types.ListToolsResult(tools=listed[half:])

    async def call_tool(self, ctx: Any, params: Any) -> types.CallToolResult:
        return await getattr(self, f"do_{params.name.split()[0].replace('-', '_')}")(ctx, params.arguments or {})

    async def do_echo(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text(arguments["text"])

    async def do_die(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        if note(arguments["file"], "died") <= int(os.environ.get("DEATHS", "1")):
            print("the disk is on fire", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return text("lived")

    do_die_reading = do_die_repeatable = do_die

    async def do_wait(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        note(arguments["file"], "waiting")
        try:
            await ctx.session.report_progress(1, 3, "on the way")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            note(arguments["file"], "cancelled")
            raise
        return text("waited")

    async def do_meta(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        await ctx.session.report_progress(1, 3, "on the way")
        meta = {key: value for key, value in (ctx.meta or {}).items() if "modelcontextprotocol" not in key}
        return types.CallToolResult(content=[], structured_content={**meta, "protocol": ctx.protocol_version})

    async def do_pid(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text(str(os.getpid()))

    async def do_fail(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text(arguments["text"], is_error=True)

    async def do_many(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text("row \u202e\x1b[2J\n" * arguments.get("n", 400_000))

    async def do_kinds(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        blob = types.BlobResourceContents(uri="x://a/logo.png", mime_type="image/png", blob=PNG)
        return types.CallToolResult(
            content=[
                types.TextContent(text="hello"),
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.ImageContent(data="!!", mime_type="image/png"),
                types.ImageContent(data=PNG, mime_type="image/x-odd\nheader: yes"),
                types.AudioContent(data=base64.b64encode(b"RIFF").decode(), mime_type="audio/wav"),
                types.EmbeddedResource(
                    resource=types.TextResourceContents(uri="x://a", mime_type="text/plain", text="in it")
                ),
                types.EmbeddedResource(resource=blob),
                types.ResourceLink(uri="x://b", name="b", size=1200, mime_type="text/csv", description="rows"),
            ]
        )

    async def do_structured(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text('{"b": [1, 2], "a": "x"}', structured_content={"a": "x", "b": [1, 2]})

    async def do_no_result(self, ctx: Any, arguments: dict[str, Any]) -> Any:
        sys.__stdout__ = None
        os.write(WIRE, b'{"jsonrpc": "2.0", "id": %d, "result": {"content": "no list"}}\n' % ctx.request_id)
        await asyncio.sleep(60)

    async def do_junk(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        os.write(WIRE, b"Starting up...\n\xff\xfe\x00\n{}\n[1]\n" + b"x" * 100_000 + b"\n")
        return text("after junk")

    async def do_grow(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        self.has_extra = True
        await ctx.session.send_tool_list_changed()
        return text("grown")

    async def do_a(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text("odd")

    async def do_lies(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text("lied")

    async def do_extra(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return text("new")


RESOURCE = types.Resource(uri="x://notes", name="notes", description="Some notes.", mime_type="text/plain")


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[RESOURCE])


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=params.uri, text=f"the notes of {params.uri}")]
    )


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    takes = [types.PromptArgument(name="whom", required=True)]
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", description="Greets.", arguments=takes)])


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    said = types.TextContent(text=f"Greet {params.arguments['whom']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])


async def serve(small: Small) -> None:
    from mcp.server.lowlevel.server import NotificationOptions

    server: Server[Any] = Server(
        "small",
        version="1",
        on_list_tools=small.list_tools,
        on_call_tool=small.call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    async with stdio_server() as (read, write):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(read, write, options)


WIRE = os.dup(1)

if __name__ == "__main__":
    if "--silent" in sys.argv:
        print("still thinking", file=sys.stderr, flush=True)
        time.sleep(60)
    if "--broken" in sys.argv:
        print("no such database", file=sys.stderr, flush=True)
        sys.exit(3)
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(serve(Small("--extra" in sys.argv)))
