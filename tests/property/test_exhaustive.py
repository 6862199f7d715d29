"""Every short log there can be, over a small alphabet: no luck involved."""

from __future__ import annotations

from collections import Counter

import pytest
from exhaustive import CASES, SCENES, STARTS, alphabet_of, enumerate_all, scene


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "depth"), CASES)
def test_every_law_holds_in_every_sequence_of_events_up_to_the_depth(
    name: str, settings: int, depth: int, counts: Counter[str]
) -> None:
    begin = scene(name, STARTS[settings])
    tried = Counter(enumerate_all(begin, depth))
    counts[f"exhaustive, {name}, depth {depth}: accepted logs"] += tried[True]
    counts["exhaustive: accepted logs in all"] += tried[True]
    counts["exhaustive: events tried"] += tried.total()
    counts["exhaustive: sequences covered"] += sum(len(alphabet_of(begin)) ** n for n in range(1, depth + 1))


@pytest.mark.parametrize("name", [name for name, _, _ in CASES if "pay" in " ".join(SCENES[name]) or "pry" in name])
def test_a_scene_about_leave_is_set_up_as_it_is_written(name: str) -> None:
    settings = next(settings for case, settings, _ in CASES if case == name)
    assert len(scene(name, STARTS[settings]).facts.log) == len(SCENES[name]) + 1
