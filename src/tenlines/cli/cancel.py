"""`tenlines cancel`: stop a run that another process works on."""

from __future__ import annotations

from typing import Annotated

import typer

from tenlines.cli import options as opt

Drain = Annotated[bool, typer.Option("--drain", help="Let what is running finish, and start nothing more.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; recorded.", show_default=False)]

By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who stops it; recorded. [your login name]", show_default=False),
]


def cancel(
    run: opt.Run,
    drain: Drain = False,
    reason: Reason = "",
    by: By = None,
    journal: opt.JournalName = None,
    json: opt.OneObject = False,
) -> None:
    """Stop a run that is under way, whatever process works on it, as Ctrl-C does there.

    At once: what is running is given up, and of a call that may have taken effect that is said. With --drain, what is
    running finishes first. The run can be resumed.

    Where nobody works on the run, because its process died or it waits for a decision, it is stopped when it is
    resumed; a run of a fleet, when a worker takes it up, which needs nothing more.

    \b
    Examples:
      tenlines cancel last
      tenlines cancel k2v9 --drain --reason "The prices are out of date."
    """
    from tenlines.cli.asking import who
    from tenlines.cli.sending import report, send
    from tenlines.ports import Stopping

    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    sent = send(store, run_id, Stopping("drain" if drain else "now", reason, who(by)))
    raise typer.Exit(report(sent, "stops after what is running" if drain else "stops", journal, json=json))
