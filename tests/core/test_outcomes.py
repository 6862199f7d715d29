"""The texts of results that are not a tool's own, and the reading of arguments."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core import outcomes

NAMES = ("get_weather", "get_tracking", "send_mail")


def nested(levels: int) -> str:
    return '{"a":' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize("raw", ["", " ", "null", "{}", ' {"a": 1}\n'])
def test_an_object_or_nothing_is_read_as_arguments(raw: str) -> None:
    assert isinstance(outcomes.parse_arguments(raw).value, dict)


@pytest.mark.parametrize(
    "raw", ["{", "[1]", "3", '"x"', "true", '{"a":NaN}', "{}{}", '{"a":1e999}', "{'a':1}", "\ud800"]
)
def test_nothing_else_is_and_the_problem_is_said(raw: str) -> None:
    parsed = outcomes.parse_arguments(raw)
    assert parsed.value is None
    assert parsed.problem


def test_how_deep_arguments_may_be_does_not_depend_on_who_reads_them() -> None:
    def read(raw: str, frames: int) -> bool:
        return read(raw, frames - 1) if frames else outcomes.parse_arguments(raw).value is not None

    room = sys.getrecursionlimit() // 2
    for levels in (outcomes.DEEPEST - 2, outcomes.DEEPEST + 2, 400, 900, 990, 5000):
        assert read(nested(levels), 0) == read(nested(levels), room) == (levels < outcomes.DEEPEST)


@given(st.text(max_size=40))
def test_any_text_is_read_or_explained_and_what_is_read_can_be_written(raw: str) -> None:
    parsed = outcomes.parse_arguments(raw)
    assert (parsed.value is None) == bool(parsed.problem)
    if parsed.value is not None:
        assert outcomes.parse_arguments(outcomes.canonical(parsed.value)).value == parsed.value


def test_equal_arguments_have_one_canonical_text() -> None:
    one, other = (outcomes.parse_arguments(raw).value for raw in ('{"b": 1, "a": [2]}', '{"a":[2],"b":1}'))
    assert one is not None
    assert other is not None
    assert outcomes.canonical(one) == outcomes.canonical(other) == '{"a":[2],"b":1}'


def test_a_canonical_text_keeps_big_numbers_whole() -> None:
    value = outcomes.parse_arguments('{"n":123456789012345678901234567890}').value
    assert value is not None
    assert outcomes.canonical(value) == '{"n":123456789012345678901234567890}'


@given(st.text(max_size=100))
def test_every_name_can_stand_on_the_wire(name: str) -> None:
    made = outcomes.wire_name(name)
    assert 0 < len(made) <= 64
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in made)
    assert outcomes.wire_name(made) == made


def test_an_unknown_tool_is_answered_with_the_closest_names_and_all_there_are() -> None:
    text = outcomes.unknown_tool("get_wether", NAMES)
    assert "'get_wether'" in text
    assert "nothing was run" in text
    assert "Did you mean get_weather" in text
    assert "send_mail" in text


def test_leaked_template_tokens_in_a_name_are_pointed_out() -> None:
    assert "leaked" in outcomes.unknown_tool("get_weather<|channel|>", NAMES)


def test_an_unknown_tool_among_very_many_lists_only_some() -> None:
    text = outcomes.unknown_tool("x", tuple(f"tool_{i}" for i in range(500)))
    assert "and 480 more" in text
    assert len(text) < 1000


def test_an_unknown_tool_where_there_is_none_says_so() -> None:
    assert "Available tools: none." in outcomes.unknown_tool("x", ())


def test_bad_arguments_are_answered_with_what_came_and_what_was_expected() -> None:
    schema = {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}
    text = outcomes.bad_arguments("get_weather", "Paris", "are not valid JSON", schema)  # type: ignore[arg-type]
    assert "'Paris'" in text
    assert "city (string, required), days (integer)" in text
    assert "did not run" in text


@pytest.mark.parametrize("schema", [{}, {"properties": None}, {"properties": {}}, {"properties": [1]}])
def test_a_schema_without_parameters_is_said_as_that(schema: dict[str, object]) -> None:
    assert outcomes.parameter_words(schema) == "no parameters"  # type: ignore[arg-type]


def test_every_branch_of_a_schema_is_named() -> None:
    optional = {"anyOf": [{"type": "array"}, {"type": "null"}]}
    schema = {"properties": {"tags": optional, "x": {"type": ["string", "null"]}}}
    assert outcomes.parameter_words(schema) == "tags (array or null), x (string or null)"  # type: ignore[arg-type]


@pytest.mark.parametrize("schema", [{"properties": {"a": 1}, "required": 2}, {"properties": {"a": {"type": 7}}}])
def test_an_odd_schema_is_still_put_into_words(schema: dict[str, object]) -> None:
    assert outcomes.parameter_words(schema) == "a (any)"  # type: ignore[arg-type]


def test_only_a_call_that_cannot_have_had_effect_is_told_as_harmless() -> None:
    for read_only in (True, False):
        for text in (outcomes.interrupted("send", read_only), outcomes.timed_out("send", 2, read_only)):
            assert ("nothing was changed" in text) == read_only
            assert ("may have" in text) == (not read_only)
            assert "send" in text
            assert "again" not in text or "Check before" in text or "check before" in text


def test_a_killed_process_is_not_told_as_if_it_had_done_nothing() -> None:
    assert "may have taken effect" in outcomes.timed_out("send", 2, False, killed=True)


def test_an_exception_without_words_still_has_a_name() -> None:
    assert outcomes.raised("send", "ValueError", "") == "send failed: ValueError (without a message)"


@given(st.text(max_size=2000))
def test_a_quote_is_one_bounded_line_that_can_be_encoded(text: str) -> None:
    quoted = outcomes.quote(text, 100)
    assert "\n" not in quoted
    quoted.encode()
    assert len(quoted) < 1100


def test_halves_of_a_character_that_stand_side_by_side_are_joined_and_lone_ones_replaced() -> None:
    assert outcomes.encodable("a\ud83d\ude00b\ud800c") == "a😀b\ufffdc"
    assert outcomes.encodable_value({"k\ud800": ["\ud83d\ude00", 1, None]}) == {"k\ufffd": ["😀", 1, None]}
    assert outcomes.sendable("\ud83d\ude00\x1b[0m") == "😀\\x1b[0m"
