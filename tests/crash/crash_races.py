"""Two processes that want the same at the same moment: a run that was cut off, or the next turn of a session.

    python crash_races.py owners|sessions RACES...

Each is a `Race` as JSON text, for which one JSON line is printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from crash_checks import damage_of, problems_of, problems_of_transcript
from crash_forks import Child, Reaper, Tell, ready_to_fork, say
from crash_world import Case, Outside, act_on, carry_on, run_of, warm_up

from tenlines import Session
from tenlines.core.transcript import User
from tenlines.errors import SessionBusy

PAUSE_S = 0.02
"""The longest pause of tools that are awaited, so that the two are under way together."""
SOONEST_S, LATEST_S = 0.002, 0.05
"""How late the second one comes: a file is faster than a server by an order of magnitude."""
FIRST = 5
"""The point at which the first commit is through: whoever dies there leaves a run behind."""


class Race(msgspec.Struct):
    """Who races, and how often."""

    case: Case
    rounds: int


class Gate:
    """A pipe at which children wait until all are let through at once."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()

    def wait(self) -> None:
        """In a child: until the gate opens."""
        os.read(self._out, 1)

    def open(self, children: int) -> None:
        """Let so many through."""
        os.write(self._in, b"x" * children)


# --- two owners -----------------------------------------------------------------------------------------


def begin(case: Case, task: str, die_at: int | None, tell: Tell) -> None:
    """Begin a run and die at a point."""
    act_on(Outside(case.effects))
    journal, reaper = case.journal(), Reaper(die_at, tell)
    asyncio.run(carry_on(case, case.agent(journal, reaper), task, None))
    journal.close()
    tell({"points": len(reaper.places)})


def take_up(case: Case, task: str, gate: Gate, late_s: float, tell: Tell) -> None:
    """Go on with a run when the gate opens, or a moment later, and say what came of it."""
    act_on(Outside(case.effects), PAUSE_S)
    journal, reaper = case.journal(), Reaper(None, tell)
    agent, run = case.agent(journal, reaper), run_of(journal, task)
    assert run is not None
    tell({"ready": True})
    gate.wait()
    time.sleep(late_s)
    if case.driver == "aio":
        result = asyncio.run(agent.resume(run.run_id, raise_on_stop=False))
    else:
        result = agent.resume_sync(run.run_id, raise_on_stop=False)
    has_acted = "before journal.append" in reaper.places
    tell({"status": result.status, "reason": result.reason, "has_acted": has_acted})
    journal.close()


class Owners:
    """Lets two processes take up the same run, again and again.

    In every other round one of them is a moment late, so that it comes while the other acts.
    """

    def __init__(self, race: Race) -> None:
        self._race, self._case, self._gate = race, race.case, Gate()
        self._chance = random.Random(race.case.name)
        self._wrong: list[str] = []
        self._counts: Counter[str] = Counter()

    def run(self) -> dict[str, Any]:
        """All rounds. Returns what was wrong, and how the losers ended."""
        case = self._case
        _, said = Child(lambda tell: begin(case, f"{case.name}-all", None, tell)).end()
        tasks = [f"{case.name}-{number}" for number in range(self._race.rounds)]
        for number, task in enumerate(tasks):
            self._leave_behind(task, self._chance.randrange(FIRST, said[-1]["points"] - 1))
            late_s = SOONEST_S * (LATEST_S / SOONEST_S) ** self._chance.random() if number % 2 else 0.0
            self._wrong += [f"{task}: {one}" for one in self._one_round(task, (0.0, late_s))]
        _, answers = Child(lambda tell: tell(self._checked(tasks))).end()
        self._wrong += answers[0]["wrong"] if "wrong" in answers[0] else [str(answers)]
        return {"wrong": self._wrong, "counts": self._counts + Counter(answers[0].get("counts"))}

    def _leave_behind(self, task: str, die_at: int) -> None:
        Child(lambda tell: begin(self._case, task, die_at, tell)).end()

    def _one_round(self, task: str, late_s: Sequence[float]) -> list[str]:
        both = [self._taking_up(task, one) for one in late_s]
        for child in both:
            child.hear()
        self._gate.open(2)
        ends = [child.end() for child in both]
        said: list[dict[str, Any]] = [lines[-1] if lines else {"signal": signal} for signal, lines in ends]
        winners = [one for one in said if one.get("status") == "answered" and one["has_acted"]]
        losers = [one for one in said if one not in winners]
        for one in losers:
            self._counts["had nothing to do" if one.get("status") == "answered" else "lost it"] += 1
        if len(winners) == 1 and all(map(_has_ended_cleanly, losers)):
            return []
        return [f"the two ended so: {said}"]

    def _taking_up(self, task: str, late_s: float) -> Child:
        return Child(lambda tell: take_up(self._case, task, self._gate, late_s, tell))

    def _checked(self, tasks: list[str]) -> dict[str, Any]:
        journal = self._case.journal()
        wrong, counts = damage_of(self._case), Counter[str]()
        for task in tasks:
            wrong += [f"{task}: {one}" for one in problems_of(self._case, journal, task)]
            run = run_of(journal, task)
            kinds = Counter(type(event).__name__ for event in journal.read(run.run_id)) if run else Counter()
            if kinds["RunEnded"] != 1:
                wrong.append(f"{task}: it has {kinds['RunEnded']} ends")
            counts["taken from one that had acted"] += kinds["RunResumed"] > 1
        journal.close()
        return {"wrong": wrong, "counts": counts}


