"""Where a text may be cut: sizes in bytes of UTF-8, and places that split nothing a reader sees as one.

Limits are in bytes because tokens are: a Chinese character takes about one token and three bytes, four letters of
English take one token and four bytes. No function here looks at more of a text than its limit.
"""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # one character, as JSON may write it
    r"|\\x1b\[[0-9;?]{0,16}[@-~]"  # a colour, made visible
    r"|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
)
_LONGEST_ESCAPE = 22
_VIRAMA = 9  # joins two consonants of an Indic script
_MAX_CLUSTER = 64
"""Characters that are followed when looking for a place to cut; more in one is an attack, not a word."""

_EXTENDS = re.compile(
    "[\u200c\u200d\uff9e\uff9f\u0e33\u0eb3"  # joiners, and vowels and voicing marks that are letters to Unicode
    "\u1160-\u11ff\ud7b0-\ud7fb"  # the second and third part of a Hangul syllable
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"  # tones of skin, and the tags of some flags
)
_HANGUL_BEGINS = re.compile("[\u1100-\u115f\ua960-\ua97c]")
_HANGUL_GOES_ON = re.compile("[\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb]")
_PREPENDED = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3"
    "\U0001193f\U00011941\U00011a84-\U00011a89\U00011d46]"
)
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_MOST_IN_A_ROW = 100_000
"""Characters that are counted back to find which of them are pairs."""


def size(text: str) -> int:
    """Bytes that it takes as UTF-8; a lone surrogate counts as what will replace it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fits(text: str, room: int) -> bool:
    """Whether it takes at most `room` bytes; a text that is much too long is not encoded to find out."""
    return len(text) <= room and size(text) <= room


def prefix(text: str, room: int) -> int:
    """How many characters at the beginning take at most `room` bytes."""
    piece = text[: max(0, room)]
    return len(piece) if piece.isascii() else len(_encoded(piece)[:room].decode("utf-8", "ignore"))


def suffix(text: str, room: int) -> int:
    """Where the characters at the end begin that take at most `room` bytes."""
    if room <= 0:
        return len(text)
    piece = text[-room:]
    if not piece.isascii():
        piece = _encoded(piece)[-room:].decode("utf-8", "ignore")
    return len(text) - len(piece)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # what cannot be sent counts as one byte less than it could


def boundary(text: str, at: int, *, forward: bool = False) -> int:
    """The nearest place that splits neither what is one character on the screen nor an escape such as `\\x1b`."""
    place = at
    for _ in range(_MAX_CLUSTER):
        place = _beside_escape(text, place, forward)
        if not 0 < place < len(text) or not _is_joined(text, place):
            return place
        place += 1 if forward else -1
    return at


def _beside_escape(text: str, at: int, forward: bool) -> int:
    begin = max(0, at - _LONGEST_ESCAPE)
    if "\\" not in text[begin:at]:
        return at
    for match in _ESCAPE.finditer(text, begin, at + _LONGEST_ESCAPE):
        if match.start() < at < match.end():
            return match.end() if forward else match.start()
    return at


def _is_joined(text: str, place: int) -> bool:
    """Whether the characters on both sides make one: at least where Unicode says so (UAX #29), and a little more."""
    before, after = text[place - 1], text[place]
    if before < " ":
        return before == "\r" and after == "\n"
    if before == "\\" and _are_in_a_row("\\", text, place) % 2 == 1:  # an escape of JSON
        return True
    if after < "\u0300":
        return before == "\u200d" or _PREPENDED.match(before) is not None
    if _EXTENDS.match(after) or unicodedata.category(after)[0] == "M":
        return True
    if before == "\u200d" or unicodedata.combining(before) == _VIRAMA or _PREPENDED.match(before):
        return True
    if after in _FLAG_LETTERS:  # two make a flag
        return _are_in_a_row(_FLAG_LETTERS, text, place) % 2 == 1
    return bool(_HANGUL_BEGINS.match(before) and _HANGUL_GOES_ON.match(after))


def _are_in_a_row(letters: str, text: str, place: int) -> int:
    """How many of the letters stand right before the place."""
    before = text[max(0, place - _MOST_IN_A_ROW) : place]
    return len(before) - len(before.rstrip(letters))
