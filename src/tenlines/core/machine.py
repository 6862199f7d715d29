"""The machine: events in, state; state, the next effect. Every decision of the loop is here and in `deciding`.

This file says what each event means, `deciding` what follows from the state.

Theory of operation. A run alternates between two places. At READY the machine checks every limit and asks for
the model. A reply without calls ends the run; a reply with calls opens an *exchange*, which stays open until
each call has exactly one outcome. Closing it appends the results in call order, with a note on each call whose
arguments somebody changed, then what people said meanwhile, then the machine's other notes, and the run is READY again.

Two things can make it wait or turn back. A call that needs leave, or that a crash left in doubt, is asked about, and
the run under a call may have somebody asked; where only people can go on, the run ends as `awaiting_approval` with its
exchange open. And what a run did can be undone:
UNDOING goes back through the calls that had effect, and ends as the run would have ended, or had.

Rules that every handler keeps:

1. Check first, change after. A handler that raises `InvalidEvent` has changed nothing.
2. The outcome of a call is written once, by `_answer`, and the exchange is closed in one place, `_close`.
3. Whether the run goes on is decided in `next`, from state alone. Handlers only note a `Stop`.
4. Nothing here looks at the whole transcript: work per event is bounded by the event.
5. Times and identities come from events. `next` is told the time; it reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenlines.core import codec, metering
from tenlines.core import events as ev
from tenlines.core.approvals import on_approval_asked, on_approval_given
from tenlines.core.calls import (
    on_call_abandoned,
    on_call_failed,
    on_call_returned,
    on_call_started,
    on_call_timed_out,
    on_late_result,
)
from tenlines.core.changes import (
    append,
    check_tools,
    release_queue,
    set_tools,
    stop_if_cancelled,
    withdraw_last_words,
)
from tenlines.core.children import on_child_paused
from tenlines.core.cutting import on_context_compacted, on_summary_ended, on_summary_started
from tenlines.core.deciding import next_effect
from tenlines.core.effects import Effect, Finish
from tenlines.core.history import first_fault
from tenlines.core.limits import Limits
from tenlines.core.replies import on_model_failed, on_model_replied, on_step_started
from tenlines.core.result import RunResult, result_of
from tenlines.core.resume import on_call_reconciled, on_run_resumed
from tenlines.core.state import Phase, State, Stop
from tenlines.core.transcript import Assistant, User
from tenlines.core.undo import on_call_undone, on_undo_requested, on_undo_started
from tenlines.errors import InvalidEvent, JournalFormatError


class Machine:
    """One run. `apply` takes what happened; `next` says what to do."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State()

    # --- events in ----------------------------------------------------------------------------------

    def apply(self, event: ev.AnyEvent) -> None:
        """Take in what happened.

        The event is read as a journal gives it back, so that the live machine never knows more than the log. That
        costs about a microsecond and catches every wrong type, NaN and half a surrogate pair before a handler has
        changed anything.

        Raises:
            InvalidEvent: The event does not belong here: wrong order, wrong phase, wrong values. The state
                is as it was before.
        """
        if type(event) in _HANDLERS:
            try:
                event = codec.as_read(event)
            except (TypeError, ValueError, OverflowError, RecursionError, JournalFormatError) as error:
                raise InvalidEvent(f"{type(event).__name__} cannot be journalled: {error}") from error
        self.replay(event)

    def replay(self, event: ev.AnyEvent) -> None:
        """Take in an event that a journal gave back.

        As `apply`, without the way through the text of a journal, which it has behind it. An event from anywhere else
        may hold what no journal keeps.

        Raises:
            InvalidEvent: As for `apply`.
        """
        state, handler = self.state, _HANDLERS.get(type(event))
        if handler is None:
            raise InvalidEvent(f"expected an event of a run, got {type(event).__name__}")
        phases, handle = handler
        if event.seq != state.seq + 1:
            raise InvalidEvent(f"{type(event).__name__} has seq {event.seq!r}, expected {state.seq + 1}")
        if state.phase not in phases:
            raise InvalidEvent(f"{type(event).__name__} cannot happen while the run is {state.phase.value}")
        if not 0 <= event.at < 1e12:
            raise InvalidEvent(f"{type(event).__name__} has no usable time: at={event.at!r}")
        handle(state, event)
        state.seq += 1
        state.at = max(state.at, event.at)

    # --- effects out --------------------------------------------------------------------------------

    def next(self, now: float) -> Effect:
        """What to do next, given the state and the time (Unix seconds). Asking changes nothing."""
        return next_effect(self.state, now)

    @property
    def stopping(self) -> str:
        """`drain`: start nothing more; `now`: also stop what is running; "" while the run goes on."""
        return self.state.cancel

    def result(self) -> RunResult:
        """The run as it stands: a view, made when it is asked for."""
        return result_of(self.state)


# --- the run as a whole -------------------------------------------------------------------------------


