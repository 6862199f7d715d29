"""What is left out of requests after a provider refused it."""

from __future__ import annotations

import pytest

from tenlines.core.leaving import LeanView, concession, stub, without
from tenlines.core.transcript import Assistant, File, Image, Message, Opaque, Result, System, Text, ToolCall, User

SIGNED = (Opaque("p", "m", {"blocks": []}),)
CALL = (ToolCall("c", "look", "{}"),)
PICTURE = Image("image/png", b"\x00" * 2048)


@pytest.mark.parametrize(
    ("violation", "left"),
    [
        ("RSN-EDITED", "reasoning"),
        ("RSN-PREFIX", "reasoning"),
        ("MEDIA-PLACE", "media"),
        ("PAIR-MISSING", None),
        ("", None),
    ],
)
def test_only_reasoning_and_media_can_be_left_out(violation: str, left: str | None) -> None:
    assert concession(violation) == left


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (Assistant("hi", CALL, SIGNED), Assistant("hi", CALL)),
        (Assistant("", CALL, SIGNED), Assistant("", CALL)),
        (Assistant("", (), SIGNED), Assistant("(nothing said)")),
    ],
)
def test_reasoning_is_left_out_and_what_was_said_stays(message: Message, sent: Message) -> None:
    assert without(message, frozenset({"reasoning"})) == sent
    assert without(message, frozenset({"media"})) is message


def test_media_become_a_few_words_in_the_same_place() -> None:
    words = Text("(image/png, 2.0 KiB, not shown)")
    message = User((Text("look"), PICTURE))
    assert without(message, frozenset({"media"})) == User((Text("look"), words))
    answer = Result("c", "look", "ok", (PICTURE, Text("that is it")))
    assert without(answer, frozenset({"media"})) == Result("c", "look", "ok", (words, Text("that is it")))
    assert without(answer, frozenset({"reasoning"})) is answer


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Image("image/png", b"x" * 12), "(image/png, 12 bytes, not shown)"),
        (Image("image/png", url="https://a.example/b"), "(image/png, https://a.example/b, not shown)"),
        (Image("image/png"), "(image/png, empty, not shown)"),
        (File("text/csv", b"x" * 3 * 1024**2, "a.csv"), "(a.csv, text/csv, 3.0 MiB, not shown)"),
        (File("text/csv", b""), "(text/csv, 0 bytes, not shown)"),
    ],
)
def test_the_words_for_what_is_not_shown(part: Image | File, words: str) -> None:
    assert stub(part) == words


def test_a_lean_view_shows_less_and_changes_nothing() -> None:
    items: list[Message] = [System("s"), User((PICTURE,)), Assistant("hi", (), SIGNED), Assistant("later")]
    view = LeanView(items, 3, frozenset({"reasoning", "media"}))
    assert len(view) == 3
    assert view[-1] == Assistant("hi")
    assert view[0] is items[0]
    assert list(view) == view[:] == [view[0], view[1], view[2]]
    assert items[2] == Assistant("hi", (), SIGNED)
    with pytest.raises(IndexError):
        view[3]
