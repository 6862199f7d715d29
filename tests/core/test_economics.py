from __future__ import annotations

import random

import pytest

from tenlines.core.economics import (
    LOOK_AGAIN,
    NO_CUT,
    Cut,
    Decision,
    Rates,
    Situation,
    cheapest,
    decide,
    forecast,
    going_on,
    rates_of,
    total_input,
)
from tenlines.core.forecasts import OneCut
from tenlines.core.limits import Price, Tier

USUAL = Rates(0.1, 1.25, 5.0)
"""A cache that costs a quarter more to write and a tenth to read, in input tokens."""


def before(steps: float, *, tokens: float = 30_000, new: float = 1_000, rates: Rates = USUAL) -> Situation:
    """A run with a long transcript, before a step."""
    return Situation(tokens, new, 1_000.0, steps, rates)


DROP = Cut(prefix=2_000.0, tokens=4_000.0, removable=1.0)
SUMMARY = Cut(prefix=2_000.0, tokens=4_500.0, removable=1.0, asked=100.0, written=500.0)


# --- what cuts cost -------------------------------------------------------------------------------------


def requests(situation: Situation, tokens: float, cached: float) -> float:
    """What the input of all steps costs, added up, when the first request holds so much and finds so much cached."""
    rates, total = situation.rates, 0.0
    for _ in range(int(situation.steps)):
        total += rates.read * cached + rates.write * (tokens - cached)
        tokens, cached = tokens + situation.growth, tokens
    return total


def summary_request(situation: Situation, cut: Cut) -> float:
    read, write, output = situation.rates
    if not cut.asked:
        return 0.0
    cached = situation.tokens - situation.new
    return read * cached + write * (situation.new + cut.asked) + output * cut.written


def some_situation(dice: random.Random) -> tuple[Situation, Cut]:
    tokens, new = dice.uniform(5_000, 100_000), dice.uniform(0, 5_000)
    rates = Rates(dice.uniform(0, 1), dice.uniform(0, 2), dice.uniform(0, 8))
    prefix = dice.uniform(0, tokens - new)
    asked, written = (0, 0) if dice.random() < 0.5 else (dice.uniform(1, 300), dice.uniform(0, 2_000))
    cut = Cut(prefix, dice.uniform(prefix, tokens), dice.random(), asked, written)
    return Situation(tokens, new, dice.uniform(0, 5_000), dice.randint(1, 100), rates), cut


@pytest.mark.parametrize("seed", range(50))
def test_both_sides_of_a_cut_are_the_difference_that_it_makes_to_all_requests(seed: int) -> None:
    situation, cut = some_situation(random.Random(seed))
    alone = requests(situation, situation.tokens, situation.tokens - situation.new)
    decision = cheapest(situation, [cut])
    cutting = summary_request(situation, cut) + requests(situation, cut.tokens, cut.prefix)
    assert going_on(situation) == pytest.approx(alone)
    assert decision.saves - decision.costs == pytest.approx(alone - cutting, abs=1e-9 * alone)


def test_a_cut_saves_the_cached_price_of_what_goes_for_every_step_still_expected() -> None:
    decision = cheapest(before(10), [DROP])
    assert decision.saves == pytest.approx(0.1 * 26_000 * 10)
    assert decision.costs == pytest.approx((1.25 - 0.1) * 1_000)  # one old exchange behind the cut is written again


def test_a_summary_costs_its_own_request_as_well() -> None:
    decision = cheapest(before(10), [SUMMARY])
    assert decision.costs == pytest.approx((1.25 - 0.1) * 1_500 + 0.1 * 29_000 + 1.25 * 1_100 + 5 * 500)


# --- whether to cut now ---------------------------------------------------------------------------------


def test_a_cut_that_pays_is_made() -> None:
    assert decide(before(10), [DROP], 0.01) == cheapest(before(10), [DROP])


def test_nothing_is_cut_before_the_last_step_of_a_run_where_the_cache_is_cheap() -> None:
    late = Cut(prefix=2_000.0, tokens=20_000.0, removable=1.0)
    assert decide(before(1), [late], 0.01) == NO_CUT


def test_a_cut_that_gains_too_little_is_not_made() -> None:
    little = Cut(prefix=2_000.0, tokens=29_000.0 - 1_000.0, removable=0.0)
    gain = cheapest(before(200), [little])
    part = (gain.saves - gain.costs) / going_on(before(200))
    assert 0 < part < 0.1
    assert decide(before(200), [little], part * 1.01).index == -1
    assert decide(before(200), [little], part * 0.99).index == 0


def test_what_is_too_early_for_a_summary_is_not_too_early_for_ever() -> None:
    small = Cut(prefix=2_000.0, tokens=5_000.0, removable=1.0, asked=100.0, written=1_000.0)
    early, grown = Situation(6_000.0, 1_000.0, 1_000.0, 40.0, USUAL), Situation(20_000.0, 1_000.0, 1_000.0, 26.0, USUAL)
    assert decide(early, [small], 0.01) == NO_CUT
    assert decide(grown, [small], 0.01).index == 0


def test_a_cut_that_pays_now_waits_if_waiting_pays_more() -> None:
    situation = Situation(6_000.0, 1_000.0, 1_000.0, 100.0, USUAL)
    small = Cut(prefix=2_000.0, tokens=4_000.0, removable=1.0, asked=100.0, written=1_000.0)
    gain = cheapest(situation, [small])
    assert gain.saves - gain.costs > 0.01 * going_on(situation)
    assert decide(situation, [small], 0.01) == NO_CUT
    assert decide(situation._replace(growth=0.0), [small], 0.01).index == 0


