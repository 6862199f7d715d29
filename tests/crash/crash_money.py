"""What a run has used and set aside, added up from its log by simple sums: it must never pass a limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tenlines.core import events as ev
from tenlines.core.events import AnyEvent, RunStarted
from tenlines.core.limits import Left, Limits, Price, Spent
from tenlines.core.transcript import Usage

LIMITED = ("steps", "tool_calls", "tokens", "dollars")
Sums = dict[str, float]


class Sum:
    """The sums of one run, event by event."""

    def __init__(self, start: RunStarted) -> None:
        self.limits: Limits = start.settings.limits
        self.price: Price | None = start.settings.price
        self.children_named = {spec.name for spec in start.tools if spec.child}
        """Tools whose calls are one run: what they are given again takes the place of what they were given."""
        self.named: dict[tuple[int, int], str] = {}
        self.own: Sums = dict.fromkeys(LIMITED, 0)
        self.children: Sums = dict.fromkeys(LIMITED, 0)
        self.open: dict[tuple[int, int], list[Left]] = defaultdict(list)
        """What each call was given and has not accounted for: more than once only after crashes."""
        self.started: set[tuple[int, int]] = set()

    def take(self, event: Any) -> None:
        """Add what an event says."""
        if isinstance(event, ev.LimitsRaised):
            self.limits = event.limits
        elif isinstance(event, ev.ModelReplied):
            self.own["steps"] += 1
            self._use(event.reply.usage)
            self.named |= {(event.step, position): call.name for position, call in enumerate(event.reply.calls)}
        elif isinstance(event, ev.ModelFailed):
            self._use(event.usage)
        elif isinstance(event, ev.SummaryEnded):
            self._use(event.usage if event.reply is None else event.reply.usage)
        elif isinstance(event, ev.CallStarted):
            place = (event.step, event.position)
            self.own["tool_calls"] += place not in self.started
            self.started.add(place)
            if self.named[place] in self.children_named:
                self.open[place].clear()
            if event.allowance is not None:
                self.open[place].append(event.allowance)
        elif isinstance(spent := getattr(event, "spent", None), Spent):
            self.open[event.step, event.position].pop()
            for name in LIMITED:
                self.children[name] += getattr(spent, name)

    def _use(self, usage: Usage | None) -> None:
        if usage is not None:
            self.own["tokens"] += (usage.input or 0) + (usage.output or 0)
            self.own["dollars"] += 0.0 if self.price is None else self.price.of(usage)

    @property
    def held(self) -> Sums:
        """What is set aside for calls."""
        given = [one for many in self.open.values() for one in many]
        return {name: sum(getattr(one, name) or 0 for one in given) for name in LIMITED}

    def passed(self) -> Iterator[str]:
        """The limits that are passed."""
        for name in LIMITED:
            limit, held = getattr(self.limits, name), self.held[name]
            total = self.own[name] + self.children[name] + held
            if limit is not None and total > limit * (1 + 1e-9):
                yield f"{total!r} {name} of {limit!r}: {self.own[name]!r}, {self.children[name]!r} and {held!r} held"


def sum_of(log: Sequence[AnyEvent]) -> tuple[Sum, list[str]]:
    """The sums at the end of a log, and each place at which a limit was passed."""
    start = log[0]
    assert isinstance(start, RunStarted)
    sums, wrong = Sum(start), list[str]()
    for event in log:
        sums.take(event)
        wrong += [f"after event {event.seq}, {one}" for one in sums.passed()]
    return sums, wrong
