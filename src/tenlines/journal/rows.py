"""How an event is stored: its JSON text, a digest that proves it, and large texts out of line, once for each content.

All stores write the same rows, so that what one has can be moved to another byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tenlines.core import codec
from tenlines.core.events import SCHEMA, AnyEvent, ModelReplied, RunEnded, RunResumed, RunStarted, UndoRequested
from tenlines.errors import JournalDamaged, JournalFormatError

LARGE_EVENT = 4096
"""Bytes of an event's text from which its large strings go out of line."""
LARGE_TEXT = 1024
"""Bytes of a string, as it stands in the JSON text, that is large."""
MARK = "\x00"
"""A string that begins so, in a row with blobs, is the digest of the text that stands there."""
BLOB_BYTES = 32
"""Length of a blob's digest."""

Blobs = Mapping[bytes, bytes]
"""Digest -> what stands between the quotes of the string, as in the JSON text."""

_NONE: Blobs = {}
_new_proof = hashlib.blake2b(digest_size=16).copy
"""A fresh one: to make it by its parameters takes longer than to sum a short text."""
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_WRITTEN_MARK = rb"\u0000"
"""How the encoder writes `MARK`."""


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
    body, blobs = codec.encode(event), _NONE
    if len(body) > LARGE_EVENT:
        body, blobs = pack(body)
    text, out_of_line = body.decode(), tuple(blobs)
    digest = digest_of(run_id, event.seq, SCHEMA, text, out_of_line)
    row = Row(run_id, event.seq, float(event.at), SCHEMA, type(event).__name__, text, digest, out_of_line)
    return row, blobs


def event_of(row: Row, blobs: Blobs) -> AnyEvent:
    """The event of a row.

    Raises:
        JournalDamaged: The row, or a text that it keeps out of line, is not what was written.
        JournalFormatError: It was written by a newer version.
    """
    run_id, seq, at, schema, kind, body, digest, out_of_line = row
    if digest_of(run_id, seq, schema, body, out_of_line) != digest:
        raise JournalDamaged(f"{_place(row)} is damaged: its text does not match its digest")
    try:
        event = codec.decode(unpack(body, blobs) if out_of_line else body, schema)
    except KeyError as missing:
        name = missing.args[0].hex()[:16]
        raise JournalDamaged(f"{_place(row)} is damaged: the text {name}, kept out of line, is missing") from None
    except JournalFormatError as error:
        raise JournalFormatError(f"{_place(row)}: {error}") from error
    if (event.seq, event.at, type(event).__name__) != (seq, at, kind):
        raise JournalDamaged(f"{_place(row)} is damaged: its columns do not say what its text says")
    return event


def _place(row: Row) -> str:
    return f"event {row.seq} of run {row.run_id}"


def digest_of(run_id: str, seq: int, schema: int, body: str, blobs: tuple[bytes, ...] = ()) -> bytes:
    """16 bytes that prove a row: its place, its format and its text."""
    line = f"{run_id}\n{seq}\n{schema}\n{body}".encode(errors="surrogatepass")
    proof = _new_proof()
    proof.update(line + b"".join(blobs) if blobs else line)
    return proof.digest()


def blob_digest(text: bytes) -> bytes:
    """32 bytes that name a text by its content."""
    return hashlib.blake2b(text, digest_size=BLOB_BYTES).digest()


def joined(names: tuple[bytes, ...]) -> bytes | None:
    """Digests of blobs as one column; None where there are none."""
    return b"".join(names) or None


def parted(column: object) -> tuple[bytes, ...]:
    """The digests again. Of a column that is damaged they are wrong ones, which the digest of the row notices."""
    if not column:
        return ()
    if not isinstance(column, bytes):
        return (b"damaged",)
    return tuple(column[at : at + BLOB_BYTES] for at in range(0, len(column), BLOB_BYTES))


def pack(body: bytes) -> tuple[bytes, Blobs]:
    """Put the large strings of a JSON text out of line. What is not a string stays as it is, to the byte."""
    blobs: dict[bytes, bytes] = {}

    def out(string: re.Match[bytes]) -> bytes:
        text = string[1]
        if len(text) < LARGE_TEXT and not text.startswith(_WRITTEN_MARK):
            return string[0]
        name = blob_digest(text)
        blobs[name] = text
        return b'"%b%b"' % (_WRITTEN_MARK, name.hex().encode())

    packed = _STRING.sub(out, body)
    return packed, blobs


def unpack(body: str, blobs: Blobs) -> bytes:
    """The whole JSON text again.

    Raises:
        KeyError: A text is not among `blobs`.
    """

    def back(string: re.Match[bytes]) -> bytes:
        text = string[1]
        if not text.startswith(_WRITTEN_MARK):
            return string[0]
        return b'"%b"' % blobs[bytes.fromhex(text[len(_WRITTEN_MARK) :].decode())]

    return _STRING.sub(back, body.encode())


def check_blob(name: bytes, text: object) -> bytes:
    """What was found under that name, if it is what was put there.

    Raises:
        JournalDamaged: It is not.
    """
    if not isinstance(text, bytes) or blob_digest(text) != name:
        raise JournalDamaged(f"the text {name.hex()[:16]}... is damaged: it does not match its digest")
    return text


OPENING = frozenset({RunStarted, RunResumed, UndoRequested})
"""Events with which an owner takes a run up."""
_CHANGING = OPENING | {ModelReplied, RunEnded}
"""Events that change more than how many there are, and when the last came. To be looked up: most are none of them."""


def change_of(events: Iterable[AnyEvent]) -> Change:
    """What these events change in the line of their run."""
    start, status, owner, steps, last_at = None, "", "", 0, 0.0
    for event in events:
        last_at = max(last_at, event.at)
        if type(event) not in _CHANGING:
            continue
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
