"""What differs between a recorded run and the agent of today, in few words and a short diff."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.leaving import stub
from tenlines.core.state import State
from tenlines.core.transcript import Assistant, File, Image, Message, Part, Result, Text, User

LINES = 24
"""Most lines of a diff."""
WIDTH = 160
"""Most characters of a line of a diff."""


class ReplayMismatch(AssertionError):
    """The agent of today does not do what the recorded one did.

    Attributes:
        step: Number of the step, from 1; 0 before the first.
        part: What differs: `message 2 of the request (system)`, `the description of tool look`, ...
        recorded: What it was, as text.
        now: What it is.
        changed: What else has changed since the recording and may be the cause, one phrase each.
    """

    def __init__(self, run_id: str, step: int, difference: Difference, changed: Sequence[str] = ()) -> None:
        self.step, (self.part, self.recorded, self.now), self.changed = step, difference, tuple(changed)
        lines = [f"step {step} of run {run_id} is not as recorded: {self.part}", *short_diff(self.recorded, self.now)]
        if changed:
            lines.append(f"changed since the recording: {'; '.join(changed)}")
        super().__init__("\n".join(lines))


class Difference(NamedTuple):
    """One thing, as it was and as it is."""

    part: str
    recorded: str
    now: str


# --- requests -----------------------------------------------------------------------------------------


def in_request(recorded: CallModel, now: CallModel, first: int) -> Difference | None:
    """The first difference between two requests, or None.

    Args:
        first: Index of the first message that is looked at; those before it are known to be the same.
    """
    return (
        _in_messages(recorded.messages, now.messages, first)
        or _in_tools(recorded.tools, now.tools)
        or next(_in_values(recorded, now), None)
    )


def _in_values(recorded: CallModel, now: CallModel) -> Iterator[Difference]:
    for name in ("tool_choice", "max_output_tokens", "new_from"):
        was, is_now = getattr(recorded, name), getattr(now, name)
        if was != is_now:
            yield Difference(f"{name} of the request", str(was), str(is_now))


def _in_messages(recorded: Sequence[Message], now: Sequence[Message], first: int) -> Difference | None:
    for index in range(first, max(len(recorded), len(now))):
        was = recorded[index] if index < len(recorded) else None
        is_now = now[index] if index < len(now) else None
        if was != is_now:
            names = dict.fromkeys(_kind(one) for one in (was, is_now) if one is not None)
            part = f"message {index + 1} of the request ({' / '.join(names)})"
            return Difference(part, _message(was), _message(is_now))
    return None


def _kind(message: Message) -> str:
    return f"result of {message.name}" if isinstance(message, Result) else type(message).__name__.lower()


def _message(message: Message | None) -> str:
    """A message as lines: its kind, what it says, its calls."""
    match message:
        case None:
            return "(none)"
        case Assistant(text, calls, opaque):
            lines = [f"{call.name} {call.arguments} [{call.id}]" for call in calls]
            return "\n".join(["assistant:", *([text] if text else []), *lines, *map(_part, opaque)])
        case Result(call_id, _, outcome, parts):
            return "\n".join([f"{_kind(message)} [{call_id}], {outcome}:", *map(_part, parts)])
        case User(parts):
            return "\n".join(["user:", *map(_part, parts)])
        case _:
            return f"{_kind(message)}:\n{message.text}"


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image | File):
        return f"{stub(part)} blake2b:{hashlib.blake2b(part.data, digest_size=4).hexdigest()}"
    return _json(part)


def _in_tools(recorded: Sequence[ev.ToolSpec], now: Sequence[ev.ToolSpec]) -> Difference | None:
    was, is_now = [spec.name for spec in recorded], [spec.name for spec in now]
    if was != is_now:
        return Difference("the tools of the request", "\n".join(was), "\n".join(is_now))
    for old, new in zip(recorded, now, strict=True):
        if old.description != new.description:
            return Difference(f"the description of tool {old.name}", old.description, new.description)
        if old.parameters != new.parameters:
            return Difference(f"the parameters of tool {old.name}", _json(old.parameters), _json(new.parameters))
    return None


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2).decode()


# --- what else has changed ----------------------------------------------------------------------------


def changes(recorded: ev.RunStarted, now: ev.RunStarted) -> list[str]:
    """What is not part of any request, and may be why a run goes another way: settings, and the words about tools."""
    phrases = list(_changed_fields("", recorded.settings, now.settings))
    specs = {spec.name: spec for spec in now.tools}
    for old in recorded.tools:
        if old.name in specs:
            new = msgspec.structs.replace(
                specs[old.name], description=old.description, parameters=old.parameters, source=old.source
            )
            phrases += [f"tool {old.name}: {phrase}" for phrase in _changed_fields("", old, new)]
    return phrases


def _changed_fields(prefix: str, recorded: msgspec.Struct, now: msgspec.Struct) -> Iterator[str]:
    for name in recorded.__struct_fields__:
        was, is_now = getattr(recorded, name), getattr(now, name)
        if isinstance(was, msgspec.Struct) and type(was) is type(is_now):
            yield from _changed_fields(f"{prefix}{name}.", was, is_now)
        elif was != is_now:
            yield f"{prefix}{name} {_shown(was)} -> {_shown(is_now)}"


def _shown(value: object) -> str:
    """A value in few words: where one side has a whole set of settings, the other has none."""
    return f"{type(value).__name__}(...)" if isinstance(value, msgspec.Struct) else f"{value}"[:WIDTH]


# --- events -------------------------------------------------------------------------------------------


def in_words(state: State, event: ev.AnyEvent | ev.Event) -> str:
    """What an event says that was decided here, with the name of its call."""
    match event:
        case ev.StepStarted():
            return f"the model is asked (attempt {event.attempt})"
        case ev.RunEnded():
            return f"the run ends as {event.status}\n{event.reason if event.answer is None else event.answer}"
        case ev.CallStarted():
            return f"{named(state, event)} starts"
        case ev.CallFailed() | ev.CallAbandoned():
            return f"{named(state, event)} does not run, {event.outcome}:\n{event.text}"
        case ev.ApprovalAsked():
            return f"a person is asked about {named(state, event)}\n{event.reason}".rstrip()
        case ev.ApprovalGiven():
            edited = f"\nwith the arguments {event.arguments}" if event.arguments else ""
            return f"{event.verdict} of {named(state, event)}, by {event.by}\n{event.reason}{edited}".rstrip()
        case ev.UndoStarted():
            return f"{named(state, event)} is undone"
        case ev.SummaryStarted():
            return f"a summary of {_stretch(event)} is asked for"
        case ev.ContextCompacted():
            return f"{_stretch(event)} are cut: {event.strategy}\n{event.summary}".rstrip()
    return type(event).__name__


def _stretch(event: ev.SummaryStarted | ev.ContextCompacted) -> str:
    return f"messages {event.start + 1} to {event.end}"


def named(state: State, event: Any) -> str:
    """The call that an event speaks of, as a person names it: `call 2.1 (look)`."""
    place = (event.step, event.position)
    exchange = state.exchange
    if exchange is not None and exchange.step == event.step and 0 <= event.position < len(exchange.calls):
        name = exchange.calls[event.position].call.name
    else:
        name = state.acted[place].call.name if place in state.acted else "?"
    return f"call {event.step}.{event.position + 1} ({name})"


# --- diffs --------------------------------------------------------------------------------------------


def short_diff(recorded: str, now: str) -> list[str]:
    """A unified diff of few and short lines, cut where that says enough."""
    was, is_now = recorded.splitlines(), now.splitlines()
    diff = difflib.unified_diff(was, is_now, "recorded", "now", lineterm="", n=2)
    lines = [line for line in islice(diff, LINES + 3) if not line.startswith("@@")]
    shown = _narrowed(lines)
    if len(lines) > LINES:
        shown = [*shown[:LINES], "... and more"]
    return shown or [f"-{recorded!r}"[:WIDTH], f"+{now!r}"[:WIDTH]]


def _narrowed(lines: Sequence[str]) -> list[str]:
    """Long lines around the place where they begin to differ."""
    olds = [line[1:] for line in lines if line.startswith("-") and not line.startswith("---")]
    news = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]
    shared = {}
    for old, new in zip(olds, news, strict=False):
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        shared[f"-{old}"] = shared[f"+{new}"] = at
    return [_around(line, shared.get(line, 0)) for line in lines]


def _around(line: str, at: int) -> str:
    if len(line) <= WIDTH:
        return line
    begin = max(0, min(at - WIDTH // 3, len(line) - WIDTH))
    head, text = line[0], line[1:]
    return f"{head}{'...' if begin else ''}{text[begin : begin + WIDTH]}{'...' if begin + WIDTH < len(text) else ''}"
