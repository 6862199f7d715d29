"""What happens to calls: an exchange opens, each call gets its one outcome, the exchange closes."""

from __future__ import annotations

from collections.abc import Iterable

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.changes import (
    append,
    ask_again,
    find_call,
    guard,
    offer_last_words,
    release_queue,
    stop_if_cancelled,
    withdraw_last_words,
)
from tenlines.core.children import hold, settle
from tenlines.core.deciding import is_free, runs_alone, why_nothing_runs
from tenlines.core.repeats import Signature, signature
from tenlines.core.state import (
    Exchange,
    OpenCall,
    Phase,
    State,
    Stop,
    call_key,
    deadline_at,
    is_unsettled,
    open_exchange,
    seconds_left,
)
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Note,
    Opaque,
    Outcome,
    Part,
    Reply,
    Result,
    Text,
    ToolCall,
    text_of,
)
from tenlines.errors import InvalidEvent

RUNS_CALLS = frozenset({"end", "tool_calls", "stop_sequence"})
"""Stop reasons that leave the calls of a reply runnable. Presence of calls wins over `end` (protocol: many
servers say `stop` beside calls); a cut, filtered or unknown ending never runs them."""

WHY_NOT = {
    "length": outcomes.TRUNCATED,
    "content_filter": "the provider's filter stopped the reply",
    "refusal": "the model declined in the same reply",
    "pause": "the provider paused the reply before it was complete",
    "context_overflow": "the reply ended because the context window was full",
    "malformed_call": "the provider marked the reply as malformed; write the call again",
    "unknown": "the reply ended for a reason that is not known here, so its calls may be incomplete",
}
"""Why the calls of a reply that ended so are not run."""

_REFUSALS = frozenset({"unknown_tool", "invalid_arguments", "not_executed", "denied"})


def open_for(state: State, reply: Reply) -> None:
    """Open the exchange of a reply with calls."""
    step, block, spared = state.account.steps, "", ""
    if reply.stop not in RUNS_CALLS:
        block = WHY_NOT[reply.stop]
    elif state.last_words == "asked":
        block = f"the limit of {state.limits.steps} steps is reached; this reply may only answer"
        spared = state.finish.name if state.finish is not None else ""
    calls = [
        _admit(state, asked, step, position, "" if spared and asked.name == spared else block)
        for position, asked in enumerate(reply.calls)
    ]
    order = list(range(len(calls)))
    if state.has_final:
        order = _final_first(calls)
    message = Assistant(reply.text if reply.text.strip() else "", tuple(one.call for one in calls), reply.opaque)
    exchange = Exchange(step, message, calls, order, len(calls))
    if reply.stop in ("content_filter", "refusal"):
        exchange.stop = Stop("refused", WHY_NOT[reply.stop])
    elif reply.stop == "context_overflow":
        exchange.stop = Stop("context_overflow", WHY_NOT[reply.stop])
    elif state.last_words == "asked":
        exchange.stop = Stop("max_steps", block)
    elif reply.stop == "malformed_call":
        exchange.blank = "malformed"
    elif state.marked:
        _guard_marked(exchange)
    choice = state.settings.tool_choice
    if choice != "auto":
        state.choice_met = state.choice_met or choice == "required" or any(c.name == choice for c in reply.calls)
    state.partial, state.finish_due = reply.text if reply.text.strip() else state.partial, False
    state.exchange, state.phase = exchange, Phase.AWAITING_TOOLS


def _guard_marked(exchange: Exchange) -> None:
    """Calls that can run and need leave are asked about first."""
    for position, one in enumerate(exchange.calls):
        if one.spec is not None and one.spec.approve and one.refusal is None:
            guard(exchange, position, one)


def _final_first(calls: list[OpenCall]) -> list[int]:
    """The order in which calls run, where the result of one may be the answer: that one first. Runs whose answer may be
    the answer come last: they shall know what came of the others."""
    final = [n for n, one in enumerate(calls) if one.spec is not None and one.spec.final and one.refusal is None]
    last = [position for position in final if _is_child(calls[position])]
    first = [position for position in final if position not in last][:1]
    moved = {*first, *last}
    return [*first, *(position for position in range(len(calls)) if position not in moved), *last]


def _is_child(one: OpenCall) -> bool:
    return one.spec is not None and one.spec.child


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


