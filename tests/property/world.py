"""The world outside the machine, in miniature: the alphabets, an honest driver, and a hostile one.

Everything is kept small on purpose: a few names, a few arguments, a few times, so that the interesting meetings
(the same id twice, a result after a cancel) happen often. What comes next is picked by a `Chooser`, so the same
world is walked by a seeded generator (fast) and by hypothesis (which shrinks what it finds).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol, TypeVar

import msgspec
from laws import ACCEPTS, CallFacts, Checked, as_object, under_way

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.effects import CallModel, Finish, Refusal, RunnableCall, RunTools, Sleep
from tenlines.core.limits import Limits, Price, Repeats, Reservation, Retry
from tenlines.core.state import Phase
from tenlines.core.transcript import (
    Assistant,
    Json,
    Message,
    Note,
    Opaque,
    Part,
    Reply,
    Result,
    System,
    Text,
    ToolCall,
    Usage,
    User,
)

T = TypeVar("T")


class Chooser(Protocol):
    """Who decides what happens next."""

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        ...


class Seeded:
    """A chooser that is quick: a generator with a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]


# --- alphabets ----------------------------------------------------------------------------------------

LOOK = ev.ToolSpec("look", "Look at it.", {"type": "object"}, read_only=True)
PEEK = ev.ToolSpec("peek", read_only=True)
POLL = ev.ToolSpec("poll", read_only=True, repeatable=True)
PUT = ev.ToolSpec("put", idempotent=True)
SEND = ev.ToolSpec("send")
PUSH = ev.ToolSpec("push", repeatable=True)
FINISH = ev.ToolSpec("finish", final=True)
TELL = ev.ToolSpec("tell", read_only=True, final=True)
TOOLS = (LOOK, PEEK, POLL, PUT, SEND, PUSH, FINISH, TELL)
TOOLSETS = ((TOOLS,) * 8) + ((LOOK, SEND), (msgspec.structs.replace(PUT, idempotent=False), LOOK, SEND), ())

KNOWN = tuple(spec.name for spec in TOOLS)
NAMES = KNOWN * 3 + ("nope", "", "look<|channel|>", "get weather", "x" * 100)
GOOD = ("{}", '{"a":1}', '{"a":1}', ' {"b": [1, null], "a": ""} ', "", "null", '{"n":123456789012345678901}')
BAD = ('{"a":', "[1]", "3", '"x"', '{"a":NaN}', "{}{}", '{"n":1e999}', '{"a":"\\ud800"}', '{"a":' + "[" * 300)
ARGUMENTS = GOOD * 2 + BAD
IDS = ("a", "a", "b", "c", "", "call_1_0", "a\n")
STOPS: tuple[str, ...] = (
    "length",
    "content_filter",
    "refusal",
    "pause",
    "context_overflow",
    "malformed_call",
    "unknown",
)
WORDS = ("half a pair \ud83d", "", " ", "Yes.", "Yes.", "No.", '{"name": "look", "arguments": {}}')
USAGES = (None, Usage(), Usage(10, 5), Usage(0, 0), Usage(100, 50, 20, 10, 5), Usage(10, None))
OPAQUE = (Opaque("p", "m", {"sig": "x"}),)
RESULTS: tuple[tuple[Part, ...], ...] = (
    (Text("same"),),
    (Text("same"),),
    (Text("other"),),
    (Text(""),),
    (Text("half a pair \ud83d"),),
    (),
    (Json(0), Text("x"), Json([])),
)
HISTORIES: tuple[tuple[Message, ...], ...] = (
    (User((Text("task"),)),),
    (System("rules"), User((Text("task"),))),
    (
        User((Text("before"),)),
        Assistant("", (ToolCall("a", "look", "{}"), ToolCall("call_1_0", "look", "{}"))),
        Result("a", "look", "ok", (Text("1"),)),
        Result("call_1_0", "look", "ok", (Text("2"),)),
        Note("n"),
        User((Text("task"),)),
    ),
    (),
)
PRICES = (None, Price(input=1, output=2), Price(input=3, output=15, cache_read=0.3, cache_write=3.75))
PRICES_ODD = (Price(input=0, output=0), Price(input=1000, output=2000), Price(input=1, output=1, cache_read=9))


