"""One thread writes for all runs of a journal: what waits together is written together (group commit).

`append` holds events back; `commit` hands them to the thread and waits. While it writes one group, the next one
gathers, so many runs share the cost of a transaction. Where nobody else waits, and the store is quick, `commit` writes
by itself: a hand-over between two threads takes as long as a write.

A process may fork at any time: nothing is being written then, and the child has a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import TypeAlias

from tenlines.core.events import AnyEvent
from tenlines.errors import JournalConflict, JournalError
from tenlines.journal.rows import OPENING, Change, Row, change_of, row_of

MOST = 1000
"""Batches that go into one transaction."""


class Batch:
    """What one commit writes of one run: all of it or nothing."""

    __slots__ = ("_done", "_future", "_loop", "blobs", "change", "error", "first", "opens", "rows", "run_id")

    def __init__(self, run_id: str, events: Sequence[AnyEvent]) -> None:
        self.run_id, self.first = run_id, events[0].seq
        self.rows: list[Row] = []
        self.blobs: dict[bytes, bytes] = {}
        for event in events:
            row, blobs = row_of(run_id, event)
            self.rows.append(row)
            if blobs:
                self.blobs.update(blobs)
        self.change: Change = change_of(events)
        self.opens = type(events[0]) in OPENING
        """Whether an owner takes the run up with it."""
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
        if self._done.locked():
            self._done.release()
        return self._loop

    def resolve(self) -> None:
        """The rest of `settle`, in the loop."""
        if self._future is not None and not self._future.done():
            if self.error is None:
                self._future.set_result(None)
            else:
                self._future.set_exception(self.error)


def conflict_of(batch: Batch, stored: int | None) -> JournalConflict:
    """Whom a batch lost against.

    Args:
        batch: What may not be written.
        stored: How many events its run has; None where there is no such run.
    """
    run_id, first, start = batch.run_id, batch.first, batch.change.start
    if stored is None and start is not None and first == 0:
        return JournalConflict(f"turn {start.turn} of the session {start.session!r} belongs to another run")
    if stored is None:
        return JournalConflict(f"run {run_id} is not in the journal, so it has no event {first}: was it deleted?")
    if stored > first:
        return JournalConflict(f"run {run_id} already has an event {first}: another process has taken the run over")
    return JournalConflict(f"run {run_id} has {stored} events, and {first} cannot be the next: one before it was lost")


class WrittenInGroups(ABC):
    """The writing half of a journal. A store says how a group of batches is written, and reads by itself.

    Args:
        name: What the journal is called, for errors and for the name of the thread.
    """

    _is_quick = False
    """Whether a write takes so short that a thread may as well do its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: dict[str, list[AnyEvent]] = {}
        self._lost: dict[str, int] = {}
        self._is_closed = False
        self._begin_anew()
        with _forking:
            _alive.add(self)

    def _begin_anew(self) -> None:
        self._queue: _Queue = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unsettled = 0  # batches that wait or are being written
        self._handing = threading.Lock()  # guards the three above, and whether it is closed
        self._writing = threading.Lock()  # held while something is written, and while the process forks

    @abstractmethod
    def _write(self, batches: Sequence[Batch]) -> None:
        """Write them in one transaction; where one cannot be written, set its `error` and write the others.

        Called with `_writing` held. An exception fails them all.
        """

    def _before_fork(self) -> Callable[[], None]:
        """The process is about to fork, and nothing is being written: let go of what a child must not inherit.

        Returns:
            What the old process does afterwards.
        """
        return lambda: None

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
            if self._is_first(batch):
                self._write_here(batch)
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
        """Let the writer finish what it has, and end it. What is handed over later is refused."""
        with self._handing:
            self._is_closed = True
            thread, self._thread = self._thread, None
            self._queue.put(None)
        if thread is not None:
            thread.join()

    def _hand_over(self, batch: Batch) -> None:
        with self._handing:
            self._enqueue(batch)

    def _is_first(self, batch: Batch) -> bool:
        """Whether nobody else waits or writes, and the store is quick. Where that is not so, it is handed over."""
        with self._handing:
            if self._unsettled or not self._is_quick:
                self._enqueue(batch)
                return False
            self._refuse_when_closed()
            self._unsettled = 1
            return True

    def _enqueue(self, batch: Batch) -> None:
        self._refuse_when_closed()
        if self._thread is None:
            self._start()
        self._unsettled += 1
        self._queue.put((self, batch))

    def _write_here(self, batch: Batch) -> None:
        try:
            self._write_and_settle([batch])
        except BaseException:  # Ctrl-C: the thread writes it; if it was written already, its count refuses it
            self._hand_over(batch)
            raise
        finally:
            self._count_off(1)

    def _count_off(self, batches: int) -> None:
        with self._handing:
            self._unsettled -= batches

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise JournalError(f"{self._name} is closed: open it again to go on")

    def _start(self) -> None:
        # The thread keeps no journal alive: it ends with the journal that started it.
        self._thread = threading.Thread(target=_work, args=(self._queue,), name=self._name, daemon=True)
        weakref.finalize(self, self._queue.put, None)
        self._thread.start()

    def _write_and_settle(self, batches: Sequence[Batch]) -> None:
        for some in _rounds(batches):
            kept = [batch for batch in some if not self._is_lost(batch)]
            if kept:
                self._try_to_write(kept)
            for batch in some:
                if batch.error is not None:
                    self._lost[batch.run_id] = batch.first + len(batch.rows)
        _settle(batches)

    def _try_to_write(self, batches: Sequence[Batch]) -> None:
        try:
            with self._writing:
                self._write(batches)
        except JournalError as error:
            _fail(batches, error)
        except Exception as error:  # noqa: BLE001  # whoever waits must be told, whatever it was
            _fail(batches, JournalError(f"{self._name} could not be written: {type(error).__name__}: {error}"))

    def _is_lost(self, batch: Batch) -> bool:
        """Whether it continues one that was not written. If another owner wrote in the meantime, its count may fit.

        Who takes the run up anew has read what is stored, and says so with its first event.
        """
        if self._lost and self._lost.pop(batch.run_id, None) == batch.first and not batch.opens:
            batch.error = JournalConflict(f"events before {batch.first} of run {batch.run_id} could not be written")
        return batch.error is not None


