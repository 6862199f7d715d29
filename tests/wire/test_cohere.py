"""Cohere's chat endpoint: bodies, requests, replies and streams."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hostile import COMPARABLE as JSON
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import asking, cuts, transcripts

from tenlines.core.transcript import (
    Assistant,
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
    Usage,
    User,
)
from tenlines.errors import ConnectionFailed, MalformedReply, RemoteError
from tenlines.wire.checking import check
from tenlines.wire.cohere.decoding import StreamDecoder, decode_response
from tenlines.wire.cohere.format import FORMAT
from tenlines.wire.format import Piece
from tenlines.wire.profile import Target
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Turn

CALL = JSON | st.fixed_dictionaries(
    {"id": JSON, "type": st.just("function"), "function": st.fixed_dictionaries({"name": JSON, "arguments": JSON})}
)
PART = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "document", "document": {"data": "d"}},
        {"type": "document", "document": {"data": {"x": 1}}},
    ]
)
MESSAGE = JSON | st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "model"])},
    optional={
        "content": JSON | st.lists(JSON | PART, max_size=3),
        "tool_plan": JSON,
        "tool_calls": JSON | st.lists(CALL, max_size=2),
        "tool_call_id": JSON,
        "citations": JSON,
    },
)


def target(**more: Any) -> Target:
    return Target(profile=FORMAT.profile(), model="command-a-03-2025", **more)


def sent(messages: list[Message], **more: Any) -> Any:
    return FORMAT.talk(target()).request(asking(messages, **more), False)


def user(text: str) -> User:
    return User((Text(text),))


# --- requests ---------------------------------------------------------------------------------------


def test_every_kind_of_message_has_its_place() -> None:
    opaque = Opaque("cohere", "command-a-03-2025", {"thinking": "hm"})
    body = sent(
        [
            System("s"),
            User((Text("look"), Image("image/png", b"hi"))),
            Assistant("I look", (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "f", "{}")), (opaque,)),
            Result("a", "f", "ok", (Json({"t": 18}),)),
            Result("b", "f", "ok", ()),
            Note("n"),
            Assistant("done", (), (opaque,)),
            Assistant(""),
            user("and?"),
        ]
    )
    thought = {"type": "thinking", "thinking": "hm"}
    assert body["messages"] == [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
        {
            "role": "assistant",
            "content": [thought],
            "tool_plan": "I look",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "document", "document": {"data": {"t": 18}}}]},
        {"role": "tool", "tool_call_id": "b", "content": "(no output)"},
        {"role": "user", "content": "[note from the runtime] n"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "done"}]},
        {"role": "user", "content": "and?"},
    ]


@pytest.mark.parametrize(
    ("choice", "goes"), [("auto", None), ("none", "NONE"), ("required", "REQUIRED"), ("f", "REQUIRED")]
)
def test_the_choice_of_a_tool(choice: str, goes: str | None) -> None:
    assert sent([user("a")], tool_choice=choice).get("tool_choice") == goes


def test_limits() -> None:
    body = FORMAT.talk(target(max_tokens=5, temperature=0.5)).request(asking([user("a")]), True)
    assert (body["max_tokens"], body["temperature"], body["stream"]) == (5, 0.5, True)


@settings(max_examples=25)
@given(transcripts().filter(bool))
def test_what_is_written_breaks_no_rule_and_only_grows(messages: list[Message]) -> None:
    assert check(sent([user("a"), *messages]), FORMAT, FORMAT.profile()) == []
    grown = FORMAT.talk(target())
    before: list[Any] = []
    for end in cuts(messages):
        now: Any = grown.request(asking(messages[:end]), False)["messages"]
        assert now == sent(messages[:end])["messages"]
        assert now[: len(before)] == before
        before = list(now)


# --- replies ----------------------------------------------------------------------------------------

USAGE = {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 7.0, "output_tokens": 3}, "cached_tokens": 2}
CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}


def test_an_answer() -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]
    data: Any = {"finish_reason": "COMPLETE", "message": {"content": content}, "usage": USAGE}
    assert decode_response(data, "cohere", "m") == Reply(
        text="hi", usage=Usage(7, 3, 2), model="m", opaque=(Opaque("cohere", "m", {"thinking": "hm"}),)
    )


def test_calls_and_their_plan() -> None:
    data: Any = {"finish_reason": "TOOL_CALL", "message": {"tool_plan": "I look", "tool_calls": [CALLED]}}
    reply = decode_response(data)
    assert (reply.text, reply.stop, reply.calls) == ("I look", "tool_calls", (ToolCall("c", "f", '{"x":1}'),))


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("COMPLETE", "end"),
        ("STOP_SEQUENCE", "stop_sequence"),
        ("MAX_TOKENS", "length"),
        (None, "end"),
        ("ODD", "unknown"),
        ([1], "unknown"),
    ],
)
def test_stop_reasons(reason: Any, stop: str) -> None:
    reply = decode_response({"finish_reason": reason, "message": {"content": "x"}})
    assert reply.stop == stop
    assert bool(reply.remarks) is (stop == "unknown")


@pytest.mark.parametrize("reason", ["ERROR", "TIMEOUT"])
def test_an_ending_that_says_that_the_server_failed_is_an_error_to_retry(reason: str) -> None:
    with pytest.raises(RemoteError) as caught:
        decode_response({"finish_reason": reason, "message": {"content": "x"}})
    assert caught.value.is_retryable


def event(kind: str, message: Any = None, **more: Any) -> Any:
    return {"type": kind, "delta": {"message": message or {}}, **more}


END: Any = {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": USAGE}}


def test_a_stream_with_a_plan_and_calls() -> None:
    decoder = StreamDecoder("cohere", "m")
    shown = [
        decoder.feed(one)
        for one in (
            event("message-start", {"role": "assistant"}, id="m"),
            event("tool-plan-delta", {"tool_plan": "I "}),
            event("tool-plan-delta", {"tool_plan": "look"}),
            event("tool-call-start", {"tool_calls": {**CALLED, "function": {"name": "f", "arguments": ""}}}, index=0),
            event("tool-call-delta", {"tool_calls": {"function": {"arguments": '{"x"'}}}, index=0),
            event("tool-call-delta", {"tool_calls": {"function": {"arguments": ":1}"}}}, index=0),
            event("tool-call-end", index=0),
            event("tool-call-start", {"tool_calls": {"id": "d", "function": {"name": "g"}}}, index=1),
            END,
        )
    ]
    assert "".join(piece.text for piece in shown) == "I look"
    reply = decoder.finish()
    assert reply.calls == (ToolCall("c", "f", '{"x":1}'), ToolCall("d", "g", "{}"))
    assert (reply.text, reply.stop, reply.usage) == ("I look", "tool_calls", Usage(7, 3, 2))


def test_a_stream_of_text() -> None:
    decoder = StreamDecoder("cohere", "m")
    decoder.feed(event("content-start", {"content": {"type": "thinking", "thinking": ""}}, index=0))
    assert decoder.feed(event("content-delta", {"content": {"thinking": "hm"}}, index=0)) == Piece("", "hm")
    assert decoder.feed(event("content-delta", {"content": {"text": "hi"}}, index=1)) == Piece("hi")
    decoder.feed(event("citation-start", {"citations": {}}))
    decoder.feed({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}})
    reply = decoder.finish()
    assert (reply.text, reply.stop) == ("hi", "end")
    assert reply.opaque[0].payload == {"thinking": "hm"}


def test_a_stream_without_an_end_was_cut_and_an_error_in_it_is_one() -> None:
    decoder = StreamDecoder()
    decoder.feed(event("content-delta", {"content": {"text": "half"}}))
    with pytest.raises(ConnectionFailed):
        decoder.finish()
    with pytest.raises(RemoteError, match="broke"):
        decoder.feed({"type": "message-end", "delta": {"error": "it broke", "finish_reason": "ERROR"}})


KINDS = st.sampled_from(
    ["message-start", "content-start", "content-delta", "tool-plan-delta", "tool-call-start", "tool-call-delta", "odd"]
)
EVENT = JSON | st.fixed_dictionaries(
    {"type": KINDS, "index": st.integers(0, 1) | JSON},
    optional={
        "delta": JSON
        | st.fixed_dictionaries(
            {"message": JSON | st.fixed_dictionaries({"content": JSON, "tool_plan": JSON, "tool_calls": CALL})}
        )
    },
)


@settings(max_examples=35)
@given(st.lists(EVENT, max_size=4), JSON | st.fixed_dictionaries({"finish_reason": JSON, "usage": JSON}))
def test_any_stream_is_a_reply_or_an_error(events: list[Any], end: Any) -> None:
    decoder = StreamDecoder()
    try:
        for one in [*events, {"type": "message-end", "delta": end}]:
            decoder.feed(one)
        reply = decoder.finish()
    except RemoteError:
        return
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


@settings(max_examples=35)
@given(
    JSON
    | st.fixed_dictionaries(
        {
            "message": JSON
            | st.fixed_dictionaries({"content": JSON | st.lists(PART), "tool_calls": st.lists(CALL, max_size=2) | JSON})
        },
        optional={"finish_reason": JSON, "usage": JSON | st.fixed_dictionaries({"tokens": JSON})},
    )
)
def test_any_response_is_a_reply_or_an_error(data: Any) -> None:
    try:
        reply = decode_response(data)
    except RemoteError:
        return
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


@pytest.mark.parametrize("data", [None, [], {}, {"message": 3}, {"message": {"tool_calls": 3}}])
def test_what_is_no_response_is_malformed(data: Any) -> None:
    with pytest.raises(MalformedReply):
        decode_response(data)


# --- bodies -----------------------------------------------------------------------------------------


@settings(max_examples=35)
@given(MESSAGE)
def test_what_nobody_touched_goes_back_as_it_came(message: Any) -> None:
    assert FORMAT.fold(FORMAT.unfold(message, "messages[0]")) == message


def test_a_plan_is_text_and_documents_are_the_content_of_a_result() -> None:
    turn = FORMAT.unfold({"role": "assistant", "tool_plan": "I look", "tool_calls": [CALLED]}, "messages[0]")
    assert [(block.kind, block.path) for block in turn.blocks] == [
        ("text", "messages[0].tool_plan"),
        ("call", "messages[0].tool_calls[0]"),
    ]
    documents = [
        {"type": "document", "document": {"data": {"t": 1}}},
        {"type": "document", "document": {"data": "plain"}},
    ]
    (block,) = FORMAT.unfold({"role": "tool", "tool_call_id": "c", "content": documents}, "messages[1]").blocks
    assert block.parts == (Json({"t": 1}), Text("plain"))


def test_what_was_made_or_changed_is_written_from_its_fields() -> None:
    raw = {"role": "assistant", "tool_plan": "I look", "tool_calls": [CALLED], "citations": [1]}
    turn = FORMAT.unfold(raw, "messages[0]")
    call = Block("call", turn.blocks[1].path, id="new", name="f", arguments="{}")
    changed = Turn("assistant", (turn.blocks[0], call), turn.path, raw, "assistant")
    assert FORMAT.fold(changed) == {
        "role": "assistant",
        "tool_plan": "I look",
        "tool_calls": [{"id": "new", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        "citations": [1],
    }
    made = Turn("assistant", (Block("text", "", text="I look"), call), "messages[0]")
    assert FORMAT.fold(made) == {
        "role": "assistant",
        "tool_plan": "I look",
        "tool_calls": [{"id": "new", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }


@pytest.mark.parametrize("rule", FORMAT.rules, ids=lambda rule: rule.id)
def test_the_example_of_a_rule_breaks_it(rule: Any) -> None:
    body = json.loads(rule.example)
    assert rule.id in [one.rule for one in check(body, FORMAT, FORMAT.profile(rule.context))]
    mended = repair(body, FORMAT, FORMAT.profile()).body
    assert check(mended, FORMAT, FORMAT.profile()) == []


def test_strict_tools_that_cannot_be_strict_are_not_said_to_be() -> None:
    many = {f"p{number}": {"type": "string"} for number in range(201)}
    parameters = {"type": "object", "properties": many, "required": ["p0"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    body: Any = {"messages": [{"role": "user", "content": "a"}], "strict_tools": True, "tools": [tool]}
    assert [one.path for one in check(body, FORMAT, FORMAT.profile())] == ["tools"]
    amended, changes = FORMAT.amend_frame(body, FORMAT.profile())
    assert "strict_tools" not in amended
    assert changes
    assert FORMAT.amend_frame(amended, FORMAT.profile()) == (amended, [])
