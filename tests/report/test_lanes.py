"""The time line: lanes, squeezed idle time, few boxes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.report.lanes import MOST_LANES, Scale, laid_out, timeline
from tenlines.report.model import Span


def span(start: float, length: float, kind: str = "call", number: int = 1) -> Span:
    return Span(start, start + length, kind, "good", f"{number}.1", "look")  # type: ignore[arg-type]


SPANS = st.lists(st.builds(span, st.floats(0, 1e5), st.floats(0, 100)), min_size=1, max_size=80)


@given(SPANS)
def test_calls_that_ran_at_once_are_in_lanes_of_their_own(spans: list[Span]) -> None:
    lanes = laid_out(spans)
    assert sorted((one.start, one.end) for lane in lanes for one in lane) == sorted((o.start, o.end) for o in spans)
    for lane in lanes[: MOST_LANES - 1]:
        assert all(before.end <= after.start for before, after in pairwise(lane))
    assert len(lanes) <= MOST_LANES


def test_three_calls_side_by_side_take_three_lanes_and_those_after_them_none() -> None:
    assert [len(lane) for lane in laid_out([span(0, 5), span(1, 5), span(2, 5), span(6, 1), span(7, 1)])] == [3, 1, 1]


@given(SPANS)
def test_the_scale_keeps_the_order_and_makes_nothing_longer(spans: list[Span]) -> None:
    scale = Scale(spans)
    moments = sorted({one.start for one in spans} | {one.end for one in spans})
    placed = [scale.at(moment) for moment in moments]
    for (one, two), (x, y) in zip(pairwise(moments), pairwise(placed), strict=True):
        assert -1e-6 <= y - x <= two - one + 1e-6
    assert placed[-1] <= scale.total + 1e-6


def test_a_night_between_two_days_of_work_is_squeezed_and_said() -> None:
    drawn = timeline([span(0, 60, "model"), span(60, 5), span(43_200, 60, "model", 2)], "")
    assert "Idle time is squeezed: 11 h 58 min after 1 min 05 s." in drawn.note
    assert "squeezed" not in timeline([span(0, 60), span(62, 60)], "").note


@pytest.mark.parametrize("count", [1, 3, 400, 6_000])
def test_a_time_line_has_few_boxes_however_long_the_run(count: int) -> None:
    spans = [span(n * 2.0, 1.5, "model", n) for n in range(count)] + [
        span(n * 2.0 + 1.5, 0.4, number=n) for n in range(count)
    ]
    root = ET.fromstring(timeline(spans, "").drawing)
    assert len(list(root.iter("rect"))) < 2_200
    assert count > 3 or len(list(root.iter("g"))) == 2 * count


def test_a_box_leads_to_its_step_or_call() -> None:
    root = ET.fromstring(timeline([Span(0, 1, "model", "info", "3", "model"), span(2, 1, number=3)], "r2-").drawing)
    assert [group.attrib["data-go"] for group in root.iter("g")] == ["r2-step-3", "r2-call-3-1"]
