"""`tenlines show`: one run, from its journal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenlines.core.events import AnyEvent

Lines = Annotated[bool, typer.Option("--json", help="The events as they were recorded, one JSON a line.")]
Step = Annotated[int | None, typer.Option("--step", metavar="N", min=1, help="This step alone, unfolded.")]
Full = Annotated[bool, typer.Option("--full", help="Unfold everything: whole results, tracebacks, instructions.")]


def show(
    run: opt.Run, step: Step = None, full: Full = False, journal: opt.JournalName = None, json: Lines = False
) -> None:
    """Show a run: the task, each step with its calls and results, notes, the end, what it used.

    Long results are folded to their first lines. Times, tokens and outcomes come from the journal.

    \b
    Examples:
      tenlines show last
      tenlines show k2v9 --step 3
      tenlines show k2v9 --full | less
      tenlines show k2v9 --json | jq 'select(.type == "CallFailed")'
    """
    from tenlines.trace.story import read_story

    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    if json:
        _write_json(store.read(run_id))
        return
    from tenlines.cli.page import Page
    from tenlines.cli.screen import console_for

    story = read_story(store.read(run_id))
    page = Page(console_for(sys.stdout), story, full=full or step is not None, journal=journal)
    if step is None:
        page.whole()
    elif not page.step(step):
        steps = story.machine.state.account.steps
        raise ConfigError(f"--step {step}: run {run_id} has {steps} step{'' if steps == 1 else 's'}")


def _write_json(events: Iterable[AnyEvent]) -> None:
    from tenlines.core import codec
    from tenlines.trace.text import clean_json

    is_terminal = sys.stdout.isatty()
    for event in events:
        line = codec.encode(event).decode()
        typer.echo(clean_json(line) if is_terminal else line)
