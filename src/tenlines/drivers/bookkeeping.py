"""What both drivers do alike: which calls are under way, which were given up, what was heard meanwhile.

How they wait is their own; there is nothing here that waits.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, cast

from tenlines.core.children import still_fit
from tenlines.core.effects import AskHuman, CallModel, Effect, RunnableCall, RunTools, UndoCall
from tenlines.core.limits import Limits
from tenlines.core.transcript import Reply
from tenlines.drivers import drafts
from tenlines.drivers.control import Control
from tenlines.drivers.drafts import Draft, Ended, Running
from tenlines.drivers.recorder import Parts, Recorder
from tenlines.errors import JournalError
from tenlines.ports import Began, Bound, CallContext, CarefulTool, GuardedCall, Invalid

GRACE_S = 0.2
"""How long what was told to stop is waited for, so that it has closed what it had open before the run goes on."""


class Foreign(NamedTuple):
    """A piece of foreign code that is asked something, apart from any call."""

    key: str
    work: Callable[[], Any]
    until: float | None

    def ended(self, end: Ended) -> Ended:
        """Its end. What is meant for the program, not for the run, is raised."""
        if isinstance(end.error, KeyboardInterrupt | SystemExit):
            raise end.error
        return end

    def too_late(self) -> Ended:
        """It did not come back in time, and is left behind."""
        return Ended(error=drafts.NotInTime("it did not come back within the tool's time limit"))


class Bookkeeping(ABC):
    """The calls of one run."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.recorder, self.control = parts, Recorder(parts), parts.control
        self.running: dict[str, Running] = {}
        self.abandoned: dict[str, Running] = {}
        self.waited_for: set[str] = set()
        """Runs under calls that were given up, and were waited for once."""
        self.prepared: list[tuple[Running, Bound]] = []
        """Calls whose intent is recorded and not yet durable."""

    def next(self) -> Effect:
        """What the machine wants, once it knows what was said, and which calls ended that were given up."""
        if self.abandoned or (self.control is not None and self.control.pending):
            for happened in chain(self.heard(), self.latecomers()):
                self.recorder.record(happened)
        return self.parts.machine.next(self.parts.clock.now())

    @abstractmethod
    def begin(self, key: str, call: Callable[[], Any], is_async: bool) -> Callable[[], None]:
        """Run foreign code elsewhere; its end arrives under `key`. Returns what asks it to stop."""

    @abstractmethod
    def latecomers(self) -> Iterator[Draft]:
        """Calls that were given up, were answered for, and have ended after all."""

    def heard(self) -> Iterable[Draft]:
        """What people said since the last time."""
        control = self.control
        return self._taken_from(control) if control is not None and control.pending else ()

    def _taken_from(self, control: Control) -> Iterator[Draft]:
        if not self.recorder.is_ended:
            yield from control.take()
            if self.parts.machine.stopping:
                for running in self.running.values():
                    running.ctx.drain()

    def replied(self, effect: CallModel, end: Ended) -> Draft:
        """The end of a request as what happened. What is meant for the program, not for the run, is raised."""
        came = _reply(end)
        return drafts.replied(effect, came) if isinstance(came, Reply) else drafts.model_failed(effect, came)

    def summarised(self, effect: CallModel, end: Ended) -> Draft:
        """The end of a request for a summary; the same."""
        return drafts.summarised(_reply(end))

    def prepare(self, waiting: deque[RunnableCall], effect: RunTools) -> Iterator[Draft]:
        """Fill the free places with calls that can start, and report the intent of each."""
        while waiting and len(self.running) + len(self.prepared) < effect.max_parallel:
            call = waiting.popleft()
            tool, now = self.parts.tools[call.name], self.parts.clock.now()
            bound = drafts.check(tool, call)
            if isinstance(bound, Invalid):
                yield drafts.invalid(call, bound.text)
                continue
            yield drafts.call_started(call)
            deadline = drafts.deadline_of(tool, now, effect.deadline_at)
            ctx = CallContext(call.key, call.name, deadline, call.allowance, self.began())
            self.prepared.append((Running(call, tool, ctx, now, bound.remarks, drafts.nothing), bound))

    def launch(self) -> None:
        """Start what was prepared, once its intents are durable."""
        for running, bound in self.prepared:
            key, is_async = running.call.key, running.tool.is_async
            work = self.recorder.watchers.around_call(
                partial(running.tool.call, bound, running.ctx), running.ctx, is_async
            )
            stop = self.begin(key, work, is_async)
            self.running[key] = Running(*running[:-1], stop=stop)
        self.prepared.clear()

    # --- leave to run, and what became of calls ---

    def ask(self, effect: AskHuman) -> Iterator[Draft]:
        """What the policy says of each call; what it leaves to a person is asked."""
        for question in effect.questions:
            call = question.call
            if question.about == "in_doubt":
                yield drafts.asked(question, "it had started when the process died, and may have taken effect")
                continue
            tool = self.parts.tools[call.name]
            bound = drafts.check(tool, call)
            if isinstance(bound, Invalid):
                yield drafts.invalid(call, bound.text)
                continue
            guarded = GuardedCall(tool.spec, call.arguments, self.parts.run_id, call.step, call.position)
            yield drafts.settled(question, self.parts.permit(tool, guarded), tool)

    def about_doubt(self, call: RunnableCall) -> Foreign:
        """The question to a tool what became of its call."""
        tool, ctx = self._careful(call)
        return Foreign(f"reconcile:{call.key}", partial(tool.reconcile, call.arguments, ctx), ctx.deadline_at)

    def about_undoing(self, effect: UndoCall) -> Foreign:
        """The compensation of a call."""
        tool, ctx = self._careful(effect.call)
        undo = partial(tool.undo, effect.call.arguments, effect.result, ctx)
        work = self.recorder.watchers.around_call(undo, ctx, is_async=False)
        return Foreign(f"undo:{effect.call.key}", work, ctx.deadline_at)

    def _careful(self, call: RunnableCall) -> tuple[CarefulTool, CallContext]:
        tool, now = cast(CarefulTool, self.parts.tools[call.name]), self.parts.clock.now()
        return tool, CallContext(call.key, call.name, drafts.deadline_of(tool, now, None), began=self.began())

    def began(self) -> Began:
        """What the last event began."""
        state = self.parts.machine.state
        return Began(state.seq, state.start.traceparent if state.start is not None else "")

    def hands_back(self, effect: RunTools, limits: Limits, waiting: Collection[RunnableCall]) -> bool:
        """Whether calls that wait for a place go back to the machine, which says what becomes of them now."""
        over = effect.deadline_at is not None and self.parts.clock.now() >= effect.deadline_at
        machine = self.parts.machine
        changed = machine.state.limits is not limits or not still_fit(machine.state, waiting)
        return bool(machine.stopping) or over or changed

    def overdue(self) -> Iterable[Draft]:
        """Give up the calls whose time is over."""
        return self._given_up() if self.running else ()

    def _given_up(self) -> Iterator[Draft]:
        now = self.parts.clock.now()
        for key, running in list(self.running.items()):
            if running.ctx.deadline_at is not None and now >= running.ctx.deadline_at:
                self.abandon(key)
                yield drafts.timed_out(running.tool, running.call, running.ctx.deadline_at - running.started_at)

    def earliest(self) -> float | None:
        """When the next call is overdue."""
        times = [r.ctx.deadline_at for r in self.running.values() if r.ctx.deadline_at is not None]
        return min(times, default=None)

    def owed(self) -> set[str]:
        """Calls that were given up, whose own runs are still closing their logs; each is named once."""
        owed = {key for key, one in self.abandoned.items() if one.tool.spec.child} - self.waited_for
        self.waited_for |= owed
        return owed

    def is_for_the_program(self, key: str, end: Ended) -> bool:
        """Whether what a call raised is no result: an interrupt, or that the log of its own run cannot be written."""
        is_child = key in self.running and self.running[key].tool.spec.child
        return isinstance(end.error, KeyboardInterrupt) or (is_child and isinstance(end.error, JournalError))

    def late(self, key: str, end: Ended) -> Iterable[Draft]:
        """A call that was given up has ended. That it obeyed its cancellation is no news, but what it spent is."""
        running = self.abandoned.pop(key, None)
        if running is None:
            return ()
        is_news = running.ctx.spent is not None or not isinstance(end.error, asyncio.CancelledError)
        return (drafts.late(running, end),) if is_news else ()

    def abandon(self, key: str) -> None:
        """Stop waiting for a call."""
        running = self.running.pop(key)
        running.give_up()
        self.abandoned[key] = running


def _reply(end: Ended) -> Reply | BaseException:
    """What came back for a request: a reply, or why there is none."""
    if isinstance(end.value, Reply):
        return end.value
    if isinstance(end.error, KeyboardInterrupt | SystemExit | JournalError):
        raise end.error
    return TypeError(f"the model gave {type(end.value).__name__}, not a Reply") if end.error is None else end.error
