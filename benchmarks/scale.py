"""How many workers and servers a number of runs a day needs: arithmetic, and a simulation of the day.

    python benchmarks/scale.py [--runs-per-day N ...] [--steps 8] [--model-s 3] [--parallel 100] [--workers N]
    python benchmarks/scale.py --check [FILE.json]    # against what `fleet.py` measured and wrote there

What a step costs was measured (`docs/scale.md`); every figure is an option. Nothing here needs more than Python, and
the same seed is the same day. Where a day has very many runs, its busiest part is simulated.
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

MEASURED = Path(__file__).parent / "out" / "fleet.json"
TOLERANCE = 0.15
"""How far the simulation may be from what was measured."""
FULL = 0.7
"""How much of places and processors is used at the peak. Above it, waiting times grow without a bound."""
DAY_S = 86_400.0
BYTES_OF_A_TOKEN = 4


class Costs(NamedTuple):
    """What was measured. Seconds of one processor, unless they are said to be something else."""

    worker_run: float = 0.010
    """Of the worker, for each run: the engine's library, and taking the run up."""
    worker_step: float = 0.0003
    temporal_run: float = 0.018
    temporal_step: float = 0.0002
    """As fitted to runs whose replies take no time. Why it grows with steps was not looked into."""
    postgres_run: float = 0.002
    postgres_step: float = 0.0001
    submitter_run: float = 0.0015
    handover: float = 0.03
    """From a place that is free to the next run in it, where runs wait: time, not processor."""
    events_run: float = 2.0
    """Rows of the journal."""
    events_step: float = 4.0
    commits_step: float = 2.0
    """At most: what waits together is one."""
    bytes_step: float = 1_550.0
    """Of tables and indexes, without the texts of models and tools."""
    log_step: float = 2_100.0
    """Bytes that Postgres writes ahead, without those texts."""
    temporal_events: float = 11.0
    """Of a run that is never handed back."""

    @property
    def servers_run(self) -> float:
        """Of all but the worker, for each run."""
        return self.temporal_run + self.postgres_run + self.submitter_run


class Work(NamedTuple):
    """What runs are like."""

    steps: float = 8.0
    """On average."""
    model_s: float = 3.0
    """A reply, on average."""
    tool_s: float = 0.5
    """The calls of a step, on average."""
    prompt: float = 1_000.0
    """Tokens of the first request."""
    new: float = 400.0
    """Tokens that each step adds: the reply, and the results of its calls."""

    def drawn(self, chance: random.Random) -> int:
        """The steps of one run: at least one, and now and then many."""
        return 1 + min(int(chance.expovariate(1 / max(1e-9, self.steps - 0.5))), 400)

    @property
    def tokens(self) -> float:
        """Of all requests and replies of an average run: each request sends what was before it."""
        return self.steps * self.prompt + self.new * self.steps * (self.steps + 1) / 2


class Fleet(NamedTuple):
    """Who does it."""

    workers: int
    """Each has a core."""
    parallel: int = 100
    """Places of each."""
    servers: tuple[int, ...] = ()
    """Cores that Temporal, Postgres and submitters share with those workers, or have besides; none where they are
    elsewhere and no matter."""
    requests_a_second: float = math.inf
    """How often the model may be asked, by all together."""


