"""Reading Gemini's JSON: its fields come in camel case from the service, and in snake case from files that an SDK
wrote; the service itself takes both."""

from __future__ import annotations

import base64
import re
from functools import cache

from tenlines.core.transcript import File, Image, JsonObject, JsonValue
from tenlines.wire.json_values import string

DATA = (
    "functionCall",
    "functionResponse",
    "text",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""What a part can hold: one of these, and only one. The order says which one a part is when it has several."""

BESIDE = frozenset({"thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"})
"""What may stand beside it and says nothing alone."""


@cache
def snake(name: str) -> str:
    """`functionCall` as `function_call`."""
    return re.sub(r"[A-Z]", lambda one: f"_{one[0].lower()}", name)


@cache
def camel(name: str) -> str:
    """`function_call` as `functionCall`; anything else as it is."""
    return re.sub(r"_([a-z])", lambda one: one[1].upper(), name)


def field(data: JsonObject, name: str) -> JsonValue:
    """A field in either spelling; None when it is missing."""
    return data[name] if name in data else data.get(snake(name))


def key_of(data: JsonObject, name: str) -> str:
    """The key under which a field stands, or is to be put."""
    return snake(name) if name not in data and snake(name) in data else name


def kinds_of(part: JsonObject) -> tuple[str, ...]:
    """The data fields that a part really has."""
    return tuple(name for name in DATA if field(part, name) is not None)


def media(part: JsonObject) -> Image | File | None:
    """The picture or file in a part; None when it has none."""
    blob = field(part, "inlineData")
    if isinstance(blob, dict):
        kind, data = string(field(blob, "mimeType")), _bytes(string(blob.get("data")))
        return Image(kind, data) if kind.startswith("image/") else File(kind, data, string(field(blob, "displayName")))
    link = field(part, "fileData")
    if isinstance(link, dict):
        return Image(string(field(link, "mimeType")) or "image/*", url=string(field(link, "fileUri")))
    return None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.translate(_STANDARD) + "=" * (-len(text) % 4))
    except ValueError:
        return b""


_STANDARD = str.maketrans("-_", "+/")
"""JSON of protocol buffers may hold either alphabet of base64."""
