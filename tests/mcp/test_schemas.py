"""Arguments against foreign schemas."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tenlines.tools.mcp.schemas import Checker, Unusable
from tenlines.tools.mcp.texts import MOST_CHARS, parameters, seen


def problem(schema: dict[str, Any], arguments: dict[str, Any]) -> str:
    return Checker("look", {"type": "object", **schema}).problem(arguments)


def test_arguments_that_fit_are_no_problem() -> None:
    assert problem({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": 1}) == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "'a' is a required property"),
        ({"a": "1"}, "a: '1' is not of type 'integer'"),
        ({"a": True}, "is not of type 'integer'"),
        ({"a": 1, "b": 2}, "'b' was unexpected"),
        ({"a": 1, "c": {"d": [1, "x"]}}, "c.d[0]: 1 is not of type 'string'"),
    ],
)
def test_what_does_not_fit_is_told(arguments: dict[str, Any], words: str) -> None:
    listed = {"type": "array", "items": {"type": "string"}}
    inner = {"type": "object", "properties": {"d": listed}}
    schema = {"properties": {"a": {"type": "integer"}, "c": inner}, "required": ["a"], "additionalProperties": False}
    said = problem(schema, arguments)
    assert said.startswith("look did not run:")
    assert words in said
    assert "Parameters of look: a (integer, required)" in said


def test_a_problem_is_short_whatever_came() -> None:
    said = problem({"properties": {"a": {"type": "integer"}}}, {"a": "x" * 1_000_000})
    assert len(said) < 1_000


def test_json_in_a_text_is_decoded_where_only_that_can_be_meant() -> None:
    checker = Checker("look", {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "string"}}})
    mended, remarks = checker.mended({"a": "[1]", "b": "[1]"})
    assert mended == {"a": [1], "b": "[1]"}
    assert len(remarks) == 1


def test_older_drafts_are_kept_to() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}]}},
    }
    assert problem(schema, {"a": [1]})
    assert not problem(schema, {"a": ["x", 1]})


# --- schemas that mean harm -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": ["object", "null"]},
        {"type": "object", "properties": 3},
        {"type": "object", "properties": {"a": {"type": "no such type"}}},
        {"type": "object", "description": "x" * 200_000},
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        Checker("look", schema)


def quickly(schema: dict[str, Any], arguments: dict[str, Any]) -> str:
    start = time.monotonic()
    said = problem(schema, arguments)
    assert time.monotonic() - start < 10
    return said


def test_a_pattern_that_runs_wild_does_not() -> None:
    evil = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert "does not match" in quickly(evil, {"a": "a" * 50_000 + "!"})
    assert not quickly(evil, {"a": "aaa"})
    keyed = {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False}
    assert not quickly(keyed, {"a" * 50_000 + "!": 1})


def test_a_pattern_that_is_not_known_is_left_to_the_server() -> None:
    assert not problem({"properties": {"a": {"pattern": "(?<=x)y"}}}, {"a": "z"})


def test_references_that_multiply_are_given_up() -> None:
    defs: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    defs["d40"] = {"type": "string"}
    assert not quickly({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}}, {"a": 1})


def test_a_schema_that_refers_to_itself_is_given_up() -> None:
    assert not quickly({"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}, {"a": 1})
    tree = {"$defs": {"t": {"type": "object", "additionalProperties": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"}
    assert "3 is not of type 'object'" in problem(tree, {"a": {"b": 3}})


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*args: Any) -> None:
        raise AssertionError("it was fetched")

    monkeypatch.setattr("urllib.request.urlopen", no)
    with pytest.raises(Exception, match="http://127") as error:
        problem({"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}, {"a": 1})
    assert "fetched" not in str(error.value)


def test_checks_in_several_threads_do_not_meet() -> None:
    checker = Checker(
        "look", {"type": "object", "$defs": {"s": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/s"}}}
    )
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(checker.problem({"a": "x"}))) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert said == [""] * 5


# --- descriptions ---------------------------------------------------------------------------------------


def test_nothing_hidden_is_in_a_description() -> None:
    assert seen("a\u202eb\u200b\x1b[2J\U000e0041c\r\nd") == "ab[2Jc\nd"
    assert len(seen("x" * 100_000)) < MOST_CHARS + 100
    schema = {"properties": {"description": {"description": "x\u202ey", "default": "p\u202eq"}}}
    clean = parameters(schema)
    assert clean == {"type": "object", "properties": {"description": {"description": "xy", "default": "p\u202eq"}}}
