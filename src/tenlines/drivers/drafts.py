"""How what happened becomes an event: drafts without a stamp, and the foreign code they come from."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.effects import CallModel, Compact, Question, Refusal, RunnableCall, Summarise
from tenlines.core.limits import Spent
from tenlines.core.transcript import Part, Reply, Text
from tenlines.errors import ProtocolRejected, ProviderError, RemoteError
from tenlines.ports import (
    NOT_DONE,
    UNKNOWN,
    Ask,
    Bound,
    CallContext,
    ChildEnd,
    Deny,
    Edit,
    InDoubt,
    Invalid,
    ToolPort,
    Verdict,
)

DETAIL_CHARS = 20_000
"""How much of a traceback is kept for people."""


class Draft(msgspec.Struct, frozen=True):
    """An event without its stamp."""

    kind: type[ev.Event]
    fields: dict[str, Any]


class Ended(msgspec.Struct, frozen=True):
    """How a piece of foreign code came back."""

    value: Any = None
    error: BaseException | None = None

    def passed_on(self) -> BaseException:
        """What it raised; Ctrl-C is raised once more, since it is meant for the program."""
        assert self.error is not None
        if isinstance(self.error, KeyboardInterrupt):
            raise self.error
        return self.error


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


# --- what happened ---------------------------------------------------------------------------------


def step_started(effect: CallModel) -> Draft:
    """The intent to call the model."""
    fields: dict[str, Any] = {"step": effect.step, "attempt": effect.attempt, "reserved": effect.reserved}
    if effect.changed:
        fields["changed"] = effect.changed
    return Draft(ev.StepStarted, fields)


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
        fields.update(retryable=error.is_retryable, usage=error.usage)
    elif isinstance(error, ConnectionError | TimeoutError):
        fields["retryable"] = True
    if isinstance(error, ProviderError):
        fields.update(retry_after_s=error.retry_after_s, status=error.status, code=error.code)
    if isinstance(error, ProtocolRejected):
        fields.update(rule=error.rule, violation=error.kind)
    return Draft(ev.ModelFailed, fields)


def summary_started(effect: Summarise) -> Draft:
    """The intent to ask for a summary."""
    fields = {"start": effect.start, "end": effect.end, "reserved": effect.request.reserved}
    return Draft(ev.SummaryStarted, fields)


def summarised(came: Reply | BaseException) -> Draft:
    """What came back for a summary."""
    if isinstance(came, Reply):
        return Draft(ev.SummaryEnded, {"reply": came})
    usage = came.usage if isinstance(came, RemoteError) else None
    return Draft(ev.SummaryEnded, {"kind": type(came).__name__, "message": _message(came), "usage": usage})


def compacted(effect: Compact) -> Draft:
    """The transcript is cut."""
    return Draft(ev.ContextCompacted, msgspec.structs.asdict(effect))


def call_started(call: RunnableCall) -> Draft:
    """The intent to run a tool."""
    fields: dict[str, Any] = {"step": call.step, "position": call.position, "key": call.key}
    if call.allowance is not None:
        fields["allowance"] = call.allowance
    return Draft(ev.CallStarted, fields)


def refused(refusal: Refusal) -> Draft:
    """A call that the machine answers itself."""
    fields = {**_place(refusal), "outcome": refusal.outcome, "text": refusal.text}
    kind = ev.CallAbandoned if refusal.outcome in ("in_doubt", "cancelled") else ev.CallFailed
    return Draft(kind, fields)


def invalid(call: RunnableCall, text: str) -> Draft:
    """Arguments that the tool does not take."""
    fields = {**_place(call), "outcome": "invalid_arguments", "text": text}
    return Draft(ev.CallFailed, fields)


def ended(
    tool: ToolPort, call: RunnableCall, end: Ended, remarks: tuple[str, ...] = (), spent: Spent | None = None
) -> Draft:
    """A tool came back: with a value, or with an exception of any kind."""
    if isinstance(end.error, InDoubt) and spent is None:  # what was spent would have no place in that event
        return Draft(ev.CallAbandoned, {**_place(call), "outcome": "in_doubt", "text": _message(end.error)})
    if isinstance(end.value, ChildEnd):
        draft = _child_ended(tool, call, end.value, remarks)
    else:
        draft = _returned(tool, call, end, remarks) if end.error is None else _raised(tool, call, end.error)
    if spent is not None and draft.kind is not ev.ChildPaused:  # it says so when it has ended
        draft.fields["spent"] = spent
    return draft


def _returned(tool: ToolPort, call: RunnableCall, end: Ended, remarks: tuple[str, ...]) -> Draft:
    rendered = attempt(tool.render, end.value)  # foreign code: a __str__, a hook
    if rendered.error is not None:
        return _raised(tool, call, rendered.passed_on(), "ran, but its result could not be shown")
    parts, truncated, shown, original, full, more = rendered.value
    fields: dict[str, Any] = {"step": call.step, "position": call.position, "parts": parts}
    if truncated:
        fields.update(truncated=True, shown_chars=shown, original_chars=original, full=full)
    if remarks or more:
        fields["remarks"] = remarks + more
    return Draft(ev.CallReturned, fields)


def _child_ended(tool: ToolPort, call: RunnableCall, end: ChildEnd, remarks: tuple[str, ...]) -> Draft:
    """The run that the call was came back."""
    status = end.run.status
    if status == "awaiting_approval":
        return Draft(ev.ChildPaused, {**_place(call), "run_id": end.run.run_id, "waiting": end.waiting})
    if status == "answered":
        draft = _returned(tool, call, Ended(end.text), remarks)
    else:
        fields = {**_place(call), "outcome": "tool_error", "text": end.text, "error_type": status}
        draft = Draft(ev.CallFailed, fields)
    draft.fields["child"] = end.run
    return draft


def _raised(tool: ToolPort, call: RunnableCall, error: BaseException, what: str = "") -> Draft:
    name, message = type(error).__name__, _message(error)
    text = f"{tool.spec.name} {what}: {name}: {message}" if what else outcomes.raised(tool.spec.name, name, message)
    fields = {
        **_place(call),
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
    fields = {**_place(call), "after_s": after_s, "text": text}
    return Draft(ev.CallTimedOut, fields)


def late(running: Running, end: Ended) -> Draft:
    """A call that was given up came back after all."""
    draft = ended(running.tool, running.call, end)
    parts: tuple[Part, ...] = draft.fields.get("parts", ())
    texts = [part.text for part in parts if isinstance(part, Text)]
    text = draft.fields.get("text", "\n".join(texts))
    outcome = "ok" if draft.kind is ev.CallReturned else "tool_error"
    spent, child = running.ctx.spent, end.value.run if isinstance(end.value, ChildEnd) else None
    if draft.kind is ev.ChildPaused:
        spent, text = None, "its run waits for somebody's decision"
    if isinstance(end.error, asyncio.CancelledError):
        outcome, text = "cancelled", f"{running.tool.spec.name} obeyed when it was told to stop"
    call = running.call
    fields = {**_place(call), "outcome": outcome, "text": text, "spent": spent, "child": child}
    return Draft(ev.LateResultArrived, fields)


# --- leave to run, and what became of calls -----------------------------------------------------------


def asked(question: Question, reason: str) -> Draft:
    """A person has to decide."""
    fields = {"digest": question.digest, "about": question.about, "reason": reason, "expires_at": question.expires_at}
    return Draft(ev.ApprovalAsked, {**_place(question.call), **fields})


def settled(question: Question, verdict: Verdict, tool: ToolPort) -> Draft:
    """What the policy said of a call."""
    fields: dict[str, Any] = {**_place(question.call), "digest": question.digest, "by": "policy"}
    match verdict:
        case Ask(reason):
            return asked(question, reason)
        case Deny(reason):
            return Draft(ev.ApprovalGiven, {**fields, "verdict": "deny", "reason": reason})
        case Edit(arguments, reason):
            bound = check(tool, msgspec.structs.replace(question.call, arguments=arguments))
            if isinstance(bound, Invalid):
                return asked(question, f"the policy put in arguments that do not fit: {bound.text}")
            fields.update(arguments=outcomes.canonical(arguments), reason=reason)
    return Draft(ev.ApprovalGiven, {**fields, "verdict": "allow", "expires_at": question.expires_at})


def reconciled(tool: ToolPort, call: RunnableCall, end: Ended) -> Draft:
    """What a tool says, after a crash, of a call that had started."""
    if end.value is NOT_DONE:
        return Draft(ev.CallReconciled, {**_place(call), "verdict": "not_done"})
    if end.error is None and end.value is not UNKNOWN:
        done = ended(tool, call, end, ("the tool said after a crash that the call had been done",))
        if done.kind is ev.CallReturned:
            return done
        end = Ended(error=RuntimeError(done.fields["text"]))
    text = "" if end.error is None else f"{type(end.error).__name__}: {_message(end.error)}"
    return Draft(ev.CallReconciled, {**_place(call), "verdict": "unknown", "text": text})


def undo_started(call: RunnableCall) -> Draft:
    """The intent to take a call back."""
    return Draft(ev.UndoStarted, {**_place(call), "key": call.key})


def undone(call: RunnableCall, end: Ended) -> Draft:
    """A compensation came back."""
    if isinstance(end.error, NotInTime):
        return Draft(ev.CallUndone, {**_place(call), "outcome": "timeout", "text": str(end.error)})
    if end.error is not None:
        text = f"{type(end.error).__name__}: {_message(end.error)}"
        return Draft(ev.CallUndone, {**_place(call), "outcome": "tool_error", "text": text})
    return Draft(ev.CallUndone, {**_place(call), "outcome": "ok"})


class NotInTime(Exception):
    """Foreign code that was asked something did not come back in time."""


def _place(call: RunnableCall | Refusal) -> dict[str, Any]:
    return {"step": call.step, "position": call.position}


def deadline_of(tool: ToolPort, now: float, run_deadline: float | None) -> float | None:
    """When a call that starts now is given up: its own time limit or the run's, whichever is first."""
    own = None if tool.spec.timeout_s is None else now + tool.spec.timeout_s
    if own is None or run_deadline is None:
        return own if run_deadline is None else run_deadline
    return min(own, run_deadline)


def check(tool: ToolPort, call: RunnableCall) -> Bound | Invalid:
    """Ask the tool whether it takes these arguments. Nothing has run yet."""
    end = attempt(tool.check, call.arguments)  # validators are foreign code
    if end.error is None:
        return cast("Bound | Invalid", end.value)  # a union would be built anew each time
    error = end.passed_on()
    return Invalid(
        f"{call.name} did not run: its arguments could not be checked: {type(error).__name__}: {_message(error)}"
    )


def attempt(call: Callable[..., Any], *args: Any) -> Ended:
    """Run foreign code here and now, whatever it does."""
    try:
        return Ended(call(*args))
    except BaseException as error:  # noqa: BLE001  # a tool may raise anything; what it means is said by the machine's rules
        return Ended(error=error)


def nothing() -> None:
    """A thread cannot be stopped from outside; the tool is told through its context."""
