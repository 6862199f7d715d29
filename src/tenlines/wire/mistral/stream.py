"""Assembly of a streamed reply: text and thoughts in pieces, calls mostly whole."""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire.format import Piece
from tenlines.wire.json_values import excerpt, items, string
from tenlines.wire.mistral.decoding import NO_ID, TOO_DEEP, Reading, assemble, checked, chunks_of, decode_usage
from tenlines.wire.openai_chat.stream import CallAssembly


class StreamDecoder:
    """Assembles a streamed reply. Nothing of it may be used before `finish` has returned."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._chunks = _Chunks()
        self._calls = CallAssembly()
        self._ending: JsonObject = {}

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one chunk.

        Raises:
            MalformedReply: It is not a chunk of this format.
            RemoteError: It is an error object; what came before it is void.
        """
        data = checked(chunk)
        for field in ("model", "usage"):
            if data.get(field):
                self._ending[field] = data[field]
        usage = decode_usage(data.get("usage"), [])
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices:
            return Piece(usage=usage)
        choice = choices[0]
        if not isinstance(choice, dict):
            raise MalformedReply("a chunk of the stream has a choice that is not an object", excerpt(chunk))
        if choice.get("finish_reason"):
            self._ending["finish_reason"] = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return Piece(usage=usage)
        entries: list[JsonValue] = [_unnumbered(entry) for entry in items(delta.get("tool_calls"))]
        written = self._calls.written(entries, chunk)
        text, reasoning = self._chunks.take(delta.get("content"))
        return Piece(text, reasoning, usage, written)

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
            MalformedReply: What came is nested too deeply.
            RemoteError: It ended with an error.
        """
        if "finish_reason" not in self._ending:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        remarks: list[str] = []
        calls, _ = self._calls.finish(remarks)
        try:
            return assemble(self._chunks.whole, calls, self._ending, self._reading, remarks)
        except RecursionError as error:
            raise MalformedReply(TOO_DEEP) from error


def _unnumbered(entry: JsonValue) -> JsonValue:
    """An entry whose id is a placeholder, without it."""
    return {**entry, "id": None} if isinstance(entry, dict) and entry.get("id") == NO_ID else entry


class _Chunks:
    """Content that arrives in pieces: neighbours of a kind are one chunk, as in a whole response."""

    def __init__(self) -> None:
        self._held: list[_OpenChunk] = []

    @property
    def whole(self) -> list[JsonObject]:
        """The chunks so far."""
        return [chunk.whole() for chunk in self._held]

    def take(self, content: JsonValue) -> tuple[str, str]:
        """Text or chunks of one delta; gives what can be shown: text and reasoning."""
        text, reasoning = "", ""
        for chunk in chunks_of(content):
            if not (self._held and self._held[-1].join(chunk)):
                self._held.append(_OpenChunk(chunk))
            text += _said(chunk.get("text"))
            reasoning += _thought(chunk.get("thinking"))
        return text, reasoning


class _OpenChunk:
    """A chunk that may go on."""

    def __init__(self, first: JsonObject) -> None:
        self._first = first
        self._texts: list[str] = []
        self._thoughts: list[JsonValue] = []
        self._more: JsonObject = {}
        self._kind = first.get("type") if _goes_on(first) else None
        if self._kind is not None:
            self._add(first)

    def join(self, chunk: JsonObject) -> bool:
        """Take a chunk in, if it goes on with this one."""
        if self._kind is None or chunk.get("type") != self._kind or not _goes_on(chunk):
            return False
        if self._more.get("closed") is True:
            return False
        self._add(chunk)
        return True

    def _add(self, chunk: JsonObject) -> None:
        self._more |= {key: value for key, value in chunk.items() if key not in ("type", "text", "thinking")}
        self._texts.append(_said(chunk.get("text")))
        thinking = chunk.get("thinking")
        self._thoughts += thinking if isinstance(thinking, list) else [thinking]

    def whole(self) -> JsonObject:
        """The chunk as a whole response would have it."""
        if self._kind == "text":
            return {"type": "text", "text": "".join(self._texts), **self._more}
        if self._kind == "thinking":
            return {"type": "thinking", "thinking": _merged(self._thoughts), **self._more}
        return self._first


def _goes_on(chunk: JsonObject) -> bool:
    if chunk.get("type") == "text":
        return isinstance(chunk.get("text"), str)
    return chunk.get("type") == "thinking" and isinstance(chunk.get("thinking"), str | list)


def _merged(thoughts: list[JsonValue]) -> JsonValue:
    """Thoughts without seams: texts side by side are one. Those that came as bare text stay that."""
    if all(isinstance(one, str) for one in thoughts):
        return "".join(map(_said, thoughts))
    merged: list[JsonValue] = []
    run: list[str] = []
    for one in [*thoughts, None]:
        is_text = isinstance(one, dict) and set(one) == {"type", "text"} and isinstance(one["text"], str)
        if isinstance(one, dict) and is_text:
            run.append(_said(one["text"]))
            continue
        if run:
            merged.append({"type": "text", "text": "".join(run)})
            run = []
        if one is not None:
            merged.append(one)
    return merged


def _said(value: JsonValue) -> str:
    return string(value)


def _thought(thinking: JsonValue) -> str:
    if isinstance(thinking, list):
        return "".join(_said(one.get("text")) for one in thinking if isinstance(one, dict))
    return _said(thinking)
