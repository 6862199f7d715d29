"""Google Gemini's `generateContent` as a wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.format import Frame
from tenlines.wire.gemini import amending, inspecting, turns
from tenlines.wire.gemini import rules as ruling
from tenlines.wire.gemini.decoding import Origin, decode_response
from tenlines.wire.gemini.encoding import (
    NAME_MAX,
    NAME_PATTERN,
    Encoder,
    encode_tool,
    generation_config,
    tool_config,
)
from tenlines.wire.gemini.stream import StreamDecoder
from tenlines.wire.ids import Names
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change, Rule
from tenlines.wire.turns import Tool, Turn


class Talk:
    """One run's conversation with a Gemini model.

    The name of the model and whether the reply is streamed are no part of a body: both are in the address.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._names = Names(NAME_PATTERN, NAME_MAX)
        self._origin = Origin(target.profile.provider, target.model, self._names)
        self._encoder = Encoder(target, self._names)
        self._specs: tuple[ToolSpec, ...] = ()
        self._declared: list[JsonValue] = []

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request: contents at the end, so that each body begins like the one before."""
        declared = self._tools(effect.tools)
        contents = self._encoder.extend(effect.messages, effect.new_from)
        body: JsonObject = {}
        if self._encoder.system.strip():
            body["systemInstruction"] = {"parts": [{"text": self._encoder.system}]}
        if declared:
            body["tools"] = [{"functionDeclarations": declared}]
            body["toolConfig"] = tool_config(effect.tool_choice, self._names)
        config = generation_config(self._target, effect.max_output_tokens)
        if config:
            body["generationConfig"] = config
        body["contents"] = contents
        return body

    def _tools(self, specs: tuple[ToolSpec, ...]) -> list[JsonValue]:
        if specs is not self._specs:
            self._specs = specs
            self._declared = [encode_tool(spec, self._target, self._names) for spec in specs]
        return self._declared

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response; a stream that nobody asked to come as events is a list of its chunks."""
        if not isinstance(data, list) or len(data) < 2:
            return decode_response(data, self._origin)
        decoder = self.decoder()
        for chunk in data:
            decoder.feed(chunk)
        return decoder.finish()

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._origin)


class Gemini:
    """The format."""

    name = "gemini"
    title = "Google Gemini generateContent"
    list_field = "contents"
    rules: tuple[Rule, ...] = ruling.RULES
    rejections = ruling.REJECTIONS

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """The profile for what is known of the target."""
        return ruling.profile(context)

    def talk(self, target: Target) -> Talk:
        """A conversation for one run."""
        return Talk(target)

    def frame(self, body: JsonObject) -> Frame:
        """System instruction and declarations."""
        return turns.frame(body)

    def unfold(self, message: JsonValue, path: str) -> Turn:
        """One content as a turn."""
        return turns.unfold(message, path)

    def fold(self, turn: Turn) -> JsonValue:
        """A turn as a content."""
        return turns.fold(turn)

    def fold_frame(self, body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
        """The body with these system prompts and declarations."""
        return turns.fold_frame(body, system, tools)

    def inspector(self, profile: Profile, artefacts: Sequence[Artefact] = ()) -> inspecting.Inspector:
        """A new inspector; where signatures came from is looked at by the general check."""
        return inspecting.Inspector(profile)

    def amend_frame(self, body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
        """Cure declarations."""
        return amending.amend_frame(body, profile)

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Cure one stretch of turns."""
        return amending.amend(turns, profile, artefacts, is_last=is_last)


FORMAT = Gemini()
