"""Whether the transcript is made smaller before the next request, and how."""

from __future__ import annotations

from typing import Any

import pytest
from told_run import Run

from tenlines.core import events as ev
from tenlines.core import metering, shrinking
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel, Compact, Finish, Summarise
from tenlines.core.limits import Limits, Price
from tenlines.core.transcript import Text, User

LONG = "word " * 300
PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


def long_run(exchanges: int, /, price: Price | None = PRICE, steps: int | None = None, **compaction: Any) -> Run:
    """A run of exchanges of some 300 tokens each, in which every cut is made that is due."""
    chosen = Compaction(**{"keep": 1, "summary_tokens": 100, **compaction})
    run = Run(compaction=chosen, limits=Limits(steps=steps), price=price)
    for number in range(exchanges):
        while isinstance(run.effect, Compact):
            run.compact()
        run.exchange(f"{number} {LONG}")
    return run


def cuts(run: Run) -> list[ev.ContextCompacted]:
    return [one for one in run.log if isinstance(one, ev.ContextCompacted)]


# --- when -----------------------------------------------------------------------------------------------


def test_without_compaction_nothing_is_ever_cut() -> None:
    run = Run(limits=Limits(steps=None))
    for number in range(12):
        run.exchange(f"{number} {LONG}")
    assert isinstance(run.effect, CallModel)
    assert len(run.messages) == 25


def test_a_run_of_which_little_is_left_is_not_cut() -> None:
    assert cuts(long_run(3, expected_steps=(4,))) == []


def test_a_long_run_is_cut_when_that_pays_with_both_sides_of_the_arithmetic() -> None:
    done = cuts(long_run(12, steps=60))
    assert done
    for one in done:
        told = one.arithmetic
        assert (told.why, told.unit) == ("pays", "dollars")
        assert told.saves > told.costs > 0
        assert told.tokens_after < told.tokens_before


def test_what_was_sent_is_taken_for_cached_though_nothing_was_reported() -> None:
    """Else a cut would seem to be free, and be made at every step."""
    for one in cuts(long_run(12, steps=60)):
        behind = one.arithmetic.tokens_after - 100
        assert one.arithmetic.costs > 0.1 * behind * 3.45e-6, "what stands behind the cut is written again"


def test_without_a_price_the_arithmetic_is_in_tokens() -> None:
    assert {one.arithmetic.unit for one in cuts(long_run(12, price=None, steps=60))} == {"tokens"}


def test_where_few_steps_are_left_a_cut_does_not_pay() -> None:
    assert not cuts(long_run(3, steps=4, strategies=("drop",)))
    assert cuts(long_run(12, steps=60, strategies=("drop",)))


def test_what_earlier_runs_took_says_how_many_steps_are_left() -> None:
    state = long_run(4, expected_steps=(3, 10, 20)).machine.state
    assert state.compaction is not None
    assert shrinking._steps(state, state.compaction) == 11.0, "of those that took more than four: 6 and 16"


def test_a_limit_asks_for_a_cut_whether_it_pays_or_not_and_not_again_at_once() -> None:
    run = long_run(3, at=900, least_gain=99.0, strategies=("elide",), keep=2)
    assert run.compact().arithmetic.why == "asked"
    assert isinstance(run.effect, CallModel)
    run.exchange("short")
    assert isinstance(run.effect, CallModel), "the first did not help enough; the request has hardly grown since"


def test_it_is_looked_again_when_the_request_has_grown() -> None:
    state = long_run(6, least_gain=99.0).ask().machine.state
    assert state.cuts.look_at > metering.likely(state)


# --- the window -----------------------------------------------------------------------------------------


def test_the_window_forces_a_cut_before_it_is_full() -> None:
    run = long_run(8, window=3_000, least_gain=99.0, strategies=("drop",))
    assert cuts(run)
    assert {one.arithmetic.why for one in cuts(run)} == {"window"}
    for event in run.log:
        if isinstance(event, ev.StepStarted):
            assert event.reserved.input_tokens + 3_000 // 4 <= 3_000


def test_a_reply_is_asked_for_that_fits_into_the_window() -> None:
    run = Run(compaction=Compaction(window=2_000, keep=1), max_output_tokens=1_900, limits=Limits(steps=None))
    run.exchange(LONG)
    request = run.effect
    assert request.max_output_tokens == 2_000 - request.reserved.input_tokens
    assert request.reserved.output_tokens == request.max_output_tokens


def test_without_a_known_window_nothing_bounds_the_reply() -> None:
    run = Run(compaction=Compaction(keep=1), max_output_tokens=1_900)
    assert run.effect.max_output_tokens == 1_900


def test_the_newest_result_is_left_out_where_nothing_else_helps() -> None:
    run = Run(compaction=Compaction(window=2_000, keep=1))
    run.exchange("word " * 1_900)
    done = run.compact()
    assert (done.strategy, done.arithmetic.why) == ("elide", "window")
    assert "left out to save room" in run.messages[-1].text
    assert isinstance(run.effect, CallModel)


