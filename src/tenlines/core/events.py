"""What can happen in a run: past tense, immutable, complete. The log of these is the run.

Every event carries `seq` (0, 1, 2, ... without gaps) and `at` (Unix time in seconds), both given by the
driver. Times are facts that arrive; nothing in the core reads a clock.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tenlines.core.context import Arithmetic, Compaction, Strategy
from tenlines.core.limits import Counting, Left, Limits, Price, Repeats, Reservation, Retry, Spent
from tenlines.core.transcript import JsonObject, Message, Outcome, Part, Reply, Usage

SCHEMA = 6
"""Version of the event format. `codec.SCHEMAS` says what each version changed."""

Status: TypeAlias = Literal[
    "answered",
    "max_steps",
    "tool_limit",
    "budget",
    "deadline",
    "stuck",
    "cancelled",
    "awaiting_approval",
    "refused",
    "empty_reply",
    "truncated_reply",
    "context_overflow",
    "model_error",
    "journal_error",
]
"""How a run ended. Only `answered` has an answer."""


class ToolSpec(msgspec.Struct, frozen=True, gc=False):
    """What the machine and the model know of a tool. Risk words follow MCP's hints."""

    name: str
    description: str = ""
    parameters: JsonObject = {}
    """JSON Schema of the arguments, an object at its root."""
    read_only: bool = False
    """Has no effect: may run beside other read-only calls, and again after a crash."""
    idempotent: bool = False
    """Safe to repeat with the same key."""
    repeatable: bool = False
    """Repeating the same call with the same result is its job (polling)."""
    final: bool = False
    """Its result is the answer and ends the run."""
    approve: bool = False
    """No call of it starts before somebody allowed it: the policy, or a person."""
    undoable: bool = False
    """It names a compensation, which takes back what a call did."""
    reconcilable: bool = False
    """It can say, after a crash, whether a call took effect."""
    spends: bool = False
    """It uses models on its own (a child run) and draws on the limits of the run that calls it."""
    timeout_s: float | None = None
    source: str = ""
    """The file that the tool was loaded from, so that a run can be resumed by its id alone."""
    child: bool = False
    """Its call is one run, found by the key of the call: after a crash it starts again, takes that run up, and says
    all that the run has used since it began."""
    answer: Literal["", "object", "value"] = ""
    """Its arguments are the answer, by their schema: words end no run that has it, and its calls are not counted. The
    answer is all of them (`object`), or what stands under `answer` (`value`)."""


class ChildRun(msgspec.Struct, frozen=True, gc=False):
    """How the run under a call ended, for programs to read."""

    run_id: str
    status: Status
    reason: str = ""


class WaitingCall(msgspec.Struct, frozen=True, gc=False):
    """A call of a run under a call, or under that, which waits for somebody's decision."""

    run_id: str
    """The run that it is a call of; there it is decided about."""
    place: str
    """How a person names it: `STEP.NUMBER`, both from 1."""
    name: str
    """The tool."""


