"""Text made harmless."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.trace.text import clean, clean_json, one_line


@pytest.mark.parametrize("bad", ["\x1b", "\x07", "\r", "\x00", "\x7f", "\x9b", "\u202e", "\u2066", "\u200e", "\u2028"])
def test_what_terminals_obey_is_spelled_out(bad: str) -> None:
    assert bad not in clean(f"a{bad}b")
    assert clean(f"a{bad}b").startswith("a\\")


def test_lines_tabs_and_writing_of_all_kinds_stay() -> None:
    text = "a\tb\nc é ñ 漢字 👩\u200d💻 نص"
    assert clean(text) == text
    assert clean("a\r\nb") == "a\nb"


@given(st.text())
def test_cleaned_json_is_the_same_json(text: str) -> None:
    line = json.dumps({"t": text}, ensure_ascii=False)
    assert json.loads(clean_json(line)) == {"t": text}
    assert clean(clean_json(line)) == clean_json(line)


@given(st.text(), st.integers(2, 50))
def test_one_line_is_one_harmless_line_of_that_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert clean(line) == line
    assert "\n" not in line


def test_a_long_text_is_marked_as_cut_even_when_it_is_mostly_space() -> None:
    assert one_line("a" + " " * 10_000 + "b", 20).endswith("…")
