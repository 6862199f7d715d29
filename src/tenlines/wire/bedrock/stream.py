"""Assembly of a streamed Converse reply: blocks by their index, each from its start and its deltas."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import JsonObject, JsonValue, Reply, ToolCall
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire.bedrock.binary import data_of, text_of
from tenlines.wire.bedrock.decoding import TOO_DEEP, Reading, Whole, assemble, checked, decode_usage
from tenlines.wire.format import Piece, Written
from tenlines.wire.json_values import obj, string

Kind: TypeAlias = Literal["text", "toolUse", "reasoningContent", "citation", "toolResult", "image"]

KINDS: tuple[Kind, ...] = ("text", "toolUse", "reasoningContent", "citation", "toolResult", "image")


class StreamDecoder:
    """Takes the events in as the SDK gives them: one object each, its one key the name of the event, bytes as base64
    text. Nothing of the reply may be used before `finish` has returned."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._blocks: list[_OpenBlock] = []
        self._by_index: dict[int, _OpenBlock] = {}
        self._ending: JsonObject = {}
        self._is_over = False

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one event.

        Raises:
            MalformedReply: It is not an event of this format.
            RemoteError: It is an exception of the service; what came before it is void.
        """
        shown = Piece()
        for name, data in checked(chunk).items():
            if not isinstance(data, dict):
                continue
            if name == "contentBlockStart":
                self._start(data)
            elif name == "contentBlockDelta":
                shown = self._delta(data)
            elif name == "messageStop":
                self._is_over = True
                self._ending["stopReason"] = data.get("stopReason")
            elif name == "metadata":
                self._ending |= {key: data[key] for key in ("usage", "trace") if key in data}
                shown = Piece(usage=decode_usage(data.get("usage"), []))
        return shown

    def _start(self, data: JsonObject) -> None:
        start = data.get("start")
        for kind in KINDS:
            held = start.get(kind) if isinstance(start, dict) else None
            if isinstance(held, dict):
                self._open(data.get("contentBlockIndex"), kind, held)

    def _delta(self, data: JsonObject) -> Piece:
        delta = data.get("delta")
        for kind in KINDS:
            if isinstance(delta, dict) and delta.get(kind) is not None:
                return self._block(data.get("contentBlockIndex"), kind).take(delta[kind])
        return Piece()

    def _block(self, index: JsonValue, kind: Kind) -> _OpenBlock:
        """The block that a delta belongs to. Only calls are sure to be announced; the others begin with a delta."""
        last = self._blocks[-1] if self._blocks else None
        at = self._by_index.get(index) if type(index) is int else last
        if at is not None and at.takes(kind):
            return at
        return self._open(index, kind, {})

    def _open(self, index: JsonValue, kind: Kind, held: JsonObject) -> _OpenBlock:
        block = _OpenBlock(kind, held)
        self._blocks.append(block)
        if type(index) is int:
            self._by_index[index] = block
        return block

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
            MalformedReply: What came is nested too deeply.
        """
        if not self._is_over:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        pieces = [piece for block in self._blocks if (piece := block.piece()) is not None]
        try:
            return assemble(pieces, self._ending, self._reading, [])
        except RecursionError as error:
            raise MalformedReply(TOO_DEEP) from error


class _OpenBlock:
    """A block of which pieces are arriving."""

    def __init__(self, kind: Kind, start: JsonObject) -> None:
        self._kind, self._start = kind, start
        self._texts: list[str] = []
        self._signatures: list[str] = []
        self._redacted: list[str] = []
        self._items: list[JsonValue] = []

    def takes(self, kind: Kind) -> bool:
        """Whether a delta of a kind may belong to it: citations come between pieces of the text they support."""
        return kind == self._kind or {kind, self._kind} == {"text", "citation"}

    def take(self, value: JsonValue) -> Piece:
        """One delta."""
        if isinstance(value, str):
            self._texts.append(value)
            return Piece(value) if self._kind in ("text", "citation") else Piece()
        if self._kind == "toolUse":
            self._texts.append(_text_in(value, "input"))
            return Piece(written=(Written(string(self._start.get("name")), self._texts[-1]),))
        elif self._kind == "reasoningContent":
            return self._reason(value)
        elif isinstance(value, list):
            self._items += value
        else:
            self._items.append(value)
        return Piece()

    def _reason(self, value: JsonValue) -> Piece:
        text = _text_in(value, "text")
        self._texts.append(text)
        self._signatures.append(_text_in(value, "signature"))
        self._redacted += filter(None, [_text_in(value, "redactedContent")])
        return Piece(reasoning=text)

    def piece(self) -> Whole | None:
        """The block as a whole response would have it; None for one that is empty."""
        text = "".join(self._texts)
        match self._kind:
            case "toolUse":
                return self._call(text)
            case "reasoningContent":
                return self._reasoning(text)
            case "toolResult":
                return Whole({"toolResult": {**self._start, "content": self._items}})
            case "image":
                first = self._items[0] if self._items and isinstance(self._items[0], dict) else {}
                return Whole({"image": {**self._start, **first}})
            case _ if self._items:
                return Whole({"citationsContent": {"content": [{"text": text}], "citations": self._items}})
            case _:
                return Whole({"text": text}) if text else None

    def _call(self, text: str) -> Whole:
        if self._start.get("type"):  # it runs at the service
            return Whole({"toolUse": {**self._start, "input": parse_arguments(text).value or {}}})
        call_id, name = string(self._start.get("toolUseId")), string(self._start.get("name"))
        return Whole({"toolUse": self._start}, ToolCall(call_id, name, text if text.strip() else "{}"))

    def _reasoning(self, text: str) -> Whole | None:
        if self._redacted:
            whole = self._redacted[0]
            if len(self._redacted) > 1:  # pieces of base64 text do not join; the bytes in them do
                whole = text_of(b"".join(map(data_of, self._redacted)))
            return Whole({"reasoningContent": {"redactedContent": whole}})
        held: JsonObject = {"text": text}
        if any(self._signatures):
            held["signature"] = "".join(self._signatures)
        return Whole({"reasoningContent": {"reasoningText": held}}) if text or len(held) > 1 else None


def _text_in(value: JsonValue, key: str) -> str:
    return string(obj(value).get(key))
