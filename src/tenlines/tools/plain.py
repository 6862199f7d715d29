"""Any value as JSON: a walk that always ends, never raises and gives the same text every time.

What is JSON already is not copied: the result may be the value itself, or share lists and dicts with it.

What stands for what:

| value | JSON |
|---|---|
| str, int, bool, None | themselves |
| float | itself; NaN and the infinities are `null` |
| list, tuple, range, deque, dict views | array |
| set, frozenset | array, sorted |
| dict and other mappings | object; keys that are not text become text |
| named tuple, dataclass, pydantic model, msgspec Struct, attrs class | object of its fields |
| datetime, date, time | ISO 8601; a timedelta is its seconds |
| Decimal, UUID, Path, complex | its text |
| Enum | its value |
| bytes; an `Image` or `File` inside another value | a note: kind, size, digest, first bytes |
| table of pandas, polars or pyarrow | array of its rows |
| exception | `ValueError: its message` |
| array or scalar with `tolist` (numpy) | what `tolist` gives |
| iterator, generator | a note: it was not read |
| anything else | its own `str`, if that is more than an address; else a note with its type |
| a value inside itself, more than 100 levels, more than 1,000,000 values | a note |
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import re
import types
import uuid
from collections import deque
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from typing import Any

import msgspec

from tenlines.core.transcript import File, Image, JsonValue
from tenlines.tools import binary
from tenlines.tools.tables import rows_of

MAX_DEPTH = 100
MAX_VALUES = 1_000_000
_MAX_DIGITS = 4_000  # Python refuses to write longer integers in decimal

_AS_IS = frozenset((str, bool, types.NoneType))
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}|\bid='?\d{6,}")


def plain(value: Any) -> JsonValue:
    """The value as JSON types only."""
    result: JsonValue = _Walk().value(value, 0)
    return result


class _Walk:
    def __init__(self) -> None:
        self.inside: set[int] = set()
        self.left = MAX_VALUES

    def value(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _AS_IS:
            return value
        if kind is int:
            return _integer(value)
        if kind is float:
            return value if math.isfinite(value) else None
        leaf = _LEAVES.get(kind)
        return leaf(value) if leaf is not None else self._inside(value, depth)

    def _inside(self, value: Any, depth: int) -> Any:
        """Something that may hold other values."""
        if depth >= MAX_DEPTH:
            return "(nested too deeply to be shown)"
        if id(value) in self.inside:
            return "(contains itself)"
        self.inside.add(id(value))
        try:
            return self._container(value, depth + 1)
        except Exception as error:  # noqa: BLE001  # foreign code: properties, __iter__, __str__ of the tool's own types
            return f"(a {_name(value)} that cannot be shown: {type(error).__name__})"
        finally:
            self.inside.discard(id(value))

    def _container(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list or kind is tuple:
            return self._items(value, depth)
        return self._other_container(value, depth)

    def _other_container(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._mapping(dict(zip(value._fields, value, strict=True)), depth)
        if isinstance(value, list | tuple | KeysView | ValuesView | ItemsView):
            return self._items(value, depth)
        if isinstance(value, Set):
            return _sorted(self._items(value, depth))
        for kind, leaf in _SUBCLASSES:
            if isinstance(value, kind):
                return self.value(leaf(value), depth)
        if isinstance(value, Sequence | deque):
            return self._items(value, depth)
        return self._object(value, depth)

    def _items(self, value: Collection[Any], depth: int) -> list[Any]:
        result: list[Any] = []
        is_plain = type(value) is list
        for one in value:
            self.left -= 1
            if self.left < 0:
                result.append(_rest("items", len(value) - len(result), len(value)))
                return result
            simple = one if type(one) in _AS_IS else self.value(one, depth)
            is_plain = is_plain and simple is one
            result.append(simple)
        return value if is_plain and isinstance(value, list) else result

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        is_plain = type(value) is dict
        for key, one in value.items():
            self.left -= 1
            if self.left < 0:
                result["(more)"] = _rest("entries", len(value) - len(result), len(value))
                return result
            name = key if type(key) is str else self._key(key, depth)
            if name in result:  # 1 and "1" are two keys in Python
                name = f"{name} ({type(key).__name__})"
            simple = one if type(one) in _AS_IS else self.value(one, depth)
            is_plain = is_plain and simple is one and name is key
            result[name] = simple
        return value if is_plain and isinstance(value, dict) else result

    def _key(self, key: Any, depth: int) -> str:
        plain_key = self.value(key, depth)
        if isinstance(plain_key, str):
            return str(plain_key)
        return msgspec.json.encode(plain_key).decode()

    def _object(self, value: Any, depth: int) -> Any:
        fields = _fields(value)
        if fields is not None:
            return self._mapping(fields, depth)
        table = rows_of(value, max(0, self.left))
        if table is not None:
            return self.value(table, depth)
        if not isinstance(value, type) and callable(getattr(value, "tolist", None)):
            return self._array(value, depth)
        return _text(value)

    def _array(self, value: Any, depth: int) -> Any:
        count = getattr(value, "size", 0)
        if isinstance(count, int) and count > self.left:
            shape, kind = getattr(value, "shape", "?"), getattr(value, "dtype", "?")
            return f"(an array of {count:,} values, shape {shape}, type {kind}: more than can be shown)"
        return self.value(value.tolist(), depth)


def _rest(what: str, missing: int, count: int) -> str:
    return f"(more than {MAX_VALUES:,} values: {missing:,} of {count:,} {what} were left out)"


def _integer(value: int) -> Any:
    return value if value.bit_length() < 3 * _MAX_DIGITS else f"(an integer of {value.bit_length():,} bits)"


def _sorted(items: list[Any]) -> list[Any]:
    """In the same order every time: by value where the values compare, else by their text."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda one: (type(one).__name__, str(one)))


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, type):
        return None
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if hasattr(type(value), "model_fields") and hasattr(value, "model_dump"):
        dumped = value.model_dump(by_alias=True)
        return dict(dumped) if isinstance(dumped, Mapping) else {"value": dumped}
    if hasattr(type(value), "__attrs_attrs__"):
        return {one.name: getattr(value, one.name) for one in type(value).__attrs_attrs__}
    return None


