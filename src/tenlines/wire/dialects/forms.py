"""Small steps of narrowing a schema: types, null, and forms of a choice. Functions of schemas alone."""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dialects.problems import shared_first_key
from tenlines.wire.dialects.subsets import types_of
from tenlines.wire.dialects.words import described

OF_TYPE = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "array": {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "object": {
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
    },
}
"""Keywords that speak about one type alone."""


def escaped(name: str) -> str:
    """A key as a reference spells it."""
    return name.replace("~", "~0").replace("/", "~1")


def named_types(schema: JsonObject) -> JsonValue:
    """The types that a schema names or means; [] when it may be anything, or has forms of its own."""
    kinds = types_of(schema)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not kinds and isinstance(values, list):
        kinds = list(dict.fromkeys(types_of_value(value)[0] for value in values))
    if not kinds and "anyOf" not in schema:
        kinds = [kind for kind in ("object", "array", "string", "number") if schema.keys() & OF_TYPE[kind]][:1]
    return list[JsonValue](kinds)


def types_of_value(value: JsonValue) -> tuple[str, ...]:
    """The types of JSON Schema that a value has, the narrowest first."""
    match value:
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case dict():
            return ("object",)
        case None:
            return ("null",)


def take_null(out: JsonObject) -> None:
    """`nullable: true` as the JSON Schema that it stands for."""
    kinds = types_of(out)
    if kinds and "null" not in kinds:
        out["type"] = [*kinds, "null"]
    values, forms = out.get("enum"), out.get("anyOf")
    if isinstance(values, list) and None not in values:
        out["enum"] = [*values, None]
    if isinstance(forms, list):
        out["anyOf"] = [*forms, {"type": "null"}]


def soften(out: JsonObject, key: str, value: JsonValue) -> None:
    """The inclusive limit nearest to an exclusive one that a dialect cannot say."""
    limit = "minimum" if key == "exclusiveMinimum" else "maximum"
    if limit not in out and isinstance(value, int | float):
        step = (1 if limit == "minimum" else -1) if out.get("type") == "integer" and isinstance(value, int) else 0
        out[limit] = value + step


def nullable_form(made: JsonObject) -> JsonObject:
    """A schema that takes null as well, for a property that was optional."""
    kinds, forms = types_of(made), made.get("anyOf")
    if "null" in kinds:
        return made
    if isinstance(forms, list):
        null: JsonValue = {"type": "null"}
        return made if null in forms else {**made, "anyOf": [*forms, null]}
    if not kinds:
        return {"anyOf": [made, {"type": "null"}]}
    out: JsonObject = {**made, "type": [*kinds, "null"]}
    values = out.get("enum", [out["const"]] if "const" in out else None)
    if isinstance(values, list):
        out.pop("const", None)
        out["enum"] = values if None in values else [*values, None]
    return out


def gathered(forms: list[JsonValue], text: str, *, nullable: bool) -> JsonObject:
    """A schema for any of several forms; a form that is alone is the schema itself."""
    only = forms[0] if len(forms) == 1 else None
    if isinstance(only, dict) and "$ref" not in only:
        inner = only.get("description")
        out = with_description(only, described({"description": text}, [inner] if isinstance(inner, str) else []))
    else:
        out = with_description({"anyOf": forms}, text)
        if isinstance(only, dict) and not text:
            out = dict(only)
    return {**out, "nullable": True} if nullable else out


def with_description(schema: JsonObject, text: str) -> JsonObject:
    """The schema with this description, right behind its type."""
    out: JsonObject = {key: schema[key] for key in ("type",) if key in schema}
    if text:
        out["description"] = text
    return out | {key: value for key, value in schema.items() if key not in ("type", "description")}


def property_names(form: JsonObject) -> list[str]:
    """The names of its properties, in order."""
    properties = form.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def by_fixed_value(objects: list[JsonObject]) -> list[str]:
    """Keys that every form has and that tell the forms apart by their values."""
    shared = [name for name in property_names(objects[0]) if all(name in property_names(form) for form in objects)]
    return [name for name in shared if shared_first_key([put_first(form, [name]) for form in objects]) is None][:1]


def by_own_key(objects: list[JsonObject]) -> list[str]:
    """Keys that only one of the forms has."""
    counts: dict[str, int] = {}
    for form in objects:
        for name in property_names(form):
            counts[name] = counts.get(name, 0) + 1
    return [name for name, count in counts.items() if count == 1]


def put_first(form: JsonObject, names: list[str]) -> JsonObject:
    """The form with the first of these keys that it has before its other ones."""
    properties = form.get("properties")
    first = next((name for name in names if isinstance(properties, dict) and name in properties), None)
    if first is None or not isinstance(properties, dict):
        return form
    return {**form, "properties": {first: properties[first], **properties}}
