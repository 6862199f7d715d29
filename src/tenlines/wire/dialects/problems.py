"""Where a schema does not fit a dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dialects.refs import DEFINITIONS, References, needed
from tenlines.wire.dialects.subsets import (
    ASSERTIONS,
    DEEPEST,
    DRAFTS,
    EVERY,
    PLAIN_ROOT,
    SNAKE,
    SUBSETS,
    TYPES,
    Dialect,
    Shape,
    Subset,
    fits,
    is_plain_pattern,
    types_of,
)

Problem: TypeAlias = tuple[str, str]
"""Where in the schema (`properties.a.minimum`, "" for the root), and what is wrong there."""

ROOT_CHOICES = ("anyOf", "oneOf", "allOf", "enum", "not")


class _Place(NamedTuple):
    path: str = ""
    depth: int = 0
    levels: int = 0


def find(schema: JsonValue, dialect: Dialect, *, picky: bool = False) -> Iterator[Problem]:
    """Every place where a schema does not fit.

    Args:
        schema: The parameters of a tool.
        dialect: Whose dialect.
        picky: Find also what a provider ignores, or refuses only on some of its servers.
    """
    if not isinstance(schema, dict):
        yield "", "a schema is an object"
        return
    if dialect in PLAIN_ROOT:
        yield from _root(schema, dialect)
    subset = SUBSETS.get(dialect)
    if subset is not None:
        yield from _in_subset(schema, subset, picky)
    elif dialect in DRAFTS:
        yield from _malformed(schema, dialect)
    if picky and subset is None:
        yield from _foreign(schema, dialect)


def _root(schema: JsonObject, dialect: Dialect) -> Iterator[Problem]:
    kind = schema.get("type")
    upper = dialect == "gemini" and isinstance(kind, str) and kind.lower() == "object"
    if kind != "object" and not upper:
        yield "type", "the root must be of type object"
    for key in ROOT_CHOICES:
        if key in schema and (dialect != "gemini_json" or key in ("anyOf", "oneOf")):
            yield key, f"the root may not have `{key}`"


# --- dialects with a list of their own --------------------------------------------------------------


def _in_subset(schema: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    references = References(schema)
    for name in references.lost:
        yield "", f"the reference {name!r} leads to nothing in the schema"
    if subset.refs == "flat" and references.are_recursive():
        yield "", "the schema refers to itself, and recursion is not taken"
    if subset.one_required and not needed(schema):
        yield "required", "at least one property must be required"
    todo: list[tuple[JsonValue, _Place]] = [(schema, _Place())]
    while todo:
        here, place = todo.pop()
        if place.depth > DEEPEST or place.levels > subset.levels:
            yield place.path, "the schema is nested too deep"
        elif isinstance(here, dict):
            here = {SNAKE.get(key, key): value for key, value in here.items()} if subset.alone else here
            yield from ((join(place.path, path), text) for path, text in _at(here, subset, picky))
            todo.extend(reversed(list(_children(here, place))))
        elif not isinstance(here, bool) or subset.alone or picky:
            yield place.path, "a schema is an object"


def _at(here: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    """What is wrong with one schema, those inside it aside."""
    for check in (_keywords, _type, _values, _object, _choice):
        yield from check(here, subset, picky)


def _keywords(here: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    for key, value in here.items():
        if key not in subset.keywords:
            if picky or (key not in subset.doubtful and (key in ASSERTIONS or subset.alone)):
                yield key, f"`{key}` is not taken"
        elif key in EVERY and key not in ("type", "items") and not _is_well_formed(key, value, subset):
            yield key, f"the value of `{key}` has the wrong form"
    if "$ref" in here and "$ref" in subset.keywords:
        beside = [key for key in here if (key in ASSERTIONS and key != "$ref") or (picky and key == "description")]
        if beside:
            yield "$ref", f"nothing may stand beside a reference ({', '.join(beside)})"
        if picky and not str(here["$ref"]).startswith(DEFINITIONS) and here["$ref"] != "#":
            yield "$ref", "a reference leads to a definition"


def _is_well_formed(key: str, value: JsonValue, subset: Subset) -> bool:
    if subset.alone and EVERY[key] == "count" and isinstance(value, str):
        return value.isdecimal()  # 64-bit numbers are texts in this provider's JSON
    return fits(value, EVERY[key])


def _type(here: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    kind = here.get("type")
    if "type" not in here:
        free = {"anyOf", "$ref", "allOf"} | (set() if subset.all_required or picky else {"enum", "const"})
        if subset.typed and not free & here.keys() and (picky or subset.all_required):
            yield "", "the schema does not say its type"
    elif isinstance(kind, list) and not subset.type_lists:
        if subset.alone or picky:
            yield "type", "`type` must be one type, not a list"
    else:
        listed = kind if isinstance(kind, list) and kind else [kind]
        for one in listed:
            known = one.lower() if subset.alone and isinstance(one, str) else one
            if known not in TYPES:
                yield "type", f"{one!r} is no type"
    if picky and subset.nullable and "null" in types_of(here):
        yield "type", "null is said by `nullable`"
    if "array" in types_of(here) and "items" not in here and (picky or subset.all_required):
        yield "items", "a list must say what its items are"
    if isinstance(here.get("items"), list):
        yield "items", "`items` must be one schema, not a list"


def _values(here: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    listed, pattern, least = here.get("enum"), here.get("pattern"), here.get("minItems")
    if subset.text_enums and isinstance(listed, list):
        if not all(isinstance(one, str) for one in listed):
            yield "enum", "the values of `enum` must be texts"
        elif picky and ("" in listed or types_of(here) != ["string"]):
            yield "enum", "the values of `enum` must be texts that are not empty"
    if "enum" in subset.keywords and listed == [] and (picky or not subset.alone):
        yield "enum", "`enum` has no values"
    given = here.get("format")
    numeric = bool({"integer", "number"} & set(types_of(here)))
    known = subset.number_formats if numeric and subset.number_formats else subset.formats
    if isinstance(given, str) and known is not None and given not in known:
        yield "format", f"the format {given!r} is not taken"
    if subset.plain_patterns and isinstance(pattern, str) and not is_plain_pattern(pattern):
        yield "pattern", "the pattern has look-around, a back-reference or a word boundary"
    if subset.min_items is not None and isinstance(least, int) and least > subset.min_items:
        yield "minItems", f"`minItems` may be at most {subset.min_items}"


def _object(here: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    properties = here.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    if "object" not in types_of(here) and not names:
        return
    extra = here.get("additionalProperties", None if subset.closed == "said" or picky else False)
    if subset.closed != "open" and extra is not False and not (subset.closed == "implied" and not picky):
        yield "additionalProperties", "`additionalProperties` must be given and false"
    if subset.all_required:
        missing = [name for name in names if name not in needed(here)]
        if missing:
            yield "required", f"every property must be required; missing: {', '.join(missing)}"
        if picky and "properties" not in here:
            yield "properties", "an object must have `properties`"
    unknown = [name for name in needed(here) if name not in names]
    if unknown and (subset.alone or subset.all_required or picky):
        yield "required", f"required, but no property: {', '.join(unknown)}"


def _choice(here: JsonObject, subset: Subset, picky: bool) -> Iterator[Problem]:
    forms = here.get("anyOf")
    if not isinstance(forms, list):
        return
    if subset.all_required:
        name = shared_first_key(forms)
        if name is not None:
            yield "anyOf", f"two forms both begin with the key {name!r}"
    beside = [key for key in here if key in ASSERTIONS and key not in ("anyOf", "nullable", "description")]
    if picky and beside:
        yield "anyOf", f"rules stand beside the forms ({', '.join(beside)})"


def shared_first_key(forms: list[JsonValue]) -> str | None:
    """The first key of two object forms that cannot be told apart by it; None when there is no such pair."""
    seen: dict[str, list[JsonValue]] = {}
    for form in forms:
        properties = form.get("properties") if isinstance(form, dict) else None
        if not isinstance(properties, dict) or not properties:
            continue
        name, schema = next(iter(properties.items()))
        others = seen.setdefault(name, [])
        if any(not _are_disjoint(schema, other) for other in others):
            return name
        others.append(schema)
    return None


def _are_disjoint(one: JsonValue, other: JsonValue) -> bool:
    mine, theirs = _fixed(one), _fixed(other)
    return mine is not None and theirs is not None and not any(value in theirs for value in mine)


def _fixed(schema: JsonValue) -> list[JsonValue] | None:
    """The values that a schema allows, when they are listed."""
    if not isinstance(schema, dict):
        return None
    listed = schema.get("enum")
    if isinstance(listed, list):
        return listed
    return [schema["const"]] if "const" in schema else None


def _children(here: JsonObject, place: _Place) -> Iterator[tuple[JsonValue, _Place]]:
    path, depth, levels = place.path, place.depth + 1, place.levels
    for key in ("properties", "$defs", "definitions"):
        held = here.get(key)
        inner = levels + 1 if key == "properties" else 0
        for name, value in (held if isinstance(held, dict) else {}).items():
            yield value, _Place(join(path, f"{key}.{name}"), depth, inner)
    for key in ("anyOf", "allOf"):
        forms = here.get(key)
        for index, value in enumerate(forms if isinstance(forms, list) else ()):
            yield value, _Place(join(path, f"{key}[{index}]"), depth, levels)
    items = here.get("items")
    for key in ("items", "additionalProperties"):
        if isinstance(here.get(key), dict) or (key == "items" and "items" in here and not isinstance(items, list)):
            yield here[key], _Place(join(path, key), depth, levels)


def join(path: str, step: str) -> str:
    """A path with a step behind it."""
    return f"{path}.{step}" if path and step else path or step


# --- dialects that take all of JSON Schema ----------------------------------------------------------


def _malformed(schema: JsonObject, dialect: Dialect) -> Iterator[Problem]:
    shapes = DRAFTS[dialect]
    for here, path in nodes(schema, shapes):
        for key, value in here.items():
            if key in shapes and not fits(value, shapes[key]):
                yield join(path, key), f"the value of `{key}` has the wrong form"


def _foreign(schema: JsonObject, dialect: Dialect) -> Iterator[Problem]:
    """What is no fault, and yet not understood: other spellings, tuples of the other draft, lists of no items."""
    for here, path in nodes(schema):
        other = "prefixItems" if dialect == "mistral" else "additionalItems"
        for key in ("nullable", other):
            if key in here:
                yield join(path, key), f"`{key}` is not understood"
        if isinstance(here.get("items"), list) and dialect != "mistral":
            yield join(path, "items"), "`items` must be one schema, not a list"
        if isinstance(here.get("type"), str) and here["type"] not in TYPES:
            yield join(path, "type"), f"{here['type']!r} is no type"
        if "items" not in here and "prefixItems" not in here and "array" in types_of(here):
            yield join(path, "items"), "a list must say what its items are"


def nodes(schema: JsonObject, shapes: dict[str, Shape] = EVERY) -> Iterator[tuple[JsonObject, str]]:
    """Every schema within a schema, with its path; not below the depth at which walks end."""
    todo: list[tuple[JsonValue, str, int]] = [(schema, "", 0)]
    while todo:
        here, path, depth = todo.pop()
        if not isinstance(here, dict) or depth > DEEPEST:
            continue
        yield here, path
        for key, value in here.items():
            shape = shapes.get(key)
            if shape == "map" and isinstance(value, dict):
                todo.extend((one, join(path, f"{key}.{name}"), depth + 1) for name, one in value.items())
            elif shape in ("schemas", "items") and isinstance(value, list):
                todo.extend((one, join(path, f"{key}[{index}]"), depth + 1) for index, one in enumerate(value))
            elif shape in ("schema", "items"):
                todo.append((value, join(path, key), depth + 1))
