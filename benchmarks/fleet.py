"""What a fleet gets done, and what of it the engine costs: real workers, a real Temporal, a real Postgres.

    python benchmarks/fleet.py [--quick] [--out FILE.json]

Workers are processes pinned to one core each. Two loads:

* *real steps*: a model that takes 100 ms, 20 runs at once in each worker. What bounds a worker is its places.
* *nothing but tenlines*: a model that answers at once. What bounds it is the processor; so one worker shares one core
  with the servers, and two share two cores with them.

Then runs of different lengths with one worker, beside the same runs without an engine: what is left is the engine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

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

MODEL_S, PARALLEL = 0.1, 20
AT_LEAST = {"two workers over one, real steps": 1.7, "two workers over one, nothing but tenlines": 1.7}
LENGTHS = (1, 5, 20, 50)
CORES = (0, 1)


class Load(NamedTuple):
    """Runs that wait when the workers begin."""

    runs: int
    steps: int
    model_s: float = 0.0


class Outcome(NamedTuple):
    """What came of a load. CPU in seconds."""

    steps: int
    seconds: float
    worker_cpu: float
    temporal_cpu: float
    postgres_cpu: float

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
            await asyncio.sleep(float(seconds))
        if request.step >= int(steps):
            return "done"
        return Reply(calls=(ToolCall("c", "look_up", f'{{"item": "part {request.step}"}}'),))

    return Agent(model, [look_up], name="bench", journal=journal, limits=Limits(steps=100))


def task(load: Load, number: int) -> str:
    """What an agent is told."""
    return f"{load.steps} {load.model_s} {number}"


def work(place: str, temporal: str, core: int) -> None:
    """A worker, until SIGTERM. It begins at SIGUSR1, so that all begin at once."""
    os.sched_setaffinity(0, {core})

    async def serve() -> None:
        go, leaving = asyncio.Event(), asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, go.set)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
        journal, engine = open_journal(place), Temporal(temporal)
        await engine.client()
        limits = FleetLimits(LocalPace({}), LocalPlaces())
        worker = Worker(Fleet([agent(journal)]), journal, engine, limits, parallel=PARALLEL)
        print("ready", flush=True)
        await go.wait()
        await worker.serve(leaving)
        journal.close()

    asyncio.run(serve())
    os._exit(0)


# --- measuring ------------------------------------------------------------------------------------------


class Ground:
    """The servers."""

    def __init__(self, postgres: LocalPostgres, temporal: DevServer) -> None:
        self.postgres, self.temporal = postgres, temporal

    def pin(self, cores: tuple[int, ...]) -> None:
        """Where the servers may run."""
        for pid in (self.postgres.pid, self.temporal.pid):
            assert pid is not None
            server = psutil.Process(pid)
            for one in (server, *server.children(recursive=True)):
                for thread in one.threads():
                    os.sched_setaffinity(thread.id, cores)

    def cpu(self) -> tuple[float, float]:
        """Seconds of Temporal, and of Postgres with all its processes, those that ended included."""
        assert self.temporal.pid is not None
        temporal, postgres = psutil.Process(self.temporal.pid), psutil.Process(self.postgres.pid)
        times = postgres.cpu_times()
        ended = times.children_user + times.children_system
        alive = sum(map(_cpu, (postgres, *postgres.children(recursive=True))))
        return _cpu(temporal), ended + alive


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def workers(ground: Ground, cores: tuple[int, ...]) -> Iterator[list[subprocess.Popen[str]]]:
    """One pinned to each core, connected, and not at work yet."""
    command = [sys.executable, __file__, "--worker", ground.postgres.address, ground.temporal.address]
    found = [subprocess.Popen([*command, str(core)], stdout=subprocess.PIPE, text=True) for core in cores]
    try:
        for one in found:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        yield found
    finally:
        for one in found:
            one.terminate()
            one.wait()


def outcome(ground: Ground, load: Load, cores: tuple[int, ...], servers: tuple[int, ...]) -> Outcome:
    """Submit all, let the workers go, wait for the last end."""
    with workers(ground, cores) as found:
        journal = open_journal(ground.postgres.address)
        run_ids = asyncio.run(_submit(ground, journal, load))
        ground.pin(servers)
        processes = [psutil.Process(one.pid) for one in found]
        before = (sum(map(_cpu, processes)), *ground.cpu())
        for one in found:
            one.send_signal(signal.SIGUSR1)
        while len(journal.runs(status="answered")) < _ended + len(run_ids):
            time.sleep(0.2)
        after = (sum(map(_cpu, processes)), *ground.cpu())
        _count(len(run_ids))
        seconds = _lasted(journal, run_ids)
        journal.close()
    ground.pin(CORES)
    return Outcome(load.runs * load.steps, seconds, *(late - soon for late, soon in zip(after, before, strict=True)))


_ended = 0


def _count(runs: int) -> None:
    global _ended
    _ended += runs


async def _submit(ground: Ground, journal: Journal, load: Load) -> list[str]:
    one, engine = agent(journal), Temporal(ground.temporal.address)
    return await asyncio.gather(*(one.submit(task(load, number), engine) for number in range(load.runs)))


def _lasted(journal: Journal, run_ids: list[str]) -> float:
    """From the first run that was taken up to the last that ended."""
    began, ended = math.inf, 0.0
    for run_id in run_ids:
        for event in journal.read(run_id):
            if isinstance(event, ev.RunResumed):
                began = min(began, event.at)
            elif isinstance(event, ev.RunEnded):
                ended = max(ended, event.at)
    return ended - began


def bare(ground: Ground, load: Load) -> Outcome:
    """The same runs in one process with the same journal, and no engine."""
    journal = open_journal(ground.postgres.address)
    one, places = agent(journal), asyncio.Semaphore(PARALLEL)

    async def run(number: int) -> None:
        async with places:
            await one.run(task(load, number))

    async def all_of_them() -> None:
        await asyncio.gather(*(run(number) for number in range(load.runs)))

    before, begun = (time.process_time(), *ground.cpu()), time.perf_counter()
    asyncio.run(all_of_them())
    seconds = time.perf_counter() - begun
    after = (time.process_time(), *ground.cpu())
    journal.close()
    _count(load.runs)
    return Outcome(load.runs * load.steps, seconds, *(late - soon for late, soon in zip(after, before, strict=True)))


# --- reporting ------------------------------------------------------------------------------------------


def grown(ground: Ground, loads: dict[str, Load], rounds: int) -> list[dict[str, Any]]:
    """One worker and two, in turn; the best of each."""
    rows: list[dict[str, Any]] = []
    for name, load in loads.items():
        shares_a_core = load.model_s == 0.0
        best: dict[int, Outcome] = {}
        for _ in range(rounds):
            for cores in (CORES[:1], CORES):
                came = outcome(ground, load, cores, cores if shares_a_core else CORES)
                known = best.get(len(cores))
                best[len(cores)] = came if known is None or came.rate > known.rate else known
        for count, came in best.items():
            rows.append(_row(name, count, came, best[1]))
    return rows


def _row(name: str, count: int, came: Outcome, one: Outcome) -> dict[str, Any]:
    cpu = {f"{who} ms a step": 1000 * getattr(came, f"{who}_cpu") / came.steps for who in WHO}
    return {"load": name, "workers": count, "steps a second": came.rate, "times one": came.rate / one.rate, **cpu}


WHO = ("worker", "temporal", "postgres")


def shares(ground: Ground, runs: int) -> list[dict[str, Any]]:
    """What a run costs with an engine and without, by its length. CPU milliseconds."""
    rows: list[dict[str, Any]] = []
    for steps in LENGTHS:
        load = Load(runs, steps)
        with_engine, without = outcome(ground, load, CORES[:1], CORES), bare(ground, load)
        fleet, alone = (1000 * (one.worker_cpu + one.postgres_cpu) / runs for one in (with_engine, without))
        temporal = 1000 * with_engine.temporal_cpu / runs
        engine = temporal + fleet - alone
        rows.append(
            {
                "steps": steps,
                "without, ms a run": alone,
                "worker and Postgres, ms a run": fleet,
                "Temporal, ms a run": temporal,
                "engine, ms a run": engine,
                "engine, ms a step": engine / steps,
                "engine, share": engine / (engine + alone),
            }
        )
    return rows


def handover(one: dict[str, Any], load: Load) -> float:
    """Seconds that a place stands empty between two runs, where others wait: what is left of the time of one worker."""
    seconds = load.steps / one["steps a second"] * PARALLEL
    return max(0.0, seconds - load.steps * (load.model_s + one["worker ms a step"] / 1000))


def shown(title: str, rows: list[dict[str, Any]]) -> Table:
    """A table of figures."""
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    return table


def main() -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds; the figures mean little")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    given = parser.parse_args()
    console, quick = Console(width=140), given.quick
    loads = {
        "real steps": Load(40, 4, 0.05) if quick else Load(160, 20, MODEL_S),
        "nothing but tenlines": Load(20, 10) if quick else Load(100, 50),
    }
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with LocalPostgres(Path(folder, "postgres")) as postgres, DevServer(Path(folder, "t.db"), port=0) as temporal:
            ground = Ground(postgres, temporal)
            rows = grown(ground, loads, 1 if quick else 2)
            costs = shares(ground, 10 if quick else 100)
    console.print(shown("one worker and two", rows), shown("what the engine costs, CPU", costs))
    ratios = {f"two workers over one, {row['load']}": row["times one"] for row in rows if row["workers"] == 2}
    verdicts = Table("figure", "measured", "target", "", title="against the targets")
    for name, ratio in ratios.items():
        verdicts.add_row(name, f"{ratio:.2f}", f">= {AT_LEAST[name]}", "ok" if ratio >= AT_LEAST[name] else "MISSED")
    console.print(verdicts)
    if given.out:
        about = {
            "machine": platform.machine(),
            "parallel": PARALLEL,
            "handover_s": handover(rows[0], loads["real steps"]),
        }
        report = {"about": about, "loads": loads, "workers": rows, "engine": costs, "verdicts": ratios}
        given.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    main()
