"""Transcript in, request body out: items instead of messages.

Everything goes into `input`, the system prompt too: as a message of the role `system`, which all models and servers
take (newer ones read it as `developer`). `instructions` would say the same, but stand outside the list: a request that
continues a stored response does not inherit them, and they are no part of the prefix that only ever grows.

A turn of the model is always written as [reasoning] [text] [calls], its outputs directly behind: OpenAI pairs calls and
outputs by id wherever they stand, other servers only like this.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.effects import CallModel
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
    Text,
    ToolCall,
    User,
)
from tenlines.wire.encoder import Encoder, own_payloads
from tenlines.wire.ids import Ids, Names
from tenlines.wire.json_values import items
from tenlines.wire.parts import NOTE_PREFIX, data_url, part_text, plain_text
from tenlines.wire.profile import Target
from tenlines.wire.schemas import convert

CUSTOM_CALL = "custom_tool_call"
"""Type of the call of a tool whose input is any text, not JSON."""

IDS = Ids(r"[\x21-\x7e]{1,64}", 40, "call_x")

# --- messages ---------------------------------------------------------------------------------------


class ItemEncoder(Encoder):
    """The items of one run."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.names = Names(r"[a-zA-Z0-9_-]+")
        self._needs_encrypted = target.profile.has("encrypted")
        self._is_adjacent = "pair.gap" in target.profile.faults
        self._carries = target.profile.carries
        self._custom: set[str] = set()

    def add(self, message: Message) -> None:
        """Write one message: as one item, or an assistant's as several, or as none when it says nothing."""
        match message:
            case System(text):
                self._system(text)
            case User(parts):
                self.append({"type": "message", "role": "user", "content": self._parts(parts, "") or [input_text("")]})
            case Note(text):
                self.append({"type": "message", "role": "user", "content": [input_text(NOTE_PREFIX + text)]})
            case Assistant():
                for item in self._assistant(message):
                    self.append(item)
            case Result():
                self.append(self._result(message))

    def _system(self, text: str) -> None:
        """One item for all of them: many chat templates take a single one."""
        if not text:
            return
        held = self._last().get("content") if self.last_role == "system" else None
        if isinstance(held, list):
            held.append(input_text(text))
        else:
            self.append({"type": "message", "role": "system", "content": [input_text(text)]})

    def _result(self, message: Result) -> JsonObject:
        kind = "custom_tool_call_output" if message.call_id in self._custom else "function_call_output"
        parts = self._parts(message.parts, "result_")
        is_text = all(isinstance(part, dict) and part.get("type") == "input_text" for part in parts)
        output: JsonValue = plain_text(message.parts) if is_text else parts
        return {"type": kind, "call_id": IDS.wire(message.call_id), "output": output}

    def _parts(self, parts: Sequence[Part], place: str) -> list[JsonValue]:
        """Parts for the model, with a few words in the place of what the server does not take."""
        has_images, has_files = f"{place}images" in self._carries, f"{place}files" in self._carries
        return input_parts(
            [
                Text(part_text(part)) if isinstance(part, Image | File) and not fits else part
                for part in parts
                for fits in [has_images if isinstance(part, Image) else has_files]
            ]
        )

    def _assistant(self, message: Assistant) -> list[JsonObject]:
        blocks = self._blocks(message)
        if blocks is not None:
            return self._verbatim(message, blocks)
        items: list[JsonObject] = [spoken(message.text)] if message.text else []
        return items + [self._call(call, {}, keeps_id=False) for call in message.calls]

    def _blocks(self, message: Assistant) -> list[JsonObject] | None:
        """What the model said, as it came; None where it is not for this target, or does not fit the calls."""
        own = own_payloads(message, self._target)
        return blocks_of(own[0], len(message.calls)) if own else None

    def _verbatim(self, message: Assistant, blocks: list[JsonObject]) -> list[JsonObject]:
        """The items as they came. Ids go only beside the reasoning that they were made with: a server that looks
        them up asks for it."""
        blocks = self._usable(blocks)
        has_reasoning = any(block.get("type") == "reasoning" for block in blocks)
        before: list[JsonObject] = []
        calls: list[JsonObject] = []
        for block in blocks:
            position = position_of(block)
            if position is not None:
                item = self._call(message.calls[position], block, keeps_id=has_reasoning)
                (calls if self._is_adjacent else before).append(item)
            elif is_message(block) and not has_reasoning:
                before.append(spoken(text_in(block.get("content")), block.get("phase")))
            else:
                before.append(block)
        return before + calls

    def _usable(self, blocks: list[JsonObject]) -> list[JsonObject]:
        """Without what would be refused: a summary of the server's that came in part, reasoning that has nothing behind
        it, or is not encrypted where it must be."""
        blocks = [block for block in blocks if block.get("type") != "compaction" or block.get("encrypted_content")]
        while blocks and blocks[-1].get("type") == "reasoning":
            blocks = blocks[:-1]
        reasoning = [block for block in blocks if block.get("type") == "reasoning"]
        if self._needs_encrypted and not all(block.get("encrypted_content") for block in reasoning):
            return [block for block in blocks if block.get("type") != "reasoning"]
        return blocks

    def _call(self, call: ToolCall, extra: JsonObject, *, keeps_id: bool) -> JsonObject:
        more = {key: value for key, value in extra.items() if key not in ("call", "type", "input")}
        if not keeps_id:
            more.pop("id", None)
        head: JsonObject = {"call_id": IDS.wire(call.id), "name": self.names.wire(call.name)}
        if extra.get("type") == CUSTOM_CALL:
            self._custom.add(call.id)
            return {"type": CUSTOM_CALL, **head, "input": extra.get("input", call.arguments), **more}
        self._custom.discard(call.id)
        return {"type": "function_call", **head, "arguments": call.arguments, **more}

    def tool(self, spec: ToolSpec) -> JsonObject:
        """One tool. `strict` is written out because the API's default rewrites schemas."""
        tool: JsonObject = {"type": "function", "name": self.names.wire(spec.name)}
        if spec.description:
            tool["description"] = spec.description
        return {**tool, "parameters": convert(spec.parameters, "openai").schema, "strict": False}


