"""Reading JSON of any shape: a value as what is wanted in its place, or as nothing of the kind."""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.parts import json_text


def string(value: JsonValue) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def items(value: JsonValue) -> list[JsonValue]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def obj(value: JsonValue) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def excerpt(value: JsonValue) -> str:
    """The beginning of a value, for an error or a remark."""
    return json_text(value)[:500]
