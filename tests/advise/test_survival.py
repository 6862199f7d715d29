"""The curve of Kaplan and Meier: `lifelines` is the judge, and what must hold of any estimate holds."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.advise.survival import Curve, curve, wilson

COUNTS = st.dictionaries(st.integers(1, 40), st.integers(1, 30), max_size=12)


def both(answered: dict[int, int], stopped: dict[int, int]) -> tuple[list[int], list[int]]:
    """Steps of each run, and whether it was answered."""
    steps = [step for counts in (answered, stopped) for step, runs in counts.items() for _ in range(runs)]
    return steps, [1] * sum(answered.values()) + [0] * sum(stopped.values())


def random_counts(random: Random) -> tuple[Counter[int], Counter[int]]:
    answered = Counter(random.randint(1, 25) for _ in range(random.randint(1, 200)))
    return answered, Counter(random.randint(1, 30) for _ in range(random.randint(0, 80)))


@pytest.mark.slow
def test_it_is_what_lifelines_makes_of_the_same_runs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about its own future
        from lifelines import KaplanMeierFitter
        from lifelines.utils import qth_survival_time

        for seed in range(40):
            answered, stopped = random_counts(Random(seed))
            judge = KaplanMeierFitter().fit(*both(answered, stopped))
            found, bounds = curve(answered, stopped), judge.confidence_interval_
            for point in found.points:
                said = float(judge.survival_function_.loc[point.step].iloc[0])
                assert point.unanswered == pytest.approx(said, abs=1e-12)
                assert point.at_risk == judge.event_table.loc[point.step, "at_risk"]
                if 0 < said < 1:
                    low, high = (float(one) for one in bounds.loc[point.step])
                    assert (point.low, point.high) == pytest.approx((low, high), abs=1e-9), (seed, point)
            for share in (0.5, 0.9, 0.95):
                theirs = qth_survival_time(1 - share + 1e-9, judge.survival_function_)
                assert (found.steps_for(share) or math.inf) == theirs


def test_without_censoring_it_is_the_quantile_of_the_sample() -> None:
    found = curve({step: 1 for step in range(1, 101)}, {})
    assert (found.steps_for(0.95), found.steps_for(0.5), found.last) == (95, 50, 100)
    assert found.interval_for(0.95) == (91, 99)
    assert found.unanswered_after(0) == 1
    assert found.unanswered_after(90) == pytest.approx(0.1)
    assert (found.at_risk(95), found.at_risk(7_000)) == (6, 0)


def test_what_is_stopped_at_a_step_was_not_answered_there() -> None:
    found = curve({4: 50}, {4: 50})
    assert found.points[0].at_risk == 100
    assert found.points[0].unanswered == 0.5
    assert found.steps_for(0.95) is None


def test_seventy_two_runs_are_the_fewest_that_can_have_an_interval_with_an_upper_end() -> None:
    assert curve({4: 72}, {}).interval_for(0.95) == (4, 4)
    assert curve({4: 71}, {}).interval_for(0.95) == (4, None)


def test_where_all_were_answered_at_the_last_step_the_interval_is_that_of_none_in_so_many() -> None:
    found = curve({2: 100, 9: 100}, {})
    last = found.points[-1]
    assert (last.unanswered, last.low) == (0, 0)
    assert last.high == pytest.approx(found.points[0].high * (1 - 0.025 ** (1 / 100)))
    assert found.interval_for(0.95) == (9, 9)
    assert curve({}, {}) == Curve((), 0)


@given(COUNTS, COUNTS)
def test_it_falls_from_one_within_its_bounds(answered: dict[int, int], stopped: dict[int, int]) -> None:
    found = curve(answered, stopped)
    levels = [1.0, *(point.unanswered for point in found.points)]
    assert levels == sorted(levels, reverse=True)
    for point in found.points:
        assert 0 <= point.low <= point.unanswered + 1e-12
        assert point.unanswered <= point.high + 1e-12
        assert point.high <= 1
    low, high = found.interval_for(0.95)
    p95 = found.steps_for(0.95)
    assert p95 is None or low is None or low <= p95
    assert p95 is None or high is None or p95 <= high


@given(COUNTS, COUNTS, st.integers(0, 40))
def test_what_was_stopped_before_anything_else_happened_says_nothing(
    answered: dict[int, int], stopped: dict[int, int], many: int
) -> None:
    first = min((*answered, *stopped), default=1)
    more = {**stopped, first - 1: many}
    assert [p[3:] for p in curve(answered, more).points] == [p[3:] for p in curve(answered, stopped).points]


@given(COUNTS, COUNTS, st.integers(1, 60), st.integers(1, 100))
def test_answers_at_the_estimate_do_not_move_it(
    answered: dict[int, int], stopped: dict[int, int], share: int, many: int
) -> None:
    part = share / 61
    before = curve(answered, stopped).steps_for(part)
    if before is not None:
        more = Counter(answered)
        more[before] += many
        assert curve(more, stopped).steps_for(part) == before


@given(COUNTS, COUNTS, st.integers(2, 5))
def test_so_many_times_the_runs_are_the_same_curve_and_a_narrower_interval(
    answered: dict[int, int], stopped: dict[int, int], times: int
) -> None:
    one = curve(answered, stopped)
    many = curve({k: v * times for k, v in answered.items()}, {k: v * times for k, v in stopped.items()})
    for point, other in zip(one.points, many.points, strict=True):
        assert other.unanswered == pytest.approx(point.unanswered)
        if 0 < point.unanswered < 1:
            assert other.high - other.low < point.high - point.low


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Geometric runs under caps of 4 to 40 steps: nominal 95 %, and the p95 is a whole number."""
    truth, held = math.ceil(math.log(0.05) / math.log(0.75)), 0
    for seed in range(200):
        random, answered, stopped = Random(seed), Counter[int](), Counter[int]()
        for _ in range(150):
            needs, cap = 1 + int(math.log(random.random()) / math.log(0.75)), random.choice((4, 8, 20, 40))
            (answered if needs <= cap else stopped)[min(needs, cap)] += 1
        low, high = curve(answered, stopped).interval_for(0.95)
        held += (low or 0) <= truth <= (high or 99)
    assert held >= 185


def test_shares_have_the_interval_of_wilson() -> None:
    assert wilson(30, 30) == pytest.approx((0.8865, 1.0), abs=1e-4)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0, 1)
    assert median(wilson(5, 10)) == pytest.approx(0.5)
