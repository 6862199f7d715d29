"""Transcripts in files, for the commands that look at them: opened, recognised, and one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from tenlines.core.transcript import JsonValue
from tenlines.errors import ConfigError
from tenlines.wire import documents, recognising
from tenlines.wire.documents import Notice, Record
from tenlines.wire.dumps.sources import SOURCES, TITLES
from tenlines.wire.formats import FORMATS

CHUNK = 1 << 16
LOOKED_AT = 50
"""Records of a file with one message a line that are looked at to tell its format."""


class Whole(NamedTuple):
    """One transcript, in memory."""

    name: str
    """What it is: a format or a source of dumps."""
    value: JsonValue
    line: int
    path: str
    reason: str


class Lines(NamedTuple):
    """A transcript with one message a line, to be read once and in order."""

    name: str
    records: Iterator[Record | Notice]
    reason: str


Item: TypeAlias = Whole | Lines | Notice


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """A file, or standard input for `-`.

    Raises:
        ConfigError: It cannot be read; the message says why.
    """
    if file == "-":
        if sys.stdin.isatty():
            sys.stderr.write("tenlines: reading from the terminal; end with Ctrl-D\n")
        yield sys.stdin.buffer
        return
    path = Path(file).expanduser()
    try:
        handle = path.open("rb")
    except OSError as error:
        raise ConfigError(
            f"{file}: {error.strerror or error}; name a file with a transcript, or - for input"
        ) from error
    with handle:
        yield handle


def items(handle: BinaryIO, file: str, source: str | None, largest_mb: int) -> Iterator[Item]:
    """The transcripts of a file, and what could not be read of it.

    Args:
        handle: The file, open for reading bytes.
        file: Its name, for messages.
        source: What it is; None to find out.
        largest_mb: Largest document that is read whole.

    Raises:
        ConfigError: It is too large to be read whole, or nothing that is known.
    """
    if source is not None and source not in (*FORMATS, *SOURCES):
        known = ", ".join((*FORMATS, *SOURCES))
        raise ConfigError(f"--from {source}: there is no such format; it is one of {known}")
    found = _Meter(handle, file, largest_mb).records()
    head = list(islice(found, LOOKED_AT))
    rest = chain(head, found)
    values = [one.value for one in head if isinstance(one, Record)]
    if len(values) > 1 and all(_is_message(value) for value in values):
        name, reason = _named(values, source, file, 1)
        if name in FORMATS:
            yield Lines(name, rest, reason)
            return
    for one in documents.transcripts(rest):
        if isinstance(one, Notice):
            yield one
        else:
            name, reason = _named(one.value, source, file, one.line)
            yield Whole(name, one.value, one.line, one.path, reason)


class _Meter:
    """The bytes of a file; more than so many of them without a record are not taken into memory."""

    def __init__(self, handle: BinaryIO, file: str, largest_mb: int) -> None:
        self._handle, self._file, self._largest_mb = handle, file, largest_mb
        self._held = 0

    def records(self) -> Iterator[Record | Notice]:
        """What is read from the file."""
        for one in documents.read(self._chunks()):
            self._held = 0
            yield one

    def _chunks(self) -> Iterator[bytes]:
        while chunk := self._handle.read(CHUNK):
            self._held += len(chunk)
            if self._held > self._largest_mb << 20:
                raise ConfigError(
                    f"{self._file} is one JSON document of more than {self._largest_mb} MB, which has to be in memory "
                    "as a whole. Write it with one message a line (jq -c '.messages[]' FILE > FILE.jsonl), or allow "
                    "it: --max-document N"
                )
            yield chunk


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and not recognising.is_body(value) and recognising.recognise([value]) is not None


def _named(value: JsonValue, source: str | None, file: str, line: int) -> tuple[str, str]:
    if source is not None:
        return source, f"taken as {source}, as you said"
    found = recognising.recognise(value)
    if found is None:
        known = ", ".join((*FORMATS, *SOURCES))
        raise ConfigError(
            f"{file}: line {line}: this is no transcript of a form that is known here. "
            f"Say what it is: --from one of {known}"
        )
    return found.name, found.reason


def title(name: str) -> str:
    """What people call a format or a source."""
    return FORMATS[name].title if name in FORMATS else TITLES[name]
