"""What advice is made of: its order, sizes in bounded memory, words."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.advise.facts import Worth
from tenlines.advise.findings import EXAMPLES, Examples, Finding, Sizes, ordered, percent, worth_words

FINDINGS = st.builds(
    Finding,
    kind=st.sampled_from(("cap", "flood", "cache")),
    group=st.sampled_from(("a", "b")),
    subject=st.sampled_from(("x", "y")),
    seen=st.just(""),
    do=st.just(""),
    saves=st.just(""),
    tokens=st.integers(0, 3),
    dollars=st.none() | st.sampled_from((0.0, 0.5, 1.0)),
    sure=st.just(""),
    runs=st.just(()),
)


@given(st.lists(FINDINGS, max_size=8), st.randoms(use_true_random=False))
def test_the_order_is_total_whatever_comes_first(findings: list[Finding], random: Random) -> None:
    shuffled = list(findings)
    random.shuffle(shuffled)
    known = [one for one in findings if one.dollars != 0.0]  # which looks like one that is not known
    assert ordered(known) == ordered([one for one in shuffled if one.dollars != 0.0])
    if all(one.dollars is not None for one in findings):
        worth = [one.dollars for one in ordered(findings)]
        assert worth == sorted(worth, reverse=True)
    else:
        tokens = [one.tokens for one in ordered(findings)]
        assert tokens == sorted(tokens, reverse=True)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=60), st.sampled_from((0.05, 0.5, 0.95, 1.0)))
def test_sizes_are_within_half_a_percent_of_the_truth(sizes: list[int], share: float) -> None:
    kept = Sizes()
    for size in sizes:
        kept.add(size)
    truth = sorted(sizes)[max(0, -int(-share * len(sizes) // 1) - 1)]
    assert kept.quantile(share) == pytest.approx(truth, rel=0.005, abs=0.5)


def test_sizes_take_no_more_memory_the_more_there_are() -> None:
    kept = Sizes()
    for size in range(200_000):
        kept.add(size)
    assert len(kept._counts) < 4_000
    assert Sizes().quantile(0.5) == 0


def test_a_few_examples_are_kept_each_once() -> None:
    examples = Examples()
    for run_id in ("a", "a", "b", "c", "d"):
        examples.add(run_id)
    assert examples.runs == ["a", "b", "c"][:EXAMPLES]


def test_words() -> None:
    shares = [percent(1, 3), percent(1, 400), percent(1, 9_000), percent(0, 9), percent(1, 0)]
    assert shares == ["33%", "0.2%", "<0.1%", "0%", "0%"]
    assert worth_words(Worth(1, 2.5)) == "about 1 token, $2.50"
    assert worth_words(Worth(1_200, 0.0001)) == "about 1,200 tokens, $0.000100"
    assert worth_words(Worth(1_200, None)) == "about 1,200 tokens (the price is not known)"
