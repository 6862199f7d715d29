"""The text protocol for small models."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    Image,
    JsonObject,
    Message,
    Note,
    Reply,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire import constrained
from tenlines.wire.constrained import Encoder, describe, read_reply, response_format, simple_schema


def params(required: list[str] | None = None, **properties: Any) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required or properties)}


GET = ToolSpec("get_order", "Look up an order.", params(order_id={"type": "string"}))
NOW = ToolSpec("now", "", {"type": "object", "properties": {}})
TOOLS = (GET, NOW)


def user(text: str) -> User:
    return User((Text(text),))


# --- messages ---------------------------------------------------------------------------------------


def test_a_conversation_with_calls_is_plain_chat() -> None:
    transcript: list[Message] = [
        System("Be brief."),
        System("Be kind."),
        user("Where is 1042?"),
        Assistant("", (ToolCall("a", "get_order", '{"order_id": "1042"}'), ToolCall("b", "now", "{}"))),
        Result("a", "get_order", "ok", (Text("shipped"), Image("image/png", b"1234"))),
        Result("b", "now", "tool_error", (Text("now failed"),)),
        Note("two steps left"),
        Assistant("It is shipped."),
    ]
    system, *rest = Encoder().extend(transcript, TOOLS)
    assert isinstance(system, dict)
    text = system["content"]
    assert isinstance(text, str)
    assert text.startswith("Be brief.\n\nBe kind.\n\n")
    assert "- get_order(order_id: string): Look up an order.\n- now()" in text
    assert rest[0] == {"role": "user", "content": "Where is 1042?"}
    assert rest[1] == {
        "role": "assistant",
        "content": '{"tool": "get_order", "arguments": {"order_id": "1042"}}\n{"tool": "now", "arguments": {}}',
    }
    contents = [message["content"] for message in rest[2:]]  # type: ignore[index,call-overload]
    assert contents[0].startswith("Result of get_order: shipped\n\n(image/png, 4 bytes, not shown)")  # type: ignore[union-attr]
    assert contents[1].startswith("Result of now: now failed")  # type: ignore[union-attr]
    assert contents[2:] == ["[note from the runtime] two steps left", '{"final_answer": "It is shipped."}']
    assert {message["role"] for message in rest} == {"user", "assistant"}  # type: ignore[index,call-overload]


def test_without_tools_it_is_a_plain_conversation() -> None:
    assert Encoder().extend([user("hi")], ()) == [{"role": "user", "content": "hi"}]
    assert Encoder().extend([System("s"), user("hi")], ())[0] == {"role": "system", "content": "s"}
    assert Encoder().response_format((), "auto") is None


def test_a_request_begins_with_the_messages_of_the_one_before() -> None:
    encoder = Encoder()
    transcript: list[Message] = [System("s"), user("q")]
    before: list[Any] = []
    for step in range(4):
        new_from = len(transcript) if step else 0
        transcript.append(Assistant("", (ToolCall(f"c{step}", "now", "{}"),)) if step else user("go"))
        transcript.append(Result(f"c{step}", "now", "ok", (Text(str(step)),)))
        grown = list(encoder.extend(transcript, TOOLS, new_from))
        assert grown[: len(before)] == before
        assert grown == Encoder().extend(transcript, TOOLS)  # a fresh process says the same
        before = grown


@pytest.mark.parametrize("lead", [[], [System("s")], [System("s"), System("t")]])
def test_an_edited_transcript_is_encoded_again_from_where_it_was_edited(lead: list[Message]) -> None:
    encoder = Encoder()
    encoder.extend([*lead, user("long"), Assistant("a")], TOOLS)
    edited = [*lead, user("short"), Assistant("a"), user("c")]
    assert encoder.extend(edited, TOOLS, len(lead)) == Encoder().extend(edited, TOOLS)


def test_other_tools_begin_anew() -> None:
    encoder = Encoder()
    encoder.extend([user("q")], TOOLS)
    assert encoder.extend([user("q")], (NOW,)) == Encoder().extend([user("q")], (NOW,))


def test_a_tool_is_described_in_a_line_and_its_parameters_where_they_have_words() -> None:
    spec = ToolSpec(
        "find",
        "Find things.\n",
        params(
            ["kind"],
            kind={"enum": ["a", "b"]},
            tags={"type": "array", "items": {"type": "string"}, "description": "All must match."},
            odd=True,
        ),
    )
    assert (
        describe(spec)
        == '- find(kind: "a" | "b", tags?: list of string, odd?: any): Find things.\n  tags: All must match.'
    )


# --- the schema -------------------------------------------------------------------------------------


def forms(tool_choice: str) -> list[Any]:
    schema: Any = response_format(TOOLS, tool_choice)["json_schema"]
    return schema["schema"].get("anyOf", [schema["schema"]])  # type: ignore[no-any-return]


def test_a_reply_is_one_of_the_tools_or_the_answer() -> None:
    get, now, answer = forms("auto")
    assert list(get["properties"]) == ["tool", "arguments"]  # the order in which the model writes them
    assert get["properties"]["tool"] == {"const": "get_order"}
    assert get["properties"]["arguments"]["properties"] == {"order_id": {"type": "string"}}
    assert get["additionalProperties"] is False
    assert now["properties"]["arguments"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert answer["properties"] == {"final_answer": {"type": "string"}}


@pytest.mark.parametrize(
    ("choice", "keys"),
    [("none", ["final_answer"]), ("required", ["tool", "tool"]), ("now", ["tool"]), ("gone", ["final_answer"])],
)
def test_a_choice_narrows_the_replies(choice: str, keys: list[str]) -> None:
    assert [next(iter(form["properties"])) for form in forms(choice)] == keys


def test_references_are_inlined_and_what_a_grammar_cannot_hold_is_left_out() -> None:
    schema: JsonObject = {
        "$defs": {"City": {"type": "object", "properties": {"zip": {"type": "string", "pattern": "^x"}}}},
        "type": "object",
        "title": "Args",
        "properties": {
            "to": {"$ref": "#/$defs/City"},
            "via": {"type": "array", "items": {"$ref": "#/$defs/City"}, "minItems": 1},
            "n": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
            "one": {"allOf": [{"$ref": "#/$defs/City"}]},
            "free": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {},
        },
        "required": ["to"],
    }
    city = {"type": "object", "properties": {"zip": {"type": "string"}}, "additionalProperties": False}
    assert simple_schema(schema) == {
        "type": "object",
        "required": ["to"],
        "additionalProperties": False,
        "properties": {
            "to": city,
            "via": {"type": "array", "minItems": 1, "items": city},
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "one": city,
            "free": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {},
        },
    }


def test_a_recursive_schema_is_cut() -> None:
    tree: JsonObject = {
        "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}},
        "$ref": "#/$defs/T",
    }
    assert len(json.dumps(simple_schema(tree))) < 1000


# --- replies ----------------------------------------------------------------------------------------


def test_a_call_and_an_answer() -> None:
    call = read_reply(Reply(text='{"tool": "f", "arguments": {"x": "ü"}}'))
    assert call == Reply(calls=(ToolCall("", "f", '{"x": "ü"}'),), stop="tool_calls")
    assert read_reply(Reply(text='{"final_answer": "yes"}')) == Reply(text="yes")
    assert read_reply(Reply(text='{"tool": "f"}')).calls == (ToolCall("", "f", ""),)


def test_text_that_is_no_object_is_the_answer() -> None:
    assert read_reply(Reply(text="42")).text == "42"
    assert read_reply(Reply(text="It is shipped.")).remarks
    assert read_reply(Reply(text='```json\n{"final_answer": "yes"}\n```')) == Reply(text="yes")
    assert read_reply(Reply(text="")) == Reply()


@pytest.mark.parametrize("text", ["{}", '{"tool": 1}', '{"final_answer": 2}', '{"tool": "f", "final_answer": "x"}'])
def test_an_object_that_is_neither_is_malformed(text: str) -> None:
    reply = read_reply(Reply(text=text))
    assert reply.stop == "malformed_call"
    assert not reply.calls


def test_a_cut_reply_runs_nothing_and_keeps_the_words_of_its_answer() -> None:
    assert read_reply(Reply(text='{"tool": "f", "arguments": {"x"', stop="length")) == Reply(stop="length")
    assert read_reply(Reply(text='{"tool": "f", "arguments": {}}', stop="length")) == Reply(stop="length")
    assert read_reply(Reply(text='{"final_answer": "It is\\n so', stop="length")) == Reply(
        text="It is\n so", stop="length"
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_the_words_of_the_answer_are_streamed_without_the_json_around_them(size: int) -> None:
    answer = 'It is "here" \\ now\n\N{GRINNING FACE} ü'
    text = json.dumps({"final_answer": answer})
    decoder = constrained.StreamDecoder("p", "m")
    shown = ""
    for start in range(0, len(text), size):
        shown += decoder.feed({"choices": [{"delta": {"content": text[start : start + size]}}]}).text
    decoder.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    assert shown == answer
    assert decoder.finish() == Reply(text=answer)


def test_a_call_streams_no_words() -> None:
    decoder = constrained.StreamDecoder("p", "m")
    assert decoder.feed({"choices": [{"delta": {"content": '{"tool": "f", "arguments": {}}'}}]}).text == ""
    decoder.feed({"choices": [{"finish_reason": "stop"}]})
    assert decoder.finish().calls == (ToolCall("", "f", "{}"),)
