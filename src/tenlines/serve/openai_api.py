"""An agent as an OpenAI-compatible endpoint: each request for a chat completion is a run in the journal.

```text
openai_api.py     the addresses, and how an answer is sent: whole or piece by piece
openai_door.py    who may ask: the key, the host, the origin
openai_asked.py   a request, read
openai_runs.py    the run that answers it
openai_told.py    what is said of a run: pieces, completions, chunks
openai_faults.py  errors in OpenAI's shape
```
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection
from typing import NamedTuple

from tenlines.core.events import ModelReplied
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import JsonObject
from tenlines.errors import TenlinesError
from tenlines.ports import SystemClock
from tenlines.serve import openai_told as told
from tenlines.serve.gate import Message, Receive, Scope, Send
from tenlines.serve.openai_asked import Asked, read
from tenlines.serve.openai_door import Door, say, send_json
from tenlines.serve.openai_faults import RUN_HEADER, Fault, bug, ended, fault_of, stopped, unreadable
from tenlines.serve.openai_runs import Offer, Running
from tenlines.serve.openai_told import Chunks, End, Head, Said, Teller
from tenlines.trace.text import one_line

LARGEST_BODY = 32_000_000
"""Bytes of a request; images stand in it."""
ALIVE_S = 10.0
"""A stream in which nothing happens for so many seconds is sent a comment."""
GONE = "the client has gone"

_log = logging.getLogger("tenlines")


class Endpoint(NamedTuple):
    """The server, and how all runs that are under way are stopped."""

    app: Door
    end: Callable[[], None]


def endpoint(offer: Offer, key: str, port: int, origins: Collection[str] = ()) -> Endpoint:
    """The server.

    Args:
        key: What clients send as `Authorization: Bearer KEY`.
        port: Where it listens.
        origins: Pages of which origins may ask, from within a browser.
    """
    site = _Site(offer)
    return Endpoint(Door(site, key, port, origins), site.end)


class _Site:
    """Answers requests that the door has let in."""

    def __init__(self, offer: Offer) -> None:
        self._offer, self._began = offer, int(SystemClock().now())
        self._running: set[Running] = set()
        self._is_ending = False

    def end(self) -> None:
        """Stop all runs, and begin no other."""
        self._is_ending = True
        for one in tuple(self._running):
            one.stop("the server was ended")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self._answer(scope, receive, send)
        except TenlinesError as error:
            await say(send, fault_of(error) or bug())
        except Exception:
            await say(send, bug())
            raise  # the server writes it down

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, models = scope["path"].rstrip("/"), told.model(self._offer.name, self._began)
        match scope["method"], path:
            case "POST", "/v1/chat/completions":
                await self._complete(receive, send)
            case "GET", "/v1/models":
                await send_json(send, 200, _encoded({"object": "list", "data": [models]}))
            case "GET", _ if path.startswith("/v1/models/"):
                self._check_model(path.removeprefix("/v1/models/"))
                await send_json(send, 200, _encoded(models))
            case _:
                raise _no_such_address(scope["method"], path)

    def _check_model(self, name: str) -> None:
        if not name:
            raise unreadable("model", f"name the agent: {self._offer.name}")
        if name != self._offer.name:
            text = f"there is no model {one_line(name, 80)!r} here; the agent is called {self._offer.name!r}"
            raise Fault(404, text, code="model_not_found", param="model")

    async def _complete(self, receive: Receive, send: Send) -> None:
        """Answer by a run. It is stopped when the client goes."""
        asked = read(await _body(receive))
        self._check_model(asked.model)
        if self._is_ending:
            raise ended()
        run = Running(self._offer, asked)
        self._running.add(run)
        work, gone = asyncio.ensure_future(self._run(run, asked, send)), asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            work.cancel()
            gone.cancel()
            await run.close(GONE)
            self._running.discard(run)

    async def _run(self, run: Running, asked: Asked, send: Send) -> None:
        await run.begin()
        reply = _Reply(run, self._offer, asked, lambda: self._is_ending)
        await (reply.stream(send) if asked.stream else reply.whole(send))


class _Reply:
    """The answer of one run, as it is sent."""

    def __init__(self, run: Running, offer: Offer, asked: Asked, is_ending: Callable[[], bool]) -> None:
        self._run, self._offer, self._asked, self._is_ending = run, offer, asked, is_ending
        self._redaction = offer.redaction()
        self._teller = Teller(offer.shows_steps, self._redaction)

    async def whole(self, send: Send) -> None:
        """As one object."""
        said = [one async for one in self._heard() if one is not None]
        end, rest = self._end()
        said += rest
        joined = Said("".join(one.content for one in said), "".join(one.reasoning for one in said))
        await send_json(send, 200, _encoded(told.completion(self._head(), joined, end)), self._names())

    async def stream(self, send: Send) -> None:
        """Piece by piece. Nothing is sent before it is seen that the run gets somewhere: until then, what goes wrong
        has a status of its own."""
        chunks: Chunks | None = None
        try:
            async for said in self._heard():
                chunks = chunks or await self._open(send)
                await send(_line(b": at work" if said is None else _data(chunks.piece(said))))
            end, rest = self._end()
            chunks = chunks or await self._open(send)
            for said in rest:
                await send(_line(_data(chunks.piece(said))))
            lines = [*map(_data, chunks.last(end)), b"data: [DONE]"]
        except Exception as error:
            if chunks is None:
                raise
            lines = [_data(_fault_within(error).body)]
        await send(_line(*lines, is_last=True))

    async def _open(self, send: Send) -> Chunks:
        headers = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no", **self._names()}
        listed = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": listed})
        chunks = Chunks(self._head(), self._asked.with_usage)
        await send(_line(_data(chunks.first())))
        return chunks

    async def _heard(self) -> AsyncIterator[Said | None]:
        """The pieces of the reply, until the run is over; None where there is none and the run is at work."""
        while True:
            try:
                seen = await self._run.next(ALIVE_S)
            except TimeoutError:
                if self._run.run_id:
                    yield None
                continue
            if seen is None:
                return
            for said in self._teller.take(seen):
                yield said
            if isinstance(seen, ModelReplied) and seen.reply.calls:
                yield None

    def _end(self) -> tuple[End, list[Said]]:
        """What the run came to, and what is still to be said of it.

        Raises:
            Fault: There is no answer.
        """
        result = self._run.result()
        end = End(result, encodable(self._redaction.text(result.reason)))
        if result.status not in told.FINISH:
            way_on = self._offer.way_on(result)
            if result.status == "cancelled" and self._is_ending():
                raise ended(result.run_id, way_on)
            raise stopped(result, end.reason, self._teller.failure, way_on)
        if result.status == "awaiting_approval":
            text = told.waiting(result, self._redaction, self._offer.decide(result))
        else:
            text = self._teller.reply if result.answer is None else result.answer
        return end, list(self._teller.end(text))

    def _head(self) -> Head:
        created = self._run.began_at or SystemClock().now()
        return Head(self._run.run_id, int(created), self._offer.name)

    def _names(self) -> dict[str, str]:
        return {RUN_HEADER: self._run.run_id, "x-request-id": self._run.run_id}


# --- requests and responses ---------------------------------------------------------------------------


async def _body(receive: Receive) -> bytes:
    """The body of a request.

    Raises:
        Fault: It is too large, or the client has gone.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise unreadable("", GONE)
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            raise Fault(413, f"the request has more than {LARGEST_BODY:,} bytes", code="request_too_large")
        if not message.get("more_body"):
            return bytes(body)


async def _gone(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


_KNOWN = {"/v1/chat/completions": "POST", "/v1/models": "GET"}


def _no_such_address(method: str, path: str) -> Fault:
    if path in _KNOWN:
        return Fault(405, f"{path} takes {_KNOWN[path]}, not {method}", headers={"allow": _KNOWN[path]})
    known = " and ".join(f"{one} {way}" for way, one in _KNOWN.items())
    hint = "; the base URL of a client ends in /v1" if f"/v1{path}" in _KNOWN else ""
    return Fault(404, f"there is no {one_line(path, 80) or '/'} here: there are {known}{hint}", code="unknown_url")


def _fault_within(error: Exception) -> Fault:
    """What is said of an exception in a stream that has begun."""
    fault = fault_of(error)
    if fault is None:
        _log.error("a run could not be answered for", exc_info=error)
    return fault or bug()


def _encoded(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _data(value: JsonObject) -> bytes:
    return b"data: " + _encoded(value)


def _line(*lines: bytes, is_last: bool = False) -> Message:
    body = b"".join(line + b"\n\n" for line in lines)
    return {"type": "http.response.body", "body": body, "more_body": not is_last}
