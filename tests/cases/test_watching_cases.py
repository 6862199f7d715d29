"""Observers that fail, and observers that are slow."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec
import pytest
from case_world import Played, World

from tenlines.core import events as ev


class Broken:
    """Raises whatever it is shown."""

    def on_event(self, event: Any) -> None:
        raise RuntimeError(f"{type(event).__name__} is too much")

    def on_delta(self, delta: Any) -> None:
        raise RuntimeError("no screen")


class Slow:
    """Takes a moment for every event, and a second for one of them."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def on_event(self, event: Any) -> None:
        time.sleep(1 if isinstance(event, ev.CallStarted) else 0.01)
        self.kinds.append(type(event).__name__)


def kinds(run: Played) -> list[str]:
    """What happened, in order."""
    return [type(event).__name__ for event in run.log]


@pytest.mark.slow
def test_trace_02_an_observer_that_fails_or_is_slow_changes_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.store()
    runs = []

    @world.tool
    def t() -> str:
        """T."""
        runs.append("t")
        return "r"

    alone = world.play().expect()
    with caplog.at_level(logging.WARNING, "tenlines"):
        watched = world.play(observers=[Broken(), Broken()]).expect(tool_runs={"t": 2})  # one in each run
    unlike = {"run_id": alone.result.run_id, "observer_errors": 0, "left": alone.result.left}
    assert msgspec.structs.replace(watched.result, **unlike) == alone.result
    assert watched.sent == alone.sent
    assert kinds(watched) == kinds(alone)
    assert watched.result.observer_errors >= 2 * len(watched.log)
    said = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    each = {f"{kind} is too much" for kind in kinds(watched)} | {"no screen"}
    assert sorted(said) == sorted([*each] * 2), "each error of each observer, once"
    again = world.play(resume=watched.result.run_id, observers=[Broken()], model=[]).expect(model_calls=0, tool_runs={})
    assert again.result.answer == "r"
    slow = Slow()
    assert slow.kinds == kinds(world.play(observers=[slow]).expect(tool_runs={"t": 3})) == kinds(alone)
    assert runs == ["t"] * 3
