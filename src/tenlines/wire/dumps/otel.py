"""Messages in the attributes of OpenTelemetry's GenAI spans and events, as values or as the text of their JSON."""

from __future__ import annotations

from tenlines.core.transcript import Json, JsonObject, JsonValue, Part
from tenlines.wire.dumps.dump import (
    Dump,
    attachment,
    media_block,
    parsed,
    result_block,
    text_block,
    tool,
    turn,
    value_parts,
)
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.turns import Block, Role, Turn

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM, TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def attributes(value: JsonValue) -> JsonObject:
    """The attributes of a span or an event; {} when there are none.

    They stand in the value itself, under `attributes`, or (as OTLP writes them) in a list of keys and values.
    """
    held = obj(value)
    if any(key.startswith("gen_ai.") for key in held):
        return held
    inner = held.get("attributes")
    if isinstance(inner, list):
        return {string(obj(one).get("key")): _plain(obj(one).get("value")) for one in inner}
    return obj(inner) if any(key.startswith("gen_ai.") for key in obj(inner)) else {}


def _plain(value: JsonValue, depth: int = 0) -> JsonValue:
    """A value as OTLP tags it, without the tags."""
    held = obj(value)
    if depth > 50 or len(held) != 1:
        return value
    [(kind, inner)] = held.items()
    match kind:
        case "stringValue" | "boolValue" | "intValue" | "doubleValue":
            return inner
        case "arrayValue":
            return [_plain(one, depth + 1) for one in items(obj(inner).get("values"))]
        case "kvlistValue":
            pairs = [obj(one) for one in items(obj(inner).get("values"))]
            return {string(pair.get("key")): _plain(pair.get("value"), depth + 1) for pair in pairs}
        case _:
            return value


def read(value: JsonValue) -> Dump:
    """The messages of one span: its instructions, what went in, and what came out; or a bare list of messages."""
    if isinstance(value, list):
        return Dump(tuple(_turns(value, "")))
    held = attributes(value)
    turns: list[Turn] = []
    pieces = items(parsed(held.get(SYSTEM)))
    if pieces:
        blocks = [_block(piece, f"{SYSTEM}[{index}]") for index, piece in enumerate(pieces)]
        turns.append(turn("system", blocks, SYSTEM, pieces))
    for key in (INPUT, OUTPUT):
        turns += _turns(items(parsed(held.get(key))), key)
    found = (tool(entry, f"{TOOLS}[{index}]") for index, entry in enumerate(items(parsed(held.get(TOOLS)))))
    return Dump(tuple(turns), tuple(one for one in found if one is not None))


def _turns(messages: list[JsonValue], path: str) -> list[Turn]:
    """A message with several results is as many turns as it has results."""
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        held, place = obj(message), f"{path}[{index}]"
        wire_role = string(held.get("role"))
        pieces = enumerate(items(held.get("parts")))
        blocks = [_block(piece, f"{place}.parts[{number}]") for number, piece in pieces]
        results = [block for block in blocks if block.kind == "result"]
        others = [block for block in blocks if block.kind != "result"]
        turns += [turn("tool", [block], block.path, block.raw, wire_role) for block in results]
        if others or not results:
            turns.append(turn(ROLES.get(wire_role, "unknown"), others, place, message, wire_role))
    return turns


def _block(piece: JsonValue, path: str) -> Block:
    held = obj(piece)
    kind = string(held.get("type"))
    if kind == "text":
        return text_block(string(held.get("content", held.get("text"))), path, piece)
    if kind in ("reasoning", "thinking"):
        signature = string(held.get("signature"))
        return Block("reasoning", path, piece, text=string(held.get("content")), signature=signature)
    ids = string(held.get("id")), string(held.get("name"))
    if kind == "tool_call":
        return Block("call", path, piece, id=ids[0], name=ids[1], arguments=held.get("arguments"))
    if kind == "tool_call_response":
        parts = _result_parts(held.get("response", held.get("result")))
        return result_block(path, piece, ids, parts, is_error=False)
    if kind in ("blob", "uri"):
        return media_block(path, piece, _media(held))
    return Block("other", path, piece)


def _result_parts(value: JsonValue) -> tuple[Part, ...]:
    if not isinstance(value, list) or not value or not all(obj(one).get("type") for one in value):
        return value_parts(value)
    parts: list[Part] = []
    for one in value:
        block = _block(one, "")
        parts += value_parts(block.text) if block.kind == "text" else block.parts or (Json(one),)
    return tuple(parts)


def _media(held: JsonObject) -> tuple[Part, ...]:
    media_type = string(held.get("mime_type"))
    modality = string(held.get("modality"))
    return attachment(
        string(held.get("content") or held.get("uri")), media_type or (f"{modality}/*" if modality else "")
    )
