"""What a fleet gets done, and what of it the engine costs: real workers, a real Temporal, a real Postgres.

    python benchmarks/fleet.py [--quick] [--check] [--rounds 3] [--out FILE.json]

Workers are processes pinned to one core each, with 20 places. Of each case there are rounds of one worker and of two in
turn, and the best of each counts: on a shared machine the slower ones measure the neighbours.

* *model of 100 ms*: a reply takes 50 to 150 ms. What bounds a worker is its places, as in real life.
* *no wait*: the model answers at once. What bounds a worker is the processor.

*all on the workers' cores*: Temporal, Postgres and whoever submits run on the cores that the workers have: one core for
all of it, then two. *servers on both*: they may use both cores at all times; so one worker has a core to itself, which
two have not.

Then runs of different lengths with one worker, beside the same runs without an engine: what is left is the engine's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fleet_ground import (
    CORES,
    GROUPS,
    PARALLEL,
    Cpu,
    Ground,
    Load,
    Outcome,
    bare,
    ground,
    history,
    latency,
    outcome,
    spin,
)
from scale import TOLERANCE, predictions

SLOW, FAST = "model of 100 ms", "no wait"
SHARED, APART = "all on the workers' cores", "servers on both"
CASES = tuple(f"{load}, {servers}" for load in (SLOW, FAST) for servers in (APART, SHARED))
AT_LEAST = {f"{SLOW}, {APART}": 1.7, f"{FAST}, {SHARED}": 1.7}
"""The throughput of a fleet as its user has it; and all of it on one core against all of it on two. Of the other two
nothing is asked: with one worker, *no wait, servers on both* has more than one core already."""
LENGTHS = (1, 5, 20, 50)


# --- measuring ------------------------------------------------------------------------------------------


def grown(where: Ground, loads: dict[str, Load], rounds: int) -> list[dict[str, Any]]:
    """One worker and two, in turn, in each case."""
    best: dict[tuple[str, int], Outcome] = {}
    for _ in range(rounds):
        for case in CASES:
            for cores in (CORES[:1], CORES):
                came = _case(where, loads, case, cores)
                known = best.get((case, len(cores)))
                best[case, len(cores)] = came if known is None or came.rate > known.rate else known
    return [_row(case, count, best[case, count], best[case, 1]) for case in CASES for count in (1, 2)]


def _case(where: Ground, loads: dict[str, Load], case: str, cores: Sequence[int]) -> Outcome:
    """As many runs for each worker, so that beginning and end are as large a part of both."""
    load = loads[case.split(", ")[0]]
    return outcome(where, load._replace(runs=load.runs * len(cores)), cores, cores if case.endswith(SHARED) else CORES)


def _row(case: str, workers: int, came: Outcome, one: Outcome) -> dict[str, Any]:
    cpu = {f"{who}, CPU s": seconds for who, seconds in zip(GROUPS, came.cpu, strict=True)}
    return {
        "case": case,
        "workers": workers,
        "steps/s": came.rate,
        "times one": came.rate / one.rate,
        **cpu,
        "cores in use": sum(came.cpu) / came.seconds,
        "empty, ms a run": 1000 * came.empty_s,
    }


def lengths(where: Ground, runs: int, rounds: int) -> list[dict[str, Any]]:
    """CPU milliseconds of a run by its length: with an engine, without, and what is left. The least of the rounds."""
    rows = []
    for steps in LENGTHS:
        load = Load(runs, steps)
        fleet = _least([outcome(where, load, CORES[:1], CORES) for _ in range(rounds)])
        alone = sum(_least([bare(where, load) for _ in range(rounds)]))
        engine = sum(fleet) - alone
        rows.append(
            {"steps": steps, "bare": alone}
            | dict(zip(GROUPS, fleet, strict=True))
            | {"engine, a run": engine, "engine, a step": engine / steps, "engine, share": engine / sum(fleet)}
        )
    return rows


def _least(came: list[Outcome]) -> Cpu:
    """Of each group the least, in milliseconds a run."""
    return Cpu(*(1000 * min(group) / came[0].load.runs for group in zip(*(one.cpu for one in came), strict=True)))


def fitted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each cost as so much a run and so much a step."""
    found = []
    for who in ("bare", *GROUPS, "engine, a run"):
        line = statistics.linear_regression([row["steps"] for row in rows], [row[who] for row in rows])
        found.append({"CPU of": who.split(",")[0], "ms a run": line.intercept, "ms a step": line.slope})
    return found


