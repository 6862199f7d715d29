"""The planner against every way to cut a run once, and against not cutting at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from brute_force import Asked, Chooser, Growth, Planner, Run, alone, best_single, cost, once, random_run, singles

LEAST_GAIN = 0.01
"""As in `Compaction`."""
NEAR = 1.02
"""So much may a planned run cost, measured by the best that one cut can do."""
ROUNDING = 1 + 1e-9

VARYING: tuple[Growth, ...] = ("noisy", "heavy", "rising", "falling", "bursts")


class Measured(NamedTuple):
    """What planned runs cost."""

    by_best: list[float]
    """Each measured by its best single cut, in rising order."""
    worst_by_alone: float
    """The worst one measured by not cutting at all."""
    mean_by_alone: float
    cuts: float
    looks: float

    @property
    def near(self) -> float:
        """Which part of the runs costs at most `NEAR` times the best single cut."""
        return sum(one <= NEAR for one in self.by_best) / len(self.by_best)

    def __str__(self) -> str:
        runs, mean = len(self.by_best), sum(self.by_best) / len(self.by_best)
        best = f"{mean:.3f} of the best single cut ({self.by_best[-1]:.4f} at most, {self.near:.2%} within 2 %)"
        going_on = f"{self.mean_by_alone:.3f} of going on ({self.worst_by_alone:.4f} at most)"
        return f"{runs:,} runs cost {best} and {going_on}, with {self.cuts:.1f} cuts in {self.looks:.1f} looks"


def measure(growth: Growth, count: int, asked: Asked) -> Measured:
    """Plan so many random runs."""
    by_best, by_alone, cuts, looks = [], [], 0, 0
    for seed in range(count):
        run = random_run(seed, growth)
        planner = Planner(run, LEAST_GAIN, asked)
        spent, made = cost(run, planner)
        by_best.append(spent / best_single(run))
        by_alone.append(spent / cost(run, alone)[0])
        cuts, looks = cuts + made, looks + planner.looks
    return Measured(sorted(by_best), max(by_alone), sum(by_alone) / count, cuts / count, looks / count)


# --- even growth: what the planner foresees is what comes -----------------------------------------------


def check_even(measured: Measured) -> None:
    assert measured.by_best[-1] <= NEAR
    assert measured.worst_by_alone <= ROUNDING


def test_a_planned_run_is_near_the_best_single_cut() -> None:
    check_even(measure("even", 300, "on growth"))


@pytest.mark.slow
def test_ten_thousand_planned_runs_are_near_the_best_single_cut(say: Callable[[str], None]) -> None:
    measured = measure("even", 10_000, "on growth")
    say(f"planner, even growth: {measured}")
    check_even(measured)


@pytest.mark.slow
def test_asking_at_every_step_gains_next_to_nothing(say: Callable[[str], None]) -> None:
    often, seldom = measure("even", 1_000, "at every step"), measure("even", 1_000, "on growth")
    say(f"planner, even growth, asked at every step: {often}")
    check_even(often)
    assert seldom.mean_by_alone < often.mean_by_alone + 0.005


# --- growth that nobody can foresee ---------------------------------------------------------------------


@pytest.mark.parametrize("growth", VARYING)
def test_whatever_the_steps_add_a_planned_run_costs_no_more_than_one_that_goes_on(growth: Growth) -> None:
    assert measure(growth, 30, "on growth").worst_by_alone <= ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("growth", VARYING)
@pytest.mark.parametrize(("asked", "most"), [("on growth", 0.9), ("on growth or steps", 0.98)])
def test_most_runs_of_uneven_growth_are_near_a_cut_that_is_chosen_afterwards(
    growth: Growth, asked: Asked, most: float, say: Callable[[str], None]
) -> None:
    """The best single cut is known only afterwards, so nothing that is decided before is always near it: a step may add
    as much as all others together, and growth may end. What holds for every run is that it never costs more than going
    on; what holds on average is that several cuts are cheaper than the best single one."""
    measured = measure(growth, 1_000, asked)
    say(f"planner, {growth} growth, asked {asked}: {measured}")
    assert measured.worst_by_alone <= ROUNDING
    assert measured.near >= most
    assert sum(measured.by_best) / len(measured.by_best) < 0.9


# --- what the planner is measured with ------------------------------------------------------------------


@pytest.mark.parametrize("growth", ["even", *VARYING])
def test_the_best_single_cut_is_the_cheapest_of_all_when_each_is_charged_by_itself(growth: Growth) -> None:
    runs = [run for seed in range(60) if len((run := random_run(seed, growth)).adds) <= 18]
    for run in runs:
        tried = [cost(run, once(*single))[0] for single in singles(run)]
        assert best_single(run) == pytest.approx(min([*tried, cost(run, alone)[0]]))
    assert max(len(singles(run)) for run in runs) > 70


def never(run: Run) -> Chooser:
    return alone


def at_once(run: Run) -> Chooser:
    """Cuts all that can be cut before every request."""
    return lambda step, held: next(iter(held.choices()), None)


def in_the_middle(run: Run) -> Chooser:
    """Cuts when half of the steps are done."""
    return lambda step, held: next(iter(held.choices()), None) if step == len(run.adds) // 2 else None


@pytest.mark.parametrize("plan", [never, at_once, in_the_middle])
def test_a_plan_that_does_not_calculate_is_found_out(plan: Callable[[Run], Chooser]) -> None:
    runs = [random_run(seed, "even") for seed in range(100)]
    assert max(cost(run, plan(run))[0] / best_single(run) for run in runs) > 1.1
