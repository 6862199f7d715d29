"""What the formats that name their stop reasons have in common: how a reply ended, and what its calls were given."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenlines.core.transcript import JsonValue, StopReason
from tenlines.wire.json_values import excerpt


def stop_of(reason: JsonValue, stops: Mapping[str, StopReason], remarks: list[str]) -> StopReason:
    """The meaning of a stop reason. None or "" is what servers send that give no reason for an end that is none."""
    if reason is None or reason == "":
        return "end"
    if isinstance(reason, str) and reason in stops:
        return stops[reason]
    remarks.append(f"unknown stop reason {excerpt(reason)[:80]}")
    return "unknown"


def arguments_text(value: JsonValue) -> str:
    """The arguments of a call as text; what is text already was assembled from a stream, or is no object at all."""
    if isinstance(value, str):
        return value if value.strip() else "{}"
    return "{}" if value is None else json.dumps(value, ensure_ascii=False)
