"""What a run gives back."""

from __future__ import annotations

import msgspec
import pytest

from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.machine import Machine
from tenlines.core.result import RunUsage
from tenlines.core.transcript import Text, User

RESULT = Machine().result()


def test_usage_adds_up_input_and_output() -> None:
    assert RunUsage(3, 4, 1, 1, 2, 0).total == 7


@pytest.mark.parametrize(
    ("answer", "partial", "reason", "shown"),
    [("", None, "r", ""), ("a", "p", "r", "a"), (None, "p", "r", "p"), (None, None, "r", "r"), (None, "", "r", "r")],
)
def test_the_one_thing_to_print_is_the_answer_then_the_partial_one_then_the_reason(
    answer: str | None, partial: str | None, reason: str, shown: str
) -> None:
    result = msgspec.structs.replace(RESULT, answer=answer, partial_answer=partial, reason=reason)
    assert result.last == shown


def test_a_result_is_a_snapshot_and_does_not_change_as_the_run_goes_on() -> None:
    machine = Machine()
    settings = ev.Settings(limits=Limits(steps=1))
    machine.apply(
        ev.RunStarted(
            seq=0, at=1.0, run_id="r", agent="a", model="m", messages=(User((Text("x"),)),), settings=settings
        )
    )
    before = machine.result()
    machine.apply(ev.MessageQueued(seq=1, at=1.0, parts=(Text("more"),)))
    assert len(before.messages) == 1
    assert len(machine.result().messages) == 2


def test_the_price_of_a_run_is_unknown_rather_than_nothing_when_a_reply_had_none() -> None:
    machine = Machine()
    machine.state.account.unpriced = 1
    assert machine.result().dollars is None
