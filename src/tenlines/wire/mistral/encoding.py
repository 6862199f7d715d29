"""Transcript in, request out."""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    Image,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Part,
    Result,
    System,
    ToolCall,
    User,
)
from tenlines.wire import encoder as base
from tenlines.wire.answers import named, native
from tenlines.wire.encoder import own_payloads
from tenlines.wire.ids import Ids, Names
from tenlines.wire.parts import CONTINUE, NOTE_PREFIX, START, data_url, plain_text, shown_or_told
from tenlines.wire.profile import Profile, Target
from tenlines.wire.schemas import convert

NAME_PATTERN = r"[a-zA-Z0-9_-]+"
NINE = r"[a-zA-Z0-9]{9}"
NAMED = r"(?s)(?!null$).+"
"""Any id but none and `null`, which stands for none."""
SEPARATOR = "."
"""What the assistant is made to say between results and a user, where the two may not follow one another."""


# --- messages ---------------------------------------------------------------------------------------


class Encoder(base.Encoder):
    """The messages of one run."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.names = Names(NAME_PATTERN)
        self._ids = Ids(target.profile.id_pattern, 9)

    def add(self, message: Message) -> None:
        """Write one message."""
        match message:
            case System(text):
                if self.last_role in ("", "system"):
                    self.append({"role": "system", "content": text})
                else:
                    self._speak(NOTE_PREFIX + text)  # a system message may not come after the assistant's or a result
            case User(parts):
                self._speak(user_content(parts, self._profile))
            case Note(text):
                self._speak(NOTE_PREFIX + text)
            case Assistant():
                self._answer(message)
            case Result():
                self.append(self._result(message))

    def _speak(self, content: JsonValue) -> None:
        if self.last_role == "tool" and not self._profile.has("user_after_tool"):
            self.append({"role": "assistant", "content": SEPARATOR})
        self.append({"role": "user", "content": content})

    def _answer(self, message: Assistant) -> None:
        calls: list[JsonValue] = [self._call(call) for call in message.calls]
        content: JsonValue = self._restored(message) or (message.text if message.text.strip() else None)
        if content is None and not calls:
            return  # a message with nothing in it is refused by some and of no use to any
        if self.last_role in ("", "assistant"):  # the validator does not count the calls of the very first message
            self.append({"role": "user", "content": CONTINUE if self._entries else START})
        if content is not None and calls and self._profile.has("calls_alone"):
            self.append({"role": "assistant", "content": content})
            content = None
        body: JsonObject = {"role": "assistant"}
        if content is not None:
            body["content"] = content
        if calls:
            body["tool_calls"] = calls
        self.append(body)

    def _restored(self, message: Assistant) -> list[JsonValue]:
        """The chunks of a reply as they came, when this model may have them back; none otherwise."""
        if message.rebased or not self._profile.has("thinking"):
            return []  # thoughts are optional, and those of before a cut are of no more use
        for payload in own_payloads(message, self._target):
            held = payload.get("blocks")
            if isinstance(held, list):
                calls = [block["call"] for block in held if isinstance(block, dict) and "call" in block]
                fits = calls == list(range(len(message.calls)))
                return [block for block in held if isinstance(block, dict) and "call" not in block] if fits else []
        return []

    def tool(self, spec: ToolSpec) -> JsonObject:
        function: JsonObject = {"name": self.names.wire(spec.name), "description": spec.description}
        function["parameters"] = convert(spec.parameters, "mistral").schema
        return {"type": "function", "function": function}

    def _call(self, call: ToolCall) -> JsonObject:
        function: JsonObject = {"name": self.names.wire(call.name), "arguments": call.arguments}
        return {"id": self._ids.wire(call.id), "type": "function", "function": function}

    def _result(self, message: Result) -> JsonObject:
        return {
            "role": "tool",
            "tool_call_id": self._ids.wire(message.call_id),
            "name": self.names.wire(message.name),
            "content": result_content(message.parts, self._profile),
        }


def user_content(parts: tuple[Part, ...], profile: Profile) -> JsonValue:
    """What a user says: text, or chunks when there are images."""
    return plain_text(parts) if profile.has("no_images") else shown_or_told(parts, _shown)


def result_content(parts: tuple[Part, ...], profile: Profile) -> JsonValue:
    """What a tool gave back: text, or chunks when there are images and they are taken."""
    return shown_or_told(parts, _shown) if profile.has("image_results") else plain_text(parts)


def _shown(part: Part) -> JsonObject | None:
    if not isinstance(part, Image) or not (part.url or part.data):
        return None
    return {"type": "image_url", "image_url": part.url or data_url(part)}


# --- the request ------------------------------------------------------------------------------------


def encode_request(encoder: Encoder, target: Target, effect: CallModel, stream: bool) -> JsonObject:
    """The body of a request. Its messages stand last, so that the JSON of one request is the beginning of the next
    one's."""
    answer, specs = native(effect, target.profile)
    entries, tools = encoder.extend(effect.messages, effect.new_from), encoder.tools(specs)
    body: JsonObject = {"model": target.model}
    limit = target.limit(effect.max_output_tokens)
    if limit is not None:
        body["max_tokens"] = limit
    if target.temperature is not None:
        body["temperature"] = target.temperature
    if target.effort is not None and not target.profile.has("no_effort"):
        body["reasoning_effort"] = target.effort
    if tools:
        body["tools"] = tools
        body["tool_choice"] = _choice(effect.tool_choice, encoder.names)
    if answer is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": named(answer)}
    if stream:
        body["stream"] = True
    body["messages"] = ended(entries)
    return body


def _choice(tool_choice: str, names: Names) -> JsonValue:
    if tool_choice in ("auto", "none", "required"):
        return tool_choice
    return {"type": "function", "function": {"name": names.wire(tool_choice)}}


def ended(entries: Sequence[JsonValue]) -> list[JsonValue]:
    """The messages as they are sent: there is at least one, and the last one is not the assistant's."""
    last = entries[-1] if entries else None
    if last is None:
        return [{"role": "user", "content": START}]
    if isinstance(last, dict) and last.get("role") == "assistant" and "tool_calls" not in last:
        return [*entries, {"role": "user", "content": CONTINUE}]
    return entries if isinstance(entries, list) else list(entries)
