"""Several runs: the table, and how they are distributed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from shops import shop

from tenlines.report.model import Head
from tenlines.report.plots import distributions, pair_of, rows_of
from tenlines.report.reading import read_run

HEAD = read_run(shop(3)).head


def like(**fields: object) -> Head:
    return msgspec.structs.replace(HEAD, **fields)


def test_a_row_is_sorted_by_numbers_and_an_unknown_price_by_nothing() -> None:
    (row,) = rows_of([like(dollars=None, steps=12_345)])
    assert (row.numbers[0].text, row.numbers[0].value) == ("12,345", "12345")
    assert (row.numbers[3].text, row.numbers[3].value) == ("unknown", "")


def test_two_runs_of_the_same_task_are_compared_first() -> None:
    heads = [like(key=f"r{n}", task=task) for n, task in enumerate("abcb")]
    assert pair_of(heads) == ("r3", "r1")
    assert pair_of(heads[:3]) == ("r0", "r1")


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=60), st.sampled_from(["stuck", "open", "budget"]))
def test_every_run_is_in_one_bar(steps: list[int], status: str) -> None:
    heads = [like(steps=n, status="answered" if n % 2 else status, tone="good" if n % 2 else "bad") for n in steps]
    found = [chart for chart in distributions(heads) if chart.id == "runs-steps"]
    if not any(steps):
        assert found == []
        return
    (chart,) = found
    told = [title.text or "" for title in ET.fromstring(chart.drawing).iter("title")][1:]
    assert sum(float(part.rsplit(" ", 1)[1]) for bar in told for part in bar.split(": ", 1)[1].split(", ")) == len(
        steps
    )
    assert sum(int(row[1]) for row in chart.rows) == len(steps)


def test_the_middle_and_the_most_are_told() -> None:
    chart = distributions([like(steps=n) for n in range(1, 101)])[0]
    assert chart.note == "100 runs, half of them up to 50, the most 100."
    assert chart.rows == [("answered", "100", "1", "50", "95", "100")]


def test_what_is_known_of_no_run_is_not_drawn() -> None:
    drawn = [chart.id for chart in distributions([like(dollars=None), like(dollars=None)])]
    assert "runs-dollars" not in drawn
    assert "runs-steps" in drawn


def test_each_status_has_a_colour_of_its_own() -> None:
    heads = [like(status=name, tone="bad") for name in ("stuck", "budget", "refused")] + [like()]
    styles = [legend.style for legend in distributions(heads)[0].legend]
    assert len(set(styles)) == 4
    assert styles[0] == "s4", "green is for answers"
