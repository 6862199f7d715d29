"""Watching a run that another process works on: its journal is read again and again, and nothing is disturbed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from threading import Event
from typing import TYPE_CHECKING

from tenlines.cli.owners import is_gone
from tenlines.core import events as ev
from tenlines.ports import Clock, Journal

if TYPE_CHECKING:
    from tenlines.trace.redaction import Redaction
    from tenlines.trace.story import Story

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 1.0
"""Seconds between two looks: short where much happens, longer where nothing does."""


def tail(journal: Journal, run_id: str, clock: Clock) -> Iterator[ev.AnyEvent]:
    """The events of a run, those that are there and those that come, until it ends or its process is gone.

    A run that paused for a decision has ended for this; whoever decides goes on with it in a process of his own.
    """
    seq, owner, is_ended, wait, never = 0, "", False, FIRST_WAIT_S, Event()
    while True:
        was_gone = is_gone(owner) is True if owner else False
        before = seq
        for event in journal.read(run_id, seq):
            seq, is_ended, wait = event.seq + 1, isinstance(event, ev.RunEnded), FIRST_WAIT_S
            owner = getattr(event, "owner", "") or owner
            yield event
        if is_ended or (was_gone and seq == before):
            return
        clock.wait(never, wait)
        wait = min(LONGEST_WAIT_S, 1.5 * wait)


def watch(journal: Journal, run_id: str, clock: Clock, redaction: Redaction) -> Story:
    """Show what happens as `run` does, on standard output, until the run ends."""
    from tenlines.cli.live import LiveView
    from tenlines.cli.screen import console_for
    from tenlines.trace.story import Story

    console = console_for(sys.stdout)
    view = LiveView(console, clock, stream=False, story=Story(redaction))
    with view if console.is_terminal else nullcontext():
        for event in tail(journal, run_id, clock):
            view.on_event(event)
    return view.story


def pass_on(journal: Journal, run_id: str, clock: Clock, write: Callable[[ev.AnyEvent], None]) -> None:
    """Hand each event on as soon as it is there."""
    for event in tail(journal, run_id, clock):
        write(event)
        sys.stdout.flush()
