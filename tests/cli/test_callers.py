"""Runs that are calls of other runs, on the command line: what waits in them, who goes on, how to look at them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shopping import events_of

from tenlines import Agent, Reply, ToolCall
from tenlines.cli.callers import is_waited_for, undecided
from tenlines.core import events as ev
from tenlines.core.children import child_id
from tenlines.core.result import paused_calls
from tenlines.drivers.callers import caller_of, outermost
from tenlines.drivers.recorder import machine_of
from tenlines.journal import open_journal
from tenlines.tools.load import load_tools

Tenlines = Callable[..., Any]
CREW = '''
from tenlines import Agent, Reply, ToolCall, tool

@tool(approve=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"

def model(messages, request):
    return Reply(calls=(ToolCall("c", "pay", '{"amount": 5}'),)) if request.step == 1 else "payment done"

payer = Agent(model, [pay], name="payer").as_tool()
'''


def boss(messages: list[Any], request: Any) -> Any:
    """Has somebody pay."""
    return Reply(calls=(ToolCall("p", "payer", '{"task": "pay"}'),)) if request.step == 1 else "all done"


@pytest.fixture
def paused(home: Path) -> str:
    """A run that waits with the one under it."""
    (home / "crew.py").write_text(CREW)
    payer = next(one for one in load_tools(home / "crew.py") if one.spec.name == "payer")
    assert payer.spec.source == str(home / "crew.py")
    return Agent(boss, [payer]).run_sync("go").run_id


def test_both_runs_are_listed_and_the_outer_one_is_what_goes_on(tenlines: Tenlines, paused: str) -> None:
    child = child_id(f"{paused}:1:0")
    listed = tenlines("pending").out
    assert f"run {child}, a call of run {paused}" in listed
    assert f"1.1  payer  its run {child} waits for a decision" in listed
    assert f"when that is decided: tenlines resume {paused}" in listed
    lines = [json.loads(line) for line in tenlines("pending", "--json").out.splitlines()]
    assert [(one["run_id"], one["name"], one.get("child")) for one in lines] == [
        (child, "pay", None),
        (paused, "payer", child),
    ]
    done = tenlines("approve", child)
    assert f"go on: tenlines resume {paused}" in done.out
    assert f"all that is decided; go on: tenlines resume {paused}" in tenlines("pending").out


def test_showing_a_run_names_those_under_it_and_how_to_look_at_them(tenlines: Tenlines, paused: str) -> None:
    child = child_id(f"{paused}:1:0")
    shown = tenlines("show", paused).out
    assert f"its run: tenlines show {child}" in shown
    assert f"its run {child} waits for a decision: pay (1.1 of run {child})" in shown
    assert "tenlines pending" in shown
    assert f"call of run {paused}, call 1.1" in tenlines("show", child).out
    assert child in tenlines("cost", paused).out


def test_who_calls_whom_is_known_from_the_ids_alone(paused: str, home: Path) -> None:
    store, child = open_journal(None), child_id(f"{paused}:1:0")
    assert (caller_of(store, child), outermost(store, child), is_waited_for(store, child)) == (paused,) * 3
    assert (caller_of(store, paused), outermost(store, paused), is_waited_for(store, paused)) == ("", paused, "")
    (one,) = paused_calls(machine_of(store, paused).state)
    assert [call.name for call in undecided(store, one)] == ["pay"]
    Agent(boss, [], journal=store).approve(child)
    assert undecided(store, one) == []


def test_a_run_that_is_a_call_is_left_to_the_one_that_calls_where_all_are_taken_up(
    tenlines: Tenlines, paused: str
) -> None:
    store, child = open_journal(None), child_id(f"{paused}:1:0")
    Agent(boss, [], journal=store).approve(child)
    seq = len(events_of(child))
    store.append(child, ev.RunResumed(seq=seq, at=2e9, owner="host boot 1 2.0 n"))  # who then died
    store.commit(child)
    done = tenlines("resume", "--all", "--take-over")
    assert f"{child}  skipped   it is a call of run {paused}, which takes it up" in done.out


def test_a_run_that_is_a_call_of_one_that_goes_on_is_not_deleted(tenlines: Tenlines, paused: str) -> None:
    store, child = open_journal(None), child_id(f"{paused}:1:0")
    pay = load_tools("crew.py")[0].loaded_from("")  # as its agent has it
    Agent(boss, [], journal=store).approve(child)
    alone = Agent(lambda messages, request: "payment done", [pay], journal=store)
    assert alone.resume_sync(child).status == "answered"
    assert '"runs": []' in tenlines("prune", "--older-than", "0d", "--dry-run", "--json").out.replace('":[', '": [')
    again = Agent(boss, [one for one in load_tools("crew.py") if one.spec.name == "payer"], journal=store)
    assert again.resume_sync(paused).answer == "all done"
    assert child in tenlines("prune", "--older-than", "0d", "--dry-run", "--json").out


@pytest.mark.slow
def test_from_the_command_line_to_the_end_though_each_command_is_a_process_of_its_own(
    tenlines: Tenlines, server: Any, home: Path
) -> None:
    (home / "crew.py").write_text(CREW)
    server.replies = [server.calls(("payer", {"task": "pay the five"})), server.says("all done")]
    begun = tenlines("run", "Have it paid", "--model", server.model, "--tools", "crew.py", "--ask", "payer")
    assert begun.code == 5
    outer = open_journal(None).runs(1)[0].run_id
    begun = tenlines("approve", outer, "--resume")
    assert begun.code == 5, "the call itself was asked about first"
    child = child_id(f"{outer}:1:0")
    assert f"its run {child} waits" in begun.err
    done = tenlines("approve", child, "--resume")
    assert (done.code, done.out.strip()) == (0, "all done")
    assert [run.status for run in open_journal(None).runs()] == ["answered", "answered"]
