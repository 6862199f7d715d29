"""The numbers that are drawn: what each step used, what took how long, and the sums beside the arithmetic."""

from __future__ import annotations

from collections.abc import Iterable

from tenlines.core.costs import Ledger, StepLine
from tenlines.core.economics import total_input
from tenlines.core.transcript import Usage
from tenlines.report.model import Point, Series, Span, Tone
from tenlines.trace.story import CallView, StepView, Story
from tenlines.trace.text import one_line


def series_of(story: Story, ledger: Ledger) -> Series:
    """The series of a run, as it stands."""
    form = ledger.closed_form
    numbers = range(1, form.steps + 1) if form is not None else ()
    return Series(
        points=tuple(map(_point, ledger.steps)),
        spans=tuple(_spans(story)),
        sums=tuple(_sums(ledger)),
        linear=tuple(float(form.prompt * n) for n in numbers) if form else (),
        closed=tuple(float(total_input(form.prompt, form.per_step, n)) for n in numbers) if form else (),
        costs=tuple(_costs(ledger)),
    )


def _point(line: StepLine) -> Point:
    usage = line.usage or Usage()
    return Point(line.step, usage.input, usage.cache_read, usage.output, line.dollars, line.latency_s)


def _sums(ledger: Ledger) -> Iterable[float]:
    """Input tokens of all requests up to each step: failed ones and those for summaries too."""
    total = 0
    for line in ledger.requests:
        total += (line.usage.input or 0) if line.usage is not None else 0
        if isinstance(line, StepLine):
            total += line.failed.input_tokens
            yield float(total)


def _costs(ledger: Ledger) -> Iterable[float | None]:
    total: float | None = 0.0
    for line in ledger.requests:
        is_asked = isinstance(line, StepLine) and line.usage is None and line.dollars is None and not line.latency_s
        if total is not None and not is_asked:
            total = None if line.dollars is None else total + line.dollars
        if isinstance(line, StepLine):
            if total is not None:
                total += line.failed.dollars
            yield total


def _spans(story: Story) -> Iterable[Span]:
    """Requests and calls that ended, or last until the newest event."""
    began = story.start.at if story.start is not None else 0.0
    for item in story.items:
        if not isinstance(item, StepView):
            continue
        yield _span(item, began, story)
        for call in item.calls:
            if call.started_at is not None:
                yield _call_span(call, call.started_at, began, story)


def _span(step: StepView, began: float, story: Story) -> Span:
    until = step.replied_at
    if until is None:
        until = story.last_at if step is story.step and story.end is None else step.asked_at
    tone: Tone = "warn" if step.reply is None and step.failed else "info"
    start, end = max(0.0, step.asked_at - began), max(0.0, until - began)
    return Span(start, max(start, end), "model", tone, str(step.number), "model")


def _call_span(call: CallView, started: float, began: float, story: Story) -> Span:
    until = call.ended_at
    if until is None:
        until = story.last_at if story.end is None else started
    tones: dict[str, Tone] = {"ok": "good", "": "info"}
    start, end = max(0.0, started - began), max(0.0, until - began)
    tone = tones.get(call.outcome, "bad")
    return Span(start, max(start, end), "call", tone, call.place, one_line(call.name, 60))
