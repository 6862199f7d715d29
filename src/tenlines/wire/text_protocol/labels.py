"""Where the labels of a reply stand: `Thought:`, `Action:`, `Action Input:`, `Observation:`, `Final Answer:`.

A label stands at the beginning of a line, in English, in any case, with or without markdown around it and a number
behind it. Inside a code block there are none. Everything here is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["", "thought", "action", "input", "observation", "final", "native"]
"""What a section is; "" is the text before the first label, `native` a call in the form that a model was trained on."""

_WORDS: dict[str, Kind] = {
    "thought": "thought",
    "action": "action",
    "action input": "input",
    "observation": "observation",
    "final answer": "final",
}
LABEL = (
    r"[ \t]*(?:#{1,6}[ \t]+)?[*_]{0,3}"
    r"(?P<word>thought|action[ _]input|action|observation(?: of [\w-]{1,64})?|final[ _]answer)(?:[ ]?\d{1,3})?"
    r"[*_]{0,3}[ \t]*:[*_]{0,3}"
)
"""A label with what people put around it. Full-width colons and other languages make none."""
NATIVE = r"<tool_call>|\[TOOL_CALLS\]|<function=|<\|python_tag\|>"
"""How calls begin in the forms that models were trained on."""
FENCE = r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$"
"""A line that opens a code block, or closes one."""

_MARK = re.compile(rf"^(?:(?P<label>{LABEL})|[ \t]*(?P<native>{NATIVE})|{FENCE})", re.I | re.A | re.M)
_OPENS = re.compile(FENCE, re.M)
_LABEL_LINE = re.compile(LABEL, re.I | re.A)


class Section(NamedTuple):
    """A stretch of a reply under one label; offsets into its text."""

    kind: Kind
    start: int
    """Where its label begins."""
    begin: int
    """Where its content begins."""
    end: int

    def content(self, text: str) -> str:
        """What stands under the label."""
        return text[self.begin : self.end].strip()


class Block(NamedTuple):
    """A code block; offsets into the text around it."""

    start: int
    begin: int
    close: int
    """Where its content ends."""
    end: int


def sections(text: str) -> Iterator[Section]:
    """The sections of a reply, in order. They cover all of it."""
    kind: Kind = ""
    start = begin = position = 0
    while (mark := _MARK.search(text, position)) is not None:
        if mark["fence"]:
            position = _behind_block(text, mark).end
            continue
        yield Section(kind, start, begin, mark.start())
        kind, start = _kind(mark), mark.start()
        begin = mark.end() if mark["label"] else mark.start("native")
        opens = _OPENS.match(text, mark.end()) if mark["label"] else None  # a block that begins on the label's line
        position = _behind_block(text, opens).end if opens else mark.end()
    yield Section(kind, start, begin, len(text))


def blocks(text: str) -> Iterator[Block]:
    """The code blocks of a text. One that is not closed goes to the end."""
    position = 0
    while (opens := _FENCE_LINE.search(text, position)) is not None:
        block = _behind_block(text, opens)
        yield block
        position = block.end


_FENCE_LINE = re.compile(f"^{FENCE}", re.M)


def _kind(mark: re.Match[str]) -> Kind:
    if mark["native"]:
        return "native"
    word = mark["word"].lower().replace("_", " ")
    return "observation" if word.startswith("observation") else _WORDS[word]


def _behind_block(text: str, opens: re.Match[str]) -> Block:
    """The block that a line opens. What closes it is a line of at least as many of the same marks, and nothing else."""
    mark = opens["fence"]
    closing = re.compile(rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*$", re.M)
    begin = min(opens.end() + 1, len(text))
    closed = closing.search(text, begin)
    if closed is None:
        return Block(opens.start(), begin, len(text), len(text))
    return Block(opens.start(), begin, closed.start(), closed.end())


def kind_of_line(line: str) -> tuple[Kind, int] | None:
    """The kind of the label that a line begins with, and where its content begins; None where there is no label."""
    mark = _MARK.match(line)
    if mark is None or mark["fence"]:
        return None
    return _kind(mark), mark.end() if mark["label"] else mark.start("native")


def unwrapped(text: str) -> str:
    """A reply without the code block around the whole of it: it begins before the first label, and ends behind all."""
    opens = _OPENS.match(text, len(text) - len(text.lstrip()))
    if opens is None:
        return text
    inner = text[opens.end() :].lstrip()
    if _LABEL_LINE.match(inner) is None:
        return text
    body, _, last = inner.rstrip().rpartition("\n")
    return body if last.strip() == opens["fence"] else inner
