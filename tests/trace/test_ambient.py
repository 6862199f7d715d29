"""The span that a program is in is looked up, and nothing is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from tenlines.core.surroundings import read_traceparent
from tenlines.trace.ambient import surrounding

RUN = """
import sys
from tenlines import Agent
result = Agent(["done"], journal="memory").run_sync("go")
assert result.answer == "done"
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


def test_the_current_span_is_named() -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("x")
    assert surrounding() == ""
    with tracer.start_as_current_span("outside") as span:
        named = read_traceparent(surrounding())
        assert named is not None
        context = span.get_span_context()
        assert (int(named.trace_id, 16), int(named.span_id, 16)) == (context.trace_id, context.span_id)
        assert int(named.flags, 16) & 1, "it is kept"
    assert surrounding() == ""


def test_a_span_that_is_not_kept_says_so() -> None:
    context = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(0))
    with use_span(NonRecordingSpan(context)):
        assert surrounding() == f"00-{1:032x}-{2:016x}-00"


def test_where_nobody_imported_opentelemetry_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert surrounding() == ""


@pytest.mark.slow
def test_a_run_imports_nothing_for_it() -> None:
    subprocess.run([sys.executable, "-c", RUN], check=True)
