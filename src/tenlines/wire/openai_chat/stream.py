"""Assembly of a streamed reply of the OpenAI Chat Completions format, for all the ways in which servers stream it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, ToolCall
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire.format import Piece, Written
from tenlines.wire.json_values import excerpt, items
from tenlines.wire.openai_chat.decoding import (
    Ending,
    Pieces,
    assemble,
    checked,
    decode_ending,
    decode_usage,
    id_of,
    name_and_arguments,
    text_of_content,
    usage_of,
)
from tenlines.wire.openai_chat.encoding import REASONING_FIELDS


class StreamDecoder:
    """Assembles a streamed reply. Nothing of it may be used before `finish` has returned."""

    def __init__(self, provider: str = "openai", model: str = "") -> None:
        self._origin = Opaque(provider, model, None)
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: dict[str, list[JsonValue]] = {}
        self._calls = CallAssembly()
        self._ending: Ending | None = None
        self._last: JsonObject = {}

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one chunk.

        Raises:
            MalformedReply: It is not a chunk of this format.
            RemoteError: It is an error object; what came before it is void.
        """
        data = checked(chunk)
        choices = data.get("choices")
        usage = usage_of(data)
        if usage:
            self._last["usage"] = usage  # it may come as several growing snapshots: the last one counts
        if data.get("model"):
            self._last["model"] = data["model"]
        if not isinstance(choices, list) or not choices:
            return Piece(usage=decode_usage(usage, []))
        choice = choices[0]
        if not isinstance(choice, dict):
            raise MalformedReply("a chunk of the stream has a choice that is not an object", excerpt(chunk))
        if choice.get("finish_reason"):
            self._ending = decode_ending(choice["finish_reason"])
        delta = choice.get("delta")
        piece = self._take(delta, chunk) if isinstance(delta, dict) else Piece()
        return piece._replace(usage=decode_usage(usage, [])) if usage else piece

    def _take(self, delta: JsonObject, chunk: JsonValue) -> Piece:
        text, refusal = text_of_content(delta.get("content")), text_of_content(delta.get("refusal"))
        self._text.append(text)
        self._refusal.append(refusal)
        reasoning = ""
        for field in REASONING_FIELDS:
            value = delta.get(field)
            if value:
                self._reasoning.setdefault(field, []).append(value)
                reasoning = reasoning or text_of_content(value)
        entries = delta.get("tool_calls")
        if entries is None and isinstance(delta.get("function_call"), dict):
            entries = [{"function": delta["function_call"]}]
        return Piece(text + refusal, reasoning, written=self._calls.written(entries, chunk))

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
        """
        if self._ending is None:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        remarks: list[str] = []
        calls, extras = self._calls.finish(remarks)
        reasoning = {field: _joined(values) for field, values in self._reasoning.items()}
        pieces = Pieces("".join(self._text), "".join(self._refusal), calls, reasoning, extras)
        return assemble(pieces, self._ending, self._last, self._origin, remarks)


def _joined(values: list[JsonValue]) -> JsonValue:
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return "".join(texts)
    details: list[JsonValue] = []
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            grown = _continued(details[-1], item) if details else None
            if grown is None:
                details.append(item)
            else:
                details[-1] = grown
    return details


def _continued(last: JsonValue, item: JsonValue) -> JsonValue:
    """Two neighbouring pieces of one text of OpenRouter's `reasoning_details` as one; None for anything else."""
    if not isinstance(last, dict) or not isinstance(item, dict) or item.get("index") != last.get("index"):
        return None
    field = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(item.get("type")))
    if field is None or item.get("type") != last.get("type") or item.get("id", last.get("id")) != last.get("id"):
        return None
    texts = [piece[field] for piece in (last, item) if isinstance(piece.get(field), str)]
    joined: JsonObject = {**last, **{key: value for key, value in item.items() if value is not None}}
    return {**joined, field: "".join(text for text in texts if isinstance(text, str))} if texts else joined