def test_where_that_is_not_enough_the_run_ends_before_anything_is_sent() -> None:
    run = Run(compaction=Compaction(window=600, keep=1)).say("word " * 900)
    end = run.finish()
    assert end.status == "context_overflow"
    assert end.reason.startswith("the next request may hold 1,5")
    assert "tokens and its reply 150, and the model takes in 600; nothing more can be left out: limit" in end.reason


def test_a_first_request_that_likely_fits_is_sent_though_it_may_be_estimated_too_low() -> None:
    run = Run(compaction=Compaction(window=1_600, keep=1)).say("word " * 900)
    state = run.machine.state
    output = shrinking.room_for_output(state)
    assert metering.likely(state) + output <= 1_600 < metering.most(state) + output
    assert isinstance(run.effect, CallModel)


def test_the_end_of_a_run_that_is_too_long_does_not_depend_on_the_time() -> None:
    run = Run(compaction=Compaction(window=600, keep=1), limits=Limits(seconds=60)).say("word " * 900)
    assert run.effect == run.machine.next(run.at + 1_000)


def test_a_model_that_takes_in_more_goes_on_where_another_could_not() -> None:
    run = Run(compaction=Compaction(window=600, keep=1)).say("word " * 900)
    run.finish()
    assert isinstance(run.resume().effect, Finish), "the same model does not take it now either"
    run.tell(ev.RunResumed, tools=(), compaction=Compaction(window=100_000))
    assert run.machine.state.cuts.window == 100_000
    assert isinstance(run.effect, CallModel)


def test_a_refusal_for_length_is_followed_by_a_cut_and_a_shorter_request() -> None:
    run = long_run(4, least_gain=99.0, strategies=("drop",))
    refused = run.effect.reserved.input_tokens
    run.ask().tell(ev.ModelFailed, step=5, attempt=1, kind="ContextTooLong", message="too long")
    assert run.compact().arithmetic.why == "window"
    again = run.effect
    assert isinstance(again, CallModel)
    assert (again.attempt, again.reserved.input_tokens < refused) == (2, True)


def test_without_compaction_a_refusal_for_length_ends_the_run() -> None:
    run = Run().exchange(LONG).ask()
    run.tell(ev.ModelFailed, step=2, attempt=1, kind="ContextTooLong", message="it is too long")
    assert (run.finish().status, run.messages[-1].text[:4]) == ("context_overflow", "word")
    run.tell(ev.RunResumed, tools=(), compaction=Compaction(keep=1))
    window = run.machine.state.cuts.window
    assert window is not None
    assert window < metering.likely(run.machine.state), "what was too long is cut first"


# --- which ----------------------------------------------------------------------------------------------


def test_strategies_are_taken_in_order_where_they_take_away_enough() -> None:
    chosen = Compaction(at=1_100, keep=1, strategies=("elide", "drop"), least_gain=99.0)
    run = Run(compaction=chosen, limits=Limits(steps=None))
    for number in range(4):
        run.exchange(f"{number} {LONG}")
    assert run.effect.strategy == "elide"


def test_a_strategy_that_can_take_away_nothing_is_passed_over() -> None:
    chosen = Compaction(at=80, keep=1, strategies=("elide", "drop"), least_gain=99.0)
    run = Run(compaction=chosen, limits=Limits(steps=None))
    while isinstance(run.effect, CallModel):
        run.exchange(f"{len(run.log)}")
    assert run.effect.strategy == "drop", "results as short as these are never left out"


def test_a_summary_that_does_not_fit_into_the_window_is_not_asked_for() -> None:
    run = Run(compaction=Compaction(window=2_000, keep=1, strategies=("summarise", "elide")))
    run.exchange("word " * 500).say("word " * 900)
    state = run.machine.state
    assert not shrinking.may_summarise(state)
    assert isinstance(run.effect, Compact | Finish)
    assert not isinstance(run.effect, Summarise)


@pytest.mark.parametrize("strategy", ["elide", "drop", "summarise"])
def test_what_people_said_is_never_cut(strategy: Any) -> None:
    chosen = Compaction(at=700, keep=1, strategies=(strategy,), summary_tokens=100)
    run = Run(compaction=chosen, limits=Limits(steps=None))
    for number in range(9):
        run.say(f"mind {number}")
        while not isinstance(run.effect, CallModel):
            run.compact() if isinstance(run.effect, Compact) else summarised(run)
        run.exchange(f"{number} {LONG}")
    assert cuts(run), "nothing was cut"
    said = [one for one in run.messages if isinstance(one, User)]
    assert said == [User((Text(text),)) for text in ("task", *(f"mind {number}" for number in range(9)))]


def summarised(run: Run) -> None:
    run.summarise()
    run.tell(ev.SummaryEnded, reply=ev.Reply("We looked."))
