"""Where a run stands among the spans of a distributed trace: ids that follow from its log, and W3C trace context.

The id of a span is the hash of the run and of the number of the event that began it. So whoever has the log can say
what a span is called: the process that made it, one that exports it a month later, and a tool that passes it on.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_RECORDED = "01"
"""The flag of a caller that keeps its spans. A run always does: they are in its log."""


class TraceParent(NamedTuple):
    """A span as others name it (W3C Trace Context)."""

    trace_id: str
    span_id: str
    flags: str = _RECORDED

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def read_traceparent(text: str) -> TraceParent | None:
    """What a `traceparent` names; None where it is none."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return TraceParent(*found.groups())


def trace_id(run_id: str, within: str = "") -> str:
    """The trace of a run: that of what surrounds it (a `traceparent`), else one of its own. 32 hexadecimal digits."""
    around = read_traceparent(within) if within else None
    return _hashed(f"trace {run_id}", 16) if around is None else around.trace_id


def span_id(run_id: str, seq: int) -> str:
    """The span that an event of a run began. 16 hexadecimal digits."""
    return _hashed(f"span {seq} {run_id}", 8)


def traceparent(run_id: str, seq: int, within: str = "") -> str:
    """The span that an event of a run began, for others. Whether it is to be kept is said by what surrounds the run."""
    around = read_traceparent(within) if within else None
    own = span_id(run_id, seq)
    return str(TraceParent(trace_id(run_id), own) if around is None else around._replace(span_id=own))


def _hashed(text: str, size: int) -> str:
    # no log gives an id of zeros, which the standard forbids: that would be one in 2**64
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size].hex()
