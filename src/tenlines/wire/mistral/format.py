"""Mistral's chat completions as a wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Frame
from tenlines.wire.mistral import amending, turns
from tenlines.wire.mistral.inspecting import Inspector
from tenlines.wire.mistral.rules import REJECTIONS, RULES, profile
from tenlines.wire.mistral.talk import Talk
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change, Rule
from tenlines.wire.turns import Tool, Turn


class Format:
    """Mistral."""

    name = "mistral"
    title = "Mistral"
    list_field = "messages"
    rules: tuple[Rule, ...] = RULES
    rejections: tuple[tuple[str, str], ...] = REJECTIONS

    def __init__(self) -> None:
        self._by_id = {rule.id: rule for rule in self.rules}

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """The profile of a version of the tokenizer; without one, of the hosted API."""
        return profile(context or {})

    def talk(self, target: Target) -> Talk:
        """A conversation for one run."""
        return Talk(target)

    def frame(self, body: JsonObject) -> Frame:
        """The tools of a body."""
        return turns.frame(body)

    def unfold(self, message: JsonValue, path: str) -> Turn:
        """One message as a turn."""
        return turns.unfold(message, path)

    def fold(self, turn: Turn) -> JsonValue:
        """A turn as a message."""
        return turns.fold(turn)

    def fold_frame(self, body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
        """The body with these tools; system prompts stand among the messages."""
        return turns.fold_frame(body, system, tools)

    def inspector(self, profile: Profile, artefacts: Sequence[Artefact] = ()) -> Inspector:
        """A new inspector; nothing here depends on where reasoning came from."""
        return Inspector(profile, self._by_id)

    def amend_frame(self, body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
        """Cure the schemas of the tools."""
        return amending.amend_frame(body)

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Cure a stretch of turns."""
        return amending.amend(turns, profile, is_last=is_last)


FORMAT = Format()
"""The format itself."""
