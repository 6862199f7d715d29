"""What arguments are accepted, what the tool then gets, and what the model is told when they are not."""

import dataclasses
import datetime as dt
import decimal
import enum
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import MaxLen
from pydantic import BaseModel, ConfigDict, Field, field_validator
from typing_extensions import TypedDict

from tenlines.ports import Bound, Invalid
from tenlines.tools import Tool, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Filter(BaseModel):
    """What to look for."""

    title: str
    limit: int = 10


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int


class Size(TypedDict):
    width: int


def taking(kind: Any) -> Tool[..., Any]:
    def act(v: Any) -> Any:
        return v

    act.__annotations__["v"] = kind
    return tool(act)


def bound(kind: Any, value: Any) -> Any:
    answer = taking(kind).check({"v": value})
    assert isinstance(answer, Bound), answer
    return answer.arguments["v"]


def refusal(kind: Any, value: Any) -> str:
    answer = taking(kind).check({"v": value})
    assert isinstance(answer, Invalid), answer
    assert len(answer.text) < 2_000
    assert "act" in answer.text
    assert "pydantic" not in answer.text
    return answer.text


# --- accepted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 3, 3),
        (int, -(10**30), -(10**30)),
        (float, 1, 1.0),
        (float, 1.5, 1.5),
        (str, "", ""),
        (bool, False, False),
        (None, None, None),
        (Any, {"a": [1, None]}, {"a": [1, None]}),
        (list[int], [1, 2], [1, 2]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 1, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset("a")),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (int | None, None, None),
        (int | str, "3", "3"),
        (int | str, 3, 3),
        (Literal["a", "b"], "b", "b"),
        (Color, "red", Color.RED),
        (dt.datetime, "2024-05-01T10:00:00", dt.datetime(2024, 5, 1, 10)),  # noqa: DTZ001
        (dt.date, "2024-05-01", dt.date(2024, 5, 1)),
        (dt.time, "12:30:00", dt.time(12, 30)),
        (dt.timedelta, "PT1H", dt.timedelta(hours=1)),
        (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
        (Path, "/x/y", Path("/x/y")),
        (bytes, "abc", b"abc"),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (decimal.Decimal, 2, decimal.Decimal(2)),
        (Point, {"x": 1}, Point(1)),
        (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)]),
        (Size, {"width": 3}, {"width": 3}),
        (Filter, {"title": "a"}, Filter(title="a")),
        (Annotated[int, Field(ge=1, le=3)], 3, 3),
        (Annotated[str, MaxLen(3)], "abc", "abc"),
    ],
)
def test_json_becomes_the_type_that_was_asked_for(kind: Any, value: Any, expected: Any) -> None:
    got = bound(kind, value)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, "3", 'v: expected an integer, got a string: "3" (write it without quotes)'),
        (int, 3.0, "v: expected an integer, got a number: 3.0 (write 3 without a decimal point)"),
        (int, 3.5, "v: expected an integer, got a number: 3.5"),
        (int, True, "v: expected an integer, got true"),
        (int, None, "v: expected an integer, got null"),
        (float, "1.5", "v: expected a number, got a string"),
        (bool, 1, "v: expected true or false, got a number: 1"),
        (bool, "true", "v: expected true or false, got a string"),
        (str, 3, "v: expected a string, got a number: 3"),
        (list[int], [1, "a"], 'v[1]: expected an integer, got a string: "a"'),
        (list[int], "a,b", "v: expected an array, got a string"),
        (dict[str, int], {"a": "x"}, 'v.a: expected an integer, got a string: "x"'),
        (dict[str, int], [1], "v: expected an object, got an array: [1]"),
        (set[int], 3, "v: expected an array"),
        (Literal["a", "b"], "c", "v: expected 'a' or 'b'"),
        (Color, "green", "v: expected 'red' or 'blue'"),
        (Color, "RED", "v: expected 'red' or 'blue'"),
        (dt.datetime, "yesterday", "v: expected a date and time such as 2024-05-01T12:00:00"),
        (dt.date, 3, "v: expected a date such as 2024-05-01"),
        (dt.timedelta, "soon", "v: expected a duration such as PT1H30M"),
        (dt.time, "noon", "v: expected a time such as 12:30:00"),
        (uuid.UUID, "x", "v: expected a UUID"),
        (decimal.Decimal, "x", "v: expected a decimal number"),
        (Point, {"y": 1}, "v.x is missing"),
        (Point, {"x": 1, "z": 1}, "v.z is not allowed there, got a number: 1"),
        (Point, 3, "v: expected an object"),
        (Size, {"width": 1, "depth": 2}, "v.depth is not allowed there"),
        (Filter, {"title": 3}, "v.title: expected a string"),
        (Annotated[int, Field(ge=1, le=3)], 9, "v: expected less than or equal to 3, got a number: 9"),
        (Annotated[str, Field(max_length=2)], "abc", "v: String should have at most 2 characters"),
        (int | list[str], {"a": 1}, "v: expected an integer or an array, got an object"),
        (int | list[str], [1], "v[0]: expected a string"),
        (int | None, "x", "v: expected an integer"),
    ],
)
def test_nothing_is_coerced_and_the_text_says_what_came_and_what_was_expected(
    kind: Any, value: Any, words: str
) -> None:
    assert words in refusal(kind, value)


