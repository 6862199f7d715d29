"""The public doubles do what they say."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import tenlines.testing
from tenlines.testing import FakeClock, RecordingObserver, ScriptedModel


def test_waiting_on_a_fake_clock_takes_no_time_and_is_remembered() -> None:
    clock = FakeClock(start=100.0)
    began = time.monotonic()
    clock.wait(threading.Event(), 3600)
    asyncio.run(clock.sleep(60))
    assert time.monotonic() - began < 5
    assert clock.now() == 100.0 + 3600 + 60
    assert clock.waits == [3600, 60]
    clock.advance(0.5)
    assert clock.now() == 3760.5


def test_a_wait_that_is_cut_short_does_not_move_the_time() -> None:
    woken = threading.Event()
    clock = FakeClock(during=lambda seconds: woken.set())
    clock.wait(woken, 10)
    assert clock.now() == FakeClock().now()

    async def cut_short() -> None:
        task = asyncio.ensure_future(clock.sleep(10))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(cut_short())
    assert clock.now() == FakeClock().now()
    assert clock.waits == [10, 10]


def test_a_scripted_model_begins_anew_with_each_run() -> None:
    model = ScriptedModel(["one"])
    for _ in range(2):
        agent = tenlines.Agent(model, journal="memory")
        assert agent.run_sync("go").answer == "one"
    assert len(model.requests) == 2


def test_the_example_in_the_docstring_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", tenlines.testing.__doc__ or "", re.S)
    exec(example, {})  # noqa: S102  # our own docstring
    assert RecordingObserver().events == []
