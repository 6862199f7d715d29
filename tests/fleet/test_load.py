"""Many runs on four workers that are killed at random, while Postgres and Temporal are restarted."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleet_load import Load
from postgres_server import PostgresServer
from temporal_server import TemporalServer

PROGRAM = Path(__file__).with_name("fleet_load.py")


def outcome_of(load: Load, restart: Callable[[str], None]) -> dict[str, Any]:
    """Run the whole of it. Restarts are made beside it: it goes on meanwhile."""
    command = [sys.executable, str(PROGRAM), msgspec.json.encode(load).decode()]
    found: dict[str, Any] = {}
    restarting: list[threading.Thread] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said = json.loads(line)
                if "restart" in said:
                    restarting.append(threading.Thread(target=restart, args=(said["restart"],)))
                    restarting[-1].start()
                else:
                    found |= said
        except BaseException:
            process.kill()
            raise
    for thread in restarting:
        thread.join()
    assert process.returncode == 0
    return found


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_thousand_runs_end_right_through_kills_and_restarts(
    postgres_server: PostgresServer,
    temporal_server: TemporalServer,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    load = Load(
        store=postgres_server.new_database(),
        temporal=temporal_server.address,
        effects=str(tmp_path / "effects"),
        runs=2_000,
        kills=40,
        restarts={"postgres": 3, "temporal": 3},
    )

    def restart(server: str) -> None:
        if server == "postgres":
            postgres_server.restart(hard=True)
        else:
            temporal_server.restart(hard=True)

    outcome = outcome_of(load, restart)
    counts = ", ".join(
        f"{what} {number:,}" for what, number in (outcome["lives"] | outcome["counts"]).items() if number
    )
    say(f"2,000 runs on 4 workers: {outcome['seconds']:.0f} s; {counts}")
    assert outcome["wrong"] == []
    assert outcome["lives"]["kills"] == 40
    assert [outcome["lives"][f"restarts of {one}"] for one in ("postgres", "temporal")] == [3, 3]
    assert outcome["counts"]["steps"] >= 5 * 2_000
    assert outcome["drained"] == [0, 0, 0, 0]
