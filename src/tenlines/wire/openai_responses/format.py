"""OpenAI Responses as a wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Frame
from tenlines.wire.openai_responses import amending, profiles, turns
from tenlines.wire.openai_responses.inspecting import Inspector
from tenlines.wire.openai_responses.rules import REJECTIONS, RULES
from tenlines.wire.openai_responses.talk import Talk
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change, Rule
from tenlines.wire.turns import Tool, Turn


class Format:
    """OpenAI Responses."""

    name = "openai_responses"
    title = "OpenAI Responses"
    list_field = "input"
    rules: tuple[Rule, ...] = RULES
    rejections: tuple[tuple[str, str], ...] = REJECTIONS

    def __init__(self) -> None:
        self._by_id = {rule.id: rule for rule in self.rules}

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """The profile of a server; OpenAI's own when none is named."""
        return profiles.profile(context or {})

    def talk(self, target: Target) -> Talk:
        """A conversation for one run."""
        return Talk(target)

    def frame(self, body: JsonObject) -> Frame:
        """The instructions and the tools of a body."""
        return turns.frame(body)

    def unfold(self, message: JsonValue, path: str) -> Turn:
        """One item as a turn."""
        return turns.unfold(message, path)

    def fold(self, turn: Turn) -> JsonValue:
        """A turn as an item."""
        return turns.fold(turn)

    def fold_frame(self, body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
        """The body with these instructions and tools."""
        return turns.fold_frame(body, system, tools)

    def inspector(self, profile: Profile, artefacts: Sequence[Artefact] = ()) -> Inspector:
        """A new inspector for one check."""
        return Inspector(profile, self._by_id, artefacts)

    def amend_frame(self, body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
        """Cure parameters, and items whose cure depends on them."""
        return amending.amend_frame(body, profile)

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Cure one stretch of items."""
        return amending.amend(turns, profile, artefacts, is_last=is_last)


FORMAT = Format()
