"""Messages of LangChain and LangGraph: `messages_to_dict`, `dumpd`, and flat `model_dump`, also mixed."""

from __future__ import annotations

import re
from typing import NamedTuple

from tenlines.core.transcript import Json, JsonObject, JsonValue, Part, Text
from tenlines.wire.dumps.dump import (
    Dump,
    attachment,
    entries,
    media_block,
    parsed,
    result_block,
    text_block,
    tools_in,
    turn,
)
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.turns import Block, Role, Turn

ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_CLASS = re.compile(r"(Human|AI|System|Tool|Function|Chat|Remove)Message(?:Chunk)?")


class Message(NamedTuple):
    """One message, whatever it was wrapped in."""

    kind: str
    """`human`, `ai`, `system`, `tool`, `function`, `chat`, `remove`."""
    fields: JsonObject


def message(value: JsonValue) -> Message | None:
    """A message of any of the three spellings; None when it is none."""
    if not isinstance(value, dict):
        return None
    kind, fields = value.get("type"), value
    if "lc" in value and kind == "constructor" and isinstance(value.get("kwargs"), dict):
        fields = obj(value["kwargs"])
        path = items(value.get("id"))
        kind = string(path[-1]) if path else fields.get("type")
    elif isinstance(value.get("data"), dict) and "content" in obj(value["data"]):
        fields = obj(value["data"])
    if not isinstance(kind, str) or "content" not in fields:
        return None
    named = _CLASS.fullmatch(kind)
    kind = named[1].lower() if named else kind
    return Message(kind, fields) if kind in ROLES or kind in ("chat", "remove") else None


def read(value: JsonValue) -> Dump:
    """The messages of a list, or of the state of a graph (`{"messages": [...]}`)."""
    turns: list[Turn] = []
    remarks: list[str] = []
    for raw, path in entries(value):
        found = message(raw)
        if found is None:
            turns.append(Turn("unknown", (Block("other", path, raw),), path, raw))
        elif found.kind == "remove":
            remarks.append(f"{path} asks for the removal of a message; it is left out.")
        else:
            turns.append(_turn(found, path, raw))
    return Dump(tuple(turns), tools_in(value), tuple(remarks))


def _turn(found: Message, path: str, raw: JsonValue) -> Turn:
    fields = found.fields
    wire_role = string(fields.get("role")) if found.kind == "chat" else found.kind
    role = ROLES.get(wire_role, "unknown")
    if role == "tool":
        return turn(role, [_result(fields, path, raw)], path, raw, wire_role)
    blocks = [_piece(piece, f"{path}.content[{index}]") for index, piece in enumerate(_pieces(fields.get("content")))]
    kept = [block for block in blocks if block is not None]
    if role == "assistant":
        kept = _reasoning(fields, path) + [block for block in kept if block.kind != "call"] + _calls(fields, kept, path)
    return turn(role, kept, path, raw, wire_role)


def _pieces(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, str):
        return [content] if content else []
    return items(content)


def _piece(piece: JsonValue, path: str) -> Block | None:
    if isinstance(piece, str):
        return text_block(piece, path, piece)
    held = obj(piece)
    kind = string(held.get("type"))
    if kind in ("text", "output_text", "input_text", "refusal"):
        return text_block(string(held.get("text", held.get("refusal"))), path, piece)
    if kind in _REASONING:
        text = next((held[key] for key in ("thinking", "reasoning", "text") if isinstance(held.get(key), str)), "")
        signature = string(held.get("signature") or held.get("data"))
        return Block("reasoning", path, piece, text=string(text), signature=signature)
    if kind in ("tool_use", "tool_call", "function_call", "invalid_tool_call"):
        arguments = next((held[key] for key in ("args", "input", "arguments") if key in held), None)
        call_id = string(held.get("id") if kind != "function_call" else held.get("call_id"))
        return Block("call", path, piece, id=call_id, name=string(held.get("name")), arguments=arguments)
    if kind in ("input_json_delta", "tool_call_chunk"):
        return None  # the whole call stands in `tool_calls`
    if kind in _MEDIA:
        return media_block(path, piece, _media(held, kind))
    return Block("other", path, piece)


_REASONING = ("thinking", "reasoning", "redacted_thinking", "reasoning_content")
_MEDIA = {
    "image": "image/*",
    "image_url": "image/*",
    "audio": "audio/*",
    "video": "video/*",
    "file": "",
    "document": "",
}


def _media(held: JsonObject, kind: str) -> tuple[Part, ...]:
    source = obj(held.get("source"))
    inner = held.get("image_url")
    address = inner if isinstance(inner, str) else obj(inner).get("url")
    candidates = [address, *(place.get(key) for place in (held, source) for key in ("base64", "data", "url"))]
    found = next((one for one in candidates if isinstance(one, str) and one), "")
    types = [place.get(key) for place in (held, source) for key in ("mime_type", "media_type")]
    media_type = next((one for one in types if isinstance(one, str)), _MEDIA[kind])
    return attachment(found, media_type, string(held.get("filename") or held.get("name")))


def _calls(fields: JsonObject, blocks: list[Block], path: str) -> list[Block]:
    """Calls in the order of `tool_calls`; what stands only in the content or among the extras comes behind."""
    calls: list[Block] = []
    for key in ("tool_calls", "invalid_tool_calls"):
        for index, entry in enumerate(items(fields.get(key))):
            held, place = obj(entry), f"{path}.{key}[{index}]"
            calls.append(
                Block(
                    "call",
                    place,
                    entry,
                    id=string(held.get("id")),
                    name=string(held.get("name")),
                    arguments=held.get("args"),
                )
            )
    known = {call.id for call in calls}
    calls += [block for block in blocks if block.kind == "call" and block.id not in known]
    return calls or _old_calls(obj(fields.get("additional_kwargs")), f"{path}.additional_kwargs")


def _old_calls(extras: JsonObject, path: str) -> list[Block]:
    """Calls as older versions kept them: in the provider's own spelling, beside the message."""
    calls: list[Block] = []
    for index, entry in enumerate(items(extras.get("tool_calls"))):
        held = obj(obj(entry).get("function"))
        calls.append(
            Block(
                "call",
                f"{path}.tool_calls[{index}]",
                entry,
                id=string(obj(entry).get("id")),
                name=string(held.get("name")),
                arguments=held.get("arguments"),
            )
        )
    legacy = extras.get("function_call")
    if not calls and isinstance(legacy, dict):
        name = string(legacy.get("name"))
        calls.append(Block("call", f"{path}.function_call", legacy, name=name, arguments=legacy.get("arguments")))
    return calls


def _reasoning(fields: JsonObject, path: str) -> list[Block]:
    text = obj(fields.get("additional_kwargs")).get("reasoning_content")
    place = f"{path}.additional_kwargs.reasoning_content"
    return [Block("reasoning", place, text, text=text)] if isinstance(text, str) and text else []


def _result(fields: JsonObject, path: str, raw: JsonValue) -> Block:
    parts: list[Part] = []
    for index, piece in enumerate(_pieces(fields.get("content"))):
        block = _piece(piece, f"{path}.content[{index}]")
        if block is not None and block.kind == "text":
            parts.append(Text(block.text))
        elif block is not None:
            parts += block.parts or (Json(parsed(piece)),)
    ids = string(fields.get("tool_call_id")), string(fields.get("name"))
    return result_block(path, raw, ids, tuple(parts), fields.get("status") == "error")
