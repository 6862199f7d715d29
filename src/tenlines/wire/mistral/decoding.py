"""Response in, `Reply` out. Total: any JSON gives a `Reply` or an error of `tenlines.errors`.

Content is text or a list of chunks, of which some are thoughts. What is more than text is kept verbatim.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import MalformedReply
from tenlines.wire.endings import stop_of
from tenlines.wire.errors import error_from
from tenlines.wire.ids import Names
from tenlines.wire.json_values import excerpt, items, string
from tenlines.wire.openai_chat.decoding import checked as checked_chat
from tenlines.wire.openai_chat.decoding import id_of, name_and_arguments
from tenlines.wire.usage import count, inclusive

NO_ID = "null"
"""What stands for no id: the default of Mistral's own libraries."""
TOO_DEEP = "the reply is nested too deeply to be read"

STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_calls",
    "length": "length",
    "model_length": "context_overflow",
}


class Reading(NamedTuple):
    """What is known beforehand of a reply."""

    names: Names
    provider: str = "mistral"
    model: str = ""
    """The model as it was asked for."""


def decode_response(data: JsonValue, reading: Reading) -> Reply:
    """The reply in a whole response.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200.
    """
    try:
        return _decode(data, reading)
    except RecursionError as error:
        raise MalformedReply(TOO_DEEP) from error


def checked(data: JsonValue) -> JsonObject:
    """An object that is not an error, neither wrapped nor bare.

    Raises:
        MalformedReply: It is not an object.
        RemoteError: It is an error object.
    """
    whole = checked_chat(data)
    if whole.get("object") == "error":
        raise error_from(None, whole, {})
    return whole


def _decode(data: JsonValue, reading: Reading) -> Reply:
    whole = checked(data)
    choices = whole.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise MalformedReply("the response has no message", excerpt(data))
    entries = message.get("tool_calls") or []
    if not isinstance(entries, list):
        raise MalformedReply("the tool calls of the response are not a list", excerpt(data))
    calls = [_call(entry, data) for entry in entries]
    ending = {**whole, "finish_reason": choice.get("finish_reason")}
    return assemble(chunks_of(message.get("content")), calls, ending, reading, [])


def _call(entry: JsonValue, data: JsonValue) -> ToolCall:
    if not isinstance(entry, dict):
        raise MalformedReply("a tool call of the response is not an object", excerpt(data))
    call_id = id_of(entry)
    name, arguments = name_and_arguments(entry)
    return ToolCall("" if call_id == NO_ID else call_id, name, arguments)


def chunks_of(content: JsonValue) -> list[JsonObject]:
    """Content as chunks, those of text alone as well; what is neither text nor an object is no chunk."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [chunk for chunk in items(content) if isinstance(chunk, dict)]


def assemble(
    chunks: list[JsonObject], calls: list[ToolCall], ending: JsonObject, reading: Reading, remarks: list[str]
) -> Reply:
    """The reply; `ending` has `finish_reason`, `usage` and `model`.

    Raises:
        RemoteError: The reason says that the server failed.
    """
    payload = None if all(map(_is_text, chunks)) else encodable_value(_payload(chunks, len(calls)))
    return Reply(
        text=encodable("".join(text for chunk in chunks if _is_text(chunk) and isinstance(text := chunk["text"], str))),
        calls=tuple(
            ToolCall(
                encodable(call.id),
                reading.names.own(encodable(call.name)),
                encodable(call.arguments) if call.arguments.strip() else "{}",
            )
            for call in calls
        ),
        stop=_stop(ending.get("finish_reason"), bool(calls), remarks),
        usage=decode_usage(ending.get("usage"), remarks),
        opaque=() if payload is None else (Opaque(reading.provider, reading.model, payload),),
        model=encodable(string(ending.get("model"))),
        remarks=tuple(remarks),
    )


def _payload(chunks: list[JsonObject], calls: int) -> JsonObject:
    blocks: list[JsonValue] = [*chunks]
    blocks += [{"call": position} for position in range(calls)]
    return {"blocks": blocks}


def _is_text(chunk: JsonObject) -> bool:
    return set(chunk) == {"type", "text"} and chunk["type"] == "text" and isinstance(chunk["text"], str)


def _stop(reason: JsonValue, has_calls: bool, remarks: list[str]) -> StopReason:
    if reason == "error":
        raise error_from(None, {"error": {"code": "server_error", "message": "the server broke off the reply"}}, {})
    stop = stop_of(reason or None, STOPS, remarks)
    if has_calls:
        return "tool_calls" if stop == "end" else stop
    return "end" if stop == "tool_calls" else stop


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form. Cached tokens are part of the input, under one of several names."""
    if not isinstance(data, dict):
        return None
    cached = [count(data.get("num_cached_tokens"))]
    for field in ("prompt_tokens_details", "prompt_token_details"):
        details = data.get(field)
        cached.append(count(details.get("cached_tokens")) if isinstance(details, dict) else None)
    details = data.get("completion_tokens_details")
    return inclusive(
        count(data.get("prompt_tokens")),
        count(data.get("completion_tokens")),
        remarks,
        cache_read=next((one for one in cached if one is not None), None),
        reasoning=count(details.get("reasoning_tokens")) if isinstance(details, dict) else None,
    )
