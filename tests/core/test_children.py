"""What calls may spend on their own, and that it never is more than there is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from told_run import Run

from tenlines.core import events as ev
from tenlines.core.children import bounded, still_fit
from tenlines.core.effects import CallModel, Finish, RunTools
from tenlines.core.limits import NOTHING, Left, Limits, Price, Spent
from tenlines.core.transcript import ToolCall, Usage
from tenlines.ports import CallContext

ASK = ev.ToolSpec("ask", read_only=True, spends=True)
HIRE = ev.ToolSpec("hire", idempotent=True, spends=True)
CREW = ev.ToolSpec("crew", spends=True)
LOOK = ev.ToolSpec("look", read_only=True)
TOOLS = (ASK, HIRE, CREW, LOOK)


def spending(*names: str, price: Price | None = None, **limits: Any) -> Run:
    """A run whose model has asked for these calls."""
    run = Run(TOOLS, limits=Limits(**{"steps": None, **limits}), price=price)
    calls = tuple(ToolCall("", name, "{}") for name in names)
    return run.reply("", *calls, usage=Usage(100, 0))


def offers(run: Run) -> list[Left | None]:
    effect = run.effect
    assert isinstance(effect, RunTools)
    return [call.allowance for call in effect.calls]


# --- what is given --------------------------------------------------------------------------------------


def test_without_limits_a_call_may_spend_without_limits() -> None:
    assert offers(spending("ask")) == [Left()]


def test_a_call_that_does_not_spend_is_given_nothing() -> None:
    assert offers(spending("look", steps=9)) == [None]


def test_the_run_keeps_one_step_for_itself() -> None:
    assert offers(spending("ask", steps=9)) == [Left(steps=7)], "one is done and one is kept"


def test_calls_of_one_message_share_equally_and_the_first_get_what_is_over() -> None:
    shares = offers(spending("ask", "ask", "ask", steps=10))
    assert [one.steps for one in shares if one] == [3, 3, 2]


def test_room_is_left_for_every_call_of_the_exchange_itself() -> None:
    run = spending("ask", "ask", "look", tool_calls=9)
    assert [one and one.tool_calls for one in offers(run)] == [3, 3, None]
    for position in range(3):
        run.start(position)
    assert run.machine.state.account.all_tool_calls == 9


def test_tokens_are_left_for_one_more_request() -> None:
    run = spending("ask", tokens=9_000)
    (given,) = offers(run)
    assert given is not None
    own = run.start().returned(spent=Spent(input_tokens=given.tokens or 0)).effect
    assert isinstance(own, CallModel), "what was kept is enough"


def test_with_too_little_left_a_call_may_start_and_spend_nothing() -> None:
    run = spending("ask", tokens=6_000)
    run.start().returned(spent=Spent(input_tokens=9_999))
    assert isinstance(run.effect, Finish)
    assert offers(spending("ask", steps=2)) == [Left(steps=0)]


def test_dollars_are_shared_in_equal_parts() -> None:
    price = Price(input=1, output=2)
    first, second = offers(spending("ask", "ask", dollars=1.0, price=price))
    assert first is not None
    assert first.dollars is not None
    assert first == second
    assert 0.4 < first.dollars < 0.5


def test_a_run_is_not_given_what_the_one_before_it_under_the_same_call_may_have_used() -> None:
    ctx = CallContext("run:1:0", "ask", None, Left(tokens=1_000, dollars=0.5))
    ctx.charge(Spent(input_tokens=100, dollars=0.125, presumed_tokens=600, presumed_dollars=0.25))
    left = ctx.set_aside(Limits(steps=None))
    assert (left.tokens, left.dollars) == (300, 0.125), "nobody reported it, and it counts as used"


# --- what is held ---------------------------------------------------------------------------------------


def test_what_a_call_may_spend_is_held_until_it_says_what_it_used() -> None:
    run = spending("ask", "ask", steps=11)
    account = run.machine.state.account
    run.start(0).start(1)
    assert (account.held.steps, account.holders, account.all_steps) == (9, 2, 10)
    run.returned(0, spent=Spent(steps=2, runs=("child",)))
    assert (account.held.steps, account.all_steps) == (4, 7)
    run.returned(1, spent=Spent(steps=4))
    assert (account.held, account.holders, account.all_steps) == (NOTHING, 0, 7)
    assert account.charged == account.spent


def test_no_rest_of_a_sum_of_fractions_is_held_for_nobody() -> None:
    run = spending("ask", "ask", "ask", dollars=0.7, price=Price(input=1, output=2))
    for position in range(3):
        run.start(position)
    for position in range(3):
        run.returned(position, spent=Spent(dollars=0.1))
    assert run.machine.state.account.held == NOTHING
    assert run.machine.result().dollars is not None


def test_a_call_that_does_not_say_what_it_used_keeps_it_all() -> None:
    run = spending("ask", steps=9).start().returned()
    assert run.machine.state.account.all_steps == 8
    assert run.machine.result().dollars is None, "nobody knows what it cost"


def test_a_call_that_was_given_up_keeps_its_share_until_its_late_end() -> None:
    run = spending("ask", steps=9).start()
    run.tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="too late")
    account = run.machine.state.account
    assert (account.all_steps, account.charged.steps) == (8, 8)
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late", spent=Spent(steps=3))
    assert (account.all_steps, account.charged.steps) == (4, 4)


def test_what_was_given_before_a_crash_stays_held_when_the_call_starts_again() -> None:
    run = spending("hire", steps=9).start().resume(TOOLS)
    assert offers(run) == [Left(steps=0)], "the first one may have used it all"
    run.start().returned(spent=Spent())
    assert run.machine.state.account.all_steps == 8


def test_a_call_in_doubt_keeps_its_share() -> None:
    run = spending("crew", steps=9).start().resume(TOOLS).refuse_all()
    assert run.machine.state.account.all_steps == 8
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late", spent=Spent(steps=1))
    assert run.machine.state.account.all_steps == 2


def test_what_children_used_counts_in_the_result() -> None:
    price = Price(input=1_000_000, output=0)
    run = spending("ask", dollars=1_000.0, price=price).start()
    spent = Spent(steps=2, tool_calls=1, input_tokens=30, output_tokens=4, dollars=0.25, runs=("child",))
    result = run.returned(spent=spent).machine.result()
    assert (result.usage.input, result.usage.output) == (130, 4)
    assert result.dollars == pytest.approx(100.25)
    assert (result.steps, result.tool_calls, result.children) == (1, 1, spent)


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "CallStarted: 'ask' spends on its own"),
        (Left(steps=9, tokens=0), "CallStarted gives 'ask' 9 steps, of 8"),
        (Left(steps=-1, tokens=0), "CallStarted gives 'ask' -1 steps, of 8"),
        (Left(tokens=0), "CallStarted gives 'ask' None steps, of 8"),
        (Left(steps=1, tokens=0, dollars=0.1), "CallStarted gives 'ask' 0.1 dollars, of None"),
        (Left(steps=1, tokens=8_901), "CallStarted gives 'ask' 8901 tokens, of 8900"),
    ],
)
def test_a_call_is_given_no_more_than_there_is(given: Left | None, said: str) -> None:
    run = spending("ask", steps=9, tokens=9_000)
    assert run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0", allowance=given) == said


def test_all_there_is_may_be_given() -> None:
    run = spending("ask", steps=9, tokens=9_000)
    run.tell(ev.CallStarted, step=1, position=0, key="r:1:0", allowance=Left(steps=8, tokens=8_900))
    assert run.machine.state.account.left(run.machine.state.limits, None) == Left(steps=0, tokens=0)


def test_the_call_itself_is_a_call() -> None:
    run = spending("ask", tool_calls=5)
    said = run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0", allowance=Left(tool_calls=5))
    assert said == "CallStarted gives 'ask' 5 tool_calls, of 4"


def test_something_is_given_only_to_a_call_that_spends() -> None:
    run = spending("look", steps=9)
    said = run.refuses(ev.CallStarted, step=1, position=0, key="r:1:0", allowance=Left(steps=1))
    assert said == "CallStarted: 'look' spends nothing on its own"


def test_a_call_that_was_given_nothing_has_used_nothing() -> None:
    run = spending("look", steps=9).start()
    returned = {"step": 1, "position": 0, "parts": (), "spent": Spent()}
    assert run.refuses(ev.CallReturned, **returned) == "'look' was given nothing to spend on its own"


def test_a_call_that_never_started_has_used_nothing_and_saying_so_changes_nothing() -> None:
    run = spending("ask", tool_calls=0)
    failed = {"step": 1, "position": 0, "outcome": "not_executed", "text": "no", "spent": Spent(steps=1)}
    assert run.refuses(ev.CallFailed, **failed) == "'ask' was given nothing to spend on its own"


@pytest.mark.parametrize("field", ["steps", "tool_calls", "input_tokens", "dollars", "unpriced"])
def test_nobody_uses_less_than_nothing(field: str) -> None:
    run = spending("ask").start()
    returned = {"step": 1, "position": 0, "parts": (), "spent": Spent(**{field: -1})}
    assert run.refuses(ev.CallReturned, **returned).startswith("a call cannot spend less than nothing: ")


# --- beside that ----------------------------------------------------------------------------------------


def test_calls_that_were_offered_together_fit_until_one_used_more_than_it_was_given() -> None:
    run = spending("ask", "ask", "ask", tokens=9_000)
    calls = run.effect.calls
    run.start(0)
    assert still_fit(run.machine.state, calls[1:])
    run.returned(0, spent=Spent(input_tokens=calls[0].allowance.tokens))
    assert still_fit(run.machine.state, calls[1:])
    run = spending("ask", "ask", "ask", tokens=9_000).start(0)
    run.returned(0, spent=Spent(input_tokens=8_000))
    assert not still_fit(run.machine.state, calls[1:])
    assert run.start(1).machine.state.account.holders == 1, "what is offered anew does"


def test_the_limits_of_a_child_are_the_narrower_ones() -> None:
    own = Limits(steps=5, tokens=None, dollars=2.0, seconds=None, last_words=True)
    given = Left(steps=9, tool_calls=3, tokens=700, dollars=0.5, seconds=60.0)
    assert bounded(own, given) == Limits(steps=5, tool_calls=3, tokens=700, dollars=0.5, seconds=60.0, last_words=True)


def test_a_limit_of_nothing_stays_one() -> None:
    assert bounded(Limits(dollars=0.0), Left(dollars=0.5)).dollars == 0.0
    assert bounded(Limits(dollars=0.5), Left(dollars=0.0)).dollars == 0.0
    assert bounded(Limits(steps=3), Left()) == Limits(steps=3)


def test_a_late_end_that_frees_a_step_lets_the_run_go_on() -> None:
    run = spending("ask", steps=3).start()
    run.tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="too late")
    run.call("look").start().returned()
    assert isinstance(run.effect, Finish)
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late", spent=Spent())
    assert isinstance(run.effect, CallModel)


def test_a_late_end_that_frees_a_step_takes_back_that_there_are_only_words_left() -> None:
    run = spending("ask", steps=3, last_words=True).start()
    run.tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="too late")
    run.call("look").start().returned()
    assert run.effect.tool_choice == "none"
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late", spent=Spent())
    assert run.effect.tool_choice == "auto"
    run.call("look").start().returned()
    assert run.effect.tool_choice == "none"


def test_an_allowance_is_kept_in_the_log_as_it_was_given() -> None:
    run = spending("ask", steps=9).start()
    assert isinstance(run.log[-1], ev.CallStarted)
    assert run.log[-1].allowance == Left(steps=7)
    assert msgspec.json.decode(msgspec.json.encode(run.log[-1]))["allowance"]["steps"] == 7


# --- calls that are runs --------------------------------------------------------------------------------

TEAM = ev.ToolSpec("team", read_only=True, spends=True, child=True)
UNIT = ev.ToolSpec("unit", idempotent=True, spends=True, child=True)
HAND = ev.ToolSpec("hand", idempotent=True, spends=True, child=True, final=True)
FAMILY = (TEAM, UNIT, HAND, LOOK)


def family(*names: str, **limits: Any) -> Run:
    """A run whose model has asked for these calls, most of which are runs."""
    run = Run(FAMILY, limits=Limits(**{"steps": None, **limits}))
    return run.reply("", *(ToolCall("", name, "{}") for name in names), usage=Usage(100, 0))


def pause(run: Run, position: int = 0) -> Run:
    waiting = (ev.WaitingCall("c", "2.1", "pay"),)
    return run.tell(ev.ChildPaused, **run.place(position), run_id="c", waiting=waiting)


def test_a_run_that_is_taken_up_after_a_crash_is_given_what_it_had_and_is_counted_once() -> None:
    run = family("unit", steps=9).start().resume(FAMILY)
    account = run.machine.state.account
    assert (account.held.steps, account.holders) == (7, 1), "what it may have used is still set aside"
    assert offers(run) == [Left(steps=7)]
    run.start()
    assert (account.held.steps, account.holders) == (7, 1)
    run.returned(spent=Spent(steps=5))
    assert (account.held, account.children.steps, account.all_steps) == (NOTHING, 5, 6)


def test_beside_one_that_is_taken_up_the_others_share_what_is_left_in_whatever_order_they_start() -> None:
    run = family("team", "team", "team", steps=11)
    assert offers(run) == [Left(steps=3)] * 3
    run.start(0).start(1).returned(1, spent=Spent(steps=1)).resume(FAMILY)
    assert offers(run) == [Left(steps=3 + 3), Left(steps=2)]
    run.start(2).start(0)
    assert run.machine.state.account.all_steps == 10, "one is kept"


def test_one_that_is_taken_up_under_a_lower_limit_is_given_no_more_than_there_is() -> None:
    run = family("unit", steps=9).start().resume(FAMILY)
    run.tell(ev.LimitsRaised, limits=Limits(steps=4))
    assert offers(run) == [Left(steps=2)]


def test_a_call_that_was_no_run_before_the_crash_keeps_what_it_was_given() -> None:
    run = family("unit", steps=9)
    run.resume((msgspec.structs.replace(UNIT, child=False),)).start().resume(FAMILY)
    assert offers(run) == [Left(steps=0)]


def test_a_run_pauses_when_only_the_run_under_a_call_waits_and_goes_on_with_it_when_it_is_resumed() -> None:
    run = pause(family("unit", "look", steps=9).start())
    account = run.machine.state.account
    (one,) = run.machine.result().paused
    assert (one.place, one.name, one.run_id, one.waiting[0].name) == ("1.1", "unit", "c", "pay")
    end = run.finish()
    assert (end.status, end.reason) == (
        "awaiting_approval",
        "the run c of the call of unit waits for somebody's decision",
    )
    assert account.held.steps == 7, "it has used some of it"
    run.resume(FAMILY)
    assert run.machine.result().paused == ()
    run.start().returned(spent=Spent(steps=2)).start(1).returned(1)
    assert [one.outcome for one in run.machine.result().calls] == ["ok", "ok"]


def test_what_only_reads_goes_on_beside_a_run_that_waits() -> None:
    run = pause(family("team", "team", "look").start())
    assert [call.position for call in run.effect.calls] == [1, 2]
    run = pause(run.start(1).start(2).returned(2), 1)
    end = run.finish()
    assert end.reason == "2 calls wait (team, team) for somebody's decision"


def test_a_cancelled_run_does_not_say_that_a_run_that_waits_had_no_effect() -> None:
    run = pause(family("unit").start()).cancel("drain").refuse_all()
    assert run.finish().status == "cancelled"
    (record,) = run.machine.result().calls
    assert record.outcome == "in_doubt"


@pytest.mark.parametrize("event", [ev.CallStarted, ev.CallReturned, ev.CallFailed, ev.CallTimedOut, ev.ChildPaused])
def test_nothing_happens_to_a_call_whose_run_waits(event: type[ev.AnyEvent]) -> None:
    run = pause(family("unit").start())
    more: dict[type[ev.AnyEvent], dict[str, Any]] = {
        ev.CallStarted: {"key": "r:1:0", "allowance": Left()},
        ev.CallReturned: {"parts": ()},
        ev.CallFailed: {"outcome": "invalid_arguments", "text": "no"},
        ev.CallTimedOut: {"after_s": 1.0, "text": "no"},
        ev.ChildPaused: {"run_id": "c"},
    }
    run.refuses(event, **run.place(), **more[event])


def test_only_a_call_that_is_a_run_can_wait_for_it() -> None:
    run = family("look").start()
    said = run.refuses(ev.ChildPaused, **run.place(), run_id="c")
    assert said == "ChildPaused: the call of 'look' is no run that could pause"


def test_a_run_that_is_handed_over_to_comes_last_whatever_the_order_of_the_calls() -> None:
    run = family("hand", "look", "unit")
    assert [call.position for call in run.effect.calls] == [1]
    run.start(1).returned(1).start(2).returned(2)
    assert [call.position for call in run.effect.calls] == [0]
    run.start(0).tell(
        ev.CallReturned, **run.place(), parts=(), full="filed", spent=Spent(), child=ev.ChildRun("c", "answered")
    )
    assert (run.finish().answer, [one.outcome for one in run.machine.result().calls]) == ("filed", ["ok"] * 3)


def test_the_record_of_a_call_says_how_its_run_ended_also_where_that_came_late() -> None:
    run = family("team", "team", "unit").start(0).start(1)
    spent, stopped = Spent(), ev.ChildRun("d", "max_steps", "the limit of 2 steps")
    run.tell(ev.CallReturned, **run.place(0), parts=(), spent=spent, child=ev.ChildRun("c", "answered"))
    run.tell(ev.CallFailed, **run.place(1), outcome="tool_error", text="no", spent=spent, child=stopped)
    run.start(2).tell(ev.CallTimedOut, **run.place(2), after_s=1.0, text="too late")
    gone = ev.ChildRun("e", "cancelled")
    run.tell(ev.LateResultArrived, **run.place(2), outcome="ok", text="late", spent=spent, child=gone)
    assert [one.child for one in run.machine.result().calls] == [ev.ChildRun("c", "answered"), stopped, gone]


def test_a_question_about_a_call_that_is_no_run_is_bound_as_it_was_before_there_were_any() -> None:
    run = Run((ev.ToolSpec("pay", approve=True),)).call("pay")
    assert run.digest() == "c7bfe2142a0a9258d5e78503e949b8b5", "as it stands in logs of the first formats"
