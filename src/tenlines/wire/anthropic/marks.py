"""Prompt-cache marks: where a request asks the provider to remember what it has read.

A mark stands for everything before it. The provider looks for what it remembers at each mark and at up to 20 blocks
before it, and takes four marks at most. So one mark stands behind what never changes (tools and system prompt), one
at the very end, one where the request before this one ended, and one between the two when they are far apart. None
stands before a summary of the provider's own: it reads nothing of that any more.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.anthropic.blocks import is_summary
from tenlines.wire.json_values import items

LOOK_BACK = 20
MARK: JsonObject = {"type": "ephemeral"}

_MARKABLE = frozenset({"text", "image", "document", "tool_use", "tool_result"})


class _Place(NamedTuple):
    message: int
    block: int


def marked(body: JsonObject) -> JsonObject:
    """The body with marks. Only what carries one is copied: the body and everything in it stay as they are."""
    result = dict(body)
    head = "system" if result.get("system") else "tools"
    blocks = result.get(head)
    if isinstance(blocks, list) and blocks:
        result[head] = [*blocks[:-1], _with_mark(blocks[-1])]
    messages = result.get("messages")
    if isinstance(messages, list):
        copied = list(messages)
        for place in _places(messages):
            copied[place.message] = _mark_block(copied[place.message], place.block)
        result["messages"] = copied
    return result


def _mark_block(message: JsonValue, at: int) -> JsonValue:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    return {**message, "content": [*content[:at], _with_mark(content[at]), *content[at + 1 :]]}


def _with_mark(block: JsonValue) -> JsonValue:
    return {**block, "cache_control": MARK} if isinstance(block, dict) else block


def _places(messages: list[JsonValue]) -> set[_Place]:
    """Where marks go in the messages; looks no further back than to the end of the request before this one."""
    newest: _Place | None = None
    nearest_far: _Place | None = None
    distance, has_replied = 0, False
    for at in range(len(messages) - 1, -1, -1):
        role, content = _read(messages[at])
        has_replied = has_replied or role == "assistant"
        for index in range(len(content) - 1, -1, -1):
            place = _Place(at, index)
            if is_summary(content[index]):
                return set() if newest is None else {newest}
            if not _is_markable(content[index]):
                pass
            elif newest is None:
                newest, distance = place, 0
            elif has_replied and role == "user":
                ends = {newest, place}
                return ends if distance <= LOOK_BACK or nearest_far is None else ends | {nearest_far}
            elif distance <= LOOK_BACK:
                nearest_far = place
            distance += 1
    return set() if newest is None else {newest}


def _read(message: JsonValue) -> tuple[JsonValue, list[JsonValue]]:
    if not isinstance(message, dict):
        return None, []
    return message.get("role"), items(message.get("content"))


def _is_markable(block: JsonValue) -> bool:
    return isinstance(block, dict) and block.get("type") in _MARKABLE
