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
FREE = scale.Costs(
    worker_run=0.0,
    worker_step=0.0,
    temporal_run=0.0,
    temporal_step=0.0,
    postgres_run=0.0,
    postgres_step=0.0,
    submitter_run=0.0,
    handover=0.0,
)


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
    assert large.rows_a_day == 1_000 * small.rows_a_day


@pytest.mark.parametrize("peak", [1.0, 1.5, 3.0, 8.0])
def test_a_day_has_its_runs_and_its_peak(peak: float) -> None:
    day = scale.Day(2_000.0, peak, 20, 0.3)
    rates = [day.rate(at * 60) * scale.DAY_S / day.runs for at in range(24 * 60)]
    assert statistics.fmean(rates) == pytest.approx(1.0, rel=0.001)
    assert max(rates) == pytest.approx(peak)
    assert min(rates) >= -1e-9
    came = [len(day.arrivals(0.0, scale.DAY_S, scale.Work(), random.Random(seed))) for seed in range(20)]
    assert statistics.fmean(came) == pytest.approx(day.runs, rel=0.04)


def test_the_same_seed_is_the_same_day() -> None:
    one, two = (scale.Day(500.0).arrivals(0.0, scale.DAY_S, scale.Work(), random.Random(3)) for _ in range(2))
    assert one == two


def test_a_rate_of_the_model_holds_and_is_what_the_runs_then_wait_for() -> None:
    fleet = scale.Fleet(2, 50, requests_a_second=2.0)
    outcome = scale.Simulation(fleet, FREE, lambda: 0.5).run([(0.0, 3)] * 40)
    assert outcome.lasted == pytest.approx((40 * 3 - 1) / 2.0 + 0.5)  # the last request is sent, and answered
    assert outcome.longest_pace > 10


def test_two_cores_shared_with_the_servers_do_twice_as_much_where_processors_are_what_bounds() -> None:
    costs = scale.Costs(handover=0.0)
    one, two = (
        scale.Simulation(scale.Fleet(count, 20, tuple(range(count))), costs, lambda: 0.0).run([(0.0, 20)] * 200)
        for count in (1, 2)
    )
    cpu = costs.worker_run + costs.servers_run + 20 * (costs.worker_step + costs.postgres_step + costs.temporal_step)
    assert one.lasted == pytest.approx(200 * cpu, rel=0.02)
    assert one.lasted / two.lasted == pytest.approx(2.0, rel=0.1)


def test_runs_of_a_worker_that_died_go_on_elsewhere_when_it_was_silent_for_long_enough() -> None:
    outcome = scale.Simulation(scale.Fleet(2, 10), FREE, lambda: 1.0, [0.5], 15.0).run([(0.0, 2)] * 10)
    assert outcome.taken_over == 5
    assert outcome.ended == 10
    assert outcome.lasted == pytest.approx(0.5 + 15.0 + 2.0)


def test_a_prediction_comes_from_the_costs_and_not_from_what_it_is_held_against() -> None:
    lines = [
        {"CPU of": who, "ms a run": 10.0, "ms a step": 0.5} for who in ("worker", "temporal", "postgres", "submitter")
    ]
    rows = [{"case": "slow, servers on both", "workers": count, "steps/s": 1.0} for count in (1, 2)]
    measured = {
        "about": {"parallel": 20},
        "loads": {"slow": {"runs": 60, "steps": 10, "model_s": 0.2}},
        "workers": rows,
        "costs": lines,
        "written": {"lone run until it is taken up, ms": 30.0},
    }
    one, two = scale.predictions(measured)
    assert 75 < one.simulated <= 20 / 0.2  # its places, over the time of a step, but for the beginning and the end
    assert two.simulated == pytest.approx(2 * one.simulated, rel=0.1)
    assert one.off == one.simulated - 1


def test_a_peak_that_the_arithmetic_sized_for_waits_for_no_place() -> None:
    chance, work = random.Random(5), scale.Work()
    wanted = scale.need(300_000, 3.0, work, scale.Costs(), 20)
    fleet = scale.Fleet(wanted.workers, 20)
    came = scale.arrivals(wanted.runs_a_second, 400, work, chance)
    outcome = scale.Simulation(fleet, scale.Costs(), scale.paused(work, chance)).run(came)
    assert outcome.wait(0.95) < 1.0
