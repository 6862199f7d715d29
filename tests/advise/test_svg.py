"""The flowchart as a picture: well-formed, self-contained, and no text is ever markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from test_chart import BOXES, COLUMNS, stage, workflow

from tenlines.advise.chart import Box, Chart, Column, chart_of
from tenlines.advise.svg import svg_of

SVG = "{http://www.w3.org/2000/svg}"


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.get(name, "nan")) for name in names]


def test_it_has_a_name_a_description_and_a_box_for_each_stage() -> None:
    flow = workflow((30, (stage("search"), stage("read"), stage("send"))), (10, (stage("search"), stage("send"))))
    root = ElementTree.fromstring(svg_of(chart_of(flow), "What it does", "30 of 40"))
    assert (root.get("role"), root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")) == (
        "img",
        "What it does",
        "30 of 40",
    )
    assert len(root.findall(f"{SVG}rect[@class='box']")) == 5
    assert {"75%", "25%", "1. search", "the task"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_it_asks_for_nothing_and_is_light_and_dark() -> None:
    drawn = svg_of(chart_of(workflow((40, (stage("a"), stage("b"))))), "t", "d")
    assert "prefers-color-scheme: dark" in drawn
    assert re.findall(r"https?://[^\"' ]+|url\(|@import|<script|href", drawn) == ["http://www.w3.org/2000/svg"]


@given(BOXES, COLUMNS, BOXES)
def test_whatever_the_words_are_it_is_well_formed_and_everything_is_inside(
    before: tuple[Box, ...], columns: tuple[Column, ...], after: tuple[Box, ...]
) -> None:
    drawn = svg_of(Chart(before, columns, after), "<script>alert(1)</script>", "\x00\ud800\ufffe&")
    root = ElementTree.fromstring(drawn)
    assert root.find(f"{SVG}script") is None
    width, height = numbers(root, "width", "height")
    for box in root.findall(f"{SVG}rect[@class='box']"):
        x, y, wide, high = numbers(box, "x", "y", "width", "height")
        assert 0 <= x < x + wide <= width
        assert 0 <= y < y + high <= height
    for path in root.findall(f"{SVG}path"):
        places = [float(one) for one in re.findall(r"-?[\d.]+", path.get("d", ""))]
        assert all(0 <= x <= width + 1 for x in places[::2])
        assert all(0 <= y <= height + 1 for y in places[1::2])
