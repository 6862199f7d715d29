"""Assembly of a streamed reply. The events are told apart by the `type` in their data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire.anthropic.blocks import PROVIDER
from tenlines.wire.anthropic.decoding import assemble, checked, decode_usage
from tenlines.wire.format import Piece, Written
from tenlines.wire.json_values import excerpt, string


class StreamDecoder:
    """Assembles a streamed reply. Nothing of it may be used before `finish` has returned."""

    def __init__(self, provider: str = PROVIDER, model: str = "", own_name: Callable[[str], str] = str) -> None:
        self._origin, self._own_name = Opaque(provider, model, None), own_name
        self._message: JsonObject = {}
        self._usage: JsonObject = {}
        self._blocks: dict[int, _OpenBlock] = {}
        self._order: list[_OpenBlock] = []
        self._remarks: list[str] = []
        self._has_ended = False

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in the data of one event. Pings and events yet to be invented say nothing.

        Raises:
            MalformedReply: It is not an event of this format.
            RemoteError: It is an error; what came before it is void.
        """
        data = checked(chunk)
        kind = data.get("type")
        if kind == "message_start":
            return self._start(data, chunk)
        if kind == "content_block_start":
            return self._open(data, chunk)
        if kind == "content_block_delta":
            return self._add(data, chunk)
        if kind == "message_delta":
            return self._end(data)
        if kind == "message_stop":
            self._has_ended = True
        return Piece()

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
            MalformedReply: There was no message in it, or one that is nested too deeply.
        """
        if not self._has_ended:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        if not (self._message or self._order):
            raise MalformedReply("the stream held no message")
        blocks = [block.close() for block in self._order]
        is_whole = all(block.is_whole for block in self._order)
        message = {**self._message, "content": list[JsonValue](blocks), "usage": self._usage}
        return assemble(message, self._origin, self._own_name, list(self._remarks), is_whole=is_whole)

    def _start(self, data: JsonObject, chunk: JsonValue) -> Piece:
        message = data.get("message")
        if not isinstance(message, dict):
            raise MalformedReply("the stream starts without a message", excerpt(chunk))
        self._message = {**message, "stop_reason": None}
        return self._merge_usage(message.get("usage"))

    def _open(self, data: JsonObject, chunk: JsonValue) -> Piece:
        block = data.get("content_block")
        if not isinstance(block, dict):
            raise MalformedReply("a block of the stream is not an object", excerpt(chunk))
        self._begin(data.get("index"), _OpenBlock(block))
        return Piece(text=string(block.get("text")), reasoning=string(block.get("thinking")))

    def _begin(self, index: JsonValue, block: _OpenBlock) -> None:
        self._order.append(block)
        self._blocks[index if type(index) is int else len(self._order) - 1] = block

    def _add(self, data: JsonObject, chunk: JsonValue) -> Piece:
        delta = data.get("delta")
        if not isinstance(delta, dict):
            raise MalformedReply("a piece of a block of the stream is not an object", excerpt(chunk))
        index = data.get("index")
        block = self._blocks.get(index) if type(index) is int else (self._order[-1] if self._order else None)
        if block is None:
            block = _block_for(delta)
            if block is None:
                raise MalformedReply("the stream goes on with a block that it never began", excerpt(chunk))
            self._begin(index, block)
        return block.add(delta)

    def _end(self, data: JsonObject) -> Piece:
        delta = data.get("delta")
        for key, value in delta.items() if isinstance(delta, dict) else ():
            if value is not None:
                self._message[key] = value
        if isinstance(data.get("input_transformations"), list):
            self._message["input_transformations"] = data["input_transformations"]
        self._has_ended = self._has_ended or bool(self._message.get("stop_reason"))
        return self._merge_usage(data.get("usage"))

    def _merge_usage(self, usage: JsonValue) -> Piece:
        """Counts are cumulative: a later one replaces an earlier one."""
        if not isinstance(usage, dict):
            return Piece()
        self._usage.update({key: value for key, value in usage.items() if value is not None})
        return Piece(usage=decode_usage(self._usage, []))


class _Delta(NamedTuple):
    """Which field of a piece is added to which field of its block."""

    source: str
    target: str


_DELTAS = {
    "text_delta": _Delta("text", "text"),
    "thinking_delta": _Delta("thinking", "thinking"),
    "signature_delta": _Delta("signature", "signature"),
    "citations_delta": _Delta("citation", "citations"),
    "input_json_delta": _Delta("partial_json", "input"),
    "compaction_delta": _Delta("content", "content"),
}


class _OpenBlock:
    """A block of which pieces are arriving. It begins with a placeholder that has all its fields."""

    def __init__(self, start: JsonObject) -> None:
        self._block = dict(start)
        self._pieces: dict[str, list[str]] = {}
        self._input: list[str] = []
        self.is_whole = True

    def add(self, delta: JsonObject) -> Piece:
        """The next piece, and what of it is for eyes."""
        kind = delta.get("type")
        known = _DELTAS.get(kind) if isinstance(kind, str) else None
        if known is None:
            self.is_whole = False
            return Piece()
        value = delta.get(known.source)
        if kind == "citations_delta":
            held = self._block.get("citations")
            self._block["citations"] = [*held, value] if isinstance(held, list) else [value]
        elif kind == "signature_delta":
            self._block["signature"] = value
        elif kind == "compaction_delta":
            self._block.update({key: one for key, one in delta.items() if key != "type" and one is not None})
        elif isinstance(value, str):
            (self._input if kind == "input_json_delta" else self._text(known.target)).append(value)
        text = string(value)
        if kind == "input_json_delta":
            return Piece(written=(Written(string(self._block.get("name")), text),))
        return Piece(text if kind == "text_delta" else "", text if kind == "thinking_delta" else "")

    def close(self) -> JsonObject:
        """The whole block. The input of a call stays the text that came: it need not be JSON."""
        block = {**self._block, **{field: "".join(pieces) for field, pieces in self._pieces.items()}}
        raw = "".join(self._input)
        if not raw.strip():
            return block
        if block.get("type") == "tool_use":
            return {**block, "input": raw}
        try:
            return {**block, "input": json.loads(raw)}
        except (ValueError, RecursionError):
            self.is_whole = False
            return block

    def _text(self, field: str) -> list[str]:
        if field not in self._pieces:
            self._pieces[field] = [string(self._block.get(field))]
        return self._pieces[field]


def _block_for(delta: JsonObject) -> _OpenBlock | None:
    """A block that was never announced, for the kinds that need no announcement."""
    kind = delta.get("type")
    if kind == "text_delta":
        return _OpenBlock({"type": "text", "text": ""})
    return _OpenBlock({"type": "thinking", "thinking": ""}) if kind == "thinking_delta" else None
