"""Server-sent events out of bytes, however they are cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.errors import Overloaded, ProviderError
from tenlines.models.server_events import ChunkReader, Event, EventReader


def read(data: bytes, cuts: list[int] | None = None) -> list[Event]:
    """The events, with the bytes cut at these places."""
    reader, places = EventReader(), sorted({0, len(data), *(cuts or [])})
    pieces = [data[start:end] for start, end in pairwise(places)]
    found = [event for piece in pieces for event in reader.feed(piece)]
    last = reader.rest()
    return found + ([last] if last else [])


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [Event("", "a")]),
        (b"data:a\r\n\r\ndata:  b\r\r", [Event("", "a"), Event("", " b")]),
        (b"event: ping\ndata: {}\n\n", [Event("ping", "{}")]),
        (b"data: a\ndata: b\ndata\n\n", [Event("", "a\nb\n")]),
        (b": a comment\n\nid: 7\nretry: 5\ndata: a\n\n", [Event("", "a")]),
        (b"event: nothing\n\ndata: a\n\n", [Event("", "a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("", "a")]),
        ("data: é\u2028x\n\n".encode(), [Event("", "é\u2028x")]),  # no line end for the standard
        (b"data: a\n\n\n\ndata: b\n\n", [Event("", "a"), Event("", "b")]),
        (b"data: a", [Event("", "a")]),
        (b"data: a\n", [Event("", "a")]),
        (b"", []),
    ],
)
def test_what_is_an_event(data: bytes, events: list[Event]) -> None:
    assert read(data) == events
    assert read(data, list(range(len(data)))) == events


LINES = st.lists(st.sampled_from([b"data: a", b"data: \xc3\xa9", b"event: x", b": c", b"", b"data", b"nonsense"]))
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(LINES, st.lists(ENDS, min_size=1), st.lists(st.integers(0, 200)))
def test_where_the_bytes_are_cut_does_not_matter(lines: list[bytes], ends: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + ends[index % len(ends)] for index, line in enumerate(lines))
    assert read(data, [cut for cut in cuts if cut <= len(data)]) == read(data)


def chunks(data: bytes) -> list[Any]:
    reader = ChunkReader()
    return [*reader.feed(data), *reader.rest()]


def test_chunks_are_the_json_of_the_data() -> None:
    assert chunks(b'event: a\ndata: {"x": 1}\n\nevent: ping\ndata: {"type": "ping"}\n\ndata: \n\ndata: [2]\n\n') == [
        {"x": 1},
        [2],
    ]


def test_after_the_closing_word_nothing_counts() -> None:
    reader = ChunkReader()
    assert list(reader.feed(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n")) == [1]
    assert reader.is_done
    assert list(reader.rest()) == []


@pytest.mark.parametrize("half", [b'data: {"x"', b"data: \xc3", b"data: 1", b"data: " + b"[" * 100_000])
def test_half_a_chunk_at_the_end_is_none(half: bytes) -> None:
    assert chunks(b'data: {"x": 1}\n\n' + half) == [{"x": 1}]


@pytest.mark.parametrize("broken", [b"data: {oops\n\n", b"data: \xc3(\n\n"])
def test_what_is_no_json_or_no_utf_8_is_said(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        chunks(broken)


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded, "Overloaded"),
        ({"type": "error", "code": "server_error", "message": "sorry", "param": None}, Overloaded, "sorry"),
        ({"message": "bad thing", "type": "invalid_request_error"}, ProviderError, "bad thing"),
    ],
)
def test_an_error_event_is_raised_whatever_its_shape(data: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        chunks(b"event: error\ndata: " + json.dumps(data).encode() + b"\n\n")


def test_an_error_event_that_is_no_json() -> None:
    with pytest.raises(ProviderError, match="it broke"):
        chunks(b"event: error\ndata: it broke\n\n")
