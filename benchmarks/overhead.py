"""What tenlines costs over the bare ten-line loop, in the same process.

    python benchmarks/overhead.py [--quick] [--out FILE.json]

Every figure is CPU time of this process unless it says wall; the best of several rounds is taken, because on a
shared machine the slower ones measure the neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import platform
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from rich.console import Console
from rich.table import Table

from tenlines import Agent, Limits, Reply, Settings, ToolCall, Usage, tool
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.models.plain import ScriptedModel
from tenlines.trace.otel import Tracing

SIZES = (1, 10, 100, 1_000, 10_000)
TARGETS = {
    "memory journal, us a step over bare": 40,
    "sqlite journal, us a step over bare": 200,
    "exponent of time, 1,000 to 10,000 steps": 1.05,
    "1,000 parallel async calls of 50 ms, ms wall": 150,
    "100 parallel blocking calls of 50 ms, ms wall": 300,
    "peak memory over payload, 200 results of 100 kB": 1.5,
}


# --- the bare loop and what it is compared with ---------------------------------------------------------


def bare_loop(model: Callable[[list[Any]], dict[str, Any]], tools: dict[str, Callable[..., Any]], task: str) -> str:
    """The ten lines: no limit, no journal, no check of anything."""
    messages: list[Any] = [{"role": "user", "content": task}]
    while True:
        reply = model(messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return str(reply["content"])
        for call in reply["tool_calls"]:
            value = tools[call["name"]](**json.loads(call["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(value)})


@tool(read_only=True)
def look_up(number: int) -> str:
    """Look a number up."""
    return f"row {number}"


@tool(read_only=True)
async def look_up_async(number: int) -> str:
    """Look a number up."""
    return f"row {number}"


def bare_script(steps: int) -> Callable[[list[Any]], dict[str, Any]]:
    """A model for the bare loop: `steps - 1` calls, then an answer."""
    moves = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{n}", "name": "look_up", "arguments": json.dumps({"number": n})}],
        }
        for n in range(steps - 1)
    ]
    replies = iter([*moves, {"role": "assistant", "content": "done"}])
    return lambda messages: next(replies)


def script(steps: int, name: str = "look_up") -> ScriptedModel:
    """The same for tenlines, with token counts."""
    usage = Usage(1000, 20, 900)
    moves: list[Reply] = [
        Reply(calls=(ToolCall(f"c{n}", name, json.dumps({"number": n})),), stop="tool_calls", usage=usage)
        for n in range(steps - 1)
    ]
    return ScriptedModel([*moves, Reply("done", usage=usage)])


def agent(steps: int, journal: Any, name: str = "look_up", observers: Sequence[Any] = ()) -> Agent:
    """An agent with all checks on and every limit set but the clock."""
    limits = Limits(steps=steps, tool_calls=steps, tokens=10**9)
    return Agent(script(steps, name), [look_up, look_up_async], limits=limits, journal=journal, observers=observers)


class Thrown(SpanExporter):
    """Throws spans away: what is measured is how they are made and handed over."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Nothing."""
        return SpanExportResult.SUCCESS


def tracing(*, content: bool) -> Tracing:
    """Spans through the SDK and its batch processor."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Thrown()))
    return Tracing(tracer_provider=provider, content=content)


def run_async(one: Agent) -> Any:
    """A whole run with its own event loop."""
    return asyncio.run(one.run("go"))


# --- measuring ------------------------------------------------------------------------------------------


def cpu(prepare: Callable[[], Callable[[], Any]], rounds: int) -> float:
    """Best CPU seconds of what `prepare` returns; preparing is not measured."""
    best = math.inf
    for _ in range(rounds):
        work = prepare()
        gc.collect()
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def peak(prepare: Callable[[], Callable[[], Any]]) -> int:
    """Peak bytes that Python allocated while the work ran."""
    work = prepare()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def steps_table(sizes: tuple[int, ...], folder: Path) -> list[dict[str, Any]]:
    """CPU per step and peak memory, for every way and size."""
    count = iter(range(10**6))

    def sqlite() -> SqliteJournal:
        return SqliteJournal(folder / f"{next(count)}.db")

    ways: dict[str, Callable[[int], Callable[[], Any]]] = {
        "bare": lambda n: partial(bare_loop, bare_script(n), {"look_up": look_up}, "go"),
        "memory": lambda n: partial(agent(n, MemoryJournal()).run_sync, "go"),
        "sqlite": lambda n: partial(agent(n, sqlite()).run_sync, "go"),
        "asyncio": lambda n: partial(run_async, agent(n, MemoryJournal(), "look_up_async")),
    }
    rows = []
    for steps in sizes:
        rounds = 3 if steps >= 10_000 else 5 if steps >= 1_000 else 20
        row: dict[str, Any] = {"steps": steps}
        for way, make in ways.items():
            row[way] = cpu(partial(make, steps), rounds) / steps * 1e6
            if steps >= 100 and way != "asyncio":
                row[f"{way} bytes"] = peak(partial(make, steps)) / steps
        rows.append(row)
    return rows


def parallel_table(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Wall milliseconds for K calls of 50 ms in one reply, against the ideal 50."""

    @tool(read_only=True)
    async def nap(number: int) -> str:
        """Wait."""
        await asyncio.sleep(0.05)
        return str(number)

    @tool(read_only=True)
    def nap_blocking(number: int) -> str:
        """Wait in a thread."""
        time.sleep(0.05)
        return str(number)

    def once(name: str, calls: int) -> float:
        moves = tuple(ToolCall(f"c{n}", name, json.dumps({"number": n})) for n in range(calls))
        model = ScriptedModel([Reply(calls=moves, stop="tool_calls"), Reply("done")])
        one = Agent(model, [nap, nap_blocking], settings=Settings(max_parallel=calls), journal=MemoryJournal())

        async def timed() -> float:
            begin = time.perf_counter()
            await one.run("go")
            return time.perf_counter() - begin

        return asyncio.run(timed()) * 1e3

    def best(name: str, calls: int) -> float:
        return min(once(name, calls) for _ in range(3))

    return [{"calls": k, "async": best("nap", k), "blocking": best("nap_blocking", k)} for k in sizes]


