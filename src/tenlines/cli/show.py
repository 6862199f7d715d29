"""`tenlines show`: one run, from its journal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import hiding
from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.cli.page import Page
    from tenlines.core.events import AnyEvent
    from tenlines.core.transcript import Message
    from tenlines.ports import Journal
    from tenlines.trace.redaction import Redaction

Lines = Annotated[bool, typer.Option("--json", help="The events as they were recorded, one JSON a line.")]
Step = Annotated[int | None, typer.Option("--step", metavar="N", min=1, help="This step alone, unfolded.")]
Calls = Annotated[bool, typer.Option("--calls", help="The calls alone, a line each.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="The transcript as the model has it; with --step N, as it was sent for that step.")
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on showing what happens, until the run ends. Ctrl-C only looks away.")
]
Full = Annotated[bool, typer.Option("--full", help="Unfold everything: whole results, tracebacks, instructions.")]


def show(
    run: opt.Run,
    step: Step = None,
    calls: Calls = False,
    raw: Raw = False,
    follow: Follow = False,
    full: Full = False,
    redact: hiding.Names = None,
    redact_with: hiding.With = None,
    journal: opt.JournalName = None,
    json: Lines = False,
) -> None:
    """Show a run: the task, each step with its calls and results, notes, the end, what it used.

    Long results are folded to their first lines. Times, tokens and outcomes come from the journal.

    With --follow a run that another process works on is watched; it is not disturbed, and goes on when you look away.

    \b
    Examples:
      tenlines show last
      tenlines show k2v9 --step 3
      tenlines show k2v9 --calls
      tenlines show k2v9 --raw --step 3
      tenlines show last --follow
      tenlines show k2v9 --full --redact email | less
      tenlines show k2v9 --json | jq 'select(.type == "CallFailed")'
    """
    _refuse_mixtures(step=step, calls=calls, raw=raw, follow=follow, json=json)
    redaction = hiding.named(redact, redact_with)
    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    if follow:
        raise typer.Exit(_follow(store, run_id, redaction, journal, json=json))
    if json:
        _write_json(redaction.log(store.read(run_id)) if redaction else store.read(run_id))
    elif raw:
        _write_raw(store, run_id, step, redaction)
    else:
        _write_page(_page(store, run_id, redaction, journal, full=full or step is not None), step, calls=calls)


def _refuse_mixtures(*, step: int | None, calls: bool, raw: bool, follow: bool, json: bool) -> None:
    """Options that mean different views.

    Raises:
        ConfigError: Two were given.
    """
    views = {"--calls": calls, "--raw": raw, "--json": json}
    given = [name for name, is_given in views.items() if is_given]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} are different views: take one of them")
    if follow and (step is not None or calls or raw):
        raise ConfigError("--follow shows the run as it goes on: leave --step, --calls and --raw out")
    if json and step is not None:
        raise ConfigError("--json writes the whole log: leave --step out, and choose from it")


def _page(store: Journal, run_id: str, redaction: Redaction, journal: str | None, *, full: bool) -> Page:
    from tenlines.cli.page import Page
    from tenlines.cli.screen import console_for
    from tenlines.trace.story import read_story

    story = read_story(store.read(run_id), redaction)
    return Page(console_for(sys.stdout), story, full=full, journal=journal)


def _write_page(page: Page, step: int | None, *, calls: bool) -> None:
    if calls:
        found = page.calls(step)
    elif step is None:
        found = page.whole()
    else:
        found = page.step(step)
    if not found:
        assert page.story.start is not None
        raise _no_such_step(step, page.story.start.run_id, page.story.machine.state.account.steps)


def _no_such_step(step: int | None, run_id: str, steps: int) -> ConfigError:
    return ConfigError(f"--step {step}: run {run_id} has {steps} step{'' if steps == 1 else 's'}")


def _write_json(events: Iterable[AnyEvent]) -> None:
    for event in events:
        _write_event(event)


def _write_event(event: AnyEvent) -> None:
    from tenlines.core import codec
    from tenlines.trace.text import clean_json

    line = codec.encode(event).decode()
    typer.echo(clean_json(line) if sys.stdout.isatty() else line)


def _write_raw(store: Journal, run_id: str, step: int | None, redaction: Redaction) -> None:
    from tenlines.cli.transcript import transcript_lines
    from tenlines.trace.text import clean

    redaction.learn(store.read(run_id) if redaction else ())
    is_terminal = sys.stdout.isatty()
    for line in transcript_lines(redaction.of(tuple(_messages(store, run_id, step)))):
        typer.echo(clean(line) if is_terminal else line)


def _messages(store: Journal, run_id: str, step: int | None) -> Iterable[Message]:
    from tenlines.agent import transcript_before
    from tenlines.drivers.recorder import machine_of

    if step is None:
        return machine_of(store, run_id).state.messages
    found = transcript_before(store.read(run_id), step)
    if found is None:
        raise _no_such_step(step, run_id, machine_of(store, run_id).state.account.steps)
    return found


def _follow(store: Journal, run_id: str, redaction: Redaction, journal: str | None, *, json: bool) -> int:
    """Watch until the run ends; returns the exit code."""
    from tenlines.cli.following import pass_on, watch
    from tenlines.cli.page import Page
    from tenlines.cli.screen import console_for
    from tenlines.ports import SystemClock

    try:
        if json:
            pass_on(store, run_id, SystemClock(), lambda event: _write_event(redaction.of(event)))
        else:
            redaction.learn(store.read(run_id) if redaction else ())
            story = watch(store, run_id, SystemClock(), redaction)
            page = Page(console_for(sys.stdout), story, full=False, journal=journal)
            page.answer()
            page.end()
    except KeyboardInterrupt:
        typer.echo(f"the run goes on; `tenlines show {run_id} --follow` looks again", err=True)
        return 130
    return 0
