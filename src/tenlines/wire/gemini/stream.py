"""Assembly of a streamed reply: every chunk is a response of its own, with the parts that are new.

Text arrives in pieces that are joined; everything else is whole. A part with a signature is never joined with
another one: the signature goes back in the part that it came in, even when that part has no text.
"""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire.format import Piece, Written
from tenlines.wire.gemini.decoding import (
    Ending,
    Origin,
    assemble,
    checked,
    decode_usage,
    ending_of,
    first_candidate,
    parts_of,
)
from tenlines.wire.gemini.fields import camel, field
from tenlines.wire.gemini.partial import Arguments
from tenlines.wire.json_values import excerpt, items, obj, string
from tenlines.wire.openai_chat.decoding import dumped

_LASTING = ("usageMetadata", "modelVersion")
"""What each chunk tells anew; the last one counts."""


class StreamDecoder:
    """Assembles a streamed reply. Nothing of it may be used before `finish` has returned."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parts = _Parts()
        self._ending = Ending()
        self._last: JsonObject = {}

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one chunk.

        Raises:
            MalformedReply: It is not a chunk of this format.
            RemoteError: It is an error object; what came before it is void.
        """
        response = checked(chunk)
        for name in _LASTING:
            value = field(response, name)
            if value:
                self._last[name] = value
        candidate = first_candidate(response)
        self._end(ending_of(response, candidate))
        text = reasoning = ""
        written: list[Written] = []
        for part in parts_of(candidate or {}, chunk):
            self._parts.take(part)
            if part.get("thought"):
                reasoning += string(part.get("text"))
            else:
                text += string(part.get("text"))
            written += _written(part)
        return Piece(text, reasoning, decode_usage(field(response, "usageMetadata"), []), tuple(written))

    def _end(self, ending: Ending) -> None:
        before = self._ending
        self._ending = Ending(
            ending.reason or before.reason, ending.message or before.message, ending.blocked or before.blocked
        )

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
            MalformedReply: A call in it was begun and never finished.
            RemoteError: The service says that it failed.
        """
        if not self._ending.reason and not self._ending.blocked:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        try:
            reply = assemble(self._parts.finish(), self._ending, self._last, self._origin, [])
        except RecursionError:
            raise MalformedReply("the reply is nested too deeply to be read") from None
        if self._parts.open is not None and reply.stop == "tool_calls":
            raise MalformedReply("the stream ended in the middle of a call", excerpt(self._parts.open.body))
        return reply


def _written(part: JsonObject) -> list[Written]:
    """The arguments of a call that comes whole, as most do."""
    body = obj(field(part, "functionCall"))
    arguments = body.get("args")
    if not isinstance(arguments, dict):
        return []
    try:
        return [Written(string(body.get("name")), dumped(arguments))]
    except MalformedReply:  # nested too deeply, which is said when the reply is whole
        return []


class _Text:
    """Text of which pieces are arriving."""

    def __init__(self, part: JsonObject) -> None:
        self._part, self._pieces = part, [string(part.get("text"))]

    def take(self, part: JsonObject) -> bool:
        """Whether more text of the same kind was taken in."""
        if not _is_joinable(part) or part.get("thought") != self._part.get("thought"):
            return False
        self._pieces.append(string(part.get("text")))
        return True

    def finish(self) -> JsonObject:
        return {**self._part, "text": "".join(self._pieces)}


class _Call:
    """A call, whole or arriving in pieces."""

    def __init__(self, part: JsonObject, body: JsonObject) -> None:
        self._extra: JsonObject = {}
        self.body: JsonObject = {}
        self._arguments: Arguments | None = None
        self.take(part, body)

    def take(self, part: JsonObject, body: JsonObject) -> bool:
        """Take in the call or a piece of it; whether more follows."""
        self._extra.update({camel(name): value for name, value in part.items() if camel(name) != "functionCall"})
        for name in ("id", "name", "args"):
            if body.get(name):
                self.body[name] = body[name]
        pieces = field(body, "partialArgs")
        for piece in items(pieces):
            if not isinstance(piece, dict):
                raise MalformedReply("a piece of the arguments of a call is not an object", excerpt(piece))
            self._arguments = self._arguments or Arguments()
            self._arguments.take(piece)
        return bool(field(body, "willContinue"))

    def finish(self) -> JsonObject:
        if self._arguments is not None and "args" not in self.body:
            self.body["args"] = self._arguments.finish()
        return {"functionCall": self.body, **self._extra}


class _Whole:
    """Any other part."""

    def __init__(self, part: JsonObject) -> None:
        self._part = part

    def finish(self) -> JsonObject:
        return self._part


class _Parts:
    """The parts of a reply, in order."""

    def __init__(self) -> None:
        self._parts: list[_Text | _Call | _Whole] = []
        self.open: _Call | None = None
        """The call of which more is to come."""

    def take(self, part: JsonObject) -> None:
        body = field(part, "functionCall")
        if isinstance(body, dict):
            self._take_call(part, body)
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Text) and last.take(part):
            return
        if part == {"text": ""}:
            return  # a chunk that brings only usage has an empty text
        self._parts.append(_Text(part) if _is_joinable(part) else _Whole(part))

    def _take_call(self, part: JsonObject, body: JsonObject) -> None:
        name = body.get("name")
        call = self.open
        if call is not None and (not name or name == call.body.get("name")):
            self.open = call if call.take(part, body) else None
            return
        call = _Call(part, body)
        self._parts.append(call)
        self.open = call if field(body, "willContinue") else None

    def finish(self) -> list[JsonObject]:
        return [part.finish() for part in self._parts]


def _is_joinable(part: JsonObject) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}
