"""Calls that wait for somebody's decision: what is asked, why, how long it holds, and the commands that answer."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from tenlines.cli import moves
from tenlines.cli.lines import put
from tenlines.core.result import PausedCall, PendingCall
from tenlines.trace import words
from tenlines.trace.text import clean, one_line

QUESTION = {"call": "may it run?", "in_doubt": "it may have taken effect before a crash; may it run again?"}


def put_call(console: Console, one: PendingCall, now: float, *, title: str = "") -> None:
    """A call as a person needs it to decide: its arguments are whole."""
    head = Text(f"{title}{one.place}  ", "bold").append(clean(one.name), "bold cyan")
    put(console, head.append(f"  {QUESTION[one.about]}", "yellow"), 2, wrap=True)
    for name, value in one.arguments.items():
        written = json.dumps({name: value}, ensure_ascii=False, indent=2)[1:-1].strip()  # no line of it can be faked
        put(console, Text(clean(textwrap.dedent(written))), 6, wrap=True)
    for note in remarks(one, now):
        put(console, Text(clean(note), "dim"), 6, wrap=True)


def put_paused(console: Console, one: PausedCall) -> None:
    """A call whose own run waits."""
    head = Text(f"{one.place}  ", "bold").append(clean(one.name), "bold cyan")
    put(console, head.append(f"  its run {one.run_id} waits for a decision", "yellow"), 2, wrap=True)
    for waiting in one.waiting:
        put(console, Text(clean(f"{waiting.place} {waiting.name}, of run {waiting.run_id}")), 6, wrap=True)


def remarks(one: PendingCall, now: float) -> list[str]:
    """Why it is asked, and how long the question holds."""
    why = [f"why: {one_line(one.reason, 500)}"] if one.reason else []
    return why if one.expires_at is None else [*why, _holds(one.expires_at - now)]


def _holds(seconds: float) -> str:
    if seconds <= 0:
        return "its time is over; it is asked anew when the run is resumed"
    return f"holds for {words.duration(seconds)} more"


def listed(pending: Sequence[PendingCall], now: float) -> str:
    """The calls as lines of a message. It is made harmless by whoever prints it."""
    rows: list[str] = []
    for one in pending:
        rows.append(f"  {one.place}  {words.call(one.name, json.dumps(one.arguments), full=True)}")
        rows.extend(f"       {note}" for note in remarks(one, now))
    return "\n".join(rows)


def commands(
    run_id: str, journal: str | None, pending: Sequence[PendingCall], *, is_of_fleet: bool = False
) -> list[str]:
    """What answers: of one call, or of the first of several. The workers of a fleet then go on by themselves."""
    call = [pending[0].place] if len(pending) > 1 else []
    then = [] if is_of_fleet else ["--resume"]
    several = [moves.command("approve", [run_id], journal, "--all", *then)] if len(pending) > 1 else []
    return [
        moves.command("approve", [run_id, *call], journal, *then),
        moves.command("deny", [run_id, *call], journal, "--reason", "...", *then),
        *several,
    ]


def paused_as_json(run_id: str, one: PausedCall) -> dict[str, Any]:
    """A call whose own run waits, for programs."""
    rest = msgspec.to_builtins(one)
    return {"run_id": run_id, "place": one.place, "child": rest.pop("run_id"), **rest}


def as_json(run_id: str, one: PendingCall) -> dict[str, Any]:
    """A call for programs."""
    return {"run_id": run_id, "place": one.place, **msgspec.structs.asdict(one)}
