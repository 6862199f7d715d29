"""What a log says, read from the events alone and in the plainest way, so that no law trusts the machine it judges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from call_facts import WHOLE, CallFacts, Decision, Place, Start, as_object, holds, plain
from money_facts import MoneyFacts

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.limits import Limits
from tenlines.core.transcript import Assistant, Note, Part, Text, ToolCall, Usage, User


class Facts(msgspec.Struct):
    """What the log says, event by event."""

    log: list[ev.AnyEvent] = []
    start: ev.RunStarted | None = None
    limits: Limits = Limits()
    tools: dict[str, ev.ToolSpec] = {}
    marked: set[str] = set()
    """Tools that needed leave at any time."""
    money: MoneyFacts = msgspec.field(default_factory=MoneyFacts)
    replies: int = 0
    tokens: int = 0
    """What the run's own requests used, like the dollars."""
    dollars: float = 0.0
    starts: int = 0
    """Calls that really started a tool, each counted once."""
    failures: int = 0
    """Failed requests in a row, in the hands of one owner."""
    cured: int = 0
    """How many of these failures were refusals that had a cure."""
    retells: bool = False
    """The next request tells the model everything anew."""
    left_out: set[str] = set()
    """What the provider refused and must not be sent again."""
    not_before: float = 0.0
    words_only: bool = False
    """The request under way is the one past the step limit."""
    finish_due: bool = False
    """The model was told to give its answer by the tool that takes it, and has not called anything since."""
    is_wordy: bool = False
    """The last reply was words, and no answer for that."""
    wordy: int = 0
    """Replies in words in a row, where words are no answer; in the hands of one owner."""
    last_words: str | None = None
    """The answer that was given past the step limit."""
    open: list[CallFacts] = []
    stop: str = ""
    """Why the last reply ended."""
    closed_calls: int = 0
    final: str | None = None
    """The answer that a final tool gave in the open exchange."""
    words: str | None = None
    """The text of the last reply without calls, until something else is said."""
    last_final: str | None = None
    owed: set[Place] = set()
    """Calls that were given up and have not reported late."""
    waiting: list[User] = []
    expected: list[Any] = []
    """The transcript without notes, as it must be."""
    notes: list[tuple[str, ...]] = []
    """What the notes on edits and on undoing have to say, in order."""
    cancelled: str = ""
    """How the run was cancelled: `drain`, `now`, or "" if it was not."""
    began: float = 0.0
    worked: float = 0.0
    at: float = 0.0
    ended: ev.RunEnded | None = None
    last_end: ev.RunEnded | None = None
    """The same, and still while a run that had ended is undone."""
    acted: dict[Place, CallFacts] = {}
    """Calls that started and may have had effect, in the order of their first start."""
    undone: dict[Place, ev.CallUndone] = {}
    """What came of undoing, in the order in which it was done."""
    told_undone: set[Place] = set()
    undoing: bool = False
    tried: set[Place] = set()
    """Calls whose compensation came back since the undoing began."""
    in_undo: Place | None = None
    """The call whose compensation is under way."""
    exchanges: list[Any] = []
    """What the exchanges were since a stuck run was let go on, as far as it matters for repetition."""
    invalid: int = 0
    """How many calls in a row never reached a tool, since a stuck run was let go on."""

    def still(self) -> Facts:
        """A copy that shares nothing that changes."""
        twin = msgspec.structs.replace(self)
        for name, value in growing(self):
            setattr(twin, name, value.copy())
        twin.money = self.money.still()
        twin.open = [one.still() for one in self.open]
        twin.acted |= {one.place: one for one in twin.open if one.place in self.acted}
        return twin

    # --- reading the log ---

    def read(self, event: ev.AnyEvent) -> None:
        getattr(self, f"_on_{type(event).__name__}")(event)
        self.money.read(event, self)
        self.log.append(event)
        self.at = max(self.at, event.at)

    def _have(self, tools: tuple[ev.ToolSpec, ...]) -> None:
        self.marked = self.marked | {spec.name for spec in tools if spec.approve}
        self.tools = {
            spec.name: msgspec.structs.replace(spec, approve=True) if spec.name in self.marked else spec
            for spec in tools
        }

    def _on_RunStarted(self, event: ev.RunStarted) -> None:
        self.start, self.limits, self.began = event, event.settings.limits, event.at
        self._have(event.tools)
        self.expected = [message for message in event.messages if not isinstance(message, Note)]

    def _restart_clock(self, at: float) -> None:
        self.worked += max(0.0, (self.at if self.last_end is None else self.last_end.at) - self.began)
        self.began = at

    def _on_RunResumed(self, event: ev.RunResumed) -> None:
        self._have(event.tools)
        self._restart_clock(event.at)
        self.cancelled = ""
        self.failures = self.cured = self.wordy = 0
        self.not_before = 0.0
        if self.undoing:
            self.in_undo = None
            return
        if self.ended is not None and self.ended.status == "stuck":
            self.exchanges, self.invalid = [], 0
        self.ended = self.last_end = None
        if self.open:
            for call in self.open:
                self._take_up(call, event.at)
        else:
            self._release()
            new = [place for place, one in self.undone.items() if one.outcome == "ok" and place not in self.told_undone]
            self.told_undone = self.told_undone | set(new)
            if new:
                self.notes.append(("was undone", *(self.acted[place].name for place in new)))

    def _take_up(self, call: CallFacts, at: float) -> None:
        """A new owner looks at an open call."""
        tool, had_started = self.tools.get(call.name), call.in_hand
        call.in_hand, call.paused = False, None
        if call.outcome or call.is_refused:
            return
        if tool is None:
            call.gone = True
            return
        if (call.bound_to is not None and call.bound_to != tool) or not holds(call.question or call.leave, at):
            call.forget()
        if call.runs:
            call.seen.append(tool)
            call.doubt = call.doubt or not all(spec.read_only or spec.idempotent for spec in call.seen)
        if call.doubt and (had_started or not call.to_person):
            self._look_into(call)

    def _look_into(self, call: CallFacts) -> None:
        """What becomes of a doubt: the tool is asked, or a person, or nobody."""
        call.verdict = ""
        if not call.can_be_reconciled:
            self._pass_on(call)

    def _pass_on(self, call: CallFacts) -> None:
        """The tool cannot say what became of the call."""
        assert self.start is not None
        call.to_person = self.start.settings.on_in_doubt == "ask"
        call.told = not call.to_person
        call.forget()

    def _on_LimitsRaised(self, event: ev.LimitsRaised) -> None:
        self.limits = event.limits

    def _on_MessageQueued(self, event: ev.MessageQueued) -> None:
        self.waiting.append(User(event.parts))
        if self.is_ready:
            self._release()
            self.words = self.last_final = None

    def _on_CancelRequested(self, event: ev.CancelRequested) -> None:
        self.cancelled = "now" if "now" in (event.mode, self.cancelled) else "drain"
        if self.is_asking and event.mode == "now":
            self._release()

    def _on_RunEnded(self, event: ev.RunEnded) -> None:
        self.ended = self.last_end = event
        self.undoing = False

    def _on_StepStarted(self, event: ev.StepStarted) -> None:
        self.words_only = self.limits.steps is not None and self.used("steps") >= self.limits.steps

    def _on_ModelFailed(self, event: ev.ModelFailed) -> None:
        self.failures += 1
        self._pay(event.usage, None)
        self.not_before = event.at + (event.retry_after_s or 0.0)
        cure = {"RSN": "reasoning", "MED": "media"}.get(event.violation[:3])
        if event.kind == "ContextTooLong":  # it is made shorter at once, or the run ends
            self.cured += 1
            self.not_before = 0.0
        if event.kind not in ("OutOfMoves", "ContextTooLong") and cure and cure not in self.left_out:
            self.left_out.add(cure)
            self.cured += 1
            self.retells = True
            self.not_before = 0.0
        self._release()

    def _pay(self, usage: Usage | None, dollars: float | None) -> None:
        if usage is not None:
            self.tokens += (usage.input or 0) + (usage.output or 0)
        self.dollars += self.cost_of(usage, dollars) or 0.0

    def cost_of(self, usage: Usage | None, said: float | None) -> float | None:
        """What a request cost, as far as it is known."""
        assert self.start is not None
        price = self.start.settings.price
        if said is not None:
            return said
        if usage is None or price is None or None in (usage.input, usage.output):
            return None
        return price.of(usage)

    def used(self, kind: str) -> float:
        """What is used or set aside for calls, of one kind of limit; without the request under way."""
        own = {"steps": self.replies, "tool_calls": self.starts, "tokens": self.tokens, "dollars": self.dollars}[kind]
        money = self.money
        said: float = getattr(money.children, kind) + getattr(money.children, f"presumed_{kind}", 0)
        return own + said + money.presumed.get(kind, 0) + money.held(kind)

    # --- summaries and cuts ---

    def _on_SummaryStarted(self, event: ev.SummaryStarted) -> None:
        pass

    def _on_SummaryEnded(self, event: ev.SummaryEnded) -> None:
        usage = event.usage if event.reply is None else event.reply.usage
        self._pay(usage, None if event.reply is None else event.reply.dollars)
        self._release()

    def _on_ContextCompacted(self, event: ev.ContextCompacted) -> None:
        pass

    def _on_ModelReplied(self, event: ev.ModelReplied) -> None:
        assert self.start is not None
        reply = event.reply
        self.replies += 1
        self.failures = self.cured = 0
        self.not_before, self.retells = 0.0, False
        self.words = self.last_final = None
        self._pay(reply.usage, reply.dollars)
        self.stop, text = reply.stop, reply.text if reply.text.strip() else ""
        giver, calls, self.is_wordy = self.giver, reply.calls, False
        if not calls and giver is not None and reply.stop in WHOLE and is_one_object(text):
            calls, text = (ToolCall("", giver.name, text),), ""
        if calls:
            self.wordy, self.finish_due = 0, False
            self.open = [
                CallFacts(
                    *(self.replies, position, call.name, call.arguments, self.tools.get(call.name)),
                    reply.stop not in WHOLE or (self.words_only and (giver is None or call.name != giver.name)),
                )
                for position, call in enumerate(calls)
            ]
            self.final = None
            self.expected.append(Assistant(text, (), reply.opaque))
            return
        is_answer = self.start.settings.empty_is_answer and giver is None
        kept = reply.opaque and (reply.stop == "pause" or is_answer)
        if text or kept:
            self.expected.append(Assistant(text, (), reply.opaque))
        self.words = reply.text if reply.stop in (*WHOLE, "unknown") and not self.waiting else None
        if giver is not None and self.words is not None:
            self.is_wordy = bool(self.words.strip()) and not self.words_only
            self.wordy, self.finish_due = self.wordy + self.is_wordy, self.finish_due or self.is_wordy
            self.words = None
        self._release()

    # --- calls ---

    def _on_CallStarted(self, event: ev.CallStarted) -> None:
        call = self.open[event.position]
        assert call.paused is None, "a call starts again, and its run still waits"
        call.start = Start(call.leave, call.bound_to, call.doubt, call.verdict, call.to_person, call.is_refused)
        self.starts += not call.runs and not self.tools[call.name].answer
        call.runs.append(self.tools[call.name])
        call.seen.append(self.tools[call.name])
        if call.to_person:
            call.leave = None  # it was for running once more
        call.in_hand, call.doubt, call.to_person, call.verdict = True, False, False, ""
        if call.may_have_had_effect:
            self.acted.setdefault(call.place, call)

    def _on_CallReturned(self, event: ev.CallReturned) -> None:
        call = self.open[event.position]
        spec = self.tools.get(call.name) or call.spec
        if spec is not None and spec.final:
            texts = [part.text for part in event.parts if isinstance(part, Text)]
            self.final = event.full if event.full is not None else "\n\n".join(texts)
        assert self.start is not None
        if event.truncated and self.start.settings.read_results:
            key = f"{self.start.run_id}:{event.step}:{event.position}"
            call.tail = (Text(outcomes.cut_short(key)),)
        call.child = event.child
        self._end(call, "ok", event.parts)

    def _on_CallFailed(self, event: ev.CallFailed) -> None:
        call = self.open[event.position]
        call.child = event.child
        if call.may_have_had_effect and event.outcome in ("denied", "invalid_arguments"):
            # It ran before a crash; that it is refused now says nothing about what it did then.
            self._end(call, "in_doubt", (Text(outcomes.interrupted(call.name, False)),))
        else:
            self._end(call, event.outcome, (Text(event.text),))

    def _on_CallTimedOut(self, event: ev.CallTimedOut) -> None:
        self.owed.add((event.step, event.position))
        call, text = self.open[event.position], event.text
        if self.tools[call.name].read_only and call.may_have_had_effect:
            # It ran before a crash, when it did not only read.
            text = outcomes.timed_out(call.name, event.after_s, False)
        self._end(call, "timeout", (Text(text),))

    def _on_CallAbandoned(self, event: ev.CallAbandoned) -> None:
        self.owed.add((event.step, event.position))
        self._end(self.open[event.position], event.outcome, (Text(event.text),))

    def _on_LateResultArrived(self, event: ev.LateResultArrived) -> None:
        assert (event.step, event.position) in self.owed, "a late result of a call that owes none"
        self.owed.remove((event.step, event.position))

    def _on_ChildPaused(self, event: ev.ChildPaused) -> None:
        call = self.open[event.position]
        call.in_hand, call.paused = False, event

    def _on_CallReconciled(self, event: ev.CallReconciled) -> None:
        call = self.open[event.position]
        call.verdict = event.verdict
        if event.verdict == "unknown":
            self._pass_on(call)

    def _on_ApprovalAsked(self, event: ev.ApprovalAsked) -> None:
        call = self.open[event.position]
        call.forget()
        call.question, call.bound_to = event, self.tools[call.name]

    def _on_ApprovalGiven(self, event: ev.ApprovalGiven) -> None:
        call = self.open[event.position]
        call.decision = Decision(call.question, call.leave, self.ended is not None)
        call.forget()
        if event.verdict == "deny":
            call.denied = True
            return
        call.leave, call.bound_to = event, self.tools[call.name]
        if event.arguments is not None:
            call.edit = as_object(event.arguments)

    # --- undoing ---

    def _on_UndoRequested(self, event: ev.UndoRequested) -> None:
        self._have(event.tools)
        self._restart_clock(event.at)
        self.ended = None
        self.undoing, self.tried = True, set()

    def _on_UndoStarted(self, event: ev.UndoStarted) -> None:
        if not self.undoing:
            self.undoing, self.tried = True, set()
        assert self.in_undo is None, "a compensation started beside another"
        self.in_undo = (event.step, event.position)

    def _on_CallUndone(self, event: ev.CallUndone) -> None:
        place = (event.step, event.position)
        assert self.in_undo == place, "a compensation came back that had not started"
        self.in_undo = None
        self.tried.add(place)
        self.undone.pop(place, None)
        self.undone[place] = event

    # --- the end of an exchange ---

    def _end(self, call: CallFacts, outcome: str, parts: tuple[Part, ...]) -> None:
        call.outcome, call.parts, call.in_hand, call.paused = outcome, parts, False, None
        if any(not one.outcome for one in self.open):
            return
        exchange = [(one.name, one.raw if one.arguments is None else plain(one.arguments)) for one in self.open]
        results = [(one.outcome, one.parts) for one in self.open]
        counts = not any(one.spec and one.spec.repeatable and one.outcome == "ok" for one in self.open)
        self.exchanges.append((exchange, results) if counts else object())
        for one in self.open:
            self.invalid = self.invalid + 1 if one.outcome in ("unknown_tool", "invalid_arguments") else 0
            if one.edit is not None and one.runs:
                self.notes.append(("changed the arguments", one.name, f"It ran with: {plain(one.edit)}"))
        self.expected.extend(self.open)
        self.closed_calls += len(self.open)
        self.last_words = self.final if self.words_only else None
        self.last_final = None if self.words_only else self.final
        self.final, self.open = None, []
        self._release()

    def _release(self) -> None:
        self.expected.extend(self.waiting)
        self.waiting = []

    # --- what follows from it ---

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way."""
        for event in reversed(self.log):
            if isinstance(event, ev.StepStarted | ev.SummaryStarted):
                return True
            if isinstance(event, ev.ModelReplied | ev.ModelFailed | ev.SummaryEnded | ev.RunResumed | ev.RunStarted):
                return False
            if isinstance(event, ev.CancelRequested) and event.mode == "now":
                return False
        return False

    @property
    def is_ready(self) -> bool:
        return not self.open and not self.is_asking and not self.undoing

    def stretch(self, period: int) -> int:
        """How many of the newest exchanges repeat with this period."""
        all_, end = self.exchanges, len(self.exchanges)
        first = end - period
        while first > 0 and all_[first - 1] == all_[first - 1 + period]:
            first -= 1
        return end - first if first >= 0 else 0

    @property
    def deadline(self) -> float | None:
        return None if self.limits.seconds is None else self.began + self.limits.seconds - self.worked

    @property
    def to_undo(self) -> list[Place]:
        """Calls that can be undone by the tools that are here, and are not known to be; the next one last."""
        return [
            place
            for place, call in self.acted.items()
            if (tool := self.tools.get(call.name)) is not None
            and tool.undoable
            and (place not in self.undone or self.undone[place].outcome != "ok")
            and not (self.undoing and place in self.tried)
        ]

    def nothing_starts(self, now: float) -> bool:
        """Whether no further call of the open exchange may start, whatever it is."""
        is_late = self.deadline is not None and now >= self.deadline
        return bool(self.cancelled) or self.final is not None or is_late

    @property
    def giver(self) -> ev.ToolSpec | None:
        """The tool that takes the answer, where words are none."""
        return next((spec for spec in self.tools.values() if spec.answer), None)

    def has_room(self, call: CallFacts) -> bool:
        if call.name in self.tools and self.tools[call.name].answer:
            return True
        return bool(call.runs) or self.limits.tool_calls is None or self.used("tool_calls") < self.limits.tool_calls

    def needs_leave(self, call: CallFacts) -> bool:
        return call.to_person or (call.name in self.tools and self.tools[call.name].approve)

    def in_running_order(self) -> list[CallFacts]:
        """The open exchange: a final tool goes first, runs to which it is handed over go last."""
        final = [one for one in self.open if one.spec and one.spec.final and as_object(one.raw) is not None]
        last = [one for one in final if one.is_handed_over]
        first = [one for one in final if one.spec and not one.spec.child][:1]
        return first + [one for one in self.open if one not in first and one not in last] + last

    def runs_alone(self, call: CallFacts) -> bool:
        tool = self.tools[call.name]
        return tool.final or not tool.read_only or any(not spec.read_only for spec in call.seen)


def is_one_object(text: str) -> bool:
    """Whether a text is nothing but one JSON object."""
    return text.strip()[:1] == "{" and as_object(text) is not None


def growing(facts: Facts) -> Iterator[tuple[str, Any]]:
    """The fields that grow."""
    for name in facts.__struct_fields__:
        value = getattr(facts, name)
        if isinstance(value, list | dict | set):
            yield name, value
