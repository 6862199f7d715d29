"""`read_result`: the tool with which a model reads on in a result that was cut, or left out of the transcript."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from tenlines.tools.breaks import boundary, fits, prefix, size
from tenlines.tools.plan import BYTES_PER_TOKEN, Options, Plan
from tenlines.tools.render import clean
from tenlines.tools.tool import Tool

PAGE = 4_000
"""Tokens of one answer."""
AROUND = 200
"""Characters that are shown on each side of a place that was searched for, where its line is longer."""
COUNTED = 10_000
"""Places that are counted; more are `more than`."""

_HEADING = 260
"""Bytes set aside for the words around what is read, the key and what was searched for not counted."""
_QUOTED = 40
"""Characters of what was searched for that are said again."""
_LEAST = 100
"""Bytes that are read in any case."""


class ReadResult(Tool[..., str]):
    """The built-in tool `read_result`. What it answers never needs to be read on with it: each answer fits."""

    def __init__(self, whole: Callable[[str], str], max_result: int = PAGE) -> None:
        """Make one for the results of a run.

        Args:
            whole: Gives the whole text of a result by the key of its call, `RUN:STEP:POSITION`. Raises `LookupError`
                with a sentence, for the model, where there is none.
            max_result: Tokens of one answer.
        """
        read = _Reader(whole, max_result * BYTES_PER_TOKEN).read_result
        super().__init__(read, Plan(read, Options(read_only=True, max_result=max_result), {}))


class _Reader:
    def __init__(self, whole: Callable[[str], str], max_bytes: int) -> None:
        self.whole, self.max_bytes = whole, max_bytes

    def read_result(self, key: str, offset: int = 0, find: str = "") -> str:
        """Read on in a result that was cut or left out.

        Args:
            key: The key named there.
            offset: Character to begin at; negative: from the end.
            find: Show only the places with this text.
        """
        text = self.whole(key)
        if not text:
            return f"The result of {key} is empty."
        begin = _begin(text, key, offset)
        return self._places(text, key, begin, find) if find else self._page(text, key, begin)

    def _page(self, text: str, key: str, begin: int) -> str:
        end, shown = _piece(text, begin, self._room(key))
        more = f"for more: offset={end}" if end < len(text) else "this is the end"
        return f"[characters {begin:,} to {end:,} of {len(text):,} of the result of {key}; {more}]\n{shown}"

    def _places(self, text: str, key: str, begin: int, find: str) -> str:
        pattern, how = _pattern(text, begin, find)
        count = sum(1 for _ in islice(pattern.finditer(text, begin), COUNTED + 1))
        what = f"{clean(find[:_QUOTED])[0][:_QUOTED]!r}{how}"
        where = f"the {len(text):,} characters of the result of {key}{f' from {begin:,} on' if begin else ''}"
        if not count:
            return f"{what} does not occur in {where}."
        places, following = self._around(text, pattern, begin, self._room(key + what))
        counted = f"more than {COUNTED:,}" if count > COUNTED else f"{count:,}"
        more = "" if following < 0 else f"; for more: offset={following} and the same find"
        times = "time" if count == 1 else "times"
        return f"[{what} occurs {counted} {times} in {where}; each place with its offset{more}]\n{''.join(places)}"

    def _room(self, words: str) -> int:
        return max(_LEAST, self.max_bytes - _HEADING - size(words))

    def _around(self, text: str, pattern: re.Pattern[str], begin: int, room: int) -> tuple[list[str], int]:
        """The places that there is room for, and where the first one is that there was no room for, or -1."""
        places: list[str] = []
        shown_until = begin
        for match in pattern.finditer(text, begin):
            if match.end() <= shown_until:  # seen in the line of the one before
                continue
            first, last = _line(text, *match.span())
            label = f"{match.start()}: "
            shown = clean(text[max(first, shown_until) : last])[0]
            if not fits(shown, room - len(label) - 1):
                if places:
                    return places, match.start()
                last, shown = _piece(text, match.start(), room - len(label) - 1)
            places.append(f"{label}{shown}\n")
            room -= size(places[-1])
            shown_until = last
        return places, -1


def _begin(text: str, key: str, offset: int) -> int:
    if offset >= len(text):
        raise ValueError(
            f"offset {offset} is beyond the end: the result of {key} has {len(text)} characters, so offsets go from 0 "
            f"to {len(text) - 1}; a negative one counts from the end"
        )
    if offset >= 0:
        return offset  # as an answer named it; to move it could lead back to where that answer began
    return boundary(text, max(0, len(text) + offset))


def _piece(text: str, begin: int, room: int) -> tuple[int, str]:
    """Where a piece of at most `room` bytes ends, after a line or a row where there is one, and the piece."""
    end = begin + prefix(text[begin : begin + room], room)
    if end < len(text):
        end = _good_end(text, begin, end)
    shown = clean(text[begin:end])[0]
    while not fits(shown, room):  # text that no tool of ours made: control characters take more when they are shown
        end = begin + (end - begin) // 2
        shown = clean(text[begin:end])[0]
    return end, shown


def _good_end(text: str, begin: int, end: int) -> int:
    lowest = begin + (end - begin) // 2
    for separator in ("\n", "}, ", "], "):
        found = text.rfind(separator, lowest, end) + len(separator)
        if found > lowest and boundary(text, found) == found:
            return found
    place = boundary(text, end)
    return place if place > begin else end


def _pattern(text: str, begin: int, find: str) -> tuple[re.Pattern[str], str]:
    """What to search for: the text as it is, or in any case where it does not occur as it is."""
    exact = re.compile(re.escape(find))
    if exact.search(text, begin):
        return exact, ""
    return re.compile(re.escape(find), re.IGNORECASE), " (in upper or lower case)"


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """The line around a place, or as much of it as is shown."""
    first = text.rfind("\n", max(0, start - AROUND), start) + 1 or boundary(text, max(0, start - AROUND))
    last = text.find("\n", end, end + AROUND)
    return first, last if last >= 0 else boundary(text, min(len(text), end + AROUND), forward=True)
