"""Responses: summaries that the server makes of a conversation by itself."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from protocol_vectors import vectors
from pydantic import TypeAdapter
from transcripts import asking

from tenlines.core.transcript import Assistant, Message, Opaque, Reply, Result, Text, ToolCall, User
from tenlines.wire.checking import check
from tenlines.wire.openai_responses.decoding import Reading, decode_response
from tenlines.wire.openai_responses.format import FORMAT
from tenlines.wire.openai_responses.stream import StreamDecoder
from tenlines.wire.profile import Target

MODEL = "gpt-5.6"
PROFILE = FORMAT.profile({"server": "openai"})
SUMMARY = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABsummary"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABthought"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
SPOKEN = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So.", "annotations": []}],
}
ASKED = User((Text("Hi"),))

BODY: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsNonStreaming)
ITEM: TypeAdapter[Any] = TypeAdapter(ResponseOutputItem)
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def response(*output: Any) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "model": MODEL, "status": "completed"}
    return {**head, "output": list(output), "usage": {"input_tokens": 5, "output_tokens": 2}}


def read(data: dict[str, Any]) -> Reply:
    return decode_response(data, Reading("openai", MODEL))


def streamed(data: dict[str, Any], *, lists: bool = True) -> Reply:
    """The same reply as its events; at its end its items are listed once more, or not."""
    decoder = StreamDecoder(Reading("openai", MODEL))
    events: list[Any] = []
    for index, item in enumerate(data["output"]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "compaction":
            compacting = {"type": "response.compaction.compacting", "item_id": item["id"]}
            events.append({**compacting, "output_index": index})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    for number, event in enumerate(events):
        EVENT.validate_python({**event, "sequence_number": number})
        decoder.feed(event)
    decoder.feed({"type": "response.completed", "response": data if lists else {**data, "output": []}})
    return decoder.finish()


def unlisted(data: dict[str, Any]) -> Reply:
    return streamed(data, lists=False)


WAYS = pytest.mark.parametrize("way", [read, streamed, unlisted], ids=["whole", "streamed", "unlisted"])


def said(reply: Reply) -> Assistant:
    return Assistant(reply.text, reply.calls, reply.opaque)


def body_of(messages: list[Message], compact_at: int | None = 100_000, server: str = "openai") -> dict[str, Any]:
    to = Target(profile=FORMAT.profile({"server": server}), model=MODEL, compact_at=compact_at)
    return FORMAT.talk(to).request(asking(messages), stream=False)


def items(messages: list[Message], server: str = "openai") -> list[Any]:
    """The items of a request that nothing is wrong with."""
    body = body_of(messages, server=server)
    BODY.validate_python(body)
    assert not check(body, FORMAT, PROFILE)
    found: list[Any] = body["input"]
    return found


# --- asking for it ------------------------------------------------------------------------------------


def test_the_threshold_goes_with_every_request_as_the_official_package_declares_it() -> None:
    body = body_of([ASKED])
    assert body["context_management"] == [{"type": "compaction", "compact_threshold": 100_000}]
    BODY.validate_python(body)
    assert list(body)[-1] == "input"
    assert "context_management" not in body_of([ASKED], compact_at=None)


@pytest.mark.parametrize(("server", "can"), [("openai", True), ("azure", True), ("vllm", False), ("deepseek", False)])
def test_which_servers_can(server: str, can: bool) -> None:
    assert FORMAT.profile({"server": server}).has("compacts") is can


# --- what comes back ----------------------------------------------------------------------------------


@WAYS
def test_it_is_kept_as_it_came_and_goes_back_in_its_place(way: Any) -> None:
    ITEM.validate_python(SUMMARY)
    reply = way(response(SUMMARY, THOUGHT, SPOKEN, CALL))
    assert (reply.text, reply.stop, reply.remarks) == ("So.", "tool_calls", ())
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    answered = Result("call_1", "f", "ok", (Text("1"),))
    found = items([ASKED, Assistant("Yes?"), ASKED, said(reply), answered])
    assert found[:3] == [asked, {"type": "message", "role": "assistant", "content": "Yes?"}, asked]
    assert found[3:] == [SUMMARY, THOUGHT, SPOKEN, CALL, {**found[-1], "call_id": "call_1", "output": "1"}]


@WAYS
def test_a_reply_of_nothing_else_is_a_pause(way: Any) -> None:
    reply = way(response(SUMMARY))
    assert (reply.text, reply.stop) == ("", "pause")
    assert items([ASKED, said(reply)])[1:] == [SUMMARY]
    assert [one.get("role", one["type"]) for one in items([ASKED, said(reply), Assistant("Done."), ASKED])] == [
        "user",
        "compaction",
        "assistant",
        "user",
    ]


def test_one_that_came_in_part_never_goes_back() -> None:
    part = {"type": "compaction", "id": "cmp_1"}
    assert read(response(part)).stop == "end"
    assert [one["type"] for one in items([ASKED, said(read(response(part, SPOKEN)))])] == ["message", "message"]
    decoder = StreamDecoder(Reading("openai", MODEL))
    decoder.feed({"type": "response.output_item.added", "output_index": 0, "item": SUMMARY})
    decoder.feed({"type": "response.output_item.done", "output_index": 1, "item": SPOKEN})
    decoder.feed({"type": "response.completed", "response": response()})
    assert [one["type"] for one in items([ASKED, said(decoder.finish())])] == ["message", "message"]


@pytest.mark.parametrize(("provider", "model"), [("openai", "gpt-6-sol"), ("127.0.0.1:1", MODEL)])
def test_it_goes_to_nobody_but_its_maker(provider: str, model: str) -> None:
    (kept,) = read(response(SUMMARY, SPOKEN)).opaque
    other = Assistant("So.", (), (Opaque(provider, model, kept.payload),))
    assert [one["type"] for one in items([ASKED, other])] == ["message", "message"]


def test_it_stays_where_the_beginning_has_changed() -> None:
    (kept,) = read(response(SUMMARY, THOUGHT, CALL)).opaque
    turn = Assistant("", (ToolCall("call_1", "f", "{}"),), (kept,), rebased=True)
    assert items([ASKED, turn, Result("call_1", "f", "ok", (Text("1"),))])[1] == SUMMARY


def test_the_example_of_the_rule_comes_in_and_goes_out_the_same() -> None:
    (example,) = (one for one in vectors() if one.id == "OAI-R-15.ok.1")
    asked, summary, then = example.request_fragment["input"]
    messages = [User((Text(one["content"][0]["text"]),)) for one in (asked, then)]
    assert items([messages[0], said(read(response(summary))), messages[1]]) == [asked, summary, then]
