"""Schemas for the dialects that take only a list of keywords: strict tools, and Gemini's own parameters."""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dialects.forms import (
    OF_TYPE,
    by_fixed_value,
    by_own_key,
    escaped,
    gathered,
    named_types,
    nullable_form,
    property_names,
    put_first,
    soften,
    take_null,
    types_of_value,
    with_description,
)
from tenlines.wire.dialects.mending import lose, object_root, read_limits, stepped
from tenlines.wire.dialects.problems import shared_first_key
from tenlines.wire.dialects.refs import DEFINITIONS, UNMERGED, References, merged, needed, resolve, united
from tenlines.wire.dialects.subsets import (
    ASSERTIONS,
    DEEPEST,
    EVERY,
    Subset,
    fits,
    is_number,
    is_plain_pattern,
    types_of,
)
from tenlines.wire.dialects.words import described, said, words

PLACEHOLDER = "no_arguments"
"""The one property of a tool without parameters, where a dialect wants at least one."""

_MOST_SCHEMAS = 5_000
"""Schemas in one converted schema: definitions that use one another twice each grow without end when written out."""


_PLACED = frozenset(
    {"type", "description", "nullable", "properties", "required", "additionalProperties", "items", "anyOf", "$defs"}
    | {"definitions", "$ref"}
)
"""Keywords that have a step of their own."""


class _Place(NamedTuple):
    at: str = ""
    depth: int = 0
    levels: int = 0
    trail: frozenset[str] = frozenset()

    def child(self, step: str) -> _Place:
        """The place of a property or of items."""
        level = self.levels if step == "[]" else self.levels + 1
        return _Place(stepped(self.at, step), self.depth + 1, level, self.trail)

    def form(self, trail: frozenset[str]) -> _Place:
        """The place of one form of a choice, to which some references led."""
        return self._replace(depth=self.depth + 1, trail=trail)


