"""The whole exception tree. An exception says whose fault it is; how a run ended is data, not an exception.

```text
TenlinesError                  never raised itself
├── MisuseError                the caller or a driver broke the contract
│   ├── InvalidEvent           an event that this state does not accept; the state is unchanged
│   ├── ApprovalRefused        a decision about a call that does not wait for it, or is another one by now
│   ├── FlowError              a workflow waits for what is no part of it, or goes another way than it did
│   └── ConfigError            an agent, tool or command was set up wrongly
│       └── MissingExtra       an optional dependency is not installed; says the install command
├── RemoteError                the other side failed or misbehaved
│   ├── ProviderError          the model's server answered with an error
│   │   ├── RateLimited
│   │   ├── Overloaded
│   │   ├── AuthRejected
│   │   ├── ContextTooLong
│   │   └── ProtocolRejected   a request that breaks a rule of the provider's format
│   ├── ConnectionFailed       no answer, or it broke off
│   ├── EngineError            the engine of a fleet cannot be reached, or refuses
│   ├── OutOfMoves             a scripted model has no more replies
│   └── MalformedReply         what came back could not be decoded
├── JournalError               the journal could not be read or written
│   ├── JournalConflict        another process appended to the run first
│   ├── JournalFormatError     the journal was written by a newer version
│   ├── JournalDamaged         what was read is not what was written
│   ├── SessionBusy            another run of the conversation is still open
│   └── RunNotFound            no run of this id is in the journal
├── StageFailed                a stage or step of a workflow has no value; raised in the workflow itself
├── PlanStopped                a plan cannot be followed further, now or at all; raised in its run
├── RunStopped                 a run ended in another way than an answer; `.result` has everything
│   ├── StepLimitReached
│   ├── ToolLimitReached
│   ├── BudgetExceeded
│   ├── DeadlinePassed
│   ├── RunStuck
│   ├── RunCancelled
│   ├── ModelRefused
│   ├── EmptyReply
│   ├── TruncatedReply
│   ├── ContextOverflow
│   ├── ModelFailure
│   └── JournalFailure
└── InternalError              a bug in tenlines
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenlines.core.result import RunResult
    from tenlines.core.transcript import Usage

__all__ = [
    "ApprovalRefused",
    "AuthRejected",
    "BudgetExceeded",
    "ConfigError",
    "ConnectionFailed",
    "ContextOverflow",
    "ContextTooLong",
    "DeadlinePassed",
    "EmptyReply",
    "EngineError",
    "FlowError",
    "InternalError",
    "InvalidEvent",
    "JournalConflict",
    "JournalDamaged",
    "JournalError",
    "JournalFailure",
    "JournalFormatError",
    "MalformedReply",
    "MissingExtra",
    "MisuseError",
    "ModelFailure",
    "ModelRefused",
    "OutOfMoves",
    "Overloaded",
    "PlanStopped",
    "ProtocolRejected",
    "ProviderError",
    "RateLimited",
    "RemoteError",
    "RunCancelled",
    "RunNotFound",
    "RunStopped",
    "RunStuck",
    "SessionBusy",
    "StageFailed",
    "StepLimitReached",
    "TenlinesError",
    "ToolLimitReached",
    "TruncatedReply",
    "stopped",
]


class TenlinesError(Exception):
    """Base of every error that tenlines raises. `exit_code` is what the command line ends with."""

    exit_code = 1


class MisuseError(TenlinesError):
    """The caller broke the contract. Fix the call; nothing was changed."""

    exit_code = 2


class InvalidEvent(MisuseError):
    """An event that the machine does not accept in its present state. The state is unchanged."""


class FlowError(MisuseError):
    """A workflow waits for what is no part of it, or goes another way than the log says that it went."""


class ConfigError(MisuseError):
    """An agent, a tool, a model name or a command was set up wrongly."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed.

    Args:
        feature: What needs it, in the user's words.
        extra: The name of the extra that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency: pip install 'tenlines[{extra}]'")
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.feature, self.extra)


class ApprovalRefused(MisuseError):
    """A decision that does not count: no call waits for it, the call is another one by now, or it comes too late."""


class RemoteError(TenlinesError):
    """The other side failed or misbehaved.

    Attributes:
        is_retryable: Whether the same request may succeed later.
        usage: What a reply that broke off had used by then, as far as the provider said; or None.
    """

    exit_code = 3
    is_retryable = False
    usage: Usage | None = None


