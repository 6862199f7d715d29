"""The world outside the machine, in miniature: an honest driver, and everything that can happen to it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from alphabet import (
    ANSWERING,
    CAREFUL,
    CAREFUL_SETS,
    HISTORIES,
    LONG,
    PRICES,
    RESULTS,
    ROUNDS,
    SPENDING,
    SPENDING_SETS,
    TIERED,
    TOOLS,
    TOOLSETS,
    Chooser,
    Seeded,
    long_settings,
    some_compaction,
    some_counting,
    some_limits,
    some_settings,
    tight_limits,
)
from answers import Model
from call_facts import Place, holds
from hostile_events import NO_ARITHMETIC, Hostile
from laws import Checked
from purses import Purses

from tenlines.core import context, metering, outcomes
from tenlines.core import events as ev
from tenlines.core.effects import (
    AskHuman,
    CallModel,
    Compact,
    Finish,
    Question,
    Reconcile,
    Refusal,
    RunnableCall,
    RunTools,
    Sleep,
    Summarise,
    UndoCall,
)
from tenlines.core.limits import Limits, Reservation
from tenlines.core.shrinking import may_summarise, room_for_output
from tenlines.core.state import Phase
from tenlines.core.transcript import Assistant, Text

Kind: TypeAlias = Literal["", "money", "long"]
"""What a world is about: anything; tight limits and calls that spend; long transcripts that are cut."""
KINDS_OF_WORLD: tuple[Kind, ...] = ("", "money", "long")
LONGER = 60
"""Moves of a walk in the worlds about money and cuts."""
MOST_CUTS = 2
"""Cuts between two requests."""


class World(Model):
    """A driver in miniature, and everything that can happen to it."""

    def __init__(self, chooser: Chooser, kind: Kind = "") -> None:
        self.chooser, self.run, self.kind = chooser, Checked(), kind
        self.purses = Purses(chooser, honest=True)
        self.rate = 1.0
        """Tokens that the provider counts for each that is estimated."""
        self.cuts = 0
        """Cuts that the machine wanted since the model was asked last."""
        self.now = 100.0
        self.running: dict[Place, RunnableCall] = {}
        self.in_undo: RunnableCall | None = None
        self.careful = False
        """Its tools need leave, can say what became of a call, can take it back."""
        self.stubborn = ""
        """The round in which a stubborn model goes, a letter for each exchange."""
        self.kinds = _USUAL

    def stamp(self) -> dict[str, Any]:
        return {"seq": len(self.log), "at": self.now}

    def begin(self) -> None:
        """The first event."""
        pick = self.chooser.pick
        if self.kind:
            self.kinds, settings, tools = self._special()
        else:
            self.stubborn = pick(("",) * 9 + (pick(ROUNDS),))
            self.kinds = _QUIET if self.stubborn else pick((_USUAL, _ROUGH, _CRASHY, _HOSTILE))
            self.careful = not self.stubborn and pick((False, True))
            if self.careful:
                self.kinds = pick((_USUAL, _CRASHY, _CRASHY, _CAREFUL, _HOSTILE))
            settings = some_settings(self.chooser, self.careful)
            if self.stubborn:
                settings = msgspec.structs.replace(settings, limits=Limits(steps=40))
            tools = CAREFUL if self.careful else TOOLS if self.stubborn else pick(TOOLSETS)
        self.run.take(
            ev.RunStarted(
                **self.stamp(),
                run_id=pick(("r", "r:1")),
                agent="agent",
                model="m",
                messages=pick(HISTORIES),
                tools=tools,
                settings=settings,
                counting=some_counting(self.chooser),
                changed=pick(("", "", "the instructions")),
            )
        )

    def _special(self) -> tuple[tuple[str, ...], ev.Settings, tuple[ev.ToolSpec, ...]]:
        """What happens in a world about money, or about cuts; what its run decides by; its tools."""
        pick = self.chooser.pick
        self.purses.honest = pick((True, True, True, False))
        prices = (PRICES[1], PRICES[2], TIERED, TIERED) * 3
        self.rate = pick((0.1, 0.7, 1.0, 1.0, 1.6, 5.0))
        if self.kind == "long":
            return pick((_LONG, _LONG, _LONG_ROUGH)), long_settings(self.chooser), pick((TOOLS, TOOLS, ANSWERING))
        settings = some_settings(self.chooser, careful=True)
        settings = msgspec.structs.replace(
            settings, limits=tight_limits(self.chooser), max_output_tokens=20, price=pick((*prices, None))
        )
        return pick((_MONEY, _MONEY, _CRASHY, _HOSTILE)), settings, SPENDING

    def go(self, moves: int) -> None:
        """So many moves of the world."""
        for _ in range(moves):
            if self.run.phase is Phase.ENDED and not self.run.facts.open and self.chooser.pick((True, False)):
                break
            self.move()
        self.run.check()

    def move(self) -> None:
        """One thing happens. Mostly the driver goes on; now and then something comes from outside."""
        kind = self.chooser.pick(self.kinds)
        if kind == "drive":
            self.drive()
        elif kind == "hostile":
            self.be_hostile()
        elif kind == "time":
            self.pass_time()
        elif kind == "restart":
            self.restart()
        elif kind == "late":
            self.arrive_late()
        elif kind == "cut":
            self.cut_wilfully()
        else:
            self.speak()
        self.purses.spend()
        self.purses.check(self.run.facts.money)

    # --- the honest driver ---

    def drive(self) -> None:
        """Do what the machine asks for, or report the end of something that is under way."""
        if self.run.phase is Phase.AWAITING_MODEL:
            self.answer_request()
        elif self.run.phase is Phase.SUMMARISING:
            self.answer_summary()
        elif self.run.phase is Phase.ENDED:
            self.decide_or_undo()
        elif self.careful and (self.running or self.in_undo) and self.chooser.pick((True,) + (False,) * 4):
            self.restart()  # in the middle of something, where it hurts
        else:
            self.perform()

    def perform(self) -> None:
        """What the machine asks for."""
        effect = self.run.machine.next(self.now)
        match effect:
            case CallModel(step, attempt, reserved=reserved, changed=changed):
                fields = {"step": step, "attempt": attempt, "reserved": reserved, "changed": changed}
                self.run.take(ev.StepStarted(**self.stamp(), **fields))
                self.cuts = 0
            case Compact():
                self.cuts, before = self.cuts + 1, self.run.words
                assert self.cuts <= MOST_CUTS, "one cut after the other, and the model is never asked"
                for_later = self.cuts > 1 and effect.arithmetic.why == "window" and self.fits()
                assert not for_later, "cut again for the steps to come, before the model was asked"
                self.run.take(ev.ContextCompacted(**self.stamp(), **msgspec.structs.asdict(effect)))
                assert self.run.words < before, "a cut that makes nothing smaller"
            case Summarise(start, end, request):
                self.run.take(ev.SummaryStarted(**self.stamp(), start=start, end=end, reserved=request.reserved))
            case Sleep(until):
                self.now = self.chooser.pick((until, until, (self.now + until) / 2))
                self.run.now = max(self.run.now, self.now)
                self.run.check()
            case RunTools():
                self.run_tools(effect)
            case AskHuman(questions):
                self.ask(self.chooser.pick(questions))
            case Reconcile(calls):
                self.reconcile(self.chooser.pick(calls))
            case UndoCall(call):
                self.undo(call)
            case Finish(status, reason, answer):
                self.run.take(ev.RunEnded(**self.stamp(), status=status, reason=reason, answer=answer))

    def fits(self) -> bool:
        """Whether the next request fits into the window as it is."""
        state = self.run.machine.state
        window = state.cuts.window
        return window is None or metering.most(state) + room_for_output(state) <= window

    def run_tools(self, effect: RunTools) -> None:
        """Refuse what is to be refused; start what may start; let what runs end, in any order."""
        exchange = self.run.machine.state.exchange
        assert exchange is not None
        for key in list(self.running):
            if key[0] != exchange.step or exchange.calls[key[1]].outcome is not None:
                del self.running[key]  # given up; it may still report late
        options: list[Any] = list(effect.refusals) or [
            call for call in effect.calls if len(self.running) < effect.max_parallel
        ]
        options += [call for key, call in self.running.items() if key not in {(r.step, r.position) for r in options}]
        one = self.chooser.pick(options)
        if isinstance(one, Refusal):
            self.run.take(self.refusal(one))
            self.running.pop((one.step, one.position), None)
        elif (one.step, one.position) in self.running:
            self.end_call(one)
        elif self.stubborn or self.chooser.pick((True,) * (12 if self.kind else 4) + (False,)):
            self.start_call(one)
        else:
            self.run.take(self.failed(one, "invalid_arguments", f"{one.name} was refused: it does not take this"))

    def start_call(self, call: RunnableCall) -> None:
        """The intent, and what may be spent."""
        place = (call.step, call.position)
        fields = {"step": call.step, "position": call.position, "key": call.key, "allowance": call.allowance}
        self.run.take(ev.CallStarted(**self.stamp(), **fields))
        self.running[place] = call
        if call.allowance is not None:
            self.purses.begin(place, call.allowance, is_one_run=self.run.facts.open[call.position].is_one_run)

    def spent(self, place: Place) -> Any:
        """What the call says that it used."""
        return self.purses.end(place) if self.purses.can_say(place) else None

    def refusal(self, one: Refusal) -> ev.AnyEvent:
        """As a driver reports what the machine refused."""
        if one.outcome in ("in_doubt", "cancelled"):
            outcome: Any = one.outcome
            return ev.CallAbandoned(
                **self.stamp(), step=one.step, position=one.position, outcome=outcome, text=one.text
            )
        return self.failed(one, one.outcome, one.text)

    def failed(self, one: Any, outcome: Any, text: str) -> ev.CallFailed:
        spent = self.spent((one.step, one.position)) if outcome == "tool_error" else None
        place = {"step": one.step, "position": one.position}
        return ev.CallFailed(**self.stamp(), **place, outcome=outcome, text=text, spent=spent)

    def end_call(self, call: RunnableCall) -> None:
        """A call that runs comes to its end."""
        place = {"step": call.step, "position": call.position}
        del self.running[call.step, call.position]
        how = "ok" if self.stubborn else self.chooser.pick(("ok", "ok", "ok", "error", "timeout"))
        child = self.run.facts.tools[call.name].child
        if child and self.chooser.pick((True, False, False)):
            waiting = self.chooser.pick(((), (ev.WaitingCall("c", "1.1", "pay"),)))
            self.run.take(ev.ChildPaused(**self.stamp(), **place, run_id="c", waiting=waiting))
            self.purses.pause((call.step, call.position))
            return
        if how == "ok":
            parts = RESULTS[0] if self.stubborn else self.chooser.pick(RESULTS)
            if self.kind == "long":
                parts = (Text(f"{len(self.log)} {self.chooser.pick(LONG)}"),)
            fields = {
                "full": self.chooser.pick((None, None, "the whole")),
                "truncated": self.chooser.pick((False, True)),
            }
            spent, ended = self.spent((call.step, call.position)), ev.ChildRun("c", "answered") if child else None
            self.run.take(ev.CallReturned(**self.stamp(), **place, parts=parts, **fields, spent=spent, child=ended))
        elif how == "error":
            said = self.chooser.pick(LONG) if self.kind == "long" else "no"
            failed = self.failed(call, "tool_error", outcomes.raised(call.name, "ValueError", said))
            stopped = ev.ChildRun("c", "max_steps", said) if child else None
            self.run.take(msgspec.structs.replace(failed, child=stopped))
        else:
            spec = self.run.facts.tools[call.name]
            text = outcomes.timed_out(call.name, 2.0, spec.read_only)
            self.run.take(ev.CallTimedOut(**self.stamp(), **place, after_s=2.0, text=text))

    # --- leave, doubt, undoing ---

    def ask(self, question: Question) -> None:
        """Arguments are checked, then the policy speaks; what it leaves open, and every doubt, is for a person."""
        place = {"step": question.call.step, "position": question.call.position}
        said = self.chooser.pick(("invalid", "allow", "allow", "allow", "edit", "deny", "ask", "ask", "ask"))
        if question.about == "in_doubt" or said == "ask":
            reason = self.chooser.pick(("", "it is a lot"))
            fields = {"digest": question.digest, "about": question.about, "expires_at": question.expires_at}
            self.run.take(ev.ApprovalAsked(**self.stamp(), **place, **fields, reason=reason))
        elif said == "invalid":
            self.run.take(self.failed(question.call, "invalid_arguments", f"{question.call.name} does not take this"))
        else:
            self.give(**place, digest=question.digest, said=said, by="policy", expires_at=question.expires_at)

    def give(self, *, said: str, by: str, **fields: Any) -> None:
        """Somebody decides."""
        edit = self.chooser.pick(('{"a":1}', ' {"b": [1, null], "a": ""} ', "{}")) if said == "edit" else None
        verdict: Any = "deny" if said == "deny" else "allow"
        reason = self.chooser.pick(("", "not today."))
        self.run.take(ev.ApprovalGiven(**self.stamp(), **fields, verdict=verdict, by=by, reason=reason, arguments=edit))

    def reconcile(self, call: RunnableCall) -> None:
        """The tool says what became of its call."""
        place = {"step": call.step, "position": call.position}
        said: Any = self.chooser.pick(("value", "not_done", "unknown"))
        if said == "value":
            self.run.take(ev.CallReturned(**self.stamp(), **place, parts=self.chooser.pick(RESULTS)))
        else:
            self.run.take(ev.CallReconciled(**self.stamp(), **place, verdict=said))

    def undo(self, call: RunnableCall) -> None:
        """The compensation of a call starts, or comes back."""
        place = {"step": call.step, "position": call.position}
        if self.in_undo is None:
            self.run.take(ev.UndoStarted(**self.stamp(), **place, key=call.key))
            self.in_undo = call
            return
        outcome: Any = self.chooser.pick(("ok", "ok", "tool_error", "timeout"))
        self.run.take(ev.CallUndone(**self.stamp(), **place, outcome=outcome, text=""))
        self.in_undo = None

    def decide_or_undo(self) -> None:
        """Of a run that has ended, people decide what waits, or take back what it did."""
        facts = self.run.facts
        if self.chooser.pick((True, False, False, False)):
            self.pass_time()
        waiting = [one for one in facts.open if one.question is not None and not one.outcome and not one.is_refused]
        asked = [(one, one.question) for one in waiting if one.question and holds(one.question, self.now)]
        if asked:
            call, question = self.chooser.pick(asked)
            said = self.chooser.pick(("allow", "allow", "deny", "deny" if call.to_person else "edit"))
            lasts = self.chooser.pick((None, None, self.now + 5.0))
            place = {"step": call.step, "position": call.position}
            self.give(**place, digest=question.digest, said=said, by=self.chooser.pick(("ann", "")), expires_at=lasts)
        elif facts.open or self.kind:
            self.restart()
        elif self.careful:
            self.run.take(ev.UndoRequested(**self.stamp(), by="ann", tools=self.tools_of_a_new_owner()))

    # --- what comes from outside ---

    def pass_time(self) -> None:
        """Time jumps, and the machine may have something else to say."""
        self.now += self.chooser.pick((0.0, 0.5, 1.0, 10.0, 100.0))
        self.run.now = max(self.run.now, self.now)
        self.run.check()

    def speak(self) -> None:
        """Somebody says something, raises a limit, or cancels."""
        if self.run.phase in (Phase.NEW, Phase.ENDED):
            return
        what = self.chooser.pick(("say",) * (12 if self.kind else 2) + ("limits", "drain", "now"))
        if what == "say":
            self.run.take(ev.MessageQueued(**self.stamp(), parts=(Text(f"said {len(self.log)}"),)))
        elif what == "limits":
            limits = tight_limits(self.chooser) if self.kind == "money" else some_limits(self.chooser)
            self.run.take(ev.LimitsRaised(**self.stamp(), limits=limits))
        else:
            mode: Any = what
            self.run.take(ev.CancelRequested(**self.stamp(), mode=mode, reason=self.chooser.pick(("", "enough"))))
            if what == "now":
                self.running.clear()

    def restart(self) -> None:
        """The process dies and another one takes over, with nothing but the log."""
        facts = self.run.facts
        if facts.start is None or (facts.ended is not None and facts.ended.status == "answered"):
            return
        twin = self.run.fork()
        assert twin.machine.state == self.run.machine.state, "the folded log gives another state"
        self.run = twin
        self.running.clear()
        self.in_undo = None
        self.purses.die()
        compaction = some_compaction(self.chooser) if self.kind == "long" and self.chooser.pick((False, True)) else None
        self.run.take(ev.RunResumed(**self.stamp(), tools=self.tools_of_a_new_owner(), compaction=compaction))

    def tools_of_a_new_owner(self) -> tuple[ev.ToolSpec, ...]:
        """Mostly the same."""
        if self.chooser.pick((True, True, True, False)):
            return tuple(self.run.facts.tools.values())
        if self.kind == "money":
            return self.chooser.pick(SPENDING_SETS)
        return self.chooser.pick(CAREFUL_SETS if self.careful else TOOLSETS)

    def be_hostile(self) -> None:
        """Events that the machine must not take."""
        events = self.hostile()
        for _ in range(6):
            self.run.refuse(self.chooser.pick(events))

    def hostile(self) -> list[Any]:
        """What must be refused here."""
        return Hostile(self.run, self.now).events()

    def arrive_late(self) -> None:
        """A call that was given up ends after all."""
        owed = sorted(self.run.facts.owed)
        if owed:
            step, position = self.chooser.pick(owed)
            fields = {"step": step, "position": position, "spent": self.spent((step, position))}
            self.run.take(ev.LateResultArrived(**self.stamp(), **fields, outcome="ok", text="late"))

    def cut_wilfully(self) -> None:
        """Some cut that may be made, whether it is worth it or not."""
        state, pick = self.run.machine.state, self.chooser.pick
        if self.run.phase is not Phase.READY or state.compaction is None or state.stop or not state.messages:
            return
        edges = [index for index, one in enumerate(state.messages) if isinstance(one, Assistant)]
        places = (0, len(state.messages), *edges)
        start, end, strategy = pick((0, pick(places))), pick(places), pick(("elide", "drop", "summarise"))
        is_time = state.retry_at is None or self.now >= state.retry_at
        if not is_time or context.problem(state.messages, context.Span(strategy, start, end, 0, 0)):
            return
        if strategy == "summarise":
            if may_summarise(state) and state.cuts.summary is None:
                self.run.take(ev.SummaryStarted(**self.stamp(), start=start, end=end, reserved=Reservation()))
        else:
            fields = {"strategy": strategy, "start": start, "end": end, "arithmetic": NO_ARITHMETIC}
            self.run.take(ev.ContextCompacted(**self.stamp(), **fields))


_USUAL = ("drive",) * 22 + ("hostile", "hostile", "time", "restart", "late", "speak")
_ROUGH = ("drive",) * 12 + ("hostile", "time", "time", "restart", "late", "speak", "speak")
_CRASHY = ("drive",) * 10 + ("restart", "restart", "late", "time", "speak")
_HOSTILE = ("drive", "drive", "hostile")
_CAREFUL = ("drive",) * 24 + ("hostile", "time", "restart")
_MONEY = ("drive",) * 24 + ("hostile", "time", "restart", "late", "late", "speak")
_LONG = ("drive",) * 100 + ("hostile", "time", "restart", "cut", "cut", "speak")
_LONG_ROUGH = ("drive",) * 30 + ("hostile", "time", "restart", "cut", "cut", "cut", "late", "speak", "speak")
_QUIET = ("drive",) * 40 + ("hostile", "time", "restart")


def walk(seed: int, moves: int = 40, kind: Kind = "") -> World:
    """One random run of the world, from its seed."""
    world = World(Seeded(seed), kind)
    if world.chooser.pick((False,) * 9 + (True,)):
        world.be_hostile()
    world.begin()
    world.go(world.chooser.pick((moves // 4, moves // 2, moves, moves, 2 * moves)) * (4 if world.stubborn else 1))
    return world
