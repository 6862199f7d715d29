"""What a repair changed, as a diff of messages that a person can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue

LINE = 160
"""Characters of a line that are shown."""
HUNK = 60
"""Lines of one place that are shown."""
AHEAD = 20
"""Messages that are looked at for one that is in both lists, behind some that are not."""


class Hunk(NamedTuple):
    """One place where messages differ."""

    where: str
    lines: tuple[str, ...]
    """Each begins with `-`, `+` or a blank."""


def body_hunks(old: JsonObject, new: JsonObject, field: str) -> Iterator[Hunk]:
    """Where two bodies differ: in the messages, which are in a field, and beside them."""
    for begin, before, after in _places(_messages(old, field), _messages(new, field)):
        yield Hunk(f"{field}[{begin}]", tuple(_lines(before, after)))
    beside = [[{key: value for key, value in body.items() if key != field}] for body in (old, new)]
    if beside[0] != beside[1]:
        yield Hunk("beside the messages", tuple(_lines(*beside)))


def line_hunks(old: Sequence[JsonValue], new: Sequence[JsonValue], numbers: Sequence[int]) -> Iterator[Hunk]:
    """Where messages differ that stand on lines of these numbers."""
    for begin, before, after in _places(old, new):
        number = numbers[begin] if begin < len(numbers) else numbers[-1] if numbers else 0
        yield Hunk(f"line {number}" if number else "", tuple(_lines(before, after)))


def _messages(body: JsonObject, field: str) -> list[JsonValue]:
    found = body.get(field)
    return found if isinstance(found, list) else [found]


def _places(
    old: Sequence[JsonValue], new: Sequence[JsonValue]
) -> Iterator[tuple[int, Sequence[JsonValue], Sequence[JsonValue]]]:
    """The places where two lists differ: where they begin in the old one, and what stands there in both."""
    i = k = 0
    while i < len(old) or k < len(new):
        if i < len(old) and k < len(new) and _is_same(old[i], new[k]):
            i, k = i + 1, k + 1
            continue
        j, m = _meeting(old, new, i, k)
        yield i, old[i:j], new[k:m]
        i, k = j, m


def _meeting(old: Sequence[JsonValue], new: Sequence[JsonValue], i: int, k: int) -> tuple[int, int]:
    """The next place from which two lists are alike; where none is near, one message was made another."""
    for distance in range(1, AHEAD):
        for ahead in range(distance + 1):
            j, m = i + ahead, k + distance - ahead
            if (j == len(old) and m == len(new)) or (j < len(old) and m < len(new) and _is_same(old[j], new[m])):
                return j, m
    return min(i + 1, len(old)), min(k + 1, len(new))


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    return one is other or one == other


def _lines(old: Sequence[JsonValue], new: Sequence[JsonValue]) -> Iterator[str]:
    """The lines of the messages, with two of context; at most `HUNK` of them."""
    before = [line for one in old for line in _pretty(one)]
    after = [line for one in new for line in _pretty(one)]
    shown = [line for line in list(unified_diff(before, after, lineterm="", n=2))[2:] if not line.startswith("@@")]
    for index, line in enumerate(shown[:HUNK]):
        yield _cut(line, _partner(shown, index))
    if len(shown) > HUNK:
        yield f"  … {len(shown) - HUNK} more lines"


def _partner(lines: list[str], index: int) -> str:
    """The line that a line was made of, or became, where they are neighbours; else ""."""
    for step, begins in ((1, "-+"), (-1, "+-")):
        other = lines[index + step] if 0 <= index + step < len(lines) else ""
        if lines[index][:1] + other[:1] == begins:
            return other
    return ""


def _cut(line: str, partner: str) -> str:
    """A line that is not too long: of two that begin alike, what is different can be seen."""
    if len(line) > LINE and partner:
        pairs = enumerate(zip(line[1:], partner[1:], strict=False), 1)
        same = next((index for index, (one, other) in pairs if one != other), min(len(line), len(partner)))
        if same > LINE // 2:
            line = f"{line[0]}… {line[same - LINE // 4 :]}"
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def _pretty(value: JsonValue) -> list[str]:
    return json.dumps(value, ensure_ascii=False, indent=2).split("\n")
