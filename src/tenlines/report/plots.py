"""Several runs: a table of them, and how what they used is distributed, by how they ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tenlines.report import svg
from tenlines.report.charts import Chart, Legend, dollars
from tenlines.report.model import Head, Tone
from tenlines.report.starts import when
from tenlines.report.svg import Frame, Label, Part
from tenlines.trace import words
from tenlines.trace.text import one_line

_BINS = 16
_STYLES: dict[Tone, str] = {"good": "s4", "bad": "s5", "warn": "s3", "info": "s1", "idle": "s6"}
_MORE = ("s6", "s2", "s1", "s3", "s5")
"""For a status whose colour another one has already."""


class Cell(NamedTuple):
    """A cell that is sorted by a number; "" where nobody knows it."""

    text: str
    value: str


class Row(NamedTuple):
    """One run in the table."""

    key: str
    run_id: str
    tone: Tone
    status: str
    numbers: tuple[Cell, ...]
    task: str


COLUMNS = ("steps", "calls", "tokens", "dollars", "time", "started")
"""The headings of `Row.numbers`."""


def rows_of(heads: Iterable[Head]) -> list[Row]:
    """The table."""
    return [_row(head) for head in heads]


def _row(head: Head) -> Row:
    numbers = (
        Cell(f"{head.steps:,}", str(head.steps)),
        Cell(f"{head.calls:,}", str(head.calls)),
        Cell(f"{head.tokens:,}", str(head.tokens)),
        Cell("unknown", "") if head.dollars is None else Cell(words.money(head.dollars), repr(head.dollars)),
        Cell(words.duration(head.seconds), repr(head.seconds)),
        Cell(when(head.started_at).removesuffix(" UTC"), repr(head.started_at)),
    )
    return Row(head.key, head.run_id, head.tone, head.status, numbers, one_line(head.task, 160))


def pair_of(heads: Sequence[Head]) -> tuple[str, str]:
    """The keys of the two runs that are compared at first: two of the same task, where there are such."""
    by_task: dict[str, str] = {}
    for head in heads:
        if head.task in by_task:
            return head.key, by_task[head.task]
        by_task[head.task] = head.key
    return heads[0].key, heads[1].key


class _Metric(NamedTuple):
    """Something that runs have much or little of."""

    id: str
    title: str
    of: Callable[[Head], float | None]
    say: Callable[[float], str]
    axis: Callable[[float], str]


_METRICS = (
    _Metric("steps", "Steps", lambda head: head.steps, "{:,.0f}".format, svg.short),
    _Metric("tokens", "Tokens", lambda head: head.tokens, "{:,.0f}".format, svg.short),
    _Metric("dollars", "Dollars", lambda head: head.dollars, words.money, dollars),
    _Metric("seconds", "Time", lambda head: head.seconds, words.duration, words.duration),
)


def distributions(heads: Sequence[Head]) -> list[Chart]:
    """A histogram for each thing that is known of at least one run."""
    return [chart for metric in _METRICS if (chart := _histogram(metric, heads)) is not None]


def _histogram(metric: _Metric, heads: Sequence[Head]) -> Chart | None:
    known = [(head.status, value) for head in heads if (value := metric.of(head)) is not None]
    highest = max((value for _, value in known), default=0.0)
    if not known or not highest > 0:
        return None
    width = _width(highest, is_whole=metric.id in ("steps", "tokens"))
    count = int(highest / width) + 1
    parts = []
    for status, style in _styles(heads):
        heights = [0.0] * count
        for _, value in (one for one in known if one[0] == status):
            heights[int(value / width)] += 1
        if not any(heights):
            continue
        parts.append(Part(status, style, heights))
    tallest = max(map(sum, zip(*(part.values for part in parts), strict=True)))
    every = max(1, math.ceil(count / 6))
    marks = [(float(at), metric.axis(at * width)) for at in range(0, count + 1, every)]
    labels = [Label(f"{metric.say(at * width)} to below {metric.say((at + 1) * width)}") for at in range(count)]
    middle = _quantile(sorted(value for _, value in known), 0.5)
    text = f"{words.count(len(known), 'run')}, half of them up to {metric.say(middle)}, the most {metric.say(highest)}"
    drawing = svg.bars(metric.title, text, parts, Frame(tallest, 0, count, marks), labels, _runs)
    legend = [Legend(part.style, part.name) for part in parts]
    note = f"{text[0].upper()}{text[1:]}."
    headings = ("status", "runs", "least", "middle", "95 of 100", "most")
    rows = [_spread(metric, part.name, known) for part in parts]
    return Chart(f"runs-{metric.id}", f"{metric.title} of a run", note, drawing, legend, headings, rows)


def _runs(count: float) -> str:
    return f"{count:,.0f}" if count == round(count) else ""


def _width(highest: float, *, is_whole: bool) -> float:
    """A round width, with which everything falls into at most about `_BINS`."""
    marks = svg.ticks(highest, _BINS)
    width = marks[1] if len(marks) > 1 else highest
    return max(1.0, float(math.ceil(width))) if is_whole else width


def _styles(heads: Iterable[Head]) -> list[tuple[str, str]]:
    """Each status with its colour, `answered` first."""
    tones = {head.status: head.tone for head in heads}
    taken: dict[str, str] = {}
    for status in sorted(tones, key=lambda one: (one != "answered", one)):
        wished = (_STYLES[tones[status]], *_MORE)
        taken[status] = next((style for style in wished if style not in taken.values()), _MORE[0])
    return list(taken.items())


def _spread(metric: _Metric, status: str, known: Sequence[tuple[str, float]]) -> tuple[str, ...]:
    values = sorted(value for one, value in known if one == status)
    cuts = (values[0], _quantile(values, 0.5), _quantile(values, 0.95), values[-1])
    return (status, f"{len(values):,}", *map(metric.say, cuts))


def _quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that so many are not above."""
    return values[max(0, math.ceil(part * len(values)) - 1)]
