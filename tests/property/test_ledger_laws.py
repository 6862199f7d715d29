"""The ledger says what the machine says, at every log that the small world can bring about."""

from __future__ import annotations

from collections import Counter

import pytest
from world import walk

from tenlines.core.ledger import ledger_of
from tenlines.core.replay import fold

WALKS = 600


@pytest.mark.slow
def test_the_sums_of_a_ledger_are_those_of_the_result(counts: Counter[str]) -> None:
    for seed in range(WALKS):
        log = walk(seed).log
        for length in {len(log) // 2, len(log)}:
            result, ledger = fold(log[:length]).result(), ledger_of(log[:length])
            whole, usage = ledger.all, result.usage
            tokens = (whole.input_tokens, whole.output_tokens, whole.cache_read, whole.cache_write, whole.reasoning)
            assert (*tokens, whole.unmetered) == usage, seed
            assert (ledger.dollars, ledger.children) == (result.dollars, result.children), seed
            assert (ledger.own.steps, ledger.own.tool_calls) == (result.steps, result.tool_calls), seed
            told = [(call.step, call.position, call.outcome) for call in result.calls]
            assert [(one.step, one.position, one.outcome) for one in ledger.calls][: len(told)] == told, seed
        counts["ledgers of random logs"] += 1
