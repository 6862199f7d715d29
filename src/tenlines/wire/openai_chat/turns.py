"""Chat Completions bodies, unfolded into turns and folded again.

A result is a message of its own here (`tool`), so its turn has one block, and that block is the whole message. The
old form of a call (`function_call`, answered by a message of the role `function`) has no ids: the two get one that
stands for the pair, `LEGACY_ID`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenlines.core.transcript import File, Image, JsonObject, JsonValue, Part, text_of
from tenlines.wire.folding import (
    content_blocks,
    declared,
    folded_content,
    is_as_it_came,
    merged_tools,
    parts_in,
    role_of,
    tool_of,
    tools_of,
)
from tenlines.wire.format import Frame
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.openai_chat.encoding import REASONING_FIELDS, part_json
from tenlines.wire.parts import base64_bytes, data_in, plain_text
from tenlines.wire.turns import Block, Role, Tool, Turn

LEGACY_ID = "function_call"
"""Id of a call in the old form and of its result."""

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

# --- from JSON to turns -----------------------------------------------------------------------------


def frame(body: JsonObject) -> Frame:
    """Tools of a body; there are no system prompts beside the messages."""
    return Frame((), tools_of(items(body.get("tools")), "tools", _tool))


def _tool(entry: JsonValue, path: str) -> Tool | None:
    """A function or a custom tool; anything else is the provider's own."""
    if not isinstance(entry, dict):
        return None
    return tool_of(entry.get("function") or entry.get("custom"), path, entry)


def unfold(message: JsonValue, path: str) -> Turn:
    """One message as a turn; total."""
    if not isinstance(message, dict):
        return Turn("unknown", (), path, message)
    wire_role = string(message.get("role"))
    role = ROLES.get(wire_role, "unknown")
    is_model = role in ("assistant", "unknown")
    calls = _calls(message, path) if role != "tool" else []
    content = message.get("content")
    if role == "tool":
        blocks = [_result(message, path)]
    else:  # empty text beside calls stands for none: several servers want it for null
        blocks = _content(None if calls and content == "" else content, f"{path}.content")
    reasoning = _reasoning(message, path) if is_model else []
    blocks = reasoning + blocks + calls
    return Turn(role, tuple(blocks), path, message, wire_role)


def _content(content: JsonValue, path: str) -> list[Block]:
    return content_blocks(content, path, _part)


def _part(part: JsonValue, path: str) -> Block:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        return Block("other", path, part)
    text = part.get(kind) if kind in ("text", "refusal") else None
    if isinstance(text, str):
        return Block("text", path, part, text=text)
    if kind in ("image_url", "input_audio", "file"):
        return Block("media", path, part, parts=_media(kind, part.get(kind)))
    return Block("other", path, part)


def _media(kind: str, held: JsonValue) -> tuple[Part, ...]:
    """The content of an image, an audio or a file part; nothing when it is by reference only, or broken."""
    if isinstance(held, str):
        held = {"url": held}  # several servers take the address itself
    if not isinstance(held, dict):
        return ()
    if kind == "input_audio":
        data = base64_bytes(string(held.get("data")))
        return (File(f"audio/{string(held.get('format')) or 'wav'}", data),) if data else ()
    address = string(held.get("url") or held.get("file_data"))
    if not address:
        return ()
    found = data_in(address)
    media_type, data = found or ("", b"")
    media_type = media_type or ("image/*" if kind == "image_url" else "application/octet-stream")
    if kind == "file":
        return (File(media_type, data, string(held.get("filename"))),) if data else ()
    return (Image(media_type, data, "" if found else address),)


def _result(message: JsonObject, path: str) -> Block:
    parts = parts_in(_content(message.get("content"), f"{path}.content"))
    is_legacy = message.get("role") == "function"
    return Block(
        "result",
        path,
        message,
        id=LEGACY_ID if is_legacy else string(message.get("tool_call_id")),
        name=string(message.get("name")),
        text=text_of(parts),
        parts=parts,
    )


def _reasoning(message: JsonObject, path: str) -> list[Block]:
    return [
        Block("reasoning", f"{path}.{field}", message[field], text=_reasoning_text(message[field]))
        for field in REASONING_FIELDS
        if message.get(field) is not None
    ]


