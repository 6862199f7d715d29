"""Who may ask the agent: whoever has the key, names this machine, and comes from no page but those that are allowed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from tenlines.serve.gate import HEADERS, NO_CONTENT, App, Message, Receive, Scope, Send, own_hosts, same
from tenlines.serve.openai_faults import RUN_HEADER, Fault

_NAMES = re.compile(r"[A-Za-z0-9-]+(?:\s*,\s*[A-Za-z0-9-]+)*")


class Door:
    """The outermost part of the server.

    Args:
        key: What a client sends as `Authorization: Bearer KEY`.
        port: Where the server listens.
        origins: Pages of which origins may ask, from within a browser.
    """

    def __init__(self, app: App, key: str, port: int, origins: Collection[str] = ()) -> None:
        self._app, self._key, self._origins = app, key, frozenset(origins)
        self._hosts = own_hosts(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        ours = self._headers(headers)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *ours]}
            await send(message)

        if fault := self._misplaced(headers):
            await say(with_headers, fault)
        elif scope["method"] == "OPTIONS" and "origin" in headers:
            await with_headers({"type": "http.response.start", "status": 204, "headers": _preflight(headers)})
            await with_headers({"type": "http.response.body"})
        elif not self._knows(headers.get("authorization", "")):
            await say(with_headers, WRONG_KEY)
        else:
            await self._app(scope, receive, with_headers)

    def _misplaced(self, headers: Mapping[str, str]) -> Fault | None:
        """Why nobody is let in from there."""
        if headers.get("host", "") not in self._hosts:
            return Fault(421, "This server answers to 127.0.0.1 and localhost alone.", code="wrong_host")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            told = f"Pages of {origin} may not ask: the server was started without --allow-origin {origin}"
            return Fault(403, told, code="origin_not_allowed")
        return None

    def _knows(self, given: str) -> bool:
        scheme, _, key = given.strip().partition(" ")
        is_ours = same(key.strip(), self._key)
        return scheme.lower() == "bearer" and is_ours

    def _headers(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        origin = headers.get("origin", "")
        told = dict(HEADERS) | {"Content-Security-Policy": NO_CONTENT, "Vary": "Origin"}
        if origin in self._origins:
            told |= {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Expose-Headers": f"{RUN_HEADER}, x-request-id",
            }
        return [(name.lower().encode(), value.encode("latin-1")) for name, value in told.items()]


WRONG_KEY = Fault(
    401,
    "Incorrect API key: send the one that `tenlines serve --openai` has printed, as `Authorization: Bearer KEY`.",
    code="invalid_api_key",
    headers={"www-authenticate": "Bearer"},
)


def _preflight(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """What a browser asks before it lets a page of another origin ask."""
    wanted = headers.get("access-control-request-headers", "")
    allowed = wanted if _NAMES.fullmatch(wanted) else "authorization, content-type"
    told = {"methods": "GET, POST", "headers": allowed}
    if "access-control-request-private-network" in headers:
        told["private-network"] = "true"
    return [(f"access-control-allow-{name}".encode(), value.encode()) for name, value in told.items()]


async def say(send: Send, fault: Fault) -> None:
    """Answer with a fault."""
    await send_json(send, fault.status, fault.text, fault.headers)


async def send_json(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Answer with JSON."""
    told = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    listed = [(name.encode(), value.encode("latin-1", "replace")) for name, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
