"""The step cap: within a step of the truth, whatever part of the runs was stopped."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import get_args

import pytest
from journals import Call, Script, read

from tenlines.advise.caps import LEAST_ANSWERED, SHARE, Caps, ending
from tenlines.advise.survival import curve
from tenlines.core.events import Status

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "advise.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    found = importlib.util.spec_from_file_location("advise_benchmark", BENCHMARK)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["advise_benchmark"] = module
    found.loader.exec_module(module)
    return module


def steps(count: int, **fields: object) -> Script:
    """A run that is answered at a step, unless its cap is lower."""
    calls = [[Call("look", f'{{"at": {place}}}', f"seen {place}")] for place in range(count - 1)]
    return Script(calls, **{"cap": 20, **fields})  # type: ignore[arg-type]


def caps_of(scripts: list[Script]) -> Caps:
    caps = Caps()
    for run in read(scripts):
        caps.take(run)
    return caps


# --- against the truth ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_enough_runs_it_is_within_one_step_of_the_truth_and_the_naive_one_is_not(
    benchmark: ModuleType, say: Callable[[str], None]
) -> None:
    biased, page = Counter[str](), (BENCHMARK.parents[1] / "docs" / "advise.md").read_text()
    for kind in benchmark.KINDS:
        assert benchmark.errors_in_a_step(kind, kind.runs[0]) >= 3.5
    for row in benchmark.rows():
        assert all(found is not None and abs(found - row.truth) <= 1 for found in row.found), row
        assert abs(sum(row.found) / len(row.found) - row.truth) <= 0.5, row
        assert benchmark.line(row) in page, "the table of docs/advise.md is out of date"
        if row.censored > 0.2:
            assert sum(row.naive) < sum(row.found), row
            assert sum(row.naive) / len(row.naive) <= row.truth - 0.9, row
            biased[row.kind] += sum(one < row.truth for one in row.naive)
    say(
        f"step cap: 4 distributions, 0 to 30 % stopped, 10 seeds: within a step; naive too small in {biased.total()}/40"
    )


def test_where_one_cap_stops_a_third_of_the_runs_the_p95_is_not_known_and_nothing_is_made_up(
    benchmark: ModuleType,
) -> None:
    for seed in range(10):
        random, answered, stopped = Random(seed), Counter[int](), Counter[int]()
        for _ in range(2_000):
            needed = benchmark.geometric(random)
            (answered if needed <= 5 else stopped)[min(needed, 5)] += 1
        assert stopped.total() > 500
        found = curve(answered, stopped)
        assert (found.steps_for(SHARE), found.last) == (None, 5)


@pytest.mark.slow
def test_what_is_read_from_a_journal_is_what_was_drawn(benchmark: ModuleType) -> None:
    random = Random(3)
    drawn = [(min(benchmark.lognormal(random), 25), random.choice((3, 5, 30))) for _ in range(300)]
    line = caps_of([steps(needed, cap=cap) for needed, cap in drawn]).line()
    answered = Counter(needed for needed, cap in drawn if needed <= cap)
    found = curve(answered, Counter(cap for needed, cap in drawn if needed > cap))
    assert (line.p95, (line.low, line.high)) == (found.steps_for(SHARE), found.interval_for(SHARE))
    assert (line.answered, line.censored, line.at_cap) == (answered.total(), 300 - answered.total(), line.censored)
    assert line.naive is not None
    assert line.p95 is not None
    assert line.naive < line.p95


# --- what counts as what ----------------------------------------------------------------------------------


def test_every_ending_says_something_of_the_steps_that_were_needed() -> None:
    said = {status: ending(status) for status in get_args(Status)}
    assert [status for status, one in said.items() if one == "answered"] == ["answered"]
    left_out = {"stuck", "refused", "empty_reply", "truncated_reply", "context_overflow"}
    assert {status for status, one in said.items() if one == "left_out"} == left_out
    assert ending(None) == "censored"


def test_runs_that_crashed_are_censored_and_forks_are_left_out() -> None:
    scripts = [steps(3), steps(4, answer=None), steps(2, origin="k2v9@3"), steps(9, cap=5)]
    line = caps_of(scripts).line()
    assert (line.answered, line.censored, line.forks, line.at_cap, line.cap) == (1, 2, 1, 1, 5)


def test_a_step_for_last_words_is_not_a_step_that_was_needed() -> None:
    caps = caps_of([steps(9, cap=5)])
    assert dict(caps._stopped) == {5: 1}


# --- what is advised --------------------------------------------------------------------------------------


def test_too_few_runs_are_too_few() -> None:
    caps = caps_of([steps(3)] * (LEAST_ANSWERED - 1))
    assert caps.line().waiting == "71 answered runs, 72 are needed"
    assert (caps.line().p95, caps.findings("a")) == (None, [])
    assert caps_of([steps(3)] * LEAST_ANSWERED).line().p95 == 3


def test_too_few_runs_at_the_p95_are_too_few() -> None:
    scripts = [steps(3)] * 80 + [steps(9, cap=4)] * 5 + [steps(8, cap=12)] * 2
    line = caps_of(scripts).line()
    assert line.waiting == "2 runs got as far as the p95 (step 8), 3 are needed"


def test_a_cap_that_fits_is_left_alone() -> None:
    caps = caps_of([*[steps(n) for n in (2, 3, 4, 5) for _ in range(30)], *[steps(9, cap=8)] * 2])
    assert (caps.line().p95, caps.findings("a")) == (5, [])


def test_a_cap_that_stops_too_many_is_to_be_raised_and_looked_at_again() -> None:
    scripts = [steps(n, cap=6) for n in (2, 3, 4, 5, 6) for _ in range(20)] + [steps(9, cap=6)] * 20
    caps = caps_of(scripts)
    line, (found,) = caps.line(), caps.findings("support")
    assert (line.p95, line.more_than, line.at_cap) == (None, 6, 20)
    assert found.do == "raise the cap to 12 and look again: the p95 is more than 6, and not known"
    assert found.seen.startswith("20 runs of 120 ended at the cap (6 steps)")
    assert (len(found.runs), found.tokens > 0, (found.dollars or 0) > 0) == (3, True, True)


def test_where_longer_runs_were_made_once_it_is_known_how_many_it_would_rescue() -> None:
    longer = [steps(n, cap=20) for n in (2, 4, 6, 8, 10) for _ in range(30)]
    stopped = [steps(n, cap=4) for n in (2, 4, 6, 8, 10) for _ in range(10)]
    (found,) = caps_of([*longer, *stopped]).findings("support")
    assert found.do == "raise the cap to 10: by then 95% of the runs that can be answered are"
    assert found.saves.startswith("about 30 of them would have been answered")
    assert found.sure == "the p95 is 10, with an interval of 95% from 10 to 10"


def test_a_cap_far_above_lets_runs_go_on_for_nothing() -> None:
    done = [steps(n, cap=30) for n in (2, 3, 4) for _ in range(40)]
    lost = [steps(60, cap=30)] * 20
    caps = caps_of([*done, *lost])
    (found,) = caps.findings("support")
    assert (caps.line().lost, caps.line().censored, caps.line().p95) == (20, 0, 4)
    said = "lower the cap to 4; look at one of these runs first: if it was still getting on, raise it to 60 instead"
    assert found.do == said
    assert "20 runs went on past 4 and ended at it" in found.seen
    spent = sum(
        (line.usage.input or 0) + (line.usage.output or 0)
        for run in read(lost)
        for line in run.ledger.steps
        if line.usage is not None and line.step > 4
    )
    assert found.tokens == spent


def test_few_runs_that_went_far_are_slow_and_not_lost() -> None:
    done = [steps(n, cap=30) for n in (2, 3, 4) for _ in range(40)]
    line = caps_of([*done, *[steps(60, cap=8)] * 4]).line()
    assert (line.lost, line.censored) == (0, 4)
    line = caps_of([*done, *[steps(60, cap=7)] * 40]).line()
    assert (line.lost, line.censored, line.p95, line.more_than) == (0, 40, None, 7)


def test_what_an_older_lower_cap_stopped_is_not_held_against_the_present_one() -> None:
    longer = [steps(n, cap=20) for n in (2, 4, 6, 8, 10) for _ in range(30)]
    older, newer = [steps(9, cap=3)] * 30, [steps(9, cap=7)] * 6
    (found,) = caps_of([*longer, *older, *newer]).findings("support")
    assert found.seen.startswith("6 runs of 186 ended at the cap (7 steps)")
    assert caps_of([*longer, *older, *newer[:4]]).findings("support") == []
