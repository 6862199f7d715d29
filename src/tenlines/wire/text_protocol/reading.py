"""From the text of a reply to what it is: calls, an answer, or neither, with the reason. Total, linear, never guessing.

What decides, in the form with labels (style `react`):

1. **The first decides.** An Action in front of a Final Answer wins: the answer was written without the result. A Final
   Answer in front of an Action wins: nothing comes after the end. What loses is left out, and a remark says so.
2. **Only the runtime observes.** An Observation that the model wrote, and everything behind it, does not count.
3. **Several Actions are all calls**, in order, as long as there is no Observation between them.
4. **An Action needs its Action Input.** Without one, nothing of the reply runs.
5. **Arguments are taken to the letter.** What is no JSON object goes on as it is, and the machine refuses it.
6. **Text without labels is an answer**, as it is natively; but for a call as the only thing, in JSON or in a form that
   models were trained on.

In the form with blocks (style `json`) a code block that is a call is a call, and all else is text; 2, 3 and 5 hold.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from tenlines.core.outcomes import encodable, quote
from tenlines.core.transcript import ToolCall
from tenlines.wire.text_protocol.calls import arguments_in, call_of, looks_like_call, native_calls
from tenlines.wire.text_protocol.labels import Section, blocks, sections, unwrapped

Style: TypeAlias = Literal["react", "json"]
"""`react`: labelled lines, Thought, Action, Action Input. `json`: a call is a code block of JSON."""

MAX_CALLS = 64
"""Calls in one reply. More is a model that repeats itself."""

NO_ACTION = "it has a Thought, and neither an Action nor a Final Answer"
NO_INPUT = "an Action has no Action Input behind it; write {} where a tool takes nothing"
NO_NAME = "behind Action: stands the name of one tool and nothing else; its arguments stand behind Action Input:"
LONE_INPUT = "an Action Input has no Action in front of it"
OBSERVES = "it begins with an Observation, and only the runtime writes those"
TOO_MANY = f"it has more than {MAX_CALLS} calls"
BROKEN_CALL = "it has a call that is not complete JSON of a tool's name and its arguments"
OTHER_FORM = "it has a call in another form than the one asked for"


class Parsed(NamedTuple):
    """What a reply is. With a `problem` it is neither calls nor an answer, and `text` is what the model wrote."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    problem: str = ""
    remarks: tuple[str, ...] = ()


def parse(text: str, style: Style = "react") -> Parsed:
    """What a reply is. Any text gives a result."""
    text, remarks = heard(encodable(text).replace("\r\n", "\n"))
    found = _labelled(unwrapped(text)) if style == "react" else _blocks(text)
    return found._replace(remarks=(*remarks, *found.remarks))


# --- what a chat template leaks -----------------------------------------------------------------------

_HEAD = re.compile(
    r"\s*(?:<\|im_start\|>\s*assistant\b|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>|<start_of_turn>model\b)"
)
_THINKING = re.compile(r"\s*<think>")
ENDS = re.compile(
    r"(?:<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn)\|>|<end_of_turn>"
    "|<\uff5cend\u2581of\u2581sentence\uff5c>)"
    r"[ \t]*(?=\n|<[|\uff5c]|<start_of_turn>|\Z)"
)
"""Tokens that end a turn, where a turn may end: at the end of a line, or in front of another token."""
_HTML_LIKE_END = re.compile(r"</s>(?=\s*(?:<s>|\[INST\]|<\||\Z))")
"""This one is also a tag of HTML."""


def heard(text: str) -> tuple[str, tuple[str, ...]]:
    """The reply itself: without the template's own tokens around it, what was written behind its end, and a leading
    block of thinking."""
    remarks: list[str] = []
    if head := _HEAD.match(text):
        text = text[head.end() :]
    if thinking := _THINKING.match(text):
        text = text[thinking.end() :].partition("</think>")[2]
    if end := ENDS.search(text) or _HTML_LIKE_END.search(text):
        if text[end.end() :].strip():
            remarks.append(f"what the model wrote behind {end[0].strip()} was left out")
        text = text[: end.start()]
    return text, tuple(remarks)


# --- labels -------------------------------------------------------------------------------------------


class _Refused(Exception):
    """The reply is neither calls nor an answer."""


def _labelled(text: str) -> Parsed:
    walk = _Walk(text)
    try:
        for section in sections(text):
            if not walk.take(section):
                break
        return walk.result()
    except _Refused as refused:
        return Parsed(text[: walk.until].strip(), (), str(refused), tuple(walk.remarks))