def blocks_of(payload: JsonObject, calls: int) -> list[JsonObject] | None:
    """The blocks of a payload, where they are whole and stand for that many calls."""
    held = payload.get("blocks")
    if not isinstance(held, list):
        return None
    blocks = [block for block in held if isinstance(block, dict)]
    positions = [position for block in blocks if (position := position_of(block)) is not None]
    return blocks if len(blocks) == len(held) and positions == list(range(calls)) else None


def position_of(block: JsonObject) -> int | None:
    """The position of the call for which a block of a payload stands; None for any other block."""
    position = block.get("call")
    return position if type(position) is int and block.get("type") in (None, CUSTOM_CALL) else None


def is_message(item: JsonObject) -> bool:
    """Whether an item is a message; older writers leave its type out."""
    return item.get("type") == "message" or ("type" not in item and "role" in item)


def spoken(text: str, phase: JsonValue = None) -> JsonObject:
    """Text of the model, as an item without an id. `phase` tells commentary from the final answer."""
    item: JsonObject = {"type": "message", "role": "assistant", "content": text}
    if phase is not None:
        item["phase"] = phase
    return item


def text_in(content: JsonValue) -> str:
    """The text of a message's content: a string, or the parts of a list that are text or a refusal."""
    if isinstance(content, str):
        return content
    parts = [part for part in items(content) if isinstance(part, dict)]
    texts = [part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


# --- parts ------------------------------------------------------------------------------------------


def input_text(text: str) -> JsonObject:
    """Text for the model."""
    return {"type": "input_text", "text": text}


def input_parts(parts: Sequence[Part]) -> list[JsonValue]:
    """Parts for the model; empty texts and what no reader but its maker understands are left out."""
    written: list[JsonValue] = []
    for part in parts:
        if isinstance(part, Image) and (part.data or part.url):
            written.append({"type": "input_image", "detail": "auto", "image_url": part.url or data_url(part)})
        elif isinstance(part, File) and part.data:
            written.append({"type": "input_file", "filename": part.name or "file", "file_data": data_url(part)})
        elif text := part_text(part):
            written.append(input_text(text))
    return written


# --- the body ---------------------------------------------------------------------------------------


def encode_request(
    target: Target, effect: CallModel, items: list[JsonValue], tools: list[JsonValue], choice: str, *, stream: bool
) -> JsonObject:
    """The body of a request. `input` comes last, so that the body of the next request begins with this one.

    Nothing is stored on the server: the transcript is the memory, and what only a server remembers cannot be resumed
    elsewhere. So reasoning has to come back to us encrypted.

    Args:
        target: Whom it goes to.
        effect: What is asked.
        items: The encoded messages.
        tools: The encoded tools; without any, the choice is left out as well.
        choice: `auto`, `none`, `required`, or a tool by the name that it has here.
        stream: Whether the reply shall be streamed.
    """
    body: JsonObject = {"model": target.model, "store": False}
    if target.profile.has("encrypted"):
        body["include"] = ["reasoning.encrypted_content"]
    if target.compact_at is not None:
        body["context_management"] = [{"type": "compaction", "compact_threshold": target.compact_at}]
    limit = target.limit(effect.max_output_tokens)
    if limit is not None:
        body["max_output_tokens"] = limit
    if target.temperature is not None:
        body["temperature"] = target.temperature
    if target.effort is not None:
        body["reasoning"] = {"effort": target.effort}
    if stream:
        body["stream"] = True
    if tools:
        body["tools"] = tools
        body["tool_choice"] = choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}
    body["input"] = items
    return body
