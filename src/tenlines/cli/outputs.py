"""Where a command writes: to standard output, or to a path that holds either the old file or the whole new one."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from tenlines.core.transcript import JsonValue
from tenlines.errors import ConfigError
from tenlines.trace.text import clean_json

# --- how JSON is written --------------------------------------------------------------------------------


class Style(NamedTuple):
    """How a file writes its JSON."""

    indent: str | None = None
    """Of one level; None: each value is on one line."""
    is_compact: bool = False
    """Without blanks behind commas and colons."""
    is_ascii: bool = False


PRETTY = Style("  ")
_INDENT = re.compile(rb"[{\[]\r?\n([ \t]+)")
_COLON = re.compile(rb'"\s*:(\s*)')


def style_of(head: bytes) -> Style:
    """The style of a file, from its beginning."""
    indent, colon = _INDENT.match(head.lstrip()), _COLON.search(head)
    return Style(
        indent[1].decode() if indent else None,
        colon is not None and not colon[1],
        head.isascii() and b"\\u" in head,
    )


def encoded(value: JsonValue, style: Style, *, one_line: bool = False) -> bytes:
    """A value as JSON, with the end of the line. Halves of characters, which UTF-8 cannot hold, are escaped."""
    indent = None if one_line else style.indent
    colon, comma = (":", ",") if style.is_compact else (": ", ", " if indent is None else ",")
    text = json.dumps(value, ensure_ascii=style.is_ascii, indent=indent, separators=(comma, colon))
    return text.encode("utf-8", "backslashreplace") + b"\n"


# --- where it goes --------------------------------------------------------------------------------------


class Sink(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Take them all."""
        ...


class Unchanged(Exception):
    """Raised while a file is written: it shall stay as it was."""


@contextmanager
def written(out: str | None, *, may_replace: bool) -> Iterator[Sink]:
    """A stream for the output. A file appears under its name when all of it is written, and not at all otherwise.

    Args:
        out: A path; None or `-` for standard output.
        may_replace: Whether a file that is there may be replaced. Its permissions are kept.

    Raises:
        ConfigError: It may not be replaced, or it cannot be written.
    """
    if out is None or out == "-":
        sys.stdout.flush()
        yield _Terminal() if sys.stdout.isatty() else sys.stdout.buffer
        sys.stdout.flush()
        return
    path = Path(out).expanduser().resolve()  # a link stays a link, to the new file
    if path.is_dir():
        raise ConfigError(f"{out} is a directory; name a file")
    if path.exists() and not may_replace and path.is_file():
        raise ConfigError(f"{out} is there already, and is not overwritten; name another file, or remove it first")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe
            with path.open("wb") as stream:
                yield stream
        else:
            with _beside(path, may_replace=may_replace) as stream:
                yield stream
    except Unchanged:
        return
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror or error}") from error


@contextmanager
def _beside(path: Path, *, may_replace: bool) -> Iterator[BinaryIO]:
    """A file beside the one that is meant, which takes its place when it is whole."""
    mode = path.stat().st_mode & 0o7777 if may_replace else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(handle)
        part.chmod(mode)
        if path.exists() and not may_replace:
            raise FileExistsError(0, "it has come to be there in the meantime, and is not overwritten")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class _Terminal:
    """Standard output where a person looks at it: what does something to a terminal is spelled out."""

    def write(self, data: bytes, /) -> int:
        sys.stdout.write(clean_json(data.decode()))
        return len(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