def _text(value: Any) -> str:
    """Its own words, if it has any of its own."""
    if isinstance(value, types.CoroutineType):
        value.close()  # nobody will await it
        return f"(a coroutine, {value.__name__}, that was not awaited)"
    if isinstance(value, Iterator):
        return f"(a {_name(value)}, an iterator that was not read)"
    kind: Any = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return _bare(value)
    text = str(value)
    if not isinstance(text, str) or _ADDRESS.search(text):
        named = getattr(value, "__name__", "")
        return f"({_name(value)} {named})" if isinstance(named, str) and named else _bare(value)
    return str(text)


def _bare(value: Any) -> str:
    return f"(an object of the type {_name(value)})"


def _name(value: Any) -> str:
    return type(value).__name__


def _exception(error: BaseException) -> str:
    message = str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _float(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


_LEAVES: dict[type, Callable[[Any], Any]] = {
    dt.datetime: dt.datetime.isoformat,
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
    decimal.Decimal: str,
    uuid.UUID: str,
    bytes: binary.note,
    Image: binary.media_note,
    File: binary.media_note,
}
"""Frequent types, found at once."""

_SUBCLASSES: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (enum.Enum, lambda value: value.value),
    (str, lambda value: str.__str__(value)),
    (bool, bool),
    (int, lambda value: int.__int__(value)),
    (float, _float),
    (dt.datetime | dt.date | dt.time, lambda value: value.isoformat()),
    (dt.timedelta, lambda value: value.total_seconds()),
    (decimal.Decimal | uuid.UUID | complex, str),
    (pathlib.PurePath, str),
    (bytes | bytearray | memoryview, binary.note),
    (BaseException, _exception),
)
"""The same for subclasses, tried in this order."""
