"""Ollama's native endpoint: bodies, requests, replies and streams."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hostile import COMPARABLE as JSON
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import SPECS, asking, cuts, transcripts

from tenlines.core.transcript import (
    Assistant,
    Image,
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
from tenlines.wire.format import Piece
from tenlines.wire.ollama.decoding import StreamDecoder, decode_response
from tenlines.wire.ollama.format import FORMAT
from tenlines.wire.profile import Target
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Turn

CALL = JSON | st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": st.text(max_size=3), "arguments": JSON})}
)
MESSAGE = JSON | st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "model"])},
    optional={
        "content": JSON,
        "thinking": JSON,
        "images": JSON | st.just(["aGk="]),
        "tool_calls": JSON | st.lists(CALL, max_size=2),
        "tool_name": JSON,
        "tool_call_id": JSON,
        "odd": JSON,
    },
)
CLOUD = {"server": "ollama-cloud"}


def target(**more: Any) -> Target:
    return Target(profile=FORMAT.profile(), model="qwen3:8b", **more)


def sent(messages: list[Message], **more: Any) -> Any:
    return FORMAT.talk(target()).request(asking(messages, **more), False)


def user(*parts: Any) -> User:
    return User(tuple(Text(part) if isinstance(part, str) else part for part in parts))


# --- requests ---------------------------------------------------------------------------------------


def test_every_kind_of_message_has_its_place() -> None:
    opaque = Opaque("ollama", "qwen3:8b", {"thinking": "hm"})
    body = sent(
        [
            System("s"),
            user("look", Image("image/png", b"hi"), Image("image/png", url="https://h/i.png")),
            Assistant("", (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", "{}")), (opaque,)),
            Result("a", "f", "ok", (Text("1"),)),
            Result("b", "g", "tool_error", (Text("2"),)),
            Note("n"),
        ]
    )
    assert body["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "look\n\n(image/png, https://h/i.png, not shown)", "images": ["aGk="]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {"function": {"name": "f", "arguments": {"x": 1}}},
                {"function": {"name": "g", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "f", "content": "1"},
        {"role": "tool", "tool_name": "g", "content": "2"},
        {"role": "user", "content": "[note from the runtime] n"},
    ]
    assert body["stream"] is False
    assert len(body["tools"]) == len(SPECS)


def test_limits_and_thinking() -> None:
    body = FORMAT.talk(target(max_tokens=5, temperature=0.5, effort="high")).request(asking([user("a")]), True)
    assert (body["stream"], body["options"], body["think"]) == (True, {"num_predict": 5, "temperature": 0.5}, "high")
    assert FORMAT.talk(target(effort="none")).request(asking([user("a")]), True)["think"] is False


def test_when_no_tool_is_to_be_called_none_is_offered() -> None:
    assert "tools" not in sent([user("a")], tool_choice="none")


def test_thinking_of_another_model_is_not_sent() -> None:
    said = Assistant("x", (), (Opaque("ollama", "llama4", {"thinking": "hm"}),))
    assert "thinking" not in sent([user("a"), said, user("b")])["messages"][1]


@settings(max_examples=25)
@given(transcripts().filter(bool))
def test_what_is_written_breaks_no_rule_and_only_grows(messages: list[Message]) -> None:
    assert check(sent(messages), FORMAT, FORMAT.profile(CLOUD)) == []
    grown = FORMAT.talk(target())
    before: list[Any] = []
    for end in cuts(messages):
        now: Any = grown.request(asking(messages[:end]), False)["messages"]
        assert now == sent(messages[:end])["messages"]
        assert now[-1]["role"] in ("user", "tool")
        if not isinstance(messages[end - 1], User | Note | Result):
            now = now[:-1]  # the word behind the assistant's only ends the request
        assert now[: len(before)] == before
        before = list(now)


# --- replies ----------------------------------------------------------------------------------------

DONE = {"done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3, "model": "qwen3:8b"}


def test_an_answer() -> None:
    reply = decode_response(
        {"message": {"role": "assistant", "content": "hi", "thinking": "hm"}, **DONE}, "ollama", "m"
    )
    assert reply == Reply(
        text="hi", usage=Usage(7, 3), model="qwen3:8b", opaque=(Opaque("ollama", "m", {"thinking": "hm"}),)
    )


def test_calls_come_whole() -> None:
    decoder = StreamDecoder()
    assert decoder.feed({"message": {"content": "a", "thinking": "t"}, "done": False}) == Piece("a", "t")
    call = {"function": {"name": "f", "arguments": {"x": "ü"}}}
    decoder.feed({"message": {"content": "", "tool_calls": [call, {"function": {"name": "g"}}]}, "done": False})
    decoder.feed({"message": {"content": "b"}, **DONE})
    reply = decoder.finish()
    assert reply.calls == (ToolCall("", "f", '{"x": "ü"}'), ToolCall("", "g", "{}"))
    assert (reply.text, reply.stop) == ("ab", "tool_calls")


@pytest.mark.parametrize(
    ("reason", "stop"), [("stop", "end"), ("length", "length"), (None, "end"), ("load", "unknown"), (3, "unknown")]
)
def test_stop_reasons(reason: Any, stop: str) -> None:
    reply = decode_response({"message": {"content": "x"}, "done": True, "done_reason": reason})
    assert reply.stop == stop
    assert bool(reply.remarks) is (stop == "unknown")


def test_length_wins_over_calls() -> None:
    call = {"function": {"name": "f", "arguments": {}}}
    assert decode_response({"message": {"tool_calls": [call]}, "done": True, "done_reason": "length"}).stop == "length"


def test_a_stream_that_is_not_done_was_cut() -> None:
    decoder = StreamDecoder()
    decoder.feed({"message": {"content": "half"}})
    with pytest.raises(ConnectionFailed):
        decoder.finish()


def test_an_error_in_the_stream_is_an_error() -> None:
    with pytest.raises(RemoteError, match="unmarshal"):
        StreamDecoder().feed({"error": "json: cannot unmarshal string"})


@given(
    st.lists(
        JSON
        | st.fixed_dictionaries(
            {"done": st.booleans() | JSON},
            optional={
                "message": JSON | st.fixed_dictionaries({"content": JSON, "tool_calls": st.lists(CALL, max_size=2)}),
                "done_reason": JSON,
                "eval_count": JSON,
                "model": JSON,
            },
        ),
        max_size=3,
    )
)
@settings(max_examples=35)
def test_any_json_is_a_reply_or_an_error(chunks: list[Any]) -> None:
    decoder = StreamDecoder()
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        reply = decoder.finish()
    except RemoteError:
        return
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


def test_arguments_that_are_nested_too_deeply_are_refused() -> None:
    bomb: Any = {}
    for _ in range(100_000):
        bomb = {"a": bomb}
    with pytest.raises(MalformedReply):
        decode_response({"message": {"tool_calls": [{"function": {"name": "f", "arguments": bomb}}]}, "done": True})
    while bomb:
        bomb = bomb.pop("a")  # freeing it by itself would recurse


# --- bodies -----------------------------------------------------------------------------------------


@settings(max_examples=35)
@given(MESSAGE)
def test_what_nobody_touched_goes_back_as_it_came(message: Any) -> None:
    assert FORMAT.fold(FORMAT.unfold(message, "messages[0]")) == message


def test_what_was_made_is_written_from_its_fields() -> None:
    made = Turn(
        "assistant",
        (
            Block("text", "", text="a"),
            Block("media", "", parts=(Image("image/png", b"hi"), Image("image/png", url="https://h/i"))),
            Block("call", "", id="c", name="f", arguments={"x": 1}),
        ),
        "messages[0]",
    )
    assert FORMAT.fold(made) == {
        "role": "assistant",
        "content": "a\n\n(image/png, https://h/i, not shown)",
        "images": ["aGk="],
        "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}, "id": "c"}],
    }
    result = Turn("tool", (Block("result", "", name="f", parts=(Text("1"),)),), "messages[0]")
    assert FORMAT.fold(result) == {"role": "tool", "tool_name": "f", "content": "1"}


def test_arguments_that_are_text_are_mended() -> None:
    call = {"function": {"name": "f", "arguments": '{"x": 1}'}, "more": 2}
    body: Any = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "f", "content": "1"},
        ]
    }
    mended: Any = repair(body, FORMAT, FORMAT.profile()).body
    assert mended["messages"][1]["tool_calls"] == [{"function": {"name": "f", "arguments": {"x": 1}}, "more": 2}]
    assert check(mended, FORMAT, FORMAT.profile()) == []


@pytest.mark.parametrize("rule", FORMAT.rules, ids=lambda rule: rule.id)
def test_the_example_of_a_rule_breaks_it(rule: Any) -> None:
    body = json.loads(rule.example)
    profile = FORMAT.profile(rule.context)
    assert rule.id in [one.rule for one in check(body, FORMAT, profile)]
    assert check(repair(body, FORMAT, profile).body, FORMAT, profile) == []


def test_the_cloud_is_known_by_the_name_of_the_server_or_of_the_model() -> None:
    assert FORMAT.profile({"model": "gpt-oss:120b-cloud"}).name == FORMAT.profile(CLOUD).name == "ollama-cloud"
    assert FORMAT.profile({"model": "qwen3"}).name == "ollama"
