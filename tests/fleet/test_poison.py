"""A run that costs its workers their lives is set aside, and the others go on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_poison import OTHERS, TRIES
from fleet_world import Outside, judged
from temporal_server import TemporalServer

from tenlines import Agent, Limits, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.fleet import Fleet
from tenlines.fleet.pacing import LocalPace
from tenlines.fleet.places import LocalPlaces
from tenlines.fleet.temporal import Temporal
from tenlines.fleet.worker import Limits as FleetLimits
from tenlines.fleet.worker import Worker
from tenlines.journal import open_journal

PROGRAM = Path(__file__).with_name("fleet_poison.py")
STEPS = 60
SECRET = "a-task-that-only-the-journal-knows"


@pytest.mark.slow
def test_a_poisoned_run_is_set_aside_after_so_many_workers_and_stops_no_other(
    temporal_server: TemporalServer, tmp_path: Path, say: Callable[[str], None]
) -> None:
    journal, effects = str(tmp_path / "journal.db"), str(tmp_path / "effects")
    command = [sys.executable, str(PROGRAM), journal, temporal_server.address, effects]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=100)
    died = json.loads(done.stdout.splitlines()[-1])["died"]
    store, seen = open_journal(journal), Outside(effects).seen()
    (bad,) = [one for one in store.runs() if one.agent == "poison"]
    end = [event for event in store.read(bad.run_id) if isinstance(event, ev.RunEnded)][-1]
    say(f"poison: {died} workers died, then: {end.status}, {end.reason}")
    assert died == TRIES
    assert end.status == "cancelled"
    assert f"set aside: {TRIES} workers died while they worked on it" in end.reason
    others = [one for one in store.runs() if one.agent != "poison"]
    assert len(others) == OTHERS
    for one in others:
        assert judged(one.task, store.read(one.run_id), seen)[0] == []


@pytest.mark.slow
def test_the_history_of_the_engine_is_small_and_knows_no_text(
    temporal_server: TemporalServer, tmp_path: Path, say: Callable[[str], None]
) -> None:
    @tool
    def put(item: str) -> str:
        """Puts."""
        return f"put {item}"

    def model(messages: Any, request: Any) -> Any:
        call = ToolCall("c", "put", f'{{"item": "{SECRET} {request.step}"}}')
        return Reply(calls=(call,)) if request.step < STEPS else f"done {SECRET}"

    async def story() -> tuple[int, str]:
        engine = Temporal(temporal_server.address)
        store = open_journal(tmp_path / "journal.db")
        agent = Agent(model, [put], journal=store, name="long", instructions=SECRET, limits=Limits(steps=STEPS))
        leaving = asyncio.Event()
        worker = Worker(Fleet([agent]), store, engine, FleetLimits(LocalPace({}), LocalPlaces()))
        serving = asyncio.create_task(worker.serve(leaving))
        run_id = await agent.submit(SECRET, engine)
        assert (await agent.wait(run_id)).steps == STEPS
        handle = (await engine.client()).get_workflow_handle(f"tenlines-{run_id}")
        await handle.result()
        history = await handle.fetch_history()
        leaving.set()
        await serving
        return len(history.events), history.to_json()

    events, text = asyncio.run(story())
    say(f"the engine's history of a run of {STEPS} steps: {events} events, {len(text):,} characters of JSON")
    assert events <= 12
    assert SECRET not in text
