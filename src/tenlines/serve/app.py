"""The addresses: pages, streams of changes, and what a person does."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote

import msgspec

from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, MissingExtra, TenlinesError
from tenlines.report import Reading
from tenlines.report.reading import NextMoves
from tenlines.serve import acts, pages
from tenlines.serve.acts import Hands, Told
from tenlines.serve.boards import read_mark
from tenlines.serve.gate import Gate, Secrets, is_entrance, own_hosts
from tenlines.serve.sights import Run, Runs
from tenlines.serve.tails import Tail, Tails
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import clean

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST_BODY = 1_000_000
"""Bytes of what a person may send at once."""

Act: TypeAlias = Callable[[Hands, str, Mapping[str, str]], Told]


class Setup(NamedTuple):
    """What is served, and in whose name."""

    hands: Hands
    redaction: Callable[[], Redaction]
    """Makes what takes secrets out of a run."""
    moves: NextMoves
    """What can be done about a run."""


class Served(NamedTuple):
    """The server, and how all who watch are let go."""

    app: Gate
    end: Callable[[], None]


def application(setup: Setup, token: str, port: int) -> Served:
    """The server.

    Args:
        token: That of the address.
        port: Where it listens.

    Raises:
        MissingExtra: Starlette or Jinja is not installed.
    """
    try:
        from starlette.routing import Route, Router
    except ImportError as error:
        raise MissingExtra("the live pages", "serve") from error
    pages.environment()
    site = _Site(setup, Secrets(token, port))
    one = "/runs/{run_id}"
    routes = [
        Route("/", site.runs),
        Route("/events", site.runs_events),
        *(Route(f"{one}/{name}", partial(site.act, act), methods=["POST"]) for name, act in _ACTS.items()),
        Route(f"{one}/edit", partial(site.act, None), methods=["POST"]),
        Route(f"{one}/events", site.run_events),
        Route(one, site.run),
    ]
    return Served(Gate(Router(routes), site.secrets, own_hosts(port)), site.end)


_ACTS: dict[str, Act] = {"approve": acts.approve, "deny": acts.deny, "cancel": acts.cancel, "say": acts.say}


class _Site:
    """Answers requests that the gate has let in."""

    def __init__(self, setup: Setup, known: Secrets) -> None:
        self._setup, self.secrets = setup, known
        self._list: Tails[Runs] = Tails()
        self._runs: Tails[Run] = Tails()

    def end(self) -> None:
        """Let everybody go who watches."""
        self._list.end()
        self._runs.end()

    # --- pages ---

    async def runs(self, request: Request) -> Response:
        """The list of runs; for somebody who comes with the token, the cookie that stands for it."""
        if is_entrance(request.scope, self.secrets):
            return self._entrance()
        tail = await self._listed()
        return await self._page(tail.sight.page)

    async def run(self, request: Request) -> Response:
        """The page of a run."""
        tail = await self._tail(_run_id(request))
        return await self._page(tail.sight.page)

    def _entrance(self) -> Response:
        """A page that leads on: a redirect would be part of a request that another site may have begun, for which a
        browser keeps the cookie back."""
        from starlette.responses import HTMLResponse

        response = HTMLResponse(pages.entrance())
        response.set_cookie(self.secrets.cookie_name, self.secrets.cookie, path="/", httponly=True, samesite="strict")
        return response

    async def _page(self, made: Callable[[pages.Asked], str]) -> Response:
        from starlette.responses import HTMLResponse

        asked = pages.Asked(secrets.token_urlsafe(16), self.secrets.csrf)
        html = await in_thread(partial(made, asked))
        body = html.encode("utf-8", "backslashreplace")
        return HTMLResponse(body, headers={"Content-Security-Policy": pages.policy(asked.nonce)})

    # --- what changes ---

    async def runs_events(self, request: Request) -> Response:
        """The list, as it changes."""
        return _stream(await self._listed(), request)

    async def run_events(self, request: Request) -> Response:
        """A run, as it goes on."""
        return _stream(await self._tail(_run_id(request)), request)

    async def _listed(self) -> Tail[Runs]:
        found = self._list.find("")
        if found is None:
            hands = self._setup.hands
            found = Tail(Runs(hands.journal, hands.clock, self._setup.redaction()))
        await found.look()
        return self._list.keep("", found)

    async def _tail(self, run_id: str) -> Tail[Run]:
        found = self._runs.find(run_id)
        if found is None:
            hands, setup = self._setup.hands, self._setup
            read = partial(_reading, setup)
            found = Tail(Run(hands.journal, run_id, hands.clock, read, partial(hands.go_on, run_id)))
        await found.look()
        return self._runs.keep(run_id, found)

    # --- what a person does ---

    async def act(self, act: Act | None, request: Request) -> Response:
        """Do it, and say what came of it."""
        run_id = _run_id(request)
        try:
            form = await _form(request)
            if act is None:
                redaction = (await self._tail(run_id)).sight.redaction
                act = partial(acts.edit, redaction=redaction)
            told = await in_thread(partial(act, self._setup.hands, run_id, form))
        except KeyError as missing:
            return _told(Told(f"The request lacks {missing.args[0]}; load the page again."), 400)
        except ConfigError as error:
            return _told(Told(clean(str(error))), 400)
        except TenlinesError as error:
            return _told(Told(clean(str(error))), 409)
        return _told(told, 200)


def _reading(setup: Setup) -> Reading:
    return Reading(setup.redaction(), moves=setup.moves)


def _run_id(request: Request) -> str:
    return unquote(request.path_params["run_id"])


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form.

    Raises:
        ConfigError: It is none, or too large.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise ConfigError("this is no form of a page of ours")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise ConfigError(f"that is more than {LARGEST_BODY:,} bytes; use the command line")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _told(told: Told, status: int) -> Response:
    from starlette.responses import Response

    return Response(msgspec.json.encode(told._asdict()), status, media_type="application/json")


def _stream(tail: Tail[Any], request: Request) -> Response:
    """Server-sent events. After each group of pieces the mark of who has them, which a browser sends back."""
    from starlette.responses import StreamingResponse

    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return StreamingResponse(_sent(tail, given), media_type="text/event-stream")


async def _sent(tail: Tail[Any], after: str) -> AsyncIterator[bytes]:
    yield b": hello\n\n"
    async with aclosing(tail.follow(read_mark(after))) as news:
        async for mark, pieces in news:
            for piece in pieces:
                yield b"event: piece\ndata: %b\n\n" % msgspec.json.encode(piece)
            name = str(mark).encode()
            yield b"event: mark\nid: %b\ndata: %b\n\n" % (name, name) if pieces else b": still here\n\n"
    if tail.failure:
        yield b"event: over\ndata: %b\n\n" % msgspec.json.encode(clean(tail.failure))
