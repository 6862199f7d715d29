"""Bodies for Mistral, unfolded into turns and folded again.

A result is a message of its own here (`tool`), so its turn has one block, and that block is the whole message.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.transcript import File, Image, JsonObject, JsonValue, Part, text_of
from tenlines.wire.folding import (
    content_blocks,
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
from tenlines.wire.parts import base64_bytes, data_in, data_url, part_text, plain_text
from tenlines.wire.turns import Block, Role, Tool, Turn

ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}

# --- from JSON to turns -----------------------------------------------------------------------------


def frame(body: JsonObject) -> Frame:
    """Tools of a body; system prompts stand among the messages."""
    return Frame((), tools_of(items(body.get("tools")), "tools", _tool))


def _tool(entry: JsonValue, path: str) -> Tool | None:
    return tool_of(obj(entry).get("function"), path, entry)


def unfold(message: JsonValue, path: str) -> Turn:
    """One message as a turn; total."""
    if not isinstance(message, dict):
        return Turn("unknown", (), path, message)
    wire_role = string(message.get("role"))
    role = ROLES.get(wire_role, "unknown")
    content = _content(message.get("content"), f"{path}.content")
    if role == "tool":
        blocks = [_result(message, content, path)]
    else:
        calls = enumerate(items(message.get("tool_calls")))
        blocks = content + [_call(entry, f"{path}.tool_calls[{index}]") for index, entry in calls]
    return Turn(role, tuple(blocks), path, message, wire_role)


def _content(content: JsonValue, path: str) -> list[Block]:
    return content_blocks(content, path, _chunk)


def _chunk(chunk: JsonValue, path: str) -> Block:
    kind = chunk.get("type") if isinstance(chunk, dict) else None
    if not isinstance(chunk, dict) or not isinstance(kind, str):
        return Block("other", path, chunk)
    if kind == "text" and isinstance(chunk.get("text"), str):
        return Block("text", path, chunk, text=string(chunk["text"]))
    if kind in ("image_url", "input_audio", "audio_url", "document_url", "file"):
        return Block("media", path, chunk, parts=_media(kind, chunk))
    if kind == "thinking":
        return Block("reasoning", path, chunk, text=_thought(chunk), signature=string(chunk.get("signature")))
    return Block("other", path, chunk)


def _media(kind: str, chunk: JsonObject) -> tuple[Part, ...]:
    """The content of an image or an audio chunk; nothing when it is only referred to, or broken."""
    held = chunk.get(kind)
    address = string(held.get("url")) if isinstance(held, dict) else string(held)
    found = data_in(address)
    media_type, data = found or ("", b"")
    if kind == "image_url":
        return (Image(media_type or "image/*", data, "" if found else address),) if address else ()
    if kind == "input_audio":
        data = data if found else base64_bytes(address)
        return (File("audio/*", data),) if data else ()
    return (File(media_type or "application/octet-stream", data),) if data else ()


def _thought(chunk: JsonObject) -> str:
    thinking = chunk.get("thinking")
    if isinstance(thinking, list):
        return "".join(string(one.get("text")) for one in thinking if isinstance(one, dict))
    return string(thinking)


def _result(message: JsonObject, content: list[Block], path: str) -> Block:
    parts = parts_in(content)
    return Block(
        "result",
        path,
        message,
        id=id_in(message.get("tool_call_id")),
        name=string(message.get("name")),
        text=text_of(parts),
        parts=parts,
    )


def _call(entry: JsonValue, path: str) -> Block:
    if not isinstance(entry, dict):
        return Block("call", path, entry)
    held = obj(entry.get("function"))
    name = string(held.get("name"))
    return Block("call", path, entry, id=id_in(entry.get("id")), name=name, arguments=held.get("arguments"))


def id_in(value: JsonValue) -> str:
    """An id as it stands; `null` in quotes is none either."""
    return "" if value == "null" else string(value)


# --- from turns to JSON -----------------------------------------------------------------------------


def fold(turn: Turn) -> JsonValue:
    """A turn as a message; one that nobody touched goes back as it came."""
    raw = turn.raw
    if is_as_it_came(turn, unfold):
        return raw
    results = turn.of("result")
    if results:
        return _fold_result(results[0])
    old = obj(raw)
    body: JsonObject = {**old, "role": role_of(turn, ROLES)}
    calls: list[JsonValue] = [_call_json(block) for block in turn.of("call")]
    content = [block for block in turn.blocks if block.kind not in ("call", "result")]
    body.pop("tool_calls", None)
    if content:
        body["content"] = folded_content(content, old.get("content"), _chunks_json)
    elif calls:
        body.pop("content", None)
    else:
        body["content"] = ""
    if calls:
        body["tool_calls"] = calls
    return body


def _fold_result(block: Block) -> JsonObject:
    if isinstance(block.raw, dict):
        return block.raw
    message: JsonObject = {"role": "tool", "tool_call_id": block.id}
    if block.name:
        message["name"] = block.name
    if any(isinstance(part, Image) and (part.data or part.url) for part in block.parts):
        message["content"] = [_part_json(part) for part in block.parts]
    else:
        message["content"] = plain_text(block.parts) or block.text
    return message


def _chunks_json(block: Block) -> list[JsonValue]:
    if block.kind == "reasoning":
        return [{"type": "thinking", "thinking": [{"type": "text", "text": block.text}]}]
    if block.kind == "media":
        return [_part_json(part) for part in block.parts]
    return [{"type": "text", "text": block.text}] if block.kind == "text" else [block.raw]


def _part_json(part: Part) -> JsonObject:
    if isinstance(part, Image) and (part.data or part.url):
        return {"type": "image_url", "image_url": part.url or data_url(part)}
    return {"type": "text", "text": part_text(part)}


def _call_json(block: Block) -> JsonValue:
    if block.raw is not None:
        return block.raw
    arguments = "{}" if block.arguments is None else block.arguments
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def fold_frame(body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
    """The body with these tools; the provider's own ones among them stay where they are."""
    if tuple(tools) == frame(body).tools:
        return body
    return {**body, "tools": merged_tools(items(body.get("tools")), tools, _tool, _tool_json)}


def _tool_json(tool: Tool) -> JsonValue:
    function: JsonObject = {"name": tool.name, "description": tool.description}
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}
