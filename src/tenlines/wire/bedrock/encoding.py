"""Transcript in, Converse request out.

Roles have to alternate in effect and every result of a turn stands in the next user message, so neighbours are joined
where the family of the model allows it, and kept apart by a message of our own where it does not. Each such message
follows from its two neighbours, so it is there again in every later request.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from tenlines.core.effects import CallModel
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
from tenlines.wire import encoder as base
from tenlines.wire.bedrock.binary import text_of
from tenlines.wire.encoder import own_payloads
from tenlines.wire.ids import Ids, Names
from tenlines.wire.json_values import items
from tenlines.wire.parts import CONTINUE, EMPTY, NO_OUTPUT, NOTE_PREFIX, START, part_text, plain_text
from tenlines.wire.profile import Profile, Target, family
from tenlines.wire.schemas import convert

Blocks: TypeAlias = "list[JsonValue]"

ID_PATTERN = r"[a-zA-Z0-9_.:-]{1,64}"
NAME_PATTERN = r"[a-zA-Z0-9_-]+"
SEPARATOR = "."
"""What the assistant is made to say between results and what may not stand beside them."""
ATTACHED = "(see the attached document)"
MOST_IMAGES, MOST_DOCUMENTS = 20, 5
"""How many of each the service takes in one message."""

IMAGE_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENT_FORMATS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}

_REGION = re.compile(r"^(us-gov|us|eu|apac|ap|jp|au|ca|sa|global)\.")
_EDITION = re.compile(r"-v\d+(:\d+)*$|:\d+$")


def model_family(model: str) -> str:
    """The model without region, date and edition: `us.anthropic.claude-opus-5-20260301-v1:0` and its twins in other
    regions take one another's artefacts."""
    bare = _REGION.sub("", model.rsplit("/", 1)[-1].lower())
    return family(_EDITION.sub("", bare))


# --- messages ---------------------------------------------------------------------------------------