class _Walk:
    """Takes the sections of a reply one after another, until it is decided."""

    def __init__(self, text: str) -> None:
        self.text, self.until = text, len(text)
        self.said: list[str] = []
        self.calls: list[ToolCall] = []
        self.action: str | None = None
        self.answer: tuple[int, int] | None = None
        """Where the answer begins and, so far, ends."""
        self.tail: Section | None = None
        """An Action behind the answer: words of it, unless an Action Input follows."""
        self.remarks: list[str] = []
        self.has_labels = False

    def take(self, section: Section) -> bool:
        """Take a section; False when nothing behind it counts."""
        if self.answer is not None:
            return self._behind_answer(section)
        if self.action is not None and section.kind != "input":
            raise _Refused(NO_INPUT)
        self.has_labels |= section.kind != ""
        match section.kind:
            case "" | "thought":
                if said := section.content(self.text):
                    self.said.append(said)
            case "action":
                self.action = _tool_name(section.content(self.text))
            case "input":
                self._call(section)
            case "native":
                self._native(section)
            case "observation":
                return self._observe(section)
            case "final":
                return self._end(section)
        return True

    def _call(self, section: Section) -> None:
        if self.action is None:
            raise _Refused(LONE_INPUT)
        written = arguments_in(section.content(self.text))
        if written.left_out:
            self.remarks.append(f"text beside the arguments of {quote(self.action, 80)} was left out")
        self._add(ToolCall("", self.action, written.raw))
        self.action = None

    def _native(self, section: Section) -> None:
        found = native_calls(section.content(self.text))
        if not found:
            raise _Refused(f"{OTHER_FORM}, and it is not clear in every part")
        for call in found:
            self._add(call)

    def _add(self, call: ToolCall) -> None:
        self.calls.append(call)
        if len(self.calls) > MAX_CALLS:
            raise _Refused(TOO_MANY)

    def _observe(self, section: Section) -> bool:
        self.until = section.start
        if section.content(self.text):
            self.remarks.append("an Observation that the model wrote itself was left out, and what stood behind it")
        if not (self.calls or self.said):
            self.until = section.begin  # the word alone, so that the model sees what is meant
            raise _Refused(OBSERVES)
        return False

    def _end(self, section: Section) -> bool:
        if self.calls:
            self.remarks.append("a Final Answer behind an Action was left out: it was written without the result")
            return False
        self.answer = (section.begin, section.end)
        return True

    def _behind_answer(self, section: Section) -> bool:
        """Words of the answer may look like an Action; a whole Action, and any other label, is not of it."""
        assert self.answer is not None
        is_whole = section.kind == "input" and self.tail is not None
        if section.kind in ("action", "input") and not is_whole:
            self.answer = (self.answer[0], section.end)
            self.tail = section if section.kind == "action" else None
            return True
        if is_whole and self.tail is not None:
            self.answer = (self.answer[0], self.tail.start)
        self.remarks.append("what the model wrote behind its Final Answer was left out")
        return False

    def result(self) -> Parsed:
        remarks = tuple(self.remarks)
        if self.action is not None:
            raise _Refused(NO_INPUT)
        if self.answer is not None:
            begin, end = self.answer
            return Parsed(self.text[begin:end].strip(), (), "", remarks)
        if self.calls:
            return Parsed("\n\n".join(self.said), tuple(self.calls), "", remarks)
        if not self.has_labels:
            return _blocks(self.text)
        if self.said:
            raise _Refused(NO_ACTION)
        return Parsed("", (), "", remarks)  # labels and nothing else: an empty reply


_DECORATION = " \t*`'\"\u2018\u2019\u201c\u201d"


def _tool_name(content: str) -> str:
    """The name behind `Action:`, without what only decorates it. An underscore may be part of a name."""
    name = content.partition("\n")[0].strip(_DECORATION)
    if not name or name[0] in "{[<":
        raise _Refused(NO_NAME)
    return name


# --- blocks -------------------------------------------------------------------------------------------

_RESULT = re.compile(r"^[ \t]*[*_]{0,3}Result of [\w-]{1,64}[*_]{0,3}[ \t]*:", re.M)


def _blocks(text: str) -> Parsed:
    """A reply whose calls are code blocks; or a call as the only thing in it."""
    bare = text.strip()
    if bare.startswith("{") and (only := _call_or_none(bare)) is not None:
        return only
    calls: list[ToolCall] = []
    first, last, looked_at = len(text), 0, 0
    for block in blocks(text):
        if calls and _RESULT.search(text, looked_at, block.start):
            break
        looked_at = block.end
        content = text[block.begin : block.close].strip()
        if (call := call_of(content)) is not None:
            calls.append(call)
            first, last = min(first, block.start), block.end
        elif looks_like_call(content):
            return Parsed(bare, (), BROKEN_CALL)
        if len(calls) > MAX_CALLS:
            return Parsed(bare, (), TOO_MANY)
    if not calls:
        return _unlike_blocks(text)
    left = ("what the model wrote behind its calls was left out",) if text[last:].strip() else ()
    return Parsed(text[:first].strip(), tuple(calls), "", left)


def _call_or_none(bare: str) -> Parsed | None:
    call = call_of(bare)
    if call is not None:
        return Parsed("", (call,))
    return Parsed(bare, (), BROKEN_CALL) if looks_like_call(bare) else None


def _unlike_blocks(text: str) -> Parsed:
    """No block is a call: perhaps the model wrote one in another form; else it is an answer."""
    said, action = text.strip(), False
    for section in sections(text):
        if section.kind == "native":
            found = native_calls(section.content(text))
            if not found or len(found) > MAX_CALLS:
                return Parsed(said, (), f"{OTHER_FORM}, and it is not clear in every part")
            return Parsed(text[: section.start].strip(), tuple(found))
        if section.kind == "input" and action:
            return Parsed(said, (), OTHER_FORM)
        action = section.kind == "action"
    return Parsed(said)
