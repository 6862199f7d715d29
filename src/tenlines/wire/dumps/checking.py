"""What is wrong with a dump: its turns are laid out as Chat Completions and checked by what every format accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from tenlines.core.transcript import JsonValue
from tenlines.wire.checking import check
from tenlines.wire.dumps.dump import Dump
from tenlines.wire.formats import FORMATS
from tenlines.wire.rules import Diagnostic
from tenlines.wire.turns import Turn

_PLACE = re.compile(r"messages\[(\d+)\]")


def check_dump(dump: Dump) -> list[Diagnostic]:
    """All violations in what a framework wrote to disk, each at the path in the dump."""
    format = FORMATS["openai_chat"]
    turns = [piece for turn in dump.turns for piece in _pieces(turn)]
    messages: list[JsonValue] = [format.fold(turn) for turn in turns]
    tools = [replace(tool, raw=None) for tool in dump.tools]
    body = format.fold_frame({"messages": messages}, (), tools)
    found = check(body, format, format.profile({"server": "compatible"}))
    if not tools:
        found = [one for one in found if one.kind != "TOOLS-ABSENT"]  # most dumps do not hold the tools
    return [replace(one, path=_path_in_dump(one.path, turns)) for one in found]


def _pieces(turn: Turn) -> Iterator[Turn]:
    """The turn as messages of Chat Completions, which hold one result each."""
    blocks = tuple(replace(block, raw=None) for block in turn.blocks if block.kind != "reasoning")
    rest = tuple(block for block in blocks if block.kind != "result")
    for block in blocks:
        if block.kind == "result":
            yield Turn("tool", (block,), block.path)
    if rest or len(rest) == len(blocks):
        yield Turn(turn.role, rest, turn.path, None, turn.wire_role)


def _path_in_dump(path: str, turns: list[Turn]) -> str:
    match = _PLACE.match(path)
    return turns[int(match[1])].path if match else path
