"""A history that came from elsewhere: is it a valid transcript, and what has to be mended before it is one.

The machine only ever starts from a valid transcript and only ever appends closed exchanges, so that one broken
message can never be stored. What a person or another program hands in is mended here, once, and every change is
said in a sentence that goes into the run's first event.

The choices, held everywhere: a result without a call is dropped and its text kept in the report; of two results
for one call the first stays; a call without a result gets one that says that none was recorded; messages between
calls and their results move behind the results; an assistant message that says nothing is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tenlines.core import outcomes
from tenlines.core.transcript import Assistant, Message, Note, Result, System, Text, ToolCall, User


class Mended(NamedTuple):
    """A valid transcript, and what was changed to make it one."""

    messages: tuple[Message, ...]
    repairs: tuple[str, ...]


def first_fault(messages: Sequence[Message]) -> str:
    """What is wrong with a transcript, or "". One pass."""
    seen: set[str] = set()
    owed: deque[str] = deque()  # a reply may have thousands of calls
    spoken = False
    for index, message in enumerate(messages):
        if owed and not (isinstance(message, Result) and message.call_id == owed[0]):
            return f"message {index}: the call {owed[0]!r} has no result here"
        if isinstance(message, Result):
            if not owed:
                return f"message {index}: the result for {message.call_id!r} belongs to no open call"
            owed.popleft()
        elif isinstance(message, Assistant):
            if not message.text and not message.calls and not message.opaque:
                return f"message {index}: an assistant message without text and without calls"
            for call in message.calls:
                if not call.id or call.id in seen:
                    return f"message {index}: the call id {call.id!r} is empty or not unique"
                seen.add(call.id)
                owed.append(call.id)
        elif isinstance(message, System) and spoken:
            return f"message {index}: a system message after the conversation has begun"
        spoken = spoken or not isinstance(message, System)
    return f"the call {owed[0]!r} at the end has no result" if owed else ""


def without_calls(messages: Iterable[Message]) -> tuple[Message, ...]:
    """What was said, without any trace of tools: for handing a conversation over to somebody who has none of them.

    Calls and results go together, and so do artefacts of reasoning, which belong to what followed them, and notes of
    the loop, which speak of calls. An assistant message that did nothing but call is dropped.
    """
    kept: list[Message] = []
    for message in messages:
        if isinstance(message, Assistant) and message.text.strip():
            kept.append(Assistant(message.text))
        elif isinstance(message, System | User):
            kept.append(message)
    return tuple(kept)


def mend(messages: Iterable[Message]) -> Mended:
    """Make a valid transcript of any list of messages. Mending twice changes nothing more."""
    mender = _Mender()
    for message in messages:
        mender.take(message)
    mender.close()
    return Mended(tuple(mender.systems + mender.out), tuple(mender.repairs))


class _Mender:
    """Walks once; holds the exchange that is open."""

    def __init__(self) -> None:
        self.systems: list[Message] = []
        self.out: list[Message] = []
        self.repairs: list[str] = []
        self.ids: set[str] = set()
        self.assistant: Assistant | None = None
        self.wanted: dict[str, deque[int]] = {}
        self.results: list[Result | None] = []
        self.behind: list[Message] = []
        self.arrived: list[int] = []
        self.index = -1

    def take(self, message: Message) -> None:
        self.index += 1
        match message:
            case System():
                if self.out or self.assistant is not None:
                    self._say("a system message inside the conversation was moved to the front")
                self.systems.append(message)
            case Result():
                self._result(message)
            case Assistant(text, calls, opaque):
                self.close()
                if not text.strip() and not calls and not opaque:
                    self._say("an assistant message without text and without calls was dropped")
                elif calls:
                    self._open(message)
                else:
                    self.out.append(message)
            case User() | Note():
                (self.behind if self.assistant is not None else self.out).append(message)

    def close(self) -> None:
        """Answer what is unanswered, write the exchange, then what stood in between."""
        if self.assistant is None:
            return
        self.out.append(self.assistant)
        if self.arrived != sorted(self.arrived):
            self._say("the results of a message with several calls stood in another order; they are in call order now")
        for call, result in zip(self.assistant.calls, self.results, strict=True):
            if result is None:
                text = outcomes.unrecorded(call.name)
                result = Result(call.id, call.name, "in_doubt", (Text(text),))
                self._say(f"the call {call.id!r} of {call.name} had no result; one was filled in that says so")
            self.out.append(result)
        self.out.extend(self.behind)
        self.assistant, self.wanted, self.results, self.behind, self.arrived = None, {}, [], [], []

    def _open(self, message: Assistant) -> None:
        calls = []
        for position, call in enumerate(message.calls):
            new = call.id
            if not new or new in self.ids:
                new = f"call_h{self.index}_{position}"
                while new in self.ids:
                    new += "_"
                self._say(f"the call id {call.id!r} is empty or not unique; it is {new!r} now")
            self.ids.add(new)
            self.wanted.setdefault(call.id, deque()).append(position)
            calls.append(self._call(call, new))
        self.assistant = Assistant(
            message.text if message.text.strip() else "", tuple(calls), message.opaque, message.rebased
        )
        self.results = [None] * len(calls)

    def _call(self, call: ToolCall, new_id: str) -> ToolCall:
        parsed = outcomes.parse_arguments(call.arguments)
        if parsed.value is None:
            self._say(
                f"the arguments of {new_id!r} {parsed.problem}; they are sent as {{}}: "
                f"{outcomes.quote(call.arguments, 120)}"
            )
        name = outcomes.wire_name(call.name)
        if name != call.name:
            self._say(f"the tool name {outcomes.quote(call.name, 80)} is not usable; it is {name!r} now")
        return ToolCall(new_id, name, call.arguments if parsed.value else "{}")

    def _result(self, message: Result) -> None:
        position = self._place(message)
        if self.assistant is None or position is None:
            self._say(
                f"a result for {message.call_id!r} belongs to no call and was dropped: "
                f"{outcomes.quote(message.text, 200)}"
            )
        elif self.results[position] is not None:
            self._say(f"a second result for {message.call_id!r} was dropped: {outcomes.quote(message.text, 200)}")
        else:
            if self.behind:
                self._say(f"a message stood between the call {message.call_id!r} and its result; it was moved behind")
            call = self.assistant.calls[position]
            self.arrived.append(position)
            self.results[position] = Result(call.id, call.name, message.outcome, message.parts)

    def _place(self, message: Result) -> int | None:
        """The call that a result is for: by id; repeated ids are taken in order."""
        positions = self.wanted.get(message.call_id)
        if not positions:
            return None
        return positions.popleft() if len(positions) > 1 else positions[0]

    def _say(self, what: str) -> None:
        self.repairs.append(f"message {self.index}: {what}")
