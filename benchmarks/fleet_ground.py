"""What `fleet.py` measures on: a real Postgres, a real Temporal, workers in processes of their own, and their CPU."""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

sys.path.append(str(Path(__file__).parent.parent / "examples" / "fleet"))
from local_postgres import LocalPostgres

from tenlines import Agent, Limits, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.fleet import Fleet
from tenlines.fleet.dev_server import DevServer
from tenlines.fleet.pacing import LocalPace
from tenlines.fleet.places import LocalPlaces
from tenlines.fleet.temporal import Temporal
from tenlines.fleet.worker import Limits as FleetLimits
from tenlines.fleet.worker import Worker
from tenlines.journal import open_journal
from tenlines.ports import Journal

CORES = (0, 1)
PARALLEL = 20
"""Places of a worker."""
AT_ONCE = 50
"""Runs that are being submitted at the same time."""
WARM_UP = 10
"""Runs before anything is measured: imports, connections, plans of statements."""
GROUPS = ("worker", "temporal", "postgres", "submitter")
_SIZE = """
SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint
FROM unnest(ARRAY['tenlines_events', 'tenlines_runs', 'tenlines_blobs']) AS name
"""


class Load(NamedTuple):
    """Runs that are all submitted at the beginning."""

    runs: int
    steps: int
    """Of each run; each but the last calls a tool that takes no time."""
    model_s: float = 0.0
    """A reply of the model, on average; it is between half as long and half as long again."""


class Cpu(NamedTuple):
    """Seconds of a processor."""

    worker: float = 0.0
    temporal: float = 0.0
    postgres: float = 0.0
    submitter: float = 0.0

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(*(one - two for one, two in zip(self, other, strict=True)))


class Outcome(NamedTuple):
    """What came of a load."""

    load: Load
    seconds: float
    """From the first run that was taken up to the last that ended."""
    cpu: Cpu
    """From before the submission to after the last end."""
    empty_s: float = 0.0
    """For so long a place stood empty, for each run that was had in it."""
    events: int = 0
    table_bytes: int = 0
    log_bytes: int = 0
    """What Postgres wrote ahead."""

    @property
    def steps(self) -> int:
        """All steps."""
        return self.load.runs * self.load.steps

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds


# --- what is run ----------------------------------------------------------------------------------------


@tool(read_only=True)
async def look_up(item: str) -> str:
    """Looks something up."""
    return f"{item} is there"


def agent(journal: Journal) -> Agent:
    """Makes as many steps as the task says, each after as many seconds."""

    async def model(messages: Any, request: Any) -> Any:
        steps, seconds = messages[0]["content"].split()[:2]
        if float(seconds):
            await asyncio.sleep(float(seconds) * random.uniform(0.5, 1.5))
        if request.step >= int(steps):
            return "done"
        return Reply(calls=(ToolCall("c", "look_up", f'{{"item": "part {request.step}"}}'),))

    return Agent(model, [look_up], name="bench", journal=journal, limits=Limits(steps=100))


def task(load: Load, number: int) -> str:
    """What an agent is told."""
    return f"{load.steps} {load.model_s} {number}"


def work(place: str, temporal: str, core: int) -> None:
    """A worker, until SIGTERM."""
    os.sched_setaffinity(0, {core})

    async def serve() -> None:
        leaving = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
        journal = open_journal(place)
        limits = FleetLimits(LocalPace({}), LocalPlaces())
        worker = Worker(Fleet([agent(journal)]), journal, Temporal(temporal), limits, parallel=PARALLEL)
        await worker.serve(leaving)
        journal.close()

    asyncio.run(serve())
    os._exit(0)


# --- where it is run ------------------------------------------------------------------------------------


class Ground:
    """The servers, and whoever submits: this process."""

    def __init__(self, postgres: LocalPostgres, temporal: DevServer) -> None:
        self.postgres, self.temporal = postgres, temporal
        self.journal = open_journal(postgres.address)

    def pin(self, cores: Sequence[int]) -> None:
        """Where the servers and the submitter may run."""
        for process in (*self._of_postgres(), self._of_temporal(), psutil.Process()):
            for thread in _threads(process):
                with suppress(ProcessLookupError):  # it ended meanwhile
                    os.sched_setaffinity(thread, cores)

    def cpu(self, workers: Iterable[psutil.Process] = ()) -> Cpu:
        """So far; of Postgres with those of its processes that ended."""
        ended = self._of_postgres()[0].cpu_times()
        postgres = ended.children_user + ended.children_system + sum(map(_cpu, self._of_postgres()))
        return Cpu(sum(map(_cpu, workers)), _cpu(self._of_temporal()), postgres, time.process_time())

    def sizes(self) -> tuple[int, int]:
        """Bytes of the tables, and bytes that were written ahead so far."""
        with psycopg.connect(self.postgres.address) as connection:
            found: Any = connection.execute(_SIZE).fetchone()
            return found

    def submit(self, load: Load) -> list[str]:
        """All of it, or raise."""
        one, engine, free = agent(self.journal), Temporal(self.temporal.address), asyncio.Semaphore(AT_ONCE)

        async def submit(number: int) -> str:
            async with free:
                return await one.submit(task(load, number), engine)

        async def all_of_them() -> list[str]:
            return await asyncio.gather(*(submit(number) for number in range(load.runs)))

        return asyncio.run(all_of_them())

    def wait(self) -> None:
        """Until all runs have ended."""
        while self.journal.runs(1, status="open"):
            time.sleep(0.1)

    def _of_postgres(self) -> list[psutil.Process]:
        server = psutil.Process(self.postgres.pid)
        return [server, *server.children()]

    def _of_temporal(self) -> psutil.Process:
        return psutil.Process(self.temporal.pid)


