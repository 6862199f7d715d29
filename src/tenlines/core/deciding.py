"""What to do next: state and the time in, an effect out. Asking changes nothing.

`machine` says what each event means; this file says what follows. Every guard of a limit is here, before the thing
that it guards.
"""

from __future__ import annotations

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.effects import CallModel, Effect, Finish, Refusal, RunnableCall, RunTools, Sleep
from tenlines.core.leaving import LeanView
from tenlines.core.limits import Verdict, reserve
from tenlines.core.state import Exchange, OpenCall, Phase, State
from tenlines.core.transcript import Outcome, TranscriptView
from tenlines.errors import InvalidEvent


def next_effect(state: State, now: float) -> Effect:
    if state.phase is Phase.AWAITING_TOOLS:
        return _next_calls(state, now)
    if state.phase is Phase.ENDED:
        assert state.ended is not None
        return Finish(state.ended.status, state.ended.reason, state.ended.answer)
    if state.phase is Phase.NEW:
        raise InvalidEvent("the run has not started: apply RunStarted first")
    if state.stop is not None:
        return Finish(state.stop.status, state.stop.reason, state.answer)
    return _next_request(state, now)


def _next_request(state: State, now: float) -> Effect:
    """READY: guard every limit, then ask the model."""
    limits, account, verdict = state.limits, state.account, reservation(state)
    if spent := out_of_budget(state, verdict):
        return spent
    deadline = deadline_at(state)
    starts_at = max(now, state.retry_at or 0.0)
    if deadline is not None and starts_at >= deadline:
        after = f"; the last request failed: {state.last_error}" if state.last_error else ""
        return Finish("deadline", f"the time limit of {limits.seconds:g} s ran out{after}", None)
    if starts_at > now:
        return Sleep(starts_at, f"attempt {state.attempt} failed: {state.last_error}")
    return CallModel(
        account.steps + 1,
        state.attempt + 1,
        _view(state),
        state.sent,
        state.specs,
        _tool_choice(state),
        verdict.max_output_tokens,
        verdict.reserved,
        account.left(limits, None if deadline is None else deadline - now),
        deadline,
    )


def _view(state: State) -> TranscriptView:
    if state.left_out:
        return LeanView(state.messages, len(state.messages), state.left_out)
    return TranscriptView(state.messages, len(state.messages))


def reservation(state: State) -> Verdict:
    settings = state.settings
    return reserve(state.account, state.limits, settings.price, state.estimated_tokens, settings.max_output_tokens)


def out_of_budget(state: State, verdict: Verdict) -> Finish | None:
    """The end of a run that has no step or no budget left for another request."""
    steps = state.limits.steps
    if steps is not None and state.account.steps >= steps and state.last_words != "due":
        return Finish("max_steps", f"the limit of {steps} steps was reached without an answer", None)
    return Finish("budget", verdict.refusal, None) if verdict.refusal else None


def _tool_choice(state: State) -> str:
    """Force a tool only until the model obeyed once, and never when no call could run."""
    choice = state.settings.tool_choice
    if state.last_words == "due":
        return "none"
    if choice in ("auto", "none"):
        return choice
    allowed = state.limits.tool_calls
    spent = allowed is not None and state.account.tool_calls >= allowed
    return "auto" if spent or (state.choice_met and not state.settings.keep_tool_choice) else choice


def _next_calls(state: State, now: float) -> RunTools:
    """AWAITING_TOOLS: the refusals that are due, and the calls that may run together now.

    Read-only calls that stand side by side run together; any other, and one whose result may be the answer, runs
    alone, in the order asked. A call that is under way is waited for.
    """
    exchange, deadline = open_exchange(state), deadline_at(state)
    why = why_nothing_runs(state, exchange, now, deadline)
    drains = state.cancel == "drain" and exchange.final is None and (deadline is None or now < deadline)
    budget = state.limits.tool_calls
    room = None if budget is None else budget - state.account.tool_calls
    refusals: list[Refusal] = []
    calls: list[RunnableCall] = []
    for index in range(exchange.cursor, len(exchange.order)):
        position = exchange.order[index]
        one = exchange.calls[position]
        if one.outcome is not None or (drains and one.started and one.refusal is None):
            continue  # it has ended, or it may still finish
        if why or one.refusal is not None:
            refusals.append(_refusal(exchange, position, why))
            continue
        assert one.spec is not None
        alone = runs_alone(one.spec)
        if one.started:
            if alone:
                break
            continue
        if alone and (calls or exchange.under_way):
            break
        if room is not None and room <= 0 and not one.counted:
            if not calls:
                refusals.append(_over_limit(exchange, position, budget))
                continue
            break
        calls.append(_runnable(state, exchange.step, position, one))
        room = None if room is None else room - (not one.counted)
        if alone:
            break
    return RunTools(tuple(refusals), tuple(calls), state.settings.max_parallel, deadline)


def runs_alone(spec: ev.ToolSpec) -> bool:
    return spec.final or not spec.read_only


def why_nothing_runs(state: State, exchange: Exchange, now: float, deadline: float | None) -> str:
    """The reason why no further call of the exchange may start, or ""."""
    if exchange.final is not None:
        return "the run had its final answer from another call of the same reply"
    if state.cancel:
        return "the run was cancelled before it started"
    if deadline is not None and now >= deadline:
        return "the time limit of the run ran out before it started"
    return ""


def _refusal(exchange: Exchange, position: int, why: str) -> Refusal:
    one = exchange.calls[position]
    if one.refusal is not None:
        return Refusal(exchange.step, position, one.refusal, one.refusal_text)
    assert one.spec is not None
    if one.counted:  # it started here, or before a crash
        outcome: Outcome = "cancelled" if one.spec.read_only else "in_doubt"
        return Refusal(exchange.step, position, outcome, outcomes.interrupted(one.spec.name, one.spec.read_only))
    return Refusal(exchange.step, position, "not_executed", outcomes.not_executed(one.call.name, why))


def _over_limit(exchange: Exchange, position: int, budget: int | None) -> Refusal:
    why = f"the limit of {budget} tool calls for this run is used up; answer with what you have"
    name = exchange.calls[position].call.name
    return Refusal(exchange.step, position, "not_executed", outcomes.not_executed(name, why))


def _runnable(state: State, step: int, position: int, one: OpenCall) -> RunnableCall:
    assert one.arguments is not None
    return RunnableCall(step, position, one.call.id, one.call.name, one.arguments, call_key(state, step, position))


def call_key(state: State, step: int, position: int) -> str:
    """The idempotency key: the runtime's own, the same over retry, crash and resume."""
    assert state.start is not None
    return f"{state.start.run_id}:{step}:{position}"


def deadline_at(state: State) -> float | None:
    seconds = state.limits.seconds
    return None if seconds is None else state.session_began + seconds - state.worked_s


def open_exchange(state: State) -> Exchange:
    assert state.exchange is not None
    return state.exchange


def seconds_left(state: State, now: float) -> float | None:
    deadline = deadline_at(state)
    return None if deadline is None else deadline - now