class ProviderError(RemoteError):
    """A model's server answered with an error.

    Attributes:
        status: HTTP status, or None where there was none.
        code: The provider's own error code, or "".
        retry_after_s: Seconds that the provider asked to wait, or None.
        is_retryable: Whether the same request may succeed later.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after_s: float | None = None,
        is_retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after_s = status, code, retry_after_s
        if is_retryable is not None:
            self.is_retryable = is_retryable


class RateLimited(ProviderError):
    """Too many requests (429). Retried by the machine after `retry_after_s`."""

    is_retryable = True


class Overloaded(ProviderError):
    """A transient failure of the server (408, 409, 5xx, 529). Retried by the machine."""

    is_retryable = True


class AuthRejected(ProviderError):
    """The key is missing, wrong or has no right or credit (401, 402, 403). Not retried."""


class ContextTooLong(ProviderError):
    """The request does not fit into the model's window. Not retried as it is.

    Attributes:
        limit_tokens: How many tokens fit, where the provider says it.
        sent_tokens: How many the request has, where the provider says it.
    """

    limit_tokens: int | None = None
    sent_tokens: int | None = None


class ProtocolRejected(ProviderError):
    """The provider refused the request for what its format forbids (400, 422). Not retried as it is.

    Attributes:
        rule: Id of the rule that the refusal looks like (`tenlines rules ID` explains it), or "".
        kind: Canonical kind of the violation: `PAIR-MISSING`; or "".
    """

    def __init__(
        self, message: str, *, rule: str = "", kind: str = "", status: int | None = None, code: str = ""
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.rule, self.kind = rule, kind


class ConnectionFailed(RemoteError):
    """No answer came, or it broke off. Nothing of a broken answer is used."""

    is_retryable = True


class EngineError(RemoteError):
    """The engine of a fleet cannot be reached, or refuses. Nothing is lost: what was begun is in the journal."""

    is_retryable = True


class OutOfMoves(RemoteError):
    """A scripted model has no more replies. Ends the run like the step limit does."""


class MalformedReply(RemoteError):
    """What came back could not be decoded. `excerpt` holds the first 500 characters.

    A garbled answer is retried like a transient failure: nothing of it was used.
    """

    is_retryable = True

    def __init__(self, message: str, excerpt: str = "") -> None:
        super().__init__(message)
        self.excerpt = excerpt[:500]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.excerpt)


class JournalError(TenlinesError):
    """The journal could not be read or written. The run stopped before acting."""

    exit_code = 4


class JournalConflict(JournalError):
    """Another process appended to this run first. This process stopped without touching anything."""


class JournalFormatError(JournalError):
    """The journal holds something that this version cannot read."""


class JournalDamaged(JournalError):
    """What was read is not what was written: flipped bytes, a missing event, a cut file."""


class SessionBusy(JournalError):
    """Another run of the same conversation is still open. Nothing was stored.

    Attributes:
        run_id: That run, or "" where it is not known.
    """

    def __init__(self, message: str, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id


class RunNotFound(JournalError):
    """No run of this id is in the journal."""

    exit_code = 2


class StageFailed(TenlinesError):
    """A stage or step of a workflow has no value. Raised in the workflow, which may catch it.

    Args:
        name: The stage or step.
        outcome: What became of the call.
        text: What is known, in words.
    """

    def __init__(self, name: str, outcome: str, text: str) -> None:
        super().__init__(f"{name}: {outcome}: {text}")
        self.name, self.outcome, self.text = name, outcome, text


class PlanStopped(TenlinesError):
    """A plan cannot be followed further. Where something outside was in the way, it can when the run is resumed."""


class RunStopped(TenlinesError):
    """A run ended in another way than an answer.

    Attributes:
        result: Everything up to the stop: status, reason, transcript, usage. The run can be resumed.
    """

    exit_code = 1

    def __init__(self, result: RunResult) -> None:
        super().__init__(f"run {result.run_id} stopped: {result.status}: {result.reason}")
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.result,)


class StepLimitReached(RunStopped):
    """Status `max_steps`."""


class ToolLimitReached(RunStopped):
    """Status `tool_limit`."""


class BudgetExceeded(RunStopped):
    """Status `budget`."""


class DeadlinePassed(RunStopped):
    """Status `deadline`."""


class RunStuck(RunStopped):
    """Status `stuck`: the model repeated itself after it was told."""


class RunCancelled(RunStopped):
    """Status `cancelled`."""

    exit_code = 130


class ModelRefused(RunStopped):
    """Status `refused`."""


class EmptyReply(RunStopped):
    """Status `empty_reply`."""


class TruncatedReply(RunStopped):
    """Status `truncated_reply`."""


class ContextOverflow(RunStopped):
    """Status `context_overflow`."""


class ModelFailure(RunStopped):
    """Status `model_error`."""

    exit_code = 3


class JournalFailure(RunStopped):
    """Status `journal_error`."""

    exit_code = 4


_STOPPED: dict[str, type[RunStopped]] = {
    "max_steps": StepLimitReached,
    "tool_limit": ToolLimitReached,
    "budget": BudgetExceeded,
    "deadline": DeadlinePassed,
    "stuck": RunStuck,
    "cancelled": RunCancelled,
    "refused": ModelRefused,
    "empty_reply": EmptyReply,
    "truncated_reply": TruncatedReply,
    "context_overflow": ContextOverflow,
    "model_error": ModelFailure,
    "journal_error": JournalFailure,
}


def stopped(result: RunResult) -> RunStopped:
    """The exception for the way in which a run stopped."""
    return _STOPPED.get(result.status, RunStopped)(result)


class InternalError(TenlinesError):
    """This should never happen: it is a bug in tenlines. Please report it with the run's journal."""

    exit_code = 70
