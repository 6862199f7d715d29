"""A tool's value as parts of bounded size: what the model sees of it.

The rules, in this order:

- A text is shown as it is. `None` is `(no output)`; an empty text stays empty, it is a result.
- `Text`, `Image`, `File` and `Json` parts, alone or in a list, pass as parts; what else is in such a list is
  rendered as if it stood alone.
- Everything else becomes strict JSON text by the table in `tenlines.tools.plain`.
- Pairs of surrogates become the character they stand for; a surrogate alone becomes U+FFFD, and a remark counts
  them. In texts, control characters other than tab, line feed and carriage return become visible escapes (`\\x1b`,
  `\\x00`), with a remark; in JSON they are JSON escapes.
- What is longer than the limit is cut by `tenlines.tools.cut`: the beginning and the end stay, a marker between
  them says what is missing, and the whole text is in `full`.

So what is shown, stored and sent always encodes as UTF-8, and no NUL reaches a store that refuses it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import structs

from tenlines.core.transcript import File, Image, Json, Part, Text
from tenlines.ports import Rendered
from tenlines.tools.cut import cut_json, cut_text, dumps
from tenlines.tools.plain import plain

NO_OUTPUT = "(no output)"

_PARTS = (Text, Image, File, Json)
_NO_OUTPUT = Rendered((Text(NO_OUTPUT),))
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROL_BYTES = bytes(code for code in range(0x80) if _CONTROL.match(chr(code)))
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def render(value: Any, max_chars: int) -> Rendered:
    """Show a value in at most `max_chars` characters (at least 400), by the rules of this module.

    Never raises, never calls the tool again, and gives the same for the same value.
    """
    if type(value) is str:
        if len(value) <= max_chars and value.isprintable():
            return Rendered((Text(value),))
        return _text(value, max_chars)
    if value is None:
        return _NO_OUTPUT
    if isinstance(value, _PARTS):
        return _parts([value], max_chars)
    if isinstance(value, list | tuple) and any(isinstance(one, _PARTS) for one in value):
        return _parts(value, max_chars)
    return _json(value, max_chars)


def _text(value: str, max_chars: int) -> Rendered:
    text, remarks = clean(value)
    if len(text) <= max_chars:
        return Rendered((Text(text),), remarks=remarks)
    short = cut_text(text, max_chars)
    return Rendered((Text(short.text),), True, short.shown_chars, len(text), text, remarks)


def _json(value: Any, max_chars: int) -> Rendered:
    simple = plain(value)
    if isinstance(simple, str):
        return _text(simple, max_chars)
    raw = dumps(simple)
    text, remarks = clean(raw, is_json=True)
    if len(text) <= max_chars:
        return Rendered((Text(text),), remarks=remarks)
    shown = cut_json(simple if text is raw else json.loads(text), max_chars)
    return Rendered((Text(shown),), True, len(shown), len(text), text, remarks)


def _parts(values: list[Any] | tuple[Any, ...], max_chars: int) -> Rendered:
    """Several parts share the limit. Where their text is too long, it is cut as one text before the rest."""
    shown: list[Part] = []
    texts: list[str] = []
    remarks: tuple[str, ...] = ()
    for value in values:
        part, text, more = _part(value)
        shown.append(part)
        texts.append(text)
        remarks += more
    if sum(map(len, texts)) <= max_chars:
        return Rendered(tuple(shown), remarks=remarks)
    whole = "\n\n".join(text for text in texts if text)
    short = cut_text(whole, max_chars)
    others = [part for part in shown if isinstance(part, Image | File)]
    return Rendered((Text(short.text), *others), True, short.shown_chars, len(whole), whole, remarks)


def _part(value: Any) -> tuple[Part, str, tuple[str, ...]]:
    """One part, its text, and remarks."""
    if isinstance(value, Image):
        return structs.replace(value, media_type=_utf8(value.media_type), url=_utf8(value.url)), "", ()
    if isinstance(value, File):
        return structs.replace(value, media_type=_utf8(value.media_type), name=_utf8(value.name)), "", ()
    if isinstance(value, Json):
        text, remarks = clean(dumps(plain(value.value)), is_json=True)
        return Json(json.loads(text)), text, remarks
    simple = plain(value.text if isinstance(value, Text) else value)
    if isinstance(simple, str):
        text, remarks = clean(simple)
    else:
        text, remarks = clean(dumps(simple), is_json=True)
    return Text(text), text, remarks


# --- text that can be sent and stored -----------------------------------------------------------------


def clean(text: str, *, is_json: bool = False) -> tuple[str, tuple[str, ...]]:
    """Text that encodes as UTF-8 and has no control characters, and a remark on each kind of repair.

    Text from `dumps` has its control characters escaped already.
    """
    remarks: tuple[str, ...] = ()
    if _has_surrogates(text):
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        text, count = _SURROGATE.subn("\ufffd", text)
        if count:
            remarks += (f"{_count(count, 'lone surrogate')} replaced by U+FFFD",)
    if not is_json and _has_controls(text):
        text, count = _CONTROL.subn(lambda one: f"\\x{ord(one[0]):02x}", text)
        remarks += (f"{_count(count, 'control character')} shown as \\xNN",)
    return text, remarks


def _has_surrogates(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _has_controls(text: str) -> bool:
    if not text.isascii():
        return _CONTROL.search(text) is not None
    data = text.encode()  # deleting from bytes is the fastest search there is
    return len(data.translate(None, _CONTROL_BYTES)) < len(data)


def _utf8(text: str) -> str:
    return clean(text)[0] if text else text


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count > 1 else ''}"
