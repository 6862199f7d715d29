"""What was said, in the JSON of the conventions."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Reply,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.trace import content
from tenlines.trace.redaction import Redaction

SAID: tuple[Message, ...] = (
    System("be good"),
    User((Text("look"), Image("image/png", b"\x00\x01"), Image("image/png", url="https://example.org/a.png"))),
    User((File("application/pdf", b"%PDF", "a.pdf"), Json({"a": [1]}))),
    Assistant("hm", (ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "look", "{broken")), (Opaque("p", "m", "x"),)),
    Result("c1", "look", "ok", (Text("seen"),)),
    Result("c2", "look", "invalid_arguments", (Json({"b": None}), Text("two"))),
    Note("you repeat yourself"),
)

PARTS: dict[str, Any] = {
    "text": {"required": ["content"]},
    "tool_call": {"required": ["id", "name", "arguments"]},
    "tool_call_response": {"required": ["id", "response"]},
    "uri": {"required": ["modality", "uri"]},
    "reasoning": {"required": ["content"]},
    "blob": {"required": ["modality", "content"]},
}
"""What the schema of the conventions asks of each type of part; a part of any other type needs only that."""
SCHEMA = {
    "type": "array",
    "items": {
        "required": ["role", "parts"],
        "properties": {
            "role": {"enum": ["system", "user", "assistant", "tool"]},
            "parts": {
                "type": "array",
                "items": {
                    "required": ["type"],
                    "allOf": [
                        {"if": {"properties": {"type": {"const": kind}}}, "then": wanted}
                        for kind, wanted in PARTS.items()
                    ],
                },
            },
        },
    },
}


def test_messages_are_as_the_schema_of_the_conventions_has_them() -> None:
    written = content.messages(SAID)
    jsonschema.validate(written, SCHEMA)
    assert [one["role"] for one in written if isinstance(one, dict)] == [
        *("user", "user", "assistant", "tool", "tool", "user")
    ]
    assert content.instructions(SAID) == [{"type": "text", "content": "be good"}]
    assert content.instructions(SAID[1:]) == []
    jsonschema.validate(content.reply(Reply("a", (ToolCall("c", "n", "{}"),))), SCHEMA)


def test_arguments_are_an_object_where_they_are_one_and_else_as_they_came() -> None:
    (said,) = content.messages(SAID[3:4])
    assert isinstance(said, dict)
    parts: Any = said["parts"]
    assert [one.get("arguments") for one in parts if one["type"] == "tool_call"] == [{"a": 1}, "{broken"]
    assert "x" not in json.dumps([one for one in parts if one["type"] == "opaque"]).replace("opaque", "")


def test_no_bytes_are_in_it() -> None:
    written = json.dumps(content.messages(SAID))
    assert "%PDF" not in written
    assert "JVBERg" not in written
    assert '"bytes": 4' in written
    assert "https://example.org/a.png" in written


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ((Text("one"),), "one"),
        ((Text(""),), ""),
        ((), []),
        ((Json({"a": 1}),), [{"type": "json", "value": {"a": 1}}]),
    ],
)
def test_a_result_is_its_text_where_it_is_one(parts: Any, wanted: Any) -> None:
    assert content.result(parts) == wanted


def test_secrets_long_texts_and_half_characters_do_not_come_out() -> None:
    value: Any = {"password": "hunter-demo", "text": "x" * 40_000, "half": "\ud800", "n": [1, None, True]}
    shown = json.loads(content.exported(value, Redaction()))
    assert shown["password"] == "[redacted]"
    assert shown["text"].startswith("x" * content.TEXT_CHARS)
    assert shown["text"].endswith("(8,000 more characters)")
    assert (shown["half"], shown["n"]) == ("\ufffd", [1, None, True])


def test_the_schema_of_a_tool_has_names_of_secrets_and_none_of_them() -> None:
    parameters = {"type": "object", "properties": {"token": {"type": "string"}}}
    (tool,) = json.loads(content.definitions([ToolSpec("api", "Call it.", parameters)], Redaction()))
    assert tool == {"type": "function", "name": "api", "description": "Call it.", "parameters": parameters}
