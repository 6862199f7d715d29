"""The machine: events in, state; state, the next effect. Every decision of the loop is here and in `deciding`.

This file says what each event means, `deciding` what follows from the state.

Theory of operation. A run alternates between two places. At READY the machine checks every limit and asks for
the model. A reply without calls ends the run; a reply with calls opens an *exchange*, which stays open until
each call has exactly one outcome. Closing it appends the results in call order, then what people said
meanwhile, then the machine's own notes, and the run is READY again.

Rules that every handler keeps:

1. Check first, change after. A handler that raises `InvalidEvent` has changed nothing.
2. The outcome of a call is written once, by `_answer`, and the exchange is closed in one place, `_close`.
3. Whether the run goes on is decided in `next`, from state alone. Handlers only note a `Stop`.
4. Nothing here looks at the whole transcript: work per event is bounded by the event.
5. Times and identities come from events. `next` is told the time; it reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from zlib import crc32

from tenlines.core import codec, outcomes
from tenlines.core import events as ev
from tenlines.core.deciding import (
    call_key,
    deadline_at,
    next_effect,
    open_exchange,
    out_of_budget,
    reservation,
    runs_alone,
    seconds_left,
    why_nothing_runs,
)
from tenlines.core.effects import Effect, Finish
from tenlines.core.history import first_fault
from tenlines.core.leaving import Leavable, concession
from tenlines.core.limits import Limits, Retry
from tenlines.core.repeats import Signature, signature
from tenlines.core.result import CallRecord, RunResult, RunUsage
from tenlines.core.state import Exchange, OpenCall, Phase, State, Stop
from tenlines.core.transcript import (
    Assistant,
    Message,
    Note,
    Outcome,
    Part,
    Reply,
    Result,
    Text,
    ToolCall,
    Usage,
    User,
    estimate_tokens,
    text_of,
)
from tenlines.errors import InvalidEvent, JournalFormatError

_RUNS_CALLS = frozenset({"end", "tool_calls", "stop_sequence"})
"""Stop reasons that leave the calls of a reply runnable. Presence of calls wins over `end` (protocol: many
servers say `stop` beside calls); a cut, filtered or unknown ending never runs them."""

_WHY_NOT = {
    "length": outcomes.TRUNCATED,
    "content_filter": "the provider's filter stopped the reply",
    "refusal": "the model declined in the same reply",
    "pause": "the provider paused the reply before it was complete",
    "context_overflow": "the reply ended because the context window was full",
    "malformed_call": "the provider marked the reply as malformed; write the call again",
    "unknown": "the reply ended for a reason that is not known here, so its calls may be incomplete",
}


class Machine:
    """One run. `apply` takes what happened; `next` says what to do."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State()

    # --- events in ----------------------------------------------------------------------------------

    def apply(self, event: ev.AnyEvent) -> None:
        """Take in what happened.

        Raises:
            InvalidEvent: The event does not belong here: wrong order, wrong phase, wrong values. The state
                is as it was before.
        """
        state = self.state
        handler = _HANDLERS.get(type(event))
        if handler is None:
            raise InvalidEvent(f"expected an event of a run, got {type(event).__name__}")
        phases, handle = handler
        event = _as_read(event)
        if event.seq != state.seq + 1:
            raise InvalidEvent(f"{type(event).__name__} has seq {event.seq!r}, expected {state.seq + 1}")
        if state.phase not in phases:
            raise InvalidEvent(f"{type(event).__name__} cannot happen while the run is {state.phase.value}")
        if not 0 <= event.at < 1e12:
            raise InvalidEvent(f"{type(event).__name__} has no usable time: at={event.at!r}")
        handle(state, event)
        state.seq += 1
        state.at = max(state.at, event.at)

    # --- effects out --------------------------------------------------------------------------------

    def next(self, now: float) -> Effect:
        """What to do next, given the state and the time (Unix seconds). Asking changes nothing."""
        return next_effect(self.state, now)

    @property
    def stopping(self) -> str:
        """`drain`: start nothing more; `now`: also stop what is running; "" while the run goes on."""
        return self.state.cancel

    def result(self) -> RunResult:
        """The run as it stands: a view, made when it is asked for."""
        state, account = self.state, self.state.account
        end = state.ended or ev.RunEnded(seq=0, at=0.0, status="max_steps", reason="the run has not ended")
        usage = RunUsage(
            account.input_tokens,
            account.output_tokens,
            account.cache_read,
            account.cache_write,
            account.reasoning,
            account.unmetered,
        )
        return RunResult(
            run_id=state.start.run_id if state.start else "",
            status=end.status,
            reason=end.reason,
            answer=end.answer,
            partial_answer=(state.partial or None) if end.answer is None else None,
            steps=account.steps,
            tool_calls=account.tool_calls,
            usage=usage,
            dollars=account.dollars if account.unpriced == 0 else None,
            messages=tuple(state.messages),
            calls=tuple(_record(*closed) for closed in state.records),
            left=account.left(state.limits, seconds_left(state, state.at)),
            retries=account.retries,
            repairs=state.start.repairs if state.start else (),
            warnings=tuple(state.warnings),
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
    )


