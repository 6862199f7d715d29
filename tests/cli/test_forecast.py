"""`tenlines forecast`, and the drawing of lines in plain characters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenlines.cli.plot import MARKS, lines, short
from tenlines.core.forecasts import forecast, total_input
from tenlines.core.limits import Price

Tenlines = Callable[..., Any]

RUN = ("forecast", "--prompt", "2000", "--per-step", "1000", "--steps", "20")
PRICE = ("--price", "3/15/0.3/3.75")
USUAL = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


def table(out: str) -> dict[str, list[str]]:
    """The rows of numbers by their names."""
    rows = [line for line in out.splitlines() if line.startswith(("without a cache", "with a c"))]
    return {" ".join(line.split("  ")[0].split()): line.split("  ", 1)[1].split() for line in rows}


# --- what it says ---------------------------------------------------------------------------------------


def test_tokens_and_dollars_are_told_with_and_without_a_cache_and_with_a_cut(tenlines: Tenlines) -> None:
    done = tenlines(*RUN, *PRICE)
    assert (done.code, done.err) == (0, "")
    told = forecast(2_000, 1_000, 20, USUAL)
    saved = told.with_cut[-1].total_dollars
    assert table(done.out) == {
        "without a cache": ["230,000", "0", "0", "$0.6900"],
        "with a cache": ["230,000", "209,000", "0", f"${told.with_cache[-1].total_dollars:.4f}"],
        f"with a cut after step {told.best}": ["149,000", "127,000", "0", f"${saved:.4f}"],
    }
    assert (
        f"pays in runs of {told.break_even} steps or more: here best after step {told.best}, where it saves" in done.out
    )


def test_a_run_that_is_too_short_for_a_cut_says_when_one_would_pay(tenlines: Tenlines) -> None:
    done = tenlines("forecast", "--prompt", "2000", "--per-step", "1000", "--steps", "4", "--summary", "500", *PRICE)
    assert "a summary of 500 tokens pays in runs of" in done.out
    assert "not in this one" in done.out
    assert len(table(done.out)) == 2


def test_a_cut_that_never_pays_is_said_to(tenlines: Tenlines) -> None:
    done = tenlines("forecast", "--prompt", "2000", "--per-step", "0", "--steps", "4", "--keep", "1", *PRICE)
    assert "A cut that leaves the newest 1 step pays in no run of up to 1,000 steps." in done.out


def test_a_model_is_enough_where_its_price_is_known(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = tenlines(*RUN, "--model", "anthropic:claude-sonnet-4-5")
    assert "$3 in, $15 out, $0.3 from the cache, $3.75 into it" in stated.out
    assert "anthropic/claude-sonnet-4-5" in stated.out
    assert table(stated.out) == table(tenlines(*RUN, *PRICE).out)
    monkeypatch.setenv("TENLINES_MODEL", "anthropic:claude-sonnet-4-5")
    assert table(tenlines(*RUN).out) == table(stated.out)


def test_a_file_of_prices_is_read(tenlines: Tenlines, home: Path) -> None:
    (home / "prices.toml").write_text('["mine:x"]\ninput = 1\noutput = 2\n')
    done = tenlines(*RUN, "--model", "mine:x", "--prices", "prices.toml")
    assert "$1 in, $2 out" in done.out
    assert table(done.out)["without a cache"] == ["230,000", "0", "0", "$0.2300"]


@pytest.mark.parametrize(
    ("words", "says"),
    [((), "name a --model"), (("--model", "ollama:x"), "does not list ollama:x")],
    ids=["none", "unknown"],
)
def test_an_unknown_price_is_said_and_tokens_are_shown(tenlines: Tenlines, words: tuple[str, ...], says: str) -> None:
    done = tenlines(*RUN, *words)
    assert done.code == 0
    assert "the price is not known: " in done.out
    assert says in done.out
    assert "by typical prices" in done.out
    assert "$" not in done.out
    assert table(done.out)["with a cache"] == ["230,000", "209,000", "0"]


def test_where_nothing_costs_anything_no_cut_is_praised(tenlines: Tenlines) -> None:
    done = tenlines(*RUN, "--model", "local")
    assert "It costs nothing, so a cut saves nothing." in done.out


def test_the_drawing_fits_eighty_columns_and_needs_no_colour(tenlines: Tenlines) -> None:
    done = tenlines(*RUN, *PRICE)
    drawing = done.out[done.out.index("Input tokens") :]
    assert drawing.isascii()
    assert max(map(len, drawing.splitlines())) <= 80
    assert "* with a cut after step" in drawing
    assert "o nothing cut: the square" in drawing
    assert ". the prompt alone: a straight line" in drawing


# --- JSON -----------------------------------------------------------------------------------------------


def test_json_is_one_object_with_all_numbers(tenlines: Tenlines) -> None:
    words = ("--steps", "40", "--output-per-step", "300", "--keep", "3", "--summary", "400", "--json")
    done = tenlines(*RUN, *PRICE, *words)
    told = json.loads(done.out)
    asked = ["prompt", "per_step", "steps", "output_per_step", "keep", "summary", "question", "price", "price_source"]
    assert list(told) == [*asked, "without_cache", "with_cache", "with_cut", "cuts", "best", "break_even"]
    assert [told[name] for name in asked[:6]] == [2_000, 1_000, 40, 300, 3, 400]
    assert told["price"]["cache_write"] == 3.75
    assert [row["total_input"] for row in told["with_cache"]] == [total_input(2_000, 1_000, n) for n in range(1, 41)]
    assert sum(row["is_summary"] for row in told["with_cut"]) == 1
    assert min(told["cuts"], key=lambda cut: cut["dollars"])["after"] == told["best"]
    assert told["question"] > 0


def test_json_without_a_price_has_no_dollars(tenlines: Tenlines) -> None:
    told = json.loads(tenlines(*RUN, "--json").out)
    assert told["price"] is None
    assert told["with_cache"][-1]["total_dollars"] is None
    assert told["with_cache"][-1]["total_input"] == 230_000


# --- mistakes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (RUN[:-2], "--steps"),
        ((*RUN[:-1], "0"), "--steps"),
        ((*RUN[:-1], "10001"), "--steps"),
        ((*RUN, "--prompt", "-1"), "--prompt"),
        ((*RUN, "--per-step", "many"), "--per-step"),
        ((*RUN, "--price", "cheap"), "--price must be IN/OUT"),
        ((*RUN, "--price", "1/2/3/4/5"), "--price must be IN/OUT"),
        ((*RUN, "--model", "x", "--prices", "none.toml"), "--prices none.toml: there is no such file"),
    ],
    ids=str,
)
def test_a_mistake_is_one_message_and_2(tenlines: Tenlines, words: tuple[str, ...], says: str) -> None:
    done = tenlines(*words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err


# --- the drawing ----------------------------------------------------------------------------------------


def test_a_line_goes_from_the_lower_left_to_the_upper_right() -> None:
    assert lines({"it": [0, 1, 2, 3, 4]}, 12, 5, across="") == "\n".join(
        ["4 |       **", "  |     **", "2 |   **", "  | **", "0 |*", "  +---------", "   1       5", "  * it"]
    )


def test_where_lines_meet_the_first_is_seen() -> None:
    drawn = lines({"above": [1, 1, 1], "below": [1, 1, 0]}, 40, 5)
    assert drawn.splitlines()[0].endswith("*" * 30)
    assert "o" in drawn.splitlines()[2]


def test_a_shorter_line_ends_where_its_numbers_end() -> None:
    rows = lines({"long": [2, 2, 2, 2, 2], "short": [1, 1, 1]}, 44, 5).splitlines()
    assert rows[2].count("o") == pytest.approx(rows[0].count("*") / 2, abs=1)


@pytest.mark.parametrize("width", [20, 40, 80, 120])
@pytest.mark.parametrize("names", [1, 3, 8])
def test_no_row_is_wider_than_asked_for(width: int, names: int) -> None:
    series = {f"series {n}": [1000.0 * n * step * step for step in range(1, 30)] for n in range(names)}
    rows = lines(series, width, 9).splitlines()
    assert max(map(len, rows)) <= width
    assert {mark for mark in MARKS[:names] if f"{mark} series" in "\n".join(rows)} == set(MARKS[:names])


@pytest.mark.parametrize(
    "series",
    [{}, {"empty": []}, {"one": [5.0]}, {"zeros": [0, 0]}, {"tiny": [1e-9, 2e-9]}, {"huge": [1e15, 2e15]}],
    ids=str,
)
def test_anything_can_be_drawn(series: dict[str, list[float]]) -> None:
    drawn = lines(series, 60, 8)
    assert bool(drawn) == any(series.values())


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (950, "950"), (230_000, "230k"), (1_500_000, "1.5M"), (0.25, "0.25"), (2e9, "2G")]
)
def test_numbers_at_the_side_are_short(number: float, text: str) -> None:
    assert short(number) == text
