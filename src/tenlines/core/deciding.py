"""What to do next: state and the time in, an effect out. Asking changes nothing.

`machine` says what each event means; this file says what follows. Every guard of a limit is here, before the thing
that it guards.
"""

from __future__ import annotations

import hashlib

import msgspec

from tenlines.core import context, metering, outcomes
from tenlines.core import events as ev
from tenlines.core.children import allowances
from tenlines.core.effects import (
    AskHuman,
    CallModel,
    Effect,
    Finish,
    Question,
    Reconcile,
    Refusal,
    RunnableCall,
    RunTools,
    Sleep,
    Summarise,
    UndoCall,
)
from tenlines.core.leaving import LeanView
from tenlines.core.limits import Verdict, has_room, reserve
from tenlines.core.shrinking import Wanted, most_output, room_for_output, shrink
from tenlines.core.state import Exchange, OpenCall, Phase, State, call_key, deadline_at, is_undone, open_exchange
from tenlines.core.transcript import Message, Outcome, TranscriptView, estimate_tokens, text_of
from tenlines.errors import InvalidEvent


def next_effect(state: State, now: float) -> Effect:
    """What to do next."""
    if state.phase is Phase.AWAITING_TOOLS:
        return _next_calls(state, now)
    if state.phase is Phase.ENDED:
        assert state.ended is not None
        return Finish(state.ended.status, state.ended.reason, state.ended.answer)
    if state.phase is Phase.NEW:
        raise InvalidEvent("the run has not started: apply RunStarted first")
    if state.phase is Phase.UNDOING and state.undo:
        return _undo_call(state, state.undo[-1])
    effect = Finish(state.stop.status, state.stop.reason, state.answer) if state.stop else _next_request(state, now)
    if state.settings.on_stop == "undo" and state.phase is Phase.READY and isinstance(effect, Finish):
        undoable = [] if effect.status == "answered" else still_to_undo(state)
        return _undo_call(state, undoable[-1]) if undoable else effect
    return effect


def without_undo(state: State, now: float) -> Finish:
    """How the run ends, once what it did is undone."""
    effect = Finish(state.stop.status, state.stop.reason, None) if state.stop else _next_request(state, now)
    assert isinstance(effect, Finish)
    return effect


def _next_request(state: State, now: float) -> Effect:
    """READY: guard every limit, then ask the model."""
    verdict, seconds = reservation(state), state.limits.seconds
    if spent := out_of_budget(state, verdict):
        return spent
    smaller = None if state.compaction is None else shrink(state)
    if isinstance(smaller, Finish):
        return smaller  # before the time is looked at: an end stays the end
    deadline = deadline_at(state)
    starts_at = max(now, state.retry_at or 0.0)
    if deadline is not None and starts_at >= deadline:
        after = f"; the last request failed: {state.last_error}" if state.last_error else ""
        return Finish("deadline", f"the time limit of {seconds:g} s ran out{after}", None)
    if starts_at > now:
        return Sleep(starts_at, f"attempt {state.attempt} failed: {state.last_error}")
    if isinstance(smaller, Wanted):
        return _summarise(state, smaller, now, deadline)
    return smaller or _request(state, verdict, now, deadline)


def _request(state: State, verdict: Verdict, now: float, deadline: float | None) -> CallModel:
    choice = tool_choice(state)
    return CallModel(
        state.account.steps + 1,
        state.attempt + 1,
        _view(state, state.messages),
        state.sent,
        state.specs,
        choice,
        verdict.max_output_tokens,
        verdict.reserved,
        state.account.left(state.limits, None if deadline is None else deadline - now),
        deadline,
        what_changed(state, choice),
    )


def _view(state: State, messages: list[Message]) -> TranscriptView:
    if state.left_out:
        return LeanView(messages, len(messages), state.left_out)
    return TranscriptView(messages, len(messages))


def what_changed(state: State, choice: str) -> str:
    """What of the beginning of the request is not as it was in the one before."""
    if choice == state.last_choice and not (state.changed or state.tools_changed):
        return ""
    forced = f"the tool choice is {choice!r}, it was {state.last_choice!r}"
    is_forced = state.last_choice not in ("", choice)
    return "; ".join(what for what in (state.changed, state.tools_changed, forced if is_forced else "") if what)


def _summarise(state: State, wanted: Wanted, now: float, deadline: float | None) -> Summarise:
    """The next request, with a question behind it: so the summary is read from the cache, and the tools are there.

    It is the only thing that differs, but for a tool that would be forced, or takes the answer: then no summary would
    ever be written.
    """
    assert state.compaction is not None
    question, choice = context.question(state.compaction.summary_tokens), tool_choice(state)
    asked = metering.most(state) + estimate_tokens(question)
    verdict = reserve(state.account, state.limits, state.settings.price, asked, room_for_output(state))
    choice = choice if choice in ("auto", "none") and state.finish is None else "none"
    request = msgspec.structs.replace(
        _request(state, verdict, now, deadline),
        messages=_view(state, [*state.messages, question]),
        tool_choice=choice,
        changed=what_changed(state, choice),
    )
    return Summarise(wanted.span.start, wanted.span.end, request)


