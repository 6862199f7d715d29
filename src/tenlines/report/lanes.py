"""The time line: which requests and calls were under way when. Idle time is squeezed, and what is narrower than a
pixel is drawn together with what is beside it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tenlines.report import svg
from tenlines.report.model import Span
from tenlines.report.svg import Box, Frame, Lane
from tenlines.trace import words

MOST_LANES = 8
"""Lanes of calls. More calls side by side share the last one."""
_WIDTH = 1100
_LANE = 20
_IDLE = 0.15
"""Idle time of more than this part of all the time at work is squeezed to `_SQUEEZED` of it ..."""
_LEAST_IDLE = 5.0
"""... where it is longer than these seconds."""
_SQUEEZED = 0.02


class Timeline(NamedTuple):
    """The drawing, and what has to be said about it."""

    drawing: str
    note: str


def timeline(spans: Sequence[Span], before: str) -> Timeline:
    """Draw spans. `before` is what the ids of the page begin with."""
    scale = Scale(spans)
    rows = [[span for span in spans if span.kind == "model"], *laid_out([one for one in spans if one.kind == "call"])]
    names = ["model", *(f"calls {n}" if len(rows) > 2 else "calls" for n in range(1, len(rows)))]
    gap = scale.total / (_WIDTH - svg.LEFT - svg.RIGHT)
    lanes = [Lane(name, _merged(row, scale, gap, before)) for name, row in zip(names, rows, strict=True) if row]
    frame = Frame(1, 0, scale.total, scale.marks(), svg.TOP + svg.BOTTOM + _LANE * len(lanes), _WIDTH)
    model, calls = _total(spans, "model"), _total(spans, "call")
    text = f"the model was asked for {words.duration(model)}, tools ran for {words.duration(calls)}"
    idle = "; ".join(f"{words.duration(length)} after {words.duration(at)}" for at, length in scale.idle[:5])
    note = f" Idle time is squeezed: {idle}{' and more' if len(scale.idle) > 5 else ''}." if idle else ""
    return Timeline(svg.lanes("Time line", text, lanes, frame), note)


class Scale:
    """Seconds of the run -> seconds of the drawing, in which long idle times are short."""

    def __init__(self, spans: Iterable[Span]) -> None:
        busy = _busy(spans)
        worked = sum(end - start for start, end in busy)
        longest = max(_IDLE * worked, _LEAST_IDLE)
        self._pieces: list[tuple[float, float]] = []
        """Where each busy stretch begins, and where on the drawing."""
        self.idle: list[tuple[float, float]] = []
        at = last = 0.0
        for start, end in busy:
            away = start - last
            if away > longest:
                self.idle.append((last, away))
                away = max(_SQUEEZED * worked, 1e-9)
            at += away
            self._pieces.append((start, at))
            at, last = at + end - start, end
        self.total = max(at, 1e-6)

    def at(self, seconds: float) -> float:
        """Where a moment at work is on the drawing."""
        start, at = self._pieces[max(0, bisect_right(self._pieces, (seconds, float("inf"))) - 1)]
        return at + seconds - start

    def marks(self) -> list[tuple[float, str]]:
        """Seconds at work, below the drawing."""
        return [(value, _moment(value, self.total)) for value in svg.ticks(self.total, 8)]


def _moment(seconds: float, total: float) -> str:
    """A moment, in a unit that suits all of them."""
    if not seconds:
        return "0"
    if total < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if total < 120 else words.duration(seconds)


def _busy(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """The stretches in which anything was under way."""
    found: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda one: one.start):
        if found and span.start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], span.end))
        else:
            found.append((span.start, span.end))
    return found


def laid_out(spans: Sequence[Span]) -> list[list[Span]]:
    """Calls in as few lanes as keep those apart that ran at once."""
    lanes: list[list[Span]] = []
    for span in sorted(spans, key=lambda one: (one.start, one.end)):
        free = next((lane for lane in lanes if lane[-1].end <= span.start), None)
        if free is None and len(lanes) < MOST_LANES:
            lanes.append([span])
        else:
            (lanes[-1] if free is None else free).append(span)
    return lanes


def _merged(spans: Sequence[Span], scale: Scale, gap: float, before: str) -> list[Box]:
    """Boxes, of which none is nearer to the next one than a pixel."""
    boxes: list[Box] = []
    counts: list[int] = []
    for span in spans:
        start, end = scale.at(span.start), scale.at(span.end)
        style = "model" if span.kind == "model" and span.tone == "info" else span.tone
        if boxes and start - boxes[-1].end < gap and (end - start < gap or boxes[-1].end - boxes[-1].start < 2 * gap):
            last, counts[-1] = boxes[-1], counts[-1] + 1
            worse = style if _RANK.get(style, 0) > _RANK.get(last.style, 0) else last.style
            told = f"{last.told.split(' (and')[0]} (and {counts[-1]:,} more)"
            boxes[-1] = last._replace(end=max(end, last.end), style=worse, told=told)
        else:
            boxes.append(Box(start, end, style, _told(span), goes_to(span, before)))
            counts.append(0)
    return boxes


_RANK = {"good": 1, "model": 1, "info": 2, "warn": 3, "bad": 4}


def _told(span: Span) -> str:
    what = f"step {span.place}" if span.kind == "model" else f"{span.place} {span.name}"
    return f"{what}: {words.duration(span.end - span.start)}, {words.duration(span.start)} after the beginning"


def goes_to(span: Span, before: str) -> str:
    """The element of the step or the call."""
    kind = "step" if span.kind == "model" else "call"
    return f"{before}{kind}-{span.place.replace('.', '-')}"


def _total(spans: Iterable[Span], kind: str) -> float:
    return sum(span.end - span.start for span in spans if span.kind == kind)
