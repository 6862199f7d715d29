"""The flowchart as a picture: one SVG file that needs nothing beside it, in light and dark, with its words as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from tenlines.advise.chart import Box, Chart, box_width, wrapped
from tenlines.trace.text import clean

CHAR, LINE, PAD, DROP, MARGIN = 7.4, 17, 10, 26, 16
"""Of the drawing, in pixels: a character, a line of text, the blank in a box, from box to box, around everything."""
LABEL = 18

STYLE = """
.tenlines-flow { --paper: #ffffff; --ink: #1f2328; --soft: #57606a; --edge: #6e7781; --fill: #f6f8fa }
@media (prefers-color-scheme: dark) {
  .tenlines-flow { --paper: #0d1117; --ink: #e6edf3; --soft: #9da7b3; --edge: #7d8590; --fill: #161b22 }
}
.tenlines-flow .paper { fill: var(--paper) }
.tenlines-flow .box { fill: var(--fill); stroke: var(--edge) }
.tenlines-flow .edge { fill: none; stroke: var(--edge) }
.tenlines-flow .tip { fill: var(--edge) }
.tenlines-flow text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: var(--soft) }
.tenlines-flow .title { font-weight: 600; fill: var(--ink) }
"""


class _Placed(NamedTuple):
    """A box with its place; `x` is its middle."""

    lines: list[str]
    titles: int
    x: float
    y: float
    width: float

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 2 * PAD

    @property
    def bottom(self) -> float:
        return self.y + self.height


def svg_of(chart: Chart, title: str, description: str) -> str:
    """The drawing.

    Args:
        title: What it is, in a few words: read out first.
        description: What it shows, for who does not see it.
    """
    columns = box_width(chart)
    width = columns * CHAR + 2 * PAD
    many = max(1, len(chart.columns))
    whole = many * width + (many - 1) * 2 * PAD + 2 * MARGIN
    pen = _Pen(columns - 2, width)
    bottom = pen.stack(chart.before, whole / 2, MARGIN)
    if chart.columns:
        starts = [MARGIN + width / 2 + place * (width + 2 * PAD) for place in range(many)]
        bottom = pen.fork(chart, whole / 2, bottom, starts)
    height = bottom + MARGIN
    body = "\n".join(pen.drawn)
    named = f"<title>{_text(title)}</title>\n<desc>{_text(description)}</desc>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tenlines-flow" role="img" '
        f'viewBox="0 0 {whole:.0f} {height:.0f}" width="{whole:.0f}" height="{height:.0f}">\n'
        f"{named}\n<style>{STYLE}</style>\n"
        f'<rect class="paper" width="100%" height="100%"/>\n{body}\n</svg>\n'
    )


class _Pen:
    def __init__(self, columns: int, width: float) -> None:
        self.columns, self.width = columns, width
        self.drawn: list[str] = []

    def stack(self, boxes: Sequence[Box], x: float, y: float) -> float:
        """Boxes below one another; returns where they end."""
        for place, box in enumerate(boxes):
            if place:
                self.arrow([(x, y), (x, y + DROP)])
                y += DROP
            y = self.box(box, x, y)
        return y

    def fork(self, chart: Chart, x: float, y: float, starts: Sequence[float]) -> float:
        """Paths that part below a box and meet above the next; returns where that ends."""
        beam, ends = y + DROP / 2, list[float]()
        for start, column in zip(starts, chart.columns, strict=True):
            top = beam + DROP / 2 + LABEL
            self.text(column.label, start, top - LABEL / 2 + 2, "middle")
            self.line([(x, y), (x, beam), (start, beam), (start, top - LABEL)])
            ends.append(self.stack(column.boxes, start, top))
        meet = max(ends) + DROP / 2
        for start, end in zip(starts, ends, strict=True):
            self.line([(start, end), (start, meet), (x, meet)])
        self.arrow([(x, meet), (x, meet + DROP / 2)])
        return self.stack(chart.after, x, meet + DROP / 2)

    def box(self, box: Box, x: float, y: float) -> float:
        lines, titles = wrapped(box, self.columns), len(wrapped(Box(box.title), self.columns))
        placed = _Placed(lines, titles, x, y, self.width)
        left = x - self.width / 2
        size = f'width="{self.width:.1f}" height="{placed.height:.1f}"'
        self.drawn.append(f'<rect class="box" x="{left:.1f}" y="{y:.1f}" {size} rx="4"/>')
        for number, line in enumerate(lines):
            self.text(line, left + PAD, y + PAD + LINE * number + 12, "start", "title" if number < titles else "")
        return placed.bottom

    def text(self, text: str, x: float, y: float, anchor: str, kind: str = "") -> None:
        named = f' class="{kind}"' if kind else ""
        self.drawn.append(f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(text)}</text>')

    def line(self, points: Sequence[tuple[float, float]]) -> None:
        path = " L ".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.drawn.append(f'<path class="edge" d="M {path}"/>')

    def arrow(self, points: Sequence[tuple[float, float]]) -> None:
        self.line(points)
        x, y = points[-1]
        self.drawn.append(
            f'<path class="tip" d="M {x - 4:.1f} {y - 7:.1f} L {x + 4:.1f} {y - 7:.1f} L {x:.1f} {y:.1f} Z"/>'
        )


def _text(text: str) -> str:
    """Text that is no markup, and that XML can hold."""
    return escape(clean(text).replace("\ufffe", "").replace("\uffff", ""))
