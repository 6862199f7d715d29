"""Anthropic Messages: summaries that the provider makes of a conversation by itself."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.beta import BetaContextManagementConfigParam, BetaRawMessageStreamEvent
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming
from protocol_vectors import vectors
from pydantic import TypeAdapter
from transcripts import asking

from tenlines.core.transcript import Assistant, Message, Opaque, Reply, Result, System, Text, ToolCall, Usage, User
from tenlines.wire.anthropic.decoding import decode_response
from tenlines.wire.anthropic.format import FORMAT
from tenlines.wire.anthropic.models import traits_of
from tenlines.wire.anthropic.requests import needs_compaction_beta
from tenlines.wire.anthropic.stream import StreamDecoder
from tenlines.wire.checking import check
from tenlines.wire.profile import Target
from tenlines.wire.repairing import repair

MODEL = "claude-opus-5"
PROFILE = FORMAT.profile({"model": MODEL, "beta": "compact-2026-01-12"})
SUMMARY = {"type": "compaction", "content": "So far ...", "encrypted_content": "opaque=="}
FAILED = {"type": "compaction", "content": None}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCkYIBxgCKkBzaWduYXR1cmU="}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
ASKED = User((Text("Hi"),))

BODY: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsNonStreaming)
CONFIG: TypeAdapter[Any] = TypeAdapter(BetaContextManagementConfigParam)
EVENT: TypeAdapter[Any] = TypeAdapter(BetaRawMessageStreamEvent)


def target(model: str = MODEL, compact_at: int | None = 100_000) -> Target:
    return Target(profile=FORMAT.profile({"model": model}), model=model, max_tokens=500, compact_at=compact_at)


def response(*blocks: Any, stop: str = "end_turn", **usage: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    used = {"input_tokens": 5, "output_tokens": 2, **usage}
    return {**head, "content": list(blocks), "stop_reason": stop, "stop_sequence": None, "usage": used}


def read(data: dict[str, Any]) -> Reply:
    return decode_response(data, "anthropic", MODEL)


def streamed(data: dict[str, Any]) -> Reply:
    """The same reply as its events, each as the official package declares it."""
    usage = {"input_tokens": data["usage"]["input_tokens"], "output_tokens": 1}
    events: list[Any] = [
        {"type": "message_start", "message": {**data, "content": [], "stop_reason": None, "usage": usage}}
    ]
    for index, block in enumerate(data["content"]):
        events.append({"type": "content_block_start", "index": index, "content_block": _empty(block)})
        events.append({"type": "content_block_delta", "index": index, "delta": _delta(block)})
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": data["stop_reason"], "stop_sequence": None, "stop_details": None}
    events.append({"type": "message_delta", "delta": ending, "usage": data["usage"]})
    events.append({"type": "message_stop"})
    decoder = StreamDecoder("anthropic", MODEL)
    for event in events:
        if event["type"] in ("content_block_start", "content_block_delta"):
            EVENT.validate_python(event)
        decoder.feed(event)
    return decoder.finish()


def _empty(block: Any) -> Any:
    return {
        **block,
        **({"content": None, "encrypted_content": None} if block["type"] == "compaction" else {"text": ""}),
    }


def _delta(block: Any) -> Any:
    if block["type"] == "compaction":
        return {**block, "type": "compaction_delta"}
    return {"type": "text_delta", "text": block["text"]}


def said(reply: Reply) -> Assistant:
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.calls)
    return Assistant(reply.text, calls, reply.opaque)


def body_of(messages: list[Message], to: Target | None = None) -> dict[str, Any]:
    return FORMAT.talk(to or target()).request(asking(messages), stream=False)


def unmarked(body: dict[str, Any]) -> list[Any]:
    """The messages of a request, cache marks set aside."""
    return [
        {
            **message,
            "content": [{key: one for key, one in block.items() if key != "cache_control"} for block in content],
        }
        for message in body["messages"]
        for content in [message["content"]]
    ]


# --- asking for it ------------------------------------------------------------------------------------


def test_the_threshold_goes_with_every_request_as_the_official_package_declares_it() -> None:
    body = body_of([System("Be brief."), ASKED])
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 100_000}}
    assert body["context_management"] == {"edits": [edit]}
    CONFIG.validate_python(body["context_management"])
    BODY.validate_python(body)
    assert list(body)[-1] == "messages"
    assert not check(body, FORMAT, PROFILE)


def test_nothing_is_said_of_it_where_nobody_asked() -> None:
    body = body_of([ASKED], target(compact_at=None))
    assert "context_management" not in body
    assert not needs_compaction_beta(body)


def test_the_beta_is_needed_as_long_as_a_summary_goes_back() -> None:
    messages: list[Message] = [ASKED, said(read(response(SUMMARY, {"type": "text", "text": "So."}))), ASKED]
    assert needs_compaction_beta(body_of([ASKED]))
    assert needs_compaction_beta(body_of(messages, target(compact_at=None)))
    assert not needs_compaction_beta(body_of([ASKED, Assistant("So."), ASKED], target(compact_at=None)))


@pytest.mark.parametrize(
    ("model", "can"),
    [
        ("claude-sonnet-4-5", False),
        ("claude-opus-4-5", False),
        ("claude-3-haiku-20240307", False),
        ("claude-sonnet-4-6", True),
        ("claude-opus-4-8", True),
        ("us.anthropic.claude-opus-5-5-20261001-v1:0", True),
        ("claude-mythos-preview", True),
        ("", False),
    ],
)
def test_which_models_can(model: str, can: bool) -> None:
    assert ("compacts" in traits_of(model)) is can


# --- what comes back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [read, streamed], ids=["whole", "streamed"])
@pytest.mark.parametrize("block", [SUMMARY, FAILED], ids=["made", "failed"])
def test_it_is_kept_as_it_came_and_goes_back_in_its_place(block: dict[str, Any], way: Any) -> None:
    reply = way(response(block, {"type": "text", "text": "So."}))
    assert (reply.text, reply.stop) == ("So.", "end")
    assert [one for one in reply.remarks if "failed" not in one] == []
    assert bool(reply.remarks) is (block is FAILED)
    earlier: list[Message] = [ASKED, Assistant("Yes?"), ASKED]
    body = body_of([*earlier, said(reply), ASKED])
    asked = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    before = [asked, {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]}, asked]
    held = body["messages"][3]["content"]
    assert {key: value for key, value in held[0].items() if value is not None or key == "content"} == block
    assert held[1] == {"type": "text", "text": "So."}
    assert unmarked(body)[:3] == before
    BODY.validate_python(body)
    assert not check(body, FORMAT, PROFILE)


def test_it_stands_before_the_thinking_and_the_calls_of_its_turn() -> None:
    reply = read(response(SUMMARY, THINKING, CALL, stop="tool_use"))
    answered = Result("toolu_1", "f", "ok", (Text("1"),))
    body = body_of([ASKED, said(reply), answered])
    assert unmarked(body)[1]["content"] == [SUMMARY, THINKING, CALL]
    BODY.validate_python(body)
    assert not check(body, FORMAT, PROFILE)


@pytest.mark.parametrize("stop", ["compaction", "end_turn"])
@pytest.mark.parametrize("way", [read, streamed], ids=["whole", "streamed"])
def test_a_reply_of_nothing_else_is_a_pause(way: Any, stop: str) -> None:
    reply = way(response(SUMMARY, stop=stop))
    assert (reply.text, reply.stop) == ("", "pause")
    body = body_of([ASKED, said(reply)])
    assert unmarked(body)[1:] == [{"role": "assistant", "content": [SUMMARY]}]
    BODY.validate_python(body)
    assert not check(body, FORMAT, PROFILE)
    further = body_of([ASKED, said(reply), Assistant("Done."), ASKED])
    assert [one["role"] for one in further["messages"]] == ["user", "assistant", "assistant", "user"]
    assert not check(further, FORMAT, PROFILE)


def test_a_reply_of_a_failed_one_alone_says_nothing() -> None:
    assert read(response(FAILED)).stop == "end"
    assert read(response(FAILED, stop="compaction")).stop == "pause"


def test_one_without_text_never_goes_back() -> None:
    reply = read(response({"type": "compaction", "content": ""}, {"type": "text", "text": "So."}))
    assert unmarked(body_of([ASKED, said(reply), ASKED]))[1]["content"] == [{"type": "text", "text": "So."}]


def test_it_goes_to_nobody_but_its_maker() -> None:
    reply = read(response(SUMMARY, {"type": "text", "text": "So."}))
    for provider, model in (("anthropic", "claude-haiku-5-5"), ("127.0.0.1:1", MODEL)):
        (kept,) = reply.opaque
        other = Assistant("So.", (), (Opaque(provider, model, kept.payload),))
        assert unmarked(body_of([ASKED, other, ASKED]))[1]["content"] == [{"type": "text", "text": "So."}]


def test_it_stays_where_the_beginning_has_changed_and_thinking_may_not() -> None:
    to = target("claude-opus-5-5")
    kept = Opaque("anthropic", "claude-opus-5-5", {"blocks": [SUMMARY, THINKING, {"call": 0}]})
    turn = Assistant("", (ToolCall("toolu_1", "f", "{}"),), (kept,), rebased=True)
    body = body_of([ASKED, turn, Result("toolu_1", "f", "ok", (Text("1"),))], to)
    assert [block["type"] for block in body["messages"][1]["content"]] == ["compaction", "tool_use"]
    assert not check(body, FORMAT, FORMAT.profile({"model": "claude-opus-5-5"}))


def test_no_cache_mark_stands_before_a_summary() -> None:
    reply = read(response(SUMMARY, THINKING, CALL, stop="tool_use"))
    messages: list[Message] = [ASKED, Assistant("Yes?"), ASKED, said(reply)]
    messages.append(Result("toolu_1", "f", "ok", (Text("1"),)))
    body = body_of(messages)
    marked = [at for at, one in enumerate(body["messages"]) if "cache_control" in str(one)]
    assert marked == [4]
    body = body_of([*messages, Assistant("Then?"), ASKED])
    assert [at for at, one in enumerate(body["messages"]) if "cache_control" in str(one)] == [4, 6]


# --- what it cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [read, streamed], ids=["whole", "streamed"])
def test_the_summary_is_paid_beside_what_the_reply_itself_used(way: Any) -> None:
    summing = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    summing |= {"cache_read_input_tokens": 20, "cache_creation_input_tokens": 30}
    spoke = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}
    spoke |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    data = response(SUMMARY, {"type": "text", "text": "So."}, iterations=[summing, spoke])
    data["usage"] |= {"input_tokens": 23_000, "output_tokens": 1_000}
    assert way(data).usage == Usage(203_050, 4_500, 20, 30)


# --- rules --------------------------------------------------------------------------------------------


def test_the_example_of_the_rule_comes_in_and_goes_out_the_same() -> None:
    (example,) = (one for one in vectors() if one.id == "ANT-34.ok.1")
    asked, turn, then = example.request_fragment["messages"]
    reply = read(response(*turn["content"]))
    body = body_of([User((Text(asked["content"]),)), said(reply), User((Text(then["content"]),))])
    assert unmarked(body)[1] == turn


def test_thinking_by_a_budget_may_stand_behind_a_summary() -> None:
    said = [SUMMARY, THINKING, CALL]
    answered = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}
    tool = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    body: dict[str, Any] = {"model": "claude-sonnet-4-6", "max_tokens": 4_000, "tools": [tool]}
    body["thinking"] = {"type": "enabled", "budget_tokens": 2_000}
    body["messages"] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": [answered]},
    ]
    profile = FORMAT.profile({"model": "claude-sonnet-4-6"})
    assert not check(body, FORMAT, profile)
    body["messages"][1]["content"] = [SUMMARY, CALL]
    assert {one.rule for one in check(body, FORMAT, profile)} == {"ANT-23"}
    assert "thinking" not in repair(body, FORMAT, profile).body
