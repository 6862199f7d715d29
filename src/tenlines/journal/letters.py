"""How a letter to a run is stored: its number, when it was posted, and what it says as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from tenlines.core.outcomes import encodable_value
from tenlines.ports import Letter, Saying, Stopping

Stored: TypeAlias = Sequence[Any]
"""`run_id, number, at, body`."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Saying | Stopping] = msgspec.json.Decoder(Saying | Stopping)


def written(what: Saying | Stopping) -> str:
    """What a letter says, as text. What no encoder takes (half a surrogate pair) is written as in events."""
    try:
        return _encoder.encode(what).decode()
    except UnicodeEncodeError:
        return _encoder.encode(encodable_value(msgspec.to_builtins(what))).decode()


def letters_of(rows: Iterable[Stored]) -> list[Letter]:
    """The letters of rows. One that cannot be read is left out, so that it keeps nobody from hearing the others."""
    read = (_letter(row) for row in rows)
    return [letter for letter in read if letter is not None]


def _letter(row: Stored) -> Letter | None:
    run_id, number, at, body = row
    try:
        what = _decoder.decode(body)
        return Letter(run_id, number, float(at), what) if isinstance(number, int) and number > 0 else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, ValueError):
        return None
