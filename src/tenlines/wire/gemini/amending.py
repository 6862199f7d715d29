"""Cures for what the inspector finds. What a cure does not touch stays as it came."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import structs

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.finding.provenance import Provenance
from tenlines.wire.gemini.encoding import DUMMY
from tenlines.wire.gemini.fields import field, key_of, kinds_of, snake
from tenlines.wire.gemini.inspecting import begins_turn, has_bad_response, is_malformed, schema_problems
from tenlines.wire.gemini.schema import from_openapi
from tenlines.wire.gemini.turns import unfold_part
from tenlines.wire.json_values import items, string
from tenlines.wire.parts import EMPTY, START
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change
from tenlines.wire.schemas import convert
from tenlines.wire.turns import Block, Turn

# --- declarations -----------------------------------------------------------------------------------


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Bring the parameters of declarations into their dialect."""
    changes: list[Change] = []
    tools: list[JsonValue] = []
    for index, entry in enumerate(items(body.get("tools"))):
        declared = field(entry, "functionDeclarations") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(declared, list):
            key = key_of(entry, "functionDeclarations")
            amended = [
                _declaration(one, f"tools[{index}].{key}[{at}]", profile, changes) for at, one in enumerate(declared)
            ]
            tools.append({**entry, key: amended})
        else:
            tools.append(entry)
    return ({**body, "tools": tools} if changes else body), changes


def _declaration(one: JsonValue, path: str, profile: Profile, changes: list[Change]) -> JsonValue:
    if not isinstance(one, dict) or one.get("parameters") is None:
        return one
    key, name = key_of(one, "parametersJsonSchema"), string(one.get("name"))
    given = one["parameters"]
    if one.get(key) is not None:
        if profile.has("json_schema"):
            changes.append(
                Change("PARAM-COMBO", path, f"Left out the parameters of {name}: its JSON Schema says it all.")
            )
            return {field: value for field, value in one.items() if field != "parameters"}
        changes.append(Change("PARAM-COMBO", path, f"Left out the JSON Schema of {name}: it has parameters."))
        one = {field: value for field, value in one.items() if field != key}
    if not schema_problems(given, profile):
        return one
    changes.append(Change("SCHEMA-SUBSET", f"{path}.parameters", f"Converted the parameters of {name} to the dialect."))
    schema = convert(from_openapi(given) if isinstance(given, dict) else {}, "gemini").schema
    if schema.get("properties") and not schema_problems(schema, profile):
        return {**one, "parameters": schema}
    return {field: value for field, value in one.items() if field != "parameters"}


# --- contents ---------------------------------------------------------------------------------------


def amend(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """Cure one stretch: malformed parts, responses, foreign and missing signatures, calls at the very beginning."""
    changes: list[Change] = []
    turns = [_mended(turn, changes) for turn in turns]
    turns = [_without_foreign(turn, profile, Provenance(profile, artefacts), changes) for turn in turns]
    if is_last and profile.has("signatures"):
        turns = _signed(turns, changes)
    if turns and turns[0].role == "assistant" and turns[0].of("call"):
        path = turns[0].path
        changes.append(Change("ROLE-ORDER", path, f"Put a user content before the calls that came first: {START!r}."))
        turns.insert(0, Turn("user", (Block("text", path, text=START),), path))
    return turns, changes


def _mended(turn: Turn, changes: list[Change]) -> Turn:
    if not any(is_malformed(block) or has_bad_response(block) for block in turn.blocks):
        return turn
    blocks: list[Block] = []
    for block in turn.blocks:
        if is_malformed(block):
            blocks += _split(block)
            changes.append(Change("EMPTY-TEXT", block.path, "Wrote a malformed part as parts with one thing each."))
        elif has_bad_response(block):
            blocks.append(structs.replace(block, raw=None))
            changes.append(Change("ARGS-TYPE", block.path, f"Put the response of {block.name} into an object."))
        else:
            blocks.append(block)
    return structs.replace(turn, blocks=tuple(blocks))


def _split(block: Block) -> list[Block]:
    if not isinstance(block.raw, dict):
        text = block.raw if isinstance(block.raw, str) and block.raw else json.dumps(block.raw, ensure_ascii=False)
        return [Block("text", block.path, text=text)]
    kinds = kinds_of(block.raw)
    blocks = []
    for kind in sorted(kinds, key=lambda one: one != "text"):  # what is said comes before what is called
        others = {other for one in kinds if one != kind for other in (one, snake(one))}
        part = {name: value for name, value in block.raw.items() if name not in others}
        one = unfold_part(part, block.path)
        if one.kind != "text" or one.text:
            blocks.append(one)
    return blocks or [Block("text", block.path, text=EMPTY)]


# --- signatures -------------------------------------------------------------------------------------


def with_signature(block: Block, signature: str) -> Block:
    """A block with another signature, or with none."""
    raw = block.raw
    if isinstance(raw, dict):
        key = key_of(raw, "thoughtSignature")
        raw = {name: value for name, value in raw.items() if name != key}
        if signature:
            raw[key] = signature
    return structs.replace(block, raw=raw, signature=signature)


def _without_foreign(turn: Turn, profile: Profile, known: Provenance, changes: list[Change]) -> Turn:
    foreign = {
        doubt.block.path: doubt.artefact for doubt in known.doubts(turn, "") if doubt.situation == "reasoning.foreign"
    }
    if not foreign:
        return turn
    first = next((block.path for block in turn.of("call")), "")
    blocks: list[Block] = []
    for block in turn.blocks:
        maker = foreign.get(block.path)
        if maker is None:
            blocks.append(block)
            continue
        stand_in = profile.has("signatures") and block.path == first
        what = f"Took out the signature that {maker.model or maker.provider} made"
        changes.append(
            Change("RSN-FOREIGN", block.path, f"{what}{'; a stand-in is in its place' if stand_in else ''}.")
        )
        if block.kind != "reasoning":
            blocks.append(with_signature(block, DUMMY if stand_in else ""))
    return structs.replace(turn, blocks=tuple(blocks) or (Block("text", turn.path, text="(nothing said)"),))


def _signed(turns: list[Turn], changes: list[Change]) -> list[Turn]:
    """The first call of each step signed, with the stand-in where nobody did."""
    start = max((index for index, turn in enumerate(turns) if begins_turn(turn)), default=-1)
    signed = list(turns)
    for index in range(start + 1, len(turns)):
        turn = turns[index]
        first = next(iter(turn.of("call")), None)
        if first is None or first.signature or turn.role != "assistant":
            continue
        blocks = tuple(with_signature(block, DUMMY) if block is first else block for block in turn.blocks)
        signed[index] = structs.replace(turn, blocks=blocks)
        changes.append(
            Change("RSN-MISSING", first.path, f"Put the stand-in for a signature on the call of {first.name}.")
        )
    return signed
