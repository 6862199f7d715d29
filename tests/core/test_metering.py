"""How large the next request is: the last report, and an estimate of what is new."""

from __future__ import annotations

from typing import Any

import pytest
from told_run import Run

from tenlines.core import events as ev
from tenlines.core import metering
from tenlines.core.context import Compaction
from tenlines.core.limits import Counting, Price
from tenlines.core.state import State
from tenlines.core.transcript import Reply, ToolCall, Usage


def reckoning(estimated: int, **counting: Any) -> State:
    state = State(estimated_tokens=estimated)
    metering.begin(state, Counting(**counting))
    return state


def test_before_any_report_the_estimate_is_all_there_is() -> None:
    state = reckoning(1_000, rate=1.2, margin=1.5)
    assert (metering.likely(state), metering.most(state)) == (1_200.0, 1_801)


def test_after_a_report_only_what_is_new_is_estimated() -> None:
    state = reckoning(1_000)
    metering.learn(state, Usage(1_300, 50))
    assert (metering.likely(state), metering.most(state)) == (1_300.0, 1_301)
    state.estimated_tokens += 100
    assert (metering.likely(state), metering.most(state)) == (1_430.0, 1_300 + 195 + 1)


@pytest.mark.parametrize("usage", [None, Usage(), Usage(0, 0), Usage(None, 7)])
def test_a_report_that_says_nothing_changes_nothing(usage: Usage | None) -> None:
    state = reckoning(1_000)
    metering.learn(state, usage)
    assert metering.likely(state) == 1_000.0


@pytest.mark.parametrize(("counted", "rate"), [(1, metering.LEAST_RATE), (1 << 50, metering.MOST_RATE)])
def test_no_report_makes_a_token_of_less_or_more_than_a_tokenizer_can(counted: int, rate: float) -> None:
    state = reckoning(1_000)
    metering.learn(state, Usage(counted, 0))
    assert state.rate == rate
    assert metering.likely(state) == counted, "but the report itself is believed"


def test_a_report_that_shrinks_teaches_nothing_of_what_a_token_is_worth() -> None:
    """The provider compacted on its side, or left old reasoning out."""
    state = reckoning(1_000)
    metering.learn(state, Usage(1_000, 0))
    state.estimated_tokens += 500
    metering.learn(state, Usage(300, 0))
    assert (state.rate, metering.likely(state)) == (1.0, 300.0)
    state.estimated_tokens += 100
    assert metering.most(state) == 300 + 150 + 1


def test_later_reports_teach_what_the_new_part_was_worth() -> None:
    state = reckoning(1_000)
    metering.learn(state, Usage(1_000, 0))
    state.estimated_tokens += 100
    metering.learn(state, Usage(1_200, 0))
    assert state.rate == 1.5
    state.estimated_tokens += metering.LEAST_NEW - 1
    metering.learn(state, Usage(9_000, 0))
    assert state.rate == 1.5, "too little was new to tell"


def test_what_is_cut_is_taken_off_what_was_counted() -> None:
    state = reckoning(1_000)
    metering.learn(state, Usage(2_000, 0))
    state.estimated_tokens = 600
    metering.forget_part(state, 1_000)
    assert metering.likely(state) == 1_200.0


def test_a_cut_before_any_report_takes_away_what_it_was_estimated_at() -> None:
    state = reckoning(1_000)
    state.estimated_tokens = 300
    metering.forget_part(state, 1_000)
    assert (metering.likely(state), metering.most(state)) == (300.0, 451)


def test_a_cut_of_more_than_was_counted_leaves_an_estimate_of_what_stays() -> None:
    state = reckoning(100)
    metering.learn(state, Usage(100, 0))  # 900 more came since
    state.estimated_tokens = 400
    metering.forget_part(state, 1_000)
    assert (metering.likely(state), metering.most(state)) == (400.0, 601)


def test_each_refusal_makes_the_window_smaller_than_what_was_refused() -> None:
    state = reckoning(1_000)
    state.compaction = Compaction()
    assert metering.learn_window(state)
    assert state.cuts.window == 900.0
    state.estimated_tokens = 5_000
    assert metering.learn_window(state)
    assert state.cuts.window == 900.0, "a longer request that was refused says nothing new"


def test_where_nothing_may_be_cut_nothing_is_learnt_from_a_refusal() -> None:
    assert not metering.learn_window(reckoning(1_000))


PRICE = Price(input=1_000_000, output=2_000_000)


@pytest.mark.parametrize(
    ("price", "usage", "said", "dollars"),
    [
        (PRICE, Usage(3, 2), None, 7.0),
        (PRICE, Usage(3, 2), 1.0, 1.0),
        (PRICE, Usage(3, None), None, None),
        (PRICE, None, None, None),
        (None, Usage(3, 2), None, None),
        (None, None, 0.5, 0.5),
    ],
)
def test_a_cost_is_what_the_provider_says_else_by_the_price_else_unknown(
    price: Price | None, usage: Usage | None, said: float | None, dollars: float | None
) -> None:
    state = State(settings=ev.Settings(price=price))
    assert metering.dollars(state, usage, said) == dollars


@pytest.mark.parametrize(
    "usage", [Usage(-1, 0), Usage(0, -1), Usage(0, 0, -1), Usage(0, 0, 0, -1), Usage(0, 0, 0, 0, -1)]
)
def test_no_request_gives_tokens_back(usage: Usage) -> None:
    said = Run().ask().refuses(ev.ModelReplied, step=1, reply=Reply("x", usage=usage))
    assert said.startswith("a request cannot use less than nothing: ")


def test_the_reservation_of_a_request_starts_from_the_last_report() -> None:
    run = Run().call("look").start()
    first = run.machine.state.estimated_tokens
    run.returned(text="short")
    assert run.effect.reserved.input_tokens == int(run.machine.state.estimated_tokens * 1.5) + 1
    run = Run()
    run.reply("", ToolCall("a", "look", "{}"), usage=Usage(first * 3, 10)).start().returned(text="short")
    reserved = run.effect.reserved.input_tokens
    assert reserved > first * 3, "what was counted is reserved, whatever it was estimated at"