def test_of_several_cuts_the_one_that_gains_most_is_made() -> None:
    assert decide(before(10), [SUMMARY, DROP], 0.01).index == 1
    dear = DROP._replace(tokens=25_000.0)
    assert decide(before(10), [dear, SUMMARY], 0.01).index == 1


def test_without_cuts_there_is_no_decision_to_make() -> None:
    assert decide(before(10), [], 0.01) == cheapest(before(10), []) == Decision(-1, 0.0, 0.0)


@pytest.mark.parametrize("least_gain", [0.0, 0.01])
def test_where_tokens_cost_nothing_nothing_is_cut(least_gain: float) -> None:
    assert decide(before(100, rates=Rates(0.0, 0.0, 0.0)), [DROP, SUMMARY], least_gain) == NO_CUT


def test_where_reading_the_cache_costs_nothing_a_cut_only_pays_for_what_is_new() -> None:
    free = before(100, rates=Rates(0.0, 1.0, 5.0))
    assert decide(free, [DROP, SUMMARY], 0.0) == NO_CUT
    of_new = Cut(prefix=29_000.0, tokens=29_500.0, removable=0.5)
    assert decide(free, [of_new], 0.0) == Decision(0, 0.0, -500.0)


@pytest.mark.parametrize("steps", [-1.0, 0.0, 0.5, 1.0])
def test_there_is_always_a_next_request(steps: float) -> None:
    assert cheapest(before(steps), [DROP]) == cheapest(before(1), [DROP])
    assert going_on(before(steps)) == going_on(before(1))


HUGE, TINY = 1e300, 5e-324


@pytest.mark.parametrize("growth", [0.0, TINY, 1.0, HUGE])
@pytest.mark.parametrize("read", [0.0, TINY, 1e-7, 1.0])
@pytest.mark.parametrize("removable", [0.0, TINY, 0.5, 1.0])
def test_numbers_at_the_edge_are_no_error(growth: float, read: float, removable: float) -> None:
    for steps in (0.0, 1.0, 1.5, 1e9):
        situation = Situation(30_000.0, 1_000.0, growth, steps, Rates(read, max(read, 1.0), 5.0))
        cuts = [cut._replace(removable=removable) for cut in (DROP, SUMMARY)]
        assert decide(situation, cuts, 0.01).index in (-1, 0, 1)


# --- where one has to be made ---------------------------------------------------------------------------


def test_the_cheapest_cut_is_named_even_if_each_costs_more_than_it_saves() -> None:
    dear, dearer = Cut(0.0, 29_000.0, 0.5), Cut(0.0, 29_500.0, 0.5)
    decision = cheapest(before(1), [dearer, dear])
    assert decision.index == 1
    assert decision.saves < decision.costs


def test_of_equal_cuts_the_first_is_taken() -> None:
    assert cheapest(before(5), [DROP, DROP]).index == 0


# --- rates ----------------------------------------------------------------------------------------------


def test_rates_are_dollars_a_token() -> None:
    assert rates_of(Price(input=3, output=15, cache_read=0.3, cache_write=3.75), 1_000) == pytest.approx(
        Rates(0.3e-6, 3.75e-6, 15e-6)
    )


def test_what_a_price_does_not_say_of_the_cache_costs_as_other_input() -> None:
    assert rates_of(Price(input=3, output=15), 1_000) == pytest.approx(Rates(3e-6, 3e-6, 15e-6))


def test_rates_are_those_of_the_size() -> None:
    price = Price(input=1, output=2, tiers=(Tier(above=200_000, input=2, output=4, cache_read=0.2),))
    assert rates_of(price, 200_000) == pytest.approx(Rates(1e-6, 1e-6, 2e-6))
    assert rates_of(price, 200_001) == pytest.approx(Rates(0.2e-6, 2e-6, 4e-6))


def test_without_a_price_the_unit_is_a_new_input_token() -> None:
    assert rates_of(None, 1_000) == Rates(0.1, 1.0, 5.0)


def test_the_factor_between_two_looks_is_above_one() -> None:
    assert 1 < LOOK_AGAIN < 2


# --- the same arithmetic as a forecast ------------------------------------------------------------------


@pytest.mark.parametrize("cut", [OneCut(), OneCut(summary=500, question=100), OneCut(keep=1, summary=50)])
def test_a_decision_and_a_forecast_say_the_same_of_a_cut(cut: OneCut) -> None:
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    told = forecast(2_000, 1_000, 30, price, cut=cut)
    alone = told.with_cache[-1].total_dollars
    assert alone is not None
    for run in told.cuts:
        held = 2_000 + 1_000 * run.after
        situation = Situation(held, 1_000, 1_000, 30 - run.after, rates_of(price, held))
        left = 2_000 + cut.summary + 1_000 * cut.keep
        decision = cheapest(situation, [Cut(2_000, left, 1.0, cut.question if cut.summary else 0, cut.summary)])
        assert run.dollars is not None
        assert decision.saves - decision.costs == pytest.approx(alone - run.dollars)


def test_the_closed_form_is_here_too() -> None:
    assert total_input(2_000, 1_000, 10) == 65_000
