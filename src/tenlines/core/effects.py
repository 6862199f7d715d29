"""What to do next: imperative, complete. A driver does these and decides nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tenlines.core.context import Arithmetic, Strategy
from tenlines.core.events import Status, ToolSpec
from tenlines.core.limits import Left, Reservation
from tenlines.core.transcript import JsonObject, Outcome, TranscriptView


class CallModel(msgspec.Struct, frozen=True, gc=False):
    """Append `StepStarted`, then ask the model, then append `ModelReplied` or `ModelFailed`."""

    step: int
    attempt: int
    messages: TranscriptView
    new_from: int
    """Index of the first message that the model has not been sent and did not write itself; 0 when it has to be
    told everything anew, because something is left out from now on."""
    tools: tuple[ToolSpec, ...]
    tool_choice: str
    max_output_tokens: int | None
    reserved: Reservation
    left: Left
    deadline_at: float | None
    changed: str = ""
    """What of the beginning is not as it was in the request before."""


class RunnableCall(msgspec.Struct, frozen=True, gc=False):
    """A call that may run: the tool is known and the arguments are an object."""

    step: int
    position: int
    call_id: str
    name: str
    arguments: JsonObject
    key: str
    allowance: Left | None = None
    """What of the limits of the run it may use, where its tool spends on its own."""


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A call that is answered without running (again)."""

    step: int
    position: int
    outcome: Outcome
    text: str


class RunTools(msgspec.Struct, frozen=True, gc=False):
    """Append each refusal as an event; then run `calls`, at most `max_parallel` at once."""

    refusals: tuple[Refusal, ...]
    calls: tuple[RunnableCall, ...]
    max_parallel: int
    deadline_at: float | None


class Question(msgspec.Struct, frozen=True, gc=False):
    """A call that somebody has to allow. `digest` binds the answer to it."""

    call: RunnableCall
    digest: str
    about: Literal["call", "in_doubt"]
    expires_at: float | None


class AskHuman(msgspec.Struct, frozen=True, gc=False):
    """Settle who may run: for each question append what was said.

    About a call: arguments that the tool does not take are `CallFailed`; else the policy says `ApprovalGiven`, or
    `ApprovalAsked` where a person has to decide. About a call in doubt: always `ApprovalAsked`.
    """

    questions: tuple[Question, ...]


class Reconcile(msgspec.Struct, frozen=True, gc=False):
    """Ask the tool of each call what became of it before the crash: `CallReturned`, or `CallReconciled`."""

    calls: tuple[RunnableCall, ...]


class UndoCall(msgspec.Struct, frozen=True, gc=False):
    """Append `UndoStarted`, call the tool's compensation, append `CallUndone`."""

    call: RunnableCall
    result: str
    """What the call returned, as text; "" where that is not known."""
    outcome: Outcome
    """What became of the call."""


class Compact(msgspec.Struct, frozen=True, gc=False):
    """Append `ContextCompacted`: `messages[start:end]` are made smaller. Nothing else has to be done."""

    strategy: Strategy
    start: int
    end: int
    arithmetic: Arithmetic
    summary: str


class Summarise(msgspec.Struct, frozen=True, gc=False):
    """Append `SummaryStarted`, ask the model, append `SummaryEnded`. Nothing of the reply is shown."""

    start: int
    end: int
    request: CallModel
    """The transcript and a question at its end: the next request of the run, but for that question."""


class Sleep(msgspec.Struct, frozen=True, gc=False):
    """Wait until the Unix time `until`, or until someone says something."""

    until: float
    reason: str


class Finish(msgspec.Struct, frozen=True, gc=False):
    """Append `RunEnded` and return. As `awaiting_approval` it is a pause: the open exchange stays open."""

    status: Status
    reason: str
    answer: str | None


Effect: TypeAlias = CallModel | RunTools | AskHuman | Reconcile | UndoCall | Compact | Summarise | Sleep | Finish
