"""Waiting for what other processes do, and reading what a terminal showed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text: str) -> str:
    """What a terminal showed, without colours and cursor moves."""
    return ANSI.sub("", text)


def until(ready: Callable[[], bool]) -> None:
    """Wait for a condition."""
    for _ in range(2000):
        if ready():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")
