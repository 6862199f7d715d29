"""One transcript from any form into any other: what stays the same, and what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenlines.core.transcript import Assistant, File, Image, Opaque, Result, Text, ToolCall, User
from tenlines.errors import ConfigError
from tenlines.wire.checking import check
from tenlines.wire.converting import as_body, converted, gathered, imported, written
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Target
from tenlines.wire.recognising import recognise
from tenlines.wire.targets import goal

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))
TARGETS = [*FORMATS, "vllm", "strict-template", "anthropic:claude-opus-5", "gemini:gemini-3-pro", "mistral:v3"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_what_frameworks_wrote_becomes_a_request_without_errors(sample: Path, target: str) -> None:
    value = json.loads(sample.read_text())
    known = recognise(value)
    assert known is not None
    found, wanted = imported(value, known.name), goal(target)
    done = converted(value, known.name, wanted)
    assert [one for one in check(done.body, wanted.format, wanted.profile) if one.severity == "error"] == []
    assert set(found.remarks) <= set(done.remarks)
    again = imported(done.body, wanted.format.name)
    calls = [call for message in found.messages if isinstance(message, Assistant) for call in message.calls]
    back = [call for message in again.messages if isinstance(message, Assistant) for call in message.calls]
    assert [(one.name, json.loads(one.arguments)) for one in back] == [
        (one.name, json.loads(one.arguments)) for one in calls
    ]


def test_a_body_of_the_same_format_keeps_texts_and_tools() -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}
    body: Any = {"model": "m", "tools": [tool], "messages": [{"role": "user", "content": "x"}]}
    done = converted(body, "openai_chat", goal("openai_chat"))
    assert done.remarks == ()
    assert (done.body["messages"], "model" in done.body) == (body["messages"], False)
    assert done.body["tools"][0]["function"]["name"] == "look"  # type: ignore[index,call-overload]
    assert converted(body, "openai_chat", goal("openai_chat:gpt-4o")).body["model"] == "gpt-4o"


def test_a_reply_at_the_end_is_no_fault_of_a_source() -> None:
    body: Any = {"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"text": "y"}]}]}
    done = converted(body, "gemini", goal("openai_chat"))
    assert done.remarks == ()
    assert [one["content"] for one in done.body["messages"]] == ["x", "y"]  # type: ignore[index,union-attr,call-overload]


def test_what_a_format_cannot_carry_is_said() -> None:
    messages = [
        User((Text("x"), Image("image/png", b"1"), File("application/pdf", b"2", "a.pdf"))),
        Assistant("y", (ToolCall("1", "look", "{}"),), (Opaque("anthropic", "claude-opus-5", {"blocks": []}),)),
        Result("1", "look", "tool_error", (Text("z"),)),
    ]
    format = FORMATS["ollama"]
    losses = " ".join(written(messages, (), format, Target(profile=format.profile(), model="")).losses)
    assert "'a.pdf'" in losses
    assert "message 1: what claude-opus-5 keeps with its reply" in losses
    assert "message 2: that look did not succeed" in losses
    assert "an image becomes" not in losses


def test_a_body_without_messages_is_an_error() -> None:
    with pytest.raises(ConfigError, match="messages"):
        imported({"messages": 5}, "openai_chat")


def test_messages_alone_become_a_body() -> None:
    format = FORMATS["gemini"]
    assert as_body([1, 2], format) == {"contents": [1, 2]}
    assert as_body({"role": "user"}, format) == {"contents": [{"role": "user"}]}
    body: Any = {"contents": [], "x": 1}
    assert as_body(body, format) is body


def test_remarks_that_many_places_share_are_gathered() -> None:
    remarks = [
        "messages[1].content[0]: reasoning was left out",
        "message 3: not valid: {'a': 1}",
        "messages[4].content[0]: reasoning was left out",
        "not carried over: message 5: an image becomes a line of text",
        "not carried over: message 6: an image becomes a line of text",
        "not part of a transcript, and left out: seed",
        "[7]: Left out.",
        "[8]: Left out.",
    ]
    assert gathered(remarks) == [
        "reasoning was left out (messages[1].content[0], and 1 more)",
        "message 3: not valid: {'a': 1}",
        "not carried over: an image becomes a line of text (message 5, and 1 more)",
        "not part of a transcript, and left out: seed",
        "Left out ([7], and 1 more)",
    ]
    assert gathered([]) == []
