"""Gemini: streamed replies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenlines.core.transcript import Opaque, Reply, ToolCall, Usage
from tenlines.errors import ConnectionFailed, MalformedReply, Overloaded, RateLimited
from tenlines.wire.format import Piece
from tenlines.wire.gemini.format import FORMAT
from tenlines.wire.profile import Target

MODEL = "gemini-3-pro-preview"


def decoder() -> Any:
    return FORMAT.talk(Target(profile=FORMAT.profile({"model": MODEL}), model=MODEL)).decoder()


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> Any:
    candidate: Any = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


def assembled(*chunks: Any) -> Reply:
    one = decoder()
    for data in chunks:
        one.feed(data)
    reply: Reply = one.finish()
    return reply


def test_text_is_joined_and_the_last_usage_counts() -> None:
    one = decoder()
    assert one.feed(
        chunk({"text": "It is "}, usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 2})
    ) == Piece("It is ", usage=Usage(9, 2))
    assert one.feed(chunk({"text": "Hm", "thought": True})) == Piece("", "Hm")
    assert one.feed(chunk({"text": "18C."}, finish="STOP")) == Piece("18C.")
    one.feed({"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 1}})
    reply = one.finish()
    assert (reply.text, reply.stop, reply.usage) == ("It is 18C.", "end", Usage(9, 6, None, None, 1))


def test_a_signature_in_a_late_part_without_text_is_kept_in_a_part_of_its_own() -> None:
    reply = assembled(
        chunk({"text": "I ", "thought": True}),
        chunk({"text": "think", "thought": True}),
        chunk({"text": "18"}),
        chunk({"text": "C"}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
        chunk({"text": ""}),
    )
    assert reply.text == "18C"
    blocks = [{"text": "I think", "thought": True}, {"text": "18C"}, {"text": "", "thoughtSignature": "c2ln"}]
    assert reply.opaque == (Opaque("google", MODEL, {"blocks": blocks}),)


def test_a_signed_text_is_not_joined_with_what_comes_behind_it() -> None:
    reply = assembled(
        chunk({"text": "a", "thoughtSignature": "x"}), chunk({"text": "b"}), chunk({"text": "c"}, finish="STOP")
    )
    payload: Any = reply.opaque[0].payload
    assert payload == {"blocks": [{"text": "a", "thoughtSignature": "x"}, {"text": "bc"}]}


def test_calls_come_whole_also_two_of_one_name() -> None:
    reply = assembled(
        chunk({"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "c2ln"}),
        chunk({"functionCall": {"name": "f", "args": {"x": 2}}}),
        chunk(finish="STOP"),
    )
    assert reply.calls == (ToolCall("", "f", '{"x": 1}'), ToolCall("", "f", '{"x": 2}'))
    assert reply.stop == "tool_calls"


def piece(path: str, **value: Any) -> Any:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


def test_arguments_that_come_piece_by_piece() -> None:
    reply = assembled(
        chunk({"functionCall": {"id": "x1", "name": "f", "willContinue": True}, "thoughtSignature": "c2ln"}),
        chunk(piece("$.city", stringValue="Pa", willContinue=True)),
        chunk(piece("$.city", stringValue="r", willContinue=True), piece("$.city", stringValue="is")),
        chunk(piece("$.days[0].n", numberValue=2.0), piece("$.days[1]['a b']", boolValue=True)),
        chunk(piece("$.days[0].half", numberValue=0.5), piece("$.note", nullValue="NULL_VALUE")),
        chunk(
            piece("$.city2", stringValue="", willContinue=True), piece("$.city2", stringValue="Oslo", willContinue=True)
        ),
        chunk({"functionCall": {}}),
        chunk({"functionCall": {"name": "g", "args": {}}}, finish="STOP"),
    )
    first, second = reply.calls
    assert (first.id, first.name, second) == ("x1", "f", ToolCall("", "g", "{}"))
    assert json.loads(first.arguments) == {
        "city": "Paris",
        "days": [{"n": 2, "half": 0.5}, {"a b": True}],
        "note": None,
        "city2": "Oslo",
    }
    assert list(json.loads(first.arguments)) == ["city", "days", "note", "city2"]
    payload: Any = reply.opaque[0].payload
    assert payload == {"blocks": [{"call": 0, "thoughtSignature": "c2ln"}, {"call": 1}]}


@pytest.mark.parametrize("path", ["", "$", "city", "$.a[", "$.a[5]", "$[0]", "$" + ".a" * 65])
def test_a_path_that_leads_nowhere(path: str) -> None:
    one = decoder()
    one.feed(chunk({"functionCall": {"name": "f", "willContinue": True}}))
    with pytest.raises(MalformedReply):
        one.feed(chunk(piece(path, stringValue="x")))


def test_a_call_that_was_never_finished_is_not_run() -> None:
    begun = chunk({"functionCall": {"name": "f", "willContinue": True}}, piece("$.a", stringValue="x"))
    with pytest.raises(MalformedReply, match="middle of a call"):
        assembled(begun, chunk(finish="STOP"))
    cut = assembled(begun, chunk(finish="MAX_TOKENS"))
    assert (cut.stop, cut.calls) == ("length", (ToolCall("", "f", '{"a": "x"}'),))


def test_a_stream_that_was_cut() -> None:
    with pytest.raises(ConnectionFailed):
        assembled(chunk({"text": "It is"}))
    with pytest.raises(ConnectionFailed):
        assembled()


def test_a_prompt_that_was_blocked() -> None:
    reply = assembled({"promptFeedback": {"blockReason": "OTHER"}}, {"usageMetadata": {"promptTokenCount": 3}})
    assert (reply.stop, reply.usage) == ("content_filter", Usage(3))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, Overloaded),
        ({"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}, RateLimited),
    ],
)
def test_an_error_in_the_stream_voids_what_came_before(error: Any, kind: Any) -> None:
    one = decoder()
    one.feed(chunk({"text": "It is"}))
    with pytest.raises(kind):
        one.feed({"error": error})


def test_other_candidates_are_not_ours() -> None:
    other = chunk({"text": "no"}, finish="STOP")
    other["candidates"][0]["index"] = 1
    assert assembled(chunk({"text": "yes"}), other, chunk(finish="STOP")).text == "yes"


def test_a_long_argument_is_assembled_in_linear_time() -> None:
    one = decoder()
    one.feed(chunk({"functionCall": {"name": "f", "willContinue": True}}))
    data = chunk(piece("$.text", stringValue="x" * 50, willContinue=True))
    for _ in range(4000):
        one.feed(data)
    one.feed(chunk({"functionCall": {}}, finish="STOP"))
    assert len(json.loads(one.finish().calls[0].arguments)["text"]) == 200_000
