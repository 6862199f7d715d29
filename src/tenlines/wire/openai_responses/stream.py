"""Assembly of a streamed reply of the Responses format, for all the ways in which servers stream it.

A finished item (`response.output_item.done`) is the truth about that item. Where a server leaves that event out, the
item is taken from the response that ends the stream, and where that has no items either, from the pieces.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.errors import ConnectionFailed, MalformedReply, RemoteError
from tenlines.wire.errors import error_from
from tenlines.wire.format import Piece, Written
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.openai_responses.decoding import Reading, assemble, checked, decode_usage


class _Field(NamedTuple):
    """What a kind of event brings pieces of."""

    item: str
    """Type of the item that it belongs to."""
    part: str
    """Type of the part that it belongs to; "" when it is a field of the item."""
    whole: str
    """Name of the field with all of it, in the item or part and in the `done` event."""
    counter: str = ""
    """Name of the field that counts the parts."""


_FIELDS = {
    "response.output_text": _Field("message", "output_text", "text", "content_index"),
    "response.refusal": _Field("message", "refusal", "refusal", "content_index"),
    "response.function_call_arguments": _Field("function_call", "", "arguments"),
    "response.custom_tool_call_input": _Field("custom_tool_call", "", "input"),
    "response.reasoning_summary_text": _Field("reasoning", "summary_text", "text", "summary_index"),
    "response.reasoning_text": _Field("reasoning", "reasoning_text", "text", "content_index"),
}
_ENDS = ("completed", "incomplete", "done", "failed", "cancelled")
_VISIBLE = ("output_text", "refusal")
_THOUGHT = ("summary_text", "reasoning_text")


class _Slot:
    """An item of which events are arriving."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.begun: JsonObject = {}
        self.done: JsonObject | None = None
        self.parts: dict[tuple[_Field, int], list[str]] = {}

    def assembled(self) -> JsonObject:
        """The item from its pieces. What was encrypted of it so far may be incomplete, so it is left out."""
        item = {key: value for key, value in self.begun.items() if key != "encrypted_content"}
        lists: dict[str, list[JsonValue]] = {}
        for field, position in sorted(self.parts, key=lambda key: key[1]):
            item.setdefault("type", field.item)
            whole = "".join(self.parts[field, position])
            if field.part:
                home = "summary" if field.part == "summary_text" else "content"
                lists.setdefault(home, []).append({"type": field.part, field.whole: whole})
            else:
                item[field.whole] = whole
        return item | lists