def test_a_missing_parameter_is_named_and_nothing_runs() -> None:
    ran = []

    @tool
    def log_visit(place: str, remark: str) -> str:
        ran.append(place)
        return "ok"

    answer = log_visit.check({"place": "pier"})
    assert isinstance(answer, Invalid)
    assert "remark is missing (string, required)" in answer.text
    assert "Parameters of log_visit: place (string, required), remark (string, required)." in answer.text
    assert ran == []


def test_an_invented_parameter_is_named_with_the_ones_there_are() -> None:
    @tool
    def shell(command: str) -> str:
        return "ok"

    answer = shell.check({"command": "ls", "comand": "x", "description": "list files"})
    assert isinstance(answer, Invalid)
    assert "description is not a parameter of shell" in answer.text
    assert "comand is not a parameter of shell: did you mean command?" in answer.text
    assert "Parameters of shell: command (string, required)." in answer.text


def test_a_tool_may_ignore_invented_parameters_and_it_is_noted() -> None:
    @tool(extra="ignore")
    def shell(command: str) -> str:
        return command

    answer = shell.check({"command": "ls", "description": "list files"})
    assert answer == Bound({"command": "ls"}, ("shell has no parameter 'description': left out",))
    assert shell.check({"command": "ls"}) == Bound({"command": "ls"})


def test_keyword_arguments_take_every_other_key() -> None:
    @tool
    def act(a: int, **rest: Any) -> Any:
        return rest

    @tool
    def typed(**rest: int) -> Any:
        return rest

    assert act.check({"a": 1, "b": [2]}) == Bound({"a": 1, "b": [2]})
    assert act.spec.parameters["additionalProperties"] is True
    assert typed.check({"b": 2}) == Bound({"b": 2})
    assert typed.spec.parameters["additionalProperties"] == {"type": "integer"}
    answer = typed.check({"b": "x"})
    assert isinstance(answer, Invalid)
    assert "any other name is taken too" in answer.text


def test_a_parameter_without_a_type_takes_any_json() -> None:
    def act(v, w=2):  # type: ignore[no-untyped-def]
        return v

    made = tool(act)
    assert made.spec.parameters["properties"] == {"v": {}, "w": {"default": 2}}
    for value in (1, "a", None, [1], {"a": {}}):
        assert made.check({"v": value}) == Bound({"v": value})


def test_many_and_long_problems_stay_within_bounds() -> None:
    answer = taking(list[int]).check({"v": ["x" * 5_000] * 1_000, "y" * 3_000: 1})
    assert isinstance(answer, Invalid)
    assert len(answer.text) < 2_000
    assert "v[0]: expected an integer" in answer.text
    assert "more\n" in answer.text


def test_a_wrong_value_is_quoted_in_bounds_and_always_sendable() -> None:
    text = refusal(int, "\x00" + "é" * 10_000)
    assert "(10,008 characters)" in text
    assert "\x00" not in text
    text.encode()


def test_a_models_own_rule_for_extra_keys_is_kept() -> None:
    assert bound(Open, {"n": 1, "more": 2}).model_extra == {"more": 2}


def test_a_validators_own_words_reach_the_model() -> None:
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            if n % 2:
                raise ValueError("give an even number")
            return n

    assert "v.n: give an even number, got a number: 3" in refusal(Even, {"n": 3})


