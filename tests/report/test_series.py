"""The numbers that are drawn."""

from __future__ import annotations

import pytest
from costly_runs import CostlyRun
from hypothesis import given
from hypothesis import strategies as st
from shops import as_read, shop

from tenlines.core.economics import total_input
from tenlines.core.ledger import ledger_of
from tenlines.report.reading import read_run


def test_the_sums_stand_beside_the_line_and_the_square() -> None:
    series = read_run(shop(50)).series
    assert series.sums[-1] == total_input(1_800, 640, 50)
    assert series.closed == series.sums, "each step adds the same"
    assert series.linear[-1] == 50 * 1_800
    assert len(series.sums) == len(series.closed) == len(series.linear) == len(series.costs) == 50


def test_costs_add_up_to_what_the_run_cost() -> None:
    view = read_run(shop(20))
    assert view.series.costs[-1] == pytest.approx(view.head.dollars)


@pytest.mark.slow
@given(st.integers(0, 10_000))
def test_costs_and_inputs_end_where_the_ledger_does(seed: int) -> None:
    log = as_read(CostlyRun(seed, 40).log)
    series, ledger = read_run(log).series, ledger_of(log)
    assert len(series.sums) == len(series.costs) == len(ledger.steps)
    if (
        series.costs
        and series.costs[-1] is not None
        and not ledger.own.unpriced
        and ledger.requests == list(ledger.steps)
    ):
        assert series.costs[-1] == pytest.approx(ledger.own.dollars)
    for span in series.spans:
        assert 0 <= span.start <= span.end


def test_calls_that_ran_at_once_overlap() -> None:
    spans = {one.place: one for one in read_run(shop(5)).series.spans if one.kind == "call"}
    assert spans["4.1"].end > spans["4.2"].start
