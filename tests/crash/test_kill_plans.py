"""Plans and workflows are killed at their port calls; whoever carries on repeats nothing that is finished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from crash_strides import explored

STRIDE = 4
"""Each driver is killed at every so manieth point; all of them are gone through by starting at 0, 1, 2, ..."""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["plan", "flow"])
def test_what_was_killed_at_any_port_call_comes_to_its_end(
    what: str, tmp_path: Path, say: Callable[[str], None]
) -> None:
    found = explored(Path(__file__).with_name(f"{what}_points.py"), tmp_path, STRIDE)
    assert [one["wrong"] for one in found] == [[], []]
    assert all(one["kills"] >= 0.9 * one["points"] / STRIDE for one in found)
    kills, points = sum(one["kills"] for one in found), sum(one["points"] for one in found)
    say(f"{what}s: {kills} kills at {points} port calls of two drivers; nothing done twice")
    assert kills >= 60
