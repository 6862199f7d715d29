"""Transcript in, request body out. Deterministic: the messages of one request begin with those of the one before, so
that a provider's prefix cache holds."""

from __future__ import annotations

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Part,
    Result,
    System,
    User,
)
from tenlines.wire import encoder
from tenlines.wire.encoder import own_payloads
from tenlines.wire.ids import Ids
from tenlines.wire.json_values import items, string
from tenlines.wire.parts import (
    CONTINUE,
    EMPTY,
    NO_OUTPUT,
    NOTE_PREFIX,
    START,
    base64_text,
    data_url,
    plain_text,
    shown_or_told,
)
from tenlines.wire.profile import Profile, Target
from tenlines.wire.schemas import convert

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Non-standard fields that must go back to the server that made them (DeepSeek V4, Kimi: 400 otherwise)."""

UNDERSTOOD = "Understood."
"""The assistant's word between results and a user, for servers that want one there."""

# --- encoding ---------------------------------------------------------------------------------------


def plain_target(model: str = "", provider: str = "openai") -> Target:
    """Anyone who speaks this format and of whom nothing more is known."""
    profile = Profile(name="", format="openai_chat", provider=provider, as_of="", id_max=40)
    return Target(profile=profile, model=model)


class Encoder(encoder.Encoder):
    """Messages of one run in this format: each is encoded once and kept."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._joins = self._profile.has("turns.joined")
        self._lengths: list[int] = []  # how long the last entry's text was before each message

    def add(self, message: Message) -> None:
        """Write one message, and what must stand between it and the one before."""
        self._lengths.append(len(self._last_text()))
        if _is_left_out(message, self._target):
            return
        entry = encode_message(message, self._target)
        role = entry["role"]
        if self._joins and role in ("user", "system") and self.last_role == role and self._joined(entry):
            return
        between = self._between(message)
        if between is not None:
            self.append(between)
        self.append(entry)

    def _between(self, message: Message) -> JsonObject | None:
        """A fixed rule of the neighbours, so that it is there again in every later request."""
        profile, last = self._profile, self.last_role
        if isinstance(message, Assistant) and profile.has("turns.continued"):
            if last in ("", "system"):
                return {"role": "user", "content": START}
            return {"role": "user", "content": CONTINUE} if last == "assistant" else None
        is_user = isinstance(message, User | Note)
        parts_from: tuple[str, ...] = ("user",) if self._joins else ()
        if profile.has("user.after_results.never"):
            parts_from += ("tool",)
        return {"role": "assistant", "content": UNDERSTOOD} if is_user and last in parts_from else None

    def _joined(self, entry: JsonObject) -> bool:
        """Whether an entry could be added to the last one, which has the same role."""
        last, content = self._last(), entry["content"]
        held = last.get("content")
        if isinstance(held, str) and isinstance(content, str):
            self._entries[-1] = {**last, "content": f"{held}\n\n{content}"}
            return True
        if isinstance(held, list):
            self.join("user", content if isinstance(content, list) else [{"type": "text", "text": content}])
            return True
        return False  # text that was sent cannot become a list of parts without changing what was sent

    def cut(self, kept: int) -> None:
        """Take back what was joined to the last entry's text."""
        length = self._lengths[kept]
        del self._lengths[kept:]
        text = self._last_text()
        if len(text) > length:
            self._entries[-1] = {**self._last(), "content": text[:length]}

    def _last_text(self) -> str:
        return string(self._last().get("content"))

    def closed(self) -> list[JsonValue]:
        """All entries, and a user's word behind them where the server wants one."""
        last = self.last_role
        if last in ("user", "tool") or not self._target.profile.has("turns.continued"):
            return self._entries
        return [*self._entries, {"role": "user", "content": CONTINUE if last == "assistant" else START}]

    def tool(self, spec: ToolSpec) -> JsonObject:
        return encode_tool(spec)


