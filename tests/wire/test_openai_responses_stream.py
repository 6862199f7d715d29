"""Responses, streamed: as OpenAI does it, as llama.cpp does it, and with what other servers leave out."""

from __future__ import annotations

from typing import Any

import pytest

from tenlines.core.transcript import Reply, ToolCall, Usage
from tenlines.errors import ConnectionFailed, ContextTooLong, MalformedReply, Overloaded, RateLimited, RemoteError
from tenlines.wire.format import Piece
from tenlines.wire.openai_responses.decoding import Reading, decode_response
from tenlines.wire.openai_responses.stream import StreamDecoder

THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "gAAAAABo",
}
SPOKEN = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
}
CALLS = [
    {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "f", "arguments": f'{{"x": {n}}}'}
    for n in (1, 2)
]
OUTPUT = [THOUGHT, SPOKEN, *CALLS]
USAGE = {"input_tokens": 3, "output_tokens": 4}
WHOLE = {"id": "resp_1", "status": "completed", "model": "gpt-5.6", "output": OUTPUT, "usage": USAGE}


def pieces_of(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """The events that bring the text of an item."""
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        kind, counter, text = "response.reasoning_summary_text", "summary_index", item["summary"][0]["text"]
        done = {"text": text}
    elif item["type"] == "message":
        kind, counter, text = "response.output_text", "content_index", item["content"][0]["text"]
        done = {"text": text}
    else:
        kind, counter, text = "response.function_call_arguments", "", item["arguments"]
        done = {"arguments": text}
    place |= {counter: 0} if counter else {}
    half = len(text) // 2
    deltas = [{"type": f"{kind}.delta", **place, "delta": part} for part in (text[:half], text[half:])]
    return [*deltas, {"type": f"{kind}.done", **place, **done}]


def begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"reasoning": {"summary": []}, "message": {"content": []}}
    return {**item, **empty.get(item["type"], {"arguments": ""}), "encrypted_content": "gA"}


def events_of(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"status": "in_progress", "output": []}}]
    for index, item in enumerate(output):
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun(item)})
        events += pieces_of(item, index)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return events


def stream(*events: Any, reading: Reading | None = None) -> Reply:
    decoder = StreamDecoder(reading)
    for event in events:
        decoder.feed(event)
    return decoder.finish()


END = {"type": "response.completed", "response": WHOLE}
BARE_END = {"type": "response.completed", "response": {**WHOLE, "output": []}}


def test_a_stream_says_what_the_whole_response_says() -> None:
    assert stream(*events_of(OUTPUT), END) == decode_response(WHOLE)
    assert stream(*events_of(OUTPUT), BARE_END) == decode_response(WHOLE)
    assert stream(*events_of(OUTPUT), {"type": "response.done", "response": WHOLE}) == decode_response(WHOLE)


def test_pieces_are_shown_as_they_come() -> None:
    decoder = StreamDecoder()
    shown = [decoder.feed(event) for event in events_of(OUTPUT)]
    assert "".join(piece.text for piece in shown) == "Let me see."
    assert "".join(piece.reasoning for piece in shown) == "Hm."


def test_what_was_used_is_told_with_the_end() -> None:
    assert StreamDecoder().feed(END).usage == Usage(3, 4)
    assert StreamDecoder().feed({"type": "response.created", "response": {"usage": None}}) == Piece()


def test_text_that_comes_only_when_it_is_done_is_shown_once() -> None:
    decoder = StreamDecoder()
    done = {"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": "a"}
    assert decoder.feed(done) == Piece("a")
    assert decoder.feed(done) == Piece()


@pytest.mark.parametrize("without", ["output_index", "item_id", "sequence_number"])
def test_a_field_that_is_missing_everywhere(without: str) -> None:
    events = [{key: value for key, value in event.items() if key != without} for event in events_of(OUTPUT)]
    assert stream(*events, BARE_END) == decode_response(WHOLE)


def test_items_without_ids_and_without_indices() -> None:
    output = [{key: value for key, value in item.items() if key != "id"} for item in OUTPUT]
    events = [
        {key: value for key, value in event.items() if key not in ("output_index", "item_id")}
        for event in events_of([{**item, "id": ""} for item in output])
    ]
    events = [
        {**event, "item": {key: value for key, value in event["item"].items() if key != "id"}}
        if "item" in event
        else event
        for event in events
    ]
    assert stream(*events, BARE_END) == decode_response({**WHOLE, "output": output})


@pytest.mark.parametrize("missing", ["added", "done", "delta"])
def test_events_that_never_come(missing: str) -> None:
    events = [event for event in events_of(OUTPUT) if not event["type"].endswith(f".{missing}")]
    assert stream(*events, END) == decode_response(WHOLE)


def test_items_that_were_never_finished_are_put_together() -> None:
    events = [event for event in events_of(OUTPUT[1:]) if event["type"] != "response.output_item.done"]
    reply = stream(*events, BARE_END)
    assert reply.text == "Let me see."
    assert reply.calls == (ToolCall("call_1", "f", '{"x": 1}'), ToolCall("call_2", "f", '{"x": 2}'))


def test_encrypted_content_is_never_taken_from_an_unfinished_item() -> None:
    events = [event for event in events_of([THOUGHT]) if event["type"] != "response.output_item.done"]
    assert "gA" not in str(stream(*events, BARE_END))


def test_one_index_for_all_items() -> None:
    events = [{**event, "output_index": 0} for event in events_of(OUTPUT)]
    assert stream(*events, BARE_END) == decode_response(WHOLE)