def _as_read(event: ev.AnyEvent) -> ev.AnyEvent:
    """The event as the journal gives it back, so that the live machine never knows more than the log.

    It costs about a microsecond and catches every wrong type, NaN and half a surrogate pair before a handler
    has changed anything.
    """
    try:
        return codec.as_read(event)
    except (TypeError, ValueError, OverflowError, RecursionError, JournalFormatError) as error:
        raise InvalidEvent(f"{type(event).__name__} cannot be journalled: {error}") from error


# --- the run as a whole -------------------------------------------------------------------------------


def _on_run_started(state: State, event: ev.RunStarted) -> None:
    if broken := first_fault(event.messages):
        raise InvalidEvent(f"the run cannot start from this history: {broken}")
    _check_tools(event.tools)
    state.start, state.settings, state.limits = event, event.settings, event.settings.limits
    _set_tools(state, event.tools)
    for message in event.messages:
        _append(state, message)
        if isinstance(message, Assistant):
            state.ids.update(call.id for call in message.calls)
    state.session_began = event.at
    state.phase = Phase.READY


def _check_tools(tools: tuple[ev.ToolSpec, ...]) -> None:
    names = [spec.name for spec in tools]
    if len(set(names)) != len(names):
        raise InvalidEvent(f"two tools have the same name: {min(n for n in names if names.count(n) > 1)!r}")


