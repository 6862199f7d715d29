"""Transcripts in files, for the commands that look at them: opened, recognised, and one at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from tenlines.cli.outputs import Style, style_of
from tenlines.core.outcomes import quote
from tenlines.core.transcript import JsonValue
from tenlines.errors import ConfigError
from tenlines.wire import documents, recognising
from tenlines.wire.documents import NO_TRANSCRIPT, Notice, Record, Transcript
from tenlines.wire.dumps.sources import SOURCES, TITLES
from tenlines.wire.formats import FORMATS
from tenlines.wire.recognising import Recognised
from tenlines.wire.targets import Goal, as_history, format_name, own_goal

CHUNK = 1 << 16
LOOKED_AT = 50
"""Records of a file with one message a line that are looked at to tell its format."""
_OPENING = re.compile(rb"(?:^|\n)[\s\0]*[{\[]")
"""How JSON begins, on any line: the first one may be damaged."""
_NO_TEXT = re.compile("[\x01-\x08\x0e-\x1f\x7f\ufffd]")
_LINE = re.compile(r"line (\d+)\.?")


class Whole(NamedTuple):
    """One transcript, in memory."""

    known: Recognised
    value: JsonValue
    line: int
    path: str
    """Where it stands in the value of its line; "" when it is all of it."""
    style: Style
    lines: tuple[int, ...] = ()
    """The lines of its messages, where each has one of its own."""


class Lines(NamedTuple):
    """A transcript with one message a line, to be read once and in order."""

    known: Recognised
    value: JsonValue
    """Its first messages, as a list."""
    records: Iterator[Record | Notice]
    style: Style
    line: int = 1
    path: str = ""


class Skipped(NamedTuple):
    """Values of a file that are whole, and no transcripts."""

    line: int
    """Of the first one."""
    others: int
    """How many more there are."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"

    @property
    def text(self) -> str:
        """A sentence without its end."""
        return f"{NO_TRANSCRIPT} and {self.others} more" if self.others else NO_TRANSCRIPT


Item: TypeAlias = Whole | Lines | Notice | Skipped


