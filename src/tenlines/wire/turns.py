"""A request body, unfolded: the same turns and blocks for every format, each with the JSON that it came from.

Checking, repairing and importing work on turns, so each of them is written once. A format says how a message of its
own becomes a turn and how a turn becomes a message again. What nobody touched goes back exactly as it was: `raw` is
kept, unknown fields and blocks included.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue, Part

BlockKind: TypeAlias = Literal["text", "media", "reasoning", "call", "result", "other"]
"""`other`: anything that is kept and never looked into (server tools, compaction, items yet to be invented)."""


class Block(msgspec.Struct, frozen=True):
    """One piece of a turn.

    Attributes:
        kind: What it is.
        path: Where it stands in the body: `messages[3].content[1]`.
        raw: The JSON that it came from. None: it was made or changed by a repair and is written from its fields.
        id: Of a call, its id; of a result, the id of the call that it answers. "" when there is none.
        name: Of a call or a result, the name of the tool; "" when there is none.
        arguments: Of a call, as they stand: text, an object, or None when they are missing.
        text: Of text, reasoning and results: what can be read.
        parts: Of media and results: the content. A result of text alone has one `Text`, an empty one has none.
        is_error: Of a result: it is marked as one.
        is_synthetic: Of a result: a repair made it, no tool did.
        signature: Of reasoning, or of a call that carries one: what its maker signed, verbatim; "" when unsigned.
    """

    kind: BlockKind
    path: str
    raw: JsonValue = None
    id: str = ""
    name: str = ""
    arguments: JsonValue = None
    text: str = ""
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    is_synthetic: bool = False
    signature: str = ""


Role: TypeAlias = Literal["system", "user", "assistant", "tool", "unknown"]


class Turn(msgspec.Struct, frozen=True):
    """One message or item of a body.

    Attributes:
        role: Who speaks. Formats whose results stand in user messages have `user` turns with result blocks; formats
            with messages or items for results have `tool` turns.
        blocks: What is said, in order.
        path: Where it stands in the body: `messages[3]`; `system` for a top-level system prompt.
        raw: The message that it came from. None: it was made by a repair.
        wire_role: The role as it stands; "" when there is none.
    """

    role: Role
    blocks: tuple[Block, ...]
    path: str
    raw: JsonValue = None
    wire_role: str = ""

    def of(self, kind: BlockKind) -> tuple[Block, ...]:
        """The blocks of one kind."""
        return tuple(block for block in self.blocks if block.kind == kind)


class Tool(msgspec.Struct, frozen=True):
    """A tool as a body declares it."""

    name: str
    path: str
    description: str = ""
    parameters: JsonObject = {}
    raw: JsonValue = None
