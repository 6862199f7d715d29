"""The same job by an agent and by a workflow, on a real model: what each is sent.

    python benchmarks/workflow.py [--items 10] [--model local] [--out FILE.json]

A job of ten items: read a review, say whether its writer is happy, record that. The agent is told the job and has the
tools; the workflow has the way written down and asks the model one thing an item. Tokens are the server's own counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import reviews
from tenlines import Agent, Limits, RunResult
from tenlines.core.ledger import ledger_of

TRUTH = {number: "good" if number % 2 else "bad" for number in reviews.REVIEWS}
INSTRUCTIONS = (
    "You sort reviews of a tea pot. For each number in turn: read the review, then record the verdict, good if its "
    "writer is happy with the pot, else bad. When all are recorded, answer `done`."
)


def as_agent(model: Any, items: int) -> dict[str, Any]:
    """The agent, told the job."""
    agent = Agent(
        model,
        [reviews.read_review, reviews.record_verdict],
        instructions=INSTRUCTIONS,
        limits=Limits(steps=4 * items + 4),
        journal="memory",
    )
    begin = time.perf_counter()
    result = agent.run_sync(f"Sort the reviews 1 to {items}.", raise_on_stop=False)
    recorded = {
        one.arguments["number"]: one.arguments["verdict"]
        for one in result.calls
        if one.name == "record_verdict" and one.outcome == "ok" and one.arguments
    }
    ledger = ledger_of(agent.journal.read(result.run_id))
    largest = max((line.usage.input or 0 for line in ledger.steps if line.usage), default=0)
    return figures("agent", result, time.perf_counter() - begin, recorded, largest)


def as_workflow(model: Any, items: int) -> dict[str, Any]:
    """The workflow."""
    flow = reviews.workflow(model, journal="memory", parallel=1)
    begin = time.perf_counter()
    result = flow.run_sync(list(range(1, items + 1)))
    seconds = time.perf_counter() - begin
    recorded = {number: verdict.value for number, verdict in result.output.items()}
    ledgers = (ledger_of(flow.agent.journal.read(run)) for run in result.children.runs)
    largest = max(line.usage.input or 0 for one in ledgers for line in one.steps if line.usage)
    return figures("workflow", result, seconds, recorded, largest)


def figures(way: str, result: RunResult, seconds: float, recorded: dict[int, str], largest: int) -> dict[str, Any]:
    """What is compared."""
    return {
        "way": way,
        "status": result.status,
        "requests": result.steps if way == "agent" else result.children.steps,
        "input": result.usage.input,
        "cached": result.usage.cache_read,
        "output": result.usage.output,
        "largest request": largest,
        "seconds": seconds,
        "recorded": len(recorded),
        "right": sum(TRUTH[number] == verdict for number, verdict in recorded.items() if number in TRUTH),
    }


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10, choices=range(1, 11), metavar="1-10")
    parser.add_argument("--model", default="local")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = [as_workflow(given.model, given.items), as_agent(given.model, given.items)]
    table = Table("", *[row["way"] for row in rows], title=f"{given.items} items, {given.model}", title_justify="left")
    for name in list(rows[0])[1:]:
        table.add_row(name, *[f"{row[name]:,.0f}" if name != "status" else row[name] for row in rows])
    Console().print(table)
    if given.out is not None:
        given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
