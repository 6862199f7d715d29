"""What both drivers do alike: which calls are under way, which were given up, what was heard meanwhile.

How they wait is their own; there is nothing here that waits.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from tenlines.core.effects import CallModel, Effect, RunnableCall, RunTools
from tenlines.core.limits import Limits
from tenlines.core.transcript import Reply
from tenlines.drivers import drafts
from tenlines.drivers.drafts import Draft, Ended, Running
from tenlines.drivers.recorder import Parts, Recorder
from tenlines.errors import JournalError
from tenlines.ports import Bound, CallContext, Invalid


class Bookkeeping(ABC):
    """The calls of one run."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.recorder, self.control = parts, Recorder(parts), parts.control
        self.running: dict[str, Running] = {}
        self.abandoned: dict[str, Running] = {}

    def next(self) -> Effect:
        """What the machine wants, once it knows what was said, and which calls ended that were given up."""
        if self.control is not None or self.abandoned:
            for happened in chain(self.heard(), self.latecomers()):
                self.recorder.record(happened)
        return self.parts.machine.next(self.parts.clock.now())

    @abstractmethod
    def begin(self, key: str, call: Callable[[], Any], is_async: bool) -> Callable[[], None]:
        """Run foreign code elsewhere; its end arrives under `key`. Returns what asks it to stop."""

    @abstractmethod
    def latecomers(self) -> Iterator[Draft]:
        """Calls that were given up, were answered for, and have ended after all."""

    def heard(self) -> Iterator[Draft]:
        """What people said since the last time."""
        if self.control is not None and not self.recorder.is_ended:
            yield from self.control.take()

    def replied(self, effect: CallModel, end: Ended) -> Draft:
        """The end of a request as what happened. What is meant for the program, not for the run, is raised."""
        if isinstance(end.value, Reply):
            return drafts.replied(effect, end.value)
        if isinstance(end.error, KeyboardInterrupt | SystemExit | JournalError):
            raise end.error
        wrong = TypeError(f"the model gave {type(end.value).__name__}, not a Reply")
        return drafts.model_failed(effect, wrong if end.error is None else end.error)

    def launch(self, waiting: deque[RunnableCall], effect: RunTools) -> Iterator[Draft]:
        """Fill the free places: all intents first, made durable together, then all starts."""
        starts: list[tuple[Running, Bound]] = []
        while waiting and len(self.running) + len(starts) < effect.max_parallel:
            call = waiting.popleft()
            tool, now = self.parts.tools[call.name], self.parts.clock.now()
            bound = drafts.check(tool, call)
            if isinstance(bound, Invalid):
                yield drafts.invalid(call, bound.text)
                continue
            yield drafts.call_started(call)
            ctx = CallContext(call.key, call.name, drafts.deadline_of(tool, now, effect.deadline_at))
            starts.append((Running(call, tool, ctx, now, bound.remarks, drafts.nothing), bound))
        if not starts:
            return
        self.recorder.commit()
        for running, bound in starts:
            key = running.call.key
            stop = self.begin(key, partial(running.tool.call, bound, running.ctx), running.tool.is_async)
            self.running[key] = running._replace(stop=stop)

    def hands_back(self, effect: RunTools, limits: Limits) -> bool:
        """Whether calls that wait for a place go back to the machine, which says what becomes of them now."""
        over = effect.deadline_at is not None and self.parts.clock.now() >= effect.deadline_at
        machine = self.parts.machine
        return bool(machine.stopping) or over or machine.state.limits is not limits

    def overdue(self) -> Iterator[Draft]:
        """Give up the calls whose time is over."""
        now = self.parts.clock.now()
        for key, running in list(self.running.items()):
            if running.ctx.deadline_at is not None and now >= running.ctx.deadline_at:
                self.abandon(key)
                yield drafts.timed_out(running.tool, running.call, running.ctx.deadline_at - running.started_at)

    def earliest(self) -> float | None:
        """When the next call is overdue."""
        times = [r.ctx.deadline_at for r in self.running.values() if r.ctx.deadline_at is not None]
        return min(times, default=None)

    def late(self, key: str, end: Ended) -> Iterator[Draft]:
        """A call that was given up has ended. That it obeyed its cancellation is no news."""
        running = self.abandoned.pop(key, None)
        if running is not None and not isinstance(end.error, asyncio.CancelledError):
            yield drafts.late(running, end)

    def abandon(self, key: str) -> None:
        """Stop waiting for a call."""
        running = self.running.pop(key)
        running.give_up()
        self.abandoned[key] = running
