"""Ollama's native chat endpoint as a wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.format import Frame
from tenlines.wire.ollama import turns
from tenlines.wire.ollama.decoding import StreamDecoder, decode_response
from tenlines.wire.ollama.encoding import Encoder, encode_request
from tenlines.wire.ollama.rules import REJECTIONS, RULES, Inspector, profile
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change
from tenlines.wire.turns import Tool, Turn


class Talk:
    """How one run's requests are written and its replies are read."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request; O(new).

        There is no way to choose a tool here. When none is to be called, none are offered: nothing else keeps a
        model from it, and the history needs no declarations.
        """
        self._encoder.extend(effect.messages, effect.new_from)
        tools = [] if effect.tool_choice == "none" else self._encoder.tools(effect.tools)
        return encode_request(
            self._target,
            self._encoder.closed(),
            tools,
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
    """Ollama's native endpoint, `/api/chat`."""

    name = "ollama"
    title = "Ollama native"
    list_field = "messages"
    rules = RULES
    rejections = REJECTIONS

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """A server of one's own, or the cloud."""
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
        """A new inspector, which has nothing to look for."""
        return Inspector()

    def amend_frame(self, body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
        """Nothing to cure."""
        return body, []

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Nothing to cure."""
        return turns, []


FORMAT = Format()
"""The format itself."""
