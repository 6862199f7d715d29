"""Transcript in, request body out. Deterministic: the messages of one request begin with those of the one before, so
that the provider's cache holds and thinking stays bound to what it was made after."""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import (
    Assistant,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.anthropic.blocks import (
    REASONING,
    content_blocks,
    is_empty_compaction,
    server_call,
    server_result,
    text_block,
)
from tenlines.wire.encoder import Encoder, own_payloads
from tenlines.wire.ids import Ids, Names
from tenlines.wire.json_values import items, string
from tenlines.wire.parts import CONTINUE, EMPTY, NO_OUTPUT, NOTE_PREFIX, START
from tenlines.wire.profile import Target
from tenlines.wire.schemas import convert

SILENT_ERROR = "(tool failed without a message)"

EMPTY_THINKING: JsonObject = {"type": "thinking", "thinking": "", "signature": ""}
"""For servers that demand thinking in messages of which none is known: they check that it is there."""


class _Kept(NamedTuple):
    """The blocks of an opaque artefact that may go back."""

    blocks: list[JsonValue]
    is_paused: bool = False
    container: str = ""


class _At(NamedTuple):
    """Something that was noted when a message was added, and goes when that message is taken back."""

    message: int
    value: str


class MessagesEncoder(Encoder):
    """Messages of one run in this format: each is encoded once and kept.

    Neighbours of role `user` are one message: the results of a turn come first in it, and what people and the runtime
    say stands behind. Where the format would take no message, there is one by a fixed rule: `(conversation start)`
    before a leading assistant, `Continue.` between two assistant messages, since a whole reply is never the beginning
    of the next one. Only a paused reply is followed by its continuation.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.ids = Ids(r"[a-zA-Z0-9_-]{1,64}", 40, "call_x")
        self.names = Names(r"[a-zA-Z0-9_-]+", 64)
        self._systems: list[_At] = []
        self._called: list[_At] = []
        self._containers: list[_At] = []
        self._paused: set[int] = set()
        self._asked: dict[str, int] = {}
        """Calls of the provider's own tools, by id, with the message in which they stand."""
        # models that think by a budget look at no beginning, and want the thinking of a turn that goes on (ANT-23)
        self._binds = target.profile.has("signed") and not target.profile.has("manual")

    # --- what stands beside the messages

    @property
    def system(self) -> list[JsonValue]:
        """The system prompts, as blocks."""
        return [text_block(text) for _, text in self._systems if text.strip()]

    @property
    def called(self) -> list[str]:
        """The tools that the transcript calls, in the order of their first call, as they are named here."""
        return list(dict.fromkeys(name for _, name in self._called))

    @property
    def container(self) -> str:
        """The container in which the provider's own tools run, or ""."""
        return self._containers[-1].value if self._containers else ""

    @property
    def awaits_user(self) -> bool:
        """Whether the messages end where a reply cannot be asked for."""
        return not self._entries or (self.last_role == "assistant" and not self._is_paused())

    def closing(self) -> JsonObject:
        """The message to end a request with when `awaits_user`; `add` puts the same there when the reply has come."""
        return _user(CONTINUE if self._entries else START)

    # --- messages

    def add(self, message: Message) -> None:
        index = self.index
        match message:
            case System(text) if len(self._systems) == index:
                self._systems.append(_At(index, text))
            case System(text) | Note(text):
                self.join("user", [text_block(NOTE_PREFIX + text)])
            case User(parts):
                self.join("user", content_blocks(parts) or [text_block(EMPTY)])
            case Result():
                self.join("user", [self._result(message)])
            case Assistant():
                self._add_assistant(index, message)

    def cut(self, kept: int) -> None:
        for noted in (self._systems, self._called, self._containers):
            while noted and noted[-1].message >= kept:
                noted.pop()
        self._paused = {entry for entry in self._paused if entry < len(self._entries)}
        self._asked = {call_id: at for call_id, at in self._asked.items() if at < kept}

    def _add_assistant(self, index: int, message: Assistant) -> None:
        kept = self._opaque(message)
        blocks = self._plain(message) if kept is None else kept.blocks
        if self._profile.has("thinking-back") and not any(_is_reasoning(block) for block in blocks) and blocks:
            blocks.insert(0, dict(EMPTY_THINKING))
        if self.awaits_user:
            self._entries.append(self.closing())
        if not blocks:
            return  # a reply that said nothing is never sent back
        self.append({"role": "assistant", "content": blocks})
        self._asked |= {call_id: index for block in blocks if (call_id := server_call(block))}
        self._called += [_At(index, self.names.wire(call.name)) for call in message.calls]
        if kept is not None and kept.is_paused:
            self._paused.add(len(self._entries) - 1)
        if kept is not None and kept.container:
            self._containers.append(_At(index, kept.container))

    def _plain(self, message: Assistant) -> list[JsonValue]:
        said: list[JsonValue] = [text_block(message.text)] if message.text.strip() else []
        return said + [self._call(call, {}) for call in message.calls]

    def _call(self, call: ToolCall, extra: JsonObject) -> JsonObject:
        return {
            "type": "tool_use",
            "id": self.ids.wire(call.id),
            "name": self.names.wire(call.name),
            "input": parse_arguments(call.arguments).value or {},
            **extra,
        }

    def _result(self, message: Result) -> JsonObject:
        is_error = message.outcome != "ok"
        block: JsonObject = {"type": "tool_result", "tool_use_id": self.ids.wire(message.call_id)}
        if all(isinstance(part, Text) for part in message.parts):
            block["content"] = message.text if message.text.strip() else ""
        else:
            block["content"] = content_blocks(message.parts)
        block["content"] = block["content"] or (SILENT_ERROR if is_error else NO_OUTPUT)
        if is_error:
            block["is_error"] = True
        return block

    # --- what the provider wants back as it came

    def _opaque(self, message: Assistant) -> _Kept | None:
        for payload in own_payloads(message, self._target):
            if isinstance(payload.get("blocks"), list):
                return self._kept(message, payload)
        return None

    def _kept(self, message: Assistant, payload: JsonObject) -> _Kept | None:
        blocks: list[JsonValue] = []
        seen: list[int] = []
        for block in items(payload.get("blocks")):
            position = call_position(block)
            if position is None or not isinstance(block, dict):
                blocks.append(block)
                continue
            seen.append(position)
            if position < len(message.calls):
                extra = {key: value for key, value in block.items() if key != "call"}
                blocks.append(self._call(message.calls[position], extra))
        if sorted(seen) != list(range(len(message.calls))):
            return None
        is_paused, container = payload.get("pause") is True, payload.get("container")
        if message.rebased:
            blocks = self._still_good(blocks)
        blocks = self._sendable(blocks, is_paused)
        return _Kept(blocks, is_paused and bool(blocks), string(container))

    def _still_good(self, blocks: list[JsonValue]) -> list[JsonValue]:
        """The blocks without what the provider refuses since the beginning is another one: thinking that is bound to
        it (ANT-25), and results of its own tools whose calls went with it (ANT-29)."""
        here = {server_call(block) for block in blocks}
        return [
            block
            for block in blocks
            if not (self._binds and _is_reasoning(block))
            and (not (answered := server_result(block)) or answered in here or answered in self._asked)
        ]

    def _sendable(self, blocks: list[JsonValue], is_paused: bool) -> list[JsonValue]:
        """The blocks without the few that the provider itself makes and then refuses."""
        has_words = any(_text(block).strip() for block in blocks)
        kept = [
            block
            for block in blocks
            if not _is_text(block) or (_text(block) and (has_words or bool(_text(block).strip())))
        ]
        kept = [block for block in kept if not is_empty_compaction(block)]
        if self._profile.has("signed"):
            kept = [block for block in kept if not _is_reasoning(block) or _is_signed(block)]
        while kept and not is_paused and _is_reasoning(kept[-1]):
            kept.pop()  # a message may not end with thinking: the reply was cut off in it
        return kept

    # --- the end of the list

    def _is_paused(self) -> bool:
        return len(self._entries) - 1 in self._paused

    def tool(self, spec: ToolSpec) -> JsonObject:
        tool: JsonObject = {"name": self.names.wire(spec.name)}
        if spec.description.strip():
            tool["description"] = spec.description
        tool["input_schema"] = convert(spec.parameters, "anthropic").schema
        return tool


def call_position(block: JsonValue) -> int | None:
    """Which call stands in the place of this block of a payload; None when it is a block of the provider's."""
    position = block.get("call") if isinstance(block, dict) and "type" not in block else None
    return position if type(position) is int else None


def _user(text: str) -> JsonObject:
    return {"role": "user", "content": [text_block(text)]}


def _is_text(block: JsonValue) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _text(block: JsonValue) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return string(text)


def _is_reasoning(block: JsonValue) -> bool:
    return isinstance(block, dict) and block.get("type") in REASONING


def _is_signed(block: JsonValue) -> bool:
    return isinstance(block, dict) and bool(block.get("signature") or block.get("data"))


def stub_tool(name: str) -> JsonObject:
    """In the place of a tool that the history calls and the run has no more: the provider wants it declared."""
    description = "No longer available. It is declared because earlier messages call it."
    return {"name": name, "description": description, "input_schema": {"type": "object", "properties": {}}}
