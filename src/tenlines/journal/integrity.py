"""Whether a journal holds what was written: run by run, for any store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from tenlines.core.events import RunStarted
from tenlines.core.replay import fold
from tenlines.errors import InvalidEvent, JournalError
from tenlines.journal.summary import summarise
from tenlines.ports import Journal, RunSummary


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it should be."""

    run_id: str
    """The run, or "" where it is about the journal as a whole."""
    what: str
    """One sentence."""
    is_fatal: bool
    """Whether the run cannot be gone on with, or the journal not be relied on. What is not fatal is wrong in the list
    of runs alone, or takes room for nothing."""


Watch: TypeAlias = Callable[[int, int], None]
"""Is told, before each run is read, how many were read, and how many there are."""


def unwatched(done: int, total: int) -> None:
    """Nobody wants to know how far it is."""


def check_runs(journal: Journal, watch: Watch = unwatched) -> Iterator[Finding]:
    """Read every run that the journal lists, replay it, and compare it with its line in that list.

    Of a store that proves its rows this finds every damage to what a run consists of. Nothing is changed.
    """
    try:
        lines = journal.runs()
    except JournalError as error:
        yield Finding("", str(error), True)
        return
    for done, line in enumerate(lines):
        watch(done, len(lines))
        yield from check_run(journal, line)


def check_run(journal: Journal, line: RunSummary) -> Iterator[Finding]:
    """The same for one run."""
    run_id = line.run_id
    try:
        log = list(journal.read(run_id))
        fold(log)
    except JournalError as error:
        yield Finding(run_id, str(error), True)
        return
    except InvalidEvent as error:
        yield Finding(run_id, f"its events are not the log of a run: {error}", True)
        return
    start = log[0] if log else None
    if not isinstance(start, RunStarted) or start.run_id != run_id:
        yield Finding(run_id, "it does not begin with its own start", True)
        return
    true = summarise(run_id, log[: max(line.events, 1)])  # what was written since the list was made is not in it
    for field in RunSummary.__struct_fields__:
        said, is_so = getattr(line, field), getattr(true, field)
        if said != is_so:
            yield Finding(run_id, f"the list of runs says {field} {said!r}, its events say {is_so!r}", False)
