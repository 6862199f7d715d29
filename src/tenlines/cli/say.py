"""`tenlines say`: tell the model something in a run that another process works on, or that waits to be resumed."""

from __future__ import annotations

from typing import Annotated

import typer

from tenlines.cli import options as opt

What = Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - is standard input.", show_default=False)]

By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who says it; recorded. [your login name]", show_default=False),
]


def say(run: opt.Run, text: What, by: By = None, journal: opt.JournalName = None, json: opt.OneObject = False) -> None:
    """Tell the model something in a run that is under way, whatever process works on it.

    Nothing is interrupted: the model hears it as soon as the exchange at hand is closed. Where nobody works on the run,
    because its process died or it waits for a decision, it is heard when the run is resumed, or when a worker of its
    fleet takes it up. A run that has ended is resumed with it: `tenlines resume RUN --say TEXT`.

    It is recorded in the run with who said it.

    \b
    Examples:
      tenlines say last "Use the archive, the live system is down."
      tenlines say k2v9 - < remarks.txt
    """
    import sys

    from tenlines.cli.asking import who
    from tenlines.cli.sending import report, send
    from tenlines.ports import Saying

    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    said = sys.stdin.read() if text == "-" else text
    sent = send(store, run_id, Saying(said, who(by)))
    raise typer.Exit(report(sent, "has heard it", journal, json=json))
