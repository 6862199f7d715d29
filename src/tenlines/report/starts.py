"""What a run began with: its messages, its tools, what it was set up to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from tenlines.core import events as ev
from tenlines.core.events import Settings, ToolSpec
from tenlines.core.transcript import Assistant, Message, Note, Result, System, User
from tenlines.report import model
from tenlines.report.model import Fact, StartItem
from tenlines.trace import words
from tenlines.trace.story import words_of
from tenlines.trace.text import clean

_RISKS = ("read_only", "idempotent", "repeatable", "final", "approve", "undoable", "reconcilable", "spends")


def start_item(id: str, start: ev.RunStarted) -> StartItem:
    """The first event, for eyes. It is redacted already."""
    return StartItem(
        id,
        when(start.at),
        tuple(map(_message, start.messages)),
        tuple(map(_tool, start.tools)),
        _settings(start.settings),
        tuple(map(clean, start.repairs)),
    )


def when(at: float) -> str:
    """A moment, in UTC; as a number where no calendar has it."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f} s"


def _message(message: Message) -> model.Message:
    match message:
        case System(text=text):
            return model.Message("instructions", clean(text))
        case User(parts=parts):
            return model.Message("user", clean(words_of(parts)))
        case Note(text=text):
            return model.Message("note", clean(text))
        case Assistant(text=text, calls=calls):
            asked = [words.call(call.name, call.arguments, full=True) for call in calls]
            return model.Message("assistant", "\n".join(filter(None, [clean(text), *asked])))
        case Result(name=name, parts=parts):
            return model.Message(f"result of {clean(name)}", clean(words_of(parts)))


def _tool(spec: ToolSpec) -> model.Tool:
    said = [name.replace("_", " ") for name in _RISKS if getattr(spec, name)]
    if spec.timeout_s is not None:
        said.append(f"timeout {words.duration(spec.timeout_s)}")
    schema = json.dumps(spec.parameters, ensure_ascii=False, indent=2) if spec.parameters else ""
    return model.Tool(clean(spec.name), clean(spec.description), ", ".join(said), clean(schema))


def _settings(settings: Settings) -> tuple[Fact, ...]:
    """What was set up, where it says something."""
    told = [Fact("limits", words.limits_words(settings.limits))]
    if settings.price is not None:
        told.append(Fact("price", words.rates(settings.price)))
    told.append(Fact("parallel calls", f"up to {settings.max_parallel}"))
    if settings.max_output_tokens is not None:
        told.append(Fact("longest reply", words.count(settings.max_output_tokens, "token")))
    if settings.tool_choice != "auto":
        told.append(Fact("tool choice", clean(settings.tool_choice)))
    if settings.compaction is not None:
        told.append(Fact("compaction", ", ".join(map(clean, settings.compaction.strategies))))
    if settings.on_in_doubt == "ask":
        told.append(Fact("calls in doubt", "a person decides"))
    if settings.on_stop == "undo":
        told.append(Fact("without an answer", "what was done is undone"))
    return tuple(told)