def _reasoning_text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    texts = [part.get("text") for part in items(value) if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _calls(message: JsonObject, path: str) -> list[Block]:
    blocks = [
        _call(entry, f"{path}.tool_calls[{index}]") for index, entry in enumerate(items(message.get("tool_calls")))
    ]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        name, arguments = string(legacy.get("name")), legacy.get("arguments")
        blocks.append(Block("call", f"{path}.function_call", legacy, id=LEGACY_ID, name=name, arguments=arguments))
    return blocks


def _call(entry: JsonValue, path: str) -> Block:
    if not isinstance(entry, dict):
        return Block("call", path, entry)
    function = entry.get("function")
    if not isinstance(function, dict):
        function = entry.get("custom")
    held = obj(function)
    return Block(
        "call",
        path,
        entry,
        id=string(entry.get("id")),
        name=string(held.get("name")),
        arguments=held.get("arguments", held.get("input")),
        signature=_signature(entry.get("extra_content")),
    )


def _signature(extra: JsonValue) -> str:
    """The signed thought that Gemini's compatible endpoint puts beside a call."""
    google = extra.get("google") if isinstance(extra, dict) else None
    return string(obj(google).get("thought_signature"))


# --- from turns to JSON -----------------------------------------------------------------------------


def fold_frame(body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
    """The body with these tools; the provider's own ones among them stay where they are."""
    if tuple(tools) == frame(body).tools:
        return body
    return {**body, "tools": merged_tools(items(body.get("tools")), tools, _tool, _tool_json)}


def _tool_json(tool: Tool) -> JsonValue:
    return {"type": "function", "function": declared(tool)}


def fold(turn: Turn) -> JsonValue:
    """A turn as a message; one that nobody touched goes back as it came."""
    raw = turn.raw
    if is_as_it_came(turn, unfold):
        return raw
    results = turn.of("result")
    if results:
        return _fold_result(results[0], raw)
    old = obj(raw)
    body: JsonObject = {"role": role_of(turn, ROLES)}
    calls, legacy = [], None
    for block in turn.of("call"):
        if block.id == LEGACY_ID:
            legacy = _legacy_json(block)
        else:
            calls.append(_call_json(block, old))
    body["content"] = _folded_content(turn, old.get("content"), bool(calls or legacy))
    body |= {key: value for key, value in old.items() if key not in body and key not in _WRITTEN}
    for block in turn.of("reasoning"):
        if block.raw is not None:
            body[block.path.rsplit(".", 1)[-1]] = block.raw
    if calls:
        body["tool_calls"] = calls
    if legacy is not None:
        body["function_call"] = legacy
    return body


_WRITTEN = frozenset({"tool_calls", "function_call", "tool_call_id", *REASONING_FIELDS})
"""Fields that are written from blocks alone, so that what a repair took out is gone."""


def _fold_result(block: Block, raw: JsonValue) -> JsonObject:
    if isinstance(block.raw, dict):
        return block.raw
    old = raw if isinstance(raw, dict) and ROLES.get(string(raw.get("role"))) == "tool" else {}
    is_legacy = block.id == LEGACY_ID
    body: JsonObject = {"role": "function", "name": block.name} if is_legacy else {"role": "tool"}
    if not is_legacy:
        body["tool_call_id"] = block.id
    same = bool(old) and _result(old, "").parts == block.parts
    body["content"] = old.get("content", "") if same else plain_text(block.parts) or block.text
    return body | {key: value for key, value in old.items() if key not in body and key not in _WRITTEN}


def _folded_content(turn: Turn, old: JsonValue, has_calls: bool) -> JsonValue:
    blocks = [block for block in turn.blocks if block.kind in ("text", "media", "other")]
    if not blocks:
        return None if has_calls and old != "" else ""
    return folded_content(blocks, old, _parts_json)


def _parts_json(block: Block) -> list[JsonValue]:
    if block.kind == "text":
        return [{"type": "text", "text": block.text}]
    return [part_json(part) for part in block.parts] if block.kind == "media" else [block.raw]


def _call_json(block: Block, message: JsonObject) -> JsonValue:
    """A call; one that was changed keeps the fields that blocks do not have."""
    if block.path.endswith(".function_call"):
        old: JsonObject = {}
    elif block.raw is not None:
        return block.raw
    else:
        old = old_call(message, block.path)
    kind, field = ("custom", "input") if isinstance(old.get("custom"), dict) else ("function", "arguments")
    held = old.get(kind)
    inner: JsonObject = {**obj(held), "name": block.name, field: block.arguments}
    entry: JsonObject = {**old, "id": block.id, "type": kind, kind: inner}
    if block.signature and "extra_content" not in entry:
        entry["extra_content"] = {"google": {"thought_signature": block.signature}}
    return entry


def old_call(message: JsonObject, path: str) -> JsonObject:
    """What stood at the path of a call in the message that it came from."""
    found = re.search(r"\.tool_calls\[(\d+)\]$", path)
    entries = message.get("tool_calls")
    if found is None or not isinstance(entries, list) or int(found[1]) >= len(entries):
        return {}
    old = entries[int(found[1])]
    return obj(old)


def _legacy_json(block: Block) -> JsonValue:
    return block.raw if block.raw is not None else {"name": block.name, "arguments": block.arguments}