def encode_request(
    target: Target,
    messages: list[JsonValue],
    tools: list[JsonValue],
    *,
    tool_choice: str = "auto",
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> JsonObject:
    """The body of a request.

    `tools` and `tool_choice` are left out when there are no tools: OpenAI and others refuse an empty list, and a
    choice without tools. `tool_choice="none"` keeps the tools, so that the cached prefix stays valid. A choice that
    the server is known to refuse becomes `auto`.
    """
    profile = target.profile
    body: JsonObject = {"model": target.model, "messages": messages}
    if tools:
        body["tools"] = tools
        body["tool_choice"] = _choice(tool_choice, profile)
    limit = target.limit(max_output_tokens)
    if limit is not None:
        body["max_completion_tokens" if profile.has("limit.new_name") else "max_tokens"] = limit
    if target.temperature is not None:
        body["temperature"] = target.temperature
    effort = target.effort or ("none" if tools and profile.has("effort.none_with_tools") else None)
    if effort is not None:
        body["reasoning_effort"] = effort
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def _choice(tool_choice: str, profile: Profile) -> JsonValue:
    choice: JsonValue = tool_choice
    if tool_choice not in ("auto", "none", "required"):
        choice = {"type": "function", "function": {"name": tool_choice}}
    return "auto" if is_refused(choice, profile) else choice


def is_refused(choice: JsonValue, profile: Profile) -> bool:
    """Whether a choice of a tool is one that this server does not take."""
    if choice == "auto":
        return False
    if profile.has("choice.auto_only"):
        return True
    if choice in ("required", "any"):
        return profile.has("choice.never_required")
    return choice != "none" and profile.has("choice.never_named")


def encode_tool(spec: ToolSpec) -> JsonObject:
    """One tool. A tool without parameters still gets an object schema: several servers demand one."""
    function: JsonObject = {"name": spec.name}
    if spec.description:
        function["description"] = spec.description
    function["parameters"] = convert(spec.parameters, "openai").schema
    return {"type": "function", "function": function}


def encode_message(message: Message, target: Target) -> JsonObject:
    """One message. A pure function: the same message always gives the same JSON."""
    is_filled = target.profile.has("content.filled")
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(parts):
            return {"role": "user", "content": _user_content(parts, target.profile)}
        case Note(text):
            return {"role": "user", "content": NOTE_PREFIX + text}
        case Assistant():
            return _assistant(message, target)
        case Result(call_id, _, _, parts):
            text = _filled(plain_text(parts), is_filled, NO_OUTPUT)
            return {"role": "tool", "tool_call_id": _ids(target.profile).wire(call_id), "content": text}


def _filled(text: str, is_filled: bool, placeholder: str) -> str:
    return placeholder if is_filled and not text.strip() else text


def _is_left_out(message: Message, target: Target) -> bool:
    """Whether a message says nothing at all. Nobody misses an empty message of the assistant; where servers are known
    to want text in all messages, blank ones and empty system messages go too."""
    if isinstance(message, Assistant) and not (message.calls or message.text or _kept(message, target)):
        return True
    if not target.profile.has("content.filled") or not isinstance(message, Assistant | System) or message.text.strip():
        return False
    return isinstance(message, System) or not message.calls


def _assistant(message: Assistant, target: Target) -> JsonObject:
    profile, text = target.profile, message.text
    if message.calls and profile.has("content.filled") and not text.strip():
        text = ""
    # null is what OpenAI itself sends for a message of calls alone; without calls null is refused (OAI-C-3)
    nothing = "" if profile.has("content.blank") or not message.calls else None
    body: JsonObject = {"role": "assistant", "content": text or nothing}
    ids = _ids(profile)
    calls: list[JsonObject] = [
        {"id": ids.wire(call.id), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    if calls:
        body["tool_calls"] = list[JsonValue](calls)
    if profile.has("reasoning.never"):
        return body
    for payload in _kept(message, target):
        _restore(body, calls, _still_good(payload) if message.rebased else payload)
    if profile.has("reasoning.every") or (calls and profile.has("reasoning.calls")):
        body.setdefault("reasoning_content", "")  # its presence is checked, not its content
    return body


def _kept(message: Assistant, target: Target) -> list[JsonObject]:
    """What the maker of a message gets back with it."""
    return [] if target.profile.has("reasoning.never") else own_payloads(message, target)


def _still_good(payload: JsonObject) -> JsonObject:
    """What is taken back though the beginning is another one now: all but what a gateway passes on of Anthropic's
    thinking, which is bound to its beginning (ANT-25)."""
    if not any(_is_bound(one) for one in items(payload.get("reasoning_details"))):
        return payload
    return {key: value for key, value in payload.items() if key not in ("reasoning", "reasoning_details")}


def _is_bound(detail: JsonValue) -> bool:
    """Whether a detail of OpenRouter's is Anthropic's; where it does not say whose it is, a signature tells."""
    if not isinstance(detail, dict):
        return False
    maker = string(detail.get("format"))
    return maker.startswith("anthropic") if maker else bool(detail.get("signature"))


def _restore(body: JsonObject, calls: list[JsonObject], payload: JsonObject) -> None:
    for field in REASONING_FIELDS:
        if payload.get(field) is not None:
            body[field] = payload[field]
    extras = payload.get("extra_content")  # Gemini's signed thoughts, by position of the call
    if isinstance(extras, list) and len(extras) == len(calls):
        for call, extra in zip(calls, extras, strict=True):
            if extra is not None:
                call["extra_content"] = extra


# --- ids --------------------------------------------------------------------------------------------

_IDS = Ids(r"[A-Za-z0-9_-]{1,40}", 40, "call_x")
_NATIVE_IDS = Ids(r"[A-Za-z0-9_.:-]{1,64}", 40, "call_x")
_NINE = Ids(r"[A-Za-z0-9]{9}", 9, "x")


def _ids(profile: Profile) -> Ids:
    if profile.has("ids.native"):
        return _NATIVE_IDS
    return _NINE if profile.has("ids.nine") else _IDS


# --- a user's parts ---------------------------------------------------------------------------------


def _user_content(parts: tuple[Part, ...], profile: Profile) -> JsonValue:
    is_filled = profile.has("content.filled")
    content = shown_or_told(parts, shown_part if "files" in profile.carries else shown_image, keeps_blank=not is_filled)
    return _filled(content, is_filled, EMPTY) if isinstance(content, str) else content


_FILES = ("application/pdf", "audio/wav", "audio/mp3")


def shown_image(part: Part) -> JsonObject | None:
    """An image as it is shown; None for any other part."""
    return part_json(part) if isinstance(part, Image) and (part.data or part.url) else None


def shown_part(part: Part) -> JsonObject | None:
    """The same for an image or a file of a kind that is taken."""
    return part_json(part) if isinstance(part, File) and part.media_type in _FILES else shown_image(part)


def part_json(part: Part) -> JsonObject:
    """A part of a user's message."""
    match part:
        case Image():
            return {"type": "image_url", "image_url": {"url": part.url or data_url(part)}}
        case File(media_type, data) if media_type in ("audio/wav", "audio/mp3"):
            return {"type": "input_audio", "input_audio": {"data": base64_text(data), "format": media_type[6:]}}
        case File():
            return {"type": "file", "file": {"filename": part.name or "file", "file_data": data_url(part)}}
        case _:
            return {"type": "text", "text": plain_text((part,))}
