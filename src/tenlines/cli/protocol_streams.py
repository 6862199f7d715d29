"""How `tenlines mcp` is reached: standard input and output, or HTTP on this machine."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from mcp.server import Server

PATH = "/mcp"
TOKEN_VARIABLE = "TENLINES_MCP_TOKEN"


async def over_stdio(server: Server[Any], out: TextIO) -> None:
    """Serve one client until it closes our standard input, or a signal comes.

    Args:
        out: Standard output; nobody else writes to it.
    """
    import anyio
    from mcp.server.stdio import stdio_server

    streams = stdio_server(cast(Any, Lines(_own_stdin())), anyio.wrap_file(out))
    me = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows: it ends with its standard input
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel if me else int)
    with suppress(asyncio.CancelledError):
        async with streams as (read, write):
            await server.run(read, write, server.create_initialization_options())


def _own_stdin() -> int:
    """Standard input for us alone: what tools start reads nothing of it."""
    kept = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return kept


class Lines:
    """The lines that come in. A thread reads them, which nobody has to wait for when the process ends.

    Args:
        source: A file descriptor.
    """

    def __init__(self, source: int) -> None:
        self._source = source

    async def __aiter__(self) -> AsyncIterator[str]:
        loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()
        threading.Thread(target=self._read, args=(loop, lines), name="tenlines-mcp-stdin", daemon=True).start()
        while (line := await lines.get()) is not None:
            yield line.decode("utf-8", "replace")

    def _read(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        rest = b""
        with suppress(RuntimeError):  # the loop was closed
            while piece := os.read(self._source, 1 << 16):  # not through a buffer, whose lock would outlive us
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)


async def over_http(server: Server[Any], host: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve clients at `http://HOST:PORT/mcp` until a signal comes. Whoever does not know the token is refused, and so
    are pages of other sites.

    Args:
        tell: Is told the address, and the token where it was made now.

    Raises:
        ConfigError: The port cannot be had.
    """
    import uvicorn

    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise ConfigError(f"--http {port}: the port cannot be had: {error.strerror}") from error
    with listening:
        known = os.environ.get(TOKEN_VARIABLE)
        token = known or secrets.token_urlsafe(24)
        shown = f"the token in ${TOKEN_VARIABLE}" if known else f"Authorization: Bearer {token}"
        tell(f"MCP at http://{host}:{listening.getsockname()[1]}{PATH} with {shown}; Ctrl-C ends it")
        app = server.streamable_http_app(streamable_http_path=PATH, host=host)
        config = uvicorn.Config(_behind(token, app), log_level="warning", timeout_graceful_shutdown=5)
        await uvicorn.Server(config).serve(sockets=[listening])


def _behind(token: str, app: Any) -> Any:
    """The application for those who know the token: this machine may have other users."""
    from starlette.responses import PlainTextResponse

    wanted = f"Bearer {token}".encode()
    refused = PlainTextResponse("send the header Authorization: Bearer TOKEN\n", 401, {"www-authenticate": "Bearer"})

    async def check(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        is_known = scope["type"] != "http" or hmac.compare_digest(given, wanted)
        await (app if is_known else refused)(scope, receive, send)

    return check