# --- simulating -----------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What came of it. Seconds."""

    ended: int
    steps: int
    lasted: float
    waits: list[float]
    """Of each run, from its arrival to a place."""
    longest_pace: float
    """That a request waited because the model may not be asked more often."""
    busy: list[float]
    """Of each worker: share of its processor."""
    under_way: float
    """Runs at once, on average."""
    most: int
    """Runs at once, at most."""
    taken_over: int
    """Times that a run lost its worker."""

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
        self._core = [0.0] * max(fleet.workers, *(core + 1 for core in (0, *fleet.servers)))
        self._used = [0.0] * len(self._core)
        self._send_at = self._longest_pace = 0.0
        self._waiting: deque[Run] = deque()
        self._at: list[tuple[float, int, str, Any, int]] = []
        self._number = 0
        self._running: list[set[Run]] = [set() for _ in range(fleet.workers)]
        self._count = self._most = self._taken_over = 0
        self._next = {"begin": self._begin, "ask": self._ask, "reply": self._reply, "write": self._write}
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
        now = area = 0.0
        left = len(arrivals)
        while left and self._at:
            at, _, what, subject, life = heapq.heappop(self._at)
            area += (at - now) * self._count
            now = at
            if isinstance(subject, Run) and subject.life != life:
                continue  # its worker died meanwhile
            if what in self._next:
                self._next[what](subject, now)
            elif what == "end":
                left -= 1
                self._end(subject)
            elif what == "arrival":
                self._waiting.append(subject)
            elif what == "death":
                self._die(subject, now)
            elif what == "back":
                self._free[subject] = self._fleet.parallel
            if self._waiting:
                self._fill(now, waits)
        lasted = now - (arrivals[0][0] if arrivals else 0.0)
        busy = [used / lasted if lasted else 0.0 for used in self._used[: self._fleet.workers]]
        steps, under_way = sum(steps for _, steps in arrivals), area / lasted if lasted else 0.0
        ended = len(arrivals) - left
        return Outcome(ended, steps, lasted, waits, self._longest_pace, busy, under_way, self._most, self._taken_over)

    def _later(self, at: float, what: str, subject: Any, life: int = 0) -> None:
        self._number += 1
        heapq.heappush(self._at, (at, self._number, what, subject, life))

    def _fill(self, now: float, waits: list[float]) -> None:
        """Give the runs that wait the places that there are, where there are most."""
        while self._waiting:
            worker = max(range(len(self._free)), key=self._free.__getitem__)
            if self._free[worker] < 1:
                return
            run = self._waiting.popleft()
            self._free[worker] -= 1
            self._running[worker].add(run)
            self._count += 1
            self._most = max(self._most, self._count)
            if run.begun < 0:
                waits.append(now - run.arrived)
                run.begun = now
            run.worker = worker
            self._later(self._serve(now, self._costs.servers_run) + self._costs.handover, "begin", run, run.life)

    def _burn(self, core: int, now: float, seconds: float) -> float:
        """When a core has done that, behind what it has to do already."""
        self._core[core] = max(self._core[core], now) + seconds
        self._used[core] += seconds
        return self._core[core]

    def _serve(self, now: float, seconds: float) -> float:
        """When the servers have done that, on the core that has least to do."""
        if not self._fleet.servers:
            return now + seconds
        return self._burn(min(self._fleet.servers, key=self._core.__getitem__), now, seconds)

    def _begin(self, run: Run, now: float) -> None:
        """The worker has it."""
        self._later(self._burn(run.worker, now, self._costs.worker_run), "ask", run, run.life)

    def _ask(self, run: Run, now: float) -> None:
        """Ask the model as soon as that is allowed."""
        send = max(now, self._send_at)
        self._send_at = send + 1 / self._fleet.requests_a_second
        self._longest_pace = max(self._longest_pace, send - now)
        self._later(send + self._pause(), "reply", run, run.life)

    def _reply(self, run: Run, now: float) -> None:
        """The worker makes a step of it."""
        self._later(self._burn(run.worker, now, self._costs.worker_step), "write", run, run.life)

    def _write(self, run: Run, now: float) -> None:
        """The step is in the journal."""
        run.left -= 1
        done = self._serve(now, self._costs.postgres_step + self._costs.temporal_step)
        self._later(done, "ask" if run.left > 0 else "end", run, run.life)

    def _end(self, run: Run) -> None:
        """Its place is free."""
        self._running[run.worker].discard(run)
        self._free[run.worker] += 1
        self._count -= 1

    def _die(self, worker: int, now: float) -> None:
        """A worker dies: what it had goes on elsewhere when it has been silent for long enough."""
        for run in sorted(self._running[worker], key=lambda one: one.arrived):
            run.life += 1
            self._later(now + self._heartbeat_s, "arrival", run, run.life)
        self._taken_over += len(self._running[worker])
        self._count -= len(self._running[worker])
        self._running[worker].clear()
        self._free[worker] = 0
        self._later(now + self._heartbeat_s, "back", worker)


# --- the day --------------------------------------------------------------------------------------------


class Day(NamedTuple):
    """When runs come: most at noon, fewest at midnight; some of them many at once."""

    runs: float
    peak: float = 3.0
    """Times the average of the day."""
    burst: int = 50
    burst_share: float = 0.1
    """So many of all runs come `burst` at once."""

    def rate(self, at: float) -> float:
        """Runs a second."""
        power = self._power
        mean: float = math.comb(2 * power, power) / 4**power
        least = (1 - self.peak * mean) / (1 - mean)
        hill = float((0.5 - 0.5 * math.cos(2 * math.pi * at / DAY_S)) ** power)
        return self.runs / DAY_S * (least + (self.peak - least) * hill)

    @property
    def _power(self) -> int:
        """How narrow the hill is: no narrower than it must be for a night in which runs come at all."""
        return next(power for power in range(1, 1_000) if self.peak * math.comb(2 * power, power) / 4**power <= 1)

    def arrivals(self, begin: float, end: float, work: Work, chance: random.Random) -> list[tuple[float, int]]:
        """Runs of a part of the day."""
        highest = self.runs / DAY_S * self.peak
        each = 1 - self.burst_share + self.burst_share / self.burst  # comings for a run
        found: list[tuple[float, int]] = []
        now = begin + chance.expovariate(highest * each)
        while now < end:
            if chance.random() * highest < self.rate(now):
                is_burst = chance.random() * each < self.burst_share / self.burst
                found += [(now, work.drawn(chance)) for _ in range(self.burst if is_burst else 1)]
            now += chance.expovariate(highest * each)
        return found

    def busiest(self, most: float) -> tuple[float, float]:
        """The whole day, or so much of it around the peak as has about so many runs."""
        if self.runs <= most:
            return 0.0, DAY_S
        half = most / (self.runs / DAY_S * self.peak) / 2
        return DAY_S / 2 - half, DAY_S / 2 + half


