"""Whoever follows a plan is killed at its port calls; whoever carries on repeats nothing that is finished."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("plan_points.py")
STRIDE = 4
"""Each driver is killed at every so manieth point; all of them are gone through by starting at 0, 1, 2, ..."""


@pytest.mark.slow
def test_a_plan_that_was_killed_at_any_port_call_comes_to_its_end(tmp_path: Path, say: Callable[[str], None]) -> None:
    working = []
    for first, driver in enumerate(("sync", "asyncio")):
        (tmp_path / driver).mkdir()
        command = [sys.executable, "-W", "error", str(PROGRAM), str(tmp_path / driver), driver, str(first), str(STRIDE)]
        working.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    found = [json.loads(process.communicate()[0]) for process in working]
    assert [one["wrong"] for one in found] == [[], []]
    assert all(one["kills"] >= 0.9 * one["points"] / STRIDE for one in found)
    kills = sum(one["kills"] for one in found)
    say(f"plans: {kills} kills at {sum(one['points'] for one in found)} port calls of two drivers; nothing done twice")
    assert kills >= 100