_Queue: TypeAlias = "SimpleQueue[tuple[WrittenInGroups, Batch] | None]"


def _work(queue: _Queue) -> None:
    """What the thread does: group after group, until it is told to end."""
    while _write_next(queue):
        pass  # between two groups it must not hold on to the journal


def _write_next(queue: _Queue) -> bool:
    """Wait for a batch, and write it together with all that wait behind it. Returns whether to go on."""
    first = queue.get()
    if first is None:
        return False
    batches, is_last = [first[1]], False
    while len(batches) < MOST and not is_last and not queue.empty():
        more = queue.get()
        if more is None:
            is_last = True
        else:
            batches.append(more[1])
    first[0]._write_and_settle(batches)
    first[0]._count_off(len(batches))
    return not is_last


def _rounds(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Batches that can be written together: none of the same run, as one counts on what the one before it wrote."""
    some: dict[str, Batch] = {}
    for batch in batches:
        if batch.run_id in some:
            yield list(some.values())
            some = {}
        some[batch.run_id] = batch
    yield list(some.values())


def _fail(batches: Sequence[Batch], error: JournalError) -> None:
    """Each gets an error of its own: they are raised in different threads."""
    for batch in batches:
        if batch.error is None:
            batch.error = copy.copy(error)
            batch.error.__cause__ = error.__cause__


def _settle(batches: Sequence[Batch]) -> None:
    """One wake-up for each event loop, however many of its runs were written."""
    waiting: dict[asyncio.AbstractEventLoop, list[Batch]] = {}
    for batch in batches:
        loop = batch.settle()
        if loop is not None:
            waiting.setdefault(loop, []).append(batch)
    for loop, theirs in waiting.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(batches: Sequence[Batch]) -> None:
    for batch in batches:
        batch.resolve()


# --- forks ----------------------------------------------------------------------------------------------

_alive: weakref.WeakSet[WrittenInGroups] = weakref.WeakSet()
_forking = threading.Lock()
_stopped: list[tuple[WrittenInGroups, Callable[[], None]]] = []
"""The journals that stand still while the process forks, and how each goes on in the old process."""


def _before_fork() -> None:
    _forking.acquire()
    for journal in list(_alive):
        journal._handing.acquire()
        journal._writing.acquire()
        _stopped.append((journal, journal._before_fork()))


def _after_fork_in_parent() -> None:
    for journal, go_on in _stopped:
        go_on()
        journal._writing.release()
        journal._handing.release()
    _stopped.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    for journal, _ in _stopped:
        journal._begin_anew()
        journal._after_fork()
    _stopped.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
