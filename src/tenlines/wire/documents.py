"""Files of messages, read leniently and never silently: JSON, JSON Lines, and wrappers around transcripts.

The caller gives the bytes in pieces of any size; nothing is opened here. JSON Lines are read line by line, so that a
file of any length takes no more memory than its longest line. What is damaged becomes a `Notice` that names the line;
what is whole is given, wherever it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire import recognising

SNIFFED = 1_000_000
"""Bytes that are looked at to tell one JSON document from JSON Lines whose first line is damaged."""

_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class Record(NamedTuple):
    """One JSON value of a file, and the line on which it begins."""

    value: JsonValue
    line: int = 1
    data: bytes = b""
    """The bytes of the line, where a line is one whole value and nothing in it was read as something else."""


_ZEROS = "zero bytes, as a crash leaves them"


class Notice(NamedTuple):
    """Something in a file that could not be read, or not as it stands. `column` counts characters from 1; 0 means the
    line as a whole."""

    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}{f', column {self.column}' if self.column else ''}: {self.text}"

    @property
    def is_harmless(self) -> bool:
        """Whether everything that was written is there all the same."""
        return self.text.endswith(_ZEROS)


Found: TypeAlias = Record | Notice


class _Line(NamedTuple):
    number: int
    data: bytes
    is_last: bool
    """No line break behind it."""


# --- lines ------------------------------------------------------------------------------------------


def _lines(chunks: Iterable[bytes]) -> Iterator[_Line]:
    """The lines that are not blank, without their ends."""
    number, pending = 1, list[bytes]()
    for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        pending.append(head)
        for piece in rest:
            yield from _line(number, b"".join(pending), is_last=False)
            number, pending = number + 1, [piece]
    yield from _line(number, b"".join(pending), is_last=True)


def _line(number: int, data: bytes, *, is_last: bool) -> Iterator[_Line]:
    if number == 1 and data.startswith(_BOM):
        data = data[len(_BOM) :]
    data = data.removesuffix(b"\r")
    if data.strip():
        yield _Line(number, data, is_last)


# --- a whole file -----------------------------------------------------------------------------------


def read(chunks: Iterable[bytes]) -> Iterator[Found]:
    """The values of a file, JSON or JSON Lines, with a notice for everything that could not be read.

    A file whose first line is a whole value is JSON Lines when more lines follow. Any other file is one document (or
    several, one behind the other), unless its beginning cannot be one and most of its lines are values.
    """
    lines = _lines(chunks)
    first = next(lines, None)
    if first is None:
        yield Notice(1, 0, "the file is empty")
    elif first.data.startswith(_WIDE):
        yield Notice(1, 0, "the file is in UTF-16: save it as UTF-8")
    elif _whole(first.data) is not None:
        yield from _json_lines(chain([first], lines))
    else:
        seen, are_lines = _sniff(first, lines)
        rest = chain(seen, lines)
        yield from _json_lines(rest) if are_lines else _document(rest)


def _sniff(first: _Line, lines: Iterator[_Line]) -> tuple[list[_Line], bool]:
    """The first lines, and whether they are JSON Lines though the first one is no value."""
    seen, size = [first], len(first.data)
    for line in lines:
        seen.append(line)
        size += len(line.data)
        if size > SNIFFED and len(seen) > 3:
            break
    text = _text(seen)
    error = _decoded_all(text)[1]
    is_beginning = error is None or _is_cut(text, error.pos)
    whole = sum(_whole(line.data) is not None for line in seen)
    return seen, not is_beginning and 2 * whole >= len(seen)


def _text(lines: Iterable[_Line]) -> str:
    """Lines as text, each on the line on which it stands in the file."""
    out: list[str] = []
    number = 1
    for line in lines:
        out.append("\n" * (line.number - number))
        out.append(line.data.decode("utf-8", "replace"))
        number = line.number
    return "".join(out)


def _whole(data: bytes) -> JsonObject | list[JsonValue] | None:
    """A line that is an object or a list; None when it is anything else."""
    if data.strip()[:1] not in (b"{", b"["):
        return None
    try:
        value = _decode(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _decode(data: bytes) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):  # it is strict about lone surrogates and the like
        value = _JSON.decode(data.decode("utf-8", "strict"))
    return value


_JSON = json.JSONDecoder(parse_constant=lambda _: None)
"""For what the fast decoder does not take. NaN and the infinities are no JSON: they are read as null."""


# --- JSON Lines -------------------------------------------------------------------------------------


def _json_lines(lines: Iterable[_Line]) -> Iterator[Found]:
    known: frozenset[str] = frozenset()
    """The keys of the record before: what a record looks like in this file."""
    for line in lines:
        try:
            value = _decode(line.data)
        except (ValueError, RecursionError) as error:
            found = list(_damaged(line, error, known))
        else:
            odd = list(_oddities(line))
            found = [Record(value, line.number, b"" if odd else line.data), *odd]
        for one in found:
            if isinstance(one, Record) and isinstance(one.value, dict):
                known = frozenset(one.value)
            yield one


def _oddities(line: _Line) -> Iterator[Notice]:
    """What was read, and is no JSON all the same."""
    if b"NaN" in line.data or b"Infinity" in line.data:
        yield from _odd_number(line.data.decode("utf-8", "replace"), line.number)


def _odd_number(text: str, number: int) -> Iterator[Notice]:
    """The first number of a text that JSON does not have."""
    bare = _STRINGS.sub(lambda match: " " * len(match[0]), text)
    match = re.search(r"NaN|-?Infinity", bare)
    if match:
        yield Notice(number + bare.count("\n", 0, match.start()), *_column(bare, match))


def _column(text: str, match: re.Match[str]) -> tuple[int, str]:
    return match.start() - text.rfind("\n", 0, match.start()), f"{match[0]} is no JSON; it was read as null"


_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')


def _damaged(line: _Line, error: ValueError | RecursionError, known: frozenset[str]) -> Iterator[Found]:
    """What can be had of a line that is no value: the record behind what is broken, or nothing but a notice."""
    data = line.data
    if b"\0" in data:
        yield from _without_zeros(line, known)
        return
    text = data.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        for value in _values(text):
            yield Record(value, line.number)
            yield Notice(line.number, text.index("\ufffd") + 1, "bytes that are not UTF-8 were replaced")
            return
    position, problem = _located(text, error)
    behind = _behind(text, known)
    if behind is not None:
        at, value = behind
        yield Notice(line.number, 1, f"the first {at} characters are half a record, which was left out")
        yield Record(value, line.number)
    elif line.is_last and _is_cut(text, position):
        yield Notice(line.number, 0, f"the last record is cut off after {len(data)} bytes; it was left out")
    else:
        yield Notice(line.number, position + 1, f"the record was left out: {problem}")


def _without_zeros(line: _Line, known: frozenset[str]) -> Iterator[Found]:
    count = line.data.count(b"\0")
    rest = line.data.replace(b"\0", b"")
    column = len(line.data[: line.data.index(b"\0")].decode("utf-8", "replace")) + 1
    yield Notice(line.number, column, f"{count} {_ZEROS}")
    if rest.strip():
        try:
            yield Record(_decode(rest), line.number)
        except (ValueError, RecursionError) as error:
            yield from _damaged(line._replace(data=rest), error, known)


def _values(text: str) -> list[JsonValue]:
    """The value of a text; [] when it is none."""
    try:
        return [_JSON.decode(text)]
    except (ValueError, RecursionError):
        return []


def _located(text: str, error: ValueError | RecursionError) -> tuple[int, str]:
    """Where a text stops to be JSON, and why, in words of our own."""
    try:
        _JSON.decode(text)
    except json.JSONDecodeError as found:
        return found.pos, _problem(text, found)
    except (ValueError, RecursionError):
        pass
    return 0, "it is nested too deep" if isinstance(error, RecursionError) else "it holds a number that is too long"


def _is_cut(text: str, position: int) -> bool:
    """Whether a text is the beginning of a value: all of it is right as far as it goes."""
    end = len(text.rstrip())
    if position >= end:
        return True
    tail = text[position:end]
    if tail.startswith('"'):  # a string without an end is reported where it begins
        return _STRINGS.match(tail) is None
    return any(word.startswith(tail) for word in ("true", "false", "null")) or _BEGUN.fullmatch(tail) is not None


_BEGUN = re.compile(r"-|\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,3}")
"""What of a number or an escape is left when the rest is cut off."""


def _behind(text: str, known: frozenset[str]) -> tuple[int, JsonObject] | None:
    """The whole record at the end of a line that begins with half of another one.

    It must have the keys of the record before it: an object at the end of a broken line is otherwise a piece of it.
    """
    if not known:
        return None
    for match in list(re.finditer(r"\{", text))[1:200]:
        for value in _values(text[match.start() :]):
            if isinstance(value, dict) and frozenset(value) == known:
                return match.start(), value
    return None


# --- documents --------------------------------------------------------------------------------------


def _decoded_all(text: str) -> tuple[list[Record], json.JSONDecodeError | None]:
    """All values of a text, one behind the other, and the error that ended it."""
    found: list[Record] = []
    at, number, counted = 0, 1, 0
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at >= len(text):
            return found, None
        number, counted = number + text.count("\n", counted, at), at
        try:
            value, at = _JSON.raw_decode(text, at)
        except json.JSONDecodeError as error:
            return found, error
        except (ValueError, RecursionError) as error:
            why = "nested too deep" if isinstance(error, RecursionError) else "a number is too long"
            return found, json.JSONDecodeError(why, text, at)
        found.append(Record(value, number))


_BLANK = re.compile(r"[ \t\r\n]*")


def _document(lines: Iterable[_Line]) -> Iterator[Found]:
    text = _text(lines)
    found, error = _decoded_all(text)
    yield from found
    if error is not None:
        cut = _is_cut(text, error.pos)
        problem = "the document is cut off" if cut else _problem(text, error)
        at = len(text.rstrip()) if cut else error.pos
        yield Notice(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), problem)
    elif "\ufffd" in text:
        at = text.index("\ufffd")
        yield Notice(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), "a character could not be read")
    if found and error is None:
        yield from _odd_number(text, 1)


_FOREIGN = {
    "": "it ends too early",
    "\0": "a zero byte has no place in JSON",
    "'": "`'` has no place in JSON: texts stand in double quotes",
    "/": "`/` has no place in JSON: there are no comments",
    "#": "`#` has no place in JSON: there are no comments",
}


def _problem(text: str, error: json.JSONDecodeError) -> str:
    """What is wrong at the place of an error."""
    here = text[error.pos : error.pos + 1]
    before = text[: error.pos].rstrip()[-1:]
    if before == "," and here in ("}", "]"):
        return f"a comma before `{here}`"
    if here == "," and error.msg.startswith("Illegal trailing"):
        rest = text[error.pos + 1 :].lstrip()[:1]
        return f"a comma before `{rest}`"
    if here in _FOREIGN:
        return _FOREIGN[here]
    if error.msg.startswith("Invalid control"):
        return "a line break or another control character in the middle of a text"
    if error.msg.startswith("Extra data"):
        return "something stands behind the end of the value"
    if error.msg.startswith("Unterminated"):
        return "a text that does not end"
    wanted = {"Expecting ',' delimiter": "a comma", "Expecting ':' delimiter": "a colon"}.get(error.msg)
    if wanted:
        return f"`{here}` stands where {wanted} was expected"
    if error.msg in ("nested too deep", "a number is too long"):
        return error.msg
    return f"`{here}` stands where a value or a key was expected"


# --- transcripts ------------------------------------------------------------------------------------


class Transcript(NamedTuple):
    """One transcript of a file.

    Attributes:
        value: A body, a dump, or a bare list of messages: what `recognising.recognise` takes.
        line: The line on which it begins.
        path: Where it stands in the value of that line: `request`, `[3]`; "" when it is all of it.
    """

    value: JsonValue
    line: int = 1
    path: str = ""
    lines: tuple[int, ...] = ()
    """The lines on which its messages stand, where each has one of its own."""


_WRAPPERS = ("request", "body", "params", "payload", "data", "kwargs", "inputs", "values", "state", "conversation")
"""Fields in which logs, batches and traces keep a request."""
_DEEPEST = 6
NO_TRANSCRIPT = "there is no transcript in this value"
"""What a notice says of a value that is whole, and nothing that is known here."""


def transcripts(found: Iterable[Found]) -> Iterator[Transcript | Notice]:
    """The transcripts in what was read from a file; notices go through.

    Values that are messages themselves, or hold one each (the log of a coding agent), are one transcript together,
    which comes at the end. In such a log what holds no message is nothing to speak of.
    """
    alone: list[Record] = []
    rest: list[Notice] = []
    is_log = False
    for one in found:
        if isinstance(one, Notice):
            yield one
            continue
        inside = list(unwrapped(one.value))
        if inside:
            yield from (Transcript(value, one.line, path) for value, path in inside)
        elif _is_message(one.value):
            alone.append(one)
        elif (message := logged(one.value)) is not None:
            is_log = True
            alone.append(Record(message, one.line))
        else:
            rest.append(Notice(one.line, 0, NO_TRANSCRIPT))
    yield from () if is_log else rest
    if alone:
        lines = tuple(one.line for one in alone)
        yield Transcript([one.value for one in alone], lines[0], "", lines)


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and ("role" in value or recognising.recognise([value]) is not None)


def logged(value: JsonValue) -> JsonObject | None:
    """The message in an entry of a coding agent's log: Claude Code keeps it in `message`, Codex in `payload`."""
    for field in ("message", "payload"):
        inner = value.get(field) if isinstance(value, dict) else None
        if isinstance(inner, dict) and _is_message(inner):
            return inner
    return None