def _threads(process: psutil.Process) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [thread.id for thread in process.threads()]
    return []


def _cpu(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


@contextmanager
def ground() -> Iterator[Ground]:
    """The servers, with folders that go away."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with LocalPostgres(Path(folder, "postgres")) as postgres, DevServer(Path(folder, "t.db"), port=0) as temporal:
            found = Ground(postgres, temporal)
            yield found
            found.journal.close()


@contextmanager
def workers(where: Ground, cores: Sequence[int]) -> Iterator[list[psutil.Process]]:
    """One pinned to each core, warm and idle."""
    command = [sys.executable, str(Path(__file__)), where.postgres.address, where.temporal.address]
    found = [psutil.Popen([*command, str(core)]) for core in cores]
    try:
        where.submit(Load(WARM_UP * len(cores), 2, 0.05))
        where.wait()
        yield found
    finally:
        for one in found:
            one.terminate()
            one.wait()


# --- measuring ------------------------------------------------------------------------------------------


def outcome(where: Ground, load: Load, cores: Sequence[int], servers: Sequence[int]) -> Outcome:
    """Submit all, and wait for the last end.

    Args:
        cores: A worker for each.
        servers: Where the servers and the submitter may run.
    """
    with workers(where, cores) as found:
        where.pin(servers)
        sizes, before = where.sizes(), where.cpu(found)
        run_ids = where.submit(load)
        submitter = time.process_time()
        where.wait()
        after = where.cpu(found)._replace(submitter=submitter)
        grown = [late - soon for late, soon in zip(where.sizes(), sizes, strict=True)]
        where.pin(CORES)
    spans, events = _spans(where.journal, run_ids)
    seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
    empty = _empty(seconds, spans, PARALLEL * len(cores))
    return Outcome(load, seconds, after - before, empty, events, *grown)


def _spans(journal: Journal, run_ids: list[str]) -> tuple[list[tuple[float, float]], int]:
    """When each run was taken up and when it ended; and how many events there are."""
    spans, count = [], 0
    for run_id in run_ids:
        log = list(journal.read(run_id))
        began = min(one.at for one in log if isinstance(one, ev.RunResumed))
        spans.append((began, max(one.at for one in log if isinstance(one, ev.RunEnded))))
        count += len(log)
    return spans, count


def _empty(seconds: float, spans: list[tuple[float, float]], places: int) -> float:
    return max(0.0, (places * seconds - sum(end - begin for begin, end in spans)) / len(spans))


def bare(where: Ground, load: Load) -> Outcome:
    """The same runs in this process with the same journal, and no engine."""
    one, places = agent(where.journal), asyncio.Semaphore(PARALLEL)

    async def run(number: int) -> None:
        async with places:
            await one.run(task(load, number))

    async def all_of_them(runs: int) -> None:
        await asyncio.gather(*(run(number) for number in range(runs)))

    asyncio.run(all_of_them(WARM_UP))
    before, begun = where.cpu(), time.perf_counter()
    asyncio.run(all_of_them(load.runs))
    seconds, cpu = time.perf_counter() - begun, where.cpu() - before
    return Outcome(load, seconds, Cpu(worker=cpu.submitter, postgres=cpu.postgres))


def latency(where: Ground, runs: int) -> tuple[float, float]:
    """Median seconds of a run of one step that is alone: from its submission until it is taken up, and to its end."""
    with workers(where, CORES[:1]):
        waits, lives = [], []
        for _ in range(runs):
            (run_id,) = where.submit(Load(1, 1))
            where.wait()
            log = list(where.journal.read(run_id))
            waits.append(min(one.at for one in log if isinstance(one, ev.RunResumed)) - log[0].at)
            lives.append(log[-1].at - log[0].at)
    return sorted(waits)[runs // 2], sorted(lives)[runs // 2]


def history(where: Ground) -> tuple[int, int]:
    """Events of Temporal for a run, and their bytes."""

    async def described(run_id: str) -> tuple[int, int]:
        client = await Temporal(where.temporal.address).client()
        handle = client.get_workflow_handle(f"tenlines-{run_id}")
        await handle.result()
        info = (await handle.describe()).raw_description.workflow_execution_info
        return info.history_length, info.history_size_bytes

    with workers(where, CORES[:1]):
        (run_id,) = where.submit(Load(1, 5))
        return asyncio.run(described(run_id))


def spin(seconds: float, cores: Sequence[int]) -> float:
    """What a plain Python loop gets done on these cores together, in turns a second: what the machine has to give."""
    command = (
        "import os, sys, time\n"
        "os.sched_setaffinity(0, {int(sys.argv[1])}); until, turns = time.perf_counter() + float(sys.argv[2]), 0\n"
        "while time.perf_counter() < until: turns += 1\n"
        "print(turns)"
    )
    spinning = [
        subprocess.Popen([sys.executable, "-c", command, str(core), str(seconds)], stdout=subprocess.PIPE, text=True)
        for core in cores
    ]
    return math.fsum(int(one.communicate()[0]) for one in spinning) / seconds


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
