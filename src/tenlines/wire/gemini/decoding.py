"""Response in, `Reply` out. Total: any JSON gives a `Reply` or an error of `tenlines.errors`, never anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import AuthRejected, MalformedReply, ProviderError
from tenlines.wire import usage
from tenlines.wire.endings import arguments_text, stop_of
from tenlines.wire.errors import error_from
from tenlines.wire.gemini.fields import BESIDE, DATA, camel, field, kinds_of
from tenlines.wire.ids import Names
from tenlines.wire.json_values import excerpt, string

_STOPS: dict[str, StopReason] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "IMAGE_OTHER": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "CONTINUATION": "pause",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
    "TOO_MANY_TOOL_CALLS": "malformed_call",
    "MISSING_THOUGHT_SIGNATURE": "malformed_call",
    "MALFORMED_RESPONSE": "malformed_call",
}
_FAILED = ("OTHER", "ESCALATION")
"""Endings that say that the service failed, and no more than that."""
_ACCOUNT = "PUP_LIMITED_DISABLED"
"""The account was limited: asking again does not help."""


class Origin(NamedTuple):
    """Who made a reply, and how the names in it are read."""

    provider: str
    model: str
    names: Names


class Ending(NamedTuple):
    """Why a reply ended, as the service says it."""

    reason: JsonValue = None
    message: str = ""
    """What it says about it in words."""
    blocked: str = ""
    """Why the prompt was not answered at all."""


def decode_response(data: JsonValue, origin: Origin) -> Reply:
    """The reply in a whole response.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200, or says that the service failed.
    """
    try:
        response = checked(data)
        candidate = first_candidate(response)
        ending = ending_of(response, candidate)
        if candidate is None and not ending.blocked:
            raise MalformedReply("the response has no candidates", excerpt(data))
        return assemble(parts_of(candidate or {}, data), ending, response, origin, [])
    except RecursionError:
        raise MalformedReply("the response is nested too deeply to be read", excerpt(data)) from None


# --- pieces of a response, whole or streamed --------------------------------------------------------


def checked(data: JsonValue) -> JsonObject:
    """An object that is not an error.

    Raises:
        MalformedReply: It is not an object.
        RemoteError: It is an error object.
    """
    whole = data
    if isinstance(data, list) and len(data) == 1:
        data = data[0]  # the service puts errors of a stream into a list
    if not isinstance(data, dict):
        raise MalformedReply("the server did not answer with a JSON object", excerpt(whole))
    if data.get("error"):
        raise error_from(None, data, {})
    return data


def first_candidate(response: JsonObject) -> JsonObject | None:
    """The candidate that counts; None when there is none.

    Raises:
        MalformedReply: What stands there is no candidate.
    """
    candidates = response.get("candidates")
    if not candidates:
        return None
    if not isinstance(candidates, list) or not isinstance(candidates[0], dict):
        raise MalformedReply("the candidates of the response are not a list of objects", excerpt(response))
    for candidate in candidates:
        if isinstance(candidate, dict) and not candidate.get("index"):
            return candidate
    return None  # a chunk with another candidate than the first: we asked for one


def ending_of(response: JsonObject, candidate: JsonObject | None) -> Ending:
    """Why the reply ended, as far as this response says it."""
    feedback = field(response, "promptFeedback")
    blocked = string(field(feedback, "blockReason")) if isinstance(feedback, dict) else ""
    if candidate is None:
        return Ending(None, "", blocked)
    return Ending(field(candidate, "finishReason"), string(field(candidate, "finishMessage")), blocked)


def parts_of(candidate: JsonObject, data: JsonValue) -> list[JsonObject]:
    """The parts of a candidate; none when it has no content, as after a filter.

    Raises:
        MalformedReply: They are not a list of objects.
    """
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise MalformedReply("the parts of the response are not a list", excerpt(data))
    kept = [part for part in parts if isinstance(part, dict)]
    if len(kept) < len(parts):
        raise MalformedReply("a part of the response is not an object", excerpt(data))
    return kept


def assemble(
    parts: Sequence[JsonObject], ending: Ending, data: JsonObject, origin: Origin, remarks: list[str]
) -> Reply:
    """The reply; `data` is where its usage and model are."""
    text: list[str] = []
    calls: list[ToolCall] = []
    blocks: list[JsonObject] = []
    for part in parts:
        body = field(part, "functionCall")
        if isinstance(body, dict):
            blocks.append({"call": len(calls)} | _beside(part))
            calls.append(_call(body, origin.names))
        elif (block := _kept(part)) is not None:
            blocks.append(block)
            text.append("" if part.get("thought") else string(part.get("text")))
    is_plain = all(len(block) == 1 and ("text" in block or "call" in block) for block in blocks)
    payload: JsonObject = {} if is_plain else {"blocks": encodable_value(blocks)}
    return Reply(
        text=encodable("".join(text)),
        calls=tuple(calls),
        stop=_stop(ending, bool(calls), remarks),
        usage=decode_usage(field(data, "usageMetadata"), remarks),
        opaque=(Opaque(origin.provider, origin.model, payload),) if payload else (),
        model=encodable(string(field(data, "modelVersion"))),
        remarks=tuple(remarks),
    )


def _kept(part: JsonObject) -> JsonObject | None:
    """A part as it is sent back; None when there is nothing in it. A signature may come with no text at all, and would
    be refused without the empty one."""
    if kinds_of(part) not in ((), ("text",)) or string(part.get("text")) or not part.keys() <= BESIDE | {"text"}:
        return part
    signature = field(part, "thoughtSignature")
    return {**part, "text": ""} if signature else None


def _beside(part: JsonObject) -> JsonObject:
    """What stands beside a call in its part and goes back with it."""
    rest = {name: value for name, value in part.items() if camel(name) not in DATA}
    if "thought_signature" in rest and "thoughtSignature" not in rest:
        rest["thoughtSignature"] = rest.pop("thought_signature")  # one spelling for the field that encoding looks for
    return rest


def _call(body: JsonObject, names: Names) -> ToolCall:
    given, name, text = body.get("id"), string(body.get("name")), arguments_text(body.get("args"))
    identity = str(given) if type(given) is int else string(given)
    return ToolCall(encodable(identity), encodable(names.own(name)), encodable(text))


def _stop(ending: Ending, has_calls: bool, remarks: list[str]) -> StopReason:
    """Why the reply ended.

    Raises:
        RemoteError: Because the service failed.
    """
    if ending.blocked and not ending.reason:
        remarks.append(encodable(f"the prompt was blocked: {ending.blocked[:80]}"))
        return "content_filter"
    reason = ending.reason
    said = f": {ending.message}" if ending.message else ""
    if reason == _ACCOUNT:
        raise AuthRejected(f"the service broke off the reply: the account is limited ({_ACCOUNT}){said}", code=_ACCOUNT)
    if reason in _FAILED:
        code = string(reason)
        raise ProviderError(f"the service broke off the reply ({code}){said}", code=code, is_retryable=True)
    stop = stop_of(reason or None, _STOPS, remarks)
    if ending.message and stop != "end":
        remarks.append(encodable(f"{string(reason)[:80]}: {ending.message[:500]}"))
    return "tool_calls" if has_calls and stop == "end" else stop


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form: thoughts are output that is counted beside the visible text, and what tools of
    the service put into the prompt is input beside the prompt."""
    if not isinstance(data, dict):
        return None
    thoughts = usage.count(field(data, "thoughtsTokenCount"))
    return usage.inclusive(
        usage.total(usage.count(field(data, "promptTokenCount")), usage.count(field(data, "toolUsePromptTokenCount"))),
        usage.total(usage.count(field(data, "candidatesTokenCount")), thoughts),
        remarks,
        cache_read=usage.count(field(data, "cachedContentTokenCount")),
        reasoning=thoughts,
    )