def _set_tools(state: State, tools: tuple[ev.ToolSpec, ...]) -> None:
    state.specs = tools
    state.tools = {spec.name: spec for spec in tools}
    state.has_final = any(spec.final for spec in tools)
    old = state.tools_tokens
    state.tools_tokens = sum(20 + (len(spec.description) + len(repr(spec.parameters))) // 4 for spec in tools)
    state.estimated_tokens += state.tools_tokens - old


def _on_run_resumed(state: State, event: ev.RunResumed) -> None:
    """A new owner: what was in flight is settled, what stopped the run is forgiven, the clock starts anew."""
    if state.ended is not None and state.ended.status == "answered":
        raise InvalidEvent("the run is answered; there is nothing to resume")
    _check_tools(event.tools)
    _set_tools(state, event.tools)
    state.worked_s += max(0.0, state.at - state.session_began)
    state.session_began = event.at
    state.cancel, state.cancel_reason, state.last_words = "", "", ""
    state.blanks = state.attempt = 0
    state.retry_at, state.last_error = None, ""
    if state.phase is Phase.AWAITING_TOOLS:
        _settle_doubts(state, open_exchange(state))
        return
    if state.stop is not None and state.stop.status == "truncated_reply":
        _append(state, Note("Your last reply was cut off by the output limit. Go on from there, or be shorter."))
    if state.ended is not None and state.ended.status == "stuck":
        state.repeats.forgive()  # whoever lets it go on gives it a new chance; a mere crash does not
    if state.stop is not None and state.stop.status != "answered":
        state.stop = None
    if state.phase is Phase.AWAITING_MODEL:
        state.account.unmetered += 1  # a request was made, and nobody will ever say what it used
    state.ended = None
    state.phase = Phase.READY
    _release_queue(state)


def _settle_doubts(state: State, exchange: Exchange) -> None:
    """After a crash: calls that had ever started run again only where that is safe; the others are in doubt."""
    exchange.stop, exchange.under_way = None, 0
    for one in exchange.calls:
        if one.outcome is not None or one.refusal is not None:
            continue
        assert one.spec is not None
        name, spec = one.spec.name, state.tools.get(one.spec.name)
        if one.counted and not (_may_repeat(one.spec) and _may_repeat(spec)):
            one.refusal, one.refusal_text = "in_doubt", outcomes.interrupted(name, one.spec.read_only)
        elif spec is None:
            one.refusal, one.refusal_text = "unknown_tool", outcomes.unknown_tool(name, tuple(state.tools))
        else:
            one.started = False
            if not (one.counted and spec.read_only):  # of what has run, the weaker promise holds
                one.spec = spec


def _may_repeat(spec: ev.ToolSpec | None) -> bool:
    return spec is not None and (spec.read_only or spec.idempotent)


def _on_limits_raised(state: State, event: ev.LimitsRaised) -> None:
    if not isinstance(event.limits, Limits):
        raise InvalidEvent(f"LimitsRaised needs Limits, got {type(event.limits).__name__}")
    state.limits = event.limits
    if state.last_words == "due" and not _is_at_last_words(state):
        state.last_words = ""


def _on_message_queued(state: State, event: ev.MessageQueued) -> None:
    message = User(event.parts)
    if state.phase is not Phase.READY:
        state.queue.append(message)
        return
    if state.stop is not None and state.stop.status == "answered":
        state.stop = state.answer = None  # what a person says is never lost: the answer was not the last word
        _stop_if_cancelled(state)
    _append(state, message)


def _on_cancel_requested(state: State, event: ev.CancelRequested) -> None:
    if event.mode not in ("drain", "now"):
        raise InvalidEvent(f"CancelRequested has mode {event.mode!r}, expected 'drain' or 'now'")
    state.cancel = "now" if "now" in (event.mode, state.cancel) else "drain"
    state.cancel_reason = event.reason or state.cancel_reason
    if state.phase is Phase.AWAITING_MODEL and event.mode == "now":
        state.account.unmetered += 1
        state.phase = Phase.READY
        _release_queue(state)
    if state.phase is Phase.READY:
        _stop_if_cancelled(state)


def _stop_if_cancelled(state: State) -> None:
    if state.cancel and state.stop is None:
        state.stop = Stop("cancelled", state.cancel_reason or "the run was cancelled")


def _on_run_ended(state: State, event: ev.RunEnded) -> None:
    expected = next_effect(state, event.at)
    if expected != Finish(event.status, event.reason, event.answer):
        raise InvalidEvent(f"RunEnded says {event.status!r}, but the run has to go on with {expected!r:.200}")
    state.ended = event
    state.stop = state.stop or Stop(event.status, event.reason)
    state.phase = Phase.ENDED


# --- the model ----------------------------------------------------------------------------------------


def _on_step_started(state: State, event: ev.StepStarted) -> None:
    if (event.step, event.attempt) != (state.account.steps + 1, state.attempt + 1):
        raise InvalidEvent(
            f"StepStarted is step {event.step!r}, attempt {event.attempt!r}; expected step "
            f"{state.account.steps + 1}, attempt {state.attempt + 1}"
        )
    if state.stop is not None:
        raise InvalidEvent(f"the run has to end as {state.stop.status}; no further step may start")
    if spent := out_of_budget(state, reservation(state)):
        raise InvalidEvent(f"the run has to end as {spent.status}; no further step may start: {spent.reason}")
    if state.attempt:
        state.account.retries += 1
    if state.last_words == "due":
        state.last_words = "asked"
    state.retry_at = None
    state.phase = Phase.AWAITING_MODEL


def _on_model_failed(state: State, event: ev.ModelFailed) -> None:
    if (event.step, event.attempt) != (state.account.steps + 1, state.attempt + 1):
        raise InvalidEvent(f"ModelFailed is for step {event.step!r}, attempt {event.attempt!r}, which is not under way")
    if _is_negative(event.usage):
        raise InvalidEvent(f"a request cannot use less than nothing: {event.usage!r}")
    if event.usage is not None:
        state.account.enter(event.usage, _dollars(state, event.usage))
    state.attempt += 1
    state.last_error = event.message
    state.phase = Phase.READY
    if state.last_words == "asked":
        state.last_words = "due" if _is_at_last_words(state) else ""
    _release_queue(state)
    retry = state.settings.retry
    if event.kind == "OutOfMoves":
        state.stop = Stop("max_steps", event.message)
    elif event.kind == "ContextTooLong":
        state.stop = Stop("context_overflow", event.message)
    elif (left := concession(event.violation)) and left not in state.left_out:
        _leave_out(state, left, event)
    elif not event.retryable:
        state.stop = Stop("model_error", event.message)
    elif state.attempt >= retry.attempts:
        state.stop = Stop("model_error", f"{event.message} (after {state.attempt} attempts)")
    else:
        state.retry_at = event.at + max(event.retry_after_s or 0.0, _backoff(state, retry))
    _stop_if_cancelled(state)


def _leave_out(state: State, left: Leavable, event: ev.ModelFailed) -> None:
    """The same request would be refused for ever: ask again without what was refused, once, and go on so."""
    state.left_out |= {left}
    state.sent = 0  # the model must be told everything anew
    state.warnings.append(
        f"{left} is left out of requests from step {event.step} on: the provider refused it"
        f"{f' ({event.rule})' if event.rule else ''}"
    )


def _backoff(state: State, retry: Retry) -> float:
    """Exponential, with up to a quarter of jitter that is derived from the run, so that a replay agrees."""
    assert state.start is not None
    wait = min(retry.max_wait_s, retry.first_wait_s * 2.0 ** (state.attempt - 1))
    jitter = crc32(f"{state.start.run_id}:{state.account.steps}:{state.attempt}".encode()) / 2**32
    return wait * (1 + jitter / 4)


def _on_model_replied(state: State, event: ev.ModelReplied) -> None:
    reply = event.reply
    if event.step != state.account.steps + 1 or not isinstance(reply, Reply):
        raise InvalidEvent(f"ModelReplied is for step {event.step!r}, expected step {state.account.steps + 1}")
    if _is_negative(reply.usage) or (reply.dollars or 0.0) < 0:
        raise InvalidEvent(f"a reply cannot use less than nothing: {reply.usage!r}, dollars={reply.dollars!r}")
    dollars = _dollars(state, reply.usage) if reply.dollars is None else reply.dollars
    state.account.settle(reply.usage, dollars)
    state.attempt, state.last_error = 0, ""
    state.warnings.extend(reply.remarks)
    if reply.calls:
        _open_exchange(state, reply)
        return
    state.phase = Phase.READY
    _take_words(state, reply)
    _stop_if_cancelled(state)


def _is_negative(usage: Usage | None) -> bool:
    if usage is None:
        return False
    if (usage.input or 0) < 0 or (usage.output or 0) < 0 or (usage.reasoning or 0) < 0:
        return True
    return (usage.cache_read or 0) < 0 or (usage.cache_write or 0) < 0


def _dollars(state: State, usage: Usage | None) -> float | None:
    price = state.settings.price
    if price is None or usage is None or usage.input is None or usage.output is None:
        return None
    return price.of(usage)


def _take_words(state: State, reply: Reply) -> None:
    """A reply without calls: an answer, or one of the ways in which it is none."""
    says = reply.text if reply.text.strip() else ""
    keeps_opaque = bool(reply.opaque) and (reply.stop == "pause" or state.settings.empty_is_answer)
    is_blank = not (says or keeps_opaque or state.settings.empty_is_answer)
    if says or keeps_opaque:  # an assistant message that says nothing is taken by no provider
        _append(state, Assistant(says, (), reply.opaque))
    state.partial = says or state.partial
    state.sent, was_last = len(state.messages), not state.queue
    _release_queue(state)
    if reply.stop in ("content_filter", "refusal"):
        state.stop = Stop(
            "refused", "the model declined to answer" if reply.stop == "refusal" else _WHY_NOT[reply.stop]
        )
    elif reply.stop == "context_overflow":
        state.stop = Stop("context_overflow", "the context window is full")
    elif state.last_words == "asked":
        state.stop = Stop("max_steps", f"the limit of {state.limits.steps} steps was reached; asked for last words")
    elif reply.stop == "length":
        state.stop = Stop("truncated_reply", "the reply was cut off by the output limit")
    elif is_blank or reply.stop == "malformed_call":
        _blank(state, "malformed" if reply.stop == "malformed_call" else "empty")
    elif reply.stop != "pause" and was_last:  # what a person said meanwhile makes it not the last word
        _warn_of_text_call(state, reply.text)
        state.answer, state.stop = reply.text, Stop("answered", "")


def _blank(state: State, what: str) -> None:
    """A reply that says nothing: ask again, a few times, with a word on why."""
    state.blanks += 1
    if state.blanks > state.settings.blank_replies:
        state.stop = Stop("empty_reply", f"the model's reply was {what}, {state.blanks} times in a row")
        return
    state.warnings.append(f"step {state.account.steps}: the reply was {what} and was asked for again")
    _append(state, Note(f"Your last reply was {what}. Call a tool, or answer in words."))
    _offer_last_words(state)


def _warn_of_text_call(state: State, text: str) -> None:
    """A call that is only written in the text is never run; that it looks like one is said."""
    head = text.lstrip()
    if "<tool_call>" in text or (head.startswith("{") and '"name"' in head and '"arguments"' in head):
        state.warnings.append("the answer looks like a tool call written as text; it was not run")


# --- calls --------------------------------------------------------------------------------------------


def _open_exchange(state: State, reply: Reply) -> None:
    step, block = state.account.steps, ""
    if reply.stop not in _RUNS_CALLS:
        block = _WHY_NOT[reply.stop]
    elif state.last_words == "asked":
        block = f"the limit of {state.limits.steps} steps is reached; this reply may only answer"
    calls = [_admit(state, asked, step, position, block) for position, asked in enumerate(reply.calls)]
    order = list(range(len(calls)))
    final = _final_position(calls) if state.has_final else 0
    if final:
        order.remove(final)
        order.insert(0, final)
    message = Assistant(reply.text if reply.text.strip() else "", tuple(one.call for one in calls), reply.opaque)
    exchange = Exchange(step, message, calls, order, len(calls))
    if reply.stop in ("content_filter", "refusal"):
        exchange.stop = Stop("refused", _WHY_NOT[reply.stop])
    elif reply.stop == "context_overflow":
        exchange.stop = Stop("context_overflow", _WHY_NOT[reply.stop])
    elif state.last_words == "asked":
        exchange.stop = Stop("max_steps", block)
    elif reply.stop == "malformed_call":
        exchange.blank = "malformed"
    choice = state.settings.tool_choice
    if choice != "auto":
        state.choice_met = state.choice_met or choice == "required" or any(c.name == choice for c in reply.calls)
    state.partial = reply.text if reply.text.strip() else state.partial
    state.exchange, state.phase = exchange, Phase.AWAITING_TOOLS


def _final_position(calls: list[OpenCall]) -> int:
    """Where the first call stands whose result may be the answer; 0 when there is none or it is first anyway."""
    for position, one in enumerate(calls):
        if one.spec is not None and one.spec.final and one.refusal is None:
            return position
    return 0


def _admit(state: State, asked: ToolCall, step: int, position: int, block: str) -> OpenCall:
    """Take a call in: give it its identity, read its arguments, and refuse it if it can never run."""
    spec = state.tools.get(asked.name)
    parsed = outcomes.parse_arguments(asked.arguments)
    text = asked.arguments if parsed.value else "{}"
    name = asked.name if spec is not None else outcomes.wire_name(asked.name)
    one = OpenCall(ToolCall(_unique_id(state, asked.id, step, position), name, text), asked, spec, parsed.value)
    if spec is None:
        one.refusal, one.refusal_text = "unknown_tool", outcomes.unknown_tool(asked.name, tuple(state.tools))
    if block:
        one.refusal, one.refusal_text = "not_executed", outcomes.not_executed(name, block)
    elif spec is not None and parsed.value is None:
        one.refusal = "invalid_arguments"
        one.refusal_text = outcomes.bad_arguments(name, asked.arguments, parsed.problem, spec.parameters)
    return one


def _unique_id(state: State, wanted: str, step: int, position: int) -> str:
    """The provider's id where it can serve; else one made of the position, so that a replay makes the same."""
    made = wanted
    if not wanted or wanted in state.ids or not wanted.isprintable():
        made = f"call_{step}_{position}"
        while made in state.ids:
            made += "_"
    state.ids.add(made)
    return made


def _find(state: State, event: Any, *, started: bool | None) -> OpenCall:
    """The open call that an event speaks of.

    Raises:
        InvalidEvent: There is none, it already has its outcome, or it has (not) started.
    """
    exchange, name = open_exchange(state), type(event).__name__
    if event.step != exchange.step or type(event.position) is not int or not 0 <= event.position < len(exchange.calls):
        raise InvalidEvent(f"{name} is for step {event.step!r}, position {event.position!r}, which is not open")
    one = exchange.calls[event.position]
    if one.outcome is not None:
        raise InvalidEvent(f"{name}: call {event.position} of step {event.step} already has its result ({one.outcome})")
    if started is not None and one.started != started:
        raise InvalidEvent(f"{name}: call {event.position} of step {event.step} has {'not ' * started}started")
    return one


def _on_call_started(state: State, event: ev.CallStarted) -> None:
    one = _find(state, event, started=False)
    if one.refusal is not None or one.spec is None:
        raise InvalidEvent(f"CallStarted: call {event.position} of step {event.step} is refused ({one.refusal})")
    if event.key != call_key(state, event.step, event.position):
        raise InvalidEvent(
            f"CallStarted has key {event.key!r}, expected {call_key(state, event.step, event.position)!r}"
        )
    budget = state.limits.tool_calls
    if budget is not None and not one.counted and state.account.tool_calls >= budget:
        raise InvalidEvent(f"CallStarted would pass the limit of {budget} tool calls")
    if state.cancel or open_exchange(state).final is not None:
        raise InvalidEvent("CallStarted: no further call of this exchange may start")
    exchange = open_exchange(state)
    if exchange.under_way and (runs_alone(one.spec) or exchange.alone):
        raise InvalidEvent(f"CallStarted: {one.call.name!r} cannot start while another call is under way")
    exchange.under_way, exchange.alone = exchange.under_way + 1, runs_alone(one.spec)
    one.started = True
    state.account.tool_calls += not one.counted
    one.counted = True


def _on_call_returned(state: State, event: ev.CallReturned) -> None:
    one = _find(state, event, started=True)
    one.truncated, one.original_chars, one.remarks = event.truncated, event.original_chars, event.remarks
    if one.spec is not None and one.spec.final:
        open_exchange(state).final = event.full if event.full is not None else text_of(event.parts)
    _answer(state, event.position, "ok", event.parts)


_REFUSALS = frozenset({"unknown_tool", "invalid_arguments", "not_executed", "denied"})


def _on_call_failed(state: State, event: ev.CallFailed) -> None:
    if event.outcome not in _REFUSALS and event.outcome != "tool_error":
        raise InvalidEvent(f"CallFailed cannot have the outcome {event.outcome!r}")
    one = _find(state, event, started=event.outcome == "tool_error")
    exchange = open_exchange(state)
    if one.refusal is not None and one.refusal != event.outcome:
        raise InvalidEvent(f"CallFailed says {event.outcome!r}; the call is refused as {one.refusal!r}")
    if one.refusal is None and event.outcome == "unknown_tool":
        raise InvalidEvent(f"CallFailed says 'unknown_tool', but {one.call.name!r} is known")
    if one.refusal is None and event.outcome == "not_executed":
        budget = state.limits.tool_calls
        over = budget is not None and state.account.tool_calls >= budget
        stopped = why_nothing_runs(state, exchange, event.at, deadline_at(state))
        if one.counted or not (over or stopped):
            raise InvalidEvent(f"CallFailed says 'not_executed', but nothing keeps {one.call.name!r} from running")
        exchange.over_limit = exchange.over_limit or (over and not stopped)
    outcome, text = event.outcome, event.text
    if one.counted and not one.started and one.spec is not None and not one.spec.read_only:
        # It ran before a crash. That it is refused now does not mean that it never took effect.
        outcome, text = "in_doubt", outcomes.interrupted(one.spec.name, False)
    _answer(state, event.position, outcome, (Text(text),))


def _on_call_timed_out(state: State, event: ev.CallTimedOut) -> None:
    _find(state, event, started=True)
    state.given_up.add((event.step, event.position))
    _answer(state, event.position, "timeout", (Text(event.text),))


def _on_call_abandoned(state: State, event: ev.CallAbandoned) -> None:
    one = _find(state, event, started=None)
    if not one.counted and one.refusal != event.outcome:
        raise InvalidEvent(f"CallAbandoned: call {event.position} of step {event.step} has not started")
    harmless = one.spec is not None and one.spec.read_only
    if event.outcome not in ("in_doubt", "cancelled") or (event.outcome == "cancelled" and not harmless):
        raise InvalidEvent(f"{one.call.name!r} may have taken effect; it is in doubt, not {event.outcome!r}")
    state.given_up.add((event.step, event.position))
    _answer(state, event.position, event.outcome, (Text(event.text),))


def _on_late_result(state: State, event: ev.LateResultArrived) -> None:
    if (event.step, event.position) not in state.given_up:
        raise InvalidEvent(f"LateResultArrived: call {event.position!r} of step {event.step!r} was not given up")
    state.given_up.discard((event.step, event.position))


def _answer(state: State, position: int, outcome: Outcome, parts: tuple[Part, ...]) -> None:
    """Write the one outcome of a call; close the exchange with the last of them."""
    exchange = open_exchange(state)
    one = exchange.calls[position]
    one.outcome, one.parts = outcome, parts
    exchange.unanswered -= 1
    exchange.under_way -= one.started and one.refusal is None
    calls, order, cursor = exchange.calls, exchange.order, exchange.cursor
    while cursor < len(order) and calls[order[cursor]].outcome is not None:
        cursor += 1
    exchange.cursor = cursor
    if not exchange.unanswered:
        _close(state, exchange)


def _close(state: State, exchange: Exchange) -> None:
    """All calls are answered: append the exchange in call order, then what waited, then decide how to go on."""
    _append(state, exchange.message)
    state.sent = len(state.messages)
    signatures = []
    for position, one in enumerate(exchange.calls):
        signatures.append(_take_result(state, exchange.step, position, one))
    state.exchange, state.phase = None, Phase.READY
    finding = state.repeats.look(tuple(signatures), state.settings.repeats)
    _release_queue(state)
    if exchange.final is not None:
        state.answer, state.stop = exchange.final, Stop("answered", "")
    elif exchange.stop is not None:
        state.stop = exchange.stop
    elif exchange.over_limit and state.limits.on_tool_limit == "stop":
        state.stop = Stop("tool_limit", f"the limit of {state.limits.tool_calls} tool calls was reached")
    elif finding.stuck and not state.cancel:
        state.stop = Stop("stuck", finding.stuck)
    _stop_if_cancelled(state)
    if state.stop is None:
        _go_on(state, exchange, finding.notes)


def _take_result(state: State, step: int, position: int, one: OpenCall) -> Signature | None:
    """Append one result and keep its record; return what counts for repetition."""
    assert one.outcome is not None
    _append(state, Result(one.call.id, one.call.name, one.outcome, one.parts))
    text = text_of(one.parts)
    state.records.append((step, position, one))
    if state.settings.repeats.told_after is None and state.settings.repeats.invalid_in_a_row is None:
        return None
    if one.spec is not None and one.spec.repeatable and one.outcome == "ok":
        return None
    arguments = outcomes.canonical(one.arguments) if one.arguments is not None else one.asked.arguments
    return signature(one.asked.name, arguments, one.outcome, text)


def _go_on(state: State, exchange: Exchange, notes: Iterable[str]) -> None:
    """The run continues: say what the model must know."""
    if exchange.blank:
        _blank(state, exchange.blank)
        return
    state.blanks = 0
    for note in notes:
        state.warnings.append(f"step {exchange.step}: {note}")
        _append(state, Note(note))
    if state.settings.tell_left:
        left = state.account.left(state.limits, seconds_left(state, state.at))
        _append(state, Note(f"Left for this task: {left.sentence()}."))
    _offer_last_words(state)


def _offer_last_words(state: State) -> None:
    """At the step limit, where asked for: one more request, without tools, for what is known."""
    if _is_at_last_words(state) and not state.last_words:
        state.last_words = "due"
        _append(state, Note("The step limit is reached. Answer now with what you know; no tool can be called."))


def _is_at_last_words(state: State) -> bool:
    limits = state.limits
    return limits.last_words and bool(limits.steps) and state.account.steps == limits.steps


def _append(state: State, message: Message) -> None:
    state.messages.append(message)
    state.estimated_tokens += estimate_tokens(message)


def _release_queue(state: State) -> None:
    """What people said while the model was busy comes after everything that belongs together."""
    for message in state.queue:
        _append(state, message)
    state.queue.clear()


# --- which event may happen where -----------------------------------------------------------------------

_LIVE = (Phase.READY, Phase.AWAITING_MODEL, Phase.AWAITING_TOOLS)
_TOOLS = (Phase.AWAITING_TOOLS,)
_MODEL = (Phase.AWAITING_MODEL,)
_READY = (Phase.READY,)

_HANDLERS: dict[type, tuple[tuple[Phase, ...], Callable[[State, Any], None]]] = {
    ev.RunStarted: ((Phase.NEW,), _on_run_started),
    ev.RunResumed: ((*_LIVE, Phase.ENDED), _on_run_resumed),
    ev.LimitsRaised: (_LIVE, _on_limits_raised),
    ev.MessageQueued: (_LIVE, _on_message_queued),
    ev.CancelRequested: (_LIVE, _on_cancel_requested),
    ev.RunEnded: (_READY, _on_run_ended),
    ev.StepStarted: (_READY, _on_step_started),
    ev.ModelReplied: (_MODEL, _on_model_replied),
    ev.ModelFailed: (_MODEL, _on_model_failed),
    ev.CallStarted: (_TOOLS, _on_call_started),
    ev.CallReturned: (_TOOLS, _on_call_returned),
    ev.CallFailed: (_TOOLS, _on_call_failed),
    ev.CallTimedOut: (_TOOLS, _on_call_timed_out),
    ev.CallAbandoned: (_TOOLS, _on_call_abandoned),
    ev.LateResultArrived: ((*_LIVE, Phase.ENDED), _on_late_result),
}
"""The transition table: an event, the phases in which it may happen, what it does."""
