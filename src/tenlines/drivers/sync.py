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
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, NamedTuple

from tenlines.core.effects import CallModel, Effect, Finish, RunnableCall, RunTools, Sleep
from tenlines.core.result import RunResult
from tenlines.core.transcript import Reply
from tenlines.drivers import recorder as rec
from tenlines.drivers.recorder import Draft, Ended, Parts, Recorder, Running
from tenlines.drivers.threads import loop_thread, workers
from tenlines.errors import ConnectionFailed, JournalError
from tenlines.ports import Bound, CallContext, Delta, Invalid, OnDelta


def drive(parts: Parts) -> RunResult:
    """Drive a run to its end.

    Raises:
        KeyboardInterrupt: As it came in, after the log was closed.
    """
    driver = _Driver(parts)
    recorder = driver.recorder
    try:
        recorder.open()
        while not isinstance(effect := driver.next(), Finish):
            for happened in driver.perform(effect):
                recorder.record(happened)
        recorder.finish(effect)
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


class _Driver:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.recorder = parts, Recorder(parts)
        self.control = parts.control
        self.arrivals: SimpleQueue[_Arrival | Delta] = SimpleQueue()
        self.running: dict[str, Running] = {}
        self.abandoned: dict[str, Running] = {}
        if self.control is not None:
            self.control.wake_with(partial(self.arrivals.put, _WOKEN))

    def next(self) -> Effect:
        """What the machine wants, once it knows what was said, and which calls ended that were given up."""
        if self.control is not None or self.abandoned:
            for happened in chain(self.heard(), self.latecomers()):
                self.recorder.record(happened)
        return self.parts.machine.next(self.parts.clock.now())

    def perform(self, effect: Effect) -> Iterator[Draft]:
        """Do one effect; yield what happened, each as soon as it has."""
        match effect:
            case CallModel():
                yield from self.call_model(effect)
            case RunTools():
                yield from self.run_tools(effect)
            case Sleep(until):
                self.recorder.commit()
                self.sleep(until)

    # --- the model ----------------------------------------------------------------------------------

    def call_model(self, effect: CallModel) -> Iterator[Draft]:
        yield rec.step_started(effect)
        self.recorder.commit()
        on_delta = self.recorder.on_delta
        if effect.deadline_at is None and self.control is None:
            end = rec.attempt(partial(self.parts.session.complete, effect, on_delta))
        else:
            key = f"model:{effect.step}:{effect.attempt}"
            relay = None if on_delta is None else self.arrivals.put
            self._begin(key, partial(self.parts.session.complete, effect, relay))
            waited = yield from self._await_reply(key, effect.deadline_at, on_delta)
            if waited is None:
                return  # cancelled: the machine has settled the step
            end = waited
        yield self._replied(effect, end)

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
                yield from self._late(arrival)
                yield from self.heard()
                if self.parts.machine.stopping == "now":
                    return None

    def _replied(self, effect: CallModel, end: Ended) -> Draft:
        if isinstance(end.error, KeyboardInterrupt | SystemExit | JournalError):
            raise end.error
        if end.error is not None:
            return rec.model_failed(effect, end.error)
        if not isinstance(end.value, Reply):
            return rec.model_failed(effect, TypeError(f"the model gave {type(end.value).__name__}, not a Reply"))
        return rec.replied(effect, end.value)

    # --- tools --------------------------------------------------------------------------------------

    def run_tools(self, effect: RunTools) -> Iterator[Draft]:
        for refusal in effect.refusals:
            yield rec.refused(refusal)
        if len(effect.calls) == 1 and self._may_run_here(effect):
            yield from self.run_here(effect.calls[0])
        elif effect.calls:
            yield from self.run_together(effect)

    def _may_run_here(self, effect: RunTools) -> bool:
        tool = self.parts.tools[effect.calls[0].name]
        bounded = effect.deadline_at is not None or tool.spec.timeout_s is not None
        return not bounded and not tool.is_async and self.control is None

    def run_here(self, call: RunnableCall) -> Iterator[Draft]:
        """One blocking call, in the caller's thread."""
        tool = self.parts.tools[call.name]
        bound = rec.check(tool, call)
        if isinstance(bound, Invalid):
            yield rec.invalid(call, bound.text)
            return
        yield rec.call_started(call)
        self.recorder.commit()
        ctx = CallContext(call.key, call.name, None)
        end = rec.attempt(partial(copy_context().run, tool.call, bound, ctx))
        if isinstance(end.error, KeyboardInterrupt):
            raise end.error
        yield rec.ended(tool, call, end, bound.remarks)

    def run_together(self, effect: RunTools) -> Iterator[Draft]:
        """Calls in threads, at most `max_parallel` at once; each result is reported as it arrives."""
        waiting = deque(effect.calls)
        while waiting or self.running:
            if waiting and len(self.running) < effect.max_parallel:
                yield from self._launch(waiting, effect)
            if not self.running:
                continue
            self.recorder.commit()
            arrival = self._next_arrival(self._earliest())
            if isinstance(arrival, _Arrival):
                yield from self._arrived(arrival)
            yield from self._overdue(effect)
            yield from self.heard()
            if rec.nothing_more_starts(self.parts, effect):
                waiting.clear()
            if self.parts.machine.stopping == "now":
                yield from self._end_all()

    def _launch(self, waiting: deque[RunnableCall], effect: RunTools) -> Iterator[Draft]:
        """Fill the free places: all intents first, made durable together, then all starts."""
        starts: list[tuple[Running, Bound]] = []
        while waiting and len(self.running) + len(starts) < effect.max_parallel:
            call = waiting.popleft()
            tool, now = self.parts.tools[call.name], self.parts.clock.now()
            bound = rec.check(tool, call)
            if isinstance(bound, Invalid):
                yield rec.invalid(call, bound.text)
                continue
            yield rec.call_started(call)
            ctx = CallContext(call.key, call.name, rec.deadline_of(tool, now, effect.deadline_at))
            starts.append((Running(call, tool, ctx, now, bound.remarks, rec.nothing), bound))
        self.recorder.commit()
        for running, bound in starts:
            key = running.call.key
            stop = self._begin(key, partial(running.tool.call, bound, running.ctx), running.tool.is_async)
            self.running[key] = running._replace(stop=stop)

    def _arrived(self, arrival: _Arrival) -> Iterator[Draft]:
        running = self.running.pop(arrival.key, None)
        if running is None:
            yield from self._late(arrival)
        elif isinstance(arrival.end.error, KeyboardInterrupt):
            self.running[arrival.key] = running
            raise arrival.end.error
        else:
            yield rec.ended(running.tool, running.call, arrival.end, running.remarks)

    def _overdue(self, effect: RunTools) -> Iterator[Draft]:
        now = self.parts.clock.now()
        for key, running in list(self.running.items()):
            if running.ctx.deadline_at is not None and now >= running.ctx.deadline_at:
                self._abandon(key)
                yield rec.timed_out(running.tool, running.call, running.ctx.deadline_at - running.started_at)

    def _end_all(self) -> Iterator[Draft]:
        """Stop what is running. A call that has ended meanwhile has its result; the others are left for the machine
        to settle."""
        while self.running and not self.arrivals.empty():
            arrival = self.arrivals.get()
            if isinstance(arrival, _Arrival):
                yield from self._arrived(arrival)
        self.give_up()

    # --- waiting ------------------------------------------------------------------------------------

    def heard(self) -> Iterator[Draft]:
        """What people said since the last time."""
        if self.control is not None and not self.recorder.is_ended:
            yield from self.control.take()

    def latecomers(self) -> Iterator[Draft]:
        """Calls that were given up, were answered for, and have ended after all."""
        while self.abandoned and self.recorder.is_between and not self.arrivals.empty():
            arrival = self.arrivals.get()
            if isinstance(arrival, _Arrival):
                yield from self._late(arrival)

    def _late(self, arrival: _Arrival) -> Iterator[Draft]:
        running = self.abandoned.pop(arrival.key, None)
        if running is not None:
            yield rec.late(running, arrival.end)

    def sleep(self, until: float) -> None:
        clock = self.parts.clock
        woken = self.control.woken if self.control is not None else _NEVER
        clock.wait(woken, max(0.0, until - clock.now()))

    def _earliest(self) -> float | None:
        times = [r.ctx.deadline_at for r in self.running.values() if r.ctx.deadline_at is not None]
        return min(times, default=None)

    def _next_arrival(self, until: float | None) -> _Arrival | Delta | None:
        """The next thing from another thread; None when `until` has come."""
        try:
            if until is None:
                return self.arrivals.get()
            return self.arrivals.get(timeout=max(0.0, until - self.parts.clock.now()))
        except Empty:
            return None

    def _begin(self, key: str, call: Any, is_async: bool = False) -> Any:
        """Run foreign code elsewhere; its end arrives under `key`. Returns what asks it to stop."""
        put = self.arrivals.put
        if is_async:
            return loop_thread.submit(_deliver(call, key, put))
        context = copy_context()
        workers.submit(lambda: put(_Arrival(key, rec.attempt(partial(context.run, call)))))
        return rec.nothing

    def _abandon(self, key: str) -> None:
        running = self.running.pop(key)
        running.give_up()
        self.abandoned[key] = running

    def give_up(self) -> None:
        """Wait for nothing any more. The machine says what that means for each call."""
        for key in list(self.running):
            self._abandon(key)


async def _deliver(call: Callable[[], Any], key: str, put: Callable[[_Arrival], None]) -> None:
    try:
        end = Ended(await call())
    except BaseException as error:  # noqa: BLE001  # the same for coroutines, their own CancelledError included
        end = Ended(error=error)
    put(_Arrival(key, end))


_NEVER = Event()
