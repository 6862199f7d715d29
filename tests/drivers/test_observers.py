"""Observers see everything in order and change nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from driver_doubles import Streaming, Way, asks, kinds, log_of

from tenlines import Agent, Control, Limits, Reply, tool
from tenlines.core import events as ev
from tenlines.testing import FakeClock, RecordingObserver


def agent_with(*observers: Any) -> Agent:
    @tool(read_only=True)
    def look() -> str:
        return "seen"

    model = Streaming(Reply("Let me see.", asks("look", "look").calls), asks("nobody"), "done")
    return Agent(model, [look], journal="memory", observers=observers, clock=FakeClock())


OPTIONS: list[dict[str, Any]] = [{}, {"control": True}, {"limits": Limits(seconds=60)}]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "controlled", "with a deadline"])
def test_an_observer_sees_every_event_once_and_in_order(way: Way, options: dict[str, Any]) -> None:
    seen = RecordingObserver()
    agent = agent_with(seen)
    way.run(agent, **{**options, **({"control": Control()} if "control" in options else {})})
    assert seen.events == log_of(agent)
    assert [event.seq for event in seen.events] == list(range(len(seen.events)))
    assert "".join(delta.text for delta in seen.deltas) == "Let me see.done"
    assert {delta.step for delta in seen.deltas} == {1, 3}


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "controlled", "with a deadline"])
def test_nothing_is_streamed_for_those_who_do_not_watch(way: Way, options: dict[str, Any]) -> None:
    class EventsOnly:
        def __init__(self) -> None:
            self.events: list[Any] = []

        def on_event(self, event: Any) -> None:
            self.events.append(event)

    for observers in ([], [EventsOnly()]):
        agent = agent_with(*observers)
        options = {**options, **({"control": Control()} if "control" in options else {})}
        assert way.run(agent, **options).answer == "done"
        assert agent.model.watched == [False] * 3  # type: ignore[attr-defined]


def test_a_run_is_the_same_whether_it_is_watched_or_not(way: Way) -> None:
    plain, watched = agent_with(), agent_with(RecordingObserver())
    first, second = way.run(plain), way.run(watched)
    assert kinds(log_of(plain)) == kinds(log_of(watched))
    assert first.messages == second.messages


def test_observers_that_raise_are_counted_and_change_nothing(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def on_event(self, event: Any) -> None:
            raise RuntimeError("no disk")

        def on_delta(self, delta: Any) -> None:
            raise ValueError("no screen")

    seen = RecordingObserver()
    agent = agent_with(Broken(), seen, Broken())
    with caplog.at_level(logging.WARNING, "tenlines"):
        result = way.run(agent)
    assert result.answer == "done"
    assert seen.events == log_of(agent)
    assert result.observer_errors == 2 * (len(seen.events) + len(seen.deltas))
    assert len(caplog.records) == 4  # each of the two says once that it has no disk, and once that it has no screen


def test_an_observer_cannot_steer_a_run_by_changing_what_it_sees(way: Way) -> None:
    class Meddler:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.RunStarted):
                for one in event.tools:
                    one.parameters.clear()
                    one.parameters["type"] = "string"

    agent = agent_with(Meddler())
    result = way.run(agent)
    assert result.answer == "done"
    assert [record.outcome for record in result.calls] == ["ok", "ok", "unknown_tool"]


def test_an_observer_sees_an_event_only_after_it_was_recorded(way: Way) -> None:
    class Checks:
        def on_event(self, event: Any) -> None:
            assert list(agent.journal.read(agent.journal.runs(1)[0].run_id))[-1] == event

    agent = agent_with(Checks())
    result = way.run(agent)
    assert result.observer_errors == 0
