"""`tenlines approve` and `tenlines deny`: a person decides about calls that wait. Nothing runs until the resume."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tenlines.cli import options as opt
from tenlines.cli.fleets import is_of_fleet
from tenlines.drivers.callers import outermost
from tenlines.errors import ApprovalRefused, ConfigError

if TYPE_CHECKING:
    from tenlines.core.result import PendingCall
    from tenlines.core.transcript import JsonObject
    from tenlines.drivers.decisions import Decision
    from tenlines.ports import Journal

Call = Annotated[
    str | None,
    typer.Argument(
        metavar="CALL", help="Its place (2.1: step 2, first call), its id, or its tool.", show_default=False
    ),
]
All = Annotated[bool, typer.Option("--all", help="Every call of the run that waits.")]
Digest = Annotated[
    str | None,
    typer.Option("--digest", metavar="D", help="Of the call that was looked at (`pending`): no other is meant."),
]
Edit = Annotated[
    str | None,
    typer.Option("--edit", metavar="JSON", help="Other arguments: a JSON object, @FILE, or - for standard input."),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the model is told.", show_default=False)]
Resume = Annotated[bool, typer.Option("--resume", "-r", help="Go on with the run at once.")]


class Made(NamedTuple):
    """Decisions that were recorded."""

    run_id: str
    calls: Sequence[PendingCall]
    decision: Decision
    waiting: Sequence[PendingCall]
    """What still waits."""
    root: str
    """The run that goes on: its own, or the one of whose calls it is one."""
    is_of_fleet: bool
    """Its workers go on with it by themselves."""


def approve(
    run: opt.Run,
    call: Call = None,
    all_: All = False,
    edit: Edit = None,
    by: opt.By = None,
    digest: Digest = None,
    resume: Resume = False,
    tools: opt.ToolFiles = None,
    journal: opt.JournalName = None,
    json: opt.OneObject = False,
    quiet: opt.Quiet = False,
) -> None:
    """Allow calls that wait for somebody's decision. They run when the run is resumed; the workers of
    a fleet go on with their runs by themselves.

    Without CALL, the one that waits; where there are several, the message lists them. The decision is recorded with
    who made it, and holds for this very call alone: the tool, its arguments, its place.

    With --edit, the call runs with other arguments than the model wrote, and the model is told. They are checked
    against the tool where its file can be loaded. With --resume, the answer goes to standard output as `tenlines
    resume` writes it; --json then writes the decision, and the events behind it.

    \b
    Examples:
      tenlines pending
      tenlines approve last
      tenlines approve k2v9 2.1 --resume
      tenlines approve k2v9 --all --by Carla
      tenlines approve k2v9 2.1 --edit '{"amount": 5}'
    """
    from tenlines.cli.asking import who
    from tenlines.drivers.decisions import Decision

    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    _refuse_resuming(store, run_id, journal, resume)
    chosen = _chosen(store, run_id, call, all_)
    arguments = None if edit is None else _edited(store, run_id, chosen, edit, tools or ())
    made = _record(store, run_id, chosen, Decision("allow", who(by), "", arguments, digest))
    _tell(made, journal, json=json, to_stderr=resume)
    if resume:
        raise typer.Exit(_go_on(store, made.root, tools, journal, opt.Output(json, quiet, True)))


def deny(
    run: opt.Run,
    call: Call = None,
    all_: All = False,
    reason: Reason = "",
    by: opt.By = None,
    digest: Digest = None,
    resume: Resume = False,
    tools: opt.ToolFiles = None,
    journal: opt.JournalName = None,
    json: opt.OneObject = False,
    quiet: opt.Quiet = False,
) -> None:
    """Forbid calls that wait for somebody's decision. The model is told, with the reason, when the run is resumed.

    Of a call that may have taken effect before a crash it says: do not run it again.

    \b
    Examples:
      tenlines deny last --reason "Not more than we agreed on."
      tenlines deny k2v9 2.1 --resume
      tenlines deny k2v9 --all
    """
    from tenlines.cli.asking import who
    from tenlines.drivers.decisions import Decision

    store = opt.open_existing(journal)
    run_id = opt.find_run(store, run)
    _refuse_resuming(store, run_id, journal, resume)
    chosen = _chosen(store, run_id, call, all_)
    made = _record(store, run_id, chosen, Decision("deny", who(by), reason, None, digest))
    _tell(made, journal, json=json, to_stderr=resume)
    if resume:
        raise typer.Exit(_go_on(store, made.root, tools, journal, opt.Output(json, quiet, True)))


def _refuse_resuming(store: Journal, run_id: str, journal: str | None, resume: bool) -> None:
    """Leave a run of a fleet to its workers. Nothing was decided yet.

    Raises:
        ConfigError: It was to be gone on with here.
    """
    from tenlines.cli.fleets import goes_on

    if resume and is_of_fleet(store, run_id):
        raise ConfigError(
            f"the workers of its fleet go on with run {run_id} by themselves: leave --resume out, and wait for it: "
            f"{goes_on(store, run_id, journal)}"
        )


def _chosen(store: Journal, run_id: str, call: str | None, all_: bool) -> list[PendingCall]:
    """The calls that are meant. None where none waits: then recording says why.

    Raises:
        ConfigError: Several wait, and it is not said which.
        ApprovalRefused: The call that is named does not wait.
    """
    from tenlines.cli.waiting import listed
    from tenlines.drivers import decisions
    from tenlines.ports import SystemClock

    waiting = decisions.pending(store, run_id)
    if all_ and call is not None:
        raise ConfigError("name one call, or --all of them")
    if call is not None and waiting:
        return [decisions.find(waiting, run_id, call)]
    if len(waiting) > 1 and not all_:
        raise ConfigError(
            f"{len(waiting)} calls of run {run_id} wait for a decision; name one by its place, or --all:\n"
            f"{listed(waiting, SystemClock().now())}"
        )
    return list(waiting)


def _record(store: Journal, run_id: str, chosen: Sequence[PendingCall], decision: Decision) -> Made:
    """Record the decision about each.

    Raises:
        ApprovalRefused: It does not count; what was recorded before it stays.
    """
    from tenlines.drivers import decisions
    from tenlines.ports import SystemClock

    if decision.digest is not None and len(chosen) > 1:
        raise ConfigError("--digest is that of one call: name it")
    clock = SystemClock()
    waiting: Sequence[PendingCall] = ()
    if not chosen:
        decisions.decide(store, clock, run_id, None, decision)
        raise ApprovalRefused(f"no call of run {run_id} waits for a decision")
    for one in chosen:
        about = decision if decision.digest else decision._replace(digest=one.digest)
        waiting = decisions.decide(store, clock, run_id, one.place, about)
    return Made(run_id, chosen, decision, waiting, outermost(store, run_id), is_of_fleet(store, run_id))


# --- other arguments ------------------------------------------------------------------------------------


def _edited(store: Journal, run_id: str, chosen: Sequence[PendingCall], typed: str, files: Sequence[str]) -> JsonObject:
    """The arguments that are put in place, checked as far as they can be.

    Raises:
        ConfigError: They are no JSON object, the tool does not take them, or several calls would get them.
    """
    from tenlines.cli.asking import read_object

    if len(chosen) > 1:
        raise ConfigError("--edit is for one call: name it")
    arguments = read_object(_typed(typed))
    if chosen:
        _check(store, run_id, chosen[0].name, arguments, files)
    return arguments


def _typed(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--edit {text}: the file cannot be read: {error}") from error


def _check(store: Journal, run_id: str, name: str, arguments: JsonObject, files: Sequence[str]) -> None:
    from tenlines.cli.reopening import plain_tools
    from tenlines.drivers.decisions import check_edit
    from tenlines.drivers.recorder import machine_of
    from tenlines.planning.calls import checked_use

    state = machine_of(store, run_id).state
    if state.start is not None and (use := checked_use(state.start, name)) is not None:
        check_edit(use, arguments)
        return
    specs = [spec for spec in state.specs if spec.name == name]
    try:
        tool = next((one for one in plain_tools(specs, files) if one.spec.name == name), None)
        why = "it is not in its file any more"
    except ConfigError as error:
        tool, why = None, str(error)
    if tool is None:
        typer.echo(f"the arguments could not be checked against the tool {name}: {why}", err=True)
    else:
        check_edit(tool, arguments)


# --- what is said ---------------------------------------------------------------------------------------


def _tell(made: Made, journal: str | None, *, json: bool, to_stderr: bool) -> None:
    """What was decided, what still waits, the next command."""
    from tenlines.cli import moves
    from tenlines.cli.screen import json_line
    from tenlines.cli.waiting import as_json

    go_on = moves.command("wait" if made.is_of_fleet else "resume", [made.root], journal)
    if json:
        said = made.decision._asdict()
        del said["digest"]
        decided = [{**as_json(made.run_id, one), "decision": said} for one in made.calls]
        waiting = [as_json(made.run_id, one) for one in made.waiting]
        report = {"run_id": made.run_id, "decided": decided, "waiting": waiting, "next": go_on}
        typer.echo(json_line(report, sys.stdout))
    else:
        _write(made, go_on, journal, to_stderr=to_stderr)


def _write(made: Made, go_on: str, journal: str | None, *, to_stderr: bool) -> None:
    import json

    from tenlines.cli import waiting
    from tenlines.cli.screen import console_for
    from tenlines.ports import SystemClock
    from tenlines.trace import words
    from tenlines.trace.text import clean

    console = console_for(sys.stderr if to_stderr else sys.stdout)
    said = made.decision
    for one in made.calls:
        arguments = one.arguments if said.arguments is None else said.arguments
        shown = words.call(one.name, json.dumps(arguments), full=True)
        what = "allowed" if said.verdict == "allow" else "denied"
        changed = ", with other arguments" if said.arguments is not None else ""
        console.print(
            clean(f"{what}{f' by {said.by}' if said.by else ''}{changed}: {one.place}  {shown}"), soft_wrap=True
        )
    if made.waiting:
        console.print(
            f"{words.count(len(made.waiting), 'call')} of the run still wait{'s' * (len(made.waiting) == 1)}:"
        )
        for one in made.waiting:
            waiting.put_call(console, one, SystemClock().now())
        for command in waiting.commands(made.run_id, journal, made.waiting, is_of_fleet=made.is_of_fleet):
            console.print(f"  {clean(command)}", soft_wrap=True)
    if not to_stderr:
        how = "its workers go on by themselves" if made.is_of_fleet else "go on"
        console.print(f"{how}: {clean(go_on)}", soft_wrap=True)


def _go_on(store: Journal, run_id: str, tools: Sequence[str] | None, journal: str | None, output: opt.Output) -> int:
    from tenlines.cli.reopening import Given
    from tenlines.cli.resume import go_on

    return go_on(store, run_id, Given(opt.NONE_GIVEN, tools=tuple(tools or ()), journal=journal), output)
