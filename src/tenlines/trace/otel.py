"""Spans and metrics through the OpenTelemetry SDK: `Tracing` for runs that are watched, `export_run` for past ones.

    from tenlines import Agent
    from tenlines.trace.otel import Tracing

    agent = Agent("openai:gpt-5", tools=[...], observers=[Tracing()])

Spans go through the program's own `TracerProvider`, so its samplers, processors and exporters hold for them. Their ids
follow from the log (`core/surroundings.py`); where the provider is not the SDK's, it gives ids of its own.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from tenlines.core import codec
from tenlines.core.events import AnyEvent
from tenlines.errors import MissingExtra
from tenlines.ports import CallContext, Journal, Observer
from tenlines.trace import past
from tenlines.trace.changes import Begun, Change, Ended, Marked
from tenlines.trace.conventions import Metric, Vintage, vintage_of, wants_content
from tenlines.trace.measures import Measuring
from tenlines.trace.redaction import Redaction
from tenlines.trace.spans import Spans

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanContext, Tracer, TracerProvider

SCOPE = "tenlines"
"""The instrumentation scope."""
FLUSHED_AFTER = 400
"""Spans of past runs after which the provider is flushed: its queue drops what does not fit."""


class Tracing:
    """An observer that makes spans and metrics of runs. One serves any number of runs, threads and event loops.

    Args:
        tracer_provider: Who makes the spans; by default the global one, as it is when a run begins.
        meter_provider: Who counts; the same.
        vintage: Which names are used; by default what `OTEL_SEMCONV_STABILITY_OPT_IN` says.
        content: Whether what was said is exported too; by default what
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says, else not.
        redaction: What is taken out of every text; by default what is a secret nearly always.

    Raises:
        MissingExtra: The OpenTelemetry SDK is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        vintage: Vintage | None = None,
        content: bool | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._api, self._metrics = _module("opentelemetry.trace"), _module("opentelemetry.metrics")
        self._tracer_provider, self._meter_provider = tracer_provider, meter_provider
        self.vintage: Vintage = vintage_of(os.environ) if vintage is None else vintage
        self.content = wants_content(os.environ) if content is None else content
        self.redaction = Redaction() if redaction is None else redaction
        self._meters: dict[int, Meters] = {}

    def on_event(self, event: AnyEvent) -> None:
        """Never called: each run has an observer of its own."""

    def for_run(self, run_id: str, past: Iterable[AnyEvent]) -> Observer:
        """The observer of one run. `past` is what happened in it before; its spans are not made again."""
        provider = self._tracer_provider or self._api.get_tracer_provider()
        meters = self._counting()
        if meters is None and _is_idle(provider):
            return _Idle()
        spans = Spans(self.vintage, content=self.content, redaction=self.redaction)
        for event in past:
            spans.take(event)
        return RunTracing(spans, _Writer(provider, _live), meters)

    def _counting(self) -> Meters | None:
        provider = self._meter_provider or self._metrics.get_meter_provider()
        if _is_idle(provider):
            return None
        if id(provider) not in self._meters:
            self._meters[id(provider)] = Meters(provider, self.vintage)
        return self._meters[id(provider)]


class _Idle:
    """Nobody takes spans or counts."""

    def on_event(self, event: AnyEvent) -> None:
        """Nothing."""


class RunTracing:
    """Makes the spans of one run while it goes on."""

    def __init__(self, spans: Spans, writer: _Writer, meters: Meters | None) -> None:
        self._spans, self._writer, self._meters = spans, writer, meters

    def on_event(self, event: AnyEvent) -> None:
        """Begin, mark and end spans."""
        for change in self._spans.take(codec.as_read(event)):
            begun = self._writer.write(change)
            if self._meters is not None and begun is not None and isinstance(change, Ended):
                self._meters.count(begun, change)

    def around_call(self, ctx: CallContext) -> AbstractContextManager[object]:
        """The span of a call is the current one where its tool runs, so that what an instrumented client does there
        belongs to it."""
        return self._writer.current(self._spans.call_span(ctx.key))

    def around_request(self) -> AbstractContextManager[object]:
        """The same for a request and the client that makes it."""
        return self._writer.current(self._spans.request_span)


_Live: TypeAlias = MutableMapping[tuple[int, str], "Span"]
_live: _Live = WeakValueDictionary()
"""The spans of runs that are watched and have not ended, by provider and id: a child's parent is among them."""


