"""One connection to a server, from the handshake to its end.

The SDK speaks both revisions of the protocol that are in the field (2025-11-25 with a handshake, 2026-07-28 without). A
connection is owned by one task, which opens it, waits until it is over and closes it: what is opened in a task can only
be closed in it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from tenlines.errors import MissingExtra
from tenlines.tools.mcp.loop import thread
from tenlines.tools.mcp.servers import Server
from tenlines.tools.mcp.streams import Tail, transport, watched
from tenlines.tools.mcp.texts import seen

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp_types import Prompt, Tool

T = TypeVar("T")
Ask: TypeAlias = "Callable[[Client], Awaitable[T]]"

MOST_PAGES = 100
"""Of a list. A server whose list never ends is not waited for."""
MOST_LISTED = 1_000
"""Tools, or prompts, of one server."""
_END_S = 6.0
_GATEWAY = range(500, 600)
_CLOSED = "Connection closed"
_SESSION_OVER = "Session terminated"
_NO_ANSWER = ("SSE stream", "Server returned an error response")
"""How the SDK words what became of a request over HTTP."""


class Unreachable(Exception):
    """A server cannot be had: nothing was sent to it. The text is what stands behind the name of the server."""


class McpError(Exception):
    """The server says that it failed, or gave something that is no result."""


class Lost(Exception):
    """The connection ended before the answer. The text is what stands behind the name of the server.

    Attributes:
        sent: Whether the server may have heard what was asked.
    """

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class Listing(NamedTuple):
    """What a server has."""

    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    has_resources: bool = False


class Connection:
    """One connection. Everything in it happens in the loop of the thread of the connections.

    Args:
        server: Which.
        start_s: Seconds from its start to the end of its lists.
        changed: Called when the server says that it has other tools.
    """

    def __init__(self, server: Server, start_s: float, changed: Callable[[], None]) -> None:
        self._server, self._start_s, self._changed = server, start_s, changed
        self._over, self._errors, self._status, self._under_way = asyncio.Event(), Tail(), 0, 0
        self._error: BaseException | None = None
        self.listing = Listing()
        self.listed_for = -1
        """For which version of the link it was listed last."""

    @property
    def is_over(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._over.is_set()

    async def open(self, version: int) -> None:
        """Connect, shake hands and list what there is.

        Raises:
            Unreachable: It did not come to that; the message says why.
            MissingExtra: The SDK is not installed.
        """
        require_sdk()
        ready = asyncio.get_running_loop().create_future()
        self.listed_for = version
        self._owner = asyncio.ensure_future(self._own(ready))
        self._owner.add_done_callback(_look_at)
        thread.at_exit(self, self.close)
        try:
            await asyncio.shield(ready)
        except asyncio.CancelledError:
            self._over.set()  # whoever asked has gone
            raise

    async def close(self) -> None:
        """End it; a server that was started is told to end, and killed if it does not."""
        self._over.set()
        await asyncio.wait({self._owner})

    async def list_again(self, version: int) -> None:
        """List what there is now.

        Raises:
            Unreachable: It does not any more; the message says why.
            Lost: The connection ended.
        """
        self.listed_for = version
        try:
            self.listing = await self.ask(_listing)
        except McpError as error:
            raise Unreachable(f"does not list its tools any more ({_words(error)})") from error

    async def ask(self, what: Ask[T]) -> T:
        """Ask something.

        Raises:
            Lost: The connection ended before the answer.
            McpError: The server answered with an error, or with what is no answer.
        """
        from mcp import MCPError
        from pydantic import ValidationError

        if self.is_over:
            raise Lost(self._why_lost(), sent=False)
        self._under_way += 1
        try:
            return await what(self._client)
        except MCPError as error:
            if (lost := await self._lost(error)) is not None:
                raise lost from error
            raise McpError(f"{error}{self._status_words() if str(error).startswith(_NO_ANSWER) else ''}") from error
        except ValidationError as error:
            raise McpError("the server answered with what is no result; it may have done what was asked") from error
        finally:
            self._under_way -= 1

    # --- the task that owns it ------------------------------------------------------------------------

    async def _own(self, ready: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._start_s):
                    self._client = await self._opened(stack)
                    self.listing = await _listing(self._client)
                if not ready.done():
                    ready.set_result(None)
                await self._until_over()
        finally:
            self._error = sys.exc_info()[1]  # whoever waits is told in words
            self._over.set()
            self._errors.close()
            thread.at_exit(self, None)
            if not ready.done():
                ready.set_exception(Unreachable(self._why_unreachable()))
                ready.exception()  # it may be that nobody waits any more

    async def _opened(self, stack: AsyncExitStack) -> Client:
        from mcp import Client
        from mcp_types import Implementation

        client = Client(
            watched(transport(self._server, self._errors, self._note_status), self._over),
            cache=None,
            message_handler=self._heard,
            client_info=Implementation(name="tenlines", version=_version()),
        )
        try:
            return await stack.enter_async_context(client)
        finally:
            self._errors.started()

    async def _until_over(self) -> None:
        listening = asyncio.ensure_future(self._listen()) if _announces(self._client) else None
        try:
            await self._over.wait()
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.wait({listening})

    async def _listen(self) -> None:
        """Hear of other tools where the protocol wants to be asked for that. What was missed meanwhile is looked up."""
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost

        while True:
            try:
                async with self._client.listen(tools_list_changed=True, prompts_list_changed=True) as heard:
                    async for _ in heard:
                        self._changed()
                return
            except SubscriptionLost:
                self._changed()
                await asyncio.sleep(1)
            except (MCPError, RuntimeError, TimeoutError):
                return  # the server does not do what it announced; its tools are those that it has listed

    async def _heard(self, message: object) -> None:
        import mcp_types as types

        news = (
            types.ToolListChangedNotification
            | types.PromptListChangedNotification
            | types.ResourceListChangedNotification
        )
        if isinstance(message, news):
            self._changed()

    async def _note_status(self, response: Any) -> None:
        if response.status_code >= 400:
            self._status = response.status_code

    # --- in words ---------------------------------------------------------------------------------------

    async def _lost(self, error: MCPError) -> Lost | None:
        """What an error is where it means that there will be no answer; None where it is one."""
        text = str(error)
        if self.is_over or text == _CLOSED:
            await asyncio.wait({self._owner}, timeout=_END_S)  # then it is known why
            return Lost(self._why_lost(), sent=not (self._under_way == 1 and self._was_never_reached()))
        if not self._server.url:
            return None
        if text == _SESSION_OVER:  # the server refused: it has forgotten the session
            await self.close()
            return Lost(self._why_lost(), sent=False)
        if text.startswith(_NO_ANSWER) and (self._status in _GATEWAY or text.startswith(_NO_ANSWER[0])):
            return Lost(f"gave no answer: {text}{self._status_words()}", sent=True)
        return None

    def _was_never_reached(self) -> bool:
        from httpx2 import ConnectError, ConnectTimeout

        return any(isinstance(one, ConnectError | ConnectTimeout) for one in _leaves(self._error))

    def _why_lost(self) -> str:
        return f"ended{self._cause()}{self._errors.words()}"

    def _cause(self) -> str:
        causes = [_words(one) for one in _leaves(self._error) if str(one)]
        return f" ({seen(causes[0], 300)})" if causes else ""

    def _status_words(self) -> str:
        return f" (HTTP {self._status})" if self._status else ""

    def _why_unreachable(self) -> str:
        """The first that is known of: the system's word, the server's, or that there was none."""
        leaves = _leaves(self._error)
        for one in leaves:
            if isinstance(one, TimeoutError):
                return f"did not answer within {self._start_s:g} s{self._errors.words()}"
            if isinstance(one, OSError):
                return f"could not be started: {_system_words(one, self._server)}"
        if self._status in (401, 403):
            return f"refused us (HTTP {self._status}): it wants a header, such as Authorization"
        if self._server.url and self._was_never_reached():
            return f"cannot be reached{self._cause()}: does it run, and is the address right?"
        if self._server.url:
            hint = ": is it the address of an MCP endpoint (they often end in /mcp)?"
            return f"does not speak MCP{self._status_words() or self._cause()}{hint}"
        how = "ended before it answered" if any(str(one) == _CLOSED for one in leaves) else "could not be used"
        return f"{how}{'' if how.startswith('ended') else self._cause()}{self._errors.words()}"


def _look_at(owner: asyncio.Task[None]) -> None:
    """How a connection ended is told where it is asked for, and not by the event loop."""
    if not owner.cancelled():
        owner.exception()


def _system_words(error: OSError, server: Server) -> str:
    if server.cwd and not os.path.isdir(server.cwd):
        return f"its folder {server.cwd} is not there"
    if isinstance(error, FileNotFoundError):
        return f"there is no command {server.command[0]!r}: install it, or give its path"
    return error.strerror or str(error)


def _words(error: BaseException) -> str:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"what it sent is not MCP: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}: {error}"


def _leaves(error: BaseException | None) -> list[BaseException]:
    """An error, or those of a group."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [] if error is None or isinstance(error, asyncio.CancelledError) else [error]


