"""Transcript in, request body out. Deterministic: the messages of one request begin with those of the one before, so
that a provider's prefix cache holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, Image, JsonObject, JsonValue, Message, Note, Part, Result, System, User
from tenlines.wire.parts import NOTE_PREFIX, data_url, part_text, plain_text

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Non-standard fields that must go back to the server that made them (DeepSeek V4, Kimi: 400 otherwise)."""

# --- options ----------------------------------------------------------------------------------------


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same in every request of a run."""

    model: str = ""
    provider: str = "openai"
    """Whose opaque artefacts (reasoning) are sent back: they go to the provider and model that made them."""
    max_tokens: int | None = None
    """Most output tokens of a reply, where the run itself sets no limit."""
    max_tokens_field: str = "max_tokens"
    """OpenAI's own reasoning models take only `max_completion_tokens`; most other servers know only the old name."""
    temperature: float | None = None
    reasoning_effort: str | None = None
    effort_with_tools: str | None = None
    """The effort in requests with tools where none is set: OpenAI's GPT-5.4 and later refuse function tools on this
    endpoint with any other effort than `none`, their own default included (OAI-C-20)."""


# --- encoding ---------------------------------------------------------------------------------------


class Encoder:
    """Messages of one run in this format: each is encoded once and kept."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._messages: list[JsonValue] = []
        self._specs: tuple[ToolSpec, ...] | None = None
        self._tools: list[JsonValue] = []

    def extend(self, view: Sequence[Message], new_from: int | None = None) -> list[JsonValue]:
        """Take in what is new; O(new).

        Args:
            view: The whole transcript.
            new_from: Index of the first message that was not sent. What was kept from there on is encoded again
                (it is new after a retry, and changed after the transcript was edited). None: the view only grew.

        Returns:
            All encoded messages: the list that is kept, not a copy.
        """
        keep = len(view) if new_from is None else new_from
        del self._messages[keep:]
        for index in range(len(self._messages), len(view)):
            self._messages.append(encode_message(view[index], self._options))
        return self._messages

    def tools(self, specs: tuple[ToolSpec, ...]) -> list[JsonValue]:
        """The tools in this format, encoded once for the same specs."""
        if specs is not self._specs:
            self._specs, self._tools = specs, [encode_tool(spec) for spec in specs]
        return self._tools


def encode_request(
    options: Options,
    messages: list[JsonValue],
    tools: list[JsonValue],
    *,
    tool_choice: str = "auto",
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> JsonObject:
    """The body of a request.

    `tools` and `tool_choice` are left out when there are no tools: OpenAI and others refuse an empty list, and a
    choice without tools. `tool_choice="none"` keeps the tools, so that the cached prefix stays valid.
    """
    body: JsonObject = {"model": options.model, "messages": messages}
    if tools:
        body["tools"] = tools
        body["tool_choice"] = _choice(tool_choice)
    limit = options.max_tokens if max_output_tokens is None else max_output_tokens
    if limit is not None:
        body[options.max_tokens_field] = limit
    if options.temperature is not None:
        body["temperature"] = options.temperature
    effort = options.reasoning_effort or (options.effort_with_tools if tools else None)
    if effort is not None:
        body["reasoning_effort"] = effort
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def _choice(tool_choice: str) -> JsonValue:
    if tool_choice in ("auto", "none", "required"):
        return tool_choice
    return {"type": "function", "function": {"name": tool_choice}}


def encode_tool(spec: ToolSpec) -> JsonObject:
    """One tool. A tool without parameters still gets an object schema: several servers demand one."""
    function: JsonObject = {"name": spec.name}
    if spec.description:
        function["description"] = spec.description
    function["parameters"] = spec.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def encode_message(message: Message, options: Options) -> JsonObject:
    """One message. A pure function: the same message always gives the same JSON."""
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(parts):
            return {"role": "user", "content": _user_content(parts)}
        case Note(text):
            return {"role": "user", "content": NOTE_PREFIX + text}
        case Assistant():
            return _assistant(message, options)
        case Result(call_id, _, _, parts):
            return {"role": "tool", "tool_call_id": wire_id(call_id), "content": plain_text(parts)}


def _assistant(message: Assistant, options: Options) -> JsonObject:
    # null is what OpenAI itself sends for a message of calls alone; without calls null is refused (OAI-C-3)
    body: JsonObject = {"role": "assistant", "content": message.text or (None if message.calls else "")}
    calls: list[JsonObject] = [
        {"id": wire_id(call.id), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    if calls:
        body["tool_calls"] = list[JsonValue](calls)
    for opaque in message.opaque:
        if opaque.provider == options.provider and opaque.model == options.model and isinstance(opaque.payload, dict):
            _restore(body, calls, opaque.payload)
    return body


def _restore(body: JsonObject, calls: list[JsonObject], payload: JsonObject) -> None:
    for field in REASONING_FIELDS:
        if field in payload:
            body[field] = payload[field]
    extras = payload.get("extra_content")  # Gemini's signed thoughts, by position of the call
    if isinstance(extras, list):
        for call, extra in zip(calls, extras, strict=False):
            if extra is not None:
                call["extra_content"] = extra


def wire_id(call_id: str) -> str:
    """The id of a call as this format takes it: at most 40 characters of `[A-Za-z0-9_-]`.

    An id that fits goes as it is; any other becomes a hash. What already looks like such a hash is hashed as well,
    so two different ids never become one.
    """
    if _FITTING_ID.fullmatch(call_id) and not call_id.startswith(_HASHED):
        return call_id
    return _HASHED + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_FITTING_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_HASHED = "call_x"


def _user_content(parts: tuple[Part, ...]) -> JsonValue:
    if not any(isinstance(part, Image) for part in parts):
        return plain_text(parts)
    content: list[JsonValue] = []
    for part in parts:
        if isinstance(part, Image):
            content.append({"type": "image_url", "image_url": {"url": part.url or data_url(part)}})
        elif text := part_text(part):
            content.append({"type": "text", "text": text})
    return content
