"""The step cap: the steps by which 95 of 100 runs that can be answered are answered.

How a run ended says what is known of it:

- `answered`: it needed as many steps as it made;
- stopped from outside, by a limit, a person, a crash or a provider that was not there: it needed more than it made.
  Such a run is censored;
- ended by itself without an answer (`stuck`, `refused`, ...): more steps would have changed nothing, so it says nothing
  of how many an answer needs, and is left out;
- lost: it went on for twice the steps of the longest answer there ever was. Where there are several such runs, they
  would not have been answered with more steps either (Maller and Zhou, 1992), and are left out as well.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from tenlines.advise.facts import NOTHING, Run, Worth, of_step
from tenlines.advise.findings import Examples, Finding, percent, worth_words
from tenlines.advise.survival import Curve, curve
from tenlines.core.events import Status
from tenlines.trace.words import count

SHARE = 0.95
"""Of the runs that can be answered: how many the cap lets come to their answer."""
LEAST_ANSWERED = 72
"""Answered runs without which no cap is named. Of fewer, all may well be shorter than the true p95: they are so with
more than 1 chance in 40 (0.95**72 < 0.025; Wilks, 1941), so that no interval of 95 % could have an upper end."""
LEAST_AT_RISK = 3
"""Runs that have to get as far as the p95 itself: as many as 72 runs without any that is censored leave there."""
LEAST_CUT = 5
"""Runs that the cap stopped, or let go on for nothing, without which no change is advised."""
LEAST_SHARE = 0.02
"""Part of all tokens that a lower cap has to save."""
REACHED_BY = 2
"""Where the p95 is not known, the cap is to be so many times what it is."""
LOST = 2
"""A run that went on for so many times the steps of the longest answer, and had none, would never have had one."""

Ending: TypeAlias = Literal["answered", "censored", "left_out"]
_BY_ITSELF = frozenset({"stuck", "refused", "empty_reply", "truncated_reply", "context_overflow"})


def ending(status: Status | None) -> Ending:
    """What the end of a run says of the steps that it needed. None is a run that is open, or crashed."""
    if status == "answered":
        return "answered"
    return "left_out" if status in _BY_ITSELF else "censored"


class CapLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is known of the steps of a group."""

    cap: int | None
    """The cap of its newest run; None for none."""
    p95: int | None
    """Steps by which 95 of 100 runs are answered; None where that is not known."""
    low: int | None
    high: int | None
    """The interval of 95 % of it; None for an end that is not known."""
    naive: int | None
    """The p95 of the answered runs alone: too small where runs were stopped."""
    more_than: int | None
    """Where the p95 is not known because too many runs were stopped before it: what it exceeds."""
    answered: int
    censored: int
    left_out: int
    """Runs that ended by themselves without an answer."""
    lost: int
    """Runs that went on for twice the steps of the longest answer; left out too."""
    forks: int
    """Forks begin in the middle, so they are left out too."""
    at_cap: int
    """Runs that ended as `max_steps`."""
    waiting: str
    """Why there is nothing to say yet, or ""."""


class Move(NamedTuple):
    """A change of the cap, and what it is worth."""

    do: str
    saves: str
    worth: Worth


