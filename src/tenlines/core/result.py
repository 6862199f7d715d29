"""What a run gives back."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from tenlines.core import events as ev
from tenlines.core.events import ChildRun, Status, WaitingCall
from tenlines.core.limits import Left, Spent
from tenlines.core.state import OpenCall, State, is_undone, seconds_left
from tenlines.core.transcript import JsonObject, Message, Outcome, text_of


class RunUsage(NamedTuple):
    """Tokens of all replies of a run and of the runs under it. `unmetered` replies came without counts and are not in
    the sums."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    unmetered: int

    @property
    def total(self) -> int:
        """Input and output tokens together."""
        return self.input + self.output


class CallRecord(msgspec.Struct, frozen=True, gc=False):
    """One call of a run, with what became of it. `arguments` is None where they could not be read."""

    step: int
    position: int
    id: str
    provider_id: str
    name: str
    raw_arguments: str
    outcome: Outcome
    text: str
    truncated: bool = False
    original_chars: int | None = None
    remarks: tuple[str, ...] = ()
    arguments: JsonObject | None = None
    child: ChildRun | None = None
    """The run that it was, and how that ended, where its tool is an agent (`Agent.as_tool`)."""


class PendingCall(msgspec.Struct, frozen=True, gc=False):
    """A call that waits for somebody's decision. An answer is bound to `digest`."""

    step: int
    position: int
    id: str
    name: str
    arguments: JsonObject
    digest: str
    about: Literal["call", "in_doubt"]
    """`call`: may it run? `in_doubt`: it may have taken effect before a crash; may it run again?"""
    reason: str = ""
    expires_at: float | None = None

    @property
    def place(self) -> str:
        """How a person names it: `STEP.NUMBER`, both from 1."""
        return f"{self.step}.{self.position + 1}"


class PausedCall(msgspec.Struct, frozen=True, gc=False):
    """A call whose own run waits for somebody's decision. Decide there, then resume the run of the call."""

    step: int
    position: int
    id: str
    name: str
    run_id: str
    """The run of the call."""
    waiting: tuple[WaitingCall, ...]
    """What waits, in that run or in runs under it."""

    @property
    def place(self) -> str:
        """How a person names it: `STEP.NUMBER`, both from 1."""
        return f"{self.step}.{self.position + 1}"


class UndoneCall(msgspec.Struct, frozen=True, gc=False):
    """What came of undoing a call. Anything but `ok` means that it is not known to be undone."""

    step: int
    position: int
    name: str
    outcome: Literal["ok", "tool_error", "timeout"]
    text: str = ""


class RunResult(msgspec.Struct, frozen=True, gc=False):
    """Everything a run came to.

    `answer` is set only when the status is `answered`; what a stopped run had to say so far is `partial_answer`.
    """

    run_id: str
    status: Status
    reason: str
    answer: str | None
    partial_answer: str | None
    steps: int
    tool_calls: int
    usage: RunUsage
    dollars: float | None
    """Of the run and the runs under it. None when the price of a reply is not known, never 0.0 for "unknown"."""
    messages: tuple[Message, ...]
    calls: tuple[CallRecord, ...]
    left: Left
    retries: int
    repairs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Things worth a person's look that did not stop the run."""
    observer_errors: int = 0
    pending: tuple[PendingCall, ...] = ()
    """Calls that wait for somebody's decision, where the run is `awaiting_approval`."""
    paused: tuple[PausedCall, ...] = ()
    """Calls whose own runs wait for one."""
    undone: tuple[UndoneCall, ...] = ()
    """What came of undoing, in the order in which it was done."""
    standing: tuple[CallRecord, ...] = ()
    """Calls that had effect, or may have had, and are not known to be undone; in the order in which they started."""
    children: Spent = Spent()
    """What of `usage` and `dollars` the runs under its calls used."""
    output: Any = None
    """The answer as the value that it stands for, where it has a schema (`Agent(output=)`)."""

    @property
    def last(self) -> str:
        """The answer, or the partial answer, or the reason of the stop: the one thing to print."""
        return self.answer if self.answer is not None else self.partial_answer or self.reason


def result_of(state: State) -> RunResult:
    """The run as it stands: a view, made when it is asked for."""
    account = state.account
    end = state.ended or ev.RunEnded(seq=0, at=0.0, status="max_steps", reason="the run has not ended")
    spent = account.spent
    is_priced = spent.unpriced == 0 and not account.holders
    return RunResult(
        run_id=state.start.run_id if state.start else "",
        status=end.status,
        reason=end.reason,
        answer=end.answer,
        partial_answer=(state.partial or None) if end.answer is None else None,
        steps=account.steps,
        tool_calls=account.tool_calls,
        usage=RunUsage(
            spent.input_tokens,
            spent.output_tokens,
            spent.cache_read,
            spent.cache_write,
            spent.reasoning,
            spent.unmetered,
        ),
        dollars=spent.dollars if is_priced else None,
        children=account.children,
        messages=tuple(state.messages),
        calls=tuple(_record(*closed) for closed in state.records),
        left=account.left(state.limits, seconds_left(state, state.at if state.ended is None else state.ended.at)),
        retries=account.retries,
        repairs=state.start.repairs if state.start else (),
        warnings=tuple(state.warnings),
        pending=pending_calls(state),
        paused=paused_calls(state),
        undone=tuple(
            UndoneCall(*place, state.acted[place].call.name, event.outcome, event.text)
            for place, event in state.undone.items()
        ),
        standing=tuple(
            _record(*place, one)
            for place, one in state.acted.items()
            if one.outcome is not None and not is_undone(state, place)
        ),
    )


def pending_calls(state: State) -> tuple[PendingCall, ...]:
    """The calls that wait for somebody's decision."""
    exchange = state.exchange
    if exchange is None:
        return ()
    return tuple(
        PendingCall(
            exchange.step,
            position,
            one.call.id,
            one.call.name,
            one.arguments or {},
            one.digest,
            "in_doubt" if one.doubt == "ask" else "call",
            one.why_asked,
            one.expires_at,
        )
        for position, one in enumerate(exchange.calls)
        if one.permission == "asked" and one.refusal is None and one.outcome is None
    )


def paused_calls(state: State) -> tuple[PausedCall, ...]:
    """The calls whose own runs wait for somebody's decision."""
    exchange = state.exchange
    if exchange is None:
        return ()
    return tuple(
        PausedCall(exchange.step, position, one.call.id, one.call.name, one.paused.run_id, one.paused.waiting)
        for position, one in enumerate(exchange.calls)
        if one.paused is not None and one.outcome is None
    )


def _record(step: int, position: int, one: OpenCall) -> CallRecord:
    """A closed call, as a result shows it."""
    assert one.outcome is not None
    return CallRecord(
        step,
        position,
        one.call.id,
        one.asked.id,
        one.asked.name,
        one.asked.arguments,
        one.outcome,
        text_of(one.parts),
        one.truncated,
        one.original_chars,
        one.remarks,
        one.arguments,
        one.child,
    )
