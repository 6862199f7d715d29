"""The ledger: what each step and each call of a run cost, as a view of its log.

What providers reported is the truth, and the sums are those of `RunResult`. How much of a request was the result of one
call no provider says: of the input that was reported for a request, each message gets the share that it has of the
request's estimate. All figures that rest on this are called estimates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from tenlines.core import context, metering
from tenlines.core import events as ev
from tenlines.core.costs import NO_USE, CallLine, CutLine, Ledger, StepLine, SummaryLine
from tenlines.core.limits import Price, Reservation, Spent
from tenlines.core.machine import Machine
from tenlines.core.state import OpenCall
from tenlines.core.transcript import Message, Result, Usage, estimate_tokens

_LOST = Spent(unmetered=1)
LOST = "it was broken off, and nobody will say what it used"

_OfCall: TypeAlias = ev.CallStarted | ev.CallReturned | ev.CallFailed | ev.CallTimedOut | ev.CallAbandoned


def ledger_of(events: Iterable[ev.AnyEvent], price: Price | None = None) -> Ledger:
    """The ledger of a run, also of one that has not ended.

    Args:
        events: Its log, as a journal gives it back.
        price: Used for requests whose price the log does not know.

    Raises:
        InvalidEvent: The log is not the log of a run.
    """
    keeper = LedgerKeeper(price)
    for event in events:
        keeper.take(event)
    return keeper.ledger()


def _use(usage: Usage | None, dollars: float | None, steps: int) -> Spent:
    """What one request used, as an account enters it."""
    given = usage or Usage()
    return Spent(
        steps=steps,
        input_tokens=given.input or 0,
        output_tokens=given.output or 0,
        cache_read=given.cache_read or 0,
        cache_write=given.cache_write or 0,
        reasoning=given.reasoning or 0,
        dollars=dollars or 0.0,
        unpriced=int(dollars is None),
        unmetered=int(given.input is None or given.output is None),
    )


class _Step(msgspec.Struct):
    """A `StepLine` that is being written, with the times that it is reckoned from."""

    step: int
    attempts: int = 0
    usage: Usage | None = None
    dollars: float | None = None
    new: int | None = None
    changed: str = ""
    latency_s: float | None = None
    waited_s: float = 0.0
    expected: int = 0
    reserved: Reservation = Reservation()
    failed: Spent = NO_USE
    asked_at: float = 0.0
    failed_at: float | None = None

    def line(self) -> StepLine:
        return StepLine(**{name: getattr(self, name) for name in StepLine.__struct_fields__})


class _Call(msgspec.Struct):
    """A call of which a `CallLine` is to be written."""

    step: int
    position: int
    one: OpenCall
    started_at: float | None = None
    latency_s: float | None = None
    spent: Spent | None = None
    result: int = 0
    """Estimate of its result."""
    stands: int = 0
    """Estimate of what stands for it in the transcript now; 0 where nothing does."""
    rate: float | None = None
    """Tokens for each estimated one in the first request that held it."""
    since: tuple[int, float] = (0, 0.0)
    """What the tally was when that began to stand there."""
    sent: int = 0
    carried: float = 0.0

    def stand(self, tokens: int, tally: tuple[int, float]) -> None:
        """From here on something else stands for it."""
        if self.stands:
            self.sent += tally[0] - self.since[0]
            self.carried += self.stands * (tally[1] - self.since[1])
        self.stands, self.since = tokens, tally

    def line(self, rate: float) -> CallLine:
        return CallLine(
            step=self.step,
            position=self.position,
            tool=self.one.call.name,
            outcome=self.one.outcome,
            latency_s=self.latency_s,
            tokens=round(self.result * (self.rate or rate)),
            sent=self.sent,
            carried=round(self.carried),
            spent=self.spent,
        )


class LedgerKeeper:
    """Takes events in their order, as a journal gives them back; whoever watches a run asks for its ledger at any time.

    The machine, which takes the events too, knows what each request held.

    For every request that was taken its rate, reported tokens for each estimated one, is added to a tally. What a
    message was in all requests since some moment is then its estimate times what the tally has grown by.
    """

    def __init__(self, price: Price | None = None) -> None:
        self.machine, self.given = Machine(), price
        self.steps: dict[int, _Step] = {}
        self.summaries: list[SummaryLine] = []
        self.cuts: list[tuple[int, int | None, ev.ContextCompacted]] = []
        """The step that each came before, and the input of the one before that."""
        self.calls: dict[tuple[int, int], _Call] = {}
        self.by_id: dict[str, _Call] = {}
        self.unsent: list[_Call] = []
        """Calls whose results no request has held yet."""
        self.own, self.children, self.said = NO_USE, NO_USE, 0
        self.tally = (0, 0.0)
        self.held: int | None = None
        """Input of the newest step that reported it."""
        self.asked: ev.SummaryStarted | None = None
        self.seen = 0
        """Messages of the transcript that were looked at."""

    def take(self, event: ev.AnyEvent) -> None:
        """Take in what happened."""
        state = self.machine.state
        before, unmetered, estimate = state.messages, state.account.unmetered, state.estimated_tokens
        expected = metering.likely(state)
        self.machine.replay(event)
        match event:
            case ev.StepStarted():
                self._ask(event, round(expected))
            case ev.ModelReplied():
                self._reply(event, estimate)
            case ev.ModelFailed():
                self._fail(event, estimate)
            case ev.SummaryStarted() | ev.SummaryEnded():
                self._summarise(event, estimate)
            case ev.ContextCompacted():
                self._cut(event, before)
            case ev.CancelRequested() | ev.RunResumed():
                self._break_off(event, state.account.unmetered - unmetered)
            case ev.CallStarted() | ev.CallReturned() | ev.CallFailed() | ev.CallTimedOut() | ev.CallAbandoned():
                self._call(event)
            case ev.LateResultArrived():
                self._spend(event)
        self._look()

    # --- requests ---

    def _ask(self, event: ev.StepStarted, expected: int) -> None:
        step = self.steps.setdefault(event.step, _Step(event.step))
        step.attempts += 1
        step.asked_at, step.expected, step.reserved = event.at, expected, event.reserved
        step.changed = event.changed or step.changed
        if step.failed_at is not None:
            step.waited_s += max(0.0, event.at - step.failed_at)
            step.failed_at = None

    def _reply(self, event: ev.ModelReplied, estimate: int) -> None:
        step, usage = self.steps[event.step], event.reply.usage
        step.usage, step.latency_s = usage, max(0.0, event.at - step.asked_at)
        step.dollars = self._enter(usage, event.reply.dollars, 1)
        self._sent(usage, estimate)
        taken = None if usage is None else usage.input
        step.new = None if taken is None or self.held is None else taken - self.held
        self.held = taken
        if (exchange := self.machine.state.exchange) is not None:  # words may be the call of `finish`
            for position, one in enumerate(exchange.calls):
                call = _Call(event.step, position, one)
                self.calls[event.step, position] = self.by_id[one.call.id] = call

    def _fail(self, event: ev.ModelFailed, estimate: int) -> None:
        step = self.steps[event.step]
        step.failed_at = event.at
        step.waited_s += max(0.0, event.at - step.asked_at)
        if event.usage is not None:
            dollars = self._enter(event.usage, None, 0)
            step.failed = step.failed.plus(_use(event.usage, dollars, 0))
            self._sent(event.usage, estimate)

    def _summarise(self, event: ev.SummaryStarted | ev.SummaryEnded, estimate: int) -> None:
        if isinstance(event, ev.SummaryStarted):
            self.asked = event
            return
        state, reply, dollars = self.machine.state, event.reply, None
        assert self.asked is not None
        assert state.compaction is not None
        usage = event.usage if reply is None else reply.usage
        if reply is not None or usage is not None:
            dollars = self._enter(usage, None if reply is None else reply.dollars, 0)
            question = context.question(state.compaction.summary_tokens)
            self._sent(usage, estimate + estimate_tokens(question))
        fault = "" if state.cuts.summary is not None else state.warnings[-1]
        self._summary(usage, dollars, max(0.0, event.at - self.asked.at), fault)

    def _summary(self, usage: Usage | None, dollars: float | None, latency_s: float | None, fault: str) -> None:
        assert self.asked is not None
        line = SummaryLine(
            step=self.machine.state.account.steps + 1,
            start=self.asked.start,
            end=self.asked.end,
            usage=usage,
            dollars=dollars,
            latency_s=latency_s,
            reserved=self.asked.reserved,
            fault=fault,
        )
        self.summaries.append(line)
        self.asked = None

    def _break_off(self, event: ev.CancelRequested | ev.RunResumed, lost: int) -> None:
        """A request that was under way is not waited for any more; after a crash, nothing is."""
        if lost:
            self.own = self.own.plus(_LOST)
            if self.asked is not None:
                self._summary(None, None, None, LOST)
            else:
                step = self.steps[self.machine.state.account.steps + 1]
                step.failed = step.failed.plus(_LOST)
        if isinstance(event, ev.RunResumed):
            self._forget_times()

    def _forget_times(self) -> None:
        """The time until somebody took the run up again was no work."""
        state = self.machine.state
        if state.account.steps + 1 in self.steps:
            self.steps[state.account.steps + 1].failed_at = None
        if state.exchange is not None:
            for position in range(len(state.exchange.calls)):
                self.calls[state.exchange.step, position].started_at = None

    def _enter(self, usage: Usage | None, said: float | None, steps: int) -> float | None:
        """What a request cost; it is added to what the run used."""
        dollars = metering.dollars(self.machine.state, usage, said)
        if dollars is None and self.given is not None and usage is not None:
            is_metered = usage.input is not None and usage.output is not None
            dollars = self.given.of(usage) if is_metered else None
        self.said += said is not None
        self.own = self.own.plus(_use(usage, dollars, steps))
        return dollars

    def _sent(self, usage: Usage | None, estimate: int) -> None:
        """A request was taken, with everything that stands in the transcript."""
        rate = self.machine.state.rate
        if usage is not None and usage.input is not None:
            rate = usage.input / max(1, estimate)
        for call in self.unsent:
            call.rate = rate
        self.unsent.clear()
        self.tally = (self.tally[0] + 1, self.tally[1] + rate)

    # --- calls ---

    def _call(self, event: _OfCall) -> None:
        call = self.calls[event.step, event.position]
        if isinstance(event, ev.CallStarted):
            call.started_at = event.at
        elif call.started_at is not None:
            call.latency_s = max(0.0, event.at - call.started_at)
        if isinstance(event, ev.CallReturned | ev.CallFailed):
            self._spend(event)

    def _spend(self, event: ev.CallReturned | ev.CallFailed | ev.LateResultArrived) -> None:
        if event.spent is not None:
            call = self.calls[event.step, event.position]
            call.spent = event.spent if call.spent is None else call.spent.plus(event.spent)
            self.children = self.children.plus(event.spent)

    def _look(self) -> None:
        """Results that came into the transcript."""
        messages = self.machine.state.messages
        for index in range(self.seen, len(messages)):
            message = messages[index]
            if isinstance(message, Result) and message.call_id in self.by_id:
                call = self.by_id[message.call_id]
                call.result = estimate_tokens(message)
                call.stand(call.result, self.tally)
                self.unsent.append(call)
        self.seen = len(messages)

    def _cut(self, event: ev.ContextCompacted, before: Sequence[Message]) -> None:
        """What is left of each result in the stretch stands for it from here on."""
        self.cuts.append((self.machine.state.account.steps + 1, self.held, event))
        after = self.machine.state.messages
        end = len(after) - (len(before) - event.end)
        left = _results(after, event.start, end)
        for call_id in _results(before, event.start, event.end):
            if call := self.by_id.get(call_id):
                call.stand(left.get(call_id, 0), self.tally)

    # --- the view ---

    def step_line(self, step: int) -> StepLine | None:
        """One step as it stands; None where it was never asked for."""
        return self.steps[step].line() if step in self.steps else None

    def call_line(self, step: int, position: int) -> CallLine:
        """One call as it stands."""
        call = self.calls[step, position]
        call.stand(call.stands, self.tally)
        return call.line(self.machine.state.rate)

    def ledger(self) -> Ledger:
        """As it stands."""
        state, start = self.machine.state, self.machine.state.start
        price = state.settings.price
        return Ledger(
            run_id=start.run_id if start else "",
            agent=start.agent if start else "",
            model=start.model if start else "",
            started_at=start.at if start else 0.0,
            parent=start.parent if start else "",
            status=state.ended.status if state.ended else None,
            price=price or self.given,
            priced="recorded" if price else "given" if self.given else "unknown",
            said=self.said,
            steps=tuple(step.line() for step in self.steps.values()),
            summaries=tuple(self.summaries),
            cuts=tuple(self._cut_line(*cut) for cut in self.cuts),
            calls=tuple(self.call_line(*place) for place in self.calls),
            own=msgspec.structs.replace(self.own, tool_calls=state.account.tool_calls),
            children=self.children,
            held=state.account.held,
            holders=state.account.holders,
        )

    def _cut_line(self, step: int, held: int | None, event: ev.ContextCompacted) -> CutLine:
        behind = self.steps[step].usage if step in self.steps else None
        return CutLine(
            step=step,
            strategy=event.strategy,
            start=event.start,
            end=event.end,
            arithmetic=event.arithmetic,
            input_before=held,
            input_after=None if behind is None else behind.input,
        )


def _results(messages: Sequence[Message], start: int, end: int) -> dict[str, int]:
    """The results in a stretch: the id of the call -> an estimate of its tokens."""
    stretch = (messages[index] for index in range(start, end))
    return {one.call_id: estimate_tokens(one) for one in stretch if isinstance(one, Result)}
