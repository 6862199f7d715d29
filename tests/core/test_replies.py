"""The model's side of a step, by example: replies, failures, what is asked for again."""

from __future__ import annotations

import pytest
from told_run import Run

from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Sleep
from tenlines.core.history import first_fault
from tenlines.core.limits import Limits, Price, Reservation, Retry
from tenlines.core.replay import fold
from tenlines.core.transcript import Assistant, Opaque, Reply, Text, ToolCall, Usage, User


def test_running_out_of_scripted_moves_ends_like_the_step_limit() -> None:
    run = Run().ask().tell(ev.ModelFailed, step=1, attempt=1, kind="OutOfMoves", message="no more")
    assert run.finish().status == "max_steps"


def test_a_failed_request_is_repeated_after_a_pause_and_only_so_often() -> None:
    run = Run(retry=Retry(attempts=2)).ask()
    run.tell(ev.ModelFailed, step=1, attempt=1, kind="E", message="busy", retryable=True, retry_after_s=7.0)
    assert isinstance(run.effect, Sleep)
    assert run.effect.until >= 107.0
    run.at = run.effect.until
    run.ask().tell(ev.ModelFailed, step=1, attempt=2, kind="E", message="busy", retryable=True)
    assert run.finish().status == "model_error"


def refuse(run: Run, violation: str, rule: str = "X-1") -> Run:
    """The provider refuses the request that is under way for a violation of its format."""
    step, attempt = run.machine.state.account.steps + 1, run.machine.state.attempt + 1
    failure = {"kind": "ProtocolRejected", "message": "refused", "rule": rule, "violation": violation}
    return run.tell(ev.ModelFailed, step=step, attempt=attempt, **failure)


def test_refused_reasoning_is_left_out_once_and_stays_in_the_log() -> None:
    signed = (Opaque("p", "m", {"blocks": []}),)
    run = Run().reply("", ToolCall("c", "look", "{}"), opaque=signed).start().returned()
    refuse(run.ask(), "RSN-PREFIX", "ANT-25")
    effect = run.effect
    assert isinstance(effect, CallModel), "it is asked again, at once"
    assert effect.new_from == 0, "and told everything anew"
    assert effect.messages[1] == Assistant("", (ToolCall("c", "look", "{}"),))
    assert run.messages[1].opaque == signed
    assert any("ANT-25" in warning for warning in run.machine.result().warnings)
    refuse(run.ask(), "RSN-FOREIGN")
    assert run.finish().status == "model_error", "the cure did not help; it is not tried again"
    again = fold(run.log).next(run.at)
    assert again == run.effect


def test_what_was_left_out_stays_out_after_a_resume() -> None:
    run = Run().reply("hm", stop="pause", opaque=(Opaque("p", "m", 1),))
    refuse(refuse(run.ask(), "RSN-EDITED").ask(), "")
    assert run.finish().status == "model_error"
    run.resume()
    assert run.effect.messages[-1] == Assistant("hm")


def test_a_refusal_without_a_cure_ends_the_run() -> None:
    assert refuse(Run().ask(), "PAIR-MISSING").finish().status == "model_error"


@pytest.mark.parametrize(
    "reply", [Reply("x", usage=Usage(-1, 5)), Reply("x", usage=Usage(1, -5)), Reply("x", dollars=-1)]
)
def test_a_reply_cannot_give_back_what_was_used(reply: Reply) -> None:
    assert "less than nothing" in Run().ask().refuses(ev.ModelReplied, step=1, reply=reply)


def test_a_step_past_the_limit_is_refused_even_if_a_driver_starts_it() -> None:
    run = Run(limits=Limits(steps=0))
    assert "max_steps" in run.refuses(ev.StepStarted, step=1, attempt=1, reserved=Reservation())


def test_a_step_without_budget_is_refused_even_if_a_driver_starts_it() -> None:
    run = Run(limits=Limits(dollars=1.0))
    assert "budget" in run.refuses(ev.StepStarted, step=1, attempt=1, reserved=Reservation())


def test_an_empty_reply_taken_for_an_answer_leaves_no_empty_message_behind() -> None:
    run = Run(empty_is_answer=True).reply("")
    assert first_fault(run.messages) == ""
    assert run.finish().answer == ""


def test_a_paused_reply_without_words_is_kept_for_its_maker_and_gone_on_with() -> None:
    kept = (Opaque("p", "m", {"server_tool": 1}),)
    run = Run().reply("", stop="pause", opaque=kept)
    assert run.messages[-1] == Assistant("", (), kept)
    assert isinstance(run.effect, CallModel)


@pytest.mark.parametrize("stop", ["refusal", "length", "context_overflow"])
def test_what_was_said_while_the_model_wrote_is_not_lost_when_the_reply_ends_the_run(stop: str) -> None:
    run = Run().ask().say("wait").tell(ev.ModelReplied, step=1, reply=Reply("no", stop=stop))  # type: ignore[arg-type]
    assert run.messages[-1] == User((Text("wait"),))


def test_a_failed_request_for_last_words_is_not_repeated_under_limits_that_do_not_ask_for_them() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned().ask()
    run.tell(ev.LimitsRaised, limits=Limits(steps=1))
    run.tell(ev.ModelFailed, step=2, attempt=1, kind="E", message="busy", retryable=True)
    assert run.finish().status == "max_steps"


def test_a_dear_cache_read_is_reserved_for() -> None:
    price = Price(input=1, output=1, cache_read=9)
    assert price.worst(100, 0) >= price.of(Usage(100, 0, cache_read=100))