def on_call_started(state: State, event: ev.CallStarted) -> None:
    """The tool may run. Whether the leave to run it is over was looked at when the call was offered."""
    one = find_call(state, event, started=False)
    if one.refusal is not None or one.spec is None:
        raise InvalidEvent(f"CallStarted: call {event.position} of step {event.step} is refused ({one.refusal})")
    if (one.doubt and is_unsettled(one)) or (one.spec.approve and one.permission != "allowed"):
        raise InvalidEvent(f"CallStarted: call {event.position} of step {event.step} needs somebody's leave")
    if event.key != call_key(state, event.step, event.position):
        raise InvalidEvent(
            f"CallStarted has key {event.key!r}, expected {call_key(state, event.step, event.position)!r}"
        )
    budget = state.limits.tool_calls
    if budget is not None and not is_free(one) and state.account.all_tool_calls >= budget:
        raise InvalidEvent(f"CallStarted would pass the limit of {budget} tool calls")
    if state.cancel or open_exchange(state).final is not None:
        raise InvalidEvent("CallStarted: no further call of this exchange may start")
    exchange = open_exchange(state)
    if exchange.under_way and (runs_alone(one.spec) or exchange.alone):
        raise InvalidEvent(f"CallStarted: {one.call.name!r} cannot start while another call is under way")
    if one.spec.spends or event.allowance is not None:
        hold(state, one, event.allowance)
    exchange.under_way, exchange.alone = exchange.under_way + 1, runs_alone(one.spec)
    one.started, one.doubt, one.starts = True, "", one.starts + 1
    if not one.spec.read_only:
        state.acted[event.step, event.position] = one
    state.account.tool_calls += not is_free(one)
    one.counted = True


def on_call_returned(state: State, event: ev.CallReturned) -> None:
    """It came back with a value; or it had, before a crash, as its tool says."""
    one = find_call(state, event, started=None)
    if not one.started and one.doubt != "reconcile":
        raise InvalidEvent(f"CallReturned: call {event.position} of step {event.step} has not started")
    settle(state, one, event.spent)
    one.doubt, one.child = "", event.child
    if state.settings.read_results:
        state.returned[event.step, event.position] = event.seq
    one.truncated, one.original_chars, one.remarks = event.truncated, event.original_chars, event.remarks
    if one.spec is not None and one.spec.final:
        open_exchange(state).final = event.full if event.full is not None else text_of(event.parts)
    answer(state, event.position, "ok", event.parts)


def on_call_failed(state: State, event: ev.CallFailed) -> None:
    """It raised, or it never ran."""
    if event.outcome not in _REFUSALS and event.outcome != "tool_error":
        raise InvalidEvent(f"CallFailed cannot have the outcome {event.outcome!r}")
    one = find_call(state, event, started=event.outcome == "tool_error")
    exchange = open_exchange(state)
    if one.refusal is not None and one.refusal != event.outcome:
        raise InvalidEvent(f"CallFailed says {event.outcome!r}; the call is refused as {one.refusal!r}")
    if one.refusal is None and event.outcome in ("unknown_tool", "denied"):
        raise InvalidEvent(f"CallFailed says {event.outcome!r}, which {one.call.name!r} is not")
    if is_unsettled(one):
        raise InvalidEvent(f"CallFailed: nobody has said yet what became of {one.call.name!r}")
    over_limit = False
    if one.refusal is None and event.outcome == "not_executed":
        budget = state.limits.tool_calls
        over = budget is not None and not is_free(one) and state.account.all_tool_calls >= budget
        stopped = why_nothing_runs(state, exchange, event.at, deadline_at(state))
        if one.counted or not (over or stopped):
            raise InvalidEvent(f"CallFailed says 'not_executed', but nothing keeps {one.call.name!r} from running")
        over_limit = over and not stopped
    settle(state, one, event.spent)
    exchange.over_limit = exchange.over_limit or over_limit
    one.child = event.child
    outcome, text = event.outcome, event.text
    if one.counted and not one.started and one.spec is not None and not one.spec.read_only:
        # It ran before a crash. That it is refused now does not mean that it never took effect.
        outcome, text = "in_doubt", outcomes.interrupted(one.spec.name, False)
    answer(state, event.position, outcome, (Text(text),))


def on_call_timed_out(state: State, event: ev.CallTimedOut) -> None:
    """It was given up."""
    one, text = find_call(state, event, started=True), event.text
    assert one.spec is not None
    if state.tools[one.spec.name].read_only and not one.spec.read_only:
        # It ran before a crash, when its tool did not only read. What is said of the tool now is not true of that.
        text = outcomes.timed_out(one.spec.name, event.after_s, read_only=False)
    state.given_up[event.step, event.position] = one
    answer(state, event.position, "timeout", (Text(text),))


