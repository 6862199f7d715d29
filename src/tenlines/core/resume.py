"""A new owner takes the run over: what was in flight is settled, and what nobody knows is asked or said.

A call that had started and has no end is in doubt. `read_only` and `idempotent` tools run again with the same key. A
tool that can reconcile is asked. Of any other it is said that it may have taken effect, or a person decides.
"""

from __future__ import annotations

import msgspec

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.changes import append, check_tools, find_call, release_queue, set_tools
from tenlines.core.deciding import binding
from tenlines.core.state import Exchange, OpenCall, Phase, State, open_exchange
from tenlines.core.transcript import Note
from tenlines.errors import InvalidEvent


def on_run_resumed(state: State, event: ev.RunResumed) -> None:
    """What stopped the run is forgiven, the clock starts anew."""
    if state.ended is not None and state.ended.status == "answered" and state.phase is Phase.ENDED:
        raise InvalidEvent("the run is answered; there is nothing to resume")
    check_tools(event.tools)
    set_tools(state, tuple(_with_mark(state, spec) for spec in event.tools))
    state.worked_s += max(0.0, state.at - state.session_began)
    state.session_began = event.at
    state.cancel, state.cancel_reason, state.last_words = "", "", ""
    state.blanks = state.attempt = 0
    state.retry_at, state.last_error = None, ""
    if state.phase is Phase.UNDOING:
        state.undo_under_way = False  # a compensation may be called twice
    elif state.exchange is not None:
        state.ended, state.phase = None, Phase.AWAITING_TOOLS
        _settle_doubts(state, state.exchange)
    else:
        _forgive(state)


def _with_mark(state: State, spec: ev.ToolSpec) -> ev.ToolSpec:
    """Who takes a run over cannot take back that the calls of a tool need leave."""
    before = state.tools.get(spec.name)
    return msgspec.structs.replace(spec, approve=True) if before is not None and before.approve else spec


def _forgive(state: State) -> None:
    """Go on from between two exchanges."""
    if state.stop is not None and state.stop.status == "truncated_reply":
        append(state, Note("Your last reply was cut off by the output limit. Go on from there, or be shorter."))
    if state.ended is not None and state.ended.status == "stuck":
        state.repeats.forgive()  # whoever lets it go on gives it a new chance; a mere crash does not
    if state.stop is not None and state.stop.status != "answered":
        state.stop = None
    if state.phase is Phase.AWAITING_MODEL:
        state.account.unmetered += 1  # a request was made, and nobody will ever say what it used
    state.ended = None
    state.phase = Phase.READY
    release_queue(state)
    _tell_undone(state)


def _tell_undone(state: State) -> None:
    """What was taken back since the model was last told."""
    new = [place for place, event in state.undone.items() if event.outcome == "ok" and place not in state.undone_told]
    state.undone_told.update(new)
    if new:
        append(state, Note(outcomes.undone([state.acted[place].call.name for place in new])))


def _settle_doubts(state: State, exchange: Exchange) -> None:
    """Calls that had ever started run again only where that is safe; what is known of the others is sought."""
    exchange.stop, exchange.under_way, exchange.guarded = None, 0, []
    for position, one in enumerate(exchange.calls):
        if one.outcome is not None or one.refusal is not None:
            continue
        assert one.spec is not None
        spec = state.tools.get(one.spec.name)
        if one.counted and not (_may_repeat(one.spec) and _may_repeat(spec)):
            _doubt(state, one, spec)
        elif spec is None:
            one.refusal, one.refusal_text = "unknown_tool", outcomes.unknown_tool(one.spec.name, tuple(state.tools))
        else:
            one.started = False
            if not (one.counted and spec.read_only):  # of what has run, the weaker promise holds
                one.spec = spec
        if one.refusal is None and (one.spec.approve or one.doubt):
            exchange.guarded.append(position)
            _hold_to_digest(state, exchange.step, position, one)


def _may_repeat(spec: ev.ToolSpec | None) -> bool:
    return spec is not None and (spec.read_only or spec.idempotent)


def _doubt(state: State, one: OpenCall, spec: ev.ToolSpec | None) -> None:
    """The call may have taken effect, and may not be repeated by itself."""
    assert one.spec is not None
    one.started, one.doubt = False, ""
    if spec is not None and spec.reconcilable and one.spec.reconcilable:
        one.doubt = "reconcile"
    elif spec is not None and state.settings.on_in_doubt == "ask":
        one.doubt = "ask"
    else:
        one.refusal, one.refusal_text = "in_doubt", outcomes.interrupted(one.spec.name, one.spec.read_only)


def _hold_to_digest(state: State, step: int, position: int, one: OpenCall) -> None:
    """A question, or leave to run, counts only for the very same call of the very same tool."""
    if one.permission and one.digest != binding(state, step, position, one):
        one.permission, one.digest, one.expires_at, one.why_asked = "", "", None, ""
        if one.edited_by:
            one.edited_by, one.arguments = "", outcomes.parse_arguments(one.call.arguments).value


def on_call_reconciled(state: State, event: ev.CallReconciled) -> None:
    """The tool said that the call was not done, or that it does not know."""
    one = find_call(state, event, started=False)
    if one.doubt != "reconcile" or one.refusal is not None:
        raise InvalidEvent(f"CallReconciled: call {event.position} of step {event.step} waits for no reconciliation")
    assert one.spec is not None
    if event.verdict == "not_done":
        one.doubt = ""
    elif state.settings.on_in_doubt == "ask":
        one.doubt = "ask"
        one.permission, one.digest, one.expires_at = "", "", None
    else:
        one.doubt, one.refusal = "", "in_doubt"
        one.refusal_text = outcomes.interrupted(one.spec.name, False)
    exchange = open_exchange(state)
    if not (one.doubt or one.spec.approve) and event.position in exchange.guarded:
        exchange.guarded.remove(event.position)
