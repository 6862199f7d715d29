"""`tenlines serve`: the runs of a journal in a browser on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import hiding
from tenlines.cli import options as opt

if TYPE_CHECKING:
    from tenlines.ports import Journal
    from tenlines.serve import Address, Setup
    from tenlines.trace.redaction import Redaction
    from tenlines.trace.story import Story

Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Where to listen; 0 for any.")]
Open = Annotated[bool, typer.Option("--open", help="Open the pages in your browser.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="In whose name is decided on the pages. [your login name]", show_default=False
    ),
]
ToolFiles = Annotated[
    list[str] | None,
    typer.Option("--tools", "-t", metavar="FILE.py", help="Check arguments that are edited against these tools."),
]


def serve(
    port: Port = 0,
    open: Open = False,
    tools: ToolFiles = None,
    by: By = None,
    redact: hiding.Names = None,
    redact_with: hiding.With = None,
    no_redact: hiding.Off = False,
    journal: opt.JournalName = None,
) -> None:
    """Show the runs of a journal in a browser on this machine, as they go on, in whatever process they do.

    The list of runs, and for each run the page that `tenlines report` writes, which changes as the run goes on. On it
    calls that wait can be approved, denied and edited, and a run can be told something and stopped: each is what the
    command of that name does. Runs are resumed by `tenlines resume`, not from here.

    The server listens on 127.0.0.1 alone. The address holds a token: whoever has it can do what the pages can. What is
    called password, token, api_key and the like is not shown unless you say --no-redact. Ctrl-C ends the server and
    touches no run.

    \b
    Examples:
      tenlines serve --open
      tenlines serve --port 8000 --journal postgresql://user@host/agents
      tenlines serve --tools shop.py --redact email
    """
    from tenlines.serve import listen, run

    hiding.usual(redact, redact_with, no_redact)  # a mistake in it is told before anything listens
    setup = _setup(journal, tools, by, partial(hiding.usual, redact, redact_with, no_redact))
    address = listen(port)
    run(setup, address, partial(_tell, address, open=open))


def _setup(journal: str | None, tools: list[str] | None, by: str | None, redaction: Callable[[], Redaction]) -> Setup:
    from tenlines.cli.asking import who
    from tenlines.cli.making import load_files
    from tenlines.cli.served import shareable
    from tenlines.ports import SystemClock
    from tenlines.serve import Setup
    from tenlines.serve.acts import Hands

    shown = shareable(journal)
    loaded = {one.spec.name: one for one in load_files(tools or ())}
    store = opt.open_existing(journal)
    hands = Hands(store, SystemClock(), who(by), partial(_resume_command, store, shown), loaded)
    return Setup(hands, redaction, partial(_moves, shown))


def _moves(journal: str | None, story: Story) -> Sequence[tuple[str, str]]:
    """What can be done about a run that has ended; of any other, the desk on its page says it."""
    from tenlines.cli.served import next_moves

    is_over = story.end is not None and story.end.status != "awaiting_approval"
    return next_moves(story, journal) if is_over else ()


def _resume_command(store: Journal, journal: str | None, run_id: str) -> str:
    """What goes on with a run; of one that is a call of another, with that."""
    from tenlines.cli.callers import outermost
    from tenlines.cli.moves import command

    return command("resume", [outermost(store, run_id)], journal)


def _tell(address: Address, *, open: bool) -> None:
    """Say where the pages are."""
    typer.echo(address.url)
    sys.stdout.flush()
    if sys.stderr.isatty():
        typer.echo("Ctrl-C ends it; runs are not touched.", err=True)
    if open:
        import webbrowser

        if not webbrowser.open(address.url):
            typer.echo("tenlines: no browser was found; open the address yourself", err=True)