def arrivals(rate: float, seconds: float, work: Work, chance: random.Random) -> list[tuple[float, int]]:
    """Runs that come by chance at that rate."""
    return Day(rate * DAY_S, 1.0, 1, 0.0).arrivals(0.0, seconds, work, chance)


def paused(work: Work, chance: random.Random) -> Callable[[], float]:
    """How long the model and the tools of a step take: as often short as long, and now and then very long."""

    def pause() -> float:
        return work.model_s * chance.lognormvariate(-0.18, 0.6) + work.tool_s * chance.expovariate(1.0)

    return pause


# --- sizing ---------------------------------------------------------------------------------------------


class Need(NamedTuple):
    """What a number of runs a day needs at its peak, and what it leaves behind."""

    runs_a_second: float
    under_way: float
    workers: int
    worker_cores: float
    temporal_cores: float
    postgres_cores: float
    commits: float
    """A second, at most."""
    tokens_a_minute: float
    rows_a_day: float
    gigabytes_a_day: float
    log_gigabytes_a_day: float
    temporal_events_a_day: float


def need(runs_a_day: float, peak: float, work: Work, costs: Costs, parallel: int) -> Need:
    """The arithmetic: what comes in a second at the peak, times how long it stays, over what a worker can hold.

    Args:
        peak: Times the average of the day.
    """
    rate, steps = runs_a_day / DAY_S * peak, work.steps
    cpu = costs.worker_run + steps * costs.worker_step
    stays = costs.handover + cpu + costs.servers_run + steps * (work.model_s + work.tool_s + costs.postgres_step)
    text = steps * work.new * BYTES_OF_A_TOKEN
    return Need(
        rate,
        rate * stays,
        max(2, math.ceil(max(rate * stays / parallel, rate * cpu) / FULL)),  # two, so that one may die
        rate * cpu,
        rate * (costs.temporal_run + steps * costs.temporal_step),
        rate * (costs.postgres_run + steps * costs.postgres_step),
        rate * steps * costs.commits_step,
        60 * rate * work.tokens,
        runs_a_day * (costs.events_run + steps * costs.events_step),
        runs_a_day * (steps * costs.bytes_step + text) / 1e9,
        runs_a_day * (steps * costs.log_step + text) / 1e9,
        runs_a_day * costs.temporal_events,
    )


# --- reporting ------------------------------------------------------------------------------------------


def report(given: argparse.Namespace, work: Work, costs: Costs) -> None:
    """The needs of each number of runs, and its day."""
    for runs in given.runs_per_day:
        wanted = need(runs, given.peak, work, costs, given.parallel)
        chance, day = random.Random(given.seed), Day(runs, given.peak, given.burst, given.burst_share)
        begin, end = day.busiest(given.most_runs)
        deaths = sorted(chance.uniform(begin, end) for _ in range(given.deaths))
        per_s = given.requests_per_min / 60
        fleet = Fleet(given.workers or wanted.workers, given.parallel, requests_a_second=per_s)
        came = Simulation(fleet, costs, paused(work, chance), deaths, given.heartbeat).run(
            day.arrivals(begin, end, work, chance)
        )
        print("\n".join(_lines(runs, given.peak, wanted)))
        print(
            f"  simulated with    {fleet.workers} workers of {fleet.parallel} places, {_clock(begin)} to {_clock(end)}"
        )
        print("\n".join(_came(came)))


def _lines(runs: float, peak: float, wanted: Need) -> list[str]:
    return [
        f"\n{runs:,.0f} runs a day, {peak:g} times as many at the peak",
        f"  at the peak       {wanted.runs_a_second:,.2f} runs a second, {wanted.under_way:,.0f} under way; "
        f"{wanted.tokens_a_minute / 1e6:,.2f} million tokens a minute",
        f"  workers           {wanted.workers}, of a core each; all together use {wanted.worker_cores:.2f} cores",
        f"  Temporal          {wanted.temporal_cores:.2f} cores; {wanted.temporal_events_a_day:,.0f} events a day",
        f"  Postgres          {wanted.postgres_cores:.2f} cores, at most {wanted.commits:,.0f} commits a second",
        f"    a day           {wanted.rows_a_day:,.0f} rows, {wanted.gigabytes_a_day:,.2f} GB, "
        f"and {wanted.log_gigabytes_a_day:,.2f} GB written ahead",
    ]


