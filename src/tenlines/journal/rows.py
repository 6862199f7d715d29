"""How an event is stored: its JSON text, a digest that proves it, and large texts out of line, once for each content.

All stores write the same rows, so that what one has can be moved to another byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from tenlines.core import codec
from tenlines.core.events import SCHEMA, AnyEvent, ModelReplied, RunEnded, RunResumed, RunStarted, UndoRequested
from tenlines.errors import JournalDamaged, JournalFormatError

LARGE_EVENT = 4096
"""Bytes of an event's text from which its large strings go out of line."""
LARGE_TEXT = 1024
"""Characters of a string that is large."""
MARK = "\x00"
"""A string that begins so, in a row with blobs, is the digest of the text that stands there."""

Blobs = Mapping[bytes, bytes]
"""Digest -> the text that it stands for, as UTF-8."""


class Row(NamedTuple):
    """One event as it is stored."""

    run_id: str
    seq: int
    at: float
    schema: int
    type: str
    body: str
    digest: bytes
    blobs: tuple[bytes, ...] = ()
    """Digests of the texts that are out of line."""


class Change(NamedTuple):
    """What a batch of events changes in the line that a list of runs shows."""

    start: RunStarted | None
    status: str
    """"" where it stays."""
    owner: str
    """"" where it stays."""
    steps: int
    last_at: float


def row_of(run_id: str, event: AnyEvent) -> tuple[Row, Blobs]:
    """An event as a row, and the texts that it keeps out of line."""
    body, kind = codec.encode(event), type(event).__name__
    blobs: Blobs = {}
    if len(body) > LARGE_EVENT:
        body, blobs = pack(body)
    text = body.decode()
    return Row(run_id, event.seq, event.at, SCHEMA, kind, text, digest_of(run_id, event.seq, text), tuple(blobs)), blobs


def event_of(row: Row, blobs: Blobs) -> AnyEvent:
    """The event of a row.

    Raises:
        JournalDamaged: The row, or a text that it keeps out of line, is not what was written.
        JournalFormatError: It was written by a newer version.
    """
    where = f"event {row.seq} of run {row.run_id}"
    if digest_of(row.run_id, row.seq, row.body) != row.digest:
        raise JournalDamaged(f"{where} is damaged: its text does not match its digest")
    try:
        body: bytes | str = unpack(row.body, blobs) if row.blobs else row.body
        event = codec.decode(body, row.schema)
    except KeyError as missing:
        raise JournalDamaged(f"{where} is damaged: the text {missing} that it keeps out of line is missing") from None
    except JournalFormatError as error:
        raise JournalFormatError(f"{where}: {error}") from error
    if event.seq != row.seq:
        raise JournalDamaged(f"{where} is damaged: its text is that of event {event.seq}")
    return event


def digest_of(run_id: str, seq: int, body: str) -> bytes:
    """16 bytes that prove a row: its place and its text."""
    return hashlib.blake2b(f"{run_id}\n{seq}\n{body}".encode(), digest_size=16).digest()


def blob_digest(text: bytes) -> bytes:
    """32 bytes that name a text by its content."""
    return hashlib.blake2b(text, digest_size=32).digest()


def pack(body: bytes) -> tuple[bytes, Blobs]:
    """Put the large strings of a JSON text out of line."""
    blobs: dict[bytes, bytes] = {}

    def out(value: Any) -> Any:
        if isinstance(value, str):
            if len(value) < LARGE_TEXT and not value.startswith(MARK):
                return value
            text = value.encode()
            name = blob_digest(text)
            blobs[name] = text
            return MARK + name.hex()
        if isinstance(value, dict):
            return {key: out(one) for key, one in value.items()}
        return [out(one) for one in value] if isinstance(value, list) else value

    packed = msgspec.json.encode(out(msgspec.json.decode(body)))
    return (packed, blobs) if blobs else (body, {})


def unpack(body: str, blobs: Blobs) -> bytes:
    """The whole JSON text again.

    Raises:
        KeyError: A text is not among `blobs`.
    """

    def back(value: Any) -> Any:
        if isinstance(value, str):
            return blobs[bytes.fromhex(value[1:])].decode() if value.startswith(MARK) else value
        if isinstance(value, dict):
            return {key: back(one) for key, one in value.items()}
        return [back(one) for one in value] if isinstance(value, list) else value

    return msgspec.json.encode(back(msgspec.json.decode(body)))


def check_blob(name: bytes, text: bytes) -> bytes:
    """The text, if it is the one of that name.

    Raises:
        JournalDamaged: It is not.
    """
    if blob_digest(text) != name:
        raise JournalDamaged(f"the text {name.hex()[:16]}... is damaged: it does not match its digest")
    return text


def change_of(events: Iterable[AnyEvent]) -> Change:
    """What these events change in the line of their run."""
    start, status, owner, steps, last_at = None, "", "", 0, 0.0
    for event in events:
        last_at = max(last_at, event.at)
        if isinstance(event, ModelReplied):
            steps += 1
        elif isinstance(event, RunStarted):
            start, status, owner = event, "open", event.owner
        elif isinstance(event, RunResumed | UndoRequested):
            status, owner = "open", event.owner or owner
        elif isinstance(event, RunEnded):
            status = event.status
    return Change(start, status, owner, steps, last_at)


def contiguous(run_id: str, rows: Iterable[Row], from_seq: int, count: int | None) -> Iterable[Row]:
    """The rows, as long as none is missing.

    Args:
        count: How many events the run has by the store's own record, or None where that is not known.

    Raises:
        JournalDamaged: One is missing; after the rows before it.
    """
    expected = from_seq
    for row in rows:
        if row.seq != expected:
            raise JournalDamaged(f"event {expected} of run {run_id} is missing")
        expected += 1
        yield row
    if count is not None and expected != max(count, from_seq):
        raise JournalDamaged(f"run {run_id} has {expected} events, but {count} were written: some are missing or extra")


Fetch = Callable[[tuple[bytes, ...]], Blobs]
"""Gets texts that are kept out of line."""