def reservation(state: State) -> Verdict:
    """The worst case of the next request, or why it does not fit. The reply has to fit into the window too."""
    settings, asked = state.settings, metering.most(state)
    verdict = reserve(state.account, state.limits, settings.price, asked, settings.max_output_tokens)
    output = verdict.max_output_tokens
    room = None if output is None else most_output(state, asked)
    if output is None or room is None or output <= room:
        return verdict
    return reserve(state.account, state.limits, settings.price, asked, room)


def out_of_budget(state: State, verdict: Verdict) -> Finish | None:
    """The end of a run that has no step or no budget left for another request."""
    steps = state.limits.steps
    if steps is not None and state.account.all_steps >= steps and state.last_words != "due":
        return Finish("max_steps", f"the limit of {steps} steps was reached without an answer", None)
    return Finish("budget", verdict.refusal, None) if verdict.refusal else None


def why_no_step(state: State) -> Finish | None:
    """The same of a step that is about to start; how much is reserved for it does not matter then."""
    has_place = has_room(state.account, state.limits, state.settings.price, metering.most(state))
    return out_of_budget(state, _ROOM if has_place else reservation(state))


_ROOM = Verdict()


def tool_choice(state: State) -> str:
    """Force a tool only until the model obeyed once, and never when no call could run."""
    choice = state.settings.tool_choice
    if state.finish is not None and (state.finish_due or state.last_words == "due"):
        return state.finish.name
    if state.last_words == "due":
        return "none"
    if choice in ("auto", "none"):
        return choice
    allowed = state.limits.tool_calls
    spent = allowed is not None and state.account.all_tool_calls >= allowed
    return "auto" if spent or (state.choice_met and not state.settings.keep_tool_choice) else choice


def _next_calls(state: State, now: float) -> Effect:
    """AWAITING_TOOLS: what has to be asked first; then the refusals that are due, and the calls that may run now.

    Read-only calls that stand side by side run together; any other, and one whose result may be the answer, runs
    alone, in the order asked. A call that is under way is waited for; where only people can go on, the run pauses.
    """
    exchange, deadline = open_exchange(state), deadline_at(state)
    why = why_nothing_runs(state, exchange, now, deadline)
    if exchange.asking and not why and (first := _next_question(state, exchange, now)):
        return first
    refusals, calls, stale = _due(state, exchange, why, now, deadline)
    if not (refusals or calls):
        if stale:
            return AskHuman((_question(state, exchange.step, stale[0], now),))
        if not exchange.under_way and (end := _pause(exchange)):
            return end
    if state.has_spending:
        calls = _with_allowances(state, exchange, calls, now)
    return RunTools(tuple(refusals), tuple(calls), state.settings.max_parallel, deadline)


def _due(
    state: State, exchange: Exchange, why: str, now: float, deadline: float | None
) -> tuple[list[Refusal], list[RunnableCall], list[int]]:
    """The calls from the cursor on: who is refused now, who may run now, and who could if the leave were not over.

    Leave is asked for again when it is the turn of its call, and for one call at a time: else some leave would be over
    again before the last is given, for ever.
    """
    drains = state.cancel == "drain" and exchange.final is None and (deadline is None or now < deadline)
    budget = state.limits.tool_calls
    room = None if budget is None else budget - state.account.all_tool_calls
    refusals: list[Refusal] = []
    calls: list[RunnableCall] = []
    stale: list[int] = []
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
        waits = one.started or one.permission == "asked" or one.paused is not None
        has_room = is_free(one) or room is None or room > 0
        if not (has_room or calls):
            refusals.append(_over_limit(state, exchange, position))
            continue
        is_beside = exchange.under_way and (alone or exchange.alone)
        if not has_room or is_beside or (alone and (waits or calls)):
            break
        if waits:
            continue
        if one.expires_at is not None and has_expired(one, now):
            stale.append(position)
        else:
            calls.append(runnable(state, exchange.step, position, one))
            room = None if room is None else room - (not is_free(one))
        if alone:
            break
    return refusals, calls, stale


def _with_allowances(state: State, exchange: Exchange, calls: list[RunnableCall], now: float) -> list[RunnableCall]:
    """The calls, those that spend with what they may."""
    if not any(state.tools[call.name].spends for call in calls):
        return calls
    given = allowances(state, exchange, reservation(state).reserved, now)
    return [msgspec.structs.replace(call, allowance=given.get(call.position)) for call in calls]


# --- what has to be asked ----------------------------------------------------------------------------


def _next_question(state: State, exchange: Exchange, now: float) -> Reconcile | AskHuman | None:
    """Tools are asked about calls in doubt; then the policy, or people, about calls that need leave."""
    step = exchange.step
    doubtful = [position for position, one in exchange.asking.items() if one.doubt == "reconcile"]
    if doubtful:
        return Reconcile(tuple(runnable(state, step, position, exchange.calls[position]) for position in doubtful))
    questions = [
        _question(state, step, position, now)
        for position, one in exchange.asking.items()
        if _can_be_asked_about(state, one)
    ]
    return AskHuman(tuple(questions)) if questions else None


