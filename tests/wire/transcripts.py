"""Random transcripts that are valid, for property tests of every wire format.

Valid means what the machine guarantees: system messages stand first, ids of calls are unique over the transcript, the
arguments of a call are the text of one JSON object, names are `[A-Za-z0-9_-]{1,64}`, and each call has its one
result, directly behind its message and in the order of the calls. Everything else may be as odd as it likes: no texts,
blank texts, neighbours of one role, an assistant that speaks first or last, ids of any shape.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from hypothesis import strategies as st

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.limits import Left, Reservation
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Outcome,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    TranscriptView,
    User,
)

NAMES = ("f", "get_order", "look-up", "_x", "9lives", "n" * 64)
"""Names of tools in the transcripts; all of them are in `SPECS`."""

SPECS = tuple(
    ToolSpec(name, f"Does {name[:9]}.", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})
    for name in NAMES
)

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

TEXTS = st.sampled_from(
    ["", " ", "\n\t ", "hi", "Grüße", "日本", "\N{GRINNING FACE}", '{"x": "\\', "\x00\x1b[0m"]
) | st.text(max_size=6)

IDS = st.one_of(
    st.sampled_from(
        ["call_A1", "functions.f:0", "abcdefghi", "toolu_01", "fc_" + "0" * 50, "chatcmpl-tool-" + "a" * 32]
    ),
    st.text("ab1-_.:", min_size=1, max_size=10),
    st.text(min_size=1, max_size=5),
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)

IMAGES = st.sampled_from([Image("image/png", b"\x89PNG"), Image("image/jpeg", url="https://example.org/i.jpg")])
FILES = st.sampled_from([File("application/pdf", b"%PDF", "a.pdf"), File("text/csv", b"a,b")])
USER_PARTS: st.SearchStrategy[tuple[Part, ...]] = st.one_of(
    TEXTS.map(lambda text: (Text(text),)), st.lists(TEXTS.map(Text) | IMAGES | FILES, max_size=3).map(tuple)
)
RESULT_PARTS: st.SearchStrategy[tuple[Part, ...]] = st.one_of(
    TEXTS.map(lambda text: (Text(text),)),
    st.lists(TEXTS.map(Text) | IMAGES | FILES | VALUES.map(Json), max_size=3).map(tuple),
)


@st.composite
def transcripts(draw: st.DrawFn, opaques: st.SearchStrategy[Opaque] | None = None, most: int = 5) -> list[Message]:
    """A valid transcript.

    Args:
        opaques: What assistant messages may carry of their makers; at most one each.
        most: How many turns there are at most; a turn with calls is followed by its results.
    """
    messages: list[Message] = [System(text) for text in draw(st.lists(TEXTS, max_size=2))]
    taken: set[str] = set()
    for _ in range(draw(st.integers(0, most))):
        kind = draw(st.sampled_from(["user", "user", "note", "assistant", "calls", "calls"]))
        if kind == "user":
            messages.append(User(draw(USER_PARTS)))
        elif kind == "note":
            messages.append(Note(draw(TEXTS)))
        else:
            messages += _turn(draw, kind == "calls", taken, opaques)
    return messages


def _turn(draw: Any, has_calls: bool, taken: set[str], opaques: Any) -> list[Message]:
    fresh = IDS.filter(lambda one: one not in taken)
    calls = []
    for _ in range(draw(st.integers(1, 4)) if has_calls else 0):
        arguments = json.dumps(draw(OBJECTS), ensure_ascii=draw(st.booleans()))
        calls.append(ToolCall(draw(fresh), draw(st.sampled_from(NAMES)), arguments))
        taken.add(calls[-1].id)
    kept = (draw(opaques),) if opaques is not None and draw(st.booleans()) else ()
    said = Assistant(draw(TEXTS), tuple(calls), kept)
    return [said, *(Result(call.id, call.name, draw(st.sampled_from(OUTCOMES)), draw(RESULT_PARTS)) for call in calls)]


def cuts(messages: Sequence[Message]) -> list[int]:
    """The lengths at which a request may be sent: those that leave no call without its result."""
    ends, waiting = [], 0
    for index, message in enumerate(messages):
        waiting += len(message.calls) if isinstance(message, Assistant) else -isinstance(message, Result)
        if not waiting:
            ends.append(index + 1)
    return ends


def asking(
    messages: Sequence[Message], tools: tuple[ToolSpec, ...] = SPECS, tool_choice: str = "auto", new_from: int = 0
) -> CallModel:
    """What a session is asked to do with these messages."""
    view = TranscriptView(list(messages), len(messages))
    return CallModel(1, 1, view, new_from, tools, tool_choice, None, Reservation(), Left(), None)
