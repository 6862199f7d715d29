"""What both drivers share: the stamp and the record of an event, and how a tool's end becomes one."""

from __future__ import annotations

import logging
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.effects import CallModel, Finish, Refusal, RunnableCall, RunTools
from tenlines.core.limits import Limits
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.state import Phase
from tenlines.core.transcript import Part, Reply, Text
from tenlines.errors import InternalError, InvalidEvent, JournalError, ProviderError, RemoteError
from tenlines.ports import (
    Bound,
    CallContext,
    Clock,
    Delta,
    Invalid,
    Journal,
    Observer,
    OnDelta,
    Session,
    ToolPort,
)

_log = logging.getLogger("tenlines")

DETAIL_CHARS = 20_000
"""How much of a traceback is kept for people."""


class Draft(NamedTuple):
    """An event without its stamp."""

    kind: type[ev.Event]
    fields: dict[str, Any]


class Control:
    """A hand on a run that is under way. Safe to use from any thread.

    Give one to `Agent.run`, `run_sync` or `resume`, or take the `Run` that `Agent.stream` returns.
    """

    def __init__(self) -> None:
        self._inbox: deque[Draft] = deque()
        self._wakers: list[Callable[[], None]] = []
        self.woken = threading.Event()

    def say(self, text: str) -> None:
        """Tell the model something as soon as the exchange at hand is closed. Nothing is interrupted."""
        self._post(Draft(ev.MessageQueued, {"parts": (Text(text),)}))

    def cancel(self, *, now: bool = False, reason: str = "") -> None:
        """Stop the run: after what is running, or at once. The journal stays valid and the run can be resumed."""
        mode = "now" if now else "drain"
        self._post(Draft(ev.CancelRequested, {"mode": mode, "reason": reason}))

    def raise_limits(self, limits: Limits) -> None:
        """Set the limits that hold from now on."""
        self._post(Draft(ev.LimitsRaised, {"limits": limits}))

    @property
    def pending(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._inbox)

    def take(self) -> list[Draft]:
        """For drivers: what came in since the last time."""
        self.woken.clear()
        return [self._inbox.popleft() for _ in range(len(self._inbox))]

    def wake_with(self, waker: Callable[[], None]) -> None:
        """For drivers: have `waker` called, from any thread, when something comes in."""
        self._wakers.append(waker)

    def _post(self, draft: Draft) -> None:
        self._inbox.append(draft)
        self.woken.set()
        for waker in self._wakers:
            waker()


class Parts(NamedTuple):
    """Everything that a driver works with: one run's machine and its ports."""

    machine: Machine
    run_id: str
    session: Session
    tools: dict[str, ToolPort]
    journal: Journal
    clock: Clock
    observers: Sequence[Observer] = ()
    control: Control | None = None
    opening: tuple[Draft, ...] = ()
    """What the driver records first: that the run started, or that it was taken over."""


