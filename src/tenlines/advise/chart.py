"""The flowchart of a workflow: boxes from top to bottom, side by side where the paths part."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from tenlines.advise.findings import percent
from tenlines.advise.workflow import Stage, Way, Workflow
from tenlines.trace.text import one_line

WIDTH = 78
"""Columns that the drawing takes at most, so that it fits a terminal of 80."""
WIDEST, NARROWEST, GAP = 44, 18, 2
"""Of a box, and the blanks between two."""


class Box(NamedTuple):
    """A stage, or one of the ends."""

    title: str
    notes: tuple[str, ...] = ()


class Column(NamedTuple):
    """One of several paths that part and meet again."""

    label: str
    boxes: tuple[Box, ...]


class Chart(NamedTuple):
    """What all paths have in common at the beginning, where they differ, and what they have in common at the end."""

    before: tuple[Box, ...]
    columns: tuple[Column, ...]
    """None where there is one path."""
    after: tuple[Box, ...]


def chart_of(flow: Workflow) -> Chart:
    """Arrange a workflow."""
    boxes = [_boxes(way) for way in flow.ways]
    task, answer = Box("the task"), Box("the answer", ("one model call",))
    if len(boxes) == 1:
        return Chart((task, *boxes[0], answer), (), ())
    start, end = ends([[stage.tools for stage in way.stages] for way in flow.ways])
    columns = tuple(
        Column(percent(way.runs, flow.covered), tuple(one[start : len(one) - end]))
        for way, one in zip(flow.ways, boxes, strict=True)
    )
    after = boxes[0][len(boxes[0]) - end :]
    return Chart((task, *boxes[0][:start]), columns, (*after, answer))


def ends(paths: Sequence[Sequence[object]]) -> tuple[int, int]:
    """How many stages all of several paths have in common, at the beginning and at the end."""
    shortest = min(map(len, paths))
    start = next((n for n in range(shortest) if len({repr(path[n]) for path in paths}) > 1), shortest)
    room = shortest - start
    end = next((n for n in range(room) if len({repr(path[-1 - n]) for path in paths}) > 1), room)
    return start, end


def _boxes(way: Way) -> list[Box]:
    return [_box(place, stage, way) for place, stage in enumerate(way.stages)]


def _box(place: int, stage: Stage, way: Way) -> Box:
    """A stage: its tools, how often they are called, where their arguments come from."""
    notes = []
    if stage.is_loop:
        times = f"{stage.fewest}" if stage.fewest == stage.most else f"{stage.fewest} to {stage.most}"
        notes.append(f"{times} calls")
    for argument in stage.arguments:
        owner = f"{argument.tool}." if len(stage.tools) > 1 else ""
        said = f"always {one_line(repr(argument.value), 24)}" if argument.source == "constant" else argument.words
        notes.append(f"{one_line(owner + argument.name, 30)}: {said}")
    for first, last in way.loops:
        if last == place:
            notes.append(f"in some runs again from stage {first + 1}")
    return Box(f"{place + 1}. {one_line(' + '.join(stage.tools), WIDEST - 8)}", tuple(notes))


# --- as text --------------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """What the drawing is made of."""

    across: str
    down: str
    corners: str
    """Top left, top right, bottom left, bottom right."""
    tees: str
    """Down from a line, up from a line, both."""
    arrow: str


UNICODE = Lines("─", "│", "┌┐└┘", "┬┴┼", "▼")
ASCII = Lines("-", "|", "++++", "+++", "v")


def text_of(chart: Chart, lines: Lines = UNICODE) -> str:
    """The drawing in characters, at most 78 columns wide."""
    width = box_width(chart)
    many = max(1, len(chart.columns))
    whole = many * width + (many - 1) * GAP
    alone = min(WIDEST, whole)
    if not chart.columns:
        return _joined(_stack([*chart.before, *chart.after], alone, lines))
    centres, trunk = [place * (width + GAP) + width // 2 for place in range(many)], whole // 2
    before, after = (_centred(_stack(boxes, alone, lines), whole) for boxes in (chart.before, chart.after))
    fork = [_at({trunk: lines.down}, whole), _beam(centres, trunk, whole, lines, is_fork=True)]
    meet = [_beam(centres, trunk, whole, lines, is_fork=False), _at({trunk: lines.arrow}, whole)]
    return _joined([*before, *fork, *_side_by_side(chart.columns, width, lines), *meet, *after])


def _joined(rows: Sequence[str]) -> str:
    return "\n".join(row.rstrip() for row in rows)


def box_width(chart: Chart) -> int:
    """Of the boxes that stand side by side, or of all where there is one path."""
    many = max(1, len(chart.columns))
    every = [*chart.before, *chart.after, *(box for column in chart.columns for box in column.boxes)]
    longest = max(cells(one_line(text)) for box in every for text in (box.title, *box.notes)) + 4
    room = (WIDTH - GAP * (many - 1)) // many
    return max(NARROWEST, min(WIDEST, longest, room))


def cells(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else 0 if unicodedata.combining(one) else 1 for one in text
    )


def wrapped(box: Box, width: int) -> list[str]:
    """The lines of a box, harmless, none of them wider."""
    return [line for text in (box.title, *box.notes) for line in _wrap(one_line(text), width)]


def _wrap(text: str, width: int) -> list[str]:
    """Broken at blanks, and inside a word that is too long."""
    lines = [""]
    for word in text.split():
        if lines[-1] and cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
            continue
        if lines[-1]:
            lines.append("")
        for sign in word:
            if cells(lines[-1]) + cells(sign) > width:
                lines.append("")
            lines[-1] += sign
    return lines


def _centred(rows: Sequence[str], whole: int) -> list[str]:
    left = (whole - max(map(cells, rows), default=0)) // 2
    return [" " * left + row for row in rows]


def _stack(boxes: Sequence[Box], width: int, lines: Lines) -> list[str]:
    rows = list[str]()
    for box in boxes:
        if rows:
            rows += [_at({width // 2: lines.arrow}, width)]
        rows += _drawn(box, width, lines)
    return rows


def _drawn(box: Box, width: int, lines: Lines) -> list[str]:
    corners = lines.corners
    inside = [f"{lines.down} {line}{' ' * (width - 4 - cells(line))} {lines.down}" for line in wrapped(box, width - 4)]
    top = corners[0] + lines.across * (width - 2) + corners[1]
    return [top, *inside, corners[2] + lines.across * (width - 2) + corners[3]]


def _side_by_side(columns: Sequence[Column], width: int, lines: Lines) -> list[str]:
    drawn = [[column.label.center(width), *_stack(column.boxes, width, lines)] for column in columns]
    tallest, line = max(map(len, drawn)), _at({width // 2: lines.down}, width)
    padded = [rows + [line] * (tallest - len(rows)) for rows in drawn]
    return [(" " * GAP).join(_filled(piece, width) for piece in row) for row in zip(*padded, strict=True)]


def _filled(row: str, width: int) -> str:
    return row + " " * (width - cells(row))


def _at(signs: dict[int, str], width: int) -> str:
    return "".join(signs.get(place, " ") for place in range(width))


def _beam(centres: Sequence[int], trunk: int, whole: int, lines: Lines, *, is_fork: bool) -> str:
    """The line at which paths part, or meet again."""
    first, last = centres[0], centres[-1]
    towards, back = (lines.tees[0], lines.tees[1]) if is_fork else (lines.tees[1], lines.tees[0])
    row = {place: lines.across for place in range(first, last + 1)}
    row |= dict.fromkeys(centres[1:-1], towards)
    ends_ = lines.corners[:2] if is_fork else lines.corners[2:]
    row |= {first: ends_[0], last: ends_[1]}
    row[trunk] = lines.tees[2] if trunk in centres else back
    return _at(row, whole)
