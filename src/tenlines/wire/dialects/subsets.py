"""What each dialect of JSON Schema takes, as data, and what the keywords of JSON Schema hold."""

from __future__ import annotations

import math
import re
from typing import Literal, TypeAlias, TypeGuard

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue

Dialect: TypeAlias = Literal[
    "openai",
    "openai_strict",
    "anthropic",
    "anthropic_strict",
    "gemini",
    "gemini_json",
    "bedrock",
    "bedrock_strict",
    "mistral",
    "cohere_strict",
]

DEEPEST = 64
"""Nesting at which every walk ends: no tool needs more, and a bomb is not followed."""

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


# --- the vocabulary ---------------------------------------------------------------------------------

Shape: TypeAlias = Literal[
    "schema",
    "schemas",
    "map",
    "items",
    "count",
    "number",
    "step",
    "text",
    "regex",
    "flag",
    "names",
    "list",
    "type",
    "id",
]

BOTH: dict[str, Shape] = {
    "type": "type",
    "enum": "list",
    "properties": "map",
    "patternProperties": "map",
    "additionalProperties": "schema",
    "propertyNames": "schema",
    "required": "names",
    "minProperties": "count",
    "maxProperties": "count",
    "contains": "schema",
    "minItems": "count",
    "maxItems": "count",
    "uniqueItems": "flag",
    "anyOf": "schemas",
    "oneOf": "schemas",
    "allOf": "schemas",
    "not": "schema",
    "if": "schema",
    "then": "schema",
    "else": "schema",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "step",
    "minLength": "count",
    "maxLength": "count",
    "pattern": "regex",
    "format": "text",
    "title": "text",
    "description": "text",
    "examples": "list",
    "readOnly": "flag",
    "writeOnly": "flag",
    "definitions": "map",
    "$ref": "text",
    "$schema": "text",
    "$comment": "text",
}
DRAFT_7: dict[str, Shape] = {**BOTH, "items": "items", "additionalItems": "schema", "$id": "text"}
DRAFT_2020: dict[str, Shape] = {
    **BOTH,
    "items": "schema",
    "prefixItems": "schemas",
    "unevaluatedItems": "schema",
    "unevaluatedProperties": "schema",
    "dependentSchemas": "map",
    "minContains": "count",
    "maxContains": "count",
    "deprecated": "flag",
    "$defs": "map",
    "$id": "id",
}
EVERY: dict[str, Shape] = {**DRAFT_2020, "items": "items", "additionalItems": "schema"}
"""What an author may have written, of either draft."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "readOnly", "writeOnly", "deprecated"}
)
CORE = frozenset({"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary", "discriminator"})
ASSERTIONS = (
    (frozenset(EVERY) | {"const", "dependentRequired", "dependencies", "unevaluatedProperties"}) - ANNOTATIONS - CORE
)
"""Keywords that say what is valid: dropping one loosens the schema, so its words go into the description."""


def fits(value: JsonValue, shape: Shape) -> bool:
    """Whether the value of a keyword has the form that JSON Schema wants; what is inside is looked at elsewhere."""
    match shape:
        case "schema":
            return isinstance(value, dict | bool)
        case "schemas":
            return isinstance(value, list) and bool(value) and all(isinstance(one, dict | bool) for one in value)
        case "map":
            return isinstance(value, dict) and all(isinstance(one, dict | bool) for one in value.values())
        case "items":
            return fits(value, "schema") or (value != [] and fits(value, "schemas"))
        case "list":
            return isinstance(value, list)
        case "flag":
            return isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case _:
            return _fits_closer(value, shape)


def _fits_closer(value: JsonValue, shape: Shape) -> bool:
    match shape:
        case "count":
            return is_number(value) and value >= 0 and float(value).is_integer()
        case "number":
            return is_number(value)
        case "step":
            return is_number(value) and value > 0
        case "regex":
            return isinstance(value, str) and _compiles(value)
        case "id":
            return isinstance(value, str) and "#" not in value[:-1]
        case "names":
            return isinstance(value, list) and _are_names(value)
        case _:
            many = isinstance(value, list) and bool(value) and _are_names(value)
            return all(one in TYPES for one in value) if many and isinstance(value, list) else value in TYPES


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """A finite JSON number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_names(values: list[JsonValue]) -> bool:
    texts = [one for one in values if isinstance(one, str)]
    return len(texts) == len(values) == len(set(texts))


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_HARD_PATTERN = re.compile(r"\(\?(?!:)|\\[bB1-9kpP]")