class Recorder:
    """The machine first, which refuses what cannot be; then the journal; then whoever watches.

    What is recorded is made durable by `commit`, and nothing acts on it before.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.machine, self.now = parts.machine, parts.clock.now
        self._append, self._run_id = parts.journal.append, parts.run_id
        self._observers = tuple(parts.observers)
        self.observer_errors = 0
        self.on_delta = self._watched()
        """Where pieces of a reply go; None when nobody watches, so that nothing is streamed for nobody."""

    def open(self) -> None:
        """Record how the run begins or goes on. It is made durable with the first intent to act."""
        for draft in self.parts.opening:
            self.record(draft)

    def record(self, draft: Draft) -> None:
        """Stamp, apply and journal an event.

        Raises:
            JournalError: It could not be journalled. The run stops here, before anything acts on it.
            InternalError: The machine refused it, which is a bug in the driver. It is not in the journal, which
                can still be read.
        """
        kind, fields = draft
        event: Any = kind(seq=self.machine.state.seq + 1, at=self.now(), **fields)
        try:
            self.machine.apply(event)
        except InvalidEvent as error:
            raise InternalError(f"the driver reported what cannot be: {error}") from error
        self._append(self._run_id, event)
        for observer in self._observers:
            self._show(observer.on_event, event)

    @property
    def is_between(self) -> bool:
        """Whether nothing is under way: every call that there was has its result."""
        return self.machine.state.phase is Phase.READY

    @property
    def is_ended(self) -> bool:
        """Whether nothing more can happen in this run."""
        return self.machine.state.phase is Phase.ENDED

    def commit(self) -> None:
        """Make everything durable that was recorded so far. Called before acting and before waiting."""
        self.parts.journal.commit(self._run_id)

    def finish(self, effect: Finish) -> None:
        """Record the end, unless it is already in the log."""
        if not self.is_ended:
            fields = {"status": effect.status, "reason": effect.reason, "answer": effect.answer}
            self.record(Draft(ev.RunEnded, fields))
        self.commit()

    def interrupt(self, reason: str) -> None:
        """Close the log after the program was told to stop: every open call gets its truthful result.

        If that fails, the log stays as it is: open, valid, and resumable like that of a crash.
        """
        if self.machine.state.phase in (Phase.NEW, Phase.ENDED):
            return
        try:
            self._close_log(reason)
        except (JournalError, InternalError):
            _log.warning("run %s could not be closed; it can be resumed as after a crash", self._run_id, exc_info=True)

    def _close_log(self, reason: str) -> None:
        self.record(Draft(ev.CancelRequested, {"mode": "now", "reason": reason}))
        while isinstance(effect := self.machine.next(self.now()), RunTools):
            for refusal in effect.refusals:
                self.record(refused(refusal))
        assert isinstance(effect, Finish)
        self.finish(effect)

    def result(self) -> RunResult:
        """The run as it stands."""
        return msgspec.structs.replace(self.machine.result(), observer_errors=self.observer_errors)

    def failed(self, error: JournalError) -> RunResult:
        """The result of a run that had to stop because its journal failed."""
        so_far = self.result()
        return msgspec.structs.replace(
            so_far,
            run_id=self._run_id,
            status="journal_error",
            reason=str(error),
            answer=None,
            partial_answer=so_far.partial_answer or so_far.answer,
        )

    def _watched(self) -> OnDelta | None:
        shows: list[OnDelta] = [observer.on_delta for observer in self._observers if hasattr(observer, "on_delta")]
        if not shows:
            return None

        def show(delta: Delta) -> None:
            for one in shows:
                self._show(one, delta)

        return show

    def _show(self, show: Callable[[Any], None], what: Any) -> None:
        try:
            show(what)
        except Exception:  # noqa: BLE001  # an observer is foreign code; it can never break a run
            self.observer_errors += 1
            if self.observer_errors == 1:
                _log.warning("an observer failed; the run goes on", exc_info=True)


# --- drafts of what happened --------------------------------------------------------------------------


def step_started(effect: CallModel) -> Draft:
    """The intent to call the model."""
    return Draft(ev.StepStarted, {"step": effect.step, "attempt": effect.attempt, "reserved": effect.reserved})


def replied(effect: CallModel, reply: Reply) -> Draft:
    """The model's reply."""
    return Draft(ev.ModelReplied, {"step": effect.step, "reply": reply})


def model_failed(effect: CallModel, error: BaseException) -> Draft:
    """A failed request. Only our own remote errors can say that a repeat may help."""
    fields: dict[str, Any] = {
        "step": effect.step,
        "attempt": effect.attempt,
        "kind": type(error).__name__,
        "message": f"{type(error).__name__}: {error}" if not isinstance(error, RemoteError) else str(error),
    }
    if isinstance(error, RemoteError):
        fields["retryable"] = error.is_retryable
    elif isinstance(error, ConnectionError | TimeoutError):
        fields["retryable"] = True
    if isinstance(error, ProviderError):
        fields.update(retry_after_s=error.retry_after_s, status=error.status, code=error.code)
    return Draft(ev.ModelFailed, fields)


def call_started(call: RunnableCall) -> Draft:
    """The intent to run a tool."""
    return Draft(ev.CallStarted, {"step": call.step, "position": call.position, "key": call.key})


def refused(refusal: Refusal) -> Draft:
    """A call that the machine answers itself."""
    fields = {"step": refusal.step, "position": refusal.position, "outcome": refusal.outcome, "text": refusal.text}
    kind = ev.CallAbandoned if refusal.outcome in ("in_doubt", "cancelled") else ev.CallFailed
    return Draft(kind, fields)


def invalid(call: RunnableCall, text: str) -> Draft:
    """Arguments that the tool does not take."""
    fields = {"step": call.step, "position": call.position, "outcome": "invalid_arguments", "text": text}
    return Draft(ev.CallFailed, fields)


