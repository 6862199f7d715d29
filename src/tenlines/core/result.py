"""What a run gives back."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tenlines.core.events import Status
from tenlines.core.limits import Left
from tenlines.core.transcript import JsonValue, Message, Outcome


class RunUsage(NamedTuple):
    """Tokens of all replies of a run. `unmetered` replies came without counts and are not in the sums."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    unmetered: int

    @property
    def total(self) -> int:
        """Input and output tokens together."""
        return self.input + self.output


class CallRecord(msgspec.Struct, frozen=True, gc=False):
    """One call of a run, with what became of it. `arguments` is None where they could not be read."""

    step: int
    position: int
    id: str
    provider_id: str
    name: str
    raw_arguments: str
    outcome: Outcome
    text: str
    truncated: bool = False
    original_chars: int | None = None
    remarks: tuple[str, ...] = ()
    arguments: dict[str, JsonValue] | None = None


class RunResult(msgspec.Struct, frozen=True, gc=False):
    """Everything a run came to.

    `answer` is set only when the status is `answered`; what a stopped run had to say so far is `partial_answer`.
    """

    run_id: str
    status: Status
    reason: str
    answer: str | None
    partial_answer: str | None
    steps: int
    tool_calls: int
    usage: RunUsage
    dollars: float | None
    """None when the price of a reply is not known, never 0.0 for "unknown"."""
    messages: tuple[Message, ...]
    calls: tuple[CallRecord, ...]
    left: Left
    retries: int
    repairs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Things worth a person's look that did not stop the run."""
    observer_errors: int = 0

    @property
    def last(self) -> str:
        """The answer, or the partial answer, or the reason of the stop: the one thing to print."""
        return self.answer if self.answer is not None else self.partial_answer or self.reason
