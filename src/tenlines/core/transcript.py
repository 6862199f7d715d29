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


# --- how long they are --------------------------------------------------------------------------------


def estimate_tokens(message: Message) -> int:
    """A guess at the tokens of one message, from what its text is made of. Costs about a microsecond at any length.

    Four tokens for a message and eight for a call are what formats put around them. How far off it is:
    `docs/money.md`. What a provider reports is the truth and takes its place.
    """
    tenths = 0
    if isinstance(message, Assistant):
        if message.text:
            tenths = _of_text(message.text)
        for call in message.calls:
            tenths += 80 + 2 * len(call.name) + _of_text(call.arguments)
        for opaque in message.opaque:
            tenths += _of_payload(opaque.payload)
    elif isinstance(message, (User, Result)):  # a tuple: this runs for every message, and `|` builds a new type
        for part in message.parts:
            tenths += _of_text(part.text) if isinstance(part, Text) else _of_part(part)
    else:
        tenths = _of_text(message.text)
    return 4 + (tenths + 9) // 10


def estimate_text(text: str) -> int:
    """The same guess for a bare text."""
    return (_of_text(text) + 9) // 10


def estimate_value(value: JsonValue) -> int:
    """The same for a value that is sent as JSON."""
    return (_of_value(value) + 9) // 10


# All below count in tenths of a token.

_PLAIN = bytes(range(ord("a"), ord("z") + 1)) + b" " + bytes(sorted(set(range(0x80, 0xF0)) - {0x9F}))
"""Bytes that tokenizers take several at a time: small letters, spaces, and what is not ASCII, but for the first two
bytes of an emoji (F0 9F)."""
_READ = 2048
"""Most characters that are looked at."""
_STRIDES = (1, 3, 7, 13, 29, 61, 127, 257, 521, 1031, 2053, 4099, 8209)
"""Of a longer text every so many-th character is looked at, twice as far apart for one of twice the length: which are
there matters, and not their order. Primes, so that rows of one width are met in all columns (unless the width is a
multiple of the stride)."""
_IMAGE = 15_000
"""An image of 1,024 x 1,024 is 1,100 to 1,450 tokens with each of the three large providers; a screen up to 2,800."""
_LARGEST_FILE = 1_000_000


def _of_text(text: str) -> int:
    """A fifth of a token for each byte, half a token more for each that is not in `_PLAIN` (digits, marks, capitals),
    a tenth more for each byte of a character behind its first."""
    length = len(text)
    if length > _READ:
        read = text[:: _STRIDES[min((length // _READ).bit_length(), len(_STRIDES) - 1)]]
        return _of_text(read) * length // len(read)
    try:
        body = text.encode()
    except UnicodeEncodeError:
        body = text.encode("utf-8", "surrogatepass")
    size = len(body)
    return 2 * size + 5 * len(body.translate(None, _PLAIN)) + size - length


def _of_part(part: Part) -> int:
    match part:
        case Text(text):
            return _of_text(text)
        case Json(value):
            return _of_value(value)
        case Opaque(payload=payload):
            return _of_payload(payload)
        case File():
            return _of_file(part)
        case Image():
            return _IMAGE


def _of_value(value: JsonValue) -> int:
    """A value as its text; nothing for one that no record could hold either."""
    try:
        return _of_text(msgspec.json.encode(value).decode())
    except UnicodeEncodeError:
        return _of_text(repr(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return 0


def _of_file(file: File) -> int:
    """A text as a text. Of anything else only its maker knows: a page of a PDF is up to 2,400 tokens and 50 kB or more,
    so a token for each 30 bytes, no less than an image and no more than 100,000."""
    if file.media_type.startswith("text/"):
        return _of_text(file.data.decode("utf-8", "replace"))
    return min(max(_IMAGE, len(file.data) // 3), _LARGEST_FILE)


def _of_payload(payload: JsonValue) -> int:
    """What is sent back for its maker alone (reasoning, signed or encrypted) is charged like the words it stands for.
    Its texts are measured and not read: how ciphertext would be split says nothing of them."""
    found = 0
    values: list[JsonValue] = [payload]
    for value in values:
        if isinstance(value, str):
            found += len(value)
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)
    return 2 * found
