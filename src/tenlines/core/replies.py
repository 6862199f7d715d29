"""What the model's side of a step means: the intent to ask, a failure, a reply in words."""

from __future__ import annotations

from zlib import crc32

from tenlines.core import events as ev
from tenlines.core import metering
from tenlines.core.answers import as_call, ask_for_finish
from tenlines.core.calls import WHY_NOT, open_for
from tenlines.core.changes import (
    append,
    ask_again,
    is_at_last_words,
    note_change,
    release_queue,
    stop_if_cancelled,
)
from tenlines.core.deciding import tool_choice, why_no_step
from tenlines.core.leaving import Leavable, concession
from tenlines.core.limits import Retry
from tenlines.core.shrinking import note_look
from tenlines.core.state import Phase, State, Stop
from tenlines.core.transcript import Assistant, Reply
from tenlines.errors import InvalidEvent


def on_step_started(state: State, event: ev.StepStarted) -> None:
    """The request may go out."""
    if (event.step, event.attempt) != (state.account.steps + 1, state.attempt + 1):
        raise InvalidEvent(
            f"StepStarted is step {event.step!r}, attempt {event.attempt!r}; expected step "
            f"{state.account.steps + 1}, attempt {state.attempt + 1}"
        )
    if state.stop is not None:
        raise InvalidEvent(f"the run has to end as {state.stop.status}; no further step may start")
    if spent := why_no_step(state):
        raise InvalidEvent(f"the run has to end as {spent.status}; no further step may start: {spent.reason}")
    if state.attempt:
        state.account.retries += 1
    if state.compaction is not None:
        note_look(state)
    state.asked_choice = tool_choice(state)
    if state.last_words == "due":
        state.last_words = "asked"
    state.retry_at, state.reserved = None, event.reserved
    state.phase = Phase.AWAITING_MODEL


def on_model_failed(state: State, event: ev.ModelFailed) -> None:
    """Ask again later, ask otherwise, or stop."""
    if (event.step, event.attempt) != (state.account.steps + 1, state.attempt + 1):
        raise InvalidEvent(f"ModelFailed is for step {event.step!r}, attempt {event.attempt!r}, which is not under way")
    metering.check(event.usage, None)
    if event.usage is not None:
        state.account.enter(event.usage, metering.dollars(state, event.usage, None), state.reserved)
    state.attempt += 1
    state.last_error = event.message
    state.phase = Phase.READY
    if state.last_words == "asked":
        state.last_words = "due" if is_at_last_words(state) else ""
    release_queue(state)
    retry = state.settings.retry
    if event.kind == "OutOfMoves":
        state.stop = Stop("max_steps", event.message)
    elif event.kind == "ContextTooLong":
        if not metering.learn_window(state):
            state.stop = Stop("context_overflow", event.message)
    elif (left := concession(event.violation)) and left not in state.left_out:
        _leave_out(state, left, event)
    elif not event.retryable:
        state.stop = Stop("model_error", event.message)
    elif state.attempt >= retry.attempts:
        state.stop = Stop("model_error", f"{event.message} (after {state.attempt} attempts)")
    else:
        state.retry_at = event.at + max(event.retry_after_s or 0.0, _backoff(state, retry))
    stop_if_cancelled(state)


def _leave_out(state: State, left: Leavable, event: ev.ModelFailed) -> None:
    """The same request would be refused for ever: ask again without what was refused, once, and go on so."""
    state.left_out |= {left}
    state.sent = 0  # the model must be told everything anew
    note_change(state, f"{left} is left out")
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


def on_model_replied(state: State, event: ev.ModelReplied) -> None:
    """A step is done: words, or an exchange that opens."""
    reply = event.reply
    if event.step != state.account.steps + 1 or not isinstance(reply, Reply):
        raise InvalidEvent(f"ModelReplied is for step {event.step!r}, expected step {state.account.steps + 1}")
    usage = reply.usage
    metering.check(usage, reply.dollars)
    state.account.settle(usage, metering.dollars(state, usage, reply.dollars), state.reserved)
    metering.learn(state, usage)
    state.attempt, state.last_error = 0, ""
    state.changed, state.tools_changed = "", ""
    state.last_choice, state.last_specs = state.asked_choice, state.specs
    state.warnings.extend(reply.remarks)
    if (with_calls := as_call(state, reply)).calls:
        open_for(state, with_calls)
        return
    state.phase = Phase.READY
    _take_words(state, reply)
    stop_if_cancelled(state)


def _take_words(state: State, reply: Reply) -> None:
    """A reply without calls: an answer, or one of the ways in which it is none."""
    says = reply.text if reply.text.strip() else ""
    empty_is_answer = state.settings.empty_is_answer and state.finish is None
    keeps_opaque = bool(reply.opaque) and (reply.stop == "pause" or empty_is_answer)
    is_blank = not (says or keeps_opaque or empty_is_answer)
    if says or keeps_opaque:  # an assistant message that says nothing is taken by no provider
        append(state, Assistant(says, (), reply.opaque))
    state.partial = says or state.partial
    state.sent, was_last = len(state.messages), not state.queue
    release_queue(state)
    if reply.stop in ("content_filter", "refusal"):
        state.stop = Stop("refused", "the model declined to answer" if reply.stop == "refusal" else WHY_NOT[reply.stop])
    elif reply.stop == "context_overflow":
        state.stop = Stop("context_overflow", "the context window is full")
    elif state.last_words == "asked":
        state.stop = Stop("max_steps", f"the limit of {state.limits.steps} steps was reached; asked for last words")
    elif reply.stop == "length":
        state.stop = Stop("truncated_reply", "the reply was cut off by the output limit")
    elif is_blank or reply.stop == "malformed_call":
        ask_again(state, "malformed" if reply.stop == "malformed_call" else "empty")
    elif reply.stop == "pause" or not was_last:
        return  # what a person said meanwhile makes it not the last word
    elif state.finish is not None:
        ask_for_finish(state, state.finish)
    else:
        _warn_of_text_call(state, reply.text)
        state.answer, state.stop = reply.text, Stop("answered", "")


def _warn_of_text_call(state: State, text: str) -> None:
    """A call that is only written in the text is never run; that it looks like one is said."""
    head = text.lstrip()
    if "<tool_call>" in text or (head.startswith("{") and '"name"' in head and '"arguments"' in head):
        state.warnings.append("the answer looks like a tool call written as text; it was not run")
