"""What several handlers do to the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.prefix import tools_change
from tenlines.core.state import Exchange, OpenCall, State, Stop, open_exchange
from tenlines.core.transcript import Message, Note, estimate_text, estimate_tokens, estimate_value
from tenlines.errors import InvalidEvent


def append(state: State, message: Message) -> None:
    """The one place where the transcript grows."""
    state.messages.append(message)
    tokens = estimate_tokens(message)
    state.estimated_tokens += tokens
    state.appended_tokens += tokens


def note_change(state: State, what: str) -> None:
    """The beginning of the next request is not as it was in the last one."""
    if what not in state.changed:
        state.changed = f"{state.changed}; {what}" if state.changed else what


def release_queue(state: State) -> None:
    """What people said while the model was busy comes after everything that belongs together."""
    for message in state.queue:
        append(state, message)
    state.queue.clear()


def stop_if_cancelled(state: State) -> None:
    """A cancelled run ends as soon as nothing is open, unless it ends otherwise."""
    if state.cancel and state.stop is None:
        state.stop = Stop("cancelled", state.cancel_reason or "the run was cancelled")


def offer_last_words(state: State) -> None:
    """At the step limit, where asked for: one more request, without tools, for what is known."""
    if is_at_last_words(state) and not state.last_words:
        state.last_words = "due"
        how = "Answer now with what you know; no tool can be called."
        if state.finish is not None:
            how = f"Call {state.finish.name} now with what you know; no other tool can be called."
        append(state, Note(f"The step limit is reached. {how}"))


def withdraw_last_words(state: State) -> None:
    """There are steps again, or words alone are not wanted any more."""
    if state.last_words == "due" and not is_at_last_words(state):
        state.last_words = ""


def is_at_last_words(state: State) -> bool:
    """Whether the steps are used up and one more request, for words alone, is allowed."""
    limits = state.limits
    return limits.last_words and bool(limits.steps) and state.account.all_steps == limits.steps


def ask_again(state: State, what: str) -> None:
    """A reply that says nothing: ask again, a few times, with a word on why."""
    state.blanks += 1
    if state.blanks > state.settings.blank_replies:
        state.stop = Stop("empty_reply", f"the model's reply was {what}, {state.blanks} times in a row")
        return
    state.warnings.append(f"step {state.account.steps}: the reply was {what} and was asked for again")
    how = "answer in words" if state.finish is None else f"give the answer by calling {state.finish.name}"
    append(state, Note(f"Your last reply was {what}. Call a tool, or {how}."))
    offer_last_words(state)


def check_tools(tools: tuple[ev.ToolSpec, ...]) -> None:
    """Raises `InvalidEvent` where two have the same name."""
    names = [spec.name for spec in tools]
    if len(set(names)) != len(names):
        raise InvalidEvent(f"two tools have the same name: {min(n for n in names if names.count(n) > 1)!r}")


def set_tools(state: State, tools: tuple[ev.ToolSpec, ...]) -> None:
    """The tools that the run has from now on. Nobody who takes a run over can take back that a tool needs leave."""
    state.marked.update(spec.name for spec in tools if spec.approve)
    tools = tuple(msgspec.structs.replace(spec, approve=spec.name in state.marked) for spec in tools)
    state.tools_changed = tools_change(state.last_specs, tools) if state.last_choice else ""
    state.specs = tools
    state.tools = {spec.name: spec for spec in tools}
    state.has_final = any(spec.final for spec in tools)
    state.finish = next((spec for spec in tools if spec.answer), None)
    state.has_spending = any(spec.spends for spec in tools)
    old = state.tools_tokens
    state.tools_tokens = estimate_tools(tools)
    state.estimated_tokens += state.tools_tokens - old


def estimate_tools(tools: Sequence[ev.ToolSpec]) -> int:
    """A guess at the tokens that tools take in each request. The schema of an answer may go out a second time."""
    schemas = (estimate_value(spec.parameters) * (2 if spec.answer else 1) for spec in tools)
    return sum(20 + estimate_text(spec.description) for spec in tools) + sum(schemas)


def restart_clock(state: State, at: float) -> None:
    """Somebody else works on the run. The time between an end, or the last sign of life, and this is not charged."""
    worked_until = state.at if state.ended is None else state.ended.at
    state.worked_s += max(0.0, worked_until - state.session_began)
    state.session_began = at


def guard(exchange: Exchange, position: int, one: OpenCall) -> None:
    """The call waits until somebody has spoken about it."""
    exchange.guarded[position] = one
    if one.doubt == "reconcile" or not one.permission:
        exchange.asking[position] = one


def revoke(one: OpenCall) -> None:
    """A question about the call, or leave to run it, holds no longer. Arguments that were put in place go with it,
    unless the call has run with them."""
    one.permission, one.digest, one.expires_at, one.why_asked = "", "", None, ""
    if one.edited_by is not None and not one.counted:
        one.edited_by, one.arguments = None, outcomes.parse_arguments(one.call.arguments).value


def find_call(state: State, event: Any, *, started: bool | None) -> OpenCall:
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
    if started is False and one.paused is not None:
        raise InvalidEvent(f"{name}: call {event.position} of step {event.step} waits for the run under it")
    if started is not None and one.started != started:
        raise InvalidEvent(f"{name}: call {event.position} of step {event.step} has {'not ' * started}started")
    return one