def test_a_validator_that_breaks_is_reported_and_does_not_raise() -> None:
    class Broken(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            raise KeyError("oops")

    assert "checking its arguments failed with KeyError" in refusal(Broken, {"n": 3})


# --- a JSON text in place of an object or an array ----------------------------------------------------


def test_a_json_text_is_decoded_where_only_an_object_or_an_array_fits() -> None:
    @tool
    def search(filter: dict[str, str], tags: list[str]) -> str:
        return f"{filter} {tags}"

    answer = search.check({"filter": '{"lang": "no"}', "tags": '["x","y"]'})
    assert isinstance(answer, Bound)
    assert answer.arguments == {"filter": {"lang": "no"}, "tags": ["x", "y"]}
    assert answer.remarks == (
        "filter came as a JSON text and was decoded to the object in it",
        "tags came as a JSON text and was decoded to the array in it",
    )


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (list[int] | None, "[1]", [1]),
        (Point, '{"x": 1}', Point(1)),
        (Filter, '{"title": "a"}', Filter(title="a")),
        (list[Point], [{"x": 1}, '{"x": 2}'], [Point(1), Point(2)]),
        (list[int] | dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, list[int]], {"a": "[1]"}, {"a": [1]}),
        (tuple[int, ...], "[1, 2]", (1, 2)),
    ],
)
def test_the_decoding_also_works_inside_and_through_definitions(kind: Any, value: Any, expected: Any) -> None:
    answer = taking(kind).check({"v": value})
    assert isinstance(answer, Bound)
    assert answer.arguments["v"] == expected
    assert len(answer.remarks) == 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "3"),
        (bool, "true"),
        (list[int], '{"a": 1}'),
        (dict[str, int], "[1]"),
        (dict[str, int], '{"a": 1} '.rstrip() + "}"),
        (dict[str, int], '"{}"'),
        (dict[str, int], "null"),
        (list[int], "[" * 100_000),
        (int | dict[str, int], '{"a": 1}'),
        (dict[str, dict[str, int]], '{"a": "{}"}'),
    ],
)
def test_nothing_else_is_decoded(kind: Any, value: Any) -> None:
    refusal(kind, value)


def test_a_string_that_may_be_a_string_stays_one() -> None:
    assert bound(str | dict[str, int], '{"a": 1}') == '{"a": 1}'
    assert bound(Any, '{"a": 1}') == '{"a": 1}'


def test_problems_inside_a_decoded_text_are_named() -> None:
    assert "v.a: expected an integer" in refusal(dict[str, int], '{"a": "x"}')


# --- the schema ---------------------------------------------------------------------------------------


def test_titles_are_left_out_but_a_property_called_title_stays() -> None:
    parameters = taking(Filter).spec.parameters
    assert parameters["$defs"] == {
        "Filter": {
            "description": "What to look for.",
            "properties": {"title": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
            "required": ["title"],
            "type": "object",
        }
    }
    assert '"title":' not in str(parameters).replace("'title': {'type'", "")


@pytest.mark.parametrize(
    "doc",
    [
        "Do.\n\nArgs:\n    n: How many.\n",
        "Do.\n\nParameters\n----------\nn : int\n    How many.\n",
        "Do.\n\n:param n: How many.\n",
    ],
)
def test_parameter_texts_come_from_google_numpy_and_rest_docstrings(doc: str) -> None:
    def act(n: int) -> None: ...

    act.__doc__ = doc
    made = tool(act)
    assert made.spec.description == "Do."
    assert made.spec.parameters["properties"] == {"n": {"type": "integer", "description": "How many."}}


def test_field_texts_and_defaults_are_used() -> None:
    @tool
    def act(
        a: Annotated[int, Field(description="First.", ge=1)],
        b: int = Field(2, description="Second.", le=9),
        c: list[int] = Field(default_factory=list),  # noqa: B008
        d: int = Field(description="Fourth."),
    ) -> Any:
        return [a, b, c, d]

    parameters = act.spec.parameters
    assert parameters["properties"] == {
        "a": {"type": "integer", "description": "First.", "minimum": 1},
        "b": {"type": "integer", "description": "Second.", "maximum": 9, "default": 2},
        "c": {"type": "array", "items": {"type": "integer"}},
        "d": {"type": "integer", "description": "Fourth."},
    }
    assert parameters["required"] == ["a", "d"]
    assert act.check({"a": 1, "d": 4}) == Bound({"a": 1, "b": 2, "c": [], "d": 4})
    assert isinstance(act.check({"a": 1, "b": 10, "d": 4}), Invalid)


def test_defaults_that_json_cannot_say_are_left_out() -> None:
    @tool
    def act(a: Any = object(), b: set[str] = {"y", "x"}, c: float = float("nan"), d: Color = Color.RED) -> None: ...  # noqa: B006, B008

    properties = act.spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["a"] == {}
    assert properties["b"]["default"] == ["x", "y"]  # type: ignore[index,call-overload]
    assert properties["c"]["default"] is None  # type: ignore[index,call-overload]
    assert properties["d"]["default"] == "red"  # type: ignore[index,call-overload]


def test_a_recursive_type_has_a_schema() -> None:
    made = taking(Node)
    assert made.check({"v": {"children": [{"children": []}]}}) == Bound({"v": Node([Node([])])})


@dataclasses.dataclass
class Node:
    children: "list[Node]"


@pytest.mark.slow
def test_the_schema_is_the_same_in_every_process() -> None:
    code = (
        "import json\nfrom tenlines.tools import tool\n@tool\n"
        "def f(a: int, b: set[str] = {'x', 'y', 'z'}, c: dict = {'b': 1, 'a': 2}) -> None: 'F.'\n"
        "print(json.dumps(f.spec.parameters))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1
