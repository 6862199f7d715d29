"""What was said, in the JSON of OpenTelemetry's conventions. The bytes of images and files are never in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import encodable_value, parse_arguments
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
    User,
)
from tenlines.trace.redaction import Redaction

TEXT_CHARS = 32_000
"""How much of one text is exported."""
FINISH: dict[StopReason, str] = {"end": "stop", "stop_sequence": "stop", "tool_calls": "tool_call"}
"""Why a reply ended, where the conventions have another word for it."""


def finish_reason(stop: StopReason) -> str:
    """Why a reply ended."""
    return FINISH.get(stop, stop)


def messages(said: Iterable[Message]) -> list[JsonValue]:
    """Messages as the model was sent them, without its instructions."""
    return [_message(one) for one in said if not isinstance(one, System)]


def instructions(said: Sequence[Message]) -> list[JsonValue]:
    """The instructions that a conversation begins with."""
    return [_text(one.text) for one in said[:1] if isinstance(one, System)]


def reply(said: Reply) -> list[JsonValue]:
    """What the model said."""
    parts = _assistant(Assistant(said.text, said.calls, said.opaque))
    return [{"role": "assistant", "parts": parts, "finish_reason": finish_reason(said.stop)}]


def answer(text: str) -> list[JsonValue]:
    """What a run came to."""
    return [{"role": "assistant", "parts": [_text(text)], "finish_reason": "stop"}]


def definitions(tools: Iterable[ToolSpec], redaction: Redaction) -> str:
    """What the model is told of its tools, as JSON text."""
    listed: list[JsonValue] = [
        {"type": "function", "name": one.name, "description": one.description, "parameters": one.parameters}
        for one in map(redaction.of, tools)  # as tools: a schema has names like `token`, and no values
    ]
    return exported(listed, Redaction(()))


def result(parts: Iterable[Part]) -> JsonValue:
    """What a tool gave: a text where it is one, else its parts."""
    given: list[JsonValue] = [_part(one) for one in parts]
    only = given[0] if len(given) == 1 else None
    return only["content"] if isinstance(only, dict) and only["type"] == "text" else given


def exported(value: JsonValue, redaction: Redaction) -> str:
    """A value as JSON text: without secrets, without half characters, no text longer than `TEXT_CHARS`."""
    shown = _cut(redaction.of(encodable_value(value)))
    return msgspec.json.encode(shown).decode()


def _message(message: Message) -> JsonObject:
    match message:
        case User(parts):
            return {"role": "user", "parts": [_part(one) for one in parts]}
        case Assistant():
            return {"role": "assistant", "parts": _assistant(message)}
        case Result(call_id, _, _, parts):
            response = {"type": "tool_call_response", "id": call_id, "response": result(parts)}
            return {"role": "tool", "parts": [response]}
        case Note(text) | System(text):
            return {"role": "user" if isinstance(message, Note) else "system", "parts": [_text(text)]}


def _assistant(message: Assistant) -> list[JsonValue]:
    said: list[JsonValue] = [_text(message.text)] if message.text else []
    return [*map(_part, message.opaque), *said, *map(_call, message.calls)]


def _call(call: ToolCall) -> JsonObject:
    parsed = parse_arguments(call.arguments).value
    return {
        "type": "tool_call",
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments if parsed is None else parsed,
    }


def _text(text: str) -> JsonObject:
    return {"type": "text", "content": text}


def _part(part: Part) -> JsonObject:
    match part:
        case Text(text):
            return _text(text)
        case Json(value):
            return {"type": "json", "value": value}
        case Image(kind, _, url) if url and not url.startswith("data:"):
            return {"type": "uri", "modality": "image", "mime_type": kind, "uri": url}
        case Image(kind, data, url):
            return {"type": "image", "mime_type": kind, "bytes": len(data) or len(url)}
        case File(kind, data, name):
            return {"type": "document", "mime_type": kind, "name": name, "bytes": len(data)}
        case Opaque(provider):
            return {"type": "opaque", "provider": provider}  # for its maker alone


def _cut(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        more = len(value) - TEXT_CHARS
        return value if more <= 0 else f"{value[:TEXT_CHARS]}… ({more:,} more characters)"
    if isinstance(value, list):
        return [_cut(one) for one in value]
    if isinstance(value, dict):
        return {_key(key): _cut(one) for key, one in value.items()}
    return value


def _key(key: str) -> str:
    return key if len(key) <= TEXT_CHARS else key[:TEXT_CHARS]
