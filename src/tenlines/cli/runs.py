"""`tenlines runs`: what is in the journal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.ports import Journal, RunSummary

Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many, the newest first.")]
StatusName = Annotated[
    str | None,
    typer.Option("--status", metavar="STATUS", help="Only those that ended so; `open` for those that did not end."),
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]

NO_RUNS = 'no runs yet; make one: tenlines run "Where is order 1042?"'


def runs(limit: Limit = 20, status: StatusName = None, journal: opt.JournalName = None, json: Lines = False) -> None:
    """List the recorded runs, the newest first.

    A run is `open` while it is worked on, and after its process died: `tenlines resume` takes it up.

    \b
    Examples:
      tenlines runs
      tenlines runs --status max_steps
      tenlines runs --json --limit 1000 | jq -r .task
    """
    _check_status(status)
    try:
        store = opt.open_existing(journal)
    except opt.NoJournal:
        if journal is not None:
            raise
        typer.echo(NO_RUNS, err=True)
        return
    found = store.runs(None if status else limit)
    if status:
        found = [one for one in found if one.status == status][:limit]
    if json:
        _write_json(found)
    elif found:
        _write_table(store, found)
    else:
        typer.echo(f"no run has the status {status}" if status else NO_RUNS, err=True)


def _check_status(status: str | None) -> None:
    from tenlines.core.events import Status

    known = ("open", *get_args(Status))
    if status is not None and status not in known:
        raise ConfigError(f"--status {status}: there is no such status; it is one of {', '.join(known)}")


def _write_json(found: list[RunSummary]) -> None:
    import msgspec

    from tenlines.cli.screen import clean_json

    for one in found:
        line = msgspec.json.encode(one).decode()
        typer.echo(clean_json(line) if sys.stdout.isatty() else line)


def _write_table(store: Journal, found: list[RunSummary]) -> None:
    """Columns that line up. On a terminal the task is cut at its edge; elsewhere it is whole."""
    from rich.text import Text

    from tenlines.cli.screen import console_for, one_line
    from tenlines.cli.words import ago
    from tenlines.ports import SystemClock

    now = SystemClock().now()
    rows = [("run", "when", "status", "steps", "task")]
    for one in found:
        rows.append((one.run_id, ago(now - one.started_at), one.status, str(_steps(store, one)), one_line(one.task)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    console = console_for(sys.stdout)
    for number, row in enumerate(rows):
        line = Text(no_wrap=True, overflow="ellipsis")
        for column, style in enumerate(("bold", "dim", STATUS_STYLE.get(row[2], "yellow"), "")):
            pad = row[column].rjust(widths[column]) if column == 3 else row[column].ljust(widths[column])
            line.append(f"{pad}  ", style if number else "dim")
        line.append(row[4], "" if number else "dim")
        console.print(line, soft_wrap=not console.is_terminal, no_wrap=True, overflow="ellipsis")


STATUS_STYLE = {"answered": "green", "open": "cyan", "model_error": "red", "journal_error": "red"}
"""All other ways to end are yellow."""


def _steps(store: Journal, one: RunSummary) -> int:
    from tenlines.core.events import ModelReplied

    return sum(isinstance(event, ModelReplied) for event in store.read(one.run_id))
