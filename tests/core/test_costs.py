"""The lines of a ledger, and what is read from them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenlines.core.context import Arithmetic
from tenlines.core.costs import NO_USE, CallLine, CutLine, Ledger, StepLine
from tenlines.core.ledger import ledger_of
from tenlines.core.limits import Left, Reservation, Spent
from tenlines.core.transcript import Usage

EMPTY = ledger_of([])
ARITHMETIC = Arithmetic(why="pays", tokens_before=9, tokens_after=5, steps=4.0, saves=2.0, costs=1.0, unit="tokens")


def line(step: int, taken: int | None, new: int | None = None, changed: str = "") -> StepLine:
    """A step whose request held so many tokens."""
    return StepLine(
        step=step,
        attempts=1,
        usage=None if taken is None else Usage(taken, 1),
        dollars=None,
        new=new,
        changed=changed,
        latency_s=1.0,
        waited_s=0.0,
        expected=0,
        reserved=Reservation(),
        failed=NO_USE,
    )


def call(tool: str, **fields: Any) -> CallLine:
    """A call."""
    plain: dict[str, Any] = {"outcome": "ok", "latency_s": None, "tokens": 0, "sent": 0, "carried": 0, "spent": None}
    return CallLine(step=2, position=1, tool=tool, **{**plain, **fields})


def ledger(**fields: Any) -> Ledger:
    """An empty ledger but for these."""
    return msgspec.structs.replace(EMPTY, **fields)


def test_what_is_not_priced_or_may_still_be_spent_makes_the_dollars_unknown() -> None:
    own, children = Spent(dollars=0.25), Spent(dollars=0.5)
    assert ledger(own=own, children=children).dollars == 0.75
    assert ledger(own=own, children=Spent(unpriced=1)).dollars is None
    assert ledger(own=own, held=Left(), holders=1).dollars is None
    assert EMPTY.dollars == 0.0


def test_the_cached_share_is_that_of_its_own_input() -> None:
    assert ledger(own=Spent(input_tokens=1_000, cache_read=250), children=Spent(input_tokens=9)).cached_share == 0.25
    assert EMPTY.cached_share is None


def test_a_cache_can_have_had_what_the_step_before_held_where_nothing_changed() -> None:
    steps = (line(1, 100), line(2, 150, 50), line(3, 200, 50, "the tools"), line(4, 180, -20), line(5, None))
    assert ledger(steps=steps).repeated == 100 + 180


def test_what_the_cache_had_is_something_that_it_can_have_had() -> None:
    found = [
        msgspec.structs.replace(one, usage=Usage(taken, 1, cached))
        for one, taken, cached in ((line(1, 0), 100, 80), (line(2, 0, 50, "a cut"), 150, 60), (line(3, 0, 10), 160, 70))
    ]
    assert ledger(steps=tuple(found)).repeated == 80 + 60 + 150


def test_the_closed_form_takes_the_mean_of_what_steps_added_and_knows_of_no_cut() -> None:
    cut = CutLine(step=4, strategy="drop", start=1, end=3, arithmetic=ARITHMETIC, input_before=310, input_after=120)
    steps = (line(1, 100), line(2, 200, 100), line(3, 311, 111), line(4, 120, -191), line(5, None), line(6, 150))
    form = ledger(steps=steps, cuts=(cut,)).closed_form
    assert form is not None
    assert (form.prompt, form.per_step, form.steps) == (100, 106, 5)  # 105.5, to the even one
    assert form.total == 100 + 206 + 312 + 418 + 524


@pytest.mark.parametrize("steps", [(), (line(1, None),)], ids=["no step", "no report"])
def test_without_a_report_there_is_no_closed_form(steps: tuple[StepLine, ...]) -> None:
    assert ledger(steps=steps).closed_form is None


def test_a_single_step_and_one_that_shrank_add_nothing() -> None:
    for steps in ((line(1, 100),), (line(1, 100), line(2, 60, -40))):
        form = ledger(steps=steps).closed_form
        assert form is not None
        assert (form.per_step, form.total) == (0, 100 * len(steps))


def test_tools_add_up_their_calls_and_stand_in_the_order_of_their_weight() -> None:
    calls = (
        call("b", latency_s=1.0, tokens=5, carried=10),
        call("a", outcome="timeout", latency_s=2.0, carried=7, spent=Spent(steps=1)),
        call("a", carried=8, spent=Spent(steps=2, runs=("x",))),
        call("c", outcome=None),
    )
    a, b, c = ledger(calls=calls).tools
    assert (a.tool, a.calls, a.ok, a.latency_s, a.carried, a.spent) == ("a", 2, 1, 2.0, 15, Spent(steps=3, runs=("x",)))
    assert (b.tool, b.latency_s, b.tokens, b.spent) == ("b", 1.0, 5, NO_USE)
    assert (c.tool, c.calls, c.ok) == ("c", 1, 0)
    assert calls[0].place == "2.2"


def test_a_ledger_is_data_that_can_be_written_and_read() -> None:
    full = ledger(steps=(line(1, 100),), calls=(call("a", spent=Spent(steps=1)),))
    assert msgspec.json.decode(msgspec.json.encode(full), type=Ledger) == full
