"""What is wrong with a dump: its turns are laid out as Chat Completions, and what no provider takes is a fault."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from tenlines.core.transcript import JsonValue
from tenlines.wire.checking import check
from tenlines.wire.dumps.dump import Dump
from tenlines.wire.formats import FORMATS
from tenlines.wire.parts import json_text
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Diagnostic
from tenlines.wire.turns import Block, Turn

_PLACE = re.compile(r"messages\[(\d+)\]")
_BROKEN: tuple[Situation, ...] = (
    "role.unknown",
    "id.missing",
    "id.repeated",
    "pair.missing",
    "pair.gap",
    "pair.repeated",
    "pair.orphan",
    "pair.stranger",
    "args.json",
    "message.empty",
)
"""What a framework cannot mend on its way to whichever provider. Ids, names, roles and places it writes anew."""


def check_dump(dump: Dump) -> list[Diagnostic]:
    """All violations in what a framework wrote to disk, each at the path in the dump."""
    format = FORMATS["openai_chat"]
    turns = [piece for turn in dump.turns for piece in _pieces(turn)]
    messages: list[JsonValue] = [format.fold(turn) for turn in turns]
    found = check({"messages": messages}, format, _neutral())
    return [replace(one, path=_path_in_dump(one.path, turns)) for one in found]


def _neutral() -> Profile:
    """The careful profile, with the faults alone that are no matter of form."""
    careful = FORMATS["openai_chat"].profile({"server": "compatible"})
    faults = {what: rule for what, rule in careful.faults.items() if what in _BROKEN}
    return replace(careful, faults=faults, system="anywhere", traits=careful.traits | {"history"})


def _pieces(turn: Turn) -> Iterator[Turn]:
    """The turn as messages of Chat Completions, which hold one result each."""
    blocks = tuple(_as_chat(block) for block in turn.blocks if block.kind != "reasoning")
    rest = tuple(block for block in blocks if block.kind != "result")
    for block in blocks:
        if block.kind == "result":
            yield Turn("tool", (block,), block.path)
    if rest or len(rest) == len(blocks):
        yield Turn(turn.role, rest, turn.path, None, turn.wire_role)


def _as_chat(block: Block) -> Block:
    """The block, to be written from its fields; arguments as text, where they are anything that was read."""
    arguments = block.arguments
    if arguments is not None and not isinstance(arguments, str):
        arguments = json_text(arguments)
    return replace(block, raw=None, arguments=arguments)


def _path_in_dump(path: str, turns: list[Turn]) -> str:
    match = _PLACE.match(path)
    return turns[int(match[1])].path if match else path
