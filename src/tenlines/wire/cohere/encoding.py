"""Transcript in, request body of Cohere's chat endpoint out."""

from __future__ import annotations

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    Json,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Result,
    System,
    User,
)
from tenlines.wire import encoder
from tenlines.wire.encoder import own_payloads
from tenlines.wire.ids import Ids
from tenlines.wire.openai_chat.encoding import encode_tool, shown_image
from tenlines.wire.parts import EMPTY, NO_OUTPUT, NOTE_PREFIX, plain_text, shown_or_told
from tenlines.wire.profile import Target

_IDS = Ids(r"[A-Za-z0-9_.:-]{1,64}", 40, "call_x")


class Encoder(encoder.Encoder):
    """Messages of one run in this format: each is encoded once and kept."""

    def add(self, message: Message) -> None:
        """Write one message; one of the assistant that says nothing is left out."""
        if isinstance(message, Assistant) and not message.calls and not message.text.strip():
            return
        self.append(encode_message(message, self._target))

    def tool(self, spec: ToolSpec) -> JsonObject:
        return encode_tool(spec)


def encode_message(message: Message, target: Target) -> JsonObject:
    """One message. A pure function: the same message always gives the same JSON."""
    match message:
        case System(text):
            return {"role": "system", "content": text or EMPTY}
        case Note(text):
            return {"role": "user", "content": NOTE_PREFIX + text}
        case User():
            return {"role": "user", "content": shown_or_told(message.parts, shown_image) or EMPTY}
        case Assistant():
            return _assistant(message, target)
        case Result(call_id):
            return {"role": "tool", "tool_call_id": _IDS.wire(call_id), "content": _result_content(message)}


def _result_content(message: Result) -> JsonValue:
    """Text, or documents where the tool gave objects."""
    if len(message.parts) == 1 and isinstance(message.parts[0], Json) and isinstance(message.parts[0].value, dict):
        return [{"type": "document", "document": {"data": message.parts[0].value}}]
    return plain_text(message.parts) or NO_OUTPUT


def _assistant(message: Assistant, target: Target) -> JsonObject:
    body: JsonObject = {"role": "assistant"}
    thoughts = _thoughts(message, target)
    if message.calls:
        if thoughts:
            body["content"] = thoughts
        if message.text:
            body["tool_plan"] = message.text
        body["tool_calls"] = [
            {
                "id": _IDS.wire(call.id),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    elif thoughts:
        body["content"] = [*thoughts, {"type": "text", "text": message.text}]
    else:
        body["content"] = message.text
    return body


def _thoughts(message: Assistant, target: Target) -> list[JsonValue]:
    """The model's own reasoning, for its own family alone."""
    for payload in own_payloads(message, target):
        if isinstance(payload.get("thinking"), str):
            return [{"type": "thinking", "thinking": payload["thinking"]}]
    return []


def encode_request(
    target: Target,
    messages: list[JsonValue],
    tools: list[JsonValue],
    *,
    tool_choice: str = "auto",
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> JsonObject:
    """The body of a request. A tool cannot be chosen by name here: some tool must be called then."""
    body: JsonObject = {"model": target.model, "messages": messages}
    if tools:
        body["tools"] = tools
        if tool_choice != "auto":
            body["tool_choice"] = "NONE" if tool_choice == "none" else "REQUIRED"
    limit = target.limit(max_output_tokens)
    if limit is not None:
        body["max_tokens"] = limit
    if target.temperature is not None:
        body["temperature"] = target.temperature
    if stream:
        body["stream"] = True
    return body
