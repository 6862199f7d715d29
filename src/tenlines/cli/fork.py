"""`tenlines fork`: a new run from another's transcript, as it stood before one of its steps."""

from __future__ import annotations

from typing import Annotated

import typer

from tenlines.cli import options as opt

At = Annotated[
    int, typer.Option("--at", metavar="STEP", min=1, help="The step that is made anew; one after the last goes on.")
]
Say = Annotated[
    str | None, typer.Option("--say", metavar="TEXT", help="Tell the model something first.", show_default=False)
]


def fork(
    run: opt.Run,
    at: At,
    say: Say = None,
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
    ask: opt.AskFor = None,
    deny: opt.DenyFor = None,
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    last_words: opt.LastWords = False,
    journal: opt.JournalName = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    stream: opt.Stream = True,
) -> None:
    """Start a new run from a run's transcript as it stood before step --at. The other run stays as it is.

    What the calls before that step did is not done again and not undone. Limits, model and tools are those of the
    other run unless they are given; the limits count from zero.

    \b
    Examples:
      tenlines fork k2v9 --at 3
      tenlines fork k2v9 --at 3 --say "Look in the archive first."
      tenlines fork last --at 1 --model openai:gpt-5-mini
    """
    import msgspec

    from tenlines.agent import Agent
    from tenlines.cli.driving import seat
    from tenlines.cli.reopening import Given, gone, model_of, output_of, tools_of
    from tenlines.trace.story import read_story

    limits = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, last_words)
    given = Given(limits, model, tuple(tools or ()), tuple(ask or ()), tuple(deny or ()))
    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    other = read_story(store.read(run_id))
    state = other.machine.state
    settings = msgspec.structs.replace(state.settings, limits=limits.over(state.limits) or state.limits)
    with seat(opt.Output(json, quiet, stream)) as here:
        loaded = tools_of(other, given)
        if missing := gone(other, loaded):
            here.tell(missing)
        agent = Agent(
            model_of(other, model, here.console),
            loaded,
            settings=settings,
            output=output_of(state),
            name=other.start.agent if other.start else "agent",
            journal=store,
            observers=here.observers,
            clock=here.clock,
        )
        code = here.drive(
            agent, lambda: agent.fork_sync(run_id, at, say, control=here.control, raise_on_stop=False), journal
        )
    raise typer.Exit(code)
