"""`tenlines plan`: split a task into steps, to be looked at and changed; and what `run` does with such a plan."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt
from tenlines.cli.mcp_tools import McpNames, McpTrust
from tenlines.cli.moves import command
from tenlines.cli.run import Instructions, read_task
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.cli.driving import Seat
    from tenlines.cli.reopening import Given
    from tenlines.core.limits import Limits
    from tenlines.core.result import RunResult
    from tenlines.planning import Plan, Planner
    from tenlines.ports import Clock, Journal, Model, Observer, ToolPort
    from tenlines.trace.story import Story

Task = Annotated[str, typer.Argument(metavar="TASK", help="What is to be done; `-` reads it from standard input.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="The file to write the plan to. [standard output]"),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the file if it is there.")]


def plan(
    task: Task,
    out: Out = None,
    replace: Replace = False,
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
    mcp: McpNames = None,
    mcp_trust: McpTrust = None,
    instructions: Instructions = "",
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    prices: opt.PriceFile = None,
    journal: opt.JournalName = None,
    quiet: opt.Quiet = False,
    stream: opt.Stream = True,
) -> None:
    """Make a plan for a task, and do nothing of it: steps, what each needs, which tools it may use.

    The model is asked without the tools; it is told what they are. What it writes is checked: names, needs, tools, no
    circle; where something is wrong it is told, and writes it anew.

    The plan is JSON, to be changed by hand: reword a step, take a tool away, add a step. `tenlines run --plan FILE`
    checks it again and does what it says then.

    \b
    Examples:
      tenlines plan "Where is order 1042, and is it paid?" --tools shop.py -o plan.json
      tenlines run --plan plan.json --tools shop.py
      tenlines plan "Tidy the list" --tools files.py > plan.json
    """
    from tenlines.agent import Agent
    from tenlines.cli.driving import seat
    from tenlines.cli.making import choose_model, load_files, make_model
    from tenlines.cli.mcp_tools import server_tools
    from tenlines.cli.run import priced
    from tenlines.core.events import Settings
    from tenlines.journal import open_journal
    from tenlines.planning import Planner
    from tenlines.planning.planner import MAKING

    given = opt.GivenLimits(None, None, max_tokens, max_dollars, timeout, False)
    limits, said = given.over(MAKING), read_task(task)
    _refuse_replacing(out, replace)  # before anything is paid for
    with seat(opt.Output(False, quiet, stream)) as here:
        chosen = make_model(choose_model(model, here.tell), here.console)
        brought: list[ToolPort] = [*load_files(tools or [])]
        brought += server_tools(mcp or (), mcp_trust or (), brought, here.tell)
        agent = Agent(
            chosen,
            brought,
            instructions=instructions,
            settings=priced(Settings(), chosen.name, prices, here.clock.now()),
            journal=open_journal(journal),
            observers=here.observers,
            clock=here.clock,
        )
        made = _made(here, Planner(agent), said, limits, journal)
    _write(made, out, {one.spec.name for one in brought if one.spec.read_only})
    if out not in (None, "-"):
        named = [*_options("--tools", tools), *_options("--mcp", mcp), *_options("--mcp-trust", mcp_trust)]
        named += [*_options("--instructions", [instructions] * bool(instructions)), *_options("--model", [model])]
        follow_it = command("run", [], journal, "--plan", str(out), *named)
        typer.echo(f"written to {out}; when it is as it should be:\n  {follow_it}")


def _made(here: Seat, planner: Planner, task: str, limits: Limits | None, journal: str | None) -> Plan:
    """The plan. Where there is none, how its run ended is said, and this is the end of the command."""
    drafter = planner.drafter()
    results: list[RunResult] = []

    def begin() -> RunResult:
        results.append(drafter.run_sync(task, limits=limits, control=here.control, raise_on_stop=False))
        return results[-1]

    code = here._replace(out=io.StringIO()).drive(drafter, begin, journal)  # the answer is not shown as it is
    if code:
        raise typer.Exit(code)
    return planner.made(results[-1], task)


def _options(name: str, values: Sequence[str | None] | None) -> list[str]:
    """An option with each of its values, as they were typed."""
    return [word for value in values or () if value is not None for word in (name, value)]


def _refuse_replacing(out: str | None, replace: bool) -> None:
    if out not in (None, "-") and not replace and Path(str(out)).expanduser().exists():
        raise ConfigError(f"{out} is there already: name another file, or say --replace")


def _write(made: Plan, out: str | None, reading: set[str]) -> None:
    from tenlines.cli.outputs import written
    from tenlines.cli.screen import console_for

    with written(out, may_replace=out is not None and Path(out).expanduser().exists()) as sink:
        sink.write(made.text().encode("utf-8", "backslashreplace"))
    console = console_for(sys.stdout if out not in (None, "-") else sys.stderr)
    if out not in (None, "-") or sys.stderr.isatty():
        for line in lines_of(made, reading):
            console.print(line, soft_wrap=True, markup=False, highlight=False)


def lines_of(made: Plan, reading: set[str]) -> list[str]:
    """A plan for people: its steps with the round in which each can be done.

    Args:
        made: The plan.
        reading: Names of the tools that only read.
    """
    from tenlines.trace.text import one_line

    width = max(len(one.id) for one in made.steps)
    lines = [f"plan: {one_line(made.task, 500)}"]
    for number, wave in enumerate(made.waves(), 1):
        for step in wave:
            lines.append(f"  {number}  {step.id:<{width}}  {one_line(step.do, 1_000)}")
            about = [f"needs: {', '.join(step.needs)}"] * bool(step.needs)
            about.append(f"may use: {', '.join(map(one_line, step.tools))}" if step.tools else "uses no tools")
            about += [] if reading.issuperset(step.tools) else ["may act, so it runs alone"]
            lines.append(f"     {'':<{width}}  ({'; '.join(about)})")
    if any(len(wave) > 1 for wave in made.waves()):
        lines.append("Steps of the same number do not need one another; those that only read run at once.")
    return lines


# --- `run --plan`, `run --plan-first`, and whoever takes such a run up again -----------------------------------


def follow(here: Seat, agent: Agent, task: str, file: str | None, given: opt.GivenLimits, journal: str | None) -> int:
    """Follow a plan, or make one first and ask a person about it; returns the exit code.

    Args:
        agent: Who does the steps. Its observers see the events of all runs.
        task: What is to be done, where that does not stand in a plan.
        file: The plan.
        given: The limits of the whole.

    Raises:
        ConfigError: The plan cannot be followed.
    """
    from tenlines.core.limits import Limits
    from tenlines.planning import Planner, load_plan

    watching = (*here.observers, *agent.observers)
    planner = Planner(agent, parallel=agent.settings.max_parallel, observers=watching)
    what = task if file is None else load_plan(file, agent.tools)
    limits = given.over(Limits(steps=None))
    return here.drive(
        planner.agent,
        lambda: planner.run_sync(what, limits=limits, control=here.control, raise_on_stop=False),
        journal,
    )


def is_planned(story: Story) -> bool:
    """Whether the run follows a plan."""
    from tenlines.planning.setup import PREFIX

    return story.start is not None and story.start.model.startswith(PREFIX)


def planner_again(
    story: Story, model: Model, store: Journal, given: Given, observers: Sequence[Observer], clock: Clock | None = None
) -> Agent:
    """The agent of a run that follows a plan, from its log and what was given instead.

    Args:
        model: Whom the steps ask.
        observers: Who watches the run itself; `given.observers` see all.

    Raises:
        ConfigError: Its tools cannot be had, or its transcript was to be made smaller.
    """
    from tenlines.agent import Agent
    from tenlines.cli.guarding import guard
    from tenlines.cli.reopening import plain_tools
    from tenlines.core.transcript import System
    from tenlines.planning import Planner
    from tenlines.planning.setup import read_start

    if given.compaction is not None:
        raise ConfigError("the run of a plan is not made smaller; its steps are, where it was begun with --compact")
    assert story.start is not None
    start, setup = story.start, read_start(story.start.messages).setup
    marked = {spec.name for spec in setup.tools if spec.approve}
    brought = plain_tools(setup.tools, given.tools, given.mcp, given.mcp_trust)
    steps = Agent(
        model,
        guard(brought, given.ask, given.deny, marked),
        instructions="".join(one.text for one in start.messages if isinstance(one, System)),
        settings=setup.settings,
        journal=store,
        observers=given.observers,
        clock=clock,
    )
    is_asked = any(spec.name == "use_plan" and spec.approve for spec in start.tools)
    return Planner(
        steps,
        review="always" if is_asked else "never",
        parallel=start.settings.max_parallel,
        name=start.agent,
        observers=observers,
    ).agent
