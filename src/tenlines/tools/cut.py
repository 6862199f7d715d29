"""Shortening that says what is missing. Head and tail stay: errors and summaries stand at the end.

Text is cut between lines where there are lines; JSON is cut between items, so that what is left is JSON. Limits are in
bytes of UTF-8 (`tenlines.tools.breaks` says why), counts are of characters, lines and items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice, pairwise
from json.encoder import encode_basestring
from typing import NamedTuple, TypeAlias

from tenlines.core.transcript import JsonValue
from tenlines.tools.breaks import boundary, fits, prefix, size, suffix

KEPT = "the whole is kept in the run's journal"
_CONTROL = re.compile("[\x7f-\x9f]")  # the ones that JSON may contain as they are

_Span: TypeAlias = tuple[int, int]

TROUBLE = ("Traceback (most", "error:", "Error:", "ERROR", "FAILED", "panic:")
"""Words by which logs of compilers, tests and servers say what went wrong."""
_SEARCHED = 500_000
"""Characters that are searched for them, from the beginning; so the time has a bound."""
_ROOM_FOR_TROUBLE = 1_500
"""Bytes. With less room everything goes to head and tail."""


class CutText(NamedTuple):
    """A shortened text."""

    text: str
    shown_chars: int
    """Characters of the original that are still there."""


def cut_text(text: str, limit: int) -> CutText:
    """Keep the beginning and the end of a text that is longer than `limit` bytes.

    The result, markers included, has at most `limit` bytes. `limit` is at least 300. The end gets more room than the
    beginning, which keeps at least the names of the columns, if it names any (csv). Where the first thing that looks
    like an error would be left out, it stays too, with the lines after it.
    """
    return _cut_text(text, limit, text.count("\n"))


def _cut_text(text: str, limit: int, breaks: int) -> CutText:
    lines = breaks + (not text.endswith("\n"))
    marker_size = len(_marker(len(text), len(text), lines, 1, lines)) + len(f"{lines:,}")
    spans = _spans(text, limit - marker_size, marker_size)
    shown = text[: spans[0][1]]
    for (_, end), (begin, until) in pairwise(spans):
        first = text.count("\n", 0, end + (2 if text.startswith("\r", end) else 1)) + 1
        before = breaks - text.count("\n", begin) if until == len(text) else text.count("\n", 0, begin)
        last = before + (text[begin - 1] != "\n")
        shown += _marker(begin - end, len(text), lines, first, last) + text[begin:until]
    return CutText(shown, sum(end - begin for begin, end in spans))


def _marker(missing: int, chars: int, lines: int, first: int, last: int) -> str:
    """What is missing, of how much, and from where."""
    counted = f"{missing:,} of {chars:,} characters"
    if lines < 3 or last < first:
        return f"\n[... {counted} left out here; {KEPT} ...]\n"
    which = f"{last - first + 1:,} of {lines:,} lines ({first:,} to {last:,}; {counted})"
    return f"\n[... {which} left out here; {KEPT} ...]\n"


def _spans(text: str, room: int, marker_size: int) -> list[_Span]:
    """The pieces that stay: head and tail, and between them the first trouble, unless the head shows it."""
    head_end, tail_start = _ends(text, room)
    found = _trouble(text, tail_start) if room >= _ROOM_FOR_TROUBLE else -1
    if found < head_end:
        return [(0, head_end), (tail_start, len(text))]
    share = room // 5
    head_end, tail_start = _ends(text, room - marker_size - share)
    begin = text.rfind("\n", max(head_end, found - share // 2), found) + 1 or boundary(text, found)
    end = _line_end(text, min(begin + prefix(text[begin : begin + share], share), tail_start), begin)
    return _merged([(0, head_end), (begin, end), (tail_start, len(text))])


def _merged(spans: list[_Span]) -> list[_Span]:
    """Pieces with nothing but the end of a line between them are one."""
    merged = spans[:1]
    for begin, end in spans[1:]:
        if begin <= merged[-1][1] + 2:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def _ends(text: str, room: int) -> _Span:
    """Where the head ends and the tail begins."""
    share = room // 4 if room < 1_000 else 2 * room // 5
    head_end = max(_line_end(text, prefix(text, share)), _header_end(text, 2 * room // 3))
    tail_start = _line_start(text, suffix(text, room - size(text[:head_end])))
    return head_end, tail_start


def _header_end(text: str, room: int) -> int:
    """The end of the first line where it names the columns of a table (csv), and 0 where it does not."""
    end = text.find("\n", 0, room)
    second = text[end + 1 : end + 1 + room].partition("\n")[0]
    is_table = any(0 < text.count(mark, 0, end) == second.count(mark) for mark in "\t;|,") if end > 0 else False
    return _before_break(text, end) if is_table and fits(text[:end], room) else 0


def _trouble(text: str, end: int) -> int:
    """The first place before `end` that looks like an error; -1 where there is none."""
    end = min(end, _SEARCHED)
    places = [text.find(word, 0, end) for word in TROUBLE]
    return min((place for place in places if place >= 0), default=-1)


def _line_end(text: str, at: int, begin: int = 0) -> int:
    """The place at or before `at` where a line ends; inside a line that is too long, a place between characters."""
    newline = text.rfind("\n", begin + (at - begin) // 2, at + 1)
    return _before_break(text, newline) if newline >= 0 else boundary(text, at)


def _before_break(text: str, newline: int) -> int:
    return newline - 1 if newline and text[newline - 1] == "\r" else newline


def _line_start(text: str, at: int) -> int:
    """The place at or after `at` where a line begins; the same."""
    if text[at - 1] == "\n":
        return at
    newline = text.find("\n", at, at + (len(text) - at) // 2)
    return newline + 1 if newline >= 0 else boundary(text, at, forward=True)


# --- JSON ---------------------------------------------------------------------------------------------

FEW = 8
"""A list of so few items is cut inside its items; a longer one loses rows."""
ENOUGH = 10
"""Rows of a table; where fewer fit, shorter cells say more about what the columns hold."""
CELLS = (280, 120, 60)
"""Bytes that a cell may have where whole rows are too wide, tried in this order."""
_SMALL = 60
"""Below this many bytes nothing sensible can be shown."""

_Ends: TypeAlias = tuple[list[JsonValue], list[JsonValue]]


def dumps(value: JsonValue) -> str:
    """Strict JSON text without raw control characters."""
    return _escaped(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _escaped(text: str) -> str:
    if text.isascii() and "\x7f" not in text:
        return text
    return _CONTROL.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def _quoted(text: str) -> str:
    return _escaped(encode_basestring(text))


def cut_json(value: JsonValue, limit: int) -> str:
    """Strict JSON of at most `limit` bytes, in the shape of the value.

    Long lists keep their first rows and the last one (a list of texts, which may be a log, as much of its end as of
    its beginning), long objects their first entries, long texts head and tail; what is missing is said in its place,
    with the true count. Wide rows get shorter cells where that shows more rows. Takes time in proportion to `limit`
    and to the texts that are cut.
    """
    text = dumps(_cut(value, limit))
    if fits(text, limit):
        return text
    return dumps(_cut_string(dumps(value), limit))  # a shape that cannot be shortened (deep nesting): as a text


def _size(value: JsonValue, cap: int) -> int:
    """Bytes of its JSON text; where they are more than `cap`, any number above it."""
    if isinstance(value, str):
        return size(_quoted(value)) if len(value) <= cap else len(value)
    if not isinstance(value, list | dict):
        return len(dumps(value))
    total = 2
    if isinstance(value, list):
        for one in value:
            total += _size(one, cap) + 2
            if total > cap:
                break
    else:
        for name, one in value.items():
            total += _name_size(name, cap) + _size(one, cap)
            if total > cap:
                break
    return total


def _name_size(name: str, cap: int) -> int:
    return _size(name, cap) + 4


def _cut(value: JsonValue, room: int) -> JsonValue:
    if _size(value, room) <= room:
        return value
    if isinstance(value, str):
        return _cut_string(value, room)
    if isinstance(value, list):
        return _cut_items(value, room)
    if isinstance(value, dict):
        return _cut_entries(value, room)
    return "..."


def _cut_items(value: list[JsonValue], room: int) -> JsonValue:
    if len(value) <= FEW:
        needs = [_size(one, room) for one in value]
        rooms = shares(needs, room - 2 - 2 * len(value))
        if all(given >= min(need, _SMALL) for need, given in zip(needs, rooms, strict=True)) or len(value) == 1:
            return [_cut(one, given) for one, given in zip(value, rooms, strict=True)]
    first, last = _rows(value, room - len(_items_left_out(len(value), len(value))) - 6)
    missing = len(value) - len(first) - len(last)
    return [*first, _items_left_out(missing, len(value)), *last] if missing else [*first, *last]


def _rows(value: list[JsonValue], room: int) -> _Ends:
    """The first and the last rows that there is room for: whole, or in shorter cells where that shows more of them."""
    best = _ends_of_rows(value, room, 0)
    if not all(isinstance(one, list | dict) and len(one) > 1 for one in (*value[:4], value[-1])):
        return best
    for cell in CELLS:
        if _count(best) >= min(ENOUGH, len(value)):
            break
        more = _ends_of_rows(value, room, cell)
        best = more if _count(more) > _count(best) else best
    return best


def _count(ends: _Ends) -> int:
    return len(ends[0]) + len(ends[1])


def _ends_of_rows(value: list[JsonValue], room: int, cell: int) -> _Ends:
    """First and last rows with cells of at most `cell` bytes, if that is not 0.

    What does not fit at all is cut: the last row to a quarter of the room, the first one to what is left of it.
    """
    last: list[JsonValue] = []
    if all(isinstance(one, str) for one in (*value[:4], *value[-4:])):
        last = _fitting_rows(reversed(value), room // 2, 0)[::-1]
    last = last or [_cut(_narrow(value[-1], cell), max(_SMALL, room // 4))]
    room -= sum(_size(one, room) + 2 for one in last)
    first = _fitting_rows(islice(value, len(value) - len(last)), room, cell)
    return first or [_cut(value[0], room - 2)], last


def _fitting_rows(rows: Iterable[JsonValue], room: int, cell: int) -> list[JsonValue]:
    fitting: list[JsonValue] = []
    for one in rows:
        row = _narrow(one, cell)
        room -= _size(row, room) + 2
        if room < 0:
            break
        fitting.append(row)
    return fitting


def _narrow(row: JsonValue, cell: int) -> JsonValue:
    """A row in which no cell has much more than so many bytes."""
    if cell and isinstance(row, dict):
        return {name: _cut(one, cell) for name, one in row.items()}
    if cell and isinstance(row, list):
        return [_cut(one, cell) for one in row]
    return row


def _cut_entries(value: dict[str, JsonValue], room: int) -> JsonValue:
    count = len(value)
    shown = _fitting(value, room)
    if len(shown) < count:
        room -= len(_entries_left_out(count, count)) + 14
        shown = _fitting(value, room)
    rooms = shares(list(shown.values()), room - 2 - sum(_name_size(name, room) for name in shown))
    result = {name: _cut(value[name], given) for name, given in zip(shown, rooms, strict=True)}
    if len(shown) < count:
        result["..."] = _entries_left_out(count - len(shown), count)
    return result


def _fitting(value: dict[str, JsonValue], room: int) -> dict[str, int]:
    """The first entries that there is room for, when each is cut to something still sensible, and their sizes."""
    sizes: dict[str, int] = {}
    left = room
    for name, one in value.items():
        need = _size(one, room)
        left -= _name_size(name, room) + min(need, _SMALL)
        if left < 0:
            break
        sizes[name] = need
    return sizes


def shares(needs: list[int], room: int) -> list[int]:
    """Divide the room: small values get what they need, the large ones share the rest equally."""
    given = [0] * len(needs)
    for rank, index in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        given[index] = min(needs[index], max(0, room) // (len(needs) - rank))
        room -= given[index]
    return given


def _items_left_out(missing: int, count: int) -> str:
    return f"... {missing:,} of {count:,} items left out here; {KEPT} ..."


def _entries_left_out(missing: int, count: int) -> str:
    return f"{missing:,} of {count:,} entries left out here; {KEPT}"


def _cut_string(text: str, room: int) -> str:
    """Shorten a text until its JSON form fits; escapes make it longer than it looks."""
    room -= 2
    limit, breaks = min(room, len(text)), text.count("\n")
    while limit >= 0:
        short = _cut_text(text, limit, breaks).text if limit >= 300 else _short(text, limit)
        over = size(dumps(short)) - 2 - room
        if over <= 0:
            return short
        limit -= max(1, over // 2)
    return ""


def _short(text: str, limit: int) -> str:
    marker = f"... ({len(text):,} characters)"
    room = limit - len(marker)
    return text[: boundary(text, prefix(text, room if room > 0 else limit))] + (marker if room > 0 else "")
