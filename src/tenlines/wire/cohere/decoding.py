"""Responses and streams of Cohere's chat endpoint. Total, as every decoder."""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.outcomes import encodable
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire import usage
from tenlines.wire.endings import stop_of
from tenlines.wire.errors import error_from
from tenlines.wire.format import Piece, Written
from tenlines.wire.json_values import excerpt, items, obj, string
from tenlines.wire.openai_chat.decoding import checked, id_of, name_and_arguments

_STOPS: dict[str, StopReason] = {
    "COMPLETE": "end",
    "STOP_SEQUENCE": "stop_sequence",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
}
_FAILED = ("ERROR", "TIMEOUT")

# --- whole responses --------------------------------------------------------------------------------


class _Pieces(NamedTuple):
    text: str
    plan: str
    thinking: str
    calls: list[ToolCall]


def decode_response(data: JsonValue, provider: str = "cohere", model: str = "") -> Reply:
    """The reply in a whole response.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200.
    """
    found = checked(data)
    message = found.get("message")
    if not isinstance(message, dict):
        raise MalformedReply("the response has no message", excerpt(data))
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise MalformedReply("the tool calls of the response are not a list", excerpt(data))
    text, thinking = _content(message.get("content"))
    pieces = _Pieces(text, string(message.get("tool_plan")), thinking, [_call(one, data) for one in calls or []])
    return _reply(pieces, found, Opaque(provider, model, None))


def _content(content: JsonValue) -> tuple[str, str]:
    """What is said and what is thought."""
    if isinstance(content, str):
        return content, ""
    parts = [part for part in items(content) if isinstance(part, dict)]
    return (
        "".join(string(part.get("text")) for part in parts),
        "".join(string(part.get("thinking")) for part in parts),
    )


def _call(entry: JsonValue, data: JsonValue) -> ToolCall:
    if not isinstance(entry, dict):
        raise MalformedReply("a tool call of the response is not an object", excerpt(data))
    name, arguments = name_and_arguments(entry)
    return ToolCall(id_of(entry), name, arguments or "{}")


def _reply(pieces: _Pieces, data: JsonObject, origin: Opaque) -> Reply:
    """The reply; `data` is where its ending and its counts are."""
    remarks: list[str] = []
    stop = _stop(data.get("finish_reason"), remarks)
    thinking = encodable(pieces.thinking)
    return Reply(
        text=encodable("\n\n".join(filter(None, (pieces.plan, pieces.text)))),
        calls=tuple(ToolCall(*map(encodable, (call.id, call.name, call.arguments))) for call in pieces.calls),
        stop="tool_calls" if pieces.calls and stop == "end" else stop,
        usage=decode_usage(data.get("usage"), remarks),
        opaque=(Opaque(origin.provider, origin.model, {"thinking": thinking}),) if thinking else (),
        model=origin.model,
        remarks=tuple(remarks),
    )


def _stop(reason: JsonValue, remarks: list[str]) -> StopReason:
    if reason in _FAILED:
        raise error_from(None, {"error": {"code": "server_error", "message": f"the reply ended with {reason}"}}, {})
    return stop_of(reason, _STOPS, remarks)


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form; what is billed is another count."""
    if not isinstance(data, dict):
        return None
    tokens = obj(data.get("tokens"))
    return usage.inclusive(
        _whole(tokens.get("input_tokens")),
        _whole(tokens.get("output_tokens")),
        remarks,
        cache_read=_whole(data.get("cached_tokens")),
    )


def _whole(value: JsonValue) -> int | None:
    """A count; they come as numbers with a point."""
    return usage.count(int(value) if isinstance(value, float) and value.is_integer() else value)


# --- streams ----------------------------------------------------------------------------------------


class StreamDecoder:
    """Assembles a streamed reply from its events."""

    def __init__(self, provider: str = "cohere", model: str = "") -> None:
        self._origin = Opaque(provider, model, None)
        self._text: list[str] = []
        self._plan: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[JsonValue, _OpenCall] = {}
        self._end: JsonObject | None = None

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one event.

        Raises:
            MalformedReply: It is not an event of this format.
            RemoteError: It is an error object; what came before it is void.
        """
        event = checked(chunk)
        delta = obj(event.get("delta"))
        message = obj(delta.get("message"))
        match event.get("type"):
            case "message-end":
                if delta.get("error"):
                    raise error_from(None, {"error": delta["error"]}, {})
                self._end = delta
            case "content-start" | "content-delta":
                return self._content(message.get("content"))
            case "tool-plan-delta":
                plan = string(message.get("tool_plan"))
                self._plan.append(plan)
                return Piece(plan)
            case "tool-call-start" | "tool-call-delta":
                return Piece(written=(self._call(event.get("index"), message.get("tool_calls"), chunk),))
            case _:
                pass  # citations, starts and ends of parts, events that are yet to be invented
        return Piece()

    def _content(self, content: JsonValue) -> Piece:
        text, thinking = _content([content] if isinstance(content, dict) else content)
        self._text.append(text)
        self._thinking.append(thinking)
        return Piece(text, thinking)

    def _call(self, index: JsonValue, entry: JsonValue, chunk: JsonValue) -> Written:
        if isinstance(entry, list) and entry:
            entry = entry[0]
        if not isinstance(entry, dict) or isinstance(index, dict | list):
            raise MalformedReply("a tool call of the stream is not an object", excerpt(chunk))
        piece = _call(entry, chunk)
        call = self._calls.setdefault(index, _OpenCall())
        call.id, call.name = call.id or piece.id, call.name or piece.name
        added = piece.arguments if _has_arguments(entry) else ""
        call.arguments.append(added)
        return Written(call.name, added)

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying so, so it was cut.
        """
        if self._end is None:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        calls = [ToolCall(call.id, call.name, "".join(call.arguments) or "{}") for call in self._calls.values()]
        pieces = _Pieces("".join(self._text), "".join(self._plan), "".join(self._thinking), calls)
        return _reply(pieces, self._end, self._origin)


class _OpenCall:
    """A call of which pieces are arriving."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def _has_arguments(entry: JsonObject) -> bool:
    function = entry.get("function")
    return isinstance(function, dict) and bool(function.get("arguments"))
