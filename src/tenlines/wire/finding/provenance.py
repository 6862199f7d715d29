"""Where reasoning came from: is a signed block as its maker made it, and does it stand behind the same beginning?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.digest import digest
from tenlines.wire.format import Format
from tenlines.wire.profile import Artefact, Profile, family
from tenlines.wire.turns import Block, Turn


class Prefix:
    """A name for everything that stands before a place of a body; each message is looked at once.

    `value` goes into `Artefact.prefix` when a block is made, and is compared when the block is sent back. Marks for
    the cache and reasoning are passed over: both may change, and what is bound to the rest of it stays good.
    """

    def __init__(self, body: JsonObject, format: Format) -> None:
        frame = format.frame(body)
        self.value = digest(_bare([[turn.raw for turn in frame.system], [tool.raw for tool in frame.tools]]))

    def add(self, turn: Turn) -> None:
        """One more message stands before."""
        said = [block.raw for block in turn.blocks if block.kind != "reasoning"] if turn.blocks else turn.raw
        here = digest(_bare([turn.wire_role, said]))
        self.value = hashlib.blake2b((self.value + here).encode(), digest_size=16).hexdigest()


def _bare(value: JsonValue) -> JsonValue:
    """A value without marks for the cache, however deep they stand."""
    if isinstance(value, dict):
        return {key: _bare(one) for key, one in value.items() if key not in _CACHE_MARKS}
    if isinstance(value, list):
        return [
            _bare(one) for one in value if not (isinstance(one, dict) and len(one) == 1 and _CACHE_MARKS & one.keys())
        ]
    return value


_CACHE_MARKS = frozenset({"cache_control", "cachePoint"})


class Doubt(NamedTuple):
    """What is wrong with a block of reasoning."""

    situation: Literal["reasoning.foreign", "reasoning.edited", "reasoning.prefix"]
    block: Block
    artefact: Artefact


class Provenance:
    """Looks artefacts up by the mark that a block carries."""

    def __init__(self, profile: Profile, artefacts: Sequence[Artefact]) -> None:
        self._provider, self._family = profile.provider, family(profile.model)
        self._known = {artefact.mark: artefact for artefact in artefacts if artefact.mark}
        self.needs_prefix = any(artefact.prefix for artefact in artefacts)

    def __bool__(self) -> bool:
        return bool(self._known)

    def doubts(self, turn: Turn, prefix: str) -> Iterator[Doubt]:
        """What is wrong with the reasoning of one turn, `prefix` being the name of what stands before it."""
        for block in turn.blocks:
            artefact = self._known.get(block.signature) if block.signature else None
            if artefact is None:
                continue
            if self._is_foreign(artefact):
                yield Doubt("reasoning.foreign", block, artefact)
            elif artefact.digest and artefact.digest != digest(block.raw):
                yield Doubt("reasoning.edited", block, artefact)
            elif artefact.prefix and prefix and artefact.prefix != prefix:
                yield Doubt("reasoning.prefix", block, artefact)

    def _is_foreign(self, artefact: Artefact) -> bool:
        if artefact.provider and artefact.provider != self._provider:
            return True
        return bool(artefact.model and self._family) and family(artefact.model) != self._family
