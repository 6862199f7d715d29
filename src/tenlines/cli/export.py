"""`tenlines export`: a run as a file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tenlines.cli import options as opt

Out = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="A new file; else standard output.")]


def export(run: opt.Run, output: Out = None, journal: opt.JournalName = None) -> None:
    """Write a run as a file: its events, one JSON a line, and an end that proves that they are all there, unchanged.

    `tenlines import` puts it into another journal, whether that is a file or a database. The file holds everything that
    the model and the tools said.

    \b
    Examples:
      tenlines export last -o run.jsonl
      tenlines export k2v9 | ssh web-2 tenlines import -
      tenlines export k2v9 --journal postgresql://user@host/agents -o run.jsonl
    """
    from tenlines.cli.keeping import opened
    from tenlines.cli.outputs import written
    from tenlines.drivers.letters import unheard
    from tenlines.journal.files import write_run
    from tenlines.trace.words import count

    with opened(journal) as store:
        run_id = opt.find_run(store, run)
        with written(output, may_replace=False) as sink:
            for line in write_run(store, run_id):
                sink.write(line)
        left = len(unheard(store, run_id))
        is_open = any(one.run_id == run_id for one in store.runs(status="open"))
    if is_open:
        sys.stderr.write(f"tenlines: run {run_id} did not end; this is what was recorded of it so far\n")
    if left:
        sys.stderr.write(f"tenlines: what it was told and has not heard stays here: {count(left, 'letter')}\n")
