"""A socket on loopback, the server on it, and its end."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tenlines.errors import ConfigError, MissingExtra
from tenlines.serve.app import Setup, application
from tenlines.serve.gate import App

if TYPE_CHECKING:
    import uvicorn

GRACE_S = 2
"""How long requests that are being answered have at the end."""


class Address(NamedTuple):
    """Where the server listens."""

    socket: socket.socket
    port: int
    token: str

    @property
    def url(self) -> str:
        """The address with its token: whoever knows it may do all that the pages can."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"


def listen(port: int) -> Address:
    """Listen on loopback.

    Args:
        port: 0 for any that is free.

    Raises:
        ConfigError: It is not free, or none that this user may take.
    """
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(("127.0.0.1", port))
        one.listen(128)
    except OSError as error:
        one.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} is in use: name another with --port, or leave it out for any") from None
        raise ConfigError(f"port {port} cannot be listened on: {error.strerror}; name another with --port") from None
    return Address(one, one.getsockname()[1], secrets.token_urlsafe(24))


def run(setup: Setup, address: Address, begun: Callable[[], None]) -> None:
    """Serve the live pages until Ctrl-C.

    Args:
        begun: Called when requests are answered.

    Raises:
        MissingExtra: What the pages need is not installed.
    """
    served = application(setup, address.token, address.port)
    keep(served.app, served.end, address, begun)


def keep(app: App, end: Callable[[], None], address: Address, begun: Callable[[], None]) -> None:
    """Keep a server running until Ctrl-C.

    Args:
        app: What answers.
        end: Lets go who would be waited for at the end.
        begun: Called when requests are answered.

    Raises:
        MissingExtra: Uvicorn is not installed.
    """
    with suppress(KeyboardInterrupt):  # it has ended by then
        server_of(app, end, begun).run([address.socket])


def server_of(app: App, end: Callable[[], None], begun: Callable[[], None]) -> uvicorn.Server:
    """The server; the rest as in `keep`."""
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("the server", "serve") from error

    class Server(uvicorn.Server):
        """Says when it has begun; lets go who watches, so that nobody is waited for at the end."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            begun()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            end()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    return Server(config)
