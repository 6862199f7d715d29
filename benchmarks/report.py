"""What a report costs to make, and how quickly it opens in a real browser, by the steps of the run.

    python benchmarks/report.py [--quick] [--out FILE.json]

Runs are those of a shop's support agent as the tests tell them (`tests/report/shops.py`): one or two calls a step,
results of some hundred to some thousand characters. "read" folds the log into a view, with the usual secrets taken out;
"write" makes the page of it. In the browser (Chromium, headless, from disk): until something was painted, until all was
loaded, a search through everything that was said, a jump to the last call, and the elements of the document after it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "report")]

from shops import shop  # noqa: E402

from browser import browser  # noqa: E402  # a module of the tests
from tenlines.report import page, read_run  # noqa: E402
from tenlines.report.reading import Reading  # noqa: E402
from tenlines.trace.redaction import Redaction  # noqa: E402

STEPS = (1, 20, 200, 2_000, 10_000)
TIMES = """() => [performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    performance.getEntriesByType('navigation')[0].loadEventEnd]"""
SEARCH = """() => { const [box, began] = [document.getElementById('search'), performance.now()];
    box.value = 'leipzig hub'; box.dispatchEvent(new Event('input')); return performance.now() - began; }"""
JUMP = """(id) => { const began = performance.now(); window.tenlines.reveal(id); document.body.offsetHeight;
    return performance.now() - began; }"""


def made(steps: int, into: Path) -> dict[str, Any]:
    """Make a report; how long that takes, and how large it is."""
    log = shop(steps)
    began = time.perf_counter()
    view = read_run(log, Reading(Redaction()))
    read = time.perf_counter()
    into.write_bytes(page([view]).encode())
    written = time.perf_counter()
    return {"steps": steps, "events": len(log), "read": read - began, "write": written - read, "MB": size(into)}


def size(file: Path) -> float:
    """Of a file, in megabytes."""
    return file.stat().st_size / 1e6


def opened(chromium: Any, file: Path, steps: int) -> dict[str, Any]:
    """Open it in a tab of its own, as nobody has before."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.goto(file.as_uri())
    painted, loaded = tab.evaluate(TIMES)
    searched, jumped = tab.evaluate(SEARCH), tab.evaluate(JUMP, f"call-{max(1, steps - 1)}-1")
    elements = tab.evaluate("document.querySelectorAll('*').length")
    context.close()
    return {"painted": painted, "loaded": loaded, "searched": searched, "jumped": jumped, "elements": elements}


def table(rows: list[dict[str, Any]]) -> Table:
    """All figures."""
    shown = Table(title="Reports")
    columns = ("steps", "events", "read, s", "write, s", "MB", "painted, ms", "loaded, ms", "search, ms", "jump, ms")
    for name in (*columns, "elements"):
        shown.add_column(name, justify="right")
    for row in rows:
        made_in = (f"{row['steps']:,}", f"{row['events']:,}", f"{row['read']:.2f}", f"{row['write']:.2f}")
        times = (f"{row[name]:.0f}" for name in ("painted", "loaded", "searched", "jumped"))
        shown.add_row(*made_in, f"{row['MB']:.1f}", *times, f"{row['elements']:,}")
    return shown


def main() -> None:
    """Measure, print, write."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--quick", action="store_true", help="small runs only")
    reader.add_argument("--out", type=Path, metavar="FILE.json")
    given = reader.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        for steps in STEPS[:3] if given.quick else STEPS:
            file = Path(folder) / f"{steps}.html"
            rows.append(made(steps, file) | opened(chromium, file, steps))
    Console(width=120).print(table(rows))
    if given.out is not None:
        given.out.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
