"""The terminal."""

from __future__ import annotations

import io

from tenlines.cli.screen import console_for, signs
from tenlines.trace.text import clean

HOSTILE = "[bold]a[/bold] \x1b[2J \x1b]0;t\x07 \u202ecod \u2066x \x9b31m \ufeff \U000e0041 \r over"


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
