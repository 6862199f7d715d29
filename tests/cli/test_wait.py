"""`tenlines wait`: until a run that others work on is over, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fleet_app import NotingEngine, app_agent, queued, worked_on, write_app

from tenlines.cli import awaiting, fleets
from tenlines.cli.awaiting import Patience, wait_for
from tenlines.cli.options import Output
from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.drivers.recorder import machine_of
from tenlines.journal import open_journal
from tenlines.journal.owner import new_owner

Tenlines = Callable[..., Any]


@pytest.fixture(autouse=True)
def app(home: Path) -> None:
    write_app(home)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> NotingEngine:
    """In place of Temporal."""
    one = NotingEngine()
    monkeypatch.setattr(fleets, "engine_at", lambda *about: one)
    return one


@contextmanager
def meanwhile(action: Callable[[], object]) -> Iterator[None]:
    """Do something in a thread a moment from now."""
    timer = threading.Timer(0.15, action)
    timer.start()
    yield
    timer.join(20)


# --- how it ends --------------------------------------------------------------------------------------------


def test_the_answer_of_a_run_that_is_over_goes_to_standard_output(tenlines: Tenlines) -> None:
    run_id = queued("hello")
    worked_on(run_id)
    done = tenlines("wait", run_id)
    assert (done.code, done.out, done.err) == (0, "done: hello\n", "")


@pytest.mark.slow
def test_it_waits_for_a_worker_and_shows_what_comes(tenlines: Tenlines) -> None:
    run_id = queued("look")
    with meanwhile(lambda: worked_on(run_id)):
        done = tenlines("wait", run_id[:6], "--json")
    assert done.code == 0
    kinds = [json.loads(line)["type"] for line in done.out.splitlines()]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "RunEnded"
    assert kinds.count("CallReturned") == 3


def test_a_pause_ends_it_with_the_commands_that_decide_and_nothing_to_resume(tenlines: Tenlines) -> None:
    run_id = queued("pay")
    worked_on(run_id)
    done = tenlines("wait", "last", "--journal", "journal.db")
    assert (done.code, done.out) == (5, "")
    assert "decide, and its workers go on:" in done.err
    assert f"\n  tenlines approve {run_id} --journal journal.db\n" in done.err
    assert f"tenlines deny {run_id} --journal journal.db --reason ..." in done.err
    assert "resume" not in done.err


def test_a_limit_ends_it_with_the_command_that_puts_the_run_back(tenlines: Tenlines) -> None:
    run_id = queued("look", limits=Limits(steps=2))
    worked_on(run_id)
    done = tenlines("wait", run_id)
    assert (done.code, done.out) == (1, "")
    assert f"  tenlines submit --again {run_id} --max-steps 4\n" in done.err


@pytest.mark.slow
def test_a_run_that_was_put_back_is_waited_for_beyond_its_old_end(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = queued("look", limits=Limits(steps=2))
    worked_on(run_id)
    store = open_journal()
    past = machine_of(store, run_id).state.seq + 1
    patience = Patience(Output(False, False, False), 20.0, None, lambda: None, past=past)
    with meanwhile(lambda: worked_on(run_id, Limits(steps=9))):
        assert wait_for(store, run_id, patience) == 0
    assert capsys.readouterr().out == "done: look\n"


@pytest.mark.slow
def test_when_the_time_is_over_the_code_says_so_and_the_run_goes_on(tenlines: Tenlines) -> None:
    run_id = queued("look")
    done = tenlines("wait", run_id, "--timeout", "0.3")
    assert (done.code, done.out) == (124, "")
    assert done.err == f"run {run_id} is not over yet, and goes on; wait again: tenlines wait {run_id}\n"
    assert worked_on(run_id).status == "answered"


# --- who is there -------------------------------------------------------------------------------------------


def dead_owner() -> str:
    """The name of a process that is no more."""
    host, boot, *_ = new_owner().split("/")
    return f"{host}/{boot}/{2**22 - 1}/1/x"


def begun_and_lost(run_id: str) -> None:
    """Record that a worker took the run up, which died since."""
    store = open_journal()
    machine = machine_of(store, run_id)
    at = machine.state.start.at if machine.state.start else 0.0
    store.append(run_id, ev.RunResumed(seq=machine.state.seq + 1, at=at, tools=machine.state.specs, owner=dead_owner()))
    store.commit(run_id)


@pytest.mark.slow
def test_a_worker_that_dies_does_not_end_the_waiting(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "LOOK_S", 0.05)
    run_id = queued("look")
    begun_and_lost(run_id)
    with meanwhile(lambda: worked_on(run_id)):
        done = tenlines("wait", run_id)
    assert (done.code, done.out) == (0, "done: look\n")


def test_a_run_of_no_fleet_is_not_waited_for_when_its_process_is_gone(
    tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "LOOK_S", 0.05)
    run_id = app_agent().run_sync("look", limits=Limits(steps=1), raise_on_stop=False).run_id
    begun_and_lost(run_id)
    done = tenlines("wait", run_id)
    assert done.code == 2
    assert f"is of no fleet, and its process is gone; go on: tenlines resume {run_id}" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("at_work", [0, 1])
def test_that_nobody_is_there_is_said_after_a_silence_once(
    tenlines: Tenlines, engine: NotingEngine, monkeypatch: pytest.MonkeyPatch, at_work: int
) -> None:
    monkeypatch.setattr(awaiting, "IDLE_S", 0.1)
    engine.at_work = at_work
    done = tenlines("wait", queued("look", queue="reports"), "--timeout", "0.5")
    assert done.code == 124
    said = "nothing has happened for 0.1 s: no worker takes the runs of support@2 in the queue reports"
    assert done.err.count(said) == (0 if at_work else 1)
    assert tenlines("wait", "last", "--timeout", "0.3", "--quiet").err.count("no worker") == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_named", [True, False])
def test_an_engine_that_cannot_be_reached_is_told_where_somebody_named_it(
    tenlines: Tenlines, engine: NotingEngine, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    monkeypatch.setattr(awaiting, "IDLE_S", 0.1)
    engine.is_lost = True
    if is_named:
        monkeypatch.setenv("TENLINES_TEMPORAL", "127.0.0.1:1")
    done = tenlines("wait", queued("look"), "--timeout", "0.4")
    assert ("there is nothing here" in done.err) == is_named


def test_what_does_not_fit_is_refused(tenlines: Tenlines) -> None:
    assert tenlines("wait", "last").code == 2  # there is no journal
    run_id = queued("look")
    assert "--timeout must be" in tenlines("wait", run_id, "--timeout", "soon").err
    assert "--temporal must be HOST:PORT" in tenlines("wait", run_id, "--temporal", "x").err
    assert "no run begins with 'zz'" in tenlines("wait", "zz").err


@pytest.mark.slow
def test_ctrl_c_only_looks_away(process: Callable[..., Any]) -> None:
    run_id = queued("look")
    waiting = process("wait", run_id, terminal=True)
    waiting.wait_for(f"run {run_id}")
    waiting.interrupt()
    done = waiting.end()
    assert done.code == 130
    assert f"the run goes on; wait again: tenlines wait {run_id}" in done.err
    assert open_journal().runs(1)[0].status == "open"


@pytest.mark.slow
def test_when_nobody_reads_the_events_any_more_it_ends(process: Callable[..., Any]) -> None:
    run_id = queued("look")
    reader, writer = os.pipe()
    os.close(reader)
    waiting = process("wait", run_id, "--json", stdout=writer)
    os.close(writer)
    assert waiting.end().code == 1
