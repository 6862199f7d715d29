"""Arguments of a call that arrive piece by piece (Vertex AI, where it was asked for): each piece has a path."""

from __future__ import annotations

import re

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import MalformedReply
from tenlines.wire.gemini.fields import field
from tenlines.wire.json_values import string

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_DEEPEST = 64
_VALUES = ("stringValue", "numberValue", "boolValue")


class Arguments:
    """The arguments of one call, growing."""

    def __init__(self) -> None:
        self._value: JsonObject = {}
        self._open: dict[str, list[str]] = {}

    def take(self, piece: JsonObject) -> None:
        """One piece: a value, or more text for a value that has begun.

        Raises:
            MalformedReply: Its path leads nowhere.
        """
        path = string(field(piece, "jsonPath"))
        said = next((value for name in _VALUES if (value := field(piece, name)) is not None), None)
        texts = self._open.get(path)
        if texts is not None:
            texts.append(string(said))
        else:
            _put(self._value, steps(path), _number(said))
            if isinstance(said, str):
                self._open[path] = texts = [said]
        if texts is not None and not field(piece, "willContinue"):
            self._close(path)

    def finish(self) -> JsonObject:
        """All that came."""
        for path in list(self._open):
            self._close(path)
        return self._value

    def _close(self, path: str) -> None:
        _put(self._value, steps(path), "".join(self._open.pop(path)))


def _number(value: JsonValue) -> JsonValue:
    """All numbers are doubles on this way; those that are whole were meant to be."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def steps(path: str) -> list[str | int]:
    """`$.a[0].b` as its steps.

    Raises:
        MalformedReply: It is no such path.
    """
    found: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path):
        step = _STEP.match(path, at)
        if step is None or len(found) == _DEEPEST:
            break
        plain, index, single, double = step.groups()
        quoted = single if single is not None else double
        found.append(int(index) if index is not None else plain or re.sub(r"\\(.)", r"\1", quoted or ""))
        at = step.end()
    if not found or at < len(path):
        raise MalformedReply("a piece of the arguments of a call has a path that cannot be read", path)
    return found


def _put(root: JsonObject, path: list[str | int], value: JsonValue) -> None:
    holder: JsonValue = root
    for here, after in zip(path, [*path[1:], None], strict=True):
        held: JsonValue = value
        if after is not None:
            held = _held(holder, here)
            wanted = list if isinstance(after, int) else dict
            held = held if isinstance(held, wanted) else wanted()
        if isinstance(holder, dict) and isinstance(here, str):
            holder[here] = held
        elif isinstance(holder, list) and isinstance(here, int) and here <= len(holder):
            holder[here : here + 1] = [held]
        else:
            raise MalformedReply("a piece of the arguments of a call does not fit those before it", repr(path))
        holder = held


def _held(holder: JsonValue, step: str | int) -> JsonValue:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int) and step < len(holder):
        return holder[step]
    return None