class Settings(msgspec.Struct, frozen=True):
    """What the machine decides by. Recorded with the run, so that a replay decides the same."""

    limits: Limits = Limits()
    repeats: Repeats = Repeats()
    retry: Retry = Retry()
    price: Price | None = None
    max_parallel: int = 8
    """How many read-only calls of one message run at once."""
    max_output_tokens: int | None = None
    """Most output tokens a reply may have; asked of the provider and reserved. With a limit on tokens or dollars
    the default is 4,096 (`limits.BOUNDED_OUTPUT`)."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of a tool that must be called first."""
    keep_tool_choice: bool = False
    """Force the choice on every request, not only until it was satisfied once."""
    blank_replies: int = 2
    """How many empty or malformed replies in a row are asked for again; and replies in words, where those are no answer
    (`ToolSpec.answer`)."""
    empty_is_answer: bool = False
    """Take an empty reply for an answer (the classic form `agent_loop` does)."""
    compaction: Compaction | None = None
    """When and how the transcript is made smaller; None for never."""
    read_results: bool = False
    """Whether the model has the tool `read_result`, so that cut results say how to read the rest."""
    tell_left: bool = False
    """Tell the model after each exchange what is left of its limits."""
    on_in_doubt: Literal["tell", "ask"] = "tell"
    """What becomes of a call that may have taken effect before a crash and cannot be repeated: the model is told, or
    a person decides first."""
    on_stop: Literal["keep", "undo"] = "keep"
    """What becomes of the effects of a run that ends without an answer: they stay, or are undone before it ends."""
    approval_expires_s: float | None = None
    """Seconds for which a question to a person, and leave to run, hold. After that it is asked anew: about a question
    when the run is resumed, about leave when the call could run."""

    def __post_init__(self) -> None:
        lasts = self.approval_expires_s
        if lasts is not None and not 0 < lasts < float("inf"):
            raise ValueError(f"Settings.approval_expires_s must be above 0, or None for no end; got {lasts!r}")


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What all events have. Immutable trees cannot form cycles, so the garbage collector need not visit them."""

    seq: int
    at: float


class RunStarted(Event, frozen=True, kw_only=True, tag=True):
    """The first event: everything the run starts from."""

    run_id: str
    agent: str
    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    repairs: tuple[str, ...] = ()
    """What had to be mended in a history that was handed in, one sentence each."""
    owner: str = ""
    """The process that works on the run (`tenlines.journal.owner`), unique to this taking up of it."""
    session: str = ""
    """The conversation that the run is part of, or ""."""
    turn: int = 0
    """Which run of its session it is, from 1. `(session, turn)` is unique in a journal; 0 without a session."""
    origin: str = ""
    """Where its messages were taken from: `RUN@STEP` for a fork."""
    parent: str = ""
    """The key of the call that it serves (`RUN:STEP:POSITION`), or ""."""
    counting: Counting = Counting()
    changed: str = ""
    """What of the beginning of its requests is not as it was in the run of its session before it."""
    traceparent: str = ""
    """The span that surrounds it, as W3C Trace Context names it, or ""."""
    version: str = ""
    """Which version of the agent it was begun for, or ""."""
    queue: str = ""
    """The queue of a fleet that it was handed to (`Agent.submit`). Its workers go on with it; "" for no fleet."""


class RunResumed(Event, frozen=True, kw_only=True, tag=True):
    """A process took the run over. Appending it fences whoever had it before (`(run_id, seq)` is unique)."""

    tools: tuple[ToolSpec, ...] = ()
    """The tools that the new owner really has."""
    owner: str = ""
    """As in `RunStarted`."""
    compaction: Compaction | None = None
    """When and how the transcript is made smaller from now on; None for as before."""


class LimitsRaised(Event, frozen=True, kw_only=True, tag=True):
    """The limits that hold from now on."""

    limits: Limits


class MessageQueued(Event, frozen=True, kw_only=True, tag=True):
    """A person said something while the run was under way."""

    parts: tuple[Part, ...]
    by: str = ""
    """Who, where it came from another process."""
    mail: int = 0
    """Number of the letter in the run's mailbox that said it; 0 where it was said in the process at work."""


class CancelRequested(Event, frozen=True, kw_only=True, tag=True):
    """Stop: `drain` lets what is running finish, `now` does not."""

    mode: Literal["drain", "now"]
    reason: str = ""
    by: str = ""
    """As in `MessageQueued`."""
    mail: int = 0
    """As in `MessageQueued`."""


class RunEnded(Event, frozen=True, kw_only=True, tag=True):
    """The end, as the machine's `Finish` said."""

    status: Status
    reason: str = ""
    answer: str | None = None


class StepStarted(Event, frozen=True, kw_only=True, tag=True):
    """The intent to call the model, with what was reserved for it."""

    step: int
    attempt: int
    reserved: Reservation
    changed: str = ""
    """What of the beginning of the request is not as it was in the last one that was answered, so that no cache has it;
    "" where nothing is: then that request is the beginning of this one."""


class ModelReplied(Event, frozen=True, kw_only=True, tag=True):
    """The model's finished reply."""

    step: int
    reply: Reply


class ModelFailed(Event, frozen=True, kw_only=True, tag=True):
    """The request failed; nothing of a broken answer is kept."""

    step: int
    attempt: int
    kind: str
    """Name of the error class (`RateLimited`, `ConnectionFailed`, ...)."""
    message: str
    retryable: bool = False
    retry_after_s: float | None = None
    status: int | None = None
    code: str = ""
    rule: str = ""
    """Id of the protocol rule that the provider's refusal looks like (`ANT-25`), or ""."""
    violation: str = ""
    """Canonical kind of that violation (`RSN-PREFIX`), or ""."""
    usage: Usage | None = None
    """What the provider said it used before it broke off. It is paid for, so it counts like that of any reply."""


class CallStarted(Event, frozen=True, kw_only=True, tag=True):
    """The intent to run a tool. `key` is stable over retries and resumes."""

    step: int
    position: int
    key: str
    allowance: Left | None = None
    """What of the limits of the run it may use, where the tool spends on its own."""


class CallReturned(Event, frozen=True, kw_only=True, tag=True):
    """The tool returned. `parts` is what the model sees; `full` is the whole, where it was cut."""

    step: int
    position: int
    parts: tuple[Part, ...]
    truncated: bool = False
    shown_chars: int | None = None
    original_chars: int | None = None
    full: str | None = None
    remarks: tuple[str, ...] = ()
    """Repairs that were made on the way in or out, one sentence each."""
    spent: Spent | None = None
    """What it used of its allowance."""
    child: ChildRun | None = None
    """The run that it was, where its tool is one (`ToolSpec.child`)."""