ROUNDS = ("a", "a", "ab", "ab", "abc", "baaa", "baa", "abac", "P", "aP")


def some_limits(chooser: Chooser) -> Limits:
    """Limits of every kind, none and zero included."""
    pick = chooser.pick
    if pick((True, False)):
        return Limits(
            steps=pick((None, None, 20, 20, 3, 2, 1)), last_words=pick((False, True)), seconds=pick((None, 50))
        )
    return Limits(
        steps=pick((None, 0, 1, 2, 3, 5, 20, 20)),
        tool_calls=pick((None,) * 6 + (0, 1, 2, 3)),
        tokens=pick((None,) * 8 + (0, 300, 2000, 9000)),
        dollars=pick((None,) * 8 + (0, 0.001, 0.1, 5.0)),
        seconds=pick((None,) * 6 + (0, 5, 50)),
        on_tool_limit=pick(("stop", "continue")),
        last_words=pick((False, True)),
    )


def some_settings(chooser: Chooser) -> ev.Settings:
    """Everything that the machine decides by."""
    pick = chooser.pick
    return ev.Settings(
        limits=some_limits(chooser),
        repeats=pick(
            (Repeats(), Repeats(told_after=None, invalid_in_a_row=None), Repeats(told_after=2, invalid_in_a_row=2))
        ),
        retry=pick((Retry(attempts=1), Retry(attempts=2, first_wait_s=0.5), Retry(attempts=3, max_wait_s=1.0))),
        price=pick(PRICES + PRICES_ODD),
        max_parallel=pick((1, 2, 8)),
        max_output_tokens=pick((None, 20)),
        tool_choice=pick(("auto", "auto", "none", "required", "look")),
        keep_tool_choice=pick((False, True)),
        blank_replies=pick((0, 2)),
        empty_is_answer=pick((False, False, True)),
        tell_left=pick((False, False, True)),
    )


def some_reply(chooser: Chooser) -> Reply:
    """What a model says: sometimes sense."""
    pick = chooser.pick
    names, arguments = pick((NAMES,) + (KNOWN,) * 4), pick((ARGUMENTS,) + (GOOD,) * 4)
    calls = tuple(ToolCall(pick(IDS), pick(names), pick(arguments)) for _ in range(pick((0, 1, 1, 2, 2, 3))))
    usual = ("tool_calls", "tool_calls", "end", "stop_sequence") if calls else ("end", "end", "stop_sequence")
    stop: Any = pick(usual * 12 + STOPS)
    dollars = pick((None, None, None, 0.0, 0.02))
    return Reply(pick(WORDS), calls, stop, pick(USAGES), pick(((), (), OPAQUE)), "m", dollars, pick(((), ("odd",))))


# --- the world ----------------------------------------------------------------------------------------


