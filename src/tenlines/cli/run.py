"""`tenlines run`: give a task to a model with tools, and watch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tenlines.cli import options as opt
from tenlines.cli import telemetry
from tenlines.cli.answer_types import OutputType, read_output
from tenlines.cli.mcp_tools import McpNames, McpTrust
from tenlines.cli.moves import command
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.core.events import Settings
    from tenlines.core.result import RunResult
    from tenlines.drivers.control import Control
    from tenlines.ports import ToolPort

Task = Annotated[
    str | None, typer.Argument(metavar="TASK", help="What is to be done; `-` reads it from standard input.")
]
PlanFile = Annotated[
    str | None,
    typer.Option("--plan", metavar="FILE", help="Follow the plan in this file (`tenlines plan` writes one), not TASK."),
]
PlanFirst = Annotated[
    bool, typer.Option("--plan-first", help="Make a plan first; it is followed when you have allowed or changed it.")
]
TextTools = Annotated[
    bool,
    typer.Option("--text-tools", help="Write the tools as text, for a model that has none: as --model text+MODEL."),
]
Instructions = Annotated[
    str, typer.Option("--instructions", metavar="TEXT", help="Standing instructions for the model.", show_default=False)
]
PriceText = Annotated[
    str | None,
    typer.Option("--price", metavar="IN/OUT", help="The model's price, in dollars per million tokens: 0.25/2"),
]
Parallel = Annotated[
    int, typer.Option("--parallel", metavar="N", min=1, max=100, help="Read-only calls of one reply that run at once.")
]
ReadResults = Annotated[
    bool, typer.Option("--read-results", help="Let the model read what was cut from results. [on where --compact is]")
]
SessionName = Annotated[
    str | None,
    typer.Option("--session", metavar="NAME", help="Go on with a conversation of this name, or begin it."),
]
Durability = Annotated[
    str | None,
    typer.Option(
        "--durability",
        metavar="process|power",
        help="What the record survives: the process's death, or a power cut too.",
    ),
]
OnStop = Annotated[
    str,
    typer.Option(
        "--on-stop", metavar="keep|undo", help="What the run did when it ends without an answer stays, or not."
    ),
]
OnInDoubt = Annotated[
    str,
    typer.Option(
        "--on-in-doubt", metavar="tell|ask", help="After a crash: tell the model of a call in doubt, or ask you."
    ),
]
ApprovalExpires = Annotated[
    str | None,
    typer.Option("--approval-expires", metavar="SECONDS", help="How long a question, or the answer to it, holds."),
]


def run(
    task: Task = None,
    plan: PlanFile = None,
    plan_first: PlanFirst = False,
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
    text_tools: TextTools = False,
    mcp: McpNames = None,
    mcp_trust: McpTrust = None,
    instructions: Instructions = "",
    output: OutputType = None,
    session: SessionName = None,
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    price: PriceText = None,
    prices: opt.PriceFile = None,
    compact: opt.Compact = False,
    compact_at: opt.CompactAt = None,
    compact_by: opt.CompactBy = None,
    window: opt.Window = None,
    read_results: ReadResults = False,
    last_words: opt.LastWords = False,
    parallel: Parallel = 8,
    ask: opt.AskFor = None,
    deny: opt.DenyFor = None,
    approval_expires: ApprovalExpires = None,
    on_stop: OnStop = "keep",
    on_in_doubt: OnInDoubt = "tell",
    durability: Durability = None,
    journal: opt.JournalName = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    stream: opt.Stream = True,
    otel: telemetry.Otel = False,
) -> None:
    """Do a task: ask the model, run the tools it calls, until it answers.

    The answer goes to standard output. Everything else goes to standard error: on a terminal a live view of every
    step and call, elsewhere only errors. Every run is recorded and can be resumed.

    A run has at most 20 steps unless --max-steps says otherwise; every other limit is off unless it is given.

    Without --model: $TENLINES_MODEL, else a model server on this machine (Ollama, llama.cpp), else `local`.

    \b
    Examples:
      tenlines run "Where is order 1042?" --tools orders.py
      tenlines run "Sum up this log" --model openai:gpt-5-mini --max-dollars 0.05
      tenlines run "Tidy the list" --tools files.py --max-steps 8 --timeout 120 > answer.txt
      echo "Who wrote this?" | tenlines run - --model http://127.0.0.1:8080/v1
      tenlines run "Count the files" --tools files.py --json | jq .type
      tenlines run "Tidy the shop" --tools shop.py --ask 'delete_*' --deny pay
      tenlines run "What time is it in Tokyo?" --mcp "uvx mcp-server-time" --mcp-trust time
      tenlines run "Read all of it" --tools files.py --max-steps 60 --compact
      tenlines run "And the day after?" --session trip
      tenlines run "What did I order?" --tools shop.py --output order.json | jq .total
      tenlines run "Where is order 1042, and is it paid?" --tools shop.py --plan-first
      tenlines run --plan plan.json --tools shop.py --max-dollars 0.50

    \b
    A tool is a Python function with types; a file of them is enough:
      from tenlines import tool

    \b
      @tool(read_only=True)
      def get_tracking(order_id: str) -> str:
          "Where a parcel is now."
          return ...

    Where calls need leave (@tool(approve=True), --ask), you are asked when nothing else is left to do. Without a
    terminal the run ends with exit code 5, and `tenlines approve` and `tenlines deny` answer.

    Ctrl-C stops after what is running; twice stops at once. `tenlines resume` goes on.
    """
    from tenlines.agent import Agent
    from tenlines.cli.driving import seat
    from tenlines.cli.guarding import guard
    from tenlines.cli.making import choose_model, load_files, make_model, with_text_tools
    from tenlines.cli.mcp_tools import server_tools
    from tenlines.core.events import Settings
    from tenlines.core.limits import Limits
    from tenlines.journal import open_journal

    is_planned = plan_first or plan is not None
    said = _what(task, plan, session, is_planned)
    if is_planned and output is not None:
        raise ConfigError("a plan has an answer in words: leave out --output, or the plan")
    given = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, last_words)
    limits = given.over(Limits()) or Limits()
    settings = Settings(
        limits=Limits() if is_planned else limits,  # of each step; what was typed holds for the whole
        price=opt.read_price(price),
        compaction=opt.read_compaction(compact, compact_at, compact_by, window),
        read_results=read_results,
        max_parallel=parallel,
        on_stop=opt.one_of("--on-stop", on_stop, ("keep", "undo")),
        on_in_doubt=opt.one_of("--on-in-doubt", on_in_doubt, ("tell", "ask")),
        approval_expires_s=opt.read_seconds("--approval-expires", approval_expires),
    )
    with telemetry.tracing(otel, journal, "last") as traced, seat(opt.Output(json, quiet, stream)) as here:
        name = choose_model(model, here.tell)
        chosen = make_model(with_text_tools(name) if text_tools else name, here.console)
        brought: list[ToolPort] = [*load_files(tools or [])]
        brought += server_tools(mcp or (), mcp_trust or (), brought, here.tell)
        agent = Agent(
            chosen,
            guard(brought, ask or (), deny or ()),
            instructions=instructions,
            output=read_output(output),
            settings=priced(settings, chosen.name, prices, here.clock.now()),
            journal=open_journal(journal, durability=_durability(durability)),
            observers=traced if is_planned else (*here.observers, *traced),
            clock=here.clock,
        )
        if is_planned:
            from tenlines.cli.plan import follow

            code = follow(here, agent, said, plan, given, journal)
        else:
            code = here.drive(agent, lambda: _begin(agent, said, session, here.control, journal), journal)
    raise typer.Exit(code)


def _what(task: str | None, plan: str | None, session: str | None, is_planned: bool) -> str:
    """The task; "" where it stands in the file of a plan.

    Raises:
        ConfigError: There is none, or too much was given.
    """
    if is_planned and session is not None:
        raise ConfigError("a plan is no part of a conversation: leave out --session, or the plan")
    if plan is None:
        return read_task(task)
    if task is not None:
        raise ConfigError(f"the task stands in the plan {plan}: leave TASK out, or --plan")
    return ""


def priced(settings: Settings, model: str, file: str | None, now: float) -> Settings:
    """The settings with what a file of prices says of the model.

    Raises:
        ConfigError: The file is not there, or is not one of prices.
    """
    path = opt.price_file(file)
    if path is None:
        return settings
    from msgspec.structs import replace

    from tenlines.prices import price_of, window_of

    compaction = settings.compaction
    if compaction is not None and compaction.window is None:
        settings = replace(settings, compaction=replace(compaction, window=window_of(model, path)))
    return settings if settings.price is not None else replace(settings, price=price_of(model, now, path))


def _durability(text: str | None) -> Literal["process", "power"] | None:
    known: tuple[Literal["process", "power"], ...] = ("process", "power")
    return None if text is None else opt.one_of("--durability", text, known)


def _begin(agent: Agent, task: str, session: str | None, control: Control, journal: str | None) -> RunResult:
    """Do the task, by itself or as the next one of a conversation.

    Raises:
        ConfigError: The conversation is busy.
    """
    if session is None:
        return agent.run_sync(task, control=control, raise_on_stop=False)
    from tenlines.errors import SessionBusy
    from tenlines.session import Session

    try:
        return Session(agent, session).run_sync(task, control=control, raise_on_stop=False)
    except SessionBusy as busy:
        raise ConfigError(f"{busy}: {_way_out(agent, session, journal)}") from busy


def _way_out(agent: Agent, session: str, journal: str | None) -> str:
    """The command that helps with a conversation that is busy."""
    from tenlines.cli.owners import is_gone

    last = agent.journal.runs(1, session=session)[0]
    if last.status == "awaiting_approval":
        return command("pending", [last.run_id], journal)
    return command("resume" if last.status == "open" and is_gone(last.owner) else "show", [last.run_id], journal)


def read_task(typed: str | None) -> str:
    """The task, from the command line or from standard input.

    Raises:
        ConfigError: It is empty or no text.
    """
    if typed is None:
        raise ConfigError("TASK is missing: say what is to be done, or name a plan with --plan")
    if typed == "-":
        if sys.stdin.isatty():
            typer.echo("Write the task; end with Ctrl-D on a line of its own.", err=True)
        try:
            typed = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"the task on standard input is not UTF-8 text: {error}") from error
    if not typed.strip():
        raise ConfigError('the task is empty: say what is to be done, as in tenlines run "Where is order 1042?"')
    return typed.rstrip("\n")
