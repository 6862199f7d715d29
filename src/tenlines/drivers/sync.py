"""The driver without an event loop. It performs effects and reports what happened; it decides nothing.

It works where an event loop is running already, since it never starts one in the caller's thread. A plain call
runs in the caller's thread; what must be bounded in time, run beside others or be cancelled runs in a thread
of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextvars import copy_context
from functools import partial
from inspect import isawaitable
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

from tenlines.core.effects import (
    AskHuman,
    CallModel,
    Compact,
    Effect,
    Finish,
    Reconcile,
    RunnableCall,
    RunTools,
    Sleep,
    Summarise,
    UndoCall,
)
from tenlines.core.result import RunResult
from tenlines.drivers import drafts
from tenlines.drivers.bookkeeping import GRACE_S, Bookkeeping, Foreign
from tenlines.drivers.delivery import delivered
from tenlines.drivers.drafts import Draft, Ended
from tenlines.drivers.recorder import Parts
from tenlines.drivers.threads import loop_thread, workers
from tenlines.errors import ConnectionFailed, JournalError
from tenlines.ports import CallContext, Delta, Invalid, OnDelta


def drive(parts: Parts) -> RunResult:
    """Drive a run to its end.

    Raises:
        KeyboardInterrupt: As it came in, after the log was closed.
    """
    driver = _Driver(parts)
    recorder = driver.recorder
    try:
        recorder.open()
        with delivered(parts):
            while not isinstance(effect := driver.next(), Finish) and not parts.leave(effect):
                for happened in driver.perform(effect):
                    recorder.record(happened)
        recorder.end(effect)
        recorder.commit()
    except JournalError as error:
        driver.give_up()
        return recorder.failed(error)
    except BaseException as stop:
        driver.give_up()
        if not isinstance(stop, Exception):
            recorder.interrupt(f"stopped by {type(stop).__name__}")
        raise
    return recorder.result()


class _Arrival(NamedTuple):
    """Something that came from another thread: the end of a call, of a request, or a piece of a reply."""

    key: str
    end: Ended


_WOKEN = _Arrival("", Ended())


class _Driver(Bookkeeping):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.arrivals: SimpleQueue[_Arrival | Delta] = SimpleQueue()
        if self.control is not None:
            self.control.wake_with(partial(self.arrivals.put, _WOKEN))
        self._is_interruptible = self.control is not None and self.control.interrupts

    def next(self) -> Effect:
        """The same, but before the end a moment for runs under calls that were given up to close their logs."""
        effect = super().next()
        if isinstance(effect, Finish) and (owed := self.owed()):
            self._wait_for(owed)
            effect = super().next()
        return effect

    def perform(self, effect: Effect) -> Iterator[Draft]:
        """Do one effect; what happened comes out as soon as it has."""
        match effect:
            case CallModel():
                return self.call_model(effect)
            case RunTools():
                return self.run_tools(effect)
            case AskHuman():
                return self.ask(effect)
            case Reconcile():
                return self.reconcile(effect)
            case UndoCall():
                return self.undo(effect)
            case Compact():
                return iter((drafts.compacted(effect),))
            case Summarise():
                return self.summarise(effect)
            case Sleep(until):
                self.recorder.commit()
                self.sleep(until)
        return iter(())

    # --- the model ----------------------------------------------------------------------------------

    def call_model(self, effect: CallModel) -> Iterator[Draft]:
        return self._ask_model(drafts.step_started(effect), effect, self.recorder.watchers.on_delta, self.replied)

    def summarise(self, effect: Summarise) -> Iterator[Draft]:
        return self._ask_model(drafts.summary_started(effect), effect.request, None, self.summarised)

    def _ask_model(
        self, intent: Draft, request: CallModel, on_delta: OnDelta | None, ended: Callable[[CallModel, Ended], Draft]
    ) -> Iterator[Draft]:
        """Ask, once the intent is durable; pass on what is heard meanwhile, then the end. There is none where the
        request was cancelled: the machine has settled it."""
        yield intent
        self.recorder.commit()
        ask = self.recorder.watchers.around_request(self.parts.session.complete, is_async=False)
        if request.deadline_at is None and not self._is_interruptible:
            yield ended(request, drafts.attempt(ask, request, on_delta))
            return
        key = f"model:{self.parts.machine.state.seq}"
        relay = None if on_delta is None else self.arrivals.put
        self.begin(key, partial(ask, request, relay))
        if end := (yield from self._await_reply(key, request.deadline_at, on_delta)):
            yield ended(request, end)

    def _await_reply(
        self, key: str, until: float | None, on_delta: OnDelta | None
    ) -> Generator[Draft, None, Ended | None]:
        """Wait for the reply; pass on what is heard and written meanwhile."""
        while True:
            arrival = self._next_arrival(until)
            if isinstance(arrival, Delta) and until is not None and self.parts.clock.now() >= until:
                arrival = None  # a stream that is faster than its observers would keep the deadline from being seen
            if arrival is None:
                return Ended(error=ConnectionFailed("the model did not answer within the run's time limit"))
            if isinstance(arrival, Delta):
                if on_delta is not None:
                    on_delta(arrival)
            elif arrival.key == key:
                return arrival.end
            else:
                yield from self.late(arrival.key, arrival.end)
                yield from self.heard()
                if self.parts.machine.stopping == "now":
                    return None

    # --- tools --------------------------------------------------------------------------------------

    def run_tools(self, effect: RunTools) -> Iterator[Draft]:
        is_here = len(effect.calls) == 1 and self._may_run_here(effect)
        runs = self.run_here(effect.calls[0]) if is_here else self.run_together(effect)
        return chain(map(drafts.refused, effect.refusals), runs) if effect.refusals else runs

    def _may_run_here(self, effect: RunTools) -> bool:
        tool = self.parts.tools[effect.calls[0].name]
        bounded = effect.deadline_at is not None or tool.spec.timeout_s is not None
        return not bounded and not tool.is_async and not self._is_interruptible

    def run_here(self, call: RunnableCall) -> Iterator[Draft]:
        """One blocking call, in the caller's thread."""
        tool = self.parts.tools[call.name]
        bound = drafts.check(tool, call)
        if isinstance(bound, Invalid):
            yield drafts.invalid(call, bound.text)
            return
        yield drafts.call_started(call)
        began = self.began()
        self.recorder.commit()
        ctx = CallContext(call.key, call.name, None, call.allowance, began)
        work = self.recorder.watchers.around_call(partial(tool.call, bound, ctx), ctx, is_async=False)
        end = drafts.attempt(copy_context().run, work)
        if isinstance(end.error, KeyboardInterrupt):
            raise end.error
        yield drafts.ended(tool, call, end, bound.remarks, ctx.spent)

    def run_together(self, effect: RunTools) -> Iterator[Draft]:
        """Calls in threads, at most `max_parallel` at once; each result is reported as it arrives."""
        waiting, limits = deque(effect.calls), self.parts.machine.state.limits
        while waiting or self.running:
            yield from self.prepare(waiting, effect)
            self.recorder.commit()
            self.launch()
            if not self.running:
                continue
            arrival = self._next_arrival(self.earliest())
            if isinstance(arrival, _Arrival):
                yield from self._arrived(arrival)
            yield from self.overdue()
            yield from self.heard()
            if self.hands_back(effect, limits, waiting):
                waiting.clear()
            if self.parts.machine.stopping == "now":
                yield from self._end_all()

    def _arrived(self, arrival: _Arrival) -> Iterator[Draft]:
        if arrival.end.error is not None and self.is_for_the_program(arrival.key, arrival.end):
            raise arrival.end.error
        running = self.running.pop(arrival.key, None)
        if running is None:
            yield from self.late(arrival.key, arrival.end)
        else:
            yield drafts.ended(running.tool, running.call, arrival.end, running.remarks, running.ctx.spent)

    def _end_all(self) -> Iterator[Draft]:
        """Stop what is running. A call that has ended meanwhile has its result; the others are left for the machine
        to settle."""
        while self.running and not self.arrivals.empty():
            arrival = self.arrivals.get()
            if isinstance(arrival, _Arrival):
                yield from self._arrived(arrival)
        self.give_up()

    # --- questions to tools ---------------------------------------------------------------------------

    def reconcile(self, effect: Reconcile) -> Iterator[Draft]:
        """Ask what became of calls before a crash."""
        self.recorder.commit()
        for call in effect.calls:
            end = yield from self._consult(self.about_doubt(call))
            yield drafts.reconciled(self.parts.tools[call.name], call, end)

    def undo(self, effect: UndoCall) -> Iterator[Draft]:
        """Take back one call."""
        yield drafts.undo_started(effect.call)
        self.recorder.commit()
        end = yield from self._consult(self.about_undoing(effect))
        yield drafts.undone(effect.call, end)

    def _consult(self, foreign: Foreign) -> Generator[Draft, None, Ended]:
        """Wait for foreign code that was asked something. A cancel does not end it: half an undo helps nobody."""
        self.begin(foreign.key, partial(_whole, foreign.work))
        while True:
            arrival = self._next_arrival(foreign.until)
            if arrival is None:
                return foreign.too_late()
            if isinstance(arrival, _Arrival):
                if arrival.key == foreign.key:
                    return foreign.ended(arrival.end)
                yield from self.late(arrival.key, arrival.end)
                yield from self.heard()

    # --- waiting ------------------------------------------------------------------------------------

    def latecomers(self) -> Iterator[Draft]:
        """Calls that were given up, were answered for, and have ended after all."""
        while self.abandoned and self.recorder.is_between and not self.arrivals.empty():
            arrival = self.arrivals.get()
            if isinstance(arrival, _Arrival):
                yield from self.late(arrival.key, arrival.end)

    def sleep(self, until: float) -> None:
        clock = self.parts.clock
        woken = self.control.woken if self.control is not None else _NEVER
        clock.wait(woken, max(0.0, until - clock.now()))

    def _next_arrival(self, until: float | None) -> _Arrival | Delta | None:
        """The next thing from another thread; None when `until` has come."""
        return self._arrival_within(None if until is None else until - self.parts.clock.now())

    def _arrival_within(self, seconds: float | None) -> _Arrival | Delta | None:
        try:
            return self.arrivals.get(timeout=None if seconds is None else max(0.0, seconds))
        except Empty:
            return None

    def begin(self, key: str, call: Callable[[], Any], is_async: bool = False) -> Callable[[], None]:
        put = self.arrivals.put
        if is_async:
            return loop_thread.submit(_deliver(call, key, put))
        context = copy_context()
        workers.submit(lambda: put(_Arrival(key, drafts.attempt(context.run, call))))
        return drafts.nothing

    def give_up(self) -> None:
        """Wait for nothing any more, but a moment for runs under a call to close their logs. The machine says what that
        means for each call."""
        for key in list(self.running):
            self.abandon(key)
        self._wait_for(self.owed())

    def _wait_for(self, owed: set[str]) -> None:
        """A moment for these to come back. What comes may be news once the machine has settled the call."""
        seen: list[_Arrival | Delta] = []
        end = monotonic() + GRACE_S
        while owed and (arrival := self._arrival_within(end - monotonic())) is not None:
            seen.append(arrival)
            owed.discard(arrival.key if isinstance(arrival, _Arrival) else "")
        for arrival in seen:
            self.arrivals.put(arrival)


def _whole(work: Callable[[], Any]) -> Any:
    """Foreign code to its very end, also where what it gives has to be awaited."""
    value = work()
    return loop_thread.wait_for(value) if isawaitable(value) else value


async def _deliver(call: Callable[[], Any], key: str, put: Callable[[_Arrival], None]) -> None:
    try:
        end = Ended(await call())
    except BaseException as error:  # noqa: BLE001  # the same for coroutines, their own CancelledError included
        end = Ended(error=error)
    put(_Arrival(key, end))


_NEVER = Event()
