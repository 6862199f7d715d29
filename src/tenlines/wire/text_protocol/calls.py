"""Calls that stand in a text as JSON: found where they are complete, and kept to the letter."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from tenlines.core.outcomes import DEEPEST
from tenlines.core.transcript import ToolCall
from tenlines.wire.text_protocol.labels import blocks

_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}]', re.S)
"""A string, or a brace outside of one. A string that is never closed goes to the end, so no text is looked at twice."""


class Input(NamedTuple):
    """The arguments of a call, as they were written, and whether there was other text around them."""

    raw: str
    left_out: bool = False


def arguments_in(text: str) -> Input:
    """The arguments under an `Action Input:`.

    Prose behind one complete object, or around one code block, is left out. Where there could be a second object, and
    where there is none at all, everything is taken as it stands: it is then refused, with the reason.
    """
    text = text.strip()
    block = next(blocks(text), None)
    if block is not None and "{" not in text[: block.start] + text[block.end :]:
        return Input(text[block.begin : block.close].strip(), bool((text[: block.start] + text[block.end :]).strip()))
    if text[:1] == text[-1:] == "`" and "`" not in text[1:-1]:
        text = text[1:-1].strip()
    end = object_end(text)
    if end and not _BRACES.search(text, end):
        return Input(text[:end], bool(text[end:].strip()))
    return Input(text)


_BRACES = re.compile(r"[{}]")


def object_end(text: str, start: int = 0) -> int:
    """Where the object that begins at `start` ends; 0 where there is none, or it is nested deeper than is ever read."""
    if text[start : start + 1] != "{":
        return 0
    depth = 0
    for piece in _PIECE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(piece[0], 0)
        if depth == 0:
            return piece.end()
        if depth > DEEPEST:
            return 0
    return 0


# --- calls as objects ---------------------------------------------------------------------------------

_NAMES, _ARGUMENTS = ("tool", "name"), ("arguments", "parameters")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_name = msgspec.json.Decoder(str)
_HAS_ARGUMENTS = re.compile(r"\b(arguments|parameters)\b")
_LOOKS = re.compile(r"\s*\{\s*['\"\u2018\u2019\u201c\u201d]?(tool|name)\b")


def call_of(text: str) -> ToolCall | None:
    """The call that a text is, if it is an object of a name and arguments and nothing else. The arguments stay as they
    were written."""
    try:
        fields = _fields.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    fields.pop("id", None)
    name = [key for key in _NAMES if key in fields]
    arguments = [key for key in _ARGUMENTS if key in fields]
    if len(name) != 1 or len(arguments) > 1 or len(fields) != 1 + len(arguments):
        return None
    if len(arguments) == 0 and name != ["tool"]:
        return None  # {"name": "Alice"} is any object
    try:
        called = _name.decode(fields[name[0]])
    except msgspec.MsgspecError:
        return None
    return ToolCall("", called, bytes(fields[arguments[0]]).decode() if arguments else "")


def looks_like_call(text: str) -> bool:
    """Whether a text that is no call was meant to be one: its first word is that of a tool, or it is broken JSON of a
    name and arguments. Any other object is an answer."""
    looks = _LOOKS.match(text)
    if looks is None or looks[1] == "tool":
        return looks is not None
    return _HAS_ARGUMENTS.search(text[:400]) is not None and not _is_json(text)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return False
    return True


# --- the forms that models were trained on ------------------------------------------------------------

_HERMES = re.compile(r"<tool_call>(?P<inner>[^<]*(?:<(?!/?tool_call>)[^<]*)*)(?:</tool_call>\s*|\Z)")
_FUNCTION = re.compile(r"<function=([\w.-]{1,64})>(?P<inner>[^<]*(?:<(?!/?function\b)[^<]*)*)(?:</function>\s*|\Z)")
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*")
_NAMED = re.compile(r"([\w-]{1,64})(?:\[ARGS\])?\s*(?=\{)")
_objects = msgspec.json.Decoder(list[msgspec.Raw])


def native_calls(text: str) -> list[ToolCall]:
    """The calls in a text that begins with one in a form that models were trained on; none where it is not clear from
    beginning to end."""
    if mistral := _MISTRAL.match(text):
        return _mistral(text[mistral.end() :].strip())
    found: list[ToolCall] = []
    position = 0
    while (one := _HERMES.match(text, position) or _FUNCTION.match(text, position)) is not None:
        call = call_of(one["inner"].strip()) if one.re is _HERMES else _function(one[1], one["inner"].strip())
        if call is None:
            return []
        found.append(call)
        position = one.end()
    return [] if _HAS_NATIVE.search(text, position) else found


_HAS_NATIVE = re.compile(r"</?tool_call>|</?function\b")


def _function(name: str, inner: str) -> ToolCall | None:
    """Only JSON: a form with tags does not say which type a value has."""
    return ToolCall("", name, inner) if inner.startswith("{") and object_end(inner) == len(inner) else None


def _mistral(text: str) -> list[ToolCall]:
    if named := _NAMED.match(text):
        raw = text[named.end() :]
        return [ToolCall("", named[1], raw)] if object_end(raw) == len(raw) else []
    try:
        listed = [call_of(bytes(one).decode()) for one in _objects.decode(text)]
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return []
    return [one for one in listed if one is not None] if all(listed) else []
