from __future__ import annotations

import msgspec
import pytest

from tenlines.core.forecasts import CutRun, Forecast, OneCut, Row, forecast, total_input
from tenlines.core.limits import Price, Tier
from tenlines.core.transcript import Usage

USUAL = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
TIERED = Price(
    input=3,
    output=15,
    cache_read=0.3,
    tiers=(
        Tier(above=20_000, input=6, output=22, cache_read=0.6),
        Tier(above=40_000, input=9, output=30, cache_read=0.9),
    ),
)
PRICES = [
    USUAL,
    TIERED,
    Price(input=0.25, output=2, cache_read=0.025),
    Price(input=3, output=15),
    Price(input=0, output=0),
]
CUTS = [OneCut(), OneCut(keep=1), OneCut(keep=3, summary=800, question=120), OneCut(keep=0, summary=400)]

# --- tokens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "tokens"), [(1, 2_000), (10, 65_000), (20, 230_000)])
def test_input_grows_with_the_square_of_the_steps(steps: int, tokens: int) -> None:
    assert total_input(2_000, 1_000, steps) == tokens


def test_a_run_whose_tenth_request_holds_18_000_tokens_costs_almost_four_times_as_much_in_twenty_steps() -> None:
    for prompt in (1_000, 2_000):
        per_step = (18_000 - prompt) // 9
        ten, twenty = total_input(prompt, per_step, 10), total_input(prompt, per_step, 20)
        assert 95_000 <= round(ten, -3) <= 100_000
        assert 3.7 < twenty / ten < 4


@pytest.mark.parametrize("prompt", [0, 1, 2_001])
@pytest.mark.parametrize("per_step", [0, 1, 999])
def test_the_closed_form_is_the_sum_of_all_requests(prompt: int, per_step: int) -> None:
    for steps in range(30):
        assert total_input(prompt, per_step, steps) == sum(prompt + per_step * done for done in range(steps))


def test_the_rows_add_up_to_the_closed_form() -> None:
    told = forecast(2_000, 1_000, 20, output=300)
    for rows in (told.without_cache, told.with_cache):
        assert [row.step for row in rows] == list(range(1, 21))
        assert [row.total_input for row in rows] == [total_input(2_000, 1_000, steps) for steps in range(1, 21)]
        assert [row.total_output for row in rows] == [300 * steps for steps in range(1, 21)]


def test_each_request_reads_from_the_cache_what_the_one_before_held() -> None:
    rows = forecast(2_000, 1_000, 5).with_cache
    assert [row.input for row in rows] == [2_000, 3_000, 4_000, 5_000, 6_000]
    assert [row.cached for row in rows] == [0, 2_000, 3_000, 4_000, 5_000]
    assert [row.new for row in rows] == [2_000, 1_000, 1_000, 1_000, 1_000]


def test_without_a_cache_all_input_is_new() -> None:
    rows = forecast(2_000, 1_000, 5).without_cache
    assert [row.cached for row in rows] == [0] * 5
    assert [row.new for row in rows] == [row.input for row in rows]


# --- dollars --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", PRICES, ids=["usual", "tiers", "no charge to write", "no cache", "free"])
def test_each_row_costs_what_the_price_says_of_its_usage(price: Price) -> None:
    told = forecast(2_000, 3_000, 25, price, output=300, cut=OneCut(summary=500, question=50))
    for row in told.without_cache:
        assert row.dollars == price.of(Usage(row.input, row.output))
    for row in (*told.with_cache, *told.with_cut):
        assert row.dollars == price.of(Usage(row.input, row.output, row.cached, row.new))
    for rows in (told.without_cache, told.with_cache, told.with_cut):
        spent = 0.0
        for row in rows:
            assert row.dollars is not None
            spent += row.dollars
            assert row.total_dollars == spent


def test_without_a_price_tokens_are_told_and_dollars_are_not() -> None:
    told = forecast(2_000, 1_000, 20)
    assert told.best is not None
    assert told.with_cut[-1].total_input < told.with_cache[-1].total_input
    assert {row.dollars for row in told.with_cut} == {None}
    assert {run.dollars for run in told.cuts} == {None}
    typical = forecast(2_000, 1_000, 20, Price(input=1, output=5, cache_read=0.1))
    assert (told.best, told.break_even) == (typical.best, typical.break_even)


# --- one cut --------------------------------------------------------------------------------------------


