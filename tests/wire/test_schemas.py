"""Schemas of tools in the dialects of the formats."""

from __future__ import annotations

import json
import typing
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError

from tenlines import tool
from tenlines.wire.schemas import Converted, Dialect, convert, problems, sizes

DIALECTS: tuple[Dialect, ...] = typing.get_args(Dialect)
STRICT: tuple[Dialect, ...] = ("openai_strict", "anthropic_strict", "bedrock_strict", "cohere_strict")


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def one(schema: Any, dialect: Dialect) -> Any:
    """The converted schema of a single required property."""
    made = convert(obj({"a": schema}, "a"), dialect).schema
    assert problems(made, dialect) == []
    return made["properties"]["a"]


# --- every schema -------------------------------------------------------------------------------------

NAMES = ("a", "b", "kind", "x_1")
SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "a", "b", "long text"]))
RULES = st.fixed_dictionaries(
    {},
    optional={
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(3, 9),
        "pattern": st.sampled_from(["^a", r"\bword", "(?=x)y"]),
        "format": st.sampled_from(["date-time", "email", "uri", "binary"]),
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(3, 9),
        "multipleOf": st.integers(1, 3),
        "minItems": st.integers(0, 3),
        "uniqueItems": st.booleans(),
        "default": VALUES,
        "title": st.just("T"),
        "description": st.sampled_from(["", "What it is.", "words"]),
        "enum": st.lists(VALUES, max_size=3, unique_by=json.dumps),
        "const": VALUES,
        "not": st.just({"type": "null"}),
        "nullable": st.booleans(),
        "$comment": st.just("x"),
        "x-own": st.just(1),
    },
)


def with_forms(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=3),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "anyOf": several,
            "patternProperties": st.just({"^x": {}}),
        },
    )
    lists = st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner, "prefixItems": several})
    choices = st.fixed_dictionaries(
        {}, optional={"anyOf": several, "oneOf": several, "allOf": several, "description": st.just("D")}
    )
    return st.one_of(objects, lists, choices)


def with_rules(kind: Any, rules: dict[str, Any]) -> dict[str, Any]:
    return {**({"type": kind} if kind is not None else {}), **rules}


