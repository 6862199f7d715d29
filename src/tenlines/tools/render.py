"""A tool's value as parts of bounded size: what the model sees of it.

The rules, in this order:

- A text is shown as it is. `None` is `(no output)`; an empty text stays empty, it is a result.
- `Text`, `Image`, `File` and `Json` parts, alone or in a list, pass as parts; what else is in such a list is
  rendered as if it stood alone.
- Everything else becomes strict JSON text by the table in `tenlines.tools.plain`.
- Bytes are never shown, only what they are: `tenlines.tools.binary`.
- Pairs of surrogates become the character they stand for; a surrogate alone becomes U+FFFD, and a remark counts
  them. In texts, control characters other than tab, line feed and carriage return become visible escapes (`\\x1b`,
  `\\x00`), with a remark; in JSON they are JSON escapes.
- What is longer than the limit is cut by `tenlines.tools.cut`: the beginning and the end stay, a marker between
  them says what is missing, and the whole text is in `full`. A text that is JSON on a single line is cut as JSON; one
  on many lines is cut between lines, so that every line is as it was.

The limit is in bytes of UTF-8: `max_result` tokens of four bytes each. Of text whose tokens are shorter (numbers, ids,
JSON, most scripts but the Latin one) less is shown, by what `core.transcript.estimate_text` says of it.
Memory beside the value: nothing for a text that can be sent as it is, for it is `full` itself; for other values their
JSON text, twice while it is made.

So what is shown, stored and sent always encodes as UTF-8, and no NUL reaches a store that refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import structs

from tenlines.core.transcript import File, Image, Json, JsonValue, Part, Text, estimate_text
from tenlines.ports import Rendered
from tenlines.tools.breaks import fits, size
from tenlines.tools.cut import cut_json, cut_text, dumps, shares
from tenlines.tools.plain import plain

NO_OUTPUT = "(no output)"
MOST_PARSED = 4_000_000
"""Characters of a text that is looked at as JSON: reading it takes about eight times its size."""

_PARTS = (Text, Image, File, Json)
_NO_OUTPUT = Rendered((Text(NO_OUTPUT),))
_MOST_PER_CHARACTER = 13
"""Four times the tokens that a single character is estimated at, at most."""
_SAMPLE = 4_096
"""Characters from which it is told how many bytes a character of a long text has."""
_LEAST_ROOM = 400
"""Bytes. Less is not enough to show anything and say what is missing."""
_LEAST_SHARE = 300
"""Bytes. Less is not enough for what is left of a text and the words that say what is missing."""


def render(value: Any, max_bytes: int) -> Rendered:
    """Show a value in at most `max_bytes` bytes of UTF-8 (at least 400), by the rules of this module.

    Never raises unless the value changes meanwhile, never calls the tool again, and gives the same for the same value.
    """
    if type(value) is str:
        if _MOST_PER_CHARACTER * len(value) <= max_bytes and value.isprintable():
            return Rendered((Text(value),))
        return _text(value, max_bytes)
    if value is None:
        return _NO_OUTPUT
    if isinstance(value, _PARTS):
        return _parts([value], max_bytes)
    if isinstance(value, list | tuple) and any(isinstance(one, _PARTS) for one in value):
        return _parts(value, max_bytes)
    return _json(value, max_bytes)


def _text(value: str, max_bytes: int) -> Rendered:
    text, remarks = clean(value)
    max_bytes = room_for(text, max_bytes)
    if fits(text, max_bytes):
        return Rendered((Text(text),), remarks=remarks)
    short, shown_chars = _cut(text, max_bytes)
    return Rendered((Text(short),), True, shown_chars, len(text), text, remarks)


def room_for(text: str, max_bytes: int) -> int:
    """How many bytes of a text like this one have as many tokens as so many bytes of plain English have."""
    tokens = estimate_text(text)
    if 4 * tokens <= max_bytes:
        return max_bytes
    sample = text if len(text) <= _SAMPLE else text[:: len(text) // _SAMPLE]
    bytes_a_token = size(sample) / len(sample) * len(text) / tokens
    return min(max_bytes, max(_LEAST_ROOM, int(max_bytes / 4 * bytes_a_token)))


def _cut(text: str, max_bytes: int) -> tuple[str, int]:
    """A text that is too long, cut as what it is."""
    parsed = _parsed(text)
    if parsed is None:
        return cut_text(text, max_bytes)
    shown, _ = clean(cut_json(plain(parsed), max_bytes), is_json=True)  # an escaped surrogate is one again by now
    return shown, len(shown)


def _parsed(text: str) -> JsonValue:
    """The list or object that a text of one line is; None where it is anything else."""
    if len(text) > MOST_PARSED or text[:1] not in ("[", "{") or "\n" in text.rstrip():
        return None
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _json(value: Any, max_bytes: int) -> Rendered:
    simple = plain(value)
    if isinstance(simple, str):
        return _text(simple, max_bytes)
    raw = dumps(simple)
    text, remarks = clean(raw, is_json=True)
    max_bytes = room_for(text, max_bytes)
    if fits(text, max_bytes):
        return Rendered((Text(text),), remarks=remarks)
    shown = cut_json(simple if text is raw else json.loads(text), max_bytes)
    return Rendered((Text(shown),), True, len(shown), len(text), text, remarks)


# --- several parts ------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """One part, and its text, which is "" for an image or a file."""

    part: Part
    text: str = ""
    remarks: tuple[str, ...] = ()


def _parts(values: list[Any] | tuple[Any, ...], max_bytes: int) -> Rendered:
    """Several parts share the limit; where there are too many for that, their text is cut as one before the rest."""
    pieces = [_piece(value) for value in values]
    remarks = tuple(remark for piece in pieces for remark in piece.remarks)
    max_bytes = min((room_for(one.text, max_bytes) for one in pieces if one.text), default=max_bytes)
    needs = [size(one.text) if len(one.text) <= max_bytes else len(one.text) for one in pieces]
    if sum(needs) <= max_bytes:
        return Rendered(tuple(one.part for one in pieces), remarks=remarks)
    whole = "\n\n".join(one.text for one in pieces if one.text)
    rooms = shares(needs, max_bytes)
    if all(room >= min(need, _LEAST_SHARE) for need, room in zip(needs, rooms, strict=True)):
        cut = [_shortened(piece, room) for piece, room in zip(pieces, rooms, strict=True)]
        return Rendered(
            tuple(part for part, _ in cut), True, sum(chars for _, chars in cut), len(whole), whole, remarks
        )
    short = cut_text(whole, max_bytes)
    others = [one.part for one in pieces if isinstance(one.part, Image | File)]
    return Rendered((Text(short.text), *others), True, short.shown_chars, len(whole), whole, remarks)


def _piece(value: Any) -> _Piece:
    if isinstance(value, Image):
        return _Piece(structs.replace(value, media_type=_utf8(value.media_type), url=_utf8(value.url)))
    if isinstance(value, File):
        return _Piece(structs.replace(value, media_type=_utf8(value.media_type), name=_utf8(value.name)))
    if isinstance(value, Json):
        text, remarks = clean(dumps(plain(value.value)), is_json=True)
        return _Piece(Json(json.loads(text)), text, remarks)
    simple = plain(value.text if isinstance(value, Text) else value)
    text, remarks = clean(simple) if isinstance(simple, str) else clean(dumps(simple), is_json=True)
    return _Piece(Text(text), text, remarks)


def _shortened(piece: _Piece, room: int) -> tuple[Part, int]:
    """The part in so much room, and the characters of its text that are shown."""
    if fits(piece.text, room):
        return piece.part, len(piece.text)
    if isinstance(piece.part, Json):
        shown = cut_json(piece.part.value, room)
        return Json(json.loads(shown)), len(shown)
    text, chars = _cut(piece.text, room)
    return Text(text), chars


# --- text that can be sent and stored -----------------------------------------------------------------

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROLS = {chr(code): f"\\x{code:02x}" for code in range(0xA0) if _CONTROL.match(chr(code))}
_CONTROL_TABLE = str.maketrans(_CONTROLS)
_CONTROL_BYTES = bytes(ord(one) for one in _CONTROLS if one < "\x80")
_LATE_CONTROL = re.compile(b"\xc2[\x80-\x9f]")  # U+0080 to U+009F in UTF-8
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_AT_ONCE = 1 << 20
"""Characters that are looked at, and copied, at a time."""
_FEW = 8
"""So many kinds of control characters are replaced one after the other; for more, each character is looked up."""


def clean(text: str, *, is_json: bool = False) -> tuple[str, tuple[str, ...]]:
    """Text that encodes as UTF-8 and has no control characters, and a remark on each kind of repair.

    The very same object where there is nothing to repair. Text from `dumps` has its control characters escaped already.
    """
    remarks: tuple[str, ...] = ()
    if not text.isascii() and any(map(_has_surrogate, _pieces(text))):
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        text, count = _SURROGATE.subn("\ufffd", text)
        if count:
            remarks += (f"{_count(count, 'lone surrogate')} replaced by U+FFFD",)
    if not is_json and any(map(_has_control, _pieces(text))):
        count = 0
        repaired = []
        for piece in _pieces(text):
            shown, found = _visible(piece)
            repaired.append(shown)
            count += found
        text = "".join(repaired)
        remarks += (f"{_count(count, 'control character')} shown as \\xNN",)
    return text, remarks


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))


def _has_surrogate(piece: str) -> bool:
    try:
        piece.encode()
    except UnicodeEncodeError:
        return True
    return False


def _has_control(piece: str) -> bool:
    data = piece.encode()  # deleting from bytes is the fastest search there is
    return len(data.translate(None, _CONTROL_BYTES)) < len(data) or (
        not piece.isascii() and _LATE_CONTROL.search(data) is not None
    )


def _visible(piece: str) -> tuple[str, int]:
    """A piece with its control characters shown, and how many they were."""
    found = {one: piece.count(one) for one in _CONTROLS if one in piece}
    if len(found) > _FEW:
        return piece.translate(_CONTROL_TABLE), sum(found.values())
    for one in found:
        piece = piece.replace(one, _CONTROLS[one])
    return piece, sum(found.values())


def _utf8(text: str) -> str:
    return clean(text)[0] if text else text


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count > 1 else ''}"