def ended(tool: ToolPort, call: RunnableCall, end: Ended, remarks: tuple[str, ...] = ()) -> Draft:
    """A tool came back: with a value, or with an exception of any kind."""
    if end.error is not None:
        return _raised(tool, call, end.error)
    try:
        parts, truncated, shown, original, full, more = tool.render(end.value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # turning a value into text runs foreign code (a __str__, a hook)
        return _raised(tool, call, error, "ran, but its result could not be shown")
    fields: dict[str, Any] = {"step": call.step, "position": call.position, "parts": parts}
    if truncated:
        fields.update(truncated=True, shown_chars=shown, original_chars=original, full=full)
    if remarks or more:
        fields["remarks"] = remarks + more
    return Draft(ev.CallReturned, fields)


def _raised(tool: ToolPort, call: RunnableCall, error: BaseException, what: str = "") -> Draft:
    name, message = type(error).__name__, _message(error)
    text = f"{tool.spec.name} {what}: {name}: {message}" if what else outcomes.raised(tool.spec.name, name, message)
    fields = {
        "step": call.step,
        "position": call.position,
        "outcome": "tool_error",
        "text": text,
        "error_type": name,
        "detail": _detail(error),
    }
    return Draft(ev.CallFailed, fields)


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001  # an exception's __str__ is foreign code too
        text = f"(its message could not be shown: {type(second).__name__})"
    return outcomes.bounded(outcomes.sendable(text))


def _detail(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(error))
    except Exception as second:  # noqa: BLE001  # formatting calls the exception's own code
        text = f"(the traceback could not be shown: {type(second).__name__})"
    return outcomes.sendable(text[-DETAIL_CHARS:])


def timed_out(tool: ToolPort, call: RunnableCall, after_s: float) -> Draft:
    """A tool did not come back in time."""
    text = outcomes.timed_out(tool.spec.name, after_s, tool.spec.read_only, tool.is_killable)
    fields = {"step": call.step, "position": call.position, "after_s": after_s, "text": text}
    return Draft(ev.CallTimedOut, fields)


class Ended(NamedTuple):
    """How a piece of foreign code came back."""

    value: Any = None
    error: BaseException | None = None


class Running(NamedTuple):
    """A call that is under way."""

    call: RunnableCall
    tool: ToolPort
    ctx: CallContext
    started_at: float
    remarks: tuple[str, ...]
    stop: Callable[[], None]
    """Ask it to stop; it may or may not."""

    def give_up(self) -> None:
        """Stop waiting for it."""
        self.ctx.give_up()
        self.stop()


def late(running: Running, end: Ended) -> Draft:
    """A call that was given up came back after all."""
    draft = ended(running.tool, running.call, end)
    parts: tuple[Part, ...] = draft.fields.get("parts", ())
    texts = [part.text for part in parts if isinstance(part, Text)]
    text = draft.fields.get("text", "\n".join(texts))
    outcome = "ok" if end.error is None else "tool_error"
    call = running.call
    fields = {"step": call.step, "position": call.position, "outcome": outcome, "text": text}
    return Draft(ev.LateResultArrived, fields)


def deadline_of(tool: ToolPort, now: float, run_deadline: float | None) -> float | None:
    """When a call that starts now is given up: its own time limit or the run's, whichever is first."""
    own = None if tool.spec.timeout_s is None else now + tool.spec.timeout_s
    if own is None or run_deadline is None:
        return own if run_deadline is None else run_deadline
    return min(own, run_deadline)


def check(tool: ToolPort, call: RunnableCall) -> Bound | Invalid:
    """Ask the tool whether it takes these arguments. Nothing has run yet."""
    try:
        return tool.check(call.arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # validators are foreign code
        what = f"{type(error).__name__}: {_message(error)}"
        return Invalid(f"{call.name} did not run: its arguments could not be checked: {what}")


def attempt(call: Callable[[], Any]) -> Ended:
    """Run foreign code here and now, whatever it does."""
    try:
        return Ended(call())
    except BaseException as error:  # noqa: BLE001  # a tool may raise anything; what it means is said by the machine's rules
        return Ended(error=error)


def nothing() -> None:
    """A thread cannot be stopped from outside; the tool is told through its context."""
