"""Messages, and the view of them that a model is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Result,
    System,
    Text,
    ToolCall,
    TranscriptView,
    User,
    estimate_tokens,
    text_of,
)

ONE_OF_EACH: tuple[Message, ...] = (
    System("rules"),
    User((Text("hi"), Image("image/png", b"x"))),
    Note("note"),
    Assistant("words", (ToolCall("a", "look", "{}"),)),
    Result("a", "look", "ok", (Json({"a": 1}), File("text/plain", b"x"))),
)


def notes(count: int) -> list[Message]:
    return [Note(f"{number}") for number in range(count)]


def test_a_view_does_not_grow_with_its_transcript() -> None:
    messages = notes(3)
    view = TranscriptView(messages, 3)
    messages += notes(2)
    assert len(view) == 3
    assert list(view) == messages[:3]
    with pytest.raises(IndexError):
        view[3]


@given(st.integers(0, 8), st.integers(0, 4), st.integers(-10, 10) | st.slices(8))
def test_a_view_answers_like_the_list_that_it_stands_for(length: int, more: int, index: int | slice) -> None:
    messages = notes(length + more)
    plain, view = messages[:length], TranscriptView(messages, length)
    try:
        expected = plain[index]
    except IndexError:
        with pytest.raises(IndexError):
            view[index]
    else:
        assert view[index] == expected


def test_the_text_of_parts_is_what_is_text_in_them() -> None:
    assert text_of((Text("a"), Json(1), Text("b"))) == "a\n\nb"
    assert text_of((Text("alone"),)) == "alone"
    assert text_of(()) == ""


@pytest.mark.parametrize("message", ONE_OF_EACH, ids=lambda message: type(message).__name__)
def test_every_message_has_a_size_to_reserve_for(message: Message) -> None:
    assert estimate_tokens(message) > 4


def test_longer_messages_are_estimated_larger() -> None:
    sizes = [estimate_tokens(Note("x" * length)) for length in (0, 100, 10_000)]
    assert sizes == sorted(set(sizes))


def test_an_image_is_not_taken_for_free() -> None:
    assert estimate_tokens(User((Image("image/png", b""),))) >= 1_000


def test_the_arguments_of_calls_count() -> None:
    small, large = (Assistant("", (ToolCall("a", "look", "x" * length),)) for length in (1, 4_000))
    assert estimate_tokens(large) - estimate_tokens(small) >= 900