def unwrapped(value: JsonValue, path: str = "", depth: int = 0) -> Iterator[tuple[JsonValue, str]]:
    """The transcripts in a value, each with its path: a body, the body in a wrapper, or each of several in a list."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str) and depth:
        value = _written_out(value)
    if isinstance(value, list):
        yield from _in_list(value, path, depth)
    elif recognising.is_body(value):
        yield from _in_body(value, path, depth)
    elif isinstance(value, dict) and "role" not in value:
        for field in _WRAPPERS:
            inner = value.get(field)
            if isinstance(inner, dict | list | str):
                inside = list(unwrapped(inner, f"{path}.{field}" if path else field, depth + 1))
                if inside:
                    yield from inside
                    return


def _in_body(value: JsonValue, path: str, depth: int) -> Iterator[tuple[JsonValue, str]]:
    """A body; its list may hold several transcripts instead of messages (a trace of a batch)."""
    held = recognising.messages_in(value)
    if held is not None and held[0] and all(isinstance(one, list) for one in held[0]):
        yield from _in_list(held[0], f"{path}.{held[1]}" if path else held[1], depth)
    elif held is None or recognising.recognise(value) is not None:
        yield value, path


def _in_list(value: list[JsonValue], path: str, depth: int) -> Iterator[tuple[JsonValue, str]]:
    """A list of messages, or a list of transcripts."""
    has_bodies = any(recognising.is_body(one) for one in value[:20])
    if not has_bodies and recognising.recognise(value) is not None:
        yield value, path
        return
    for index, one in enumerate(value):
        yield from unwrapped(one, f"{path}[{index}]", depth + 1)


def _written_out(text: str) -> JsonValue:
    """A body that was logged as the text of its JSON."""
    return next(iter(_values(text)), None) if text.lstrip()[:1] in ("{", "[") else None
