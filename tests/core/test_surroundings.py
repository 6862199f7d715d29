"""Ids of spans that follow from a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.surroundings import TraceParent, read_traceparent, span_id, trace_id, traceparent

AROUND = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_ids_of_a_run_stay_what_they_are() -> None:
    """Spans that were exported are found again by these; a later version may not change them."""
    assert trace_id("k2v9") == "941df78b4c1799d6e8aa11876a357981"
    assert span_id("k2v9", 3) == "d186073a1c725cbc"
    assert traceparent("k2v9", 3) == f"00-{trace_id('k2v9')}-{span_id('k2v9', 3)}-01"


def test_a_run_is_part_of_the_trace_that_surrounds_it() -> None:
    assert trace_id("k2v9", AROUND) == "0af7651916cd43dd8448eb211c80319c"
    assert traceparent("k2v9", 3, AROUND) == f"00-0af7651916cd43dd8448eb211c80319c-{span_id('k2v9', 3)}-01"


def test_what_is_not_kept_outside_is_not_kept_inside() -> None:
    assert traceparent("k2v9", 3, AROUND[:-2] + "00").endswith("-00")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        AROUND.upper(),
        AROUND[:-1],
        AROUND + "\n",
        " " + AROUND,
        "ff" + AROUND[2:],
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
    ],
)
def test_what_names_no_span_surrounds_nothing(text: str) -> None:
    assert read_traceparent(text) is None
    assert trace_id("k2v9", text) == trace_id("k2v9")


def test_a_later_version_of_the_standard_is_read_as_far_as_it_is_known() -> None:
    later = "cc" + AROUND[2:] + "-more"
    assert read_traceparent(later) == read_traceparent(AROUND)


@given(st.text(), st.integers(0, 10**9), st.text(), st.integers(0, 10**9))
def test_each_event_of_each_run_has_an_id_of_its_own(run: str, seq: int, other: str, later: int) -> None:
    named = read_traceparent(traceparent(run, seq))
    assert named == TraceParent(trace_id(run), span_id(run, seq))
    assert (span_id(run, seq) == span_id(other, later)) == ((run, seq) == (other, later))
