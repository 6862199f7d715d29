"""One line about a run, from its events."""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.events import AnyEvent, RunEnded, RunStarted
from tenlines.core.transcript import User
from tenlines.ports import RunSummary

TASK_CHARS = 200


def task_of(start: RunStarted) -> str:
    """The task of a run in one line: the last thing that a person said before it began."""
    said = next((message.text for message in reversed(start.messages) if isinstance(message, User)), "")
    return " ".join(said.split())[:TASK_CHARS]


def summarise(run_id: str, log: Sequence[AnyEvent]) -> RunSummary:
    """The summary of a run whose events are at hand."""
    start, last = log[0], log[-1]
    assert isinstance(start, RunStarted)
    # Only late results can follow the end of a run, so looking back is short.
    ended = next((event for event in reversed(log[-20:]) if isinstance(event, RunEnded)), None)
    return RunSummary(
        run_id,
        start.at,
        last.at,
        start.agent,
        start.model,
        task_of(start),
        ended.status if ended else "open",
        len(log),
    )
