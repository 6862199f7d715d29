"""Cures for what the inspector of Mistral finds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.json_values import items, obj
from tenlines.wire.mistral.fields import fitted
from tenlines.wire.mistral.inspecting import (
    broken,
    has_content,
    has_early_calls,
    is_end_missing,
    is_prefix,
    lacks_content,
)
from tenlines.wire.parts import CONTINUE, EMPTY, START, part_text
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change
from tenlines.wire.schemas import convert
from tenlines.wire.turns import Block, Turn


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Cure the schemas of the tools."""
    tools = body.get("tools")
    changes: list[Change] = []
    entries = items(tools)
    mended = [_tool(entry, f"tools[{index}]", changes) for index, entry in enumerate(entries)]
    return ({**body, "tools": mended}, changes) if changes else (body, [])


def _tool(entry: JsonValue, path: str, changes: list[Change]) -> JsonValue:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(function, dict) or not broken(function.get("parameters")):
        return entry
    schema = convert(obj(function.get("parameters")), "mistral").schema
    changes.append(Change("SCHEMA-SUBSET", f"{path}.function.parameters", "Left out of the schema what is not valid."))
    return {**entry, "function": {**function, "parameters": schema}}


def amend(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """Cure a stretch of turns."""
    changes: list[Change] = []
    mended: list[Turn] = []
    if turns and _begins_badly(turns, is_last):
        path = turns[0].path
        mended.append(Turn("user", (Block("text", path, text=START),), path))
        changes.append(Change("ROLE-FIRST", path, "Began the conversation with a short user message."))
    called: dict[str, str] = {}
    for index, turn in enumerate(turns):
        called.update((block.id, block.name) for block in turn.of("call"))
        turn = fitted(turn, called, changes)
        if is_prefix(turn) and not (is_last and index == len(turns) - 1):
            turn = _without_prefix(turn)
            changes.append(Change("ROLE-LAST", turn.path, "Took the mark of a prefix off a message before the last."))
        turn = _without_refused(turn, profile, changes)
        mended += _parted(turn, profile, changes)
    if is_last and mended and is_end_missing(mended[-1]) and not profile.has("history"):
        path = mended[-1].path
        mended.append(Turn("user", (Block("text", path, text=CONTINUE),), path))
        changes.append(Change("ROLE-LAST", path, "Put a short user message behind the assistant's at the end."))
    return (mended, changes) if changes else (turns, [])


def _begins_badly(turns: list[Turn], is_last: bool) -> bool:
    """Whether the conversation begins with calls, or with nothing but a prefix. Only its first stretch begins with
    another turn than a user's."""
    return has_early_calls(turns[0]) or (is_last and len(turns) == 1 and is_prefix(turns[0]))


def _without_prefix(turn: Turn) -> Turn:
    raw = obj(turn.raw)
    return msgspec.structs.replace(turn, raw={key: value for key, value in raw.items() if key != "prefix"})


def _without_refused(turn: Turn, profile: Profile, changes: list[Change]) -> Turn:
    """Without thoughts where none are taken, with words for images where none are, and never without content."""
    blocks: list[Block] = []
    for block in turn.blocks:
        if block.kind == "reasoning" and (turn.role != "assistant" or not profile.has("thinking")):
            changes.append(Change("RSN-FOREIGN", block.path, "Left out thoughts that are not taken here."))
        elif block.kind == "media" and turn.role == "user" and profile.has("no_images"):
            words = "\n".join(map(part_text, block.parts)) or "(not shown)"
            blocks.append(Block("text", block.path, text=words))
            changes.append(Change("MEDIA-PLACE", block.path, "Put a few words in the place of an image."))
        else:
            blocks.append(block)
    is_bare = turn.role in ("system", "user") and lacks_content(turn)
    if is_bare or (turn.blocks and not blocks):
        blocks.append(Block("text", f"{turn.path}.content", text=EMPTY))
        if is_bare:
            changes.append(Change("EMPTY-MSG", turn.path, f"Gave a {turn.role} message without content a placeholder."))
    return turn if tuple(blocks) == turn.blocks else msgspec.structs.replace(turn, blocks=tuple(blocks))


def _parted(turn: Turn, profile: Profile, changes: list[Change]) -> list[Turn]:
    """Content and calls in messages of their own, and nothing for a message with neither."""
    calls = turn.of("call")
    if turn.role != "assistant" or not profile.has("calls_alone") or has_content(turn) != bool(calls):
        return [turn]
    if not calls:
        changes.append(Change("EMPTY-MSG", turn.path, "Left out a message of the assistant that said nothing."))
        return []
    changes.append(Change("EMPTY-MSG", turn.path, "Made two messages of one with both text and calls."))
    said = tuple(block for block in turn.blocks if block.kind != "call")
    return [Turn("assistant", said, turn.path), msgspec.structs.replace(turn, blocks=calls)]
