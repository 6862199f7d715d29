"""A copy of a checker that goes its own way, while the original stays where it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_CONTAINERS = (list, dict, set, deque)
_HOUSE = "tenlines.wire."


class Seen:
    """What was met in a history. A copy of it sees all that the original has seen, at no cost, and adds to itself
    alone; so a copy is for looking ahead, and is gone before the original goes on."""

    def __init__(self, before: Seen | None = None) -> None:
        self._before, self._own = before, set[str]()

    def __contains__(self, item: str) -> bool:
        return item in self._own or (self._before is not None and item in self._before)

    def __iter__(self) -> Iterator[str]:
        yield from self._before or ()
        yield from self._own

    def add(self, item: str) -> None:
        """Meet something."""
        self._own.add(item)

    def forked(self) -> Seen:
        """A copy."""
        return Seen(self)


def fork(thing: T, shared: tuple[str, ...] = ()) -> T:
    """A copy of an object of this package: what can change in it is copied, at any depth, all else is shared.

    Turns, profiles and the JSON in them never change, so they are shared, and a copy costs what the object itself
    remembers. What one object refers to twice is one object in the copy too.

    Args:
        thing: A plain object, all of whose attributes are assigned to it.
        shared: Attributes that are not copied.
    """
    made: T = _forked(thing, shared, {})
    return made


def _forked(thing: Any, shared: tuple[str, ...], made: dict[int, Any]) -> Any:
    if id(thing) in made:
        return made[id(thing)]
    if isinstance(thing, Seen):
        made[id(thing)] = thing.forked()
        return made[id(thing)]
    if isinstance(thing, _CONTAINERS):
        copy = made[id(thing)] = thing.copy()
        _fill(copy, shared, made)
        return copy
    if type(thing).__module__.startswith(_HOUSE) and hasattr(thing, "__dict__"):
        copy = made[id(thing)] = object.__new__(type(thing))
        for name, value in vars(thing).items():
            copy.__dict__[name] = value if name in shared else _forked(value, shared, made)
        return copy
    return thing


def _fill(copy: Any, shared: tuple[str, ...], made: dict[int, Any]) -> None:
    """Copy what a container holds, too. A container holds one kind of thing, so the first tells whether there is
    anything to copy."""
    if isinstance(copy, dict):
        if copy and _may_change(next(iter(copy.values()))):
            for key, value in copy.items():
                copy[key] = _forked(value, shared, made)
    elif isinstance(copy, list | deque) and copy and _may_change(copy[0]):
        for index, value in enumerate(copy):
            copy[index] = _forked(value, shared, made)


def _may_change(value: Any) -> bool:
    if isinstance(value, _CONTAINERS):
        return True
    return type(value).__module__.startswith(_HOUSE) and hasattr(value, "__dict__")
