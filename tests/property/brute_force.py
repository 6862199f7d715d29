"""Random runs whose cost is added up request by request, and the best single cut of each, found by trying them all.

Nothing here uses the formulas of the planner: a plan is charged for what its requests hold and share.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from tenlines.core.economics import LOOK_AGAIN, Cut, Rates, Situation, decide

NOTE = 30
"""Tokens of the note that stands for dropped exchanges."""

Growth: TypeAlias = Literal["even", "noisy", "heavy", "rising", "falling", "bursts"]
Strategy: TypeAlias = Literal["elide", "drop", "summarise"]

STRATEGIES: tuple[tuple[Strategy, ...], ...] = (
    ("elide",),
    ("drop",),
    ("summarise",),
    ("elide", "summarise"),
    ("elide", "drop", "summarise"),
)


class Run(NamedTuple):
    """A run of `len(adds)` steps."""

    rates: Rates
    head: int
    """Tokens of the first request."""
    adds: list[float]
    """What each step adds: an exchange."""
    results: list[float]
    """Of these: what goes when its results are elided."""
    keep: int
    """The newest exchanges, which no cut touches."""
    strategies: tuple[Strategy, ...]
    asked: int
    written: int


class Choice(NamedTuple):
    """A cut of a transcript: all exchanges before number `until`, those left out already apart."""

    strategy: Strategy
    until: int
    cut: Cut


Chooser: TypeAlias = Callable[[int, "Held"], Choice | None]
"""From the number of steps done and the transcript to the cut before the next request."""

# --- random runs ----------------------------------------------------------------------------------------


def random_run(seed: int, growth: Growth) -> Run:
    """A run with its prices, its steps and what each of them adds."""
    dice = random.Random(f"{growth} {seed}")
    dollars = 1e-6 * dice.choice([0.1, 1, 3, 15])
    rates = Rates(dollars * dice.uniform(0.02, 1), dollars * dice.uniform(1, 2), dollars * dice.uniform(1, 8))
    steps = int(2 * 100.5 ** dice.random())
    mean = 0.0 if dice.random() < 0.05 else dice.uniform(0, 5000)
    removable = dice.choice([0, 1, dice.random(), dice.uniform(0.8, 1)])
    adds = added(dice, growth, mean, steps)
    parts = [removable] * steps
    if growth != "even":
        parts = [min(1.0, max(0.0, removable + dice.uniform(-0.2, 0.2))) for _ in adds]
    return Run(
        rates,
        int(dice.choice([100, 1_000, 3_000, 10_000, 50_000]) * dice.uniform(0.5, 1.5)),
        adds,
        [size * part for size, part in zip(adds, parts, strict=True)],
        dice.choice([1, 2, 3]),
        dice.choice(STRATEGIES),
        dice.randint(50, 300),
        dice.choice([100, 500, 1_000, 2_000]),
    )


def added(dice: random.Random, growth: Growth, mean: float, steps: int) -> list[float]:
    """What each step adds."""
    turn, is_early = dice.randrange(steps), dice.random() < 0.5
    match growth:
        case "even":
            return [mean] * steps
        case "noisy":
            return [mean * dice.uniform(0, 2) for _ in range(steps)]
        case "heavy":  # now and then a result that is as large as all others together
            return [min(40 * mean, 0.3 * mean * dice.paretovariate(1.3)) for _ in range(steps)]
        case "rising":
            return [2 * mean * step / steps for step in range(steps)]
        case "falling":
            return [2 * mean * (steps - step) / steps for step in range(steps)]
        case "bursts":  # much until some step, and next to nothing from there on; or the other way round
            return [mean * (2 if (step < turn) is is_early else 0.05) for step in range(steps)]


# --- what a plan costs ----------------------------------------------------------------------------------


class Held:
    """The transcript of a run: its head, what stands for exchanges that went, and the exchanges."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tokens = self.new = float(run.head)
        self.count = 0
        self._stands = 0.0  # a note or a summary
        self._elided = 0.0  # what is left of elided exchanges behind it
        self._first = 0  # the first exchange that is whole
        self._adds, self._results = sums(run.adds), sums(run.results)

    def add(self) -> None:
        """A step is done."""
        self.new = self.run.adds[self.count]
        self.tokens += self.new
        self.count += 1

    @property
    def added(self) -> float:
        """What all steps together have added."""
        return self._adds[self.count]

    def choice(self, strategy: Strategy, until: int) -> Choice | None:
        """A cut of this kind, where it takes anything away."""
        first, run = self._first, self.run
        results = self._results[until] - self._results[first]
        adds = self._adds[until] - self._adds[first]
        if until <= first or adds <= 0:
            return None
        if strategy == "elide":
            cut = Cut(run.head + self._stands + self._elided, self.tokens - results, results / adds)
            return Choice(strategy, until, cut) if results > 0 else None
        stands = NOTE if strategy == "drop" else run.written
        left = self.tokens - adds - self._elided - self._stands + stands
        asked, written = (0, 0) if strategy == "drop" else (run.asked, run.written)
        return Choice(strategy, until, Cut(run.head, left, 1.0, asked, written))

    def choices(self) -> list[Choice]:
        """The largest cut of each kind."""
        found = [self.choice(strategy, self.count - self.run.keep) for strategy in self.run.strategies]
        return [one for one in found if one is not None]

    def make(self, choice: Choice) -> None:
        """The transcript is another one."""
        if choice.strategy == "elide":
            self._elided += self._adds[choice.until] - self._adds[self._first]
            self._elided -= self._results[choice.until] - self._results[self._first]
        else:
            self._elided, self._stands = 0.0, NOTE if choice.strategy == "drop" else self.run.written
        self._first = choice.until
        self.tokens = self.run.head + self._stands + self._elided + self._adds[self.count] - self._adds[self._first]


