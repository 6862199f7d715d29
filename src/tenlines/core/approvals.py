"""Leave to run: asked of the policy and of people, bound to the very call, and recorded with who gave it."""

from __future__ import annotations

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.changes import find_call
from tenlines.core.deciding import binding, has_expired
from tenlines.core.state import OpenCall, Phase, State, open_exchange
from tenlines.errors import InvalidEvent


def on_approval_asked(state: State, event: ev.ApprovalAsked) -> None:
    """A person has to decide; until then the call, and what comes after it, waits."""
    one = _guarded(state, event)
    if event.about != ("in_doubt" if one.doubt == "ask" else "call"):
        raise InvalidEvent(f"ApprovalAsked is about {event.about!r}, which is not the question")
    if one.permission and not has_expired(one, event.at):
        raise InvalidEvent(f"ApprovalAsked: call {event.position} of step {event.step} is {one.permission} already")
    one.permission, one.digest = "asked", event.digest
    one.expires_at, one.why_asked = event.expires_at, event.reason


def on_approval_given(state: State, event: ev.ApprovalGiven) -> None:
    """Somebody decided."""
    one = _guarded(state, event)
    expired = has_expired(one, event.at)
    if one.permission == "allowed" and not expired:
        raise InvalidEvent(f"ApprovalGiven: call {event.position} of step {event.step} is allowed already")
    if (state.phase is Phase.ENDED or one.doubt) and (one.permission != "asked" or expired):
        raise InvalidEvent(
            f"ApprovalGiven: nobody waits for an answer about call {event.position} of step {event.step}, or it comes "
            "too late"
        )
    edited = _edited(event, one)
    assert one.spec is not None
    if event.verdict == "deny" and one.doubt:
        one.refusal = "in_doubt"
        one.refusal_text = outcomes.doubt_settled(one.spec.name, event.by, event.reason)
    elif event.verdict == "deny":
        one.refusal, one.refusal_text = "denied", outcomes.denied(one.spec.name, event.by, event.reason)
    else:
        one.permission, one.doubt, one.digest = "allowed", "", event.digest
        one.expires_at = event.expires_at
        if edited is not None:
            one.arguments, one.edited_by = edited.value, event.by


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