class Caps:
    """Takes runs of a group, the oldest first."""

    def __init__(self) -> None:
        self._answered, self._stopped = Counter[int](), Counter[int]()
        self._at_cap, self._unanswered = Counter[int](), dict[int, Worth]()
        """Steps -> runs that the cap stopped there; what the runs without an answer spent on each step."""
        self._spent_at_cap = dict[int, Worth]()
        """Steps -> what the runs used that the cap stopped there."""
        self._left_out = self._forks = 0
        self._cap: int | None = None
        self._all = NOTHING
        self._examples, self._long = Examples(), Examples()

    def take(self, run: Run) -> None:
        """Count a run."""
        self._cap = run.limits.steps
        self._all = self._all.plus(run.spent)
        if run.start.origin:
            self._forks += 1
            return
        steps, said = run.steps, ending(run.ledger.status)
        if said == "answered":
            self._answered[steps] += 1
            return
        if said == "left_out":
            self._left_out += 1
        elif steps:
            cap = run.limits.steps
            steps = steps if cap is None else min(steps, cap)  # last words come after the cap
            self._stopped[steps] += 1
        self._note_unanswered(run, steps)

    def _note_unanswered(self, run: Run, steps: int) -> None:
        if run.ledger.status == "max_steps" and steps:
            self._at_cap[steps] += 1
            self._spent_at_cap[steps] = self._spent_at_cap.get(steps, NOTHING).plus(run.spent)
            self._examples.add(run.run_id)
        for line in run.ledger.steps:
            if line.latency_s is not None:
                self._unanswered[line.step] = self._unanswered.get(line.step, NOTHING).plus(of_step(line))

    # --- the view -------------------------------------------------------------------------------------

    def line(self) -> CapLine:
        """What is known."""
        found = self._curve()
        p95, (low, high) = found.steps_for(SHARE), found.interval_for(SHARE)
        answered = self._answered.total()
        waiting = self._waiting(found, p95)
        is_past = not waiting and p95 is None
        return CapLine(
            cap=self._cap,
            p95=None if waiting else p95,
            low=None if waiting else low,
            high=None if waiting else high,
            naive=curve(self._answered, {}).steps_for(SHARE) if answered >= LEAST_ANSWERED else None,
            more_than=found.last if is_past else None,
            answered=answered,
            censored=self._stopped.total() - self._lost(),
            lost=self._lost(),
            left_out=self._left_out,
            forks=self._forks,
            at_cap=self._at_cap.total(),
            waiting=waiting,
        )

    def _curve(self) -> Curve:
        """The estimate, without the runs that are lost."""
        if not self._lost():
            return curve(self._answered, self._stopped)
        most = LOST * max(self._answered)
        return curve(self._answered, {steps: runs for steps, runs in self._stopped.items() if steps < most})

    def _lost(self) -> int:
        if self._answered.total() < LEAST_ANSWERED:
            return 0
        most = LOST * max(self._answered)
        lost = sum(runs for steps, runs in self._stopped.items() if steps >= most)
        return lost if lost >= LEAST_CUT else 0

    def _waiting(self, found: Curve, p95: int | None) -> str:
        answered = self._answered.total()
        if answered < LEAST_ANSWERED:
            return f"{count(answered, 'answered run')}, {LEAST_ANSWERED} are needed"
        if p95 is not None and (left := found.at_risk(p95)) < LEAST_AT_RISK:
            return f"{count(left, 'run')} got as far as the p95 (step {p95}), {LEAST_AT_RISK} are needed"
        return ""

    def findings(self, group: str) -> list[Finding]:
        """Whether the cap is to be another one."""
        line = self.line()
        if line.waiting or line.cap is None:
            return []
        if line.p95 is None:
            found = self._look_again(group, line, line.cap)
        elif line.low is not None and line.cap < line.low:
            found = self._raise(group, line, line.cap, line.p95)
        else:
            found = self._lower(group, line, line.cap, line.p95)
        return [] if found is None else [found]

    def _raise(self, group: str, line: CapLine, cap: int, to: int) -> Finding | None:
        """The cap stops runs that would be answered, and how many is known from longer ones."""
        found, rescued, kept = self._curve(), 0.0, NOTHING
        for steps, runs in self._stopped_by(cap).items():
            after = found.unanswered_after(steps)
            share = max(0.0, 1 - found.unanswered_after(to) / after) if after > 0 else 0.0
            rescued += share * runs
            kept = kept.plus(self._spent_at_cap[steps].times(share))
        do = f"raise the cap to {to}: by then {SHARE:.0%} of the runs that can be answered are"
        saves = f"about {rescued:.0f} of them would have been answered; in vain was {worth_words(kept)}"
        return self._raised(group, line, cap, Move(do, saves, kept))

    def _look_again(self, group: str, line: CapLine, cap: int) -> Finding | None:
        """The cap stops so many that it is not known how many steps they need."""
        kept = NOTHING
        for steps in self._stopped_by(cap):
            kept = kept.plus(self._spent_at_cap[steps])
        to = REACHED_BY * cap
        do = f"raise the cap to {to} and look again: the p95 is more than {line.more_than}, and not known"
        saves = f"the runs at the cap used {worth_words(kept)} without an answer"
        return self._raised(group, line, cap, Move(do, saves, kept))

    def _stopped_by(self, cap: int) -> dict[int, int]:
        """Steps -> runs that ended at a cap no lower than this: what a lower one stopped, this one might not have."""
        return {steps: runs for steps, runs in self._at_cap.items() if steps >= cap}

    def _raised(self, group: str, line: CapLine, cap: int, move: Move) -> Finding | None:
        stopped = sum(self._stopped_by(cap).values())
        if stopped < LEAST_CUT:
            return None
        seen = f"{count(stopped, 'run')} of {_all(line):,} ended at the cap ({cap} steps); {_rests_on(line)}"
        return self._finding(group, line, seen, move)

    def _finding(self, group: str, line: CapLine, seen: str, move: Move) -> Finding:
        return Finding(
            kind="cap",
            group=group,
            subject="",
            seen=seen,
            do=move.do,
            saves=move.saves,
            tokens=move.worth.tokens,
            dollars=move.worth.dollars,
            sure=_interval(line),
            runs=tuple(self._examples.runs),
        )

    def _lower(self, group: str, line: CapLine, cap: int, to: int) -> Finding | None:
        """Runs go on for nothing past the steps by which nearly all are answered."""
        late = sum(runs for steps, runs in self._at_cap.items() if steps > to)
        if line.high is None or cap <= line.high or late < LEAST_CUT:
            return None
        saved = NOTHING
        for step, worth in self._unanswered.items():
            saved = saved.plus(worth) if step > to else saved
        if saved.tokens < LEAST_SHARE * self._all.tokens:
            return None
        lost = sum(runs for steps, runs in self._answered.items() if steps > to)
        seen = f"{percent(line.answered - lost, line.answered)} of the answers come by step {to}, and the cap is {cap}"
        seen += f": {count(late, 'run')} went on past {to} and ended at it; {_rests_on(line)}"
        do = f"lower the cap to {to}"
        if line.lost:
            do += (
                f"; look at one of these runs first: if it was still getting on, raise it to {REACHED_BY * cap} instead"
            )
        later = "1 run that was" if lost == 1 else f"{lost:,} runs that were"
        saves = f"{worth_words(saved)}; {later} answered later would have had to be resumed"
        return self._finding(group, line, seen, Move(do, saves, saved))


def _all(line: CapLine) -> int:
    return line.answered + line.censored + line.left_out + line.lost


def _rests_on(line: CapLine) -> str:
    lost = f", {line.lost:,} lost" if line.lost else ""
    return f"{line.answered:,} answered, {line.censored:,} censored{lost}"


def _interval(line: CapLine) -> str:
    if line.p95 is None:
        return f"the p95 is not known: too many runs were stopped at or before step {line.more_than}"
    low = "?" if line.low is None else line.low
    return f"the p95 is {line.p95}, with an interval of 95% from {low} to {'?' if line.high is None else line.high}"
