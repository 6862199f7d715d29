"""The OpenTelemetry span that a program is in. Nothing is imported for it: where nobody did, there is none."""

from __future__ import annotations

import sys

from tenlines.core.surroundings import TraceParent


def surrounding() -> str:
    """The current span as a `traceparent`, or ""."""
    current = getattr(sys.modules.get("opentelemetry.trace"), "get_current_span", None)
    if current is None:
        return ""
    span = current().get_span_context()
    if not span.is_valid:
        return ""
    return str(TraceParent(f"{span.trace_id:032x}", f"{span.span_id:016x}", f"{int(span.trace_flags):02x}"))
