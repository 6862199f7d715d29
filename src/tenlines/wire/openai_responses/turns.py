"""Bodies of this format, unfolded into turns and folded again. Every item is a turn of its own.

Items whose type is not known here, and those of tools that the server runs, are one `other` block: they may stand for
anything and are never changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tenlines.core.transcript import File, Image, Json, JsonObject, JsonValue, Part, Text, text_of
from tenlines.wire.folding import content_blocks, declared, merged_tools, tool_of, tools_of
from tenlines.wire.format import Frame
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.openai_responses.encoding import (
    CUSTOM_CALL,
    input_parts,
    input_text,
    is_message,
    spoken,
    text_in,
)
from tenlines.wire.parts import data_in, plain_text
from tenlines.wire.turns import Block, Role, Tool, Turn

ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}

_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Type of a part -> the field with its text."""

# --- from JSON to turns -----------------------------------------------------------------------------


def frame(body: JsonObject) -> Frame:
    """`instructions` and the tools that are the caller's own."""
    instructions = body.get("instructions")
    system: tuple[Turn, ...] = ()
    if isinstance(instructions, str):
        block = Block("text", "instructions", instructions, text=instructions)
        system = (Turn("system", (block,), "instructions", instructions),)
    return Frame(system, tools_of(items(body.get("tools")), "tools", _tool))


def _tool(entry: JsonValue, path: str) -> Tool | None:
    """A function or a custom tool; anything else is the provider's own."""
    is_own = isinstance(entry, dict) and entry.get("type") in ("function", "custom")
    return tool_of(entry, path, entry) if is_own else None


def unfold(item: JsonValue, path: str) -> Turn:
    """One item as a turn; total."""
    if not isinstance(item, dict):
        return Turn("unknown", (), path, item)
    if is_message(item):
        return _message(item, path)
    kind = item.get("type")
    unfolded = _ITEMS.get(kind) if isinstance(kind, str) else None
    if unfolded is not None:
        return unfolded(item, path)
    if "type" not in item and "call_id" in item and "output" in item:  # the type alone is missing
        return Turn("unknown", (replace(_result(item, path), raw=None),), path, item)
    return Turn("unknown", (Block("other", path, item),) if "type" in item or "id" in item else (), path, item)


def _message(item: JsonObject, path: str) -> Turn:
    wire_role = string(item.get("role"))
    if wire_role in ("tool", "function"):  # a message of Chat Completions that strayed in here
        return Turn("unknown", (_result(item, path),), path, item, wire_role)
    blocks = content_blocks(item.get("content"), f"{path}.content", _part)
    return Turn(ROLES.get(wire_role, "unknown"), tuple(blocks), path, item, wire_role)


def _part(part: JsonValue, path: str) -> Block:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        return Block("other", path, part)
    text = part.get(_TEXT_PARTS[kind]) if kind in _TEXT_PARTS else None
    if isinstance(text, str):
        return Block("text", path, part, text=text)
    if kind in ("input_image", "input_file"):
        return Block("media", path, part, parts=_media(part))
    return Block("other", path, part)


def _media(part: JsonObject) -> tuple[Part, ...]:
    """The image or the file of a part; nothing when it is by reference only, or broken."""
    if part.get("type") == "input_image":
        address = string(part.get("image_url"))
        media_type, data = _data(address)
        return (Image(media_type or "image/*", data, "" if data else address),) if address else ()
    media_type, data = _data(string(part.get("file_data")))
    return (File(media_type or "application/octet-stream", data, string(part.get("filename"))),) if data else ()


def _data(address: str) -> tuple[str, bytes]:
    found = data_in(address)
    return found if found and found[1] else ("", b"")


def _call(item: JsonObject, path: str) -> Turn:
    return _calling(item, path, item.get("arguments"))


def _custom_call(item: JsonObject, path: str) -> Turn:
    """The input of such a call is any text; as arguments it is an object that holds it."""
    return _calling(item, path, _wrapped(item.get("input")))


def _calling(item: JsonObject, path: str, arguments: JsonValue) -> Turn:
    call_id, name = string(item.get("call_id")), string(item.get("name"))
    return Turn("assistant", (Block("call", path, item, id=call_id, name=name, arguments=arguments),), path, item)


def _wrapped(given: JsonValue) -> JsonValue:
    return json.dumps({"input": given}, ensure_ascii=False) if isinstance(given, str) else None


def _output(item: JsonObject, path: str) -> Turn:
    return Turn("tool", (_result(item, path),), path, item)


def _result(item: JsonObject, path: str) -> Block:
    """The result in an output item, or in a message of the role `tool`."""
    is_stray = "output" not in item and "content" in item
    content = item["content"] if is_stray else item.get("output")
    parts = _result_parts(content)
    return Block(
        "result",
        path,
        item,
        id=string(item.get("tool_call_id" if is_stray else "call_id")),
        name=string(item.get("name")),
        text=text_of(parts),
        parts=parts,
    )


def _result_parts(content: JsonValue) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list):
        return (Json(content),)
    parts: list[Part] = []
    for index, raw in enumerate(content):
        block = _part(raw, str(index))
        if block.kind == "text":
            parts.append(Text(block.text))
        else:
            parts.extend(block.parts or (Json(raw),))
    return tuple(parts)


