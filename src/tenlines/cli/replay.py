"""`tenlines replay`: would the tools and instructions of today send the same requests? Nothing acts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError, MisuseError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.ports import Journal
    from tenlines.testing import ReplayMismatch
    from tenlines.trace.story import Story

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN", help="Runs: ids, the beginnings of some, or `last`.", show_default=False),
]
Instructions = Annotated[
    str | None,
    typer.Option("--instructions", metavar="TEXT", help="Standing instructions as they are today. [the recorded ones]"),
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line, one for each run.")]


def replay(
    runs: Runs,
    tools: opt.ToolFiles = None,
    instructions: Instructions = None,
    journal: opt.JournalName = None,
    json: Lines = False,
) -> None:
    """Do recorded runs again, with their tools as they are today: would every request be the same?

    No model is asked and no tool runs: replies, results and what people decided are taken from the journal. Requests,
    checks of arguments, refusals, cuts and the end are made anew. What differs is shown, with the step. In your own
    tests the same is `tenlines.testing.replay` and the fixture `recorded`, with an agent of yours.

    The exit code is 1 where a run would go another way.

    \b
    Examples:
      tenlines replay last
      tenlines replay k2v9 --tools orders.py
      tenlines replay k2v9 --instructions "$(cat prompt.txt)"
      tenlines replay $(tenlines runs --status answered --json | jq -r .run_id)
    """
    store = opt.open_existing(journal)
    found = list(dict.fromkeys(opt.find_run(store, one) for one in runs))
    reports = [_report(store, run_id, tools or (), instructions) for run_id in found]
    for report in reports:
        _write(report, json=json)
    if not all(report["same"] for report in reports):
        raise typer.Exit(1)


def _report(store: Journal, run_id: str, files: Any, instructions: str | None) -> dict[str, Any]:
    """What came of one run.

    Raises:
        ConfigError: It has not ended, or its tools cannot be had.
    """
    from tenlines.testing import ReplayMismatch
    from tenlines.testing import replay as again
    from tenlines.trace.story import read_story

    story = read_story(store.read(run_id))
    if story.end is None:
        raise ConfigError(f"run {run_id} has not ended: resume it to its end, then replay it")
    try:
        result = again(_agent(story, files, instructions), store, run_id)
    except MisuseError as error:
        raise ConfigError(str(error)) from error
    except ReplayMismatch as mismatch:
        return _difference(run_id, mismatch)
    return {"run_id": run_id, "same": True, "steps": result.steps, "calls": len(result.calls)}


def _difference(run_id: str, mismatch: ReplayMismatch) -> dict[str, Any]:
    names = ("step", "part", "recorded", "now", "changed")
    return {"run_id": run_id, "same": False, **{name: getattr(mismatch, name) for name in names}, "text": str(mismatch)}


def _agent(story: Story, files: Any, instructions: str | None) -> Agent:
    """The agent of the run, with its tools as they are now. Its model is a name: nobody asks it."""
    from tenlines.agent import Agent
    from tenlines.cli.reopening import Given, output_of, tools_of
    from tenlines.core.transcript import System
    from tenlines.testing.answering import RecordedModel

    start = story.start
    assert start is not None
    first = start.messages[0] if start.messages else None
    told = first.text if isinstance(first, System) else ""
    return Agent(
        RecordedModel(start.model, {}),
        tools_of(story, Given(opt.NONE_GIVEN, tools=tuple(files))),
        instructions=told if instructions is None else instructions,
        settings=start.settings,
        output=output_of(story.machine.state),
        name=start.agent,
        journal="memory",
    )


def _write(report: dict[str, Any], *, json: bool) -> None:
    from tenlines.cli.screen import json_line
    from tenlines.trace.text import clean
    from tenlines.trace.words import count

    if json:
        typer.echo(json_line({name: value for name, value in report.items() if name != "text"}, sys.stdout))
    elif report["same"]:
        asked = f"{count(report['steps'], 'step')} and {count(report['calls'], 'call')}"
        typer.echo(f"run {report['run_id']} goes the same way: {asked}")
    else:
        typer.echo(clean(report["text"]))
