"""What a server gives back, as parts of a result. The only module here that knows how content looks.

Text, images, audio, resources and links to them each become a part, in their order; structured content becomes a `Json`
part, and a text that only repeats it is left out. Binary content that is broken or too large becomes a line about it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from tenlines.core.transcript import File, Image, Json, Part, Text
from tenlines.tools.binary import media_note

if TYPE_CHECKING:
    from mcp_types import (
        BlobResourceContents,
        CallToolResult,
        ContentBlock,
        GetPromptResult,
        ReadResourceResult,
        TextResourceContents,
    )

    Contents: TypeAlias = TextResourceContents | BlobResourceContents

MOST_BYTES = 10_000_000
"""Of an image or a file that is a part of a result."""
SHOWN_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What models see. Any other kind of image is a file."""
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")


def of_call(result: CallToolResult) -> Any:
    """The value of a call: what `render` takes."""
    parts = [_of_block(block) for block in result.content]
    if result.structured_content is not None:
        said = [one for one in parts if not _repeats(one, result.structured_content)]
        return [*said, Json(result.structured_content)]
    return parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else parts or None


def words_of(result: CallToolResult) -> str:
    """The words of a result, for an error."""
    texts = [part.text if isinstance(part, Text) else _note(part) for part in map(_of_block, result.content)]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return "\n".join(texts) or "the server says that it failed, and nothing more"


def of_resource(result: ReadResourceResult) -> Any:
    """The contents of a resource."""
    parts = [_of_contents(one) for one in result.contents]
    return parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else parts or None


def of_prompt(result: GetPromptResult) -> list[Part]:
    """The messages of a prompt, each with who says it."""
    parts: list[Part] = [Text(result.description)] if result.description else []
    for message in result.messages:
        part = _of_block(message.content)
        parts += [Text(f"{message.role}: {part.text}")] if isinstance(part, Text) else [Text(f"{message.role}:"), part]
    return parts


def _repeats(part: Part, structured: Any) -> bool:
    """Whether a text is the structured content once more, as servers send it for older clients."""
    if not isinstance(part, Text) or part.text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        return bool(json.loads(part.text) == structured)
    except (ValueError, RecursionError):
        return False


def _of_block(block: ContentBlock) -> Part:
    match block.type:
        case "text":
            return Text(block.text)
        case "image" | "audio":
            return _of_data(block.data, block.mime_type, block.type)
        case "resource":
            return _of_contents(block.resource)
        case "resource_link":
            facts = [block.mime_type or "", f"{block.size:,} bytes" if block.size is not None else ""]
            about = ", ".join(fact for fact in facts if fact)
            said = f": {block.description}" if block.description else ""
            return Text(f"(resource {block.uri}{f' ({about})' if about else ''}, {block.title or block.name}{said})")


def _of_contents(contents: Contents) -> Part:
    uri, kind = str(contents.uri), contents.mime_type or ""
    text = getattr(contents, "text", None)
    if isinstance(text, str):
        return Text(f"(resource {uri}{f', {kind}' if kind else ''})\n{text}")
    return _of_data(getattr(contents, "blob", ""), kind, uri.rstrip("/").rpartition("/")[2][:100])


def _of_data(text: str, media_type: str, name: str) -> Part:
    kind = media_type.partition(";")[0].strip().lower()
    kind = kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"({name}, {kind}: what came is not base64, so it cannot be shown)")
    part: Image | File = Image(kind, data) if kind in SHOWN_IMAGES else File(kind, data, name)
    return part if len(data) <= MOST_BYTES else Text(media_note(part))


def _note(part: Part) -> str:
    return media_note(part) if isinstance(part, Image | File) else str(part)
