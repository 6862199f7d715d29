"""Response in, `Reply` out. Total: any JSON gives a `Reply` or an error of `tenlines.errors`, never anything else.

What the other side got wrong is said in `Reply.remarks`, never mended in silence.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import msgspec

from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import MalformedReply
from tenlines.wire import usage
from tenlines.wire.errors import error_from
from tenlines.wire.json_values import excerpt, obj, string
from tenlines.wire.openai_chat.encoding import REASONING_FIELDS

# --- decoding ---------------------------------------------------------------------------------------

_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "end_turn": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "stop_sequence": "stop_sequence",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
}
_FAILED = ("error", "insufficient_system_resource")
"""Endings that say that the server failed (OpenRouter and Mistral; DeepSeek)."""


def decode_response(data: JsonValue, provider: str = "openai", model: str = "") -> Reply:
    """The reply in a whole response.

    Args:
        data: The parsed body, whatever it is.
        provider: Recorded with opaque artefacts: they go back to whom they came from.
        model: The model as it was asked for; recorded likewise.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200.
    """
    choice = _first_choice(checked(data))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedReply("the response has a choice without a message", excerpt(data))
    ending = decode_ending(choice.get("finish_reason"))
    calls, extras = _whole_calls(message, data)
    reasoning = {field: message[field] for field in REASONING_FIELDS if message.get(field)}
    text, refusal = text_of_content(message.get("content")), text_of_content(message.get("refusal"))
    pieces = Pieces(text, refusal, calls, reasoning, extras)
    return assemble(pieces, ending, checked(data), Opaque(provider, model, None), [])


class Pieces(NamedTuple):
    """What a reply is made of, whole or streamed."""

    text: str
    refusal: str
    calls: list[ToolCall]
    reasoning: JsonObject
    extras: list[JsonValue]


class Ending(NamedTuple):
    """Why a reply ended, and what was odd about it."""

    stop: StopReason
    remark: str = ""


def assemble(pieces: Pieces, ending: Ending, data: JsonObject, origin: Opaque, remarks: list[str]) -> Reply:
    """The reply; `data` is where its usage and model are."""
    stop = ending.stop
    if pieces.refusal and stop in ("end", "tool_calls", "stop_sequence", "unknown"):
        stop = "refusal"  # a refusal wins over the presence of calls
    if ending.remark:
        remarks.append(ending.remark)
    payload = {field: _sound(value) for field, value in pieces.reasoning.items()}
    if any(extra is not None for extra in pieces.extras):
        payload["extra_content"] = _sound(pieces.extras)
    return Reply(
        text=encodable(pieces.text or pieces.refusal),
        calls=tuple(ToolCall(*map(encodable, (call.id, call.name, call.arguments))) for call in pieces.calls),
        stop=stop,
        usage=decode_usage(usage_of(data), remarks),
        opaque=(msgspec.structs.replace(origin, payload=payload),) if payload else (),
        model=encodable(string(data.get("model"))),
        remarks=tuple(remarks),
    )


def checked(data: JsonValue) -> JsonObject:
    """An object that is not an error.

    Raises:
        MalformedReply: It is not an object.
        RemoteError: It is an error object.
    """
    if not isinstance(data, dict):
        raise MalformedReply("the server did not answer with a JSON object", excerpt(data))
    if data.get("error"):
        raise error_from(None, data, {})
    return data


def _first_choice(data: JsonObject) -> JsonObject:
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise MalformedReply("the response has no choices", excerpt(data))
    return choice


def decode_ending(reason: JsonValue) -> Ending:
    """The meaning of a `finish_reason`. None or "" beside a whole message means that it is complete.

    Raises:
        RemoteError: It says that the server failed.
    """
    if reason is None or reason == "":
        return Ending("end")
    if isinstance(reason, str) and reason in _STOPS:
        return Ending(_STOPS[reason])
    if reason in _FAILED:
        raise error_from(None, {"error": {"code": reason, "message": "the server broke off the reply"}}, {})
    return Ending("unknown", f"unknown stop reason {excerpt(reason)[:80]}")


def text_of_content(content: JsonValue) -> str:
    """Text of a content field: a string, or a list of parts (Mistral), of which the text ones count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _whole_calls(message: JsonObject, data: JsonValue) -> tuple[list[ToolCall], list[JsonValue]]:
    entries = message.get("tool_calls")
    if not entries:
        legacy = message.get("function_call")
        entries = [{"function": legacy}] if isinstance(legacy, dict) else []
    if not isinstance(entries, list):
        raise MalformedReply("the tool calls of the response are not a list", excerpt(data))
    calls, extras = [], []
    for entry in entries:
        if not isinstance(entry, dict):
            raise MalformedReply("a tool call of the response is not an object", excerpt(data))
        name, arguments = name_and_arguments(entry)
        calls.append(ToolCall(id_of(entry), name, arguments))
        extras.append(entry.get("extra_content"))
    return calls, extras


