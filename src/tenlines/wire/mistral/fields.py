"""The fields of Mistral's messages: those of a role and no others, results with a name that fits, text that is text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from tenlines.core.outcomes import quote
from tenlines.core.transcript import JsonObject
from tenlines.wire.json_values import excerpt, obj
from tenlines.wire.mistral.encoding import NAME_PATTERN
from tenlines.wire.rules import Change
from tenlines.wire.turns import Block, Turn

FIELDS: dict[str, frozenset[str]] = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
"""Role -> the fields of its messages."""

_NAME = re.compile(NAME_PATTERN)
_LONGEST = 64


class Problem(NamedTuple):
    """Something that the service does not take."""

    rule: str
    kind: str
    path: str
    message: str


def problems(turn: Turn) -> Iterator[Problem]:
    """What is wrong with the fields of one message."""
    for field in unknown_fields(turn):
        said = f"a {turn.role} message has no field {quote(field, 40)}"
        yield Problem("MIS-13", "PARAM-COMBO", f"{turn.path}.{field}", said)
    name = bad_name(turn)
    if name is not None:
        said = f"the name in a result, {quote(name, 80)}, is none that a tool can have"
        yield Problem("MIS-8", "NAME-LENGTH" if len(name) > _LONGEST else "NAME-CHARSET", f"{turn.path}.name", said)
    for block in turn.blocks:
        if is_no_text(block):
            yield Problem("MIS-13", "EMPTY-TEXT", block.path, "a chunk of text has no text")


def unknown_fields(turn: Turn) -> list[str]:
    """The fields that messages of a role do not have."""
    known = FIELDS.get(turn.wire_role)
    return [field for field in turn.raw if field not in known] if known and isinstance(turn.raw, dict) else []


def bad_name(turn: Turn) -> str | None:
    """The name that a result has, when no tool can have it; it may as well have none."""
    name = turn.raw.get("name") if turn.role == "tool" and isinstance(turn.raw, dict) else None
    if name is None or (isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= _LONGEST):
        return None
    return name if isinstance(name, str) else str(name)[:_LONGEST]


def is_no_text(block: Block) -> bool:
    """Whether a chunk says that it is text, and has none."""
    raw = block.raw if block.kind == "other" else None
    return isinstance(raw, dict) and raw.get("type") == "text"


def fitted(turn: Turn, called: Mapping[str, str], changes: list[Change]) -> Turn:
    """The message without those problems.

    Args:
        turn: The message.
        called: Id -> the tool, of the calls before it.
        changes: Told what was done.
    """
    gone = unknown_fields(turn)
    for field in gone:
        held = excerpt(obj(turn.raw).get(field))
        said = f"Left out {quote(field, 40)}, which a {turn.role} message does not have: {held}"
        changes.append(Change("PARAM-COMBO", f"{turn.path}.{field}", said))
    name = bad_name(turn)
    for block in turn.of("result") if name is not None else ():
        turn = _renamed(turn, block, called.get(block.id, ""), changes)
    kept = tuple(block for block in turn.blocks if not is_no_text(block))
    for block in turn.blocks:
        if is_no_text(block):
            changes.append(Change("EMPTY-TEXT", block.path, "Left out a chunk of text that had none."))
    if len(kept) != len(turn.blocks):
        turn = replace(turn, blocks=kept)
    return _without(turn, gone) if gone else turn


def _renamed(turn: Turn, block: Block, name: str, changes: list[Change]) -> Turn:
    old, done = quote(block.name, 80), f"became {quote(name, 80)}" if name else "was left out"
    changes.append(Change("NAME-CHARSET", f"{turn.path}.name", f"The name in a result, {old}, {done}."))
    return replace(turn, blocks=(replace(block, name=name, raw=None),))


def _without(turn: Turn, fields: list[str]) -> Turn:
    raw: JsonObject = obj(turn.raw)
    kept: JsonObject = {key: value for key, value in raw.items() if key not in fields}
    blocks = tuple(replace(block, raw=kept) if block.raw is raw else block for block in turn.blocks)
    return replace(turn, raw=kept, blocks=blocks)
