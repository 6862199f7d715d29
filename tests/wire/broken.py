"""Bodies that were valid and are broken in ways that are seen in the field: cut, doubled, mixed up, edited."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st
from transcripts import asking, cuts, transcripts

from tenlines.core.transcript import Message
from tenlines.wire.format import Format
from tenlines.wire.profile import Target

STRANGERS: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "more"},
    {"role": "assistant", "content": "said"},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": None},
    {"role": "system", "content": "note"},
    {"role": "developer", "content": "note"},
    {"role": "tool", "tool_call_id": "nobody", "content": "18C"},
    {"role": "model", "parts": [{"text": "hi"}]},
    {"role": "user", "parts": [{"text": "hi"}]},
    {"role": "narrator", "content": "Once"},
    {"role": "user", "content": []},
    {"role": "user", "content": " "},
    {},
)
VALUES: tuple[Any, ...] = ("", " ", "x.y z", "n" * 70, None, {}, [], '{"a": 1}', '{"a": ', {"a": 1}, 7)


@st.composite
def broken(draw: st.DrawFn, format: Format, context: dict[str, str | bool] | None = None) -> dict[str, Any]:
    """A body with up to four faults."""
    messages: list[Message] = draw(transcripts(most=4))
    ends = cuts(messages)
    messages = messages[: ends[-1]] if ends else []
    talk = format.talk(Target(profile=format.profile(context), model="m"))
    body: dict[str, Any] = json.loads(json.dumps(talk.request(asking(messages), stream=False)))
    entries = body[format.list_field]
    for _ in range(draw(st.integers(1, 4))):
        _break(draw, body, entries)
    if draw(st.integers(0, 5)) == 0:
        for field in ("tools", "toolConfig", "tool_choice", "toolChoice"):
            body.pop(field, None)
    return body


def _break(draw: Any, body: dict[str, Any], entries: list[Any]) -> None:
    ways = ["add"] if not entries else ["drop", "double", "move", "add", "edit", "edit", "cut", "tail"]
    way = draw(st.sampled_from(ways))
    at = draw(st.integers(0, max(0, len(entries) - 1)))
    to = draw(st.integers(0, len(entries)))
    if way == "drop":
        del entries[at]
    elif way == "double":
        entries.insert(to, copy.deepcopy(entries[at]))
    elif way == "move":
        entries.insert(min(to, len(entries) - 1), entries.pop(at))
    elif way == "add":
        entries.insert(to, copy.deepcopy(draw(st.sampled_from(STRANGERS))))
    elif way == "cut":
        del entries[:at]
    elif way == "tail":
        del entries[at + 1 :]
    else:
        _edit(draw, entries[at])


def _edit(draw: Any, message: Any) -> None:
    places = list(_places(message))
    if not places:
        return
    holder, key = draw(st.sampled_from(places))
    way = draw(st.sampled_from(["drop", "value", "value", "double"]))
    if way == "drop":
        del holder[key]
    elif way == "double" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))


def _places(value: Any) -> Any:
    """Everything in a message that can be taken out or replaced."""
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])
