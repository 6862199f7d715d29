"""Parts of messages as content blocks of this format, and back."""

from __future__ import annotations

import base64
import re

from tenlines.core.transcript import File, Image, JsonObject, JsonValue, Opaque, Part, Text
from tenlines.wire.json_values import items, string
from tenlines.wire.parts import part_text

PROVIDER = "anthropic"
REASONING = ("thinking", "redacted_thinking")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The only kinds of images that the format takes; others are sent as a stub of text."""

_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def text_block(text: str) -> JsonObject:
    """A block of text."""
    return {"type": "text", "text": text}


def is_compaction(block: JsonValue) -> bool:
    """Whether a block summarises what stood before it, or says that this failed."""
    return isinstance(block, dict) and block.get("type") == "compaction"


def is_summary(block: JsonValue) -> bool:
    """Whether a compaction block came to something: everything before it is read no more."""
    return isinstance(block, dict) and is_compaction(block) and bool(block.get("content"))


def first_said(content: JsonValue) -> JsonValue:
    """The first block of a reply, for which a summary before it does not count; None where there is none."""
    return next((block for block in items(content) if not is_compaction(block)), None)


def is_empty_compaction(block: JsonValue) -> bool:
    """Whether a summary is the empty text, which the provider refuses: one that failed has null for it (ANT-34)."""
    return isinstance(block, dict) and is_compaction(block) and block.get("content") == ""


def server_call(block: JsonValue) -> str:
    """The id of a call of a server's tool; "" for any other block."""
    if not isinstance(block, dict) or block.get("type") not in ("server_tool_use", "mcp_tool_use"):
        return ""
    return str(block.get("id") or "")


def server_result(block: JsonValue) -> str:
    """The id of the call that the result of a server's tool answers; "" for any other block."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str) or not kind.endswith("_tool_result"):
        return ""
    return str(block.get("tool_use_id") or "")


def content_blocks(parts: tuple[Part, ...]) -> list[JsonValue]:
    """Parts as blocks; what says nothing has none."""
    return [block for part in parts if (block := part_block(part)) is not None]


def part_block(part: Part) -> JsonValue:
    """One part as a block, None when it says nothing. What the format cannot carry becomes a stub of text."""
    if isinstance(part, Image):
        source = _image_source(part)
        if source is not None:
            return {"type": "image", "source": source}
    elif isinstance(part, File):
        document = _document(part)
        if document is not None:
            return document
    elif isinstance(part, Opaque):
        return part.payload if part.provider == PROVIDER and isinstance(part.payload, dict) else None
    text = part_text(part)
    return text_block(text) if text.strip() else None


def _image_source(image: Image) -> JsonObject | None:
    found = _DATA_URL.fullmatch(image.url)
    media_type = found[1] if found else image.media_type
    if image.url and not image.data and found is None:
        return {"type": "url", "url": image.url}
    if media_type not in IMAGE_TYPES or not (image.data or found):
        return None
    data = found[2] if found and not image.data else base64.b64encode(image.data).decode("ascii")
    return {"type": "base64", "media_type": media_type, "data": data}


def _document(file: File) -> JsonObject | None:
    """PDFs and text can be sent; other files cannot."""
    source: JsonObject
    if file.media_type == "application/pdf" and file.data:
        data = base64.b64encode(file.data).decode("ascii")
        source = {"type": "base64", "media_type": file.media_type, "data": data}
    elif file.media_type.startswith("text/"):
        text = file.data.decode("utf-8", "replace")
        if not text.strip():
            return None
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return None
    return {"type": "document", "source": source, "title": file.name} if file.name else _untitled(source)


def _untitled(source: JsonObject) -> JsonObject:
    return {"type": "document", "source": source}


def parts_of(content: JsonValue) -> tuple[Part, ...]:
    """The content of a result, or one block of media, as parts. Empty texts are left out; what has no part of its own
    is kept as an opaque one, so that it can be written again as it was."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        return ()
    return tuple(part for block in content if (part := _part(block)) is not None)


def _part(block: JsonValue) -> Part | None:
    if not isinstance(block, dict):
        return Text(block) if isinstance(block, str) and block else None
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and not text:
        return None
    if kind == "text" and isinstance(text, str) and set(block) <= {"type", "text", "cache_control"}:
        return Text(text)
    media = _media(block) if kind in ("image", "document") else None
    return media or Opaque(PROVIDER, "", block)


def _media(block: JsonObject) -> Part | None:
    source, title = block.get("source"), block.get("title")
    if not isinstance(source, dict) or not set(block) <= {"type", "source", "title", "cache_control"}:
        return None
    name = string(title)
    if block.get("type") == "image" and source.get("type") == "url" and isinstance(source.get("url"), str):
        return Image("image/*", url=str(source["url"]))
    media_type, data = source.get("media_type"), source.get("data")
    if not isinstance(media_type, str) or not isinstance(data, str):
        return None
    if block.get("type") == "document" and source.get("type") == "text":
        return File("text/plain", data.encode("utf-8", "replace"), name)
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    if source.get("type") != "base64":
        return None
    return Image(media_type, raw) if block.get("type") == "image" else File(media_type, raw, name)
