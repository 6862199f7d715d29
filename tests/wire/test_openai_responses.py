"""Responses: transcripts in, requests out; responses in, replies out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts import SPECS, asking

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Result,
    System,
    Text,
    ToolCall,
    Usage,
    User,
)
from tenlines.errors import ContextTooLong, MalformedReply, Overloaded, RateLimited, RemoteError
from tenlines.wire.openai_responses.decoding import Reading, decode_response
from tenlines.wire.openai_responses.format import FORMAT
from tenlines.wire.profile import Target

PICTURE = Image("image/png", b"\x89PNG")
PAPER = File("application/pdf", b"%PDF", "a.pdf")


def target(server: str = "openai", model: str = "gpt-5.6", **more: Any) -> Target:
    return Target(profile=FORMAT.profile({"server": server}), model=model, **more)


def body(*messages: Message, to: Target | None = None, **effect: Any) -> dict[str, Any]:
    return FORMAT.talk(to or target()).request(asking(messages, **effect), stream=False)


def items(*messages: Message, to: Target | None = None) -> list[Any]:
    found = body(*messages, to=to)["input"]
    assert isinstance(found, list)
    return found


def user(text: str) -> User:
    return User((Text(text),))


def called(*calls: ToolCall, text: str = "", opaque: tuple[Opaque, ...] = ()) -> list[Message]:
    results = [Result(call.id, call.name, "ok", (Text(f"<{call.id}>"),)) for call in calls]
    return [Assistant(text, calls, opaque), *results]


CALL = ToolCall("call_1", "f", '{"x": 1}')
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo"}
SPOKEN = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
}
FUNCTION_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"x": 1}',
    "status": "completed",
}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": list(output), **fields}


# --- encoding -----------------------------------------------------------------------------------------


def test_every_kind_of_message() -> None:
    assert items(System("Be brief."), user("hi"), Note("careful"), *called(CALL, text="So:"), Assistant("done")) == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "[note from the runtime] careful"}],
        },
        {"type": "message", "role": "assistant", "content": "So:"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "<call_1>"},
        {"type": "message", "role": "assistant", "content": "done"},
    ]


def test_system_messages_are_one_item_and_an_empty_one_is_none() -> None:
    assert items(System("a"), System(""), System("b"), user("hi"))[0]["content"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b"},
    ]


def test_an_assistant_that_says_nothing_is_no_item() -> None:
    assert [item["type"] for item in items(user("a"), Assistant(), user("b"))] == ["message", "message"]


def test_calls_stand_together_and_their_outputs_behind() -> None:
    calls = (CALL, ToolCall("call_2", "f", "{}"))
    kinds = [(item["type"], item.get("call_id")) for item in items(user("hi"), *called(*calls))[1:]]
    assert kinds == [
        ("function_call", "call_1"),
        ("function_call", "call_2"),
        ("function_call_output", "call_1"),
        ("function_call_output", "call_2"),
    ]


def test_results_carry_images_and_files() -> None:
    parts = (Text("see"), PICTURE, PAPER, Json({"a": 1}), Text(""))
    output = items(user("hi"), Assistant("", (CALL,)), Result("call_1", "f", "ok", parts))[-1]["output"]
    assert output == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_text", "text": '{"a": 1}'},
    ]


def test_results_of_text_alone_are_text() -> None:
    parts = (Text("a"), Json([1]))
    assert items(user("hi"), Assistant("", (CALL,)), Result("call_1", "f", "ok", parts))[-1]["output"] == "a\n\n[1]"
    assert items(user("hi"), Assistant("", (CALL,)), Result("call_1", "f", "tool_error", ()))[-1]["output"] == ""


def test_what_a_server_does_not_take_becomes_a_few_words() -> None:
    llama = target("llama.cpp")
    sent = items(User((Text("see"), PAPER, PICTURE)), to=llama)[0]["content"]
    assert [part["type"] for part in sent] == ["input_text", "input_text", "input_image"]
    assert sent[1]["text"] == "(a.pdf, application/pdf, 4 bytes, not shown)"


def test_an_image_by_its_address() -> None:
    sent = items(User((Image("image/png", url="https://example.org/i.png"),)))[0]["content"]
    assert sent == [{"type": "input_image", "detail": "auto", "image_url": "https://example.org/i.png"}]


def test_long_and_odd_ids_become_short_ones_on_both_sides() -> None:
    for odd in ("c" * 65, "ä b", "call_x1", ""):
        sent = items(user("hi"), *called(ToolCall(odd, "f", "{}")))
        assert sent[1]["call_id"] == sent[2]["call_id"]
        assert len(sent[1]["call_id"]) == 40
    assert items(user("hi"), *called(ToolCall("functions.f:0", "f", "{}")))[1]["call_id"] == "functions.f:0"


def test_the_body() -> None:
    sent = body(user("hi"), to=target(max_tokens=9, temperature=0.5, effort="low"), tools=SPECS[:1])
    assert list(sent)[-1] == "input"
    del sent["input"]
    assert sent == {
        "model": "gpt-5.6",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 9,
        "temperature": 0.5,
        "reasoning": {"effort": "low"},
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": "Does f.",
                "parameters": SPECS[0].parameters,
                "strict": False,
            }
        ],
        "tool_choice": "auto",
    }


def test_encrypted_reasoning_is_asked_for_only_where_there_is_some() -> None:
    assert "include" not in body(user("hi"), to=target("vllm"))


def test_streaming_and_choices() -> None:
    talk = FORMAT.talk(target())
    assert talk.request(asking([user("hi")]), stream=True)["stream"] is True
    assert body(user("hi"), tool_choice="required")["tool_choice"] == "required"
    assert body(user("hi"), tool_choice="f")["tool_choice"] == {"type": "function", "name": "f"}
    assert "tool_choice" not in body(user("hi"), tools=())
    assert "tools" not in body(user("hi"), tools=())


def test_names_are_mapped_and_mapped_back() -> None:
    odd = ToolSpec("fs.read", "Reads.")
    talk = FORMAT.talk(target())
    sent = talk.request(asking([user("hi")], tools=(odd,), tool_choice="fs.read"), stream=False)
    tools = sent["tools"]
    assert isinstance(tools, list)
    assert isinstance(tools[0], dict)
    name = tools[0]["name"]
    assert name != "fs.read"
    assert sent["tool_choice"] == {"type": "function", "name": name}
    reply = talk.decode(response({**FUNCTION_CALL, "name": name}))
    assert reply.calls[0].name == "fs.read"


# --- reasoning ----------------------------------------------------------------------------------------


def replied(*output: Any, provider: str = "openai", model: str = "gpt-5.6") -> Assistant:
    reply = decode_response(response(*output), Reading(provider, model))
    return Assistant(reply.text, reply.calls, reply.opaque)


RESULT = Result("call_1", "f", "ok", (Text("1"),))


def test_reasoning_goes_back_verbatim_with_the_ids_of_its_items() -> None:
    sent = items(user("hi"), replied(THOUGHT, SPOKEN, FUNCTION_CALL), RESULT)
    assert sent[1:3] == [THOUGHT, SPOKEN]
    assert sent[3] == {key: value for key, value in FUNCTION_CALL.items() if key != "status"}


def test_it_goes_back_to_the_family_that_made_it_alone() -> None:
    said = replied(THOUGHT, SPOKEN, FUNCTION_CALL, model="gpt-5.6-2026-11-01")
    assert items(user("hi"), said, RESULT)[1] == THOUGHT
    for other in (target(model="gpt-5.5"), target("deepseek", model="gpt-5.6")):
        sent = items(user("hi"), said, RESULT, to=other)
        assert [item["type"] for item in sent] == ["message", "message", "function_call", "function_call_output"]
        assert sent[1]["content"] == "Let me see."
        assert not any("id" in item for item in sent)


def test_it_is_left_out_where_it_no_longer_fits_the_calls() -> None:
    said = replied(THOUGHT, SPOKEN, FUNCTION_CALL)
    sent = items(user("hi"), Assistant(said.text, (), said.opaque), user("so?"))
    assert sent[1] == {"type": "message", "role": "assistant", "content": "Let me see."}


def test_reasoning_that_is_not_encrypted_stays_here_and_so_do_the_ids() -> None:
    bare = {key: value for key, value in THOUGHT.items() if key != "encrypted_content"}
    sent = items(user("hi"), replied(bare, SPOKEN, FUNCTION_CALL), RESULT)
    assert [item["type"] for item in sent] == ["message", "message", "function_call", "function_call_output"]
    assert not any("id" in item for item in sent)
    vllm = replied(bare, SPOKEN, FUNCTION_CALL, provider="vllm")
    assert items(user("hi"), vllm, RESULT, to=target("vllm"))[1] == bare


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    assert [item["type"] for item in items(user("hi"), replied(SPOKEN, THOUGHT), user("so?"))] == ["message"] * 3
    assert len(items(user("hi"), replied(THOUGHT), user("so?"))) == 2


def test_the_phase_of_a_message_is_kept_without_its_id() -> None:
    said = replied({**SPOKEN, "phase": "commentary"}, FUNCTION_CALL)
    sent = items(user("hi"), said, RESULT)
    assert sent[1] == {"type": "message", "role": "assistant", "content": "Let me see.", "phase": "commentary"}
    assert "id" not in sent[2]


def test_items_of_the_server_stay_where_they_were() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    assert items(user("hi"), replied(THOUGHT, search, SPOKEN), user("so?"))[1:4] == [THOUGHT, search, SPOKEN]


def test_where_calls_must_stand_together_text_comes_before_them() -> None:
    thought = {**THOUGHT, "content": [{"type": "reasoning_text", "text": "hm"}]}
    said = replied(thought, FUNCTION_CALL, SPOKEN, provider="deepseek", model="deepseek-v4")
    sent = items(user("hi"), said, RESULT, to=target("deepseek", model="deepseek-v4"))
    assert [item["type"] for item in sent[1:]] == ["reasoning", "message", "function_call", "function_call_output"]


def test_custom_calls_keep_their_input_and_their_kind_of_output() -> None:
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "f", "input": "print(1)"}
    said = replied(custom)
    assert said.calls == (ToolCall("call_1", "f", "print(1)"),)
    stored = Assistant("", (ToolCall("call_1", "f", "{}"),), said.opaque)
    sent = items(user("hi"), stored, RESULT)
    assert sent[1] == {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "print(1)"}
    assert sent[2] == {"type": "custom_tool_call_output", "call_id": "call_1", "output": "1"}


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {"blocks": 1},
        {"blocks": [1, {"call": 0}]},
        {"blocks": [{"call": 1}]},
        {"blocks": [{"call": 0}, {"call": 0}]},
        {"blocks": [{"call": True}]},
    ],
)
def test_a_payload_that_is_none_of_this_format_is_left_out(payload: Any) -> None:
    sent = items(user("hi"), *called(CALL, opaque=(Opaque("openai", "gpt-5.6", payload),)))
    assert [item["type"] for item in sent] == ["message", "function_call", "function_call_output"]


# --- decoding -----------------------------------------------------------------------------------------


def test_a_plain_reply_holds_nothing_opaque() -> None:
    reply = decode_response(response(SPOKEN, FUNCTION_CALL, model="gpt-5.6-2026"), Reading("openai", "gpt-5.6"))
    assert (reply.text, reply.calls, reply.stop, reply.opaque) == ("Let me see.", (CALL,), "tool_calls", ())
    assert (reply.model, reply.remarks) == ("gpt-5.6-2026", ())


def test_everything_else_is_kept() -> None:
    reply = decode_response(response(THOUGHT, {"type": "novelty", "x": 1}, FUNCTION_CALL), Reading("p", "m"))
    assert reply.opaque == (
        Opaque("p", "m", {"blocks": [THOUGHT, {"type": "novelty", "x": 1}, {"call": 0, "id": "fc_1"}]}),
    )
    assert reply.remarks == ('an item of type "novelty" was kept; nothing was done with it',)


def test_several_messages_are_set_apart() -> None:
    assert decode_response(response(SPOKEN, {**SPOKEN, "content": "Done."})).text == "Let me see.\n\nDone."


def test_missing_ids_and_arguments() -> None:
    bare = {"type": "function_call", "name": "f"}
    assert decode_response(response(bare)).calls == (ToolCall("", "f", ""),)
    assert decode_response(response({**bare, "id": "fc_9", "arguments": {"x": "ü"}})).calls == (
        ToolCall("fc_9", "f", '{"x": "ü"}'),
    )


REFUSAL = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}


@pytest.mark.parametrize(
    ("data", "stop"),
    [
        (response(SPOKEN), "end"),
        ({"output": [SPOKEN]}, "end"),
        (response(FUNCTION_CALL), "tool_calls"),
        (response(REFUSAL, FUNCTION_CALL), "refusal"),
        (
            response(FUNCTION_CALL, status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
        ),
        (response(REFUSAL, status="incomplete", incomplete_details={"reason": "content_filter"}), "content_filter"),
        (response(SPOKEN, status="incomplete", incomplete_details={"reason": "steered"}), "unknown"),
        (response(SPOKEN, status="incomplete", incomplete_details=None), "unknown"),
        (response(SPOKEN, status="in_progress"), "pause"),
        (response(status="queued"), "pause"),
        (response(SPOKEN, status="novel"), "unknown"),
        (response(SPOKEN, status=[1]), "unknown"),
    ],
)
def test_how_it_ended(data: Any, stop: str) -> None:
    reply = decode_response(data)
    assert reply.stop == stop
    assert bool(reply.remarks) == (stop == "unknown")


def test_the_text_of_a_refusal() -> None:
    assert decode_response(response(REFUSAL)).text == "No."


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}}, RateLimited),
        (response(status="failed", error={"code": "context_length_exceeded", "message": "too long"}), ContextTooLong),
        (response(status="failed", error={"code": "server_error", "message": "oops"}), Overloaded),
        (response(status="failed", error=None), Overloaded),
        (response(status="cancelled"), RemoteError),
        (response(7), MalformedReply),
        ({"output": {}}, MalformedReply),
        ([], MalformedReply),
        (None, MalformedReply),
    ],
)
def test_what_is_no_reply(data: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_response(data)


def test_usage() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }
    assert decode_response(response(SPOKEN, usage=usage)).usage == Usage(100, 20, 40, 10, 5)
    assert decode_response(response(SPOKEN)).usage is None
    deepseek = {"input_tokens": 9, "prompt_cache_hit_tokens": 4, "output_tokens": 1}
    assert decode_response(response(SPOKEN, usage=deepseek)).usage == Usage(9, 1, 4, None, None)
    odd = {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 9}}
    reply = decode_response(response(SPOKEN, usage=odd))
    assert reply.usage == Usage(3, None, None, None, None)
    assert reply.remarks


def test_a_reply_that_was_cut_in_silence() -> None:
    cut = response(SPOKEN, usage={"input_tokens": 1, "output_tokens": 8})
    llama = FORMAT.talk(target("llama.cpp", max_tokens=8))
    llama.request(asking([user("hi")]), stream=False)
    assert llama.decode(cut).stop == "length"
    honest = FORMAT.talk(target(max_tokens=8))
    honest.request(asking([user("hi")]), stream=False)
    assert honest.decode(cut).stop == "end"


def test_broken_characters_and_deep_nesting() -> None:
    broken = {"type": "novelty", "\ud800": "\udfff", "text": ["\ud83d"]}
    reply = decode_response(response(broken, {**FUNCTION_CALL, "name": "\ud800", "arguments": "\ud800"}))
    json.dumps(reply.opaque[0].payload, ensure_ascii=False).encode()
    reply.calls[0].name.encode()
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for item in ({"type": "novelty", "x": deep}, {**FUNCTION_CALL, "arguments": deep}, {**SPOKEN, "content": deep}):
        with pytest.raises(MalformedReply):
            decode_response(response(item))
