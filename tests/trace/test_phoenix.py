"""Spans of a real run, sent over the network to a consumer that others wrote, and read back from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from phoenix import Phoenix

from environments import CannotBeHad
from tenlines import Agent, CallContext, Reply, Settings, ToolCall, Usage, tool
from tenlines.core.limits import Price
from tenlines.core.surroundings import span_id, trace_id
from tenlines.journal.memory import MemoryJournal
from tenlines.trace.conventions import Vintage
from tenlines.trace.otel import Tracing, export_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    """The server, once for this file."""
    folder: Path = tmp_path_factory.mktemp("phoenix")
    try:
        server = Phoenix(folder)
    except CannotBeHad as error:
        pytest.skip(f"NO REAL CONSUMER OF TRACES WAS TRIED: Phoenix cannot be installed: {error}")
    yield server
    server.stop()


def family(provider: TracerProvider, vintage: Vintage) -> tuple[Agent, MemoryJournal]:
    """A run with a call that runs a child, and one that fails."""
    journal, tracing = MemoryJournal(), Tracing(tracer_provider=provider, content=True, vintage=vintage)
    settings = Settings(price=Price(input=1_000_000, output=2_000_000))
    child = Agent(
        [Reply("found", usage=Usage(input=7, output=3))],
        name="child",
        journal=journal,
        observers=[tracing],
        settings=settings,
    )

    @tool(spends=True)
    def ask(ctx: CallContext) -> str:
        """Ask somebody."""
        return child.run_sync("look it up", under=ctx).answer or ""

    @tool(read_only=True)
    def fails(token: str) -> str:
        """Fail."""
        raise PermissionError(f"401 for {token}")

    usage = Usage(input=100, output=10, cache_read=80, cache_write=5, reasoning=2)
    calls = (ToolCall("c1", "ask", "{}"), ToolCall("c2", "fails", '{"token": "sk-demo-1111222233334444"}'))
    replies = [Reply(calls=calls, stop="tool_calls", usage=usage), Reply("done", usage=Usage(input=150, output=5))]
    parent = Agent(
        replies, [ask, fails], name="parent", journal=journal, observers=[tracing], settings=settings, instructions="hi"
    )
    return parent, journal


@pytest.mark.parametrize("vintage", ["released", "latest"])
def test_the_spans_come_back_from_a_real_consumer(
    phoenix: Phoenix, vintage: Vintage, say: Callable[[str], None]
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{phoenix.url}/v1/traces")))
    agent, journal = family(provider, vintage)
    run_id = agent.run_sync("go").run_id
    assert provider.force_flush()
    many = 7 if vintage == "released" else 14
    trace = [one for one in phoenix.spans(many) if one["context"]["trace_id"] == trace_id(run_id)]
    by_name = {one["name"]: one for one in trace}
    (first, second) = sorted(
        (one for one in trace if one["name"] == "chat scripted" and one["parent_id"] == span_id(run_id, 0)),
        key=lambda one: one["start_time"],
    )
    assert sorted(one["name"] for one in trace) == [
        *("chat scripted", "chat scripted", "chat scripted", "execute_tool ask", "execute_tool fails"),
        *("invoke_agent child", "invoke_agent parent"),
    ]
    parent, child, ask = by_name["invoke_agent parent"], by_name["invoke_agent child"], by_name["execute_tool ask"]
    assert (parent["parent_id"], parent["context"]["span_id"]) == (None, span_id(run_id, 0))
    assert ask["parent_id"] == by_name["execute_tool fails"]["parent_id"] == parent["context"]["span_id"]
    assert child["parent_id"] == ask["context"]["span_id"]
    kinds = {one["name"]: one["span_kind"] for one in trace}
    assert kinds == {
        "invoke_agent parent": "AGENT",
        "invoke_agent child": "AGENT",
        "chat scripted": "LLM",
        "execute_tool ask": "TOOL",
        "execute_tool fails": "TOOL",
    }
    said: dict[str, Any] = first["attributes"]
    written = "gen_ai.usage.cache_creation" if vintage == "released" else "gen_ai.usage.cache_write"
    assert said[f"{written}.input_tokens"] == 5
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (100, 10)
    assert said["gen_ai.usage.cache_read.input_tokens"] == 80
    assert (said["llm.token_count.prompt"], said["llm.token_count.completion"]) == (100, 10)
    assert said["tenlines.dollars"] == pytest.approx(120)
    assert second["attributes"]["tenlines.dollars"] == pytest.approx(160)
    assert parent["attributes"]["tenlines.dollars"] == pytest.approx(280)
    assert child["attributes"]["tenlines.dollars"] == pytest.approx(13)
    assert ask["attributes"]["tenlines.children.dollars"] == pytest.approx(13)
    assert parent["attributes"]["llm.token_count.prompt"] == 250
    failed = by_name["execute_tool fails"]
    assert (failed["status_code"], failed["attributes"]["error.type"]) == ("ERROR", "PermissionError")
    assert "401 for [redacted]" in failed["status_message"]
    assert "sk-demo-1111222233334444" not in json.dumps(trace)
    assert "look it up" in json.dumps(child)

    ids = {(one["context"]["span_id"], one["parent_id"], one["name"]) for one in trace}
    assert export_run(journal, run_id, tracer_provider=provider, vintage=vintage, content=True) == 7
    provider.shutdown()
    again = [one for one in phoenix.spans(many) if one["context"]["trace_id"] == trace_id(run_id)]
    assert {(one["context"]["span_id"], one["parent_id"], one["name"]) for one in again} == ids
    if vintage == "released":
        say(f"Phoenix: installed in {phoenix.install_s:.1f} s, up in {phoenix.start_s:.1f} s; 7 spans came back")
