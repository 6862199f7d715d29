"""Streamed replies: every quirk that is known, any split, and what is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import Reply, ToolCall, Usage
from tenlines.errors import ConnectionFailed, MalformedReply, RemoteError
from tenlines.wire.openai_chat.decoding import decode_response
from tenlines.wire.openai_chat.stream import Piece, StreamDecoder


def chunk(delta: Any = None, reason: Any = None, **more: Any) -> Any:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": reason}], **more}


def piece(index: int | None = None, call_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"function": {}}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    if name is not None:
        entry["function"]["name"] = name
    if arguments is not None:
        entry["function"]["arguments"] = arguments
    return entry


def assembled(*groups: list[Any], reason: str = "tool_calls") -> Reply:
    decoder = StreamDecoder()
    for entries in groups:
        decoder.feed(chunk({"tool_calls": entries}))
    decoder.feed(chunk(reason=reason))
    return decoder.finish()


def calls(reply: Reply) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in reply.calls]


# --- the examples of the assembly rule --------------------------------------------------------------

EXAMPLES = [
    (
        '[{"index":0,"id":"a","function":{"name":"f","arguments":"{\\"x\\""}},'
        '{"index":0,"function":{"arguments":":1}"}}]',
        [("f", '{"x":1}')],
    ),
    (
        '[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}],'
        '[{"index":0,"id":"b","function":{"name":"g","arguments":"{\\"y\\":"}}],'
        '[{"index":1,"function":{"arguments":"2}"}}]',
        [("f", "{}"), ("g", '{"y":2}')],
    ),
    (
        '[{"id":"a","function":{"name":"f","arguments":"{}"}}],[{"id":"b","function":{"name":"g","arguments":""}}]',
        [("f", "{}"), ("g", "")],
    ),
    (
        '[{"index":0,"id":"a","function":{"name":"f","arguments":""}}],'
        '[{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]',
        [("f", "{}")],
    ),
]


@pytest.mark.parametrize(("groups", "expected"), EXAMPLES)
def test_the_examples_of_the_assembly_rule(groups: str, expected: list[tuple[str, str]]) -> None:
    assert calls(assembled(*json.loads(f"[{groups}]"))) == expected


# --- one test for each quirk that was seen in the field ---------------------------------------------


def test_index_missing() -> None:
    reply = assembled(
        [piece(None, "a", "f", '{"x":1}')], [piece(None, "b", "g", '{"y"')], [piece(None, arguments=":2}")]
    )
    assert calls(reply) == [("f", '{"x":1}'), ("g", '{"y":2}')]


def test_index_and_id_missing() -> None:
    reply = assembled(
        [piece(None, "", "f", '{"x":1}')], [piece(None, "", "f", '{"x":2}')], [piece(None, None, "g", "{}")]
    )
    assert calls(reply) == [("f", '{"x":1}'), ("f", '{"x":2}'), ("g", "{}")]


def test_a_second_call_that_uses_index_0_again_with_its_tail_at_index_1() -> None:
    reply = assembled([piece(0, "a", "f", '{"x":1}')], [piece(0, "b", "g", '{"y":')], [piece(1, arguments="2}")])
    assert calls(reply) == [("f", '{"x":1}'), ("g", '{"y":2}')]


def test_several_entries_with_the_same_index_in_one_chunk() -> None:
    reply = assembled([piece(0, "a", "f", ""), piece(0, arguments='{"x"'), piece(0, arguments=":1}")])
    assert calls(reply) == [("f", '{"x":1}')]


@pytest.mark.parametrize("second", ["{}", '{"x":1}'])
def test_the_same_call_at_several_indices(second: str) -> None:
    assert calls(assembled([piece(0, "a", "f", second)], [piece(1, "a", "f", second)])) == [("f", second)]


def test_two_calls_under_one_id() -> None:
    reply = assembled([piece(0, "a", "f", '{"x":1}')], [piece(1, "a", "f", '{"x":2}')], [piece(2, "a", "g", "{}")])
    assert calls(reply) == [("f", '{"x":1}'), ("f", '{"x":2}'), ("g", "{}")]
    assert reply.remarks


def test_an_argument_tail_on_a_higher_index_without_id_and_name() -> None:
    assert calls(assembled([piece(0, "a", "f", '{"x"')], [piece(1, arguments=":1}")])) == [("f", '{"x":1}')]


def test_an_id_that_is_repeated_in_every_chunk() -> None:
    reply = assembled([piece(0, "a", "f", '{"x"')], [piece(0, "a", "f", ":1")], [piece(0, "a", "f", "}")])
    assert reply.calls == (ToolCall("a", "f", '{"x":1}'),)


def test_id_and_name_that_come_late_or_in_pieces() -> None:
    reply = assembled(
        [piece(0, None, "get_")], [piece(0, None, "order")], [piece(0, "a", None, "{")], [piece(0, None, None, "}")]
    )
    assert reply.calls == (ToolCall("a", "get_order", "{}"),)
    late = assembled([piece(0, None, None, '{"x":1}')], [piece(0, "a", "f")])
    assert late.calls == (ToolCall("a", "f", '{"x":1}'),)


@pytest.mark.parametrize(
    "snapshots", [['{"x"', '{"x":1', '{"x":12}'], ['{"x":12}', '{"x":12}'], ["", '{"x":12}', '{"x":12}', '{"x":12}']]
)
def test_cumulative_arguments(snapshots: list[str]) -> None:
    reply = assembled(*([piece(0, "a", "f", text)] for text in snapshots))
    assert calls(reply) == [("f", '{"x":12}')]
    assert "growing snapshots" in reply.remarks[0]


def test_deltas_that_look_cumulative_are_only_appended() -> None:
    # "1", then "11": the second piece starts with the first, and both belong to the number
    reply = assembled([piece(0, "a", "f", '{"x":')], [piece(0, None, None, "1")], [piece(0, None, None, "11}")])
    assert calls(reply) == [("f", '{"x":111}')]


def test_arguments_as_a_whole_object() -> None:
    assert calls(assembled([piece(0, "a", "f", {"x": [1, None]})])) == [("f", '{"x": [1, null]}')]


def test_usage_snapshots_are_not_added_up() -> None:
    decoder = StreamDecoder()
    for tokens in (3, 5, 9):
        decoder.feed(chunk({"content": "x"}, usage={"prompt_tokens": 7, "completion_tokens": tokens}))
    decoder.feed(chunk(reason="stop"))
    assert decoder.finish().usage == Usage(7, 9)


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 9}},
        {"choices": [], "x_groq": {"id": "r", "usage": {"prompt_tokens": 7, "completion_tokens": 9}}},
        {"choices": [{"delta": {}, "usage": {"prompt_tokens": 7, "completion_tokens": 9}}]},
        {"choices": [], "usage": {"prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": 7, "completion_tokens": 9}},
    ],
)
def test_usage_where_servers_put_it(last: Any) -> None:
    decoder = StreamDecoder()
    decoder.feed(chunk({"content": "x"}, "stop"))
    decoder.feed(last)
    usage = decoder.finish().usage
    assert usage is not None
    assert (usage.input, usage.output) == (7, 9)


@pytest.mark.parametrize("nothing", ["", None])
def test_no_arguments_at_all(nothing: Any) -> None:
    assert calls(assembled([piece(0, "a", "f", nothing)])) == [("f", "")]


def test_a_finish_reason_of_stop_beside_calls() -> None:
    reply = assembled([piece(0, "a", "f", "{}")], reason="stop")
    assert reply.stop == "end"
    assert calls(reply) == [("f", "{}")]


def test_empty_choices_and_the_usage_chunk_behind_the_end() -> None:
    decoder = StreamDecoder()
    assert decoder.feed({"choices": []}) == Piece()
    assert decoder.feed({"choices": None}) == Piece()
    decoder.feed(chunk({"role": "assistant", "content": ""}))
    assert decoder.feed(chunk({"content": "hi"})) == Piece("hi")
    decoder.feed(chunk(reason="stop", model="m-1"))
    decoder.feed({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    assert decoder.finish() == Reply(text="hi", usage=Usage(3, 1), model="m-1")


def test_an_error_object_in_the_stream_is_an_error() -> None:
    decoder = StreamDecoder()
    decoder.feed(chunk({"content": "half"}))
    with pytest.raises(RemoteError, match="went away") as caught:
        decoder.feed({"error": {"message": "the upstream went away", "type": "server_error"}})
    assert caught.value.is_retryable


# --- other laws -------------------------------------------------------------------------------------


def test_a_stream_that_ends_without_saying_why_was_cut() -> None:
    decoder = StreamDecoder()
    decoder.feed(chunk({"tool_calls": [piece(0, "a", "f", "{}")]}))
    with pytest.raises(ConnectionFailed, match="before the reply was complete"):
        decoder.finish()


def test_arguments_that_are_no_json_are_kept_raw() -> None:
    reply = assembled([piece(0, "a", "f", '{"x":')], [piece(0, arguments="oops")])
    assert calls(reply) == [("f", '{"x":oops')]
    assert reply.remarks


def test_reasoning_is_shown_and_kept_for_its_maker() -> None:
    decoder = StreamDecoder("p", "m")
    assert decoder.feed(chunk({"reasoning_content": "let "})) == Piece("", "let ")
    decoder.feed(chunk({"reasoning_content": "me", "reasoning_details": [{"a": 1}]}))
    decoder.feed(chunk({"reasoning_details": [{"b": 2}]}, "stop"))
    (opaque,) = decoder.finish().opaque
    assert (opaque.provider, opaque.model) == ("p", "m")
    assert opaque.payload == {"reasoning_content": "let me", "reasoning_details": [{"a": 1}, {"b": 2}]}


def test_pieces_of_reasoning_details_are_joined_as_they_were_one_text() -> None:
    decoder = StreamDecoder("p", "m")
    pieces: list[Any] = [
        {"type": "reasoning.text", "index": 0, "text": "let "},
        {"type": "reasoning.text", "index": 0, "text": "me", "format": "a"},
        {"type": "reasoning.text", "index": 0, "text": None, "signature": "sig"},
        {"type": "reasoning.text", "index": 1, "text": "next"},
        {"type": "reasoning.encrypted", "index": 2, "data": "x"},
        {"type": "reasoning.encrypted", "index": 2, "data": "y"},
    ]
    for one in pieces:
        decoder.feed(chunk({"reasoning_details": [one]}))
    decoder.feed(chunk(reason="stop"))
    (opaque,) = decoder.finish().opaque
    assert opaque.payload == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "let me", "format": "a", "signature": "sig"},
            *pieces[3:],
        ]
    }


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["f", "get_order", "g-1"]),
        st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=4), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@given(CALLS, st.data())
def test_any_split_and_any_interleaving_gives_the_same_calls(wanted: list[Any], data: st.DataObject) -> None:
    queues = []
    for index, (name, arguments) in enumerate(wanted):
        text = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
        texts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        head = piece(index, f"c{index}", name, texts[0])
        queues.append([head, *(piece(index, None, None, part) for part in texts[1:])])
    # the heads come in order, as servers begin calls; tails in any order after their head
    groups, begun = [], 0
    while any(queues):
        ready = [q for q in queues[:begun] if q] + queues[begun : begun + 1]
        queue = data.draw(st.sampled_from([q for q in ready if q]))
        begun += queue is queues[begun] if begun < len(queues) else 0
        groups.append([queue.pop(0)])
    reply = assembled(*groups)
    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.calls] == [
        (f"c{index}", name, arguments) for index, (name, arguments) in enumerate(wanted)
    ]


@given(st.text(max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_text_is_the_same_streamed_and_whole(text: str, cuts: list[int]) -> None:
    decoder = StreamDecoder()
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = [decoder.feed(chunk({"content": text[a:b]})).text for a, b in pairwise(bounds)]
    decoder.feed(chunk(reason="stop"))
    whole = decode_response({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    assert decoder.finish() == whole
    assert "".join(shown) == text


@pytest.mark.parametrize("data", [None, [], "x", {"choices": [3]}, chunk({"tool_calls": [3]})])
def test_what_is_no_chunk_is_malformed(data: Any) -> None:
    with pytest.raises(MalformedReply):
        StreamDecoder().feed(data)
