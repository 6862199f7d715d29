"""The log back into a machine. That it is the same machine is law 10, in `tests/property`."""

from __future__ import annotations

import pytest

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.transcript import Text, User
from tenlines.errors import InvalidEvent

START = ev.RunStarted(seq=0, at=1.0, run_id="r", agent="a", model="m", messages=(User((Text("x"),)),))


def test_an_empty_log_is_a_run_that_has_not_started() -> None:
    machine = fold([])
    with pytest.raises(InvalidEvent, match="has not started"):
        machine.next(0.0)
    assert machine.result().status == "max_steps"


def test_a_log_can_be_read_from_anything_that_gives_its_events_in_order() -> None:
    assert fold(iter([START])).state == fold((START,)).state


def test_a_log_with_a_gap_is_not_the_log_of_a_run() -> None:
    with pytest.raises(InvalidEvent, match="expected 1"):
        fold([START, ev.CancelRequested(seq=2, at=1.0, mode="now")])


def test_a_log_that_begins_in_the_middle_is_not_the_log_of_a_run() -> None:
    with pytest.raises(InvalidEvent):
        fold([ev.CancelRequested(seq=0, at=1.0, mode="now")])


def test_the_quick_way_of_a_log_that_was_read_is_as_strict_as_the_other_and_comes_to_the_same() -> None:
    events = [codec.decode(codec.encode(one)) for one in (START, ev.MessageQueued(seq=1, at=2.0, parts=(Text("y"),)))]
    slow, quick = Machine(), Machine()
    for event in events:
        slow.apply(event)
        quick.replay(event)
    assert slow.state == quick.state
    for wrong in (events[0], events[1], None, ev.RunEnded(seq=2, at=2.0, status="answered", answer="x")):
        with pytest.raises(InvalidEvent):
            quick.replay(wrong)  # type: ignore[arg-type]
    assert slow.state == quick.state
