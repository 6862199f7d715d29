"""Tools whose results flood the window."""

from __future__ import annotations

from random import Random

import pytest
from journals import Call, Script, aimless, flooded, read, step_of

from tenlines.advise.floods import BOUND, Floods


def floods_of(scripts: list[Script]) -> Floods:
    floods = Floods()
    for run in read(scripts):
        floods.take(run)
    return floods


def test_a_tool_with_large_results_in_many_requests_floods() -> None:
    random = Random(1)
    scripts = [flooded(random) for _ in range(30)]
    floods = floods_of(scripts)
    (found,) = floods.findings("flooded")
    (line, *_) = floods.lines()
    assert (found.subject, line.tool, line.calls, line.runs) == ("dump", "dump", 30, 30)
    assert line.p95 > 4_000
    saved = [
        call.line.carried * (1 - BOUND / call.line.tokens)
        for run in read(scripts)
        for call in run.calls
        if call.tool == "dump"
    ]
    assert abs(found.tokens - sum(saved)) <= len(saved)
    assert f"at most {BOUND:,} tokens" in found.saves


def test_what_it_carried_is_what_the_ledger_says() -> None:
    scripts = [aimless(Random(seed)) for seed in range(20)]
    runs = list(read(scripts))
    carried, whole = (
        sum(c.line.carried for run in runs for c in run.calls),
        sum(r.ledger.own.input_tokens for r in runs),
    )
    lines = floods_of(scripts).lines()
    assert sum(line.carried for line in lines) == carried
    assert sum(line.share for line in lines) * whole == pytest.approx(carried)
    assert [line.carried for line in lines] == sorted((line.carried for line in lines), reverse=True)


def test_small_results_large_share_or_few_calls_are_no_flood() -> None:
    random = Random(2)
    small = [Script([[step_of(random, "look", 0, 60)]], instructions="x") for _ in range(40)]
    few = [Script([[Call("dump", "{}", "so it is " * 3_000)]]) for _ in range(9)]
    assert floods_of(small).lines()[0].share > 0.25
    assert floods_of(small).findings("a") == []
    assert floods_of(few).lines()[0].p95 > 2_000
    assert floods_of(few).findings("a") == []
