"""Spans and metrics through the real SDK: of runs that are watched, and the same of past ones."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import NoOpTracerProvider, StatusCode
from traced_runs import Kept, id_of, ids, logs_of_every_kind, parent_of, random_logs, spans_of

from tenlines import Agent, CallContext, Limits, Reply, Settings, ToolCall, Usage, tool
from tenlines.core import events as ev
from tenlines.core.limits import Price, Retry
from tenlines.core.surroundings import span_id, trace_id
from tenlines.errors import InvalidEvent, RunNotFound
from tenlines.journal.memory import MemoryJournal
from tenlines.trace.conventions import VINTAGES, Metric
from tenlines.trace.otel import Tracing, export_run
from tenlines.trace.past import SpanRecord

PRICE = Price(input=1_000_000, output=2_000_000)


def calls(*asked: tuple[str, str], **fields: Any) -> Reply:
    """A reply with calls of (name, arguments)."""
    return Reply(calls=tuple(ToolCall(f"c{n}", *one) for n, one in enumerate(asked)), stop="tool_calls", **fields)


@tool(read_only=True)
def look(n: int = 0) -> str:
    """Look."""
    return f"row {n}"


@tool(read_only=True)
def bad() -> str:
    """Fail."""
    raise KeyError("no")


def agent_of(kept: Kept, *replies: Any, tools: Any = (look, bad), **options: Any) -> Agent:
    """An agent that is traced."""
    tracing = Tracing(tracer_provider=kept.tracers, meter_provider=kept.meters, vintage="released", content=False)
    options = {"journal": MemoryJournal(), "settings": Settings(price=PRICE), "observers": [tracing], **options}
    return Agent(list(replies), list(tools), **options)


# --- watched and past -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "aio"])
def test_a_run_that_is_watched_has_the_spans_that_it_has_afterwards(is_async: bool) -> None:
    kept = Kept()
    agent = agent_of(kept, calls(("look", "{}"), ("bad", "{}"), usage=Usage(10, 2)), Reply("done", usage=Usage(20, 3)))
    result = asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    watched = kept.take()
    assert sorted(one.name for one in watched) == [
        *("chat scripted", "chat scripted", "execute_tool bad", "execute_tool look", "invoke_agent agent")
    ]
    assert {parent for _, _, parent, _ in ids(watched)} == {"", span_id(result.run_id, 0)}
    assert export_run(agent.journal, result.run_id, tracer_provider=kept.tracers) == 5
    past = kept.take()
    assert ids(past) == ids(watched)
    assert {(one.name, one.start_time, one.end_time, str(one.attributes)) for one in past} == {
        (one.name, one.start_time, one.end_time, str(one.attributes)) for one in watched
    }
    failed = next(one for one in watched if one.name == "execute_tool bad")
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "KeyError"


def test_the_times_are_those_of_the_log() -> None:
    kept = Kept()
    agent = agent_of(kept, "done")
    run_id = agent.run_sync("go").run_id
    log = list(agent.journal.read(run_id))
    assert kept.named("invoke_agent agent").start_time == int(log[0].at * 1e9)
    assert kept.named("invoke_agent agent").end_time == int(log[-1].at * 1e9)
    assert kept.named("chat scripted").start_time == int(log[1].at * 1e9)


@pytest.mark.slow
def test_the_sdk_keeps_what_the_table_says_of_every_kind_of_event() -> None:
    """What each kind is to a span is proven of the pure spans; the in-memory exporter has the very same."""
    kept, kinds = Kept(), set[type]()
    for number, log in enumerate(logs_of_every_kind(40)):
        journal, vintage, start = MemoryJournal(), VINTAGES[number % 2], log[0]
        assert isinstance(start, ev.RunStarted)
        for event in log:
            journal.append(start.run_id, event)
        journal.commit(start.run_id)
        count = export_run(journal, start.run_id, tracer_provider=kept.tracers, vintage=vintage, content=True)
        wanted = {one.span_id: one for one in spans_of(log, vintage, content=True)}
        spans = {id_of(one): one for one in kept.take()}
        assert (set(spans), count) == (set(wanted), len(wanted))
        for span_id_, span in spans.items():
            agrees(span, wanted[span_id_])
        kinds |= {type(event) for event in log}
    assert kinds == set(ev.AnyEvent.__args__)


def agrees(span: ReadableSpan, wanted: SpanRecord) -> None:
    """The span of the SDK is the one that was to be made."""
    assert span.context is not None
    assert (span.name, f"{span.context.trace_id:032x}", parent_of(span)) == (
        wanted.name,
        wanted.trace_id,
        wanted.parent,
    )
    assert (span.start_time, span.end_time) == (int(wanted.start * 1e9), int(wanted.end * 1e9))
    assert span.kind.name.lower() == wanted.kind
    assert dict(span.attributes or {}) == wanted.attributes
    assert [(one.name, one.timestamp, dict(one.attributes or {})) for one in span.events] == [
        (one.name, int(one.at * 1e9), one.attributes) for one in wanted.events
    ]
    assert (span.status.status_code is StatusCode.ERROR, span.status.description) == (bool(wanted.fault), wanted.fault)
    assert [f"{one.context.span_id:016x}" for one in span.links] == ([wanted.link] if wanted.link else [])


@pytest.mark.slow
def test_whoever_had_a_run_when_has_made_the_spans_that_its_journal_gives() -> None:
    """Each owner watches his part of a random log, in a process of his own. What a crash left open, nobody sent."""
    both = missing = 0
    for log in random_logs(25):
        kept, start = Kept(), log[0]
        tracing = Tracing(tracer_provider=kept.tracers)
        watching: Any = None
        for number, event in enumerate(log):
            if watching is None or isinstance(event, ev.RunResumed | ev.UndoRequested):
                watching = tracing.for_run("r", log[:number])
            watching.on_event(event)
        watched = ids(kept.take())
        journal = MemoryJournal()
        assert isinstance(start, ev.RunStarted)
        for event in log:
            journal.append(start.run_id, event)
        journal.commit(start.run_id)
        export_run(journal, start.run_id, tracer_provider=kept.tracers)
        past = kept.take()
        assert watched <= ids(past)
        unsent = ids(past) - watched
        interrupted = {one for one in past if (one.attributes or {}).get("error.type") == "interrupted"}
        assert unsent <= ids(interrupted)
        both, missing = both + len(watched), missing + len(unsent)
    assert both > 400
    assert missing > 30


def test_a_log_that_is_no_log_is_refused() -> None:
    journal = MemoryJournal()
    with pytest.raises(RunNotFound):
        export_run(journal, "nope", tracer_provider=Kept().tracers)
    journal.append("r", ev.RunEnded(seq=0, at=0.0, status="answered"))
    with pytest.raises(InvalidEvent):
        export_run(journal, "r", tracer_provider=Kept().tracers)


# --- families -------------------------------------------------------------------------------------------


def family(kept: Kept, journal: MemoryJournal) -> Agent:
    """A parent, whose call runs a child, whose call runs a grandchild."""
    grandchild = agent_of(kept, Reply("low", usage=Usage(1, 1)), name="grandchild", journal=journal)

    @tool(spends=True)
    def ask_lower(ctx: CallContext) -> str:
        """Ask."""
        return grandchild.run_sync("lower", under=ctx).answer or ""

    child = agent_of(kept, calls(("ask_lower", "{}")), Reply("mid"), tools=[ask_lower], name="child", journal=journal)

    @tool(spends=True)
    async def ask(ctx: CallContext) -> str:
        """Ask."""
        return (await child.run("deeper", under=ctx)).answer or ""

    return agent_of(kept, calls(("ask", "{}"), ("look", "{}")), "done", tools=[ask, look], name="top", journal=journal)


def test_children_lie_under_the_calls_that_they_serve() -> None:
    kept, journal = Kept(), MemoryJournal()
    result = family(kept, journal).run_sync("go")
    spans = kept.take()
    by_name = {one.name: one for one in spans}
    assert parent_of(by_name["invoke_agent child"]) == id_of(by_name["execute_tool ask"])
    assert parent_of(by_name["invoke_agent grandchild"]) == id_of(by_name["execute_tool ask_lower"])
    assert parent_of(by_name["execute_tool ask"]) == id_of(by_name["invoke_agent top"])
    assert {one.context.trace_id for one in spans if one.context} == {int(trace_id(result.run_id), 16)}
    assert export_run(journal, result.run_id, tracer_provider=kept.tracers) == len(spans)
    assert ids(kept.take()) == ids(spans)


def test_a_child_of_an_older_log_is_found_by_the_call_that_it_names() -> None:
    kept, journal, old = Kept(), MemoryJournal(), MemoryJournal()
    result = family(kept, journal).run_sync("go")
    spans = kept.take()
    for run in journal.runs():
        for event in journal.read(run.run_id):
            bare = msgspec.structs.replace(event, traceparent="") if isinstance(event, ev.RunStarted) else event
            old.append(run.run_id, bare)
        old.commit(run.run_id)
    export_run(old, result.run_id, tracer_provider=kept.tracers)
    assert ids(kept.take()) == ids(spans)


def test_a_child_whose_process_died_is_found_too() -> None:
    kept, journal, cut = Kept(), MemoryJournal(), MemoryJournal()
    result = family(kept, journal).run_sync("go")
    kept.take()
    for run in journal.runs():
        for event in journal.read(run.run_id):
            if isinstance(event, ev.CallReturned) and run.run_id == result.run_id:
                break
            cut.append(run.run_id, event)
        cut.commit(run.run_id)
    export_run(cut, result.run_id, tracer_provider=kept.tracers)
    names = [one.name for one in kept.spans]
    assert {"invoke_agent top", "invoke_agent child", "execute_tool ask"} <= set(names)


# --- what surrounds a run, and what is inside ---------------------------------------------------------------


def test_a_run_belongs_to_the_span_that_the_program_is_in() -> None:
    kept = Kept()
    agent = agent_of(kept, "done")
    with kept.tracers.get_tracer("web").start_as_current_span("GET /order") as around:
        result = agent.run_sync("go")
    start = next(iter(agent.journal.read(result.run_id)))
    assert isinstance(start, ev.RunStarted)
    assert start.traceparent.split("-")[2] == f"{around.get_span_context().span_id:016x}"
    assert parent_of(kept.named("invoke_agent agent")) == id_of(kept.named("GET /order"))


def test_without_a_span_around_it_a_run_is_a_trace_of_its_own() -> None:
    agent = agent_of(Kept(), "done")
    start = next(iter(agent.journal.read(agent.run_sync("go").run_id)))
    assert isinstance(start, ev.RunStarted)
    assert start.traceparent == ""


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "aio"])
def test_what_a_tool_does_belongs_to_its_call(is_async: bool) -> None:
    kept = Kept()
    client = kept.tracers.get_tracer("client")
    named: dict[str, str] = {}

    @tool(read_only=True)
    def fetch(ctx: CallContext) -> str:
        named["fetch"] = ctx.traceparent
        with client.start_as_current_span("GET /a"):
            return "1"

    @tool(read_only=True, timeout_s=20)
    async def wait_for(ctx: CallContext) -> str:
        named["wait_for"] = ctx.traceparent
        await asyncio.sleep(0)
        with client.start_as_current_span("GET /b"):
            await asyncio.sleep(0)
        return "2"

    agent = agent_of(kept, calls(("fetch", "{}"), ("wait_for", "{}")), "done", tools=[fetch, wait_for])
    if is_async:
        asyncio.run(agent.run("go"))
    else:
        agent.run_sync("go")
    for name, request in (("fetch", "GET /a"), ("wait_for", "GET /b")):
        call = kept.named(f"execute_tool {name}")
        assert parent_of(kept.named(request)) == id_of(call) == named[name].split("-")[2]
        assert call.context is not None
        assert named[name].split("-")[1] == f"{call.context.trace_id:032x}"
    assert not trace.get_current_span().get_span_context().is_valid


class Instrumented:
    """A model whose client makes spans."""

    name = "openai:gpt-5"

    def __init__(self, client: trace.Tracer) -> None:
        self.client, self.asked = client, 0

    def session(self) -> Any:
        return self

    def complete(self, request: Any, on_delta: Any) -> Reply:
        with self.client.start_as_current_span("POST"):
            self.asked += 1
            if self.asked == 1:
                raise ConnectionError("not yet")
            return Reply("done")

    async def acomplete(self, request: Any, on_delta: Any) -> Reply:
        await asyncio.sleep(0)
        return self.complete(request, on_delta)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "aio"])
@pytest.mark.parametrize("limits", [Limits(), Limits(seconds=60)], ids=["here", "in a thread"])
def test_what_a_client_does_for_a_request_belongs_to_it(is_async: bool, limits: Limits) -> None:
    kept = Kept()
    settings = Settings(limits=limits, retry=Retry(first_wait_s=0.01))
    agent = agent_of(kept, settings=settings)
    agent.model = Instrumented(kept.tracers.get_tracer("client"))
    result = asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    assert (result.answer, result.observer_errors) == ("done", 0)
    requests = sorted(id_of(one) for one in kept.spans if one.name == "chat gpt-5")
    assert sorted(parent_of(one) for one in kept.spans if one.name == "POST") == requests
    assert len(requests) == 2


def test_a_run_that_is_taken_up_stays_one_trace_and_its_first_spans_are_not_made_again() -> None:
    kept = Kept()
    agent = agent_of(kept, calls(("look", "{}")), "done", limits=Limits(steps=1))
    stopped = agent.run_sync("go", raise_on_stop=False)
    first = kept.take()
    agent.resume_sync(stopped.run_id, limits=Limits(steps=4))
    second = kept.take()
    assert "execute_tool look" in [one.name for one in second]
    again = next(one for one in second if one.name == "invoke_agent agent")
    before = next(one for one in first if one.name == "invoke_agent agent")
    assert again.context is not None
    assert before.context is not None
    assert again.context.trace_id == before.context.trace_id
    assert [link.context.span_id for link in again.links] == [before.context.span_id]
    export_run(agent.journal, stopped.run_id, tracer_provider=kept.tracers)
    assert ids(kept.take()) == ids(first) | ids(second)


def test_one_tracing_serves_many_runs_at_once() -> None:
    kept, journal = Kept(), MemoryJournal()

    @tool(read_only=True)
    async def nap() -> str:
        await asyncio.sleep(0.01)
        return "x"

    tracing = Tracing(tracer_provider=kept.tracers)
    agents = [
        Agent([calls(("nap", "{}"), ("nap", "{}")), "done"], [nap], journal=journal, observers=[tracing])
        for _ in range(12)
    ]
    found: list[str] = []

    def in_threads() -> None:
        found.append(agents.pop().run_sync("go").run_id)

    async def in_loop() -> None:
        found.extend(one.run_id for one in await asyncio.gather(*(agents.pop().run("go") for _ in range(6))))

    threads = [threading.Thread(target=in_threads) for _ in range(6)]
    for thread in threads:
        thread.start()
    asyncio.run(in_loop())
    for thread in threads:
        thread.join()
    assert len(found) == 12
    spans = kept.take()
    for run_id in found:
        own = [one for one in spans if (one.attributes or {})["tenlines.run.id"] == run_id]
        assert len(own) == 5
        assert {one.context.trace_id for one in own if one.context} == {int(trace_id(run_id), 16)}
        assert sorted(map(parent_of, own)) == ["", *[span_id(run_id, 0)] * 4]


# --- providers of all kinds -------------------------------------------------------------------------------


def test_samplers_decide_and_what_is_left_out_is_left_out_whole() -> None:
    kept = Kept(sampler=ParentBased(ALWAYS_OFF))
    inside: list[bool] = []

    @tool(read_only=True)
    def peek() -> str:
        inside.append(trace.get_current_span().get_span_context().trace_flags.sampled)
        return "x"

    result = agent_of(kept, calls(("peek", "{}")), "done", tools=[peek]).run_sync("go")
    assert (kept.spans, inside, result.observer_errors) == ([], [False], 0)
    family(kept, MemoryJournal()).run_sync("go")
    assert kept.spans == []


def test_a_share_of_the_traces_is_sampled() -> None:
    kept = Kept(sampler=TraceIdRatioBased(0.5))
    agent = agent_of(kept, *["done"] * 1)
    for _ in range(60):
        agent.run_sync("go")
    roots = [one for one in kept.spans if one.name == "invoke_agent agent"]
    assert 10 < len(roots) < 50


def test_other_tracers_of_the_provider_keep_ids_of_their_own() -> None:
    kept = Kept()
    agent = agent_of(kept, "done")
    agent.run_sync("go")
    tracer = kept.tracers.get_tracer("tenlines", "0.1.0")
    with tracer.start_as_current_span("mine"):
        pass
    assert id_of(kept.named("mine")) not in {id_of(one) for one in kept.spans if one.name != "mine"}


def test_where_nobody_takes_spans_nothing_is_made() -> None:
    tracing = Tracing(tracer_provider=NoOpTracerProvider())
    result = Agent([calls(("look", "{}")), "done"], [look], journal="memory", observers=[tracing]).run_sync("go")
    assert result.observer_errors == 0
    assert type(tracing.for_run("r", ())).__name__ == "_Idle"


def test_a_switched_off_sdk_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    kept = Kept()
    result = agent_of(kept, calls(("look", "{}")), "done").run_sync("go")
    assert (kept.spans, result.observer_errors, result.answer) == ([], 0, "done")


def test_the_names_and_the_content_are_what_the_standard_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Tracing().vintage, Tracing().content) == ("released", False)
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http, gen_ai_latest_experimental")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    assert (Tracing().vintage, Tracing().content) == ("latest", True)
    assert (Tracing(vintage="released").vintage, Tracing(content=False).content) == ("released", False)


# --- metrics --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vintage", VINTAGES)
def test_what_is_counted(vintage: Any) -> None:
    kept = Kept()
    tracing = Tracing(tracer_provider=kept.tracers, meter_provider=kept.meters, vintage=vintage)
    usage = Usage(input=10, output=2, cache_read=8, cache_write=1, reasoning=1)
    replies = [calls(("look", "{}"), ("bad", "{}"), usage=usage), Reply("done", usage=Usage(20, 3))]
    settings = Settings(price=PRICE)
    Agent(replies, [look, bad], settings=settings, journal="memory", observers=[tracing]).run_sync("go")
    counted = kept.metrics()
    assert set(counted) == {one.value.name.of(vintage) for one in Metric if one.value.name.of(vintage)}
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
    }
    assert counted["tenlines.cost"] == [(model, pytest.approx(14 + 26))]
    if vintage == "released":
        assert counted["gen_ai.client.token.usage"] == [
            (model | {"gen_ai.token.type": "input"}, 30),
            (model | {"gen_ai.token.type": "output"}, 5),
        ]
        operations = [
            attributes["gen_ai.operation.name"] for attributes, _ in counted["gen_ai.client.operation.duration"]
        ]
        assert sorted(operations) == ["chat", "execute_tool", "execute_tool", "invoke_agent"]
    else:
        unknown = model | {"gen_ai.token.modality": "unknown"}
        assert counted["gen_ai.client.inference.usage.input_tokens"] == [(unknown, 30)]
        assert counted["gen_ai.client.inference.usage.cache_read.input_tokens"] == [(unknown, 8)]
        assert counted["gen_ai.client.inference.usage.cache_write.input_tokens"] == [(unknown, 1)]
        assert counted["gen_ai.client.inference.usage.reasoning.output_tokens"] == [(unknown, 1)]
        assert [value for _, value in counted["gen_ai.invoke_agent.inference_calls"]] == [2]
        assert [value for _, value in counted["gen_ai.invoke_agent.tool_calls"]] == [2]
        tools = {attributes.get("error.type") for attributes, _ in counted["gen_ai.execute_tool.duration"]}
        assert tools == {None, "KeyError"}


# --- exporters that are no good ---------------------------------------------------------------------------


class Raising(SpanExporter):
    """Fails with everything."""

    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("not today")


class Hanging(SpanExporter):
    """Comes back when it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def export(self, spans: Any) -> SpanExportResult:
        self.let_go.wait(20)
        return SpanExportResult.FAILURE