class World:
    """A driver in miniature, and everything that can happen to it."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser, self.run = chooser, Checked()
        self.now = 100.0
        self.running: dict[tuple[int, int], RunnableCall] = {}
        self.moves = 0
        self.stubborn = ""
        """The round in which a stubborn model goes, a letter for each exchange."""
        self.kinds = _USUAL

    @property
    def log(self) -> list[ev.AnyEvent]:
        return self.run.facts.log

    def stamp(self) -> dict[str, Any]:
        return {"seq": len(self.log), "at": self.now}

    def begin(self) -> None:
        """The first event."""
        pick = self.chooser.pick
        self.stubborn = pick(("",) * 9 + (pick(ROUNDS),))
        self.kinds = _QUIET if self.stubborn else pick((_USUAL, _ROUGH, _CRASHY, _HOSTILE))
        settings = some_settings(self.chooser)
        if self.stubborn:
            settings = msgspec.structs.replace(settings, limits=Limits(steps=40))
        self.run.take(
            ev.RunStarted(
                **self.stamp(),
                run_id=pick(("r", "r:1")),
                agent="agent",
                model="m",
                messages=pick(HISTORIES),
                tools=TOOLS if self.stubborn else pick(TOOLSETS),
                settings=settings,
            )
        )

    def go(self, moves: int) -> None:
        """So many moves of the world."""
        for _ in range(moves):
            if self.run.phase is Phase.ENDED and self.chooser.pick((True, False)):
                break
            self.move()
        self.run.check()

    def move(self) -> None:
        """One thing happens. Mostly the driver goes on; now and then something comes from outside."""
        self.moves += 1
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
        else:
            self.speak()

    # --- the honest driver ---

    def drive(self) -> None:
        """Do what the machine asks for, or report the end of something that is under way."""
        phase = self.run.phase
        if phase is Phase.AWAITING_MODEL:
            self.answer_request()
            return
        effect = self.run.machine.next(self.now)
        match effect:
            case CallModel():
                self.run.take(
                    ev.StepStarted(**self.stamp(), step=effect.step, attempt=effect.attempt, reserved=effect.reserved)
                )
            case Sleep(until):
                self.now = self.chooser.pick((until, until, (self.now + until) / 2))
                self.run.now = max(self.run.now, self.now)
                self.run.check()
            case RunTools():
                self.run_tools(effect)
            case Finish(status, reason, answer) if phase is not Phase.ENDED:
                self.run.take(ev.RunEnded(**self.stamp(), status=status, reason=reason, answer=answer))

    def answer_request(self) -> None:
        """The model replies, or the request fails."""
        started = next(event for event in reversed(self.log) if isinstance(event, ev.StepStarted))
        if self.stubborn or self.chooser.pick((True,) * 6 + (False,)):
            reply = self.stubborn_reply() if self.stubborn else some_reply(self.chooser)
            self.run.take(ev.ModelReplied(**self.stamp(), step=started.step, reply=reply))
            return
        kind = self.chooser.pick(
            ("RateLimited",) * 4 + ("OutOfMoves", "ContextTooLong", "E") + ("ProtocolRejected",) * 3
        )
        violations = ("RSN-EDITED", "RSN-PREFIX", "RSN-FOREIGN", "MEDIA-PLACE", "PAIR-MISSING")
        self.run.take(
            ev.ModelFailed(
                **self.stamp(),
                step=started.step,
                attempt=started.attempt,
                kind=kind,
                message="it failed",
                usage=self.chooser.pick((None, None, Usage(7, 2), Usage(5))),
                violation=self.chooser.pick(violations) if kind == "ProtocolRejected" else "",
                retryable=kind == "RateLimited",
                retry_after_s=self.chooser.pick((None, None, 0.0, 3.0)),
            )
        )

    def stubborn_reply(self) -> Reply:
        """The next of the round."""
        letter = self.stubborn[self.run.facts.replies % len(self.stubborn)]
        name = "poll" if letter == "P" else "look"
        return Reply("", (ToolCall("", name, f'{{"a":"{letter}"}}'),), "tool_calls", Usage(1, 1))

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
        elif self.stubborn or self.chooser.pick((True, True, True, True, False)):
            self.run.take(ev.CallStarted(**self.stamp(), step=one.step, position=one.position, key=one.key))
            self.running[one.step, one.position] = one
        else:
            outcome: Any = self.chooser.pick(("invalid_arguments", "denied"))
            self.run.take(self.failed(one, outcome, f"{one.name} was refused: {outcome}"))

    def refusal(self, one: Refusal) -> ev.AnyEvent:
        """As a driver reports what the machine refused."""
        if one.outcome in ("in_doubt", "cancelled"):
            outcome: Any = one.outcome
            return ev.CallAbandoned(
                **self.stamp(), step=one.step, position=one.position, outcome=outcome, text=one.text
            )
        return self.failed(one, one.outcome, one.text)

    def failed(self, one: Any, outcome: Any, text: str) -> ev.CallFailed:
        return ev.CallFailed(**self.stamp(), step=one.step, position=one.position, outcome=outcome, text=text)

    def end_call(self, call: RunnableCall) -> None:
        """A call that runs comes to its end."""
        place = {"step": call.step, "position": call.position}
        del self.running[call.step, call.position]
        how = "ok" if self.stubborn else self.chooser.pick(("ok", "ok", "ok", "error", "timeout"))
        if how == "ok":
            parts = RESULTS[0] if self.stubborn else self.chooser.pick(RESULTS)
            full = self.chooser.pick((None, None, "the whole"))
            self.run.take(ev.CallReturned(**self.stamp(), **place, parts=parts, full=full))
        elif how == "error":
            self.run.take(self.failed(call, "tool_error", outcomes.raised(call.name, "ValueError", "no")))
        else:
            spec = self.run.facts.tools[call.name]
            text = outcomes.timed_out(call.name, 2.0, spec.read_only)
            self.run.take(ev.CallTimedOut(**self.stamp(), **place, after_s=2.0, text=text))

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
        what = self.chooser.pick(("say", "say", "limits", "drain", "now"))
        if what == "say":
            self.run.take(ev.MessageQueued(**self.stamp(), parts=(Text(f"said {len(self.log)}"),)))
        elif what == "limits":
            self.run.take(ev.LimitsRaised(**self.stamp(), limits=some_limits(self.chooser)))
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
        same = tuple(facts.tools.values())
        tools = same if self.chooser.pick((True, True, True, False)) else self.chooser.pick(TOOLSETS)
        self.run.take(ev.RunResumed(**self.stamp(), tools=tools))

    def arrive_late(self) -> None:
        """A call that was given up ends after all."""
        owed = sorted(self.run.facts.owed)
        if owed:
            step, position = self.chooser.pick(owed)
            self.run.take(ev.LateResultArrived(**self.stamp(), step=step, position=position, outcome="ok", text="late"))

    # --- the hostile driver ---

    def be_hostile(self) -> None:
        """An event that the machine must not take."""
        event = self.chooser.pick(self.hostile())
        self.run.refuse(event)

    def hostile(self) -> list[Any]:
        """What must be refused here: wrong kinds, and right kinds with wrong values."""
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
        if self.run.facts.ended is not None and self.run.facts.ended.status == "answered":
            events.append(ev.RunResumed(**stamp, tools=TOOLS))
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
        ends: tuple[Any, ...] = ("answered", "max_steps", "cancelled", "journal_error", "nonsense", None)
        events: list[Any] = [
            ev.RunEnded(**stamp, status=status, reason=reason, answer=answer)
            for status in ends
            for reason, answer in (("", None), ("", "an answer"))
            if not isinstance(effect, Finish)
            or (status, reason, answer) != (effect.status, effect.reason, effect.answer)
        ]
        if isinstance(effect, Finish):
            right = ev.RunEnded(**stamp, status=effect.status, reason=effect.reason, answer=effect.answer)
            events.append(msgspec.structs.replace(right, answer=f"{effect.answer} and more"))
            events.append(msgspec.structs.replace(right, reason=f"{effect.reason} and more"))
            if effect.status != "deadline":
                step, attempt = self.run.facts.replies + 1, self.run.facts.failures + 1
                events.append(ev.StepStarted(**stamp, step=step, attempt=attempt, reserved=Reservation()))
        else:
            step, attempt = self.run.facts.replies + 1, self.run.facts.failures + 1
            pairs: tuple[tuple[Any, Any], ...] = (
                (step - 1, attempt),
                (step + 1, attempt),
                (step, attempt + 1),
                (step, attempt - 1),
                (None, attempt),
                (float(step), attempt),
                (step, float(attempt)),
            )
            events += [ev.StepStarted(**stamp, step=one, attempt=two, reserved=Reservation()) for one, two in pairs]
            reserved: Any = None
            events.append(ev.StepStarted(**stamp, step=step, attempt=attempt, reserved=reserved))
        return events

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
            events += self._hostile_call(call)
        return events

    def _ends(self, step: Any, position: Any) -> list[Any]:
        place = {**self.stamp(), "step": step, "position": position}
        return [
            ev.CallStarted(**place, key=f"r:{step}:{position}"),
            ev.CallReturned(**place, parts=(Text("x"),)),
            ev.CallFailed(**place, outcome="tool_error", text="x"),
            ev.CallTimedOut(**place, after_s=1.0, text="x"),
            ev.CallAbandoned(**place, outcome="in_doubt", text="x"),
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
        words = ("ok", "tool_error", "not_executed", "nonsense", None)
        events += [ev.CallAbandoned(**place, outcome=word, text="x") for word in words]
        if one.started:
            words = ("unknown_tool", "invalid_arguments", "not_executed", "denied")
            events += [ev.CallFailed(**place, outcome=word, text="x") for word in words]
            events.append(again[0])
            foreign: tuple[Any, ...] = (None, "text", (1,), (Text(1),))  # type: ignore[arg-type]
            events += [ev.CallReturned(**place, parts=parts) for parts in foreign]
            if one.spec is not None and not one.spec.read_only:
                events.append(ev.CallAbandoned(**place, outcome="cancelled", text="x"))
        else:
            events += again[1:4]
            keys: tuple[Any, ...] = ("", key + "0", None, "r:0:0")
            events += [ev.CallStarted(**place, key=wrong) for wrong in keys]
            if not call.runs:
                events.append(again[4])
                events.append(ev.CallAbandoned(**place, outcome="cancelled", text="x"))
            others = [other.spec for other in under_way(self.run)]
            beside = others and not all(spec is not None and spec.read_only for spec in (one.spec, *others))
            if call.spec is None or as_object(call.raw) is None or self.run.facts.cancelled or beside:
                events.append(again[0])
            if call.spec is not None and call.name in self.run.facts.tools:
                events.append(ev.CallFailed(**place, outcome="unknown_tool", text="x"))
            runnable = self.run.machine.next(self.now)
            if isinstance(runnable, RunTools) and call.position in {c.position for c in runnable.calls}:
                events.append(ev.CallFailed(**place, outcome="not_executed", text="x"))
        return events

    def _hostile_ended(self) -> list[Any]:
        return []


def _foreign_places(step: int, calls: int) -> list[tuple[Any, Any]]:
    positions: list[Any] = [-1, calls, 0.0, True, False, None, "0", [], float("nan")]
    return [(step, position) for position in positions] + [(step - 1, 0), (step + 1, 0), (None, 0), (float(step), 0)]


class Impostor(msgspec.Struct, frozen=True):
    """Has what an event has, and is none."""

    seq: int = 0
    at: float = 0.0


NO_EVENTS: list[Any] = [None, "event", {}, 0, object(), Impostor(), ev.RunStarted, ev.Event(seq=0, at=0.0)]
WRONG_TIMES: tuple[Any, ...] = (float("nan"), float("inf"), float("-inf"), -1.0, 1e13, None, "1", True)

_USUAL = ("drive",) * 22 + ("hostile", "hostile", "time", "restart", "late", "speak")
_ROUGH = ("drive",) * 12 + ("hostile", "time", "time", "restart", "late", "speak", "speak")
_CRASHY = ("drive",) * 10 + ("restart", "restart", "late", "time", "speak")
_HOSTILE = ("drive", "drive", "hostile")
_QUIET = ("drive",) * 40 + ("hostile", "time", "restart")


def walk(seed: int, moves: int = 40) -> World:
    """One random run of the world, from its seed."""
    world = World(Seeded(seed))
    if world.chooser.pick((False,) * 9 + (True,)):
        world.be_hostile()
    world.begin()
    world.go(world.chooser.pick((moves // 4, moves // 2, moves, moves, 2 * moves)) * (4 if world.stubborn else 1))
    return world
