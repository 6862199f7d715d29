"""The conformance vectors: request bodies, each with the verdict that the other side would give, and why."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tenlines.wire.digest import digest
from tenlines.wire.finding.provenance import Prefix
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Artefact, Profile

FILE = Path(__file__).parent.parent / "vectors" / "protocol.jsonl"
NAMES = {"bedrock_converse": "bedrock", "openai_compat": "openai_chat"}


class Vector(msgspec.Struct, frozen=True):
    """One request body with its verdict."""

    id: str
    format: str
    request_fragment: dict[str, Any]
    valid: bool
    violated_rule: str | None
    covers: list[str]
    needs: str
    why: str = ""
    evidence: str = ""
    context: dict[str, str | bool] | None = None
    severity: str = ""
    provider_error: str = ""
    repair: str = ""

    @property
    def wire_format(self) -> Format | None:
        return FORMATS.get(NAMES.get(self.format, self.format))

    @property
    def known(self) -> Format:
        found = self.wire_format
        assert found is not None
        return found

    @property
    def profile(self) -> Profile:
        return self.known.profile({key: value for key, value in (self.context or {}).items() if key != "origin"})

    @property
    def artefacts(self) -> tuple[Artefact, ...]:
        origin = str((self.context or {}).get("origin", ""))
        return _artefacts(self, origin) if origin else ()


@cache
def vectors() -> tuple[Vector, ...]:
    return tuple(msgspec.json.decode(line, type=Vector) for line in FILE.read_bytes().splitlines())


def _artefacts(vector: Vector, origin: str) -> tuple[Artefact, ...]:
    """Where the signed reasoning of a body came from, by what the vector says of it."""
    profile, body = vector.profile, vector.request_fragment
    mine = {"provider": profile.provider, "model": profile.model}
    if origin == "fc_1 was generated together with rs_1 by a reasoning model":
        return (Artefact("fc_1", **mine, partners=("rs_1",)),)
    if origin == "rs_1 was followed by fc_1":
        return (Artefact("rs_1", **mine, partners=("fc_1",)),)
    if origin == "signature produced by another model":
        return tuple(Artefact(mark, "someone-else", "another-model") for mark in _marks(body))
    made = json.loads(json.dumps(body))
    if origin == "text was 'Let me check.'":
        made["messages"][1]["content"][0]["thinking"] = "Let me check."
    elif origin == "system was v1":
        made["system"] = "v1"
    elif origin == "messages[0] was rewritten by compaction":
        made["messages"][0]["content"] = "What is the weather in Paris?"
    else:
        assert origin in ("unchanged", "system was v1, messages[0] unchanged", "same org, same family"), origin
    return _made(made, vector.known, mine)


def _made(body: dict[str, Any], format: Format, mine: dict[str, str]) -> tuple[Artefact, ...]:
    """The reasoning of a body, as it was made there."""
    prefix = Prefix(body, format)
    found = []
    for index, message in enumerate(body[format.list_field]):
        turn = format.unfold(message, f"{format.list_field}[{index}]")
        for block in turn.blocks:
            if block.signature:
                found.append(Artefact(block.signature, **mine, digest=digest(block.raw), prefix=prefix.value))
        prefix.add(turn)
    return tuple(found)


def _marks(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[key] for key in ("thoughtSignature", "signature", "encrypted_content") if key in value]
        return own + [mark for inner in value.values() for mark in _marks(inner)]
    return [mark for inner in value for mark in _marks(inner)] if isinstance(value, list) else []
