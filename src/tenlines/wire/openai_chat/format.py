"""Chat Completions as a wire format: OpenAI's own, and that of the many servers that speak like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Frame
from tenlines.wire.openai_chat import amending, compatible, turns
from tenlines.wire.openai_chat.inspecting import Inspector
from tenlines.wire.openai_chat.rules import REJECTIONS, RULES
from tenlines.wire.openai_chat.talk import Talk
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change, Rule
from tenlines.wire.turns import Tool, Turn


class Format:
    """OpenAI Chat Completions."""

    name = "openai_chat"
    title = "OpenAI Chat Completions"
    list_field = "messages"
    rules: tuple[Rule, ...] = RULES + compatible.RULES
    rejections: tuple[tuple[str, str], ...] = compatible.REJECTIONS + REJECTIONS

    def __init__(self) -> None:
        self._by_id = {rule.id: rule for rule in self.rules}

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """The profile of a server; OpenAI's own when none is named."""
        return compatible.profile(context or {})

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
        """Cure tools and parameters."""
        return amending.amend_frame(body, profile)

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Cure a stretch of turns."""
        return amending.amend(turns, profile, is_last=is_last)


FORMAT = Format()
"""The format itself."""
