"""`tenlines wait`: wait for a run that the workers of a fleet work on, and watch it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import fleets
from tenlines.cli import options as opt
from tenlines.errors import MissingExtra

if TYPE_CHECKING:
    from tenlines.ports import Engine

TIMED_OUT = 124
"""The exit code where the time was over first; as of `timeout`."""

Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="SECONDS", help=f"Wait no longer; then the exit code is {TIMED_OUT}."),
]


def wait(
    run: opt.Run,
    timeout: Timeout = None,
    temporal: fleets.Address = None,
    namespace: fleets.Namespace = None,
    journal: opt.JournalName = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Wait until a run that others work on ends, or waits for people; show what happens.

    Everything comes from the journal: no file with agents is needed, and no Temporal. A worker that dies does not end
    the waiting, as another one takes the run up. Where nothing happens and no worker is there, that is said.

    The answer goes to standard output, and the exit codes are those of `tenlines run`. A run that waits for a decision
    ends with 5 and the commands that decide; its workers then go on with it by themselves. With --timeout the exit code
    is 124 where the time was over first. The run goes on in any case, also after Ctrl-C.

    \b
    Examples:
      tenlines wait last
      tenlines wait k2v9 --timeout 60 > answer.txt
      tenlines wait k2v9 --json | jq .type
    """
    from tenlines.cli.awaiting import Patience, wait_for

    timeout_s = opt.read_seconds("--timeout", timeout)
    fleets.named_engine(temporal)
    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    engine = partial(_engine, temporal, namespace)
    is_named = fleets.is_engine_named(temporal)
    patience = Patience(opt.Output(json, quiet, False), timeout_s, journal, engine, is_named)
    raise typer.Exit(wait_for(store, run_id, patience))


def _engine(temporal: str | None, namespace: str | None) -> Engine | None:
    try:
        return fleets.engine_at(temporal, namespace)
    except MissingExtra:
        if temporal is not None:
            raise
        return None
