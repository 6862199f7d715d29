"""A short name for a JSON value: equal values have equal names, in every process."""

from __future__ import annotations

import hashlib

import msgspec

from tenlines.core.outcomes import encodable_value
from tenlines.core.transcript import JsonValue


def digest(value: JsonValue) -> str:
    """32 hexadecimal characters that stand for a value, the order of its keys aside."""
    text = msgspec.json.encode(encodable_value(value), order="deterministic")
    return hashlib.blake2b(text, digest_size=16).hexdigest()
