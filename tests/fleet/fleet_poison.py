"""Two workers and a run that kills whoever works on it; each worker that dies is replaced.

python fleet_poison.py JOURNAL TEMPORAL EFFECTS
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any

from fleet_load import forked
from fleet_world import Outside, loader

from tenlines import Agent, Reply, ToolCall, tool
from tenlines.fleet import Fleet
from tenlines.fleet.pacing import LocalPace
from tenlines.fleet.places import LocalPlaces
from tenlines.fleet.temporal import Temporal
from tenlines.fleet.worker import Limits, Worker
from tenlines.journal import open_journal

TRIES = 3
OTHERS = 30
LONGEST_S = 60.0


@tool(read_only=True)
def die() -> str:
    """Takes the whole process with it."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def poison(messages: Any, request: Any) -> Any:
    """Calls it."""
    return Reply(calls=(ToolCall("c", "die", "{}"),))


def agents(journal: str, effects: str) -> list[Agent]:
    """One that is poison, and one that is not."""
    store = open_journal(journal)
    return [Agent(poison, [die], name="poison", journal=store), loader(Outside(effects), 0.05, store)]


async def serve(journal: str, temporal: str, effects: str) -> None:
    """A worker."""
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    both = agents(journal, effects)
    limits = Limits(LocalPace({}), LocalPlaces())
    await Worker(Fleet(both), both[0].journal, Temporal(temporal), limits).serve(leaving)


async def submit(journal: str, temporal: str, effects: str) -> None:
    """The poison first, then the others."""
    bad, good = agents(journal, effects)
    engine = Temporal(temporal, heartbeat_s=1.5, tries=TRIES)
    await bad.submit("go", engine)
    for number in range(OTHERS):
        await good.submit(f"task{number}", engine, key=str(number))


def main(*given: str) -> None:
    """Until the poison is set aside and the others are answered."""
    os.waitpid(forked(lambda: asyncio.run(submit(*given))), 0)
    workers = [forked(lambda: asyncio.run(serve(*given))) for _ in range(2)]
    died, until = 0, time.monotonic() + LONGEST_S
    watching = forked(lambda: watch(given[0]))
    while time.monotonic() < until and os.waitpid(watching, os.WNOHANG) == (0, 0):
        for place, pid in enumerate(workers):
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                died += 1
                workers[place] = forked(lambda: asyncio.run(serve(*given)))
        time.sleep(0.05)
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    print(json.dumps({"died": died}))


def watch(journal: str) -> None:
    """Until nothing is open."""
    store = open_journal(journal)
    while store.runs(1, status="open"):
        time.sleep(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
