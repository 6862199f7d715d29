"""What `say` and `cancel` share: a letter is posted, and it is said whether the run has heard it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import typer

if TYPE_CHECKING:
    from tenlines.core.state import State
    from tenlines.ports import Journal, Letter, Saying, Stopping

Fate: TypeAlias = Literal["heard", "posted", "waits", "missed"]

PATIENCE_S = 3.0
"""How long a run that may be under way is given to hear a letter before it is only said that it was posted."""
_EVERY_S = 0.1


class Sent(NamedTuple):
    """A letter, and what became of it."""

    letter: Letter
    fate: Fate
    """`heard`: it is in the log. `posted`: not yet, and the run may be under way. `waits`: nobody works on the run, so
    it is heard when the run is resumed. `missed`: the run ended without it."""
    status: str
    """How the run stands."""
    outermost: str
    """The run that is to be resumed, so that this one goes on."""
    is_of_fleet: bool = False
    """The workers of a fleet go on with it."""


def send(store: Journal, run_id: str, what: Saying | Stopping) -> Sent:
    """Post a letter, and watch what becomes of it.

    Raises:
        ConfigError: The run cannot hear it. Nothing was posted.
    """
    from tenlines.drivers.letters import post
    from tenlines.ports import SystemClock

    clock, nothing = SystemClock(), threading.Event()
    letter = post(store, clock, run_id, what)
    until = clock.now() + PATIENCE_S
    while (sent := _seen(store, letter)).fate == "posted" and clock.now() < until:
        clock.wait(nothing, _EVERY_S)
    return sent


def _seen(store: Journal, letter: Letter) -> Sent:
    from tenlines.cli.fleets import is_of_fleet
    from tenlines.cli.owners import is_gone
    from tenlines.drivers.callers import outermost
    from tenlines.drivers.recorder import machine_of

    state, caller = machine_of(store, letter.run_id).state, outermost(store, letter.run_id)
    status, fleet = "open" if state.ended is None else state.ended.status, is_of_fleet(store, letter.run_id)
    if state.mail >= letter.number:
        return Sent(letter, "heard", status, caller, fleet)
    if status not in ("open", "awaiting_approval"):
        return Sent(letter, "missed", status, caller, fleet)
    owner = owner_of(store, letter.run_id, state)
    waits = status == "awaiting_approval" or is_gone(owner) or (fleet and not owner)
    return Sent(letter, "waits" if waits else "posted", status, caller, fleet)


def owner_of(store: Journal, run_id: str, state: State) -> str:
    """Who took the run up last."""
    lines = store.runs(status="open")
    started = "" if state.start is None else state.start.owner
    return next((line.owner for line in lines if line.run_id == run_id), started)


def _next(sent: Sent, journal: str | None) -> str:
    """The command that goes on; "" where nothing is to be done."""
    from tenlines.cli.moves import command

    if sent.fate in ("heard", "posted") or (sent.fate == "missed" and sent.status == "answered"):
        return ""
    if not sent.is_of_fleet:
        return command("resume", [sent.outermost], journal)
    return command("submit", [], journal, "--again", sent.outermost) if sent.fate == "missed" else ""


def _when(sent: Sent) -> str:
    return "a worker of its fleet takes it up" if sent.is_of_fleet else "the run is resumed"


def report(sent: Sent, did: str, journal: str | None, *, json: bool) -> int:
    """Say what became of a letter; returns the exit code.

    Args:
        did: What the run does when it has heard it, as in `run k2v9 DID`.
    """
    from tenlines.cli.screen import json_line
    from tenlines.trace.text import clean

    run_id = sent.letter.run_id
    go_on = _next(sent, journal)
    if json:
        said = {"run_id": run_id, "number": sent.letter.number, "fate": sent.fate, "status": sent.status}
        typer.echo(json_line({**said, "next": go_on}, sys.stdout))
    else:
        told = {
            "heard": f"run {run_id} {did}",
            "posted": f"posted; run {run_id} hears it when the work at hand lets it (`tenlines show {run_id}`)",
            "waits": f"posted; nobody works on run {run_id}, so it is heard when {_when(sent)}",
            "missed": f"run {run_id} ended as {sent.status} before it heard it",
        }
        typer.echo(clean(told[sent.fate]), err=sent.fate == "missed")
        if go_on:
            typer.echo(f"go on: {clean(go_on)}", err=sent.fate == "missed")
    return 1 if sent.fate == "missed" else 0
