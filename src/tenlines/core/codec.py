"""Events as JSON text, and back. Every older schema version keeps loading."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tenlines.core.events import SCHEMA, AnyEvent
from tenlines.core.outcomes import encodable_value
from tenlines.core.transcript import JsonObject
from tenlines.errors import JournalFormatError

SCHEMAS: dict[int, str] = {
    1: "The first format.",
    2: "ModelFailed names the protocol rule that a refusal looks like, and the usage of what broke off; both count.",
    3: "Approvals, reconciliation, undo, sessions and owners.",
    4: "Compaction, what calls spend on their own, and where the beginning of a request changed.",
    5: "What people in other processes say to a run, who, and the number of the letter; the span that surrounds it; "
    "runs that are calls: how they ended, and that they wait for somebody's decision; the tool that takes the answer.",
    6: "The version of its agent that a run was begun for, and the queue of a fleet that it was handed to.",
}
"""Version -> what it changed, in one sentence. Vectors of each version are kept in `tests/vectors/events`."""

_UPGRADES: dict[int, Callable[[JsonObject], JsonObject]] = {
    1: lambda event: event,  # a refusal that names no rule ended the run, as it still does
    2: lambda event: event,  # only additions
    3: lambda event: event,  # only additions
    4: lambda event: event,  # only additions
    5: lambda event: event,  # only additions
}
"""Version -> how its events become events of the next version."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode(event: AnyEvent) -> bytes:
    """One event as JSON bytes; `type` is the name of its class.

    Text that no encoder takes (lone surrogates) is written with U+FFFD: a record that is a character off is better
    than a run that cannot be recorded.
    """
    try:
        return _encoder.encode(event)
    except UnicodeEncodeError:
        return _encoder.encode(encodable_value(msgspec.to_builtins(event)))


def decode(body: bytes | str, schema: int = SCHEMA) -> AnyEvent:
    """Read one event.

    Raises:
        JournalFormatError: It was written by a newer version, or it is not an event.
    """
    if schema > SCHEMA:
        raise JournalFormatError(
            f"the journal has events of format {schema}, this tenlines reads up to {SCHEMA}: upgrade tenlines"
        )
    try:
        if schema == SCHEMA:
            return _decoder.decode(body)
        value = msgspec.json.decode(body, type=dict)
        for version in range(schema, SCHEMA):
            value = _UPGRADES[version](value)
        return _decoder.decode(_encoder.encode(value))
    except (msgspec.MsgspecError, RecursionError, KeyError, UnicodeDecodeError) as error:
        raise JournalFormatError(f"not an event of format {schema}: {error}") from error


def as_read(event: AnyEvent) -> AnyEvent:
    """The event as the journal would give it back; the very same object where nothing is lost on the way.

    Raises:
        JournalFormatError, TypeError, ValueError, OverflowError, RecursionError: It cannot be written or read back.
    """
    try:
        read = _decoder.decode(_encoder.encode(event))
    except UnicodeEncodeError:
        return decode(encode(event))
    except msgspec.MsgspecError as error:
        raise JournalFormatError(f"not an event: {error}") from error
    return event if read == event else read
