"""One run's conversation with Mistral."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.mistral.decoding import Reading, decode_response
from tenlines.wire.mistral.encoding import Encoder, encode_request
from tenlines.wire.mistral.stream import StreamDecoder
from tenlines.wire.profile import Target


class Talk:
    """How one run's requests are written and its replies are read."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)
        self._reading = Reading(self._encoder.names, target.profile.provider, target.model)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request; O(new)."""
        return encode_request(self._encoder, self._target, effect, stream)

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._reading)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._reading)
