"""What follows from a state and a time."""

from __future__ import annotations

import pytest

from tenlines.core import events as ev
from tenlines.core.deciding import next_effect
from tenlines.core.effects import CallModel, Finish, RunTools, Sleep
from tenlines.core.events import Settings, ToolSpec
from tenlines.core.limits import Limits, Reservation
from tenlines.core.machine import Machine
from tenlines.core.state import State
from tenlines.core.transcript import Reply, Text, ToolCall, User
from tenlines.errors import InvalidEvent

READ, ACT = ToolSpec("read", read_only=True), ToolSpec("act")


def started(limits: Limits, **more: object) -> Machine:
    machine = Machine()
    settings = Settings(limits=limits, **more)  # type: ignore[arg-type]
    task = (User((Text("go"),)),)
    machine.apply(
        ev.RunStarted(
            seq=0, at=10.0, run_id="r", agent="a", model="m", messages=task, tools=(READ, ACT), settings=settings
        )
    )
    return machine


def asked(machine: Machine, *names: str) -> Machine:
    machine.apply(ev.StepStarted(seq=1, at=10.0, step=1, attempt=1, reserved=Reservation()))
    calls = tuple(ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names))
    machine.apply(ev.ModelReplied(seq=2, at=10.0, step=1, reply=Reply(calls=calls)))
    return machine


def names(effect: object) -> list[str]:
    assert isinstance(effect, RunTools)
    return [call.name for call in effect.calls]


def test_before_the_run_starts_there_is_nothing_to_do() -> None:
    with pytest.raises(InvalidEvent, match="has not started"):
        next_effect(State(), 0.0)


@pytest.mark.parametrize(
    ("limits", "status"),
    [(Limits(steps=0), "max_steps"), (Limits(tokens=0), "budget"), (Limits(dollars=1), "budget")],
)
def test_a_limit_is_looked_at_before_the_first_request(limits: Limits, status: str) -> None:
    effect = next_effect(started(limits).state, 10.0)
    assert isinstance(effect, Finish)
    assert effect.status == status


def test_the_deadline_is_seen_without_an_event() -> None:
    state = started(Limits(seconds=5)).state
    assert isinstance(next_effect(state, 14.9), CallModel)
    effect = next_effect(state, 15.0)
    assert isinstance(effect, Finish)
    assert effect.status == "deadline"


def test_a_request_says_what_is_left() -> None:
    effect = next_effect(started(Limits(steps=3, tool_calls=2, seconds=5)).state, 11.0)
    assert isinstance(effect, CallModel)
    assert (effect.left.steps, effect.left.tool_calls, effect.left.seconds) == (3, 2, 4.0)


def test_a_failed_request_is_waited_for_and_then_repeated() -> None:
    machine = started(Limits())
    machine.apply(ev.StepStarted(seq=1, at=10.0, step=1, attempt=1, reserved=Reservation()))
    failure = ev.ModelFailed(
        seq=2, at=10.0, step=1, attempt=1, kind="RateLimited", message="429", retryable=True, retry_after_s=30.0
    )
    machine.apply(failure)
    effect = next_effect(machine.state, 11.0)
    assert isinstance(effect, Sleep)
    assert effect.until >= 40.0
    assert isinstance(next_effect(machine.state, effect.until), CallModel)


def test_calls_that_only_read_run_together_and_others_alone_in_the_order_asked() -> None:
    machine = asked(started(Limits()), "read", "read", "act", "read")
    assert names(next_effect(machine.state, 10.0)) == ["read", "read"]
    only = asked(started(Limits()), "act", "read")
    assert names(next_effect(only.state, 10.0)) == ["act"]


def test_a_group_holds_no_more_calls_than_the_budget() -> None:
    machine = asked(started(Limits(tool_calls=2)), "read", "read", "read")
    assert names(next_effect(machine.state, 10.0)) == ["read", "read"]


def test_after_a_cancel_what_has_not_started_is_refused() -> None:
    machine = asked(started(Limits()), "read", "act")
    machine.apply(ev.CancelRequested(seq=3, at=10.0, mode="drain"))
    effect = next_effect(machine.state, 10.0)
    assert isinstance(effect, RunTools)
    assert [refusal.outcome for refusal in effect.refusals] == ["not_executed", "not_executed"]
    assert effect.calls == ()


def test_a_forced_tool_is_forced_until_the_model_obeyed_once() -> None:
    machine = started(Limits(), tool_choice="read")
    effect = next_effect(machine.state, 10.0)
    assert isinstance(effect, CallModel)
    assert effect.tool_choice == "read"
    asked(machine, "read")
    machine.apply(ev.CallStarted(seq=3, at=10.0, step=1, position=0, key="r:1:0"))
    machine.apply(ev.CallReturned(seq=4, at=10.0, step=1, position=0, parts=(Text("x"),)))
    after = next_effect(machine.state, 10.0)
    assert isinstance(after, CallModel)
    assert after.tool_choice == "auto"
