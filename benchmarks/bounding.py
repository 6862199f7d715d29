"""What it costs to show a model a large result: time over a bare pass in the same process, and memory beside the value.

    python benchmarks/bounding.py [--quick] [--out FILE.json]

The bare pass is `json.dumps` for values and `text.encode()` for text: what sending the whole would take at least.
Times are CPU time of this process, the best of several rounds; peaks are what Python allocates while it works.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from tenlines.core.transcript import Text
from tenlines.ports import Rendered
from tenlines.tools.reading import ReadResult
from tenlines.tools.render import render

LIMIT = 32_000
"""Bytes of what is shown: the 8,000 tokens that a tool has unless it says otherwise."""
TARGETS = {
    "seconds, 40,000 rows": 1.0,
    "seconds, 100 MB of text, the slowest": 1.0,
    "peak beside 40,000 rows, over their JSON text": 2.5,
    "peak beside 100 MB of text, MB": 10.0,
    "seconds, a page or a search of 100 MB, the slowest": 1.0,
}


class Case(NamedTuple):
    """A result, and the pass that it is compared with."""

    name: str
    value: Any
    bare: Callable[[], Any]


# --- results --------------------------------------------------------------------------------------------


def rows(count: int, city: str) -> list[dict[str, Any]]:
    """Rows of a query, eight columns."""
    return [
        {"id": n, "name": f"customer {n}", "city": city, "amount": n * 1.25, "paid": n % 2 == 0, "note": None,
         "date": "2024-05-01", "email": f"c{n}@example.org"}
        for n in range(count)
    ]  # fmt: skip


def of_bytes(line: str, size: int) -> str:
    """A text of about so many bytes of UTF-8."""
    return line * (size // len(line.encode()))


def cases(count: int, size: int) -> list[Case]:
    """Everything that is measured."""
    tables = {"rows": rows(count, "Paris"), "rows, not ASCII": rows(count, "Łódź")}
    texts = {
        "log": of_bytes("2024-05-01 12:00:00 INFO a line of a log\n", size),
        "log, an error early": of_bytes("all is well\n", 9_000) + "ERROR: no\n" + of_bytes("all is well\n", size),
        "log with colours": of_bytes("\x1b[32mok\x1b[0m a line of a log\n", size),
        "text, not ASCII": of_bytes("une ligne numérotée\n", size),
        "text, Chinese": of_bytes("这是一行日志\n", size),
        "one line": of_bytes("x", size),
    }
    return [
        *(Case(name, value, partial(json.dumps, value, ensure_ascii=False)) for name, value in tables.items()),
        *(Case(name, text, text.encode) for name, text in texts.items()),
    ]


# --- measuring ------------------------------------------------------------------------------------------


def cpu(work: Callable[[], Any], rounds: int) -> float:
    """Best CPU seconds."""
    best = math.inf
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def peak(work: Callable[[], Any]) -> int:
    """Peak bytes that Python allocated while the work ran."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured(case: Case, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    rendered: Rendered = render(case.value, LIMIT)
    (part,) = rendered.parts
    if not isinstance(part, Text) or rendered.full is None or len(part.text.encode()) > LIMIT:
        raise SystemExit(f"{case.name}: not cut as it should be")
    seconds, bare = cpu(partial(render, case.value, LIMIT), rounds), cpu(case.bare, rounds)
    return {
        "result": case.name,
        "MB": len(rendered.full.encode()) / 1e6,
        "s": seconds,
        "times bare": seconds / bare,
        "peak MB": peak(partial(render, case.value, LIMIT)) / 1e6,
        "kept": "the same object" if rendered.full is case.value else "its own text",
    }


def reading_table(size: int, rounds: int) -> list[dict[str, Any]]:
    """Seconds and peak of the answers of `read_result`."""
    text = of_bytes("2024-05-01 12:00:00 INFO a line of a log\n", size) + "ERROR at the end"
    tool = ReadResult(lambda key: text)
    questions: dict[str, dict[str, Any]] = {
        "a page": {"offset": len(text) // 2},
        "the end": {"offset": -10_000},
        "a search": {"find": "ERROR"},
        "a search in any case": {"find": "error AT"},
        "a search that finds nothing": {"find": "panic"},
    }
    return [
        {"question": name, "s": cpu(work, rounds), "peak MB": peak(work) / 1e6}
        for name, more in questions.items()
        for work in [partial(tool, key="r:1:0", **more)]
    ]


# --- showing --------------------------------------------------------------------------------------------


def verdicts(report: dict[str, Any]) -> dict[str, float]:
    """The figures that have a target."""
    tables = [row for row in report["results"] if row["result"].startswith("rows")]
    texts = [row for row in report["results"] if row not in tables]
    as_it_is = [row for row in texts if row["kept"] == "the same object"]
    return {
        "seconds, 40,000 rows": max(row["s"] for row in tables),
        "seconds, 100 MB of text, the slowest": max(row["s"] for row in texts),
        "peak beside 40,000 rows, over their JSON text": tables[0]["peak MB"] / tables[0]["MB"],
        "peak beside 100 MB of text, MB": max(row["peak MB"] for row in as_it_is),
        "seconds, a page or a search of 100 MB, the slowest": max(row["s"] for row in report["reading"]),
    }


def cell(value: Any) -> str:
    """A figure of a table."""
    return value if isinstance(value, str) else f"{value:,.2f}"


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    for title in ("results", "reading"):
        table = Table(*report[title][0], title=title)
        for row in report[title]:
            table.add_row(*(cell(value) for value in row.values()))
        console.print(table)
    table = Table("figure", "measured", "at most", "", title="against the targets")
    for name, value in report["verdicts"].items():
        table.add_row(name, f"{value:,.2f}", f"{TARGETS[name]:,}", "ok" if value <= TARGETS[name] else "MISSED")
    console.print(table)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, once")
    default = Path(__file__).parent / "out" / "bounding.json"
    parser.add_argument("--out", default=str(default), help="where the JSON goes")
    options = parser.parse_args()
    count, size, rounds = (4_000, 10_000_000, 1) if options.quick else (40_000, 100_000_000, 3)
    report: dict[str, Any] = {
        "python": platform.python_version(),
        "results": [measured(case, rounds) for case in cases(count, size)],
        "reading": reading_table(size, rounds),
    }
    report["verdicts"] = verdicts(report)
    show(report)
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
