"""What a repair changed, as a diff of messages that a person can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import NamedTuple

from tenlines.core.transcript import JsonValue

LINE = 160
"""Characters of a line that are shown."""
HUNK = 60
"""Lines of one place that are shown."""


class Hunk(NamedTuple):
    """One place where messages differ."""

    begin: int
    """Index of the first message that differs, among the old ones."""
    lines: tuple[str, ...]
    """Each begins with `-`, `+` or a blank."""


def hunks(old: Sequence[JsonValue], new: Sequence[JsonValue]) -> Iterator[Hunk]:
    """Where two lists of messages differ. Messages that are equal cost one comparison each."""
    before, after = [_one_line(one) for one in old], [_one_line(one) for one in new]
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    matcher = SequenceMatcher(None, before[first:], after[first:], autojunk=False)
    for what, i, j, k, m in matcher.get_opcodes():
        if what != "equal":
            yield Hunk(first + i, tuple(_lines(old[first + i : first + j], new[first + k : first + m])))


def _one_line(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(old: Sequence[JsonValue], new: Sequence[JsonValue]) -> Iterator[str]:
    """The lines of the messages, with two of context; at most `HUNK` of them."""
    before = [line for one in old for line in _pretty(one)]
    after = [line for one in new for line in _pretty(one)]
    shown = [line for line in list(unified_diff(before, after, lineterm="", n=2))[2:] if not line.startswith("@@")]
    for line in shown[:HUNK]:
        yield line if len(line) <= LINE else f"{line[: LINE - 1]}…"
    if len(shown) > HUNK:
        yield f"  … {len(shown) - HUNK} more lines"


def _pretty(value: JsonValue) -> list[str]:
    return json.dumps(value, ensure_ascii=False, indent=2).split("\n")