# --- the SDK --------------------------------------------------------------------------------------------


def require_sdk() -> None:
    """The SDK is there. What it logs goes to whoever set logging up, and to nobody else.

    Raises:
        MissingExtra: It is not installed.
    """
    if find_spec("mcp") is None:
        raise MissingExtra("MCP", "mcp")
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _version() -> str:
    return version("tenlines")


def _announces(client: Client) -> bool:
    """Whether the server tells of other tools only to those who listen (2026-07-28)."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    tools = client.server_capabilities.tools
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and bool(tools.list_changed)


async def _listing(client: Client) -> Listing:
    """All that the server has."""
    has = client.server_capabilities
    tools = await _pages(client.list_tools, "tools") if has.tools is not None else []
    prompts = await _unless_refused(_pages(client.list_prompts, "prompts")) if has.prompts is not None else None
    return Listing(tuple(tools), tuple(prompts or ()), has.resources is not None and await _has_resources(client))


async def _has_resources(client: Client) -> bool:
    """Whether there is one. Many servers only say that they could have some."""
    listed = await _unless_refused(client.list_resources())
    if listed is not None and listed.resources:
        return True
    made = await _unless_refused(client.list_resource_templates())
    return made is not None and bool(made.resource_templates)


async def _unless_refused(answer: Awaitable[T]) -> T | None:
    """What a server gives; None where it does not know the question, whatever it announced. Its tools are not worse for
    that."""
    from mcp import MCPError

    try:
        return await answer
    except MCPError as error:
        if str(error) == _CLOSED:
            raise
        return None


async def _pages(fetch: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await fetch(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if cursor is None or len(found) > MOST_LISTED:
            break
    return found[:MOST_LISTED]