@contextmanager
def deaf_server() -> Iterator[str]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"


def timed(processor: BatchSpanProcessor) -> float:
    """How long twenty runs take with a processor whose exporter is no good."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    agent = Agent(
        [calls(("look", "{}")), "done"], [look], journal="memory", observers=[Tracing(tracer_provider=provider)]
    )
    begin = time.perf_counter()
    for _ in range(20):
        result = agent.run_sync("go")
        assert (result.answer, result.observer_errors) == ("done", 0)
    return time.perf_counter() - begin


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["raises", "hangs", "deaf", "nobody"])
def test_an_exporter_that_is_no_good_costs_a_run_nothing(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    hanging = Hanging()
    with deaf_server() as deaf:
        exporters: dict[str, SpanExporter] = {
            "raises": Raising(),
            "hangs": hanging,
            "deaf": OTLPSpanExporter(deaf, timeout=1),
            "nobody": OTLPSpanExporter(nobody(), timeout=1),
        }
        exporter = exporters[kind]
        processor = BatchSpanProcessor(exporter, max_queue_size=16, schedule_delay_millis=5, max_export_batch_size=8)
        assert timed(processor) < 0.9, "twenty runs, of some milliseconds each"
    hanging.let_go.set()
    worker = processor._batch_processor  # its own shutdown would wait for what cannot be sent
    worker.shutdown(0)
    worker._worker_thread.join(5)


def test_a_processor_that_raises_is_counted_and_the_run_goes_on() -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            raise RuntimeError("not today")

    kept = Kept()
    kept.tracers.add_span_processor(Broken())
    result = agent_of(kept, calls(("look", "{}")), "done").run_sync("go")
    assert result.answer == "done"
    assert result.observer_errors > 0


def test_where_only_metrics_are_taken_what_is_current_stays_current() -> None:
    kept, inside = Kept(), Kept()
    seen: list[int] = []

    @tool(read_only=True)
    def peek() -> str:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "x"

    tracing = Tracing(tracer_provider=NoOpTracerProvider(), meter_provider=kept.meters)
    agent = Agent([calls(("peek", "{}")), "done"], [peek], journal="memory", observers=[tracing])
    with inside.tracers.get_tracer("web").start_as_current_span("GET") as around:
        agent.run_sync("go")
    assert seen == [around.get_span_context().span_id]
    assert "gen_ai.client.operation.duration" in kept.metrics()
