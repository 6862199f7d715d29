"""`tenlines prune`: delete runs that ended long ago."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer

from tenlines.cli import options as opt
from tenlines.drivers.callers import caller_of
from tenlines.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tenlines.cli.keeping import KeptJournal
    from tenlines.journal.sqlite_upkeep import Given
    from tenlines.ports import RunSummary

OlderThan = Annotated[
    str, typer.Option("--older-than", metavar="AGE", help="What ended longer ago: 30d, 12h, 2w.", show_default=False)
]
Statuses = Annotated[
    list[str] | None,
    typer.Option("--status", metavar="STATUS", help="Only those that ended so. May be given several times."),
]
Keep = Annotated[int, typer.Option("--keep", metavar="N", min=0, help="Keep the newest N runs, however old they are.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

_NOT_ENDED = ("open", "awaiting_approval")
_AT_ONCE = 100
"""Runs that are deleted before it is said how far it is; a database deletes so many together, and lets nobody write
meanwhile."""


class Room(NamedTuple):
    """What became of the room in the file."""

    before: int
    after: int
    given: Given
    problem: str = ""


def prune(
    older_than: OlderThan,
    status: Statuses = None,
    keep: Keep = 0,
    dry_run: DryRun = False,
    yes: Yes = False,
    journal: opt.JournalName = None,
    json: opt.OneObject = False,
) -> None:
    """Delete runs that ended long ago, each as a whole: after that they cannot be shown, resumed or undone.

    Never deleted: runs that are open or wait for a decision, and those that are calls of such runs; runs of a session
    whose newest run is younger; the newest run of a session while others of it stay, because the conversation goes on
    from there.

    It says what would be deleted, and asks. Without a terminal it needs --yes. A file is made smaller where a tenth of
    it is free and no other process has it open; else later runs use what was freed. Ctrl-C leaves what is not deleted
    yet.

    \b
    Examples:
      tenlines prune --older-than 30d --dry-run
      tenlines prune --older-than 2w --status answered --keep 1000
      tenlines prune --older-than 90d --yes --json
    """
    from tenlines.cli.keeping import opened
    from tenlines.ports import SystemClock

    before = SystemClock().now() - opt.read_age("--older-than", older_than)
    wanted = _read_statuses(status or ())
    path = opt.journal_file(journal)
    with opened(journal) as store:
        runs = store.runs()
        lines = _not_needed(store, _chosen(runs, before, wanted, keep), runs)
        plan = _plan(lines, path, SystemClock().now())
        if dry_run or not lines:
            _show(plan, json=json)
            return
        if not yes:
            _confirm(plan, by_terminal=not json)
        gone, is_whole = _delete(store, lines)
    room = None if path is None or not is_whole else _give_back(path)
    _report(plan, gone, room, is_file=path is not None, json=json)
    if not is_whole:
        raise typer.Exit(130)


# --- what is meant --------------------------------------------------------------------------------------


def _read_statuses(given: Sequence[str]) -> frozenset[str]:
    from tenlines.core.events import Status

    known = tuple(one for one in get_args(Status) if one not in _NOT_ENDED)
    for one in given:
        if one in _NOT_ENDED:
            raise ConfigError(f"--status {one}: such a run did not end, and is never deleted")
        opt.one_of("--status", one, known)
    return frozenset(given or known)


def _chosen(lines: Sequence[RunSummary], before: float, statuses: frozenset[str], keep: int) -> list[RunSummary]:
    """The runs that go. Within a session the oldest is first, so that it can be stopped at any moment.

    Args:
        before: Unix time; what happened in a run lately is earlier.
        keep: How many of the newest stay.
    """
    newest = {one.run_id for one in sorted(lines, key=lambda one: -one.last_at)[:keep]}
    chosen = {
        one.run_id: one
        for one in reversed(lines)
        if one.status in statuses and one.last_at < before and one.run_id not in newest
    }
    sessions: dict[str, list[RunSummary]] = {}
    for one in lines:
        if one.session:
            sessions.setdefault(one.session, []).append(one)
    for session in sessions.values():
        for one in _kept_for(session, chosen, before):
            chosen.pop(one.run_id, None)
    return sorted(chosen.values(), key=lambda one: (one.turn, one.started_at))


def _not_needed(store: KeptJournal, chosen: list[RunSummary], runs: Sequence[RunSummary]) -> list[RunSummary]:
    """Those that no run which goes on will read again: what a call was, that run knows from the run that it is."""
    going_on = {one.run_id for one in runs if one.status in _NOT_ENDED}
    return [one for one in chosen if not going_on or caller_of(store, one.run_id) not in going_on]


def _kept_for(session: Sequence[RunSummary], chosen: Collection[str], before: float) -> list[RunSummary]:
    """The runs that a session needs: all while it is in use, else its end as long as there is more of it."""
    end = max(session, key=lambda one: one.turn)
    if end.last_at >= before or end.status in _NOT_ENDED:
        return list(session)
    return [] if all(one.run_id in chosen for one in session) else [end]


def _plan(lines: Sequence[RunSummary], path: Path | None, now: float) -> dict[str, Any]:
    """What would be deleted, for eyes and for programs."""
    from tenlines.journal.sqlite_upkeep import bytes_of

    run_ids = [one.run_id for one in lines]
    return {
        "runs": run_ids,
        "statuses": dict(Counter(one.status for one in lines).most_common()),
        "events": sum(one.events for one in lines),
        "text_bytes": None if path is None or not lines else bytes_of(path, run_ids),
        "oldest_at": min((one.last_at for one in lines), default=None),
        "newest_at": max((one.last_at for one in lines), default=None),
        "now": now,
    }


def _confirm(plan: dict[str, Any], *, by_terminal: bool) -> None:
    """Say what goes, and ask.

    Raises:
        ConfigError: Nobody can be asked.
        typer.Exit: The person says no.
    """
    from tenlines.cli.asking import can_ask, says_yes
    from tenlines.cli.screen import console_for

    if not (by_terminal and can_ask()):
        raise ConfigError("nobody can be asked here: look with --dry-run, then say --yes")
    console = console_for(sys.stderr)
    _write_plan(console, plan)
    if not says_yes(console, "Delete for good?"):
        console.print("nothing was deleted")
        raise typer.Exit(1)


# --- the deed -------------------------------------------------------------------------------------------


def _delete(store: KeptJournal, lines: Sequence[RunSummary]) -> tuple[int, bool]:
    """How many were deleted, and whether that was done without a Ctrl-C."""
    from tenlines.cli.keeping import watched

    with watched("deleting") as watch:
        try:
            for done, some in _parts(lines):
                watch(done, len(lines))
                store.delete(some)
            is_whole = True
        except KeyboardInterrupt:
            is_whole = False
    left = {one.run_id for one in store.runs()}
    return sum(one.run_id not in left for one in lines), is_whole


def _parts(lines: Sequence[RunSummary]) -> Iterator[tuple[int, Sequence[RunSummary]]]:
    for begin in range(0, len(lines), _AT_ONCE):
        yield begin, lines[begin : begin + _AT_ONCE]


def _give_back(path: Path) -> Room:
    from tenlines.cli.keeping import watched
    from tenlines.journal.sqlite_upkeep import give_back

    before = path.stat().st_size
    try:
        with watched("making the file smaller"):
            given, problem = give_back(path), ""
    except JournalError as error:
        given, problem = "little", str(error)
    except KeyboardInterrupt:
        given, problem = "little", "interrupted"
    return Room(before, path.stat().st_size, given, problem)


# --- what is said ---------------------------------------------------------------------------------------


def _show(plan: dict[str, Any], *, json: bool) -> None:
    from tenlines.cli.screen import console_for

    if json:
        _write_json({**plan, "deleted": 0})
    else:
        _write_plan(console_for(sys.stdout), plan)


def _write_plan(console: Console, plan: dict[str, Any]) -> None:
    from rich.text import Text

    from tenlines.cli.keeping import put_facts, size
    from tenlines.trace import words

    if not plan["runs"]:
        console.print("no run is to be deleted")
        return
    console.print(Text(f"{words.count(len(plan['runs']), 'run')} would be deleted", "bold"))
    takes = "" if plan["text_bytes"] is None else f", {size(plan['text_bytes'])} of text"
    oldest, newest = (words.ago(plan["now"] - plan[f"{which}_at"]) for which in ("oldest", "newest"))
    put_facts(
        console,
        (
            ("status", ", ".join(f"{name} {number:,}" for name, number in plan["statuses"].items())),
            ("ended", f"the oldest {oldest}, the newest {newest}"),
            ("content", f"{words.count(plan['events'], 'event')}{takes}"),
        ),
    )


def _write_json(value: dict[str, Any]) -> None:
    from tenlines.cli.screen import json_line

    typer.echo(json_line({name: value[name] for name in value if name != "now"}, sys.stdout))


def _report(plan: dict[str, Any], gone: int, room: Room | None, *, is_file: bool, json: bool) -> None:
    from tenlines.trace import words
    from tenlines.trace.text import clean

    if json:
        freed = None if room is None else room.before - room.after
        _write_json({**plan, "deleted": gone, "bytes_given_back": freed})
        return
    chosen = len(plan["runs"])
    if gone == chosen:
        typer.echo(f"{words.count(gone, 'run')} deleted")
    else:
        why = "what is left went on meanwhile, or was not reached before Ctrl-C"
        typer.echo(f"{gone:,} of {words.count(chosen, 'run')} deleted; {why}")
    typer.echo(clean(_about_room(room)) if is_file else _USED_LATER)


_USED_LATER = "what was freed is used for later runs"


def _about_room(room: Room | None) -> str:
    from tenlines.cli.keeping import size

    if room is None:
        return _USED_LATER
    if room.problem:
        return f"{_USED_LATER}; the file was not made smaller: {room.problem}"
    if room.given == "given":
        return f"the file went from {size(room.before)} to {size(room.after)}"
    why = "another process has it open" if room.given == "busy" else "little of it is free"
    return f"the file stays at {size(room.after)}, because {why}; {_USED_LATER}"
