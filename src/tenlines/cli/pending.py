"""`tenlines pending`: the calls that wait for somebody's decision."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tenlines.cli import options as opt

if TYPE_CHECKING:
    from tenlines.core.events import WaitingCall
    from tenlines.core.result import PausedCall, PendingCall
    from tenlines.ports import Journal

RunOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN", help="Of this run alone: its id, the beginning of one, or `last`.", show_default=False
    ),
]
Lines = Annotated[
    bool,
    typer.Option("--json", help="One JSON object a line, one for each call; a call whose own run waits has `child`."),
]


def pending(run: RunOrNone = None, journal: opt.JournalName = None, json: Lines = False) -> None:
    """List the calls that wait for somebody's decision: their arguments whole, why it is asked, how long it holds.

    A run that waits for a run under one of its calls is listed with it. Decide there; the run above is resumed.
    Of a run of a fleet, its workers go on as soon as all is decided.

    \b
    Examples:
      tenlines pending
      tenlines pending k2v9
      tenlines pending --json | jq -r '[.run_id, .place, .name] | @tsv'
    """
    try:
        store = opt.open_existing(journal)
    except opt.NoJournal:
        if journal is not None or run is not None:
            raise
        typer.echo(NOTHING, err=True)
        return
    paused = reversed(store.runs(status="awaiting_approval"))
    run_ids = [one.run_id for one in paused] if run is None else [opt.find_run(store, run)]
    found = [(run_id, waiting) for run_id in run_ids if (waiting := _waiting(store, run_id))]
    callers = [caller for run_id in run_ids if (caller := _caller(store, run_id)) is not None]
    if json:
        _write_json(found, callers)
        return
    if found:
        _write(store, found, journal)
    for one in callers:
        _write_caller(store, one, journal)
    if not (found or callers):
        typer.echo(NOTHING, err=True)


class Caller(NamedTuple):
    """A run whose calls wait for runs of their own."""

    run_id: str
    paused: tuple[PausedCall, ...]
    undecided: list[WaitingCall]


NOTHING = "no call waits for a decision"


def _waiting(store: Journal, run_id: str) -> tuple[PendingCall, ...]:
    from tenlines.drivers import decisions

    return decisions.pending(store, run_id)


def _caller(store: Journal, run_id: str) -> Caller | None:
    from tenlines.cli.callers import undecided
    from tenlines.core.result import paused_calls
    from tenlines.drivers.recorder import machine_of

    paused = paused_calls(machine_of(store, run_id).state)
    return Caller(run_id, paused, [call for one in paused for call in undecided(store, one)]) if paused else None


def _write_json(found: list[tuple[str, tuple[PendingCall, ...]]], callers: list[Caller]) -> None:
    from tenlines.cli.screen import json_line
    from tenlines.cli.waiting import as_json, paused_as_json

    for run_id, calls in found:
        for one in calls:
            typer.echo(json_line(as_json(run_id, one), sys.stdout))
    for caller in callers:
        for paused in caller.paused:
            typer.echo(json_line(paused_as_json(caller.run_id, paused), sys.stdout))


def _write_caller(store: Journal, one: Caller, journal: str | None) -> None:
    """A run that goes on when runs under it do."""
    from tenlines.cli import fleets, waiting
    from tenlines.cli.screen import console_for
    from tenlines.trace.text import clean

    console = console_for(sys.stdout)
    console.print(f"run {one.run_id}", style="bold")
    for paused in one.paused:
        waiting.put_paused(console, paused)
    if fleets.is_of_fleet(store, one.run_id):
        when = "when that is decided, its workers go on" if one.undecided else "all that is decided; its workers go on"
    else:
        when = "when that is decided" if one.undecided else "all that is decided; go on"
    console.print(f"  {when}: {clean(fleets.goes_on(store, one.run_id, journal))}", soft_wrap=True)


def _write(store: Journal, found: list[tuple[str, tuple[PendingCall, ...]]], journal: str | None) -> None:
    from tenlines.cli import fleets, waiting
    from tenlines.cli.screen import console_for
    from tenlines.drivers.callers import caller_of
    from tenlines.ports import SystemClock
    from tenlines.trace.text import clean

    console, now = console_for(sys.stdout), SystemClock().now()
    for run_id, calls in found:
        caller = caller_of(store, run_id)
        console.print(f"run {run_id}{f', a call of run {caller}' if caller else ''}", style="bold")
        for one in calls:
            waiting.put_call(console, one, now)
            console.print(f"      digest: {one.digest}", style="dim", soft_wrap=True)
        is_of_fleet = fleets.is_of_fleet(store, run_id)
        for command in waiting.commands(run_id, journal, calls, is_of_fleet=is_of_fleet):
            console.print(f"  {clean(command)}", soft_wrap=True)
        if is_of_fleet:
            console.print("  its workers then go on by themselves", style="dim")
