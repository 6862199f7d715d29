"""`finish`: every kind of type, what goes back for a wrong answer, partial answers, the tool as the log has it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib.util
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError, MissingExtra
from tenlines.ports import Bound, CallContext, Invalid
from tenlines.tools.finish import Finish, finish, partial, recorded, with_finish
from tenlines.tools.load import as_tools
from tenlines.tools.tool import tool


class Line(BaseModel):
    name: str
    cents: int = Field(ge=0)


class Invoice(BaseModel):
    """An invoice."""

    number: str
    lines: list[Line]
    due: datetime.date | None = None


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str


class Node(BaseModel):
    value: int
    kids: list[Node] = []


class Span(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def _is_ordered(self) -> Span:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Colour(enum.Enum):
    RED = "red"


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
LIST = {"type": "array", "items": {"$ref": "#/$defs/T"}, "$defs": {"T": {"type": "string"}}}


def given_by(one: Finish, arguments: JsonObject) -> str:
    """The answer for these arguments, as a driver gets it."""
    bound = one.check(arguments)
    assert isinstance(bound, Bound), bound
    (part,) = one.render(one.call(bound, CallContext("r:1:0", "finish", None))).parts
    return part.text  # type: ignore[union-attr]  # an answer is text


def refused(one: Finish, arguments: JsonObject) -> str:
    invalid = one.check(arguments)
    assert isinstance(invalid, Invalid)
    return invalid.text


GOOD: list[tuple[Any, JsonObject, str, Any]] = [
    (
        Invoice,
        {"number": "7", "lines": [{"name": "tea", "cents": 3}], "due": "2026-01-02"},
        '{"due":"2026-01-02","lines":[{"cents":3,"name":"tea"}],"number":"7"}',
        Invoice(number="7", lines=[Line(name="tea", cents=3)], due=datetime.date(2026, 1, 2)),
    ),
    (Point, {"x": 1}, '{"x":1}', Point(1)),
    (Movie, {"title": "M"}, '{"title":"M"}', {"title": "M"}),
    (
        Node,
        {"value": 1, "kids": [{"value": 2}]},
        '{"kids":[{"value":2}],"value":1}',
        Node(value=1, kids=[Node(value=2)]),
    ),
    (Span, {"low": 1, "high": 2}, '{"high":2,"low":1}', Span(low=1, high=2)),
    (dict[str, int], {"a": 1}, '{"a":1}', {"a": 1}),
    (int, {"answer": 0}, "0", 0),
    (str, {"answer": ""}, '""', ""),
    (bool, {"answer": False}, "false", False),
    (int | None, {"answer": None}, "null", None),
    (list[Line], {"answer": [{"name": "a", "cents": 1}]}, '[{"cents":1,"name":"a"}]', [Line(name="a", cents=1)]),
    (Literal["a", "b"], {"answer": "b"}, '"b"', "b"),
    (Colour, {"answer": "red"}, '"red"', Colour.RED),
    (Point | Span, {"answer": {"low": 1, "high": 1}}, '{"high":1,"low":1}', Span(low=1, high=1)),
    (Annotated[int, Field(gt=3)], {"answer": 4}, "4", 4),
    (SCHEMA, {"n": 2, "more": [1]}, '{"more":[1],"n":2}', {"n": 2, "more": [1]}),
    (LIST, {"answer": ["x"]}, '["x"]', ["x"]),
]


@pytest.mark.parametrize(("output", "arguments", "text", "value"), GOOD, ids=lambda one: str(one)[:30])
def test_every_kind_of_type(output: Any, arguments: JsonObject, text: str, value: Any) -> None:
    one = finish(output)
    assert given_by(one, arguments) == text
    assert one.read(text) == value
    assert one.spec.parameters["type"] == "object"
    assert one.spec.final
    assert one.spec.read_only


@pytest.mark.parametrize(("output", "arguments", "text", "value"), GOOD, ids=lambda one: str(one)[:30])
def test_whoever_does_not_know_the_type_gives_the_same_answer_by_the_log(
    output: Any, arguments: JsonObject, text: str, value: Any
) -> None:
    again = recorded(finish(output).spec)
    assert given_by(again, arguments) == text
    assert again.read(text) == json.loads(text), "plain values"
    assert again.spec == finish(output).spec


@pytest.mark.parametrize(
    ("output", "arguments", "said"),
    [
        (
            Invoice,
            {"number": 3, "lines": [{"name": "a", "cents": -1}]},
            ("number: expected a string", "lines[0].cents"),
        ),
        (Invoice, {}, ("number is missing", "lines is missing")),
        (Point, {"x": "1", "z": 2}, ("x: expected an integer", "z is not a parameter")),
        (Movie, {"titel": "M"}, ("title is missing", "titel is not a parameter of finish: did you mean title")),
        (Node, {"value": 1, "kids": [{"value": "x"}]}, ("kids[0].value: expected an integer",)),
        (Span, {"low": 2, "high": 1}, ("the arguments: low is above high",)),
        (int, {"answer": 1.5}, ("answer: expected an integer",)),
        (int, {"answer": True}, ("answer: expected an integer",)),
        (int, {"n": 1}, ("answer is missing",)),
        (Literal["a", "b"], {"answer": "c"}, ("'a' or 'b'",)),
        (SCHEMA, {"n": 0}, ("n: 0 is less than the minimum of 1",)),
        (SCHEMA, {}, ("'n' is a required property",)),
        (LIST, {"answer": [1]}, ("answer[0]: 1 is not of type 'string'",)),
    ],
)
def test_a_wrong_answer_goes_back_with_the_paths_that_failed(
    output: Any, arguments: JsonObject, said: tuple[str, ...]
) -> None:
    text = refused(finish(output), arguments)
    assert text.startswith("finish did not run:")
    for words in said:
        assert words in text


def test_json_text_in_the_place_of_an_array_is_decoded_and_said_as_for_every_tool() -> None:
    one = finish(Invoice)
    bound = one.check({"number": "7", "lines": '[{"name": "a", "cents": 1}]'})
    assert isinstance(bound, Bound)
    assert bound.remarks


def test_the_schema_has_no_names_that_nobody_refers_to() -> None:
    assert "$defs" not in finish(Point).spec.parameters
    assert set(finish(Invoice).spec.parameters["$defs"]) == {"Line"}  # type: ignore[arg-type]  # an object
    assert set(finish(Node).spec.parameters["$defs"]) == {"Node"}  # type: ignore[arg-type]  # it holds itself


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (3, "cannot be described to a model"),
        (json.loads, "loads is a function: give the type"),
        ({"type": "objekt"}, "not valid"),
        ({"type": "object", "properties": {"a": object()}}, "is not JSON"),
    ],
)
def test_what_is_no_type_is_said_so(output: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        finish(output)
    assert str(caught.value).startswith("output=")


def test_a_schema_needs_its_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"tenlines\[schemas\]"):
        finish(SCHEMA)


def test_a_schema_is_copied() -> None:
    mine: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    one = finish(mine)
    mine["properties"]["n"]["type"] = "string"
    assert given_by(one, {"n": 1}) == '{"n":1}'


def test_an_answer_for_another_type_is_said_so() -> None:
    with pytest.raises(ConfigError, match="given for another type"):
        finish(Point).read('{"title":"M"}')


def test_a_tool_of_that_name_or_one_that_ends_the_run_is_refused() -> None:
    def named(name: str, **options: Any) -> dict[str, Any]:
        return {one.spec.name: one for one in as_tools([tool(lambda: "x", name=name, **options)])}

    with pytest.raises(ConfigError, match="give yours another name"):
        with_finish(named("finish"), finish(int))
    with pytest.raises(ConfigError, match="the tool submit ends a run"):
        with_finish(named("submit", final=True), finish(int))
    assert list(with_finish(named("look"), finish(int))) == ["look", "finish"]


# --- partial answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("  ", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a": "Lon', {"a": "Lon"}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": 12', {}),
        ('{"a": -1.5e', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": 12}', {"a": 12}),
        ('{"a": "room 12', {"a": "room 12"}),
        ('{"a": "\\"12', {"a": '"12'}),
        ('{"a": [1, 2', {"a": [1]}),
        ('{"a": tru', {}),
        ('{"a": true ', {"a": True}),
        ('{"answer": [{"n": 1}, {"n"', {"answer": [{"n": 1}, {}]}),
    ],
)
def test_what_is_known_of_an_answer_so_far(text: str, value: Any) -> None:
    assert partial(text) == value


def test_what_is_no_json_is_said_so() -> None:
    for text in ("It is", "{'a'", '{"a": }', "[" * 5000):
        with pytest.raises(ValueError):
            partial(text)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-999, 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def _is_so_far(part: Any, whole: Any) -> bool:
    """Whether a value can be the beginning of another one: texts and lists grow, everything else is whole."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _is_so_far(value, whole[key]) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) <= len(whole) and all(map(_is_so_far, part, whole))
    if isinstance(part, str):
        return isinstance(whole, str) and whole.startswith(part)
    return type(part) is type(whole) and bool(part == whole)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), st.booleans())
def test_at_every_place_it_is_the_beginning_of_the_whole(value: dict[str, Any], is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    for end in range(1, len(text) + 1):
        try:
            part = partial(text[:end])
        except ValueError:
            assert "\\ud8" in text[:end].lower() or "\\ud9" in text[:end].lower(), "half a character, and nothing else"
            continue
        assert _is_so_far(part, value), (text[:end], part)
    assert partial(text) == value


def test_the_tool_says_in_its_spec_that_it_takes_the_answer() -> None:
    assert isinstance(finish(int).spec, ToolSpec)
    assert (finish(int).spec.answer, finish(Point).spec.answer) == ("value", "object")
