"""`tenlines import`: a run from a file."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError, InvalidEvent, JournalDamaged, JournalError

if TYPE_CHECKING:
    from tenlines.cli.keeping import KeptJournal
    from tenlines.journal.files import RunFile

File = Annotated[
    str, typer.Argument(metavar="FILE", help="What `export` wrote; - is standard input.", show_default=False)
]
Recover = Annotated[bool, typer.Option("--recover", help="Also take a file that does not prove to be whole.")]


def import_(file: File, recover: Recover = False, journal: opt.JournalName = None, json: opt.OneObject = False) -> None:
    """Put a run that `tenlines export` wrote into the journal, under its own id.

    A file that was changed is refused. One that was cut is refused too, and it is said what is missing; with --recover
    what is left of it is taken. Such a run goes on from an older state when it is resumed, and may do again what it did
    already. The lines of `tenlines show RUN --json` can be taken with --recover: they prove nothing.

    \b
    Examples:
      tenlines import run.jsonl
      tenlines import cut.jsonl --recover --journal saved.db
      ssh web-2 tenlines export k2v9 | tenlines import -
    """
    from tenlines.journal import default_journal, open_journal
    from tenlines.journal.files import import_run
    from tenlines.journal.summary import summarise

    if (journal or default_journal()) == "memory":
        raise ConfigError("--journal memory: name a file or a database that keeps the run")
    found = _read(file, recover)
    with closing(cast("KeptJournal", open_journal(journal))) as store:
        import_run(store, found, recover=recover)
    _report(found, summarise(found.run_id, found.events).status, json=json)


def _read(file: str, recover: bool) -> RunFile:
    """The run in a file, if it may be stored.

    Raises:
        JournalError: It is damaged, cut, no run, or of a newer version; the message names the file.
    """
    from tenlines.cli.inputs import opened
    from tenlines.core.replay import fold
    from tenlines.journal.files import read_run

    with opened(file, "a run") as lines:
        try:
            found = read_run(lines)
        except JournalError as error:
            raise type(error)(f"{file}: {error}; nothing was stored") from error
    if not found.events:
        raise JournalDamaged(f"{file}: {'; '.join(found.notices)}")
    if not (found.is_whole or recover):
        raise JournalDamaged(
            f"{file}: run {found.run_id}: {'; '.join(found.notices)}. Nothing was stored; get the whole file, or take "
            "what is there with --recover: a run that is resumed from an older state may do again what it did already"
        )
    try:
        fold(found.events)
    except InvalidEvent as error:
        raise JournalDamaged(f"{file}: its events are not the log of a run: {error}; nothing was stored") from error
    return found


def _report(found: RunFile, status: str, *, json: bool) -> None:
    from tenlines.cli.screen import json_line
    from tenlines.trace import words
    from tenlines.trace.text import clean

    if json:
        facts = {"run_id": found.run_id, "events": len(found.events), "status": status, "notices": found.notices}
        typer.echo(json_line(facts, sys.stdout))
        return
    typer.echo(clean(f"run {found.run_id}: {words.count(len(found.events), 'event')}, {status}"))
    for notice in found.notices:
        sys.stderr.write(clean(f"tenlines: {notice}") + "\n")
    if status in ("open", "awaiting_approval"):
        sys.stderr.write("tenlines: it did not end: go on with it in one journal only, here or where it came from\n")
