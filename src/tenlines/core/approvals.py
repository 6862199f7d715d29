"""Leave to run: asked of the policy and of people, bound to the very call, and recorded with who gave it."""

from __future__ import annotations

from typing import Literal

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.changes import find_call, revoke
from tenlines.core.deciding import binding, has_expired
from tenlines.core.state import OpenCall, Phase, State, open_exchange
from tenlines.errors import InvalidEvent


def on_approval_asked(state: State, event: ev.ApprovalAsked) -> None:
    """A person has to decide; until then the call, and what comes after it, waits."""
    one = _guarded(state, event)
    if event.about != ("in_doubt" if one.doubt == "ask" else "call"):
        raise InvalidEvent(f"ApprovalAsked is about {event.about!r}, which is not the question")
    if one.permission == "asked" or (one.permission == "allowed" and not has_expired(one, event.at)):
        raise InvalidEvent(f"ApprovalAsked: call {event.position} of step {event.step} is {one.permission} already")
    _settle(state, event, one, "asked")
    one.why_asked = event.reason


def on_approval_given(state: State, event: ev.ApprovalGiven) -> None:
    """Somebody decided."""
    one = _guarded(state, event)
    call, expired = f"call {event.position} of step {event.step}", has_expired(one, event.at)
    if one.permission == "allowed" and not expired:
        raise InvalidEvent(f"ApprovalGiven: {call} is allowed already")
    if one.permission == "asked" and expired:
        raise InvalidEvent(f"ApprovalGiven about {call} comes too late: the time for an answer was over")
    is_for_a_person = state.phase is Phase.ENDED or one.doubt or (expired and event.by != "policy")
    if one.permission != "asked" and is_for_a_person:
        raise InvalidEvent(f"ApprovalGiven: nobody was asked about {call}")
    edited = _edited(event, one)
    if event.verdict == "deny":
        _settle(state, event, one, "")
        _deny(event, one)
        return
    _settle(state, event, one, "allowed")
    if edited is not None:
        one.arguments, one.edited_by = edited.value, event.by


def _settle(
    state: State, event: ev.ApprovalAsked | ev.ApprovalGiven, one: OpenCall, permission: Literal["", "asked", "allowed"]
) -> None:
    """Nobody need be asked about the call, as long as this holds."""
    revoke(one)
    one.permission, one.digest, one.expires_at = permission, event.digest, event.expires_at
    open_exchange(state).asking.pop(event.position, None)


def _deny(event: ev.ApprovalGiven, one: OpenCall) -> None:
    """The call does not run, or does not run again."""
    assert one.spec is not None
    if one.doubt or (one.counted and not one.spec.read_only):
        one.refusal, one.refusal_text = "in_doubt", outcomes.doubt_settled(one.spec.name, event.by, event.reason)
    else:
        one.refusal, one.refusal_text = "denied", outcomes.denied(one.spec.name, event.by, event.reason)


def _guarded(state: State, event: ev.ApprovalAsked | ev.ApprovalGiven) -> OpenCall:
    """The call that is spoken of, if it is one that somebody has to allow, and still the same.

    Raises:
        InvalidEvent: It is not.
    """
    if state.exchange is None:
        raise InvalidEvent(f"{type(event).__name__}: no call is open")
    one, name = find_call(state, event, started=False), type(event).__name__
    is_guarded = event.position in open_exchange(state).guarded
    if not is_guarded or one.refusal is not None or one.doubt == "reconcile":
        raise InvalidEvent(f"{name}: call {event.position} of step {event.step} waits for nobody")
    if event.digest != binding(state, event.step, event.position, one):
        raise InvalidEvent(f"{name} is about another call than call {event.position} of step {event.step}")
    return one


def _edited(event: ev.ApprovalGiven, one: OpenCall) -> outcomes.ParsedArguments | None:
    if event.arguments is None:
        return None
    parsed = outcomes.parse_arguments(event.arguments)
    if parsed.value is None:
        raise InvalidEvent(f"ApprovalGiven: the arguments {parsed.problem}")
    if event.verdict == "deny" or one.doubt:
        raise InvalidEvent("ApprovalGiven: only a call that is allowed to run can have other arguments")
    return parsed
