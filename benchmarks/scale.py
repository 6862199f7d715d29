"""How many workers and servers a number of runs a day needs: a model, and a simulation of the busiest minutes.

    python benchmarks/scale.py [--runs-per-day N ...] [--steps 8] [--model-s 3] [--parallel 100] [--deaths 4]
    python benchmarks/scale.py --check FILE.json    # against what `fleet.py --out FILE.json` measured

What a step costs was measured (`docs/scale.md`); every figure is an option. Nothing here needs more than Python.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TOLERANCE = 0.15
"""How far the simulation may be from what was measured."""
FULL = 0.7
"""How much of places and processors is used at the peak. Above it, waiting times grow without a bound."""


class Costs(NamedTuple):
    """What was measured. Times in seconds, of one processor."""

    worker_run: float = 0.010
    """Of the worker, for each run: the engine's library, and taking the run up."""
    worker_step: float = 0.0005
    temporal_run: float = 0.012
    postgres_step: float = 0.0002
    handover: float = 0.05
    """From a place that is free to the next run in it, where runs wait."""
    commits_step: float = 2.0
    events_step: float = 4.0
    bytes_step: float = 2500.0


class Work(NamedTuple):
    """What runs are like."""

    steps: float = 8.0
    """On average."""
    model_s: float = 3.0
    """A reply, on average."""
    tool_s: float = 0.5
    """The calls of a step, on average."""

    def drawn(self, chance: random.Random) -> int:
        """The steps of one run: at least one, and now and then many."""
        return 1 + min(int(chance.expovariate(1 / max(1e-9, self.steps - 0.5))), 400)


class Fleet(NamedTuple):
    """Who does it."""

    workers: int
    parallel: int = 100
    """Places of each."""
    shares_cores: bool = False
    """The servers use the processors of the workers."""


# --- simulating -----------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What came of it. Seconds."""

    ended: int
    steps: int
    lasted: float
    waits: list[float]
    """Of each run, from its arrival to a place."""
    busy: list[float]
    """Of each worker: share of its processor."""
    under_way: float
    """Runs at once, on average."""

    def wait(self, share: float) -> float:
        """So long, or less, waited that share of the runs."""
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))] if self.waits else 0.0


class Run:
    """One run of the simulation."""

    __slots__ = ("arrived", "begun", "left", "life", "worker")

    def __init__(self, arrived: float, steps: int) -> None:
        self.arrived, self.left = arrived, steps
        self.begun, self.worker, self.life = -1.0, -1, 0


