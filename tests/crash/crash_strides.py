"""One process for each of the points at which whoever works on a task is killed, and another one that carries on."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from crash_forks import Child, Tell, ready_to_fork, say
from crash_world import warm_up

Live = Callable[[Path, str, str, int | None, Tell], None]
"""Carries a task on, from wherever it is: a folder, a driver, the task, where to die. Tells `wrong` and `places`."""


class Explorer(NamedTuple):
    """Who is killed, in what way, and where what is seen is kept."""

    live: Live
    folder: Path
    driver: str

    def explore(self, first: int, stride: int) -> dict[str, Any]:
        """Kill at the points, one after the other."""
        names = (f"{self.driver}{number}" for number in itertools.count())
        wrong: list[str] = []
        kills, places = 0, self._finished(next(names), wrong)
        for point in range(first, len(places), stride):
            task = next(names)
            signalled, said = Child(lambda tell, t=task, p=point: self._live(t, p, tell)).end()
            kills += signalled == signal.SIGKILL
            if not signalled:
                wrong += said[-1].get("wrong", [said[-1].get("error", "it said nothing")])
                continue
            self._finished(task, wrong)
        return {"kills": kills, "points": len(places), "wrong": wrong[:20]}

    def _live(self, task: str, die_at: int | None, tell: Tell) -> None:
        self.live(self.folder, self.driver, task, die_at, tell)

    def _finished(self, task: str, wrong: list[str]) -> list[str]:
        """Carry a task on to its end; the places that were passed."""
        signalled, said = Child(lambda tell: self._live(task, None, tell)).end()
        last = said[-1] if said else {}
        if signalled or "wrong" not in last:
            wrong.append(f"{task}: signal {signalled}, {last.get('error', last)}")
            return []
        wrong += [f"{task}: {one}" for one in last["wrong"]]
        return list(last["places"])


def main(live: Live) -> None:
    """What a program of such points does. Arguments: a folder, a driver, the first point, how many points there are
    from one to the next. Prints one JSON line."""
    warm_up()
    ready_to_fork()
    say(**Explorer(live, Path(sys.argv[1]), sys.argv[2]).explore(int(sys.argv[3]), int(sys.argv[4])))


def explored(program: Path, folder: Path, stride: int) -> list[dict[str, Any]]:
    """What a program found with each driver, both at once. Together they go through twice as many points as one."""
    working = []
    for first, driver in enumerate(("sync", "asyncio")):
        (folder / driver).mkdir()
        command = [sys.executable, "-W", "error", str(program), str(folder / driver), driver, str(first), str(stride)]
        working.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    return [json.loads(process.communicate()[0]) for process in working]
