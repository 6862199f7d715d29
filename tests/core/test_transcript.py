"""Messages, and the view of them that a model is sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    JsonValue,
    Message,
    Note,
    Opaque,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    TranscriptView,
    User,
    estimate_text,
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


def result(*parts: Part) -> Result:
    return Result("a", "look", "ok", parts)


PROSE = "The parcel left the warehouse on Monday, and nobody has seen it since; please ask the carrier. "
ROWS = '{"id": 10427, "sku": "AB-1123", "paid": true, "total": 219.95, "city": "Graz"}, '
CHINESE = "包裹在星期一离开了仓库,之后再也没有人见过它。"


def test_longer_messages_are_estimated_larger() -> None:
    sizes = [estimate_tokens(Note("x" * length)) for length in (0, 100, 10_000)]
    assert sizes == sorted(set(sizes))


@given(st.text(max_size=256), st.text(max_size=256))
def test_no_text_of_ordinary_length_gets_shorter_by_more_text(text: str, more: str) -> None:
    assert estimate_text(text) <= estimate_text(text + more) <= estimate_text(text) + estimate_text(more)


@given(st.sampled_from([PROSE, ROWS, CHINESE, "\ud800 is half a pair "]), st.integers(10, 3_000))
def test_a_long_text_is_estimated_by_its_length_times_what_it_is_made_of(sentence: str, times: int) -> None:
    once = estimate_text(sentence * 10) / 10
    assert 0.85 < estimate_text(sentence * times) / (once * times) < 1.15


@given(st.text(max_size=2_000))
def test_an_estimate_is_a_fifth_of_a_token_to_one_for_each_byte(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert size / 5 <= estimate_text(text) <= size + 1


def test_english_is_about_a_quarter_of_a_token_for_each_character_however_long_it_is() -> None:
    assert 0.2 < estimate_tokens(Note(PROSE * 10)) / len(PROSE * 10) < 0.3
    assert 40_000 < estimate_tokens(Note((PROSE * 4_000)[:300_000])) < 150_000


def test_what_is_not_ascii_is_not_taken_at_a_quarter_of_its_length() -> None:
    assert 0.6 < estimate_text(CHINESE) / len(CHINESE) < 1.2
    assert estimate_text("\N{SAUROPOD}\N{T-REX}" * 100) >= 400


def test_digits_and_marks_count_for_more_than_words() -> None:
    words, table = "look up the carrier " * 20, "104.27,-3,9.5,22198" * 20
    assert estimate_text(table) / len(table) > 2.5 * estimate_text(words) / len(words)


def test_every_part_of_a_long_text_is_looked_at() -> None:
    words, digits = PROSE * 100, "0123456789" * 950
    assert estimate_text(words + digits) > 1.4 * estimate_text(words + words)
    assert estimate_text(digits + words) > 1.4 * estimate_text(words + words)


@pytest.mark.parametrize("width", [12, 48, 64, 80, 100, 120, 128])
def test_rows_of_one_width_are_looked_at_in_all_their_columns(width: int) -> None:
    row = "the carrier has the parcel, " * 5
    row = row[: width // 2] + "0123456789" * 7
    row = row[: width - 1] + "\n"
    of_a_few = estimate_text(row * (2_000 // width)) / (2_000 // width)
    for times in (300, 1_000, 5_000):
        assert 0.9 < estimate_text(row * times) / times / of_a_few < 1.1


def test_an_image_is_not_taken_for_free() -> None:
    assert 1_000 <= estimate_tokens(User((Image("image/png", b""),))) < 2_000


def test_the_arguments_of_calls_count() -> None:
    small, large, huge = (Assistant("", (ToolCall("a", "look", "x" * length),)) for length in (1, 4_000, 40_000))
    assert estimate_tokens(large) - estimate_tokens(small) >= 750
    assert estimate_tokens(huge) - estimate_tokens(small) >= 5_000


def test_each_call_counts_for_more_than_its_text() -> None:
    one, two = (Assistant("", (ToolCall("a", "look", "{}"),) * times) for times in (1, 2))
    assert estimate_tokens(two) - estimate_tokens(one) >= 8


def test_a_value_counts_as_its_text() -> None:
    rows = [{"id": number, "name": "a name"} for number in range(500)]
    text = json.dumps(rows, separators=(",", ":"))
    assert estimate_tokens(result(Json(rows))) == estimate_tokens(result(Text(text)))
    assert estimate_tokens(User((Json(rows),))) > 4_000


def test_a_value_that_cannot_be_written_has_an_estimate_all_the_same() -> None:
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert estimate_tokens(result(Json("\ud800" * 100))) > 100
    assert estimate_tokens(result(Json(deep))) == estimate_tokens(result())
    assert estimate_tokens(Assistant(opaque=(Opaque("p", "m", deep),))) == estimate_tokens(Assistant())
    while deep:  # taken apart by hand: the interpreter's own way goes as deep as the value
        deep = deep.pop()


def test_a_text_file_counts_as_its_text_and_any_other_by_its_size() -> None:
    body = (PROSE * 200).encode()
    as_text = estimate_tokens(result(Text(PROSE * 200)))
    assert 0.9 < estimate_tokens(result(File("text/plain", body))) / as_text < 1.1
    assert estimate_tokens(result(File("text/plain", b""))) == estimate_tokens(result())
    sizes = [estimate_tokens(result(File("application/pdf", bytes(size)))) for size in (1, 10**6, 10**7, 10**8)]
    assert sizes[0] >= 1_500
    assert 20_000 < sizes[1] < 50_000
    assert sizes[1] < sizes[2] == sizes[3]


def test_reasoning_that_is_sent_back_counts_wherever_in_the_payload_it_stands() -> None:
    thought = "so the carrier has it " * 50
    flat = Opaque("anthropic", "m", {"type": "thinking", "thinking": thought, "signature": "c2ln" * 100})
    nested = Opaque("openai", "m", {"summary": [{"text": thought}], "encrypted_content": "c2ln" * 100, "n": [1, None]})
    bare = estimate_tokens(Assistant("Yes."))
    for opaque in (flat, nested):
        assert 250 < estimate_tokens(Assistant("Yes.", opaque=(opaque,))) - bare < 400
        assert estimate_tokens(User((opaque,))) > 250
