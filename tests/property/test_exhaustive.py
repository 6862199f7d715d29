"""Every short log there can be, over a small alphabet: no luck involved."""

from __future__ import annotations

from collections import Counter

import pytest
from exhaustive import ALPHABET, SCENES, STARTS, enumerate_all, scene

DEPTHS = {
    "from the start": 5,
    "in an exchange": 5,
    "beside a final tool": 4,
    "after a call was given up": 4,
    "in the second step": 5,
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", range(len(STARTS)))
@pytest.mark.parametrize("name", SCENES)
def test_every_law_holds_in_every_sequence_of_events_up_to_the_depth(
    name: str, settings: int, counts: Counter[str]
) -> None:
    depth = DEPTHS[name]
    tried = Counter(enumerate_all(scene(name, STARTS[settings]), depth))
    counts[f"exhaustive, {name}, depth {depth}: accepted logs"] += tried[True]
    counts["exhaustive: accepted logs in all"] += tried[True]
    counts["exhaustive: events tried"] += tried.total()
    counts["exhaustive: sequences covered"] += sum(len(ALPHABET) ** n for n in range(1, depth + 1))
