"""How near the step cap comes to the truth: runs from known distributions, part of them stopped, 10 seeds each."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tenlines.advise.caps import SHARE
from tenlines.advise.survival import curve

SEEDS = 10


class Kind(NamedTuple):
    """How many steps runs need."""

    name: str
    draw: Callable[[Random], int]
    within: Callable[[int], float]
    """The share of runs that need no more than so many: the truth."""
    runs: tuple[int, int, int]
    """How many are looked at, with about 0, 15 and 30 % of them stopped: so many that one step is at least 3.5 standard
    errors of the estimate without the stopped ones."""

    @property
    def p95(self) -> int:
        """The true one."""
        return next(steps for steps in range(1, 1_000) if self.within(steps) >= SHARE)


def normal(value: float) -> float:
    """The share of a normal distribution below."""
    return (1 + math.erf(value / math.sqrt(2))) / 2


def geometric(random: Random, chance: float = 0.2) -> int:
    """Each step is the last with the same chance."""
    return 1 + int(math.log(1 - random.random()) / math.log(1 - chance))


def negative_binomial(random: Random) -> int:
    """Three things one after the other, each done with a chance of 1 in 2 a step."""
    return sum(geometric(random, 0.5) for _ in range(3))


def lognormal(random: Random) -> int:
    """A long tail, rounded."""
    return max(1, round(random.lognormvariate(1.5, 0.5)))


def two_modes(random: Random) -> int:
    """Four of five tasks take about 3 steps, the others about 10."""
    middle, spread = (3, 1.0) if random.random() < 0.8 else (10, 1.5)
    return max(1, round(random.gauss(middle, spread)))


KINDS = (
    Kind("geometric", geometric, lambda steps: 1 - 0.8**steps, (4_000, 6_000, 10_000)),
    Kind(
        "negative binomial",
        negative_binomial,
        lambda steps: 1 - sum(math.comb(steps, done) * 0.5**steps for done in range(3)),
        (1_500, 2_500, 4_000),
    ),
    Kind(
        "lognormal, rounded",
        lognormal,
        lambda steps: normal((math.log(steps + 0.5) - 1.5) / 0.5),
        (1_500, 2_500, 4_000),
    ),
    Kind(
        "two modes",
        two_modes,
        lambda steps: 0.8 * normal(steps + 0.5 - 3) + 0.2 * normal((steps + 0.5 - 10) / 1.5),
        (1_000, 1_500, 2_500),
    ),
)
CENSORED = (0.0, 0.15, 0.3)


def errors_in_a_step(kind: Kind, runs: int) -> float:
    """Standard errors, at least, that it takes to be off by more than one step, with so many runs and none stopped."""
    few, many = kind.within(kind.p95 - 2), kind.within(kind.p95 + 1)
    return min(abs(share - SHARE) / math.sqrt(share * (1 - share) / runs) for share in (few, many))


class Row(NamedTuple):
    """What came of 10 seeds."""

    kind: str
    censored: float
    """Part of the runs that was stopped, on average."""
    runs: int
    truth: int
    found: list[int | None]
    naive: list[int | None]
    """The p95 of the answered runs alone."""


def cap_for(random: Random, part: float, median: int, longest: int) -> int:
    """A cap: none that counts, or one that stops part of the runs. The ones that stop differ from run to run."""
    return random.randint(1, 2 * median) if random.random() < part else longest


def rows() -> list[Row]:
    """All of them."""
    return [row(kind, place, part) for kind in KINDS for place, part in enumerate(CENSORED)]


def row(kind: Kind, place: int, part: float) -> Row:
    """Ten seeds."""
    runs, stopped = kind.runs[place], 0
    median = sorted(map(kind.draw, [Random(1)] * 999))[500]
    found, naive = list[int | None](), list[int | None]()
    for seed in range(SEEDS):
        random, answered, censored = Random(seed + 100), Counter[int](), Counter[int]()
        for _ in range(runs):
            steps, cap = kind.draw(random), cap_for(random, 2 * part, median, 10_000)
            (answered if steps <= cap else censored)[min(steps, cap)] += 1
        stopped += censored.total()
        found.append(curve(answered, censored).steps_for(SHARE))
        naive.append(curve(answered, {}).steps_for(SHARE))
    return Row(kind.name, stopped / runs / SEEDS, runs, kind.p95, found, naive)


def line(one: Row) -> str:
    """A line of the table."""
    lists = [" ".join(map(str, sorted(map(int, filter(None, numbers))))) for numbers in (one.found, one.naive)]
    return f"| {one.kind} | {one.censored:.0%} | {one.runs:,} | {one.truth} | {lists[0]} | {lists[1]} |"


def main() -> None:
    """Print the table."""
    began = time.perf_counter()
    for kind in KINDS:
        print(f"{kind.name}: one step is {errors_in_a_step(kind, kind.runs[0]):.1f} standard errors of the p95 or more")
    print("\n| steps that runs need | stopped | runs | true p95 | Kaplan-Meier, 10 seeds | answered runs alone |")
    print("|---|---:|---:|---:|---|---|")
    for one in rows():
        print(line(one))
    print(f"\n{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
