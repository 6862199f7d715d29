"""What a run cost, line by line: plain data, written by `ledger`."""

from __future__ import annotations

from typing import Literal

import msgspec

from tenlines.core.context import Arithmetic, Strategy
from tenlines.core.economics import total_input
from tenlines.core.events import Status
from tenlines.core.limits import Left, Price, Reservation, Spent
from tenlines.core.transcript import Outcome, Usage

NO_USE = Spent()


class StepLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One step: the request that was answered, and those before it that failed."""

    step: int
    attempts: int
    """Requests that were made for it."""
    usage: Usage | None
    """What was reported for the reply; None where none came, or nothing was reported."""
    dollars: float | None
    """Of the reply."""
    new: int | None
    """Input that the request before did not hold. Below 0 behind a cut."""
    changed: str
    """What of the beginning was not as it was in the request before, so that no cache had it."""
    latency_s: float | None
    """From the intent of the request that was answered to the reply."""
    waited_s: float
    """What went before that: requests that failed, and the waits behind them."""
    expected: int
    """Input tokens that were expected; an estimate."""
    reserved: Reservation
    """What was set aside for the last request."""
    failed: Spent
    """What requests used that brought no reply."""


class SummaryLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One request for a summary."""

    step: int
    """The step that it came before."""
    start: int
    end: int
    """It was asked for in place of `messages[start:end]`."""
    usage: Usage | None
    dollars: float | None
    latency_s: float | None
    reserved: Reservation
    fault: str
    """Why nothing came of it, or ""."""


class CutLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One cut, with both sides of its arithmetic and what the provider counted before and behind it."""

    step: int
    """The step that it came before."""
    strategy: Strategy
    start: int
    end: int
    arithmetic: Arithmetic
    input_before: int | None
    """Input of the last step before it."""
    input_after: int | None
    """Input of the first step behind it."""


class CallLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One call, and what its result cost when it was sent again and again."""

    step: int
    position: int
    """From 0."""
    tool: str
    outcome: Outcome | None
    """None while it is open."""
    latency_s: float | None
    """How long the tool ran; None where it did not, or has not ended."""
    tokens: int
    """Of its result; an estimate."""
    sent: int
    """Requests that held the result, or the line that a cut left of it."""
    carried: int
    """Input tokens that it was in all of these; an estimate."""
    spent: Spent | None
    """What it said that it used of models on its own."""

    @property
    def place(self) -> str:
        """How a person names it: `STEP.NUMBER`, both from 1."""
        return f"{self.step}.{self.position + 1}"


class ToolLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """All calls of one tool."""

    tool: str
    calls: int
    ok: int
    """Calls that came back with a value."""
    latency_s: float
    tokens: int
    """Of all results; an estimate."""
    carried: int
    """Input tokens that they were in all requests; an estimate."""
    spent: Spent


class ClosedForm(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the steps of a run would hold together if each added as much as these did on average, and nothing was cut:
    `forecasts.total_input`."""

    prompt: int
    """Input of the first step."""
    per_step: int
    """What a step added."""
    steps: int
    total: int
    """Input tokens of so many steps."""


class Ledger(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a run used, line by line. Dollars are None where the price of anything is not known, never 0.0 for that."""

    run_id: str
    agent: str
    model: str
    started_at: float
    parent: str
    """The key of the call that it serves, or ""."""
    status: Status | None
    """How it ended; None while it has not."""
    price: Price | None
    priced: Literal["recorded", "given", "unknown"]
    """Whether the price was recorded with the run, or given to whoever looks at it."""
    said: int
    """Requests whose dollars the provider said itself. They are taken before any price."""
    steps: tuple[StepLine, ...]
    summaries: tuple[SummaryLine, ...]
    cuts: tuple[CutLine, ...]
    calls: tuple[CallLine, ...]
    own: Spent
    """What the run used itself: all its requests, those that failed included."""
    children: Spent
    """What the runs under its calls used."""
    held: Left
    """What is set aside for calls that run, or were given up, and may still spend it."""
    holders: int
    """How many such calls there are."""

    @property
    def requests(self) -> list[StepLine | SummaryLine]:
        """All requests in their order: those for summaries before the step that they came before."""
        return sorted((*self.summaries, *self.steps), key=lambda line: line.step)

    @property
    def all(self) -> Spent:
        """Its own use and that of its children."""
        return self.own.plus(self.children)

    @property
    def dollars(self) -> float | None:
        """What it cost, children included."""
        return None if self.all.unpriced or self.holders else self.all.dollars

    @property
    def cached_share(self) -> float | None:
        """Part of its own input that came from the provider's cache, 0 to 1."""
        return self.own.cache_read / self.own.input_tokens if self.own.input_tokens else None

    @property
    def repeated(self) -> int:
        """Input that a cache can have had: what the step before held too; where the beginning changed, what the cache
        had."""
        return sum(_repeated(line) for line in self.steps)

    @property
    def closed_form(self) -> ClosedForm | None:
        """What the arithmetic says of as many steps; None where no input was reported."""
        inputs = [line.usage.input for line in self.steps if line.usage is not None and line.usage.input is not None]
        if not inputs:
            return None
        behind_cuts = {cut.step for cut in self.cuts}
        added = [line.new for line in self.steps if line.new is not None and line.step not in behind_cuts]
        per_step = max(0, round(sum(added) / len(added))) if added else 0
        total = total_input(inputs[0], per_step, len(inputs))
        return ClosedForm(prompt=inputs[0], per_step=per_step, steps=len(inputs), total=total)

    @property
    def tools(self) -> tuple[ToolLine, ...]:
        """The calls by tool, the one whose results weighed most first."""
        by_tool: dict[str, list[CallLine]] = {}
        for line in self.calls:
            by_tool.setdefault(line.tool, []).append(line)
        lines = [_of_tool(tool, calls) for tool, calls in by_tool.items()]
        return tuple(sorted(lines, key=lambda line: (-line.carried, line.tool)))


def _repeated(line: StepLine) -> int:
    usage = line.usage or Usage()
    held = 0 if line.changed or line.new is None else (usage.input or 0) - max(0, line.new)
    return max(held, usage.cache_read or 0)


def _of_tool(tool: str, calls: list[CallLine]) -> ToolLine:
    spent = NO_USE
    for line in calls:
        spent = spent if line.spent is None else spent.plus(line.spent)
    return ToolLine(
        tool=tool,
        calls=len(calls),
        ok=sum(line.outcome == "ok" for line in calls),
        latency_s=sum(line.latency_s or 0.0 for line in calls),
        tokens=sum(line.tokens for line in calls),
        carried=sum(line.carried for line in calls),
        spent=spent,
    )
