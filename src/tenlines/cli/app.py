"""The command `tenlines`: one file per command, put together here. Nothing heavy is imported for `--help`."""

from __future__ import annotations

from typing import Annotated

import typer

from tenlines.cli.advise import advise
from tenlines.cli.approve import approve, deny
from tenlines.cli.cancel import cancel
from tenlines.cli.check import check
from tenlines.cli.convert import convert
from tenlines.cli.cost import cost
from tenlines.cli.doctor import doctor
from tenlines.cli.export import export
from tenlines.cli.forecast import forecast
from tenlines.cli.fork import fork
from tenlines.cli.importing import import_
from tenlines.cli.mcp import mcp
from tenlines.cli.pending import pending
from tenlines.cli.plan import plan
from tenlines.cli.prune import prune
from tenlines.cli.repair import repair
from tenlines.cli.replay import replay
from tenlines.cli.report import report
from tenlines.cli.resume import resume
from tenlines.cli.rules import rules
from tenlines.cli.run import run
from tenlines.cli.runs import runs
from tenlines.cli.say import say
from tenlines.cli.serve import serve
from tenlines.cli.show import show
from tenlines.cli.submit import submit
from tenlines.cli.trace import trace
from tenlines.cli.undo import undo
from tenlines.cli.wait import wait
from tenlines.cli.worker import worker

app = typer.Typer(
    name="tenlines",
    add_completion=False,
    rich_markup_mode=None,  # plain help: quick, and the same in a file
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        import tenlines

        typer.echo(f"tenlines {tenlines.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def tenlines(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.", callback=_version)] = False,
) -> None:
    """A model, tools, limits, and a record of every step.

    \b
    Examples:
      tenlines run "Where is order 1042?" --tools orders.py
      tenlines runs
      tenlines show last
      tenlines report last --open
      tenlines resume last --max-steps 40
      tenlines resume --all
      tenlines approve last --resume
      tenlines say last "Use the archive."
      tenlines undo last --dry-run
      tenlines mcp --tools orders.py
      tenlines serve --openai --tools orders.py
      tenlines worker --app support.py --dev
      tenlines submit "Where is order 1042?" --app support.py --wait
      tenlines replay last
      tenlines doctor
      tenlines check session.json --for anthropic
      tenlines repair session.json -o mended.json
      tenlines convert session.json --to gemini -o request.json
      tenlines rules PAIR-MISSING
      tenlines forecast --prompt 2000 --per-step 1000 --steps 20 --price 3/15
      tenlines cost last
      tenlines trace last
      tenlines advise --last 500

    \b
    Environment:
      TENLINES_MODEL    the model when --model is not given
      TENLINES_JOURNAL  the file, or database, that runs are recorded in
      TENLINES_APP      the file with the agents of a fleet, when --app is not given
      TENLINES_TEMPORAL where Temporal is, HOST:PORT, when --temporal is not given
      TENLINES_DEBUG=1  show tracebacks
      NO_COLOR=1        no colours

    \b
    Exit codes:
      0    answered
      1    stopped without an answer: a limit, stuck, refused, an empty reply; a check that found something
      2    the command was not right: an option, a file, a model, a run that is not there
      3    the model could not be reached or failed
      4    the journal could not be read or written
      5    waits for a decision: `tenlines pending` lists what waits
      70   a bug in tenlines
      124  `tenlines wait --timeout`: the time was over first
      130  stopped by Ctrl-C (143 by SIGTERM), or by `tenlines cancel`
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app.command(short_help="Do a task, and watch it being done.")(run)
app.command(short_help="Split a task into steps, to be looked at and changed before anything is done.")(plan)
app.command(short_help="Go on with a run that stopped, or with all that crashed.")(resume)
app.command(short_help="Start a new run from a step of another.")(fork)
app.command(short_help="List the calls that wait for a decision.")(pending)
app.command(short_help="Allow calls that wait.")(approve)
app.command(short_help="Forbid calls that wait.")(deny)
app.command(short_help="Tell the model something while it works.")(say)
app.command(short_help="Stop a run that another process works on.")(cancel)
app.command(short_help="Take back what a run did.")(undo)
app.command(short_help="List the recorded runs.")(runs)
app.command(short_help="Show a run: steps, calls, results, what it used.")(show)
app.command(short_help="Write runs as a page that opens in any browser.")(report)
app.command(short_help="Send the spans of past runs to an OpenTelemetry collector.")(trace)
app.command(short_help="Do recorded runs again with the tools of today: would they go the same way?")(replay)
app.command(short_help="Show the runs live in a browser, or offer an agent to OpenAI's clients.")(serve)
app.command(short_help="Work on the runs that are handed to a fleet.")(worker)
app.command(short_help="Hand a task to the workers of a fleet.")(submit)
app.command(short_help="Wait for a run that others work on, and watch it.")(wait)
app.command(short_help="Look for damage in the journal, and save what is left of it.")(doctor)
app.command(short_help="Delete runs that ended long ago.")(prune)
app.command(short_help="Write a run as a file.")(export)
app.command("import", short_help="Put a run from such a file into the journal.")(import_)
app.command(short_help="Say what a provider would refuse in a transcript.")(check)
app.command(short_help="Mend a transcript, and show every change.")(repair)
app.command(short_help="Write a transcript in another provider's format.")(convert)
app.command(short_help="Explain the rules of providers' formats.")(rules)
app.command(short_help="Say what a run will cost, before it is started.")(forecast)
app.command(short_help="Say what a run cost: each step, each tool, each cut.")(cost)
app.command(short_help="Say what past runs teach: the step cap, floods, repeats, cache breaks, workflows.")(advise)
app.command(short_help="Offer an agent to MCP clients.")(mcp)
