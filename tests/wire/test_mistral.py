"""Mistral's format: requests, whole replies and streams. The open validator is the judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistral_judge import judged
from mistralai.client.models import ChatCompletionRequest as SdkRequest
from transcripts import NAMES, SPECS, asking, cuts, transcripts

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import parse_arguments
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
from tenlines.errors import ConnectionFailed, MalformedReply, Overloaded, RemoteError
from tenlines.wire.checking import check
from tenlines.wire.mistral.format import FORMAT
from tenlines.wire.profile import Target

MODEL = "mistral-large-2512"
VERSIONS = ("v3", "v7", "v11", "v13", "v15")
CONTEXTS: list[dict[str, str | bool]] = [{}, *({"tokenizer": version} for version in VERSIONS)]


def target(context: dict[str, str | bool] | None = None, **fields: Any) -> Target:
    return Target(profile=FORMAT.profile(context), model=MODEL, **fields)


def body_of(messages: list[Message], context: dict[str, str | bool] | None = None, **how: Any) -> dict[str, Any]:
    return FORMAT.talk(target(context)).request(asking(messages, **how), False)


def messages_of(messages: list[Message], version: str = "", **how: Any) -> Any:
    return body_of(messages, {"tokenizer": version} if version else {}, **how)["messages"]


def user(text: str) -> User:
    return User((Text(text),))


def calling(*ids: str, text: str = "", opaque: Any = ()) -> Assistant:
    return Assistant(text, tuple(ToolCall(one, "f", '{"x": 1}') for one in ids), opaque)


def result(call_id: str, *parts: Any) -> Result:
    return Result(call_id, "f", "ok", parts or (Text("1"),))


# --- messages ---------------------------------------------------------------------------------------


def test_every_kind_of_message_has_its_place() -> None:
    said = [System("be brief"), user("hi"), calling("abcdefgh1", text="I look"), result("abcdefgh1"), Note("2 left")]
    assert messages_of(said, "v13") == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [{"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "abcdefgh1", "name": "f", "content": "1"},
        {"role": "user", "content": "[note from the runtime] 2 left"},
    ]


def test_the_hosted_api_hears_a_word_of_the_assistant_between_results_and_a_user() -> None:
    said = [user("go"), calling("a"), result("a"), Note("x"), user("y")]
    assert [one["role"] for one in messages_of(said)] == ["user", "assistant", "tool", "assistant", "user", "user"]
    assert messages_of(said)[3] == {"role": "assistant", "content": "."}
    assert [one["role"] for one in messages_of(said, "v13")] == ["user", "assistant", "tool", "user", "user"]


@pytest.mark.parametrize(("version", "is_kept"), [("", False), ("v3", False), ("v11", False), ("v13", True)])
def test_ids_are_nine_letters_and_digits_where_they_have_to_be(version: str, is_kept: bool) -> None:
    messages = messages_of([user("go"), calling("call_1"), result("call_1")], version)
    call_id = messages[1]["tool_calls"][0]["id"]
    assert call_id == messages[2]["tool_call_id"]
    assert (call_id == "call_1") is is_kept
    assert is_kept or (len(call_id) == 9 and call_id.isalnum())


def test_an_id_that_means_none_is_replaced() -> None:
    assert messages_of([user("go"), calling("null"), result("null")], "v13")[2]["tool_call_id"] != "null"


def test_the_oldest_versions_get_text_and_calls_in_two_messages() -> None:
    messages = messages_of([user("go"), calling("a", text="I look"), result("a")], "v3")
    assert messages[1] == {"role": "assistant", "content": "I look"}
    assert list(messages[2]) == ["role", "tool_calls"]


def test_the_user_has_the_last_word() -> None:
    assert messages_of([]) == [{"role": "user", "content": "(conversation start)"}]
    said = messages_of([user("hi"), Assistant("a"), Assistant(" "), Assistant("b")])
    assert [one["content"] for one in said] == ["hi", "a", "Continue.", "b", "Continue."]


def test_a_late_system_message_goes_as_a_note() -> None:
    assert messages_of([user("hi"), System("new")])[1] == {"role": "user", "content": "[note from the runtime] new"}


def test_images_go_where_they_are_taken() -> None:
    image = Image("image/png", b"\x89PNG")
    said = [User((Text("look"), image, Image("image/png", url="https://h/i.png"))), calling("a"), result("a", image)]
    shown = {"type": "image_url", "image_url": "data:image/png;base64,iVBORw=="}
    assert messages_of(said, "v13")[0]["content"] == [
        {"type": "text", "text": "look"},
        shown,
        {"type": "image_url", "image_url": "https://h/i.png"},
    ]
    assert messages_of(said, "v13")[2]["content"] == "(image/png, 4 bytes, not shown)"
    assert messages_of(said, "v15")[2]["content"] == [shown]
    assert isinstance(messages_of(said, "v2")[0]["content"], str)


# --- the request ------------------------------------------------------------------------------------


def test_limits_and_choices() -> None:
    talk = FORMAT.talk(target(max_tokens=99, temperature=0.5, effort="high"))
    body: Any = talk.request(asking([user("hi")], tool_choice="required"), True)
    assert {key: body[key] for key in ("model", "max_tokens", "temperature", "reasoning_effort", "stream")} == {
        "model": MODEL,
        "max_tokens": 99,
        "temperature": 0.5,
        "reasoning_effort": "high",
        "stream": True,
    }
    assert body["tool_choice"] == "required"
    assert body_of([user("hi")], tool_choice="f")["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert {"tools", "tool_choice", "stream"}.isdisjoint(body_of([user("hi")], tools=()))
    assert "prompt_cache_key" not in body
    old: Any = FORMAT.talk(target({"tokenizer": "v11"}, effort="high")).request(asking([user("hi")]), False)
    assert "reasoning_effort" not in old


def test_names_that_do_not_fit_are_mapped_and_mapped_back() -> None:
    specs = (ToolSpec("fs.read", "d"),)
    talk = FORMAT.talk(target())
    body: Any = talk.request(asking([user("go")], tools=specs), False)
    name = body["tools"][0]["function"]["name"]
    assert name != "fs.read"
    assert talk.decode(response(tool_calls=[tool_call("a", name=name)])).calls[0].name == "fs.read"


# --- whole replies ----------------------------------------------------------------------------------

THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
SAID = {"type": "text", "text": "so"}


def tool_call(call_id: str | None, arguments: Any = "{}", name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, **fields}


def response(content: Any = "", reason: Any = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    return {
        "choices": [{"message": {"content": content, **message}, "finish_reason": reason}],
        "usage": usage,
        "model": MODEL,
    }


def decoded(data: Any) -> Reply:
    return FORMAT.talk(target()).decode(data)


def test_a_plain_reply_has_no_payload() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12, "num_cached_tokens": 3}
    reply = decoded(response("hi", "tool_calls", usage, tool_calls=[tool_call("a", {"x": 1}), tool_call("null", "")]))
    assert reply == Reply(
        "hi",
        (ToolCall("a", "f", '{"x": 1}'), ToolCall("", "f", "{}")),
        "tool_calls",
        Usage(7, 5, 3, None, None),
        model=MODEL,
    )
    details = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 2}}
    assert decoded(response("hi", usage=details)).usage == Usage(7, None, 2, None, None)


def test_thoughts_go_back_verbatim_before_the_calls() -> None:
    chunk = {**THOUGHT, "signature": "s", "closed": True}
    reply = decoded(response([chunk, SAID], "tool_calls", tool_calls=[tool_call("abcdefgh1")]))
    assert (reply.text, reply.opaque[0].payload) == ("so", {"blocks": [chunk, SAID, {"call": 0}]})
    said = [user("go"), Assistant(reply.text, reply.calls, reply.opaque), result("abcdefgh1")]
    for version, content in (("", [chunk, SAID]), ("v11", [chunk, SAID]), ("v7", "so")):
        assert messages_of(said, version)[1]["content"] == content


@pytest.mark.parametrize(("provider", "model"), [("openai", MODEL), ("mistral", "magistral-small-2509")])
def test_thoughts_go_to_nobody_else_and_never_become_text(provider: str, model: str) -> None:
    kept = Opaque(provider, model, {"blocks": [THOUGHT, {"call": 0}]})
    messages = messages_of([user("go"), calling("a", text="T", opaque=(kept,)), result("a")])
    assert messages[1]["content"] == "T"


def test_thoughts_of_other_calls_are_not_used() -> None:
    for blocks in ([THOUGHT], [THOUGHT, {"call": 1}], [THOUGHT, {"call": 0}, {"call": 1}], "x"):
        kept = Opaque("mistral", MODEL, {"blocks": blocks})
        messages = messages_of([user("go"), calling("a", text="T", opaque=(kept,)), result("a")])
        assert messages[1]["content"] == "T"


@pytest.mark.parametrize(
    ("reason", "stop", "with_calls"),
    [
        ("stop", "end", "tool_calls"),
        ("tool_calls", "end", "tool_calls"),
        ("length", "length", "length"),
        ("model_length", "context_overflow", "context_overflow"),
        ("novel", "unknown", "unknown"),
        (None, "end", "tool_calls"),
    ],
)
def test_stop_reasons(reason: Any, stop: str, with_calls: str) -> None:
    assert decoded(response("x", reason)).stop == stop
    assert decoded(response("", reason, tool_calls=[tool_call("a")])).stop == with_calls


@pytest.mark.parametrize(
    "data", [response("x", "error"), {"object": "error", "message": "internal server error", "code": "500"}]
)
def test_a_failure_of_the_server(data: Any) -> None:
    with pytest.raises(Overloaded):
        decoded(data)


@pytest.mark.parametrize("data", [None, [], {}, {"choices": []}, {"choices": [{}]}, response(tool_calls={"a": 1})])
def test_what_is_no_response_is_malformed(data: Any) -> None:
    with pytest.raises(MalformedReply):
        decoded(data)


# --- streams ----------------------------------------------------------------------------------------


def chunk(content: Any = None, reason: Any = None, usage: Any = None, **delta: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "delta": {"content": content, **delta}, "finish_reason": reason}],
        "usage": usage,
        "model": MODEL,
    }


def streamed(*chunks: Any, reason: Any = "stop") -> Reply:
    decoder = FORMAT.talk(target()).decoder()
    for one in (*chunks, chunk("", reason)):
        decoder.feed(one)
    return decoder.finish()


def thinking(text: str, **fields: Any) -> Any:
    return [{"type": "thinking", "thinking": [{"type": "text", "text": text}], **fields}]


def test_a_stream_gives_what_the_whole_response_would() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5}
    calls = [tool_call("a"), tool_call("b", '{"y": 2}')]
    reply = streamed(
        chunk("", role="assistant"),
        chunk(thinking("h")),
        chunk(thinking("m")),
        chunk([{"type": "text", "text": "s"}]),
        chunk("o"),
        chunk("", usage=usage, tool_calls=calls),
        reason="tool_calls",
    )
    assert reply == decoded(response([THOUGHT, SAID], "tool_calls", usage, tool_calls=calls))


def test_whole_calls_at_index_0() -> None:
    calls = [tool_call("a", index=0), tool_call("b", '{"y": 2}', index=0)]
    assert [call.id for call in streamed(chunk(tool_calls=calls)).calls] == ["a", "b"]
    unnamed = [tool_call("null", '{"x": 1}', index=0), tool_call("null", '{"y": 2}', index=0)]
    assert streamed(chunk(tool_calls=unnamed)).calls == (ToolCall("", "f", '{"x": 1}'), ToolCall("", "f", '{"y": 2}'))


def test_a_call_in_pieces() -> None:
    pieces = ['{"x"', ": 1}"]
    chunks = [chunk(tool_calls=[tool_call("a", piece, index=0)]) for piece in pieces]
    assert streamed(*chunks).calls == (ToolCall("a", "f", '{"x": 1}'),)


def test_closed_thoughts_and_chunks_of_other_kinds_stay_apart() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    reply = streamed(
        chunk(thinking("a", closed=True)), chunk(thinking("b", signature="s")), chunk([reference]), chunk("c")
    )
    assert reply.opaque[0].payload == {
        "blocks": [
            *thinking("a", closed=True),
            *thinking("b", signature="s"),
            reference,
            {"type": "text", "text": "c"},
        ]
    }


def test_pieces_are_shown_as_they_come() -> None:
    decoder = FORMAT.talk(target()).decoder()
    assert decoder.feed(chunk("x")).text == "x"
    assert decoder.feed(chunk(thinking("h"))).reasoning == "h"
    assert decoder.feed(chunk("", usage={"prompt_tokens": 1})).usage == Usage(1)


def test_a_stream_that_is_cut_or_fails_gives_nothing() -> None:
    with pytest.raises(ConnectionFailed):
        streamed(chunk("x"), reason=None)
    with pytest.raises(RemoteError):
        streamed(chunk("x"), reason="error")
    with pytest.raises(RemoteError):
        streamed(chunk("x"), {"object": "error", "message": "no"})


# --- laws -------------------------------------------------------------------------------------------

OPAQUES = st.builds(
    lambda provider, model, blocks: Opaque(provider, model, {"blocks": blocks}),
    st.sampled_from(["mistral", "mistral", "openai"]),
    st.sampled_from([MODEL, "mistral-large-latest"]),
    st.lists(st.sampled_from([THOUGHT, SAID, {"call": 0}, {"call": 1}]), max_size=4),
)
ANY_CONTEXT = st.sampled_from(CONTEXTS)


@pytest.mark.slow
@given(transcripts(OPAQUES), ANY_CONTEXT, st.sampled_from(["auto", "none", "required", *NAMES[:2]]), st.booleans())
def test_the_open_validator_takes_every_transcript(
    messages: list[Message], context: dict[str, str | bool], choice: str, has_tools: bool
) -> None:
    body = body_of(messages, context, tool_choice=choice, tools=SPECS if has_tools else ())
    assert check(body, FORMAT, FORMAT.profile(context)) == []
    for version in [context["tokenizer"]] if context else ["v7", "v11", "v13", "v15"]:
        if version == "v7" and "thinking" in json.dumps(body):
            continue  # what the model was given by nobody else, it takes back
        assert judged(body, str(version)) == ""
    SdkRequest.model_validate(json.loads(json.dumps(body)))


def test_the_judge_can_say_no() -> None:
    said = [user("go"), calling("a"), result("a")]
    assert "must be a-z, A-Z, 0-9, with a length of 9" in judged(body_of(said, {"tokenizer": "v13"}), "v11")


@pytest.mark.slow
@given(transcripts(OPAQUES), ANY_CONTEXT)
def test_a_request_begins_with_the_one_before(messages: list[Message], context: dict[str, str | bool]) -> None:
    talk = FORMAT.talk(target(context))
    before, sent = "", 0
    for length in cuts(messages):
        text = json.dumps(talk.request(asking(messages[:length], new_from=sent), False))
        sent = length
        assert text.startswith(before)
        assert text == json.dumps(body_of(messages[:length], context))
        is_closed = json.loads(text)["messages"][-1].get("content") in ("Continue.", "(conversation start)")
        before = "" if is_closed else text.rstrip("]}")  # what closes a request need not be in the next one


@pytest.mark.slow
@given(transcripts(), ANY_CONTEXT)
def test_a_retry_and_an_edit_leave_no_trace(messages: list[Message], context: dict[str, str | bool]) -> None:
    talk = FORMAT.talk(target(context))
    talk.request(asking([*messages, user("more"), Note("x")]), False)
    again = talk.request(asking(messages, new_from=len(messages)), False)
    assert json.dumps(again) == json.dumps(body_of(messages, context))


OURS = {".", "Continue.", "(conversation start)"}


@pytest.mark.slow
@given(transcripts(), ANY_CONTEXT)
def test_nothing_is_lost_on_the_way(messages: list[Message], context: dict[str, str | bool]) -> None:
    body = body_of(messages, context)
    turns = [FORMAT.unfold(one, f"messages[{index}]") for index, one in enumerate(body["messages"])]
    blocks = [block for turn in turns for block in turn.blocks]
    calls = [call for one in messages if isinstance(one, Assistant) for call in one.calls]
    written = [block for block in blocks if block.kind == "call"]
    assert [(block.name, block.arguments) for block in written] == [(call.name, call.arguments) for call in calls]
    assert all(parse_arguments(str(block.arguments)).value is not None for block in written)
    results = [one for one in messages if isinstance(one, Result)]
    answers = [block for block in blocks if block.kind == "result"]
    assert [block.id for block in answers] == [block.id for block in written]
    assert [block.name for block in answers] == [one.name for one in results]
    for one, block in zip(results, answers, strict=True):
        assert all(part.text in block.text for part in one.parts if isinstance(part, Text))
    said = [one.text for one in messages if isinstance(one, Assistant) and one.text.strip()]
    heard = [block.text for turn in turns if turn.role == "assistant" for block in turn.of("text")]
    assert [text for text in heard if text not in OURS] == [text for text in said if text not in OURS]