LEAVES = st.one_of(
    st.builds(with_rules, st.one_of(st.none(), SCALARS, st.lists(SCALARS, min_size=1, max_size=3, unique=True)), RULES),
    st.sampled_from(
        [
            {"$ref": "#/$defs/A"},
            {"$ref": "#/$defs/B", "description": "the one"},
            {"$ref": "#/$defs/B", "minLength": 3},
            {"$ref": "#"},
            {"$ref": "https://example.org/x.json"},
            {"$ref": "#/$defs/none"},
            {"$ref": "#/properties/a"},
            {},
            True,
            False,
            {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            {"type": "STRING", "nullable": True},
        ]
    ),
)
SCHEMAS = st.recursive(LEAVES, with_forms, max_leaves=8)
ROOTS = st.one_of(
    st.builds(
        lambda root, a, b: {**(root if isinstance(root, dict) else {}), "$defs": {"A": a, "B": b}},
        SCHEMAS,
        SCHEMAS,
        SCHEMAS,
    ),
    st.dictionaries(st.sampled_from(NAMES), SCHEMAS, max_size=3).map(lambda held: obj(held)),
)
JSON = st.recursive(
    st.one_of(VALUES, st.sampled_from(["object", "#/$defs/a"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [*"ab", "type", "properties", "required", "anyOf", "allOf", "items", "$ref", "$defs", "enum"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


def holds_up(schema: dict[str, Any], dialect: Dialect) -> None:
    before = json.dumps(schema)
    made = convert(schema, dialect)
    assert json.dumps(schema) == before, "the author's schema was changed"
    assert problems(made.schema, dialect) == []
    assert json.dumps(convert(json.loads(before), dialect)) == json.dumps(made), "not deterministic"
    again = convert(made.schema, dialect)
    assert problems(again.schema, dialect) == []
    if dialect == "mistral":
        Draft7Validator.check_schema(made.schema)
    elif dialect != "gemini":
        Draft202012Validator.check_schema(made.schema)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@given(schema=ROOTS)
@settings(max_examples=150, deadline=None)
def test_every_schema_has_a_form_in_every_dialect(schema: dict[str, Any], dialect: Dialect) -> None:
    holds_up(schema, dialect)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@given(schema=JSON.filter(lambda value: isinstance(value, dict)))
@settings(max_examples=100, deadline=None)
def test_any_json_has_a_form_too(schema: dict[str, Any], dialect: Dialect) -> None:
    made = convert(schema, dialect)
    if dialect not in ("openai", "gemini_json"):
        assert problems(made.schema, dialect) == []


@given(schema=JSON.filter(lambda value: isinstance(value, dict)))
@settings(max_examples=60, deadline=None)
def test_a_schema_that_is_checked_as_draft_7_is_one(schema: dict[str, Any]) -> None:
    try:
        Draft7Validator.check_schema(schema)
    except SchemaError:
        assert problems(schema, "mistral") != []
    else:
        assert problems(schema, "mistral") == []


# --- what a dialect only loosens stays valid ------------------------------------------------------------


def closed(properties: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    required = data.draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    return obj(properties, *required, additionalProperties=False)


@st.composite
def schemas_with_values(draw: st.DrawFn, depth: int = 3) -> tuple[dict[str, Any], Any]:
    """A schema and a value that is valid under it."""
    kind = draw(st.sampled_from(["string", "integer", "enum", "list", "object", "choice", "both"][: 7 if depth else 3]))
    if kind == "string":
        text = draw(st.sampled_from(["aaa", "abab", "b c d"]))
        rules: dict[str, Any] = {"minLength": 2, "maxLength": 9, "pattern": "^[a-z ]+$"}
        keys = draw(st.lists(st.sampled_from(sorted(rules)), unique=True))
        return {
            "type": draw(st.sampled_from(["string", ["string", "null"]])),
            **{key: rules[key] for key in keys},
        }, text
    if kind == "integer":
        number = draw(st.integers(1, 20)) * 2
        rules = {"exclusiveMinimum": 0, "maximum": 40, "multipleOf": 2}
        keys = draw(st.lists(st.sampled_from(sorted(rules)), unique=True))
        return {"type": draw(st.sampled_from(["integer", "number"])), **{key: rules[key] for key in keys}}, number
    if kind == "enum":
        values = draw(st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), min_size=1, max_size=3))
        return draw(st.sampled_from([{"enum": values}, {"const": values[0]}])), values[0]
    inner, value = draw(schemas_with_values(depth - 1))
    if kind == "list":
        return {"type": "array", "items": inner, "minItems": 1, "maxItems": 3}, [value] * draw(st.integers(1, 3))
    if kind == "object":
        other, more = draw(schemas_with_values(depth - 1))
        return obj({"a": inner, "b": other}, "a", additionalProperties=False), draw(
            st.sampled_from([{"a": value}, {"a": value, "b": more}])
        )
    other, _ = draw(schemas_with_values(depth - 1))
    if kind == "choice":
        return {draw(st.sampled_from(["anyOf", "allOf"])): [inner]} | {"description": "one"}, value
    return {"anyOf": draw(st.permutations([inner, other]))}, value


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@given(given=schemas_with_values(), optional=st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_was_valid_stays_valid(given: tuple[dict[str, Any], Any], optional: bool, dialect: Dialect) -> None:
    schema, value = given
    root = obj({"it": schema}, *([] if optional else ["it"]), additionalProperties=False)
    arguments = {"it": value}
    assert Draft202012Validator(root).is_valid(arguments)
    made = convert(root, dialect).schema
    judge = as_json_schema(made) if dialect == "gemini" else made
    sent = with_nulls(arguments, root) if dialect == "openai_strict" else arguments
    validator = Draft7Validator if dialect == "mistral" else Draft202012Validator
    assert [error.message for error in validator(judge).iter_errors(sent)] == []


def as_json_schema(schema: Any) -> Any:
    """Gemini's dialect as JSON Schema."""
    if isinstance(schema, list):
        return [as_json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: as_json_schema(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [out, {"type": "null"}]} if schema.get("nullable") is True else out


def with_nulls(value: Any, schema: Any) -> Any:
    """A value as a model gives it that must name every property: null for what it leaves out."""
    for form in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        if Draft202012Validator(form).is_valid(value):
            return with_nulls(value, form)
    if isinstance(value, list):
        return [with_nulls(item, schema["items"]) for item in value]
    if isinstance(value, dict):
        return {
            name: with_nulls(value[name], inner) if name in value else None
            for name, inner in schema["properties"].items()
        }
    return value


# --- what fits stays as it is -----------------------------------------------------------------------------

FITTING = obj(
    {"a": {"type": "string", "description": "Which one."}, "b": {"type": "boolean"}},
    "a",
    "b",
    additionalProperties=False,
)


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"gemini"}))
def test_a_schema_that_fits_is_given_back_itself(dialect: Dialect) -> None:
    assert convert(FITTING, dialect) == Converted(FITTING, ())
    assert convert(FITTING, dialect).schema is FITTING


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_schema_is_an_object_without_properties(dialect: Dialect) -> None:
    schema = convert({}, dialect).schema
    assert schema["type"] == "object"
    assert problems(schema, dialect) == []


# --- our own tools ----------------------------------------------------------------------------------------


@tool
def book(
    guest: str,
    nights: Annotated[int, "How many."] = 1,
    room: Literal["single", "double"] = "single",
    tags: list[str] | None = None,
    extras: dict[str, int] | None = None,
    where: tuple[float, float] | None = None,
) -> str:
    """Book a room.

    Args:
        guest: Name of the guest.
        tags: Words to find it by.
    """
    return guest


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_own_tools_have_a_form_in_every_dialect(dialect: Dialect) -> None:
    holds_up(book.spec.parameters, dialect)
    schema: Any = convert(book.spec.parameters, dialect).schema
    assert schema["properties"].keys() == book.spec.parameters["properties"].keys()
    assert schema["properties"]["guest"]["description"] == "Name of the guest."


def test_a_default_that_has_no_place_is_said_in_words() -> None:
    schema: Any = convert(book.spec.parameters, "openai_strict").schema
    assert "default 1" in schema["properties"]["nights"]["description"].lower()
    assert schema["properties"]["nights"]["type"] == ["integer", "null"]
    assert schema["required"] == list(schema["properties"])


# --- one dialect after the other --------------------------------------------------------------------------


def test_a_constraint_that_is_dropped_is_said_and_listed() -> None:
    root = obj(
        {"tags": {"type": "array", "items": {"type": "string", "minLength": 3, "description": "A word."}}}, "tags"
    )
    schema: Any
    schema, lost = convert(root, "openai_strict")
    assert schema["properties"]["tags"]["items"] == {"type": "string", "description": "A word. At least 3 characters."}
    assert lost == ("tags[]: at least 3 characters",)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "minLength": 1}, "At least 1 character"),
        ({"type": "string", "pattern": "(?=a)b"}, "Matches the pattern (?=a)b"),
        ({"type": "string", "format": "color"}, "In the format color"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "At least 1; at most 5"),
        ({"type": "number", "multipleOf": 0.5}, "A multiple of 0.5"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "No item twice"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 2}, "At most 2 items"),
        ({"type": "string", "not": {"enum": ["x"]}}, 'Not one of "x"'),
        ({"type": "string", "description": "A name", "maxLength": 9}, "A name (at most 9 characters)"),
    ],
)
def test_the_words_of_anthropics_strict_tools(schema: dict[str, Any], words: str) -> None:
    made = one(schema, "anthropic_strict")
    assert made["description"] == words
    assert made["type"] == schema["type"]


