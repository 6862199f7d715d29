"""Threads for blocking tools: reused, daemonic, and abandoned when they do not come back.

A process that is forked has none of the threads of its parent, so it starts its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any

IDLE_S = 30.0
"""An idle thread ends after this time."""


class Workers:
    """A pool without a bound: how much runs at once is the machine's decision, not the pool's.

    The threads are daemons, so a tool that never returns cannot keep the program from ending.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` in a thread. It must not raise."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="tenlines-worker", daemon=True).start()
        inbox.put(job)

    def _work(self, inbox: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            try:
                job = inbox.get(timeout=IDLE_S)
            except Empty:
                try:
                    self._idle.remove(inbox)
                except ValueError:
                    continue  # someone has just picked this thread; its job is on the way
                return
            job()
            del job  # do not keep a result alive while idle
            self._idle.append(inbox)

    def begin_anew(self) -> None:
        """This is a new process: nobody works in the threads that are known."""
        self._idle = []


class LoopThread:
    """An event loop in a thread of its own, for async tools under the sync driver. Started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # two runs may need the loop first at the same time
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inherited: list[asyncio.AbstractEventLoop | None] = []

    def submit(self, work: Coroutine[Any, Any, None]) -> Callable[[], None]:
        """Start a coroutine, in a copy of the caller's context; returns what cancels it."""
        loop = self._running()
        context, tasks = copy_context(), list[asyncio.Task[None]]()
        loop.call_soon_threadsafe(lambda: tasks.append(_start(loop, work, context)))

        def stop() -> None:
            loop.call_soon_threadsafe(lambda: tasks[0].cancel())

        return stop

    def wait_for(self, awaitable: Awaitable[Any]) -> Any:
        """Run an awaitable to its end and return what it gives, or raise what it raises."""
        box: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

        async def work() -> None:
            try:
                box.put((await awaitable, None))
            except BaseException as error:  # noqa: BLE001  # carried over to the caller's thread
                box.put((None, error))

        self.submit(work())
        value, error = box.get()
        if error is not None:
            raise error
        return value

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self._loop.is_running():
                self._loop = asyncio.new_event_loop()
                ready = threading.Event()
                self._loop.call_soon(ready.set)
                threading.Thread(target=self._loop.run_forever, name="tenlines-loop", daemon=True).start()
                ready.wait()
            return self._loop

    def begin_anew(self) -> None:
        """This is a new process: nobody runs the loop that is known. It is kept, since to close it would reach into the
        old process, which shares what it waits with."""
        self._lock = threading.Lock()
        self._inherited.append(self._loop)
        self._loop = None


def _start(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
    return loop.create_task(work, context=context)


workers = Workers()
loop_thread = LoopThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.begin_anew)
    os.register_at_fork(after_in_child=loop_thread.begin_anew)


async def in_thread(call: Callable[[], Any]) -> Any:
    """Run a blocking function in one of our threads, which can be left behind (`asyncio.to_thread` cannot).

    Raises:
        Exception: Whatever the function raises; a StopIteration as the RuntimeError that Python makes of it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((value, error))

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(call)
        except BaseException as raised:  # noqa: BLE001  # carried over to the caller's thread
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    workers.submit(work)
    value, error = await done
    if error is not None:
        raise error
    return value
