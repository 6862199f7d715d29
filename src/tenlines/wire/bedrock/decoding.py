"""Converse response in, `Reply` out. Total: any JSON gives a `Reply` or an error of `tenlines.errors`."""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import MalformedReply
from tenlines.wire.endings import arguments_text, stop_of
from tenlines.wire.errors import error_from
from tenlines.wire.ids import Names
from tenlines.wire.json_values import excerpt, items, obj, string
from tenlines.wire.usage import count, exclusive

STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "tool_use": "tool_calls",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": "malformed_call",
    "malformed_tool_use": "malformed_call",
    "model_context_window_exceeded": "context_overflow",
}


UNKNOWN = "SDK_UNKNOWN_MEMBER"
"""What stands in the place of a block that is younger than the SDK."""
TOO_DEEP = "the reply is nested too deeply to be read"


class Reading(NamedTuple):
    """What is known beforehand of a reply."""

    names: Names
    provider: str = "bedrock"
    model: str = ""
    """The model as it was asked for."""
    drops_calls: bool = False
    """The run asked for words alone, which the format cannot say: calls are left out of the reply."""
    remark: str = ""
    """What could not be asked for as the run wanted it."""


class Whole(NamedTuple):
    """A block of a reply, complete: as it came, and the call in it."""

    raw: JsonObject
    call: ToolCall | None = None


def decode_response(data: JsonValue, reading: Reading) -> Reply:
    """The reply in a whole response.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200.
    """
    try:
        return _decode(data, reading)
    except RecursionError as error:
        raise MalformedReply(TOO_DEEP) from error


def _decode(data: JsonValue, reading: Reading) -> Reply:
    whole = checked(data)
    output = whole.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        raise MalformedReply("the response has no output message", excerpt(data))
    blocks = [block for block in content if isinstance(block, dict)]
    pieces = [_piece(block) for block in blocks if UNKNOWN not in block]
    remarks = [
        f"left out a block that the SDK does not know: {excerpt(block[UNKNOWN])[:80]}"
        for block in blocks
        if UNKNOWN in block
    ]
    return assemble(pieces, whole, reading, remarks)


def checked(data: JsonValue) -> JsonObject:
    """An object that is not an error.

    Raises:
        MalformedReply: It is not an object.
        RemoteError: It is an error object.
    """
    if not isinstance(data, dict):
        raise MalformedReply("the service did not answer with a JSON object", excerpt(data))
    is_error = data.get("Error") or data.get("__type") or any(key.endswith("Exception") for key in data)
    if is_error and "output" not in data:
        raise error_from(None, data, {})
    return data


def _piece(block: JsonObject) -> Whole:
    use = block.get("toolUse")
    if not isinstance(use, dict) or use.get("type"):
        return Whole(block)  # what has a type runs at the service
    text = arguments_text(use.get("input"))
    return Whole(block, ToolCall(string(use.get("toolUseId")), string(use.get("name")), text))


def assemble(pieces: list[Whole], ending: JsonObject, reading: Reading, remarks: list[str]) -> Reply:
    """The reply; `ending` has `stopReason`, `usage` and `trace`."""
    if reading.remark:
        remarks.append(reading.remark)
    calls = [piece.call for piece in pieces if piece.call is not None]
    if calls and reading.drops_calls:
        remarks.append(f"calls were not wanted, which this format cannot say; left out: {len(calls)}")
        pieces, calls = [piece for piece in pieces if piece.call is None], []
    payload = None if _is_plain(pieces) else encodable_value(_payload(pieces))
    return Reply(
        text=encodable("".join(_visible(piece.raw) for piece in pieces)),
        calls=tuple(
            ToolCall(encodable(call.id), reading.names.own(encodable(call.name)), encodable(call.arguments))
            for call in calls
        ),
        stop=_stop(ending.get("stopReason"), bool(calls), remarks),
        usage=decode_usage(ending.get("usage"), remarks),
        opaque=() if payload is None else (Opaque(reading.provider, reading.model, payload),),
        model=encodable(_routed(ending.get("trace"))),
        remarks=tuple(remarks),
    )


def _stop(reason: JsonValue, has_calls: bool, remarks: list[str]) -> StopReason:
    stop = stop_of(reason or None, STOPS, remarks)
    if has_calls:
        return "tool_calls" if stop in ("end", "stop_sequence") else stop
    return "end" if stop == "tool_calls" else stop


def _is_plain(pieces: list[Whole]) -> bool:
    """Whether text and calls say it all: text first, nothing beside it."""
    was_call = False
    for piece in pieces:
        if piece.call is None:
            if was_call or set(piece.raw) != {"text"} or not isinstance(piece.raw["text"], str):
                return False
        else:
            was_call = True
            if set(piece.raw) != {"toolUse"} or _extras(piece):
                return False
    return True


def _payload(pieces: list[Whole]) -> JsonObject:
    blocks: list[JsonValue] = []
    position = 0
    for piece in pieces:
        if piece.call is None:
            blocks.append(piece.raw)
        else:
            blocks.append({"call": position, **_extras(piece)})
            position += 1
    return {"blocks": blocks}


def _extras(piece: Whole) -> JsonObject:
    held = obj(piece.raw.get("toolUse"))
    return {key: one for key, one in held.items() if key not in ("toolUseId", "name", "input", "call")}


def _visible(block: JsonObject) -> str:
    """The text of a block; of one with citations, the text that they belong to."""
    if isinstance(block.get("text"), str):
        return string(block["text"])
    cited = block.get("citationsContent")
    content = cited.get("content") if isinstance(cited, dict) else None
    texts = [one.get("text") for one in items(content) if isinstance(one, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _routed(trace: JsonValue) -> str:
    """The model that a prompt router chose; the response does not name any other."""
    router = trace.get("promptRouter") if isinstance(trace, dict) else None
    return string(obj(router).get("invokedModelId"))


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form; cached tokens stand beside the input here."""
    if not isinstance(data, dict):
        return None
    return exclusive(
        count(data.get("inputTokens")),
        count(data.get("outputTokens")),
        remarks,
        cache_read=count(data.get("cacheReadInputTokens")),
        cache_write=count(data.get("cacheWriteInputTokens")),
    )