class StreamDecoder:
    """Assembles a streamed reply. Nothing of it may be used before `finish` has returned."""

    def __init__(self, reading: Reading | None = None) -> None:
        self._reading = reading or Reading()
        self._slots: list[_Slot] = []
        self._by_id: dict[str, _Slot] = {}
        self._by_index: dict[int, _Slot] = {}
        self._response: JsonObject | None = None
        self._model: JsonValue = None

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in the data of one event.

        Raises:
            MalformedReply: It is not an event of this format.
            RemoteError: It reports an error; what came before it is void.
        """
        event = checked(chunk)
        kind = event.get("type")
        if not isinstance(kind, str):
            if isinstance(event.get("output"), list):
                self._response = event  # a gateway that answers a stream with one whole response
            return Piece()
        if kind in ("error", "response.error"):
            raise error_from(None, {key: value for key, value in event.items() if key != "type"}, {})
        head, _, tail = kind.rpartition(".")
        if head == "response":
            return self._whole(event.get("response"), tail)
        if head == "response.output_item" and tail in ("added", "done"):
            self._item(event, tail)
        elif head in _FIELDS and tail in ("delta", "done"):
            return self._piece(event, _FIELDS[head], tail)
        return Piece()

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
            MalformedReply: What came is no reply.
        """
        if self._response is None:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        response = self._response if self._response.get("model") else {**self._response, "model": self._model}
        return assemble(self._items(items(response.get("output"))), response, self._reading, [])

    # --- events -------------------------------------------------------------------------------------

    def _whole(self, response: JsonValue, tail: str) -> Piece:
        """The response object, as it stands at the beginning or at the end; what has been used by then."""
        held = obj(response)
        self._model = held.get("model") or self._model
        if tail == "failed" or (tail in _ENDS and held.get("error")):
            raise _failure(held.get("error"))
        if tail in _ENDS:
            status = "completed" if tail == "done" else tail
            self._response = {**held, "status": held.get("status") or status}
        return Piece(usage=decode_usage(held.get("usage"), []))

    def _item(self, event: JsonObject, tail: str) -> None:
        item = event.get("item")
        if not isinstance(item, dict):
            raise MalformedReply("an event of the stream has an item that is not an object")
        slot = self._slot(event, item.get("id"), opens=tail == "added")
        if tail == "done":
            slot.done = item
        else:
            slot.begun = item

    def _piece(self, event: JsonObject, field: _Field, tail: str) -> Piece:
        slot = self._slot(event, event.get("item_id"), opens=False)
        position = event.get(field.counter)
        held = slot.parts.setdefault((field, position if type(position) is int else 0), [])
        text = event.get("delta" if tail == "delta" else field.whole)
        if not isinstance(text, str):
            return Piece()
        is_new = tail == "delta" or not held
        if tail == "done":
            held.clear()
        held.append(text)
        if not is_new:
            return Piece()
        if field.item == "function_call":
            return Piece(written=(Written(string(slot.begun.get("name")), text),))
        return Piece(text if field.part in _VISIBLE else "", text if field.part in _THOUGHT else "")

    def _slot(self, event: JsonObject, item_id: JsonValue, *, opens: bool) -> _Slot:
        """The item that an event is about: by its id, else by its index, else the one that is open.

        Servers leave out either, give one index to all, or change an item's id on the way.
        """
        number = event.get("output_index")
        index = number if type(number) is int else None
        name = string(item_id)
        slot = self._by_id.get(name) if name else None
        if slot is None and index is not None:
            slot = self._by_index.get(index)
            if slot is not None and (opens or slot.done) and (name or opens):
                slot = None  # another item on the index of one that is there
        elif slot is None and not opens:
            slot = self._open_slot(event, name)
        if slot is None:
            slot = _Slot()
            self._slots.append(slot)
        if name:
            slot.ids.add(name)
            self._by_id[name] = slot
        if index is not None:
            self._by_index[index] = slot
        return slot

    def _open_slot(self, event: JsonObject, name: str) -> _Slot | None:
        """The item that is open, for an event without an index and with no id that is known."""
        waiting = [slot for slot in self._slots if slot.done is None]
        item = event.get("item")
        if isinstance(item, dict):  # a finished item may have lost its id, or have another one than it began with
            alike = [slot for slot in waiting if slot.assembled().get("type") == item.get("type")]
            called = [slot for slot in alike if slot.begun.get("call_id") == item.get("call_id")]
            return next(iter(called or alike), None)
        return waiting[-1] if waiting and not name else None

    # --- the end ------------------------------------------------------------------------------------

    def _items(self, listed: list[JsonValue]) -> list[JsonValue]:
        """All items: finished ones as they were sent, others from the response that ended the stream.

        Args:
            listed: The items in that response.
        """
        at = _matched(self._slots, listed)
        if len(set(at.values())) == len(self._slots) and listed:
            slots = {position: self._slots[number] for number, position in at.items()}
            return [
                (slots[position].done if position in slots else None) or item for position, item in enumerate(listed)
            ]
        items: list[JsonValue] = []
        for number, slot in enumerate(self._slots):
            items.append(slot.done or (listed[at[number]] if number in at else slot.assembled()))
        return items + [item for position, item in enumerate(listed) if position not in at.values()]


def _matched(slots: list[_Slot], listed: list[JsonValue]) -> dict[int, int]:
    """Which slot is which item of a list: by id, else the next one of its type."""
    at: dict[int, int] = {}
    free = {position: item for position, item in enumerate(listed) if isinstance(item, dict)}
    for by_id in (True, False):
        for number, slot in enumerate(slots):
            kind = (slot.done or slot.assembled()).get("type")
            for position, item in free.items() if number not in at else ():
                if string(item.get("id")) in slot.ids if by_id else item.get("type") == kind:
                    at[number] = position
                    del free[position]
                    break
    return at


def _failure(error: JsonValue) -> RemoteError:
    reported: JsonValue = error or {"code": "server_error", "message": "the response failed without saying why"}
    return error_from(None, {"error": reported}, {})
