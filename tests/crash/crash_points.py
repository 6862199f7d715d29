"""Kills an agent at every one of its port calls, one process for each, and lets others carry on.

Each line that it reads is a `Plan` as JSON text, for which it prints one JSON line.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from crash_checks import damage_of, problems_of, problems_of_intents
from crash_forks import Child, Reaper, Tell, ready_to_fork, say
from crash_world import Case, Outside, act_on, carry_on, run_of, warm_up

ENOUGH = 20
"""Things that are wrong, after which no more are sought."""


class Plan(msgspec.Struct):
    """A case, and what else is tried with it."""

    case: Case
    only: str = ""
    """The one place to kill at; "" for all of them."""
    since: str = ""
    """The place from which on it is killed; "" for the first one."""
    until: str = ""
    """The last place at which it is killed; "" for the very last one."""
    twice: str = ""
    """After a death at this place, whoever carries on is killed at every one of its points as well."""


class Tally(msgspec.Struct):
    """What came of a case."""

    points: int = 0
    kills: int = 0
    double_kills: int = 0
    missed: int = 0
    retries: int = 0
    in_doubt: int = 0
    wrong: list[str] = []
    places: dict[str, int] = {}


def live(case: Case, task: str, die_at: int | None, tell: Tell) -> None:
    """Carry a task on, from wherever it is; say what is wrong in the end."""
    act_on(Outside(case.effects))
    journal, reaper = case.journal(), Reaper(die_at, tell)
    known = run_of(journal, task)
    before = list(journal.read(known.run_id)) if known else []
    wrong = problems_of_intents(case, before, task)
    retries = -1
    status = "journal_error"
    while status == "journal_error" and retries < 3:
        # the server may still be writing what the one that was killed had sent
        retries += 1
        result = asyncio.run(carry_on(case, case.agent(journal, reaper), task, run_of(journal, task)))
        status = result.status
    doubts = sum(one.outcome == "in_doubt" for one in result.calls)
    places = list(reaper.places)
    wrong += problems_of(case, journal, task, before)
    tell({"wrong": wrong, "places": places, "retries": retries, "in_doubt": doubts})
    journal.close()


class Explorer:
    """Goes through the points of a case."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._case, self.tally = plan, plan.case, Tally()
        self._names = (f"{plan.case.name}-{number}" for number in itertools.count())

    def explore(self) -> Tally:
        """Kill at every point; then, after one of them, at every point of whoever carries on."""
        self._finish(next(self._names))  # a later run knows of earlier ones, and looks at them
        places = self._finish(next(self._names))
        self.tally.points = len(places)
        for point in self._points(places):
            if len(self.tally.wrong) < ENOUGH:
                self.tally.kills += self._live_on([point])
        if self._plan.twice:
            self._explore_again(places.index(self._plan.twice))
        _, said = Child(lambda tell: tell(damage_of(self._case))).end()
        self.tally.wrong += said[0] if isinstance(said[0], list) else [str(said)]
        return self.tally

    def _points(self, places: list[str]) -> Iterator[int]:
        """Where to kill."""
        plan = self._plan
        first = places.index(plan.since) if plan.since else 0
        last = len(places) - 1 - places[::-1].index(plan.until) if plan.until else len(places) - 1
        yield from (point for point in range(first, last + 1) if plan.only in ("", places[point]))

    def _explore_again(self, point: int) -> None:
        task = next(self._names)
        self._kill(task, point)
        for second in range(len(self._finish(task))):
            self.tally.double_kills += self._live_on([point, second])

    def _live_on(self, points: Sequence[int]) -> bool:
        """One task: a process for each of the points, which dies there, and one that finishes. Returns whether the last
        of them died."""
        task = next(self._names)
        has_died = [self._kill(task, point) for point in points][-1]
        self.tally.missed += not has_died
        self._finish(task)
        return has_died

    def _kill(self, task: str, point: int) -> bool:
        """A process that dies at a point; False if it ended before it came to it."""
        signalled, said = Child(lambda tell: live(self._case, task, point, tell)).end()
        died = [one["died"] for one in said if "died" in one]
        if signalled == signal.SIGKILL and died:
            self.tally.places |= {place: self.tally.places.get(place, 0) + 1 for place in died}
            return True
        self._take(task, signalled, said)
        return False

    def _finish(self, task: str) -> list[str]:
        """A process that carries a task on to its end. Returns the places that it passed."""
        return self._take(task, *Child(lambda tell: live(self._case, task, None, tell)).end())

    def _take(self, task: str, signalled: int, said: list[Any]) -> list[str]:
        last = said[-1] if said else {}
        if signalled or "wrong" not in last:
            self.tally.wrong.append(f"{task}: signal {signalled}, {last.get('error', last)}")
            return []
        self.tally.retries += last["retries"]
        self.tally.in_doubt += last["in_doubt"]
        self.tally.wrong += [f"{task}: {one}" for one in last["wrong"]]
        return list(last["places"])


if __name__ == "__main__":
    warm_up()
    ready_to_fork()
    for text in sys.stdin:
        say(**msgspec.to_builtins(Explorer(msgspec.json.decode(text, type=Plan)).explore()))
