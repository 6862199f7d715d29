"""One line about a run, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenlines.core.events import AnyEvent, RunStarted
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import User
from tenlines.journal.rows import Change, change_of
from tenlines.ports import RunSummary

TASK_CHARS = 200


def task_of(start: RunStarted) -> str:
    """The task of a run in one line: the last thing that a person said before it began."""
    said = next((message.text for message in reversed(start.messages) if isinstance(message, User)), "")
    return " ".join(said.split())[:TASK_CHARS]


def expected_events(runs: Iterable[str | RunSummary]) -> dict[str, int | None]:
    """What is to be deleted: each run, and how many events it must have; None for a run that is named by its id."""
    return dict((one, None) if isinstance(one, str) else (one.run_id, one.events) for one in runs)


def summarise(run_id: str, log: Sequence[AnyEvent]) -> RunSummary:
    """The summary of a run whose events are at hand."""
    start = log[0]
    assert isinstance(start, RunStarted)
    return summary_of(run_id, start, change_of(log), len(log))


def summary_of(run_id: str, start: RunStarted, change: Change, events: int) -> RunSummary:
    """The summary of a run after its first events. Its texts are such as every store takes."""
    return RunSummary(
        run_id,
        start.at,
        change.last_at,
        encodable(start.agent),
        encodable(start.model),
        encodable(task_of(start)),
        change.status,
        events,
        change.steps,
        encodable(change.owner),
        encodable(start.session),
        start.turn,
    )
