"""Server-sent events out of bytes, however they are cut: what every streaming provider but Bedrock speaks."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, NamedTuple

from tenlines.core.transcript import JsonValue
from tenlines.models.session import Heard, Whole, is_whole
from tenlines.wire.errors import error_from


class Event(NamedTuple):
    """One event."""

    name: str
    data: str


class EventReader:
    """Cuts a byte stream into events. Any of the three line ends will do; comments are skipped.

    Both methods raise UnicodeDecodeError for what is no UTF-8.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_return = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that end in this piece."""
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]  # the second half of a line end that was cut in two
        self._after_return = piece.endswith(b"\r") or (self._after_return and not piece)
        if b"\n" not in piece and b"\r" not in piece:
            self._line += piece
            return
        lines = (bytes(self._line) + piece).splitlines(keepends=True)
        self._line = bytearray() if lines[-1].endswith((b"\n", b"\r")) else bytearray(lines.pop())
        for line in lines:
            yield from self._take(line.rstrip(b"\r\n").decode())

    def rest(self) -> Event | None:
        """The event that was begun when the stream ended, without the blank line that should close it."""
        if self._line:
            list(self._take(self._line.decode()))
        event = Event(self._name, "\n".join(self._data))
        return event if event.data else None

    def _take(self, line: str) -> Iterator[Event]:
        if not line:
            if self._data:
                yield Event(self._name, "\n".join(self._data))
            self._name, self._data = "", []
            return
        field, _, value = line.removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value


class ChunkReader:
    """The chunks in a stream of events: the JSON of their data. `is_done` after OpenAI's closing word."""

    def __init__(self) -> None:
        self._events = EventReader()
        self.is_done = False

    def feed(self, piece: bytes) -> Iterator[JsonValue]:
        """The chunks that end in this piece.

        Raises:
            RemoteError: An event says that the server failed.
            ValueError: It is no JSON or no UTF-8.
        """
        for event in self._events.feed(piece):
            if event.data.startswith("[DONE]"):
                self.is_done = True
            if self.is_done:
                return
            if event.name == "error":
                raise error_from(None, _parsed_or_text(event.data), {})
            if event.data.strip() and event.name != "ping":
                yield json.loads(event.data)

    def rest(self) -> Iterator[JsonValue]:
        """A last chunk that lacks its blank line. Half a chunk is none: the stream was cut."""
        try:
            event = None if self.is_done else self._events.rest()
            chunk = json.loads(event.data) if event else None
        except (ValueError, RecursionError):
            return
        if isinstance(chunk, dict | list):
            yield chunk


def _parsed_or_text(data: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return value


# --- responses of HTTP libraries ----------------------------------------------------------------------


def heard(response: Any, pieces: Iterator[bytes]) -> Iterator[Heard]:
    """What a response to a request for a stream says: its chunks, or the whole that came instead.

    Args:
        response: Of `httpx`, or of a library like it: it has `headers`.
        pieces: Its body.

    Raises:
        RemoteError: An event says that the server failed, or it is a web page.
        ValueError: It is no JSON or no UTF-8.
    """
    if is_whole(response.headers.get("content-type", "")):
        yield Whole(json.loads(b"".join(pieces)))
        return
    reader = ChunkReader()
    for piece in pieces:
        yield from reader.feed(piece)
        if reader.is_done:
            return  # as the official SDK does; waiting for the end of the body may take for ever
    yield from reader.rest()


async def aheard(response: Any, pieces: AsyncIterator[bytes]) -> AsyncGenerator[Heard, None]:
    """`heard` for asyncio."""
    if is_whole(response.headers.get("content-type", "")):
        yield Whole(json.loads(b"".join([piece async for piece in pieces])))
        return
    reader = ChunkReader()
    async for piece in pieces:
        for chunk in reader.feed(piece):
            yield chunk
        if reader.is_done:
            return
    for chunk in reader.rest():
        yield chunk
