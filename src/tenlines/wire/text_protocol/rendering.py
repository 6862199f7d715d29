"""Tools, calls and results as text: what the model is told, and how the transcript reads to it. Deterministic.

What a tool returned is somebody else's text. It stands in the user's turn and is never read as a reply, so nothing in
it can be taken for the model's words; and it cannot look like them either: text of several lines stands in a code block
that it cannot close, and markers with which chat templates separate turns are broken (`<|im_end|>` becomes
`< |im_end|>`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    JsonValue,
    Message,
    Note,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.constrained import describe
from tenlines.wire.parts import NO_OUTPUT, NOTE_PREFIX, json_text, plain_text
from tenlines.wire.text_protocol.reading import Style, parse

_REACT = """\
You can use these tools:
{tools}

Write one step at a time, in this form:
Thought: what you have to find out next
Action: the name of one tool
Action Input: its arguments, as one JSON object on one line

Then stop. You are told the result as an Observation; never write an Observation yourself. {end}

{advice}"""

_JSON = """\
You can use these tools:
{tools}

To use a tool, write a code block and stop:
```json
{{"tool": NAME, "arguments": {{...}}}}
```
You are then told its result; never write a result yourself. {end}

{advice}"""

_END: dict[Style, str] = {
    "react": """\
When the observations answer the question in full, write:
Thought: what you know
Final Answer: the answer""",
    "json": """\
When the results answer the question in full, write the answer as plain text, without such a block.""",
}
_END_BY_TOOL = "When you know the full answer, give it by calling {name}: its arguments are the answer."

_ADVICE = """\
Use a tool for every fact that you do not have; never invent a value. When a result gives an id that another tool \
takes, use that tool next. Use a tool that changes something only when you were asked to."""

RESULT_WORDS: dict[Style, str] = {"react": "Observation", "json": "Result"}
STOPS: dict[Style, tuple[str, ...]] = {"react": ("\nObservation:", "\nObservation of "), "json": ("\nResult of ",)}
"""Where a server should end a reply: at the result that only the runtime knows."""


# --- tools --------------------------------------------------------------------------------------------


def render(specs: Sequence[ToolSpec], style: Style = "react") -> str:
    """The standing instructions: the tools, and the form of a call. The same tools always give the same text."""
    form = _REACT if style == "react" else _JSON
    takes_answer = next((spec.name for spec in specs if spec.answer), "")
    end = _END_BY_TOOL.format(name=takes_answer) if takes_answer else _END[style]
    return form.format(tools="\n".join(map(_described, specs)), end=end, advice=_ADVICE)


def _described(spec: ToolSpec) -> str:
    """One tool in few words; with its whole schema where words are too few for it."""
    words = harmless(encodable(describe(spec)))
    return (
        f"{words}\n  JSON Schema of the arguments: {harmless(json_text(spec.parameters))}"
        if _is_nested(spec)
        else words
    )


_FLAT = {"string", "integer", "number", "boolean", "null"}


def _is_nested(spec: ToolSpec) -> bool:
    properties = spec.parameters.get("properties")
    return isinstance(properties, dict) and not all(map(_is_flat, properties.values()))


def _is_flat(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return True
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items", {})
        return _is_flat(items) and not (isinstance(items, dict) and items.get("type") == "array")
    return "enum" in schema or "const" in schema or (isinstance(kind, str) and kind in _FLAT)


# --- messages -----------------------------------------------------------------------------------------

_TEMPLATE = re.compile(
    r"<(?=\|[^|\n>]{1,40}\|>|\uff5c[^\n>]{1,40}\uff5c>|/?s>|/?(?:bos|eos)>|/?(?:start|end)_of_turn>|/?tool_(?:call|response)>"
    r"|/?think>|<SYS>>|</SYS>>|/?function\b)|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])"
)
"""Markers that chat templates give a meaning, of the families that are in use."""
_TICKS = re.compile(r"`+")


def harmless(text: str) -> str:
    """Text in which a chat template finds no marker of its own."""
    return _TEMPLATE.sub(lambda mark: f"{mark[0]} ", text)


def told(text: str) -> str:
    """Somebody else's text behind a label: on its line, or in a code block that it cannot close."""
    text = harmless(text)
    if len(text.splitlines()) <= 1:
        return f" {text.strip() or NO_OUTPUT}"
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"\n{fence}\n{text}\n{fence}"


def write_calls(text: str, calls: Sequence[ToolCall], style: Style) -> str:
    """What the model wrote beside calls, and the calls, as the form has them. Arguments stay as they are."""
    lines = [f"Thought: {text}" if style == "react" else text] if text else []
    for call in calls:
        raw = call.arguments.strip() or "{}"
        if style == "react":
            lines.append(f"Action: {call.name}\nAction Input: {raw}")
        else:
            lines.append(f'```json\n{{"tool": {json.dumps(call.name)}, "arguments": {raw}}}\n```')
    return "\n".join(lines)


