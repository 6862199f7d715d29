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
SessionName = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="Only those of this conversation.", show_default=False)
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]

NO_RUNS = 'no runs yet; make one: tenlines run "Where is order 1042?"'


def runs(
    limit: Limit = 20,
    status: StatusName = None,
    session: SessionName = None,
    journal: opt.JournalName = None,
    json: Lines = False,
) -> None:
    """List the recorded runs, the newest first.

    A run is `open` while a process works on it, and after that process died: `tenlines resume` takes it up, and
    `tenlines resume --all` every such run. One that was handed to a fleet is `open, queued` until a worker begins with
    it, and its workers take it up by themselves.

    \b
    Examples:
      tenlines runs
      tenlines runs --status max_steps
      tenlines runs --session trip
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
    found = store.runs(limit, status=status, session=session)
    if json:
        _write_json(found)
    elif found:
        _write_table(store, found)
    else:
        typer.echo(_none(status, session), err=True)


def _none(status: str | None, session: str | None) -> str:
    if session is not None:
        return f"no run {f'with the status {status} ' if status else ''}belongs to the session {session!r}"
    return f"no run has the status {status}" if status else NO_RUNS


def _check_status(status: str | None) -> None:
    from tenlines.core.events import Status

    known = ("open", *get_args(Status))
    if status is not None and status not in known:
        raise ConfigError(f"--status {status}: there is no such status; it is one of {', '.join(known)}")


def _write_json(found: list[RunSummary]) -> None:
    import msgspec

    from tenlines.cli.owners import is_gone
    from tenlines.cli.screen import json_line

    for one in found:
        gone = is_gone(one.owner) if one.status == "open" else None
        typer.echo(json_line({**msgspec.structs.asdict(one), "process_is_gone": gone}, sys.stdout))


def _write_table(store: Journal, found: list[RunSummary]) -> None:
    """Columns that line up. On a terminal the task is cut at its edge; elsewhere it is whole."""
    from rich.text import Text

    from tenlines.cli.screen import console_for

    rows = _rows(store, found)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    console = console_for(sys.stdout)
    for number, row in enumerate(rows):
        line = Text(no_wrap=True, overflow="ellipsis")
        styles = ("bold", "dim", STATUS_STYLE.get(row[2].partition(",")[0], "yellow"), "", "dim")
        for column, (width, style) in enumerate(zip(widths, styles, strict=False)):
            pad = row[column].rjust(width) if column == 3 else row[column].ljust(width)
            line.append(f"{pad}  ", style if number else "dim")
        line.append(row[-1], "" if number else "dim")
        console.print(line, soft_wrap=not console.is_terminal, no_wrap=True, overflow="ellipsis")


def _rows(store: Journal, found: list[RunSummary]) -> list[tuple[str, ...]]:
    """The cells. Sessions have a column where there are any."""
    from tenlines.ports import SystemClock
    from tenlines.trace.text import one_line
    from tenlines.trace.words import ago

    now, has_sessions = SystemClock().now(), any(one.session for one in found)
    rows: list[tuple[str, ...]] = [("run", "when", "status", "steps", *["session"] * has_sessions, "task")]
    for one in found:
        status = _open(store, one) if one.status == "open" else one.status
        turn = f"{one_line(one.session, 30)} {one.turn}" if one.session else ""
        steps, task = str(one.steps), one_line(one.task)
        rows.append((one.run_id, ago(now - one.started_at), status, steps, *[turn] * has_sessions, task))
    return rows


def _open(store: Journal, one: RunSummary) -> str:
    from tenlines.cli.fleets import is_of_fleet
    from tenlines.cli.owners import open_status
    from tenlines.trace.text import one_line

    is_queued = not one.owner and is_of_fleet(store, one.run_id)
    return one_line(open_status(one.owner, is_of_fleet=is_queued), 60)


STATUS_STYLE = {"answered": "green", "open": "cyan", "model_error": "red", "journal_error": "red"}
"""All other ways to end are yellow."""