def id_of(entry: JsonObject) -> str:
    """The id that the provider gave, or ""."""
    value = entry.get("id")
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def name_and_arguments(entry: JsonObject) -> tuple[str, str]:
    """Name and arguments text of a call or of a piece of one."""
    function = entry.get("function")
    if not isinstance(function, dict):
        function = entry.get("custom")
    if not isinstance(function, dict):
        return "", ""
    arguments = function.get("arguments", function.get("input"))
    if arguments is None:
        text = ""
    elif isinstance(arguments, str):
        text = arguments
    else:
        text = dumped(arguments)  # Ollama and others send the object itself
    return string(function.get("name")), text


def dumped(arguments: JsonValue) -> str:
    """Arguments that came as JSON, as its text.

    Raises:
        MalformedReply: They are nested too deeply.
    """
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError as error:
        raise MalformedReply("the arguments of a call are nested too deeply", excerpt(arguments)) from error


def _sound(value: JsonValue) -> JsonValue:
    """What is kept of a reply for its maker, as text that can be stored.

    Raises:
        MalformedReply: It is nested too deeply.
    """
    try:
        sound: JsonValue = encodable_value(value)
    except RecursionError as error:
        raise MalformedReply("the reasoning of the reply is nested too deeply", excerpt(value)) from error
    return sound


# --- usage ------------------------------------------------------------------------------------------


def usage_of(data: JsonObject) -> JsonValue:
    """Where the token counts of a response or a chunk are: at the top, in its choice (Moonshot), or in `x_groq`."""
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for place in (data, choice, data.get("x_groq")):
        if isinstance(place, dict) and place.get("usage"):
            return place["usage"]
    return None


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form; None when there are none. What cannot be true is dropped with a remark."""
    if not isinstance(data, dict):
        return None
    total_in, total_out = usage.count(data.get("prompt_tokens")), usage.count(data.get("completion_tokens"))
    details = obj(data.get("prompt_tokens_details"))
    cached = _most(
        details.get("cached_tokens"),
        data.get("prompt_cache_hit_tokens"),
        data.get("num_cached_tokens"),
        data.get("cached_tokens"),
    )
    hit, missed = data.get("prompt_cache_hit_tokens"), data.get("prompt_cache_miss_tokens")
    if total_in is None:
        total_in = usage.total(usage.count(hit), usage.count(missed))  # DeepSeek's two parts of the input
    out_details = obj(data.get("completion_tokens_details"))
    reasoning = _most(out_details.get("reasoning_tokens"), data.get("reasoning_tokens"))
    counted = usage.count(data.get("total_tokens"))
    if total_out is not None and reasoning and counted == (total_in or 0) + total_out + reasoning:
        total_out += reasoning  # xAI does not count reasoning as part of the output
    written = _most(details.get("cache_write_tokens"))
    return usage.inclusive(total_in, total_out, remarks, cache_read=cached, cache_write=written, reasoning=reasoning)


def _most(*values: JsonValue) -> int | None:
    counts = [count for value in values if (count := usage.count(value)) is not None]
    return max(counts) if counts else None
