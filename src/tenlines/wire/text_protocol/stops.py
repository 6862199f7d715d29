"""Where each wire format has its stop sequences: texts at which a server ends the reply."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.format import StreamDecoder, Talk
from tenlines.wire.json_values import obj
from tenlines.wire.profile import Target

_PLACES: dict[str, tuple[str, ...]] = {
    "openai_chat": ("stop",),
    "anthropic": ("stop_sequences",),
    "mistral": ("stop",),
    "cohere": ("stop_sequences",),
    "ollama": ("options", "stop"),
    "gemini": ("generationConfig", "stopSequences"),
    "bedrock": ("inferenceConfig", "stopSequences"),
}
"""Format -> the path in a body. OpenAI's Responses has none."""

_THINKS = re.compile(r"(gpt-([5-9]|[1-9]\d)|o\d|codex)(?![a-z])")
"""OpenAI's models that refuse stop sequences: "'stop' is not supported with this model"."""


def with_stops(body: JsonObject, format: str, stops: Sequence[str]) -> JsonObject:
    """The body with stop sequences, where its format has a place for them."""
    path = _PLACES.get(format)
    if path is None:
        return body
    *outer, last = path
    own: JsonObject = {last: list[JsonValue](stops)}
    if outer:
        own = {outer[0]: {**obj(body.get(outer[0])), **own}}
    return {**own, **body, **own}  # in front: the messages stay last, as the format has put them


class StoppingTalk:
    """A `Talk` around a `Talk` whose requests end replies at these texts."""

    def __init__(self, talk: Talk, target: Target, stops: Sequence[str]) -> None:
        self._talk, self._format = talk, target.profile.format
        is_refused = target.profile.provider == "openai" and _THINKS.match(target.model) is not None
        self._stops = () if is_refused else tuple(stops)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request."""
        body = self._talk.request(effect, stream)
        return with_stops(body, self._format, self._stops) if self._stops else body

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return self._talk.decode(data)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return self._talk.decoder()
