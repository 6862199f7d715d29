"""What is read of a request, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_world import HI

from tenlines.core.transcript import Assistant, File, Image, Result, System, Text, ToolCall, User
from tenlines.serve.openai_asked import instructed, read
from tenlines.serve.openai_faults import Fault

# --- requests -----------------------------------------------------------------------------------------


def asked(**fields: Any) -> bytes:
    return json.dumps({"model": "agent", "messages": HI, **fields}).encode()


IMAGE = "data:image/png;base64,aGVsbG8="


def test_a_conversation_is_read_whole() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
    parts = [
        {"type": "text", "text": "What is this? \ud83d"},
        {"type": "image_url", "image_url": {"url": IMAGE}},
        {"type": "image_url", "image_url": {"url": "https://host/x.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGVsbG8="}},
    ]
    talk = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": parts, "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "row 1"},
        {"role": "assistant", "content": [{"type": "text", "text": "A row."}], "reasoning_content": "left out"},
    ]
    found = read(asked(messages=talk, stream=True, max_tokens=7, temperature=0.2, unknown={"x": 1}))
    assert found.messages == (
        System("Be kind."),
        User(
            (
                Text("What is this? \ufffd"),
                Image("image/png", b"hello"),
                Image("image/*", url="https://host/x.png"),
                File("application/pdf", b"hello", "a.pdf"),
            )
        ),
        Assistant("", (ToolCall("c1", "look", '{"n": 1}'),)),
        Result("c1", "", "ok", (Text("row 1"),)),
        Assistant("A row."),
    )
    assert (found.stream, found.with_usage, found.max_tokens) == (True, False, 7)


def test_the_agents_own_instructions_come_before_those_of_the_client() -> None:
    talk = (User((Text("hi"),)), System("Theirs."))
    assert instructed(talk, "Ours.") == (System("Ours.\n\nTheirs."), talk[0])
    assert instructed(talk, "") == talk


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        (b"{", None, "not JSON"),
        (b"\xff", None, "not JSON"),
        (b'{"n": NaN}', None, "NaN"),
        (b"[" * 100_000, None, "nested too deeply"),
        (b"[]", None, "JSON object"),
        (asked(messages=[]), "messages", "at least one"),
        (asked(messages="hi"), "messages", "list"),
        (asked(messages=[HI[0], 7]), "messages[1]", "role"),
        (asked(messages=[{"role": "robot", "content": "x"}]), "messages[0].role", "robot"),
        (asked(messages=[{"role": ["user"], "content": "x"}]), "messages[0].role", "user"),
        (asked(messages=[{"role": "user"}]), "messages[0].content", "text"),
        (asked(messages=[{"role": "user", "content": [{"type": "video"}]}]), "messages[0].content[0]", "type"),
        (asked(messages=[{"role": "user", "content": [{"type": "text"}]}]), "messages[0].content[0].text", "text"),
        (
            asked(
                messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/x"}}]}]
            ),
            "messages[0].content[0].image_url",
            "base64",
        ),
        (
            asked(messages=[{"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}]),
            "messages[0].content[0].file",
            "base64",
        ),
        (asked(stream="yes"), "stream", "true or false"),
        (asked(max_tokens=0), "max_tokens", "1 or more"),
        (asked(stream_options=[1]), "stream_options", "object"),
        (asked(tools=[{"type": "function"}]), "tools", "of its own"),
        (asked(n=2), "n", "one answer"),
        (asked(response_format={"type": "json_object"}), "response_format", "own form"),
    ],
)
def test_what_cannot_be_read_is_a_400_that_says_where(body: bytes, param: str | None, says: str) -> None:
    with pytest.raises(Fault, match=says) as caught:
        read(body)
    assert (caught.value.status, caught.value.param) == (400, param)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "image_url", "url", "tool_calls", "function", "id", "file"]
            ),
            inner | st.sampled_from(["user", "assistant", "tool", "system", "text", "image_url", "file", IMAGE]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.lists(json_values, max_size=4), st.dictionaries(st.sampled_from(["stream", "n", "tools"]), json_values))
@settings(max_examples=100, deadline=None)
def test_any_request_is_read_or_refused(messages: Any, more: Any) -> None:
    try:
        found = read(asked(messages=messages, **more))
    except Fault as fault:
        json.loads(fault.text)
        return
    json.dumps([repr(one) for one in found.messages]).encode()
