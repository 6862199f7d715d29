"""Cures for what the inspector of Converse finds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.bedrock.encoding import ATTACHED, MOST_DOCUMENTS, MOST_IMAGES, SEPARATOR
from tenlines.wire.bedrock.inspecting import (
    DOCUMENT_BYTES,
    IMAGE_BYTES,
    has_status,
    is_choice,
    is_file,
    is_strict,
    kind_of,
    loose_keywords,
    schema_of,
    size_of,
)
from tenlines.wire.bedrock.turns import tool_entries
from tenlines.wire.parts import CONTINUE, EMPTY, part_text
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change
from tenlines.wire.schemas import convert
from tenlines.wire.turns import Block, Role, Turn

# --- beside the messages ----------------------------------------------------------------------------


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Cure tools and their choice."""
    config = body.get("toolConfig")
    if not isinstance(config, dict):
        return body, []
    if not tool_entries(body):
        found = "Left out a toolConfig without tools."
        return {key: one for key, one in body.items() if key != "toolConfig"}, [
            Change("TOOLS-COUNT", "toolConfig", found)
        ]
    changes: list[Change] = []
    tools = [
        _tool(entry, f"toolConfig.tools[{index}]", profile, changes) for index, entry in enumerate(tool_entries(body))
    ]
    mended: JsonObject = {**config, "tools": tools}
    if config.get("toolChoice") is not None and not is_choice(config["toolChoice"]):
        del mended["toolChoice"]
        changes.append(Change("PARAM-COMBO", "toolConfig.toolChoice", "Left out a choice that the format lacks."))
    return ({**body, "toolConfig": mended}, changes) if changes else (body, [])


def _tool(entry: JsonValue, path: str, profile: Profile, changes: list[Change]) -> JsonValue:
    spec = entry.get("toolSpec") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(spec, dict):
        return entry
    mended = dict(spec)
    schema = schema_of(spec)
    if schema is None or schema.get("type") != "object":
        schema = convert(schema or {}, "bedrock").schema
        changes.append(Change("SCHEMA-SUBSET", f"{path}.toolSpec.inputSchema", "Made the schema that of an object."))
    if is_strict(spec) and profile.has("strict_subset") and loose_keywords(schema):
        schema = convert(schema, "bedrock_strict").schema
        where = f"{path}.toolSpec.inputSchema.json"
        changes.append(Change("SCHEMA-SUBSET", where, "Moved what a strict schema cannot say into descriptions."))
    if schema is not schema_of(spec):
        mended["inputSchema"] = {"json": schema}
    if mended.get("description") == "":
        del mended["description"]
        changes.append(Change("EMPTY-TEXT", f"{path}.toolSpec.description", "Left out an empty description."))
    return entry if mended == spec else {**entry, "toolSpec": mended}


# --- messages ---------------------------------------------------------------------------------------


def amend(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """Cure a stretch of turns. A stretch that is not the last one is followed by a user message."""
    changes: list[Change] = []
    mended: list[Turn] = []
    for turn in turns:
        turn = _without_refused(turn, profile, changes)
        if turn.role == "user":
            turn = _smaller(turn, changes)
        for part in _apart(turn, profile, changes):
            mended.append(_with_text(part, changes) if part.role == "user" else part)
    if not is_last and "pair.beside" in profile.faults and mended and mended[-1].of("result"):
        path = mended[-1].path
        mended.append(Turn("assistant", (Block("text", path, text=SEPARATOR),), path))
        changes.append(Change("PAIR-ORDER", path, "Put a short message between results and a user message."))
    return (mended, changes) if changes else (turns, [])


def _without_refused(turn: Turn, profile: Profile, changes: list[Change]) -> Turn:
    blocks: list[Block] = []
    for block in turn.blocks:
        if block.kind == "reasoning" and profile.has("no_reasoning"):
            changes.append(Change("RSN-FOREIGN", block.path, "Left out reasoning that this model does not take back."))
        elif block.kind == "result" and profile.has("no_status") and has_status(block):
            changes.append(Change("PARAM-COMBO", block.path, "Left out the status of a result."))
            blocks.append(_without_status(block))
        else:
            blocks.append(block)
    if turn.blocks and not blocks:
        blocks.append(Block("text", turn.path, text=EMPTY))
    return _with_blocks(turn, blocks)


def _without_status(block: Block) -> Block:
    raw = block.raw
    result = raw.get("toolResult") if isinstance(raw, dict) else None
    if isinstance(raw, dict) and isinstance(result, dict):
        raw = {**raw, "toolResult": {key: one for key, one in result.items() if key != "status"}}
    return msgspec.structs.replace(block, raw=raw, is_error=False)


def _smaller(turn: Turn, changes: list[Change]) -> Turn:
    """Images and documents that are too many or too large as a few words."""
    kept = {"image": 0, "document": 0}
    blocks: list[Block] = []
    images, documents = kind_of(turn, "image"), kind_of(turn, "document")
    for block in turn.blocks:
        kind = "image" if block in images else "document" if block in documents else ""
        most, size = (MOST_IMAGES, IMAGE_BYTES) if kind == "image" else (MOST_DOCUMENTS, DOCUMENT_BYTES)
        if kind and (kept[kind] >= most or size_of(block) > size):
            words = "\n".join(map(part_text, block.parts)) or f"({kind}, not shown)"
            blocks.append(Block("text", block.path, text=words))
            changes.append(Change("MEDIA-LIMIT", block.path, f"Put a few words in the place of a {kind}."))
            continue
        if kind:
            kept[kind] += 1
        blocks.append(block)
    return _with_blocks(turn, blocks)


def _with_text(turn: Turn, changes: list[Change]) -> Turn:
    documents = kind_of(turn, "document")
    if not documents or turn.of("text"):
        return turn
    at = turn.blocks.index(documents[0])
    path = documents[0].path
    changes.append(Change("MEDIA-LIMIT", path, "Put a line of text before a document."))
    return _with_blocks(turn, [*turn.blocks[:at], Block("text", path, text=ATTACHED), *turn.blocks[at:]])


def _apart(turn: Turn, profile: Profile, changes: list[Change]) -> list[Turn]:
    """What may not stand in one message, in messages of their own."""
    if turn.of("result") and (
        (profile.has("no_documents_beside") and any(is_file(block) for block in turn.blocks))
        or ("pair.beside" in profile.faults and any(block.kind in ("text", "media") for block in turn.blocks))
    ):
        changes.append(Change("PAIR-ORDER", turn.path, "Put a short message between results and what stood by them."))
        return _split(turn, "result", ("assistant", SEPARATOR))
    if turn.of("call") and turn.of("text") and profile.has("calls_alone"):
        changes.append(Change("PAIR-ORDER", turn.path, "Moved text before calls into a message of its own."))
        return list(reversed(_split(turn, "call", ("user", CONTINUE))))
    return [turn]


def _split(turn: Turn, kind: str, between: tuple[Role, str]) -> list[Turn]:
    """The blocks of a kind, a separator, and all the others."""
    role, text = between
    inner = [block for block in turn.blocks if block.kind == kind]
    others = [block for block in turn.blocks if block.kind != kind]
    separator = Turn(role, (Block("text", turn.path, text=text),), turn.path)
    return [_with_blocks(turn, inner), separator, Turn(turn.role, tuple(others), turn.path)]


def _with_blocks(turn: Turn, blocks: list[Block]) -> Turn:
    return turn if tuple(blocks) == turn.blocks else msgspec.structs.replace(turn, blocks=tuple(blocks))
