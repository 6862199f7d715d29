"""One run's conversation with Gemini."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.answers import held, native
from tenlines.wire.gemini.decoding import Origin, decode_response
from tenlines.wire.gemini.encoding import Encoder, generation_config, tool_config
from tenlines.wire.gemini.stream import StreamDecoder
from tenlines.wire.profile import Target


class Talk:
    """One run's conversation with a Gemini model.

    The name of the model and whether the reply is streamed are no part of a body: both are in the address.
    """

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)
        self._origin = Origin(target.profile.provider, target.model, self._encoder.names)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request: contents at the end, so that each body begins like the one before."""
        declared = self._encoder.tools(effect.tools)
        contents = self._encoder.extend(effect.messages, effect.new_from)
        body: JsonObject = {}
        if self._encoder.system.strip():
            body["systemInstruction"] = {"parts": [{"text": self._encoder.system}]}
        if declared:
            body["tools"] = [{"functionDeclarations": declared}]
            body["toolConfig"] = tool_config(effect.tool_choice, self._encoder.names)
        config = generation_config(self._target, effect.max_output_tokens)
        answer = native(effect, self._target.profile).answer
        if answer is not None and (schema := held(answer.parameters, "gemini_json")) is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
        if config:
            body["generationConfig"] = config
        body["contents"] = contents
        return body

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
