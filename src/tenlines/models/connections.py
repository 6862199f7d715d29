"""Connections of the clients that stand on `httpx` or `httpx2`: made here, shared within a thread or an event loop,
and closed in time."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def http_library() -> Any:
    """The HTTP library that an SDK brought, the newer one of two."""
    return sys.modules.get("httpx2") or sys.modules["httpx"]


def loaded(name: str, *modules: str) -> tuple[type[Exception], ...]:
    """An exception class of those modules that are loaded: only they can have raised it."""
    return tuple(getattr(sys.modules[module], name) for module in modules if module in sys.modules)


# --- clients that are made here -----------------------------------------------------------------------


class ByLoop(Generic[T]):
    """One client for each event loop, closed when that loop ends: pooled connections belong to the loop.

    Args:
        close: How a client is closed.
    """

    def __init__(self, close: Callable[[T], Awaitable[None]]) -> None:
        self._close = close
        self._kept: weakref.WeakKeyDictionary[Any, tuple[T, AsyncIterator[None]]] = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, make: Callable[[], T]) -> T:
        """The client of the running loop, made now if there is none."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            client = make()
            # an event loop closes its async generators when it ends (`shutdown_asyncgens`)
            keeper = self._keeper(client)
            await anext(keeper)
            self._kept[loop] = kept = (client, keeper)
        return kept[0]

    async def _keeper(self, client: T) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._kept.pop(asyncio.get_running_loop(), None)  # the client holds the loop, which would never be freed
            await self._close(client)


class HttpClients:
    """HTTP clients for an SDK that takes ready ones: a blocking one, and one for each event loop. All of them read
    the certificates of the machine once.

    Args:
        library: The HTTP library.
        base_url: Address that they are for; None for the provider's own.
    """

    def __init__(self, library: Any, base_url: str | None) -> None:
        self._library = library
        # a proxy from the environment must not stand between us and a server on this machine
        trust = not is_loopback(base_url or "")
        verify = library.create_ssl_context(trust_env=trust)
        self._how: dict[str, Any] = {"trust_env": trust, "follow_redirects": True, "verify": verify}
        self.blocking = library.Client(**self._how)
        self.by_loop: ByLoop[tuple[Any, Any]] = ByLoop(lambda pair: pair[1].aclose())
        self.close = weakref.finalize(self, self.blocking.close)
        """Closes the blocking client; happens by itself when this is let go."""

    def fresh(self) -> Any:
        """Another asyncio client, which has no connections yet."""
        return self._library.AsyncClient(**self._how)

    async def in_loop(self, make: Callable[[Any], Any]) -> Any:
        """What `make` makes of an asyncio client, once for the running loop."""

        def made() -> tuple[Any, Any]:
            http = self.fresh()
            return make(http), http

        return (await self.by_loop.get(made))[0]
