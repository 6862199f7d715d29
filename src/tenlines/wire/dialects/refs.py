"""References within a schema: where they lead, whether they lead back, and several schemas as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dialects.subsets import ANNOTATIONS, CORE, DEEPEST, types_of
from tenlines.wire.json_values import items

DEFINITIONS = ("#/$defs/", "#/definitions/")


class References:
    """The references of one schema."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self.names = tuple(dict.fromkeys(_found(root)))
        self.lost = tuple(name for name in self.names if self.target(name) is None)
        """References to something outside the schema, or to nothing."""

    def target(self, name: str) -> JsonValue:
        """What a reference leads to; None when that is not in this schema."""
        if name != "#" and not name.startswith("#/"):
            return None
        here: JsonValue = self._root
        for step in name[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(here, dict):
                here = here.get(key)
            elif isinstance(here, list) and key.isdecimal() and len(key) < 6 and int(key) < len(here):
                here = here[int(key)]
            else:
                return None
        return here if isinstance(here, dict | bool) else None

    def are_recursive(self) -> bool:
        """Whether some reference leads back to itself. References that lead nowhere else are taken away until none
        is left."""
        leads = {name: set(_found(self.target(name))) for name in self.names}
        users: dict[str, list[str]] = {}
        for name, others in leads.items():
            for other in others:
                users.setdefault(other, []).append(name)
        done = [name for name, others in leads.items() if not others]
        left = len(leads) - len(done)
        while done:
            gone = done.pop()
            for user in users.get(gone, ()):
                leads[user].discard(gone)
                if not leads[user]:
                    done.append(user)
                    left -= 1
        return left > 0


def _found(value: JsonValue) -> Iterator[str]:
    """All references in a schema. What looks like one inside an enum or a default is harmless: it is only counted."""
    todo = [(value, 0)]
    while todo:
        here, depth = todo.pop()
        if depth > 4 * DEEPEST:
            continue
        if isinstance(here, dict):
            name = here.get("$ref")
            if isinstance(name, str):
                yield name
            todo.extend((one, depth + 1) for key, one in here.items() if key not in ("enum", "const", "default"))
        elif isinstance(here, list):
            todo.extend((one, depth + 1) for one in here)


class Resolved(NamedTuple):
    """A schema without a reference or an `allOf` at its top.

    Attributes:
        schema: The schema; what a reference that leads back stood for, when `again`.
        trail: The references that were followed.
        again: A reference led back to where it was followed already.
        missing: A reference that leads out of the schema; "" when there is none.
    """

    schema: JsonObject
    trail: frozenset[str]
    again: bool = False
    missing: str = ""


def resolve(schema: JsonValue, references: References, trail: frozenset[str], depth: int = 0) -> Resolved:
    """Follow the reference at the top of a schema and merge its `allOf`."""
    if not isinstance(schema, dict):
        return Resolved({"not": {}} if schema is False else {}, trail)
    name = schema.get("$ref")
    if isinstance(name, str):
        beside = {key: value for key, value in schema.items() if key != "$ref" and key not in CORE}
        target = references.target(name)
        if target is None:
            return Resolved(beside, trail, missing=name)
        if name in trail or depth > DEEPEST:
            return Resolved({**(target if isinstance(target, dict) else {}), **beside}, trail, again=True)
        found = resolve(target, references, trail | {name}, depth + 1)
        return found._replace(schema=_over(found.schema, beside)) if beside else found
    parts = schema.get("allOf")
    if not isinstance(parts, list):
        return Resolved(schema, trail)
    whole: JsonObject = {key: value for key, value in schema.items() if key != "allOf"}
    missing = ""
    for part in parts:
        found = resolve(part, references, trail, depth + 1)
        whole, trail = merged(whole, found.schema), trail | found.trail
        missing = missing or found.missing
        if found.again:
            return Resolved(whole, trail, again=True, missing=missing)
    return Resolved(whole, trail, missing=missing)


def _over(target: JsonObject, beside: JsonObject) -> JsonObject:
    """What a reference stands for, with what is written beside the reference: annotations there win."""
    own = {key: value for key, value in beside.items() if key in ANNOTATIONS}
    rest = {key: value for key, value in beside.items() if key not in ANNOTATIONS}
    return {**(merged(target, rest) if rest else target), **own}


UNMERGED = "\x00unmerged"
"""A key that no schema has: rules beside the others that one schema without `allOf` cannot hold."""

_LARGER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def merged(one: JsonObject, other: JsonObject) -> JsonObject:
    """A schema for what fits both. What has no common form is kept under `UNMERGED`, for words."""
    out, rest = dict(one), {}
    for key, value in other.items():
        if key not in out or out[key] == value:
            out[key] = value
            continue
        joined = _joined(key, out[key], value)
        if joined is None:
            rest[key] = value
        else:
            out[key] = joined
    if rest:
        held = out.get(UNMERGED)
        out[UNMERGED] = [*(held if isinstance(held, list) else []), rest]
    return out


def _joined(key: str, one: JsonValue, other: JsonValue) -> JsonValue:
    """One value for a keyword that both schemas have; None when there is none."""
    if key in ANNOTATIONS or key in CORE:
        return one
    if key in _LARGER or key in _SMALLER:
        numbers = [value for value in (one, other) if isinstance(value, int | float)]
        return (max(numbers) if key in _LARGER else min(numbers)) if len(numbers) == 2 else None
    if isinstance(one, dict) and isinstance(other, dict):
        if key == "properties":
            return _joined_properties(one, other)
        return merged(one, other) if key in ("items", "additionalProperties") else None
    if key == "additionalProperties":
        return False if False in (one, other) else (other if one is True else one)
    if key == "required" and isinstance(one, list) and isinstance(other, list):
        return [*one, *(name for name in other if name not in one)]
    if key == "enum" and isinstance(one, list) and isinstance(other, list):
        return [value for value in one if value in other] or None
    if key == "type":
        return _joined_types({"type": one}, {"type": other})
    return None


def _joined_properties(one: JsonObject, other: JsonObject) -> JsonObject:
    out = dict(one)
    for name, schema in other.items():
        held = out.get(name)
        if name not in out or not isinstance(held, dict):
            out[name] = schema
        elif isinstance(schema, dict) and schema != held:
            simple = not {"$ref", "allOf"} & (held.keys() | schema.keys())
            out[name] = merged(held, schema) if simple else {"allOf": [held, schema]}
    return out


def _joined_types(one: JsonObject, other: JsonObject) -> JsonValue:
    mine, theirs = types_of(one), types_of(other)
    if "number" in mine and "integer" in theirs:
        mine = [*mine, "integer"]
    if "number" in theirs and "integer" in mine:
        theirs = [*theirs, "integer"]
    both: list[JsonValue] = [name for name in dict.fromkeys(mine) if name in theirs]
    if not both:
        return None
    return both[0] if len(both) == 1 else both


def united(forms: list[JsonObject]) -> JsonObject:
    """One object schema for every one of several: all their properties, and the required ones that they share."""
    properties: dict[str, list[JsonValue]] = {}
    for form in forms:
        held = form.get("properties")
        for name, schema in (held if isinstance(held, dict) else {}).items():
            seen = properties.setdefault(name, [])
            if schema not in seen:
                seen.append(schema)
    out: JsonObject = {"type": "object"}
    out["properties"] = {name: _either(schemas) for name, schemas in properties.items()}
    out["required"] = [name for name in properties if all(name in needed(form) for form in forms)]
    if all(form.get("additionalProperties") is False for form in forms):
        out["additionalProperties"] = False
    return out


def needed(form: JsonObject) -> list[str]:
    """The names of required properties."""
    names = form.get("required")
    return [name for name in items(names) if isinstance(name, str)]


def _either(schemas: list[JsonValue]) -> JsonValue:
    if len(schemas) == 1:
        return schemas[0]
    values: list[JsonValue] = []
    for schema in schemas:
        fixed = set(schema) - {"title", "type"} if isinstance(schema, dict) else {""}
        if not isinstance(schema, dict) or fixed not in ({"const"}, {"enum"}):
            return {"anyOf": schemas}
        listed = schema.get("enum", [schema.get("const")])
        values += [value for value in (listed if isinstance(listed, list) else []) if value not in values]
    return {"enum": values}