class _Writer:
    """Turns changes into spans of the SDK.

    Args:
        provider: Who makes them.
        live: The spans that are open, of other runs too.
    """

    def __init__(self, provider: TracerProvider, live: _Live) -> None:
        self._api, self._live = _module("opentelemetry.trace"), live
        self._status = _module("opentelemetry.trace.status")
        self._no_context: Context = _module("opentelemetry.context").Context()
        self._tracer: Tracer = provider.get_tracer(SCOPE, _version())
        self._ids = GivenIds.of(self._tracer)
        self._provider = id(provider)
        self._open: dict[str, tuple[Begun, Span]] = {}

    def write(self, change: Change) -> Begun | None:
        """Make a change; returns how a span began that has ended."""
        match change:
            case Begun():
                self._begin(change)
            case Marked():
                if change.span_id in self._open:  # else it began before this process had the run
                    _, span = self._open[change.span_id]
                    span.add_event(change.name, dict(change.attributes), _nanoseconds(change.at))
            case Ended():
                return self._end(change)
        return None

    def current(self, span_id: str) -> AbstractContextManager[object]:
        """While it is entered, that span is the current one."""
        found = self._open.get(span_id)
        if found is None or not found[1].get_span_context().is_valid:
            return nullcontext()
        entered: AbstractContextManager[object] = self._api.use_span(
            found[1], end_on_exit=False, record_exception=False, set_status_on_exception=False
        )
        return entered

    def _begin(self, begun: Begun) -> None:
        kind = self._api.SpanKind.CLIENT if begun.kind == "client" else self._api.SpanKind.INTERNAL
        links = [self._api.Link(self._named(begun.trace_id, begun.link, "01"))] if begun.link else ()
        if self._ids is not None:
            self._ids.give(begun.trace_id, begun.span_id)
        try:
            span = self._tracer.start_span(
                begun.name, self._parent(begun), kind, dict(begun.attributes), links, _nanoseconds(begun.at)
            )
        finally:
            if self._ids is not None:
                self._ids.give("", "")
        self._open[begun.span_id] = (begun, span)
        self._live[self._provider, begun.span_id] = span

    def _end(self, ended: Ended) -> Begun | None:
        found = self._open.pop(ended.span_id, None)
        if found is None:
            return None
        begun, span = found
        span.set_attributes(dict(ended.attributes))
        if ended.fault is not None:
            span.set_status(self._status.Status(self._status.StatusCode.ERROR, ended.fault))
        span.end(_nanoseconds(ended.at))
        return begun

    def _parent(self, begun: Begun) -> Context:
        """The context that a span begins in: that of its parent, and never what happens to be current."""
        if not begun.parent:
            return self._no_context
        parent = self._live.get((self._provider, begun.parent))
        if parent is None:
            parent = self._api.NonRecordingSpan(self._named(begun.trace_id, begun.parent, begun.flags or "01"))
        context: Context = self._api.set_span_in_context(parent, self._no_context)
        return context

    def _named(self, trace_id: str, span_id: str, flags: str) -> SpanContext:
        flag = self._api.TraceFlags(int(flags, 16))
        named: SpanContext = self._api.SpanContext(
            int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flag
        )
        return named


_installing = threading.Lock()


class GivenIds:
    """Stands before the id generator of an SDK tracer, and gives the ids that were set in the same thread just before.

    Args:
        usual: The generator that the provider was made with.
    """

    def __init__(self, usual: Any) -> None:
        self._usual, self._given = usual, threading.local()

    @classmethod
    def of(cls, tracer: Any) -> GivenIds | None:
        """That of a tracer; None where the tracer has no place for it, and gives ids of its own."""
        with _installing:
            present = getattr(tracer, "id_generator", None)
            if present is not None and not isinstance(present, cls):
                tracer.id_generator = present = cls(present)
            return present

    def give(self, trace_id: str, span_id: str) -> None:
        """Set the next ids; "" for the usual ones."""
        self._given.ids = (trace_id, span_id)

    def generate_trace_id(self) -> int:
        """Of a span without a parent."""
        given = getattr(self._given, "ids", ("", ""))[0]
        return int(given, 16) if given else int(self._usual.generate_trace_id())

    def generate_span_id(self) -> int:
        """Of any span."""
        given = getattr(self._given, "ids", ("", ""))[1]
        return int(given, 16) if given else int(self._usual.generate_span_id())

    def is_trace_id_random(self) -> bool:
        """A hash is as even as a random number, which is what samplers count on."""
        return True


class Meters:
    """The instruments of a vintage.

    Args:
        provider: Who counts.
        vintage: Which names are used.
    """

    def __init__(self, provider: MeterProvider, vintage: Vintage) -> None:
        meter, self._measuring = provider.get_meter(SCOPE, _version()), Measuring(vintage)
        self._record: dict[Metric, Any] = {}
        for metric in Metric:
            one = metric.value
            name = one.name.of(vintage)
            if name and one.kind == "histogram":
                made = meter.create_histogram(
                    name, one.unit, one.what, explicit_bucket_boundaries_advisory=list(one.buckets)
                )
                self._record[metric] = made.record
            elif name:
                self._record[metric] = meter.create_counter(name, one.unit, one.what).add

    def count(self, begun: Begun, ended: Ended) -> None:
        """Count a span that has ended."""
        for metric, value, attributes in self._measuring.of(begun, ended):
            self._record[metric](value, dict(attributes))


def export_run(
    journal: Journal,
    run_id: str,
    *,
    tracer_provider: TracerProvider | None = None,
    vintage: Vintage | None = None,
    content: bool | None = None,
    redaction: Redaction | None = None,
) -> int:
    """Make the spans of a run that is in a journal, and of the runs under its calls. They have the ids that they had,
    or would have had, when the run was watched; metrics are not counted again. The arguments are those of `Tracing`.

    Returns:
        How many spans it were.

    Raises:
        RunNotFound: The journal has no such run.
        InvalidEvent: What it has is not the log of a run.
        MissingExtra: The OpenTelemetry SDK is not installed.
    """
    named = vintage_of(os.environ) if vintage is None else vintage
    said = wants_content(os.environ) if content is None else content
    hidden = Redaction() if redaction is None else redaction
    provider = tracer_provider or _module("opentelemetry.trace").get_tracer_provider()
    flush, count = getattr(provider, "force_flush", None), 0
    live: _Live = {}  # a parent has ended when the spans of its children are made
    for log in past.family(journal, run_id):
        hidden.learn(log)
        writer = _Writer(provider, live)
        for change in past.changes(log, named, content=said, redaction=hidden):
            count += writer.write(change) is not None
            if flush is not None and isinstance(change, Ended) and count % FLUSHED_AFTER == 0:
                flush()
    return count


def _is_idle(provider: Any) -> bool:
    """Whether it is what the bare API gives where no SDK was set up."""
    return type(provider).__module__.split(".")[:2] in (["opentelemetry", "trace"], ["opentelemetry", "metrics"])


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)


def _version() -> str:
    return str(getattr(sys.modules.get("tenlines"), "__version__", ""))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("tracing with OpenTelemetry", "otel") from error
