"""What several handlers do to the state."""

from __future__ import annotations

from typing import Any

from tenlines.core import events as ev
from tenlines.core.state import OpenCall, State, Stop, open_exchange
from tenlines.core.transcript import Message, Note, estimate_tokens
from tenlines.errors import InvalidEvent


def append(state: State, message: Message) -> None:
    """The one place where the transcript grows."""
    state.messages.append(message)
    state.estimated_tokens += estimate_tokens(message)


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
        append(state, Note("The step limit is reached. Answer now with what you know; no tool can be called."))


def is_at_last_words(state: State) -> bool:
    """Whether the steps are used up and one more request, for words alone, is allowed."""
    limits = state.limits
    return limits.last_words and bool(limits.steps) and state.account.steps == limits.steps


def ask_again(state: State, what: str) -> None:
    """A reply that says nothing: ask again, a few times, with a word on why."""
    state.blanks += 1
    if state.blanks > state.settings.blank_replies:
        state.stop = Stop("empty_reply", f"the model's reply was {what}, {state.blanks} times in a row")
        return
    state.warnings.append(f"step {state.account.steps}: the reply was {what} and was asked for again")
    append(state, Note(f"Your last reply was {what}. Call a tool, or answer in words."))
    offer_last_words(state)


def check_tools(tools: tuple[ev.ToolSpec, ...]) -> None:
    """Raises `InvalidEvent` where two have the same name."""
    names = [spec.name for spec in tools]
    if len(set(names)) != len(names):
        raise InvalidEvent(f"two tools have the same name: {min(n for n in names if names.count(n) > 1)!r}")


def set_tools(state: State, tools: tuple[ev.ToolSpec, ...]) -> None:
    """The tools that the run has from now on."""
    state.specs = tools
    state.tools = {spec.name: spec for spec in tools}
    state.has_final = any(spec.final for spec in tools)
    old = state.tools_tokens
    state.tools_tokens = sum(20 + (len(spec.description) + len(repr(spec.parameters))) // 4 for spec in tools)
    state.estimated_tokens += state.tools_tokens - old


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
    if started is not None and one.started != started:
        raise InvalidEvent(f"{name}: call {event.position} of step {event.step} has {'not ' * started}started")
    return one
