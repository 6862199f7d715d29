"""One run, as the advice looks at it: its ledger, and its calls with what they were given and gave back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from tenlines.core import events as ev
from tenlines.core.changes import estimate_tools
from tenlines.core.costs import CallLine, Ledger, StepLine
from tenlines.core.economics import rates_of
from tenlines.core.ledger import ledger_of
from tenlines.core.limits import Limits, Price
from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import (
    Json,
    JsonObject,
    Outcome,
    Part,
    System,
    Text,
    Usage,
    User,
    estimate_tokens,
)

By: TypeAlias = Literal["agent", "model", "tag"]
BY: tuple[By, ...] = ("agent", "model", "tag")
"""What runs are grouped by."""

NO_TAG = "(no tag)"
_TAG = re.compile(r"(?<![\w#&/])#([A-Za-z][\w-]{0,63})")
"""`#refund` in a task; `#1042` is a number, and what stands in an address is none."""


class Call(NamedTuple):
    """One call."""

    line: CallLine
    arguments: JsonObject | None
    """None where they could not be read."""
    raw: str
    text: str
    """Its result, as the model saw it."""

    @property
    def tool(self) -> str:
        """Name of the tool that was asked for."""
        return self.line.tool

    @property
    def outcome(self) -> Outcome | None:
        """None while it is open."""
        return self.line.outcome


class Run(NamedTuple):
    """One run. It is looked at once and not kept."""

    start: ev.RunStarted
    last_at: float
    limits: Limits
    """As they were at its end."""
    ledger: Ledger
    calls: tuple[Call, ...]

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.start.run_id

    @property
    def is_answered(self) -> bool:
        """Whether it has an answer."""
        return self.ledger.status == "answered"

    @property
    def steps(self) -> int:
        """Replies of the model."""
        return self.ledger.own.steps

    @property
    def task(self) -> str:
        """What a person said last before it began."""
        return next((one.text for one in reversed(self.start.messages) if isinstance(one, User)), "")

    @property
    def spent(self) -> Worth:
        """What its own requests used."""
        own = self.ledger.own
        return Worth(own.tokens + self._unsaid, None if own.unpriced else own.dollars)

    @property
    def input_tokens(self) -> int:
        """Of its own requests."""
        return self.ledger.own.input_tokens + self._unsaid

    @property
    def is_measured(self) -> bool:
        """Whether the provider said of every request what it used."""
        return not self.ledger.own.unmetered

    @property
    def _unsaid(self) -> int:
        """Input of the replies that came without token counts; an estimate."""
        return sum(line.expected for line in self.ledger.steps if line.latency_s is not None and _is_unsaid(line))

    @property
    def rate(self) -> float:
        """Tokens for each estimated one, by the first request that was counted."""
        first = next((line.usage.input for line in self.ledger.steps if line.usage and line.usage.input), None)
        estimate = estimate_tools(self.start.tools) + sum(map(estimate_tokens, self.start.messages))
        return first / estimate if first and estimate else 1.0

    @property
    def beginning(self) -> int:
        """Tokens of the tools and the instructions; an estimate."""
        instructions = sum(estimate_tokens(one) for one in self.start.messages if isinstance(one, System))
        return round(self.rate * (estimate_tools(self.start.tools) + instructions))

    def group(self, by: By) -> str:
        """The group that it belongs to."""
        if by == "tag":
            found = _TAG.search(self.task)
            return f"#{found[1].lower()}" if found else NO_TAG
        return self.start.agent if by == "agent" else self.start.model

    def by_step(self) -> list[list[Call]]:
        """The calls of each step that had some, in their order."""
        steps: dict[int, list[Call]] = {}
        for call in self.calls:
            steps.setdefault(call.line.step, []).append(call)
        return [steps[step] for step in sorted(steps)]

    def worth(self, tokens: float) -> Worth:
        """Input tokens at what one cost on average in this run."""
        return Worth(round(tokens), None if (each := self._input_price()) is None else each * tokens)

    def _input_price(self) -> float | None:
        own, price = self.ledger.own, self.ledger.price
        if price is None or own.unpriced or not own.input_tokens:
            return None
        output = own.output_tokens * rates_of(price, own.input_tokens // max(1, self.steps)).output
        return max(0.0, own.dollars - output) / own.input_tokens


class Worth(NamedTuple):
    """Tokens, and dollars where the price is known."""

    tokens: int = 0
    dollars: float | None = 0.0

    def plus(self, other: Worth) -> Worth:
        """Both together; no dollars where some are not known."""
        known = self.dollars is not None and other.dollars is not None
        return Worth(self.tokens + other.tokens, (self.dollars or 0.0) + (other.dollars or 0.0) if known else None)

    def less(self, other: Worth) -> Worth:
        """What is left of it."""
        return self.plus(Worth(-other.tokens, None if other.dollars is None else -other.dollars))

    def times(self, factor: float) -> Worth:
        """So many times."""
        return Worth(round(self.tokens * factor), None if self.dollars is None else self.dollars * factor)


NOTHING = Worth()


def of_step(line: StepLine) -> Worth:
    """What the reply of a step used; where nobody said it, the input that was expected."""
    usage = line.usage or Usage()
    taken = line.expected if _is_unsaid(line) else usage.input or 0
    return Worth(taken + (usage.output or 0), line.dollars)


def _is_unsaid(line: StepLine) -> bool:
    return line.usage is None or line.usage.input is None


def read_run(events: Iterable[ev.AnyEvent], price: Price | None = None) -> Run:
    """Read a run, once.

    Args:
        events: Its log, as a journal gives it back, with nothing taken out: the machine folds it.
        price: Used where the run recorded none.

    Raises:
        InvalidEvent: The log is not the log of a run.
        ValueError: It is empty.
    """
    notes = _Notes()
    ledger = ledger_of(notes.seen(events), price)
    if notes.start is None:
        raise ValueError("a run begins with RunStarted; the log is empty")
    calls = tuple(notes.call(line) for line in ledger.calls)
    return Run(notes.start, notes.last_at, notes.limits, ledger, calls)


class _Notes:
    """What the ledger does not keep, noted while the events go by."""

    def __init__(self) -> None:
        self.start: ev.RunStarted | None = None
        self.last_at, self.limits = 0.0, Limits()
        self._asked: dict[tuple[int, int], str] = {}
        self._results: dict[tuple[int, int], str] = {}

    def seen(self, events: Iterable[ev.AnyEvent]) -> Iterator[ev.AnyEvent]:
        """The same events."""
        for event in events:
            yield event  # the machine looks at it first, and refuses what is no log
            self.last_at = max(self.last_at, event.at)
            self._note(event)

    def _note(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.RunStarted():
                self.start, self.limits = event, event.settings.limits
            case ev.LimitsRaised(limits=limits):
                self.limits = limits
            case ev.ModelReplied(step=step, reply=reply):
                for position, call in enumerate(reply.calls):
                    self._asked[step, position] = call.arguments
            case ev.CallReturned(step=step, position=position, parts=parts):
                self._results[step, position] = _words(parts)
            case ev.CallFailed() | ev.CallTimedOut() | ev.CallAbandoned():
                self._results[event.step, event.position] = event.text
            case _:
                pass

    def call(self, line: CallLine) -> Call:
        """A call of the ledger with its texts."""
        place = (line.step, line.position)
        raw = self._asked.get(place, "")
        return Call(line, parse_arguments(raw).value, raw, self._results.get(place, ""))


def _words(parts: tuple[Part, ...]) -> str:
    """What of a result is text, or JSON."""
    texts = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Json):
            texts.append(msgspec.json.encode(part.value).decode())
    return "\n\n".join(texts)