def _on_run_started(state: State, event: ev.RunStarted) -> None:
    if broken := first_fault(event.messages):
        raise InvalidEvent(f"the run cannot start from this history: {broken}")
    check_tools(event.tools)
    state.start, state.settings, state.limits = event, event.settings, event.settings.limits
    set_tools(state, event.tools)
    for message in event.messages:
        append(state, message)
        if isinstance(message, Assistant):
            state.ids.update(call.id for call in message.calls)
    state.compaction = event.settings.compaction
    state.cuts.window = None if state.compaction is None else state.compaction.window
    state.session_began, state.changed = event.at, event.changed
    metering.begin(state, event.counting)
    state.phase = Phase.READY


def _on_limits_raised(state: State, event: ev.LimitsRaised) -> None:
    if not isinstance(event.limits, Limits):
        raise InvalidEvent(f"LimitsRaised needs Limits, got {type(event.limits).__name__}")
    state.limits = event.limits
    withdraw_last_words(state)


def _on_message_queued(state: State, event: ev.MessageQueued) -> None:
    message = User(event.parts)
    _take_letter(state, event.mail)
    if state.phase is not Phase.READY:
        state.queue.append(message)
        return
    if state.stop is not None and state.stop.status == "answered":
        state.stop = state.answer = None  # what a person says is never lost: the answer was not the last word
        stop_if_cancelled(state)
    append(state, message)


def _on_cancel_requested(state: State, event: ev.CancelRequested) -> None:
    if event.mode not in ("drain", "now"):
        raise InvalidEvent(f"CancelRequested has mode {event.mode!r}, expected 'drain' or 'now'")
    _take_letter(state, event.mail)
    state.cancel = "now" if "now" in (event.mode, state.cancel) else "drain"
    state.cancel_reason = event.reason or state.cancel_reason
    if state.phase in (Phase.AWAITING_MODEL, Phase.SUMMARISING) and event.mode == "now":
        state.account.lose(state.reserved)
        state.cuts.summarising = None
        state.phase = Phase.READY
        release_queue(state)
    if state.phase is Phase.READY:
        stop_if_cancelled(state)


def _take_letter(state: State, number: int) -> None:
    """Note which letter was heard. Each is heard once; 0 is no letter."""
    if number and number <= state.mail:
        raise InvalidEvent(f"letter {number} of the run's mailbox cannot be heard after letter {state.mail}")
    state.mail = number or state.mail


def _on_run_ended(state: State, event: ev.RunEnded) -> None:
    # whether it may pause does not depend on the time: what ends while the end is recorded is asked anew on resume
    expected = next_effect(state, float("-inf") if event.status == "awaiting_approval" else event.at)
    if expected != Finish(event.status, event.reason, event.answer):
        raise InvalidEvent(f"RunEnded says {event.status!r}, but the run has to go on with {expected!r:.200}")
    state.ended = event
    if event.status != "awaiting_approval":
        state.stop = state.stop or Stop(event.status, event.reason)
    state.phase = Phase.ENDED


# --- which event may happen where -----------------------------------------------------------------------

_LIVE = (Phase.READY, Phase.AWAITING_MODEL, Phase.AWAITING_TOOLS, Phase.SUMMARISING)
_OPEN = (*_LIVE, Phase.UNDOING)
_TOOLS = (Phase.AWAITING_TOOLS,)
_MODEL = (Phase.AWAITING_MODEL,)
_READY = (Phase.READY,)

_HANDLERS: dict[type, tuple[tuple[Phase, ...], Callable[[State, Any], None]]] = {
    ev.RunStarted: ((Phase.NEW,), _on_run_started),
    ev.RunResumed: ((*_OPEN, Phase.ENDED), on_run_resumed),
    ev.LimitsRaised: (_OPEN, _on_limits_raised),
    ev.MessageQueued: (_OPEN, _on_message_queued),
    ev.CancelRequested: (_OPEN, _on_cancel_requested),
    ev.RunEnded: ((*_READY, *_TOOLS, Phase.UNDOING), _on_run_ended),
    ev.StepStarted: (_READY, on_step_started),
    ev.ModelReplied: (_MODEL, on_model_replied),
    ev.ModelFailed: (_MODEL, on_model_failed),
    ev.CallStarted: (_TOOLS, on_call_started),
    ev.CallReturned: (_TOOLS, on_call_returned),
    ev.CallFailed: (_TOOLS, on_call_failed),
    ev.CallTimedOut: (_TOOLS, on_call_timed_out),
    ev.CallAbandoned: (_TOOLS, on_call_abandoned),
    ev.LateResultArrived: ((*_OPEN, Phase.ENDED), on_late_result),
    ev.ChildPaused: (_TOOLS, on_child_paused),
    ev.CallReconciled: (_TOOLS, on_call_reconciled),
    ev.ApprovalAsked: (_TOOLS, on_approval_asked),
    ev.ApprovalGiven: ((*_TOOLS, Phase.ENDED), on_approval_given),
    ev.UndoRequested: ((Phase.ENDED,), on_undo_requested),
    ev.UndoStarted: ((*_READY, Phase.UNDOING), on_undo_started),
    ev.CallUndone: ((Phase.UNDOING,), on_call_undone),
    ev.SummaryStarted: (_READY, on_summary_started),
    ev.SummaryEnded: ((Phase.SUMMARISING,), on_summary_ended),
    ev.ContextCompacted: (_READY, on_context_compacted),
}
"""The transition table: an event, the phases in which it may happen, what it does."""