class _OpenCall:
    """A call of which pieces are arriving."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.fragments: list[tuple[int | None, str]] = []
        self.extra: JsonValue = None

    @property
    def arguments(self) -> str:
        return "".join(text for _, text in self.fragments)


class CallAssembly:
    """Puts the pieces of streamed calls together.

    Servers break every rule of the format (missing, repeated and shifted indices, late ids, repeated ids), so:

    1. A piece with an id that was seen belongs to that call, whatever its index.
    2. A piece with a new id on an index whose call has another id opens a new call.
    3. Without an id, a seen index means that call; an unseen one means the open call if its arguments are
       incomplete, else a new call. Without id and index: the open call.
    4. Id and name are set once; a name may come in pieces while there are no arguments yet.
    5. A piece that names another tool than the call whose arguments have begun is a call of its own; so is a piece
       without id that names a tool and brings arguments, when the call has a complete set of other arguments.
       Servers send whole calls without ids, all at index 0.
    6. Arguments are only ever appended. Whether they were cumulative is decided at the end, on evidence.
    """

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._by_id: dict[str, _OpenCall] = {}
        self._by_index: dict[int, _OpenCall] = {}

    def written(self, entries: JsonValue, chunk: JsonValue) -> tuple[Written, ...]:
        """All of `delta.tool_calls`: what they add to arguments.

        Raises:
            MalformedReply: One of them is no call.
        """
        found: list[Written] = []
        for entry in items(entries):
            if not isinstance(entry, dict):
                raise MalformedReply("a tool call of the stream is not an object", excerpt(chunk))
            found.append(self.take(entry))
        return tuple(one for one in found if one.text)

    def take(self, entry: JsonObject) -> Written:
        """One entry of `delta.tool_calls`."""
        call_id = id_of(entry)
        raw_index = entry.get("index")
        index = raw_index if type(raw_index) is int else None
        name, fragment = name_and_arguments(entry)
        call = self._owner(call_id, index, name)
        if call is None or _is_another(call, call_id, name, fragment):
            call = _OpenCall()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if call_id and not call.id:
            call.id = call_id
            self._by_id[call_id] = call
        if name and name != call.name and not (call.name and call.fragments):
            call.name += name
        if fragment:
            call.fragments.append((index, fragment))
        if entry.get("extra_content") is not None:
            call.extra = entry["extra_content"]
        return Written(call.name, fragment)

    def _owner(self, call_id: str, index: int | None, name: str) -> _OpenCall | None:
        at_index = None if index is None else self._by_index.get(index)
        if call_id:
            seen = self._by_id.get(call_id)
            late = at_index if at_index is not None and not at_index.id else None
            return seen or late
        if at_index is not None:
            return at_index
        current = self._calls[-1] if self._calls else None
        if index is None or current is None:
            return current
        is_tail = not name and not _is_object(current.arguments)
        return current if is_tail else None

    def finish(self, remarks: list[str]) -> tuple[list[ToolCall], list[JsonValue]]:
        """The calls in order of their first appearance, and what came along with each."""
        calls: list[ToolCall] = []
        extras: list[JsonValue] = []
        for call in self._calls:
            if not call.name and not call.arguments:
                continue  # an empty entry, as some servers open every stream with
            for arguments in _settled(call, remarks):
                calls.append(ToolCall(call.id, call.name, arguments))
                extras.append(call.extra)
        return calls, extras


def _is_another(call: _OpenCall, call_id: str, name: str, fragment: str) -> bool:
    if not name or not call.name or not call.fragments:
        return False
    if name != call.name:
        return True
    return bool(fragment) and not call_id and fragment != call.arguments and _is_object(call.arguments)


def _settled(call: _OpenCall, remarks: list[str]) -> Sequence[str]:
    """The arguments of a call; those of several when pieces of several carried one id."""
    arguments = call.arguments
    if len(call.fragments) < 2 or not arguments.strip() or _is_object(arguments):
        return (arguments,)
    texts = [text for _, text in call.fragments]
    grows = all(after.startswith(before) for before, after in pairwise(texts))
    if grows and _is_object(texts[-1]):
        remarks.append(f"the arguments of {call.name!r} came as growing snapshots; the last one was taken")
        return (texts[-1],)
    by_index: dict[int | None, str] = {}
    for index, text in call.fragments:
        by_index[index] = by_index.get(index, "") + text
    if len(by_index) > 1 and all(_is_object(text) for text in by_index.values()):
        apart = tuple(dict.fromkeys(by_index.values()))
        remarks.append(f"one id for {len(by_index)} pieces of {call.name!r}; taken as {len(apart)} calls")
        return apart
    remarks.append(f"the arguments of {call.name!r} do not form one JSON object")
    return (arguments,)


def _is_object(text: str) -> bool:
    if not text.rstrip().endswith("}"):
        return False  # asked of every piece, so the common case must not parse
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
