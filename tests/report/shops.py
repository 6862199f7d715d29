"""Runs of a shop's support agent, of any length, with what such runs hold: long results, failures, waits, a child."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Finish, RunTools
from tenlines.core.limits import Limits, Price, Repeats, Spent
from tenlines.core.machine import Machine
from tenlines.core.transcript import Opaque, Reply, System, Text, ToolCall, Usage, User

PRICE = Price(input=3, output=15, cache_read=0.3)
TOOLS = (
    ev.ToolSpec("get_order", "One order by its number.", {"type": "object"}, read_only=True),
    ev.ToolSpec("get_tracking", "Where a parcel is now.", read_only=True),
    ev.ToolSpec("refund", "Pays money back.", approve=True),
    ev.ToolSpec("research", "Asks another agent.", spends=True, read_only=True),
)


def _thought(text: str) -> tuple[Opaque, ...]:
    return (Opaque("anthropic", "m", {"blocks": [{"type": "thinking", "thinking": text, "signature": "Zm9v"}]}),)


class Shop:
    """A run that goes on until it has so many steps. Times are those of real models and tools."""

    def __init__(self, steps: int, *, run_id: str = "r", task: str = "Where is order 1042?", **fields: Any) -> None:
        self.machine, self.log, self.at, self.run_id = Machine(), list[ev.AnyEvent](), 1_796_040_000.0, run_id
        limits = fields.pop("limits", Limits(steps=steps + 10, dollars=1e6, seconds=1e6))
        settings = ev.Settings(limits=limits, price=PRICE, repeats=Repeats(told_after=None, invalid_in_a_row=None))
        messages = (System("You are a careful support agent.\nLook things up."), User((Text(task),)))
        fields = {"run_id": run_id, "agent": "support", "model": "m", "settings": settings, "tools": TOOLS} | fields
        self.tell(ev.RunStarted, messages=messages, **fields)
        for number in range(1, steps + 1):
            self.step(number, is_last=number == steps)

    def tell(self, kind: Any, /, after: float = 0.0, **fields: Any) -> None:
        self.at += after
        event = kind(seq=len(self.log), at=self.at, **fields)
        self.machine.apply(event)
        self.log.append(event)

    def step(self, number: int, *, is_last: bool) -> None:
        effect = self.machine.next(self.at)
        if not isinstance(effect, CallModel):
            return
        self.tell(ev.StepStarted, 0.01, step=number, attempt=1, reserved=effect.reserved)
        held = 1_800 + 640 * (number - 1)
        usage = Usage(held, 40 + number % 70, held - 640 if number > 1 else 0)
        if is_last:
            reply = Reply("Order 1042 was shipped as TRK77 and is in Leipzig.", usage=usage)
        else:
            text = "" if number % 3 else f"Order {1000 + number} is next; then its parcel."
            opaque = _thought(f"I need order {1000 + number} first.") if number % 5 == 0 else ()
            reply = Reply(text, tuple(self.calls(number)), usage=usage, opaque=opaque)
        self.tell(ev.ModelReplied, 1.5 + number % 7 / 3, step=number, reply=reply)
        if not is_last:
            self.run_tools(number)

    def calls(self, number: int) -> Iterator[ToolCall]:
        yield ToolCall(f"a{number}", "get_order", json.dumps({"order_id": str(1000 + number)}))
        if number % 4 == 0:
            yield ToolCall(f"b{number}", "get_tracking", json.dumps({"number": f"TRK{number % 3}"}))

    def run_tools(self, number: int) -> None:
        effect: Any = self.machine.next(self.at)
        assert isinstance(effect, RunTools)
        for call in effect.calls:
            self.tell(ev.CallStarted, 0.001, step=number, position=call.position, key=call.key)
        for call in effect.calls:
            place = {"step": number, "position": call.position}
            if call.name == "get_tracking" and number % 12 == 0:
                failed = {"outcome": "tool_error", "text": "get_tracking failed", "detail": "Traceback: no such parcel"}
                self.tell(ev.CallFailed, 0.2, **place, **failed)
            else:
                self.tell(ev.CallReturned, 0.2, **place, parts=(Text(result(number, call.name)),))

    def end(self) -> list[ev.AnyEvent]:
        due = self.machine.next(self.at)
        assert isinstance(due, Finish)
        self.tell(ev.RunEnded, 0.001, status=due.status, reason=due.reason, answer=due.answer)
        return as_read(self.log)


def result(number: int, tool: str) -> str:
    """A result as long as such results are."""
    if tool == "get_tracking":
        return "\n".join(f"2026-11-{day:02} 08:1{day % 10}  hub {day * number}" for day in range(1, 31))
    lines = [{"sku": f"A-{number}-{n}", "quantity": n, "price": 9.99 + n} for n in range(1 + number % 12)]
    return json.dumps({"order_id": str(1000 + number), "status": "shipped", "lines": lines})


def shop(steps: int, **fields: Any) -> list[ev.AnyEvent]:
    """The log of a run that answers on its last step."""
    return Shop(steps, **fields).end()


def family() -> dict[str, list[ev.AnyEvent]]:
    """A run, one under a call of it, and one under that."""
    return dict(_family())


def _family() -> Iterator[tuple[str, list[ev.AnyEvent]]]:
    for name, parent, under in (("inner", "middle:1:0", ""), ("middle", "outer:1:0", "inner"), ("outer", "", "middle")):
        yield name, as_read(_asks(name, parent, under) if under else Shop(3, run_id=name, parent=parent).end())


def _asks(name: str, parent: str, under: str) -> list[ev.AnyEvent]:
    run = Shop(0, run_id=name, parent=parent, task=f"Ask for what {under} finds", limits=Limits(steps=9))
    effect: Any = run.machine.next(run.at)
    run.tell(ev.StepStarted, step=1, attempt=1, reserved=effect.reserved)
    reply = Reply("", (ToolCall("c", "research", '{"what": "orders"}'),), usage=Usage(1_000, 20))
    run.tell(ev.ModelReplied, 1.0, step=1, reply=reply)
    effect = run.machine.next(run.at)
    place = {"step": 1, "position": 0}
    run.tell(ev.CallStarted, **place, key=f"{name}:1:0", allowance=effect.calls[0].allowance)
    spent = Spent(steps=3, input_tokens=5_000, output_tokens=90, dollars=0.02, runs=(under,))
    run.tell(ev.CallReturned, 5.0, **place, parts=(Text("three orders"),), spent=spent)
    effect = run.machine.next(run.at)
    run.tell(ev.StepStarted, step=2, attempt=1, reserved=effect.reserved)
    run.tell(ev.ModelReplied, 1.0, step=2, reply=Reply("Three orders.", usage=Usage(1_100, 20)))
    return run.end()


def as_read(log: list[ev.AnyEvent]) -> list[ev.AnyEvent]:
    """A log as a journal gives it back."""
    return [codec.decode(codec.encode(event)) for event in log]


def put(journal: Any, *logs: list[ev.AnyEvent]) -> None:
    """Write logs into a journal."""
    for log in logs:
        start = log[0]
        assert isinstance(start, ev.RunStarted)
        for event in log:
            journal.append(start.run_id, event)
        journal.commit(start.run_id)


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a view."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from texts_in(getattr(value, name))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from texts_in(key)
            yield from texts_in(one)
