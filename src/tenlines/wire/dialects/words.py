"""What a keyword of JSON Schema demands, in a few words, for the description of a property."""

from __future__ import annotations

import json

from tenlines.core.transcript import JsonObject, JsonValue

_LONGEST = 400
"""Characters of a rule that is given as JSON; more would drown the description."""


def words(key: str, value: JsonValue) -> str:
    """What `key: value` demands; "" when it demands nothing."""
    match key:
        case "minLength":
            return f"at least {_plural(value, 'character')}"
        case "maxLength":
            return f"at most {_plural(value, 'character')}"
        case "minItems":
            return f"at least {_plural(value, 'item')}"
        case "maxItems":
            return f"at most {_plural(value, 'item')}"
        case "minProperties":
            return f"at least {_plural(value, 'key')}"
        case "maxProperties":
            return f"at most {_plural(value, 'key')}"
        case "uniqueItems":
            return "no item twice" if value is True else ""
        case _:
            return _of_values(key, value)


def _of_values(key: str, value: JsonValue) -> str:
    match key:
        case "pattern":
            return f"matches the pattern {value}"
        case "format":
            return f"in the format {value}"
        case "minimum":
            return f"at least {said(value)}"
        case "maximum":
            return f"at most {said(value)}"
        case "exclusiveMinimum":
            return f"more than {said(value)}"
        case "exclusiveMaximum":
            return f"less than {said(value)}"
        case "multipleOf":
            return f"a multiple of {said(value)}"
        case "const":
            return f"always {said(value)}"
        case "enum":
            listed = ", ".join(said(one) for one in value) if isinstance(value, list) else said(value)
            return f"one of {listed}"
        case _:
            return _of_schemas(key, value)


def _of_schemas(key: str, value: JsonValue) -> str:
    match key:
        case "additionalProperties" | "unevaluatedProperties":
            return "" if isinstance(value, bool) or value == {} else f"values of other keys: {sketch(value)}"
        case "patternProperties":
            rules = value.items() if isinstance(value, dict) else ()
            return "; ".join(f"keys that match {pattern}: {sketch(rule)}" for pattern, rule in rules)
        case "propertyNames":
            return f"keys: {sketch(value)}"
        case "required":
            return f"needs {', '.join(map(str, value))}" if isinstance(value, list) and value else ""
        case "contains":
            return f"some item is {sketch(value)}"
        case "not":
            return f"not {sketch(value)}"
        case "prefixItems":
            items = value if isinstance(value, list) else []
            return f"the items in this order: {', '.join(map(sketch, items))}"
        case "dependentRequired" | "dependencies" | "dependentSchemas":
            rules = value.items() if isinstance(value, dict) else ()
            return "; ".join(f"with {name} also {_also(rule)}" for name, rule in rules)
        case _:
            return f"{key} {sketch(value)}"


def _also(rule: JsonValue) -> str:
    return ", ".join(map(str, rule)) if isinstance(rule, list) else sketch(rule)


def sketch(schema: JsonValue) -> str:
    """A schema in a few words where one suffices, else as JSON."""
    if isinstance(schema, dict):
        kind, rest = schema.get("type"), {key: value for key, value in schema.items() if key not in _QUIET}
        if not rest:
            return kind if isinstance(kind, str) else "anything"
        if len(rest) == 1 and not isinstance(kind, list):
            [(key, value)] = rest.items()
            if not isinstance(value, dict) and key not in ("anyOf", "oneOf", "allOf", "$ref"):
                text = words(key, value)
                return f"{kind}, {text}" if kind and key not in ("enum", "const") else text
    return "anything" if schema is True else said(schema)


_QUIET = ("type", "title", "description")


def said(value: JsonValue) -> str:
    """A value as a model reads it: JSON, cut when it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _plural(value: JsonValue, noun: str) -> str:
    return f"{said(value)} {noun}" if value == 1 else f"{said(value)} {noun}s"


def described(schema: JsonObject, phrases: list[str]) -> str:
    """The description of a schema with what had to be said in words behind it."""
    given = schema.get("description")
    text = given if isinstance(given, str) else ""
    fresh = [one for one in dict.fromkeys(phrases) if one and one not in text]
    if not fresh:
        return text
    said_so = "; ".join(fresh)
    sentence = said_so[0].upper() + said_so[1:]
    if not text:
        return sentence
    return f"{text} {sentence}." if text.rstrip()[-1:] in _ENDS else f"{text} ({said_so})"


_ENDS = (".", "!", "?", ":", ";")
