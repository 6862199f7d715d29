"""Transcript in, request body out. Deterministic and append-only: contents grow at their end and nowhere else.

Two contents of one role never stand side by side. Where the service wants somebody else to speak first, a short user
text stands in between; whether it does depends on the neighbours alone, so it is there in every later request too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
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
from tenlines.wire import encoder
from tenlines.wire.encoder import own_payloads
from tenlines.wire.ids import Names
from tenlines.wire.json_values import items
from tenlines.wire.parts import CONTINUE, NOTE_PREFIX, START, base64_text, part_text, plain_text
from tenlines.wire.profile import Target
from tenlines.wire.schemas import convert

DUMMY = "skip_thought_signature_validator"
"""The value that Google documents for calls of a history that no Gemini signed."""

NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_.:-]*"
NAME_MAX = 64

_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "auto": -1, "dynamic": -1}
"""Thinking budgets of Gemini 2.5, which knows no levels, in the sizes of Google's own compatible endpoint."""
_READABLE = ("image/", "audio/", "video/", "text/", "application/pdf")
"""Kinds of files that the models read; for others the text says what is there."""
_EXACT = 2**53
"""The service holds numbers as doubles: whole numbers beyond this would come out as others."""


# --- messages ---------------------------------------------------------------------------------------


class Encoder(encoder.Encoder):
    """The contents of one run, and the system text beside them."""

    blocks_field = "parts"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.names = Names(NAME_PATTERN, NAME_MAX)
        self._systems: list[str] = []
        self._called: dict[str, str] = {}
        self._has_tail = False

    @property
    def system(self) -> str:
        """The system messages at the front, joined by blank lines."""
        return "\n\n".join(self._systems)

    def extend(self, view: Sequence[Message], new_from: int | None = None) -> list[JsonValue]:
        """Take in what is new. What must follow a message that nobody answered is put behind it, for this request."""
        if self._has_tail:
            self.entries.pop()
        super().extend(view, new_from)
        entries = len(self.entries)
        self._speak_first()
        self._has_tail = len(self.entries) > entries
        return self.entries

    def cut(self, kept: int) -> None:
        """System messages stand first, one for each index."""
        del self._systems[kept:]

    def add(self, message: Message) -> None:
        """Write one message."""
        match message:
            case System(text):
                self._add_system(text)
            case User(parts):
                self._add_user([part for one in parts for part in _user_part(one)])
            case Note(text):
                self._add_user([{"text": NOTE_PREFIX + text}])
            case Assistant():
                said = self._model_parts(message)
                if said:
                    self._speak_first()
                    self.join("model", said)
            case Result():
                self._add_user([self._response(message)])

    def _add_system(self, text: str) -> None:
        if len(self._systems) == self.index:
            self._systems.append(text)
        else:  # changed instructions would change the beginning of the request
            self._add_user([{"text": NOTE_PREFIX + text}])

    def _add_user(self, parts: list[JsonValue]) -> None:
        if parts:
            self.join("user", parts)

    def _speak_first(self) -> None:
        """Let the user say something where the model would speak first, or twice in a row."""
        if self.last_role != "user":
            self.append({"role": "user", "parts": [{"text": CONTINUE if self.last_role else START}]})

    def _model_parts(self, message: Assistant) -> list[JsonValue]:
        for call in message.calls:
            self._called[call.id] = call.name
        blocks = _own_blocks(message, self._target)
        if blocks is None:
            blocks = [{"text": message.text}] if message.text.strip() else []
            blocks += [{"call": position} for position in range(len(message.calls))]
        parts: list[JsonValue] = []
        needs_signature = self._profile.has("signatures")
        for block in blocks:
            position = block.get("call")
            if type(position) is not int:
                parts.append(block)
                continue
            part: JsonObject = {"functionCall": self._call(message.calls[position])}
            part.update({name: value for name, value in block.items() if name != "call"})
            if needs_signature:
                part.setdefault("thoughtSignature", DUMMY)
            needs_signature = False
            parts.append(part)
        return parts

    def _call(self, call: ToolCall) -> JsonObject:
        body: JsonObject = {"id": call.id} if self._profile.has("ids") and call.id else {}
        return body | {"name": self.names.wire(call.name), "args": parse_arguments(call.arguments).value or {}}

    def _response(self, result: Result) -> JsonValue:
        """A result: its text, or its one JSON value, under `output` or `error`; pictures beside it where they go."""
        body: JsonObject = {"id": result.call_id} if self._profile.has("ids") and result.call_id else {}
        body["name"] = self.names.wire(self._called.get(result.call_id, result.name))
        shown: list[JsonValue] = []
        told: list[Part] = []
        for part in result.parts:
            blob = _inline(part) if self._profile.has("result_media") else None
            if blob is None:
                told.append(part)
            else:
                shown.append(blob)
        body["response"] = {"output" if result.outcome == "ok" else "error": _told(tuple(told))}
        if shown:
            body["parts"] = shown
        return {"functionResponse": body}

    def tool(self, spec: ToolSpec) -> JsonObject:
        body: JsonObject = {"name": self.names.wire(spec.name)}
        if spec.description:
            body["description"] = spec.description
        if self._profile.has("json_schema"):
            body["parametersJsonSchema"] = convert(spec.parameters, "gemini_json").schema
            return body
        schema = convert(spec.parameters, "gemini").schema
        if schema.get("properties"):  # an object without properties is refused; no parameters at all are fine
            body["parameters"] = schema
        return body


