"""Whose format something is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.wire.dumps.sources import SOURCES
from tenlines.wire.formats import FORMATS
from tenlines.wire.recognising import ORDER, Recognised, is_body, recognise

TESTS = Path(__file__).parent
SAMPLES = sorted((TESTS / "samples").glob("*.json"))
VECTORS = [json.loads(line) for line in (TESTS.parent / "vectors" / "protocol.jsonl").read_text().splitlines()]
NAMES = {"bedrock_converse": "bedrock", "openai_compat": "openai_chat"}

UNDECIDED = {"ANT-1.bad.1", "ANT-6.bad.2", "MIS-1.bad.1"}
"""Bodies that show nothing of the format whose rules they break."""


def taken(value: Any) -> str:
    found = recognise(value)
    assert found is not None
    return found.name


@pytest.mark.parametrize(
    "vector", [one for one in VECTORS if one["id"] not in UNDECIDED], ids=lambda one: str(one["id"])
)
def test_a_body_is_taken_for_what_it_is_or_for_one_that_fits_as_well(vector: dict[str, Any]) -> None:
    found = recognise(vector["request_fragment"])
    assert found is not None
    assert NAMES.get(vector["format"], vector["format"]) in (found.name, *found.others)


def test_most_bodies_are_taken_for_exactly_what_they_are() -> None:
    clear = [
        one
        for one in VECTORS
        if (found := recognise(one["request_fragment"])) is not None
        and found.name == NAMES.get(one["format"], one["format"])
    ]
    assert len(clear) >= 0.8 * len(VECTORS)


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: str(file.stem))
def test_a_dump_is_taken_for_what_it_is(file: Path) -> None:
    value = json.loads(file.read_text())
    name = next((one for one in SOURCES if file.stem.startswith(one)), None)
    if name is None:
        pytest.skip("a sample of something else")
    found = recognise(value)
    assert found is not None
    if file.stem == "agents_items":  # the same items as in a body of the Responses format
        assert found == Recognised("openai_responses", ("agents",), found.reason)
    else:
        assert (found.name, found.others) == (name, ())


TEXT = {"role": "user", "content": "hi"}


def test_plain_text_fits_many_and_says_so() -> None:
    found = recognise([TEXT, {"role": "assistant", "content": "ho"}])
    assert found is not None
    assert found.name == "openai_chat"
    assert set(found.others) == {"openai_responses", "anthropic", "mistral", "cohere", "ollama", "agents", "ai_sdk"}
    assert "anthropic" in found.reason


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (
            [TEXT, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}],
            "anthropic",
        ),
        ({"system": "Be short.", "messages": [TEXT], "max_tokens": 9}, "anthropic"),
        ({"messages": [TEXT], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        ({"messages": [{"role": "user", "content": [{"text": "hi"}]}], "system": [{"text": "x"}]}, "bedrock"),
        ([{"role": "user", "parts": [{"text": "hi"}]}], "gemini"),
        ({"contents": [{"parts": [{"text": "hi"}]}]}, "gemini"),
        ({"model": "gpt-5", "input": "hi"}, "openai_responses"),
        ({"model": "gpt-5", "input": [TEXT]}, "openai_responses"),
        ([TEXT, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}], "openai_responses"),
        ([TEXT, {"type": "function_call", "callId": "c", "name": "f", "arguments": "{}"}], "agents"),
        ([TEXT, {"role": "assistant", "content": None, "tool_calls": [CALL]}], "openai_chat"),
        ({"model": "mistral-large-latest", "messages": [TEXT]}, "mistral"),
        ({"model": "command-a-03-2025", "messages": [TEXT]}, "cohere"),
        ([{"role": "assistant", "tool_plan": "look", "tool_calls": [CALL]}], "cohere"),
        (
            [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}],
            "ollama",
        ),
        ([{"role": "tool", "tool_name": "f", "content": "x"}], "ollama"),
        ([{"type": "human", "content": "hi"}], "langchain"),
        ([{"role": "assistant", "content": "x", "toolInvocations": []}], "ai_sdk"),
        ([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}], "otel"),
        ({"name": "chat", "attributes": {"gen_ai.input.messages": "[]"}}, "otel"),
        ([{"messages": [TEXT], "system": "x"}, {"messages": [TEXT], "system": "y"}], "anthropic"),
        (TEXT, "openai_chat"),
    ],
)
def test_one_thing_that_only_one_has_decides(value: Any, name: str) -> None:
    assert taken(value) == name


@pytest.mark.parametrize(
    "value", [None, 3, "text", [], {}, {"a": 1}, [1, 2], [[]], {"messages": "x"}, {"messages": [1]}]
)
def test_what_is_nothing_known_is_none(value: Any) -> None:
    assert recognise(value) is None


def test_every_format_and_source_is_recognised() -> None:
    assert set(ORDER) == {*FORMATS, *SOURCES} | {"mistral", "cohere", "ollama", "anthropic"}


def test_a_message_is_no_body() -> None:
    assert is_body({"messages": [TEXT]})
    assert not is_body(TEXT)
    assert not is_body({"type": "function_call_output", "input": []})


JSON = st.recursive(
    st.one_of(st.none(), st.integers(), st.sampled_from(["user", "model", "text", "message", "ai", "request", "x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["role", "type", "content", "parts", "messages", "input", "kind", "attributes", "data", "tools"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(value=JSON)
@settings(max_examples=60, deadline=None)
def test_any_json_is_looked_at(value: Any) -> None:
    found = recognise(value)
    assert found is None or found.name in ORDER