def test_gemini_says_null_and_fixed_values_in_its_own_way() -> None:
    assert one({"type": ["string", "null"]}, "gemini") == {"type": "string", "nullable": True}
    assert one({"const": "a"}, "gemini") == {"type": "string", "enum": ["a"]}
    assert one({"type": ["integer", "string"]}, "gemini") == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert one({"anyOf": [{"type": "string"}, {"type": "null"}]}, "gemini") == {"type": "string", "nullable": True}
    assert one({"enum": [1, 2]}, "gemini") == {"type": "integer", "description": "One of 1, 2"}
    assert one({"type": "integer", "exclusiveMinimum": 0}, "gemini") == {
        "type": "integer",
        "description": "More than 0",
        "minimum": 1,
    }


def test_gemini_gets_definitions_written_out_and_recursion_cut() -> None:
    node = obj({"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}, "value")
    schema: Any
    schema, lost = convert(obj({"head": {"$ref": "#/$defs/Node"}}, "head", **{"$defs": {"Node": node}}), "gemini")
    head = schema["properties"]["head"]
    assert head["properties"]["value"] == {"type": "integer"}
    assert head["properties"]["next"]["type"] == "object"
    assert "$defs" not in schema
    assert lost == ("head.next: not described here, because it contains itself",)


def test_openai_keeps_recursion_and_anthropic_keeps_plain_references() -> None:
    node = obj({"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}, "next")
    root = obj({"head": {"$ref": "#/$defs/Node"}}, "head", **{"$defs": {"Node": node}})
    strict: Any = convert(root, "openai_strict").schema
    assert strict["properties"]["head"] == {"$ref": "#/$defs/Node"}
    assert strict["$defs"]["Node"]["additionalProperties"] is False
    flat = obj({"p": {"$ref": "#/$defs/P"}}, "p", **{"$defs": {"P": obj({"x": {"type": "integer"}}, "x")}})
    plain: Any = convert(flat, "anthropic_strict").schema
    assert plain["properties"]["p"] == {"$ref": "#/$defs/P"}
    assert "$ref" not in json.dumps(convert(root, "anthropic_strict").schema)


def test_definitions_that_double_do_not_grow_without_end() -> None:
    defs = {f"D{n}": obj({"a": {"$ref": f"#/$defs/D{n + 1}"}, "b": {"$ref": f"#/$defs/D{n + 1}"}}) for n in range(18)}
    made = convert({**obj({"a": {"$ref": "#/$defs/D0"}}), "$defs": {**defs, "D18": {"type": "string"}}}, "gemini")
    assert len(json.dumps(made.schema)) < 2_000_000
    assert problems(made.schema, "gemini") == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_bomb_is_cut(dialect: Dialect) -> None:
    bomb: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        bomb = {"type": "array", "items": bomb}
    made = convert(obj({"a": bomb}), dialect)
    problems(made.schema, dialect)
    problems(obj({"a": bomb}), dialect)


def test_what_an_object_may_hold_beside_its_keys_is_listed() -> None:
    root = obj({"counts": {"type": "object", "additionalProperties": {"type": "integer"}}}, "counts")
    assert "counts: values of other keys: integer" in convert(root, "openai_strict").lost
    assert one(root["properties"]["counts"], "gemini")["description"] == "Values of other keys: integer"


def test_forms_that_begin_alike_are_turned_so_that_they_do_not() -> None:
    left = obj({"id": {"type": "string"}, "x": {"type": "integer"}}, "id", "x")
    right = obj({"id": {"type": "string"}, "y": {"type": "integer"}}, "id", "y")
    forms = one({"anyOf": [left, right]}, "openai_strict")["anyOf"]
    assert [next(iter(form["properties"])) for form in forms] == ["x", "y"]
    united = one({"anyOf": [obj({"id": {"type": "string"}}, "id"), left]}, "openai_strict")
    assert problems(obj({"a": united}, "a", additionalProperties=False), "openai_strict") == []


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "bedrock", "gemini_json", *STRICT, "gemini"])
def test_a_choice_at_the_root_becomes_one_object(dialect: Dialect) -> None:
    by_name, by_id = obj({"name": {"type": "string"}}, "name"), obj({"id": {"type": "integer"}}, "id")
    schema: Any
    schema, lost = convert({"oneOf": [by_name, by_id]}, dialect)
    assert problems(schema, dialect) == []
    assert list(schema["properties"]) == ["name", "id"]
    assert "name | id" in schema["description"]
    assert "parameters: the keys of one of these groups: name | id" in lost


def test_cohere_gets_a_property_that_is_required() -> None:
    assert convert(obj({"a": {"type": "string"}, "b": {"type": "string"}}), "cohere_strict").schema["required"] == ["a"]
    bare = convert({}, "cohere_strict").schema
    assert problems(bare, "cohere_strict") == []


def test_mistral_gets_tuples_as_its_draft_has_them() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
    assert one(pair, "mistral")["items"] == [{"type": "number"}, {"type": "string"}]
    assert one({"type": "array", "items": pair["prefixItems"]}, "anthropic")["prefixItems"] == pair["prefixItems"]


def test_a_schema_in_geminis_dialect_is_understood() -> None:
    gemini = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}, "required": ["a"]}
    assert problems(gemini, "gemini") == []
    for dialect in ("openai", "anthropic", "mistral"):
        made: Any = convert(gemini, dialect).schema
        assert made["type"] == "object"
        assert made["properties"]["a"]["type"] == ["string", "null"]


