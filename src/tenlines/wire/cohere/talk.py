"""One run's conversation with Cohere."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.answers import held, native
from tenlines.wire.cohere.decoding import StreamDecoder, decode_response
from tenlines.wire.cohere.encoding import Encoder, encode_request
from tenlines.wire.profile import Target


class Talk:
    """How one run's requests are written and its replies are read."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request; O(new)."""
        answer, specs = native(effect, self._target.profile)
        schema = None if answer is None else held(answer.parameters, "cohere_strict")
        body = encode_request(
            self._target,
            self._encoder.extend(effect.messages, effect.new_from),
            self._encoder.tools(effect.tools if schema is None else specs),
            tool_choice=effect.tool_choice,
            max_output_tokens=effect.max_output_tokens,
            stream=stream,
        )
        if schema is not None:
            body["response_format"] = {"type": "json_object", "json_schema": schema}
        return body

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._target.profile.provider, self._target.model)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._target.profile.provider, self._target.model)
