"""Forks, sessions, who owns a run, and `resume --all`, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shopping import SHOP, done_in, events_of, starter

from tenlines.core import events as ev
from tenlines.core.limits import Reservation
from tenlines.core.transcript import Reply, Text, ToolCall, User
from tenlines.journal import open_journal
from tenlines.journal.owner import new_owner
from tenlines.tools.load import load_tools

Tenlines = Callable[..., Any]


def owner_of(pid: int, host: str = "") -> str:
    """The name of another process."""
    here, boot, _, _, nonce = new_owner().split("/")
    return f"{host or here}/{boot}/{pid}/1/{nonce}"


DEAD, ELSEWHERE = owner_of(4_000_000), owner_of(7, "web-2")


@pytest.fixture
def cut_off(home: Path, server: Any) -> Callable[..., str]:
    """Write a run into the journal that was cut off in the middle of a call."""
    (home / "shop.py").write_text(SHOP)

    def write(run_id: str, owner: str, call: str = "look", *, model: str = "", tools: bool = True, **start: Any) -> str:
        specs = tuple(one.spec for one in load_tools("shop.py")) if tools else ()
        if not tools:
            specs = (ev.ToolSpec("look", read_only=True),)
        said = (User((Text(f"task of {run_id}"),)),)
        reply = Reply("", (ToolCall("c1", call, '{"text": "a"}' if call == "mail" else "{}"),), "tool_calls")
        journal = open_journal()
        for seq, (kind, fields) in enumerate(
            (
                (ev.RunStarted, {"run_id": run_id, "agent": "a", "model": model or server.model, "messages": said,
                                 "tools": specs, "owner": owner, **start}),
                (ev.StepStarted, {"step": 1, "attempt": 1, "reserved": Reservation()}),
                (ev.ModelReplied, {"step": 1, "reply": reply}),
                (ev.CallStarted, {"step": 1, "position": 0, "key": f"{run_id}:1:0"}),
            )
        ):  # fmt: skip
            journal.append(run_id, kind(seq=seq, at=1000.0 + seq, **fields))
        journal.commit(run_id)
        return run_id

    return write


# --- who owns a run -----------------------------------------------------------------------------------


def test_runs_tells_a_run_that_is_worked_on_from_one_whose_process_is_gone(
    cut_off: Callable[..., str], tenlines: Tenlines
) -> None:
    mine = new_owner()
    cut_off("alive", mine)
    cut_off("dead", DEAD)
    cut_off("elsewhere", ELSEWHERE)
    out = tenlines("runs").out
    assert f"open, process {mine.split('/')[2]} " in out
    assert "open, its process is gone" in out
    assert "open, process 7 on web-2" in out
    rows = {row["run_id"]: row for row in map(json.loads, tenlines("runs", "--json").out.splitlines())}
    assert {name: row["process_is_gone"] for name, row in rows.items()} == {
        "alive": False, "dead": True, "elsewhere": None,
    }  # fmt: skip
    assert rows["dead"]["steps"] == 1


def test_show_says_who_works_on_an_open_run(cut_off: Callable[..., str], tenlines: Tenlines) -> None:
    cut_off("alive", new_owner())
    cut_off("dead", DEAD)
    cut_off("elsewhere", ELSEWHERE)
    assert "tenlines resume" not in tenlines("show", "alive").out
    assert "go on: tenlines resume dead" in tenlines("show", "dead").out
    assert "if that process died, go on" in tenlines("show", "elsewhere").out


@pytest.mark.parametrize("command", [["resume"], ["undo", "--yes"]])
def test_a_run_is_left_to_a_process_that_is_alive(
    cut_off: Callable[..., str], tenlines: Tenlines, command: list[str]
) -> None:
    cut_off("alive", new_owner(), "mail")
    done = tenlines(command[0], "alive", *command[1:])
    assert done.code == 2
    assert "is being worked on by process" in done.err
    assert "--take-over" in done.err
    assert len(events_of("alive")) == 4


def test_take_over_takes_it_away(cut_off: Callable[..., str], tenlines: Tenlines, server: Any) -> None:
    cut_off("alive", new_owner())
    server.replies = [server.says("taken")]
    assert tenlines("resume", "alive", "--take-over").out == "taken\n"


def test_a_run_of_another_machine_is_resumed_by_name(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any
) -> None:
    cut_off("elsewhere", ELSEWHERE)
    server.replies = [server.says("here now")]
    assert tenlines("resume", "elsewhere").out == "here now\n"


def test_calls_in_doubt_are_listed_with_their_key(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any, home: Path
) -> None:
    cut_off("dead", DEAD, "mail")
    server.replies = [server.says("I do not know whether it was sent.")]
    done = tenlines("resume", "dead")
    assert done.code == 0
    assert "1 call is in doubt" in done.err
    assert 'mail(text="a")  key dead:1:0' in done.err
    assert done_in(home) == []


@pytest.mark.parametrize(("command", "did"), [("approve", ["mailed a"]), ("deny", [])])
def test_a_person_says_what_becomes_of_a_call_in_doubt(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any, home: Path, command: str, did: list[str]
) -> None:
    cut_off("dead", DEAD, "mail", settings=ev.Settings(on_in_doubt="ask"))
    done = tenlines("resume", "dead")
    assert done.code == 5
    assert "may it run again?" in done.err
    assert done_in(home) == []
    server.replies = [server.says("settled")]
    assert tenlines(command, "dead", "--resume").out == "settled\n"
    assert done_in(home) == did


def test_a_session_whose_run_was_cut_off_says_how_to_go_on(cut_off: Callable[..., str], tenlines: Tenlines) -> None:
    cut_off("dead", DEAD, session="trip", turn=1)
    done = tenlines("run", "x", "--session", "trip", "--model", "http://127.0.0.1:1/v1#x")
    assert done.code == 2
    assert done.err.endswith(": tenlines resume dead\n")


# --- resume --all -------------------------------------------------------------------------------------


def test_all_goes_on_with_what_is_known_to_be_dead_and_with_nothing_else(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any
) -> None:
    starter(tenlines, server)(("pay", {"amount": 500}))
    waits = json.loads(tenlines("runs", "--json").out)["run_id"]
    for name, owner in (("dead1", DEAD), ("alive", new_owner()), ("dead2", DEAD), ("elsewhere", ELSEWHERE)):
        cut_off(name, owner)
    server.replies = [server.says("first"), server.says("second")]
    done = tenlines("resume", "--all")
    assert done.code == 0
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in done.out.splitlines()[:-1]}
    assert rows["dead1"] == "answered first"
    assert rows["dead2"] == "answered second"
    assert "works on it" in rows["alive"]
    assert "--take-over" in rows["elsewhere"]
    assert rows[waits].startswith("waits for a decision: tenlines pending")
    assert done.out.splitlines()[-1] == "2 answered, 1 waits, 2 skipped"
    assert len(events_of("alive")) == len(events_of("elsewhere")) == 4


def test_a_run_that_cannot_be_resumed_keeps_no_other_from_going_on(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any
) -> None:
    cut_off("nomodel", DEAD, model="scripted")
    cut_off("notools", DEAD, tools=False)
    cut_off("good", DEAD)
    server.replies = [server.says("fine")]
    done = tenlines("resume", "--all", "--json", "--parallel", "3")
    assert done.code == 1
    rows = {row["run_id"]: row for row in map(json.loads, done.out.splitlines())}
    assert {name: row["kind"] for name, row in rows.items()} == {
        "nomodel": "failed", "notools": "failed", "good": "answered",
    }  # fmt: skip
    assert "--model" in rows["nomodel"]["text"]
    assert "--tools" in rows["notools"]["text"]
    assert len(events_of("nomodel")) == 4


def test_limits_apply_to_each_and_a_run_that_stops_is_not_fine(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any
) -> None:
    cut_off("a", DEAD)
    cut_off("b", DEAD)
    done = tenlines("resume", "--all", "--max-steps", "1")
    assert done.code == 1
    assert done.out.count("stopped   max_steps") == 2
    assert not server.requests


def test_with_nothing_to_do_it_says_so(cut_off: Callable[..., str], tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok")]
    tenlines("run", "x", "--model", server.model)
    done = tenlines("resume", "--all")
    assert (done.code, done.out) == (0, "no run lost its process; there was nothing to do\n")


def test_an_undo_that_was_cut_off_is_gone_on_with(
    cut_off: Callable[..., str], tenlines: Tenlines, server: Any, home: Path
) -> None:
    starter(tenlines, server)(("pay", {"amount": 5}))
    log = events_of()
    run_id, journal = log[0].run_id, open_journal()
    asked = ev.UndoRequested(seq=len(log), at=log[-1].at, tools=log[0].tools, owner=DEAD)
    journal.append(run_id, asked)
    journal.commit(run_id)
    done = tenlines("resume", "--all")
    assert done.code == 0
    assert "undone" in done.out
    assert done_in(home) == ["paid 5 to Ann", "took back 5 of 1:0"]


# --- forks --------------------------------------------------------------------------------------------


def test_a_fork_is_a_new_run_from_the_step_with_the_model_tools_and_limits_of_the_other(
    home: Path, tenlines: Tenlines, server: Any
) -> None:
    (home / "shop.py").write_text(SHOP)
    starter(tenlines, server)(("pay", {"amount": 5}), options=("--max-steps", "7", "--ask", "mail"))
    first = events_of()[0]
    server.replies = [server.says("another end")]
    done = tenlines("fork", "last", "--at", "2", "--say", "be quick")
    assert (done.code, done.out) == (0, "another end\n")
    start = events_of()[0]
    assert start.origin == f"{first.run_id}@2"
    assert start.settings.limits.steps == 7
    assert {spec.name for spec in start.tools if spec.approve} == {"pay", "mail"}
    assert server.requests[-1]["messages"][-1]["content"] == "be quick"
    assert done_in(home) == ["paid 5 to Ann"]
    assert f"from    run {first.run_id} at step 2" in tenlines("show", "last").out


def test_a_fork_from_a_step_that_never_was_is_a_mistake(home: Path, tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok")]
    tenlines("run", "x", "--model", server.model)
    done = tenlines("fork", "last", "--at", "9")
    assert done.code == 2
    assert "never came to step 9" in done.err


# --- sessions -----------------------------------------------------------------------------------------


def test_a_session_goes_on_where_its_last_run_ended(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok")]
    tenlines("run", "Alone", "--model", server.model)
    assert "session" not in tenlines("runs").out
    server.replies = [server.says("sunny")]
    tenlines("run", "The weather?", "--model", server.model, "--session", "trip")
    server.replies = [server.says("rain")]
    tenlines("run", "And then?", "--model", server.model, "--session", "trip")
    said = [one["content"] for one in server.requests[-1]["messages"]]
    assert said == ["The weather?", "sunny", "And then?"]
    head, second, first, _ = tenlines("runs").out.splitlines()
    assert head.split() == ["run", "when", "status", "steps", "session", "task"]
    assert "trip 2" in second
    assert "trip 1" in first
    assert "session trip, turn 2" in tenlines("show", "last").out
    assert len(tenlines("runs", "--session", "trip").out.splitlines()) == 3
    assert "belongs to the session 'x'" in tenlines("runs", "--session", "x").err


def test_a_session_that_waits_is_busy_and_says_what_to_do(home: Path, tenlines: Tenlines, server: Any) -> None:
    (home / "shop.py").write_text(SHOP)
    start = starter(tenlines, server)
    start(("pay", {"amount": 500}), options=("--session", "shop"))
    done = start(options=("--session", "shop"))
    assert done.code == 2
    assert "busy" in done.err
    assert "approve or deny" in done.err
    assert "tenlines pending " in done.err
    assert len(tenlines("runs").out.splitlines()) == 2
