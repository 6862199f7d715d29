"""Cohere's chat endpoint as a wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.cohere import turns
from tenlines.wire.cohere.decoding import StreamDecoder, decode_response
from tenlines.wire.cohere.encoding import Encoder, encode_request
from tenlines.wire.cohere.rules import REJECTIONS, RULES, Inspector, amend_frame, profile
from tenlines.wire.format import Frame
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change
from tenlines.wire.turns import Tool, Turn


class Talk:
    """How one run's requests are written and its replies are read."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request; O(new)."""
        return encode_request(
            self._target,
            self._encoder.extend(effect.messages, effect.new_from),
            self._encoder.tools(effect.tools),
            tool_choice=effect.tool_choice,
            max_output_tokens=effect.max_output_tokens,
            stream=stream,
        )

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._target.profile.provider, self._target.model)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._target.profile.provider, self._target.model)


class Format:
    """Cohere's chat endpoint, version 2."""

    name = "cohere"
    title = "Cohere Chat v2"
    list_field = "messages"
    rules = RULES
    rejections = REJECTIONS

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """The profile of all its models."""
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
        """The body with these tools."""
        return turns.fold_frame(body, system, tools)

    def inspector(self, profile: Profile, artefacts: Sequence[Artefact] = ()) -> Inspector:
        """A new inspector."""
        return Inspector()

    def amend_frame(self, body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
        """Cure tools that are said to be strict and are not."""
        return amend_frame(body)

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Nothing to cure."""
        return turns, []


FORMAT = Format()
"""The format itself."""
