"""Parts of messages as plain text, for the places of a format that take nothing else."""

from __future__ import annotations

import base64
import json

from tenlines.core.transcript import File, Image, Json, Opaque, Part, Text

NOTE_PREFIX = "[note from the runtime] "
"""How a `Note` begins: no format has a place of its own for one, so it goes as user text."""


def data_url(image: Image) -> str:
    """The bytes of an image as a `data:` address."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"


def plain_text(parts: tuple[Part, ...]) -> str:
    """Parts as text, joined by blank lines. Binary content becomes a short stub: base64 would flood the window."""
    if len(parts) == 1:
        return part_text(parts[0])
    return "\n\n".join(text for part in parts if (text := part_text(part)))


def part_text(part: Part) -> str:
    """One part as text; "" for what no reader but its maker understands."""
    match part:
        case Text(text):
            return text
        case Json(value):
            return json.dumps(value, ensure_ascii=False)
        case Image(media_type, data, url):
            return f"({media_type}, {_size(len(data)) if data else url or 'empty'}, not shown)"
        case File(media_type, data, name):
            return f"({f'{name}, ' if name else ''}{media_type}, {_size(len(data))}, not shown)"
        case Opaque():
            return ""


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    unit, value = ("KiB", size_bytes / 1024) if size_bytes < 1024**2 else ("MiB", size_bytes / 1024**2)
    return f"{value:.1f} {unit}"
