"""`tenlines doctor`: whether a journal holds what was written, and what to do where it does not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, cast

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError, JournalDamaged, JournalError, JournalFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from tenlines.cli.keeping import KeptJournal
    from tenlines.journal.integrity import Finding
    from tenlines.ports import RunSummary

Runs = Annotated[
    list[str] | None,
    typer.Argument(metavar="RUN", help="Look at these runs alone; else at everything.", show_default=False),
]
Recover = Annotated[
    str | None,
    typer.Option("--recover", metavar="NEW.db", help="Copy every whole run into a new file.", show_default=False),
]

Kind: TypeAlias = Literal["damage", "remark", "crashed", "disk"]
LITTLE_SPACE = 50_000_000
"""Bytes on the disk of the journal from which on it is time to make room."""


SMALLEST = 512
"""Bytes of the smallest database."""


class Trouble(NamedTuple):
    """Something that is not as it should be, and the next move."""

    kind: Kind
    """`damage`: what is there is not what was written. `remark`: no run is touched by it. `crashed`: a run lost its
    process. `disk`: little room is left."""
    run_id: str
    """"" where it is about the journal."""
    what: str
    next: str


def doctor(
    run: Runs = None, recover: Recover = None, journal: opt.JournalName = None, json: opt.OneObject = False
) -> None:
    """Say whether the journal holds what was written: read all of it, and replay every run.

    It also finds runs that lost their process, and a disk that is nearly full. Nothing is changed, except that an older
    layout is brought to the present one, as by every command.

    With --recover, every whole run is copied into a new file, byte for byte; of each other run the events that can be
    read are written beside it, into RUN.damaged.jsonl. The damaged file stays as it is. No other process may be at work
    on it.

    \b
    Examples:
      tenlines doctor
      tenlines doctor k2v9 --json
      tenlines doctor --journal damaged.db --recover saved.db

    \b
    Exit codes:
      0  all is well
      1  something was found; with --recover: not every run is whole
      4  it cannot be read at all
    """
    if recover is None:
        raise typer.Exit(_examine(journal, run or (), json=json))
    if run:
        raise ConfigError("--recover takes the whole journal: name no run (`tenlines export RUN` copies one)")
    from tenlines.cli.saving import save

    raise typer.Exit(save(journal, recover, json=json))


def _examine(name: str | None, typed: Sequence[str], *, json: bool) -> int:
    from tenlines.cli.keeping import watched
    from tenlines.journal import open_journal

    path = opt.journal_file(name)
    facts = {} if path is None else file_facts(path)
    if path is not None and facts["bytes"] < SMALLEST:
        return _report(name, facts, _about_nothing(path, facts["bytes"]), json=json)
    try:
        store = cast("KeptJournal", open_journal(path or name))
    except JournalError as error:
        if path is None:
            raise
        raise _unreadable(path, facts, error, json=json) from error
    with closing(store), watched("reading the journal") as watch:
        facts.update(_store_facts(store, facts))
        troubles = [*_looked_for(store, name, typed, watch), *_lost(store, name, typed), *_disk(facts)]
    return _report(name, facts, troubles, json=json)


# --- what it is -----------------------------------------------------------------------------------------


def file_facts(path: Path) -> dict[str, Any]:
    """What is known of a file before it is opened.

    Raises:
        JournalError: It cannot be read.
    """
    from tenlines.journal.sqlite_upkeep import look

    try:
        state, disk = look(path), shutil.disk_usage(path.parent)
    except IsADirectoryError:
        raise JournalError(f"{path} is a directory; name the file of the journal") from None
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be read: {error.strerror or error}") from error
    return {
        "journal": str(path),
        "layout": state.layout,
        "bytes": state.bytes,
        "log_bytes": state.log_bytes,
        "free_disk_bytes": disk.free,
        "durability": "process",
    }


def _store_facts(store: KeptJournal, facts: dict[str, Any]) -> dict[str, Any]:
    """What is known of it when it is open."""
    counted: dict[str, Any] = {"runs": None, "open": None, "events": None}
    try:
        lines = store.runs()
        counted = {
            "runs": len(lines),
            "open": sum(one.status == "open" for one in lines),
            "events": sum(one.events for one in lines),
        }
    except JournalError:
        pass  # that is found
    if facts:
        from tenlines.journal.migrations import LAYOUT

        is_older = facts["layout"] is not None and facts["layout"] < LAYOUT
        return {"layout": LAYOUT, "layout_before": facts["layout"] if is_older else None, **counted}
    from tenlines.journal.postgres import PostgresJournal
    from tenlines.journal.postgres_layout import LAYOUT as POSTGRES_LAYOUT

    label = cast(PostgresJournal, store).label.removeprefix("the journal ")
    return {"journal": label, "layout": POSTGRES_LAYOUT, "durability": "power", **counted}


# --- what is found --------------------------------------------------------------------------------------


def _looked_for(store: KeptJournal, name: str | None, typed: Sequence[str], watch: Any) -> Iterator[Trouble]:
    """Damage, and what is wrong but does no harm."""
    from tenlines.journal.integrity import check_run, check_runs
    from tenlines.journal.sqlite import SqliteJournal

    found: Iterator[Finding]
    if typed:
        found = (finding for line in _meant(store, typed) for finding in check_run(store, line))
    elif isinstance(store, SqliteJournal):
        found = store.check(watch=watch)
    else:
        found = check_runs(store, watch)
    is_file = isinstance(store, SqliteJournal)
    for one in found:
        yield Trouble("damage" if one.is_fatal else "remark", one.run_id, one.what, _next(one, name, is_file))


def _meant(store: KeptJournal, typed: Sequence[str]) -> list[RunSummary]:
    run_ids = {opt.find_run(store, one) for one in typed}
    return [line for line in store.runs() if line.run_id in run_ids]


def _next(found: Finding, name: str | None, is_file: bool) -> str:
    from tenlines.cli.moves import command

    if is_file:
        recover = command("doctor", [], name, "--recover", "NEW.db")
        return f"{recover} copies every whole run" if found.is_fatal else f"no run is lost; {recover} puts it right"
    if found.is_fatal:
        return "restore the database from a backup, or save each sound run with `tenlines export RUN`"
    return "no run is lost"


def _lost(store: KeptJournal, name: str | None, typed: Sequence[str]) -> Iterator[Trouble]:
    """Open runs whose process on this machine is dead."""
    from tenlines.cli.moves import command
    from tenlines.cli.owners import is_gone
    from tenlines.trace.words import owner as described

    try:
        lines = _meant(store, typed) if typed else store.runs(status="open")
    except JournalError:
        return  # that is found
    for one in lines:
        if one.status == "open" and is_gone(one.owner):
            move = f"{command('resume', [one.run_id], name)}, or all of them: {command('resume', ['--all'], name)}"
            yield Trouble("crashed", one.run_id, f"it is open, and {described(one.owner)} is gone", move)


def _disk(facts: dict[str, Any]) -> Iterator[Trouble]:
    from tenlines.cli.keeping import size

    free = facts.get("free_disk_bytes")
    if free is not None and free < LITTLE_SPACE:
        what = f"the disk has {size(free)} left; runs stop when it is full"
        yield Trouble("disk", "", what, "make room, or delete old runs: tenlines prune --older-than 30d")


def _about_nothing(path: Path, count: int) -> list[Trouble]:
    from tenlines.cli.keeping import size

    what = f"{path} has {size(count)}: it holds no journal"
    return [
        Trouble(
            "damage", "", what, "if there were runs in it, they are lost; else remove it, and `tenlines run` begins one"
        )
    ]


# --- what cannot be read --------------------------------------------------------------------------------


def _unreadable(path: Path, facts: dict[str, Any], error: JournalError, *, json: bool) -> JournalError:
    """Say what it is, and give the error with whether `--recover` can help."""
    from tenlines.cli.screen import json_line

    advice = _rescue(path, facts["layout"], error)
    if json:
        typer.echo(json_line({**facts, "error": str(error), "advice": advice}, sys.stdout))
    else:
        _write_facts(facts)
    return JournalError(f"{error}{f'; {advice}' if advice else ''}")


def _rescue(path: Path, layout: int | None, error: JournalError) -> str:
    """Whether a recovery saves something: it is tried, in a folder that is thrown away."""
    import tempfile
    from pathlib import Path as Place

    from tenlines.journal.migrations import LAYOUT
    from tenlines.journal.recovery import recover

    if not isinstance(error, JournalDamaged | JournalFormatError) or (layout or 0) > LAYOUT:
        return ""  # nothing is damaged, and the error has the next move
    try:
        with tempfile.TemporaryDirectory(prefix="tenlines-doctor-") as folder:
            found = recover(path, Place(folder) / "trial.db")
    except JournalError as problem:
        return f"--recover cannot help: {problem}"
    if not (found.whole or found.damaged):
        return "--recover cannot help, no run was found in it: take a copy from before the damage"
    return f"--recover NEW.db saves {len(found.whole)} of the {len(found.whole) + len(found.damaged)} runs found in it"


# --- what is said ---------------------------------------------------------------------------------------


def _report(name: str | None, facts: dict[str, Any], troubles: Sequence[Trouble], *, json: bool) -> int:
    """Say it all. Returns the exit code."""
    from tenlines.cli.screen import json_line

    if json:
        typer.echo(json_line({**facts, "findings": [one._asdict() for one in troubles]}, sys.stdout))
    else:
        _write_facts(facts)
        _write_troubles(troubles)
    return 1 if troubles else 0


def _write_facts(facts: dict[str, Any]) -> None:
    from tenlines.cli.keeping import put_facts
    from tenlines.cli.screen import console_for

    put_facts(console_for(sys.stdout), [(name, said) for name, said in _said(facts) if said])


def _said(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts in words."""
    from tenlines.cli.keeping import size
    from tenlines.trace.words import count

    yield "journal", facts["journal"]
    before = facts.get("layout_before")
    brought = "" if before is None else f", brought to it from layout {before} just now"
    yield "layout", "unknown" if facts["layout"] is None else f"{facts['layout']}{brought}"
    if "bytes" in facts:
        waits = facts["log_bytes"]
        yield "size", size(facts["bytes"])
        yield (
            "log",
            f"{size(waits)} waited in {facts['journal']}-wal, a part of the journal" if waits else "none waited",
        )
        yield "disk", f"{size(facts['free_disk_bytes'])} free"
    if facts.get("runs") is not None:
        yield "runs", f"{count(facts['runs'], 'run')}, {facts['open']} open; {count(facts['events'], 'event')}"
    yield "durability", _DURABILITY[facts["durability"]]


_DURABILITY = {
    "process": "process: survives the death of a process; power cuts too where it is opened with durability='power'",
    "power": "power: survives power cuts, as far as the server's disk keeps its word",
}


def _write_troubles(troubles: Sequence[Trouble]) -> None:
    """Each finding, and behind those that need the same move, that move once."""
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.screen import console_for
    from tenlines.trace.text import clean
    from tenlines.trace.words import count

    console = console_for(sys.stdout)
    if not troubles:
        put(console, Text("all is well", "green"))
        return
    put(console, Text(count(len(troubles), "finding"), "bold"))
    for move in dict.fromkeys(one.next for one in troubles):
        for one in troubles:
            if one.next == move:
                about = f"run {one.run_id}: " if one.run_id else ""
                put(console, Text(clean(about + one.what), STYLE[one.kind]), 2, wrap=True)
        put(console, Text(f"next: {clean(move)}"), 4, wrap=True)


STYLE: dict[Kind, str] = {"damage": "bold red", "remark": "yellow", "crashed": "yellow", "disk": "bold red"}
