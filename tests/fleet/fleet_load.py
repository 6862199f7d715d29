"""Many runs on a few workers, which are killed again and again; asks the test to restart the servers meanwhile.

    python fleet_load.py LOAD

A `Load` as JSON text. `{"restart": "postgres"}` asks whoever started this to restart a server, and is not waited for;
the last JSON line says how it ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from fleet_world import NAME, Outside, judged, loader

from tenlines.core.children import derived_id
from tenlines.errors import EngineError, JournalError
from tenlines.fleet import Fleet
from tenlines.fleet.pacing import LocalPace
from tenlines.fleet.places import LocalPlaces
from tenlines.fleet.temporal import Temporal
from tenlines.fleet.worker import Limits, Worker
from tenlines.journal import open_journal

PAUSE_S = 0.3
"""The longest pause of the model and of tools: so a kill finds many runs under way."""
STALLED_S = 6.0
"""A kill comes after so long, also where nothing went on."""
AT_ONCE = 50
"""Tasks that are submitted at the same time."""


class Load(msgspec.Struct):
    """What is to be done, and what goes wrong meanwhile."""

    store: str
    temporal: str
    effects: str
    runs: int
    workers: int = 4
    kills: int = 0
    restarts: dict[str, int] = {}
    parallel: int = 20
    heartbeat_s: float = 3.0
    seed: int = 1
    longest_s: float = 280.0

    def engine(self) -> Temporal:
        """The engine, in each process its own."""
        return Temporal(self.temporal, heartbeat_s=self.heartbeat_s)


def task(number: int) -> str:
    """How a task is called."""
    return f"task{number}"


# --- processes ------------------------------------------------------------------------------------------


def forked(work: Callable[[], None]) -> int:
    """A process of its own, which has everything imported already."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def serve(load: Load) -> None:
    """A worker, until it is told to leave."""
    asyncio.run(_serve(load))


async def _serve(load: Load) -> None:
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    journal = open_journal(load.store)
    fleet = Fleet([loader(Outside(load.effects), PAUSE_S)])
    while not leaving.is_set():
        worker = Worker(fleet, journal, load.engine(), Limits(LocalPace({}), LocalPlaces()), parallel=load.parallel)
        try:
            await worker.serve(leaving)
        except EngineError:
            await asyncio.sleep(0.2)
    journal.close()


def submit(load: Load) -> None:
    """Submit all tasks, and each again where it is not known whether it was."""
    asyncio.run(_submit(load))


async def _submit(load: Load) -> None:
    agent, engine = loader(Outside(load.effects), journal=open_journal(load.store)), load.engine()
    waiting = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with waiting:
            while True:
                try:
                    await agent.submit(task(number), engine, key=task(number))
                    return
                except (EngineError, JournalError):
                    await asyncio.sleep(0.2)

    await asyncio.gather(*(one(number) for number in range(load.runs)))


def judge(load: Load) -> None:
    """Say what is wrong in the end, and how much there was."""
    journal, seen = open_journal(load.store), Outside(load.effects).seen()
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    lines = {one.run_id: one for one in journal.runs()}
    for number in range(load.runs):
        run_id = derived_id(f"{NAME} {task(number)}")
        if run_id not in lines:
            wrong.append(f"{task(number)} is not there")
            continue
        log = list(journal.read(run_id))
        found, more = judged(task(number), log, seen)
        wrong += found
        counts += more
        counts["taken up"] += sum(type(event).__name__ == "RunResumed" for event in log)
    if len(lines) != load.runs:
        wrong.append(f"{len(lines)} runs are there")
    say(wrong=wrong[:20], bad=len(wrong), counts=counts)
    journal.close()


# --- what goes wrong ------------------------------------------------------------------------------------


class Havoc:
    """Kills workers at random, asks for restarts, and sees that there are as many as there should be."""

    def __init__(self, load: Load) -> None:
        self._load, self._chance = load, random.Random(load.seed)
        self._outside = Outside(load.effects)
        self._total = load.runs * len(f"mail {task(load.runs)} {'x' * 12}:1:0\n") * 4
        self.counts: Counter[str] = Counter()
        self.workers = [self._new() for _ in range(load.workers)]

    def _new(self) -> int:
        self.counts["workers"] += 1
        return forked(lambda: serve(self._load))

    def rage(self) -> None:
        """All of it, spread over the first nine tenths of the work."""
        deeds = ["kill"] * self._load.kills + [
            name for name, times in self._load.restarts.items() for _ in range(times)
        ]
        self._chance.shuffle(deeds)
        for number, deed in enumerate(deeds):
            self._until((number + 0.3 + 0.4 * self._chance.random()) / len(deeds) * 0.9)
            if deed == "kill":
                self._kill()
            else:
                self.counts[f"restarts of {deed}"] += 1
                say(restart=deed)

    def _until(self, share: float) -> None:
        stalled = time.monotonic() + STALLED_S
        while self._outside.size < share * self._total and time.monotonic() < stalled:
            time.sleep(0.02)

    def _kill(self) -> None:
        place = self._chance.randrange(len(self.workers))
        os.kill(self.workers[place], signal.SIGKILL)
        _, status = os.waitpid(self.workers[place], 0)
        assert os.WIFSIGNALED(status), "a worker had ended by itself"
        self.counts["kills"] += 1
        self.workers[place] = self._new()

    def drain(self) -> list[int]:
        """Tell all to leave. Returns how they ended."""
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.workers]


def wait_for_all(load: Load, until: float) -> None:
    """Until all runs are through, or the time is over."""
    journal = open_journal(load.store)
    try:
        while time.monotonic() < until:
            try:
                if not journal.runs(1, status="open") and len(journal.runs()) >= load.runs:
                    break
            except JournalError:
                pass
            time.sleep(0.5)
    finally:
        journal.close()


def say(**what: Any) -> None:
    """Tell the test."""
    print(json.dumps(what), flush=True)


def main(load: Load) -> None:
    """All of it."""
    began = time.monotonic()
    gc.collect()
    gc.freeze()
    submitting = forked(lambda: submit(load))
    havoc = Havoc(load)
    havoc.rage()
    waiting = forked(lambda: wait_for_all(load, began + load.longest_s))
    os.waitpid(waiting, 0)
    through_s = time.monotonic() - began
    os.kill(submitting, signal.SIGKILL)  # if it has not ended long ago
    os.waitpid(submitting, 0)
    say(drained=havoc.drain(), seconds=through_s, lives=havoc.counts)
    os.waitpid(forked(lambda: judge(load)), 0)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Load))
