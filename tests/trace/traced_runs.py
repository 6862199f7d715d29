"""Logs of runs that were told, walked at random, or driven for real; and who keeps their spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from told_run import CAREFUL, TOOLS, Run
from world import walk

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.trace.changes import Begun, Change, Ended, Marked
from tenlines.trace.conventions import Vintage
from tenlines.trace.past import SpanRecord, changes, records

__all__ = ["CAREFUL", "TOOLS", "Run"]

Log = list[ev.AnyEvent]


@cache
def walked(kind: Any, seed: int) -> tuple[ev.AnyEvent, ...]:
    """A random log, as a journal gives it back."""
    return tuple(codec.decode(codec.encode(event)) for event in walk(seed, kind=kind).log)


def random_logs(each: int) -> Iterator[tuple[ev.AnyEvent, ...]]:
    """Random logs of each kind of world."""
    for kind in ("", "money", "long"):
        for seed in range(each):
            yield walked(kind, seed)


def given_up() -> Run:
    """A run that was cancelled while a call of it ran."""
    return Run().call("send").start().cancel("now").refuse_all()


def undone() -> Run:
    """A run whose one call could not be undone."""
    run = Run(CAREFUL).call("pay").decide().start().returned()
    run.reply("42")
    run.finish()
    run.request_undo().undo("tool_error")
    run.finish()
    return run


def logs_of_every_kind(each: int) -> Iterator[Sequence[ev.AnyEvent]]:
    """Random logs, and those of what chance brings about too seldom: every kind of event is in one of them."""
    yield from random_logs(each)
    yield undone().log
    yield given_up().log


def spans_of(log: Iterable[ev.AnyEvent], vintage: Vintage = "released", **options: Any) -> list[SpanRecord]:
    """Whole spans, in the order in which they began."""
    found = {one.span_id: one for one in records(changes(log, vintage, **options))}
    return [found[one.span_id] for one in changes(log, vintage, **options) if isinstance(one, Begun)]


def check_tree(changed: Iterable[Change]) -> int:
    """Every span begins once and ends once, inside of its parent's life; returns how many there were."""
    begun: dict[str, Begun] = {}
    ended: set[str] = set()
    for one in changed:
        match one:
            case Begun():
                assert one.span_id not in begun
                assert one.parent in begun or (not one.parent or one.flags), "a parent of this run began before"
                assert one.parent not in ended, "and has not ended"
                begun[one.span_id] = one
            case Marked():
                assert one.span_id in begun
                assert one.span_id not in ended
            case Ended():
                assert one.span_id not in ended
                assert one.at >= begun[one.span_id].at
                ended.add(one.span_id)
                open_children = {c.span_id for c in begun.values() if c.parent == one.span_id} - ended
                assert not open_children, "children end before their parent"
    assert ended == set(begun)
    return len(begun)


class Kept:
    """The SDK, with everything kept in memory."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False, **options)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    @property
    def spans(self) -> list[ReadableSpan]:
        """All that have ended."""
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        """The one of this name."""
        (found,) = [one for one in self.spans if one.name == name]
        return found

    def take(self) -> list[ReadableSpan]:
        """All that have ended, which are then forgotten."""
        found = self.spans
        self.exporter.clear()
        return found

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """What was counted: metric -> attributes and sums."""
        data = self.reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        for scope in data.resource_metrics[0].scope_metrics if data else ():
            for metric in scope.metrics:
                points = [(dict(one.attributes or {}), getattr(one, "sum", None)) for one in metric.data.data_points]
                values = [getattr(one, "value", None) for one in metric.data.data_points]
                found[metric.name] = [
                    (attributes, value if total is None else total)
                    for (attributes, total), value in zip(points, values, strict=True)
                ]
        return found


def ids(spans: Iterable[ReadableSpan]) -> set[tuple[str, str, str, str]]:
    """What identifies spans: trace, id, parent, name."""
    found = set()
    for one in spans:
        assert one.context is not None
        parent = f"{one.parent.span_id:016x}" if one.parent else ""
        found.add((f"{one.context.trace_id:032x}", f"{one.context.span_id:016x}", parent, one.name))
    return found


def parent_of(span: ReadableSpan) -> str:
    """The id of its parent, or ""."""
    return f"{span.parent.span_id:016x}" if span.parent else ""


def id_of(span: ReadableSpan) -> str:
    """Its id."""
    assert span.context is not None
    return f"{span.context.span_id:016x}"
