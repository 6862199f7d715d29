"""`tenlines pending`: the calls that wait for somebody's decision."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt

if TYPE_CHECKING:
    from tenlines.core.result import PendingCall
    from tenlines.ports import Journal

RunOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN", help="Of this run alone: its id, the beginning of one, or `last`.", show_default=False
    ),
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line, one for each call.")]


def pending(run: RunOrNone = None, journal: opt.JournalName = None, json: Lines = False) -> None:
    """List the calls that wait for somebody's decision: their arguments whole, why it is asked, how long it holds.

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
    if json:
        _write_json(found)
    elif found:
        _write(found, journal)
    else:
        typer.echo(NOTHING, err=True)


NOTHING = "no call waits for a decision"


def _waiting(store: Journal, run_id: str) -> tuple[PendingCall, ...]:
    from tenlines.drivers import decisions

    return decisions.pending(store, run_id)


def _write_json(found: list[tuple[str, tuple[PendingCall, ...]]]) -> None:
    from tenlines.cli.screen import json_line
    from tenlines.cli.waiting import as_json

    for run_id, calls in found:
        for one in calls:
            typer.echo(json_line(as_json(run_id, one), sys.stdout))


def _write(found: list[tuple[str, tuple[PendingCall, ...]]], journal: str | None) -> None:
    from tenlines.cli import waiting
    from tenlines.cli.screen import console_for
    from tenlines.ports import SystemClock
    from tenlines.trace.text import clean

    console, now = console_for(sys.stdout), SystemClock().now()
    for run_id, calls in found:
        console.print(f"run {run_id}", style="bold")
        for one in calls:
            waiting.put_call(console, one, now)
            console.print(f"      digest: {one.digest}", style="dim", soft_wrap=True)
        for command in waiting.commands(run_id, journal, calls):
            console.print(f"  {clean(command)}", soft_wrap=True)
