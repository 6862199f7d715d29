"""Drawings: scales, ticks, bins, and that they are well-formed whatever is drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hostile_logs import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from tenlines.report import svg
from tenlines.report.svg import Box, Frame, Label, Lane, Part
from tenlines.trace.text import clean

NUMBERS = st.floats(0, 1e12)


@given(st.floats(1e-9, 1e15), st.integers(1, 10))
def test_ticks_are_round_and_go_up_to_what_is_highest(highest: float, most: int) -> None:
    ticks = svg.ticks(highest, most)
    assert ticks[0] == 0
    assert len(ticks) <= most + 1
    assert ticks[-1] <= highest * (1 + 1e-6)
    if len(ticks) > 1:
        assert highest - ticks[-1] < ticks[1] * (1 + 1e-6), "no tick is missing at the top"
        digits = f"{ticks[1]:.6e}".split("e")[0].rstrip("0").rstrip(".")
        assert digits in ("1", "2", "2.5", "5"), "a person can count in them"


@given(st.integers(0, 5_000), st.integers(1, 300))
def test_bins_hold_everything_once_and_are_few(count: int, most: int) -> None:
    groups = svg.bins(count, most)
    assert [at for group in groups for at in group] == list(range(count))
    assert len(groups) <= most


def test_nothing_and_no_number_have_one_tick() -> None:
    assert svg.ticks(0) == svg.ticks(float("inf")) == svg.ticks(float("nan")) == [0.0]


def test_numbers_are_short() -> None:
    said = [svg.short(value) for value in (0, 7, 999, 1_000, 12_345, 35e6, 2e9, 1e12, 0.25)]
    assert said == ["0", "7", "999", "1k", "12.3k", "35M", "2B", "1T", "0.25"]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=200), st.sampled_from(TEXTS))
def test_bars_are_inside_the_drawing(values: list[tuple[float, float]], text: str) -> None:
    parts = [Part(clean(text), "s1", [one for one, _ in values]), Part("b", "s2", [two for _, two in values])]
    frame = Frame(max(map(sum, values)), 0, len(values), [(0.5, clean(text))])
    drawing = svg.bars(clean(text), clean(text), parts, frame, [Label(clean(text))] * len(values))
    for rect in ET.fromstring(drawing).iter("rect"):
        left, top, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert left >= svg.LEFT - 0.1
        assert left + width <= frame.width - svg.RIGHT + 0.1
        assert top >= svg.TOP - 0.6
        assert top + height <= frame.height - svg.BOTTOM + 0.6


@given(st.lists(NUMBERS, min_size=1, max_size=3_000))
def test_lines_have_few_points_and_keep_the_first_and_the_last(values: list[float]) -> None:
    frame = Frame(max(values), 1, max(2, len(values)))
    root = ET.fromstring(svg.lines("t", "x", [Part("a", "s1", values)], frame))
    points = [point for line in root.iter("polyline") for point in line.attrib["points"].split()]
    if len(values) == 1:
        assert len(list(root.iter("circle"))) == 1
        return
    assert 2 <= len(points) <= 241
    assert points[0].startswith(f"{frame.x(1):.1f},")
    assert points[-1].startswith(f"{frame.x(len(values)):.1f},")


def test_a_drawing_says_in_words_what_is_to_be_seen() -> None:
    text = "<b>\"quoted\"</b> & 'more'"
    lane = Lane(text, [Box(0, 1, "good", text, "call-1-1")])
    root = ET.fromstring(svg.lanes(text, text, [lane], Frame(1, 0, 1)))
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", f"{text}: {text}")
    assert [one.text for one in root.iter("title")] == [text, text]
    assert [group.attrib["data-go"] for group in root.iter("g")] == ["call-1-1"]
