"""One run's conversation with a native Ollama endpoint."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.answers import native
from tenlines.wire.constrained import simple_schema
from tenlines.wire.ollama.decoding import StreamDecoder, decode_response
from tenlines.wire.ollama.encoding import Encoder, encode_request
from tenlines.wire.profile import Target


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
        answer, specs = native(effect, self._target.profile)
        tools = [] if effect.tool_choice == "none" else self._encoder.tools(specs)
        body = encode_request(
            self._target,
            self._encoder.closed(),
            tools,
            max_output_tokens=effect.max_output_tokens,
            stream=stream,
        )
        if answer is not None:
            body["format"] = simple_schema(answer.parameters)
        return body

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._target.profile.provider, self._target.model)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._target.profile.provider, self._target.model)
