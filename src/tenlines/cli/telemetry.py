"""Where spans and metrics go: what the standard variables of OpenTelemetry say, for `run --otel` and `trace`."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

import typer

from tenlines.cli.moves import command
from tenlines.cli.screen import console_for
from tenlines.errors import ConfigError, MissingExtra
from tenlines.trace.text import clean

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    from tenlines.ports import Observer

FLUSH_S = 2.0
"""How long the end of a command waits for what has not been sent."""
PROBE_S = 1.0
DEFAULT = "http://localhost:4318"

Otel: TypeAlias = Annotated[
    bool,
    typer.Option("--otel", help="Send spans and metrics of the run, as the variables of OpenTelemetry say (OTEL_...)."),
]
To: TypeAlias = Literal["otlp", "console", "none"]


class Target(NamedTuple):
    """Where to."""

    address: str
    """Of the collector, as it may be shown."""
    traces: To
    metrics: To


def read_target(environment: Mapping[str, str]) -> Target:
    """What the variables say.

    Raises:
        ConfigError: They ask for something that is not there.
    """
    signal = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    address = signal or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if environment.get(name, "http/protobuf") != "http/protobuf":
            raise ConfigError(f"{name}={environment[name]}: spans are sent as http/protobuf; unset it, or say that")
    found = urlsplit(address)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise ConfigError(f"the endpoint for spans must be http://host:port, or https; got {address!r}")
    shown = f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}"  # no name or password
    return Target(
        shown, _exporter("OTEL_TRACES_EXPORTER", environment), _exporter("OTEL_METRICS_EXPORTER", environment)
    )


def _exporter(name: str, environment: Mapping[str, str]) -> To:
    match environment.get(name, "otlp").strip() or "otlp":
        case "otlp":
            return "otlp"
        case "console":
            return "console"
        case "none":
            return "none"
        case other:
            raise ConfigError(f"{name} must be otlp, console or none; got {other!r}")


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Whether the whole SDK is switched off."""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


# --- what goes there ------------------------------------------------------------------------------------


class Heard(logging.Handler):
    """What the SDK complains about. It is said once, at the end, and not in between."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Remember it."""
        self.last = record.getMessage()

    def __enter__(self) -> Heard:
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self)
        logger.propagate = False
        return self

    def __exit__(self, *raised: object) -> None:
        logger = logging.getLogger("opentelemetry")
        logger.removeHandler(self)
        logger.propagate = True


class Counted:
    """An exporter that knows how many spans it sent, and how many it could not send.

    Args:
        inner: The exporter that sends.
    """

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.sent = self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        else:
            self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        """Send nothing more."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Nothing is held back here."""
        return self._inner.force_flush(timeout_millis)


def span_exporter(target: Target) -> Counted | None:
    """Who sends spans; None where nobody shall.

    Raises:
        MissingExtra: The SDK is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter
    except ImportError as error:
        raise MissingExtra("sending spans", "otel") from error
    if target.traces == "none":
        return None
    return Counted(OTLPSpanExporter() if target.traces == "otlp" else ConsoleSpanExporter(out=sys.stderr))


def resource() -> Resource:
    """Who sends: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, else `tenlines`."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    found = Resource.create()
    is_named = not str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return found if is_named else found.merge(Resource({SERVICE_NAME: "tenlines"}))


def unreachable(target: Target) -> str:
    """Why nobody can be reached there; "" where somebody can, or that is not known."""
    from urllib.request import getproxies

    found = urlsplit(target.address)
    if found.scheme in getproxies():
        return ""
    try:
        port = found.port or (443 if found.scheme == "https" else 80)
        socket.create_connection((found.hostname, port), PROBE_S).close()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def directly(exporter: Counted, at_once: int) -> TracerProvider:
    """A provider whose spans are sent by whoever ends them, so many in one request. Nothing is dropped."""
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

    kept: list[ReadableSpan] = []

    class Direct(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            if span.context is not None and span.context.trace_flags.sampled:
                kept.append(span)
            if len(kept) >= at_once:
                self.force_flush()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            if kept:
                exporter.export(tuple(kept))
                kept.clear()
            return True

    provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_span_processor(Direct())
    return provider


class Sender:
    """Sends the spans and metrics of runs while they go on.

    Args:
        target: Where to.
    """

    def __init__(self, target: Target) -> None:
        self._target, self._spans = target, span_exporter(target)
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from tenlines.trace.otel import Tracing

        self._providers: list[Any] = []
        tracers = TracerProvider(resource=resource(), shutdown_on_exit=False)
        if self._spans is not None:
            tracers.add_span_processor(BatchSpanProcessor(cast("SpanExporter", self._spans)))
            self._providers.append(tracers)
        trace.set_tracer_provider(tracers)  # what tools do with OpenTelemetry goes the same way
        self.tracing = Tracing(tracer_provider=tracers, meter_provider=self._meters())

    def _meters(self) -> Any:
        """Who counts."""
        if self._target.metrics == "none":
            return None
        from opentelemetry import metrics
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader

        to_console = self._target.metrics == "console"
        reader = PeriodicExportingMetricReader(
            ConsoleMetricExporter(out=sys.stderr) if to_console else OTLPMetricExporter()
        )
        provider = MeterProvider([reader], resource=resource(), shutdown_on_exit=False)
        metrics.set_meter_provider(provider)
        self._providers.append(provider)
        return provider

    def finish(self, heard: Heard) -> str:
        """Send the rest, for a short time. Returns why something was not sent, or ""."""
        try:
            return self._finish(heard)
        except KeyboardInterrupt:  # somebody does not want to wait
            return "it was not waited for"

    def _finish(self, heard: Heard) -> str:
        uses_network = "otlp" in (self._target.traces, self._target.metrics)
        if uses_network and (why := unreachable(self._target)):
            return why
        flush = threading.Thread(target=self._flush, name="tenlines-otel", daemon=True)
        flush.start()
        flush.join(FLUSH_S)
        if flush.is_alive():
            return f"it took longer than {FLUSH_S:g} s"
        return heard.last or "it failed" if self._spans is not None and self._spans.failed else ""

    def _flush(self) -> None:
        for provider in self._providers:
            provider.shutdown()


@contextmanager
def tracing(wanted: bool, journal: str | None, run: str) -> Iterator[tuple[Observer, ...]]:
    """Observers that send what the runs inside do; none where that is not wanted.

    Args:
        journal: The journal as it was named, for the command that sends the run later.
        run: How that can call the run.

    Raises:
        ConfigError: The variables ask for something that is not there, or the SDK is not installed.
    """
    if not wanted or is_disabled(os.environ):
        yield ()
        return
    target = read_target(os.environ)
    with Heard() as heard:
        sender = Sender(target)
        try:
            yield (sender.tracing,)
        finally:
            if why := sender.finish(heard):
                again = command("trace", [run], journal)
                console = console_for(sys.stderr)
                console.print(f"spans were not sent to {target.address}: {clean(why)}", style="yellow", soft_wrap=True)
                console.print(f"later: {clean(again)}", style="yellow", soft_wrap=True)
