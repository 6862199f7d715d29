"""A crash at every place of a log: the run goes on from there, and nothing that may not run twice does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from driver_doubles import Way, asks, of

from tenlines import Agent, CallContext, Control, Limits, Reply, RunResult, Settings, tool
from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.core.limits import Retry
from tenlines.core.replay import fold
from tenlines.core.transcript import Result
from tenlines.errors import Overloaded, RunNotFound
from tenlines.journal.memory import MemoryJournal
from tenlines.testing import FakeClock

RUN = "r"


class Outside:
    """The world that an agent acts on. It outlives the process."""

    def __init__(self) -> None:
        self.keys: dict[str, list[str]] = {"look": [], "put": [], "send": []}
        self.asked = 0

    def agent(self, journal: MemoryJournal) -> Agent:
        """A new process."""

        @tool(read_only=True)
        def look(ctx: CallContext) -> str:
            self.keys["look"].append(ctx.key)
            return "seen"

        @tool(idempotent=True)
        def put(ctx: CallContext) -> str:
            self.keys["put"].append(ctx.key)
            return "stored"

        @tool
        async def send(ctx: CallContext) -> str:
            self.keys["send"].append(ctx.key)
            return "sent"

        failures = [Overloaded("busy")]

        def model(messages: list[Any]) -> Reply:
            """Depends on the transcript alone, as a real model does."""
            self.asked += 1
            steps = sum(message["role"] == "assistant" for message in messages)
            if steps == 1 and failures:
                raise failures.pop()
            moves = [asks("look", "look", "put", "send"), asks("send", "nobody", "look"), asks("put"), Reply("done")]
            return moves[steps]

        settings = Settings(retry=Retry(first_wait_s=1), max_parallel=2)
        return Agent(model, [look, put, send], journal=journal, clock=FakeClock(), settings=settings)


class Crashed(MemoryJournal):
    """What was durable when the process died."""

    def __init__(self, log: list[AnyEvent]) -> None:
        super().__init__()
        self._runs[RUN] = list(log)


def whole_log(way: Way, monkeypatch: pytest.MonkeyPatch) -> list[AnyEvent]:
    """The log of a run that nothing disturbed."""
    monkeypatch.setattr("tenlines.agent.new_run_id", lambda: RUN)
    journal = MemoryJournal()
    assert way.run(Outside().agent(journal)).answer == "done"
    return list(journal.read(RUN))


def done_before(log: list[AnyEvent], outside: Outside, took_effect: bool) -> None:
    """What the dead process had done: all that ended, and what had started if it took effect."""
    ended = {(one.step, one.position) for one in of(log, ev.CallReturned)}
    for start in of(log, ev.CallStarted):
        if took_effect or (start.step, start.position) in ended:
            outside.keys[tool_of(log, start)].append(start.key)


def tool_of(log: list[AnyEvent], start: Any) -> str:
    """The tool of a call."""
    (reply,) = [one.reply for one in of(log, ev.ModelReplied) if one.step == start.step]
    name: str = reply.calls[start.position].name
    return name


def check(log: list[AnyEvent], outside: Outside, result: RunResult, journal: MemoryJournal, place: Any) -> None:
    """What must hold after a resume from any place."""
    assert result.answer == "done", place
    assert result.steps == 4
    counts = Counter(outside.keys["send"])
    assert max(counts.values()) == 1, f"{place}: a call that acts ran twice"
    ended = {(one.step, one.position) for one in of(log, ev.CallReturned, ev.CallFailed, ev.CallAbandoned)}
    for start in of(log, ev.CallStarted):
        name = tool_of(log, start)
        (record,) = [one for one in result.calls if (one.step, one.position) == (start.step, start.position)]
        if (start.step, start.position) in ended:
            continue
        if name == "send":
            assert record.outcome == "in_doubt", place
            assert "may have" in record.text
            assert outside.keys[name].count(start.key) <= 1
        else:
            assert record.outcome == "ok", place
            assert start.key in outside.keys[name]
    results = [one for one in result.messages if isinstance(one, Result)]
    assert len(results) == len(result.calls) == 8
    assert fold(journal.read(RUN)).result() == result


@pytest.mark.parametrize("took_effect", [False, True], ids=["before its effect", "after its effect"])
def test_a_crash_after_every_event_is_survived(way: Way, monkeypatch: pytest.MonkeyPatch, took_effect: bool) -> None:
    log = whole_log(way, monkeypatch)
    assert len(log) == 27
    for place in range(1, len(log) + 1):
        outside, journal = Outside(), Crashed(log[:place])
        done_before(log[:place], outside, took_effect)
        result = way.resume(outside.agent(journal), RUN)
        check(log[:place], outside, result, journal, place)
        if place == len(log):
            assert outside.asked == 0  # it was answered
            assert list(journal.read(RUN)) == log


@pytest.mark.slow
def test_a_crash_after_every_event_of_a_resume_is_survived_too(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    log = whole_log(way, monkeypatch)
    for place in range(1, len(log), 3):
        outside, journal = Outside(), Crashed(log[:place])
        way.resume(outside.agent(journal), RUN)
        again = list(journal.read(RUN))
        for second in range(place + 1, len(again), 2):
            outside, journal = Outside(), Crashed(again[:second])
            done_before(again[:second], outside, True)
            for keys in outside.keys.values():  # of a repeatable call there may be two starts
                keys[:] = dict.fromkeys(keys)
            result = way.resume(outside.agent(journal), RUN)
            assert result.answer == "done"
            assert max(Counter(outside.keys["send"]).values()) == 1
            assert fold(journal.read(RUN)).result() == result


def test_the_key_of_a_call_is_the_same_before_and_after_a_crash(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    log = whole_log(way, monkeypatch)
    for place in range(1, len(log)):
        journal = Crashed(log[:place])
        way.resume(Outside().agent(journal), RUN)
        keys: dict[tuple[int, int], set[str]] = {}
        for start in of(journal.read(RUN), ev.CallStarted):
            keys.setdefault((start.step, start.position), set()).add(start.key)
        assert all(one == {f"{RUN}:{step}:{position}"} for (step, position), one in keys.items())


def test_a_call_that_runs_again_is_counted_once(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    log = whole_log(way, monkeypatch)
    place = next(place for place, event in enumerate(log, 1) if isinstance(event, ev.CallStarted))
    journal = Crashed(log[:place])
    result = way.resume(Outside().agent(journal), RUN)
    assert result.tool_calls == 7
    assert len(of(journal.read(RUN), ev.CallStarted)) == 8


def test_a_tool_that_is_gone_after_a_crash_is_unknown_or_in_doubt_and_never_runs(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = whole_log(way, monkeypatch)
    for place in range(1, len(log)):
        journal = Crashed(log[:place])
        without = Agent(lambda messages: "done", {}, journal=journal, clock=FakeClock())
        result = way.resume(without, RUN)
        assert result.answer == "done"
        open_calls = {(one.step, one.position) for one in of(log[:place], ev.CallStarted)} - {
            (one.step, one.position) for one in of(log[:place], ev.CallReturned)
        }
        for record in result.calls:
            if (record.step, record.position) in open_calls and record.name == "send":
                assert record.outcome == "in_doubt"


def test_an_unknown_run_is_not_found(way: Way) -> None:
    with pytest.raises(RunNotFound):
        way.resume(Agent(["x"], journal="memory"), "nobody")


@pytest.mark.parametrize("status", ["max_steps", "tool_limit", "deadline", "cancelled", "model_error", "stuck"])
def test_every_stop_can_be_resumed_and_repeats_nothing(way: Way, status: str) -> None:
    """Whatever stopped the run, raising the limit and going on runs each call once."""
    control, runs = Control(), []

    @tool
    def work(n: int = 0) -> str:
        runs.append(n)
        if status == "cancelled" and len(runs) == 2:
            control.cancel()
        return "same" if status == "stuck" else f"result {len(runs)}"

    def endless(messages: list[Any]) -> Any:
        return asks("work")

    def failing(messages: list[Any]) -> Any:
        if len(messages) > 4:
            raise ValueError("no model")
        return asks("work")

    limits = {
        "max_steps": Limits(steps=2),
        "tool_limit": Limits(tool_calls=2),
        "deadline": Limits(seconds=0.05),
    }.get(status, Limits())
    clock = FakeClock(start=0.0)
    journal = MemoryJournal()

    class Hurry:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CallReturned) and status == "deadline" and len(runs) == 2:
                clock.advance(60)

    first_model: Callable[..., Any] = failing if status == "model_error" else endless
    first = Agent(first_model, [work], journal=journal, limits=limits, clock=clock, observers=[Hurry()])
    stopped = way.run(first, control=control)
    assert stopped.status == status
    before = len(runs)
    second = Agent([asks("work"), "done"], [work], journal=journal, clock=clock)
    result = way.resume(second, stopped.run_id, limits=Limits())
    assert result.answer == "done"
    assert len(runs) == before + 1
    assert result.messages[: len(stopped.messages)] == stopped.messages
