"""What the commands that keep a journal share: a journal that can be kept, sizes in words, lines of facts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol, cast

from tenlines.cli import options as opt
from tenlines.ports import Journal, RunSummary

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.journal.integrity import Watch


class KeptJournal(Journal, Protocol):
    """What every journal that can be opened by name has."""

    def delete(self, runs: Iterable[str | RunSummary]) -> int:
        """Delete whole runs, those that are given by their lines only if they are as these say."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


@contextmanager
def opened(name: str | None) -> Iterator[KeptJournal]:
    """A journal that is there, closed at the end, so that nothing of it waits in a log.

    Raises:
        JournalError: There is none, or it cannot be opened.
    """
    with closing(cast("KeptJournal", opt.open_existing(name))) as store:
        yield store


@contextmanager
def watched(doing: str) -> Iterator[Watch]:
    """Show on a terminal how far something is: `doing`, then `run 12 of 500` as the watch is told."""
    from tenlines.cli.screen import console_for
    from tenlines.journal.integrity import unwatched

    if not sys.stderr.isatty():
        yield unwatched
        return
    with console_for(sys.stderr).status(doing) as status:
        yield lambda done, total: status.update(f"{doing}: run {done + 1:,} of {total:,}")


def size(count: float) -> str:
    """A number of bytes: `512 bytes`, `1.2 MB`."""
    if count < 1000:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def put_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Facts under one another: a name and a sentence each."""
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.trace.text import clean

    for name, said in facts:
        put(console, Text().append(f"{name:<12}", "dim").append(clean(said)), wrap=True)
