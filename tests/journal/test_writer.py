"""The thread that writes for all: groups, failures, ends."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Sequence

import pytest
from journal_world import PATIENCE_S, log, put, said

from tenlines.core import events as ev
from tenlines.errors import JournalConflict, JournalError
from tenlines.journal.writer import Batch, WrittenInGroups


class Recorded(WrittenInGroups):
    """A store that writes down in which groups it was asked to write, and waits when it is told to."""

    def __init__(self, fails: Callable[[Batch], Exception | None] = lambda batch: None) -> None:
        super().__init__("the journal of a test")
        self.groups: list[list[tuple[str, int]]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.fails = fails

    def _write(self, batches: Sequence[Batch]) -> None:
        self.entered.set()
        assert self.gate.wait(PATIENCE_S)
        self.threads.add(threading.get_ident())
        self.groups.append([(batch.run_id, batch.first) for batch in batches])
        for batch in batches:
            error = self.fails(batch)
            if isinstance(error, JournalError):
                batch.error = error
            elif error is not None:
                raise error

    def _after_fork(self) -> None:
        pass


class Quick(Recorded):
    _is_quick = True


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def wait_until(happened: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE_S * 1000)):
        if happened():
            return
        waited.wait(0.001)
    raise AssertionError("what was waited for did not happen")


def test_what_comes_while_a_group_is_written_is_one_group() -> None:
    store = Recorded()
    store.gate.clear()
    threads = [in_thread(lambda: put(store, "first", *log("first")))]
    assert store.entered.wait(PATIENCE_S)
    threads += [in_thread(lambda name=f"r{n}": put(store, name, *log(name))) for n in range(9)]  # type: ignore[misc]
    wait_until(lambda: store._unsettled == 10)
    store.gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [len(group) for group in store.groups] == [1, 9]
    assert len(store.threads) == 1
    store._stop_writing()


def test_batches_of_one_run_are_written_one_after_another() -> None:
    store = Recorded()

    async def main() -> None:
        commits = []
        for event in log("r1", 3):
            store.append("r1", event)
            commits.append(asyncio.ensure_future(store.acommit("r1")))
            await asyncio.sleep(0)
        await asyncio.gather(*commits)

    asyncio.run(main())
    assert [batch for group in store.groups for batch in group] == [("r1", 0), ("r1", 1), ("r1", 2)]
    assert all(len(group) == 1 for group in store.groups)
    store._stop_writing()


def test_a_quick_store_is_written_by_who_commits_unless_others_wait() -> None:
    store = Quick()
    put(store, "r1", *log("r1"))
    assert store.threads == {threading.get_ident()}
    store.gate.clear()
    store.entered.clear()
    other = in_thread(lambda: put(store, "r2", *log("r2")))
    assert store.entered.wait(PATIENCE_S)
    third = in_thread(lambda: put(store, "r3", *log("r3")))
    wait_until(lambda: store._unsettled == 2)
    store.gate.set()
    other.join(PATIENCE_S)
    third.join(PATIENCE_S)
    assert len(store.threads) == 3
    put(store, "r1", said(3))
    assert [len(group) for group in store.groups] == [1, 1, 1, 1]
    store._stop_writing()


def test_ctrl_c_in_the_middle_of_a_write_loses_nothing() -> None:
    interrupts = iter([KeyboardInterrupt()])
    store = Quick(lambda batch: next(interrupts, None))  # type: ignore[arg-type,return-value]
    with pytest.raises(KeyboardInterrupt):
        put(store, "r1", *log("r1"))
    put(store, "r1", said(3))
    assert store.groups == [[("r1", 0)], [("r1", 0)], [("r1", 3)]]
    put(store, "r1", said(4))
    assert store._unsettled == 0
    store._stop_writing()


@pytest.mark.parametrize("kind", [Recorded, Quick])
def test_a_failure_is_told_to_everyone_with_an_error_of_his_own(kind: type[Recorded]) -> None:
    store = kind(lambda batch: ValueError("no such disk"))
    store.gate.clear()
    errors: list[JournalError] = []

    def work(run_id: str) -> None:
        try:
            put(store, run_id, *log(run_id))
        except JournalError as error:
            errors.append(error)

    threads = [in_thread(lambda name=f"r{n}": work(name)) for n in range(5)]  # type: ignore[misc]
    wait_until(lambda: store._unsettled == 5)
    store.gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert {str(error) for error in errors} == {"the journal of a test could not be written: ValueError: no such disk"}
    assert len({id(error) for error in errors}) == 5
    store._stop_writing()


def test_what_continues_a_lost_commit_is_lost_until_somebody_takes_the_run_up_anew() -> None:
    is_full = [True]
    store = Recorded(lambda batch: JournalError("full") if is_full[0] else None)
    with pytest.raises(JournalError, match="full"):
        put(store, "r1", *log("r1"))
    is_full[0] = False
    for seq in (3, 4):
        with pytest.raises(JournalConflict, match=f"events before {seq} of run r1 could not be written"):
            put(store, "r1", said(seq))
    put(store, "r2", *log("r2"))
    put(store, "r1", ev.RunResumed(seq=5, at=9.0))
    put(store, "r1", said(6))
    assert store.groups == [[("r1", 0)], [("r2", 0)], [("r1", 5)], [("r1", 6)]]
    store._stop_writing()


def test_a_wait_that_is_cancelled_does_not_take_back_the_write() -> None:
    store = Recorded()

    async def main() -> None:
        store.gate.clear()
        store.append("r1", log("r1")[0])
        waiting = asyncio.ensure_future(store.acommit("r1"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        store.gate.set()
        store.append("r1", said(1))
        await store.acommit("r1")

    asyncio.run(main())
    assert [batch for group in store.groups for batch in group] == [("r1", 0), ("r1", 1)]
    store._stop_writing()


def test_a_loop_that_is_closed_meanwhile_does_not_stop_the_writer() -> None:
    store = Recorded()
    store.gate.clear()
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        store.append("r1", log("r1")[0])
        batch = Batch("r1", store._held.pop("r1"))
        batch.future()
        store._hand_over(batch)

    loop.run_until_complete(begin())
    loop.close()
    store.gate.set()
    put(store, "r2", *log("r2"))
    store._stop_writing()
    assert [batch for group in store.groups for batch in group] == [("r1", 0), ("r2", 0)]


def test_after_the_end_commits_are_refused_and_none_hangs() -> None:
    store = Recorded()
    put(store, "r1", *log("r1"))
    store._stop_writing()
    store._stop_writing()
    with pytest.raises(JournalError, match="the journal of a test is closed"):
        put(store, "r1", said(3))

    async def main() -> None:
        store.append("r1", said(4))
        await store.acommit("r1")

    with pytest.raises(JournalError, match="closed"):
        asyncio.run(main())


def test_what_was_handed_over_before_the_end_is_written() -> None:
    store = Recorded()
    store.gate.clear()
    threads = [in_thread(lambda name=f"r{n}": put(store, name, *log(name))) for n in range(5)]  # type: ignore[misc]
    wait_until(lambda: store._unsettled == 5)
    ending = in_thread(store._stop_writing)
    store.gate.set()
    for thread in (*threads, ending):
        thread.join(PATIENCE_S)
    assert sum(len(group) for group in store.groups) == 5


def test_the_thread_ends_with_a_journal_that_nobody_has_any_more() -> None:
    store = Recorded()
    put(store, "r1", *log("r1"))
    thread, gone = store._thread, weakref.ref(store)
    assert thread is not None
    assert thread.is_alive()
    del store
    gc.collect()
    thread.join(PATIENCE_S)
    assert gone() is None
    assert not thread.is_alive()


def test_an_empty_commit_writes_nothing() -> None:
    store = Recorded()
    store.commit("r1")
    asyncio.run(store.acommit("r1"))
    assert store.groups == []
    assert store._thread is None
