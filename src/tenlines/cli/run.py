"""`tenlines run`: give a task to a model with tools, and watch."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tenlines.cli import options as opt

Task = Annotated[str, typer.Argument(metavar="TASK", help="What is to be done; `-` reads it from standard input.")]
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


def run(
    task: Task,
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
    instructions: Instructions = "",
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    price: PriceText = None,
    last_words: opt.LastWords = False,
    parallel: Parallel = 8,
    journal: opt.JournalName = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    stream: opt.Stream = True,
) -> None:
    """Do a task: ask the model, run the tools it calls, until it answers.

    The answer goes to standard output. Everything else goes to standard error: on a terminal a live view of every
    step and call, elsewhere only errors. Every run is recorded and can be resumed.

    A run has at most 20 steps unless --max-steps says otherwise; every other limit is off unless it is given.

    Without --model: $TENLINES_MODEL, else a model server on this machine (Ollama, llama.cpp), else `local`.

    \b
    Examples:
      tenlines run "Where is order 1042?" --tools orders.py
      tenlines run "Sum up this log" --model openai:gpt-5-mini --max-dollars 0.05 --price 0.25/2
      tenlines run "Tidy the list" --tools files.py --max-steps 8 --timeout 120 > answer.txt
      echo "Who wrote this?" | tenlines run - --model http://127.0.0.1:8080/v1
      tenlines run "Count the files" --tools files.py --json | jq .type

    \b
    A tool is a Python function with types; a file of them is enough:
      from tenlines import tool

    \b
      @tool(read_only=True)
      def get_tracking(order_id: str) -> str:
          "Where a parcel is now."
          return ...

    Ctrl-C stops after what is running; twice stops at once. `tenlines resume` goes on.
    """
    from tenlines.agent import Agent
    from tenlines.cli.driving import seat
    from tenlines.cli.making import choose_model, load_files, make_model
    from tenlines.core.events import Settings
    from tenlines.core.limits import Limits
    from tenlines.journal import open_journal

    given = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, last_words)
    settings = Settings(limits=given.over(Limits()) or Limits(), price=opt.read_price(price), max_parallel=parallel)
    said = read_task(task)
    with seat(opt.Output(json, quiet, stream)) as here:
        agent = Agent(
            make_model(choose_model(model, here.tell), here.console),
            load_files(tools or []),
            instructions=instructions,
            settings=settings,
            journal=open_journal(journal),
            observers=here.observers,
            clock=here.clock,
        )
        code = here.drive(lambda: agent.run_sync(said, control=here.control, raise_on_stop=False), journal)
    raise typer.Exit(code)


def read_task(typed: str) -> str:
    """The task, from the command line or from standard input.

    Raises:
        ConfigError: It is empty or no text.
    """
    from tenlines.errors import ConfigError

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
