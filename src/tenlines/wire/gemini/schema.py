"""The dialect of `parameters`, a part of OpenAPI's schemas, read as JSON Schema."""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue

_DEEPEST = 64


def from_openapi(schema: JsonObject, levels: int = _DEEPEST) -> JsonObject:
    """`parameters` as JSON Schema: types in small letters, `nullable` as a type. What is unknown stays."""
    if levels == 0:
        return schema
    read: JsonObject = {}
    for key, value in schema.items():
        match key, value:
            case "type", str():
                read[key] = value.lower()
            case "properties", dict():
                read[key] = {name: _read(one, levels) for name, one in value.items()}
            case "anyOf", list():
                read[key] = [_read(one, levels) for one in value]
            case "items", _:
                read[key] = _read(value, levels)
            case "nullable" | "propertyOrdering", _:
                pass
            case _:
                read[key] = value
    return _nullable(read) if schema.get("nullable") is True else read


def _read(value: JsonValue, levels: int) -> JsonValue:
    return from_openapi(value, levels - 1) if isinstance(value, dict) else value


def _nullable(schema: JsonObject) -> JsonObject:
    kind, enum = schema.get("type"), schema.get("enum")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
        if isinstance(enum, list):
            schema["enum"] = [*enum, None]
        return schema
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        schema["anyOf"] = [*branches, {"type": "null"}]
    return schema