def sums(numbers: Sequence[float]) -> list[float]:
    """Running totals, from 0."""
    total = [0.0]
    for number in numbers:
        total.append(total[-1] + number)
    return total


def cost(run: Run, choose: Chooser) -> tuple[float, int]:
    """What a run costs, request by request, and how often it was cut."""
    read, write, output = run.rates
    held, spent, cuts = Held(run), 0.0, 0
    for step in range(len(run.adds)):
        if step:
            held.add()
        choice = choose(step, held)
        cached = held.tokens - held.new
        if choice is not None:
            if choice.strategy == "summarise":
                spent += read * cached + write * (held.new + run.asked) + output * run.written
            held.make(choice)
            cached, cuts = choice.cut.prefix, cuts + 1
        spent += read * cached + write * (held.tokens - cached)
    return spent, cuts


def alone(step: int, held: Held) -> None:
    """Nothing is ever cut."""


def once(at: int, strategy: Strategy, until: int) -> Chooser:
    """One cut, before the request that follows step `at`."""
    return lambda step, held: held.choice(strategy, until) if step == at else None


Asked: TypeAlias = Literal["on growth", "on growth or steps", "at every step"]
"""When the planner is asked: when the next request has grown by the factor `LOOK_AGAIN` since the last decision; or
when the number of steps has; or always."""


class Planner:
    """Cuts when the planner says so. It knows how many steps are left, and of growth what it has seen so far."""

    def __init__(self, run: Run, least_gain: float, asked: Asked) -> None:
        self._run, self._least_gain, self._asked = run, least_gain, asked
        self._look_at = self._look_at_step = 0.0
        self.looks = 0

    def __call__(self, step: int, held: Held) -> Choice | None:
        is_late = self._asked == "on growth or steps" and step >= self._look_at_step
        if held.tokens < self._look_at and not is_late and self._asked != "at every step":
            return None
        self.looks += 1
        choices, run = held.choices(), self._run
        growth = held.added / step if step else 0.0
        situation = Situation(held.tokens, held.new, growth, len(run.adds) - step, run.rates)
        decision = decide(situation, [choice.cut for choice in choices], self._least_gain)
        choice = None if decision.index < 0 else choices[decision.index]
        self._look_at = LOOK_AGAIN * (held.tokens if choice is None else choice.cut.tokens)
        self._look_at_step = LOOK_AGAIN * step
        return choice


# --- every single cut -----------------------------------------------------------------------------------


def singles(run: Run) -> list[tuple[int, Strategy, int]]:
    """Every way to cut a run once: before which step, how, and how many of the exchanges."""
    steps = range(run.keep + 1, len(run.adds))
    return [(at, kind, until) for at in steps for kind in run.strategies for until in range(1, at - run.keep + 1)]


def best_single(run: Run) -> float:
    """The least that a run costs with one cut, or none: all of `singles`, many at a time."""
    steps, (read, write, output) = len(run.adds), run.rates
    adds, results = np.array(sums(run.adds)), np.array(sums(run.results))
    held = run.head + adds[:steps]
    new = np.array([run.head, *run.adds[: steps - 1]])
    requests = read * (held - new) + write * new
    before, behind = np.cumsum(requests) - requests, np.cumsum(requests[::-1])[::-1] - requests
    best = float(requests.sum())
    for at in range(run.keep + 1, steps):
        until = slice(1, at - run.keep + 1)
        for kind in run.strategies:
            gone = results[until] if kind == "elide" else adds[until] - (NOTE if kind == "drop" else run.written)
            left = held[at] - gone
            costs = (
                before[at] + read * run.head + write * (left - run.head) + behind[at] - read * gone * (steps - at - 1)
            )
            if kind == "summarise":
                costs = costs + requests[at] + write * run.asked + output * run.written
            best = min(best, float(costs.min()))
    return best
