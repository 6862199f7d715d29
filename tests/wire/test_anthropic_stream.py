"""Anthropic Messages: replies, whole and streamed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hostile import JSON
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import Opaque, Reply, ToolCall, Usage
from tenlines.errors import (
    ConnectionFailed,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RemoteError,
)
from tenlines.wire.anthropic.decoding import decode_response
from tenlines.wire.anthropic.format import FORMAT
from tenlines.wire.anthropic.stream import StreamDecoder
from tenlines.wire.profile import Target

MODEL = "claude-opus-5-5"
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCkYIBxgC"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"b": 1, "a": "é"}}
USED = {
    "input_tokens": 10,
    "output_tokens": 7,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "cache_creation": {"ephemeral_5m_input_tokens": 15, "ephemeral_1h_input_tokens": 5},
    "output_tokens_details": {"thinking_tokens": 3},
}


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **fields}


def message(*content: Any, stop: Any = "end_turn", **fields: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USED,
        **fields,
    }


def read(*content: Any, **fields: Any) -> Reply:
    return decode_response(message(*content, **fields), model=MODEL)


def events(whole: dict[str, Any], size: int = 3) -> list[dict[str, Any]]:
    """A message as the stream that brings it, in pieces of `size` characters."""
    start = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        placeholder, deltas = _streamed(block, size)
        found.append({"type": "content_block_start", "index": index, "content_block": placeholder})
        found += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        found.append({"type": "content_block_stop", "index": index})
    ending = {key: whole[key] for key in ("stop_reason", "stop_sequence", "stop_details", "container") if key in whole}
    found.append({"type": "message_delta", "delta": ending, "usage": whole["usage"]})
    return [*found, {"type": "message_stop"}]


def _streamed(block: dict[str, Any], size: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], size)]
            cited = [{"type": "citations_delta", "citation": one} for one in block.get("citations") or ()]
            return {**block, "text": "", **({"citations": []} if cited else {})}, cited + deltas
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], size)]
            return {**block, "thinking": "", "signature": ""}, [
                *deltas,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use" | "server_tool_use":
            raw = json.dumps(block["input"], ensure_ascii=False) if block["input"] else ""
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(raw, size)]
            ]
        case _:
            return block, []


def _pieces(whole: str, size: int) -> list[str]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def stream(chunks: list[Any]) -> Reply:
    decoder = StreamDecoder(model=MODEL)
    for chunk in chunks:
        decoder.feed(chunk)
    return decoder.finish()


# --- whole replies ----------------------------------------------------------------------------------


def test_text_and_calls() -> None:
    assert read(text("Let me "), text("look."), USE, stop="tool_use") == Reply(
        "Let me look.",
        (ToolCall("toolu_1", "f", '{"b": 1, "a": "é"}'),),
        "tool_calls",
        Usage(130, 7, 100, 20, 3),
        (),
        MODEL,
    )


def test_texts_that_something_parts_are_apart() -> None:
    assert read(text("One."), {"type": "server_tool_use", "id": "s", "name": "x", "input": {}}, text("Two.")).text == (
        "One.\n\nTwo."
    )


def test_everything_but_plain_text_and_calls_is_kept_as_it_came() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "x"}]}
    cited = text("So.", citations=[{"type": "page_location"}])
    reply = read(THINKING, search, found, cited, {**USE, "caller": {"type": "direct"}, "toolset_name": None}, USE)
    payload = {"blocks": [THINKING, search, found, cited, {"call": 0, "caller": {"type": "direct"}}, {"call": 1}]}
    assert reply.opaque == (Opaque("anthropic", MODEL, payload),)
    assert reply.remarks == ()
    assert read(text("So.", citations=None), USE).opaque == ()


def test_unknown_blocks_are_kept_and_said() -> None:
    reply = read(text("So."), {"type": "hologram", "data": 1}, "what", {"no": "type"})
    assert reply.opaque[0].payload == {"blocks": [text("So."), {"type": "hologram", "data": 1}, {"no": "type"}]}
    assert len(reply.remarks) == 3
    assert '"hologram"' in reply.remarks[0]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "stop_sequence"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "context_overflow"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        (None, "end"),
        ("bored", "unknown"),
        (7, "unknown"),
    ],
)
def test_stop_reasons(reason: Any, stop: str) -> None:
    reply = read(text("So."), USE, stop=reason)
    assert reply.stop == stop
    assert len(reply.remarks) == (stop == "unknown")


def test_a_refusal_is_explained() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    reply = read(stop="refusal", stop_details=details)
    assert (reply.text, reply.stop, reply.remarks) == (
        "It could do harm.",
        "refusal",
        ("the reply was refused: cyber",),
    )
    assert read(text("I would"), stop="refusal", stop_details=details).text == "I would"


def test_a_paused_reply_and_its_container() -> None:
    assert read(text("Wait."), stop="pause_turn").opaque[0].payload == {"blocks": [text("Wait.")], "pause": True}
    reply = read(text("So."), container={"id": "c1", "expires_at": "2026-12-01"})
    assert reply.opaque[0].payload == {"blocks": [text("So.")], "container": "c1"}


def test_an_empty_reply_says_nothing() -> None:
    assert read() == Reply(usage=Usage(130, 7, 100, 20, 3), model=MODEL)


def test_arguments_that_are_missing_or_no_object() -> None:
    calls = [{**USE, "input": given} for given in (None, "", " ", {}, '{"x"', [1])]
    assert [one.arguments for one in read(*calls).calls] == ["{}", "{}", "{}", "{}", '{"x"', "[1]"]
    nameless = read({"type": "tool_use"}).calls
    assert nameless == (ToolCall("", "", "{}"),)


def test_usage_in_all_its_forms() -> None:
    def used(**usage: Any) -> Usage | None:
        return read(usage=usage).usage

    assert used(input_tokens=5, output_tokens=2) == Usage(5, 2)
    assert used(input_tokens=5, output_tokens=2, cache_read_input_tokens=None) == Usage(5, 2)
    by_age = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2}
    assert used(input_tokens=5, output_tokens=2, cache_creation=by_age) == Usage(8, 2, None, 3)
    summary = {"type": "compaction", "input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 1}
    spoke = {"type": "message", "input_tokens": 5, "output_tokens": 2}
    assert used(input_tokens=5, output_tokens=2, iterations=[summary, spoke]) == Usage(106, 12, 1)
    assert used() is None
    assert read(usage=None).usage is None


def test_what_the_provider_left_out_is_said() -> None:
    dropped = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    reply = read(text("So."), input_transformations=[dropped, dropped])
    assert reply.remarks == ("the provider left 2 thinking blocks out of the request: prefix_binding_mismatch",)


@pytest.mark.parametrize("data", [None, [], "x", {}, {"content": None}, {"content": 7}])
def test_what_is_no_reply(data: Any) -> None:
    with pytest.raises(MalformedReply):
        decode_response(data)


def test_an_error_in_a_good_answer() -> None:
    with pytest.raises(ContextTooLong):
        decode_response(
            {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "prompt is too long: 3 > 2 maximum"},
            }
        )


def test_bottomless_json_is_malformed() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"x": deep}
    for block in ({**USE, "input": deep}, {"type": "new", "x": deep}):
        with pytest.raises(MalformedReply):
            read(block)
    _dismantle(deep)


def _dismantle(deep: Any) -> None:
    while deep:
        deep = deep.pop("x")


# --- streams ----------------------------------------------------------------------------------------

WHOLE = message(
    THINKING,
    {"type": "redacted_thinking", "data": "Emw"},
    text("Let me look.", citations=[{"type": "page_location", "cited_text": "x"}]),
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    USE,
    {**USE, "id": "toolu_2", "input": {}},
    stop="tool_use",
    container={"id": "c1", "expires_at": "x"},
)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_gives_what_the_whole_gives(size: int) -> None:
    assert stream(events(WHOLE, size)) == decode_response(WHOLE, model=MODEL)


def test_pieces_are_for_eyes() -> None:
    decoder = StreamDecoder()
    pieces = [decoder.feed(chunk) for chunk in events(message(THINKING, text("So.")), 2)]
    assert "".join(piece.text for piece in pieces) == "So."
    assert "".join(piece.reasoning for piece in pieces) == "Hm."
    assert [piece.usage for piece in pieces if piece.usage is not None] == [Usage(10, 1), Usage(130, 7, 100, 20, 3)]


def test_counts_are_totals_so_far() -> None:
    chunks = events(message(text("So."), usage={"output_tokens": 4}))
    chunks.insert(-1, {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9, "input_tokens": None}})
    assert stream(chunks).usage == Usage(10, 9)


def test_arguments_that_do_not_parse_stay_as_they_came() -> None:
    chunks = events(message(USE, stop="max_tokens"), 1000)
    chunks[4]["delta"]["partial_json"] = '{"x": '
    reply = stream(chunks)
    assert (reply.calls[0].arguments, reply.stop) == ('{"x": ', "length")


def test_a_call_that_comes_whole_in_its_first_event() -> None:
    chunks = events(message(USE, stop="tool_use"))
    start = next(chunk for chunk in chunks if chunk["type"] == "content_block_start")
    start["content_block"] = USE
    chunks = [chunk for chunk in chunks if chunk["type"] != "content_block_delta"]
    assert stream(chunks).calls[0].arguments == '{"b": 1, "a": "é"}'


def test_pieces_of_an_unknown_kind_make_the_blocks_unfit_to_go_back() -> None:
    chunks = events(message(THINKING, text("So.")))
    chunks.insert(4, {"type": "content_block_delta", "index": 0, "delta": {"type": "smell_delta", "smell": "x"}})
    reply = stream(chunks)
    assert (reply.text, reply.opaque) == ("So.", ())
    assert "not kept" in reply.remarks[0]


def test_blocks_that_were_never_announced() -> None:
    chunks = [chunk for chunk in events(message(text("So."))) if chunk["type"] != "content_block_start"]
    for chunk in chunks:
        chunk.pop("index", None)
    assert stream(chunks).text == "So."
    with pytest.raises(MalformedReply):
        StreamDecoder().feed({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta"}})


def test_unknown_events_say_nothing() -> None:
    chunks = events(message(text("So.")))
    chunks.insert(2, {"type": "weather", "is": "fine"})
    assert stream(chunks).text == "So."


def test_a_compaction_block_comes_back_whole() -> None:
    block = {"type": "compaction", "content": "So far ...", "encrypted_content": "x"}
    chunks = events(message({"type": "compaction", "content": None}, stop="compaction"))
    delta = {"type": "compaction_delta", "content": "So far ...", "encrypted_content": "x"}
    chunks.insert(3, {"type": "content_block_delta", "index": 0, "delta": delta})
    assert stream(chunks).opaque[0].payload == {"blocks": [block], "pause": True}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("overloaded_error", Overloaded), ("rate_limit_error", RateLimited), ("api_error", ProviderError)],
)
def test_an_error_in_the_middle_is_what_it_says(kind: str, expected: type[RemoteError]) -> None:
    decoder = StreamDecoder()
    for chunk in events(message(text("So.")))[:5]:
        decoder.feed(chunk)
    with pytest.raises(expected):
        decoder.feed({"type": "error", "error": {"type": kind, "message": kind}})


def test_a_stream_that_breaks_off_is_no_reply() -> None:
    chunks = events(WHOLE)
    for length in range(len(chunks) - 1):
        with pytest.raises(ConnectionFailed):
            stream(chunks[:length])
    assert stream(chunks[:-1]) == stream(chunks), "why it ended had been said"


def test_a_stream_of_nothing_is_no_reply() -> None:
    with pytest.raises(ConnectionFailed):
        stream([])
    with pytest.raises(MalformedReply):
        stream([{"type": "message_stop"}])


def test_a_talk_reads_what_it_asked_for() -> None:
    talk = FORMAT.talk(Target(profile=FORMAT.profile({"model": "qwen", "server": "llama.cpp"}), model="qwen"))
    decoder = talk.decoder()
    for chunk in events(message({**THINKING, "signature": ""}, text("So."))):
        decoder.feed(chunk)
    assert decoder.finish().opaque == talk.decode(message({**THINKING, "signature": ""}, text("So."))).opaque
    assert talk.decode(message(THINKING)).opaque[0].provider == "llama.cpp"


# --- hostile input ----------------------------------------------------------------------------------


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields) | JSON


def kinds(*names: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(names) | JSON


TEXT = st.text(st.characters(), max_size=3) | st.just("\ud83d") | JSON
BLOCK = objects(
    type=kinds("text", "tool_use", "thinking", "server_tool_use", "compaction"),
    text=TEXT,
    thinking=TEXT,
    id=TEXT,
    name=TEXT,
    input=JSON,
    call=JSON,
    citations=JSON,
    signature=TEXT,
)
MESSAGE = objects(
    content=st.lists(BLOCK, max_size=3) | JSON,
    stop_reason=kinds("end_turn", "tool_use", "refusal", "pause_turn"),
    stop_details=objects(category=TEXT, explanation=TEXT),
    container=objects(id=TEXT),
    usage=objects(input_tokens=JSON, output_tokens=JSON, cache_creation=JSON, iterations=JSON),
    input_transformations=st.lists(objects(type=st.just("thinking_dropped"), reason=TEXT), max_size=2),
    model=TEXT,
)
DELTA = objects(
    type=kinds(
        "text_delta", "thinking_delta", "signature_delta", "citations_delta", "input_json_delta", "compaction_delta"
    ),
    text=TEXT,
    thinking=TEXT,
    partial_json=TEXT,
    signature=TEXT,
    citation=JSON,
    content=TEXT,
    stop_reason=kinds("end_turn"),
)
EVENT = objects(
    type=kinds("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"),
    message=MESSAGE,
    index=st.integers(0, 2) | JSON,
    content_block=BLOCK,
    delta=DELTA,
    usage=JSON,
)


def is_sound(reply: Reply) -> None:
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


@given(MESSAGE)
def test_any_response_is_a_reply_or_an_error_of_ours(data: Any) -> None:
    with suppress(RemoteError):
        is_sound(decode_response(data))


@pytest.mark.slow
@given(st.lists(EVENT, max_size=6))
def test_any_stream_is_a_reply_or_an_error_of_ours(chunks: list[Any]) -> None:
    with suppress(RemoteError):
        is_sound(stream([*chunks, {"type": "message_stop"}]))
