"""What changed at the beginning of a request, in words: it decides what the provider's cache still has.

A provider keeps the beginning of a request as it was, tools first, then the instructions, then the messages. The first
thing that differs makes everything behind it new, and that is paid for in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Message, System

_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\b1[6-9]\d{8}\b")
"""A date, a time of day, a Unix time."""


def tools_change(before: Sequence[ToolSpec], after: Sequence[ToolSpec]) -> str:
    """How the tools differ, as a model is sent them; "" where they do not."""
    old, new = {spec.name: _sent(spec) for spec in before}, {spec.name: _sent(spec) for spec in after}
    gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
    other = [name for name in new if name in old and new[name] != old[name]]
    if gone or come or other:
        words = (("gone", gone), ("new", come), ("described otherwise", other))
        return "the tools: " + ", ".join(f"{', '.join(names)} {word}" for word, names in words if names)
    return "" if list(old) == list(new) else "the order of the tools"


def _sent(spec: ToolSpec) -> tuple[str, object]:
    return spec.description, spec.parameters


def system_change(before: Sequence[Message], after: Sequence[Message]) -> str:
    """How the standing instructions differ; "" where they do not."""
    old, new = _instructions(before), _instructions(after)
    if old == new:
        return ""
    what = "the instructions"
    if _TIME.sub("", old) == _TIME.sub("", new):
        return f"{what}: a date or time in them (put it into the newest message instead)"
    same = next((place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    place = min(len(old), len(new)) if same is None else same
    return f"{what}, from character {place} on: {new[place : place + 40]!r}, was {old[place : place + 40]!r}"


def _instructions(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.text for message in messages if isinstance(message, System))


def beginning_change(
    before: tuple[Sequence[Message], Sequence[ToolSpec]], after: tuple[Sequence[Message], Sequence[ToolSpec]]
) -> str:
    """How the beginnings of two requests differ, each as its messages and tools."""
    changes = (tools_change(before[1], after[1]), system_change(before[0], after[0]))
    return "; ".join(change for change in changes if change)
