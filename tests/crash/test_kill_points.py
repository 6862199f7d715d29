"""Processes that are killed before and after everything that they ask of the outside, and others that carry on."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash_points import Plan, Tally
from crash_world import ASKED_IN_DOUBT, CUT, DROPPED, PRICED, UNDONE_ON_STOP, Case
from postgres_server import PostgresServer

PROGRAM = Path(__file__).with_name("crash_points.py")

SERIAL = (("put", "send"), ("book", "look"))
PARALLEL = (("look", "peek", "put", "peek"),)
GUARDED = (("look", "pay", "burn", "post"),)
UNDONE = (("book", "send"), ("pay",))
STOPPED = (("book", "put"), ("book",))
DOUBTFUL = (("mail",), ("send", "book"))

CUT_TWICE = (("scan",), ("note",), ("note",), ("note",), ("note",))
"""The long result is left out before the third step, the rest is summarised later."""
CUT_ONCE = (("scan",), ("note",), ("send",))
HIRED = (("hire",), ("staff",))
FAMILY = (("scout", "lead"), ("crew",))

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "undone-aio-postgres": ({"replies": UNDONE, "undo": True}, "after pay.undo"),
    "guarded-sync-postgres": ({"replies": GUARDED}, ""),
    "serial-sync-postgres": ({"replies": SERIAL}, ""),
    "parallel-aio-postgres": ({"replies": PARALLEL}, ""),
    "serial-sync-sqlite": ({"replies": SERIAL}, "after book.call"),
    "serial-aio-sqlite": ({"replies": SERIAL}, "before put.call"),
    "guarded-aio-sqlite": ({"replies": GUARDED}, "after pay.call"),
    "doubtful-sync-sqlite": ({"replies": DOUBTFUL, "settings": ASKED_IN_DOUBT}, "after mail.call"),
    "stopped-aio-sqlite": ({"replies": STOPPED, "settings": UNDONE_ON_STOP}, ""),
    "parallel-sync-sqlite": ({"replies": PARALLEL}, ""),
    "parallel-aio-sqlite": ({"replies": PARALLEL}, ""),
    "cut-sync-sqlite": ({"replies": CUT_TWICE, "settings": CUT}, ""),
    "cut-aio-postgres": ({"replies": CUT_TWICE, "settings": CUT}, ""),
    "dropped-aio-sqlite": ({"replies": CUT_ONCE, "settings": DROPPED}, ""),
    "hired-sync-postgres": ({"replies": HIRED, "settings": PRICED}, ""),
    "hired-aio-sqlite": ({"replies": HIRED, "settings": PRICED}, "after hire.call"),
    "family-sync-sqlite": ({"replies": FAMILY, "settings": PRICED, "family": True}, ""),
    "family-aio-postgres": ({"replies": FAMILY, "settings": PRICED, "family": True}, ""),
}
"""What differs, and the place after which those who carry on are killed at every point too."""
STRETCHES = {
    "cut": ("before note.call", ""),
    "dropped": ("before note.call", ""),
    "hired": ("before hire.call", "after staff.call"),
    "family": ("before scout.acomplete", "after crew.acomplete"),
}
"""Where the killing begins and ends in cases that differ from others only there."""
FLAWS: dict[str, tuple[dict[str, Any], str, str]] = {
    "commits late": ({"replies": (("send",),)}, "after send.call", "it was done 2 times"),
    "promises too much": ({"replies": (("send",),)}, "after send.call", "it was done 2 times"),
    "never knows": ({"replies": (("book",),)}, "after book.call", "it was done 2 times"),
    "undoes nothing": ({"replies": (("book",),), "undo": True}, "after book.undo", "taken back with set()"),
    "cuts nothing": ({"replies": CUT_ONCE, "settings": DROPPED}, "after send.check", "that its intent does not say"),
    "spends in secret": ({"replies": (("hire",),), "settings": PRICED}, "after hire.render", "it was charged with"),
    "does nothing": ({"replies": (("put",),)}, "after put.call", "its result claims that it was done, and it was not"),
}
"""What is wrong, where to kill, and what must be seen."""
ASKED = [f"{what}.{how}" for what in ("model", "summary", "child") for how in ("complete", "acomplete")]
"""Requests of every kind, with both drivers."""
Tallies = dict[str, Tally]


def explored(plans: Sequence[Plan]) -> Tallies:
    """What came of each case: two processes explore, so that two cores have something to do."""
    waiting = deque(plans)
    found: Tallies = {}

    def explore() -> None:
        command = [sys.executable, "-W", "error", str(PROGRAM)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while waiting:
                plan = waiting.popleft()
                process.stdin.write(msgspec.json.encode(plan) + b"\n")
                process.stdin.flush()
                found[plan.case.name] = msgspec.json.decode(process.stdout.readline(), type=Tally)

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(explore) for _ in range(2)]:
            one.result()
    return found


@pytest.fixture(scope="module")
def tallies(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Tallies:
    """All cases, explored once."""
    folder = tmp_path_factory.mktemp("crashes")
    plans = []
    for name, (fields, twice) in CASES.items():
        kind, driver, store = name.split("-")
        since, until = STRETCHES.get(kind, ("", ""))
        address = postgres_server.new_database() if store == "postgres" else str(folder / f"{name}.db")
        case = Case(name=name, driver=driver, store=address, effects=str(folder / f"{name}.effects"), **fields)
        plans.append(Plan(case, since=since, until=until, twice=twice))
    return explored(plans)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_run_that_was_killed_at_any_port_call_comes_to_its_right_end(name: str, tallies: Tallies) -> None:
    tally = tallies[name]
    assert tally.wrong == []
    assert tally.kills >= (40 if name.startswith("dropped") else 60)
    # How often parallel calls are waited for differs from run to run, and with it the number of commits.
    assert tally.missed <= 8 * ("parallel" in name) + 20 * name.startswith("family")
    assert tally.retries == 0


@pytest.mark.slow
def test_more_than_five_hundred_points_were_tried_at_every_port(tallies: Tallies, say: Callable[[str], None]) -> None:
    kills = sum(one.kills for one in tallies.values())
    doubles = sum(one.double_kills for one in tallies.values())
    doubts = sum(one.in_doubt for one in tallies.values())
    line = f"kill points: {kills:,} in {len(tallies)} cases, and {doubles:,} of processes that carried on; "
    say(f"{line}{doubts:,} calls reported in doubt, 0 effects lost or doubled")
    assert kills >= 500
    assert doubles >= 100
    places = set().union(*(tally.places for tally in tallies.values()))
    assert {f"{when} {what}" for when in ("before", "after") for what in ASKED} <= places
    ports = {place.split(".")[-1] for place in places}
    assert ports == {
        *("complete", "acomplete", "append", "commit", "acommit", "read"),
        *("check", "call", "render", "permit", "reconcile", "undo"),
    }
    assert {place.replace("before", "after") for place in places} == {one for one in places if "after" in one}


@pytest.mark.slow
def test_the_checks_see_what_they_are_there_to_see(tmp_path: Path) -> None:
    plans = []
    for flaw, (fields, place, _) in FLAWS.items():
        path = str(tmp_path / flaw.replace(" ", "-"))
        case = Case(Path(path).name, driver="sync", store=f"{path}.db", effects=path, flaw=flaw, **fields)
        plans.append(Plan(case, only=place))
    seen = explored(plans)
    for plan in plans:
        assert any(FLAWS[plan.case.flaw][2] in one for one in seen[plan.case.name].wrong), plan.case.flaw
