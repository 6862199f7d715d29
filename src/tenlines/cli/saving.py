"""`tenlines doctor --recover`: what is left of a damaged journal, in a new file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError, JournalError, JournalFormatError

if TYPE_CHECKING:
    from tenlines.journal.recovery import Recovery


def save(name: str | None, new: str, *, json: bool) -> int:
    """Copy the whole runs into a new file, and say which were not. Returns the exit code.

    Raises:
        JournalError: Nothing of a journal was found, or it is in use.
        ConfigError: There is such a file already.
    """
    from tenlines.cli.keeping import watched
    from tenlines.journal.recovery import recover

    path, into = opt.journal_file(name), Path(new).expanduser()
    if path is None:
        raise ConfigError("--recover is for files; restore a database from its backup")
    if into.exists():
        raise ConfigError(f"{into} is there already, and is not overwritten; name a new file")
    _refuse(path)
    with watched("copying what can be read"):
        found = recover(path, into)
    if not (found.whole or found.damaged):
        into.unlink()
        raise JournalError(f"no run was found in {path}, and nothing was written; take a copy from before the damage")
    _report(found, json=json)
    return 1 if found.damaged else 0


def _refuse(path: Path) -> None:
    """Leave alone what is not damaged but newer, and what somebody is at work on."""
    from tenlines.cli.doctor import file_facts
    from tenlines.journal.migrations import LAYOUT
    from tenlines.journal.sqlite_upkeep import is_in_use

    layout = file_facts(path)["layout"]
    if layout is not None and layout > LAYOUT:
        raise JournalFormatError(
            f"{path} has layout {layout}, this tenlines knows {LAYOUT}: upgrade tenlines, nothing need be recovered"
        )
    if is_in_use(path):
        raise JournalError(f"another process has {path} open; stop it, so that nothing is written while it is copied")


def _report(found: Recovery, *, json: bool) -> None:
    from tenlines.cli import moves
    from tenlines.cli.screen import json_line
    from tenlines.trace import words
    from tenlines.trace.text import clean

    if json:
        damaged = [
            {"run_id": one.run_id, "why": one.why, "events": one.events, "file": one.file and str(one.file)}
            for one in found.damaged
        ]
        typer.echo(json_line({"into": str(found.into), "whole": found.whole, "damaged": damaged}, sys.stdout))
        return
    typer.echo(clean(f"{words.count(len(found.whole), 'run')} saved into {found.into}, byte for byte"))
    for one in found.damaged:
        left = f"{words.count(one.events, 'event')} of it in {one.file}" if one.file else "no event of it can be read"
        typer.echo(clean(f"  run {one.run_id} is not whole: {one.why}; {left}"))
    typer.echo(clean(f"look at it: {moves.command('runs', [], str(found.into))}"))
    typer.echo("the damaged file is as it was; put the new one in its place when you are content")
