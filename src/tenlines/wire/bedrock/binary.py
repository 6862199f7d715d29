"""Bytes in bodies: base64 text here, `bytes` at the SDK.

A body of ours is JSON, so that it can be stored, compared and shown. The AWS SDK takes and gives `bytes` in the
fields that the service declares as blobs, and does the base64 of the wire itself. These two functions stand between.
"""

from __future__ import annotations

import base64
from typing import Any

from tenlines.core.transcript import JsonObject, JsonValue

MEDIA = ("image", "document", "video", "audio")
"""Kinds of blocks whose `source` may hold bytes."""


def to_sdk(body: JsonObject) -> dict[str, Any]:
    """A request body as the SDK's `converse(**body)` takes it; the body itself is not changed. Only fields of the
    service are looked at, never what a tool was sent or gave back as JSON."""
    ready: dict[str, Any] = dict(body)
    messages = body.get("messages")
    if isinstance(messages, list):
        ready["messages"] = [_message(message) for message in messages]
    return ready


def _message(message: JsonValue) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    blocks = [_block(block) for block in content]
    if all(new is old for new, old in zip(blocks, content, strict=True)):
        return message
    return {**message, "content": blocks}


def _block(block: JsonValue) -> Any:
    """The block with bytes in it; the very same object where it has none."""
    if not isinstance(block, dict):
        return block
    for kind in MEDIA:
        held = block.get(kind)
        source = held.get("source") if isinstance(held, dict) else None
        if isinstance(held, dict) and isinstance(source, dict) and isinstance(source.get("bytes"), str):
            return {**block, kind: {**held, "source": {**source, "bytes": data_of(source["bytes"])}}}
    reasoning = block.get("reasoningContent")
    if isinstance(reasoning, dict) and isinstance(reasoning.get("redactedContent"), str):
        return {**block, "reasoningContent": {**reasoning, "redactedContent": data_of(reasoning["redactedContent"])}}
    result = block.get("toolResult")
    content = result.get("content") if isinstance(result, dict) else None
    if isinstance(result, dict) and isinstance(content, list):
        inner = [_block(one) for one in content]
        if any(new is not old for new, old in zip(inner, content, strict=True)):
            return {**block, "toolResult": {**result, "content": inner}}
    return block


def data_of(value: object) -> bytes:
    """The bytes of a blob field, whichever of the two forms it has; none when it has neither."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, str):
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return b""


def text_of(data: bytes) -> str:
    """Bytes as they stand in a body of ours."""
    return base64.b64encode(data).decode("ascii")


def from_sdk(value: object) -> Any:
    """A response or an event of the SDK as plain JSON."""
    if isinstance(value, bytes | bytearray):
        return text_of(bytes(value))
    if isinstance(value, dict):
        return {key: from_sdk(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [from_sdk(one) for one in value]
    return value
