"""The OpenAI Chat Completions format, as OpenAI and the many servers that call themselves compatible speak it.

Encoding is a deterministic function of the transcript: the messages of one request begin with those of the
request before, so that a provider's prefix cache holds. Decoding is total: any JSON gives a `Reply` or an error of
`tenlines.errors`, never anything else. What the other side got wrong is said in `Reply.remarks`, never mended in
silence.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Opaque,
    Part,
    Reply,
    Result,
    StopReason,
    System,
    Text,
    ToolCall,
    Usage,
    User,
)
from tenlines.errors import MalformedReply
from tenlines.wire.openai_errors import error_from

NOTE_PREFIX = "[note from the runtime] "
"""How a `Note` begins: the format has no place of its own for one, so it goes as user text."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Non-standard fields that must go back to the server that made them (DeepSeek V4, Kimi: 400 otherwise)."""

# --- options ----------------------------------------------------------------------------------------


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same in every request of a run."""

    model: str = ""
    provider: str = "openai"
    """Whose opaque artefacts (reasoning) are sent back: they go to the provider and model that made them."""
    max_tokens: int | None = None
    """Most output tokens of a reply, where the run itself sets no limit."""
    max_tokens_field: str = "max_tokens"
    """OpenAI's own reasoning models take only `max_completion_tokens`; most other servers know only the old name."""
    temperature: float | None = None
    reasoning_effort: str | None = None
    effort_with_tools: str | None = None
    """The effort in requests with tools where none is set: OpenAI's GPT-5.4 and later refuse function tools on this
    endpoint with any other effort than `none`, their own default included (OAI-C-20)."""


# --- encoding ---------------------------------------------------------------------------------------


