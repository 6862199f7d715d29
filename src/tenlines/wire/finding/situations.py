"""What a fault is called: the canonical kind of every situation, and small questions about blocks that all ask."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tenlines.core.transcript import File, Image, JsonObject, JsonValue, Text
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.turns import Block, Turn

KINDS: dict[Situation, str] = {
    "role.unknown": "ROLE-UNKNOWN",
    "role.system": "ROLE-SYSTEM",
    "role.first": "ROLE-FIRST",
    "role.last": "ROLE-LAST",
    "role.follows": "ROLE-ORDER",
    "role.call": "ROLE-ORDER",
    "role.result": "ROLE-ORDER",
    "id.missing": "ID-MISSING",
    "id.pattern": "ID-CHARSET",
    "id.length": "ID-LENGTH",
    "id.repeated": "ID-DUP",
    "pair.missing": "PAIR-MISSING",
    "pair.gap": "PAIR-GAP",
    "pair.split": "PAIR-SPLIT",
    "pair.order": "PAIR-ORDER",
    "pair.beside": "PAIR-ORDER",
    "pair.repeated": "PAIR-DUP",
    "pair.orphan": "PAIR-ORPHAN",
    "pair.stranger": "PAIR-ORPHAN",
    "pair.name": "PAIR-NAME",
    "args.type": "ARGS-TYPE",
    "args.json": "ARGS-JSON",
    "name.pattern": "NAME-CHARSET",
    "name.length": "NAME-LENGTH",
    "tools.absent": "TOOLS-ABSENT",
    "tools.empty": "TOOLS-COUNT",
    "text.empty": "EMPTY-TEXT",
    "text.blank": "EMPTY-TEXT",
    "message.empty": "EMPTY-MSG",
    "message.none": "EMPTY-MSG",
    "result.empty": "EMPTY-MSG",
    "result.silent": "ERR-EMPTY",
    "media.result": "MEDIA-PLACE",
    "media.role": "MEDIA-PLACE",
    "reasoning.unsigned": "RSN-UNSIGNED",
    "reasoning.foreign": "RSN-FOREIGN",
    "reasoning.edited": "RSN-EDITED",
    "reasoning.prefix": "RSN-PREFIX",
}
"""Situation -> canonical kind of violation."""

CONTENT_FIELDS = ("content", "output", "response")
"""Where formats keep the content of a result."""
_WRAPPERS = ("toolResult", "functionResponse")


_STORED_FIELDS = ("previous_response_id", "conversation")
_ABOUT_THE_START: frozenset[Situation] = frozenset({"pair.orphan", "pair.stranger", "role.first", "message.none"})


def for_body(profile: Profile, body: JsonObject) -> Profile:
    """The profile for one body. Where the beginning of the conversation is stored at the other side, what a message
    refers to may be there, and nothing is said about it."""
    if all(body.get(field) is None for field in _STORED_FIELDS):
        return profile
    return replace(profile, faults={key: rule for key, rule in profile.faults.items() if key not in _ABOUT_THE_START})


def is_object_text(text: str) -> bool:
    """Whether a text is the JSON of an object, and nothing else."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return False


def is_blank(turn: Turn) -> bool:
    """Whether a message has text, and all of it is whitespace (some of it, not nothing)."""
    texts = [block.text for block in turn.blocks if block.kind == "text"]
    return any(texts) and not any(text.strip() for text in texts)


def is_opaque(turn: Turn) -> bool:
    """Whether a turn holds nothing but what is never looked into: it may stand for anything."""
    return bool(turn.blocks) and all(block.kind == "other" for block in turn.blocks)


def has_media(result: Block) -> bool:
    """Whether a result holds an image or a file."""
    return any(isinstance(part, Image | File) for part in result.parts)


def is_silent(result: Block) -> bool:
    """Whether a result says nothing at all."""
    return not result.text.strip() and all(isinstance(part, Text) and not part.text.strip() for part in result.parts)


def lacks_content(result: Block, turn: Turn) -> bool:
    """Whether the content of a result is missing altogether, or null. A result that a repair made never lacks it."""
    if result.raw is None or result.parts or result.text:
        return False
    for raw in (result.raw, turn.raw):
        if isinstance(raw, dict):
            return _lacks(raw)
    return False


def _lacks(raw: dict[str, JsonValue]) -> bool:
    for wrapper in _WRAPPERS:
        inner = raw.get(wrapper)
        if isinstance(inner, dict):
            raw = inner
    return all(raw.get(field) is None for field in CONTENT_FIELDS)
