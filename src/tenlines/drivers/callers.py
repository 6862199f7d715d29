"""Runs that are calls of other runs: which run goes on with one."""

from __future__ import annotations

from tenlines.core import events as ev
from tenlines.core.children import child_id
from tenlines.errors import RunNotFound
from tenlines.ports import Journal


def caller_of(journal: Journal, run_id: str) -> str:
    """The run that takes this one up, since this one is a call of it; "" where there is none."""
    start = next(iter(journal.read(run_id)), None)
    parent = start.parent if isinstance(start, ev.RunStarted) else ""
    if not parent or child_id(parent) != run_id:
        return ""  # a run under a call of which it may be one of several
    caller = parent.rsplit(":", 2)[0]
    try:
        next(iter(journal.read(caller)), None)
    except RunNotFound:
        return ""
    return caller


def outermost(journal: Journal, run_id: str) -> str:
    """The run that is to be resumed, so that this one goes on."""
    while caller := caller_of(journal, run_id):
        run_id = caller
    return run_id
