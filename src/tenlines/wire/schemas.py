"""Parameters of tools in the dialect of JSON Schema that each format takes. Pure and deterministic.

The author's schema is the truth: arguments are checked against it on this side, whatever dialect the model saw. What
a dialect cannot say goes into the description of the property, in words, so that the model still knows it.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dialects.mending import mended
from tenlines.wire.dialects.narrowing import Narrowing
from tenlines.wire.dialects.problems import Problem, find, nodes
from tenlines.wire.dialects.refs import needed
from tenlines.wire.dialects.subsets import PLAIN_ROOT, SUBSETS, Dialect

__all__ = ["Converted", "Dialect", "Sizes", "convert", "problems", "sizes"]


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
    if next(find(parameters, dialect, picky=True), None) is None:
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
    return list(find(schema, dialect))


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
    for here, _ in nodes(schema if isinstance(schema, dict) else {}):
        held, listed = here.get("properties"), here.get("enum")
        if isinstance(held, dict):
            properties += len(held)
            optional += len(held.keys() - set(needed(here)))
        unions += any(isinstance(here.get(key), list) for key in ("anyOf", "oneOf", "type"))
        values += len(listed) if isinstance(listed, list) else 0
    return Sizes(properties, optional, unions, values)
