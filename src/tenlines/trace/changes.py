"""What the events of a run are to its spans: the row of each kind, and the changes that they bring."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from tenlines.core import events as ev

Value: TypeAlias = str | bool | int | float | tuple[str, ...]
Attributes: TypeAlias = dict[str, Value]
Kind: TypeAlias = Literal["internal", "client"]

# --- what each kind of event is to a span -------------------------------------------------------------

Act: TypeAlias = Literal["begins", "ends", "marks"]


class Row(NamedTuple):
    """What a kind of event does."""

    act: Act
    span: Literal["invoke_agent", "chat", "execute_tool"]
    mark: str = ""
    """The span event that it is: always where it `marks`; where it `ends`, if there is no such span to be ended, and
    then on `invoke_agent`."""


TABLE: dict[type[ev.AnyEvent], Row] = {
    ev.RunStarted: Row("begins", "invoke_agent"),
    ev.RunResumed: Row("begins", "invoke_agent"),
    ev.UndoRequested: Row("begins", "invoke_agent"),
    ev.RunEnded: Row("ends", "invoke_agent"),
    ev.StepStarted: Row("begins", "chat"),
    ev.ModelReplied: Row("ends", "chat"),
    ev.ModelFailed: Row("ends", "chat"),
    ev.SummaryStarted: Row("begins", "chat"),
    ev.SummaryEnded: Row("ends", "chat"),
    ev.CallStarted: Row("begins", "execute_tool"),
    ev.CallReturned: Row("ends", "execute_tool", "tenlines.call.returned"),
    ev.CallFailed: Row("ends", "execute_tool", "tenlines.call.failed"),
    ev.CallTimedOut: Row("ends", "execute_tool", "tenlines.call.timed_out"),
    ev.CallAbandoned: Row("ends", "execute_tool", "tenlines.call.abandoned"),
    ev.ChildPaused: Row("ends", "execute_tool", "tenlines.call.paused"),
    ev.UndoStarted: Row("begins", "execute_tool"),
    ev.CallUndone: Row("ends", "execute_tool", "tenlines.call.undone"),
    ev.LateResultArrived: Row("marks", "invoke_agent", "tenlines.call.late_result"),
    ev.CallReconciled: Row("marks", "invoke_agent", "tenlines.call.reconciled"),
    ev.ApprovalAsked: Row("marks", "invoke_agent", "tenlines.approval.asked"),
    ev.ApprovalGiven: Row("marks", "invoke_agent", "tenlines.approval.given"),
    ev.LimitsRaised: Row("marks", "invoke_agent", "tenlines.limits.raised"),
    ev.MessageQueued: Row("marks", "invoke_agent", "tenlines.message.queued"),
    ev.CancelRequested: Row("marks", "invoke_agent", "tenlines.cancel.requested"),
    ev.ContextCompacted: Row("marks", "invoke_agent", "tenlines.context.compacted"),
}
"""Every kind of event. What happens to a run while nobody has it (somebody decides about a call) is marked on the span
of whoever takes it up next."""

# --- changes ------------------------------------------------------------------------------------------


class Begun(NamedTuple):
    """A span begins."""

    trace_id: str
    span_id: str
    parent: str
    """Its parent's id, or ""."""
    flags: str
    """Where the parent is nobody's of this run: what the trace says of it (`01`: it is kept); else ""."""
    name: str
    kind: Kind
    at: float
    attributes: Attributes
    link: str = ""
    """The `invoke_agent` of whoever had the run before, or ""."""


class Marked(NamedTuple):
    """Something happened in a span."""

    span_id: str
    name: str
    at: float
    attributes: Attributes


class Ended(NamedTuple):
    """A span ends. Attributes are added to those that it began with."""

    span_id: str
    at: float
    attributes: Attributes
    fault: str | None = None
    """What went wrong; None where nothing did."""


Change: TypeAlias = Begun | Marked | Ended
