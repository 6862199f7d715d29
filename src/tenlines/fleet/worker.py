"""`Worker`: one process of a fleet. What an engine calls, and what goes on beside that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from tenlines.agent import Agent
from tenlines.drivers.callers import outermost
from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, RunNotFound, TenlinesError
from tenlines.fleet.advance import Stretch, advance, beating, set_aside
from tenlines.fleet.fleet import Fleet
from tenlines.fleet.pacing import Pace, Paced
from tenlines.fleet.places import Places
from tenlines.ports import Beat, Clock, Engine, Handback, Journal, Lane, Mailbox, Order, SystemClock

NEWS_EVERY_S = 2.0
"""How often it is looked for decisions and letters to runs that wait."""
NEWS_MARGIN_S = 60.0
"""How far apart the clocks of a fleet may be."""
NEWS_AT_FIRST_S = 3 * 3600.0
"""How far back a worker looks that has just begun: longer than a run waits before it is looked at anyway."""

_log = logging.getLogger("tenlines.fleet")


class Turn(NamedTuple):
    """One thing that a worker did, or could not do, with a run."""

    what: Literal["began", "handed back", "failed", "set aside", "submitted"]
    order: Order
    handback: Handback | None = None
    why: str = ""
    steps: int = 0
    """Steps that were made."""
    waited_s: float | None = None
    """How long the run had waited for a worker, where it had none before."""


Watch: TypeAlias = Callable[[Turn], None]


class Limits(NamedTuple):
    """What holds for the whole fleet."""

    pace: Pace
    places: Places


class _AtWork:
    """A turn that is under way, and whom it tells that it is."""

    def __init__(self, order: Order, beat: Beat) -> None:
        self.order, self.beat = order, beat
        self.turn: asyncio.Future[Handback]


class Worker:
    """One process of a fleet.

    Args:
        fleet: The agents that it has.
        journal: Where their runs are; the same for all workers.
        engine: Hands runs to it.
        limits: Those of the whole fleet.
        parallel: Runs of each lane that are worked on at once.
        queues: Whose runs it takes.
        watch: Told what is done with each run.
    """

    def __init__(
        self,
        fleet: Fleet,
        journal: Journal,
        engine: Engine,
        limits: Limits,
        *,
        parallel: int = 20,
        queues: Sequence[str] = ("default",),
        watch: Watch = lambda turn: None,
        clock: Clock | None = None,
    ) -> None:
        self._fleet, self._journal, self._engine, self._limits = fleet, journal, engine, limits
        self._parallel, self._queues, self._watch = parallel, tuple(queues), watch
        self._clock = clock or SystemClock()
        self._agents: dict[int, Agent] = {}
        self._leaving: tuple[asyncio.Task[object], ...] = ()
        self._at_work: dict[str, _AtWork] = {}
        self._careful = asyncio.Lock()  # of all lanes together, one at a time

    @property
    def under_way(self) -> dict[str, Order]:
        """The runs that are worked on at the moment."""
        return {run_id: one.order for run_id, one in self._at_work.items()}

    async def serve(self, leaving: asyncio.Event) -> None:
        """Work on runs until `leaving` is set, then hand back those that are under way, each at its next step.

        Set it before the event loop ends: where `asyncio.run` cancels all tasks at once, the library of Temporal keeps
        the process from ending.

        Raises:
            EngineError: The engine cannot be reached at the beginning.
        """
        await self._engine.plan(self._fleet.timetables())
        news = asyncio.create_task(self._pass_on_news())
        leave = asyncio.create_task(leaving.wait())
        self._leaving = (leave,)
        try:
            await self._engine.work(self, self._lanes(), leave)
        finally:
            for task in (news, leave):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _lanes(self) -> Mapping[Lane, int]:
        return {lane: self._parallel for lane in self._fleet.lanes(self._queues)}

    def _is_leaving(self) -> bool:
        return any(one.done() for one in self._leaving)

    # --- what the engine calls ------------------------------------------------------------------------

    async def advance(self, order: Order, beat: Beat) -> Handback:
        """Go on with a run until it ends, pauses, sleeps or is let go of.

        An engine that gave this worker up, and hands the run to it once more, comes to the turn that is under way.
        """
        at_work = self._at_work.get(order.run_id)
        if at_work is None:
            at_work = self._at_work[order.run_id] = _AtWork(order, beat)
            at_work.turn = asyncio.ensure_future(self._turn(at_work))
        at_work.beat = beat
        return await asyncio.shield(at_work.turn)

    async def _turn(self, at_work: _AtWork) -> Handback:
        order, stretch = at_work.order, Stretch(self._clock, self._is_leaving)
        self._watch(Turn("began", order))
        try:
            handback = await self._within_limits(order, lambda steps: at_work.beat(steps), stretch)
        except Exception as error:
            self._watch(Turn("failed", order, None, _in_words(error), stretch.steps, stretch.waited_s))
            raise
        finally:
            del self._at_work[order.run_id]
        self._watch(Turn("handed back", order, handback, "", stretch.steps, stretch.waited_s))
        return handback

    async def _within_limits(self, order: Order, beat: Beat, stretch: Stretch) -> Handback:
        agent = self._agent(order.lane)
        async with AsyncExitStack() as held:
            waiting = asyncio.ensure_future(self._admit(order, held))
            async with beating(beat, lambda: -1):
                await asyncio.wait({waiting, *self._leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                await asyncio.wait({waiting})
                return Handback("left")
            waiting.result()
            return await advance(agent, order, beat, stretch)

    async def _admit(self, order: Order, held: AsyncExitStack) -> None:
        """Wait for what a run needs before it is gone on with."""
        if order.careful:
            await held.enter_async_context(self._careful)
        await held.enter_async_context(self._limits.places.of(self._fleet.queue(order.queue)))

    async def set_aside(self, order: Order, reason: str) -> None:
        """End a run that costs too many workers their lives."""
        await set_aside(self._agent(order.lane), order.run_id, reason)
        self._watch(Turn("set aside", order, why=reason))

    async def submit_due(self, schedule: str, due: str) -> str:
        """Submit the run of a schedule."""
        plan = self._fleet.schedules.get(schedule)
        if plan is None:
            raise ConfigError(f"this worker has no schedule named {schedule!r}: its fleet has changed since")
        agent = self._agent(Lane(plan.queue, plan.agent, self._fleet.named(plan.agent).version))
        run_id = await agent.submit(
            plan.task, self._engine, queue=plan.queue, priority=plan.priority, key=f"{schedule} {due}"
        )
        self._watch(Turn("submitted", Order(run_id, agent.name, agent.version, plan.queue, plan.priority)))
        return run_id

    def _agent(self, lane: Lane) -> Agent:
        """The agent of a lane, with the journal and the pace of the fleet."""
        agent = self._fleet.agent(lane)
        if agent is None:
            raise ConfigError(f"this worker has no agent for {lane}")
        if id(agent) not in self._agents:
            self._agents[id(agent)] = agent._recording_in(self._journal, lambda model: Paced(model, self._limits.pace))
        return self._agents[id(agent)]

    # --- beside that ----------------------------------------------------------------------------------

    async def _pass_on_news(self) -> None:
        """Wake the runs that wait for people when these have spoken, wherever they did."""
        if not isinstance(self._journal, Mailbox):
            return
        passed: dict[str, int] = {}
        since = self._clock.now() - NEWS_AT_FIRST_S
        while True:
            looked_at = self._clock.now()
            try:
                found = await in_thread(partial(self._journal.news, since))
                for news in found:
                    if passed.get(news.run_id, -1) < news.mark:
                        await self._engine.wake(await in_thread(partial(self._who, news.run_id)), news)
                passed, since = dict(found), looked_at - NEWS_MARGIN_S
            except TenlinesError as error:  # it is looked again, from the same time on
                _log.warning("news of runs that wait cannot be passed on; it is tried again: %s", error)
            await self._clock.sleep(NEWS_EVERY_S)

    def _who(self, run_id: str) -> str:
        """The run that goes on when something is new about this one."""
        try:
            return outermost(self._journal, run_id)
        except RunNotFound:
            return run_id


def _in_words(error: BaseException) -> str:
    return str(error) if isinstance(error, TenlinesError) else f"{type(error).__name__}: {error}"
