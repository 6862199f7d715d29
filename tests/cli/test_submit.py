"""`tenlines submit`: what is handed to the engine, what is said, what is refused."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_app import APP, NotingEngine, app_agent, queued, worked_on, write_app
from shopping import events_of

from tenlines.cli import fleets
from tenlines.cli.submit import read_delay
from tenlines.core.limits import Limits
from tenlines.errors import ConfigError
from tenlines.journal import open_journal
from tenlines.ports import SystemClock

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


# --- a task -----------------------------------------------------------------------------------------------


def test_the_id_is_printed_and_the_run_is_in_the_journal(tenlines: Tenlines, engine: NotingEngine) -> None:
    done = tenlines("submit", "look", "--app", "app.py")
    assert (done.code, done.err) == (0, "")
    (start,) = events_of(done.out.strip())
    assert (start.agent, start.version, start.queue, start.owner) == ("support", "2", "default", "")
    (order,) = engine.orders
    assert (order.run_id, order.lane) == (start.run_id, ("default", "support", "2"))


def test_every_option_reaches_the_order(tenlines: Tenlines, engine: NotingEngine) -> None:
    words = ("--queue", "reports", "--priority", "1", "--in", "2h", "--max-steps", "7", "--agent", "support")
    done = tenlines("submit", "look", "--app", "app.py", *words, "--json")
    (order,) = engine.orders
    assert (order.queue, order.priority, order.delay_s) == ("reports", 1, 7200.0)
    assert json.loads(done.out) == {
        "run_id": order.run_id,
        "agent": "support",
        "version": "2",
        "queue": "reports",
        "priority": 1,
        "delay_s": 7200.0,
        "has_worker": True,
    }
    assert events_of(order.run_id)[0].settings.limits == Limits(steps=7)


def test_the_same_key_is_the_same_run(tenlines: Tenlines, engine: NotingEngine) -> None:
    first, second = (tenlines("submit", "look", "--app", "app.py", "--key", "mail-1").out for _ in range(2))
    assert first == second
    assert len(open_journal().runs()) == 1
    other = tenlines("submit", "pay", "--app", "app.py", "--key", "mail-1")
    assert (other.code, other.out) == (2, "")
    assert "was used for another task" in other.err


def test_the_task_comes_from_standard_input_and_the_file_from_the_environment(
    tenlines: Tenlines, engine: NotingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"look\n")))
    monkeypatch.setenv("TENLINES_APP", "app.py")
    run_id = tenlines("submit", "-").out.strip()
    assert events_of(run_id)[0].messages[-1].parts[0].text == "look"


def test_that_no_worker_is_there_is_said_with_the_command_that_starts_one(
    tenlines: Tenlines, engine: NotingEngine
) -> None:
    engine.at_work = 0
    done = tenlines("submit", "look", "--app", "app.py", "--queue", "reports")
    assert done.code == 0
    assert "no worker takes the runs of support@2 in the queue reports at the moment" in done.err
    assert "tenlines worker --app FILE.py --queue reports" in done.err
    assert tenlines("submit", "look", "--app", "app.py", "--quiet").err == ""
    engine.is_lost = True  # then nobody knows
    assert tenlines("submit", "look", "--app", "app.py").err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "TASK is missing"),
        ((" ", "--app", "app.py"), "the task is empty"),
        (("x",), "name the file that has your agents: --app FILE.py, or $TENLINES_APP"),
        (("x", "--app", "nope.py"), "nope.py: there is no such file"),
        (("x", "--app", "app.py", "--agent", "y"), "there is no agent named 'y' in this fleet; agents: support"),
        (("x", "--app", "two.py"), "there are 2 agents: name one with --agent: support, billing"),
        (("x", "--app", "app.py", "--priority", "6"), "--priority"),
        (("x", "--app", "app.py", "--queue", "a/b"), "'a/b' is no name of a queue"),
        (("x", "--app", "app.py", "--journal", "memory"), "a journal in memory is nobody else's"),
        (("x", "--app", "app.py", "--max-steps", "y"), "--max-steps must be a whole number"),
        (("x", "--app", "app.py", "--in", "soon"), "--in must be a length of time"),
        (("x", "--app", "app.py", "--in", "5", "--at", "2199-01-01"), "leave one of them out"),
        (("x", "--app", "app.py", "--at", "tomorrow"), "--at must be a time"),
        (("x", "--app", "app.py", "--at", "2001-01-01"), "that was"),
        (("x", "--again", "abc"), "leave TASK out, or --again"),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_submitted(
    tenlines: Tenlines, engine: NotingEngine, home: Path, words: tuple[str, ...], said: str
) -> None:
    (home / "two.py").write_text(f"{APP}\nbilling = Agent(['paid'], name='billing')\n")
    done = tenlines("submit", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not engine.orders
    assert not (home / "journal.db").exists() or not open_journal().runs()


@pytest.mark.parametrize("address", ["here", "host:0", "host:99999", "http://host:1", ":7233", "a b:1"])
def test_an_address_that_is_none_is_refused(tenlines: Tenlines, monkeypatch: Any, address: str) -> None:
    done = tenlines("submit", "look", "--app", "app.py", "--temporal", address)
    assert (done.code, done.err) == (
        2,
        f"tenlines: --temporal must be HOST:PORT, as in 127.0.0.1:7233; got {address!r}\n",
    )
    monkeypatch.setenv("TENLINES_TEMPORAL", address)
    assert "$TENLINES_TEMPORAL must be HOST:PORT" in tenlines("submit", "look", "--app", "app.py").err


def test_without_the_extra_it_is_said_what_to_install(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith(("temporalio", "tenlines.fleet.temporal"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "temporalio", None)
    for words in (("submit", "look", "--app", "app.py"), ("worker", "--app", "app.py")):
        done = tenlines(*words)
        assert done.code == 2
        assert "pip install 'tenlines[fleet]'" in done.err


def test_times_are_read_as_people_write_them() -> None:
    seconds = {"90": 90, "90s": 90, "1.5 m": 90, "15min": 900, "2h": 7200, "1D": 86_400}
    assert {typed: read_delay(typed, None) for typed in seconds} == seconds
    assert read_delay(None, None) == 0
    now = SystemClock.now()
    assert read_delay(None, "2100-01-01T00:00:00Z") == pytest.approx(4_102_444_800 - now, abs=60)
    local = read_delay(None, "2100-01-01T00:00")
    assert abs(local - (4_102_444_800 - now)) < 15 * 3600  # the time of this machine
    for typed in ("", "-5", "5 weeks", "1e3", "٣"):
        with pytest.raises(ConfigError):
            read_delay(typed, None)


# --- again --------------------------------------------------------------------------------------------------


def test_a_run_that_ended_at_a_limit_is_put_back_with_a_higher_one(tenlines: Tenlines, engine: NotingEngine) -> None:
    run_id = queued("look", limits=Limits(steps=1, tool_calls=50), queue="reports")
    assert worked_on(run_id).status == "max_steps"
    engine.refuses = 1  # it has not let go of it yet
    done = tenlines("submit", "--again", run_id, "--max-steps", "9", "--priority", "2")
    assert (done.code, done.out) == (0, f"{run_id}\n")
    (order,) = engine.orders
    assert order.again
    assert (order.lane, order.priority) == (("reports", "support", "2"), 2)
    assert order.limits == Limits(steps=9, tool_calls=50)


def test_a_run_that_is_not_over_is_handed_in_where_the_engine_has_lost_it(
    tenlines: Tenlines, engine: NotingEngine
) -> None:
    not_begun, paused = queued("look", queue="reports"), queued("pay")
    assert worked_on(paused).status == "awaiting_approval"
    for run_id in (not_begun, paused):
        assert tenlines("submit", "--again", run_id).out == f"{run_id}\n"
    assert [(one.run_id, one.again) for one in engine.orders] == [(not_begun, True), (paused, False)]


def test_what_cannot_be_put_back_is_refused_with_the_command_that_helps(
    tenlines: Tenlines, engine: NotingEngine
) -> None:
    engine.refuses = 99  # it knows all of them
    cases = {queued("look"): "is not over, and its fleet has it: tenlines wait "}
    answered, paused = queued("hello"), queued("pay")
    worked_on(answered)
    worked_on(paused)
    cases |= {answered: "is answered already", paused: "waits for a decision, and goes on by itself"}
    of_no_fleet = app_agent().run_sync("look", limits=Limits(steps=1), raise_on_stop=False).run_id
    cases |= {of_no_fleet: f"is of no fleet; go on with it here: tenlines resume {of_no_fleet}"}
    for run_id, said in cases.items():
        done = tenlines("submit", "--again", run_id)
        assert (done.code, done.out) == (2, "")
        assert said in done.err
    assert not engine.orders
    assert "no run begins with" in tenlines("submit", "--again", "zzz").err
    assert "leave --queue out" in tenlines("submit", "--again", answered, "--queue", "x").err


def test_an_engine_that_does_not_let_go_of_a_run_is_named(
    tenlines: Tenlines, engine: NotingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenlines.cli.submit.PATIENCE_S", 0.0)
    run_id = queued("look", limits=Limits(steps=1))
    worked_on(run_id)
    engine.refuses = 99
    done = tenlines("submit", "--again", run_id)
    assert done.code == 3
    assert f"has not let go of run {run_id} yet" in done.err