class Encoder(base.Encoder):
    """The messages of one run."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.names = Names(NAME_PATTERN)
        self._ids = Ids(ID_PATTERN, 40, "tooluse_x")
        self._system: list[str] = []
        self._called: list[tuple[int, str]] = []

    @property
    def system(self) -> Blocks:
        """The system prompt: what stood at the front."""
        return [{"text": text} for text in self._system if text.strip()]

    @property
    def called(self) -> list[str]:
        """Names of the tools that are called in the messages, each once."""
        return list(dict.fromkeys(name for _, name in self._called))

    def add(self, message: Message) -> None:
        """Write one message."""
        match message:
            case System(text):
                if self.index == len(self._system):
                    self._system.append(text)
                else:
                    self._speak([{"text": NOTE_PREFIX + text}])
            case User(parts):
                self._speak(user_blocks(parts, self.index))
            case Note(text):
                self._speak([{"text": NOTE_PREFIX + text}])
            case Assistant():
                self._answer(message)
            case Result():
                self.join("user", [self._result(message)])

    def cut(self, kept: int) -> None:
        """Forget what belongs to messages that were taken back."""
        del self._system[kept:]
        while self._called and self._called[-1][0] >= kept:
            self._called.pop()

    def _speak(self, blocks: Blocks) -> None:
        """What a user says, or the loop itself."""
        if self.last_role == "user" and not self._fit_together(items(self._last().get("content")), blocks):
            self.append({"role": "assistant", "content": [{"text": SEPARATOR}]})
        self.join("user", blocks)

    def _fit_together(self, held: Blocks, blocks: Blocks) -> bool:
        """Whether the service takes these blocks in one message with those that are there."""
        images, documents = count(blocks, "image"), count(blocks, "document")
        if count(held, "toolResult") and (documents or self._profile.has("results_alone")):
            return False
        if images and count(held, "image") + images > MOST_IMAGES:
            return False
        return not documents or count(held, "document") + documents <= MOST_DOCUMENTS

    def _answer(self, message: Assistant) -> None:
        calls: Blocks = [self._call(call) for call in message.calls]
        self._called += [(self.index, self.names.wire(call.name)) for call in message.calls]
        blocks = self._restored(message, calls)
        if blocks is None:
            said: Blocks = [{"text": message.text}] if message.text.strip() else []
            blocks = said + calls
        if calls and self._profile.has("calls_alone"):
            words = [block for block in blocks if not _has(block, "toolUse")]
            blocks = [block for block in blocks if _has(block, "toolUse")]
            self._say(words)
        self._say(blocks)

    def _say(self, blocks: Blocks) -> None:
        """A message of the assistant, apart from the one before it."""
        if not blocks:
            return
        if self.last_role != "user":
            self.append({"role": "user", "content": [{"text": CONTINUE if self.last_role else START}]})
        self.append({"role": "assistant", "content": blocks})

    def _restored(self, message: Assistant, calls: Blocks) -> Blocks | None:
        """The blocks of a reply as they came, when this model may have them back."""
        for payload in own_payloads(message, self._target, model_family):
            held = payload.get("blocks")
            if isinstance(held, list):
                kept = [block for block in held if not _is_bound(block)] if message.rebased else held
                return _with_calls(kept, calls, self._profile)
        return None

    def _call(self, call: ToolCall) -> JsonObject:
        arguments = parse_arguments(call.arguments).value
        return {
            "toolUse": {
                "toolUseId": self._ids.wire(call.id),
                "name": self.names.wire(call.name),
                "input": {} if arguments is None else arguments,
            }
        }

    def _result(self, message: Result) -> JsonObject:
        result: JsonObject = {"toolUseId": self._ids.wire(message.call_id)}
        result["content"] = result_blocks(message.parts, self._profile)
        if message.outcome != "ok" and self._profile.has("status"):
            result["status"] = "error"
        return {"toolResult": result}

    def tool(self, spec: ToolSpec) -> JsonObject:
        inner: JsonObject = {"name": self.names.wire(spec.name)}
        if spec.description.strip():
            inner["description"] = spec.description
        inner["inputSchema"] = {"json": convert(spec.parameters, "bedrock").schema}
        return {"toolSpec": inner}


def count(blocks: Blocks, kind: str) -> int:
    """How many blocks are of a kind."""
    return sum(_has(block, kind) for block in blocks)


def _has(block: JsonValue, kind: str) -> bool:
    return isinstance(block, dict) and kind in block


def _with_calls(held: Blocks, calls: Blocks, profile: Profile) -> Blocks | None:
    """The kept blocks with the calls in their places; None when they do not fit one another."""
    blocks: Blocks = []
    waiting = dict(enumerate(calls))
    for block in held:
        if not isinstance(block, dict):
            return None
        position = block.get("call")
        if "call" in block:
            call = waiting.pop(position, None) if type(position) is int else None
            if not isinstance(call, dict) or not isinstance(call["toolUse"], dict):
                return None
            extra = {key: value for key, value in block.items() if key != "call"}
            blocks.append({"toolUse": {**extra, **call["toolUse"]}})
        elif not _is_blank(block) and not (profile.has("no_reasoning") and "reasoningContent" in block):
            blocks.append(block)
    return None if waiting or not blocks else blocks


def _is_bound(block: JsonValue) -> bool:
    """Whether a block is signed reasoning, which is refused behind another beginning than the one it was made for."""
    held = block.get("reasoningContent") if isinstance(block, dict) else None
    inner = held.get("reasoningText") if isinstance(held, dict) else None
    return _has(held, "redactedContent") or (isinstance(inner, dict) and bool(inner.get("signature")))


def _is_blank(block: JsonObject) -> bool:
    """Models write blank texts that the service then refuses to read."""
    text = block.get("text")
    return isinstance(text, str) and not text.strip()


def user_blocks(parts: tuple[Part, ...], index: int) -> Blocks:
    """What a user says; never nothing. `index` makes the names of documents new: the service refuses repeated ones."""
    blocks: Blocks = []
    for position, part in enumerate(parts):
        media = _image(part)
        is_full = count(blocks, "image") >= MOST_IMAGES
        if media is None:
            media = _document(part, f"{index}-{position}")
            is_full = count(blocks, "document") >= MOST_DOCUMENTS
        if media is not None and not is_full:
            blocks.append(media)
        elif (text := part_text(part)).strip():
            blocks.append({"text": text})
    if count(blocks, "document") and not count(blocks, "text"):
        blocks.insert(0, {"text": ATTACHED})
    return blocks or [{"text": EMPTY}]


def result_blocks(parts: tuple[Part, ...], profile: Profile) -> Blocks:
    """What a tool gave back; never nothing."""
    if profile.has("json_results"):
        only = parts[0] if len(parts) == 1 else None
        if isinstance(only, Json) and isinstance(only.value, dict):
            return [{"json": only.value}]
        return [{"json": {"result": plain_text(parts)}}]
    blocks: Blocks = []
    for part in parts:
        image = _image(part) if profile.has("image_results") else None
        if image is not None:
            blocks.append(image)
        elif (text := part_text(part)).strip():
            blocks.append({"text": text})
    return blocks or [{"text": NO_OUTPUT}]


def _image(part: Part) -> JsonObject | None:
    """An image block, for what the service takes as one: four kinds, as bytes or in S3."""
    if not isinstance(part, Image) or part.media_type not in IMAGE_FORMATS:
        return None
    if part.data:
        source: JsonObject = {"bytes": text_of(part.data)}
    elif part.url.startswith("s3://"):
        source = {"s3Location": {"uri": part.url}}
    else:
        return None
    return {"image": {"format": IMAGE_FORMATS[part.media_type], "source": source}}


def _document(part: Part, mark: str) -> JsonObject | None:
    """A document block. Its name may have few kinds of characters, and no name may come twice."""
    if not isinstance(part, File) or part.media_type not in DOCUMENT_FORMATS or not part.data:
        return None
    stem = re.sub(r"[^a-zA-Z0-9()\[\]-]+", " ", part.name.rsplit(".", 1)[0]).strip()
    return {
        "document": {
            "format": DOCUMENT_FORMATS[part.media_type],
            "name": f"{stem[:150].strip() or 'document'} {mark}",
            "source": {"bytes": text_of(part.data)},
        }
    }


# --- the request ------------------------------------------------------------------------------------


def encode_request(encoder: Encoder, target: Target, effect: CallModel) -> JsonObject:
    """The body of a request: the same for a whole and for a streamed reply. Its messages stand last, so that the JSON
    of one request is the beginning of the next one's."""
    entries = _ended(encoder.extend(effect.messages, effect.new_from))
    body: JsonObject = {"modelId": target.model}
    caches = target.profile.has("cache_marks")
    if encoder.system:
        body["system"] = [*encoder.system, _cache_point()] if caches else encoder.system
    config = _inference(target, effect.max_output_tokens)
    if config:
        body["inferenceConfig"] = config
    if target.effort is not None:
        body["outputConfig"] = {"effort": target.effort}
    tools = _tool_config(encoder, target.profile, effect)
    if tools is not None:
        body["toolConfig"] = tools
    body["messages"] = marked(entries) if caches else entries
    return body


