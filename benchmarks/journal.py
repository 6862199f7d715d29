"""What a journal in SQLite takes: for many runs at once, for long runs, and to go on with one.

    python benchmarks/journal.py [--quick] [--out FILE.json]

Wall time, as a user waits for it, unless it says CPU; the best of several rounds is taken, because on a shared machine
the slower ones measure the neighbours. Each figure stands beside a loop without any journal in the same process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import math
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from overhead import agent, bare_loop, bare_script, look_up
from tenlines import Agent, Limits, Reply
from tenlines.core.effects import CallModel
from tenlines.core.replay import fold
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal

RUNS = 200
STEPS_EACH = 50
PLACES = (10, 100, 1_000, 10_000)
AT_LEAST = {"200 runs with asyncio, steps a second": 5_000}
AT_MOST = {"cost of a step, last place over first": 1.3, "to go on with a run of 10,000 steps, s": 0.5}


# --- measuring ------------------------------------------------------------------------------------------


def wall(work: Callable[[], Any]) -> float:
    """Seconds."""
    gc.collect()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and CPU seconds of all threads."""
    begin = time.process_time()
    return wall(work), time.process_time() - begin


def with_asyncio(journal: Any, steps: int) -> None:
    """All runs as tasks of one loop."""
    agents = [agent(steps, journal, "look_up_async") for _ in range(RUNS)]

    async def main() -> None:
        await asyncio.gather(*(one.run("go") for one in agents))

    asyncio.run(main())