class CallFailed(Event, frozen=True, kw_only=True, tag=True):
    """The call has no value: it raised, was refused, or never started. `detail` is for people only."""

    step: int
    position: int
    outcome: Outcome
    text: str
    error_type: str = ""
    detail: str = ""
    spent: Spent | None = None
    child: ChildRun | None = None
    """As in `CallReturned`."""


class CallTimedOut(Event, frozen=True, kw_only=True, tag=True):
    """The call did not end in time and was given up; its work may still be going on."""

    step: int
    position: int
    after_s: float
    text: str


class CallAbandoned(Event, frozen=True, kw_only=True, tag=True):
    """The call had started and was given up (cancel, crash). `in_doubt` unless it cannot have had effect."""

    step: int
    position: int
    outcome: Literal["in_doubt", "cancelled"]
    text: str


class LateResultArrived(Event, frozen=True, kw_only=True, tag=True):
    """A call that was given up ended after all. Recorded; it never enters the transcript."""

    step: int
    position: int
    outcome: Outcome
    text: str
    spent: Spent | None = None
    child: ChildRun | None = None
    """As in `CallReturned`."""


class ChildPaused(Event, frozen=True, kw_only=True, tag=True):
    """The run under a call waits for somebody's decision. The call is not answered: it starts again when its run is
    resumed."""

    step: int
    position: int
    run_id: str
    """The run under the call."""
    waiting: tuple[WaitingCall, ...] = ()


class CallReconciled(Event, frozen=True, kw_only=True, tag=True):
    """A tool was asked, after a crash, what became of a call, and did not say that it was done (`CallReturned` says
    that)."""

    step: int
    position: int
    verdict: Literal["not_done", "unknown"]
    text: str = ""
    """Why it is not known."""


class ApprovalAsked(Event, frozen=True, kw_only=True, tag=True):
    """A person has to decide about a call; the run waits for it."""

    step: int
    position: int
    digest: str
    """Of the call, the tool, the canonical arguments and the question. An answer that names another one is refused."""
    about: Literal["call", "in_doubt"] = "call"
    """`call`: may it run? `in_doubt`: it may have taken effect before a crash; may it run again?"""
    reason: str = ""
    """Why it is asked, in the policy's words."""
    expires_at: float | None = None


class ApprovalGiven(Event, frozen=True, kw_only=True, tag=True):
    """Somebody decided about a call: a person, or the policy."""

    step: int
    position: int
    digest: str
    verdict: Literal["allow", "deny"]
    by: str
    """Who: `policy`, or the name of a person."""
    reason: str = ""
    """For the model, where it is denied."""
    arguments: str | None = None
    """The text of one JSON object that is used in place of what the model wrote, or None."""
    expires_at: float | None = None
    """Until when it may be acted on."""


class UndoRequested(Event, frozen=True, kw_only=True, tag=True):
    """What the run did is to be taken back. Like `RunResumed` it fences whoever had the run before."""

    by: str = ""
    reason: str = ""
    tools: tuple[ToolSpec, ...] = ()
    owner: str = ""


class UndoStarted(Event, frozen=True, kw_only=True, tag=True):
    """The intent to take back a call. `key` is that of the call itself."""

    step: int
    position: int
    key: str


class CallUndone(Event, frozen=True, kw_only=True, tag=True):
    """The compensation of a call came back. Anything but `ok` means that it is not known to be undone."""

    step: int
    position: int
    outcome: Literal["ok", "tool_error", "timeout"]
    text: str = ""


class SummaryStarted(Event, frozen=True, kw_only=True, tag=True):
    """The intent to ask the model for a summary of `messages[start:end]`, with what was reserved for it."""

    start: int
    end: int
    reserved: Reservation


class SummaryEnded(Event, frozen=True, kw_only=True, tag=True):
    """The request for a summary came back: the reply, or why there is none."""

    reply: Reply | None = None
    kind: str = ""
    """Name of the error class, where it failed."""
    message: str = ""
    usage: Usage | None = None
    """What a request that failed had used."""


class ContextCompacted(Event, frozen=True, kw_only=True, tag=True):
    """`messages[start:end]` of the transcript were made smaller. The log keeps what was there."""

    strategy: Strategy
    start: int
    end: int
    arithmetic: Arithmetic
    summary: str = ""


AnyEvent: TypeAlias = (
    RunStarted
    | RunResumed
    | LimitsRaised
    | MessageQueued
    | CancelRequested
    | RunEnded
    | StepStarted
    | ModelReplied
    | ModelFailed
    | CallStarted
    | CallReturned
    | CallFailed
    | CallTimedOut
    | CallAbandoned
    | LateResultArrived
    | ChildPaused
    | CallReconciled
    | ApprovalAsked
    | ApprovalGiven
    | UndoRequested
    | UndoStarted
    | CallUndone
    | SummaryStarted
    | SummaryEnded
    | ContextCompacted
)