def by_hand(prompt: int, per_step: int, steps: int, after: int, cut: OneCut) -> list[tuple[int, int, int]]:
    """Each request of a run that is cut once, as (input, cached, output), from a transcript that is a list of parts."""
    parts, cache, requests = [prompt], 0, []
    for done in range(steps):
        if done:
            parts.append(per_step)
        if done == after:
            if cut.summary:
                requests.append((sum(parts) + cut.question, cache, cut.summary))
            parts = [prompt, cut.summary, *parts[len(parts) - cut.keep :]]
            cache = prompt
        requests.append((sum(parts), cache, 0))
        cache = sum(parts)
    return requests


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_the_requests_of_a_run_with_a_cut_are_those_of_its_transcript(cut: OneCut) -> None:
    told = forecast(2_000, 1_500, 25, USUAL, cut=cut)
    assert told.best is not None
    expected = by_hand(2_000, 1_500, 25, told.best, cut)
    assert [(row.input, row.cached, row.output) for row in told.with_cut] == expected
    assert [row.step for row in told.with_cut if not row.is_summary] == list(range(1, 26))
    assert [row.step for row in told.with_cut if row.is_summary] == ([told.best + 1] if cut.summary else [])


@pytest.mark.parametrize("price", PRICES, ids=["usual", "tiers", "no charge to write", "no cache", "free"])
@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_every_cut_is_told_and_the_best_is_the_cheapest(price: Price, cut: OneCut) -> None:
    told = forecast(2_000, 1_500, 25, price, cut=cut)
    assert [run.after for run in told.cuts] == list(range(cut.keep + 1, 25))
    totals = {run.after: cost(price, by_hand(2_000, 1_500, 25, run.after, cut)) for run in told.cuts}
    for run in told.cuts:
        requests = by_hand(2_000, 1_500, 25, run.after, cut)
        assert (run.input, run.output) == (sum(one[0] for one in requests), cut.summary)
        assert run.dollars == pytest.approx(totals[run.after])
    if told.best is None:
        assert min(totals.values()) >= (told.with_cache[-1].total_dollars or 0.0) * (1 - 1e-9)
    else:
        assert totals[told.best] == pytest.approx(min(totals.values()))
        assert told.with_cut[-1].total_dollars == pytest.approx(totals[told.best])


def cost(price: Price, requests: list[tuple[int, int, int]]) -> float:
    return sum(price.of(Usage(size, output, cached, size - cached)) for size, cached, output in requests)


@pytest.mark.parametrize("price", PRICES, ids=["usual", "tiers", "no charge to write", "no cache", "free"])
@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("per_step", [0, 40, 1_500])
def test_the_break_even_is_the_shortest_run_in_which_some_cut_pays(price: Price, cut: OneCut, per_step: int) -> None:
    def pays(steps: int) -> bool:
        alone = cost(price, by_hand(2_000, per_step, steps, steps, cut))
        cuts = [cost(price, by_hand(2_000, per_step, steps, after, cut)) for after in range(cut.keep + 1, steps)]
        return bool(cuts) and min(cuts) < alone * (1 - 1e-9)

    found = next((steps for steps in range(1, 30) if pays(steps)), None)
    told = forecast(2_000, per_step, 1, price, cut=cut).break_even
    assert told == found if found is not None else told is None or told >= 30


def test_a_cut_that_never_pays_has_no_break_even() -> None:
    told = forecast(2_000, 0, 50, USUAL, cut=OneCut(summary=100))
    assert (told.best, told.break_even, told.with_cut) == (None, None, ())


def test_a_run_that_is_too_short_to_cut_has_no_cuts() -> None:
    told = forecast(2_000, 1_000, 3, USUAL)
    assert (told.cuts, told.best, told.with_cut) == ((), None, ())
    assert told.break_even is not None
    assert told.break_even > 3


def test_a_run_of_the_length_of_the_break_even_has_a_best_cut_and_a_shorter_one_has_none() -> None:
    even = forecast(2_000, 1_000, 1, USUAL).break_even
    assert even is not None
    assert forecast(2_000, 1_000, even, USUAL).best is not None
    assert forecast(2_000, 1_000, even - 1, USUAL).best is None


# --- the result -----------------------------------------------------------------------------------------


def test_a_forecast_does_not_change() -> None:
    told = forecast(2_000, 1_000, 5, USUAL)
    for thing in (told, told.with_cache[0], told.cuts[0]):
        with pytest.raises(AttributeError):
            setattr(thing, thing.__struct_fields__[0], None)
    assert isinstance(told, Forecast)


def test_a_forecast_can_be_written_as_json() -> None:
    told = forecast(2_000, 1_000, 12, USUAL)
    assert msgspec.json.decode(msgspec.json.encode(told), type=Forecast) == told
    assert Row.__struct_fields__[:4] == ("step", "is_summary", "input", "cached")
    assert CutRun.__struct_fields__ == ("after", "input", "output", "dollars")


@pytest.mark.parametrize("numbers", [(2_000, 1_000, 0), (-1, 1_000, 5), (2_000, -1, 5)])
def test_impossible_numbers_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least one step and no negative number"):
        forecast(*numbers)
    with pytest.raises(ValueError, match="no negative number"):
        forecast(1, 1, 1, cut=OneCut(keep=-1))
