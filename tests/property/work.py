"""Counting the work of the machine: calls of functions, not time, so that the count is the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tenlines.core import events as ev
from tenlines.core.effects import AskHuman, Finish, RunTools, UndoCall
from tenlines.core.limits import Limits, Reservation, Spent
from tenlines.core.machine import Machine
from tenlines.core.transcript import Reply, Text, ToolCall, User


def steps_of_work(machine: Machine, event: ev.AnyEvent) -> int:
    """How many calls, of Python functions and of built-in ones, it takes to apply an event and to ask what is next."""

    def work() -> None:
        machine.apply(event)
        machine.next(event.at)

    return calls_in(work)


def calls_in(work: Callable[[], Any]) -> int:
    """How many calls, of Python functions and of built-in ones, a piece of work takes."""
    count = 0

    def seen(_frame: Any, what: str, _argument: Any) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


class Untouchable(list[Any]):
    """A list of what is past: it may grow at its end and be looked at there, and nowhere else."""

    def _no(self, *_: Any) -> Any:
        raise AssertionError("the history was walked over")

    __iter__ = __contains__ = __eq__ = __add__ = __reversed__ = copy = index = count = sort = insert = remove = _no
    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        assert isinstance(index, int)
        assert index < 0, "the history was looked into"
        return super().__getitem__(index)


def one_step(step: int, seq: int) -> list[ev.AnyEvent]:
    """A step with a message, two calls and their results. What a tool says differs each time."""
    stamp: list[dict[str, Any]] = [{"seq": seq + i, "at": 100.0 + step} for i in range(8)]
    calls = (ToolCall("", "look", "{}"), ToolCall(f"id{step}", "look", '{"a":1}'))
    return [
        ev.MessageQueued(**stamp[0], parts=(Text("go on"),)),
        ev.StepStarted(**stamp[1], step=step, attempt=1, reserved=Reservation()),
        ev.ModelReplied(**stamp[2], step=step, reply=Reply("", calls, "tool_calls")),
        ev.CallStarted(**stamp[3], step=step, position=0, key=f"r:{step}:0"),
        ev.CallReturned(**stamp[4], step=step, position=0, parts=(Text(f"{step} a"),)),
        ev.CallStarted(**stamp[5], step=step, position=1, key=f"r:{step}:1"),
        ev.CallTimedOut(**stamp[6], step=step, position=1, after_s=1.0, text=f"{step} b"),
        ev.LateResultArrived(**stamp[7], step=step, position=1, outcome="ok", text="late"),
    ]


def work_of_step(steps: int) -> list[int]:
    """The work of each event of the step that follows a history of so many steps."""
    machine, tools = Machine(), (ev.ToolSpec("look", read_only=True),)
    settings = ev.Settings(limits=Limits(steps=None), tell_left=True)
    start = ev.RunStarted(
        seq=0, at=1.0, run_id="r", agent="a", model="m", messages=(User(()),), tools=tools, settings=settings
    )
    machine.apply(start)
    for step in range(1, steps + 1):
        for event in one_step(step, machine.state.seq + 1):
            machine.apply(event)
    state = machine.state
    state.messages, state.records, state.warnings = map(Untouchable, (state.messages, state.records, state.warnings))
    return [steps_of_work(machine, event) for event in one_step(steps + 1, state.seq + 1)]


def check_work(few: int = 20, many: int = 2_000) -> None:
    """Law 11: an event costs after many steps what it costs after a few."""
    short, long = work_of_step(few), work_of_step(many)
    assert all(b <= a + 2 for a, b in zip(short, long, strict=True)), (short, long)
    assert work_of_calls(200) < 11 * work_of_calls(20), "answering the calls of one message is quadratic"
    assert work_of_spending(200) < 11 * work_of_spending(20), "what many calls may spend is quadratic"
    for by_whom in ("policy", "ann"):
        assert work_of_leave(200, by_whom) < 11 * work_of_leave(20, by_whom), "asking about many calls is quadratic"


def work_of_spending(calls: int) -> int:
    """The work of one message with so many calls that spend and run together."""
    run, tools = Count(), (ev.ToolSpec("ask", read_only=True, spends=True),)
    run.tell(ev.RunStarted, run_id="r", agent="a", model="m", messages=(User(()),), tools=tools)
    run.tell(ev.StepStarted, step=1, attempt=1, reserved=Reservation())
    run.tell(ev.ModelReplied, step=1, reply=Reply("", tuple(ToolCall("", "ask", "{}") for _ in range(calls))))
    offered = run.next().calls
    assert len(offered) == calls
    for one in offered:
        place = {"step": 1, "position": one.position}
        run.tell(ev.CallStarted, **place, key=one.key, allowance=one.allowance)
    for one in offered:
        run.tell(ev.CallReturned, step=1, position=one.position, parts=(Text(f"{one.position}"),), spent=Spent(steps=0))
    assert not run.machine.state.account.holders
    return run.work


def work_of_calls(calls: int) -> int:
    """The work of one message with so many calls, started and answered one by one."""
    machine = Machine()
    tools = (ev.ToolSpec("send"),)
    machine.apply(ev.RunStarted(seq=0, at=1.0, run_id="r", agent="a", model="m", messages=(User(()),), tools=tools))
    asked = tuple(ToolCall("", "send", "{}") for _ in range(calls))
    events: list[ev.AnyEvent] = [
        ev.StepStarted(seq=1, at=1.0, step=1, attempt=1, reserved=Reservation()),
        ev.ModelReplied(seq=2, at=1.0, step=1, reply=Reply("", asked)),
    ]
    for position in range(calls):
        seq = 3 + 2 * position
        events += [
            ev.CallStarted(seq=seq, at=1.0, step=1, position=position, key=f"r:1:{position}"),
            ev.CallReturned(seq=seq + 1, at=1.0, step=1, position=position, parts=(Text(f"{position}"),)),
        ]
    return sum(steps_of_work(machine, event) for event in events)


class Count:
    """A machine whose work is counted, and the driver that a test needs for it."""

    def __init__(self) -> None:
        self.machine, self.work = Machine(), 0

    def tell(self, kind: type[ev.AnyEvent], /, **fields: Any) -> None:
        event: Any = kind(seq=self.machine.state.seq + 1, at=1.0, **fields)
        self.work += calls_in(lambda: self.machine.apply(event))

    def next(self) -> Any:
        effects: list[Any] = []
        self.work += calls_in(lambda: effects.append(self.machine.next(1.0)))
        return effects[0]


def work_of_leave(calls: int, by_whom: str) -> int:
    """The work of one message with so many calls that need leave, and that are undone in the end.

    The policy speaks at once; a person answers while the run has paused. Either way each call then runs by itself.
    """
    run, tools = Count(), (ev.ToolSpec("pay", approve=True, undoable=True),)
    run.tell(ev.RunStarted, run_id="r", agent="a", model="m", messages=(User(()),), tools=tools)
    asked = tuple(ToolCall("", "pay", "{}") for _ in range(calls))
    run.tell(ev.StepStarted, step=1, attempt=1, reserved=Reservation())
    run.tell(ev.ModelReplied, step=1, reply=Reply("", asked))
    questions = run.next()
    assert isinstance(questions, AskHuman)
    for one in questions.questions:
        place = {"step": 1, "position": one.call.position, "digest": one.digest}
        kind: Any = ev.ApprovalGiven if by_whom == "policy" else ev.ApprovalAsked
        run.tell(kind, **place, **({"verdict": "allow", "by": by_whom} if kind is ev.ApprovalGiven else {}))
    if isinstance(end := run.next(), Finish):
        run.tell(ev.RunEnded, status=end.status, reason=end.reason)
        for one in questions.questions:
            place = {"step": 1, "position": one.call.position, "digest": one.digest}
            run.tell(ev.ApprovalGiven, **place, verdict="allow", by=by_whom)
        run.tell(ev.RunResumed, tools=tools)
    while isinstance(effect := run.next(), RunTools):
        (call,) = effect.calls
        run.tell(ev.CallStarted, step=1, position=call.position, key=call.key)
        run.next()
        run.tell(ev.CallReturned, step=1, position=call.position, parts=(Text(f"{call.position}"),))
    run.tell(ev.CancelRequested, mode="now")
    run.tell(ev.RunEnded, status="cancelled", reason=run.next().reason)
    run.tell(ev.UndoRequested, tools=tools)
    while isinstance(undo := run.next(), UndoCall):
        run.tell(ev.UndoStarted, step=1, position=undo.call.position, key=undo.call.key)
        run.tell(ev.CallUndone, step=1, position=undo.call.position, outcome="ok")
    assert len(run.machine.state.undone) == calls
    return run.work
