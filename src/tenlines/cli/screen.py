"""What may reach a terminal: text of models and tools made harmless, and the console it is written to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: the cursor, colours, the title, the clipboard
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or turn text round
    "\u2028\u2029\ud800-\udfff\U000e0000-\U000e007f]"  # line ends of a kind, halves of characters, hidden tags
)
"""Characters that do something to a terminal or to a reader instead of being seen. New lines and tabs are kept,
and so are the joiners that emoji and some scripts need."""


def clean(text: str) -> str:
    """The text with every harmful character spelled out (`\\x1b`, `\\u202e`)."""
    return _HARMFUL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def clean_json(text: str) -> str:
    """The same for JSON, which stays the same JSON: such characters stand in strings only."""
    return _HARMFUL.sub(lambda found: _json_escape(ord(found[0])), text)


def json_line(value: Any, out: TextIO) -> str:
    """A value as one line of JSON, for this output."""
    import msgspec

    line = msgspec.json.encode(value).decode()
    return clean_json(line) if out.isatty() else line


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)
    return f"\\u{high:04x}\\u{low:04x}"


def one_line(text: str, width: int = 200) -> str:
    """The text made harmless, in one line of at most `width` characters."""
    # only the beginning is looked at: a result may have megabytes
    line = " ".join(clean(text[: 4 * width]).split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"


class Signs(NamedTuple):
    """The few signs that the views use, in what the terminal can show."""

    ok: str
    bad: str
    stopped: str
    back: str
    dot: str
    spinner: str


def signs(console: Console) -> Signs:
    """Unicode where the output can carry it."""
    if console.options.ascii_only:
        return Signs("ok", "x", "#", "->", "|", "|/-\\")
    return Signs("✓", "✗", "■", "→", "·", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")


def console_for(stream: TextIO) -> Console:
    """A console that takes text as text: no markup, no emoji codes, no highlighting of its own."""
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False)


def lenient(stream: TextIO) -> None:
    """Let a stream write what its encoding lacks as an escape, instead of failing in the middle of an answer."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


@contextmanager
def own_stdout() -> Iterator[TextIO]:
    """Standard output for us alone: what tools print, and the programs that they start, goes to standard error.

    It stays so until the process ends: a tool that was given up may still print after the answer.
    """
    if not _is_real_output():
        out = sys.stdout
        with redirect_stdout(sys.stderr):
            yield out
        return
    sys.stdout.flush()
    kept = os.dup(1)  # not inherited by child processes
    os.dup2(2, 1)
    with os.fdopen(kept, "w", encoding=sys.stdout.encoding, errors="backslashreplace") as out:
        yield out


def _is_real_output() -> bool:
    try:
        return sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (OSError, ValueError):
        return False  # captured, or replaced by whoever runs us in his process
