"""One thread writes for all runs of a journal: what waits together is written together (group commit).

`append` holds events back; `commit` hands them to the thread and waits. While it writes one group, the next one
gathers, so many runs share the cost of a transaction, and a single run pays a hand-over between two threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from queue import SimpleQueue

from tenlines.core.events import AnyEvent
from tenlines.errors import JournalError
from tenlines.journal.rows import Change, Row, change_of, row_of

MOST = 1000
"""Batches that go into one transaction."""


class Batch:
    """What one commit writes of one run: all of it or nothing."""

    __slots__ = ("_done", "_future", "_loop", "blobs", "change", "error", "first", "rows", "run_id")

    def __init__(self, run_id: str, events: Sequence[AnyEvent]) -> None:
        self.run_id, self.first = run_id, events[0].seq
        self.rows: list[Row] = []
        self.blobs: dict[bytes, bytes] = {}
        for event in events:
            row, blobs = row_of(run_id, event)
            self.rows.append(row)
            self.blobs.update(blobs)
        self.change: Change = change_of(events)
        self.error: JournalError | None = None
        """Set by the store where it could not be written."""
        self._done = threading.Lock()
        self._done.acquire()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._future: asyncio.Future[None] | None = None

    def wait(self) -> None:
        """Block until it is written.

        Raises:
            JournalError: It could not be.
        """
        with self._done:
            if self.error is not None:
                raise self.error

    def future(self) -> asyncio.Future[None]:
        """The same to await. To be asked for before it is handed over."""
        self._loop = asyncio.get_running_loop()
        self._future = self._loop.create_future()
        return self._future

    def settle(self) -> asyncio.AbstractEventLoop | None:
        """It was written, or failed: let go who blocks. Returns the loop in which somebody awaits it."""
        self._done.release()
        return self._loop

    def resolve(self) -> None:
        """The rest of `settle`, in the loop."""
        if self._future is not None and not self._future.done():
            if self.error is None:
                self._future.set_result(None)
            else:
                self._future.set_exception(self.error)


class WrittenInGroups(ABC):
    """The writing half of a journal. A store says how a group of batches is written, and reads by itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: dict[str, list[AnyEvent]] = {}
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._pid = 0

    @abstractmethod
    def _write(self, batches: Sequence[Batch]) -> None:
        """Write them in one transaction; where one cannot be written, set its `error` and write the others.

        Called in the writer's thread alone. An exception fails them all.
        """

    @abstractmethod
    def _after_fork(self) -> None:
        """This is a new process: forget connections, which belong to the old one, without closing them."""

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Hold the next event of a run until `commit`."""
        held = self._held.get(run_id)
        if held is None:
            held = self._held[run_id] = []
        held.append(event)

    def commit(self, run_id: str) -> None:
        """Write what is held for this run, and wait until it is durable.

        Raises:
            JournalConflict: Another owner has written one of these events, or has the turn of the session.
            JournalError: It cannot be written.
        """
        held = self._held.pop(run_id, None)
        if held:
            batch = Batch(run_id, held)
            self._hand_over(batch)
            batch.wait()

    async def acommit(self, run_id: str) -> None:
        """The same for asyncio. Cancelling the wait does not take back the write."""
        held = self._held.pop(run_id, None)
        if held:
            batch = Batch(run_id, held)
            future = batch.future()
            self._hand_over(batch)
            await future

    def _stop_writing(self) -> None:
        """Let the writer finish what it has, and end it."""
        if self._thread is not None and self._pid == os.getpid():
            self._queue.put(None)
            self._thread.join()
        self._thread = None

    def _hand_over(self, batch: Batch) -> None:
        if self._thread is None or self._pid != os.getpid():
            self._start()
        self._queue.put(batch)

    def _start(self) -> None:
        with self._starting:
            if self._pid not in (0, os.getpid()):
                self._queue, self._thread = SimpleQueue(), None
                self._after_fork()
            if self._thread is None:
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        queue = self._queue
        while (first := queue.get()) is not None:
            batches, is_last = [first], False
            while len(batches) < MOST and not queue.empty() and not is_last:
                more = queue.get()
                if more is None:
                    is_last = True
                else:
                    batches.append(more)
            try:
                self._write(batches)
            except JournalError as error:
                _fail(batches, error)
            except BaseException as error:  # noqa: BLE001  # whoever waits must be told, whatever it was
                _fail(batches, JournalError(f"the journal could not be written: {type(error).__name__}: {error}"))
            _settle(batches)
            if is_last:
                return


def _fail(batches: Sequence[Batch], error: JournalError) -> None:
    for batch in batches:
        batch.error = batch.error or error


def _settle(batches: Sequence[Batch]) -> None:
    """One wake-up for each event loop, however many of its runs were written."""
    waiting: dict[asyncio.AbstractEventLoop, list[Batch]] = {}
    for batch in batches:
        loop = batch.settle()
        if loop is not None:
            waiting.setdefault(loop, []).append(batch)
    for loop, theirs in waiting.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(batches: Sequence[Batch]) -> None:
    for batch in batches:
        batch.resolve()
