"""What connections are made of: a program's standard streams, or HTTP; and what a server says beside the protocol."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

from tenlines.tools.mcp.servers import Server
from tenlines.tools.mcp.texts import seen

LARGEST_EVENT = 32_000_000
"""Bytes of one message over HTTP, where it comes as an event."""
STDERR_CHARS = 2_000
"""Of what the server last wrote to its standard error, for messages."""
_CONNECT_S = 20.0
_INHERITED = re.compile(
    r"(?i:https?_proxy|all_proxy|no_proxy)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|UV_\w+|PIP_\w+|(?i:npm_config_\w+)"
)


def transport(server: Server, errors: Tail, note_status: Callable[[Any], Awaitable[None]]) -> Any:
    """The way to a server, as the SDK takes it. Nothing is opened before it is entered.

    Args:
        server: Which.
        errors: Takes what it writes to its standard error.
        note_status: Is given each response, where it is HTTP.
    """
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if server.url:
        return _over_http(server, note_status, streamable_http_client)
    program, *args = server.command
    # what is no UTF-8 is the server's mistake, and no reason to lose it
    parameters = StdioServerParameters(
        command=program,
        args=args,
        env={**_inherited(), **server.env},
        cwd=server.cwd or None,
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errors.open())


def _inherited() -> dict[str, str]:
    """What a server gets of our environment beside what the SDK gives it: how to reach the network, where to keep
    things, how its installer is set up. No keys of models or clouds."""
    return {name: value for name, value in os.environ.items() if _INHERITED.fullmatch(name)}


@asynccontextmanager
async def _over_http(server: Server, note: Callable[[Any], Awaitable[None]], connect: Any) -> AsyncIterator[Any]:
    """The streams of a server at an address. How long an answer may take is up to each call."""
    import httpx2

    timeout = httpx2.Timeout(_CONNECT_S, read=None)
    hooks = {"response": [note]}
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=timeout, event_hooks=hooks) as client,
        connect(server.url, http_client=client, max_sse_event_size=LARGEST_EVENT) as streams,
    ):
        yield streams


@asynccontextmanager
async def watched(transport: Any, over: asyncio.Event) -> AsyncIterator[Any]:
    """The streams of a transport; `over` is set as soon as nothing more can come."""
    import anyio

    async with transport as (read, write):
        put, take = anyio.create_memory_object_stream[Any](0)

        async def forward() -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async with put:
                    async for item in read:
                        await put.send(item)
            over.set()

        async with anyio.create_task_group() as group:
            group.start_soon(forward)
            try:
                yield take, write
            finally:
                group.cancel_scope.cancel()
                take.close()


class Tail:
    """The end of what a server writes to its standard error."""

    def __init__(self) -> None:
        self._text = b""
        self._lock = threading.Lock()
        self._stream: TextIO | None = None
        self._reader: threading.Thread | None = None

    def open(self) -> TextIO:
        """What the server is to write to."""
        take, put = os.pipe()
        self._stream = os.fdopen(put, "w")
        self._reader = threading.Thread(target=self._read, args=(take,), name="tenlines-mcp-stderr", daemon=True)
        self._reader.start()
        return self._stream

    def started(self) -> None:
        """The server has it by now, and this process lets it go, so that it ends with the server."""
        if self._stream is not None:
            self._stream.close()

    close = started

    def _read(self, take: int) -> None:
        with open(take, "rb", buffering=0) as stream:
            while piece := stream.read(1 << 16):
                with self._lock:
                    self._text = (self._text + piece)[-4 * STDERR_CHARS :]

    def words(self) -> str:
        """In a message; "" where there is nothing."""
        if self._reader is not None:
            self._reader.join(0.1)  # what it wrote last is on the way
        with self._lock:
            text = seen(self._text.decode("utf-8", "replace"), 4 * STDERR_CHARS)[-STDERR_CHARS:].strip()
        return f". It wrote:\n{text}" if text else ""
