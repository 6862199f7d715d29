"""Encoding and whole responses of the Chat Completions format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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
    Usage,
    User,
)
from tenlines.errors import MalformedReply, RemoteError
from tenlines.wire.openai_chat.decoding import decode_response, decode_usage
from tenlines.wire.openai_chat.encoding import Encoder, encode_message, encode_request, plain_target
from tenlines.wire.profile import Target

TARGET = plain_target("m", "p")


def user(text: str) -> User:
    return User((Text(text),))


def result(call_id: str, *parts: Any) -> Result:
    return Result(call_id, "f", "ok", parts)


def with_trait(trait: str) -> Target:
    return replace(TARGET, profile=replace(TARGET.profile, traits=frozenset({trait})))


def wire_id(call_id: str) -> str:
    return str(encode_message(result(call_id), TARGET)["tool_call_id"])


# --- messages ---------------------------------------------------------------------------------------


def test_every_kind_of_message_has_its_place() -> None:
    transcript: list[Message] = [
        System("be brief"),
        user("hi"),
        Assistant("", (ToolCall("c1", "f", '{"x": 1}'),)),
        result("c1", Text("one")),
        Note("two steps left"),
        Assistant("bye"),
    ]
    assert [encode_message(message, TARGET) for message in transcript] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "user", "content": "[note from the runtime] two steps left"},
        {"role": "assistant", "content": "bye"},
    ]


def test_a_message_without_calls_never_has_null_content_nor_an_empty_list_of_calls() -> None:
    encoded = encode_message(Assistant("", (), (Opaque("other", "m", {}),)), TARGET)
    assert encoded == {"role": "assistant", "content": ""}


def test_text_beside_calls_is_kept() -> None:
    assert encode_message(Assistant("I look", (ToolCall("a", "f", "{}"),)), TARGET)["content"] == "I look"


def test_results_of_one_message_stay_separate_and_in_order() -> None:
    encoded = Encoder(TARGET).extend(
        [
            user("go"),
            Assistant("", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))),
            result("a", Text("1")),
            result("b", Text("2")),
        ]
    )
    assert [message["tool_call_id"] for message in encoded[2:]] == ["a", "b"]  # type: ignore[index,call-overload]


def test_a_users_image_goes_as_a_data_url_and_its_address_as_it_is() -> None:
    message = User((Text("what is this?"), Image("image/png", b"\x89PNG"), Image("image/png", url="https://h/i.png")))
    assert encode_message(message, TARGET)["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "https://h/i.png"}},
    ]


def test_binary_content_of_a_result_is_a_stub_and_never_base64() -> None:
    blob = b"x" * (5 * 1024 * 1024 // 2)
    message = result("a", Text("chart:"), Image("image/png", blob), File("application/pdf", b"12345", "a.pdf"))
    assert encode_message(message, TARGET)["content"] == (
        "chart:\n\n(image/png, 2.5 MiB, not shown)\n\n(a.pdf, application/pdf, 5 bytes, not shown)"
    )


def test_json_is_sent_as_its_text_and_an_empty_result_as_empty_text() -> None:
    assert encode_message(result("a", Json({"n": None, "ä": [1]})), TARGET)["content"] == '{"n": null, "ä": [1]}'
    assert encode_message(result("a", Text("")), TARGET)["content"] == ""
    assert encode_message(result("a"), TARGET)["content"] == ""


@pytest.mark.parametrize(("provider", "model", "is_sent"), [("p", "m", True), ("p", "other", False), ("q", "m", False)])
def test_reasoning_goes_back_only_to_the_provider_and_model_that_made_it(
    provider: str, model: str, is_sent: bool
) -> None:
    payload: Any = {"reasoning_content": "hm", "extra_content": [{"google": {"thought_signature": "s"}}]}
    message = Assistant("", (ToolCall("a", "f", "{}"),), (Opaque(provider, model, payload),))
    encoded: Any = encode_message(message, TARGET)
    assert ("reasoning_content" in encoded) is is_sent
    assert ("extra_content" in encoded["tool_calls"][0]) is is_sent


def test_what_is_decoded_as_reasoning_is_encoded_again() -> None:
    reply = decode_response(
        {
            "choices": [
                {"message": {"content": "ok", "reasoning_details": [{"d": 1}], "reasoning_content": ""}},
            ]
        },
        "p",
        "m",
    )
    encoded = encode_message(Assistant(reply.text, (), reply.opaque), TARGET)
    assert encoded == {"role": "assistant", "content": "ok", "reasoning_details": [{"d": 1}]}


# --- ids --------------------------------------------------------------------------------------------

IDS = st.one_of(
    st.text("ab-_:.", min_size=1, max_size=3),
    st.text("a", min_size=38, max_size=42),
    st.text(min_size=1, max_size=8),
    st.text("c", max_size=1).map(lambda text: wire_id(text + "!")),  # an id that looks like a mapped one
)


@given(st.lists(IDS, unique=True, max_size=20))
def test_ids_are_mapped_one_to_one_and_fit(ids: list[str]) -> None:
    mapped = [wire_id(one) for one in ids]
    assert len(set(mapped)) == len(ids)
    assert mapped == [wire_id(one) for one in ids]
    for one in mapped:
        assert 1 <= len(one) <= 40
        assert set(one) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_an_id_that_fits_is_left_alone_and_a_call_keeps_its_result() -> None:
    assert wire_id("call_abc-123") == "call_abc-123"
    long = "chatcmpl-tool-0123456789abcdef0123456789abcdef"
    call: Any = encode_message(Assistant("", (ToolCall(long, "f", "{}"),)), TARGET)
    assert call["tool_calls"][0]["id"] == encode_message(result(long, Text("")), TARGET)["tool_call_id"] != long


# --- growth -----------------------------------------------------------------------------------------

MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(user, st.text(max_size=5)),
    st.builds(Note, st.text(max_size=5)),
    st.builds(Assistant, st.text(min_size=1, max_size=5)),
    st.builds(result, st.sampled_from(["a", "b:c"]), st.builds(Text, st.text(max_size=5))),
)


@given(st.lists(MESSAGES, max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_a_request_begins_with_the_bytes_of_the_one_before(messages: list[Message], cuts: list[int]) -> None:
    encoder = Encoder(TARGET)
    before = "["
    for end in sorted(min(cut, len(messages)) for cut in cuts):
        text = json.dumps(encoder.extend(messages[:end]))
        assert text.startswith(before)
        before = text[:-1]
        assert json.dumps(Encoder(TARGET).extend(messages[:end])) == text  # a fresh process says the same


def test_each_message_is_encoded_once_and_kept() -> None:
    encoder = Encoder(TARGET)
    transcript: list[Message] = [System("s"), user("a")]
    first = list(encoder.extend(transcript))
    transcript.append(Assistant("b"))
    grown = encoder.extend(transcript, 3)
    assert all(old is new for old, new in zip(first, grown, strict=False))
    assert len(grown) == 3


def test_an_edited_transcript_is_encoded_again_from_where_it_was_edited() -> None:
    encoder = Encoder(TARGET)
    encoder.extend([System("s"), user("long"), Assistant("b")], 0)
    assert encoder.extend([System("s"), user("short"), user("c")], 1) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "short"},
        {"role": "user", "content": "c"},
    ]


def test_a_retry_sends_the_same_again() -> None:
    encoder = Encoder(TARGET)
    first = json.dumps(encoder.extend([System("s"), user("a")], 0))
    assert json.dumps(encoder.extend([System("s"), user("a")], 0)) == first


# --- requests ---------------------------------------------------------------------------------------

TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"x": {"type": "integer"}}})


def test_tools_are_described_once_for_the_same_specs() -> None:
    encoder, specs = Encoder(TARGET), (TOOL, ToolSpec("g"))
    tools = encoder.tools(specs)
    assert encoder.tools(specs) is tools
    assert tools == [
        {"type": "function", "function": {"name": "f", "description": "does f", "parameters": TOOL.parameters}},
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("f", {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_the_choice_of_a_tool(choice: str, sent: Any) -> None:
    body = encode_request(TARGET, [], Encoder(TARGET).tools((TOOL,)), tool_choice=choice)
    assert body["tool_choice"] == sent
    assert body["tools"]


def test_without_tools_neither_tools_nor_choice_is_sent() -> None:
    assert encode_request(TARGET, [], [], tool_choice="none") == {"model": "m", "messages": []}


def test_limits_and_streaming() -> None:
    target = replace(with_trait("limit.new_name"), max_tokens=9, temperature=0.0)
    assert encode_request(target, [], [], stream=True) == {
        "model": "m",
        "messages": [],
        "max_completion_tokens": 9,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert encode_request(target, [], [], max_output_tokens=4)["max_completion_tokens"] == 4


def test_an_effort_that_tools_demand_gives_way_to_the_users() -> None:
    tools = Encoder(TARGET).tools((TOOL,))
    target = with_trait("effort.none_with_tools")
    assert "reasoning_effort" not in encode_request(target, [], [])
    assert encode_request(target, [], tools)["reasoning_effort"] == "none"
    assert encode_request(replace(target, effort="low"), [], tools)["reasoning_effort"] == "low"


# --- responses --------------------------------------------------------------------------------------


def response(message: Any, reason: Any = "stop", **more: Any) -> Any:
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": reason}], **more}


def test_an_answer() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}
    assert decode_response(response({"content": "hi"}, usage=usage)) == Reply(
        text="hi", usage=Usage(10, 2, 8), model="m-1"
    )


def test_calls_with_text_missing_ids_and_arguments_as_an_object() -> None:
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": None, "function": {"name": "g", "arguments": {"y": "ü"}}},
        {"id": 7, "function": {"name": "h", "arguments": None}},
    ]
    reply = decode_response(response({"content": "see", "tool_calls": calls}, "tool_calls"))
    assert reply.calls == (ToolCall("a", "f", '{"x":1}'), ToolCall("", "g", '{"y": "ü"}'), ToolCall("7", "h", ""))
    assert (reply.text, reply.stop) == ("see", "tool_calls")


def test_the_old_form_of_a_call_is_read() -> None:
    reply = decode_response(
        response({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call")
    )
    assert reply.calls == (ToolCall("", "f", "{}"),)


def test_the_same_id_twice_stays_two_calls() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert len(decode_response(response({"tool_calls": [call, call]})).calls) == 2


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        (None, "end"),
        ("", "end"),
        ("steered", "unknown"),
        (17, "unknown"),
        (["x"], "unknown"),
    ],
)
@pytest.mark.parametrize("calls", [[], [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]])
def test_stop_reasons(reason: Any, stop: str, calls: list[Any]) -> None:
    reply = decode_response(response({"content": "x", "tool_calls": calls}, reason))
    assert reply.stop == stop
    assert bool(reply.remarks) is (stop == "unknown")


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource"])
def test_an_ending_that_says_that_the_server_failed_is_an_error_to_retry(reason: str) -> None:
    with pytest.raises(RemoteError) as caught:
        decode_response(response({"content": "x"}, reason))
    assert caught.value.is_retryable


def test_a_refusal_wins_over_calls() -> None:
    calls = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]
    reply = decode_response(response({"content": None, "refusal": "I cannot", "tool_calls": calls}, "tool_calls"))
    assert (reply.stop, reply.text) == ("refusal", "I cannot")


def test_content_in_parts_is_its_text() -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 3]
    assert decode_response(response({"content": content})).text == "ab"


def test_an_error_object_under_a_status_of_200_is_an_error() -> None:
    with pytest.raises(RemoteError, match="overloaded"):
        decode_response({"error": {"message": "overloaded", "code": 529}})


def test_halves_of_characters_are_joined_and_lone_ones_replaced() -> None:
    data = json.loads('{"choices": [{"message": {"content": "\\ud83d\\ude00 \\ud83d"}}]}')
    assert decode_response(data).text == "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("data", [None, [], "x", 1, {}, {"choices": []}, {"choices": [3]}, {"choices": [{}]}])
def test_what_is_no_response_is_malformed(data: Any) -> None:
    with pytest.raises(MalformedReply):
        decode_response(data)


# --- usage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "usage"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": True, "completion_tokens": -1}, None),
        ({"prompt_tokens": 5}, Usage(5)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(10, 4, 6, 2, 3),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 9}, Usage(10, 1, 9)),
        ({"prompt_tokens": 10, "completion_tokens": 1, "num_cached_tokens": 0}, Usage(10, 1, 0)),
        (
            {"completion_tokens": 1, "prompt_cache_hit_tokens": 9, "prompt_cache_miss_tokens": 1},
            Usage(10, 1, 9),
        ),
        (
            {  # xAI: reasoning is not part of the output
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "total_tokens": 34,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(10, 24, None, None, 20),
        ),
    ],
)
def test_usage_in_the_normal_form(data: Any, usage: Usage | None) -> None:
    remarks: list[str] = []
    assert decode_usage(data, remarks) == usage
    assert not remarks


def test_more_cached_than_input_cannot_be_and_is_not_counted() -> None:
    remarks: list[str] = []
    assert decode_usage({"prompt_tokens": 5, "prompt_cache_hit_tokens": 9}, remarks) == Usage(5)
    assert "inconsistent" in remarks[0]


def test_a_message_of_the_assistant_that_says_nothing_is_not_sent() -> None:
    assert Encoder(TARGET).extend([user("hi"), Assistant(""), user("so?")]) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "so?"},
    ]
