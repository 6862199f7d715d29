"""`tenlines undo`: take back what a run did, with the undo of each tool, the last call first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tenlines.cli.driving import Seat
    from tenlines.core.result import RunResult
    from tenlines.ports import Journal
    from tenlines.trace.story import CallView, Story

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; recorded.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what would be undone, and what stands.")]


class Plan(NamedTuple):
    """What the run did and is not known to be undone."""

    undo: Sequence[CallView]
    """In the order in which it is undone."""
    standing: Sequence[CallView]
    """What has no undo."""


def undo(
    run: opt.Run,
    tools: opt.ToolFiles = None,
    by: opt.By = None,
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    take_over: opt.TakeOver = False,
    journal: opt.JournalName = None,
    json: opt.OneObject = False,
    quiet: opt.Quiet = False,
) -> None:
    """Take back what a run did: the `undo` of each call's tool, the last call first.

    First it lists what is undone and what cannot be, and asks. A run that is open is ended. What fails does not keep
    the rest from being undone; the same command tries it again, and undoes nothing twice. Ctrl-C leaves the rest for
    the same command too.

    The exit code is 0 when nothing that has an undo still stands, else 1.

    \b
    Examples:
      tenlines undo last --dry-run
      tenlines undo k2v9
      tenlines undo k2v9 --yes --reason "Ordered by mistake." --json
    """
    from tenlines.cli.asking import who
    from tenlines.cli.driving import seat
    from tenlines.cli.owners import refuse_if_alive
    from tenlines.trace.story import read_story

    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    story = read_story(store.read(run_id))
    if story.end is None and not dry_run:
        refuse_if_alive(run_id, story.owner, take_over)
    loaded = _tools(store, story, tools or ())
    plan = _plan(story, loaded)
    with seat(opt.Output(False, quiet or json, False), story) as here:
        if dry_run or not (plan.undo or _is_under_way(story)):
            _show_plan(here.out, run_id, plan, json=json)
            raise typer.Exit(0)
        if not yes:
            _confirm(run_id, plan, by_terminal=not (quiet or json))
        result = _undo(here, store, loaded, (who(by), reason))
        raise typer.Exit(_report(here.out, result, {one.spec.name for one in loaded if one.spec.undoable}, json=json))


def _tools(store: Journal, story: Story, files: Sequence[str]) -> list[Any]:
    from tenlines.cli.plan import is_planned, planner_again
    from tenlines.cli.reopening import Given, own_specs, plain_tools
    from tenlines.models.resolve import resolve

    state = story.machine.state
    if state.acted and is_planned(story):
        again = planner_again(story, resolve([]), store, Given(opt.NONE_GIVEN, tools=files), ())  # no model is asked
        return list(again.tools.values())
    return list(plain_tools(own_specs(state), files)) if state.acted else []


def _plan(story: Story, tools: Sequence[Any]) -> Plan:
    from tenlines.core.state import is_undone

    state = story.machine.state
    undoable = {one.spec.name for one in tools if one.spec.undoable}
    left = [place for place in state.acted if not is_undone(state, place)]
    views = [story.call(*place) for place in left]
    return Plan(
        [one for one in reversed(views) if one.name in undoable], [one for one in views if one.name not in undoable]
    )


def _is_under_way(story: Story) -> bool:
    from tenlines.core.state import Phase

    return story.machine.state.phase is Phase.UNDOING


def _confirm(run_id: str, plan: Plan, *, by_terminal: bool) -> None:
    """List it and ask.

    Raises:
        ConfigError: Nobody can be asked.
        typer.Exit: The person says no.
    """
    from tenlines.cli.asking import can_ask, says_yes
    from tenlines.cli.screen import console_for

    if not (by_terminal and can_ask()):
        raise ConfigError(f"nobody can be asked here: look with `tenlines undo {run_id} --dry-run`, then say --yes")
    console = console_for(sys.stderr)
    _write_plan(console, run_id, plan)
    if not says_yes(console, "Undo this?"):
        console.print("nothing was undone")
        raise typer.Exit(1)


def _undo(here: Seat, store: Journal, tools: list[Any], asked: tuple[str, str]) -> RunResult:
    """Undo, until it is done or Ctrl-C leaves the rest."""
    from tenlines.agent import Agent
    from tenlines.cli.screen import console_for

    assert here.story.start is not None
    run_id, (by, reason) = here.story.start.run_id, asked
    agent = Agent([], tools, journal=store, observers=here.observers, clock=here.clock)  # no model is asked
    try:
        with here.moving():
            return agent.undo_sync(run_id, by=by, reason=reason)
    except KeyboardInterrupt:
        left = f"stopped; what is left is undone by `tenlines undo {run_id}`"
        (here.console or console_for(sys.stderr)).print(left, style="yellow", soft_wrap=True)
        raise typer.Exit(130) from None


# --- what is said ---------------------------------------------------------------------------------------


def _show_plan(out: TextIO, run_id: str, plan: Plan, *, json: bool) -> None:
    from tenlines.cli.screen import console_for, json_line

    if not json:
        _write_plan(console_for(out), run_id, plan)
        return
    listed = {"would_undo": [_call(one) for one in plan.undo], "standing": [_call(one) for one in plan.standing]}
    out.write(json_line({"run_id": run_id, **listed}, out) + "\n")


def _call(view: CallView) -> dict[str, Any]:
    from tenlines.core.outcomes import parse_arguments

    arguments = parse_arguments(view.arguments).value
    return {"place": view.place, "name": view.name, "arguments": arguments, "outcome": view.standing}


def _write_plan(console: Console, run_id: str, plan: Plan) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.trace import words

    if not plan.undo:
        put(console, Text(f"nothing of run {run_id} is left to undo", "bold"))
    else:
        put(console, Text(f"of run {run_id}, in this order, would be undone:", "bold"), wrap=True)
    for one in plan.undo:
        put(console, Text(f"{one.place}  {words.call(one.name, one.arguments)}  {one.standing}"), 2, wrap=True)
    if plan.standing:
        put(console, Text("cannot be undone, the tool has no undo:", "yellow"))
    for one in plan.standing:
        put(console, Text(f"{one.place}  {words.call(one.name, one.arguments)}  {one.standing}"), 2, wrap=True)


def _report(out: TextIO, result: RunResult, undoable: set[str], *, json: bool) -> int:
    """What came of it. Returns the exit code."""
    from tenlines.cli.screen import console_for, json_line

    failed = [one for one in result.undone if one.outcome != "ok"]
    tried = {(one.step, one.position) for one in failed}
    standing = [one for one in result.standing if (one.step, one.position) not in tried]
    rows: dict[str, list[dict[str, Any]]] = {
        "undone": [_row(one) for one in result.undone if one.outcome == "ok"],
        "failed": [{**_row(one), "outcome": one.outcome, "error": one.text} for one in failed],
        "standing": [{**_row(one), "outcome": one.outcome} for one in standing],
    }
    if json:
        out.write(json_line({"run_id": result.run_id, **rows}, out) + "\n")
    else:
        _write_report(console_for(out), result.run_id, rows)
    return 1 if failed or any(one.name in undoable for one in standing) else 0


def _row(one: Any) -> dict[str, Any]:
    return {"place": f"{one.step}.{one.position + 1}", "name": one.name}


def _write_report(console: Console, run_id: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.trace.text import one_line

    for row in rows["undone"]:
        put(console, Text(f"undone  {row['place']}  {one_line(row['name'])}", "green"), wrap=True)
    for row in rows["failed"]:
        line = f"failed  {row['place']}  {one_line(row['name'])}: {one_line(row['error'] or row['outcome'], 500)}"
        put(console, Text(line, "bold red"), wrap=True)
    for row in rows["standing"]:
        put(console, Text(f"stands  {row['place']}  {one_line(row['name'])}: it has no undo", "yellow"), wrap=True)
    if rows["failed"]:
        put(console, Text(f"try again what failed: tenlines undo {run_id}", "dim"), wrap=True)
