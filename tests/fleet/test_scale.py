"""The simulation of a fleet, against what is known of queues."""

from __future__ import annotations

import importlib.util
import math
import random
import statistics
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def _loaded() -> ModuleType:
    file = Path(__file__).parents[2] / "benchmarks" / "scale.py"
    spec = importlib.util.spec_from_file_location("scale_of_fleets", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


scale = _loaded()
FREE = scale.Costs(worker_run=0.0, worker_step=0.0, temporal_run=0.0, postgres_step=0.0, handover=0.0)


def erlang_c(servers: int, load: float) -> float:
    """The chance of having to wait, where so many serve and the load is so many of them busy (A. K. Erlang, 1917)."""
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "parallel", "load"), [(1, 1, 0.6), (1, 4, 3.2), (3, 2, 4.8)])
def test_waiting_times_are_those_of_erlang(workers: int, parallel: int, load: float) -> None:
    chance, places = random.Random(11), workers * parallel
    came = [(at, 1) for at, _ in scale.arrivals(load, 30_000 / load, scale.Work(), chance)]
    fleet = scale.Fleet(workers, parallel)
    outcome = scale.Simulation(fleet, FREE, lambda: chance.expovariate(1.0)).run(came)
    expected = erlang_c(places, load) / (places - load)
    assert statistics.fmean(outcome.waits) == pytest.approx(expected, rel=0.15)
    assert statistics.fmean(one > 0 for one in outcome.waits) == pytest.approx(erlang_c(places, load), rel=0.08)
    assert outcome.under_way == pytest.approx(load, rel=0.05)  # Little's law: rate times time


@given(
    st.lists(st.tuples(st.floats(0, 50), st.integers(1, 5)), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.floats(0, 60), max_size=5),
)
@settings(max_examples=60)
def test_no_run_is_lost_or_waits_for_less_than_nothing(
    came: list[tuple[float, int]], workers: int, parallel: int, deaths: list[float]
) -> None:
    fleet = scale.Fleet(workers, parallel)
    outcome = scale.Simulation(fleet, scale.Costs(), lambda: 1.0, sorted(deaths)).run(sorted(came))
    assert outcome.ended == len(came) == len(outcome.waits)
    assert min(outcome.waits) >= 0
    assert outcome.lasted >= max(steps for _, steps in came)
    assert all(0 <= busy <= 1 for busy in outcome.busy)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=40), st.integers(1, 3))
@settings(max_examples=60)
def test_more_workers_let_nobody_wait_longer(times: list[float], workers: int) -> None:
    came = [(at, 2) for at in sorted(times)]
    few, more = (
        scale.Simulation(scale.Fleet(count, 2), FREE, lambda: 1.0).run(came).waits for count in (workers, workers + 1)
    )
    assert all(later <= soon for later, soon in zip(more, few, strict=True))


def test_the_arithmetic_grows_with_the_runs_and_keeps_two_workers_at_least() -> None:
    small, large = (scale.need(runs, 3.0, scale.Work(), scale.Costs(), 100) for runs in (1_000, 1_000_000))
    assert small.workers == 2
    assert large.workers > 5
    assert large.runs_a_second == pytest.approx(1_000_000 / 86_400 * 3)
    assert large.events_a_day == 1_000 * small.events_a_day


def test_a_peak_that_the_arithmetic_sized_for_waits_for_no_place() -> None:
    chance, work = random.Random(5), scale.Work()
    wanted = scale.need(300_000, 3.0, work, scale.Costs(), 20)
    fleet = scale.Fleet(wanted.workers, 20)
    came = scale.arrivals(wanted.runs_a_second, 400, work, chance)
    outcome = scale.Simulation(fleet, scale.Costs(), scale.paused(work, chance)).run(came)
    assert outcome.wait(0.95) < 1.0
