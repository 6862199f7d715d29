"""Shortening that says what is missing. Head and tail stay: errors and summaries stand at the end.

Text is cut between lines where there are lines; JSON is cut between items, so that what is left is JSON.
"""

from __future__ import annotations

import json
import re
import unicodedata
from json.encoder import encode_basestring
from typing import NamedTuple

from tenlines.core.transcript import JsonValue

KEPT = "the whole is kept in the run's journal"
_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4})")
_CONTROL = re.compile("[\x7f-\x9f]")  # the ones that JSON may contain as they are
_VIRAMA = 9  # joins two consonants of an Indic script
_MAX_CLUSTER = 64
"""Combining characters that are followed when looking for a place to cut; more is an attack, not a word."""


class CutText(NamedTuple):
    """A shortened text."""

    text: str
    shown_chars: int
    """Characters of the original that are still there."""


def cut_text(text: str, limit: int) -> CutText:
    """Keep the beginning and the end of a text that is longer than `limit` characters.

    The result, marker included, has at most `limit` characters. `limit` is at least 300.
    """
    breaks = text.count("\n")
    lines = breaks + (not text.endswith("\n"))
    room = limit - len(_marker(len(text), len(text), lines, 1, lines)) - len(f"{lines:,}")
    head_end = _line_end(text, room // 2)
    tail_start = _line_start(text, len(text) - (room - head_end))
    first = text.count("\n", 0, head_end + 1) + 1
    last = breaks - text.count("\n", tail_start) + (text[tail_start - 1] != "\n")
    missing = tail_start - head_end
    marker = _marker(missing, len(text), lines, first, last)
    return CutText(f"{text[:head_end]}{marker}{text[tail_start:]}", len(text) - missing)


def _marker(missing: int, chars: int, lines: int, first: int, last: int) -> str:
    """What is missing, of how much, and from where."""
    counted = f"{missing:,} of {chars:,} characters"
    if lines < 3 or last < first:
        return f"\n[... {counted} left out here; {KEPT} ...]\n"
    which = f"{last - first + 1:,} of {lines:,} lines ({first:,} to {last:,}; {counted})"
    return f"\n[... {which} left out here; {KEPT} ...]\n"


def _line_end(text: str, at: int) -> int:
    """The place at or before `at` where a line ends; inside a line that is too long, a place between characters."""
    newline = text.rfind("\n", at // 2, at + 1)
    return newline if newline >= 0 else boundary(text, at)


def _line_start(text: str, at: int) -> int:
    """The place at or after `at` where a line begins; the same."""
    if text[at - 1] == "\n":
        return at
    newline = text.find("\n", at, at + (len(text) - at) // 2)
    return newline + 1 if newline >= 0 else boundary(text, at, forward=True)


def boundary(text: str, at: int, *, forward: bool = False) -> int:
    """The nearest place that splits neither a character with its accents nor a visible escape such as `\\x1b`."""
    for match in _ESCAPE.finditer(text, max(0, at - 5), at + 6):
        if match.start() < at < match.end():
            return match.end() if forward else match.start()
    step = 1 if forward else -1
    place = at
    for _ in range(_MAX_CLUSTER):
        if not 0 < place < len(text) or not _is_joined(text[place - 1], text[place]):
            return place
        place += step
    return at


def _is_joined(before: str, after: str) -> bool:
    """Whether the two make one character on the screen."""
    if after < "\u0300":  # nothing below combines
        return before == "\u200d"
    if before == "\u200d" or unicodedata.combining(before) == _VIRAMA:
        return True
    skin_tone = "\U0001f3fb" <= after <= "\U0001f3ff"
    return skin_tone or after == "\u200d" or unicodedata.category(after)[0] == "M"


# --- JSON ---------------------------------------------------------------------------------------------

FEW = 8
"""A list of so few items is cut inside its items; a longer one loses rows."""
_SMALL = 60
"""Below this many characters nothing sensible can be shown."""


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
    """Strict JSON of at most `limit` characters, in the shape of the value.

    Long lists keep their first rows and the last one, long objects their first entries, long texts head and
    tail; what is missing is said in its place, with the true count. Takes time in proportion to `limit`.
    """
    text = dumps(_cut(value, limit))
    if len(text) <= limit:
        return text
    return dumps(_cut_string(dumps(value), limit))  # a shape that cannot be shortened (deep nesting): as a text


def _size(value: JsonValue, cap: int) -> int:
    """Characters of its JSON text; where they are more than `cap`, any number above it."""
    if isinstance(value, str):
        return len(_quoted(value)) if len(value) <= cap else len(value)
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
            total += _name_size(name) + _size(one, cap)
            if total > cap:
                break
    return total


def _name_size(name: str) -> int:
    return len(_quoted(name)) + 4


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
        sizes = [_size(one, room) for one in value]
        shares = _shares(sizes, room - 2 - 2 * len(value))
        if all(share >= min(size, _SMALL) for size, share in zip(sizes, shares, strict=True)) or len(value) == 1:
            return [_cut(one, share) for one, share in zip(value, shares, strict=True)]
    room -= len(_items_left_out(len(value), len(value))) + 6
    last = _cut(value[-1], max(_SMALL, room // 4))
    room -= len(dumps(last)) + 2
    first: list[JsonValue] = []
    for one in value[:-1]:
        size = _size(one, room) + 2
        if size > room:
            break
        first.append(one)
        room -= size
    if not first:
        first.append(_cut(value[0], room - 2))
    missing = len(value) - len(first) - 1
    return [*first, _items_left_out(missing, len(value)), last] if missing else [*first, last]


def _cut_entries(value: dict[str, JsonValue], room: int) -> JsonValue:
    count = len(value)
    shown = _fitting(value, room)
    if len(shown) < count:
        room -= len(_entries_left_out(count, count)) + 14
        shown = _fitting(value, room)
    shares = _shares(list(shown.values()), room - 2 - sum(map(_name_size, shown)))
    result = {name: _cut(value[name], share) for name, share in zip(shown, shares, strict=True)}
    if len(shown) < count:
        result["..."] = _entries_left_out(count - len(shown), count)
    return result


def _fitting(value: dict[str, JsonValue], room: int) -> dict[str, int]:
    """The first entries that there is room for, when each is cut to something still sensible, and their sizes."""
    sizes: dict[str, int] = {}
    left = room
    for name, one in value.items():
        size = _size(one, room)
        left -= _name_size(name) + min(size, _SMALL)
        if left < 0:
            break
        sizes[name] = size
    return sizes


def _shares(sizes: list[int], room: int) -> list[int]:
    """Divide the room: small values get what they need, the large ones share the rest equally."""
    shares = [0] * len(sizes)
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[index] = min(sizes[index], max(0, room) // (len(sizes) - rank))
        room -= shares[index]
    return shares


def _items_left_out(missing: int, count: int) -> str:
    return f"... {missing:,} of {count:,} items left out here; {KEPT} ..."


def _entries_left_out(missing: int, count: int) -> str:
    return f"{missing:,} of {count:,} entries left out here; {KEPT}"


def _cut_string(text: str, room: int) -> str:
    """Shorten a text until its JSON form fits; escapes make it longer than it looks."""
    room -= 2
    limit = min(room, len(text))
    while limit >= 0:
        short = cut_text(text, limit).text if limit >= 300 else _short(text, limit)
        over = len(dumps(short)) - 2 - room
        if over <= 0:
            return short
        limit -= max(1, over // 2)
    return ""


def _short(text: str, limit: int) -> str:
    marker = f"... ({len(text):,} characters)"
    end = limit - len(marker)
    return text[: boundary(text, end)] + marker if end > 0 else text[: max(0, boundary(text, max(0, limit)))]
