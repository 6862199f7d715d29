"""What a log says about money: what was used, what is set aside, and for which start of which call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from call_facts import Place

from tenlines.core import events as ev
from tenlines.core.limits import Left, Reservation, Spent
from tenlines.core.transcript import Usage

if TYPE_CHECKING:
    from facts import Facts

KINDS = ("steps", "tool_calls", "tokens", "dollars")
"""What is limited, beside time."""


class Purse(msgspec.Struct):
    """What one start of a call was given to spend. It stays set aside until this very start says what it used."""

    place: Place
    given: Left
    said: bool = False


class MoneyFacts(msgspec.Struct):
    """What the log says about money, beside what the run's own replies used (`Facts.tokens`, `Facts.dollars`)."""

    purses: list[Purse] = []
    children: Spent = Spent()
    request: Reservation | None = None
    """What is set aside for the request under way."""
    is_step: bool = False
    """That request will be a step."""
    excess: dict[str, float] = {}
    """By how much the last event used more than was set aside for it."""
    unpriced: int = 0
    unmetered: int = 0
    presumed: dict[str, float] = {}
    """What was set aside for requests of which nobody said, or not wholly, what they used: it may be gone."""

    def still(self) -> MoneyFacts:
        """A copy that shares nothing that changes."""
        purses = [msgspec.structs.replace(one) for one in self.purses]
        return msgspec.structs.replace(self, purses=purses, presumed=dict(self.presumed))

    def read(self, event: Any, facts: Facts) -> None:
        """Take in an event."""
        self.excess = {}
        match event:
            case ev.StepStarted(reserved=reserved) | ev.SummaryStarted(reserved=reserved):
                self.request, self.is_step = reserved, isinstance(event, ev.StepStarted)
            case ev.ModelReplied(reply=reply):
                self._used(reply.usage, reply.dollars, facts)
                self.request = None
            case ev.ModelFailed(usage=usage):
                self._used(usage, None, facts) if usage is not None else None
                self.request = None
            case ev.SummaryEnded(reply=reply, usage=usage):
                if reply is not None:
                    self._used(reply.usage, reply.dollars, facts)
                elif usage is not None:
                    self._used(usage, None, facts)
                self.request = None
            case ev.CancelRequested(mode="now") | ev.RunResumed() if self.request is not None:
                self.unmetered += 1
                self._presume(None, None)
                self.request = None
            case ev.CallStarted(allowance=given) if given is not None:
                self._give_back((event.step, event.position), facts)
                self.purses.append(Purse((event.step, event.position), given))
            case ev.CallReturned() | ev.CallFailed() | ev.LateResultArrived() if event.spent is not None:
                self._said((event.step, event.position), event.spent)

    def _give_back(self, place: Place, facts: Facts) -> None:
        """What a call that is one run is given anew takes the place of what it was given."""
        if facts.open[place[1]].is_one_run:
            self.purses = [one for one in self.purses if one.place != place or one.said]

    def held_for(self, places: set[Place], kind: str) -> float:
        """How much is set aside for these calls."""
        return sum(getattr(one.given, kind) or 0 for one in self.open if one.place in places)

    def _used(self, usage: Usage | None, said: float | None, facts: Facts) -> None:
        """A request came back: was it more than was set aside?"""
        tokens = 0 if usage is None else (usage.input or 0) + (usage.output or 0)
        cost = facts.cost_of(usage, said)
        self.unpriced += cost is None
        self.unmetered += usage is None or usage.input is None or usage.output is None
        if self.request is None:
            return
        self._is_within(usage, said, cost)
        room = self.request.input_tokens + (self.request.output_tokens or 0)
        tokens += self._presume(usage, cost)
        self.excess = {
            "tokens": max(0, tokens - room),
            "dollars": max(0.0, (cost or 0.0) - (self.request.dollars or 0.0)),
        }

    def _presume(self, usage: Usage | None, cost: float | None) -> int:
        """As much as was set aside is taken for used where nothing is said; how many tokens that is."""
        assert self.request is not None
        unsaid = self.request.input_tokens if usage is None or usage.input is None else 0
        unsaid += (self.request.output_tokens or 0) if usage is None or usage.output is None else 0
        dollars = (self.request.dollars or 0.0) if cost is None else 0.0
        for kind, amount in (("tokens", unsaid), ("dollars", dollars)):
            self.presumed[kind] = self.presumed.get(kind, 0) + amount
        return unsaid

    def _is_within(self, usage: Usage | None, said: float | None, cost: float | None) -> None:
        """Who used no more tokens than were reserved costs no more than was reserved, however much was cached."""
        request = self.request
        assert request is not None
        if usage is None or said is not None or cost is None or request.dollars is None:
            return
        few = (usage.input or 0) <= request.input_tokens and (usage.output or 0) <= (request.output_tokens or 0)
        cached = (usage.cache_read or 0) + (usage.cache_write or 0) <= (usage.input or 0)
        assert not (few and cached) or cost <= request.dollars + 1e-9, "a reply costs more than was reserved for it"

    def _said(self, place: Place, spent: Spent) -> None:
        """A call says what it used."""
        purse = [one for one in self.purses if one.place == place and not one.said][-1]
        purse.said = True
        used = {kind: getattr(spent, kind) + getattr(spent, f"presumed_{kind}", 0) for kind in KINDS}
        self.excess = {kind: max(0, used[kind] - (getattr(purse.given, kind) or 0)) for kind in KINDS}
        self.children = self.children.plus(spent)

    @property
    def open(self) -> list[Purse]:
        """What is set aside and not accounted for."""
        return [one for one in self.purses if not one.said]

    def held(self, kind: str) -> float:
        """How much is set aside for calls."""
        return sum([getattr(one.given, kind) or 0 for one in self.purses if not one.said]) if self.purses else 0

    def of_request(self, kind: str) -> float:
        """How much is set aside for the request under way."""
        if self.request is None:
            return 0
        each: dict[str, float] = {
            "steps": self.is_step,
            "tokens": self.request.input_tokens + (self.request.output_tokens or 0),
            "dollars": self.request.dollars or 0.0,
        }
        return each.get(kind, 0)
