"""One run's conversation in this format."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.answers import named, native
from tenlines.wire.openai_responses.decoding import Reading, decode_response
from tenlines.wire.openai_responses.encoding import ItemEncoder, encode_request
from tenlines.wire.openai_responses.stream import StreamDecoder
from tenlines.wire.profile import Target


class Talk:
    """Writes the requests of a run and reads its replies."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, ItemEncoder(target)
        self._limit: int | None = None

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request."""
        self._limit = self._target.limit(effect.max_output_tokens)
        answer, specs = native(effect, self._target.profile)
        tools = self._encoder.tools(specs)
        choice = effect.tool_choice
        wire_choice = choice if choice in ("auto", "none", "required") else self._encoder.names.wire(choice)
        items = self._encoder.extend(effect.messages, effect.new_from)
        body = encode_request(self._target, effect, items, tools, wire_choice, stream=stream)
        if answer is not None:
            text: JsonObject = {"format": {"type": "json_schema", **named(answer)}}
            body = {"text": text, **body}  # the items stay last
        return body

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._reading())

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._reading())

    def _reading(self) -> Reading:
        limit = self._limit if self._target.profile.has("limit.silent") else None
        return Reading(self._target.profile.provider, self._target.model, self._encoder.names.own, limit)