def test_an_external_reference_is_left_out_and_said() -> None:
    root = obj({"a": {"$ref": "https://example.org/a.json", "description": "It"}}, "a")
    assert ("", "the reference 'https://example.org/a.json' leads to nothing in the schema") in problems(root, "gemini")
    made = convert(root, "gemini")
    assert any("https://example.org/a.json" in line for line in made.lost)
    assert "$ref" not in json.dumps(made.schema)
    assert convert(root, "openai").schema is root


# --- problems -----------------------------------------------------------------------------------------------

GOOD = obj({"a": {"type": "string"}}, "a", additionalProperties=False)


@pytest.mark.parametrize(
    ("dialect", "schema", "path"),
    [
        ("openai_strict", obj({"a": {"type": "string"}}, "a"), "additionalProperties"),
        ("openai_strict", obj({"a": {"type": "string"}}, additionalProperties=False), "required"),
        ("openai_strict", obj({"a": {}}, "a", additionalProperties=False), "properties.a"),
        ("openai_strict", obj({"a": {"type": "string", "minLength": 1}}, "a"), "properties.a.minLength"),
        ("openai_strict", obj({"a": {"oneOf": [{"type": "string"}]}}, "a"), "properties.a.oneOf"),
        ("anthropic", {"anyOf": [{"type": "object"}, {"type": "string"}]}, "anyOf"),
        ("anthropic", {"type": "object", "properties": {"a": {"type": "objekt"}}}, "properties.a.type"),
        ("anthropic_strict", obj({"a": {"type": "integer", "minimum": 1}}, "a"), "properties.a.minimum"),
        ("bedrock_strict", obj({"a": {"type": "array", "minItems": 2}}, "a"), "properties.a.minItems"),
        ("gemini", {"$schema": "x", "type": "object", "properties": {}}, "$schema"),
        ("gemini", obj({"a": {"type": ["string", "null"]}}), "properties.a.type"),
        ("gemini", obj({"a": {"anyOf": [{"type": "string", "const": "a"}]}}), "properties.a.anyOf[0].const"),
        ("mistral", {"type": "objekt"}, "type"),
        ("mistral", {"type": "object", "required": "a"}, "required"),
        ("cohere_strict", obj({"a": {"type": "string"}}), "required"),
    ],
)
def test_a_problem_is_found_where_it_is(dialect: Dialect, schema: dict[str, Any], path: str) -> None:
    assert path in [where for where, _ in problems(schema, dialect)]


