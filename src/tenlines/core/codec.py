"""Events as JSON text, and back. Every older schema version keeps loading."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tenlines.core.events import SCHEMA, AnyEvent
from tenlines.core.transcript import JsonObject
from tenlines.errors import JournalFormatError

SCHEMAS: dict[int, str] = {
    1: "The first format.",
}
"""Version -> what it changed, in one sentence. Vectors of each version are kept in `tests/vectors/events`."""

_UPGRADES: dict[int, Callable[[JsonObject], JsonObject]] = {}
"""Version -> how its events become events of the next version."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
encode = _encoder.encode
"""One event as JSON bytes; `type` is the name of its class."""


def decode(body: bytes | str, schema: int = SCHEMA) -> AnyEvent:
    """Read one event.

    Raises:
        JournalFormatError: It was written by a newer version, or it is not an event.
    """
    if schema > SCHEMA:
        raise JournalFormatError(
            f"the journal has events of format {schema}, this version of tenlines reads up to {SCHEMA}: upgrade tenlines"
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