def on_call_abandoned(state: State, event: ev.CallAbandoned) -> None:
    """It was interrupted."""
    one = find_call(state, event, started=None)
    if not one.counted and one.refusal is None:
        raise InvalidEvent(f"CallAbandoned: call {event.position} of step {event.step} has not started")
    if one.refusal not in (None, event.outcome):
        raise InvalidEvent(f"CallAbandoned says {event.outcome!r}; the call is refused as {one.refusal!r}")
    stopped = why_nothing_runs(state, open_exchange(state), event.at, deadline_at(state))
    if is_unsettled(one) and one.refusal is None and not stopped:
        raise InvalidEvent(f"CallAbandoned: nobody has said yet what became of {one.call.name!r}")
    harmless = one.spec is not None and one.spec.read_only
    if event.outcome not in ("in_doubt", "cancelled") or (event.outcome == "cancelled" and not harmless):
        raise InvalidEvent(f"{one.call.name!r} may have taken effect; it is in doubt, not {event.outcome!r}")
    state.given_up[event.step, event.position] = one
    answer(state, event.position, event.outcome, (Text(event.text),))


def on_late_result(state: State, event: ev.LateResultArrived) -> None:
    """It ended after all; its result stays what it is."""
    if (event.step, event.position) not in state.given_up:
        raise InvalidEvent(f"LateResultArrived: call {event.position!r} of step {event.step!r} was not given up")
    settle(state, state.given_up[event.step, event.position], event.spent)
    state.given_up[event.step, event.position].child = event.child
    del state.given_up[event.step, event.position]
    withdraw_last_words(state)


def answer(state: State, position: int, outcome: Outcome, parts: tuple[Part, ...]) -> None:
    """Write the one outcome of a call; close the exchange with the last of them."""
    exchange = open_exchange(state)
    one = exchange.calls[position]
    one.outcome, one.parts = outcome, parts
    if exchange.guarded:
        exchange.guarded.pop(position, None)
        exchange.asking.pop(position, None)
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
    append(state, exchange.message)
    state.sent = len(state.messages)
    signatures = []
    for position, one in enumerate(exchange.calls):
        signatures.append(_take_result(state, exchange.step, position, one))
    for one in exchange.calls:
        if one.edited_by is not None and one.counted:
            assert one.arguments is not None
            note = outcomes.edited(one.call.name, one.call.id, one.edited_by, outcomes.canonical(one.arguments))
            append(state, Note(note))
    state.exchange, state.phase = None, Phase.READY
    finding = state.repeats.look(tuple(signatures), state.settings.repeats)
    release_queue(state)
    if exchange.stop is not None:  # a final answer beside it was given as last words
        state.stop, state.partial = exchange.stop, state.partial if exchange.final is None else exchange.final
    elif exchange.final is not None:
        state.answer, state.stop = exchange.final, Stop("answered", "")
    elif exchange.over_limit and state.limits.on_tool_limit == "stop":
        state.stop = Stop("tool_limit", f"the limit of {state.limits.tool_calls} tool calls was reached")
    elif finding.stuck and not state.cancel:
        state.stop = Stop("stuck", finding.stuck)
    stop_if_cancelled(state)
    if state.stop is None:
        _go_on(state, exchange, finding.notes)


def _take_result(state: State, step: int, position: int, one: OpenCall) -> Signature | None:
    """Append one result and keep its record; return what counts for repetition."""
    assert one.outcome is not None
    parts = one.parts
    if one.truncated and state.settings.read_results:
        parts = (*parts, Text(outcomes.cut_short(call_key(state, step, position))))
    append(state, Result(one.call.id, one.call.name, one.outcome, parts))
    text = _told_apart(one.parts)
    state.records.append((step, position, one))
    if state.settings.repeats.told_after is None and state.settings.repeats.invalid_in_a_row is None:
        return None
    if one.spec is not None and one.spec.repeatable and one.outcome == "ok":
        return None
    arguments = outcomes.canonical(one.arguments) if one.arguments is not None else one.asked.arguments
    return signature(one.asked.name, arguments, one.outcome, text)


def _told_apart(parts: tuple[Part, ...]) -> str:
    """What tells one result from another: its texts, and for what is no text something that differs with it."""
    if all(isinstance(part, Text) for part in parts):
        return text_of(parts)
    return "\n\n".join(_mark(part) for part in parts)


def _mark(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Image(data=data, url=url):
            return f"{url} {hash(data)}"  # compared within one process, as the signature is
        case File(data=data, name=name):
            return f"{name} {hash(data)}"
        case Json() | Opaque():
            return repr(part)


def _go_on(state: State, exchange: Exchange, notes: Iterable[str]) -> None:
    """The run continues: say what the model must know."""
    if exchange.blank:
        ask_again(state, exchange.blank)
        return
    state.blanks = 0
    for note in notes:
        state.warnings.append(f"step {exchange.step}: {note}")
        append(state, Note(note))
    if state.settings.tell_left:
        left = state.account.left(state.limits, seconds_left(state, state.at))
        append(state, Note(f"Left for this task: {left.sentence()}."))
    offer_last_words(state)
