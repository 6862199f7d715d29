"""Converse bodies, unfolded into turns and folded again."""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.transcript import File, Image, Json, JsonObject, JsonValue, Part, Text, text_of
from tenlines.wire.bedrock.binary import MEDIA, data_of
from tenlines.wire.bedrock.encoding import DOCUMENT_FORMATS, IMAGE_FORMATS, user_blocks
from tenlines.wire.folding import content_blocks, is_as_it_came, merged_tools, role_of, tool_of, tools_of
from tenlines.wire.format import Frame
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.parts import NO_OUTPUT, part_text
from tenlines.wire.turns import Block, Role, Tool, Turn

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

_TYPES = {short: long for long, short in (IMAGE_FORMATS | DOCUMENT_FORMATS).items()}

# --- from JSON to turns -----------------------------------------------------------------------------


def frame(body: JsonObject) -> Frame:
    """System prompt and tools of a body."""
    held = body.get("system")
    system = (
        ()
        if held is None
        else (Turn("system", tuple(content_blocks(held, "system", _block)), "system", held, "system"),)
    )
    return Frame(system, tools_of(tool_entries(body), "toolConfig.tools", _tool))


def tool_entries(body: JsonObject) -> list[JsonValue]:
    """What stands in the list of tools: tools, the service's own ones, marks of the cache."""
    config = body.get("toolConfig")
    entries = config.get("tools") if isinstance(config, dict) else None
    return items(entries)


def _tool(entry: JsonValue, path: str) -> Tool | None:
    spec = obj(entry).get("toolSpec")
    return tool_of(spec, f"{path}.toolSpec", entry, obj(obj(spec).get("inputSchema")).get("json") or {})


def unfold(message: JsonValue, path: str) -> Turn:
    """One message as a turn; total."""
    if not isinstance(message, dict):
        return Turn("unknown", (), path, message)
    wire_role = string(message.get("role"))
    blocks = content_blocks(message.get("content"), f"{path}.content", _block)
    return Turn(ROLES.get(wire_role, "unknown"), tuple(blocks), path, message, wire_role)


def _block(entry: JsonValue, path: str) -> Block:
    if not isinstance(entry, dict):
        return Block("other", path, entry)
    if isinstance(entry.get("text"), str):
        return Block("text", path, entry, text=string(entry["text"]))
    for kind in MEDIA:
        if kind in entry:
            return Block("media", path, entry, parts=_media(kind, entry[kind]))
    use, result, reasoning = entry.get("toolUse"), entry.get("toolResult"), entry.get("reasoningContent")
    if isinstance(use, dict) and not use.get("type"):  # what has a type runs at the service
        call_id, name = string(use.get("toolUseId")), string(use.get("name"))
        return Block("call", path, entry, id=call_id, name=name, arguments=use.get("input"))
    if isinstance(result, dict) and not result.get("type"):
        return _result(result, entry, path)
    if isinstance(reasoning, dict):
        return _reasoning(reasoning, entry, path)
    return Block("other", path, entry)


def _result(result: JsonObject, entry: JsonValue, path: str) -> Block:
    parts = tuple(_parts(result.get("content")))
    return Block(
        "result",
        path,
        entry,
        id=string(result.get("toolUseId")),
        text=text_of(parts),
        parts=parts,
        is_error=result.get("status") == "error",
    )


def _parts(content: JsonValue) -> list[Part]:
    """What can be read of the content of a result."""
    parts: list[Part] = []
    for entry in content if isinstance(content, list) else [content]:
        if isinstance(entry, str):
            parts.append(Text(entry))
        elif isinstance(entry, dict) and isinstance(entry.get("text"), str):
            parts.append(Text(string(entry["text"])))
        elif isinstance(entry, dict) and "json" in entry:
            parts.append(Json(entry["json"]))
        elif isinstance(entry, dict):
            for kind in MEDIA:
                parts += _media(kind, entry.get(kind))
    return parts


def _media(kind: str, held: JsonValue) -> tuple[Part, ...]:
    """The content of an image or a file; nothing when it is only referred to, or broken."""
    source = held.get("source") if isinstance(held, dict) else None
    if not isinstance(held, dict) or not isinstance(source, dict):
        return ()
    short = string(held.get("format"))
    media_type = _TYPES.get(short, f"{'application' if kind == 'document' else kind}/{short or '*'}")
    data = data_of(source.get("bytes"))
    place = source.get("s3Location")
    address = string(obj(place).get("uri"))
    if kind == "image":
        return (Image(media_type, data, address),) if data or address else ()
    return (File(media_type, data, string(held.get("name"))),) if data else ()


def _reasoning(held: JsonObject, entry: JsonValue, path: str) -> Block:
    inner = held.get("reasoningText")
    if not isinstance(inner, dict):
        return Block("reasoning", path, entry, signature=string(held.get("redactedContent")))
    text, signature = string(inner.get("text")), string(inner.get("signature"))
    return Block("reasoning", path, entry, text=text, signature=signature)


# --- from turns to JSON -----------------------------------------------------------------------------


def fold(turn: Turn) -> JsonValue:
    """A turn as a message; one that nobody touched goes back as it came."""
    raw = turn.raw
    if is_as_it_came(turn, unfold):
        return raw
    old = obj(raw)
    role = "user" if turn.role == "tool" else role_of(turn, ROLES)
    return {**old, "role": role, "content": [_block_json(block) for block in turn.blocks]}


def _block_json(block: Block) -> JsonValue:
    if block.raw is not None:
        return {"text": block.raw} if isinstance(block.raw, str) else block.raw
    match block.kind:
        case "call":
            return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": block.arguments}}
        case "result":
            return _result_json(block)
        case "media":
            return _shown(block.parts)[0]
        case "reasoning":
            held: JsonObject = {"text": block.text}
            if block.signature:
                held["signature"] = block.signature
            return {"reasoningContent": {"reasoningText": held}}
        case "text":
            return {"text": block.text}
        case _:
            return None


def _result_json(block: Block) -> JsonObject:
    content: list[JsonValue] = []
    for part in block.parts:
        if isinstance(part, Json):
            content.append({"json": part.value})
        elif isinstance(part, Image):
            content += _shown((part,))
        elif text := part_text(part):
            content.append({"text": text})
    if not content:
        content.append({"text": block.text or NO_OUTPUT})
    result: JsonObject = {"toolUseId": block.id, "content": content}
    if block.is_error:
        result["status"] = "error"
    return {"toolResult": result}


def _shown(parts: tuple[Part, ...]) -> list[JsonValue]:
    """Media as blocks; what the service does not take as words."""
    return [block for block in user_blocks(parts, 0) if isinstance(block, dict)]


def fold_frame(body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
    """The body with these system prompts and tools. Tools of the service and marks of the cache stay where they are;
    without any tool there is no list of them."""
    before = frame(body)
    ready = dict(body)
    if tuple(system) != before.system:
        blocks: list[JsonValue] = [_block_json(block) for turn in system for block in turn.blocks]
        if blocks:
            ready["system"] = blocks
        else:
            ready.pop("system", None)
    if tuple(tools) != before.tools:
        entries = merged_tools(tool_entries(body), tools, _tool, _tool_json)
        if entries:
            ready["toolConfig"] = {**obj(body.get("toolConfig")), "tools": entries}
        else:
            ready.pop("toolConfig", None)
    return ready


def _tool_json(tool: Tool) -> JsonValue:
    inner: JsonObject = {"name": tool.name}
    if tool.description.strip():
        inner["description"] = tool.description
    inner["inputSchema"] = {"json": tool.parameters or {"type": "object", "properties": {}}}
    return {"toolSpec": inner}