@pytest.mark.parametrize(
    ("dialect", "schema"),
    [
        *((dialect, GOOD) for dialect in DIALECTS if dialect != "gemini"),
        ("openai_strict", {**GOOD, "properties": {"a": {"type": "string", "default": "x", "title": "A"}}}),
        ("anthropic_strict", {**GOOD, "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
        ("anthropic_strict", {**GOOD, "required": []}),
        ("bedrock_strict", {**GOOD, "properties": {"a": {"type": "string", "maxLength": 9}}}),
        ("gemini", {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True, "min_length": "2"}}}),
        ("gemini_json", obj({"a": {"type": ["string", "null"]}}, additionalProperties=False)),
        ("cohere_strict", obj({"a": {"$ref": "#/$defs/A"}}, "a", **{"$defs": {"A": {"type": "string"}}})),
    ],
)
def test_what_a_provider_takes_is_no_problem(dialect: Dialect, schema: dict[str, Any]) -> None:
    assert problems(schema, dialect) == []


# --- sizes ------------------------------------------------------------------------------------------------


def test_sizes_are_counted_at_every_depth() -> None:
    root = obj({"a": {"type": ["string", "null"]}, "b": obj({"c": {"enum": ["x", "y"]}})}, "a")
    assert sizes(root) == (3, 2, 1, 2)