def _came(came: Outcome) -> list[str]:
    waits = ", ".join(f"p{round(100 * share)} {came.wait(share):.2f} s" for share in (0.5, 0.95, 0.99))
    return [
        f"    runs            {came.ended:,}; {came.under_way:,.0f} at once, {came.most:,} at most; "
        f"{came.taken_over:,} taken over from workers that died",
        f"    for a place     {waits}",
        f"    for the rate    {came.longest_pace:.1f} s at most",
        f"    processors      {100 * max(came.busy):.1f} % of the busiest worker",
    ]


def _clock(at: float) -> str:
    return f"{int(at // 3600):02}:{int(at % 3600 // 60):02}"


# --- against what was measured --------------------------------------------------------------------------


class Prediction(NamedTuple):
    """Steps a second of a case."""

    case: str
    workers: int
    simulated: float
    measured: float

    @property
    def off(self) -> float:
        """How much too high."""
        return self.simulated / self.measured - 1


def costs_of(measured: dict[str, Any]) -> Costs:
    """What runs of one worker were seen to cost, by their length; and what a lone run waits for."""
    lines = {row["CPU of"]: row for row in measured["costs"]}
    run, step = ({who: max(0.0, line[f"ms a {of}"]) / 1000 for who, line in lines.items()} for of in ("run", "step"))
    return Costs(
        worker_run=run["worker"],
        worker_step=step["worker"],
        temporal_run=run["temporal"],
        temporal_step=step["temporal"],
        postgres_run=run["postgres"],
        postgres_step=step["postgres"],
        submitter_run=run["submitter"],
        handover=measured["written"]["lone run until it is taken up, ms"] / 1000,
    )


def predictions(measured: dict[str, Any]) -> list[Prediction]:
    """Of each case that `fleet.py` measured, what is simulated with these costs. No figure of a case is used for it."""
    costs, found = costs_of(measured), []
    for row in measured["workers"]:
        load = measured["loads"][row["case"].split(", ")[0]]
        count, chance = row["workers"], random.Random(1)
        shares = "all on" in row["case"]
        fleet = Fleet(count, measured["about"]["parallel"], tuple(range(count)) if shares else (0, 1))

        def pause(seconds: float = load["model_s"], chance: random.Random = chance) -> float:
            return seconds * chance.uniform(0.5, 1.5)

        came = Simulation(fleet, costs, pause).run([(0.0, load["steps"])] * (load["runs"] * count))
        found.append(Prediction(row["case"], count, came.steps / came.lasted, row["steps/s"]))
    return found


def check(file: Path) -> bool:
    """Whether the simulation says what was measured. Prints both."""
    found = predictions(json.loads(file.read_text()))
    for one in found:
        print(
            f"{one.case}; workers: {one.workers}; simulated {one.simulated:,.0f} steps/s, "
            f"measured {one.measured:,.0f} ({100 * one.off:+.0f} %)"
        )
    is_near = all(abs(one.off) <= TOLERANCE for one in found)
    print(f"{'all' if is_near else 'NOT all'} within {100 * TOLERANCE:.0f} %")
    return is_near


def main() -> None:
    """Read what is asked, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs-per-day", type=float, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--peak", type=float, default=3.0, help="times the average of the day [3]")
    parser.add_argument("--burst", type=int, default=50, help="runs that now and then come at once [50]")
    parser.add_argument("--burst-share", type=float, default=0.1, help="of all runs, that come so [0.1]")
    parser.add_argument("--parallel", type=int, default=100, help="places of a worker [100]")
    parser.add_argument("--workers", type=int, help="how many [as many as the arithmetic says]")
    parser.add_argument("--deaths", type=int, default=4, help="workers that die meanwhile [4]")
    parser.add_argument("--heartbeat", type=float, default=15.0, help="seconds until that is seen [15]")
    parser.add_argument("--requests-per-min", type=float, default=math.inf, help="that the model allows [no limit]")
    parser.add_argument("--most-runs", type=float, default=120_000, help="of a day that are simulated [120000]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--check", type=Path, metavar="FILE", nargs="?", const=MEASURED, help="against what was measured"
    )
    for kind in (Work(), Costs()):
        for name, value in kind._asdict().items():
            parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value, help=f"[{value:g}]")
    given = parser.parse_args()
    if given.check:
        raise SystemExit(0 if check(given.check) else 1)
    report(given, _taken(Work, given), _taken(Costs, given))


def _taken(kind: Any, given: argparse.Namespace) -> Any:
    return kind(*(getattr(given, name) for name in kind._fields))


if __name__ == "__main__":
    main()
