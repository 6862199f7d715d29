"""The transcript as the model has it: every message whole, under a line that says whose it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenlines.core.transcript import Assistant, Message, Note, Opaque, Result, System, User
from tenlines.trace.story import words_of

RULE = "──"


def transcript_lines(messages: Sequence[Message]) -> Iterator[str]:
    """The messages as lines of text."""
    for message in messages:
        match message:
            case System(text=text):
                yield from (f"{RULE} system", text)
            case User(parts=parts):
                yield from (f"{RULE} user", words_of(parts))
            case Note(text=text, summary=summary):
                yield from (f"{RULE} {'summary' if summary else 'note'}", text)
            case Assistant():
                yield from _assistant(message)
            case Result(call_id=call_id, name=name, outcome=outcome, parts=parts):
                yield from (f"{RULE} result {call_id} {name} {outcome}", words_of(parts))


def _assistant(message: Assistant) -> Iterator[str]:
    yield f"{RULE} assistant"
    yield from filter(None, (_kept(one) for one in message.opaque))
    if message.text:
        yield message.text
    for call in message.calls:
        yield f"{RULE} call {call.id} {call.name}"
        yield call.arguments


def _kept(part: Opaque) -> str:
    """What goes back to the provider as it came, by its name: most of it is signed, and nothing to read."""
    kind = part.payload.get("type") if isinstance(part.payload, dict) else None
    return f"({kind or 'something'} of {part.provider}, sent back as it came)"
