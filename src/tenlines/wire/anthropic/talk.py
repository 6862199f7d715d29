"""One run's conversation with Anthropic Messages."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.anthropic import requests
from tenlines.wire.anthropic.decoding import decode_response
from tenlines.wire.anthropic.encoding import MessagesEncoder, stub_tool
from tenlines.wire.anthropic.marks import marked
from tenlines.wire.anthropic.stream import StreamDecoder
from tenlines.wire.profile import Target


class Talk:
    """One run's conversation in this format."""

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, MessagesEncoder(target)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request. The messages stand last: what changes from request to request comes behind
        what does not."""
        target, profile = self._target, self._target.profile
        messages = self._encoder.extend(effect.messages, effect.new_from)
        if self._encoder.awaits_user:
            messages = [*messages, self._encoder.closing()]
        limit = requests.max_tokens(target, effect.max_output_tokens)
        body: JsonObject = {"model": target.model, "max_tokens": limit}
        thinking = requests.thinking(target, limit)
        if requests.is_manual(thinking) and requests.lacks_thinking(messages):
            del thinking["thinking"]
        body.update(thinking)
        requests.hold_to_schema(body, effect, profile)
        if target.temperature is not None and not (profile.has("no-sampling") or "thinking" in thinking):
            body["temperature"] = target.temperature
        if target.compact_at is not None:
            body["context_management"] = requests.context_management(target.compact_at)
        if self._encoder.container:
            body["container"] = self._encoder.container
        if stream:
            body["stream"] = True
        if self._encoder.system:
            body["system"] = self._encoder.system
        may_force = not (profile.has("no-forcing") or requests.is_manual(thinking))
        self._add_tools(body, effect, may_force=may_force)
        body["messages"] = messages
        return marked(body) if profile.has("marks") else body

    def _add_tools(self, body: JsonObject, effect: CallModel, *, may_force: bool) -> None:
        if tools := self._encoder.tools(effect.tools):
            name = self._encoder.names.wire(effect.tool_choice)
            body["tools"] = tools
            body["tool_choice"] = requests.tool_choice(effect.tool_choice, name, may_force=may_force)
        elif self._encoder.called:
            body["tools"] = [stub_tool(name) for name in self._encoder.called]
            body["tool_choice"] = {"type": "none"}

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._target.profile.provider, self._target.model, self._encoder.names.own)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._target.profile.provider, self._target.model, self._encoder.names.own)
