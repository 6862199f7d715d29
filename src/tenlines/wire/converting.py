"""A transcript in one format, from any other: what cannot be carried over is said, never dropped in silence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.history import mend
from tenlines.core.limits import Left, Reservation
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import JsonObject, JsonValue, Message, TranscriptView
from tenlines.wire.dumps.sources import SOURCES
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Profile, Target
from tenlines.wire.reading import Imported, losses, messages_of, read, spec_of
from tenlines.wire.repairing import repair


class Written(NamedTuple):
    """A request body, and what of the transcript is not in it."""

    body: JsonObject
    losses: tuple[str, ...]


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
    profile = profile or format.profile()
    repaired = repair(as_body(value, format), format, profile)
    found = read(repaired.body, format, profile)
    mended = mend(found.messages)
    changes = tuple(
        f"{change.path}: {change.message}" if change.path else change.message for change in repaired.changes
    )
    return Imported(mended.messages, found.tools, (*changes, *found.remarks, *mended.repairs))


def as_body(value: JsonValue, format: Format) -> JsonObject:
    """A body; a bare list of messages becomes one."""
    if isinstance(value, dict) and format.list_field in value:
        return value
    return {format.list_field: value if isinstance(value, list) else [value]}


def written(messages: Sequence[Message], tools: tuple[ToolSpec, ...], format: Format, target: Target) -> Written:
    """A request that holds a transcript.

    Args:
        messages: A valid transcript.
        tools: The tools that it may call.
        format: The format to write.
        target: Whom it is for.
    """
    view = TranscriptView(list(messages), len(messages))
    asked = CallModel(1, 1, view, 0, tools, "auto", None, Reservation(), Left(), None)
    body = format.talk(target).request(asked, stream=False)
    if not target.model:
        body = {key: value for key, value in body.items() if key not in ("model", "modelId")}
    return Written(body, tuple(losses(messages, target.profile)))
