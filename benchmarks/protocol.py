"""What it costs to check and to repair a transcript of any length: time, and that memory does not grow with it.

    python benchmarks/protocol.py [--quick] [--out FILE.json]

Files with one message a line are made in a temporary folder, and each command runs in a process of its own; its peak
resident memory is what the system says of that process when it has ended. Megabytes a second are of CPU time, without
that of starting (a tiny file says how long that takes). Only some exchanges are broken, as in a
real log: each broken one is shown, and showing is what costs most.

One thing grows with the file: where an id must be new in the whole history (Anthropic, Responses), the ids are kept.
The rows for Anthropic show how much that is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SIZES = (10, 100)
"""Megabytes."""
TARGETS = {
    "growth of peak memory from the small file to the large one, MB, ids aside": 8.0,
    "slowest check, MB/s": 10.0,
    "slowest repair, MB/s": 5.0,
}
BROKEN = 100
"""Of so many exchanges, one has a call without a result."""
TEXT = "The parcel left the warehouse in Hamburg and is on its way to the customer. " * 8


# --- what is checked ------------------------------------------------------------------------------------


def chat(number: int) -> Iterator[dict[str, Any]]:
    """A question, three calls, an answer, in Chat Completions."""
    yield {"role": "user", "content": f"{number}: where is it? {TEXT}"}
    for call in range(3):
        call_id = f"call_{number}_{call}"
        function = {"name": "get_tracking", "arguments": json.dumps({"number": number})}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
        if number % BROKEN or call:
            yield {"role": "tool", "tool_call_id": call_id, "content": f"{number} {TEXT}"}
    yield {"role": "assistant", "content": f"{number}: {TEXT}"}


def anthropic(number: int) -> Iterator[dict[str, Any]]:
    """The same in Anthropic Messages."""
    yield {"role": "user", "content": [{"type": "text", "text": f"{number}: where is it? {TEXT}"}]}
    for call in range(3):
        call_id = f"toolu_{number}_{call}"
        use = {"type": "tool_use", "id": call_id, "name": "get_tracking", "input": {"number": number}}
        yield {"role": "assistant", "content": [use]}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": f"{number} {TEXT}"}
        if number % BROKEN or call:
            yield {"role": "user", "content": [result]}
        else:
            yield {"role": "user", "content": [{"type": "text", "text": "well?"}]}
    yield {"role": "assistant", "content": [{"type": "text", "text": f"{number}: {TEXT}"}]}


FORMS: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {"openai_chat": chat, "anthropic": anthropic}


def make(path: Path, form: str, megabytes: float) -> None:
    """A file of that size, one message a line."""
    size, number = 0, 0
    with path.open("w") as file:
        while size < megabytes * 1e6:
            number += 1
            for message in FORMS[form](number):
                size += file.write(json.dumps(message) + "\n")


# --- measuring ------------------------------------------------------------------------------------------


def measured(words: list[str]) -> dict[str, float]:
    """Seconds of the clock and of the CPU, and peak resident megabytes of a command."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "tenlines", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise RuntimeError(f"{words} ended with {child.returncode}")
    scale = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": time.perf_counter() - begin,
        "CPU seconds": usage.ru_utime + usage.ru_stime,
        "peak MB": usage.ru_maxrss * scale / 1e6,
    }


def table(sizes: tuple[float, ...], folder: Path) -> list[dict[str, Any]]:
    """One row for each command, form and size."""
    rows: list[dict[str, Any]] = []
    for form in FORMS:
        for megabytes in sizes:
            file, tiny = folder / f"{form}.jsonl", folder / "tiny.jsonl"
            make(file, form, megabytes)
            make(tiny, form, 0.001)
            for command in ("check", "repair"):
                row = {"command": command, "form": form, "MB": megabytes, **once(command, file, form)}
                starting = once(command, tiny, form)["CPU seconds"]
                row["MB/s"] = megabytes / max(row["CPU seconds"] - starting, 1e-3)
                rows.append(row)
            file.unlink()
    return rows


def once(command: str, file: Path, form: str) -> dict[str, float]:
    """One command with one file."""
    out = file.parent / "out.jsonl"
    out.unlink(missing_ok=True)
    return measured([command, str(file), "--from", form, "--quiet", *(["-o", str(out)] if command == "repair" else [])])


# --- showing --------------------------------------------------------------------------------------------


def growth(rows: list[dict[str, Any]], form: str) -> float:
    """By how many megabytes peak memory grows from the smallest file to the largest."""
    return max(
        mine[-1]["peak MB"] - mine[0]["peak MB"]
        for command in ("check", "repair")
        if (mine := [row for row in rows if (row["form"], row["command"]) == (form, command)])
    )


def verdicts(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The figures that have a target."""
    slowest = {
        command: min(row["MB/s"] for row in rows if row["command"] == command) for command in ("check", "repair")
    }
    figures = (growth(rows, "openai_chat"), slowest["check"], slowest["repair"])
    return dict(zip(TARGETS, figures, strict=True))


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    shown = Table(title="files with one message a line")
    for column in report["rows"][0]:
        shown.add_column(column, justify="left" if column in ("command", "form") else "right")
    for row in report["rows"]:
        shown.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(shown)
    console.print(f"ids of a whole history (anthropic): {report['ids']:,.1f} MB more from the first size to the last")
    shown = Table(title="against the targets")
    for column in ("figure", "measured", "target", ""):
        shown.add_column(column)
    for name, value in report["verdicts"].items():
        is_met = value >= TARGETS[name] if name.endswith("MB/s") else value <= TARGETS[name]
        shown.add_row(name, f"{value:,.2f}", f"{TARGETS[name]:g}", "ok" if is_met else "MISSED")
    console.print(shown)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="files of 1 and 4 MB")
    default = Path(__file__).parent / "out" / "protocol.json"
    parser.add_argument("--out", default=str(default), help="where the JSON goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = table((1, 4) if options.quick else SIZES, Path(folder))
    report = {
        "python": platform.python_version(),
        "rows": rows,
        "ids": growth(rows, "anthropic") - growth(rows, "openai_chat"),
        "verdicts": verdicts(rows),
    }
    show(report)
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
