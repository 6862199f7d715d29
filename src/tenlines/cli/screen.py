"""The terminal: the console, and the few signs that it can show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from tenlines.trace.text import clean_json

if TYPE_CHECKING:
    from rich.console import Console


def json_line(value: Any, out: TextIO) -> str:
    """A value as one line of JSON, for this output."""
    import msgspec

    line = msgspec.json.encode(value).decode()
    return clean_json(line) if out.isatty() else line


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
