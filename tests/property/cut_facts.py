"""What a log says about cuts and about the size of requests."""

from __future__ import annotations

from typing import Any

import msgspec

from tenlines.core import events as ev
from tenlines.core.context import SUMMARY_HEADING, Compaction
from tenlines.core.metering import LEAST_NEW, LEAST_RATE, MOST_RATE
from tenlines.core.transcript import Note, Reply, estimate_tokens


class CutFacts(msgspec.Struct):
    """What the log says about cuts."""

    compaction: Compaction | None = None
    asked: tuple[int, int] | None = None
    """The stretch for which a summary is being written."""
    written: tuple[int, int, str] | None = None
    """A summary that can be used and has not been."""
    failures: int = 0
    """Summaries in a row that came to nothing, in the hands of one owner."""
    was_tried: bool = False
    """A summary was asked for since the last reply."""
    is_cut: bool = False
    """The transcript was cut since the last reply."""
    cuts: int = 0
    summaries: int = 0

    def read(self, event: Any, asked_tokens: int) -> None:
        """Take in an event. `asked_tokens`: estimate of what the summary under way stands for."""
        match event:
            case ev.RunStarted(settings=settings):
                self.compaction = settings.compaction
            case ev.RunResumed(compaction=compaction):
                self.compaction = compaction or self.compaction
                self.failures, self.was_tried, self.asked = 0, False, None
            case ev.CancelRequested(mode="now"):
                self.asked = None
            case ev.ModelReplied():
                self.was_tried = self.is_cut = False
            case ev.SummaryStarted(start=start, end=end):
                self.asked, self.was_tried = (start, end), True
                self.summaries += 1
            case ev.SummaryEnded(reply=reply):
                assert self.asked is not None
                assert self.compaction is not None
                if reply is not None and is_usable(reply, asked_tokens, self.compaction.summary_tokens):
                    self.written, self.failures = (*self.asked, reply.text.strip()), 0
                else:
                    self.failures += 1
                self.asked = None
            case ev.ContextCompacted():
                self.written, self.is_cut = None, True
                self.cuts += 1


def is_usable(reply: Reply, stands_for: int, limit: int) -> bool:
    """Whether a reply can take the place of what it sums up."""
    tokens, heading = estimate_tokens(Note(reply.text.strip())), estimate_tokens(Note(SUMMARY_HEADING))
    is_whole = reply.stop in ("end", "stop_sequence", "unknown")
    return (
        bool(reply.text.strip()) and not reply.calls and is_whole and tokens <= limit and tokens + heading < stands_for
    )


class Meter(msgspec.Struct):
    """How large the next request is, told from the reports: a second reckoning, the plainest there is."""

    rate: float = 1.0
    margin: float = 1.5
    known: float = 0.0
    at: int = 0
    """What was estimated for what is known."""
    size: int = 0
    """What is estimated now."""

    def read(self, event: Any, size: int) -> None:
        """Take in an event, after which the next request is estimated at `size`."""
        match event:
            case ev.RunStarted(counting=counting):
                self.rate, self.margin = counting.rate, counting.margin
            case ev.ModelReplied(reply=reply) if reply.usage is not None and reply.usage.input and self.size:
                self._learn(float(reply.usage.input))
            case ev.ContextCompacted():
                self.known -= self.rate * (self.size - size)
                self.at -= self.size - size
                if self.known <= 0:
                    self.known, self.at = 0.0, 0
        self.size = size

    def _learn(self, counted: float) -> None:
        new, worth = self.size - self.at, counted - self.known
        if self.at == 0:
            self.rate = min(MOST_RATE, max(LEAST_RATE, counted / self.size))
        elif new >= LEAST_NEW and worth > 0:
            self.rate = (self.rate + min(MOST_RATE, max(LEAST_RATE, worth / new))) / 2
        self.known, self.at = counted, self.size

    @property
    def likely(self) -> float:
        return max(0.0, self.known + self.rate * (self.size - self.at))

    @property
    def most(self) -> int:
        new = self.rate * (self.size - self.at)
        return int(max(0.0, self.known + (new * self.margin if new > 0 else new))) + 1
