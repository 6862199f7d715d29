"""What of a reply is shown while it comes: the answer as text, thoughts as reasoning; no labels, no calls.

For eyes only. The finished reply is read as a whole (`reading`), so what was shown decides nothing.
"""

from __future__ import annotations

import re

from tenlines.wire.format import Piece
from tenlines.wire.text_protocol.calls import call_of, looks_like_call
from tenlines.wire.text_protocol.labels import Kind, blocks, kind_of_line
from tenlines.wire.text_protocol.reading import ENDS, Style

HELD = 48
"""Characters at the beginning of a line that are held back until it is clear that they are no label."""
_HIDDEN = frozenset({"action", "input", "observation", "native"})
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*[^`\n]*$")


class Shown:
    """Takes the text of a reply in pieces of any size, and says what of each is to be seen. O(the text)."""

    def __init__(self, style: Style = "react") -> None:
        self._style: Style = style
        self._kind: Kind = ""
        self._held = ""
        """The beginning of a line that may still be a label."""
        self._is_inside = False
        """The line that comes has begun, and is no label."""
        self._fence = ""
        self._block: list[str] | None = None
        """A block that may be a call is shown when it is clear that it is none."""
        self._is_over = False
        self._blanks = ""
        """They are shown only when something follows."""
        self._has_shown = False
        self._text: list[str] = []
        self._thought: list[str] = []

    def feed(self, text: str) -> Piece:
        """What the next piece of the reply adds."""
        if not self._is_over:
            *lines, rest = text.split("\n")
            for line in lines:
                self._take(f"{line}\n")
            if rest:
                self._take(rest)
        return self._piece()

    def finish(self) -> Piece:
        """What was still held back when the reply ended."""
        if self._held:
            self._begin_line()
        if self._block is not None:
            self._end_block()
        return self._piece()

    def _piece(self) -> Piece:
        piece = Piece("".join(self._text), "".join(self._thought))
        self._text, self._thought = [], []
        return piece

    def _take(self, text: str) -> None:
        if self._is_inside:
            self._say(text)
        else:
            self._held += text
            if len(self._held) > HELD or text.endswith("\n"):
                self._begin_line()
        if text.endswith("\n"):
            self._is_inside = False

    def _begin_line(self) -> None:
        line, self._held, self._is_inside = self._held, "", True
        if self._is_over:
            return
        if fence := _FENCE.match(line):
            self._turn_fence(line, fence[1])
            return
        if self._fence and self._block is not None and len(self._block) == 1 and kind_of_line(line):
            self._fence = ""  # the whole reply stands in a block
        label = None if self._fence else kind_of_line(line)
        if label is not None and (self._style == "react" or label[0] == "native"):
            line = self._turn(label[0], line, label[1])
            opens = _FENCE.match(line)  # a block that begins on the label's line
            self._fence = opens[1] if opens else ""
        elif self._kind == "" and not self._has_shown and self._block is None and line.lstrip().startswith("{"):
            self._block = []
        self._say(line)

    def _turn(self, kind: Kind, line: str, begin: int) -> str:
        """A label begins a section; returns what of its line may be shown. An answer goes on to the next label, but
        for an Action, which may be words of it."""
        if self._kind == "final" and kind == "action":
            return line
        self._is_over = self._kind == "final" or kind == "observation"
        if self._has_shown and kind in ("thought", "final"):
            self._blanks = "\n"
        self._kind, self._block = kind, None
        return line[begin:]

    def _turn_fence(self, line: str, marks: str) -> None:
        if not self._fence:
            self._fence = marks
            if self._kind == "" and self._block is None:
                self._block = [line]
                return
            self._say(line)
            return
        self._say(line)
        if marks[0] == self._fence[0] and len(marks) >= len(self._fence) and line.strip() == marks:
            self._fence = ""
            if self._block is not None:
                self._end_block()

    def _end_block(self) -> None:
        """A call ends what is shown; anything else is shown now."""
        whole, self._block = "".join(self._block or ()), None
        block = next(blocks(whole), None)
        inner = (whole if block is None else whole[block.begin : block.close]).strip()
        self._is_over = call_of(inner) is not None or looks_like_call(inner)
        self._say(whole)

    def _say(self, text: str) -> None:
        if self._is_over or self._kind in _HIDDEN:
            return
        if self._block is not None:
            self._block.append(text)
            return
        if end := ENDS.search(text):
            text, self._is_over = text[: end.start()], True
        if self._kind == "thought":
            self._thought.append(text)
            return
        body = text.rstrip()
        if not body:
            self._blanks += text
            return
        self._text.append(self._blanks + body if self._has_shown else body.lstrip())
        self._has_shown, self._blanks = True, text[len(body) :]
