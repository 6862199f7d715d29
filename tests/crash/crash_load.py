"""Many runs at once in one process, which is killed again and again; each time another takes up all that is open.

    python crash_load.py LOAD

A `Load` as JSON text; one JSON line is printed in the end. Before it, `{"restart": true}` asks whoever started this to
restart the store, and to say so with a line.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from typing import Any

import msgspec
from crash_checks import damage_of, problems_of
from crash_forks import Child, Tell, ready_to_fork, say
from crash_world import PLAIN, Case, Outside, act_on, carry_on, warm_up

from tenlines.core import events as ev
from tenlines.errors import JournalError, JournalFailure
from tenlines.ports import Journal, RunSummary

PAUSE_S = 0.02
"""The longest pause of the model and of tools that are awaited."""
MORE = 5
"""Runs that are begun when all others are through and not all kills were done."""
CASES: tuple[dict[str, Any], ...] = (
    {"replies": [["mail"], ["look", "peek", "put"], ["post"], ["send"], ["mail", "put"], ["peek"], ["book"], ["mail"]]},
    {"replies": [["book"], ["mail"], ["pay", "post"], ["put"], ["peek", "peek"], ["book"], ["send"]], "undo": True},
    {"replies": [["post", "post"], ["mail"], ["burn", "look"], ["book"], ["peek"], ["mail"], ["put"], ["pay"]]},
    {"replies": [["mail"], ["send"], ["mail", "mail"], ["book"], ["put"], ["peek"], ["mail"]], "settings": "ask"},
)
"""What the runs do, in turn."""


class Load(msgspec.Struct):
    """What is to be done, and how often the process that does it is killed."""

    store: str
    effects: str
    runs: int
    kills: int
    restarts: int = 0
    seed: int = 1

    def case(self, number: int, patience_s: float = 30.0) -> Case:
        """What a run does."""
        fields = dict(CASES[number % len(CASES)])
        if fields.pop("settings", None):
            fields["settings"] = {"on_in_doubt": "ask"}
        place = {"name": "load", "driver": "aio", "store": self.store, "effects": self.effects}
        return msgspec.convert({**fields, **place, "patience_s": patience_s}, Case)

    def task(self, number: int) -> str:
        """How it is called."""
        return f"task{number}"


# --- what is killed -------------------------------------------------------------------------------------


def work(load: Load, patience_s: float, tell: Tell) -> None:
    """Begin or take up everything that is not through, all at once."""
    act_on(Outside(load.effects), PAUSE_S)
    try:
        journal = load.case(0, patience_s).journal()
        known = {one.task: one for one in journal.runs()}
        numbers = [
            one for one in range(load.runs) if not _is_through(load.case(one), journal, known.get(load.task(one)))
        ]
    except JournalError as error:
        tell({"away": str(error)})
        return
    tell({"steps": sum(_left(load.case(one), known.get(load.task(one))) for one in numbers)})
    asyncio.run(_work_on(load, journal, numbers, known, tell))
    journal.close()


async def _work_on(load: Load, journal: Journal, numbers: list[int], known: dict[str, RunSummary], tell: Tell) -> None:
    def at(place: str) -> None:
        if place == "after model.acomplete":
            tell({"step": True})

    async def one(number: int) -> str:
        case, task = load.case(number), load.task(number)
        try:
            result = await carry_on(case, case.agent(journal, at), task, known.get(task))
        except (JournalError, JournalFailure) as error:
            return str(error)
        return "" if result.status == case.status else result.reason

    ends = await asyncio.gather(*map(one, numbers))
    tell({"through": ends.count(""), "stopped": [end for end in ends if end]})


def _is_through(case: Case, journal: Journal, run: RunSummary | None) -> bool:
    if run is None or run.status != case.status:
        return False
    return not case.undo or any(isinstance(event, ev.UndoRequested) for event in journal.read(run.run_id))


def _left(case: Case, run: RunSummary | None) -> int:
    """Steps that a run still has to make, or one where only its end is missing."""
    return max(1, len(case.replies) + 1 - (run.steps if run else 0))


# --- what kills it --------------------------------------------------------------------------------------


class Reaping:
    """Starts a process, kills it at a random moment, and so on until it was done often enough."""

    def __init__(self, load: Load) -> None:
        self._load, self._chance = load, random.Random(load.seed)
        self._restarts = sorted(self._chance.sample(range(load.kills), load.restarts))
        self.counts: Counter[str] = Counter()

    def reap(self) -> None:
        """All lives; the last one ends by itself."""
        while self.counts["kills"] < self._load.kills:
            self._one_life()
        for _ in range(3):  # the store may be away when it begins
            self._end(self._begin(30.0), must_end=True)

    def _begin(self, patience_s: float) -> Child:
        self.counts["processes"] += 1
        return Child(lambda tell: work(self._load, patience_s, tell))

    def _one_life(self) -> None:
        killed = self.counts["kills"]
        is_restarted = bool(self._restarts) and self._restarts[0] <= killed
        child = self._begin(self._chance.choice((0.2, 30.0)) if is_restarted else 30.0)
        share = 1.2 * self._chance.random() / (self._load.kills - killed)
        if not self._lives_for(child, share):
            self._end(child)
        elif is_restarted:
            self._restart(child)
        else:
            self._kill(child)

    def _kill(self, child: Child) -> None:
        time.sleep(self._chance.uniform(0.0, 0.01))
        child.kill()
        self._end(child)

    def _lives_for(self, child: Child, share: float) -> bool:
        """Let it make a share of the steps that are left; False if it ended first."""
        left = 0.0
        for line in child.lines():
            if line.get("steps") == 0:
                self._load.runs += MORE
                return False
            if "steps" in line:
                left = share * line["steps"]
            elif "step" not in line:
                self._take(line)
                return False
            left -= 1
            if left < 0:
                return True
        return False

    def _restart(self, child: Child) -> None:
        """The store goes away and comes back. Now and then the process dies meanwhile, and the next one finds the store
        away; else it is left alone until it has made another step."""
        self._restarts.pop(0)
        self.counts["restarts"] += 1
        say(restart=True)
        if self._chance.random() < 0.5:
            time.sleep(self._chance.uniform(0.0, 0.3))
            self._kill(child)
            self._one_life()
            assert sys.stdin.readline()
        else:
            assert sys.stdin.readline()
            if self._lives_for(child, 0.0):
                self._kill(child)
            else:
                self._end(child)

    def _end(self, child: Child, must_end: bool = False) -> None:
        signalled, said = child.end()
        for line in said:
            self._take(line)
        self.counts["kills"] += signalled == 9
        if signalled not in ((0,) if must_end else (0, 9)):
            raise AssertionError(f"a process ended by signal {signalled}")

    def _take(self, line: dict[str, Any]) -> None:
        if "error" in line:
            raise AssertionError(line["error"])
        self.counts["found the store away"] += "away" in line
        self.counts["runs stopped for the store"] += len(line.get("stopped", ()))


def verdict(load: Load, tell: Tell) -> None:
    """What is wrong in the end, and how much there was."""
    journal = load.case(0).journal()
    wrong = damage_of(load.case(0))
    if len(journal.runs()) != load.runs:
        wrong.append(f"{len(journal.runs())} runs were begun")
    counts: Counter[str] = Counter()
    for number in range(load.runs):
        wrong += [f"{load.task(number)}: {one}" for one in problems_of(load.case(number), journal, load.task(number))]
    for run in journal.runs():
        kinds = Counter(type(event).__name__ for event in journal.read(run.run_id))
        counts += Counter(runs=1, taken_up=kinds["RunResumed"], steps=kinds["ModelReplied"], events=kinds.total())
        counts["in doubt"] += kinds["CallAbandoned"]
    for (what, _), keys in Outside(load.effects).seen().items():
        counts["plain effects" if what in PLAIN else "other effects"] += len(keys)
    journal.close()
    tell({"wrong": wrong, "counts": counts})


if __name__ == "__main__":
    warm_up()
    ready_to_fork()
    wanted = msgspec.json.decode(sys.argv[1], type=Load)
    reaping = Reaping(wanted)
    reaping.reap()
    _, answers = Child(lambda tell: verdict(wanted, tell)).end()
    say(**{"wrong": [str(answers)], "counts": {}} | answers[0], lives=reaping.counts)
