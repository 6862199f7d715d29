"""What a model is sent and what it says: messages, their parts, calls and results. All immutable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import msgspec

if TYPE_CHECKING:
    JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
    JsonObject: TypeAlias = "dict[str, JsonValue]"
else:  # msgspec reads the fields of a struct at run time and has no recursive alias; JSON is checked as it is read
    JsonValue, JsonObject = Any, dict[str, Any]


# --- parts ------------------------------------------------------------------------------------------


class Text(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """A piece of text."""

    text: str


class Image(msgspec.Struct, frozen=True, gc=False, tag="image"):
    """An image: its bytes, or the address of one."""

    media_type: str
    data: bytes = b""
    url: str = ""


class File(msgspec.Struct, frozen=True, gc=False, tag="file"):
    """Any other binary content, with the name that a person would give it."""

    media_type: str
    data: bytes
    name: str = ""


class Json(msgspec.Struct, frozen=True, gc=False, tag="json"):
    """A JSON value, for providers that take structured results; others get its text."""

    value: JsonValue


class Opaque(msgspec.Struct, frozen=True, gc=False, tag="opaque"):
    """Something that only its maker understands (signed reasoning, say), kept as it came.

    It is sent back to the same `provider` and model family, and to nobody else.
    """

    provider: str
    model: str
    payload: JsonValue


Part: TypeAlias = Text | Image | File | Json | Opaque


# --- calls and results ------------------------------------------------------------------------------

Outcome: TypeAlias = Literal[
    "ok",
    "tool_error",
    "timeout",
    "denied",
    "unknown_tool",
    "invalid_arguments",
    "not_executed",
    "cancelled",
    "in_doubt",
]
"""What became of a call. `in_doubt`: it may have taken effect, nobody knows."""


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A tool call as a model asked for it: raw text, exactly as it came.

    In a `Reply`, `id` is whatever the provider sent (it may be empty or repeated). In an `Assistant`
    message it is unique over the transcript, and `arguments` is always the text of one JSON object.
    """

    id: str
    name: str
    arguments: str


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one reply, in the normal form: `input` counts every input token, cached ones included;
    `output` includes reasoning. None means that the provider did not say, which is not zero."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


StopReason: TypeAlias = Literal[
    "end",
    "tool_calls",
    "stop_sequence",
    "length",
    "content_filter",
    "refusal",
    "pause",
    "context_overflow",
    "malformed_call",
    "unknown",
]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """One finished reply of a model. Streaming never produces anything else than this."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = "end"
    usage: Usage | None = None
    opaque: tuple[Opaque, ...] = ()
    model: str = ""
    dollars: float | None = None
    remarks: tuple[str, ...] = ()
    """What the decoder noticed and had to decide (an unknown stop reason, a re-assembled call)."""


# --- messages ---------------------------------------------------------------------------------------


class System(msgspec.Struct, frozen=True, gc=False, tag="system"):
    """Standing instructions. Always first."""

    text: str


class User(msgspec.Struct, frozen=True, gc=False, tag="user"):
    """What a person said."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All text parts, joined by blank lines."""
        return text_of(self.parts)


class Note(msgspec.Struct, frozen=True, gc=False, tag="note"):
    """What the loop itself tells the model (a repeat, a limit). A message of its own, so that no tool
    result can forge one; formats without a place for it send it as user text."""

    text: str
    summary: bool = False
    """It stands for what was cut out before it, in the model's own words."""


class Assistant(msgspec.Struct, frozen=True, gc=False, tag="assistant"):
    """What the model said."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[Opaque, ...] = ()
    rebased: bool = False
    """What stands before it has changed since it was said (a compaction): reasoning that is bound to its beginning is
    left out by formats whose providers would refuse it."""


class Result(msgspec.Struct, frozen=True, gc=False, tag="result"):
    """The one result of one call."""

    call_id: str
    name: str
    outcome: Outcome
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All text parts, joined by blank lines."""
        return text_of(self.parts)


Message: TypeAlias = System | User | Note | Assistant | Result


def text_of(parts: tuple[Part, ...]) -> str:
    """The text of the parts that are text."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


class TranscriptView(Sequence[Message]):
    """The first `length` messages of a list that only grows: a snapshot that costs nothing to take."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[Message], length: int) -> None:
        self._items, self._length = items, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            start, stop, stride = index.indices(self._length)
            return [self.sent(self._items[one]) for one in range(start, stop, stride)]
        if not -self._length <= index < self._length:
            raise IndexError(f"message {index} of a transcript of {self._length}")
        return self.sent(self._items[index if index >= 0 else self._length + index])

    def __iter__(self) -> Iterator[Message]:
        for index in range(self._length):
            yield self.sent(self._items[index])

    def sent(self, message: Message) -> Message:
        """A message as it is seen through this view: as it is."""
        return message


def estimate_tokens(message: Message) -> int:
    """A guess at the tokens of one message, from its length: four characters a token, 1,000 an image.

    An estimate, used only to reserve before the provider has told the truth.
    """
    if isinstance(message, Assistant):
        size = len(message.text)
        for call in message.calls:
            size += len(call.name) + len(call.arguments) + 20
    elif isinstance(message, (User, Result)):  # a tuple: this runs for every message, and `|` builds a new type
        size = 0
        for part in message.parts:
            size += _size(part)
    else:
        size = len(message.text)
    return 4 + (size + 3) // 4


def _size(part: Part) -> int:
    if isinstance(part, Text):
        return len(part.text)
    return 4000 if isinstance(part, Image) else 200
