"""`tenlines say` and `tenlines cancel`: what one process has to say to a run of another."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shopping import SHOP, events_of, starter
from waiting_for import until

from tenlines import Agent
from tenlines.core import events as ev
from tenlines.drivers import delivery
from tenlines.journal import open_journal

Tenlines = Callable[..., Any]


@pytest.fixture
def working(process: Callable[..., Any], server: Any, home: Path) -> Callable[..., Any]:
    """How to begin, in another process, a run whose tool works until `go` is there."""

    def begin(*, last: Any = None) -> Any:
        server.replies = [server.calls(("wait", {"for_file": str(home / "go")})), last or server.says("all done")]
        started = process("run", "Wait", "--model", server.model, "--tools", "tools.py")
        until(lambda: (home / "go.started").exists())
        return started

    return begin


def told(server: Any, request: int) -> list[Any]:
    """What stands in the messages of a request."""
    return [message.get("content") for message in server.requests[request]["messages"]]


# --- a run of another process -----------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_said_is_heard_by_a_run_of_another_process(
    tenlines: Tenlines, working: Any, server: Any, home: Path
) -> None:
    run = working()
    done = tenlines("say", "last", "Use the archive.", "--by", "Carla")
    (run_id,) = [one.run_id for one in open_journal().runs()]
    assert (done.code, done.out, done.err) == (0, f"run {run_id} has heard it\n", "")
    (home / "go").touch()
    assert run.end().code == 0
    assert told(server, 1)[-1] == "Use the archive."
    (said,) = (event for event in events_of() if isinstance(event, ev.MessageQueued))
    assert (said.by, said.mail) == ("Carla", 1)
    assert "Carla said: Use the archive." in tenlines("show", "last").out


@pytest.mark.slow
def test_a_run_of_another_process_is_stopped_at_once_and_can_be_resumed(
    tenlines: Tenlines, working: Any, server: Any, home: Path
) -> None:
    run = working()
    done = tenlines("cancel", "last", "--reason", "lunch")
    assert done.code == 0
    assert done.out.endswith(" stops\n")
    ended = run.end()
    assert ended.code == 130  # as after Ctrl-C
    log = events_of()
    (stop,) = (event for event in log if isinstance(event, ev.CancelRequested))
    assert (stop.mode, stop.reason, stop.mail, bool(stop.by)) == ("now", "lunch", 1, True)
    assert [event.outcome for event in log if isinstance(event, ev.CallAbandoned)] == ["in_doubt"]
    assert (log[-1].status, log[-1].reason) == ("cancelled", "lunch")
    assert f"cancel by {stop.by}: stop at once: lunch" in tenlines("show", "last").out
    assert tenlines("resume", "last").out == "all done\n"  # heard once


@pytest.mark.slow
def test_with_drain_what_is_running_finishes(tenlines: Tenlines, working: Any, home: Path) -> None:
    run = working()
    value = json.loads(tenlines("cancel", "last", "--drain", "--json").out)
    run_id = open_journal().runs()[0].run_id
    assert value == {"run_id": run_id, "number": 1, "fate": "heard", "status": "open", "next": ""}
    (home / "go").touch()
    run.end()
    log = events_of()
    assert sum(isinstance(event, ev.CallReturned) for event in log) == 1
    assert log[-1].status == "cancelled"


@pytest.mark.slow
def test_while_the_model_is_at_work_it_is_given_up(tenlines: Tenlines, process: Any, server: Any) -> None:
    gate = threading.Event()
    server.replies = [gate]
    run = process("run", "Think", "--model", server.model)
    until(lambda: server.requests)
    assert tenlines("cancel", "last").code == 0
    assert run.end().code == 130
    assert events_of()[-1].status == "cancelled"
    gate.set()


# --- a run that nobody works on ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_whose_process_was_killed_hears_it_when_it_is_resumed(
    tenlines: Tenlines, working: Any, server: Any, home: Path
) -> None:
    run = working()
    run.interrupt(signal.SIGKILL)
    run.popen.wait()
    done = tenlines("say", "last", "Go on.")
    run_id = open_journal().runs()[0].run_id
    assert done.code == 0
    assert done.out.splitlines() == [
        f"posted; nobody works on run {run_id}, so it is heard when the run is resumed",
        f"go on: tenlines resume {run_id}",
    ]
    assert tenlines("resume", "last").code == 0
    assert told(server, -1)[-1] == "Go on."


def test_a_run_that_waits_for_a_decision_hears_it_when_it_is_resumed_without_one(
    tenlines: Tenlines, server: Any, home: Path
) -> None:
    (home / "shop.py").write_text(SHOP)
    assert starter(tenlines, server)(("pay", {"amount": 500})).code == 5
    assert "so it is heard when the run is resumed" in tenlines("cancel", "last").out
    stopped = tenlines("resume", "last")
    assert (stopped.code, events_of()[-1].status) == (130, "cancelled")
    assert not (home / "done.txt").exists()


# --- refused ------------------------------------------------------------------------------------------------


def test_a_run_that_has_ended_hears_nothing(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("42")]
    tenlines("run", "x", "--model", server.model)
    said = tenlines("say", "last", "more")
    assert (said.code, said.out) == (2, "")
    assert "is answered, so nothing more can be said in it; start a new one with `run`" in said.err
    stopped = tenlines("cancel", "last")
    assert (stopped.code, stopped.out) == (2, "")
    assert "has ended as answered: there is nothing to stop" in stopped.err


@pytest.mark.parametrize("words", [("say", "nobody", "x"), ("cancel", "nobody")])
def test_a_run_or_a_journal_that_is_not_there_is_said_to_be(tenlines: Tenlines, server: Any, words: Any) -> None:
    assert tenlines(*words).code == 2
    server.replies = [server.says("42")]
    tenlines("run", "x", "--model", server.model)
    done = tenlines(*words)
    assert (done.code, done.out) == (2, "") or done.code == 4
    assert "no run begins with 'nobody'" in done.err


def test_a_run_that_ends_before_it_heard_it_is_said_to_have(
    tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch, server: Any, home: Path
) -> None:
    monkeypatch.setattr(delivery, "EVERY_S", 60.0)  # nothing is delivered in time

    gate = threading.Event()
    server.replies = [gate]
    run = threading.Thread(target=lambda: think(server.model))
    run.start()
    until(lambda: server.requests)
    threading.Timer(0.2, gate.set).start()
    done = tenlines("say", "last", "hello")
    run.join(20)
    run_id = open_journal().runs()[0].run_id
    assert (done.code, done.out) == (1, "")
    assert done.err == f"run {run_id} ended as answered before it heard it\n"


def think(model: str) -> None:
    """A run in this process."""
    Agent(model, journal=os.environ["TENLINES_JOURNAL"]).run_sync("Think")


# --- a run that moves -------------------------------------------------------------------------------------------


def test_what_a_run_has_not_heard_stays_where_it_was_posted(tenlines: Tenlines, server: Any, home: Path) -> None:
    (home / "shop.py").write_text(SHOP)
    starter(tenlines, server)(("pay", {"amount": 500}))
    tenlines("say", "last", "Be quick.")
    done = tenlines("export", "last", "-o", "run.jsonl")
    assert done.err.endswith("tenlines: what it was told and has not heard stays here: 1 letter\n")
    assert tenlines("import", "run.jsonl", "--journal", "there.db").code == 0
    assert tenlines("resume", "last", "--journal", "there.db", "--tools", "shop.py").code == 5
    assert "letter" not in tenlines("export", "last", "--journal", "there.db", "-o", "again.jsonl").err
