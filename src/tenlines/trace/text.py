"""Text of models and tools made harmless for whoever reads it: nothing hidden, nothing turned round."""

from __future__ import annotations

import re

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: the cursor, colours, the title, the clipboard
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or turn text round
    "\u2028\u2029\ud800-\udfff\U000e0000-\U000e007f]"  # line ends of a kind, halves of characters, hidden tags
)
"""Characters that do something to a terminal or to a reader instead of being seen. New lines and tabs are kept,
and so are the joiners that emoji and some scripts need."""


def clean(text: str) -> str:
    """The text with every harmful character spelled out (`\\x1b`, `\\u202e`)."""
    return _HARMFUL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def clean_json(text: str) -> str:
    """The same for JSON, which stays the same JSON: such characters stand in strings only."""
    return _HARMFUL.sub(lambda found: _json_escape(ord(found[0])), text)


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)
    return f"\\u{high:04x}\\u{low:04x}"


def one_line(text: str, width: int = 200) -> str:
    """The text made harmless, in one line of at most `width` characters."""
    # only the beginning is looked at: a result may have megabytes
    line = " ".join(clean(text[: 4 * width]).split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"
