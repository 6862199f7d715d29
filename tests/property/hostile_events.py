"""The hostile driver: events that the machine must not take, wherever the run stands."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
from alphabet import HISTORIES, LOOK, TOOLS
from call_facts import CallFacts, holds
from facts import Facts
from laws import ACCEPTS, Checked, under_way
from laws_of_cuts import MOST_SUMMARIES
from laws_of_leave import EVER, only_people_can_go_on, to_reconcile
from money_facts import KINDS

from tenlines.core import events as ev
from tenlines.core.context import Arithmetic
from tenlines.core.deciding import binding
from tenlines.core.effects import Compact, Finish, RunTools, Summarise, UndoCall
from tenlines.core.limits import Left, Limits, Reservation, Spent
from tenlines.core.state import Phase
from tenlines.core.transcript import Assistant, Reply, Result, System, Text, ToolCall, Usage, User


class Hostile:
    """Somebody who tells what cannot be: wrong kinds of events, and right kinds with wrong values."""

    def __init__(self, run: Checked, now: float) -> None:
        self.run, self.now, self.log = run, now, run.facts.log

    def stamp(self) -> dict[str, Any]:
        return {"seq": len(self.log), "at": self.now}

    def events(self) -> list[Any]:
        """Everything that must be refused where the run stands."""
        accepted = ACCEPTS[self.run.phase]
        patterns = self.patterns()
        events: list[Any] = [pattern for pattern in patterns if type(pattern) not in accepted]
        events += NO_EVENTS
        valid = next(
            (one for one in patterns if type(one) in (ev.CancelRequested, ev.RunStarted) and type(one) in accepted),
            None,
        )
        if valid is not None:
            events += [
                msgspec.structs.replace(valid, seq=seq) for seq in (len(self.log) - 1, len(self.log) + 1, None, "0")
            ]
            events += [msgspec.structs.replace(valid, seq=float(len(self.log)))]
            events += [msgspec.structs.replace(valid, at=at) for at in WRONG_TIMES]
        return events + getattr(self, f"_hostile_{self.run.phase.value}")() + self._hostile_anywhere()

    def patterns(self) -> list[ev.AnyEvent]:
        """One likely event of each kind for where the run stands."""
        stamp, step = self.stamp(), self.run.facts.replies
        key = f"{self.run.facts.start.run_id if self.run.facts.start else ''}:{step}:0"
        place: dict[str, Any] = {**stamp, "step": step, "position": 0}
        return [
            ev.RunStarted(**stamp, run_id="r", agent="a", model="m", messages=HISTORIES[0], tools=TOOLS),
            ev.RunResumed(**stamp, tools=TOOLS),
            ev.LimitsRaised(**stamp, limits=Limits()),
            ev.MessageQueued(**stamp, parts=(Text("x"),)),
            ev.CancelRequested(**stamp, mode="drain"),
            ev.RunEnded(**stamp, status="max_steps"),
            ev.StepStarted(**stamp, step=step + 1, attempt=1, reserved=Reservation()),
            ev.ModelReplied(**stamp, step=step + 1, reply=Reply("x")),
            ev.ModelFailed(**stamp, step=step + 1, attempt=1, kind="E", message="x"),
            ev.CallStarted(**place, key=key),
            ev.CallReturned(**place, parts=(Text("x"),)),
            ev.CallFailed(**place, outcome="tool_error", text="x"),
            ev.CallTimedOut(**place, after_s=1.0, text="x"),
            ev.CallAbandoned(**place, outcome="in_doubt", text="x"),
            ev.ChildPaused(**place, run_id="c"),
            ev.CallReconciled(**place, verdict="not_done"),
            ev.ApprovalAsked(**place, digest="0"),
            ev.ApprovalGiven(**place, digest="0", verdict="allow", by="eve"),
            ev.UndoRequested(**stamp, by="eve", tools=TOOLS),
            ev.UndoStarted(**place, key=key),
            ev.CallUndone(**place, outcome="ok"),
            ev.SummaryStarted(**stamp, start=1, end=2, reserved=Reservation()),
            ev.SummaryEnded(**stamp, reply=Reply("a summary")),
            ev.ContextCompacted(**stamp, strategy="elide", start=1, end=2, arithmetic=NO_ARITHMETIC),
        ]

    def _hostile_anywhere(self) -> list[Any]:
        stamp, accepted = self.stamp(), ACCEPTS[self.run.phase]
        events: list[Any] = []
        if ev.LateResultArrived in accepted:
            places: list[tuple[Any, Any]] = [(0, 0), (self.run.facts.replies + 1, 0), ([], {}), (None, None), ("1", 0)]
            done = [(e.step, e.position) for e in self.log if isinstance(e, ev.LateResultArrived)]
            places += [place for place in done if place not in self.run.facts.owed]
            places += [(float(step), position) for step, position in self.run.facts.owed]
            places += [(step, position == 1) for step, position in self.run.facts.owed if position in (0, 1)]
            events += [
                ev.LateResultArrived(**stamp, step=step, position=position, outcome="ok", text="x")
                for step, position in places
            ]
        if ev.MessageQueued in accepted:
            wrong: tuple[Any, ...] = (None, "text", (object(),), ("text",), (Text(None),))  # type: ignore[arg-type]
            events += [ev.MessageQueued(**stamp, parts=parts) for parts in wrong]
            limits: tuple[Any, ...] = (None, [], {"steps": -1}, 5)
            events += [ev.LimitsRaised(**stamp, limits=one) for one in limits]
            modes: tuple[Any, ...] = ("later", None, "", True)
            events += [ev.CancelRequested(**stamp, mode=mode) for mode in modes]
        if ev.RunResumed in accepted:
            tools: tuple[Any, ...] = (None, (LOOK, LOOK), ("look",), (None,))
            events += [ev.RunResumed(**stamp, tools=one) for one in tools]
            if ev.UndoRequested in accepted:
                events += [ev.UndoRequested(**stamp, tools=one) for one in tools]
        if self.run.facts.ended is not None and self.run.facts.ended.status == "answered":
            events.append(ev.RunResumed(**stamp, tools=TOOLS))
        return events + self._wrong_ends() + self._wrong_undoing()

    def _wrong_ends(self) -> list[Any]:
        """Any end but the one that is due."""
        if ev.RunEnded not in ACCEPTS[self.run.phase]:
            return []
        stamp, effect = self.stamp(), self.run.machine.next(self.now)
        due = (effect.status, effect.reason, effect.answer) if isinstance(effect, Finish) else None
        ends: tuple[Any, ...] = ("answered", "max_steps", "cancelled", "journal_error", "nonsense", None)
        said = [(status, reason, answer) for status in ends for reason, answer in (("", None), ("", "an answer"))]
        said += [("awaiting_approval", reason, None) for reason in ("", *pauses(self.run.facts))]
        if due is not None:
            said += [(due[0], due[1], f"{due[2]} and more"), (due[0], f"{due[1]} and more", due[2])]
        timeless = self.run.facts.open and only_people_can_go_on(self.run.facts, EVER)
        return [
            ev.RunEnded(**stamp, status=status, reason=reason, answer=answer)
            for status, reason, answer in said
            if (status, reason, answer) != due and not (timeless and status == "awaiting_approval")
        ]

    def _wrong_undoing(self) -> list[Any]:
        """Compensations out of order, twice, of what needs none, and ends of what never began."""
        facts, stamp, accepted = self.run.facts, self.stamp(), ACCEPTS[self.run.phase]
        if ev.UndoStarted not in accepted or facts.start is None:
            return []
        effect, run_id = self.run.machine.next(self.now), facts.start.run_id
        due = (effect.call.step, effect.call.position) if isinstance(effect, UndoCall) else None
        places: list[tuple[Any, Any]] = [(step, at) for step in range(facts.replies + 2) for at in range(-1, 3)]
        places += [(None, 0), (1, None), (1.0, 0), (1, False), ("1", 0)]
        events: list[Any] = []
        for step, position in places:
            place = {**stamp, "step": step, "position": position}
            is_due = (step, position) == due and type(step) is type(position) is int
            if not is_due or facts.in_undo is not None:
                events.append(ev.UndoStarted(**place, key=f"{run_id}:{step}:{position}"))
            keys: tuple[Any, ...] = ("", f"{run_id}:{step}:{position}0", f"{run_id}:{step}:9", None)
            events += [ev.UndoStarted(**place, key=key) for key in keys]
            if not is_due or facts.in_undo is None:
                events.append(ev.CallUndone(**place, outcome="ok"))
            words: tuple[Any, ...] = ("in_doubt", "", None)
            events += [ev.CallUndone(**place, outcome=word) for word in words]
        return events

    def _hostile_new(self) -> list[Any]:
        start = ev.RunStarted(**self.stamp(), run_id="r", agent="a", model="m", messages=HISTORIES[0], tools=TOOLS)
        wrong: list[dict[str, Any]] = [
            {"messages": (Result("a", "look", "ok", ()),)},
            {"messages": (Assistant("", (ToolCall("a", "look", "{}"),)),)},
            {"messages": (Assistant("", ()),)},
            {"messages": (User((Text("x"),)), System("late"))},
            {"messages": None},
            {"messages": ("text",)},
            {"messages": (User(None),)},  # type: ignore[arg-type]
            {"tools": (LOOK, LOOK)},
            {"tools": None},
            {"tools": ("look",)},
            {"settings": None},
            {"run_id": None},
        ]
        return [msgspec.structs.replace(start, **one) for one in wrong]

    def _hostile_ready(self) -> list[Any]:
        stamp, effect = self.stamp(), self.run.machine.next(self.now)
        step, attempt = self.run.facts.replies + 1, self.run.facts.failures + 1
        if isinstance(effect, Finish):
            may_go_on = effect.status in ("deadline", "context_overflow")  # by another clock, or another reckoning
            start = ev.StepStarted(**stamp, step=step, attempt=attempt, reserved=Reservation())
            return self._wrong_cuts() + ([] if may_go_on else [start])
        if isinstance(effect, UndoCall):
            return []
        if isinstance(effect, Compact | Summarise):
            return self._wrong_cuts()
        pairs: tuple[tuple[Any, Any], ...] = (
            (step - 1, attempt),
            (step + 1, attempt),
            (step, attempt + 1),
            (step, attempt - 1),
            (None, attempt),
            (float(step), attempt),
            (step, float(attempt)),
        )
        reserved: Any = None
        return [
            *(ev.StepStarted(**stamp, step=one, attempt=two, reserved=Reservation()) for one, two in pairs),
            ev.StepStarted(**stamp, step=step, attempt=attempt, reserved=reserved),
            *self._wrong_cuts(),
        ]

    def _wrong_cuts(self) -> list[Any]:
        """Cuts that would split an exchange, or reach beyond the transcript, or where nothing may be cut; and summaries
        that nobody wrote."""
        state, stamp, length = self.run.machine.state, self.stamp(), len(self.run.machine.state.messages)
        spans: list[tuple[Any, Any]] = [(0, 0), (-1, 1), (1, 0), (length, length + 1), (0, length + 1), (None, 1)]
        spans += [(0.0, 1), ("0", 1), (0, None), (-length, length)]
        spans += [(index, index + 1) for index, one in enumerate(state.messages) if isinstance(one, Result)]
        spans += [(0, index) for index, one in enumerate(state.messages) if isinstance(one, Result)]
        waits = state.retry_at is not None and self.now < state.retry_at
        if state.compaction is None or state.stop is not None or waits:
            spans += [(start, end) for start in range(length) for end in range(start + 1, length + 1)][:12]
        whole = (0, length)
        events: list[Any] = [self._cut("elide", *span) for span in spans]
        events += [self._cut("drop", *span) for span in (*spans, whole)] if self._newest_stays() else []
        exchanges = [index for index, one in enumerate(state.messages) if isinstance(one, Assistant)]
        events += [self._cut("drop", one, two) for one, two in pairwise(exchanges[1:])]
        nobody_wrote = "a summary" if self.run.cuts.written is None else self.run.cuts.written[2] + " and more"
        events += [self._cut("summarise", 0, one, summary=nobody_wrote) for one in exchanges[1:]]
        events += [ev.SummaryStarted(**stamp, start=one, end=two, reserved=Reservation()) for one, two in spans]
        events += [self._cut("nonsense", *whole), self._cut(None, *whole)]
        texts = ("a summary", "", self.run.cuts.written[2] + " and more" if self.run.cuts.written else "it was not so")
        events += [self._cut("summarise", *whole, summary=text) for text in texts]
        if self.run.cuts.written:
            start, end, text = self.run.cuts.written
            events += [self._cut("summarise", *span, summary=text) for span in ((start + 1, end), (start, end - 1))]
        if self.run.cuts.was_tried or self.run.cuts.failures >= MOST_SUMMARIES:
            spans = [(0, one) for one in exchanges]
            events += [ev.SummaryStarted(**stamp, start=one, end=two, reserved=Reservation()) for one, two in spans]
        return events

    def _newest_stays(self) -> bool:
        """Whether there is an exchange, which then may not be dropped."""
        return any(isinstance(one, Assistant) for one in self.run.machine.state.messages)

    def _cut(self, strategy: Any, start: Any, end: Any, summary: str = "") -> Any:
        fields = {"strategy": strategy, "start": start, "end": end, "summary": summary}
        return ev.ContextCompacted(**self.stamp(), **fields, arithmetic=NO_ARITHMETIC)

    def _hostile_summarising(self) -> list[Any]:
        replies: list[Any] = [
            "text",
            Reply(None),  # type: ignore[arg-type]
            Reply("x", stop="nonsense"),  # type: ignore[arg-type]
            Reply("x", usage=Usage(-1, 5)),
            Reply("x", usage=Usage(5, 5, -1)),
            Reply("x", usage=Usage(5, 5, 0, -1)),
            Reply("x", usage=Usage(5, 5, 0, 0, -1)),
            Reply("x", usage=Usage(1.5, 5)),  # type: ignore[arg-type]
            Reply("x", dollars=-0.1),
        ]
        used: tuple[Any, ...] = (Usage(-1), Usage(1, -1), 7)
        events: list[Any] = [ev.SummaryEnded(**self.stamp(), reply=reply) for reply in replies]
        return events + [ev.SummaryEnded(**self.stamp(), kind="E", usage=one) for one in used]

    def _hostile_awaiting_model(self) -> list[Any]:
        stamp, step = self.stamp(), self.run.facts.replies + 1
        attempt = self.run.facts.failures + 1
        replies: list[Any] = [
            None,
            "text",
            Reply(None),  # type: ignore[arg-type]
            Reply("x", stop="nonsense"),  # type: ignore[arg-type]
            Reply("x", (ToolCall("a", "look", "{}"),), "nonsense"),  # type: ignore[arg-type]
            Reply("x", ("look",)),  # type: ignore[arg-type]
            Reply("x", (ToolCall(None, "look", "{}"),)),  # type: ignore[arg-type]
            Reply("x", (ToolCall("a", None, "{}"),)),  # type: ignore[arg-type]
            Reply("x", (ToolCall("a", "look", None),)),  # type: ignore[arg-type]
            Reply("x", usage=Usage(-1, 5)),
            Reply("x", usage=Usage(5, -1)),
            Reply("x", usage=Usage(1.5, 5)),  # type: ignore[arg-type]
            Reply("x", usage=(1, 2)),  # type: ignore[arg-type]
            Reply("x", dollars=-1.0),
        ]
        events: list[Any] = [ev.ModelReplied(**stamp, step=step, reply=reply) for reply in replies]
        steps: tuple[Any, ...] = (step - 1, step + 1, None, float(step), str(step))
        events += [ev.ModelReplied(**stamp, step=one, reply=Reply("x")) for one in steps]
        events += [ev.ModelFailed(**stamp, step=one, attempt=attempt, kind="E", message="x") for one in steps]
        events += [
            ev.ModelFailed(**stamp, step=step, attempt=one, kind="E", message="x")
            for one in (attempt - 1, attempt + 1, float(attempt), None)
        ]
        good = ev.ModelFailed(**stamp, step=step, attempt=attempt, kind="E", message="x", retryable=True)
        events += [msgspec.structs.replace(good, retry_after_s=wait) for wait in ("3", True)]
        events.append(msgspec.structs.replace(good, message=None))
        events += [msgspec.structs.replace(good, usage=used) for used in (Usage(-1), Usage(1, -1), 7)]
        return events

    def _hostile_awaiting_tools(self) -> list[Any]:
        facts, events = self.run.facts, list[Any]()
        for place in _foreign_places(facts.replies, len(facts.open)):
            events += self._ends(*place)
        for call in facts.open:
            events += self._hostile_call(call) + self._wrong_decisions(call)
        return events

    def _ends(self, step: Any, position: Any) -> list[Any]:
        place = {**self.stamp(), "step": step, "position": position}
        return [
            ev.CallStarted(**place, key=f"r:{step}:{position}"),
            ev.CallReturned(**place, parts=(Text("x"),)),
            ev.CallFailed(**place, outcome="tool_error", text="x"),
            ev.CallTimedOut(**place, after_s=1.0, text="x"),
            ev.CallAbandoned(**place, outcome="in_doubt", text="x"),
            ev.ChildPaused(**place, run_id="c"),
        ]

    def _hostile_call(self, call: CallFacts) -> list[Any]:
        """Wrong events for one call of the open exchange."""
        assert self.run.machine.state.exchange is not None
        assert self.run.facts.start is not None
        one = self.run.machine.state.exchange.calls[call.position]
        place = {**self.stamp(), "step": call.step, "position": call.position}
        key = f"{self.run.facts.start.run_id}:{call.step}:{call.position}"
        again = self._ends(call.step, call.position)
        again[0] = ev.CallStarted(**place, key=key)
        if call.outcome:
            return again
        words: tuple[Any, ...] = ("ok", "timeout", "cancelled", "in_doubt", "nonsense", "", None)
        events: list[Any] = [ev.CallFailed(**place, outcome=word, text="x") for word in words]
        events += self._wrong_spending(call)
        words = ("ok", "tool_error", "not_executed", "nonsense", None)
        events += [ev.CallAbandoned(**place, outcome=word, text="x") for word in words]
        tool = self.run.facts.tools.get(call.name)
        if not one.started or tool is None or not tool.child:
            events.append(again[5])
        if call.paused is not None:
            nothing = Left(*(None if getattr(self.run.facts.limits, kind) is None else 0 for kind in KINDS))
            events += [*again[:4], ev.CallStarted(**place, key=key, allowance=nothing)]
        if one.started:
            words = ("unknown_tool", "invalid_arguments", "not_executed", "denied")
            events += [ev.CallFailed(**place, outcome=word, text="x") for word in words]
            events.append(again[0])
            foreign: tuple[Any, ...] = (None, "text", (1,), (Text(1),))  # type: ignore[arg-type]
            events += [ev.CallReturned(**place, parts=parts) for parts in foreign]
            if one.spec is not None and not one.spec.read_only:
                events.append(ev.CallAbandoned(**place, outcome="cancelled", text="x"))
        else:
            events += again[2:4] if call in to_reconcile(self.run.facts) else again[1:4]
            keys: tuple[Any, ...] = ("", key + "0", None, "r:0:0")
            events += [ev.CallStarted(**place, key=wrong) for wrong in keys]
            events += self._wrong_allowances(call, place, key)
            if not call.runs:
                events.append(again[4])
                events.append(ev.CallAbandoned(**place, outcome="cancelled", text="x"))
            events += self._before_its_time(call, place, again)
            runnable = self.run.machine.next(self.now)
            if isinstance(runnable, RunTools) and call.position in {c.position for c in runnable.calls}:
                events.append(ev.CallFailed(**place, outcome="not_executed", text="x"))
        return events

    def _wrong_allowances(self, call: CallFacts, place: dict[str, Any], key: str) -> list[Any]:
        """Nothing for a call that spends, something for one that does not, more than there is, less than nothing."""
        limits, tool = self.run.facts.limits, self.run.facts.tools.get(call.name)
        right = Left(*(None if getattr(limits, kind) is None else 0 for kind in KINDS))
        if tool is None or not tool.spends or call.spec is None:
            given: list[Any] = [right, Left(1, 1, 1, 1.0)]
        else:
            given = [None, 7, *(msgspec.structs.replace(right, **{kind: -1}) for kind in KINDS)]
            for kind in KINDS:
                limit = getattr(limits, kind)
                if limit is not None:
                    given.append(msgspec.structs.replace(right, **{kind: None}))
                    back = self.run.facts.money.held_for({call.place}, kind) if call.is_one_run else 0
                    more = max(0, limit - self.run.facts.used(kind) + back) + (1 if kind != "dollars" else 0.001)
                    given.append(msgspec.structs.replace(right, **{kind: more}))
                    if kind == "tool_calls" and not call.runs:
                        given.append(msgspec.structs.replace(right, **{kind: more - 1}))
                else:
                    given.append(msgspec.structs.replace(right, **{kind: 1}))
        return [ev.CallStarted(**place, key=key, allowance=one) for one in given]

    def _wrong_spending(self, call: CallFacts) -> list[Any]:
        """Less than nothing, and anything by a call that was given nothing."""
        place = {**self.stamp(), "step": call.step, "position": call.position}
        spent: list[Any] = [7, Spent(steps=-1), Spent(dollars=-0.1), Spent(input_tokens=-5), Spent(unpriced=-1)]
        spent += [Spent(presumed_tokens=-1), Spent(presumed_dollars=-0.1)]
        if not any(one.place == call.place for one in self.run.facts.money.open):
            spent += [Spent(), Spent(steps=1)]
        events: list[Any] = [ev.CallReturned(**place, parts=(Text("x"),), spent=one) for one in spent]
        for outcome in ("tool_error", "not_executed", "invalid_arguments", "denied", "unknown_tool"):
            events += [ev.CallFailed(**place, outcome=outcome, text="x", spent=one) for one in spent]  # type: ignore[arg-type]
        return events

    def _before_its_time(self, call: CallFacts, place: dict[str, Any], ends: list[Any]) -> list[Any]:
        """Wrong events for a call that has not started (again)."""
        facts, events = self.run.facts, list[Any]()
        if not call.is_unsettled:
            events.append(ev.CallReconciled(**place, verdict="not_done"))
        others = [other.spec for other in under_way(self.run)]
        alone = call.name in facts.tools and facts.runs_alone(call)
        beside = others and (alone or not all(spec is not None and spec.read_only for spec in others))
        if call.is_refused or facts.cancelled or beside or self._lacks_leave(call):
            events.append(ends[0])
        if call.is_unsettled and not call.is_refused:
            events.append(ev.CallFailed(**place, outcome="invalid_arguments", text="x"))
            events += [] if facts.nothing_starts(self.now) else [ends[4]]
        if call.spec is not None and call.name in facts.tools and not call.gone:
            events.append(ev.CallFailed(**place, outcome="unknown_tool", text="x"))
        if not call.denied:
            events.append(ev.CallFailed(**place, outcome="denied", text="x"))
        return events

    def _lacks_leave(self, call: CallFacts) -> bool:
        """Nobody has allowed the call, or nobody has said what is to become of it."""
        return call.is_unsettled or (self.run.facts.needs_leave(call) and call.leave is None)

    def _wrong_decisions(self, call: CallFacts) -> list[Any]:
        """Leave for calls that do not wait for it; forged, late, given twice, given with what is no object."""
        state, facts = self.run.machine.state, self.run.facts
        assert state.exchange is not None
        others = [binding(state, facts.replies, other, one) for other, one in enumerate(state.exchange.calls)]
        place = {**self.stamp(), "step": call.step, "position": call.position}
        right = others[call.position]
        wrong: list[Any] = ["", "0" * 32, None, right[:-1], right.upper(), *others]
        digests = [digest for digest in wrong if digest != right and (digest != right.upper() or right.islower())]
        events: list[Any] = []
        for digest in digests:
            events.append(ev.ApprovalAsked(**place, digest=digest, about="in_doubt" if call.to_person else "call"))
            events += [ev.ApprovalGiven(**place, digest=digest, verdict=one, by="eve") for one in ("allow", "deny")]
        given = ev.ApprovalGiven(**place, digest=right, verdict="allow", by="eve")
        texts: tuple[Any, ...] = ("", "{", "[1]", '"x"', "3", "{}{}", '{"a":NaN}', "[" * 300, 5)
        events += [msgspec.structs.replace(given, arguments=text) for text in texts[1:]]
        events.append(msgspec.structs.replace(given, verdict="deny", arguments="{}"))
        words: tuple[Any, ...] = ("maybe", "", None)
        events += [msgspec.structs.replace(given, verdict=word) for word in words]
        if call.doubt:
            events.append(msgspec.structs.replace(given, arguments="{}"))
        about: Any = "call" if call.to_person else "in_doubt"
        events.append(ev.ApprovalAsked(**place, digest=right, about=about))
        if self._is_past_asking(call) or self._waits_for_nobody(call):
            events += [given, msgspec.structs.replace(given, verdict="deny")]
        if self._is_past_asking(call) or call.question is not None or self.run.phase is Phase.ENDED:
            events.append(ev.ApprovalAsked(**place, digest=right, about="in_doubt" if call.to_person else "call"))
        return events

    def _is_past_asking(self, call: CallFacts) -> bool:
        """Nobody has anything to decide about the call."""
        facts = self.run.facts
        if call.outcome or call.is_refused or call.in_hand or call.paused is not None or not facts.needs_leave(call):
            return True
        return holds(call.leave, self.now) or (call.doubt and not call.to_person and call.is_unsettled)

    def _waits_for_nobody(self, call: CallFacts) -> bool:
        """No answer of a person can count now: nobody was asked, or it comes too late."""
        is_late = call.question is not None and not holds(call.question, self.now)
        is_asked = holds(call.question, self.now)
        after_leave = call.leave is not None
        return is_late or after_leave or (not is_asked and (call.to_person or self.run.phase is Phase.ENDED))

    def _hostile_undoing(self) -> list[Any]:
        return []

    def _hostile_ended(self) -> list[Any]:
        """A run that waits for people takes their answers, and nothing else."""
        stamp, facts = self.stamp(), self.run.facts
        if not facts.open:
            place = {**stamp, "step": facts.replies, "position": 0}
            return [ev.ApprovalGiven(**place, digest="0", verdict="allow", by="eve")]
        events: list[Any] = [ev.UndoRequested(**stamp, tools=TOOLS)]
        for step, position in _foreign_places(facts.replies, len(facts.open)):
            place = {**stamp, "step": step, "position": position}
            events.append(ev.ApprovalGiven(**place, digest="0", verdict="allow", by="eve"))
        for call in facts.open:
            events += self._wrong_decisions(call)
        return events


def pauses(facts: Facts) -> list[str]:
    """What a run might say that waits for people, wherever it stands."""
    names = [one.name for one in facts.open if one.question is not None and not one.outcome and not one.is_refused]
    names = names or [one.name for one in facts.open if not one.outcome]
    if not names:
        return ["the call of pay waits for somebody's decision"]
    many = f"{len(names)} calls wait ({', '.join(names)}) for somebody's decision"
    return [f"the call of {names[0]} waits for somebody's decision", many]


def _foreign_places(step: int, calls: int) -> list[tuple[Any, Any]]:
    positions: list[Any] = [-1, calls, 0.0, True, False, None, "0", [], float("nan")]
    return [(step, position) for position in positions] + [(step - 1, 0), (step + 1, 0), (None, 0), (float(step), 0)]


class Impostor(msgspec.Struct, frozen=True):
    """Has what an event has, and is none."""

    seq: int = 0
    at: float = 0.0


NO_ARITHMETIC = Arithmetic(why="asked", tokens_before=0, tokens_after=0, steps=0.0, saves=0.0, costs=0.0, unit="tokens")
NO_EVENTS: list[Any] = [None, "event", {}, 0, object(), Impostor(), ev.RunStarted, ev.Event(seq=0, at=0.0)]
WRONG_TIMES: tuple[Any, ...] = (float("nan"), float("inf"), float("-inf"), -1.0, 1e13, None, "1", True)
