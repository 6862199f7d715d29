"""A driver that is told to let go of a run: the log stays open with nothing under way, and the next owner goes on."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines import Agent, Reply, RunResult, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Effect, Finish
from tenlines.core.replay import fold
from tenlines.drivers import aio, sync
from tenlines.drivers.recorder import Parts
from tenlines.journal.memory import MemoryJournal


def counting(done: list[str]) -> Agent:
    """Three steps with two calls each, then an answer."""

    @tool
    def put(item: str) -> str:
        """Puts."""
        done.append(item)
        return "put"

    def model(messages: Any, request: Any) -> Any:
        if request.step > 3:
            return "done"
        return Reply(calls=tuple(ToolCall(f"c{n}", "put", f'{{"item": "{request.step}{n}"}}') for n in range(2)))

    return Agent(model, [put], journal=MemoryJournal())


def drive(parts: Parts, driver: str) -> RunResult:
    return sync.drive(parts) if driver == "sync" else asyncio.run(aio.drive(parts))


class Leaving:
    """Lets go before the effects with these numbers, counted over all owners."""

    def __init__(self, at: set[int]) -> None:
        self._at, self._count = at, 0
        self.before: list[Effect] = []

    def __call__(self, effect: Effect) -> bool:
        self._count += 1
        if self._count not in self._at:
            return False
        self.before.append(effect)
        return True


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["sync", "aio"])
@given(at=st.sets(st.integers(1, 12), max_size=6))
def test_a_run_that_is_let_go_of_anywhere_ends_as_if_it_had_not_been(driver: str, at: set[int]) -> None:
    done: list[str] = []
    agent, leaving = counting(done), Leaving(at)
    parts = agent._begin("go", (), None, None)._replace(leave=leaving)
    result, turns = drive(parts, driver), 1
    while parts.machine.state.ended is None:
        log = list(agent.journal.read(parts.run_id))
        assert not any(isinstance(event, ev.RunEnded | ev.CancelRequested) for event in log)
        exchange = fold(log).state.exchange
        assert exchange is None or exchange.under_way == 0
        parts = agent._reopen(parts.run_id, None, None, None)._replace(leave=leaving)
        result, turns = drive(parts, driver), turns + 1
    assert (result.status, result.answer, result.steps) == ("answered", "done", 4)
    assert done == ["10", "11", "20", "21", "30", "31"]
    assert turns == len(leaving.before) + 1


def is_seen(seen: list[Effect], effect: Effect) -> bool:
    seen.append(effect)
    return False


@pytest.mark.parametrize("driver", ["sync", "aio"])
def test_the_end_is_never_asked_about(driver: str) -> None:
    seen: list[Effect] = []
    agent = counting([])
    parts = agent._begin("go", (), None, None)._replace(leave=partial(is_seen, seen))
    assert drive(parts, driver).status == "answered"
    assert isinstance(seen[0], CallModel)
    assert not any(isinstance(effect, Finish) for effect in seen)
