"""Parameters of tools in the dialect of JSON Schema that each format takes. Pure and deterministic.

The author's schema is the truth: arguments are checked against it on this side, whatever dialect the model saw. What
a dialect cannot say goes into the description of the property, in words, so that the model still knows it.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire import schema_problems
from tenlines.wire.schema_mending import mended
from tenlines.wire.schema_narrowing import PLACEHOLDER, Narrowing
from tenlines.wire.schema_problems import Problem
from tenlines.wire.schema_refs import References, needed, resolve
from tenlines.wire.schema_subsets import DEEPEST, PLAIN_ROOT, SUBSETS, Dialect, types_of

__all__ = ["Converted", "Dialect", "Sizes", "convert", "problems", "restore", "sizes"]


class Converted(NamedTuple):
    """A schema in a dialect, and what had to be said in words instead.

    Attributes:
        schema: The schema. The very object that was given when it fits as it stands.
        lost: What the dialect cannot say, each with the property: `tags[].name: at least 3 characters`.
    """

    schema: JsonObject
    lost: tuple[str, ...]


def convert(parameters: JsonObject, dialect: Dialect) -> Converted:
    """The schema of a tool's parameters in a dialect. Total: what is no schema at all is left out, and listed."""
    if not parameters:
        parameters = {"type": "object", "properties": {}}
    if next(schema_problems.find(parameters, dialect, picky=True), None) is None:
        return Converted(parameters, ())
    lost: list[str] = []
    subset = SUBSETS.get(dialect)
    if subset is None:
        schema = mended(parameters, dialect, rooted=dialect in PLAIN_ROOT, lost=lost)
    else:
        schema = Narrowing(parameters, subset, lost).whole()
    return Converted(schema, tuple(dict.fromkeys(lost)))


def problems(schema: JsonValue, dialect: Dialect) -> list[Problem]:
    """Where a schema does not fit a dialect: pairs of a path in the schema (`properties.a.minimum`, "" for the root)
    and what is wrong there."""
    return list(schema_problems.find(schema, dialect))


# --- the way back -----------------------------------------------------------------------------------


def restore(arguments: JsonObject, parameters: JsonObject, dialect: Dialect) -> JsonObject:
    """Arguments as the author's schema wants them, from what a model gave under the converted one.

    A dialect that makes every property required takes null for those that were optional: such nulls are left out
    again, so that the tool's own defaults hold.
    """
    subset = SUBSETS.get(dialect)
    if subset is None or not (subset.all_required or subset.one_required):
        return arguments
    if subset.one_required:
        properties = parameters.get("properties")
        own = properties if isinstance(properties, dict) else {}
        return {name: value for name, value in arguments.items() if name != PLACEHOLDER or name in own}
    restored = _restored(arguments, parameters, References(parameters), 0)
    return restored if isinstance(restored, dict) else arguments


def _restored(value: JsonValue, schema: JsonValue, references: References, depth: int) -> JsonValue:
    if depth > DEEPEST or not isinstance(schema, dict) or not isinstance(value, dict | list):
        return value
    found = resolve(schema, references, frozenset()).schema
    for key in ("anyOf", "oneOf"):
        forms = found.get(key)
        if isinstance(forms, list):
            fitting = [form for form in forms if _suits(value, form, references, depth)]
            value = _restored(value, fitting[0], references, depth + 1) if fitting else value
    if isinstance(value, list):
        items = found.get("items")
        return [_restored(one, items, references, depth + 1) for one in value] if isinstance(items, dict) else value
    properties, required = found.get("properties"), needed(found)
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    return {
        name: _restored(one, properties.get(name), references, depth + 1)
        for name, one in value.items()
        if one is not None or name in required or name not in properties
    }


def _suits(value: JsonValue, given: JsonValue, references: References, depth: int) -> bool:
    """Whether a value may be of a form: by its keys and its fixed values alone."""
    form = resolve(given, references, frozenset()).schema
    for key in ("anyOf", "oneOf"):
        forms = form.get(key)
        if isinstance(forms, list) and depth < DEEPEST:
            return any(_suits(value, one, references, depth + 1) for one in forms)
    if isinstance(value, list):
        return form.get("type") == "array" or "items" in form
    properties = form.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return False
    if any(name not in properties for name in value):
        return False
    for name in needed(form):
        if name not in value or (value[name] is None and not _takes_null(properties.get(name), references, 0)):
            return False
    for name, one in value.items():
        fixed = resolve(properties[name], references, frozenset()).schema
        listed = fixed.get("enum", [fixed["const"]] if "const" in fixed else None)
        if isinstance(listed, list) and one is not None and one not in listed:
            return False
    return True


def _takes_null(schema: JsonValue, references: References, depth: int) -> bool:
    """Whether null is a value of its own here."""
    here = resolve(schema, references, frozenset()).schema
    for key in ("anyOf", "oneOf"):
        forms = here.get(key)
        if isinstance(forms, list) and depth < DEEPEST:
            return any(_takes_null(form, references, depth + 1) for form in forms)
    values = here.get("enum", [here["const"]] if "const" in here else None)
    if isinstance(values, list):
        return None in values
    return not types_of(here) or "null" in types_of(here)


# --- sizes ------------------------------------------------------------------------------------------


class Sizes(NamedTuple):
    """How large a schema is, for the limits that providers set on all tools of a request together."""

    properties: int
    """Properties, at every depth."""
    optional: int
    """Those of them that are not required."""
    unions: int
    """Schemas with `anyOf`, `oneOf` or a list of types."""
    values: int
    """Values in all lists of allowed values."""


def sizes(schema: JsonValue) -> Sizes:
    """Count what providers limit."""
    properties = optional = unions = values = 0
    for here, _ in schema_problems.nodes(schema if isinstance(schema, dict) else {}):
        held, listed = here.get("properties"), here.get("enum")
        if isinstance(held, dict):
            properties += len(held)
            optional += len(held.keys() - set(needed(here)))
        unions += any(isinstance(here.get(key), list) for key in ("anyOf", "oneOf", "type"))
        values += len(listed) if isinstance(listed, list) else 0
    return Sizes(properties, optional, unions, values)
