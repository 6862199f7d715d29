"""`tenlines serve`: the runs of a journal in a browser on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import endpoint, fleets, hiding
from tenlines.cli import options as opt
from tenlines.cli.mcp_tools import McpNames, McpTrust
from tenlines.cli.run import PriceText
from tenlines.errors import ConfigError

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
    typer.Option(
        "--tools",
        "-t",
        metavar="FILE.py",
        help="Check arguments that are edited against these tools; with --openai, what the agent has.",
    ),
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
    openai: endpoint.OpenAI = False,
    model: opt.ModelName = None,
    mcp: McpNames = None,
    mcp_trust: McpTrust = None,
    instructions: endpoint.Instructions = None,
    name: endpoint.Name = None,
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    price: PriceText = None,
    prices: opt.PriceFile = None,
    ask: opt.AskFor = None,
    deny: opt.DenyFor = None,
    show_steps: endpoint.ShowSteps = False,
    allow_origin: endpoint.Origins = None,
) -> None:
    """Show the runs of a journal in a browser on this machine, as they go on, in whatever process they do.

    The list of runs, and for each run the page that `tenlines report` writes, which changes as the run goes on. On it
    calls that wait can be approved, denied and edited, and a run can be told something and stopped: each is what the
    command of that name does. Runs are resumed by `tenlines resume`, not from here.

    The server listens on 127.0.0.1 alone. The address holds a token: whoever has it can do what the pages can. What is
    called password, token, api_key and the like is not shown unless you say --no-redact. Ctrl-C ends the server and
    touches no run.

    With --openai: offer an agent to any client of OpenAI's Chat Completions instead. Each request is a run in the
    journal, with the tools and within the limits that are given here. The address and the key are printed; a key that
    stays is taken from $TENLINES_SERVE_KEY. Ctrl-C stops the runs that clients wait for.

    \b
    Examples:
      tenlines serve --open
      tenlines serve --port 8000 --journal postgresql://user@host/agents
      tenlines serve --tools shop.py --redact email
      tenlines serve --openai --tools shop.py --model openai:gpt-5-mini --max-dollars 0.05
    """
    from tenlines.serve import listen, run

    hides = partial(hiding.usual, redact, redact_with, no_redact)
    hides()  # a mistake in it is told before anything listens
    limits = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, False)
    wanted = endpoint.Wanted(
        model, mcp, mcp_trust, instructions, name, limits, price, prices, ask, deny, show_steps, allow_origin
    )
    if openai:
        _refuse({"--open": open, "--by": by}, "is for the pages: leave it or --openai out")
        endpoint.serve_agent(wanted, tools or (), port, journal, hides)
        return
    _refuse(dict.fromkeys(wanted.given(), True), "is for an agent: add --openai")
    setup = _setup(journal, tools, by, hides)
    address = listen(port)
    run(setup, address, partial(_tell, address, open=open))


def _refuse(given: Mapping[str, object], why: str) -> None:
    for option, value in given.items():
        if value:
            raise ConfigError(f"{option} {why}")


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
    """What goes on with a run, or waits until its fleet has; of one that is a call of another, with that."""
    return fleets.goes_on(store, run_id, journal)


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
