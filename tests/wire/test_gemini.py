"""Gemini: transcripts as requests, responses as replies, and what no transcript or response may break."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from google.genai import types
from hostile import JSON
from hypothesis import given
from hypothesis import strategies as st
from transcripts import SPECS, asking, cuts, transcripts

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
from tenlines.errors import AuthRejected, ConnectionFailed, MalformedReply, Overloaded, ProviderError, RemoteError
from tenlines.wire.checking import check
from tenlines.wire.gemini.encoding import DUMMY
from tenlines.wire.gemini.format import FORMAT, Talk
from tenlines.wire.parts import CONTINUE, NOTE_PREFIX, START
from tenlines.wire.profile import Target

HI = User((Text("hi"),))
NEW, OLD = "gemini-3-pro-preview", "gemini-2.5-flash"


def target(model: str = NEW, **more: Any) -> Target:
    return Target(profile=FORMAT.profile({"model": model}), model=model, **more)


def body(
    *messages: Message, model: str = NEW, tools: tuple[ToolSpec, ...] = (), choice: str = "auto", **more: Any
) -> Any:
    return Talk(target(model, **more)).request(asking(messages, tools, choice), False)


def contents(*messages: Message, model: str = NEW) -> Any:
    return body(*messages, model=model)["contents"]


def user(*texts: str) -> Any:
    return {"role": "user", "parts": [{"text": text} for text in texts]}


def said(text: str) -> Any:
    return {"role": "model", "parts": [{"text": text}]}


def calls(*names: str) -> Assistant:
    return Assistant("", tuple(ToolCall(f"c{index}", name, '{"x": 1}') for index, name in enumerate(names)))


def signed(blocks: Any, model: str = NEW, provider: str = "google") -> tuple[Opaque, ...]:
    return (Opaque(provider, model, {"blocks": blocks}),)


def decode(data: Any, talk: Talk | None = None) -> Reply:
    return (talk or Talk(target())).decode(data)


def response(*parts: Any, finish: Any = "STOP", **more: Any) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}], **more}


# --- requests ---------------------------------------------------------------------------------------


def test_system_text_stands_beside_the_contents() -> None:
    made = body(System("Be brief."), System("Be kind."), HI)
    assert made == {"systemInstruction": {"parts": [{"text": "Be brief.\n\nBe kind."}]}, "contents": [user("hi")]}


def test_neighbours_of_one_role_are_one_content() -> None:
    assert contents(HI, Note("3 steps left"), User((Text("well?"),))) == [
        user("hi", f"{NOTE_PREFIX}3 steps left", "well?")
    ]


def test_a_late_system_message_does_not_change_the_beginning() -> None:
    made = body(System("Be brief."), HI, System("Be kind."))
    assert made["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert made["contents"] == [user("hi", f"{NOTE_PREFIX}Be kind.")]


def test_all_results_of_a_turn_stand_in_one_content_before_anything_else() -> None:
    made = contents(
        HI,
        calls("f", "g"),
        Result("c0", "f", "ok", (Text("18C"),)),
        Result("c1", "g", "timeout", (Text("too slow"),)),
        Note("hurry"),
        model=OLD,
    )
    assert made == [
        user("hi"),
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": {"x": 1}}},
                {"functionCall": {"name": "g", "args": {"x": 1}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "18C"}}},
                {"functionResponse": {"name": "g", "response": {"error": "too slow"}}},
                {"text": f"{NOTE_PREFIX}hurry"},
            ],
        },
    ]


def test_gemini_3_is_given_the_ids_and_a_stand_in_for_the_signature_of_the_first_call() -> None:
    made = contents(HI, calls("f", "g"), Result("c0", "f", "ok", ()), Result("c1", "g", "ok", ()))
    assert made[1]["parts"] == [
        {"functionCall": {"id": "c0", "name": "f", "args": {"x": 1}}, "thoughtSignature": DUMMY},
        {"functionCall": {"id": "c1", "name": "g", "args": {"x": 1}}},
    ]
    assert [part["functionResponse"]["id"] for part in made[2]["parts"]] == ["c0", "c1"]


def test_signatures_go_back_in_the_parts_that_they_came_in() -> None:
    blocks = [
        {"text": "Hm.", "thought": True},
        {"text": "Let me look."},
        {"call": 0, "thoughtSignature": "c2ln"},
        {"call": 1},
        {"text": "", "thoughtSignature": "bGF0ZQ=="},
    ]
    message = Assistant("Let me look.", calls("f", "g").calls, signed(blocks))
    assert contents(HI, message)[1]["parts"] == [
        {"text": "Hm.", "thought": True},
        {"text": "Let me look."},
        {"functionCall": {"id": "c0", "name": "f", "args": {"x": 1}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "c1", "name": "g", "args": {"x": 1}}},
        {"text": "", "thoughtSignature": "bGF0ZQ=="},
    ]


@pytest.mark.parametrize(
    "opaque",
    [
        signed([{"call": 0, "thoughtSignature": "x"}], model=OLD),
        signed([{"call": 0, "thoughtSignature": "x"}], provider="anthropic"),
        signed([{"call": 0, "thoughtSignature": "x"}, {"call": 1}]),
        signed([{"call": 1, "thoughtSignature": "x"}]),
        signed([]),
        signed(["x"]),
        (Opaque("google", NEW, None),),
    ],
)
def test_what_another_model_signed_or_what_does_not_fit_is_left_out(opaque: Any) -> None:
    part = {"functionCall": {"id": "c0", "name": "f", "args": {"x": 1}}, "thoughtSignature": DUMMY}
    assert contents(HI, Assistant("", calls("f").calls, opaque))[1]["parts"] == [part]


def test_a_dated_edition_of_the_same_model_takes_its_signatures_back() -> None:
    message = Assistant(
        "", calls("f").calls, signed([{"call": 0, "thoughtSignature": "x"}], model="models/gemini-3-pro")
    )
    assert contents(HI, message)[1]["parts"][0]["thoughtSignature"] == "x"


def test_somebody_else_speaks_before_the_model_and_between_two_of_its_messages() -> None:
    assert contents(Assistant("one"), Assistant("two")) == [
        user(START),
        said("one"),
        user(CONTINUE),
        said("two"),
        user(CONTINUE),
    ]
    assert contents(System("Be brief.")) == [user(START)]


def test_what_was_put_behind_the_last_message_is_there_again_in_the_next_request() -> None:
    talk = Talk(target())
    messages: list[Message] = [HI, Assistant("half of it")]
    first = json.dumps(talk.request(asking(messages), False))
    messages.append(Assistant("the other half"))
    assert json.dumps(talk.request(asking(messages, new_from=2), False)).startswith(first.rstrip("]}"))


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_texts_are_left_out(blank: str) -> None:
    assert contents(HI, Assistant(blank, calls("f").calls), model=OLD)[1]["parts"] == [
        {"functionCall": {"name": "f", "args": {"x": 1}}}
    ]
    assert contents(HI, Assistant(blank), User((Text(blank), Text("x")))) == [user("hi", "x")]


def test_pictures_and_files_of_the_user() -> None:
    parts = (
        Image("image/png", b"abc"),
        Image("image/*", url="https://example.org/a"),
        Image("image/png", url="data:image/png;base64,YWJj"),
        File("application/pdf", b"%PDF", "a.pdf"),
        File("application/zip", b"PK", "a.zip"),
    )
    assert contents(User(parts))[0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "YWJj"}},
        {"fileData": {"fileUri": "https://example.org/a"}},
        {"inlineData": {"mimeType": "image/png", "data": "YWJj"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"text": "(a.zip, application/zip, 2 bytes, not shown)"},
    ]


def test_pictures_in_results_are_shown_to_gemini_3_and_described_to_older_models() -> None:
    result = Result("c0", "f", "ok", (Text("a map"), Image("image/png", b"abc")))
    assert contents(HI, calls("f"), result)[2]["parts"][0]["functionResponse"] == {
        "id": "c0",
        "name": "f",
        "response": {"output": "a map"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "YWJj"}}],
    }
    old = contents(HI, calls("f"), result, model=OLD)[2]["parts"][0]["functionResponse"]
    assert old == {"name": "f", "response": {"output": "a map\n\n(image/png, 3 bytes, not shown)"}}


@pytest.mark.parametrize(
    ("value", "output"),
    [({"a": [1.5]}, {"a": [1.5]}), ([2**53], [2**53]), ({"id": 2**53 + 1}, '{"id": 9007199254740993}'), (None, "null")],
)
def test_a_json_result_is_sent_as_json_unless_its_numbers_would_not_come_through(value: Any, output: Any) -> None:
    made = contents(HI, calls("f"), Result("c0", "f", "ok", (Json(value),)))
    assert made[2]["parts"][0]["functionResponse"]["response"] == {"output": output}


def test_a_result_has_the_name_of_its_call() -> None:
    made = contents(HI, calls("f"), Result("c0", "", "ok", ()))
    assert made[2]["parts"][0]["functionResponse"]["name"] == "f"


def test_declarations_in_json_schema_and_in_the_older_dialect() -> None:
    schema: Any = {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}}
    spec, bare = ToolSpec("f", "Does f.", schema), ToolSpec("now")
    assert body(HI, tools=(spec, bare))["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "Does f.", "parametersJsonSchema": schema},
                {"name": "now", "parametersJsonSchema": {"type": "object", "properties": {}}},
            ]
        }
    ]
    (older,) = body(HI, tools=(spec, bare), model="gemini-2.0-flash")["tools"]
    assert older["functionDeclarations"][0]["parameters"]["properties"]["x"]["nullable"] is True
    assert older["functionDeclarations"][1] == {"name": "now"}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("9lives", {"mode": "ANY", "allowedFunctionNames": ["t_9lives_MAPPED"]}),
    ],
)
def test_the_choice_of_a_tool(choice: str, config: Any) -> None:
    made = body(HI, tools=(ToolSpec("9lives"),), choice=choice)
    name = made["tools"][0]["functionDeclarations"][0]["name"]
    assert made["toolConfig"] == {
        "functionCallingConfig": json.loads(json.dumps(config).replace("t_9lives_MAPPED", name))
    }
    assert "toolConfig" not in body(HI, choice=choice)


def test_names_that_the_format_does_not_take_are_mapped_everywhere_and_back() -> None:
    talk = Talk(target())
    call = ToolCall("c0", "9lives", "{}")
    messages = [HI, Assistant("", (call,)), Result("c0", "9lives", "ok", ())]
    made: Any = talk.request(asking(messages, (ToolSpec("9lives"),)), False)
    name = made["tools"][0]["functionDeclarations"][0]["name"]
    assert made["contents"][1]["parts"][0]["functionCall"]["name"] == name
    assert made["contents"][2]["parts"][0]["functionResponse"]["name"] == name
    assert name != "9lives"
    assert decode(response({"functionCall": {"name": name}}), talk).calls[0].name == "9lives"


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        (NEW, "low", {"thinkingLevel": "LOW"}),
        (NEW, "none", {"thinkingLevel": "MINIMAL"}),
        (OLD, "none", {"thinkingBudget": 0}),
        (OLD, "low", {"thinkingBudget": 1024}),
        (OLD, "2000", {"thinkingBudget": 2000}),
        (OLD, "odd", {"thinkingLevel": "ODD"}),
        ("gemini-flash-latest", "high", {"thinkingLevel": "HIGH"}),
    ],
)
def test_how_much_to_think(model: str, effort: str, thinking: Any) -> None:
    made = body(HI, model=model, effort=effort, temperature=0.5, max_tokens=99)
    assert made["generationConfig"] == {"maxOutputTokens": 99, "temperature": 0.5, "thinkingConfig": thinking}


# --- properties of requests -------------------------------------------------------------------------

OPAQUES = st.builds(
    Opaque,
    st.sampled_from(["google", "other"]),
    st.sampled_from([NEW, OLD]),
    st.sampled_from(
        [
            {"blocks": [{"text": "so", "thought": True}, {"text": "", "thoughtSignature": "eA=="}]},
            {"blocks": [{"text": "so", "thoughtSignature": "eA=="}, {"call": 0, "thoughtSignature": "eQ=="}]},
            {"blocks": [{"call": 0, "thoughtSignature": "eQ=="}, {"call": 1}]},
            {"blocks": "x"},
            [],
        ]
    ),
)
MODELS = pytest.mark.parametrize("model", [NEW, OLD])
HISTORIES = transcripts(OPAQUES)


@pytest.mark.slow
@MODELS
@given(HISTORIES)
def test_every_request_keeps_every_rule(model: str, messages: list[Message]) -> None:
    for end in cuts(messages):
        made = Talk(target(model)).request(asking(messages[:end]), False)
        assert check(made, FORMAT, target(model).profile) == []


@pytest.mark.slow
@MODELS
@given(HISTORIES)
def test_a_request_begins_with_the_one_before(model: str, messages: list[Message]) -> None:
    talk, before, sent = Talk(target(model)), "", 0
    for end in cuts(messages):
        if all(isinstance(message, System) for message in messages[:end]):
            continue
        made: Any = talk.request(asking(messages[:end], new_from=sent), False)
        text = json.dumps(made)
        assert text == json.dumps(Talk(target(model)).request(asking(messages[:end]), False))
        assert text.startswith(before)
        after = messages[end] if end < len(messages) else None
        is_answered = isinstance(after, Assistant) and (after.text.strip() or after.calls)
        if not is_answered and made["contents"][-1] in (user(CONTINUE), user(START)):
            made["contents"] = made["contents"][:-1]  # a user spoke, so nobody had to in the user's place
        before, sent = json.dumps(made).rstrip("]}"), end


@pytest.mark.slow
@MODELS
@given(HISTORIES, st.data())
def test_a_request_after_a_cut_is_as_if_the_rest_had_never_been(model: str, messages: list[Message], data: Any) -> None:
    talk = Talk(target(model))
    talk.request(asking(messages), False)
    kept = data.draw(st.integers(0, len(messages)))
    other = [*messages[:kept], HI]
    again = talk.request(asking(other, new_from=kept), False)
    assert again == Talk(target(model)).request(asking(other), False)


def facts(messages: list[Message]) -> list[Any]:
    """Texts, calls and results of a transcript, as they have to come through."""
    found: list[Any] = []
    for message in messages:
        match message:
            case User(parts):
                found += [("user", part.text) for part in parts if isinstance(part, Text) and part.text.strip()]
            case Note(text):
                found.append(("user", NOTE_PREFIX + text))
            case Assistant(text, made):
                found += [("assistant", text)] if text.strip() else []
                found += [("call", call.name, json.loads(call.arguments)) for call in made]
            case Result(_, name, outcome, parts):
                found.append(("result", name, outcome != "ok", [one.text for one in parts if isinstance(one, Text)]))
    return found


def facts_of(made: Any, talk: Talk) -> list[Any]:
    found: list[Any] = []
    for index, message in enumerate(made["contents"]):
        turn = FORMAT.unfold(message, f"contents[{index}]")
        for block in turn.blocks:
            name = talk._encoder.names.own(block.name)
            if block.kind == "call":
                found.append(("call", name, block.arguments))
            elif block.kind == "result":
                found.append(("result", name, block.is_error, block.text))
            elif (
                block.kind == "text" and block.text not in (START, CONTINUE) and not block.text.endswith(", not shown)")
            ):
                found.append((turn.role, block.text))
    return found


@pytest.mark.slow
@MODELS
@given(transcripts())
def test_texts_calls_and_results_come_through_in_order(model: str, messages: list[Message]) -> None:
    talk = Talk(target(model))
    made = talk.request(asking(messages), False)
    expected, got = facts(messages), facts_of(made, talk)
    assert len(expected) == len(got)
    for one, other in zip(expected, got, strict=True):
        assert one[:-1] == other[:-1]
        if one[0] == "result":
            assert all(text in other[-1] for text in one[-1])
        else:
            assert one[-1] == other[-1]


@pytest.mark.slow
@MODELS
@given(HISTORIES)
def test_the_sdk_knows_every_field(model: str, messages: list[Message]) -> None:
    made: Any = Talk(target(model)).request(asking(messages), False)
    for content in made["contents"]:
        content = json.loads(json.dumps(content).replace(DUMMY, "eHh4eA=="))  # the SDK's type wants base64 there
        types.Content.model_validate(content)
    for tool in made["tools"]:
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(made["toolConfig"])
    assert len(made["tools"][0]["functionDeclarations"]) == len(SPECS)


# --- responses --------------------------------------------------------------------------------------


def test_a_plain_answer() -> None:
    usage = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 7,
        "cachedContentTokenCount": 64,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 147,
    }
    reply = decode(response({"text": "18"}, {"text": "C"}, usageMetadata=usage, modelVersion="gemini-3-pro-001"))
    assert reply == Reply("18C", usage=Usage(107, 40, 64, None, 30), model="gemini-3-pro-001")


def test_calls_with_and_without_ids() -> None:
    reply = decode(
        response(
            {"text": "Let me look."},
            {"functionCall": {"id": "x1", "name": "f", "args": {"b": 1, "a": "ä"}}},
            {"functionCall": {"name": "g"}},
            {"function_call": {"id": 7, "name": "g", "args": "{}"}},
        )
    )
    assert reply.calls == (ToolCall("x1", "f", '{"b": 1, "a": "ä"}'), ToolCall("", "g", "{}"), ToolCall("7", "g", "{}"))
    assert (reply.text, reply.stop, reply.opaque) == ("Let me look.", "tool_calls", ())


def test_signed_parts_are_kept_with_the_calls_by_position() -> None:
    reply = decode(
        response(
            {"text": "Hm.", "thought": True},
            {"functionCall": {"id": "x1", "name": "f", "args": {}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "x2", "name": "f", "args": {}}},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"text": ""},
            {"thoughtSignature": "bGF0ZQ=="},
        )
    )
    assert reply.text == ""
    assert reply.opaque == signed(
        [
            {"text": "Hm.", "thought": True},
            {"call": 0, "thoughtSignature": "c2ln"},
            {"call": 1},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"text": "", "thoughtSignature": "bGF0ZQ=="},
        ]
    )


def test_what_was_decoded_goes_back_as_it_came() -> None:
    parts = [
        {"text": "Hm.", "thought": True},
        {"functionCall": {"id": "x1", "name": "f", "args": {"x": 1}}, "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "bGF0ZQ=="},
    ]
    reply = decode(response(*parts))
    assert contents(HI, Assistant(reply.text, reply.calls, reply.opaque))[1]["parts"] == parts


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "length"),
        *((reason, "content_filter") for reason in ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "SPII")),
        *((reason, "content_filter") for reason in ("PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR")),
        *((reason, "malformed_call") for reason in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")),
        *((reason, "malformed_call") for reason in ("TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE")),
        ("MALFORMED_RESPONSE", "malformed_call"),
        ("CONTINUATION", "pause"),
        ("FINISH_REASON_UNSPECIFIED", "unknown"),
        ("SOMETHING_NEW", "unknown"),
        (7, "unknown"),
        ({}, "end"),
    ],
)
def test_why_a_reply_ended(reason: Any, stop: str) -> None:
    reply = decode({"candidates": [{"finishReason": reason}]})
    assert reply.stop == stop
    assert bool(reply.remarks) == (stop == "unknown")


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
def test_a_cut_or_filtered_reply_is_that_also_with_calls(reason: str) -> None:
    reply = decode(response({"functionCall": {"name": "f"}}, finish=reason))
    assert reply.calls
    assert reply.stop != "tool_calls"


def test_what_the_service_says_about_a_bad_call_is_kept() -> None:
    reply = decode({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(f(1))"}]})
    assert reply.remarks == ("MALFORMED_FUNCTION_CALL: print(f(1))",)


@pytest.mark.parametrize(
    ("reason", "kind", "is_retryable"),
    [
        ("OTHER", ProviderError, True),
        ("ESCALATION", ProviderError, True),
        ("PUP_LIMITED_DISABLED", AuthRejected, False),
    ],
)
def test_an_ending_that_says_that_the_service_failed(reason: str, kind: Any, is_retryable: bool) -> None:
    with pytest.raises(kind, match=reason) as caught:
        decode(response({"text": "x"}, finish=reason))
    assert caught.value.is_retryable is is_retryable


def test_a_blocked_prompt() -> None:
    reply = decode({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}})
    assert (reply.stop, reply.usage) == ("content_filter", Usage(5))
    assert reply.remarks == ("the prompt was blocked: SAFETY",)


@pytest.mark.parametrize(
    "data", [None, [], {}, {"candidates": []}, {"candidates": [1]}, {"candidates": [{"content": {"parts": [1]}}]}]
)
def test_what_is_no_response(data: Any) -> None:
    with pytest.raises(MalformedReply):
        decode(data)


def test_an_error_under_a_good_status() -> None:
    with pytest.raises(Overloaded, match="overloaded"):
        decode([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}])


def test_a_stream_that_came_as_a_list_of_its_chunks() -> None:
    half = response({"text": "It is"}, finish=None)
    assert decode([half, response({"text": " 5."})]).text == "It is 5."
    with pytest.raises(ConnectionFailed):
        decode([half, half])


# --- whatever comes ---------------------------------------------------------------------------------


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields) | JSON


PATHS = st.sampled_from(["$.a", "$.a.b", "$.a[0]", "$.a[0].b", "$.a[9]", "$['x y']", "$", "", "$.", "a"])
PIECES = st.lists(objects(jsonPath=PATHS, stringValue=JSON, numberValue=JSON, willContinue=JSON), max_size=2)
CALLS = objects(
    id=JSON, name=st.sampled_from(["f", "g"]) | JSON, args=JSON, partialArgs=PIECES | JSON, willContinue=st.booleans()
)
PARTS = objects(
    text=st.text(max_size=3) | JSON,
    thought=st.booleans() | JSON,
    thoughtSignature=st.text(max_size=3) | JSON,
    functionCall=CALLS,
    function_call=CALLS,
    functionResponse=objects(id=JSON, name=JSON, response=objects(output=JSON, error=JSON), parts=JSON),
    inlineData=objects(mimeType=st.sampled_from(["image/png", "x"]), data=JSON),
    fileData=objects(mimeType=JSON, fileUri=JSON),
    call=JSON,
)
CONTENTS = objects(
    role=st.sampled_from(["user", "model", "assistant", "system", ""]) | JSON, parts=st.lists(PARTS, max_size=3)
)
USAGE = objects(promptTokenCount=JSON, candidatesTokenCount=JSON, thoughtsTokenCount=JSON, cachedContentTokenCount=JSON)
FINISH = st.sampled_from(["STOP", "MAX_TOKENS", "OTHER", "ODD"]) | JSON
RESPONSES = objects(
    candidates=st.lists(objects(content=CONTENTS, finishReason=FINISH, finishMessage=JSON, index=JSON), max_size=2)
    | JSON,
    usageMetadata=USAGE,
    modelVersion=JSON,
    promptFeedback=objects(blockReason=JSON),
    error=st.none() | JSON,
)


def is_sound(talk: Talk, reply: Reply) -> None:
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)
    if not any(call.arguments == "" for call in reply.calls):
        talk.request(asking([HI, Assistant(reply.text, reply.calls, reply.opaque)]), False)


@pytest.mark.slow
@given(RESPONSES)
def test_any_json_is_a_reply_or_an_error(data: Any) -> None:
    talk = Talk(target())
    try:
        is_sound(talk, talk.decode(data))
    except RemoteError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.slow
@given(st.lists(RESPONSES, max_size=4))
def test_any_stream_is_a_reply_or_an_error(chunks: list[Any]) -> None:
    talk = Talk(target())
    decoder = talk.decoder()
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        is_sound(talk, decoder.finish())
    except RemoteError as error:
        assert str(error)  # noqa: PT017


def bomb(depth: int = 3000) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("part", [{"functionCall": {"name": "f", "args": {"x": bomb()}}}, {"odd": bomb()}])
def test_a_reply_that_is_nested_too_deeply(part: Any) -> None:
    with pytest.raises(MalformedReply, match="deep"):
        decode(response(part))
    decoder = Talk(target()).decoder()
    decoder.feed(response(part))
    with pytest.raises(MalformedReply, match="deep"):
        decoder.finish()


# --- bodies -----------------------------------------------------------------------------------------


@given(CONTENTS)
def test_what_was_unfolded_folds_to_the_same(content: Any) -> None:
    # as text: a number that is none equals nothing, not even itself
    assert json.dumps(FORMAT.fold(FORMAT.unfold(content, "contents[0]"))) == json.dumps(content)


@given(objects(systemInstruction=CONTENTS, tools=JSON, contents=JSON))
def test_a_frame_folds_to_the_same(frame: Any) -> None:
    made = frame if isinstance(frame, dict) else {}
    found = FORMAT.frame(made)
    assert json.dumps(FORMAT.fold_frame(made, found.system, found.tools)) == json.dumps(made)