def written(where: Ground, load: Load) -> dict[str, float]:
    """What a step leaves behind, and a run."""
    came, (events, size) = outcome(where, load, CORES[:1], CORES), history(where)
    waited, lived = latency(where, 5 if load.runs < 20 else 21)
    return {
        "events in the journal, a step": came.events / came.steps,
        "bytes of tables and indexes, a step": came.table_bytes / came.steps,
        "bytes written ahead, a step": came.log_bytes / came.steps,
        "events of Temporal, a run": events,
        "bytes of its history, a run": size,
        "lone run until it is taken up, ms": 1000 * waited,
        "lone run of one step to its end, ms": 1000 * lived,
    }


# --- reporting ------------------------------------------------------------------------------------------


def shown(title: str, rows: list[dict[str, Any]]) -> Table:
    """A table of figures."""
    table = Table(*rows[0], title=title, title_justify="left")
    for row in rows:
        table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    return table


def verdicts(report: dict[str, Any]) -> list[dict[str, Any]]:
    """What was asked for, and whether it is so."""
    ratios = {row["case"]: row["times one"] for row in report["workers"] if row["workers"] == 2}
    return [
        {"two workers over one": case, "measured": ratios[case], "target": f">= {least}"}
        | {"": "ok" if ratios[case] >= least else "MISSED"}
        for case, least in AT_LEAST.items()
    ]


def checked(report: dict[str, Any]) -> list[dict[str, Any]]:
    """What the simulation says of the same loads."""
    return [
        {"case": one.case, "workers": one.workers, "simulated": one.simulated, "measured": one.measured}
        | {"off": f"{100 * one.off:+.0f} %", "": "ok" if abs(one.off) <= TOLERANCE else "OFF"}
        for one in predictions(report)
    ]


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    quick, rounds = given.quick, 1 if given.quick else given.rounds
    loads = {SLOW: Load(20, 4, 0.05), FAST: Load(20, 5)} if quick else {SLOW: Load(100, 20, 0.1), FAST: Load(100, 50)}
    machine = [spin(0.2 if quick else 1.0, cores) for cores in (CORES[:1], CORES)]
    with ground() as where:
        return {
            "about": {"machine": f"{os.cpu_count()} cores, {platform.machine()}", "parallel": PARALLEL}
            | {"two cores over one, bare loop": machine[1] / machine[0]},
            "loads": {name: load._asdict() for name, load in loads.items()},
            "workers": grown(where, loads, rounds),
            "lengths": (rows := lengths(where, 10 if quick else 100, rounds)),
            "costs": fitted(rows),
            "written": written(where, Load(10 if quick else 40, 8, 0.02)),
        }


def main() -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="some seconds; the figures mean little")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts [3]")
    parser.add_argument("--check", action="store_true", help="fail where the simulation says something else")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out" / "fleet.json", help="where it is kept"
    )
    given = parser.parse_args()
    report = measured(given)
    console = Console(width=150)
    console.print(
        *(f"{name}: {value}\n" for name, value in report["about"].items()),
        shown("one worker and two", report["workers"]),
        shown("CPU ms of a run, by its length", report["lengths"]),
        shown("CPU, as so much a run and so much a step", report["costs"]),
        shown(
            "what is written, and how long a run waits", [{"": k, "measured": v} for k, v in report["written"].items()]
        ),
        shown("against the targets", verdicts(report)),
        shown(f"against the simulation, within {100 * TOLERANCE:.0f} %", checks := checked(report)),
    )
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(json.dumps(report, indent=1) + "\n")
    if given.check and any(one[""] == "OFF" for one in checks):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