def _own_blocks(message: Assistant, target: Target) -> list[JsonObject] | None:
    """The parts of the message as this model family wrote them, where it did."""
    for payload in own_payloads(message, target):
        blocks = items(payload.get("blocks"))
        kept = [block for block in blocks if isinstance(block, dict)]
        positions = [block["call"] for block in kept if "call" in block]
        if kept and len(kept) == len(blocks) and positions == list(range(len(message.calls))):
            return kept
    return None


def _told(parts: tuple[Part, ...]) -> JsonValue:
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, Json) and only.value is not None and _is_exact(only.value):
        return only.value  # but no null: an error that is null is none
    return plain_text(parts)


def _is_exact(value: JsonValue, levels: int = 32) -> bool:
    """Whether a value comes through as it is."""
    if levels == 0:
        return False
    if isinstance(value, dict):
        return all(_is_exact(one, levels - 1) for one in value.values())
    if isinstance(value, list):
        return all(_is_exact(one, levels - 1) for one in value)
    return not isinstance(value, int | float) or -_EXACT <= value <= _EXACT


def _user_part(part: Part) -> list[JsonValue]:
    blob = _inline(part)
    if blob is not None:
        return [blob]
    if isinstance(part, Image) and part.url and not part.url.startswith("data:"):
        kind: JsonObject = {} if part.media_type.endswith("*") else {"mimeType": part.media_type}
        return [{"fileData": kind | {"fileUri": part.url}}]
    text = part_text(part)
    return [{"text": text}] if text.strip() else []


def _inline(part: Part) -> JsonObject | None:
    """The bytes of a part that the models can read; None for any other part."""
    if isinstance(part, Image) and part.url.startswith("data:"):
        kind, comma, data = part.url.removeprefix("data:").partition(";base64,")
        return {"inlineData": {"mimeType": kind, "data": data}} if comma else None
    if isinstance(part, Image | File) and part.data and part.media_type.startswith(_READABLE):
        return blob_of(part)
    return None


def blob_of(part: Image | File) -> JsonObject:
    """The bytes of a picture or a file as a part."""
    return {"inlineData": {"mimeType": part.media_type, "data": base64_text(part.data)}}


# --- everything beside the messages -----------------------------------------------------------------


def tool_config(tool_choice: str, names: Names) -> JsonObject:
    """Whether the model may, must or must not call."""
    mode = _CHOICES.get(tool_choice)
    if mode is not None:
        return {"functionCallingConfig": {"mode": mode}}
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [names.wire(tool_choice)]}}


def generation_config(target: Target, max_output_tokens: int | None) -> JsonObject:
    """How the reply is made; empty when the service shall decide everything."""
    config: JsonObject = {}
    limit = target.limit(max_output_tokens)
    if limit is not None:
        config["maxOutputTokens"] = limit
    if target.temperature is not None:
        config["temperature"] = target.temperature
    if target.effort is not None:
        config["thinkingConfig"] = _thinking(target.effort.lower(), target)
    return config


def _thinking(effort: str, target: Target) -> JsonObject:
    if not target.profile.has("levels"):
        budget = int(effort) if effort.isdecimal() else _BUDGETS.get(effort)
        if budget is not None:
            return {"thinkingBudget": budget}
    return {"thinkingLevel": "MINIMAL" if effort == "none" else effort.upper()}  # the least that can be said
