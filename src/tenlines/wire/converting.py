"""A transcript in one format, from any other: what cannot be carried over is said, never dropped in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs
from msgspec.structs import replace

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.history import mend
from tenlines.core.leaving import stub
from tenlines.core.limits import Left, Reservation
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    JsonObject,
    JsonValue,
    Message,
    Opaque,
    Part,
    Result,
    Text,
    ToolCall,
    TranscriptView,
    User,
)
from tenlines.wire.dumps.sources import SOURCES
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Profile, Target
from tenlines.wire.reading import Imported, losses, messages_of, read, spec_of
from tenlines.wire.repairing import repair
from tenlines.wire.rules import Change
from tenlines.wire.targets import Goal, as_history, own_goal

_PLACED = re.compile(r"(message \d+|[\w.]*\[\d+\][\w.\[\]]*): (.+)", re.DOTALL)


class Written(NamedTuple):
    """A request body, and what of the transcript is not in it."""

    body: JsonObject
    losses: tuple[str, ...]


class Converted(NamedTuple):
    """A request that its target takes, and what was decided on the way to it, one sentence each."""

    body: JsonObject
    remarks: tuple[str, ...]


def converted(value: JsonValue, name: str, goal: Goal) -> Converted:
    """A transcript as a request in another format.

    Args:
        value: A body, a bare list of messages, or what a framework wrote to disk.
        name: Whose it is: a name of `formats.FORMATS` or of `dumps.sources.SOURCES`.
        goal: Whom the request is for.

    Raises:
        ConfigError: A body has no list of messages.
    """
    found = imported(value, name)
    done = written(found.messages, found.tools, goal.format, Target(profile=goal.profile, model=goal.model))
    # what a run always has (tools for the calls of its history, say) a file may lack
    repaired = repair(done.body, goal.format, goal.profile)
    remarks = (*found.remarks, *(f"not carried over: {loss}" for loss in done.losses), *_said(repaired.changes))
    return Converted(repaired.body, remarks)


def gathered(remarks: Iterable[str]) -> list[str]:
    """Remarks for people: what was said of many places is said once, with the first of them."""
    places: dict[str, list[str]] = {}
    for remark in remarks:
        lead = "not carried over: " if remark.startswith("not carried over: ") else ""
        found = _PLACED.fullmatch(remark.removeprefix(lead))
        where, what = (found[1], lead + found[2]) if found else ("", remark)
        places.setdefault(what, []).append(where)
    return [_with_places(what, where) for what, where in places.items()]


def _with_places(what: str, places: list[str]) -> str:
    if not places[0]:
        return what
    if len(places) == 1:
        return f"{places[0]}: {what}"
    return f"{what.removesuffix('.')} ({places[0]}, and {len(places) - 1} more)"


def _said(changes: Iterable[Change]) -> tuple[str, ...]:
    return tuple(f"{change.path}: {change.message}" if change.path else change.message for change in changes)


def imported(value: JsonValue, name: str, profile: Profile | None = None) -> Imported:
    """The transcript in a body, a dump or a list of messages: valid, with everything that was mended in `remarks`.

    Args:
        value: A body, a bare list of messages, or what a framework wrote to disk.
        name: Whose it is: a name of `formats.FORMATS` or of `dumps.sources.SOURCES`.
        profile: The target that the body was written for, where that is known.

    Raises:
        ConfigError: A body has no list of messages.
    """
    if name in SOURCES:
        dump = SOURCES[name](value)
        remarks = list(dump.remarks)
        messages = tuple(messages_of(dump.turns, remarks.append))
        mended = mend(messages)
        return Imported(mended.messages, tuple(map(spec_of, dump.tools)), (*map(encodable, remarks), *mended.repairs))
    format = FORMATS[name]
    profile = profile or as_history(own_goal(value, name)).profile
    repaired = repair(as_body(value, format), format, profile)
    found = read(repaired.body, format, profile)
    mended = mend(found.messages)
    return Imported(mended.messages, found.tools, (*_said(repaired.changes), *found.remarks, *mended.repairs))


def as_body(value: JsonValue, format: Format) -> JsonObject:
    """A body; a bare list of messages becomes one."""
    if isinstance(value, dict) and format.list_field in value:
        return value
    return {format.list_field: value if isinstance(value, list) else [value]}


_CACHES = frozenset({"marks", "cache_marks", "cache_tools"})
"""Traits of profiles by which marks of a cache are written."""


def written(messages: Sequence[Message], tools: tuple[ToolSpec, ...], format: Format, target: Target) -> Written:
    """A request that holds a transcript; without marks of a cache, which belong to a run that goes on.

    Args:
        messages: A valid transcript.
        tools: The tools that it may call.
        format: The format to write.
        target: Whom it is for.
    """
    plain = replace(target, profile=replace(target.profile, traits=target.profile.traits - _CACHES))
    body = _request(messages, tools, format, plain)
    if not target.model:
        body = {key: value for key, value in body.items() if key not in ("model", "modelId")}
    return Written(body, tuple(losses(messages, target.profile, _Written(format, target))))


def _request(messages: Sequence[Message], tools: tuple[ToolSpec, ...], format: Format, target: Target) -> JsonObject:
    view = TranscriptView(list(messages), len(messages))
    asked = CallModel(1, 1, view, 0, tools, "auto", None, Reservation(), Left(), None)
    return format.talk(target).request(asked, stream=False)


class _Written:
    """Asks the format itself what becomes of a piece: writes a transcript with little else in it, and looks whether
    the piece makes a difference, or a few words stand in its place."""

    def __init__(self, format: Format, target: Target) -> None:
        self._format, self._target = format, target

    def shows(self, part: Part, is_result: bool) -> bool:
        """Whether a part goes as what it is."""
        body = self._with_part(part, is_result)
        if isinstance(part, Image | File):
            return not _holds(body, stub(part))
        return body != self._with_part(Text(""), is_result)

    def takes_back(self, message: Assistant, one: Opaque) -> bool:
        """Whether it makes a difference to the message."""
        rest = tuple(other for other in message.opaque if other is not one)
        return self._with_reply(message) != self._with_reply(structs.replace(message, opaque=rest))

    def _with_part(self, part: Part, is_result: bool) -> JsonObject:
        if not is_result:
            return self._body(User((part,)))
        call = ToolCall("call00000", "f", "{}")
        return self._body(_ASKED, Assistant("", (call,)), Result(call.id, call.name, "ok", (part,)))

    def _with_reply(self, message: Assistant) -> JsonObject:
        results = (Result(call.id, call.name, "ok", ()) for call in message.calls)
        return self._body(_ASKED, message, *results)

    def _body(self, *messages: Message) -> JsonObject:
        return _request(messages, (), self._format, self._target)


_ASKED = User((Text("x"),))


def _holds(value: JsonValue, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(one, text) for one in inner)
