"""Small clean charts as SVG: bars, lines and lanes with axes, ticks and words for those who do not see them.

Colours are classes, which the style sheet fills by variables, so that one drawing is right in the dark, in the light
and on paper. Every text is escaped here. What has more points than pixels is put into bins first (`bins`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

WIDTH = 720
"""Units of a drawing, which becomes as wide as its place on the page."""
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 12, 30
BARS = 120
"""Most bars of a drawing."""

Say = Callable[[float], str]


class Frame(NamedTuple):
    """The scales of a drawing."""

    highest: float
    x_from: float
    x_to: float
    marks: Sequence[tuple[float, str]] = ()
    """What stands below the line, and where."""
    height: int = 200
    width: int = WIDTH

    @property
    def right(self) -> float:
        """Where the drawing ends."""
        return self.width - RIGHT

    def x(self, value: float) -> float:
        """Where a value is from the left."""
        span = self.x_to - self.x_from or 1.0
        return LEFT + (value - self.x_from) / span * (self.right - LEFT)

    def y(self, value: float) -> float:
        """Where a value is from the top."""
        room = self.height - TOP - BOTTOM
        return TOP + room - (min(value, self.highest) / (self.highest or 1.0)) * room


class Box(NamedTuple):
    """Something that lasts, in a lane."""

    start: float
    end: float
    style: str
    told: str
    goes_to: str = ""
    """The element that tells more."""


class Lane(NamedTuple):
    """Boxes beside one another."""

    name: str
    boxes: Sequence[Box]


class Label(NamedTuple):
    """What a bar stands for."""

    text: str
    goes_to: str = ""
    """The element that tells more."""


class Part(NamedTuple):
    """One part of all bars, or one line."""

    name: str
    style: str
    """Its class: `s1` to `s6`."""
    values: Sequence[float]
    is_dashed: bool = False


_LEAST = 1e-300
"""What is less cannot be divided any more."""


def ticks(highest: float, most: int = 5) -> list[float]:
    """Round numbers from 0 up to what is highest."""
    if not _LEAST < highest < math.inf:
        return [0.0]
    raw = highest / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    return [step * number for number in range(int(highest / step + 1e-9) + 1)]


def bins(count: int, most: int = BARS) -> list[range]:
    """The numbers from 0 to `count` in at most so many equal groups."""
    size = max(1, math.ceil(count / most))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def short(value: float) -> str:
    """A number in few characters: `1.2k`, `35M`."""
    for size, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"


def svg(title: str, text: str, frame: Frame, body: Iterable[str]) -> str:
    """A whole drawing. `text` says in words what is to be seen."""
    return (
        f'<svg class="chart" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape(f"{title}: {text}")}"><title>{escape(title)}</title>{"".join(body)}</svg>'
    )


def bars(title: str, text: str, parts: Sequence[Part], frame: Frame, labels: Sequence[Label], say: Say = short) -> str:
    """Stacked bars, one for each label; the label is told where somebody points at the bar."""
    room = (frame.right - LEFT) / max(1, len(labels))
    width = max(0.75, min(40.0, room - min(2.0, room * 0.2)))
    body = [_axes(frame, say)]
    for at, (name, goes_to) in enumerate(labels):
        left, below, pieces = LEFT + room * at + (room - width) / 2, 0.0, []
        there = [part for part in parts if part.values[at] > 0]
        for part in there:
            top, bottom = frame.y(below + part.values[at]), frame.y(below)
            pieces.append(_rect(part.style, left, top, width, max(0.5, bottom - top)))
            below += part.values[at]
        told = ", ".join(f"{part.name} {say(part.values[at])}" for part in there)
        if there:
            body.append(_group(f"{name}: {told}", goes_to, "".join(pieces)))
    return svg(title, text, frame, body)


def lines(title: str, text: str, parts: Sequence[Part], frame: Frame, say: Say = short) -> str:
    """Lines over steps from `frame.x_from` on, each over those before it."""
    return svg(title, text, frame, [_axes(frame, say), *(_line(part, frame) for part in parts)])


def lanes(title: str, text: str, rows: Sequence[Lane], frame: Frame) -> str:
    """Lanes under one another, each of the same height."""
    room = (frame.height - TOP - BOTTOM) / max(1, len(rows))
    body = [_below(frame)]
    for number, lane in enumerate(rows):
        top = TOP + room * number
        body.append(_rect("lane", LEFT, top + 1, frame.right - LEFT, room - 2))
        body.append(label(LEFT - 8, top + room / 2 + 4, lane.name, "end"))
        for box in lane.boxes:
            left, right = frame.x(box.start), frame.x(box.end)
            piece = _rect(box.style, left, top + 3, max(1.0, right - left), room - 6)
            body.append(_group(box.told, box.goes_to, piece))
    return svg(title, text, frame, body)


def _group(told: str, goes_to: str, pieces: str) -> str:
    """Something that says what it is where somebody points at it, and leads to more."""
    goes = f' data-go="{escape(goes_to)}"' if goes_to else ""
    return f"<g{goes}><title>{escape(told)}</title>{pieces}</g>"


def _line(part: Part, frame: Frame) -> str:
    count = len(part.values)
    chosen = sorted({0, *(group[-1] for group in bins(count, 240))}) if count else []
    if len(chosen) == 1:
        x, y = frame.x(frame.x_from), frame.y(part.values[0])
        return f'<circle class="dot {part.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    points = " ".join(f"{frame.x(frame.x_from + at):.1f},{frame.y(part.values[at]):.1f}" for at in chosen)
    return f'<polyline class="line {part.style}{" dashed" * part.is_dashed}" points="{points}"/>'


def _rect(style: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}"/>'


def _axes(frame: Frame, say: Say) -> str:
    """Lines across with their values, and what stands below."""
    rows = [_below(frame)]
    for value in ticks(frame.highest, 4):
        y = frame.y(value)
        style = "grid" if value else "axis"
        rows.append(f'<line class="{style}" x1="{LEFT}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        rows.append(label(LEFT - 8, y + 4, say(value), "end"))
    return "".join(rows)


def _below(frame: Frame) -> str:
    y = frame.height - BOTTOM + 20
    placed = [(frame.x(at), text) for at, text in frame.marks]
    return "".join(
        label(min(x, frame.right), y, text, "end" if x > frame.right - 24 else "middle") for x, text in placed
    )


def label(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """A word on the drawing."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