class Simulation:
    """Places, processors, and what happens next.

    Args:
        pause: How long the model and the tools of one step take.
        deaths: When workers die. Their runs go on elsewhere after `heartbeat_s`, and they are back after as long.
    """

    def __init__(
        self,
        fleet: Fleet,
        costs: Costs,
        pause: Callable[[], float],
        deaths: Sequence[float] = (),
        heartbeat_s: float = 15.0,
    ) -> None:
        self._fleet, self._costs, self._pause, self._heartbeat_s = fleet, costs, pause, heartbeat_s
        self._free = [fleet.parallel] * fleet.workers
        self._core = [0.0] * fleet.workers  # when it has done what it was given
        self._used = [0.0] * fleet.workers
        self._waiting: deque[Run] = deque()
        self._at: list[tuple[float, int, str, Any, int]] = []
        self._number = 0
        self._running: list[set[Run]] = [set() for _ in range(fleet.workers)]
        for place, at in enumerate(deaths):
            self._later(at, "death", place % fleet.workers)

    def run(self, arrivals: Sequence[tuple[float, int]]) -> Outcome:
        """Until the last run has ended.

        Args:
            arrivals: When each run comes, and how many steps it has.
        """
        for at, steps in arrivals:
            self._later(at, "arrival", Run(at, steps))
        waits: list[float] = []
        now, under_way = 0.0, 0.0
        left = len(arrivals)
        while left and self._at:
            at, _, what, subject, life = heapq.heappop(self._at)
            under_way += (at - now) * sum(map(len, self._running))
            now = at
            if what == "arrival":
                self._waiting.append(subject)
            elif what == "death":
                self._die(subject, now)
            elif what == "back":
                self._free[subject] = self._fleet.parallel
            elif subject.life == life:
                left -= self._step(subject, now)
            self._fill(now, waits)
        lasted = now - (arrivals[0][0] if arrivals else 0.0)
        busy = [used / lasted if lasted else 0.0 for used in self._used]
        steps = sum(steps for _, steps in arrivals)
        return Outcome(len(arrivals) - left, steps, lasted, waits, busy, under_way / lasted if lasted else 0.0)

    def _later(self, at: float, what: str, subject: Any, life: int = 0) -> None:
        self._number += 1
        heapq.heappush(self._at, (at, self._number, what, subject, life))

    def _fill(self, now: float, waits: list[float]) -> None:
        """Give the runs that wait the places that there are, where there are most."""
        while self._waiting and (worker := max(range(len(self._free)), key=self._free.__getitem__)) >= 0:
            if self._free[worker] < 1:
                return
            run = self._waiting.popleft()
            self._free[worker] -= 1
            self._running[worker].add(run)
            if run.begun < 0:
                waits.append(now - run.arrived)
                run.begun = now
            run.worker = worker
            cpu = self._costs.worker_run + self._costs.temporal_run * self._fleet.shares_cores
            self._begin_step(run, self._burn(worker, now + self._costs.handover, cpu))

    def _burn(self, worker: int, now: float, seconds: float) -> float:
        """When the worker's processor has done that, behind what it has to do already."""
        self._core[worker] = max(self._core[worker], now) + seconds
        self._used[worker] += seconds
        return self._core[worker]

    def _begin_step(self, run: Run, now: float) -> None:
        self._later(now + self._pause(), "step", run, run.life)

    def _step(self, run: Run, now: float) -> int:
        """A step has its reply; returns 1 where it was the last."""
        cpu = self._costs.worker_step + self._costs.postgres_step * self._fleet.shares_cores
        done = self._burn(run.worker, now, cpu)
        run.left -= 1
        if run.left > 0:
            self._begin_step(run, done)
            return 0
        self._running[run.worker].discard(run)
        self._free[run.worker] += 1
        return 1

    def _die(self, worker: int, now: float) -> None:
        """A worker dies: what it had goes on elsewhere when it has been silent for long enough."""
        for run in sorted(self._running[worker], key=lambda one: one.arrived):
            run.life += 1
            self._later(now + self._heartbeat_s, "arrival", run)
        self._running[worker].clear()
        self._free[worker] = 0
        self._core[worker] = now
        self._later(now + self._heartbeat_s, "back", worker)


# --- sizing ---------------------------------------------------------------------------------------------


class Need(NamedTuple):
    """What a number of runs a day needs at its peak."""

    runs_a_second: float
    under_way: float
    workers: int
    temporal_cores: float
    postgres_cores: float
    commits: float
    events_a_day: float
    gigabytes_a_day: float


def need(runs_a_day: float, peak: float, work: Work, costs: Costs, parallel: int) -> Need:
    """The arithmetic: what comes in a second at the peak, times how long it stays, over what a worker can hold.

    Args:
        peak: Times the average of the day.
    """
    rate = runs_a_day / 86_400 * peak
    cpu = costs.worker_run + work.steps * costs.worker_step
    stays = costs.handover + cpu + work.steps * (work.model_s + work.tool_s)
    by_places, by_cores = rate * stays / FULL / parallel, rate * cpu / FULL
    steps = rate * work.steps
    return Need(
        rate,
        rate * stays,
        max(2, math.ceil(max(by_places, by_cores))),  # two at least, so that one may die
        rate * costs.temporal_run / FULL,
        steps * costs.postgres_step / FULL,
        steps * costs.commits_step,
        runs_a_day * work.steps * costs.events_step,
        runs_a_day * work.steps * costs.bytes_step / 1e9,
    )


def arrivals(rate: float, seconds: float, work: Work, chance: random.Random) -> list[tuple[float, int]]:
    """Runs that come by chance at that rate."""
    found: list[tuple[float, int]] = []
    now = chance.expovariate(rate)
    while now < seconds:
        found.append((now, work.drawn(chance)))
        now += chance.expovariate(rate)
    return found


def paused(work: Work, chance: random.Random) -> Callable[[], float]:
    """How long the model and the tools of a step take: as often short as long, and now and then very long."""

    def pause() -> float:
        return work.model_s * chance.lognormvariate(-0.18, 0.6) + work.tool_s * chance.expovariate(1.0)

    return pause


# --- reporting ------------------------------------------------------------------------------------------


