"""Text of servers in what every request has: descriptions. Nothing hidden, nothing endless."""

from __future__ import annotations

import re
from typing import Any

from tenlines.core import outcomes
from tenlines.core.transcript import JsonObject

MOST_CHARS = 4_000
"""Of a description: it is sent with every request."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\u2028\u2029\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What a model reads and a person does not see, or sees in another order."""


def seen(text: str | None, limit: int = MOST_CHARS) -> str:
    """A text without what cannot be seen, bounded."""
    return outcomes.bounded(_HIDDEN.sub("", (text or "").replace("\r\n", "\n")), limit).strip()


def seen_schema(schema: Any) -> Any:
    """A schema with the same done to its titles and descriptions; all else as it came."""
    if isinstance(schema, list):
        return [seen_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: seen(value)
        if key in ("description", "title", "$comment") and isinstance(value, str)
        else seen_schema(value)
        for key, value in schema.items()
    }


def parameters(schema: JsonObject) -> JsonObject:
    """The schema of a tool as it is sent: an object at its root."""
    clean: JsonObject = seen_schema(schema)
    return clean if "type" in clean else {"type": "object", **clean}
