"""The way to one server: connected when it is first needed, again when it was lost, closed with the process.

    asked ──► connected? ──no──► start it, shake hands, list its tools
                 │ yes
                 ▼
              ask it ──► answer
                 │ lost on the way
                 ▼
              nothing was sent, or it may be repeated: connect and ask once more; else it is in doubt

What a call may have done is never guessed: it was not sent only where that is certain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tenlines.tools.mcp.connection import Connection, Listing, Lost, McpError, Unreachable
from tenlines.tools.mcp.loop import thread
from tenlines.tools.mcp.servers import Server

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
Ask: TypeAlias = "Callable[[Client], Awaitable[T]]"

RESTARTS_S = (0.1, 0.5, 2.0)
"""Seconds before each start of a server that was lost: so many starts in a row, and then none for `REST_S`. A call that
it answers begins the count anew."""
REST_S = 60.0


class Link:
    """The way to one server. Safe to use from any thread.

    Args:
        server: Which.
        start_s: Seconds that it has to start and to say what it has.
    """

    def __init__(self, server: Server, start_s: float) -> None:
        self.server, self._start_s = server, start_s
        self.version = 0
        """Another number each time that the server says that it has other tools."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self._connection: Connection | None = None
        self._losses, self._lost_at = 0, 0.0

    def listing(self) -> Listing:
        """What the server has now. It is started if it does not run.

        Raises:
            Unreachable: It cannot be.
        """
        return thread.wait_for(self._listed())

    def close(self) -> None:
        """End the connection, and with it a server that was started. It is begun anew when it is needed again."""
        if self._connection is not None and self._loop is thread.loop:
            thread.wait_for(self._close())

    async def ask(self, what: Ask[T], *, may_repeat: bool) -> T:
        """Ask the server something, in the thread of the connections.

        Args:
            what: Asks it, once connected.
            may_repeat: Whether it may be asked once more where it is not known whether it heard.

        Raises:
            Unreachable: There is no connection: nothing was sent.
            Lost: It may have heard, and there will be no answer.
            McpError: It answered with an error.
        """
        try:
            return await self._ask_once(what)
        except Lost as lost:
            if lost.sent and not may_repeat:
                raise
            was_sent = lost.sent
        try:
            return await self._ask_once(what)
        except (Lost, Unreachable) as error:
            if was_sent:  # whatever became of the second time
                raise Lost(str(error), sent=True) from error
            raise

    async def _ask_once(self, what: Ask[T]) -> T:
        connection = await self._connected()
        try:
            value = await connection.ask(what)
        except McpError:  # that is an answer too
            self._losses = 0
            raise
        self._losses = 0
        return value

    async def _connected(self) -> Connection:
        self._stay_here()
        async with self._lock:
            if self._connection is None:
                self._connection = await self._open()
            elif self._connection.is_over:
                self._connection = await self._open_again(self._connection.listing)
            return self._connection

    def _stay_here(self) -> None:
        """In a process that was forked there is another loop, and the connection is not its own."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock, self._connection, self._losses = loop, asyncio.Lock(), None, 0

    async def _open(self) -> Connection:
        connection = Connection(self.server, self._start_s, self._has_changed)
        await connection.open(self.version)
        return connection

    async def _open_again(self, before: Listing) -> Connection:
        """Start a lost server, with pauses, so often and no more."""
        now = asyncio.get_running_loop().time
        if self._losses >= len(RESTARTS_S) and now() - self._lost_at >= REST_S:
            self._losses = len(RESTARTS_S) - 1
        why = ""
        while self._losses < len(RESTARTS_S):
            await asyncio.sleep(RESTARTS_S[self._losses])
            self._losses, self._lost_at = self._losses + 1, now()
            try:
                connection = await self._open()
            except Unreachable as error:
                why = f" The last time it {error}"
                continue
            if connection.listing != before:
                self._has_changed()
            return connection
        raise Unreachable(
            f"was lost and started again {len(RESTARTS_S)} times in a row; it is not tried again for {REST_S:g} s.{why}"
        )

    async def _listed(self) -> Listing:
        connection = await self._connected()
        if connection.listed_for != self.version:
            try:
                await connection.list_again(self.version)
            except Lost:
                connection = await self._connected()  # a new one begins with its lists
        return connection.listing

    def _has_changed(self) -> None:
        self.version += 1

    async def _close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
