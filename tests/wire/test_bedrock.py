"""The Converse format: requests, whole replies and streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st
from transcripts import NAMES, SPECS, asking, cuts, transcripts

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import parse_arguments
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
from tenlines.errors import ConnectionFailed, MalformedReply, Overloaded, RateLimited, RemoteError
from tenlines.wire.bedrock import encoding
from tenlines.wire.bedrock.binary import from_sdk, to_sdk
from tenlines.wire.bedrock.format import FORMAT
from tenlines.wire.bedrock.talk import Talk
from tenlines.wire.checking import check
from tenlines.wire.profile import Target

CLAUDE = "us.anthropic.claude-opus-5-20260301-v1:0"
MODELS = {
    "anthropic": CLAUDE,
    "amazon.nova": "amazon.nova-pro-v1:0",
    "meta.llama": "us.meta.llama4-maverick-17b-instruct-v1:0",
    "mistral": "mistral.mistral-large-2407-v1:0",
    "writer": "us.writer.palmyra-x5-v1:0",
    "deepseek": "us.deepseek.r1-v1:0",
    "qwen": "qwen.qwen3-coder-480b-a35b-v1:0",
    "unknown": "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc",
}
CONVERSE = get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
VALIDATOR = ParamValidator()


def target(model: str = CLAUDE, **fields: Any) -> Target:
    return Target(profile=FORMAT.profile({"model": model}), model=model, **fields)


def body_of(messages: list[Message], model: str = CLAUDE, **how: Any) -> dict[str, Any]:
    return FORMAT.talk(target(model)).request(asking(messages, **how), False)


def messages_of(messages: list[Message], model: str = MODELS["qwen"], **how: Any) -> Any:
    return body_of(messages, model, **how)["messages"]


def user(text: str) -> User:
    return User((Text(text),))


def calling(*ids: str, text: str = "", opaque: Any = ()) -> Assistant:
    return Assistant(text, tuple(ToolCall(one, "f", '{"x": 1}') for one in ids), opaque)


def result(call_id: str, *parts: Any, outcome: Any = "ok") -> Result:
    return Result(call_id, "f", outcome, parts or (Text("1"),))


# --- messages ---------------------------------------------------------------------------------------


def test_every_kind_of_message_has_its_place() -> None:
    body = body_of(
        [System("be brief"), System("be kind"), user("hi"), calling("c1", text="I look"), result("c1"), Note("2 left")],
        MODELS["qwen"],
    )
    assert body["system"] == [{"text": "be brief"}, {"text": "be kind"}]
    assert body["messages"] == [
        {"role": "user", "content": [{"text": "hi"}]},
        {
            "role": "assistant",
            "content": [{"text": "I look"}, {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"x": 1}}}],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "1"}]}},
                {"text": "[note from the runtime] 2 left"},
            ],
        },
    ]


def test_all_results_of_a_message_stand_in_one_message() -> None:
    messages = messages_of([user("go"), calling("a", "b"), result("a"), result("b")])
    assert [block["toolResult"]["toolUseId"] for block in messages[2]["content"]] == ["a", "b"]


@pytest.mark.parametrize("family", ["meta.llama", "mistral", "writer", "unknown"])
def test_where_nothing_may_stand_beside_results_the_assistant_says_a_word_between(family: str) -> None:
    messages = messages_of([user("go"), calling("a"), result("a"), user("hurry")], MODELS[family])
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert messages[3]["content"] == [{"text": "."}]


def test_llama_hears_the_text_beside_calls_in_a_message_of_its_own() -> None:
    messages = messages_of([user("go"), calling("a", text="I look"), result("a")], MODELS["meta.llama"])
    assert [list(block) for message in messages for block in message["content"]] == [
        ["text"],
        ["text"],
        ["text"],
        ["toolUse"],
        ["toolResult"],
    ]
    assert messages[2] == {"role": "user", "content": [{"text": "Continue."}]}


def test_the_user_always_speaks_first_and_last() -> None:
    assert messages_of([Assistant("Welcome"), user("hi")])[0] == {
        "role": "user",
        "content": [{"text": "(conversation start)"}],
    }
    assert messages_of([]) == [{"role": "user", "content": [{"text": "(conversation start)"}]}]
    ended = messages_of([user("hi"), Assistant("a"), Assistant("b")])
    assert [message["content"][0]["text"] for message in ended] == ["hi", "a", "Continue.", "b", "Continue."]


def test_blank_texts_are_never_sent() -> None:
    said = [System(" "), user(""), Assistant("\n"), user("hi"), calling("a", text=" "), result("a", Text(""))]
    body = body_of(said, MODELS["qwen"])
    assert "system" not in body
    assert body["messages"][0]["content"] == [{"text": "(empty)"}, {"text": "hi"}]
    assert [list(block) for block in body["messages"][1]["content"]] == [["toolUse"]]
    assert body["messages"][2]["content"][0]["toolResult"]["content"] == [{"text": "(no output)"}]


@pytest.mark.parametrize(("family", "status"), [("anthropic", "error"), ("amazon.nova", "error"), ("writer", None)])
def test_an_error_is_marked_where_the_family_knows_the_mark(family: str, status: str | None) -> None:
    said = [user("go"), calling("a", "b"), result("a", outcome="tool_error"), result("b")]
    content = messages_of(said, MODELS[family])[2]["content"]
    assert [block["toolResult"].get("status") for block in content[:2]] == [status, None]


def test_mistral_gets_results_as_json() -> None:
    said = [user("go"), calling("a", "b"), result("a", Json({"n": 1})), result("b", Text("x"))]
    content = messages_of(said, MODELS["mistral"])[2]["content"]
    assert [block["toolResult"]["content"] for block in content] == [[{"json": {"n": 1}}], [{"json": {"result": "x"}}]]


def test_ids_and_names_that_do_not_fit_are_mapped_alike_on_both_sides() -> None:
    name, call_id = "fs.read", "call 1"
    specs = (ToolSpec(name, "d"),)
    body = body_of(
        [user("go"), Assistant("", (ToolCall(call_id, name, "{}"),)), Result(call_id, name, "ok", (Text("x"),))],
        tools=specs,
    )
    use = body["messages"][1]["content"][0]["toolUse"]
    assert use["name"] == body["toolConfig"]["tools"][0]["toolSpec"]["name"] != name
    assert use["toolUseId"] == body["messages"][2]["content"][0]["toolResult"]["toolUseId"] != call_id
    talk = FORMAT.talk(target())
    talk.request(asking([user("go")], tools=specs), False)
    reply = talk.decode(response({"toolUse": {"toolUseId": "a", "name": use["name"], "input": {}}}))
    assert reply.calls[0].name == name


def test_images_and_documents_go_as_base64_text_and_reach_the_sdk_as_bytes() -> None:
    parts = (Image("image/png", b"\x89PNG"), File("application/pdf", b"%PDF", "a b?.pdf"))
    body = body_of([User(parts)], MODELS["amazon.nova"])
    assert body["messages"][0]["content"][:3] == [
        {"text": "(see the attached document)"},
        {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}},
        {"document": {"format": "pdf", "name": "a b 0-1", "source": {"bytes": "JVBERg=="}}},
    ]
    before = json.dumps(body)
    ready = to_sdk(body)
    assert ready["messages"][0]["content"][1]["image"]["source"] == {"bytes": b"\x89PNG"}
    assert json.dumps(body) == before
    assert from_sdk(ready) == body


def test_what_a_tool_was_given_is_not_taken_for_bytes() -> None:
    given = {"image": {"source": {"bytes": "aGk="}}}
    said = [user("go"), Assistant("", (ToolCall("a", "f", json.dumps(given)),)), result("a", Image("image/png", b"hi"))]
    ready = to_sdk(body_of(said))
    assert ready["messages"][1]["content"][0]["toolUse"]["input"] == given
    assert ready["messages"][2]["content"][0]["toolResult"]["content"][0]["image"]["source"]["bytes"] == b"hi"


def test_what_the_service_does_not_take_becomes_a_few_words() -> None:
    parts = (Image("image/tiff", b"II"), Image("image/png", url="https://h/i.png"), File("video/mp4", b"m"))
    assert messages_of([User(parts)])[0]["content"] == [
        {"text": "(image/tiff, 2 bytes, not shown)"},
        {"text": "(image/png, https://h/i.png, not shown)"},
        {"text": "(video/mp4, 1 bytes, not shown)"},
    ]


def test_documents_never_stand_beside_results_and_never_more_than_five_in_a_message() -> None:
    file = File("application/pdf", b"%PDF", "a.pdf")
    messages = messages_of([user("go"), calling("a"), result("a"), User((file,) * 7), User((file,))])
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert encoding.count(messages[4]["content"], "document") == 5
    names = [block["document"]["name"] for m in messages for block in m["content"] if "document" in block]
    assert len(set(names)) == 6


# --- the request ------------------------------------------------------------------------------------


def test_limits_and_choices() -> None:
    talk = FORMAT.talk(target(max_tokens=99, temperature=0.5, effort="high"))
    body: Any = talk.request(asking([user("hi")], tool_choice="required"), True)
    assert body["modelId"] == CLAUDE
    assert body["inferenceConfig"] == {"maxTokens": 99, "temperature": 0.5}
    assert body["outputConfig"] == {"effort": "high"}
    assert body["toolConfig"]["toolChoice"] == {"any": {}}
    assert body_of([user("hi")], tool_choice="f")["toolConfig"]["toolChoice"] == {"tool": {"name": "f"}}
    assert "toolChoice" not in body_of([user("hi")])["toolConfig"]
    assert "toolConfig" not in body_of([user("hi")], tools=())


def test_calls_in_the_messages_need_tools_so_there_are_stubs() -> None:
    said = [user("go"), calling("a", "b"), result("a"), result("b")]
    tools = body_of(said, MODELS["qwen"], tools=())["toolConfig"]["tools"]
    assert [one["toolSpec"]["name"] for one in tools] == ["f"]


def test_calls_that_were_not_wanted_are_left_out_and_it_is_said() -> None:
    talk = FORMAT.talk(target())
    body: Any = talk.request(asking([user("hi")], tool_choice="none"), False)
    assert "toolChoice" not in body["toolConfig"]
    reply = talk.decode(response({"text": "so"}, use("a"), stopReason="tool_use"))
    assert (reply.text, reply.calls, reply.stop, reply.opaque) == ("so", (), "end", ())
    assert "left out: 1" in reply.remarks[0]


def test_a_choice_that_the_family_does_not_know_is_said() -> None:
    talk = FORMAT.talk(target(MODELS["meta.llama"]))
    body: Any = talk.request(asking([user("hi")], tool_choice="f"), False)
    assert "toolChoice" not in body["toolConfig"]
    assert "cannot be made to call f" in talk.decode(response({"text": "so"})).remarks[0]


def test_marks_of_the_cache_move_and_are_never_kept() -> None:
    talk = FORMAT.talk(target())
    said: list[Message] = [System("s"), user("go"), calling("a"), result("a")]
    first: Any = talk.request(asking(said[:2]), False)
    assert first["system"][-1] == first["messages"][-1]["content"][-1] == {"cachePoint": {"type": "default"}}
    assert first["toolConfig"]["tools"][-1] == {"cachePoint": {"type": "default"}}
    second: Any = talk.request(asking(said, new_from=2), False)
    assert [next(iter(message["content"][-1])) for message in second["messages"]] == [
        "cachePoint",
        "toolUse",
        "cachePoint",
    ]
    assert json.dumps(second).count("cachePoint") == 4
    third: Any = talk.request(asking([*said, Assistant("done"), user("more")], new_from=4), False)
    assert [next(iter(message["content"][-1])) for message in third["messages"]][:3] == [
        "text",
        "toolUse",
        "cachePoint",
    ]
    assert "cachePoint" not in json.dumps(body_of(said, MODELS["writer"]))
    assert "cachePoint" not in json.dumps(body_of(said, "anthropic.claude-3-haiku-20240307-v1:0"))


# --- reasoning --------------------------------------------------------------------------------------

THINKING = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}}


def use(call_id: str, name: str = "f", **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": given}}


def response(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(blocks)}}, "stopReason": "end_turn", **fields}


def test_reasoning_goes_back_verbatim_and_calls_stand_where_they_stood() -> None:
    talk = FORMAT.talk(target())
    reply = talk.decode(response(THINKING, {"text": "I"}, use("a"), {"text": "see"}, use("b"), stopReason="tool_use"))
    assert reply.opaque[0].payload == {"blocks": [THINKING, {"text": "I"}, {"call": 0}, {"text": "see"}, {"call": 1}]}
    assert reply.text == "Isee"
    said = Assistant(reply.text, reply.calls, reply.opaque)
    again = messages_of([user("go"), said, result("a"), result("b")], "eu.anthropic.claude-opus-5-20260701-v1:0")
    assert again[1]["content"] == [THINKING, {"text": "I"}, use("a"), {"text": "see"}, use("b")]


@pytest.mark.parametrize(
    ("provider", "model", "asked"),
    [
        ("anthropic", CLAUDE, CLAUDE),
        ("bedrock", "anthropic.claude-haiku-5-v1:0", CLAUDE),
        ("bedrock", MODELS["deepseek"], MODELS["deepseek"]),
    ],
)
def test_reasoning_goes_to_nobody_else_and_never_becomes_text(provider: str, model: str, asked: str) -> None:
    kept = Opaque(provider, model, {"blocks": [THINKING, {"call": 0}]})
    messages = messages_of([user("go"), calling("a", text="T", opaque=(kept,)), result("a")], asked)
    assert "hm" not in json.dumps(messages)


def test_a_payload_that_does_not_fit_the_calls_is_not_used() -> None:
    for blocks in ([THINKING], [THINKING, {"call": 1}], [{"call": 0}, {"call": 0}], ["x"], [{"call": "0"}]):
        kept = Opaque("bedrock", CLAUDE, {"blocks": blocks})
        messages = messages_of([user("go"), calling("a", text="T", opaque=(kept,)), result("a")], CLAUDE)
        assert messages[1]["content"][0] == {"text": "T"}


def test_blank_texts_among_kept_blocks_are_left_out() -> None:
    kept = Opaque("bedrock", CLAUDE, {"blocks": [THINKING, {"text": " "}, {"call": 0}]})
    messages = messages_of([user("go"), calling("a", opaque=(kept,)), result("a")], CLAUDE)
    assert [next(iter(block)) for block in messages[1]["content"][:2]] == ["reasoningContent", "toolUse"]


# --- whole replies ----------------------------------------------------------------------------------


def decoded(data: Any) -> Reply:
    return FORMAT.talk(target()).decode(data)


def test_a_plain_reply_has_no_payload() -> None:
    usage = {"inputTokens": 3, "outputTokens": 5, "cacheReadInputTokens": 7, "cacheWriteInputTokens": 11}
    assert decoded(response({"text": "I look"}, use("a", x="ä"), stopReason="tool_use", usage=usage)) == Reply(
        "I look", (ToolCall("a", "f", '{"x": "ä"}'),), "tool_calls", Usage(21, 5, 7, 11, None)
    )


@pytest.mark.parametrize(
    ("reason", "stop", "with_calls"),
    [
        ("end_turn", "end", "tool_calls"),
        ("tool_use", "end", "tool_calls"),
        ("stop_sequence", "stop_sequence", "tool_calls"),
        ("max_tokens", "length", "length"),
        ("guardrail_intervened", "content_filter", "content_filter"),
        ("content_filtered", "content_filter", "content_filter"),
        ("malformed_tool_use", "malformed_call", "malformed_call"),
        ("malformed_model_output", "malformed_call", "malformed_call"),
        ("model_context_window_exceeded", "context_overflow", "context_overflow"),
        ("something_new", "unknown", "unknown"),
        (None, "end", "tool_calls"),
    ],
)
def test_stop_reasons(reason: Any, stop: str, with_calls: str) -> None:
    assert decoded(response({"text": "x"}, stopReason=reason)).stop == stop
    assert decoded(response(use("a"), stopReason=reason)).stop == with_calls


def test_an_unknown_stop_reason_is_said() -> None:
    assert "something_new" in decoded(response(stopReason="something_new")).remarks[0]


def test_unknown_blocks_and_tools_of_the_service_are_kept_and_not_run() -> None:
    server = {"toolUse": {"toolUseId": "s", "name": "web", "input": {}, "type": "server_tool_use"}}
    reply = decoded(response(server, {"novel": 1}, {"text": "x"}))
    assert reply.calls == ()
    assert reply.opaque[0].payload == {"blocks": [server, {"novel": 1}, {"text": "x"}]}


def test_the_text_of_citations_is_part_of_the_answer() -> None:
    cited = {"citationsContent": {"content": [{"text": "cited"}], "citations": [{"title": "t"}]}}
    assert decoded(response({"text": "as "}, cited)).text == "as cited"


@pytest.mark.parametrize("data", [None, [], "x", {}, {"output": {}}, {"output": {"message": {"content": "x"}}}])
def test_what_is_no_response_is_malformed(data: Any) -> None:
    with pytest.raises(MalformedReply):
        decoded(data)


def test_an_error_under_a_good_status() -> None:
    with pytest.raises(RateLimited):
        decoded({"__type": "com.amazon#ThrottlingException", "message": "slow down"})


# --- streams ----------------------------------------------------------------------------------------


def event(name: str, **data: Any) -> dict[str, Any]:
    return {name: data}


def delta(index: int, **held: Any) -> dict[str, Any]:
    return event("contentBlockDelta", contentBlockIndex=index, delta=held)


def start(index: int, call_id: str, name: str = "f") -> dict[str, Any]:
    return event("contentBlockStart", contentBlockIndex=index, start={"toolUse": {"toolUseId": call_id, "name": name}})


END = [
    event("messageStop", stopReason="tool_use"),
    event("metadata", usage={"inputTokens": 1, "outputTokens": 2}, metrics={"latencyMs": 3}),
]


def streamed(*events: Any, end: Any = END) -> Reply:
    decoder = FORMAT.talk(target()).decoder()
    for one in (*events, *end):
        decoder.feed(one)
    return decoder.finish()


def test_a_stream_gives_what_the_whole_response_would() -> None:
    reply = streamed(
        event("messageStart", role="assistant"),
        delta(0, reasoningContent={"text": "h"}),
        delta(0, reasoningContent={"text": "m"}),
        delta(0, reasoningContent={"signature": "sig"}),
        event("contentBlockStop", contentBlockIndex=0),
        delta(1, text="I "),
        delta(1, text="look"),
        start(2, "a"),
        delta(2, toolUse={"input": '{"x"'}),
        delta(2, toolUse={"input": ":1}"}),
        start(3, "b"),
    )
    whole = decoded(
        response(
            THINKING,
            {"text": "I look"},
            use("a", x=1),
            use("b"),
            stopReason="tool_use",
            usage={"inputTokens": 1, "outputTokens": 2},
        )
    )
    assert reply.calls == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "f", "{}"))
    assert (reply.text, reply.opaque, reply.usage, reply.stop) == (whole.text, whole.opaque, whole.usage, whole.stop)


def test_pieces_are_shown_as_they_come() -> None:
    decoder = FORMAT.talk(target()).decoder()
    pieces = [
        decoder.feed(one) for one in (delta(0, reasoningContent={"text": "h"}), delta(1, text="x"), start(2, "a"))
    ]
    assert [(piece.text, piece.reasoning) for piece in pieces] == [("", "h"), ("x", ""), ("", "")]


def test_redacted_reasoning_in_pieces_is_joined_as_bytes() -> None:
    events = [from_sdk(delta(0, reasoningContent={"redactedContent": piece})) for piece in (b"\x00", b"\x01\x02")]
    assert streamed(*events).opaque[0].payload == {"blocks": [{"reasoningContent": {"redactedContent": "AAEC"}}]}


def test_calls_interleaved_by_index() -> None:
    reply = streamed(start(0, "a"), start(1, "b"), delta(0, toolUse={"input": "{}"}), delta(1, toolUse={"input": "[]"}))
    assert [call.arguments for call in reply.calls] == ["{}", "[]"]


def test_a_stream_that_is_cut_gives_nothing() -> None:
    with pytest.raises(ConnectionFailed):
        streamed(delta(0, text="x"), end=[])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", RateLimited),
        ("serviceUnavailableException", Overloaded),
        ("internalServerException", Overloaded),
        ("modelStreamErrorException", Overloaded),
    ],
)
def test_an_exception_in_a_stream(name: str, kind: type[RemoteError]) -> None:
    with pytest.raises(kind):
        streamed(delta(0, text="x"), event(name, message="no"))


def test_the_stream_of_citations() -> None:
    reply = streamed(delta(0, text="as "), delta(0, citation={"title": "t"}), delta(0, text="said"))
    assert reply.text == "as said"
    assert reply.opaque[0].payload == {
        "blocks": [{"citationsContent": {"content": [{"text": "as said"}], "citations": [{"title": "t"}]}}]
    }


# --- laws -------------------------------------------------------------------------------------------

BLOCKS = st.lists(
    st.sampled_from([THINKING, {"text": "x"}, {"text": ""}, {"call": 0}, {"call": 1}, {"novel": 1}]), max_size=4
)
OPAQUES = st.builds(
    lambda provider, model, blocks: Opaque(provider, model, {"blocks": blocks}),
    st.sampled_from(["bedrock", "bedrock", "openai"]),
    st.sampled_from([CLAUDE, MODELS["deepseek"]]),
    BLOCKS,
)
ANY_MODEL = st.sampled_from(sorted(MODELS.values()))


@pytest.mark.slow
@given(transcripts(OPAQUES), ANY_MODEL, st.sampled_from(["auto", "none", "required", *NAMES[:2]]), st.booleans())
def test_the_service_takes_every_transcript(messages: list[Message], model: str, choice: str, has_tools: bool) -> None:
    profile = FORMAT.profile({"model": model})
    how = {"tool_choice": choice, "tools": SPECS if has_tools else ()}
    body = FORMAT.talk(Target(profile=profile, model=model)).request(asking(messages, **how), False)
    assert check(body, FORMAT, profile) == []
    assert VALIDATOR.validate(to_sdk(body), CONVERSE).generate_report() == "" or "novel" in json.dumps(body)


def stripped(value: Any) -> Any:
    """Without marks of the cache."""
    if isinstance(value, dict):
        return {key: stripped(one) for key, one in value.items()}
    if isinstance(value, list):
        return [stripped(one) for one in value if one != {"cachePoint": {"type": "default"}}]
    return value


@pytest.mark.slow
@given(transcripts(OPAQUES), ANY_MODEL)
def test_a_request_begins_with_the_one_before(messages: list[Message], model: str) -> None:
    talk: Talk = FORMAT.talk(target(model))
    before, sent = "", 0
    for length in cuts(messages):
        text = json.dumps(stripped(talk.request(asking(messages[:length], new_from=sent), False)))
        sent = length
        assert text.startswith(before)
        fresh = json.dumps(stripped(FORMAT.talk(target(model)).request(asking(messages[:length]), False)))
        assert text == fresh
        is_closed = json.loads(text)["messages"][-1]["content"] in CLOSINGS
        before = "" if is_closed else text.rstrip("]}")  # what closes a request need not be in the next one


CLOSINGS = ([{"text": "Continue."}], [{"text": "(conversation start)"}])


@pytest.mark.slow
@given(transcripts(), ANY_MODEL)
def test_a_retry_and_an_edit_leave_no_trace(messages: list[Message], model: str) -> None:
    talk = FORMAT.talk(target(model))
    talk.request(asking([*messages, user("more"), Note("x")]), False)
    again = talk.request(asking(messages, new_from=len(messages)), False)
    assert json.dumps(again) == json.dumps(FORMAT.talk(target(model)).request(asking(messages), False))


OURS = {".", "Continue.", "(conversation start)", "(empty)", "(no output)", "(see the attached document)"}


@pytest.mark.slow
@given(transcripts(), ANY_MODEL)
def test_nothing_is_lost_on_the_way(messages: list[Message], model: str) -> None:
    body = FORMAT.talk(target(model)).request(asking(messages), False)
    turns = [FORMAT.unfold(one, f"messages[{index}]") for index, one in enumerate(body["messages"])]  # type: ignore[arg-type]
    blocks = [block for turn in turns for block in turn.blocks]
    calls = [call for one in messages if isinstance(one, Assistant) for call in one.calls]
    assert [block.name for block in blocks if block.kind == "call"] == [call.name for call in calls]
    assert [block.arguments for block in blocks if block.kind == "call"] == [
        parse_arguments(call.arguments).value for call in calls
    ]
    results = [one for one in messages if isinstance(one, Result)]
    written = [block for block in blocks if block.kind == "result"]
    assert [block.id for block in written] == [block.id for block in blocks if block.kind == "call"]
    if "status" in FORMAT.profile({"model": model}).traits:
        assert [block.is_error for block in written] == [one.outcome != "ok" for one in results]
    said = [one.text for one in messages if isinstance(one, Assistant) and one.text.strip()]
    heard = [block.text for turn in turns if turn.role == "assistant" for block in turn.of("text")]
    assert [text for text in heard if text not in OURS] == [text for text in said if text not in OURS]
    for one in messages:
        if isinstance(one, User | Result):
            for part in one.parts:
                if isinstance(part, Text) and part.text.strip():
                    assert any(
                        part.text in (block.text or json.dumps(block.raw)) or _in_json(part.text, block)
                        for block in blocks
                    )


def _in_json(text: str, block: Any) -> bool:
    return any(isinstance(part, Json) and text in str(part.value.get("result", "")) for part in block.parts)  # type: ignore[union-attr]