class Narrowing:
    """The conversion of one schema."""

    def __init__(self, root: JsonObject, subset: Subset, lost: list[str]) -> None:
        self._root, self._subset, self._lost = root, subset, lost
        self._references = References(root)
        self._keeps = subset.refs == "recursive" or (subset.refs == "flat" and not self._references.are_recursive())
        self._used: list[str] = []
        self._left = _MOST_SCHEMAS

    def whole(self) -> JsonObject:
        """The schema in the dialect."""
        root = object_root(self._root, self._references, self._lost)
        out = self._leaf(self._normal(root, _Place(), phrases := list[str]()), _Place(), phrases)
        if self._subset.one_required and not needed(out):
            self._require_one(out)
        self._define(out)
        return out

    def _require_one(self, out: JsonObject) -> None:
        properties = out.get("properties")
        if isinstance(properties, dict) and properties:
            name = next(iter(properties))
            lose(self._lost, name, "may be left out")
        else:
            name = PLACEHOLDER
            out["properties"] = {name: {"type": "boolean", "description": "Always true: there is nothing to say."}}
        out["required"] = [name]

    def _define(self, out: JsonObject) -> None:
        """Convert the definitions that are used, and those that they use."""
        made: dict[str, JsonObject] = {}
        while pending := [name for name in self._used if name not in made and name != "#"]:
            for name in pending:
                short = name.rsplit("/", 1)[-1]
                made[name] = self.node(self._references.target(name), _Place(f"({short})"))
        for key in ("$defs", "definitions"):
            held = self._root.get(key)
            names = [name for name in (held if isinstance(held, dict) else {}) if f"#/{key}/{escaped(name)}" in made]
            if names:
                out[key] = {name: made[f"#/{key}/{escaped(name)}"] for name in names}

    # --- one schema ---------------------------------------------------------------------------------

    def node(self, schema: JsonValue, place: _Place) -> JsonObject:
        """One schema anywhere below the root."""
        self._left -= 1
        if place.depth > DEEPEST - 4 or self._left < 0:
            return self._cut({}, place, "it is nested too deep")
        kept = self._kept(schema)
        if kept is not None:
            return kept
        found = resolve(schema, self._references, place.trail)
        if found.missing:
            lose(self._lost, place.at, f"the reference {found.missing!r} leads to nothing in the schema")
        if found.again:
            return self._cut(found.schema, place, "it contains itself")
        place = place._replace(trail=found.trail)
        phrases: list[str] = []
        plain = self._normal(found.schema, place, phrases)
        if "anyOf" not in plain and not self._subset.type_lists:
            plain = self._split(plain)
        if "anyOf" in plain:
            return self._choice(plain, place, phrases)
        if place.levels >= self._subset.levels and plain.get("properties"):
            return self._cut(plain, place, "it is nested too deep")
        return self._leaf(plain, place, phrases)

    def _kept(self, schema: JsonValue) -> JsonObject | None:
        """A reference as it may stand; None when it is written out."""
        name = schema.get("$ref") if isinstance(schema, dict) else None
        if not self._keeps or not isinstance(schema, dict) or not isinstance(name, str):
            return None
        known = name == "#" or (name.startswith(DEFINITIONS) and name.count("/") == 2)
        if not known or self._references.target(name) is None or (schema.keys() & ASSERTIONS) != {"$ref"}:
            return None
        if name == "#" and self._subset.refs != "recursive":
            return None
        if name not in self._used:
            self._used.append(name)
        text = schema.get("description")
        return {"anyOf": [{"$ref": name}], "description": text} if isinstance(text, str) and text else {"$ref": name}

    def _cut(self, schema: JsonObject, place: _Place, why: str) -> JsonObject:
        """What stands where a schema goes on for ever: any object, or any value where it is no object."""
        lose(self._lost, place.at, f"not described here, because {why}")
        kinds = types_of(schema)
        if "object" not in kinds and "properties" not in schema:
            return self._anything(place, said_so=True)
        given = schema.get("description")
        text = given if isinstance(given, str) and given else "An object of the same form as the one around it."
        out: JsonObject = {"type": "object", "description": text}
        if self._subset.closed != "open":
            out |= {"properties": {}, "required": [], "additionalProperties": False}
        return out

    def _anything(self, place: _Place, *, said_so: bool = False) -> JsonObject:
        """Any value, as far as the dialect can say it."""
        if self._subset.type_lists:
            if not said_so:
                lose(self._lost, place.at, "may also be a list or an object")
            return {"type": ["string", "number", "boolean", "null"]}
        forms: list[JsonValue] = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
        if not self._subset.nullable:
            return {"anyOf": forms}
        return {
            "anyOf": [*forms, {"type": "array", "items": {"type": "string"}}, {"type": "object"}],
            "nullable": True,
        }

    # --- steps --------------------------------------------------------------------------------------

    def _normal(self, schema: JsonObject, place: _Place, phrases: list[str]) -> JsonObject:
        """The schema in the one spelling that the next steps know; what cannot be spelled so goes into `phrases`."""
        out: JsonObject = {}
        for key, value in schema.items():
            old = key.startswith("exclusive") and isinstance(value, bool)
            if old or key == "type" or key not in EVERY or fits(value, EVERY[key]):
                out[key] = value
            else:
                lose(self._lost, place.at, f"`{key}` had the wrong form")
        unmerged = out.pop(UNMERGED, None)
        for rule in unmerged if isinstance(unmerged, list) else ():
            for key, value in rule.items() if isinstance(rule, dict) else ():
                self._say(words(key, value), place, phrases)
        if "oneOf" in out and "anyOf" not in out:
            out["anyOf"] = out.pop("oneOf")
        read_limits(out)
        self._read_tuple(out, place, phrases)
        if "const" in out and ("const" not in self._subset.keywords or "enum" in out):
            value = out.pop("const")
            out["enum"] = [value]
        out["type"] = named_types(out)
        if out.pop("nullable", False) is True:
            take_null(out)
        if not out["type"]:
            del out["type"]
        return out

    def _read_tuple(self, out: JsonObject, place: _Place, phrases: list[str]) -> None:
        """A tuple becomes a list of any of its items, with their order in words."""
        listed = out.get("items")
        ordered = out.pop("prefixItems", listed if isinstance(listed, list) else None)
        if not isinstance(ordered, list):
            return
        beyond = out.pop("additionalItems", None) if isinstance(listed, list) else listed
        forms = [*ordered, *([beyond] if isinstance(beyond, dict) else [])]
        distinct = [form for index, form in enumerate(forms) if form not in forms[:index]]
        out["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        if len(distinct) > 1:
            self._say(words("prefixItems", ordered), place, phrases)

    def _split(self, plain: JsonObject) -> JsonObject:
        """A list of types as forms of one type each, for a dialect that knows no such lists."""
        kinds = [kind for kind in types_of(plain) if not (kind == "null" and self._subset.nullable)]
        nullable = len(kinds) < len(types_of(plain))
        if not types_of(plain) or len(types_of(plain)) == 1:
            return plain
        if len(kinds) == 1:
            return {**plain, "type": kinds[0], "nullable": True} if nullable else {**plain, "type": kinds[0]}
        special = set[str]().union(*OF_TYPE.values())
        out = {key: value for key, value in plain.items() if key not in special | {"type", "enum"}}
        forms: list[JsonValue] = []
        for kind in kinds:
            form: JsonObject = {"type": kind}
            form |= {key: value for key, value in plain.items() if key in OF_TYPE.get(kind, ())}
            values = plain.get("enum")
            if isinstance(values, list):
                form["enum"] = [value for value in values if kind in types_of_value(value)]
            if form.get("enum") != []:
                forms.append(form)
        if nullable:
            out["nullable"] = True
        return {**out, "anyOf": forms} if forms else {**out, "type": kinds[0]}

    def _say(self, phrase: str, place: _Place, phrases: list[str]) -> None:
        if phrase:
            phrases.append(phrase)
            lose(self._lost, place.at, phrase)

    # --- choices ------------------------------------------------------------------------------------

    def _choice(self, plain: JsonObject, place: _Place, phrases: list[str]) -> JsonObject:
        """A schema with `anyOf`: what stands beside it goes into each of its forms."""
        forms: list[JsonValue] = []
        nullable = plain.get("nullable") is True
        for form, trail in self._given_forms(plain, place):
            made = self.node(form, place.form(trail))
            inner = made["anyOf"] if made.keys() <= {"anyOf", "nullable"} else [made]
            nullable = nullable or ("anyOf" in made and made.get("nullable") is True)
            forms += [one for one in (inner if isinstance(inner, list) else [made]) if one not in forms]
        if self._subset.nullable:
            left = [one for one in forms if not (isinstance(one, dict) and types_of(one) == ["null"])]
            nullable, forms = nullable or len(left) < len(forms), left or forms
        if self._subset.all_required:
            forms = self._told_apart(forms, place, phrases)
        self._defaults(plain, phrases)
        text = described(plain, phrases)
        return gathered(forms, text, nullable=nullable and self._subset.nullable)

    def _given_forms(self, plain: JsonObject, place: _Place) -> list[tuple[JsonValue, frozenset[str]]]:
        """The forms with what stands beside the choice, each with the references that were followed for it."""
        choice = plain.get("anyOf")
        forms = list(choice) if isinstance(choice, list) else []
        beside: JsonObject = {key: value for key, value in plain.items() if key in ASSERTIONS and key != "anyOf"}
        if not beside:
            return [(form, place.trail) for form in forms]
        out: list[tuple[JsonValue, frozenset[str]]] = []
        for form in forms:
            found = resolve(form, self._references, place.trail)
            if (
                found.again
                or found.missing
                or (beside.keys() == {"type"} and found.schema.get("type") == beside["type"])
            ):
                out.append((form, place.trail))
                continue
            whole = merged(found.schema, beside)
            rest = whole.get(UNMERGED)
            if not any(isinstance(rule, dict) and "type" in rule for rule in (rest if isinstance(rest, list) else ())):
                out.append((whole, found.trail))
        return out or [(beside, place.trail)]

    def _told_apart(self, forms: list[JsonValue], place: _Place, phrases: list[str]) -> list[JsonValue]:
        """Forms whose first keys tell them apart: properties change places, or the forms become one."""
        if shared_first_key(forms) is None:
            return forms
        objects = [form for form in forms if isinstance(form, dict) and isinstance(form.get("properties"), dict)]
        for order in (by_fixed_value(objects), by_own_key(objects)):
            turned = [put_first(form, order) if form in objects else form for form in forms]
            if shared_first_key(turned) is None:
                return turned
        groups = [", ".join(property_names(form)) for form in objects]
        self._say(f"the keys of one of these groups, the others null: {' | '.join(groups)}", place, phrases)
        return [self._as_one(objects, place), *(form for form in forms if form not in objects)]

    def _as_one(self, objects: list[JsonObject], place: _Place) -> JsonObject:
        """Several converted objects as one, with null for what only some of them have."""
        one = united(objects)
        held, own = one["properties"], needed(one)
        properties: JsonObject = {}
        for name, schema in held.items() if isinstance(held, dict) else ():
            made = schema if isinstance(schema, dict) else {}
            inner = made.get("anyOf")
            if isinstance(inner, list):
                made = gathered(self._told_apart(inner, place.child(name), []), "", nullable=False)
            if "enum" in made and "type" not in made:
                made = {"type": named_types(made), **made}
            properties[name] = made if name in own else nullable_form(made)
        return {
            "type": "object",
            "properties": properties,
            "required": list[JsonValue](properties),
            "additionalProperties": False,
        }

    # --- schemas without a choice -------------------------------------------------------------------

    def _leaf(self, plain: JsonObject, place: _Place, phrases: list[str]) -> JsonObject:
        kinds = types_of(plain)
        out: JsonObject = {}
        if kinds:
            out["type"] = kinds[0] if len(kinds) == 1 else list(kinds)
        elif self._subset.typed:
            out = self._anything(place)
        if plain.get("nullable") is True:
            out["nullable"] = True
        if "object" in kinds:
            out |= self._properties(plain, place, phrases)
        if "array" in kinds:
            items = plain.get("items")
            out["items"] = self.node(items if isinstance(items, dict) else {}, place.child("[]"))
        for key, value in plain.items():
            if key not in _PLACED:
                self._keyword(out, key, value, place, phrases)
        self._defaults(plain, phrases)
        text = described(plain, phrases)
        return with_description(out, text)

    def _keyword(self, out: JsonObject, key: str, value: JsonValue, place: _Place, phrases: list[str]) -> None:
        """One keyword: as it is, or in words."""
        if key == "enum" and isinstance(value, list):
            self._enum(out, value, place, phrases)
        elif key in self._subset.keywords and self._takes(key, value, types_of(out)):
            out[key] = value
        elif key in ASSERTIONS:
            phrase = words(key, value)
            self._say(phrase, place, phrases)
            if key == "minItems" and self._subset.min_items:
                out[key] = self._subset.min_items
            if key.startswith("exclusive") and "minimum" in self._subset.keywords and is_number(value):
                soften(out, key, value)

    def _takes(self, key: str, value: JsonValue, kinds: list[str]) -> bool:
        subset = self._subset
        if key == "format":
            numeric = bool({"integer", "number"} & set(kinds)) and subset.number_formats
            known = subset.number_formats if numeric else subset.formats
            return known is None or value in known
        if key == "pattern":
            return not subset.plain_patterns or (isinstance(value, str) and is_plain_pattern(value))
        if key == "minItems":
            return subset.min_items is None or (isinstance(value, int | float) and value <= subset.min_items)
        return key not in ("default", "title")

    def _enum(self, out: JsonObject, values: list[JsonValue], place: _Place, phrases: list[str]) -> None:
        if self._subset.nullable and None in values:
            out["nullable"], values = True, [value for value in values if value is not None]
        texts = all(isinstance(value, str) and value for value in values) and out.get("type") == "string"
        if values and (texts or not self._subset.text_enums):
            out["enum"] = values
        elif values:
            self._say(words("enum", values), place, phrases)

    def _defaults(self, plain: JsonObject, phrases: list[str]) -> None:
        """What is no rule, and yet good to know: said in words where there is no place for it."""
        if plain.get("default") is not None and f"{said(plain['default'])}" not in str(plain.get("description")):
            phrases.append(f"default {said(plain['default'])}")
        examples = plain.get("examples")
        if isinstance(examples, list) and examples:
            phrases.append(f"for example {', '.join(said(one) for one in examples[:3])}")

    def _properties(self, plain: JsonObject, place: _Place, phrases: list[str]) -> JsonObject:
        held, subset = plain.get("properties"), self._subset
        given = held if isinstance(held, dict) else {}
        wanted = [name for name in needed(plain) if name in given]
        absent = [name for name in needed(plain) if name not in given]
        self._say(words("required", list[JsonValue](absent)), place, phrases)
        properties: JsonObject = {}
        for name, schema in given.items():
            made = self.node(schema, place.child(name))
            properties[name] = made if name in wanted or not subset.all_required else nullable_form(made)
        out: JsonObject = {}
        if properties or "properties" in plain or subset.closed != "open":
            out["properties"] = properties
        if subset.all_required:
            wanted = list(properties)
        if wanted or subset.all_required or "required" in plain:
            out["required"] = list[JsonValue](wanted)
        extra = plain.get("additionalProperties")
        if subset.closed != "open":
            out["additionalProperties"] = False
            if isinstance(extra, dict) or extra is True:
                lose(self._lost, place.at, words("additionalProperties", extra) or "may have other keys")
        elif extra is not None and "additionalProperties" not in subset.keywords:
            self._say(words("additionalProperties", extra), place, phrases)
        elif extra is not None:
            out["additionalProperties"] = self.node(extra, place.child("*")) if isinstance(extra, dict) else extra
        return out
