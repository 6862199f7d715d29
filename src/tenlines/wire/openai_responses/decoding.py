"""Response in, `Reply` out. Total: any JSON gives a `Reply` or an error of `tenlines.errors`, never anything else.

What the other side got wrong is said in `Reply.remarks`, never mended in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import MalformedReply
from tenlines.wire.errors import error_from
from tenlines.wire.json_values import excerpt, obj, string
from tenlines.wire.openai_responses.encoding import CUSTOM_CALL, is_message
from tenlines.wire.usage import count, inclusive

DEEPEST = 100
"""Levels of nesting in the items of a response that are read; each of them becomes part of a log."""

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}

_SERVERS_OWN = frozenset(
    {
        "reasoning",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "compaction",
        "program",
        "program_output",
        "tool_search_call",
        "tool_search_output",
        "additional_tools",
    }
)
"""Items that the server has dealt with itself: they are kept, and there is nothing to say about them."""


class Reading(NamedTuple):
    """How replies of one run are read.

    Attributes:
        provider: Recorded with opaque artefacts: they go back to the provider and model family that made them.
        model: The model as it was asked for.
        own_name: From the name of a tool in this format to its own.
        limit: Most output tokens that were asked for, where the server does not say that it cut a reply there.
    """

    provider: str = "openai"
    model: str = ""
    own_name: Callable[[str], str] = str
    limit: int | None = None


def decode_response(data: JsonValue, reading: Reading | None = None) -> Reply:
    """The reply in a whole response.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200, or a response that failed.
    """
    response = checked(data)
    output = response.get("output")
    if not isinstance(output, list):
        raise MalformedReply("the response has no list of output items", excerpt(data))
    return assemble(output, response, reading or Reading(), [])


def checked(data: JsonValue) -> JsonObject:
    """An object that is not an error.

    Raises:
        MalformedReply: It is not an object.
        RemoteError: It is an error object.
    """
    if not isinstance(data, dict):
        raise MalformedReply("the server did not answer with a JSON object", excerpt(data))
    if data.get("error"):
        raise error_from(None, {"error": data["error"]}, {})
    return data


def assemble(items: Sequence[JsonValue], response: JsonObject, reading: Reading, remarks: list[str]) -> Reply:
    """The reply.

    Args:
        items: What the model put out, in order.
        response: The response object, where status, usage and model are.
        reading: How it is read.
        remarks: What was odd so far.

    Raises:
        MalformedReply: The items cannot be read.
        RemoteError: The status says that the server failed.
    """
    if is_deeper_than(DEEPEST, items):
        raise MalformedReply("the items of the response are nested too deeply to be read")
    pieces = _Pieces(reading.own_name, remarks)
    for item in items:
        pieces.take(item)
    usage = decode_usage(response.get("usage"), remarks)
    stop = _stop(response, pieces, remarks)
    if stop == "end" and pieces.is_summary:
        stop = "pause"  # there was no answer yet, and a summary that is lost would be paid for again
    written = usage.output if usage is not None else None
    if stop in ("end", "tool_calls") and reading.limit and written and written >= reading.limit:
        stop = "length"
        remarks.append(f"the reply has all of the {reading.limit} output tokens that were allowed: taken as cut off")
    payload: JsonValue = {"blocks": encodable_value(pieces.blocks)}
    return Reply(
        text=encodable("\n\n".join(pieces.texts) or "\n\n".join(pieces.refusals)),
        calls=tuple(pieces.calls),
        stop=stop,
        usage=usage,
        opaque=(Opaque(reading.provider, reading.model, payload),) if pieces.is_more_than_plain else (),
        model=encodable(string(response.get("model"))),
        remarks=tuple(encodable(remark) for remark in remarks),
    )


# --- items ------------------------------------------------------------------------------------------


class _Pieces:
    """What the items of a response say."""

    def __init__(self, own_name: Callable[[str], str], remarks: list[str]) -> None:
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: list[ToolCall] = []
        self.blocks: list[JsonValue] = []
        self.is_more_than_plain = False
        """Some item holds what text and calls do not tell."""
        self._own_name, self._remarks = own_name, remarks

    @property
    def is_summary(self) -> bool:
        """Whether there is nothing but the server's own summary of what stood before."""
        return bool(self.blocks) and all(isinstance(one, dict) and _is_summary(one) for one in self.blocks)

    def take(self, item: JsonValue) -> None:
        """The next item."""
        if not isinstance(item, dict):
            raise MalformedReply("an output item of the response is not an object", excerpt(item))
        if is_message(item):
            self._message(item)
        elif item.get("type") in ("function_call", CUSTOM_CALL):
            self._call(item)
        else:
            self.is_more_than_plain = True
            self.blocks.append(item)
            if string(item.get("type")) not in _SERVERS_OWN:
                self._remarks.append(
                    f"an item of type {excerpt(item.get('type'))[:60]} was kept; nothing was done with it"
                )

    def _message(self, item: JsonObject) -> None:
        content = item.get("content")
        parts: list[JsonValue] = content if isinstance(content, list) else [{"type": "output_text", "text": content}]
        said: dict[str, str] = {"text": "", "refusal": ""}
        for part in parts:
            kind = part.get("type") if isinstance(part, dict) else None
            field = "refusal" if kind == "refusal" else "text"
            text = part.get(field) if isinstance(part, dict) else None
            if kind in ("output_text", "text", "refusal"):
                said[field] += string(text)
            else:
                self.is_more_than_plain = True
                self._remarks.append(f"a part of type {excerpt(kind)[:60]} of a message was kept; it is not shown")
        self.texts += [said["text"]] if said["text"] else []
        self.refusals += [said["refusal"]] if said["refusal"] else []
        self.is_more_than_plain |= item.get("phase") is not None
        self.blocks.append(item)

    def _call(self, item: JsonObject) -> None:
        """The call, and in its place a block with its position and what else must go back with it."""
        call_id = string(item.get("call_id")) or string(item.get("id"))
        name = self._own_name(encodable(string(item.get("name"))))
        written = {"call_id", "name", "arguments", "status", "type"}
        block: JsonObject = {"call": len(self.calls)}
        if item["type"] == CUSTOM_CALL:
            block["type"] = CUSTOM_CALL
            arguments = _argument_text(item.get("input"))
        else:
            arguments = _argument_text(item.get("arguments"))
        block |= {key: value for key, value in item.items() if key not in written and key != "call"}
        self.is_more_than_plain |= any(key not in ("call", "id") and value is not None for key, value in block.items())
        if item.get("status") == "incomplete":
            self._remarks.append(f"the call of {name!r} is incomplete")
        self.calls.append(ToolCall(encodable(call_id), name, encodable(arguments)))
        self.blocks.append(block)