@contextmanager
def opened(file: str, what: str = "a transcript") -> Iterator[BinaryIO]:
    """A file, or standard input for `-`.

    Args:
        file: Its name.
        what: That it should hold, for messages.

    Raises:
        ConfigError: It cannot be read; the message says why.
    """
    if file == "-":
        if sys.stdin is None:
            raise ConfigError(f"-: there is no standard input; name a file with {what}")
        if sys.stdin.isatty():
            sys.stderr.write("tenlines: reading from the terminal; end with Ctrl-D\n")
        yield sys.stdin.buffer
        return
    try:
        handle = Path(file).expanduser().open("rb")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{file}: {why}; name a file with {what}, or - for standard input") from error
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
        ConfigError: It is too large to be read whole, or there is nothing in it that is known here.
    """
    meter = _Meter(handle, file, largest_mb)
    style = style_of(meter.head)
    found = meter.records()
    head = list(islice(found, LOOKED_AT))
    values = [one.value for one in head if isinstance(one, Record)]
    rest = chain(head, found)
    if values and all(_is_message(value, source) for value in values):
        known = _named(values, source, file)
        if known.name in FORMATS:  # dumps are read as a whole
            yield Lines(known, values, rest, style)
            return
    yield from _each(documents.transcripts(rest) if source is None else _forced(rest), file, source, style)


def _each(found: Iterator[Transcript | Notice], file: str, source: str | None, style: Style) -> Iterator[Item]:
    """One after the other; what holds none is counted, and said at the end."""
    any_given, first, count = False, 0, 0
    for one in found:
        if isinstance(one, Notice) and one.text == NO_TRANSCRIPT:
            first, count = first or one.line, count + 1
            continue
        any_given = True
        if isinstance(one, Notice):
            yield one
        else:
            yield Whole(_named(one.value, source, file), one.value, one.line, one.path, style, one.lines)
    if not any_given:
        raise ConfigError(_unknown(file))
    if count:
        yield Skipped(first, count - 1)


def _forced(found: Iterator[Record | Notice]) -> Iterator[Transcript | Notice]:
    """Transcripts where somebody said what they are: a value in which none is recognised is taken as one."""
    for one in found:
        if isinstance(one, Notice):
            yield one
        elif isinstance(one.value, dict | list):
            inside = list(documents.unwrapped(one.value)) or [(one.value, "")]
            yield from (Transcript(value, one.line, path) for value, path in inside)
        else:
            yield Notice(one.line, 0, NO_TRANSCRIPT)


class _Meter:
    """The bytes of a file; more than so many of them without a record are not taken into memory."""

    def __init__(self, handle: BinaryIO, file: str, largest_mb: int) -> None:
        self._handle, self._file, self._largest_mb = handle, file, largest_mb
        self._held = 0
        self.head = self._read()
        if not self.head.strip():
            raise ConfigError(f"{file} is empty; name a file with a transcript")
        if self.head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ConfigError(f"{file} is in UTF-16; save it as UTF-8")
        if not _OPENING.search(self.head.removeprefix(b"\xef\xbb\xbf")) or _is_binary(self.head[:4096]):
            begins = quote(self.head[:20].decode("utf-8", "replace"))
            raise ConfigError(f"{file} is neither JSON nor JSON Lines: it begins with {begins}")

    def records(self) -> Iterator[Record | Notice]:
        """What is read from the file."""
        for one in documents.read(self._chunks()):
            self._held = 0
            yield one

    def _chunks(self) -> Iterator[bytes]:
        chunk = self.head
        while chunk:
            self._held += len(chunk)
            if self._held > self._largest_mb << 20:
                raise ConfigError(
                    f"{self._file} is one JSON document of more than {self._largest_mb} MB, which has to be in memory "
                    "as a whole. Write it with one message a line (jq -c '.messages[]' FILE > FILE.jsonl), or allow "
                    "it: --max-document N"
                )
            yield chunk
            chunk = self._read()

    def _read(self) -> bytes:
        try:
            return self._handle.read(CHUNK)
        except OSError as error:
            raise ConfigError(f"{self._file} cannot be read: {error.strerror or error}") from error


def _is_binary(sample: bytes) -> bool:
    """Whether this is no text: a tenth of it is no UTF-8, or controls. Zeros do not count: a crash leaves them."""
    text = sample.replace(b"\0", b"").decode("utf-8", "replace")
    return 10 * len(_NO_TEXT.findall(text)) > len(text)


def _is_message(value: JsonValue, source: str | None) -> bool:
    if not isinstance(value, dict) or recognising.is_body(value):
        return False
    return source in FORMATS or "role" in value or recognising.recognise([value]) is not None


# --- what a file is -------------------------------------------------------------------------------------

_NAMES = ", ".join((*FORMATS, *SOURCES))


def source_named(text: str | None) -> str | None:
    """What a person says a file is.

    Raises:
        ConfigError: There is no such thing.
    """
    if text is None:
        return None
    name = format_name(text)
    if name not in (*FORMATS, *SOURCES):
        raise ConfigError(f"--from {text}: there is no such format; it is one of {_NAMES}")
    return name


def _named(value: JsonValue, source: str | None, file: str) -> Recognised:
    if source is not None:
        return Recognised(source, (), f"taken as {source}, as you said")
    found = recognising.recognise(value)
    if found is None:
        raise ConfigError(_unknown(file))
    return found


def _unknown(file: str) -> str:
    return f"{file}: there is no transcript in it of a form that is known here; say what it is: --from one of {_NAMES}"


def aimed(item: Whole | Lines, goal: Goal | None, source: str | None) -> Goal | None:
    """Whom a transcript is for: the target that was named, or whom it was written for. None: the target takes another
    form than it has, or it is a dump, which nobody takes as it stands."""
    if goal is None:
        goal = own_goal(item.value, item.known.name) if item.known.name in FORMATS else None
    elif not _is_in_form(item, goal.format.name, source):
        goal = None
    return as_history(goal) if goal is not None and isinstance(item.value, list) else goal


def _is_in_form(item: Whole | Lines, form: str, source: str | None) -> bool:
    if form in (item.known.name, *item.known.others):
        return True
    if source is not None or not isinstance(item.value, dict):
        return False
    # the name of a model says whose it was, and not which form it has
    bare = recognising.recognise({key: value for key, value in item.value.items() if key != "model"})
    return bare is not None and form in (bare.name, *bare.others)


def placed(path: str, line: int) -> tuple[int, str]:
    """The line that the path of a message in a file of lines begins with, and the path in it; else the given line."""
    found = _LINE.match(path)
    return (int(found[1]), path[found.end() :]) if found else (line, path)


def title(name: str) -> str:
    """What people call a format or a source."""
    return FORMATS[name].title if name in FORMATS else TITLES[name]


def another_form(item: Whole | Lines, goal: Goal) -> str:
    """Why a transcript cannot be looked at for a target, without the end of the sentence."""
    return f"This is a transcript of {title(item.known.name)}, and {goal.format.title} takes another form"
