"""Transcript in, request body of Ollama's native endpoint out."""

from __future__ import annotations

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import Assistant, Image, JsonObject, JsonValue, Message, Note, Result, System, User
from tenlines.wire import encoder
from tenlines.wire.encoder import own_payloads
from tenlines.wire.openai_chat.encoding import encode_tool
from tenlines.wire.parts import CONTINUE, NOTE_PREFIX, START, base64_text, part_text, plain_text
from tenlines.wire.profile import Target


class Encoder(encoder.Encoder):
    """Messages of one run in this format: each is encoded once and kept."""

    def add(self, message: Message) -> None:
        """Write one message; between two of the assistant's stands a user's word, as behind the last one."""
        if isinstance(message, Assistant) and self.last_role == "assistant":
            self.append({"role": "user", "content": CONTINUE})
        self.append(encode_message(message, self._target))

    def closed(self) -> list[JsonValue]:
        """All entries, with a user's word behind an assistant's, which would be continued."""
        last = self.last_role
        if last in ("user", "tool"):
            return self._entries
        return [*self._entries, {"role": "user", "content": CONTINUE if last == "assistant" else START}]

    def tool(self, spec: ToolSpec) -> JsonObject:
        return encode_tool(spec)


def encode_message(message: Message, target: Target) -> JsonObject:
    """One message. A pure function: the same message always gives the same JSON."""
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case Note(text):
            return {"role": "user", "content": NOTE_PREFIX + text}
        case User():
            return _user(message)
        case Assistant():
            return _assistant(message, target)
        case Result(_, name, _, parts):
            return {"role": "tool", "tool_name": name, "content": plain_text(parts)}


def _user(message: User) -> JsonObject:
    shown = [part for part in message.parts if isinstance(part, Image) and part.data]
    told = tuple(part for part in message.parts if part not in shown)
    body: JsonObject = {"role": "user", "content": "\n\n".join(text for part in told if (text := part_text(part)))}
    if shown:
        body["images"] = [base64_text(image.data) for image in shown]
    return body


def _assistant(message: Assistant, target: Target) -> JsonObject:
    body: JsonObject = {"role": "assistant", "content": message.text}
    for payload in own_payloads(message, target):
        if isinstance(payload.get("thinking"), str):
            body["thinking"] = payload["thinking"]
    calls: list[JsonValue] = [
        {"function": {"name": call.name, "arguments": _arguments(call.arguments)}} for call in message.calls
    ]
    if calls:
        body["tool_calls"] = calls
    return body


def _arguments(text: str) -> JsonObject:
    return parse_arguments(text).value or {}


def encode_request(
    target: Target,
    messages: list[JsonValue],
    tools: list[JsonValue],
    *,
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> JsonObject:
    """The body of a request. The endpoint streams unless it is told not to."""
    body: JsonObject = {"model": target.model, "messages": messages, "stream": stream}
    if tools:
        body["tools"] = tools
    options: JsonObject = {}
    limit = target.limit(max_output_tokens)
    if limit is not None:
        options["num_predict"] = limit
    if target.temperature is not None:
        options["temperature"] = target.temperature
    if options:
        body["options"] = options
    if target.effort is not None:
        body["think"] = {"none": False, "false": False, "true": True}.get(target.effort, target.effort)
    return body
