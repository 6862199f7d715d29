"""One line about a run, from its events."""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.events import AnyEvent, RunStarted
from tenlines.core.transcript import User
from tenlines.journal.rows import change_of
from tenlines.ports import RunSummary

TASK_CHARS = 200


def task_of(start: RunStarted) -> str:
    """The task of a run in one line: the last thing that a person said before it began."""
    said = next((message.text for message in reversed(start.messages) if isinstance(message, User)), "")
    return " ".join(said.split())[:TASK_CHARS]


def summarise(run_id: str, log: Sequence[AnyEvent]) -> RunSummary:
    """The summary of a run whose events are at hand."""
    start, change = log[0], change_of(log)
    assert isinstance(start, RunStarted)
    return RunSummary(
        run_id,
        start.at,
        change.last_at,
        start.agent,
        start.model,
        task_of(start),
        change.status,
        len(log),
        change.steps,
        change.owner,
        start.session,
        start.turn,
    )
