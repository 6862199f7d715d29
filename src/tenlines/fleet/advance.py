"""What a worker does with one run: takes it up from the journal, drives it as far as it goes, and lets go of it.

Whatever the engine is. What is true of the run is what the journal says: an engine that hands the same run to two
workers at once makes the second the owner, and the first is refused at its next commit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from tenlines.agent import Agent
from tenlines.core.effects import CallModel, Effect, Sleep
from tenlines.core.result import paused_calls, pending_calls
from tenlines.core.state import Phase, State
from tenlines.drivers import aio
from tenlines.drivers.letters import waiting
from tenlines.drivers.recorder import Parts, machine_of
from tenlines.drivers.threads import in_thread
from tenlines.errors import JournalError, RunNotFound
from tenlines.ports import Beat, Clock, Handback, Journal, Order

BEAT_S = 1.0
"""How often a worker shows that it is alive and at work."""
SHORT_S = 10.0
"""A run that sleeps for no longer than this is kept."""
SETTLE_S = 0.5
"""So long a run under suspicion waits, so that it is known to be under way should it end its worker at once."""
CAREFUL_STEPS = 3
"""After so many steps a run that was under suspicion is out of it."""
STRETCH_S = 300.0
"""After so long, a run that goes on and on is handed back at the next step, so that others have their turn."""
ARRIVAL_S = 2.0
"""How long a run is waited for whose order was there before it."""
_LOOKS = 8


class Stretch:
    """How far one run is driven at a time.

    Attributes:
        asleep_until: Set where it was let go of because nothing is to be done for long.
        waited_s: How long it had waited for a worker, where this is the first one that has it.
    """

    def __init__(self, clock: Clock, is_leaving: Callable[[], bool], longest_s: float = STRETCH_S) -> None:
        self._clock, self._is_leaving, self._longest_s = clock, is_leaving, longest_s
        self._until = math.inf
        self._state: State | None = None
        self._had, self._most_steps = 0, math.inf
        self.asleep_until: float | None = None
        self.waited_s: float | None = None

    def begin(self, state: State, order: Order) -> None:
        """The run is taken up."""
        now = self._clock.now()
        self._until, self._state, self._had = now + self._longest_s, state, state.account.steps
        self._most_steps = CAREFUL_STEPS if order.careful else math.inf
        if state.seq == 0 and state.start is not None:
            self.waited_s = max(0.0, now - state.start.at - order.delay_s)

    @property
    def steps(self) -> int:
        """Those that were made."""
        return 0 if self._state is None else self._state.account.steps - self._had

    def is_over(self, effect: Effect) -> bool:
        """Whether the run is let go of before this effect."""
        now = self._clock.now()
        if isinstance(effect, Sleep) and effect.until - now > SHORT_S:
            self.asleep_until = effect.until
            return True
        is_enough = now > self._until or self.steps >= self._most_steps
        return self._is_leaving() or (is_enough and isinstance(effect, CallModel))


async def advance(agent: Agent, order: Order, beat: Beat, stretch: Stretch) -> Handback:
    """Go on with a run until it ends, pauses, or its stretch is over.

    Raises:
        JournalError: The journal cannot be read or written.
        ConfigError: The agent cannot be had as it is (its tools, its model).
    """
    opened = await _opened(agent, order)
    if isinstance(opened, Handback):
        return opened
    parts = opened._replace(leave=stretch.is_over)
    state, first = parts.machine.state, parts.machine.state.seq + 1
    stretch.begin(state, order)
    beat(state.account.steps)
    if order.careful:
        await agent.clock.sleep(SETTLE_S)
    async with beating(beat, lambda: state.account.steps):
        result = await aio.drive(parts)
    if result.status == "journal_error":
        return _lost(parts, await in_thread(partial(_owner_since, parts, first)), result.reason)
    if state.phase is Phase.ENDED:
        return standing(parts.journal, state, agent.clock.now())
    if stretch.asleep_until is not None:
        return Handback("asleep", until=stretch.asleep_until)
    return Handback("left")


@asynccontextmanager
async def beating(beat: Beat, steps: Callable[[], int]) -> AsyncIterator[None]:
    """Show again and again that somebody is at work."""

    async def go_on() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            beat(steps())

    task = asyncio.get_running_loop().create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def set_aside(agent: Agent, run_id: str, reason: str) -> None:
    """End a run without going on with it. Calls that were under way get their truthful results."""
    parts = await in_thread(partial(agent._stopping, run_id, None, reason))
    if parts is not None:
        result = await aio.drive(parts)
        if result.status == "journal_error":
            raise JournalError(result.reason)


async def _opened(agent: Agent, order: Order) -> Parts | Handback:
    """The run as it is taken up, or why it is not. One that is not there yet is waited for a moment."""
    for look in range(_LOOKS):
        with suppress(RunNotFound):
            taken_up: Parts | Handback = await in_thread(partial(_take_up, agent, order))
            return taken_up
        await agent.clock.sleep(ARRIVAL_S * 2**look / 2**_LOOKS)
    return Handback("absent")


def _take_up(agent: Agent, order: Order) -> Parts | Handback:
    parts = agent._reopen(order.run_id, order.limits if order.again else None, None, None)
    state = parts.machine.state
    if state.phase is not Phase.ENDED:
        return parts
    stands = standing(parts.journal, state, agent.clock.now())
    is_wanted = order.again and stands.status != "answered"
    return parts if is_wanted or stands.why == "left" else stands


def standing(journal: Journal, state: State, now: float) -> Handback:
    """How a run stands that has ended, perhaps only for the time being: `left` where there is something to go on with.

    Raises:
        JournalError: Its letters cannot be read.
    """
    assert state.ended is not None
    if state.ended.status != "awaiting_approval" or state.exchange is None:
        return Handback("ended", state.ended.status)
    expiries = [one.expires_at for one in pending_calls(state) if one.expires_at is not None]
    if is_news(journal, state) or any(at <= now for at in expiries):
        return Handback("left", state.ended.status)
    return Handback("paused", state.ended.status, min(expiries, default=None), state.seq + 1 + state.mail)


def is_news(journal: Journal, state: State) -> bool:
    """Whether something was decided or said since a run paused: about it, or about a run under its calls."""
    if _was_heard_of(journal, state):
        return True
    under = {one.run_id for paused in paused_calls(state) for one in paused.waiting}
    return any(_was_heard_of(journal, machine_of(journal, run_id).state) for run_id in under)


def _was_heard_of(journal: Journal, state: State) -> bool:
    assert state.start is not None
    is_decided = state.ended is not None and state.seq > state.ended.seq
    return is_decided or bool(waiting(journal, state.start.run_id, state.mail))


def _owner_since(parts: Parts, first: int) -> str | None:
    """Who took the run up last, with that event or one after it; None where the journal knows of nobody."""
    owners = [getattr(event, "owner", None) for event in parts.journal.read(parts.run_id, first)]
    return next((owner for owner in reversed(owners) if owner), None)


def _lost(parts: Parts, owner: str | None, reason: str) -> Handback:
    """What became of a run whose journal failed: somebody else has it, or the journal is at fault.

    Raises:
        JournalError: Nobody took it over.
    """
    if owner in (None, parts.opening[0].fields["owner"]):
        raise JournalError(reason)
    return Handback("taken")