def tracing_table(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """CPU per step without a tracing, with one where nobody takes spans, and with one whose spans are taken."""
    spans, content = tracing(content=False), tracing(content=True)
    ways: dict[str, tuple[Any, ...]] = {"off": (), "nobody": (Tracing(),), "spans": (spans,), "content": (content,)}

    def bare(steps: int) -> Callable[[], Any]:
        return partial(bare_loop, bare_script(steps), {"look_up": look_up}, "go")

    def traced(steps: int, observers: Sequence[Any]) -> Callable[[], Any]:
        return partial(agent(steps, MemoryJournal(), observers=observers).run_sync, "go")

    rows = []
    for steps in sizes:
        row: dict[str, Any] = {"steps": steps, "bare": cpu(partial(bare, steps), 5) / steps * 1e6}
        for way, observers in ways.items():
            row[way] = cpu(partial(traced, steps, observers), 5) / steps * 1e6
        rows.append(row)
    return rows


def payload_table() -> list[dict[str, Any]]:
    """Peak memory over the payload, for many results of 100 kB."""
    text = ("x" * 99 + "\n") * 1000

    @tool(read_only=True, max_result=10**6)
    def page(number: int) -> str:
        """A big page, another one each time."""
        return f"{number:9}\n" + text

    def work(results: int) -> Callable[[], Any]:
        one = Agent(script(results + 1, "page"), [page], limits=Limits(steps=None), journal=MemoryJournal())
        return lambda: one.run_sync("go")

    rows = []
    for results in (50, 200):
        payload = results * (len(text) + 10)
        rows.append({"results": results, "payload": payload, "ratio": peak(partial(work, results)) / payload})
    return rows


# --- showing --------------------------------------------------------------------------------------------


def verdicts(report: dict[str, Any]) -> dict[str, float]:
    """The figures that have a target."""
    big = [row for row in report["steps"] if row["steps"] >= 100]
    last, before = report["steps"][-1], report["steps"][-2]
    parallel = {row["calls"]: row for row in report["parallel"]}
    growth = math.log10(last["memory"] * last["steps"] / (before["memory"] * before["steps"]))
    return {
        "memory journal, us a step over bare": max(row["memory"] - row["bare"] for row in big),
        "sqlite journal, us a step over bare": max(row["sqlite"] - row["bare"] for row in big),
        "exponent of time, 1,000 to 10,000 steps": growth / math.log10(last["steps"] / before["steps"]),
        "1,000 parallel async calls of 50 ms, ms wall": parallel[max(parallel)]["async"],
        "100 parallel blocking calls of 50 ms, ms wall": parallel[100]["blocking"],
        "peak memory over payload, 200 results of 100 kB": report["payload"][-1]["ratio"],
    }


def cell(value: float | None) -> str:
    """A figure of a table."""
    return "" if value is None else f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    for title in ("steps", "tracing", "parallel", "payload"):
        rows = report[title]
        table = Table(title=title)
        columns = list(dict.fromkeys(key for row in rows for key in row))
        for column in columns:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*(cell(row.get(column)) for column in columns))
        console.print(table)
    table = Table(title="against the targets")
    for column in ("figure", "measured", "at most", ""):
        table.add_column(column)
    for name, value in report["verdicts"].items():
        table.add_row(name, f"{value:,.2f}", f"{TARGETS[name]:,}", "ok" if value <= TARGETS[name] else "MISSED")
    console.print(table)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only up to 1,000 steps")
    default = Path(__file__).parent / "out" / "overhead.json"
    parser.add_argument("--out", default=str(default), help="where the JSON goes")
    options = parser.parse_args()
    sizes = SIZES[:-1] if options.quick else SIZES
    with tempfile.TemporaryDirectory() as folder:
        report: dict[str, Any] = {
            "python": platform.python_version(),
            "steps": steps_table(sizes, Path(folder)),
            "tracing": tracing_table((100, 1_000)),
            "parallel": parallel_table((1, 10, 100, 1_000)),
            "payload": payload_table(),
        }
    report["verdicts"] = verdicts(report)
    show(report)
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
