"""Every short log there can be, over a small alphabet: no luck involved."""

from __future__ import annotations

from collections import Counter

import pytest
from exhaustive import ALPHABET, CASES, STARTS, enumerate_all, scene


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "depth"), CASES)
def test_every_law_holds_in_every_sequence_of_events_up_to_the_depth(
    name: str, settings: int, depth: int, counts: Counter[str]
) -> None:
    tried = Counter(enumerate_all(scene(name, STARTS[settings]), depth))
    counts[f"exhaustive, {name}, depth {depth}: accepted logs"] += tried[True]
    counts["exhaustive: accepted logs in all"] += tried[True]
    counts["exhaustive: events tried"] += tried.total()
    counts["exhaustive: sequences covered"] += sum(len(ALPHABET) ** n for n in range(1, depth + 1))
