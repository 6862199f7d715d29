"""Schemas for the dialects that take nearly all of JSON Schema: only what a draft or a server refuses is rewritten."""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dialects.problems import ROOT_CHOICES
from tenlines.wire.dialects.refs import UNMERGED, References, merged, needed, resolve, united
from tenlines.wire.dialects.subsets import DEEPEST, DRAFTS, EVERY, TYPES, Dialect, fits, types_of
from tenlines.wire.dialects.words import described, sketch, words


def lose(lost: list[str], at: str, text: str) -> None:
    """Write down what a dialect cannot say about a property."""
    lost.append(f"{at or 'parameters'}: {text}")


def mended(schema: JsonObject, dialect: Dialect, *, rooted: bool, lost: list[str]) -> JsonObject:
    """The schema with an object at its root, and well-formed in the dialect's draft."""
    if rooted:
        schema = object_root(schema, References(schema), lost)
    out = _mended(schema, dialect, _Place(), lost)
    return out if isinstance(out, dict) else {}


def object_root(schema: JsonObject, references: References, lost: list[str]) -> JsonObject:
    """The schema with an object without a choice of forms at its root: forms are united, references followed."""
    root = _object_form(schema, references, 0, lost) or {}
    kinds = types_of(root)
    if kinds and "object" not in kinds:
        lose(lost, "", f"arguments are an object, not of type {kinds[0]}")
        root = {key: value for key, value in root.items() if key in ("description", "$defs", "definitions")}
    for key in ("$defs", "definitions"):
        if key in schema:
            root[key] = schema[key]
    rest = root.pop(UNMERGED, None)
    for rule in rest if isinstance(rest, list) else ():
        lose(lost, "", f"also {sketch(rule)}")
    root.pop("nullable", None)
    phrases = [words(key, root.pop(key)) for key in (*ROOT_CHOICES, "const") if key in root]
    for phrase in phrases:
        lose(lost, "", phrase)
    text = described(root, phrases)
    if text:
        root["description"] = text
    held = root.get("properties")
    root["properties"] = held if isinstance(held, dict) else {}
    return {"type": "object", **{key: value for key, value in root.items() if key != "type"}}


def _object_form(schema: JsonValue, references: References, depth: int, lost: list[str]) -> JsonObject | None:
    """A form of the root as one object schema; None when it is no object."""
    found = resolve(schema, references, frozenset())
    here = dict(found.schema)
    if found.missing:
        lose(lost, "", f"the reference {found.missing!r} leads to nothing in the schema")
    if depth > 8 or found.again:
        return here
    if depth and types_of(here) and "object" not in types_of(here):
        return None
    for key in ("anyOf", "oneOf"):
        choice = here.pop(key, None)
        if not isinstance(choice, list):
            continue
        forms = [form for one in choice if (form := _object_form(one, references, depth + 1, lost)) is not None]
        if forms:
            here = _chosen(here, forms, lost)
    return here


def _chosen(here: JsonObject, forms: list[JsonObject], lost: list[str]) -> JsonObject:
    """What stands beside a choice, with the forms of the choice as one."""
    if len(forms) == 1:
        return merged(here, forms[0])
    groups = [", ".join(needed(form)) or "none needed" for form in forms]
    phrase = f"the keys of one of these groups: {' | '.join(dict.fromkeys(groups))}"
    lose(lost, "", phrase)
    one = united(forms)
    closed = here.get("additionalProperties", one.get("additionalProperties"))
    whole = merged(here, {key: value for key, value in one.items() if key != "additionalProperties"})
    whole["description"] = described(whole, [phrase])
    return whole if closed is None else {**whole, "additionalProperties": closed}


class _Place(NamedTuple):
    at: str = ""
    depth: int = 0

    def child(self, step: str = "") -> _Place:
        """One level deeper; a property is a step, a form of a choice is none."""
        return _Place(stepped(self.at, step), self.depth + 1)


def stepped(at: str, step: str) -> str:
    """The name of a property within another: `filter.min`, `tags[]`."""
    return f"{at}.{step}" if at and step and step != "[]" else at + step


def _mended(schema: JsonValue, dialect: Dialect, place: _Place, lost: list[str]) -> JsonValue:
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else {}
    if place.depth > DEEPEST - 2:
        return {}
    shapes = DRAFTS.get(dialect, EVERY)
    out: JsonObject = {}
    for key, value in _respelled(schema, dialect).items():
        if dialect in DRAFTS and key in shapes and not fits(value, shapes[key]):
            lose(lost, place.at, f"`{key}` had the wrong form")
        else:
            out[key] = _inside(key, value, dialect, place, lost)
    if "array" in types_of(out) and "items" not in out and "prefixItems" not in out:
        out["items"] = {}
    return out


def _inside(key: str, value: JsonValue, dialect: Dialect, place: _Place, lost: list[str]) -> JsonValue:
    """The value of a keyword with the schemas in it mended."""
    shape = EVERY.get(key)
    if shape == "map" and isinstance(value, dict):
        return {name: _mended(one, dialect, place.child(name), lost) for name, one in value.items()}
    if shape in ("schemas", "items") and isinstance(value, list):
        return [_mended(one, dialect, place.child(), lost) for one in value]
    if shape in ("schema", "items") and isinstance(value, dict):
        return _mended(value, dialect, place.child("[]" if key == "items" else ""), lost)
    return value


def _respelled(schema: JsonObject, dialect: Dialect) -> JsonObject:
    """Types in lower case, null as a type, tuples as the draft writes them, limits as numbers."""
    out = dict(schema)
    kind = out.get("type")
    if isinstance(kind, str) and kind not in TYPES and kind.lower() in TYPES:
        out["type"] = kind.lower()
    if out.pop("nullable", False) is True and types_of(out):
        listed = types_of(out)
        out["type"] = [*listed, *([] if "null" in listed else ["null"])]
        values = out.get("enum")
        if isinstance(values, list) and None not in values:
            out["enum"] = [*values, None]
    read_limits(out)
    _respell_tuple(out, dialect)
    return out


def read_limits(out: JsonObject) -> None:
    """Limits of the old draft, where `exclusiveMinimum` was a yes or no beside `minimum`."""
    for limit, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(out.get(strict), bool) and out.pop(strict) and limit in out:
            out[strict] = out.pop(limit)


def _respell_tuple(out: JsonObject, dialect: Dialect) -> None:
    if dialect == "mistral" and isinstance(out.get("prefixItems"), list):
        if "items" in out:
            out["additionalItems"] = out["items"]
        out["items"] = out.pop("prefixItems")
    elif dialect != "mistral" and isinstance(out.get("items"), list):
        tuple_items = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out.pop("additionalItems")
        if tuple_items:
            out["prefixItems"] = tuple_items