def test_ids_that_change_on_the_way() -> None:
    events = []
    for number, event in enumerate(events_of(OUTPUT)):
        if event["type"] == "response.output_item.added":
            event = {**event, "item": {**event["item"], "id": f"other_{number}"}}
        elif "item_id" in event:
            event = {**event, "item_id": f"other_{number}"}
        events.append(event)
    assert stream(*events, BARE_END) == decode_response(WHOLE)


def test_items_that_stand_only_in_the_last_response() -> None:
    assert stream(*events_of([SPOKEN]), END) == decode_response(WHOLE)
    assert stream(END) == decode_response(WHOLE)
    assert stream({"object": "response", **WHOLE}) == decode_response(WHOLE)


def test_an_item_that_is_announced_twice_is_one() -> None:
    events = [twice for event in events_of(OUTPUT) for twice in (event, event) if not event["type"].endswith("delta")]
    assert stream(*events, BARE_END) == decode_response(WHOLE)


def test_custom_calls_and_refusals() -> None:
    reply = stream(
        {"type": "response.output_item.added", "item": {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c"}},
        {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "delta": "print("},
        {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "delta": "1)"},
        {"type": "response.refusal.delta", "item_id": "msg_1", "content_index": 0, "delta": "No."},
        BARE_END,
    )
    assert reply.calls == (ToolCall("c", "", "print(1)"),)
    assert (reply.text, reply.stop) == ("No.", "refusal")


def test_a_cut_reply() -> None:
    end = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    events = [event for event in events_of([CALLS[0]]) if event["type"] != "response.output_item.done"][:-2]
    reply = stream(*events, {"type": "response.incomplete", "response": end})
    assert reply.stop == "length"
    assert reply.calls == (ToolCall("call_1", "f", '{"x"'),)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}, RateLimited),
        ({"type": "error", "code": None, "message": "Your input exceeds the context window"}, ContextTooLong),
        ({"type": "error", "error": {"type": "server_error", "message": "oops"}}, Overloaded),
        ({"error": {"code": "server_error", "message": "oops"}}, Overloaded),
        (
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window"},
                },
            },
            ContextTooLong,
        ),
        ({"type": "response.failed", "response": {"status": "failed", "error": None}}, Overloaded),
        ({"type": "response.failed"}, Overloaded),
        ({"type": "response.output_item.done", "item": 7}, MalformedReply),
        (7, MalformedReply),
    ],
)
def test_errors_after_the_stream_has_begun(event: Any, error: type[RemoteError]) -> None:
    decoder = StreamDecoder()
    for before in events_of([SPOKEN]):
        decoder.feed(before)
    with pytest.raises(error):
        decoder.feed(event)


def test_a_stream_that_just_ends_is_nothing() -> None:
    with pytest.raises(ConnectionFailed):
        stream(*events_of(OUTPUT))
    with pytest.raises(ConnectionFailed):
        stream()


def test_events_that_are_not_known_are_passed_over() -> None:
    odd = [{"type": "keepalive"}, {"type": "response.novel.delta", "delta": "x"}, {"type": 7}, {}, {"type": ""}]
    assert stream(*odd, *events_of(OUTPUT), END) == decode_response(WHOLE)


LLAMA_CPP: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "resp_H", "object": "response", "status": "in_progress"}},
    {"type": "response.in_progress", "response": {"id": "resp_H", "object": "response", "status": "in_progress"}},
    {
        "type": "response.output_item.added",
        "item": {"content": [], "id": "msg_m", "role": "assistant", "status": "in_progress", "type": "message"},
    },
    {"type": "response.content_part.added", "item_id": "msg_m", "part": {"type": "output_text", "text": ""}},
    {"type": "response.output_text.delta", "item_id": "msg_m", "delta": "Hello"},
    {"type": "response.output_text.delta", "item_id": "msg_m", "delta": "!"},
    {"type": "response.output_text.done", "item_id": "msg_m", "text": "Hello!"},
    {
        "type": "response.content_part.done",
        "item_id": "msg_m",
        "part": {"type": "output_text", "annotations": [], "logprobs": [], "text": "Hello!"},
    },
    {
        "type": "response.output_item.done",
        "item": {
            "type": "message",
            "status": "completed",
            "id": "msg_m",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hello!"}],
            "role": "assistant",
        },
    },
    {
        "type": "response.completed",
        "response": {
            "id": "resp_H",
            "object": "response",
            "created_at": 1796031183,
            "status": "completed",
            "model": "qwen2.5-coder-0.5b-instruct.gguf",
            "output": [
                {
                    "type": "message",
                    "status": "completed",
                    "id": "msg_m",
                    "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hello!"}],
                    "role": "assistant",
                }
            ],
            "usage": {
                "input_tokens": 19,
                "output_tokens": 3,
                "total_tokens": 22,
                "input_tokens_details": {"cached_tokens": 3},
            },
        },
        "timings": {"cache_n": 3, "prompt_n": 16},
    },
]
"""What a real llama.cpp sent: no output_index anywhere."""


def test_what_a_real_server_sent() -> None:
    reply = stream(*LLAMA_CPP, reading=Reading("llama.cpp", "m"))
    assert (reply.text, reply.calls, reply.stop, reply.opaque) == ("Hello!", (), "end", ())
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output, reply.usage.cache_read) == (19, 3, 3)
    cut = stream(*LLAMA_CPP, reading=Reading("llama.cpp", "m", limit=3))
    assert cut.stop == "length"