class Encoder:
    """Messages of one run in this format: each is encoded once and kept."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._messages: list[JsonValue] = []
        self._specs: tuple[ToolSpec, ...] | None = None
        self._tools: list[JsonValue] = []

    def extend(self, view: Sequence[Message], new_from: int | None = None) -> list[JsonValue]:
        """Take in what is new; O(new).

        Args:
            view: The whole transcript.
            new_from: Index of the first message that was not sent. What was kept from there on is encoded again
                (it is new after a retry, and changed after the transcript was edited). None: the view only grew.

        Returns:
            All encoded messages: the list that is kept, not a copy.
        """
        keep = len(view) if new_from is None else new_from
        del self._messages[keep:]
        for index in range(len(self._messages), len(view)):
            self._messages.append(encode_message(view[index], self._options))
        return self._messages

    def tools(self, specs: tuple[ToolSpec, ...]) -> list[JsonValue]:
        """The tools in this format, encoded once for the same specs."""
        if specs is not self._specs:
            self._specs, self._tools = specs, [encode_tool(spec) for spec in specs]
        return self._tools


def encode_request(
    options: Options,
    messages: list[JsonValue],
    tools: list[JsonValue],
    *,
    tool_choice: str = "auto",
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> JsonObject:
    """The body of a request.

    `tools` and `tool_choice` are left out when there are no tools: OpenAI and others refuse an empty list, and a
    choice without tools. `tool_choice="none"` keeps the tools, so that the cached prefix stays valid.
    """
    body: JsonObject = {"model": options.model, "messages": messages}
    if tools:
        body["tools"] = tools
        body["tool_choice"] = _choice(tool_choice)
    limit = options.max_tokens if max_output_tokens is None else max_output_tokens
    if limit is not None:
        body[options.max_tokens_field] = limit
    if options.temperature is not None:
        body["temperature"] = options.temperature
    effort = options.reasoning_effort or (options.effort_with_tools if tools else None)
    if effort is not None:
        body["reasoning_effort"] = effort
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def _choice(tool_choice: str) -> JsonValue:
    if tool_choice in ("auto", "none", "required"):
        return tool_choice
    return {"type": "function", "function": {"name": tool_choice}}


def encode_tool(spec: ToolSpec) -> JsonObject:
    """One tool. A tool without parameters still gets an object schema: several servers demand one."""
    function: JsonObject = {"name": spec.name}
    if spec.description:
        function["description"] = spec.description
    function["parameters"] = spec.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def encode_message(message: Message, options: Options) -> JsonObject:
    """One message. A pure function: the same message always gives the same JSON."""
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(parts):
            return {"role": "user", "content": _user_content(parts)}
        case Note(text):
            return {"role": "user", "content": NOTE_PREFIX + text}
        case Assistant():
            return _assistant(message, options)
        case Result(call_id, _, _, parts):
            return {"role": "tool", "tool_call_id": wire_id(call_id), "content": plain_text(parts)}


def _assistant(message: Assistant, options: Options) -> JsonObject:
    # null is what OpenAI itself sends for a message of calls alone; without calls null is refused (OAI-C-3)
    body: JsonObject = {"role": "assistant", "content": message.text or (None if message.calls else "")}
    calls: list[JsonObject] = [
        {"id": wire_id(call.id), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    if calls:
        body["tool_calls"] = list[JsonValue](calls)
    for opaque in message.opaque:
        if opaque.provider == options.provider and opaque.model == options.model and isinstance(opaque.payload, dict):
            _restore(body, calls, opaque.payload)
    return body


def _restore(body: JsonObject, calls: list[JsonObject], payload: JsonObject) -> None:
    for field in REASONING_FIELDS:
        if field in payload:
            body[field] = payload[field]
    extras = payload.get("extra_content")  # Gemini's signed thoughts, by position of the call
    if isinstance(extras, list):
        for call, extra in zip(calls, extras, strict=False):
            if extra is not None:
                call["extra_content"] = extra


def wire_id(call_id: str) -> str:
    """The id of a call as this format takes it: at most 40 characters of `[A-Za-z0-9_-]`.

    An id that fits goes as it is; any other becomes a hash. What already looks like such a hash is hashed as well,
    so two different ids never become one.
    """
    if _FITTING_ID.fullmatch(call_id) and not call_id.startswith(_HASHED):
        return call_id
    return _HASHED + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_FITTING_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_HASHED = "call_x"


# --- parts ------------------------------------------------------------------------------------------


def _user_content(parts: tuple[Part, ...]) -> JsonValue:
    if not any(isinstance(part, Image) for part in parts):
        return plain_text(parts)
    content: list[JsonValue] = []
    for part in parts:
        if isinstance(part, Image):
            content.append({"type": "image_url", "image_url": {"url": part.url or _data_url(part)}})
        elif text := part_text(part):
            content.append({"type": "text", "text": text})
    return content


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"


def plain_text(parts: tuple[Part, ...]) -> str:
    """Parts as text, joined by blank lines. Binary content becomes a short stub: base64 would flood the window."""
    if len(parts) == 1:
        return part_text(parts[0])
    return "\n\n".join(text for part in parts if (text := part_text(part)))


def part_text(part: Part) -> str:
    """One part as text; "" for what no reader but its maker understands."""
    match part:
        case Text(text):
            return text
        case Json(value):
            return json.dumps(value, ensure_ascii=False)
        case Image(media_type, data, url):
            return f"({media_type}, {_size(len(data)) if data else url or 'empty'}, not shown)"
        case File(media_type, data, name):
            return f"({f'{name}, ' if name else ''}{media_type}, {_size(len(data))}, not shown)"
        case Opaque():
            return ""


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    unit, value = ("KiB", size_bytes / 1024) if size_bytes < 1024**2 else ("MiB", size_bytes / 1024**2)
    return f"{value:.1f} {unit}"


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
        provider: Recorded with opaque artefacts (see `Options.provider`).
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
    payload = {field: encodable_value(value) for field, value in pieces.reasoning.items()}
    if any(extra is not None for extra in pieces.extras):
        payload["extra_content"] = encodable_value(pieces.extras)
    model = data.get("model")
    return Reply(
        text=encodable(pieces.text or pieces.refusal),
        calls=tuple(ToolCall(*map(encodable, (call.id, call.name, call.arguments))) for call in pieces.calls),
        stop=stop,
        usage=decode_usage(data.get("usage"), remarks),
        opaque=(msgspec.structs.replace(origin, payload=payload),) if payload else (),
        model=encodable(model) if isinstance(model, str) else "",
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
    name = function.get("name")
    arguments = function.get("arguments", function.get("input"))
    if arguments is None:
        text = ""
    elif isinstance(arguments, str):
        text = arguments
    else:
        text = json.dumps(arguments, ensure_ascii=False)  # Ollama and others send the object itself
    return name if isinstance(name, str) else "", text


def excerpt(data: JsonValue) -> str:
    """The beginning of a JSON value, for an error."""
    try:
        return encodable(json.dumps(data, ensure_ascii=False))[:500]
    except RecursionError:
        return "(nested too deeply to be shown)"


# --- usage ------------------------------------------------------------------------------------------


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form; None when there are none. What cannot be true is dropped with a remark."""
    if not isinstance(data, dict):
        return None
    total_in, total_out = _count(data.get("prompt_tokens")), _count(data.get("completion_tokens"))
    details = data.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = _first(details.get("cached_tokens"), data.get("prompt_cache_hit_tokens"), data.get("num_cached_tokens"))
    written = _first(details.get("cache_write_tokens"))
    out_details = data.get("completion_tokens_details")
    reasoning = _count(out_details.get("reasoning_tokens")) if isinstance(out_details, dict) else None
    if (
        total_out is not None
        and reasoning
        and _count(data.get("total_tokens")) == (total_in or 0) + total_out + reasoning
    ):
        total_out += reasoning  # xAI does not count reasoning as part of the output
    if (cached or 0) + (written or 0) > (total_in if total_in is not None else math.inf):
        remarks.append(
            f"inconsistent usage: {cached} cached and {written} written of {total_in} input tokens; not counted"
        )
        cached = written = None
    usage = Usage(total_in, total_out, cached, written, reasoning)
    return None if usage == Usage() else usage


def _first(*values: JsonValue) -> int | None:
    counts = [count for value in values if (count := _count(value)) is not None]
    return max(counts) if counts else None


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int and value >= 0 else None
