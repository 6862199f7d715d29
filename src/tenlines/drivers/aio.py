"""The driver for asyncio. It performs effects and reports what happened; it decides nothing.

Blocking tools and models run in threads, so nothing stops the loop. Every coroutine of a tool is a task of its
own: what it does to itself (cancel, exit, interrupt) reaches nobody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import copy_context
from functools import partial
from inspect import isawaitable
from itertools import chain
from typing import Any

from tenlines.core.effects import (
    AskHuman,
    CallModel,
    Compact,
    Effect,
    Finish,
    Reconcile,
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
from tenlines.drivers.threads import in_thread, workers
from tenlines.errors import ConnectionFailed, JournalError
from tenlines.ports import OnDelta


async def drive(parts: Parts) -> RunResult:
    """Drive a run to its end.

    Raises:
        asyncio.CancelledError, KeyboardInterrupt: As they came in, after the log was closed.
    """
    driver = _Driver(parts)
    recorder = driver.recorder
    try:
        recorder.open()
        with delivered(parts):
            while not isinstance(effect := await driver.anext(), Finish) and not parts.leave(effect):
                async for happened in driver.perform(effect):
                    recorder.record(happened)
        recorder.end(effect)
        await recorder.acommit()
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


class _Driver(Bookkeeping):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.loop = asyncio.get_running_loop()
        self.arrivals: deque[tuple[str, Ended]] = deque()
        self.waiter: asyncio.Future[None] | None = None
        if self.control is not None:
            self.control.wake_with(self._wake_from_afar)

    async def anext(self) -> Effect:
        """What the machine wants. Before the end, runs under calls that were given up have a moment to close logs."""
        effect = self.next()
        if isinstance(effect, Finish) and (owed := self.owed()):
            await self._wait_for(owed)
            effect = self.next()
        return effect

    def perform(self, effect: Effect) -> AsyncIterator[Draft]:
        """Do one effect; what happened comes out as soon as it has."""
        match effect:
            case CallModel():
                return self.call_model(effect)
            case RunTools():
                return self.run_tools(effect)
            case AskHuman():
                return _each(self.ask(effect))
            case Reconcile():
                return self.reconcile(effect)
            case UndoCall():
                return self.undo(effect)
            case Compact():
                return _each((drafts.compacted(effect),))
            case Summarise():
                return self.summarise(effect)
            case Sleep(until):
                return self.sleep(until)
        return _each(_NOTHING)

    # --- the model ----------------------------------------------------------------------------------

    def call_model(self, effect: CallModel) -> AsyncIterator[Draft]:
        return self._ask_model(drafts.step_started(effect), effect, self.recorder.watchers.on_delta, self.replied)

    def summarise(self, effect: Summarise) -> AsyncIterator[Draft]:
        return self._ask_model(drafts.summary_started(effect), effect.request, None, self.summarised)

    async def _ask_model(
        self, intent: Draft, request: CallModel, on_delta: OnDelta | None, ended: Callable[[CallModel, Ended], Draft]
    ) -> AsyncIterator[Draft]:
        """Ask, once the intent is durable; pass on what is heard meanwhile, then the end. There is none where the
        request was cancelled: the machine has settled it."""
        yield intent
        await self.recorder.acommit()
        asking = self.recorder.watchers.around_request(self.parts.session.acomplete, is_async=True)
        ask = partial(asking, request, on_delta)
        if request.deadline_at is None and self.control is None:
            yield ended(request, await attempted(ask))
            return
        key = f"model:{self.parts.machine.state.seq}"
        stop = self.begin(key, ask, is_async=True)
        try:
            end: Ended | None = None
            while end is None:
                if not await self._arrival(request.deadline_at):
                    end = Ended(error=ConnectionFailed("the model did not answer within the run's time limit"))
                for arrived, its_end in self._take_arrivals():
                    if arrived == key:
                        end = its_end
                    for happened in self.late(arrived, its_end):
                        yield happened
                for said in self.heard():
                    yield said
                if self.parts.machine.stopping == "now" and end is None:
                    return
        finally:
            stop()
        yield ended(request, end)

    # --- tools --------------------------------------------------------------------------------------

    async def run_tools(self, effect: RunTools) -> AsyncIterator[Draft]:
        """Refusals first; then calls, at most `max_parallel` at once, each reported as it arrives."""
        for refusal in effect.refusals:
            yield drafts.refused(refusal)
        waiting, limits = deque(effect.calls), self.parts.machine.state.limits
        while waiting or self.running:
            for happened in self.prepare(waiting, effect):
                yield happened
            await self.recorder.acommit()
            self.launch()
            if self.running:
                await self._arrival(self.earliest())
            for happened in chain(self._settled(), self.overdue(), self.heard()):
                yield happened
            if waiting and self.hands_back(effect, limits, waiting):
                waiting.clear()
            if self.parts.machine.stopping == "now":
                for happened in await self._end_all():
                    yield happened

    def _settled(self) -> Iterator[Draft]:
        for key, end in self._take_arrivals():
            yield from self._arrived(key, end)

    def _arrived(self, key: str, end: Ended) -> Iterator[Draft]:
        running = self.running.get(key)
        if running is None:
            yield from self.late(key, end)
            return
        if end.error is not None and self.is_for_the_program(key, end):
            self.arrivals.append((key, end))  # nobody need wait for it to end
            raise end.error
        del self.running[key]
        yield drafts.ended(running.tool, running.call, end, running.remarks, running.ctx.spent)

    async def _end_all(self) -> list[Draft]:
        """Stop what is running. A call that ends with a value all the same has its result; the others are left
        for the machine to settle."""
        await asyncio.sleep(0)  # what threads have handed over is delivered by the loop
        running = dict(self.running)
        await self.give_up()
        ends: list[Draft] = []
        for key, end in self._take_arrivals():
            call = running.get(key)
            if call is not None and end.error is None:
                self.abandoned.pop(key, None)
                ends.append(drafts.ended(call.tool, call.call, end, call.remarks, call.ctx.spent))
            else:
                self.arrivals.append((key, end))  # it may be news once the machine has settled the call
        return ends

    # --- questions to tools ---------------------------------------------------------------------------

    async def reconcile(self, effect: Reconcile) -> AsyncIterator[Draft]:
        """Ask what became of calls before a crash."""
        await self.recorder.acommit()
        for call in effect.calls:
            ends: list[Ended] = []
            async for happened in self._consult(self.about_doubt(call), ends.append):
                yield happened
            yield drafts.reconciled(self.parts.tools[call.name], call, ends[0])

    async def undo(self, effect: UndoCall) -> AsyncIterator[Draft]:
        """Take back one call."""
        yield drafts.undo_started(effect.call)
        await self.recorder.acommit()
        ends: list[Ended] = []
        async for happened in self._consult(self.about_undoing(effect), ends.append):
            yield happened
        yield drafts.undone(effect.call, ends[0])

    async def _consult(self, foreign: Foreign, give: Callable[[Ended], None]) -> AsyncIterator[Draft]:
        """Wait for foreign code that was asked something. A cancel does not end it: half an undo helps nobody."""
        self.begin(foreign.key, partial(_whole, foreign.work), is_async=True)
        while True:
            if not await self._arrival(foreign.until):
                give(foreign.too_late())
                return
            is_over = False
            for key, end in self._take_arrivals():
                if key == foreign.key:
                    is_over = True
                    give(foreign.ended(end))
                for happened in self.late(key, end):
                    yield happened
            if is_over:
                return
            for said in self.heard():
                yield said

    # --- waiting ------------------------------------------------------------------------------------

    def latecomers(self) -> Iterator[Draft]:
        """Calls that were given up, were answered for, and have ended after all."""
        while self.abandoned and self.recorder.is_between and self.arrivals:
            yield from self.late(*self.arrivals.popleft())

    async def sleep(self, until: float) -> AsyncIterator[Draft]:
        await self.recorder.acommit()
        pause = asyncio.ensure_future(self.parts.clock.sleep(max(0.0, until - self.parts.clock.now())))
        pause.add_done_callback(self._wake)
        try:
            await self._woken(None)
        finally:
            pause.remove_done_callback(self._wake)  # else its end would wake whatever is waited for next
            pause.cancel()
        for happened in _NOTHING:
            yield happened

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

    def begin(self, key: str, call: Callable[[], Any], is_async: bool) -> Callable[[], None]:
        if is_async:
            task = self.loop.create_task(self._run(key, call))
            return partial(_cancel, task)
        context, loop = copy_context(), self.loop

        def work() -> None:
            end = drafts.attempt(context.run, call)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._deliver, key, end)

        workers.submit(work)
        return drafts.nothing

    async def _run(self, key: str, call: Callable[[], Any]) -> None:
        try:
            end = Ended(await call())
        except BaseException as error:  # noqa: BLE001  # a tool may raise anything; this task is its own
            end = Ended(error=error)
        self._deliver(key, end)

    async def give_up(self) -> None:
        """Wait for nothing any more, but a moment for coroutines to clean up after themselves."""
        owed = {key for key, running in self.running.items() if running.tool.is_async}
        for key in list(self.running):
            self.abandon(key)
        await self._wait_for(owed)

    async def _wait_for(self, owed: set[str]) -> None:
        """A moment for these to come back."""
        end = self.loop.time() + GRACE_S
        while owed - {key for key, _ in self.arrivals} and (left := end - self.loop.time()) > 0:
            self.waiter = self.loop.create_future()
            timer = self.loop.call_later(left, self._wake)
            try:
                await self.waiter
            finally:
                self.waiter = None
                timer.cancel()


_NOTHING: tuple[Draft, ...] = ()


async def _each(happened: Iterable[Draft]) -> AsyncIterator[Draft]:
    for one in happened:
        yield one


async def _whole(work: Callable[[], Any]) -> Any:
    """Foreign code to its very end, also where what it gives has to be awaited."""
    value = await in_thread(work)
    return await value if isawaitable(value) else value


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def attempted(call: Callable[[], Any]) -> Ended:
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
