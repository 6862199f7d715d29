"""The thread with the event loop that all connections live in. Started at first use; ends with the process.

A connection belongs to the loop that it was made in, so neither driver may own one: the blocking driver has no loop,
and that of an asyncio program may end before the next run. What is asked for here can be waited for from any thread.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
CLOSE_S = 6.0
"""Seconds that the end of the process waits for its servers to end; each is told to, then killed."""


class LoopThread:
    """One event loop in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closers: dict[int, Callable[[], Coroutine[Any, Any, None]]] = {}

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop, if there is one by now."""
        return self._loop

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end. An interrupted wait cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def at_exit(self, key: object, closer: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        """Have `closer` run at the end of the process; None forgets it."""
        if closer is None:
            self._closers.pop(id(key), None)
        else:
            self._closers[id(key)] = closer

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="tenlines-mcp", daemon=True).start()
                atexit.register(self._end)
                self._loop = loop
            return self._loop

    def _end(self) -> None:
        """Close all connections, so that no server outlives this process."""
        closers, loop = list(self._closers.values()), self._loop
        if loop is None or not closers:
            return

        async def close_all() -> None:
            await asyncio.gather(*(closer() for closer in closers), return_exceptions=True)

        with suppress(FutureTimeout):
            asyncio.run_coroutine_threadsafe(close_all(), loop).result(CLOSE_S)

    def begin_anew(self) -> None:
        """This is a new process: nobody runs the loop that is known, and the connections are not its own."""
        self._lock, self._loop, self._closers = threading.Lock(), None, {}


thread = LoopThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread.begin_anew)
