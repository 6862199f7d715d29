"""The drawings of one run: when what was under way, what each step held and cost, and the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tenlines.report import svg
from tenlines.report.lanes import goes_to, timeline
from tenlines.report.model import RunView, Series
from tenlines.report.svg import Frame, Label, Part
from tenlines.trace import words


class Legend(NamedTuple):
    """What a colour stands for."""

    style: str
    name: str
    is_dashed: bool = False


class Chart(NamedTuple):
    """A drawing, what its colours mean, and its numbers."""

    id: str
    title: str
    note: str
    drawing: str
    """SVG."""
    legend: Sequence[Legend]
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    links: Sequence[str] = ()
    """Of each row: the element that tells more."""
    is_wide: bool = False


def charts_of(view: RunView) -> list[Chart]:
    """All drawings for which there are numbers."""
    before = f"{view.head.key}-" if view.head.key else ""
    return [chart._replace(id=f"{before}{chart.id}") for chart in _charts(view.series, before)]


def _charts(series: Series, before: str) -> Iterable[Chart]:
    if series.spans:
        yield _timeline(series, before)
    inputs = [point.input or 0 for point in series.points]
    if any(inputs):
        yield _tokens(series, before)
        yield _sums(series)
    if any(point.dollars for point in series.points):
        yield _dollars(series, before)
    known = _known(series.costs)
    if any(known):
        yield _costs(series, known)


# --- the time line ----------------------------------------------------------------------------------------


def _timeline(series: Series, before: str) -> Chart:
    drawn = timeline(series.spans, before)
    longest = sorted(series.spans, key=lambda span: span.start - span.end)[:_LISTED]
    rows = [
        (span.place, span.name, words.duration(span.start), words.duration(span.end - span.start)) for span in longest
    ]
    links = [goes_to(span, before) for span in longest]
    legend = [Legend("model", "the model"), Legend("good", "call"), Legend("bad", "call that did not come back ok")]
    note = "Calls that ran side by side have lanes of their own." + drawn.note
    headings = ("place", "what", "began after", "took")
    return Chart("chart-time", "Time line", note, drawn.drawing, legend, headings, rows, links, is_wide=True)


_LISTED = 20

# --- steps ------------------------------------------------------------------------------------------------


def _tokens(series: Series, before: str) -> Chart:
    groups = svg.bins(len(series.points))
    cached = _means(groups, [min(one.cached or 0, one.input or 0) for one in series.points])
    new = _means(groups, [(one.input or 0) - min(one.cached or 0, one.input or 0) for one in series.points])
    output = _means(groups, [one.output or 0 for one in series.points])
    parts = [Part("cached", "s2", cached), Part("new", "s1", new), Part("out", "s3", output)]
    highest = max(map(sum, zip(cached, new, output, strict=True)))
    labels = _labels(series, groups, before)
    taken, share = sum(one.input or 0 for one in series.points), sum(one.cached or 0 for one in series.points)
    text = f"{taken:,} tokens of input over {words.count(len(series.points), 'step')}, {share:,} of them cached"
    frame = Frame(highest, 0, len(groups), _bar_marks(series, groups))
    return Chart(
        "chart-tokens",
        "Tokens of each step",
        _binned(groups),
        svg.bars("Tokens of each step", text, parts, frame, labels),
        [Legend("s2", "in, cached"), Legend("s1", "in, not cached"), Legend("s3", "out")],
        ("step", "in, cached", "in, not cached", "out"),
        _rows(labels, (cached, new, output), "{:,.0f}".format),
        [label.goes_to for label in labels],
    )


def _dollars(series: Series, before: str) -> Chart:
    groups = svg.bins(len(series.points))
    spent = _means(groups, [one.dollars or 0.0 for one in series.points])
    labels = _labels(series, groups, before)
    all_of_it = words.money(sum(one.dollars or 0.0 for one in series.points))
    text = f"{all_of_it} over {words.count(len(series.points), 'step')}"
    frame = Frame(max(spent), 0, len(groups), _bar_marks(series, groups))
    return Chart(
        "chart-dollars",
        "Dollars of each step",
        _binned(groups),
        svg.bars("Dollars of each step", text, [Part("dollars", "s4", spent)], frame, labels, dollars),
        (),
        ("step", "dollars"),
        _rows(labels, (spent,), words.money),
        [label.goes_to for label in labels],
    )


# --- sums -------------------------------------------------------------------------------------------------


def _sums(series: Series) -> Chart:
    parts = [Part("this run", "s1", series.sums)]
    if len(series.closed) > 1:
        parts.append(Part("nothing cut: the square", "s5", series.closed, is_dashed=True))
        parts.append(Part("the prompt alone: a straight line", "s6", series.linear, is_dashed=True))
    text = f"{series.sums[-1]:,.0f} tokens together"
    if len(series.closed) > 1:
        text += f"; the square would be {series.closed[-1]:,.0f}, a straight line {series.linear[-1]:,.0f}"
    note = "The square: each step adds as much as these did on average. The line: each request holds the prompt alone."
    return _growth("chart-sums", "Input tokens, all requests together", note, text, parts, "{:,.0f}".format)


def _costs(series: Series, known: Sequence[float]) -> Chart:
    is_cut = len(known) < len(series.costs)
    note = "Until the first request of which nobody knows the price." if is_cut else ""
    title, parts = "Dollars, all requests together", [Part("dollars", "s4", known)]
    return _growth("chart-costs", title, note, f"{words.money(known[-1])} together", parts, words.money)


def _growth(id: str, title: str, note: str, text: str, parts: list[Part], say: Callable[[float], str]) -> Chart:
    """Lines over the steps."""
    count = len(parts[0].values)
    highest = max(max(part.values, default=0.0) for part in parts)
    frame = Frame(highest, 1, max(2, count), _line_marks(count))
    shown = sorted({group[-1] for group in svg.bins(count, _LISTED)})
    rows = [(f"{at + 1:,}", *(say(part.values[at]) if at < len(part.values) else "" for part in parts)) for at in shown]
    legend = [Legend(part.style, part.name, part.is_dashed) for part in parts] if len(parts) > 1 else []
    drawing = svg.lines(title, text, parts, frame, dollars if say is words.money else svg.short)
    return Chart(id, title, note, drawing, legend, ("step", *(part.name for part in parts)), rows)


# --- pieces -----------------------------------------------------------------------------------------------


def dollars(amount: float) -> str:
    """Dollars beside an axis."""
    return f"${amount:.3g}" if amount < 1000 else f"${svg.short(amount)}"


def _known(costs: Sequence[float | None]) -> list[float]:
    """The sums before the first that is not known."""
    known: list[float] = []
    for one in costs:
        if one is None:
            break
        known.append(one)
    return known


def _means(groups: Sequence[range], values: Sequence[float]) -> list[float]:
    return [sum(values[at] for at in group) / len(group) for group in groups]


def _labels(series: Series, groups: Sequence[range], before: str) -> list[Label]:
    named = [(series.points[group[0]].step, series.points[group[-1]].step) for group in groups]
    return [
        Label(f"step {first:,}" if first == last else f"steps {first:,} to {last:,}", f"{before}step-{first}")
        for first, last in named
    ]


def _bar_marks(series: Series, groups: Sequence[range]) -> list[tuple[float, str]]:
    """A few steps, below the middle of their bars."""
    every = max(1, round(len(groups) / 6))
    return [(at + 0.5, f"{series.points[groups[at][0]].step:,}") for at in range(0, len(groups), every)]


def _line_marks(count: int) -> list[tuple[float, str]]:
    if count <= 1:
        return [(1, "1")]
    chosen = [round(value) for value in svg.ticks(count, 6) if value == round(value) and value >= 1]
    return [(value, f"{value:,}") for value in ([1, *chosen] if chosen and chosen[0] > count / 8 else chosen)]


def _binned(groups: Sequence[range]) -> str:
    size = len(groups[0]) if groups else 1
    return f"Each bar is the mean of {size} steps." if size > 1 else ""


def _rows(
    labels: Sequence[Label], columns: Sequence[Sequence[float]], say: Callable[[float], str]
) -> list[tuple[str, ...]]:
    return [(label.text, *(say(column[at]) for column in columns)) for at, label in enumerate(labels)]
