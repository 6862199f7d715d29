"""What every reader of dumps gives, and what they all need."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from tenlines.core.transcript import File, Image, Json, JsonValue, Part, Text, text_of
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.turns import Block, Role, Tool, Turn


class Dump(NamedTuple):
    """What was read."""

    turns: tuple[Turn, ...] = ()
    tools: tuple[Tool, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was left out or had to be decided, one sentence each."""


def entries(value: JsonValue, field: str = "messages", path: str = "") -> Iterator[tuple[JsonValue, str]]:
    """The messages of a list, or of the field of an object that holds one, each with its path."""
    if isinstance(value, dict):
        value, path = value.get(field), f"{path}.{field}" if path else field
    for index, entry in enumerate(items(value)):
        yield entry, f"{path}[{index}]"


def text_block(text: str, path: str, raw: JsonValue) -> Block:
    """A block of text."""
    return Block("text", path, raw, text=text)


def result_block(path: str, raw: JsonValue, ids: tuple[str, str], parts: tuple[Part, ...], is_error: bool) -> Block:
    """A result. `ids` are the id of the call and the name of the tool."""
    text = text_of(parts)
    return Block("result", path, raw, id=ids[0], name=ids[1], text=text, parts=parts, is_error=is_error)


def value_parts(value: JsonValue) -> tuple[Part, ...]:
    """A result of any JSON: text as text, nothing as nothing, everything else as it is."""
    if value is None or value == "":
        return ()
    return (Text(value),) if isinstance(value, str) else (Json(value),)


def media_block(path: str, raw: JsonValue, parts: tuple[Part, ...]) -> Block:
    """A block with an image or a file."""
    return Block("media", path, raw, parts=parts)


_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?,")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def attachment(source: str, media_type: str = "", name: str = "") -> tuple[Part, ...]:
    """An image or a file from its address, its `data:` address or its base64; nothing when it cannot be read.

    A file that is known by its address alone has no part of its own; the block keeps what was written.
    """
    match = _DATA_URL.match(source)
    if match:
        media_type, source = match[1] or media_type, source[match.end() :]
    elif _ADDRESS.match(source):
        is_image = media_type.startswith("image/") or not media_type
        return (Image(media_type or "image/*", b"", source),) if is_image else ()
    data = _decoded(source)
    if not data:
        return ()
    if media_type.startswith("image/"):
        return (Image(media_type, data),)
    return (File(media_type or "application/octet-stream", data, name),)


def _decoded(text: str) -> bytes:
    """Base64 in either alphabet, padded or not."""
    plain = text.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return b""


def tool(entry: JsonValue, path: str) -> Tool | None:
    """A tool in the spelling of Chat Completions, or flat; None when it has no name."""
    held = obj(entry)
    inner = held.get("function")
    held = inner if isinstance(inner, dict) else held
    name = string(held.get("name"))
    if not name:
        return None
    parameters = next((held[key] for key in _PARAMETERS if isinstance(held.get(key), dict)), {})
    return Tool(name, path, string(held.get("description")), obj(parameters), entry)


_PARAMETERS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")


def tools_in(value: JsonValue, field: str = "tools") -> tuple[Tool, ...]:
    """The tools that a dump declares."""
    found = (tool(entry, path) for entry, path in entries(value, field)) if isinstance(value, dict) else ()
    return tuple(one for one in found if one is not None)


def parsed(value: JsonValue) -> JsonValue:
    """A value that may have been written as the text of its JSON."""
    if not isinstance(value, str):
        return value
    try:
        found: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found


def turn(role: Role, blocks: list[Block], path: str, raw: JsonValue, wire_role: str = "") -> Turn:
    """A turn with the message that it came from."""
    return Turn(role, tuple(blocks), path, raw, wire_role)
