"""How the run of a plan begins."""

from __future__ import annotations

import pytest

from tenlines import Settings
from tenlines.core.events import ToolSpec
from tenlines.core.limits import Limits, Price
from tenlines.core.transcript import System, Text, User
from tenlines.planning.setup import Setup, read_start

TASK = User((Text("the task"),))
SETUP = Setup(
    (ToolSpec("look", "Look.", {"type": "object"}, read_only=True, source="/x/shop.py"), ToolSpec("pay", approve=True)),
    Settings(limits=Limits(steps=3, dollars=0.5), price=Price(input=1.0, output=2.0)),
    {"task": "the task", "steps": []},
)


@pytest.mark.parametrize("before", [(), (System("Be brief."),)])
def test_what_is_written_is_read_again(before: tuple[System, ...]) -> None:
    start = read_start([*before, SETUP.message(), TASK])
    assert (start.setup, start.task, start.size) == (SETUP, "the task", len(before) + 2)


@pytest.mark.parametrize("messages", [[], [TASK], [TASK, TASK], [System("x"), SETUP.message()]])
def test_another_run_is_none(messages: list[System | User]) -> None:
    with pytest.raises(ValueError, match="does not begin as that of a plan"):
        read_start(messages)