def _has_ended_cleanly(said: dict[str, Any]) -> bool:
    if said.get("status") == "journal_error":
        return "another process has taken the run over" in said["reason"]
    return said.get("status") == "answered"


# --- two turns of a session -------------------------------------------------------------------------------


def claim(case: Case, task: str, gate: Gate, release: Gate, tell: Tell) -> None:
    """Take the next turn as soon as the gate opens; be in the middle of it until released."""
    act_on(Outside(case.effects))
    journal, is_begun = case.journal(), False

    def at(place: str) -> None:
        nonlocal is_begun
        if place.startswith("before model.") and not is_begun:
            is_begun = True
            tell({"began": True})
            release.wait()

    session = Session(case.agent(journal, at), "talk")
    tell({"ready": True})
    gate.wait()
    began = time.monotonic()
    try:
        result = asyncio.run(session.run(task)) if case.driver == "aio" else session.run_sync(task)
        tell({"status": result.status})
    except SessionBusy as busy:
        tell({"busy": str(busy), "after_s": time.monotonic() - began})
    journal.close()


class Turns:
    """Lets two processes begin the next turn of the same session, again and again."""

    def __init__(self, race: Race) -> None:
        self._race, self._case, self._gate, self._release = race, race.case, Gate(), Gate()

    def run(self) -> dict[str, Any]:
        """All rounds. Returns what was wrong, and the longest time until a process knew that it has to wait."""
        wrong: list[str] = []
        longest = 0.0
        counts: Counter[str] = Counter()
        for number in range(self._race.rounds):
            children = [self._child(f"{self._case.name}-{number}-{who}") for who in "ab"]
            for one in children:
                one.hear()
            self._gate.open(2)
            first = [one.hear() for one in children]
            # Only now, when both have said what they came to, may the one that has the turn go on.
            self._release.open(sum("began" in one for one in first))
            ends = [one.end() for one in children]
            busy = [one for one in first if "busy" in one]
            if [len(busy), sum("began" in one for one in first)] != [1, 1]:
                wrong.append(f"round {number}: {first}, then {ends}")
                continue
            longest = max(longest, busy[0]["after_s"])
            counts["lost the write" if "took the turn first" in busy[0]["busy"] else "saw the other"] += 1
            answered = [one for _, said in ends for one in said if one.get("status") == "answered"]
            wrong += [] if len(answered) == 1 else [f"round {number}: {ends}"]
        _, answers = Child(lambda tell: tell(self._checked())).end()
        wrong += answers[0] if isinstance(answers[0], list) else [str(answers)]
        return {"wrong": wrong, "longest_s": longest, "counts": counts}

    def _child(self, task: str) -> Child:
        return Child(lambda tell: claim(self._case, task, self._gate, self._release, tell))

    def _checked(self) -> list[str]:
        journal = self._case.journal()
        wrong, runs, rounds = damage_of(self._case), journal.runs(), self._race.rounds
        messages = Session(self._case.agent(journal), "talk").messages
        wrong += problems_of_transcript(messages)
        if sorted((run.session, run.turn) for run in runs) != [("talk", turn) for turn in range(1, rounds + 1)]:
            wrong.append(f"the journal holds {len(runs)} runs: {runs}")
        if [run.status for run in runs] != ["answered"] * rounds:
            wrong.append(f"the runs have ended as {Counter(run.status for run in runs)}")
        if sum(isinstance(one, User) for one in messages) != rounds:
            wrong.append("the transcript does not hold one task for each turn")
        journal.close()
        return wrong


if __name__ == "__main__":
    warm_up()
    ready_to_fork()
    racing: Callable[[Race], Any] = {"owners": Owners, "sessions": Turns}[sys.argv[1]]
    for text in sys.argv[2:]:
        say(**racing(msgspec.json.decode(text, type=Race)).run())