def _answer(text: str, style: Style) -> str:
    """Words of the model. Those that were no answer stand as they were written."""
    is_answer = style == "react" and text and not parse(text, style).problem
    return f"Final Answer: {text}" if is_answer else text


def _result_parts(message: Result, style: Style) -> tuple[Part, ...]:
    """A result in the user's turn: its text, and images and files as they are."""
    shown = tuple(part for part in message.parts if isinstance(part, Image | File))
    text = plain_text(tuple(part for part in message.parts if part not in shown))
    words = told(encodable(text)) if text or not shown else " (shown below)"
    return (Text(f"{RESULT_WORDS[style]} of {message.name}:{words}"), *shown)


class _Turn(NamedTuple):
    """Where a message for the model comes from."""

    first: int
    """The first message of the transcript that is in it."""
    is_open: bool
    """It is the user's: what comes next and is not the model's joins it."""


class Encoder:
    """The messages of one run as a conversation without tools: each is written once and kept.

    The leading system messages and the tools make one system message, because many chat templates take only one; and
    all that stands between two messages of the model makes one user message, because many want them to alternate.
    """

    def __init__(self, style: Style = "react") -> None:
        self._style: Style = style
        self._specs: tuple[ToolSpec, ...] | None = None
        self._turns: list[_Turn] = []
        self.messages: list[Message] = []
        """What the model is sent: the list that is kept, not a copy."""
        self._taken = 0

    def extend(self, view: Sequence[Message], specs: tuple[ToolSpec, ...], new_from: int) -> int:
        """Take in what is new; O(new).

        Args:
            view: The whole transcript.
            specs: The tools. Without any, messages stay as they are.
            new_from: Index of the first message that was not sent. What was kept from there on is written again.

        Returns:
            The same index, for `messages`.
        """
        if specs is not self._specs:
            self._specs, self._turns, self.messages, self._taken = specs, [], [], 0
        self._cut(new_from, view)
        kept = len(self.messages)
        if not self._turns:
            self._begin(view)
        for index in range(self._taken, len(view)):
            self._add(index, view[index], view[index - 1] if index else None)
        self._taken = len(view)
        return kept

    def _cut(self, new_from: int, view: Sequence[Message]) -> None:
        """Take back every message that has, or will have, something new in it."""
        while self._turns:
            last = self._turns[-1]
            is_joined = (
                last.is_open and self._taken < len(view) and not isinstance(view[self._taken], Assistant | System)
            )
            if self._taken <= new_from and not is_joined:
                return
            self._taken = last.first
            self._turns.pop()
            self.messages.pop()

    def _begin(self, view: Sequence[Message]) -> None:
        """The first message: the leading system messages, and the tools."""
        lead = 0
        while lead < len(view) and isinstance(view[lead], System):
            lead += 1
        texts = [message.text for message in view[:lead] if isinstance(message, System)]
        texts += [render(self._specs, self._style)] if self._specs else []
        if text := "\n\n".join(filter(None, texts)):
            self._append(0, System(text))
        self._taken = lead

    def _add(self, index: int, message: Message, before: Message | None) -> None:
        match message:
            case Assistant(text, calls, opaque, rebased):
                words = write_calls(text, calls, self._style) if calls else self._words(text)
                self._append(index, Assistant(words, (), opaque, rebased))
            case System():
                self._append(index, message)
            case _ if self._turns and self._turns[-1].is_open:
                self.messages[-1] = _joined(self.messages[-1], self._parts(message, before))
            case _:
                self._append(index, User(self._parts(message, before)), is_open=True)

    def _words(self, text: str) -> str:
        return _answer(text, self._style) if self._specs else text

    def _parts(self, message: Message, before: Message | None) -> tuple[Part, ...]:
        match message:
            case Result():
                return _result_parts(message, self._style)
            case Note(text):
                return (Text(NOTE_PREFIX + text + self._reason(before)),)
            case User(parts):
                return parts
            case _:
                return ()

    def _reason(self, before: Message | None) -> str:
        """What was wrong with the reply that a note speaks of: it says so itself, when it is read again."""
        if not self._specs or not isinstance(before, Assistant) or before.calls:
            return ""
        problem = parse(before.text, self._style).problem
        return f" What was wrong with it: {problem}." if problem else ""

    def _append(self, first: int, message: Message, *, is_open: bool = False) -> None:
        self._turns.append(_Turn(first, is_open))
        self.messages.append(message)


def _joined(before: Message, parts: tuple[Part, ...]) -> User:
    return User((*before.parts, *parts)) if isinstance(before, User) else User(parts)
