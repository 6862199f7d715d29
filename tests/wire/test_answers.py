"""The schema of an answer in the requests of every format: where it goes, in what dialect, that it stays the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as MessagesRequest
from judges import types
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatRequest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponsesRequest
from transcripts import asking

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, JsonObject, Message, Result, Text, ToolCall, User
from tenlines.wire.answers import held, named, native
from tenlines.wire.checking import check
from tenlines.wire.constrained import StreamDecoder as ConstrainedDecoder
from tenlines.wire.constrained import response_format
from tenlines.wire.formats import FORMATS
from tenlines.wire.guard import GuardedTalk
from tenlines.wire.profile import Target
from tenlines.wire.schemas import problems

CLOSED: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["city", "tags"],
    "additionalProperties": False,
}
OPTIONAL: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "note": {"type": "string", "default": ""}},
    "required": ["city"],
}
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]})


def finish(schema: JsonObject = CLOSED) -> ToolSpec:
    return ToolSpec("finish", "The answer.", schema, read_only=True, final=True, answer="object")


def ask(*messages: Message, to: str, model: str, specs: tuple[ToolSpec, ...], **context: str) -> dict[str, Any]:
    """The body of a request, past the guard; the guard has nothing to repair."""
    format = FORMATS[to]
    profile = format.profile({"model": model, **context})
    target = Target(profile=profile, model=model, max_tokens=100)
    said = messages or (User((Text("hi"),)),)
    plain = format.talk(target).request(asking(said, specs), stream=False)
    body = GuardedTalk(format.talk(target), format, target).request(asking(said, specs), stream=False)
    assert body == plain, "the guard repaired it"
    assert [one for one in check(body, format, profile) if one.severity == "error"] == []
    return json.loads(json.dumps(body))  # type: ignore[no-any-return]  # JSON objects decode to dicts


BESIDE = [("openai_chat", "gpt-5-mini"), ("openai_responses", "gpt-5"), ("anthropic", "claude-sonnet-5")]
BESIDE += [("gemini", "gemini-3-pro")]
ALONE = [("mistral", "mistral-large-latest"), ("cohere", "command-a-03-2025"), ("ollama", "qwen3")]
NEVER = [("bedrock", "anthropic.claude-sonnet-5"), ("gemini", "gemini-2.5-pro"), ("anthropic", "claude-3-7-sonnet")]
NEVER += [("openai_chat", "gpt-4-turbo"), ("openai_chat", ""), ("anthropic", "")]
FIELDS = ("response_format", "text", "output_config", "format")


def schema_in(body: dict[str, Any]) -> Any:
    """What a body holds replies in words to; None for nothing."""
    config = body.get("generationConfig") or {}
    if "responseJsonSchema" in config:
        assert config["responseMimeType"] == "application/json"
        return config["responseJsonSchema"]
    place = next((body[field] for field in FIELDS if field in body), None)
    for inner in ("format", "json_schema", "schema"):
        if isinstance(place, dict) and isinstance(place.get(inner), dict) and "properties" not in place:
            place = place[inner]
    return place


def tools_in(body: dict[str, Any]) -> int:
    tools = body.get("tools") or []
    return sum(len(one.get("functionDeclarations", [one])) for one in tools)


@pytest.mark.parametrize(("to", "model"), BESIDE)
def test_where_both_are_taken_the_schema_goes_beside_the_tools(to: str, model: str) -> None:
    body = ask(to=to, model=model, specs=(LOOK, finish()))
    assert schema_in(body)["properties"].keys() == {"city", "tags"}
    assert tools_in(body) == 2


@pytest.mark.parametrize(("to", "model"), ALONE)
def test_where_one_excludes_the_other_the_tool_is_all_there_is_beside_others(to: str, model: str) -> None:
    body = ask(to=to, model=model, specs=(LOOK, finish()))
    assert schema_in(body) is None
    assert tools_in(body) == 2


@pytest.mark.parametrize(("to", "model"), ALONE)
def test_and_the_schema_goes_in_the_place_of_the_tool_where_that_is_the_only_one(to: str, model: str) -> None:
    exchange = (
        Assistant("", (ToolCall("abcdefghi", "finish", "{}"),)),
        Result("abcdefghi", "finish", "invalid_arguments", (Text("city is missing"),)),
    )
    for said in ((), (User((Text("hi"),)), *exchange)):
        body = ask(*said, to=to, model=model, specs=(finish(),))
        assert schema_in(body)["properties"].keys() == {"city", "tags"}
        assert tools_in(body) == 0
        assert "tool_choice" not in body


@pytest.mark.parametrize("server", ["vllm", "llama.cpp"])
def test_servers_of_ones_own_make_a_grammar_of_it(server: str) -> None:
    rich: JsonObject = {**CLOSED, "properties": {"city": {"type": "string", "pattern": "(?i)x", "format": "date"}}}
    body = ask(to="openai_chat", model="m", specs=(finish(rich),), server=server)
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {"city": {"type": "string"}}
    assert schema_in(ask(to="openai_chat", model="m", specs=(LOOK, finish()), server=server)) is None


@pytest.mark.parametrize("server", ["compatible", "sglang", "groq", "deepseek", "openrouter", "ollama", "xai"])
def test_servers_of_which_it_is_not_known_get_the_tool_alone(server: str) -> None:
    body = ask(to="openai_chat", model="m", specs=(finish(),), server=server)
    assert schema_in(body) is None
    assert tools_in(body) == 1


@pytest.mark.parametrize(("to", "model"), NEVER)
def test_where_there_is_no_such_thing_the_tool_is_all_there_is(to: str, model: str) -> None:
    for specs in ((finish(),), (LOOK, finish())):
        body = ask(to=to, model=model, specs=specs)
        assert schema_in(body) is None


@pytest.mark.parametrize("to", FORMATS)
def test_a_run_whose_answer_is_text_has_no_schema(to: str) -> None:
    assert schema_in(ask(to=to, model="gpt-5" if to.startswith("openai") else "", specs=(LOOK,))) is None


@pytest.mark.parametrize(
    ("to", "model", "of"),
    [
        ("openai_chat", "gpt-5-mini", ChatRequest),
        ("openai_responses", "gpt-5", ResponsesRequest),
        ("anthropic", "claude-sonnet-5", MessagesRequest),
    ],
)
def test_the_types_of_the_providers_own_packages_take_it(to: str, model: str, of: Any) -> None:
    for schema in (CLOSED, OPTIONAL):
        assert types(of)(ask(to=to, model=model, specs=(LOOK, finish(schema)))) == ""


@pytest.mark.parametrize(("to", "model"), [*BESIDE, *ALONE])
def test_the_schema_is_the_same_in_every_request(to: str, model: str) -> None:
    format = FORMATS[to]
    talk = format.talk(Target(profile=format.profile({"model": model}), model=model, max_tokens=100))
    specs, said = (finish(),), [User((Text("hi"),))]
    seen = set[str]()
    for text in ("one", "two", "three"):
        body = talk.request(asking(said, specs), stream=False)
        seen.add(json.dumps([schema_in(json.loads(json.dumps(body))), body.get("tools")]))
        said += [Assistant(text), User((Text("more"),))]
    assert len(seen) == 1


# --- dialects ---------------------------------------------------------------------------------------


def test_strict_is_what_requires_everything_and_can_be_said_in_full() -> None:
    assert named(finish()) == {"name": "finish", "schema": CLOSED, "strict": True}
    loose = named(finish(OPTIONAL))
    assert loose["strict"] is False, "strictly, note would be required, and come as null"
    bounded: JsonObject = {**CLOSED, "properties": {"city": {"type": "string", "minLength": 3, "not": {}}}}
    assert named(finish({**bounded, "required": ["city"]}))["strict"] is False


def test_what_a_dialect_cannot_say_in_full_stays_out() -> None:
    odd: JsonObject = {
        "type": "object",
        "properties": {"n": {"type": "integer", "not": {"const": 3}}},
        "required": ["n"],
    }
    assert held(odd, "anthropic_strict") is None
    body = ask(to="anthropic", model="claude-sonnet-5", specs=(finish(odd),))
    assert schema_in(body) is None
    assert tools_in(body) == 1


def test_a_schema_with_more_than_providers_take_stays_out() -> None:
    many: JsonObject = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(25)}}
    assert held(many, "anthropic_strict") is None


@pytest.mark.parametrize("schema", [CLOSED, OPTIONAL])
def test_what_goes_to_anthropic_is_of_its_strict_dialect(schema: JsonObject) -> None:
    body = ask(to="anthropic", model="claude-sonnet-5", specs=(LOOK, finish(schema)))
    assert problems(schema_in(body), "anthropic_strict") == []


def test_effort_and_schema_share_their_field() -> None:
    format = FORMATS["anthropic"]
    profile = format.profile({"model": "claude-sonnet-5"})
    talk = format.talk(Target(profile=profile, model="claude-sonnet-5", max_tokens=9_000, effort="low"))
    body: Any = talk.request(asking([User((Text("hi"),))], (finish(),)), stream=False)
    assert (body["output_config"]["effort"], body["output_config"]["format"]["type"]) == ("low", "json_schema")


def test_only_one_tool_takes_the_answer() -> None:
    openai = FORMATS["openai_chat"].profile({"model": "gpt-5"})
    said = [User((Text("hi"),))]
    assert native(asking(said, (LOOK, finish())), openai).answer == finish()
    assert native(asking(said, (LOOK,)), openai) == (None, (LOOK,))


@pytest.mark.parametrize(("to", "model"), [*BESIDE, *ALONE])
def test_where_nothing_may_be_called_words_are_words(to: str, model: str) -> None:
    format = FORMATS[to]
    talk = format.talk(Target(profile=format.profile({"model": model}), model=model, max_tokens=100))
    body = talk.request(asking([User((Text("Sum up."),))], (finish(),), "none"), stream=False)
    assert schema_in(json.loads(json.dumps(body))) is None


# --- replies held to a schema by a server of one's own ----------------------------------------------------


def test_the_grammar_offers_the_call_in_the_place_of_words() -> None:
    def forms(choice: str) -> list[Any]:
        schema: Any = response_format((LOOK, finish()), choice)["json_schema"]
        return schema["schema"].get("anyOf", [schema["schema"]])  # type: ignore[no-any-return]  # as above

    assert [form["properties"]["tool"]["const"] for form in forms("auto")] == ["look", "finish"]
    assert [form["properties"]["tool"]["const"] for form in forms("finish")] == ["finish"]
    assert list(forms("none")[0]["properties"]) == ["final_answer"], "a summary is words"


# --- what is written of an answer, while it is ------------------------------------------------------------

ARGUMENTS = '{"city": "Oslo \\"}\\"", "tags": ["a{"]}'
PIECES = (ARGUMENTS[:9], ARGUMENTS[9:20], ARGUMENTS[20:])


def _chat(piece: str, first: bool) -> list[Any]:
    head = {"index": 0, "id": "c", "function": {"name": "finish", "arguments": piece}}
    call = head if first else {"index": 0, "function": {"arguments": piece}}
    return [{"choices": [{"delta": {"tool_calls": [call]}}]}]


def _anthropic(piece: str, first: bool) -> list[Any]:
    block = {"type": "tool_use", "id": "c", "name": "finish", "input": {}}
    start = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    delta = {"type": "input_json_delta", "partial_json": piece}
    return [*(start if first else []), {"type": "content_block_delta", "index": 0, "delta": delta}]


def _responses(piece: str, first: bool) -> list[Any]:
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "finish", "arguments": ""}
    start = [{"type": "response.output_item.added", "output_index": 0, "item": item}] if first else []
    delta = {"type": "response.function_call_arguments.delta", "item_id": "f", "output_index": 0, "delta": piece}
    return [*start, delta]


def _bedrock(piece: str, first: bool) -> list[Any]:
    start = {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "finish"}}}}
    delta = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": piece}}}}
    return [start, delta] if first else [delta]


def _cohere(piece: str, first: bool) -> list[Any]:
    function = {"name": "finish", "arguments": piece} if first else {"arguments": piece}
    call = {"id": "c", "type": "function", "function": function} if first else {"function": function}
    kind = "tool-call-start" if first else "tool-call-delta"
    return [{"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}}}]


STREAMS = {
    "openai_chat": _chat,
    "mistral": _chat,
    "anthropic": _anthropic,
    "openai_responses": _responses,
    "bedrock": _bedrock,
    "cohere": _cohere,
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_arguments_of_a_call_are_seen_while_they_are_written(name: str) -> None:
    format = FORMATS[name]
    decoder = format.talk(Target(profile=format.profile(None), model="m")).decoder()
    grown = ""
    for number, piece in enumerate(PIECES):
        for chunk in STREAMS[name](piece, not number):
            for written in decoder.feed(chunk).written:
                assert written.name == "finish"
                grown += written.text
        assert grown == "".join(PIECES[: number + 1])


def test_where_calls_come_whole_they_are_seen_whole() -> None:
    call = {"name": "finish", "args": {"city": "Oslo"}}
    gemini: Any = {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}
    ollama: Any = {"message": {"tool_calls": [{"function": {"name": "finish", "arguments": {"city": "Oslo"}}}]}}
    for name, chunk in (("gemini", gemini), ("ollama", ollama)):
        format = FORMATS[name]
        (written,) = format.talk(Target(profile=format.profile(None), model="m")).decoder().feed(chunk).written
        assert (written.name, json.loads(written.text)) == ("finish", {"city": "Oslo"})


@pytest.mark.parametrize("size", [1, 3, 50, 500])
def test_of_a_constrained_reply_the_arguments_are_seen_and_nothing_around_them(size: int) -> None:
    text = f' {{ "tool" : "finish", "arguments": {ARGUMENTS}}} '
    decoder = ConstrainedDecoder("p", "m")
    grown = ""
    for at in range(0, len(text), size):
        piece = decoder.feed({"choices": [{"delta": {"content": text[at : at + size]}}]})
        assert not piece.text
        grown += "".join(one.text for one in piece.written)
    assert grown == ARGUMENTS
