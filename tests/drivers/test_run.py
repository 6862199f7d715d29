"""`Run`: a run that is watched, spoken to, stopped and waited for under asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from driver_doubles import Streaming, asks, kinds, log_of, of

from tenlines import Agent, Delta, Limits, Run, RunStopped, tool
from tenlines.core import events as ev
from tenlines.core.transcript import User
from tenlines.errors import JournalError, JournalFailure, RunCancelled, StepLimitReached
from tenlines.journal.memory import MemoryJournal


def watched_agent() -> Agent:
    @tool
    def look() -> str:
        return "seen"

    return Agent(Streaming(asks("look"), "done"), [look], journal="memory")


def test_iterating_gives_every_event_and_every_piece_of_the_reply() -> None:
    async def main() -> None:
        agent = watched_agent()
        run = agent.stream("go")
        seen = [one async for one in run]
        events = [one for one in seen if not isinstance(one, Delta)]
        assert events == log_of(agent, run.run_id)
        assert "".join(one.text for one in seen if isinstance(one, Delta)) == "done"
        last_piece = max(place for place, one in enumerate(seen) if isinstance(one, Delta))
        assert last_piece < seen.index(of(events, ev.ModelReplied)[1])
        assert (await run).answer == "done"
        assert (await run.result()).run_id == run.run_id

    asyncio.run(main())


def test_a_run_can_be_waited_for_without_watching() -> None:
    async def main() -> None:
        assert (await watched_agent().stream("go")).answer == "done"
        assert (await watched_agent().stream("go").result()).answer == "done"
        async with watched_agent().stream("go") as run:
            pass
        assert (await run).answer == "done"

    asyncio.run(main())


def test_watching_may_begin_late_and_misses_nothing() -> None:
    async def main() -> None:
        run = watched_agent().stream("go")
        await run
        assert kinds([one async for one in run])[0] == "RunStarted"

    asyncio.run(main())


def waiting_agent() -> Agent:
    """Its tool waits for ever."""

    @tool(read_only=True)
    async def wait() -> str:
        await asyncio.sleep(60)
        return "waited"

    return Agent([asks("wait")], [wait], journal="memory")


def test_leaving_the_loop_early_cancels_the_run() -> None:
    async def main() -> None:
        agent = waiting_agent()
        run = agent.stream("go")
        async for event in run:
            if isinstance(event, ev.CallStarted):
                break
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run.result(), 5)
        assert agent.journal.runs(1)[0].status == "cancelled"
        assert [one.outcome for one in of(log_of(agent), ev.CallAbandoned)] == ["cancelled"]

    asyncio.run(main())


def test_an_exception_in_the_loop_cancels_the_run_and_is_raised() -> None:
    async def main() -> None:
        agent = waiting_agent()

        async def watch() -> None:
            async with agent.stream("go") as run:
                async for event in run:
                    if isinstance(event, ev.CallStarted):
                        raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await watch()
        assert agent.journal.runs(1)[0].status == "cancelled"

    asyncio.run(main())


def test_say_is_heard_after_the_exchange_and_cancel_ends_the_run() -> None:
    async def main() -> None:
        @tool
        async def ask() -> str:
            run.say("in French, please")
            return "asked"

        agent = Agent([asks("ask"), "oui"], [ask], journal="memory")
        run = agent.stream("go")
        result = await run
        assert [one.text for one in result.messages if isinstance(one, User)] == ["go", "in French, please"]

        other = waiting_agent().stream("go")
        async for event in other:
            if isinstance(event, ev.CallStarted):
                other.cancel(now=True)

    with pytest.raises(RunCancelled) as caught:
        asyncio.run(main())
    assert [record.outcome for record in caught.value.result.calls] == ["cancelled"]


def test_a_run_without_an_answer_raises_at_the_end_of_the_loop_and_when_awaited() -> None:
    async def main() -> None:
        run = Agent([asks("nobody")], journal="memory").stream("go", limits=Limits(steps=1))
        seen: list[Any] = []

        async def watch() -> None:
            async for event in run:
                seen.append(event)

        with pytest.raises(StepLimitReached):
            await watch()
        assert kinds(seen)[-1] == "RunEnded"
        with pytest.raises(RunStopped) as caught:
            await run
        assert caught.value.result.steps == 1
        assert (await run.result(raise_on_stop=False)).status == "max_steps"

    asyncio.run(main())


def test_a_run_whose_journal_fails_raises_that_too() -> None:
    class Full(MemoryJournal):
        def append(self, run_id: str, event: Any) -> None:
            raise JournalError("full")

    async def main() -> None:
        with pytest.raises(JournalFailure):
            await Agent(["x"], journal=Full()).stream("go")

    asyncio.run(main())


def test_a_run_that_is_never_started_leaves_nothing_behind() -> None:
    journal = MemoryJournal()
    run = Agent(["x"], journal=journal).stream("go")
    assert isinstance(run, Run)
    assert run.run_id
    assert journal.runs() == []


def test_two_watched_runs_do_not_disturb_each_other() -> None:
    async def main() -> None:
        agent = watched_agent()
        runs = [agent.stream("go") for _ in range(5)]
        assert [one.answer for one in await asyncio.gather(*(run.result() for run in runs))] == ["done"] * 5
        for run in runs:
            starts = [one.run_id async for one in run if isinstance(one, ev.RunStarted)]
            assert starts == [run.run_id]

    asyncio.run(main())