def report(given: argparse.Namespace) -> None:
    """The needs of each number of runs, and its busiest minutes."""
    work, costs = Work(given.steps, given.model_s, given.tool_s), Costs()
    for runs in given.runs_per_day:
        wanted = need(runs, given.peak, work, costs, given.parallel)
        chance = random.Random(given.seed)
        window = min(given.minutes * 60.0, 40_000 / wanted.runs_a_second)
        deaths = sorted(chance.uniform(0.2, 0.8) * window for _ in range(given.deaths))
        fleet = Fleet(wanted.workers, given.parallel)
        came = Simulation(fleet, costs, paused(work, chance), deaths).run(
            arrivals(wanted.runs_a_second, window, work, chance)
        )
        print(f"\n{runs:,.0f} runs a day, {given.peak:g} times as many at the peak")
        print(f"  at the peak       {wanted.runs_a_second:,.2f} runs a second, {wanted.under_way:,.0f} under way")
        print(f"  workers           {wanted.workers} of one core and {given.parallel} places each")
        print(f"  Temporal          {wanted.temporal_cores:.2f} cores")
        print(f"  Postgres          {wanted.postgres_cores:.2f} cores, {wanted.commits:,.0f} commits a second")
        print(f"  a day             {wanted.events_a_day:,.0f} events, {wanted.gigabytes_a_day:,.1f} GB")
        print(f"  simulated         {window / 60:.0f} minutes of it, {given.deaths} workers die: {came.ended:,} runs")
        waits = ", ".join(f"p{round(100 * share)} {came.wait(share):.2f} s" for share in (0.5, 0.95, 0.99))
        print(f"    for a place     {waits}")
        print(
            f"    processors      {100 * max(came.busy):.0f} % of the busiest worker; {came.under_way:,.0f} under way"
        )


def predicted(measured: dict[str, Any], name: str) -> list[tuple[int, float, float]]:
    """Steps a second of one worker and of two: as simulated with what one worker was seen to cost, and as measured."""
    about = measured["about"]
    rows = {row["workers"]: row for row in measured["workers"] if row["load"] == name}
    runs, steps, model_s = measured["loads"][name]
    one = rows[1]
    costs = Costs(
        worker_run=0.0,
        worker_step=one["worker ms a step"] / 1000,
        temporal_run=one["temporal ms a step"] * steps / 1000,
        postgres_step=one["postgres ms a step"] / 1000,
        handover=about["handover_s"],
    )
    found = []
    for workers, row in sorted(rows.items()):
        fleet = Fleet(workers, about["parallel"], shares_cores=model_s == 0.0)
        came = Simulation(fleet, costs, lambda: model_s).run([(0.0, steps)] * runs)
        found.append((workers, came.steps / came.lasted, row["steps a second"]))
    return found


def check(file: Path) -> bool:
    """Whether the simulation says what was measured. Prints both."""
    measured, is_near = json.loads(file.read_text()), True
    for name in measured["loads"]:
        for workers, said, seen in predicted(measured, name):
            off = said / seen - 1
            is_near &= abs(off) <= TOLERANCE
            print(
                f"{name}, workers: {workers}: simulated {said:,.0f} steps/s, measured {seen:,.0f} ({100 * off:+.0f} %)"
            )
    print(f"within {100 * TOLERANCE:.0f} %" if is_near else f"NOT within {100 * TOLERANCE:.0f} %")
    return is_near


def main() -> None:
    """Read what is asked, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs-per-day", type=float, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--peak", type=float, default=3.0, help="times the average of the day [3]")
    parser.add_argument("--steps", type=float, default=Work().steps, help="of a run, on average [8]")
    parser.add_argument("--model-s", type=float, default=Work().model_s, help="seconds of a reply [3]")
    parser.add_argument("--tool-s", type=float, default=Work().tool_s, help="seconds of the calls of a step [0.5]")
    parser.add_argument("--parallel", type=int, default=100, help="places of a worker [100]")
    parser.add_argument("--minutes", type=float, default=15.0, help="of the peak that are simulated [15]")
    parser.add_argument("--deaths", type=int, default=2, help="workers that die meanwhile [2]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", type=Path, metavar="FILE", help="against what fleet.py measured")
    given = parser.parse_args()
    if given.check:
        raise SystemExit(0 if check(given.check) else 1)
    report(given)


if __name__ == "__main__":
    main()