def _reasoning(item: JsonObject, path: str) -> Turn:
    texts = [text_in(item.get(field)) for field in ("summary", "content")]
    signature = string(item.get("encrypted_content"))
    text = "\n\n".join(text for text in texts if text)
    return Turn("assistant", (Block("reasoning", path, item, text=text, signature=signature),), path, item)


_ITEMS: dict[str, Callable[[JsonObject, str], Turn]] = {
    "function_call": _call,
    CUSTOM_CALL: _custom_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "reasoning": _reasoning,
}

# --- from turns to JSON -----------------------------------------------------------------------------


def fold(turn: Turn) -> JsonValue:
    """A turn as an item."""
    if turn.role == "unknown" or _is_untouched(turn):
        return turn.raw
    old = obj(turn.raw)
    block = turn.blocks[0] if len(turn.blocks) == 1 else None
    match block.kind if block is not None else "":
        case "call" if block is not None:
            return _folded_call(block, old)
        case "result" if block is not None:
            return _folded_result(block, old)
        case "reasoning" | "other" if block is not None and (not old or not is_message(old)):
            return block.raw
        case _:
            return _folded_message(turn, old)


def _is_untouched(turn: Turn) -> bool:
    if turn.raw is None:
        return False
    given = unfold(turn.raw, turn.path)
    return (
        turn.role == given.role
        and len(turn.blocks) == len(given.blocks)
        and all(one.raw is other.raw for one, other in zip(turn.blocks, given.blocks, strict=True))
    )


def _folded_call(block: Block, old: JsonObject) -> JsonObject:
    """A call from its fields. It is not what the server made any more, so it does not keep the server's id."""
    kept = {key: value for key, value in old.items() if key not in ("id", "status")} if _is_call(old) else {}
    kind = CUSTOM_CALL if kept.get("type") == CUSTOM_CALL else "function_call"
    item: JsonObject = {"type": kind, **kept, "call_id": block.id, "name": block.name}
    if kind == CUSTOM_CALL:
        if block.arguments != _wrapped(old.get("input")):
            item["input"] = _unwrapped(block.arguments)
    else:
        item["arguments"] = block.arguments
    return item


def _is_call(item: JsonObject) -> bool:
    return item.get("type") in ("function_call", CUSTOM_CALL)


def _unwrapped(arguments: JsonValue) -> str:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        value = arguments
    held = value.get("input") if isinstance(value, dict) else value
    return held if isinstance(held, str) else json.dumps(held)


def _folded_result(block: Block, old: JsonObject) -> JsonObject:
    is_output = string(old.get("type")).endswith("_output")
    item: JsonObject = {"type": "function_call_output", **(old if is_output else {}), "call_id": block.id}
    item.pop("id", None)
    if is_output and old.get("output") is not None and block.parts == _result_parts(old["output"]):
        return item
    has_media = any(isinstance(part, Image | File) for part in block.parts)
    item["output"] = input_parts(block.parts) if has_media else (plain_text(block.parts) or block.text)
    return item


def _folded_message(turn: Turn, old: JsonObject) -> JsonObject:
    role = turn.wire_role if ROLES.get(turn.wire_role) == turn.role else _WIRE_ROLES.get(turn.role, "user")
    kept = {**old, "role": role} if is_message(old) else {"type": "message", "role": role}
    content = [one for block in turn.blocks for one in _folded_blocks(block, role)]
    if (
        len(content) == 1
        and isinstance(old.get("content"), str | None)
        and all(block.kind == "text" for block in turn.blocks)
    ):
        return {**kept, "content": turn.blocks[0].text}
    if not old and role == "assistant":
        return spoken(text_in(content))
    return {**kept, "content": content}


_WIRE_ROLES = {"system": "system", "user": "user", "assistant": "assistant"}


def _folded_blocks(block: Block, role: str) -> list[JsonValue]:
    """The parts of a message for one block: as they came, or written from its fields."""
    if block.raw is not None and not isinstance(block.raw, str):
        return [block.raw]
    match block.kind:
        case "text" if role == "assistant":
            return [{"type": "output_text", "text": block.text, "annotations": []}]
        case "text" | "result" | "call":
            return [input_text(block.text or plain_text(block.parts))]
        case "media":
            return input_parts(block.parts)
        case _:
            return [block.raw]


def fold_frame(body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
    """The body with these instructions and tools; the provider's own tools stay where they are."""
    folded = dict(body)
    texts = [block.text for turn in system for block in turn.blocks]
    if texts:
        folded["instructions"] = "\n\n".join(texts)
    elif isinstance(body.get("instructions"), str):
        del folded["instructions"]
    listed = body.get("tools")
    entries = merged_tools(items(listed), tools, _tool, _folded_tool)
    if entries:
        folded["tools"] = entries
    elif isinstance(listed, list) and listed:
        del folded["tools"]
    return folded


def _folded_tool(tool: Tool) -> JsonValue:
    return {"type": "function", **declared(tool), "strict": False}
