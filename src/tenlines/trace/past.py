"""The spans of runs that are in a journal, those of the runs under their calls too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tenlines.core import events as ev
from tenlines.core.surroundings import traceparent
from tenlines.errors import RunNotFound
from tenlines.ports import Journal
from tenlines.trace.changes import Attributes, Begun, Change, Ended, Kind, Marked
from tenlines.trace.conventions import Vintage
from tenlines.trace.redaction import Redaction
from tenlines.trace.spans import Spans


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Something that happened in a span."""

    name: str
    at: float
    attributes: Attributes


class SpanRecord(msgspec.Struct, frozen=True, gc=False):
    """A span as a whole. Times are Unix seconds."""

    trace_id: str
    span_id: str
    parent: str
    """Its parent's id, or ""."""
    name: str
    kind: Kind
    start: float
    end: float
    fault: str | None
    """What went wrong; None where nothing did."""
    attributes: Attributes
    events: tuple[Mark, ...]
    link: str = ""
    """The `invoke_agent` of whoever had the run before, or ""."""


def changes(
    log: Iterable[ev.AnyEvent], vintage: Vintage, *, content: bool = False, redaction: Redaction | None = None
) -> Iterator[Change]:
    """What a whole log changes. A run that is open ends with the last that is known of it.

    Raises:
        InvalidEvent: It is not the log of a run.
    """
    spans = Spans(vintage, content=content, redaction=redaction)
    for event in log:
        yield from spans.take(event)
    yield from spans.close()


def records(changed: Iterable[Change]) -> Iterator[SpanRecord]:
    """Whole spans, in the order in which they ended."""
    begun: dict[str, tuple[Begun, list[Mark]]] = {}
    for change in changed:
        match change:
            case Begun():
                begun[change.span_id] = (change, [])
            case Marked():
                begun[change.span_id][1].append(Mark(change.name, change.at, change.attributes))
            case Ended():
                yield _record(*begun.pop(change.span_id), change)


def _record(begun: Begun, marks: list[Mark], ended: Ended) -> SpanRecord:
    return SpanRecord(
        trace_id=begun.trace_id,
        span_id=begun.span_id,
        parent=begun.parent,
        name=begun.name,
        kind=begun.kind,
        start=begun.at,
        end=ended.at,
        fault=ended.fault,
        attributes=begun.attributes | ended.attributes,
        events=tuple(marks),
        link=begun.link,
    )


# --- families of runs -----------------------------------------------------------------------------------


def family(journal: Journal, run_id: str) -> Iterator[list[ev.AnyEvent]]:
    """The log of a run, then those of the runs under its calls, as far as the journal has them.

    Raises:
        RunNotFound: The journal has no such run.
    """
    log = list(journal.read(run_id))
    calls = _calls(log)
    yield log
    for child in dict.fromkeys([*_named(log), *_lost(journal, log)]):
        try:
            found = list(journal.read(child))
        except RunNotFound:  # it was recorded elsewhere
            continue
        placed = _placed(found, calls)
        calls |= _calls(placed)
        yield placed


def _named(log: Iterable[ev.AnyEvent]) -> Iterator[str]:
    """The runs that calls said they used; those under them too."""
    for event in log:
        if isinstance(event, ev.CallReturned | ev.CallFailed | ev.LateResultArrived) and event.spent is not None:
            yield from event.spent.runs
        elif isinstance(event, ev.ChildPaused):
            yield event.run_id


def _lost(journal: Journal, log: list[ev.AnyEvent]) -> Iterator[str]:
    """The runs under calls that never came to say what they used: the process died."""
    silent: dict[tuple[int, int], str] = {}
    for event in log:
        if isinstance(event, ev.CallStarted) and event.allowance is not None:
            silent[event.step, event.position] = event.key
        elif isinstance(event, ev.CallReturned | ev.CallFailed | ev.LateResultArrived) and event.spent is not None:
            silent.pop((event.step, event.position), None)
    for run in journal.runs() if silent else ():
        if run.started_at >= log[0].at:
            start = next(iter(journal.read(run.run_id)))
            if isinstance(start, ev.RunStarted) and start.parent in silent.values():
                yield run.run_id


def _calls(log: list[ev.AnyEvent]) -> dict[str, str]:
    """The key of each call -> its span, for others."""
    start = log[0]
    if not isinstance(start, ev.RunStarted):
        return {}
    starts = (event for event in log if isinstance(event, ev.CallStarted))
    return {event.key: traceparent(start.run_id, event.seq, start.traceparent) for event in starts}


def _placed(log: list[ev.AnyEvent], calls: dict[str, str]) -> list[ev.AnyEvent]:
    """A log of an older format names the call that it serves, and not its span."""
    start = log[0]
    if isinstance(start, ev.RunStarted) and not start.traceparent and start.parent in calls:
        return [msgspec.structs.replace(start, traceparent=calls[start.parent]), *log[1:]]
    return log