def _question(state: State, step: int, position: int, now: float) -> Question:
    one, lasts = open_exchange(state).calls[position], state.settings.approval_expires_s
    return Question(
        _as_asked(state, step, position, one),
        binding(state, step, position, one),
        "in_doubt" if one.doubt == "ask" else "call",
        None if lasts is None else now + lasts,
    )


def _can_be_asked_about(state: State, one: OpenCall) -> bool:
    budget = state.limits.tool_calls
    return is_free(one) or budget is None or state.account.all_tool_calls < budget


def _as_asked(state: State, step: int, position: int, one: OpenCall) -> RunnableCall:
    """The call as somebody is asked about it: as the model wrote it, or as it has run already."""
    if one.edited_by is None or one.counted:
        return runnable(state, step, position, one)
    written = outcomes.parse_arguments(one.call.arguments).value or {}
    return msgspec.structs.replace(runnable(state, step, position, one), arguments=written)


def has_expired(one: OpenCall, now: float) -> bool:
    """Whether a question about the call, or the leave to run it, holds no longer."""
    return one.expires_at is not None and now >= one.expires_at


def _pause(exchange: Exchange) -> Finish | None:
    """The end of a run in which only people can go on."""
    names = [one.call.name for one in exchange.guarded.values() if one.permission == "asked" and one.refusal is None]
    paused = [one for one in exchange.calls if one.paused is not None and one.outcome is None]
    names += [one.call.name for one in paused]
    if not names:
        return None
    what = f"the call of {names[0]} waits" if len(names) == 1 else f"{len(names)} calls wait ({', '.join(names)})"
    if len(names) == 1 and paused and paused[0].paused is not None:
        what = f"the run {paused[0].paused.run_id} of the call of {names[0]} waits"
    return Finish("awaiting_approval", f"{what} for somebody's decision", None)


def binding(state: State, step: int, position: int, one: OpenCall) -> str:
    """What a question and its answer are bound to: the call's place, the tool, and what the model wrote; and, of a call
    in doubt, how often it has run, so that nobody's old answer lets it run once more."""
    assert state.start is not None
    written = outcomes.parse_arguments(one.call.arguments).value
    tool, starts = state.tools.get(one.call.name), one.starts if one.doubt == "ask" else 0
    bound = None if tool is None else _as_bound(tool)
    what = [state.start.run_id, step, position, bound, written, starts]
    return hashlib.blake2b(msgspec.json.encode(what, order="deterministic"), digest_size=16).hexdigest()


_LATER = ("child", "answer")
"""What tools could not be before; said of them only where they are."""
_Bound = msgspec.defstruct("_Bound", [name for name in ev.ToolSpec.__struct_fields__ if name not in _LATER])


def _as_bound(tool: ev.ToolSpec) -> object:
    """The tool as it enters a digest: the text of all others is as it was before there were such, so that old questions
    can still be answered."""
    plain = _Bound(*(getattr(tool, name) for name in _Bound.__struct_fields__))
    more = [name for name in _LATER if getattr(tool, name)]
    return [plain, *more] if more else plain


# --- what has to be undone ---------------------------------------------------------------------------


def still_to_undo(state: State) -> list[tuple[int, int]]:
    """Calls that started, whose tools name a compensation, and that are not known to be undone."""
    return [place for place, one in state.acted.items() if is_undoable(state, one) and not is_undone(state, place)]


def is_undoable(state: State, one: OpenCall) -> bool:
    """Whether the tool that is here now can take the call back."""
    spec = state.tools.get(one.call.name)
    return spec is not None and spec.undoable


def _undo_call(state: State, place: tuple[int, int]) -> UndoCall:
    one = state.acted[place]
    result = text_of(one.parts) if one.outcome == "ok" else ""
    return UndoCall(runnable(state, *place, one), result, one.outcome or "in_doubt")


# --- calls that may run, calls that may not -----------------------------------------------------------


def is_free(one: OpenCall) -> bool:
    """Whether the limit of tool calls leaves the call alone: it is counted already, or gives the answer."""
    return one.counted or (one.spec is not None and bool(one.spec.answer))


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


def _over_limit(state: State, exchange: Exchange, position: int) -> Refusal:
    how = "answer" if state.finish is None else f"call {state.finish.name}"
    why = f"the limit of {state.limits.tool_calls} tool calls for this run is used up; {how} with what you have"
    name = exchange.calls[position].call.name
    return Refusal(exchange.step, position, "not_executed", outcomes.not_executed(name, why))


def runnable(state: State, step: int, position: int, one: OpenCall) -> RunnableCall:
    """The call, as a driver is given it."""
    assert one.arguments is not None
    return RunnableCall(step, position, one.call.id, one.call.name, one.arguments, call_key(state, step, position))
