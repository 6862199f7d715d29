"""`tenlines resume`: go on with a run after a limit, a cancel or a crash."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.cli.driving import Seat
    from tenlines.core.events import ToolSpec
    from tenlines.ports import Journal

Say = Annotated[
    str | None,
    typer.Option("--say", metavar="TEXT", help="Tell the model something before it goes on.", show_default=False),
]


def resume(
    run: opt.Run,
    say: Say = None,
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
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
    """Go on with a run: after a limit, a cancel, a failed model or a crash. Nothing is repeated.

    Limits are those of the whole run: after 20 steps, `--max-steps 30` allows 10 more. Those that are not given
    stay as they were. The model and the files of the tools are taken from the journal unless they are given.

    A call that was under way when the process died runs again only if its tool is read_only or idempotent. Any
    other is reported to the model as in doubt.

    \b
    Examples:
      tenlines resume last
      tenlines resume k2v9 --max-steps 40
      tenlines resume k2v9 --say "Use the archive, the live system is down."
      tenlines resume k2v9 --timeout none --model openai:gpt-5-mini
    """
    from tenlines.cli.driving import seat
    from tenlines.cli.story import read_story
    from tenlines.core.limits import Limits

    given = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, last_words)
    given.over(Limits())  # a wrong number is reported before anything is opened
    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    story = read_story(store.read(run_id))
    with seat(opt.Output(json, quiet, stream), story) as here:
        if story.end is not None and story.end.status == "answered":
            _already_answered(here, run_id, say)
            return
        agent = _agent(here, store, model, tools)
        if say is not None:
            here.control.say(say)
        limits = given.over(story.machine.state.limits)
        code = here.drive(
            lambda: agent.resume_sync(run_id, limits=limits, control=here.control, raise_on_stop=False), journal
        )
    raise typer.Exit(code)


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


def _agent(here: Seat, store: Journal, model: str | None, tools: Sequence[str] | None) -> Agent:
    """The agent of the run, from what the journal says of it and what was given instead."""
    from tenlines.agent import Agent
    from tenlines.cli.making import load_files, make_model

    start = here.story.start
    assert start is not None
    try:
        found = make_model(model or start.model, here.console)
    except ConfigError as error:
        if model is not None:
            raise
        raise ConfigError(f"the run's own model cannot be used; name one with --model. {error}") from error
    specs = here.story.machine.state.specs
    loaded = load_files(tools if tools else _files_of(specs))
    missing = {spec.name for spec in specs} - {one.spec.name for one in loaded}
    if missing:
        here.tell(f"tools that the run had and that are gone: {', '.join(sorted(missing))}")
    return Agent(found, loaded, journal=store, observers=here.observers, clock=here.clock)


def _files_of(specs: Sequence[ToolSpec]) -> list[str]:
    """The files that the tools of a run came from.

    Raises:
        ConfigError: Some came from no file; or a file is gone.
    """
    lost = [spec.name for spec in specs if not spec.source]
    if lost:
        raise ConfigError(f"the journal does not say which file has {', '.join(lost)}; name it with --tools FILE.py")
    files = list(dict.fromkeys(spec.source for spec in specs))
    for file in files:
        if not Path(file).is_file():
            raise ConfigError(f"the run's tools came from {file}, which is gone; name their file with --tools FILE.py")
    return files
