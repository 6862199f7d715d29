"""The budget: reserve before, settle after."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.limits import Account, Counting, Left, Limits, Price, Reservation, Spent, Tier, reserve
from tenlines.core.transcript import Usage

CHEAP = Price(input=1, output=2)

rates = {
    "input": st.floats(0, 100),
    "output": st.floats(0, 100),
    "cache_read": st.none() | st.floats(0, 100),
    "cache_write": st.none() | st.floats(0, 100),
}
tiers = st.lists(st.builds(Tier, above=st.integers(1, 3_000), **rates), max_size=2, unique_by=lambda tier: tier.above)
prices = st.builds(Price, **rates, tiers=tiers.map(lambda found: tuple(sorted(found, key=lambda tier: tier.above))))
budgets = st.builds(
    Limits,
    tokens=st.none() | st.integers(0, 5_000),
    dollars=st.none() | st.floats(0, 1),
)


@pytest.mark.parametrize("field", ["steps", "tool_calls", "tokens", "dollars", "seconds"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), -0.5])
def test_a_limit_is_a_number_from_zero_up(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        Limits(**{field: value})


@pytest.mark.parametrize("field", ["steps", "tool_calls", "tokens", "dollars", "seconds"])
def test_zero_and_none_are_limits_too(field: str) -> None:
    zero: dict[str, Any] = {field: 0}
    nothing: dict[str, Any] = {field: None}
    assert getattr(Limits(**zero), field) == 0
    assert getattr(Limits(**nothing), field) is None


def test_an_unknown_price_fails_closed_under_a_dollar_limit() -> None:
    verdict = reserve(Account(), Limits(dollars=100.0), None, 10, 10)
    assert "price of this model is not known" in verdict.refusal


def test_an_unknown_price_does_not_matter_without_a_dollar_limit() -> None:
    assert not reserve(Account(), Limits(), None, 10, 10).refusal


def test_no_dollars_still_buy_from_a_model_that_costs_nothing() -> None:
    assert not reserve(Account(), Limits(dollars=0), Price(input=0, output=0), 1_000, None).refusal


def test_no_tokens_left_is_said_with_the_numbers() -> None:
    account = Account(input_tokens=900, output_tokens=90)
    assert reserve(account, Limits(tokens=1_000), None, 20, None).refusal == (
        "990 of 1,000 tokens are used; the next request needs about 20 more"
    )


def test_a_token_limit_bounds_the_reply_that_is_asked_for() -> None:
    assert reserve(Account(), Limits(tokens=100), None, 60, None).max_output_tokens == 40
    assert reserve(Account(), Limits(tokens=100), None, 60, 7).max_output_tokens == 7


def test_a_dollar_limit_bounds_the_reply_that_is_asked_for() -> None:
    verdict = reserve(Account(dollars=0.5), Limits(dollars=1.0), Price(input=0, output=1000), 60, None)
    assert verdict.max_output_tokens == 500
    assert verdict.reserved.dollars == pytest.approx(0.5)


def test_without_limits_nothing_is_bounded() -> None:
    verdict = reserve(Account(), Limits(), None, 60, None)
    assert (verdict.max_output_tokens, verdict.refusal) == (None, "")


@given(prices, budgets, st.integers(0, 3_000), st.none() | st.integers(1, 3_000), st.data())
def test_what_stays_within_its_reservation_never_passes_the_budget(
    price: Price, limits: Limits, estimate: int, most: int | None, data: st.DataObject
) -> None:
    """Request after request, each using any part of what was reserved for it: no limit is passed by anything."""
    account = Account()
    for _ in range(4):
        verdict = reserve(account, limits, price, estimate, most)
        if verdict.refusal:
            break
        used_in = data.draw(st.integers(0, verdict.reserved.input_tokens))
        read = data.draw(st.integers(0, used_in))
        write = data.draw(st.integers(0, used_in - read))
        used_out = data.draw(st.integers(0, min(verdict.max_output_tokens or 0, 10_000)))
        usage = Usage(used_in, used_out, read, write)
        account.settle(usage, price.of(usage), verdict.reserved)
        if limits.tokens is not None:
            assert account.tokens <= limits.tokens
        if limits.dollars is not None:
            assert account.dollars <= limits.dollars + 1e-9


@given(prices, st.integers(0, 10_000), st.integers(0, 10_000), st.data())
def test_no_part_of_the_input_however_cached_costs_more_than_the_worst_case(
    price: Price, tokens: int, output: int, data: st.DataObject
) -> None:
    used = data.draw(st.integers(0, tokens))
    read = data.draw(st.integers(0, used))
    write = data.draw(st.integers(0, used - read))
    assert price.of(Usage(used, output, read, write)) <= price.worst(tokens, output) + 1e-9


def test_cached_tokens_are_part_of_the_input_and_charged_once() -> None:
    price = Price(input=10, output=0, cache_read=1, cache_write=12)
    assert price.of(Usage(100, 0, 50, 20)) == pytest.approx((30 * 10 + 50 * 1 + 20 * 12) / 1e6)


LONG = Price(
    input=1,
    output=10,
    cache_read=0.1,
    tiers=(Tier(above=100, input=2, output=15), Tier(above=200, input=4, output=30, cache_read=1, cache_write=5)),
)


@pytest.mark.parametrize(
    ("usage", "micro_dollars"),
    [
        (Usage(100, 10, 50), 50 * 1 + 50 * 0.1 + 10 * 10),
        (Usage(101, 10, 50), 101 * 2 + 10 * 15),  # without a price of its own, what is cached costs as much as the rest
        (Usage(200, 10, 0, 60), 200 * 2 + 10 * 15),
        (Usage(201, 10, 50, 60), 91 * 4 + 50 * 1 + 60 * 5 + 10 * 30),
    ],
)
def test_a_tier_holds_for_the_whole_of_a_request_that_is_longer(usage: Usage, micro_dollars: float) -> None:
    assert LONG.of(usage) * 1e6 == pytest.approx(micro_dollars)


@pytest.mark.parametrize(("tokens", "worst"), [(100, 100 + 10 * 10), (101, 202 + 10 * 15), (201, 1005 + 10 * 30)])
def test_the_worst_case_of_a_long_request_is_that_of_its_tier(tokens: int, worst: float) -> None:
    assert LONG.worst(tokens, 10) * 1e6 == pytest.approx(worst)


def test_a_cheaper_tier_does_not_make_the_worst_case_smaller() -> None:
    """Fewer tokens than reserved may be used, and then the price below holds."""
    price = Price(input=4, output=8, tiers=(Tier(above=100, input=1, output=2),))
    assert price.worst(101, 10) * 1e6 == pytest.approx(101 * 4 + 10 * 8)


def test_a_reply_is_bounded_at_the_price_of_its_tier() -> None:
    verdict = reserve(Account(), Limits(dollars=0.01), LONG, 201, None)
    assert verdict.max_output_tokens == (10_000 - 201 * 5) // 30
    assert verdict.reserved.dollars == pytest.approx(0.01, abs=30e-6)


def test_a_reply_without_counts_is_a_step_all_the_same() -> None:
    account = Account()
    for usage in (None, Usage(), Usage(5, None), Usage(5, 5)):
        account.settle(usage, None, Reservation())
    assert (account.steps, account.unmetered, account.unpriced, account.tokens) == (4, 3, 4, 15)


@pytest.mark.parametrize(
    ("usage", "dollars", "tokens", "money"),
    [
        (None, None, 150, 0.5),
        (Usage(), None, 150, 0.5),
        (Usage(70, None), None, 70 + 50, 0.5),
        (Usage(None, 20), None, 100 + 20, 0.5),
        (Usage(70, 20), None, 90, 0.5),
        (Usage(70, 20), 0.1, 90, 0.1),
    ],
)
def test_what_nobody_says_counts_as_much_as_was_reserved(
    usage: Usage | None, dollars: float | None, tokens: int, money: float
) -> None:
    account = Account()
    account.settle(usage, dollars, Reservation(100, 50, 0.5))
    assert (account.tokens, account.all_dollars) == (tokens, money)
    assert account.spent.tokens == sum(filter(None, (usage.input, usage.output))) if usage else not account.spent.tokens
    left = account.left(Limits(tokens=1_000, dollars=1.0), None)
    assert (left.tokens, left.dollars) == (1_000 - tokens, 1.0 - money)


def test_a_request_that_was_lost_counts_as_much_as_was_reserved() -> None:
    account = Account()
    account.lose(Reservation(100, 50, 0.5))
    assert (account.tokens, account.all_dollars, account.unmetered) == (150, 0.5, 1)
    assert (account.spent.tokens, account.spent.presumed_tokens) == (0, 150)


@pytest.mark.parametrize(
    ("rate", "margin"), [(0.0, 1.5), (-1.0, 1.5), (1_001.0, 1.5), (float("nan"), 1.5), (1.0, 0.9), (1.0, float("inf"))]
)
def test_a_rate_and_a_margin_that_cannot_be_are_refused(rate: float, margin: float) -> None:
    with pytest.raises(ValueError, match="Counting takes a rate above 0 and a margin from 1 up, both to 1,000"):
        Counting(rate=rate, margin=margin)


def test_whoever_pays_is_charged_with_what_is_held_too_and_told_that_it_is_not_known() -> None:
    account = Account(steps=1, dollars=0.25, children=Spent(steps=2, dollars=0.5))
    assert account.charged == account.spent == Spent(steps=3, dollars=0.75)
    account.held, account.holders = Left(steps=4, tokens=100), 1
    assert account.charged == Spent(steps=7, presumed_tokens=100, dollars=0.75, unpriced=1, unmetered=1)


def test_what_is_left_never_falls_below_zero() -> None:
    account = Account(steps=9, tool_calls=9, input_tokens=9, dollars=9.0)
    limits = Limits(steps=1, tool_calls=1, tokens=1, dollars=1.0)
    assert account.left(limits, -5.0) == Left(0, 0, 0, 0.0, 0.0)


def test_what_is_left_is_said_in_words() -> None:
    assert Left(steps=3, tool_calls=1_000, dollars=0.5).sentence() == "3 steps, 1,000 tool calls, 0.50 dollars"
    assert Left().sentence() == "no limits"
