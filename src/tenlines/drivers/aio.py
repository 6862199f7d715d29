"""The driver for asyncio. It performs effects and reports what happened; it decides nothing.

Blocking tools and models run in threads, so nothing stops the loop. Every coroutine of a tool is a task of its
own: what it does to itself (cancel, exit, interrupt) reaches nobody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import copy_context
from functools import partial
from itertools import chain
from typing import Any

from tenlines.core.effects import CallModel, Effect, Finish, RunnableCall, RunTools, Sleep
from tenlines.core.result import RunResult
from tenlines.core.transcript import Reply
from tenlines.drivers import recorder as rec
from tenlines.drivers.recorder import Draft, Ended, Parts, Recorder, Running
from tenlines.drivers.threads import workers
from tenlines.errors import ConnectionFailed, JournalError
from tenlines.ports import Bound, CallContext, Invalid

GRACE_S = 0.2
"""How long a cancelled coroutine is waited for, so that its `finally` has run before the run goes on."""


async def drive(parts: Parts) -> RunResult:
    """Drive a run to its end.

    Raises:
        asyncio.CancelledError, KeyboardInterrupt: As they came in, after the log was closed.
    """
    driver = _Driver(parts)
    recorder = driver.recorder
    try:
        recorder.open()
        while not isinstance(effect := driver.next(), Finish):
            async for happened in driver.perform(effect):
                recorder.record(happened)
        recorder.finish(effect)
    except JournalError as error:
        await driver.give_up()
        return recorder.failed(error)
    except BaseException as stop:
        try:
            await driver.give_up()
        finally:  # also if it is cancelled once more meanwhile
            if not isinstance(stop, Exception):
                recorder.interrupt(f"stopped by {type(stop).__name__}")
        raise
    return recorder.result()


class _Driver:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.recorder = parts, Recorder(parts)
        self.control, self.loop = parts.control, asyncio.get_running_loop()
        self.arrivals: deque[tuple[str, Ended]] = deque()
        self.running: dict[str, Running] = {}
        self.abandoned: dict[str, Running] = {}
        self.waiter: asyncio.Future[None] | None = None
        if self.control is not None:
            self.control.wake_with(self._wake_from_afar)

    def next(self) -> Effect:
        """What the machine wants, once it knows what was said, and which calls ended that were given up."""
        if self.control is not None or self.abandoned:
            for happened in chain(self.heard(), self.latecomers()):
                self.recorder.record(happened)
        return self.parts.machine.next(self.parts.clock.now())

    async def perform(self, effect: Effect) -> AsyncIterator[Draft]:
        """Do one effect; yield what happened, each as soon as it has."""
        match effect:
            case CallModel():
                async for happened in self.call_model(effect):
                    yield happened
            case RunTools():
                async for happened in self.run_tools(effect):
                    yield happened
            case Sleep(until):
                self.recorder.commit()
                await self.sleep(until)

    # --- the model ----------------------------------------------------------------------------------

    async def call_model(self, effect: CallModel) -> AsyncIterator[Draft]:
        yield rec.step_started(effect)
        self.recorder.commit()
        ask = partial(self.parts.session.acomplete, effect, self.recorder.on_delta)
        if effect.deadline_at is None and self.control is None:
            yield self._replied(effect, await _attempt(ask))
            return
        key = f"model:{effect.step}:{effect.attempt}"
        stop = self._begin(key, ask, is_async=True)
        try:
            end: Ended | None = None
            while end is None:
                if not await self._arrival(effect.deadline_at):
                    end = Ended(error=ConnectionFailed("the model did not answer within the run's time limit"))
                for arrived, its_end in self._take_arrivals():
                    if arrived == key:
                        end = its_end
                    for happened in self._late(arrived, its_end):
                        yield happened
                for said in self.heard():
                    yield said
                if self.parts.machine.stopping == "now" and end is None:
                    return  # cancelled: the machine has settled the step
        finally:
            stop()
        yield self._replied(effect, end)

    def _replied(self, effect: CallModel, end: Ended) -> Draft:
        if isinstance(end.error, KeyboardInterrupt | SystemExit | JournalError):
            raise end.error
        if end.error is not None:
            return rec.model_failed(effect, end.error)
        if not isinstance(end.value, Reply):
            return rec.model_failed(effect, TypeError(f"the model gave {type(end.value).__name__}, not a Reply"))
        return rec.replied(effect, end.value)

    # --- tools --------------------------------------------------------------------------------------

    async def run_tools(self, effect: RunTools) -> AsyncIterator[Draft]:
        """Refusals first; then calls, at most `max_parallel` at once, each reported as it arrives."""
        for refusal in effect.refusals:
            yield rec.refused(refusal)
        waiting = deque(effect.calls)
        while waiting or self.running:
            for happened in self._launch(waiting, effect):
                yield happened
            if self.running:
                self.recorder.commit()
                await self._arrival(self._earliest())
            for happened in chain(self._settled(), self._overdue(), self.heard()):
                yield happened
            if rec.nothing_more_starts(self.parts, effect):
                waiting.clear()
            if self.parts.machine.stopping == "now":
                for happened in await self._end_all():
                    yield happened

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

    def _settled(self) -> Iterator[Draft]:
        for key, end in self._take_arrivals():
            yield from self._arrived(key, end)

    def _arrived(self, key: str, end: Ended) -> Iterator[Draft]:
        running = self.running.get(key)
        if running is None:
            yield from self._late(key, end)
            return
        if isinstance(end.error, KeyboardInterrupt):
            self.arrivals.append((key, end))  # nobody need wait for it to end
            raise end.error
        del self.running[key]
        yield rec.ended(running.tool, running.call, end, running.remarks)

    def _overdue(self) -> Iterator[Draft]:
        now = self.parts.clock.now()
        for key, running in list(self.running.items()):
            if running.ctx.deadline_at is not None and now >= running.ctx.deadline_at:
                self._abandon(key)
                yield rec.timed_out(running.tool, running.call, running.ctx.deadline_at - running.started_at)

    async def _end_all(self) -> list[Draft]:
        """Stop what is running. A call that ends with a value all the same has its result; the others are left
        for the machine to settle."""
        running = dict(self.running)
        await self.give_up()
        drafts = []
        for key, end in self._take_arrivals():
            call = running.get(key)
            if call is not None and end.error is None:
                self.abandoned.pop(key, None)
                drafts.append(rec.ended(call.tool, call.call, end, call.remarks))
        return drafts

    # --- waiting ------------------------------------------------------------------------------------

    def heard(self) -> Iterator[Draft]:
        """What people said since the last time."""
        if self.control is not None and not self.recorder.is_ended:
            yield from self.control.take()

    def latecomers(self) -> Iterator[Draft]:
        """Calls that were given up, were answered for, and have ended after all."""
        while self.abandoned and self.recorder.is_between and self.arrivals:
            yield from self._late(*self.arrivals.popleft())

    def _late(self, key: str, end: Ended) -> Iterator[Draft]:
        running = self.abandoned.pop(key, None)
        if running is not None and not isinstance(end.error, asyncio.CancelledError):
            yield rec.late(running, end)

    async def sleep(self, until: float) -> None:
        pause = asyncio.ensure_future(self.parts.clock.sleep(max(0.0, until - self.parts.clock.now())))
        pause.add_done_callback(self._wake)
        try:
            await self._woken(None)
        finally:
            pause.remove_done_callback(self._wake)  # else its end would wake whatever is waited for next
            pause.cancel()

    def _earliest(self) -> float | None:
        times = [r.ctx.deadline_at for r in self.running.values() if r.ctx.deadline_at is not None]
        return min(times, default=None)

    async def _arrival(self, until: float | None) -> bool:
        """Wait until something arrives or is said; False when `until` came first."""
        if self.arrivals:
            return True
        await self._woken(None if until is None else max(0.0, until - self.parts.clock.now()))
        return bool(self.arrivals) or until is None or self.parts.clock.now() < until

    async def _woken(self, seconds: float | None) -> None:
        if self.control is not None and self.control.pending:
            return
        self.waiter = self.loop.create_future()
        timer = None if seconds is None else self.loop.call_later(seconds, self._wake)
        try:
            await self.waiter
        finally:
            self.waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self, _: object = None) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _wake_from_afar(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake)

    def _take_arrivals(self) -> list[tuple[str, Ended]]:
        return [self.arrivals.popleft() for _ in range(len(self.arrivals))]

    def _deliver(self, key: str, end: Ended) -> None:
        self.arrivals.append((key, end))
        self._wake()

    def _begin(self, key: str, call: Callable[[], Any], is_async: bool) -> Callable[[], None]:
        """Run foreign code elsewhere; its end arrives under `key`. Returns what asks it to stop."""
        if is_async:
            task = self.loop.create_task(self._run(key, call))
            return partial(_cancel, task)
        context, loop = copy_context(), self.loop

        def work() -> None:
            end = rec.attempt(partial(context.run, call))
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._deliver, key, end)

        workers.submit(work)
        return rec.nothing

    async def _run(self, key: str, call: Callable[[], Any]) -> None:
        try:
            end = Ended(await call())
        except BaseException as error:  # noqa: BLE001  # a tool may raise anything; this task is its own
            end = Ended(error=error)
        self._deliver(key, end)

    def _abandon(self, key: str) -> None:
        running = self.running.pop(key)
        running.give_up()
        self.abandoned[key] = running

    async def give_up(self) -> None:
        """Wait for nothing any more, but a moment for coroutines to clean up after themselves."""
        owed = {key for key, running in self.running.items() if running.tool.is_async}
        for key in list(self.running):
            self._abandon(key)
        end = self.loop.time() + GRACE_S
        while owed - {key for key, _ in self.arrivals} and (left := end - self.loop.time()) > 0:
            self.waiter = self.loop.create_future()
            timer = self.loop.call_later(left, self._wake)
            try:
                await self.waiter
            finally:
                self.waiter = None
                timer.cancel()


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _attempt(call: Callable[[], Any]) -> Ended:
    """Await foreign code, whatever it does. Our own cancellation passes through."""
    try:
        return Ended(await call())
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Ended(error=error)
    except BaseException as error:  # noqa: BLE001  # a tool may raise anything; what it means is said by the machine's rules
        return Ended(error=error)
