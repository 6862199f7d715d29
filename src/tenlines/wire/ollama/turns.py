"""Ollama's native bodies, unfolded into turns and folded again.

Calls have no ids here: results stand behind them in their order and name the tool. Newer servers know ids as well;
where they stand they are kept.
"""

from __future__ import annotations

from tenlines.core.transcript import Image, JsonObject, JsonValue, Text
from tenlines.wire.folding import is_as_it_came, role_of
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.openai_chat import turns as chat
from tenlines.wire.parts import base64_bytes, base64_text, part_text, plain_text
from tenlines.wire.turns import Block, Role, Turn

ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_WRITTEN = frozenset({"content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"})
"""Fields that are written from blocks alone."""


# --- from JSON to turns -----------------------------------------------------------------------------


def unfold(message: JsonValue, path: str) -> Turn:
    """One message as a turn; total."""
    if not isinstance(message, dict):
        return Turn("unknown", (), path, message)
    wire_role = string(message.get("role"))
    role = ROLES.get(wire_role, "unknown")
    blocks = [_result(message, path)] if role == "tool" else _blocks(message, path)
    return Turn(role, tuple(blocks), path, message, wire_role)


def _blocks(message: JsonObject, path: str) -> list[Block]:
    blocks = []
    thinking, content, calls = message.get("thinking"), message.get("content"), message.get("tool_calls")
    if thinking is not None:
        blocks.append(Block("reasoning", f"{path}.thinking", thinking, text=string(thinking)))
    if isinstance(content, str):
        if content or not calls:  # empty text beside calls stands for none
            blocks.append(Block("text", f"{path}.content", content, text=content))
    elif content is not None:
        blocks.append(Block("other", f"{path}.content", content))
    for index, image in enumerate(items(message.get("images"))):
        blocks.append(_image(image, f"{path}.images[{index}]"))
    for index, entry in enumerate(items(calls)):
        blocks.append(_call(entry, f"{path}.tool_calls[{index}]"))
    return blocks


def _image(image: JsonValue, path: str) -> Block:
    data = base64_bytes(string(image))
    return Block("media", path, image, parts=(Image("image/*", data),) if data else ())


def _call(entry: JsonValue, path: str) -> Block:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(function, dict):
        return Block("call", path, entry)
    name, arguments = string(function.get("name")), function.get("arguments")
    return Block("call", path, entry, id=string(entry.get("id")), name=name, arguments=arguments)


def _result(message: JsonObject, path: str) -> Block:
    content = message.get("content")
    return Block(
        "result",
        path,
        message,
        id=string(message.get("tool_call_id")),
        name=string(message.get("tool_name")) or string(message.get("name")),
        text=string(content),
        parts=(Text(content),) if isinstance(content, str) else (),
    )


# --- from turns to JSON -----------------------------------------------------------------------------


def fold(turn: Turn) -> JsonValue:
    """A turn as a message; one that nobody touched goes back as it came."""
    raw = turn.raw
    if is_as_it_came(turn, unfold):
        return raw
    old = obj(raw)
    results = turn.of("result")
    if results and isinstance(results[0].raw, dict):
        return results[0].raw
    body: JsonObject = {"role": role_of(turn, ROLES)}
    if results:
        body |= _result_json(results[0])
    else:
        body |= _message_json(turn, old)
    return body | {key: value for key, value in old.items() if key not in body and key not in _WRITTEN}


def _result_json(block: Block) -> JsonObject:
    body: JsonObject = {"tool_name": block.name} if block.name else {}
    if block.id:
        body["tool_call_id"] = block.id
    return {**body, "content": plain_text(block.parts) or block.text}


def _message_json(turn: Turn, old: JsonObject) -> JsonObject:
    body: JsonObject = {"content": _content(turn)}
    for block in turn.of("reasoning"):
        body["thinking"] = block.text if block.raw is None else block.raw
    images = [image for block in turn.of("media") for image in _image_json(block)]
    if images:
        body["images"] = images
    calls: list[JsonValue] = [_call_json(block, old) for block in turn.of("call")]
    if calls:
        body["tool_calls"] = calls
    return body


def _content(turn: Turn) -> JsonValue:
    others = turn.of("other")
    if others and not turn.of("text"):
        return others[0].raw
    told = [part_text(part) for block in turn.of("media") for part in block.parts if not _has_bytes(part)]
    return "\n\n".join([block.text for block in turn.of("text")] + told)


def _has_bytes(part: object) -> bool:
    return isinstance(part, Image) and bool(part.data)


def _image_json(block: Block) -> list[JsonValue]:
    """The bytes of images; what is only an address has no place here and is told in the text."""
    if isinstance(block.raw, str):
        return [block.raw]
    return [base64_text(part.data) for part in block.parts if isinstance(part, Image) and part.data]


def _call_json(block: Block, message: JsonObject) -> JsonValue:
    if block.raw is not None:
        return block.raw
    kept = chat.old_call(message, block.path)
    inner: JsonObject = {**obj(kept.get("function")), "name": block.name, "arguments": block.arguments}
    entry: JsonObject = {**kept, "function": inner}
    if block.id:
        entry["id"] = block.id
    return entry
