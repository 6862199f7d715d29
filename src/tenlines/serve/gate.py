"""Who is let in. Every request passes here first, and every answer leaves with the same headers.

What it keeps out:

* a page of another origin, which a browser on this machine has open: by the host that it names (a name that was made to
  point to this machine), by where a browser says that a request comes from, and, for what changes something, by a token
  that stands in our pages alone;
* another user or program of this machine that does not know the token of the address.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs

from tenlines.errors import JournalError, RunNotFound, TenlinesError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
NO_CONTENT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of an answer that is no page."""
CSRF_HEADER = "x-tenlines-page"
"""Where a request that changes something carries the token of the page that it comes from."""

_log = logging.getLogger("tenlines")


class Refusal(NamedTuple):
    """Why a request is not let in."""

    status: int
    text: str


class Secrets:
    """The token of the address, and what is made from it.

    Args:
        token: Known to whoever was told the address.
        port: Where the server listens. Cookies know no ports, so theirs has it in its name.
    """

    def __init__(self, token: str, port: int) -> None:
        self._token, self.cookie_name = token, f"tenlines-{port}"
        self.cookie, self.csrf = self._made("cookie"), self._made("page")

    def _made(self, purpose: str) -> str:
        return hmac.new(self._token.encode(), purpose.encode(), hashlib.sha256).hexdigest()

    def knows_token(self, given: str) -> bool:
        """Whether this is the token of the address."""
        return same(given, self._token)

    def knows_cookie(self, header: str) -> bool:
        """Whether these cookies have the one that stands for the token."""
        pairs = (pair.strip().partition("=") for pair in header.split(";"))  # whatever else stands among them
        return any(name == self.cookie_name and same(value, self.cookie) for name, _, value in pairs)

    def knows_page(self, given: str) -> bool:
        """Whether this is the token that stands in our pages."""
        return same(given, self.csrf)


def own_hosts(port: int) -> frozenset[str]:
    """How a client on this machine names the server; by another name it was led here."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


def same(given: str, wanted: str) -> bool:
    """Compared in a time that does not say where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def refused(scope: Scope, secrets: Secrets, hosts: frozenset[str]) -> Refusal | None:
    """Why a request is not let in; None where it is.

    Args:
        hosts: The names under which the server may be asked, each with its port.
    """
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    is_post = scope["method"] not in ("GET", "HEAD")
    if headers.get("host", "") not in hosts:
        return Refusal(421, "This server answers to 127.0.0.1 and localhost alone.")
    if not _is_ours(headers, hosts, is_post=is_post):
        return Refusal(403, "Requests of other origins are refused.")
    if not is_post and is_entrance(scope, secrets):
        return None
    if not secrets.knows_cookie(headers.get("cookie", "")):
        return Refusal(401, "Open the address that `tenlines serve` has printed: it holds a token.")
    if is_post and not secrets.knows_page(headers.get(CSRF_HEADER, "")):
        return Refusal(403, "The request does not come from a page of this server; load the page again.")
    return None


def _is_ours(headers: dict[str, str], hosts: frozenset[str], *, is_post: bool) -> bool:
    """Whether a request comes from a page of ours, or from nobody's.

    A browser says from where (`Sec-Fetch-Site`); another port of this machine is `same-site`, and not ours. From
    anywhere a person may follow a link to here, which shows him a page and changes nothing.
    """
    origin = headers.get("origin")
    if origin is None:
        if is_post:
            return False
    elif origin.removeprefix("http://") not in hosts or not origin.startswith("http://"):
        return False
    site = headers.get("sec-fetch-site", "none")
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return site == "same-origin" or (not is_post and (site == "none" or is_link))


def is_entrance(scope: Scope, secrets: Secrets) -> bool:
    """Whether a request is for the address that was printed, with the right token."""
    given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
    return scope["path"] == "/" and len(given) == 1 and secrets.knows_token(given[0])


class Gate:
    """The outermost part of the server."""

    def __init__(self, app: App, secrets: Secrets, hosts: frozenset[str]) -> None:
        self._app, self._secrets, self._hosts = app, secrets, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message = {**message, "headers": _completed(message.get("headers", ()))}
            await send(message)

        if refusal := refused(scope, self._secrets, self._hosts):
            await _say(with_headers, refusal)
            return
        try:
            await self._app(scope, receive, with_headers)
        except Exception as error:
            if has_begun:
                raise
            await _say(with_headers, _excuse(error))


def _completed(headers: Any) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    names = {name.lower() for name, _ in given}
    ours = [*HEADERS, ("Content-Security-Policy", NO_CONTENT)]
    missing = [(name, value) for name, value in ours if name.lower().encode() not in names]
    return [*given, *((name.encode(), value.encode()) for name, value in missing)]


def _excuse(error: Exception) -> Refusal:
    """What is said of an error. Which page it was is in the address; what went wrong inside, in the log alone."""
    if isinstance(error, RunNotFound):
        return Refusal(404, str(error))
    if isinstance(error, TenlinesError):
        return Refusal(503 if isinstance(error, JournalError) else 400, str(error))
    _log.error("a page could not be made", exc_info=error)
    return Refusal(500, "This is a bug in tenlines. What happened was written where `tenlines serve` runs.")


async def _say(send: Send, refusal: Refusal) -> None:
    body = f"{refusal.text}\n".encode("utf-8", "replace")
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
