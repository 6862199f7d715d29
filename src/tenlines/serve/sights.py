"""What is looked at: the list of runs, and one run. Each is read from the journal again and again, and says which
pieces of its page changed.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from tenlines.core.events import RunEnded
from tenlines.errors import InvalidEvent, JournalDamaged
from tenlines.journal.owner import is_alive
from tenlines.ports import Clock, Journal, RunSummary
from tenlines.report import Fragment, Reading, RunView, render_charts, render_head, render_item
from tenlines.serve import desk, pages
from tenlines.serve.boards import Board, Mark
from tenlines.trace import words
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import clean, one_line

MOST_RUNS = 200
"""Runs that the list has, the newest first."""
CHARTS_EVERY_S = 5.0
"""How often the charts of a run are drawn anew while it goes on."""


class Sight(Protocol):
    """Something that changes, piece by piece. Its methods may block, and may be called from any thread."""

    def look(self) -> bool:
        """Look again. Returns whether a piece changed.

        Raises:
            JournalError: It is not there any more, or cannot be read.
        """
        ...

    def changes(self, mark: Mark) -> tuple[Mark, list[Fragment]]:
        """What changed after a mark, as it is now, and the mark of somebody who has it."""
        ...


class _Rendered:
    """Pieces as HTML. Each is made once for all who watch."""

    def __init__(self) -> None:
        self.board = Board(secrets.token_hex(4))
        self.looking = threading.Lock()  # held by whoever reads the journal
        self.lock = threading.Lock()  # held while what was read is used
        self._made: dict[str, tuple[int, Fragment]] = {}

    def changes(self, mark: Mark) -> tuple[Mark, list[Fragment]]:
        """As in `Sight`."""
        with self.lock:
            return self.board.mark, [self._fragment(id) for id in self.board.since(mark)]

    def _fragment(self, id: str) -> Fragment:
        revision = self.board.revision_of(id)
        made = self._made.get(id)
        if made is None or made[0] != revision:
            made = self._made[id] = (revision, self.render(id))
        return made[1]

    def render(self, id: str) -> Fragment:
        """A piece as it is now."""
        raise NotImplementedError


# --- the list -----------------------------------------------------------------------------------------------


class Runs(_Rendered):
    """The newest runs."""

    def __init__(self, journal: Journal, clock: Clock, redaction: Redaction) -> None:
        super().__init__()
        self._journal, self._clock, self._redaction = journal, clock, redaction
        self.rows: dict[str, pages.Row] = {}
        """As they stand, the newest first."""

    def look(self) -> bool:
        """Read the list."""
        with self.looking:
            rows = {row.id: row for row in map(self._row, self._journal.runs(MOST_RUNS))}
            return self._replace(rows)

    def _replace(self, rows: dict[str, pages.Row]) -> bool:
        with self.lock:
            changed = [id for id, row in reversed(rows.items()) if self.rows.get(id) != row]
            gone = [id for id in self.rows if id not in rows]
            self.rows = rows
            return self.board.touch([*changed, *gone])

    def render(self, id: str) -> Fragment:
        """One line; nothing where it is gone."""
        row = self.rows.get(id)
        return Fragment(id, "" if row is None else pages.row(row))

    def page(self, asked: pages.Asked) -> str:
        """The whole page."""
        with self.lock:
            return pages.runs_page(list(self.rows.values()), self.board.mark, asked)

    def _row(self, line: RunSummary) -> pages.Row:
        text = self._redaction.text
        return pages.Row(
            f"run-{line.run_id}",
            line.run_id,
            words.ago(self._clock.now() - line.started_at),
            *shown_status(line),
            line.steps,
            one_line(text(line.session), 60),
            line.turn,
            one_line(text(line.task)),
        )


def shown_status(line: RunSummary) -> tuple[str, str]:
    """How a run stands, in words, and how that is coloured."""
    if line.status == "open":
        alive, who = is_alive(line.owner), words.owner(line.owner).partition(" on ")[0]
        if alive is False:
            return "open, its process is gone", "warn"
        return clean(f"open, {who}" if who else "open"), "info"
    tones = {"answered": "good", "awaiting_approval": "warn", "model_error": "bad", "journal_error": "bad"}
    return line.status.replace("awaiting_approval", "waits for a decision"), tones.get(line.status, "warn")


# --- one run ------------------------------------------------------------------------------------------------


class Run(_Rendered):
    """One run, which any process may work on.

    Args:
        read: Begins a reading, with what takes secrets out of it.
        go_on: Gives the command that goes on with it.
    """

    def __init__(
        self, journal: Journal, run_id: str, clock: Clock, read: Callable[[], Reading], go_on: Callable[[], str]
    ) -> None:
        super().__init__()
        self._journal, self._run_id, self._clock = journal, run_id, clock
        self._new_reading, self._go_on = read, cache(go_on)
        self._reading = self._new_reading()
        self._next = 0
        self._desk: dict[str, str] = {}
        self._charts_at = 0.0

    @property
    def redaction(self) -> Redaction:
        """What takes secrets out of it; it knows those that were read so far."""
        return self._reading.redaction

    def look(self) -> bool:
        """Read what is new."""
        try:
            with self.looking:
                events = list(self._journal.read(self._run_id, self._next))
                with self.lock:
                    return self.board.touch([*self._take(events), *self._changed_desk()])
        except InvalidEvent as error:
            raise JournalDamaged(
                f"what the journal has of run {self._run_id} is not the log of a run: {error}; `tenlines doctor` looks "
                "closer"
            ) from error

    def render(self, id: str) -> Fragment:
        """One piece."""
        if id in self._desk:
            return Fragment(id, self._desk[id])
        if id == "head":
            return render_head(self._reading.head())
        return render_charts(self._reading.view()) if id == "charts" else render_item(self._reading.item(id))

    def page(self, asked: pages.Asked) -> str:
        """The whole page."""
        with self.lock:
            return pages.run_page(self._reading.view(), list(self._desk.values()), self.board.mark, asked)

    def view(self) -> RunView:
        """The run as it stands."""
        with self.lock:
            return self._reading.view()

    def _take(self, events: Sequence[Any]) -> list[str]:
        """Add events. Returns the pieces that changed, in the order in which they are to be shown."""
        if not events:
            return self._due_charts(is_due=False)
        known = self.redaction.known
        self.redaction.learn(events)
        if self._next and self.redaction.known > known:
            return self._taken_anew()
        changed = dict.fromkeys(id for event in events for id in self._reading.take(event))
        self._next += len(events)
        return [*changed, "head", *self._due_charts(is_due=isinstance(events[-1], RunEnded))]

    def _taken_anew(self) -> list[str]:
        """What was shown may hold a secret that is only now known to be one: all of it is made anew."""
        reading = self._new_reading()
        log = [*self._journal.read(self._run_id)]
        reading.redaction.learn(log)
        changed = dict.fromkeys(id for event in log for id in reading.take(event))
        self._reading, self._next = reading, len(log)
        return [*changed, "head", "charts"]

    def _due_charts(self, *, is_due: bool) -> list[str]:
        """Drawn anew at the end, and now and then before."""
        now, last = self._clock.now(), self._reading.story.last_at
        is_behind = self._charts_at < last and now - self._charts_at >= CHARTS_EVERY_S
        if not (is_due or is_behind):
            return []
        self._charts_at = now
        return ["charts"]

    def _changed_desk(self) -> list[str]:
        """The pieces of the desk that are new or not as they were. One that is gone is empty from now on."""
        now = desk.pieces(self._reading.story, self.redaction, self._clock.now(), self._go_on())
        changed = [id for id, html in now.items() if self._desk.get(id) != html]
        gone = [id for id, html in self._desk.items() if id not in now and html]
        self._desk.update(now)
        self._desk.update(dict.fromkeys(gone, ""))
        return [*changed, *gone]
