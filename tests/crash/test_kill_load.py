"""Many runs at once, killed at random moments, taken up by the next process, until all are through."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash_load import Load
from postgres_server import PostgresServer

PROGRAM = Path(__file__).with_name("crash_load.py")


def outcome_of(load: Load, restart: Callable[[], None]) -> dict[str, Any]:
    """Run the whole of it; `restart` restarts the store when that is due."""
    command = [sys.executable, "-W", "error", str(PROGRAM), msgspec.json.encode(load).decode()]
    last: dict[str, Any] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                last = msgspec.json.decode(line)
                if "restart" in last:
                    restart()
                    process.stdin.write("done\n")
                    process.stdin.flush()
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 0
    return last


def no_restart() -> None:
    raise AssertionError("the store is a file")


def listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} {number:,}" for what, number in counts.items() if number)


@pytest.mark.slow
def test_runs_in_a_file_that_are_killed_at_random_come_to_their_right_ends(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    load = Load(store=str(tmp_path / "journal.db"), effects=str(tmp_path / "effects"), runs=20, kills=30, seed=7)
    outcome = outcome_of(load, no_restart)
    say(f"20 runs at once in SQLite: {listed(outcome['lives'])}; {listed(outcome['counts'])}")
    assert outcome["wrong"] == []
    assert outcome["lives"]["kills"] == 30
    assert outcome["counts"]["in doubt"] > 0


@pytest.mark.slow
def test_runs_in_postgres_survive_a_hundred_kills_and_five_of_the_server(
    postgres_server: PostgresServer, tmp_path: Path, say: Callable[[str], None]
) -> None:
    load = Load(postgres_server.new_database(), str(tmp_path / "effects"), runs=50, kills=100, restarts=5, seed=3)
    outcome = outcome_of(load, lambda: postgres_server.restart(hard=True))
    say(f"50 runs at once in Postgres: {listed(outcome['lives'])}; {listed(outcome['counts'])}")
    assert outcome["wrong"] == []
    assert outcome["lives"]["kills"] == 100
    assert outcome["lives"]["restarts"] == 5
    assert outcome["counts"]["in doubt"] > 0
