"""Traces: no secret is in them, and they are one tree."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from case_world import World
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tenlines import Agent
from tenlines.ports import CallContext
from tenlines.trace.otel import Tracing
from tenlines.trace.redaction import Redaction

SECRETS = ("sk-demo-1111222233334444", "hunter-demo")


def traced(**options: Any) -> tuple[Tracing, InMemorySpanExporter]:
    """A tracing whose spans are kept."""
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return Tracing(tracer_provider=provider, **options), kept


def written(kept: InMemorySpanExporter) -> str:
    """All of a trace, as text."""
    return "\n".join(one.to_json() for one in kept.get_finished_spans())


def test_trace_01_no_secret_is_in_a_trace(world: World, caplog: pytest.LogCaptureFixture) -> None:
    @world.tool
    def api(token: str, body: dict[str, str]) -> str:
        """Call it."""
        raise RuntimeError("401 for Bearer sk-demo-1111222233334444")

    plain = world.play().expect(tool_runs={"api": 1})
    tracing, kept = traced(content=True)
    with caplog.at_level(logging.DEBUG):
        run = world.play(observers=[tracing]).expect(tool_runs={"api": 2})
    trace = written(kept) + caplog.text
    assert "keep me" in trace
    assert not [secret for secret in SECRETS if secret in trace]
    assert world.tools["api"].given[1] == {"token": SECRETS[0], "body": {"password": SECRETS[1], "note": "keep me"}}
    assert run.sent == plain.sent, "the transcript for the model is not altered"
    assert SECRETS[0] in str(run.sent)
    bare, kept = traced()
    world.play(observers=[bare])
    assert not [secret for secret in SECRETS if secret in written(kept)]
    other, kept = traced(content=True, redaction=Redaction((), lambda text: text.replace("keep me", "gone")))
    world.play(observers=[other])
    assert "keep me" not in written(kept)
    assert SECRETS[1] in written(kept), "the callback took the place of the filter"


def test_trace_05_one_tree_in_which_everything_ends(world: World) -> None:
    tracing, kept = traced()
    child = Agent(["found"], name="child", journal=world.journal, observers=[tracing])

    @world.tool(read_only=True)
    def ok() -> str:
        """Fine."""
        return "1"

    @world.tool(read_only=True)
    def bad() -> str:
        """Fail."""
        raise ValueError("no")

    @world.tool(read_only=True, timeout_s=0.1)
    async def slow() -> str:
        """Too slow."""
        await asyncio.sleep(5)
        return "late"

    @world.tool(read_only=True, spends=True, name="child")
    def ask_child(ctx: CallContext) -> str:
        """Have a child do it."""
        return child.run_sync("go", under=ctx).answer or ""

    run = world.play(observers=[tracing]).expect()
    spans = {one.name: one for one in kept.get_finished_spans()}
    calls = {name: spans[f"execute_tool {name}"] for name in ("ok", "bad", "slow", "child")}
    agent = spans["invoke_agent agent"]
    assert {_parent(one) for one in calls.values()} == {_id(agent)}
    assert _parent(spans["invoke_agent child"]) == _id(calls["child"])
    assert len({one.context.trace_id for one in kept.get_finished_spans() if one.context}) == 1
    assert calls["bad"].status.status_code is calls["slow"].status.status_code is StatusCode.ERROR
    outcomes = {name: (one.attributes or {})["tenlines.outcome"] for name, one in calls.items()}
    assert outcomes == {"ok": "ok", "bad": "tool_error", "slow": "timeout", "child": "ok"}
    steps = {(one.attributes or {})["tenlines.step"] for one in calls.values()}
    assert steps == {1}
    for one in kept.get_finished_spans():
        assert one.start_time is not None
        assert one.end_time is not None
        assert one.end_time >= one.start_time
    assert len(kept.get_finished_spans()) == 2 + 4 + 1 + 2  # requests, calls, the run; the child and its request
    assert run.result.observer_errors == 0


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def _parent(span: ReadableSpan) -> int:
    return 0 if span.parent is None else span.parent.span_id
