"""What the real server evaluates of a run's requests: by its own counters, with the benchmark that measures more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenlines.models.local import LocalModel

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import prefix_cache

pytestmark = [pytest.mark.slow, pytest.mark.local_model]
Say = Callable[[str], None]


def measured(name: str, steps: int, number: int) -> list[dict[str, Any]]:
    way = next(one for one in prefix_cache.ways(steps) if one.name == name)
    rows: list[dict[str, Any]] = prefix_cache.measure(way, number, LocalModel("small", threads=1), steps)["steps"]
    return rows


def test_a_run_that_only_grows_has_only_its_new_tokens_evaluated_and_an_edited_one_all_behind_the_edit(
    small_server: str, say: Say
) -> None:
    grown, edited = measured("append-only", 5, 901), measured("first result edited", 5, 902)
    worst, at = prefix_cache.worst_step(grown), prefix_cache.edit_step(5) - 1
    say(f"prefix cache: {worst:.3f} tokens evaluated for each new one; {edited[at]['evaluated']} at an early edit")
    assert worst <= prefix_cache.MOST_OVER_NEW
    assert [row["tokens"] for row in edited[:at]] == [row["tokens"] for row in grown[:at]]
    assert prefix_cache.worst_step(edited[:at] + edited[at + 1 :]) <= prefix_cache.MOST_OVER_NEW
    assert prefix_cache.behind_edit(edited) >= prefix_cache.LEAST_BEHIND_EDIT


@pytest.mark.parametrize(("api", "number"), [("Chat Completions", 903), ("Responses", 904), ("Messages", 905)])
def test_a_servers_own_tool_calls_leave_what_was_sent_as_it_was(small_server: str, api: str, number: int) -> None:
    rows = measured(f"append-only, {api}", 3, number)
    assert prefix_cache.worst_step(rows) <= prefix_cache.MOST_OVER_NEW
