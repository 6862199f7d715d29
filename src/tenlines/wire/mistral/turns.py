"""Bodies for Mistral, unfolded into turns and folded again.

A result is a message of its own here (`tool`), so its turn has one block, and that block is the whole message.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from tenlines.core.transcript import File, Image, JsonObject, JsonValue, Part, Text, text_of
from tenlines.wire.format import Frame
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.parts import data_url, part_text, plain_text
from tenlines.wire.turns import Block, Role, Tool, Turn

ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}

# --- from JSON to turns -----------------------------------------------------------------------------


def frame(body: JsonObject) -> Frame:
    """Tools of a body; system prompts stand among the messages."""
    tools = (_tool(entry, f"tools[{index}]") for index, entry in enumerate(_tool_entries(body)))
    return Frame((), tuple(tool for tool in tools if tool is not None))


def _tool_entries(body: JsonObject) -> list[JsonValue]:
    return items(body.get("tools"))


def _tool(entry: JsonValue, path: str) -> Tool | None:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict):
        return None
    return Tool(
        string(function.get("name")),
        path,
        string(function.get("description")),
        obj(function.get("parameters")),
        entry,
    )


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
    if content is None:
        return []
    if isinstance(content, str):
        return [Block("text", path, content, text=content)]
    if not isinstance(content, list):
        return [Block("other", path, content)]
    return [_chunk(chunk, f"{path}[{index}]") for index, chunk in enumerate(content)]


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
    match = _DATA_URL.match(address)
    data = _decoded(address[match.end() :] if match else address)
    if kind == "image_url":
        media_type = (match[1] if match else "") or "image/*"
        return (Image(media_type, data if match else b"", "" if match else address),) if address else ()
    if kind == "input_audio":
        return (File("audio/*", data),) if data else ()
    return (File((match[1] or "application/octet-stream"), data),) if match and data else ()


_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?,")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _thought(chunk: JsonObject) -> str:
    thinking = chunk.get("thinking")
    if isinstance(thinking, list):
        return "".join(string(one.get("text")) for one in thinking if isinstance(one, dict))
    return string(thinking)


def _result(message: JsonObject, content: list[Block], path: str) -> Block:
    parts: list[Part] = []
    for piece in content:
        parts += (Text(piece.text),) if piece.kind == "text" else piece.parts
    return Block(
        "result",
        path,
        message,
        id=id_in(message.get("tool_call_id")),
        name=string(message.get("name")),
        text=text_of(tuple(parts)),
        parts=tuple(parts),
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
    if turn.role == "unknown" and not isinstance(raw, dict):
        return raw
    if isinstance(raw, dict) and unfold(raw, turn.path) == turn:
        return raw
    results = turn.of("result")
    if results:
        return _fold_result(results[0])
    old = obj(raw)
    body: JsonObject = {**old, "role": _role(turn)}
    calls: list[JsonValue] = [_call_json(block) for block in turn.of("call")]
    content = [block for block in turn.blocks if block.kind not in ("call", "result")]
    body.pop("tool_calls", None)
    if content:
        body["content"] = _folded_content(content, old.get("content"))
    elif calls:
        body.pop("content", None)
    else:
        body["content"] = ""
    if calls:
        body["tool_calls"] = calls
    return body


def _role(turn: Turn) -> JsonValue:
    if isinstance(turn.raw, dict) and ROLES.get(turn.wire_role, "unknown") == turn.role:
        return turn.raw.get("role", turn.wire_role)
    return turn.role


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


def _folded_content(blocks: list[Block], old: JsonValue) -> JsonValue:
    if len(blocks) == 1 and not isinstance(old, list):
        only = blocks[0]
        if only.kind == "text":
            return only.text
        if only.path.endswith(".content") and only.raw is not None:
            return only.raw
    chunks: list[JsonValue] = []
    for block in blocks:
        # the text of a whole content is not yet a chunk
        is_chunk = block.raw is not None and not (block.kind == "text" and isinstance(block.raw, str))
        chunks += [block.raw] if is_chunk else _chunks_json(block)
    return chunks


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
    waiting = list(tools)
    entries: list[JsonValue] = []
    for entry in _tool_entries(body):
        if _tool(entry, "") is None:
            entries.append(entry)
        elif waiting:
            entries.append(_tool_json(waiting.pop(0)))
    return {**body, "tools": entries + [_tool_json(tool) for tool in waiting]}


def _tool_json(tool: Tool) -> JsonValue:
    if tool.raw is not None:
        return tool.raw
    function: JsonObject = {"name": tool.name, "description": tool.description}
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}
