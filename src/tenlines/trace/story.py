"""What happened, arranged for eyes: the events of a run folded into steps, calls and remarks.

The machine folds the same events, so limits, notes and totals are the machine's own and never counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from tenlines.core import events as ev
from tenlines.core import metering
from tenlines.core.children import child_id
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.transcript import File, Image, Json, Note, Part, Reply, Text, User
from tenlines.trace import words
from tenlines.trace.redaction import NONE, Redaction

RemarkKind: TypeAlias = Literal[
    "note", "warning", "said", "failed", "limits", "cancel", "resumed", "undo", "cut", "cache"
]

Place: TypeAlias = tuple[int, int]
"""Step and position of a call."""
ALLOWED_BY_POLICY = "allowed by policy"


@dataclass(slots=True)
class CallView:
    """One call, and what became of it so far."""

    step: int
    position: int
    name: str
    arguments: str
    asked_at: float
    started_at: float | None = None
    ended_at: float | None = None
    outcome: str = ""
    text: str = ""
    full: str = ""
    """The whole result where the model was shown a part of it."""
    detail: str = ""
    remarks: tuple[str, ...] = ()
    late: str = ""
    waits: bool = False
    """Somebody's decision is missing."""
    child: str = ""
    """The run that it is, where its tool is an agent (`Agent.as_tool`)."""
    notes: list[str] = field(default_factory=list)
    """Who was asked about it and what was said; what its tool knew after a crash; that it was undone."""

    @property
    def place(self) -> str:
        """How a person names it: `STEP.NUMBER`, both from 1."""
        return f"{self.step}.{self.position + 1}"

    @property
    def standing(self) -> str:
        """Its outcome, or how it stands without one."""
        return self.outcome or ("waits" if self.waits else "open")

    @property
    def seconds(self) -> float | None:
        """How long the tool ran; None where it never started or has not ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, self.ended_at - self.started_at)

    def end(self, at: float, outcome: str, text: str) -> None:
        """Write down the result."""
        self.ended_at, self.outcome, self.text, self.waits = at, outcome, text, False


@dataclass(slots=True)
class StepView:
    """One request to the model, what it replied, and its calls."""

    number: int
    asked_at: float
    replied_at: float | None = None
    failed: bool = False
    """A request of this step failed; a remark says why."""
    reply: Reply | None = None
    dollars: float | None = None
    """What the reply cost; None where nobody knows."""
    calls: list[CallView] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        """How long the model took for the request that it answered."""
        return None if self.replied_at is None else max(0.0, self.replied_at - self.asked_at)


@dataclass(slots=True)
class Remark:
    """Something beside the steps: a note to the model, a warning, what a person said, a failed request."""

    kind: RemarkKind
    at: float
    text: str
    by: str = ""
    """Who said it, where that came from another process."""


Item: TypeAlias = StepView | Remark


class Story:
    """Takes events in their order.

    Args:
        redaction: What is taken out of all that is shown. The machine has everything as it was.
    """

    def __init__(self, redaction: Redaction = NONE) -> None:
        self.machine, self.redaction = Machine(), redaction
        self.items: list[Item] = []
        self.start: ev.RunStarted | None = None
        self.end: ev.RunEnded | None = None
        self.last_at = 0.0
        self.owner = ""
        """Who took the run up last."""
        self.is_decided = False
        """Something was decided since the run paused, so that it can go on."""
        self._step: StepView | None = None
        self._calls: dict[Place, CallView] = {}
        self._messages = self._warnings = 0
        self._was_cut = False
        """The transcript was cut since the last request, which is told already."""

    def take(self, event: ev.AnyEvent) -> list[Remark]:
        """Add one event; the remarks that it brought are also returned."""
        known = len(self.items)
        self.machine.apply(event)
        self.last_at = event.at
        self._note(self.redaction.of(event))
        self._new_messages(event.at)
        return [item for item in self.items[known:] if isinstance(item, Remark)]

    def result(self) -> RunResult:
        """What the run came to so far, as it may be shown."""
        return self.redaction.of(self.machine.result())

    def call(self, step: int, position: int) -> CallView:
        """The call at this place."""
        return self._calls[step, position]

    @property
    def step(self) -> StepView | None:
        """The newest step."""
        return self._step

    @property
    def worked_s(self) -> float:
        """Time that the run was worked on; the time between a stop and a resume is not counted."""
        state = self.machine.state
        until = self.last_at if self.end is None else self.end.at
        return state.worked_s + max(0.0, until - state.session_began)

    @property
    def in_doubt(self) -> list[Place]:
        """The calls of which nobody knows whether they took effect."""
        return [place for place, view in self._calls.items() if view.outcome == "in_doubt"]

    def _note(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.RunStarted():
                self.start, self._messages, self.owner = event, len(event.messages), event.owner
            case ev.StepStarted() | ev.ModelReplied():
                self._note_step(event)
            case ev.CallStarted():
                self._note_start(event)
            case ev.CallReturned() | ev.CallFailed() | ev.CallTimedOut() | ev.CallAbandoned():
                self._note_result(event)
            case ev.LateResultArrived(step=step, position=position):
                self._calls[step, position].late = f"{event.outcome}: {event.text}"
            case ev.ApprovalAsked() | ev.ApprovalGiven() | ev.CallReconciled() | ev.CallUndone():
                self._note_said(event)
            case ev.ChildPaused(step=step, position=position):
                self._calls[step, position].notes.append(paused_words(event))
                self._calls[step, position].waits = True
            case ev.RunEnded():
                self.end, self.is_decided = event, False
            case _:
                self._note_remark(event)

    def _note_step(self, event: ev.StepStarted | ev.ModelReplied) -> None:
        if isinstance(event, ev.StepStarted):
            if event.changed and not self._was_cut:
                self._add("cache", event.at, event.changed)
            self._was_cut = False
            if self._step is not None and self._step.reply is None:
                self._step.asked_at = event.at  # the same step, asked again
            else:
                self._step = StepView(event.step, event.at)
                self.items.append(self._step)
            return
        assert self._step is not None
        reply = self._as_taken(event.reply)
        step, self._step.reply, self._step.replied_at = self._step, reply, event.at
        step.dollars = metering.dollars(self.machine.state, reply.usage, reply.dollars)
        for position, asked in enumerate(reply.calls):
            view = CallView(event.step, position, asked.name, asked.arguments, event.at)
            step.calls.append(view)
            self._calls[event.step, position] = view

    def _as_taken(self, reply: Reply) -> Reply:
        """The reply as the machine took it: words that are the call of `finish` are that call."""
        exchange = self.machine.state.exchange
        if reply.calls or exchange is None:
            return reply
        asked = tuple(one.asked for one in exchange.calls)
        return msgspec.structs.replace(reply, text="", calls=self.redaction.of(asked))

    def _note_start(self, event: ev.CallStarted) -> None:
        view, exchange = self._calls[event.step, event.position], self.machine.state.exchange
        view.started_at, view.waits = event.at, False
        spec = None if exchange is None else exchange.calls[event.position].spec
        if spec is not None and spec.child:
            view.child = child_id(event.key)

    def _note_result(self, event: ev.CallReturned | ev.CallFailed | ev.CallTimedOut | ev.CallAbandoned) -> None:
        view = self._calls[event.step, event.position]
        if isinstance(event, ev.CallReturned):
            view.end(event.at, "ok", words_of(event.parts))
            view.full, view.remarks = event.full or "", event.remarks
        elif isinstance(event, ev.CallTimedOut):
            view.end(event.at, "timeout", event.text)
        else:
            view.end(event.at, event.outcome, event.text)
            view.detail = event.detail if isinstance(event, ev.CallFailed) else ""

    def _note_said(self, event: ev.ApprovalAsked | ev.ApprovalGiven | ev.CallReconciled | ev.CallUndone) -> None:
        view = self._calls[event.step, event.position]
        view.notes.append(said_of_call(event))
        if isinstance(event, ev.ApprovalAsked | ev.ApprovalGiven):
            view.waits = isinstance(event, ev.ApprovalAsked)
            self.is_decided = not view.waits

    def _note_remark(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.ModelFailed(message=message):
                if self._step is not None:
                    self._step.failed = True
                self._add("failed", event.at, message)
            case ev.MessageQueued(parts=parts, by=by):
                self._add("said", event.at, words_of(parts), by)
            case ev.LimitsRaised(limits=limits):
                self._add("limits", event.at, words.limits_words(limits))
            case ev.CancelRequested(mode=mode, reason=reason, by=by):
                how = "stop after what is running" if mode == "drain" else "stop at once"
                self._add("cancel", event.at, f"{how}: {reason}" if reason else how, by)
            case ev.ContextCompacted():
                self._messages, self._was_cut = len(self.machine.state.messages), True
                self._add("cut", event.at, words.cut_words(event))
            case ev.RunResumed(owner=owner):
                self._step, self.end, self.owner = None, None, owner
                self._add("resumed", event.at, _by(words.owner(owner)))
            case ev.UndoRequested(by=by, reason=reason, owner=owner):
                self._step, self.end, self.owner = None, None, owner
                self._add("undo", event.at, _by(by) + _because(reason) if by else reason)

    def _new_messages(self, at: float) -> None:
        """Notes to the model and warnings are made by the machine, not told by an event."""
        state = self.machine.state
        notes = [one.text for one in state.messages[self._messages :] if isinstance(one, Note)]
        warnings = [one for one in state.warnings[self._warnings :] if not any(note in one for note in notes)]
        self._messages, self._warnings = len(state.messages), len(state.warnings)
        for text in notes:
            self._add("note", at, self.redaction.text(text))
        for text in warnings:
            self._add("warning", at, self.redaction.text(text))

    def _add(self, kind: RemarkKind, at: float, text: str, by: str = "") -> None:
        self.items.append(Remark(kind, at, text, by))


def said_of_call(event: ev.ApprovalAsked | ev.ApprovalGiven | ev.CallReconciled | ev.CallUndone) -> str:
    """What was asked or said about a call, in one line."""
    match event:
        case ev.ApprovalAsked(about=about, reason=reason):
            what = "somebody has to allow it" if about == "call" else "somebody has to say whether it may run again"
            return f"{what}{_because(reason)}"
        case ev.ApprovalGiven(verdict="deny", by=by, reason=reason):
            return f"denied {_by(by)}".rstrip() + _because(reason)
        case ev.ApprovalGiven(by=by, reason=reason, arguments=None):
            return f"allowed {_by(by)}".rstrip() + _because(reason)
        case ev.ApprovalGiven(by=by, reason=reason, arguments=arguments):
            return f"allowed {_by(by)}".rstrip() + f", with other arguments: {arguments}{_because(reason)}"
        case ev.CallReconciled(verdict="not_done"):
            return "its tool says that it was not done before the crash"
        case ev.CallReconciled(text=text):
            return f"its tool does not know what became of it{_because(text)}"
        case ev.CallUndone(outcome="ok"):
            return "undone"
        case ev.CallUndone(outcome=outcome, text=text):
            return f"could not be undone, {outcome}{_because(text)}"


def paused_words(event: ev.ChildPaused) -> str:
    """What the run under a call waits for, in one line."""
    calls = [f"{one.name} ({one.place} of run {one.run_id})" for one in event.waiting]
    return f"its run {event.run_id} waits for a decision{_because(', '.join(calls))}"


def _by(who: str) -> str:
    return f"by {who}" if who else ""


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def words_of(parts: tuple[Part, ...]) -> str:
    """Parts as text; what is no text is named."""
    return "\n".join(filter(None, map(_words, parts)))


def _words(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Json(value):
            return json.dumps(value, ensure_ascii=False)
        case Image(url=url) if url:
            return f"(image at {url})"
        case Image():
            return f"({part.media_type}, {len(part.data):,} bytes)"
        case File():
            return f"({part.name or 'a file'}, {part.media_type}, {len(part.data):,} bytes)"
        case _:
            return ""


def task_of(start: ev.RunStarted) -> str:
    """What the person asked for: the last thing that was said before the run began."""
    return next((words_of(one.parts) for one in reversed(start.messages) if isinstance(one, User)), "")


def read_story(events: Iterable[ev.AnyEvent], redaction: Redaction = NONE) -> Story:
    """The story of a log."""
    story = Story(redaction)
    kept = list(events) if redaction else events
    redaction.learn(kept)
    for event in kept:
        story.take(event)
    return story
