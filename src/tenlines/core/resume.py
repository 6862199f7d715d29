"""A new owner takes the run over: what was in flight is settled, and what nobody knows is asked or said.

A call that had started and has no end is in doubt. `read_only` and `idempotent` tools run again with the same key. A
tool that can reconcile is asked. Of any other it is said that it may have taken effect, or a person decides.
"""

from __future__ import annotations

import msgspec

from tenlines.core import events as ev
from tenlines.core import metering, outcomes
from tenlines.core.changes import append, check_tools, find_call, guard, release_queue, restart_clock, revoke, set_tools
from tenlines.core.deciding import binding, has_expired, still_to_undo
from tenlines.core.state import Exchange, OpenCall, Phase, State, open_exchange
from tenlines.core.transcript import Note
from tenlines.errors import InvalidEvent


def on_run_resumed(state: State, event: ev.RunResumed) -> None:
    """What stopped the run is forgiven, the clock starts anew."""
    if state.ended is not None and state.ended.status == "answered" and state.phase is Phase.ENDED:
        raise InvalidEvent("the run is answered; there is nothing to resume")
    check_tools(event.tools)
    set_tools(state, event.tools)
    restart_clock(state, event.at)
    state.cancel, state.cancel_reason, state.last_words = "", "", ""
    state.blanks = state.attempt = 0
    state.retry_at, state.last_error = None, ""
    _renew_cuts(state, event)
    if state.phase is Phase.UNDOING:
        _go_on_undoing(state)
    elif state.exchange is not None:
        state.ended, state.phase = None, Phase.AWAITING_TOOLS
        _settle_doubts(state, state.exchange, event.at)
    else:
        _forgive(state)


def _renew_cuts(state: State, event: ev.RunResumed) -> None:
    """Summaries that failed have another chance, and what the model refused for its length is cut first; unless the
    window is known by now."""
    cuts, told = state.cuts, None if event.compaction is None else event.compaction.window
    was_refused = state.stop is not None and state.stop.status == "context_overflow"
    was_refused = was_refused and (cuts.window is None or metering.likely(state) <= cuts.window)
    is_news = told is not None and (state.compaction is None or told != state.compaction.window)
    if event.compaction is not None:
        state.compaction, cuts.window = event.compaction, told
    cuts.failures, cuts.tried_at, cuts.summarising = 0, -1, None
    if was_refused and not is_news:
        metering.learn_window(state)


def _forgive(state: State) -> None:
    """Go on from between two exchanges."""
    if state.stop is not None and state.stop.status == "truncated_reply":
        append(state, Note("Your last reply was cut off by the output limit. Go on from there, or be shorter."))
    if state.ended is not None and state.ended.status == "stuck":
        state.repeats.forgive()  # whoever lets it go on gives it a new chance; a mere crash does not
    if state.stop is not None and state.stop.status != "answered":
        state.stop = None
    if state.phase in (Phase.AWAITING_MODEL, Phase.SUMMARISING):
        state.account.lose(state.reserved)
    state.ended = None
    state.phase = Phase.READY
    release_queue(state)
    _tell_undone(state)


def _go_on_undoing(state: State) -> None:
    """What has not been tried since the undoing began, by the tools that are here now."""
    tried = {place for place, event in state.undone.items() if event.seq > state.undo_since}
    state.undo = [place for place in still_to_undo(state) if place not in tried]
    state.undo_under_way = False  # a compensation may be called twice


def _tell_undone(state: State) -> None:
    """What was taken back since the model was last told."""
    new = [place for place, event in state.undone.items() if event.outcome == "ok" and place not in state.undone_told]
    state.undone_told.update(new)
    if new:
        append(state, Note(outcomes.undone([state.acted[place].call.name for place in new])))


def _settle_doubts(state: State, exchange: Exchange, at: float) -> None:
    """Calls that had ever started run again only where that is safe; what is known of the others is sought."""
    exchange.under_way = 0
    if state.finish is None or exchange.stop is None or exchange.stop.status != "max_steps":
        exchange.stop = None  # but what was given as last words stays that, whoever runs the call
    exchange.guarded, exchange.asking = {}, {}
    for position, one in enumerate(exchange.calls):
        if one.outcome is None and one.refusal is None:
            _take_up(state, one)
            if has_expired(one, at):
                revoke(one)
            _keep_guarded(state, exchange, position, one)


def _take_up(state: State, one: OpenCall) -> None:
    """What becomes of a call that has no outcome, by the tools that are here now."""
    assert one.spec is not None
    spec, was_started = state.tools.get(one.spec.name), one.started
    one.started, one.paused = False, None
    if spec is None and not one.counted:
        one.refusal, one.refusal_text = "unknown_tool", outcomes.unknown_tool(one.spec.name, tuple(state.tools))
    elif spec is None:
        _tell_doubt(one)
    else:
        one.spec = _weaker(one.spec, spec) if one.counted else spec
        if one.counted and not _may_repeat(one.spec):
            _doubt(state, one, was_started)


def _weaker(was: ev.ToolSpec, spec: ev.ToolSpec) -> ev.ToolSpec:
    """The tool as it is now. Of what has run, the weaker promise holds."""
    both_read = was.read_only and spec.read_only
    return msgspec.structs.replace(
        spec,
        read_only=both_read,
        idempotent=spec.idempotent if both_read else _may_repeat(was) and _may_repeat(spec),
        reconcilable=was.reconcilable and spec.reconcilable,
        child=was.child and spec.child,
    )


def _may_repeat(spec: ev.ToolSpec) -> bool:
    return spec.read_only or spec.idempotent


def _doubt(state: State, one: OpenCall, was_started: bool) -> None:
    """The call may have taken effect, and may not be repeated by itself."""
    assert one.spec is not None
    if one.doubt == "ask" and not was_started:
        return  # a person was asked, or has decided, and nothing has run since
    if one.spec.reconcilable:
        one.doubt = "reconcile"
    elif state.settings.on_in_doubt == "ask":
        one.doubt = "ask"
    else:
        _tell_doubt(one)


def _tell_doubt(one: OpenCall) -> None:
    """The model is told that nobody knows."""
    assert one.spec is not None
    one.doubt, one.refusal = "", "in_doubt"
    one.refusal_text = outcomes.interrupted(one.spec.name, one.spec.read_only)


def _keep_guarded(state: State, exchange: Exchange, position: int, one: OpenCall) -> None:
    """A question, or leave to run, counts only for the very same call of the very same tool, and the same question:
    leave to run once is no leave to run once more."""
    if one.refusal is not None:
        return
    assert one.spec is not None
    if one.permission and one.digest != binding(state, exchange.step, position, one):
        revoke(one)
    if one.spec.approve or one.doubt:
        guard(exchange, position, one)


def on_call_reconciled(state: State, event: ev.CallReconciled) -> None:
    """The tool said that the call was not done, or that it does not know."""
    one = find_call(state, event, started=False)
    if one.doubt != "reconcile" or one.refusal is not None:
        raise InvalidEvent(f"CallReconciled: call {event.position} of step {event.step} waits for no reconciliation")
    if event.verdict == "not_done":
        one.doubt = ""
    elif state.settings.on_in_doubt == "ask":
        one.doubt = "ask"
    else:
        _tell_doubt(one)
    exchange = open_exchange(state)
    del exchange.guarded[event.position], exchange.asking[event.position]
    _keep_guarded(state, exchange, event.position, one)
