"""A run that is told what happens, a word for each thing that can."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.deciding import binding
from tenlines.core.effects import CallModel, Compact, Finish, Summarise
from tenlines.core.limits import Spent
from tenlines.core.machine import Machine
from tenlines.core.transcript import Reply, Text, ToolCall, User
from tenlines.errors import InvalidEvent

TOOLS = (
    ev.ToolSpec("look", read_only=True),
    ev.ToolSpec("send"),
    ev.ToolSpec("put", idempotent=True),
    ev.ToolSpec("finish", final=True),
    ev.ToolSpec("tell", read_only=True, final=True),
)
CAREFUL = (
    ev.ToolSpec("look", read_only=True),
    ev.ToolSpec("send"),
    ev.ToolSpec("pay", approve=True, undoable=True),
    ev.ToolSpec("pry", read_only=True, approve=True),
    ev.ToolSpec("keep", approve=True, idempotent=True, undoable=True),
    ev.ToolSpec("wire", reconcilable=True, undoable=True),
    ev.ToolSpec("book", undoable=True),
)
"""Tools that need leave, that can say what became of a call, that can take it back."""


class Run:
    """A machine and the log that it was fed, with a word for each thing that can happen."""

    def __init__(self, tools: tuple[ev.ToolSpec, ...] = TOOLS, **settings: Any) -> None:
        self.machine, self.log, self.at = Machine(), list[ev.AnyEvent](), 100.0
        messages = (User((Text("task"),)),)
        configured = ev.Settings(**settings)
        self.tell(ev.RunStarted, run_id="r", agent="a", model="m", messages=messages, tools=tools, settings=configured)

    def tell(self, kind: type[ev.AnyEvent], /, **fields: Any) -> Run:
        event = kind(seq=len(self.log), at=self.at, **fields)
        self.machine.apply(event)
        self.log.append(event)
        return self

    @property
    def effect(self) -> Any:
        return self.machine.next(self.at)

    def ask(self) -> Run:
        effect = self.effect
        assert isinstance(effect, CallModel)
        return self.tell(ev.StepStarted, step=effect.step, attempt=effect.attempt, reserved=effect.reserved)

    def reply(self, text: str = "", *calls: ToolCall, **fields: Any) -> Run:
        step = self.machine.state.account.steps + 1
        return self.ask().tell(ev.ModelReplied, step=step, reply=Reply(text, calls, **fields))

    def call(self, *names: str) -> Run:
        return self.reply("", *(ToolCall(f"{len(self.log)}-{i}", name, "{}") for i, name in enumerate(names)))

    def start(self, position: int = 0) -> Run:
        """With what the call is offered, where it spends on its own."""
        step = self.machine.state.account.steps
        offered = getattr(self.effect, "calls", ())
        given = next((one.allowance for one in offered if one.position == position), None)
        return self.tell(ev.CallStarted, step=step, position=position, key=f"r:{step}:{position}", allowance=given)

    def returned(self, position: int = 0, text: str = "done", spent: Spent | None = None) -> Run:
        step = self.machine.state.account.steps
        return self.tell(ev.CallReturned, step=step, position=position, parts=(Text(text),), spent=spent)

    def failed(self, position: int, outcome: str, text: str = "no") -> Run:
        step = self.machine.state.account.steps
        return self.tell(ev.CallFailed, step=step, position=position, outcome=outcome, text=text)

    def say(self, text: str) -> Run:
        return self.tell(ev.MessageQueued, parts=(Text(text),))

    def cancel(self, mode: str) -> Run:
        return self.tell(ev.CancelRequested, mode=mode)

    def resume(self, tools: tuple[ev.ToolSpec, ...] = TOOLS) -> Run:
        return self.tell(ev.RunResumed, tools=tools)

    def finish(self) -> Finish:
        effect = self.effect
        assert isinstance(effect, Finish)
        self.tell(ev.RunEnded, status=effect.status, reason=effect.reason, answer=effect.answer)
        return effect

    # --- cuts ---

    def exchange(self, text: str = "done") -> Run:
        """One step with one call and its result."""
        return self.call("look").start().returned(text=text)

    def compact(self) -> Compact:
        """Make the cut that is due."""
        cut = self.effect
        assert isinstance(cut, Compact), cut
        self.tell(ev.ContextCompacted, **msgspec.structs.asdict(cut))
        return cut

    def summarise(self) -> Summarise:
        """Ask for the summary that is due."""
        wanted = self.effect
        assert isinstance(wanted, Summarise), wanted
        fields = {"start": wanted.start, "end": wanted.end, "reserved": wanted.request.reserved}
        self.tell(ev.SummaryStarted, **fields)
        return wanted

    # --- leave, doubt, undoing ---

    def digest(self, position: int = 0) -> str:
        exchange = self.machine.state.exchange
        assert exchange is not None
        return binding(self.machine.state, exchange.step, position, exchange.calls[position])

    def place(self, position: int = 0) -> dict[str, Any]:
        return {"step": self.machine.state.account.steps, "position": position}

    def question(self, position: int = 0, **fields: Any) -> Run:
        return self.tell(ev.ApprovalAsked, **{**self.place(position), "digest": self.digest(position), **fields})

    def decide(self, position: int = 0, verdict: str = "allow", **fields: Any) -> Run:
        fields = {"digest": self.digest(position), "by": "ann", **fields}
        return self.tell(ev.ApprovalGiven, **self.place(position), verdict=verdict, **fields)

    def reconciled(self, verdict: str, position: int = 0) -> Run:
        return self.tell(ev.CallReconciled, **self.place(position), verdict=verdict)

    def refuse_all(self) -> Run:
        """As a driver reports what the machine refused."""
        for one in self.effect.refusals:
            kind = ev.CallAbandoned if one.outcome in ("in_doubt", "cancelled") else ev.CallFailed
            self.tell(kind, step=one.step, position=one.position, outcome=one.outcome, text=one.text)
        return self

    def request_undo(self, tools: tuple[ev.ToolSpec, ...] = CAREFUL) -> Run:
        return self.tell(ev.UndoRequested, by="ann", tools=tools)

    def undo(self, outcome: str = "ok") -> Run:
        call = self.effect.call
        self.tell(ev.UndoStarted, step=call.step, position=call.position, key=call.key)
        return self.tell(ev.CallUndone, step=call.step, position=call.position, outcome=outcome)

    @property
    def messages(self) -> list[Any]:
        return self.machine.state.messages

    def refuses(self, kind: type[ev.AnyEvent], /, **fields: Any) -> str:
        before = codec.encode(self.machine.state.start), repr(self.machine.state)  # type: ignore[arg-type]
        with pytest.raises(InvalidEvent) as caught:
            self.tell(kind, **fields)
        assert (codec.encode(self.machine.state.start), repr(self.machine.state)) == before  # type: ignore[arg-type]
        return str(caught.value)