def _inference(target: Target, asked: int | None) -> JsonObject:
    config: JsonObject = {}
    limit = target.limit(asked)
    if limit is not None:
        config["maxTokens"] = limit
    if target.temperature is not None:
        config["temperature"] = target.temperature
    return config


def _tool_config(encoder: Encoder, profile: Profile, effect: CallModel) -> JsonObject | None:
    """The tools. Calls in the messages need some, so without any there are stubs of those that were called."""
    tools = encoder.tools(effect.tools) or [stub_tool(name) for name in encoder.called]
    if not tools:
        return None
    if profile.has("cache_tools"):
        tools = [*tools, _cache_point()]
    config: JsonObject = {"tools": tools}
    choice = encode_choice(effect.tool_choice, profile, encoder.names) if effect.tools else None
    if choice is not None:
        config["toolChoice"] = choice
    return config


def stub_tool(name: str) -> JsonObject:
    """A tool that stands only for its name in the history."""
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object", "properties": {}}}}}


def encode_choice(tool_choice: str, profile: Profile, names: Names) -> JsonObject | None:
    """The choice of a tool; None where it is the default, or cannot be said to this family (`unsaid` tells)."""
    if tool_choice in ("auto", "none") or unsaid(tool_choice, profile):
        return None
    return {"any": {}} if tool_choice == "required" else {"tool": {"name": names.wire(tool_choice)}}


def unsaid(tool_choice: str, profile: Profile) -> bool:
    """Whether the format, or this family of models, has no word for a choice."""
    if tool_choice == "required":
        return not profile.has("choice_any")
    return tool_choice != "auto" and (tool_choice == "none" or not profile.has("choice_tool"))


def _ended(entries: Blocks) -> Blocks:
    """The messages as they are sent: there is at least one, and the last is the user's."""
    last = entries[-1] if entries else None
    if isinstance(last, dict) and last.get("role") == "user":
        return entries
    return [*entries, {"role": "user", "content": [{"text": CONTINUE if entries else START}]}]


def _cache_point() -> JsonObject:
    return {"cachePoint": {"type": "default"}}


def marked(entries: Blocks) -> Blocks:
    """The messages with two marks up to which they are cached: at the end, for the next request, and where the last
    request ended, which is what can be read now. The entries that are kept stay as they are."""
    before = next((index for index in range(len(entries) - 1, 0, -1) if _is_assistants(entries[index])), 0) - 1
    shown = list(entries)
    for index in {len(entries) - 1, before}:
        entry = entries[index] if index >= 0 else None
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(content, list):
            shown[index] = {**entry, "content": [*content, _cache_point()]}
    return shown


def _is_assistants(entry: JsonValue) -> bool:
    return isinstance(entry, dict) and entry.get("role") == "assistant"