def is_plain_pattern(pattern: str) -> bool:
    """Whether a pattern has neither look-around nor back-references nor word boundaries."""
    return _HARD_PATTERN.search(pattern) is None


# --- the dialects -----------------------------------------------------------------------------------


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect with a list of its own takes.

    Attributes:
        keywords: Taken as they stand.
        doubtful: Whether these are taken is not known: they are avoided, and no fault.
        alone: Every other key is refused, even one that asserts nothing.
        refs: `$ref` to definitions: with recursion, without it, or not at all.
        closed: Whether objects must say that they have no other keys, whether the provider says so itself, or neither.
        all_required: Every property is required; one that was optional takes null.
        one_required: At least one property of the root is required.
        typed: Every schema says its type.
        type_lists: `type` may be a list. Where it may not, null is said by `nullable` or by `anyOf`.
        nullable: null is said by `nullable: true`.
        text_enums: Values of `enum` are texts.
        formats: Formats of texts; None for any.
        number_formats: Formats of numbers.
        plain_patterns: No look-around and the like in patterns.
        min_items: Largest `minItems`; None for any.
        levels: Most objects within one another.
    """

    keywords: frozenset[str]
    doubtful: frozenset[str] = frozenset()
    alone: bool = False
    refs: Literal["recursive", "flat", "none"] = "none"
    closed: Literal["said", "implied", "open"] = "open"
    all_required: bool = False
    one_required: bool = False
    typed: bool = True
    type_lists: bool = True
    nullable: bool = False
    text_enums: bool = False
    formats: frozenset[str] | None = None
    number_formats: frozenset[str] = frozenset()
    plain_patterns: bool = False
    min_items: int | None = None
    levels: int = DEEPEST


_STRUCTURE = frozenset(
    {"type", "description", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf"}
)
_REFS = frozenset({"$ref", "$defs", "definitions"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

SUBSETS: dict[Dialect, Subset] = {
    "openai_strict": Subset(
        keywords=_STRUCTURE | _REFS | _NUMBERS | {"pattern", "format", "minItems", "maxItems"},
        refs="recursive",
        closed="said",
        all_required=True,
        formats=_FORMATS,
        plain_patterns=True,
        levels=10,
    ),
    "anthropic_strict": Subset(
        keywords=_STRUCTURE | _REFS | {"pattern", "format", "minItems", "title", "default", "allOf"},
        refs="flat",
        closed="said",
        formats=_FORMATS | {"uri"},
        plain_patterns=True,
        min_items=1,
    ),
    "bedrock_strict": Subset(
        keywords=_STRUCTURE | _REFS | {"pattern", "format", "minLength", "maxLength", "minItems"},
        doubtful=frozenset({"allOf"}),
        refs="flat",
        closed="implied",
        formats=_FORMATS | {"uri"},
        plain_patterns=True,
        min_items=1,
    ),
    "gemini": Subset(
        keywords=_STRUCTURE - {"const", "additionalProperties"}
        | {"format", "title", "nullable", "minItems", "maxItems", "propertyOrdering", "minProperties", "maxProperties"}
        | {"minimum", "maximum", "minLength", "maxLength", "pattern", "example", "default"},
        alone=True,
        type_lists=False,
        nullable=True,
        text_enums=True,
        formats=frozenset({"enum", "date-time"}),
        number_formats=frozenset({"float", "double", "int32", "int64"}),
    ),
    "cohere_strict": Subset(
        keywords=_STRUCTURE | {"pattern", "format"},
        doubtful=_REFS,
        one_required=True,
        type_lists=False,
        formats=frozenset({"date-time", "date", "time", "uuid"}),
        plain_patterns=True,
    ),
}

DRAFTS: dict[Dialect, dict[str, Shape]] = {"anthropic": DRAFT_2020, "bedrock": DRAFT_2020, "mistral": DRAFT_7}
"""Dialects that take all of a draft of JSON Schema, and want it well-formed."""

PLAIN_ROOT: frozenset[Dialect] = frozenset({"openai", "anthropic", "bedrock", "gemini_json", *SUBSETS})
"""Dialects whose root is an object, without a choice of forms."""

SNAKE = {
    re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower(): name
    for name in SUBSETS["gemini"].keywords
    if not name.islower()
}
"""Gemini's field names in the other spelling that it takes."""


def types_of(schema: JsonObject) -> list[str]:
    """The types that a schema names, in lower case; empty when it names none."""
    named = schema.get("type")
    many = named if isinstance(named, list) else [named]
    return [one.lower() for one in many if isinstance(one, str) and one.lower() in TYPES]
