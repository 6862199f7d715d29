"""What a log says about one call."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec

from tenlines.core import events as ev
from tenlines.core.transcript import Part

Place = tuple[int, int]

WHOLE = ("end", "tool_calls", "stop_sequence")
"""Stop reasons of a reply that is whole: its calls may run, its words may be the answer."""


class CallFacts(msgspec.Struct):
    """What the log says about one call."""

    step: int
    position: int
    name: str
    raw: str
    spec: ev.ToolSpec | None
    """The tool as it was known when the reply came."""
    blocked: bool = False
    """The reply was not whole, or had to be words alone."""
    runs: list[ev.ToolSpec] = []
    """The tool as it was known at each start."""
    seen: list[ev.ToolSpec] = []
    """The tool at each start, and as each owner after the first one had it."""
    paused: ev.ChildPaused | None = None
    """The run under it waits for somebody's decision, and its own run has not been taken up since."""
    child: ev.ChildRun | None = None
    """What its end says of that run."""
    in_hand: bool = False
    """It has started and not ended, in the hands of the present owner."""
    doubt: bool = False
    """It had started when a process died, may not be repeated by itself, and has not started since."""
    verdict: str = ""
    """What its tool said of the doubt."""
    to_person: bool = False
    """A person has to decide about the doubt."""
    gone: bool = False
    """An owner came who does not have the tool."""
    told: bool = False
    """The doubt is told to the model: nobody else can be asked."""
    denied: bool = False
    question: ev.ApprovalAsked | None = None
    """What a person was asked and has not answered."""
    leave: ev.ApprovalGiven | None = None
    """Leave to run that nobody took back."""
    bound_to: ev.ToolSpec | None = None
    """The tool as it was when the question was asked, or the leave given."""
    edit: Any = None
    """Arguments that somebody put in place."""
    start: Start | None = None
    """How things stood when it started last."""
    decision: Decision | None = None
    """How things stood when somebody decided last."""
    outcome: str = ""
    parts: tuple[Part, ...] = ()
    tail: tuple[Part, ...] = ()
    """What the transcript says behind them: how the rest can be read."""

    @property
    def place(self) -> Place:
        return self.step, self.position

    @property
    def may_have_had_effect(self) -> bool:
        return bool(self.runs) and any(not spec.read_only for spec in self.seen)

    @property
    def is_refused(self) -> bool:
        """Whether it is answered without running (again)."""
        never = self.spec is None or as_object(self.raw) is None or self.blocked
        return never or self.denied or self.gone or self.told

    @property
    def arguments(self) -> Any:
        """What it runs with."""
        return as_object(self.raw) if self.edit is None else self.edit

    @property
    def can_be_reconciled(self) -> bool:
        return self.doubt and all(spec.reconcilable for spec in self.seen)

    @property
    def is_one_run(self) -> bool:
        """Whether whoever had it since it first started knows it as one run, found by its key."""
        return bool(self.seen) and all(spec.child for spec in self.seen)

    @property
    def is_handed_over(self) -> bool:
        """Whether the answer of a run under it may be the answer."""
        never = as_object(self.raw) is None or self.blocked
        return self.spec is not None and self.spec.final and self.spec.child and not never

    @property
    def is_unsettled(self) -> bool:
        """Whether the doubt is open: nobody has said what is to become of the call."""
        if not self.doubt or self.verdict == "not_done":
            return False
        return self.leave is None if self.to_person else self.verdict == ""

    def forget(self) -> None:
        """Questions and leave hold no longer. What was put in place goes too, unless it has run so."""
        self.question = self.leave = None
        self.edit = self.edit if self.runs else None

    def still(self) -> CallFacts:
        """A copy that shares nothing that changes."""
        return msgspec.structs.replace(self, runs=self.runs.copy(), seen=self.seen.copy())


class Start(msgspec.Struct, frozen=True):
    """How things stood when a call started."""

    leave: ev.ApprovalGiven | None
    bound_to: ev.ToolSpec | None
    doubt: bool
    verdict: str
    to_person: bool
    was_refused: bool


class Decision(msgspec.Struct, frozen=True):
    """How things stood when somebody decided about a call."""

    question: ev.ApprovalAsked | None
    leave: ev.ApprovalGiven | None
    was_paused: bool


def holds(spoken: ev.ApprovalAsked | ev.ApprovalGiven | None, now: float) -> bool:
    """Whether a question, or leave, is there and not over."""
    return spoken is not None and (spoken.expires_at is None or now < spoken.expires_at)


@cache
def as_object(raw: str) -> Any:
    """What the arguments say in the strictest reading, or None."""
    if raw.strip() in ("", "null"):
        return {}

    def no(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(raw, parse_constant=no)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def plain(value: Any) -> str:
    """Equal for equal arguments."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
