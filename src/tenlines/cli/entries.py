"""What a worker tells of the runs that it works on: a line each, for eyes or for programs."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple, TextIO

from tenlines.cli.moves import command
from tenlines.cli.screen import json_line
from tenlines.ports import Clock
from tenlines.trace.text import one_line

if TYPE_CHECKING:
    from tenlines.fleet.worker import Turn
    from tenlines.ports import Handback, Order

LONGEST = 500
"""Characters of a line."""


class Entry(NamedTuple):
    """One thing to tell."""

    what: str
    """Of a run: `ended`, `paused`, `failed`, `set aside`, `taken`, `absent`, `submitted`, `left`. Of runs that wait in
    vain: `waits`. Of the worker itself: `drains`, `left`, `warning`."""
    text: str
    is_bad: bool = False
    """Somebody should look at it: it is told with `--quiet` too."""
    order: Order | None = None
    status: str = ""


class Teller:
    """Writes what is told, and the time. Nobody has to read it: the work goes on.

    Args:
        journal: The journal as it was named, for the commands that are suggested.
        is_quiet: Only what somebody should look at.
    """

    def __init__(self, out: TextIO, clock: Clock, journal: str | None, *, json: bool, is_quiet: bool) -> None:
        self._out: TextIO | None = out
        self._clock, self._journal, self._json, self._is_quiet = clock, journal, json, is_quiet

    def turn(self, turn: Turn) -> None:
        """Tell what was done with a run, where that is worth a line."""
        if (entry := entry_of(turn, self._journal)) is not None:
            self.tell(entry)

    def tell(self, entry: Entry) -> None:
        """Write a line."""
        if self._is_quiet and not entry.is_bad:
            return
        now = self._clock.now()
        self._write(self._object(entry, now) if self._json else _line(entry, now))

    def head(self, facts: dict[str, object], lines: list[tuple[str, str]]) -> None:
        """What the worker is: an object, or lines, each with a name."""
        if self._json:
            self._write(self._encoded({"at": self._clock.now(), "what": "worker", **facts}))
        elif not self._is_quiet:
            for name, text in lines:
                self._write(f"{name:<9}{one_line(text, LONGEST)}")

    def _object(self, entry: Entry, now: float) -> str:
        order = entry.order
        about = {} if order is None else {"run_id": order.run_id, "agent": order.agent, "version": order.version}
        queue = {} if order is None else {"queue": order.queue, "status": entry.status}
        return self._encoded({"at": now, "what": entry.what, **about, **queue, "text": entry.text})

    def _encoded(self, value: dict[str, object]) -> str:
        return "" if self._out is None else json_line(value, self._out)

    def _write(self, line: str) -> None:
        if self._out is None:
            return
        try:
            self._out.write(line + "\n")
            self._out.flush()
        except (OSError, ValueError):  # whoever read it went away
            self._out = None


def _line(entry: Entry, now: float) -> str:
    run = f"{entry.order.run_id}  " if entry.order is not None else ""
    return f"{time.strftime('%H:%M:%S', time.localtime(now))}  {run}{one_line(entry.text, LONGEST)}"


def entry_of(turn: Turn, journal: str | None) -> Entry | None:
    """What is told of a turn; None where there is nothing to."""
    order, back = turn.order, turn.handback
    match turn.what:
        case "handed back" if back is not None:
            return _handed_back(order, back, journal)
        case "failed":
            return Entry("failed", f"failed, and is tried again: {turn.why}", True, order)
        case "set aside":
            again = command("submit", [], journal, "--again", order.run_id)
            return Entry("set aside", f"{turn.why}; to put it back: {again}", True, order, "cancelled")
        case "submitted":
            return Entry("submitted", f"submitted for {order.lane.who}", False, order)
        case _:
            return None


def _handed_back(order: Order, back: Handback, journal: str | None) -> Entry | None:
    match back.why:
        case "ended":
            who = order.lane.who
            return Entry("ended", f"{back.status}, {who}", False, order, back.status)
        case "paused":
            waits = f"waits for a decision: {command('pending', [order.run_id], journal)}"
            return Entry("paused", waits, False, order, back.status)
        case "taken":
            return Entry("taken", "another worker took it over", False, order)
        case "absent":
            why = "it is not in this journal, or not yet: was it submitted with another --journal?"
            return Entry("absent", why, True, order)
        case "left" | "asleep":
            return None


SDK = "tenlines.fleet.temporal"
"""Under this name the library of Temporal says what it does about a server that is lost, again and again."""
SDK_EVERY_S, SDK_CHARS = 60.0, 160


class Remarks(logging.Handler):
    """What libraries have to say, as lines. What is said of every failing run is told already.

    Args:
        teller: Tells it. The same is not told twice in a row, and of the library of Temporal one line a minute.
    """

    def __init__(self, teller: Teller, clock: Clock) -> None:
        super().__init__()
        self._teller, self._clock, self._last = teller, clock, ""
        self._sdk_at = -SDK_EVERY_S

    def emit(self, record: logging.LogRecord) -> None:
        """Tell it."""
        said = record.getMessage()
        if record.name == SDK:
            now = self._clock.now()
            if now < self._sdk_at + SDK_EVERY_S:
                return
            self._sdk_at, said = now, f"Temporal: {one_line(said, SDK_CHARS)}"
        if said != self._last:
            self._last = said
            self._teller.tell(Entry("warning", said, True))

    def attach(self) -> None:
        """Listen to the fleet, and to Temporal where something is wrong with that itself."""
        for name, level in (("tenlines.fleet", logging.WARNING), ("temporalio", logging.ERROR)):
            logger = logging.getLogger(name)
            logger.addHandler(self)
            logger.setLevel(level)
            logger.propagate = False