def _is_summary(item: JsonObject) -> bool:
    return item.get("type") == "compaction" and bool(item.get("encrypted_content"))


def _argument_text(arguments: JsonValue) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


# --- how it ended -----------------------------------------------------------------------------------


def _stop(response: JsonObject, pieces: _Pieces, remarks: list[str]) -> StopReason:
    """Why the reply ended. A refusal wins over the presence of calls, and a cut or a filter over both.

    Raises:
        RemoteError: The status says that the server failed.
    """
    status = response.get("status")
    if status in ("failed", "cancelled"):
        message = f"the response has the status {status!r} and no error"
        raise error_from(None, {"error": {"code": "server_error", "message": message}}, {})
    if status == "incomplete":
        return _incomplete(response.get("incomplete_details"), remarks)
    if status in ("in_progress", "queued"):
        return "pause"
    if pieces.refusals:
        return "refusal"
    if status not in (None, "completed"):
        remarks.append(f"unknown status {excerpt(status)[:80]}")
        return "unknown"
    return "tool_calls" if pieces.calls else "end"


def _incomplete(details: JsonValue, remarks: list[str]) -> StopReason:
    reason = details.get("reason") if isinstance(details, dict) else None
    if isinstance(reason, str) and reason in _INCOMPLETE:
        return _INCOMPLETE[reason]
    remarks.append(f"incomplete for an unknown reason: {excerpt(reason)[:80]}")
    return "unknown"


# --- usage ------------------------------------------------------------------------------------------


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form; None when there are none. Cached tokens are part of the input here."""
    if not isinstance(data, dict):
        return None
    details, out_details = data.get("input_tokens_details"), data.get("output_tokens_details")
    details = obj(details)
    cached = count(details.get("cached_tokens"))
    return inclusive(
        count(data.get("input_tokens")),
        count(data.get("output_tokens")),
        remarks,
        cache_read=count(data.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cache_write=count(details.get("cache_write_tokens")),
        reasoning=count(out_details.get("reasoning_tokens")) if isinstance(out_details, dict) else None,
    )


# --- hostile values ---------------------------------------------------------------------------------


def is_deeper_than(levels: int, value: object) -> bool:
    """Whether lists and objects are nested more than so many levels; without recursion."""
    level: list[object] = [value]
    for _ in range(levels):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list | tuple):
                inner.extend(one)
        level = [one for one in inner if isinstance(one, dict | list | tuple)]
        if not level:
            return False
    return True
