"""What the events of a compaction mean: a summary is asked for, comes or does not; the transcript is cut."""

from __future__ import annotations

from tenlines.core import context, metering, shrinking
from tenlines.core import events as ev
from tenlines.core.changes import note_change, release_queue, stop_if_cancelled
from tenlines.core.context import Span
from tenlines.core.state import Phase, State, call_key
from tenlines.core.transcript import estimate_tokens
from tenlines.errors import InvalidEvent


def on_summary_started(state: State, event: ev.SummaryStarted) -> None:
    """The request for a summary may go out."""
    _refuse_stopped(state, event)
    _check(state, Span("summarise", event.start, event.end, 0, 0), "SummaryStarted")
    if not shrinking.may_summarise(state):
        raise InvalidEvent("SummaryStarted: no summary may be asked for now")
    state.cuts.summarising = (event.start, event.end)
    state.cuts.tried_at = state.account.steps
    state.phase, state.reserved = Phase.SUMMARISING, event.reserved


def on_summary_ended(state: State, event: ev.SummaryEnded) -> None:
    """A summary that can be used waits to be put in place; any other changes nothing."""
    assert state.cuts.summarising is not None
    assert state.compaction is not None
    start, end = state.cuts.summarising
    reply, usage = event.reply, event.usage if event.reply is None else event.reply.usage
    metering.check(usage, None if reply is None else reply.dollars)
    if reply is not None or usage is not None:
        dollars = metering.dollars(state, usage, None if reply is None else reply.dollars)
        state.account.enter(usage, dollars, state.reserved)
    held = context.replaced_tokens(state.messages[start:end])
    fault = event.message or event.kind or "the request failed"
    if reply is not None:
        fault = context.summary_fault(reply, Span("summarise", start, end, held, 0), state.compaction.summary_tokens)
    state.cuts.summarising, state.phase = None, Phase.READY
    if fault:
        state.cuts.failures += 1
        state.warnings.append(f"step {state.account.steps + 1}: the transcript was not summarised: {fault}")
    elif reply is not None:
        state.cuts.failures, state.cuts.summary = 0, (start, end, reply.text.strip())
    release_queue(state)
    stop_if_cancelled(state)


def on_context_compacted(state: State, event: ev.ContextCompacted) -> None:
    """The transcript is another one from here on; views of the old one live on."""
    _refuse_stopped(state, event)
    span = Span(event.strategy, event.start, event.end, 0, 0)
    _check(state, span, "ContextCompacted")
    cuts, before = state.cuts, state.estimated_tokens
    if event.strategy == "summarise" and cuts.summary != (event.start, event.end, event.summary):
        raise InvalidEvent("ContextCompacted: that summary was not written")
    old, messages = state.messages, context.cut(state.messages, span, event.summary, _keys(state))
    state.messages = messages
    state.estimated_tokens = state.tools_tokens + sum(map(estimate_tokens, messages))
    metering.forget_part(state, before)
    first = next((at for at, (one, other) in enumerate(zip(old, messages, strict=False)) if one is not other), len(old))
    if first < state.sent:
        state.sent = first
        note_change(state, f"the transcript was cut ({event.strategy})")
    now = metering.likely(state)
    cuts.summary, cuts.floor, cuts.is_fresh = None, now * shrinking.FLOOR, True
    shrinking.look_again(state, now)


def _refuse_stopped(state: State, event: ev.SummaryStarted | ev.ContextCompacted) -> None:
    waits = state.retry_at is not None and event.at < state.retry_at
    if state.compaction is None or state.stop is not None or waits:
        raise InvalidEvent(f"{type(event).__name__}: nothing may be cut here")


def _check(state: State, span: Span, name: str) -> None:
    assert state.compaction is not None
    if problem := context.problem(state.messages, span):
        raise InvalidEvent(f"{name}: {problem}")


def _keys(state: State) -> dict[str, str]:
    """How the model can read the results again that this run has: by the id of the call."""
    if not state.settings.read_results:
        return {}
    return {one.call.id: call_key(state, step, position) for step, position, one in state.records}
