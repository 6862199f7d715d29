"""Cache breaks: between runs, within runs; and what is none."""

from __future__ import annotations

from random import Random

import pytest
from journals import INSTRUCTIONS, Call, Script, aimless, clocked, read, shuffled, spec

from tenlines.advise.breaks import Breaks
from tenlines.trace.redaction import Redaction


def breaks_of(scripts: list[Script], apart: float = 60.0, redaction: Redaction | None = None) -> Breaks:
    breaks = Breaks(Redaction() if redaction is None else redaction)
    for run in read(scripts, apart):
        breaks.take(run)
    return breaks


def test_a_clock_in_the_instructions() -> None:
    random = Random(1)
    (found,) = breaks_of([clocked(random, number) for number in range(20)]).findings("a")
    assert found.subject == "a date or time in the instructions"
    assert found.seen.startswith("19 of 19 runs that followed another within 5 min (100%)")


def test_tools_in_another_order() -> None:
    random = Random(2)
    (found,) = breaks_of([shuffled(random) for _ in range(60)]).findings("a")
    assert found.subject == "the tools come in another order"


def test_it_costs_what_the_cache_could_have_had() -> None:
    """The beginning, but for what was read: at the price of writing it, less that of reading it."""
    random = Random(3)
    scripts = [clocked(random, number) for number in range(11)]
    (found,) = breaks_of(scripts).findings("a")
    beginnings = [run.beginning for run in list(read(scripts))[1:]]
    assert found.tokens == sum(beginnings)
    assert found.dollars == pytest.approx(sum(beginnings) * (3.75 - 0.3) / 1e6)
    read_some = [script._replace(cached=400) for script in scripts]
    assert breaks_of(read_some).findings("a")[0].tokens == sum(beginnings) - 10 * 400


def test_an_id_in_the_instructions_is_quoted_without_secrets() -> None:
    def scripts(word: str) -> list[Script]:
        return [Script(instructions=f"{word}{n:08}-{n:08}. {INSTRUCTIONS}") for n in range(12)]

    (found,) = breaks_of(scripts("Request ")).findings("a")
    assert found.subject == "the instructions are others each time"
    assert "00000001" in found.seen
    (found,) = breaks_of(scripts("api_key=")).findings("a")
    assert "00000001" not in found.seen
    assert "a secret" in found.seen


def test_variants_that_come_again_and_a_change_once_are_no_breaks() -> None:
    random = Random(4)
    two = [aimless(random, instructions=f"Variant {n % 2}. {INSTRUCTIONS}") for n in range(40)]
    once = [aimless(random, instructions=f"Version {n // 20}. {INSTRUCTIONS}") for n in range(40)]
    assert breaks_of(two).findings("a") == []
    assert breaks_of(once).findings("a") == []


def test_runs_that_are_far_apart_find_nothing_anyway() -> None:
    random = Random(5)
    assert breaks_of([clocked(random, number) for number in range(20)], apart=3_600).findings("a") == []


def test_turns_of_a_session_are_told_by_the_log() -> None:
    changed = "the tools: look new"
    turns = [Script(session=f"s{n}", turn=2, changed=changed, cached=0) for n in range(4)]
    (found,) = breaks_of(turns).findings("a")
    assert found.subject == "within runs: the tools are others, or described otherwise"
    assert changed in found.seen
    assert breaks_of([Script(session=f"s{n}", turn=2) for n in range(4)]).findings("a") == []


def test_what_costs_nothing_is_no_break() -> None:
    random = Random(6)
    cached = [clocked(random, number)._replace(cached=5_000) for number in range(20)]
    assert breaks_of(cached).findings("a") == []


def test_agents_of_one_group_are_compared_each_with_itself() -> None:
    random = Random(7)
    scripts = [script for n in range(20) for script in (clocked(random, n), shuffled(random), aimless(random))]
    assert {found.subject: found.seen.split(" that")[0] for found in breaks_of(scripts, apart=20).findings("all")} == {
        "a date or time in the instructions": "19 of 19 runs",
        "the tools come in another order": "16 of 19 runs",
    }


def test_another_model_has_another_cache() -> None:
    scripts = [Script([[Call("look")]], model=f"m{n % 2}", tools=(spec("look"),)) for n in range(30)]
    assert breaks_of(scripts).findings("a") == []


def test_what_the_log_quotes_is_shown_without_secrets() -> None:
    secret = "sk-live-12345678"
    changed = f"the instructions, from character 9 on: '{secret}'"
    turns = [
        Script(session=f"s{n}", turn=2, changed=changed, instructions=f"password: {secret}\n{INSTRUCTIONS}")
        for n in range(4)
    ]
    (found,) = breaks_of(turns).findings("a")
    assert secret not in found.seen
    (found,) = breaks_of(turns, redaction=Redaction(())).findings("a")
    assert secret in found.seen
