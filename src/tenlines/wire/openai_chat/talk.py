"""One run's conversation over Chat Completions."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.answers import native, response_format
from tenlines.wire.openai_chat.decoding import decode_response
from tenlines.wire.openai_chat.encoding import Encoder, encode_request
from tenlines.wire.openai_chat.stream import StreamDecoder
from tenlines.wire.profile import Target


class Talk:
    """How one run's requests are written and its replies are read."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request; O(new)."""
        self._encoder.extend(effect.messages, effect.new_from)
        answer, specs = native(effect, self._target.profile)
        body = encode_request(
            self._target,
            self._encoder.closed(),
            self._encoder.tools(specs),
            tool_choice=effect.tool_choice,
            max_output_tokens=effect.max_output_tokens,
            stream=stream,
        )
        if answer is not None:
            body["response_format"] = response_format(answer, self._target.profile)
        return body

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._target.profile.provider, self._target.model)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._target.profile.provider, self._target.model)
