"""What is left out of every further request after a provider refused it.

A turn that a provider rejects would be rejected again for ever, since each request holds all that was sent before.
Two kinds of rejection have a cure that changes nobody's words: artefacts of reasoning that the provider does not take
(any more), and images or files where it takes none. The log keeps them; the model is not sent them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tenlines.core.transcript import Assistant, File, Image, Message, Part, Result, Text, TranscriptView, User

Leavable: TypeAlias = Literal["reasoning", "media"]


def concession(violation: str) -> Leavable | None:
    """What to leave out so that a request, refused for a violation of this kind (`RSN-EDITED`), may pass."""
    if violation.startswith("RSN-"):
        return "reasoning"
    return "media" if violation.startswith("MEDIA-") else None


def without(message: Message, left_out: frozenset[Leavable]) -> Message:
    """The message as it is sent; the very same object where nothing of it is left out."""
    match message:
        case Assistant(text, calls, opaque) if opaque and "reasoning" in left_out:
            return Assistant(text if text or calls else "(nothing said)", calls)
        case User(parts) if "media" in left_out and _has_media(parts):
            return User(_stubbed(parts))
        case Result(call_id, name, outcome, parts) if "media" in left_out and _has_media(parts):
            return Result(call_id, name, outcome, _stubbed(parts))
        case _:
            return message


def _has_media(parts: tuple[Part, ...]) -> bool:
    return any(isinstance(part, Image | File) for part in parts)


def _stubbed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(Text(stub(part)) if isinstance(part, Image | File) else part for part in parts)


def stub(part: Image | File) -> str:
    """A few words in the place of binary content: `(image/png, 12.0 KiB, not shown)`."""
    size = _size(len(part.data))
    if isinstance(part, File):
        return f"({f'{part.name}, ' if part.name else ''}{part.media_type}, {size}, not shown)"
    return f"({part.media_type}, {size if part.data else part.url or 'empty'}, not shown)"


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    unit, value = ("KiB", size_bytes / 1024) if size_bytes < 1024**2 else ("MiB", size_bytes / 1024**2)
    return f"{value:.1f} {unit}"


class LeanView(TranscriptView):
    """A view that leaves something out of every message that is looked at. As free to take as any view."""

    __slots__ = ("_left_out",)

    def __init__(self, items: list[Message], length: int, left_out: frozenset[Leavable]) -> None:
        super().__init__(items, length)
        self._left_out = left_out

    def sent(self, message: Message) -> Message:
        """The message without what is left out."""
        return without(message, self._left_out)
