"""What may reach a terminal."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.cli.screen import console_for, signs
from tenlines.trace.text import clean, clean_json, one_line

HOSTILE = "[bold]a[/bold] \x1b[2J \x1b]0;t\x07 \u202ecod \u2066x \x9b31m \ufeff \U000e0041 \r over"


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


def test_a_console_prints_text_as_text() -> None:
    out = io.StringIO()
    console_for(out).print(clean(HOSTILE))
    shown = out.getvalue()
    assert "[bold]a[/bold]" in shown
    assert not any(bad in shown for bad in "\x1b\x07\u202e\u2066\x9b\r")


def test_signs_fall_back_to_what_the_encoding_has() -> None:
    ascii_out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert signs(console_for(ascii_out)).ok == "ok"
    assert signs(console_for(io.StringIO())).ok == "✓"
