"""Binary content in a line: what it is, how large, and enough to tell it from another. Never the bytes themselves."""

from __future__ import annotations

import hashlib

from tenlines.core.transcript import File, Image

_KINDS = (
    (b"\x89PNG\r\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF container: WebP, WAV or AVI"),
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x7fELF", "ELF program"),
    (b"PAR1", "Parquet table"),
)
_SHOWN_BYTES = 16
_SHOWN_DIGITS = 16
"""Of the digest: enough to compare, or to find a file by the beginning of its sum."""


def note(data: bytes | bytearray | memoryview) -> str:
    """Bytes in a line."""
    return f"({_of(data)} of binary data, not shown{_more(data)})"


def media_note(part: Image | File) -> str:
    """An image or a file in a line, where it cannot be a part of the result itself."""
    what = "image" if isinstance(part, Image) else f"file {part.name!r}" if part.name else "file"
    if isinstance(part, Image) and part.url and not part.data:
        return f"({what}, {part.media_type}, at {part.url[:200]})"
    return f"({what}, {part.media_type}, {_of(part.data)}, not shown{_more(part.data)})"


def _of(data: bytes | bytearray | memoryview) -> str:
    count = data.nbytes if isinstance(data, memoryview) else len(data)
    return f"{count:,} byte{'' if count == 1 else 's'}"


def _more(data: bytes | bytearray | memoryview) -> str:
    """What kind it is by its first bytes, its digest, and these bytes."""
    if isinstance(data, memoryview):
        data = data.tobytes()
    if not data:
        return ""
    kind = next((f"{name}; " for magic, name in _KINDS if data.startswith(magic)), "")
    digest = hashlib.sha256(data).hexdigest()[:_SHOWN_DIGITS]
    first = _first(bytes(data[:_SHOWN_BYTES]))
    return f": {kind}sha256 {digest}...; {'is' if len(data) <= _SHOWN_BYTES else 'begins'} {first}"


def _first(data: bytes) -> str:
    text = data.decode("latin-1")
    return f"'{text}'" if text.isascii() and text.isprintable() else data.hex(" ")
