"""`tenlines resume`: go on with a run after a limit, a cancel, a decision or a crash; or with all that crashed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt
from tenlines.cli import telemetry
from tenlines.cli.mcp_tools import McpNames, McpTrust
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.cli.driving import Seat
    from tenlines.cli.reopening import Given
    from tenlines.ports import Journal

RunOrAll = Annotated[
    str | None, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or `last`.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Every open run whose process on this machine died.")]
Parallel = Annotated[
    int, typer.Option("--parallel", metavar="N", min=1, max=100, help="With --all: runs that are worked on at once.")
]


def resume(
    run: RunOrAll = None,
    all_: All = False,
    say: opt.Say = None,
    take_over: opt.TakeOver = False,
    parallel: Parallel = 1,
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
    mcp: McpNames = None,
    mcp_trust: McpTrust = None,
    ask: opt.AskFor = None,
    deny: opt.DenyFor = None,
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    last_words: opt.LastWords = False,
    compact: opt.Compact = False,
    compact_at: opt.CompactAt = None,
    compact_by: opt.CompactBy = None,
    window: opt.Window = None,
    journal: opt.JournalName = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    stream: opt.Stream = True,
    otel: telemetry.Otel = False,
) -> None:
    """Go on with a run: after a limit, a cancel, a decision, a failed model or a crash. Nothing is repeated.

    Limits are those of the whole run: after 20 steps, `--max-steps 30` allows 10 more. Those that are not given
    stay as they were. The model, the files of the tools and the MCP servers are taken from the journal unless they
    are given.

    A call that was under way when the process died runs again only if its tool is read_only or idempotent. Any
    other is looked up with the tool's `reconcile`, or reported as in doubt.

    A run whose process is alive is left to it. So is a run of a fleet to its workers (`tenlines wait`), while it is not
    over; one that ended without an answer is gone on with here, or by them: `tenlines submit --again`.

    A tool whose calls needed leave goes on needing it; what --deny named is asked about, unless --deny names it again.

    With --all: every open run whose process on this machine is known to be dead, one line for each; not those of
    a fleet. The exit code is 0 when each of them was answered, or waits for a decision.

    \b
    Examples:
      tenlines resume last
      tenlines resume k2v9 --max-steps 40
      tenlines resume k2v9 --say "Use the archive, the live system is down."
      tenlines resume k2v9 --timeout none --model openai:gpt-5-mini
      tenlines resume k2v9 --compact
      tenlines resume --all --parallel 4
    """
    from tenlines.cli.reopening import Given
    from tenlines.core.limits import Limits

    limits = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, last_words)
    limits.over(Limits())  # a wrong number is reported before anything is opened
    given = Given(limits, model, tuple(tools or ()), tuple(ask or ()), tuple(deny or ()), say, take_over, journal)
    given = given._replace(compaction=opt.read_compaction(compact, compact_at, compact_by, window))
    given = given._replace(mcp=tuple(mcp or ()), mcp_trust=tuple(mcp_trust or ()))
    output = opt.Output(json, quiet, stream)
    if (run is None) != all_:
        raise ConfigError("name one run, as in `tenlines resume last`, or all that crashed: `tenlines resume --all`")
    store = opt.open_existing(journal)
    run_id = None if run is None else opt.find_run(store, run)
    with telemetry.tracing(otel, journal, run_id or "RUN") as traced:
        code = _go_on(store, run_id, given._replace(observers=traced), output, parallel)
    raise typer.Exit(code)


def _go_on(store: Journal, run_id: str | None, given: Given, output: opt.Output, parallel: int) -> int:
    if run_id is not None:
        return go_on(store, run_id, given, output)
    from tenlines.cli.recovering import recover

    return recover(store, given, output, parallel)


def go_on(store: Journal, run_id: str, given: Given, output: opt.Output) -> int:
    """Go on with a run until it ends, and say how it did; returns the exit code.

    Raises:
        ConfigError: Another process works on it, it is answered and something was to be said, or its model or tools
            cannot be had.
    """
    from tenlines.cli.driving import WAITS, seat
    from tenlines.cli.fleets import refuse_if_of_fleet
    from tenlines.cli.owners import refuse_if_alive
    from tenlines.drivers.letters import waiting
    from tenlines.trace.story import read_story

    story = read_story(store.read(run_id))
    if story.end is None or story.end.status == "awaiting_approval":
        refuse_if_of_fleet(store, run_id, given.journal, given.take_over)
    if story.end is None:
        refuse_if_alive(run_id, story.owner, given.take_over)
    with seat(output, story) as here:
        if story.end is not None and story.end.status == "answered":
            _already_answered(here, run_id, given.say)
            return 0
        is_idle = given.is_nothing and _only_waits(here) and not waiting(store, run_id, story.machine.state.mail)
        if is_idle and not here.can_ask:
            here.conclude(story.machine.result(), given.journal, story.in_doubt)
            return WAITS
        agent = _agent(here, store, given)
        if given.say is not None:
            here.control.say(given.say)
        if is_idle:
            return here.drive(agent, story.machine.result, given.journal)
        limits = given.limits.over(story.machine.state.limits)
        return here.drive(
            agent,
            lambda: agent.resume_sync(
                run_id, limits=limits, control=here.control, compaction=given.compaction, raise_on_stop=False
            ),
            given.journal,
        )


def _only_waits(here: Seat) -> bool:
    """Whether resuming would find nothing to do: no decision was made, and none of the questions has expired."""
    end, now = here.story.end, here.clock.now()
    if end is None or end.status != "awaiting_approval" or here.story.is_decided:
        return False
    pending = here.story.machine.result().pending
    return bool(pending) and all(one.expires_at is None or now < one.expires_at for one in pending)


def _already_answered(here: Seat, run_id: str, say: str | None) -> None:
    """Show the answer that is there. To go on from it would be a new task."""
    from tenlines.cli.driving import JsonLines

    if say is not None:
        raise ConfigError(f"run {run_id} is answered, so nothing more can be said in it; start a new one with `run`")
    typer.echo(f"run {run_id} is answered already; there was nothing to do", err=True)
    assert here.story.end is not None
    if isinstance(here.watcher, JsonLines):
        here.watcher.write(here.story.end)
    else:
        here.answer(here.story.end.answer or "")


def _agent(here: Seat, store: Journal, given: Given) -> Agent:
    """The agent of the run, from what the journal says of it and what was given instead."""
    from tenlines.agent import Agent
    from tenlines.cli.plan import is_planned, planner_again
    from tenlines.cli.reopening import gone, model_of, tools_of

    model = model_of(here.story, given.model, here.console)
    if is_planned(here.story):
        watching = (*here.observers, *given.observers)
        return planner_again(here.story, model, store, given, watching, here.clock)
    tools = tools_of(here.story, given)
    if missing := gone(here.story, tools):
        here.tell(missing)
    return Agent(model, tools, journal=store, observers=(*here.observers, *given.observers), clock=here.clock)
