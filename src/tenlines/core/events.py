"""What can happen in a run: past tense, immutable, complete. The log of these is the run.

Every event carries `seq` (0, 1, 2, ... without gaps) and `at` (Unix time in seconds), both given by the
driver. Times are facts that arrive; nothing in the core reads a clock.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tenlines.core.limits import Limits, Price, Repeats, Reservation, Retry
from tenlines.core.transcript import JsonObject, Message, Outcome, Part, Reply, Usage

SCHEMA = 2
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
    timeout_s: float | None = None
    source: str = ""
    """The file that the tool was loaded from, so that a run can be resumed by its id alone."""


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
    """How many empty or malformed replies in a row are asked for again."""
    empty_is_answer: bool = False
    """Take an empty reply for an answer (the classic form `agent_loop` does)."""
    tell_left: bool = False
    """Tell the model after each exchange what is left of its limits."""


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


class RunResumed(Event, frozen=True, kw_only=True, tag=True):
    """A process took the run over. Appending it fences whoever had it before (`(run_id, seq)` is unique)."""

    tools: tuple[ToolSpec, ...] = ()
    """The tools that the new owner really has."""


class LimitsRaised(Event, frozen=True, kw_only=True, tag=True):
    """The limits that hold from now on."""

    limits: Limits


class MessageQueued(Event, frozen=True, kw_only=True, tag=True):
    """A person said something while the run was under way."""

    parts: tuple[Part, ...]


class CancelRequested(Event, frozen=True, kw_only=True, tag=True):
    """Stop: `drain` lets what is running finish, `now` does not."""

    mode: Literal["drain", "now"]
    reason: str = ""


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


class CallFailed(Event, frozen=True, kw_only=True, tag=True):
    """The call has no value: it raised, was refused, or never started. `detail` is for people only."""

    step: int
    position: int
    outcome: Outcome
    text: str
    error_type: str = ""
    detail: str = ""


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
)
