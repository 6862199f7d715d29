"""Parts of messages as plain text, for the places of a format that take nothing else."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable

from tenlines.core.leaving import stub
from tenlines.core.outcomes import encodable_value
from tenlines.core.transcript import File, Image, Json, JsonObject, JsonValue, Opaque, Part, Text

NOTE_PREFIX = "[note from the runtime] "
"""How a `Note` begins: no format has a place of its own for one, so it goes as user text."""
START = "(conversation start)"
"""What the user is made to say where the assistant would speak first."""
CONTINUE = "Continue."
"""What the user is made to say between two messages of the assistant, and behind its last one."""
EMPTY = "(empty)"
NO_OUTPUT = "(no output)"


def data_url(part: Image | File) -> str:
    """The bytes of an image or a file as a `data:` address."""
    return f"data:{part.media_type};base64,{base64_text(part.data)}"


def data_in(address: str) -> tuple[str, bytes] | None:
    """The media type and the bytes in a `data:` address, as far as they can be read; None for any other address."""
    match = _DATA_URL.match(address)
    return (match[1], base64_bytes(address[match.end() :])) if match else None


_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?,")


def base64_text(data: bytes) -> str:
    """Bytes as they stand in JSON."""
    return base64.b64encode(data).decode("ascii")


def base64_bytes(text: str) -> bytes:
    """The bytes that stand there; none when it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def plain_text(parts: tuple[Part, ...]) -> str:
    """Parts as text, joined by blank lines. Binary content becomes a short stub: base64 would flood the window."""
    if len(parts) == 1:
        return part_text(parts[0])
    return "\n\n".join(text for part in parts if (text := part_text(part)))


def shown_or_told(
    parts: tuple[Part, ...], show: Callable[[Part], JsonObject | None], *, keeps_blank: bool = True
) -> JsonValue:
    """What is said: plain text, or a list of text and of those parts that are shown as they are."""
    shown = [show(part) for part in parts]
    if not any(shown):
        return plain_text(parts)
    content: list[JsonValue] = []
    for part, entry in zip(parts, shown, strict=True):
        if entry is not None:
            content.append(entry)
        elif (text := part_text(part)) and (keeps_blank or text.strip()):
            content.append({"type": "text", "text": text})
    return content


def part_text(part: Part) -> str:
    """One part as text; "" for what no reader but its maker understands."""
    match part:
        case Text(text):
            return text
        case Json(value):
            return json_text(value)
        case Image() | File():
            return stub(part)
        case Opaque():
            return ""


def json_text(value: JsonValue) -> str:
    """A value of any origin as JSON that encodes as UTF-8; a few words where it is nested too deeply to be written."""
    try:
        return json.dumps(encodable_value(value), ensure_ascii=False)
    except RecursionError:
        return TOO_DEEP


TOO_DEEP = "(nested too deeply to be shown)"
"""What stands in the place of a value that Python itself cannot write; no JSON."""