def in_threads(journal: Any, steps: int) -> None:
    """Each run in a thread of its own."""
    threads = [threading.Thread(target=agent(steps, journal).run_sync, args=("go",)) for _ in range(RUNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def without(steps: int) -> None:
    """The same steps with the ten lines, one run after another."""
    for _ in range(RUNS):
        bare_loop(bare_script(steps), {"look_up": look_up}, "go")


def parallel_table(folder: Path, steps: int, rounds: int) -> list[dict[str, Any]]:
    """Steps a second over all runs on one file."""
    count = iter(range(1000))

    def sqlite(way: Callable[[Any, int], None]) -> None:
        journal = SqliteJournal(folder / f"parallel{next(count)}.db")
        way(journal, steps)
        journal.close()

    ways: dict[str, Callable[[], None]] = {
        "bare": lambda: without(steps),
        "asyncio, memory": lambda: with_asyncio(MemoryJournal(), steps),
        "asyncio, sqlite": lambda: sqlite(with_asyncio),
        "threads, memory": lambda: in_threads(MemoryJournal(), steps),
        "threads, sqlite": lambda: sqlite(in_threads),
    }
    rows = []
    for way, work in ways.items():
        seconds, cpu = min(measured(work) for _ in range(rounds))
        speed, cost = RUNS * steps / seconds, cpu / (RUNS * steps) * 1e6
        rows.append({"way": way, "seconds": seconds, "steps a second": speed, "CPU us a step": cost})
    return [row | {"times bare": row["seconds"] / rows[0]["seconds"]} for row in rows]


def growth_table(folder: Path, places: tuple[int, ...], rounds: int) -> list[dict[str, Any]]:
    """Microseconds of a step around the given places in one run."""
    at = [measured_places(folder / f"growth{number}.db", places) for number in range(rounds)]
    at_bare = bare_step()
    return [
        {"at step": place, "bare": at_bare, "sqlite": min(one[place] for one in at)}
        | {"times bare": min(one[place] for one in at) / at_bare}
        for place in places
    ]


def measured_places(file: Path, places: tuple[int, ...]) -> dict[int, float]:
    """Median microseconds of the steps that led to each place: a tenth of the run up to there."""
    times: list[float] = []

    class Watch:
        """Notes when each reply was recorded."""

        def on_event(self, event: Any) -> None:
            if type(event).__name__ == "ModelReplied":
                times.append(time.perf_counter())

    journal = SqliteJournal(file)
    one = agent(places[-1] + 1, journal)
    one.observers = (Watch(),)
    gc.collect()
    one.run_sync("go")
    journal.close()
    steps = [(after - before) * 1e6 for before, after in itertools.pairwise(times)]
    return {place: median(steps[max(0, place - max(place // 10, 5)) : place]) for place in places}


def median(values: list[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]


def bare_step(steps: int = 1000) -> float:
    """Microseconds of a step without anything."""
    return (
        min(wall(partial(bare_loop, bare_script(steps), {"look_up": look_up}, "go")) for _ in range(10)) / steps * 1e6
    )


class Noting:
    """A model that notes when it is asked, and ends the run."""

    name = "noting"

    def __init__(self) -> None:
        self.asked_at = 0.0

    def session(self) -> Noting:
        """The conversation is the model itself."""
        return self

    def complete(self, request: CallModel, on_delta: Any) -> Reply:
        """Note the time."""
        self.asked_at = time.perf_counter()
        return Reply("done")


def resume_table(folder: Path, steps: int, rounds: int) -> list[dict[str, Any]]:
    """Seconds to read a run that ended at its limit, to fold it, and until its model is asked again."""
    file = folder / "long.db"
    journal = SqliteJournal(file)
    run_id = agent(steps, journal).run_sync("go", limits=Limits(steps=steps - 1), raise_on_stop=False).run_id
    journal.close()
    best: dict[str, float] = {"read": math.inf, "fold": math.inf, "all": math.inf}
    for number in range(rounds):
        copy = SqliteJournal(shutil.copy(file, folder / f"long{number}.db"))
        log: list[Any] = []
        times = {
            "read": wall(lambda copy=copy, log=log: log.extend(copy.read(run_id))),
            "fold": wall(lambda log=log: fold(log)),
            "all": until_asked(copy, run_id, steps),
        }
        copy.close()
        best = {name: min(best[name], seconds) for name, seconds in times.items()}
    bare_s = bare_step(steps) * steps / 1e6
    return [{"steps": steps, "events": len(log), **best, "bare": bare_s, "times bare": best["all"] / bare_s}]


def until_asked(journal: SqliteJournal, run_id: str, steps: int) -> float:
    """Seconds from the order to go on until the model is asked: all that a crash costs."""
    model: Any = Noting()
    one = Agent(model, [look_up], limits=Limits(steps=steps + 10, tool_calls=steps + 10), journal=journal)
    gc.collect()
    begin = time.perf_counter()
    one.resume_sync(run_id, limits=Limits(steps=steps + 10, tool_calls=steps + 10))
    return model.asked_at - begin


# --- showing --------------------------------------------------------------------------------------------


def verdicts(report: dict[str, Any]) -> dict[str, float]:
    """The figures that have a target."""
    speed = {row["way"]: row["steps a second"] for row in report["parallel"]}
    growth = [row["sqlite"] for row in report["growth"]]
    return {
        "200 runs with asyncio, steps a second": speed["asyncio, sqlite"],
        "cost of a step, last place over first": growth[-1] / growth[0],
        "to go on with a run of 10,000 steps, s": report["resume"][-1]["all"],
    }


def is_met(name: str, value: float) -> bool:
    """Whether a figure is within its target."""
    return value >= AT_LEAST[name] if name in AT_LEAST else value <= AT_MOST[name]


def cell(value: Any) -> str:
    """A figure of a table."""
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    for title in ("parallel", "growth", "resume"):
        table = Table(*report[title][0], title=title)
        for row in report[title]:
            table.add_row(*(cell(value) for value in row.values()))
        console.print(table)
    table = Table("figure", "measured", "target", "", title="against the targets")
    for name, value in report["verdicts"].items():
        target = f">= {AT_LEAST[name]:,}" if name in AT_LEAST else f"<= {AT_MOST[name]:,}"
        table.add_row(name, f"{value:,.2f}", target, "ok" if is_met(name, value) else "MISSED")
    console.print(table)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only up to 1,000 steps, and each thing once")
    default = Path(__file__).parent / "out" / "journal.json"
    parser.add_argument("--out", default=str(default), help="where the JSON goes")
    options = parser.parse_args()
    places, rounds = (PLACES[:-1], 1) if options.quick else (PLACES, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report: dict[str, Any] = {
            "python": platform.python_version(),
            "parallel": parallel_table(folder, 10 if options.quick else STEPS_EACH, rounds),
            "growth": growth_table(folder, places, rounds),
            "resume": resume_table(folder, places[-1], rounds),
        }
    report["verdicts"] = verdicts(report)
    show(report)
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
