"""The plain form: messages as dicts in the shape of OpenAI Chat, which everybody has. Pure.

Read leniently, since people write these by hand: what cannot be understood is an error that names the message;
what is understood but broken (an unanswered call, a repeated id) is left for `core.history.mend`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard, cast, get_args

import msgspec

from tenlines.core.outcomes import encodable, sendable
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    JsonValue,
    Message,
    Note,
    Outcome,
    Part,
    Reply,
    Result,
    StopReason,
    System,
    Text,
    ToolCall,
    Usage,
    User,
)
from tenlines.errors import ConfigError, MalformedReply

_MESSAGES = (System, User, Note, Assistant, Result)
_PARTS = (Text, Image, File, Json)
_STOPS: dict[str | None, StopReason] = {
    None: "end",
    "stop": "end",
    "end_turn": "end",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "max_tokens": "length",
    **{reason: reason for reason in get_args(StopReason)},
}
_OUTCOMES: dict[object, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


class History(NamedTuple):
    """Messages that were handed in, and what had to be decided to read them, one sentence each."""

    messages: tuple[Message, ...]
    remarks: tuple[str, ...] = ()


def read_history(messages: Iterable[Message | Mapping[str, Any]]) -> History:
    """Messages of ours, dicts, or a history in any format or dump that is known here; which one is seen from it.

    Raises:
        ConfigError: It is none of these; the message says which one of them and what was expected.
    """
    listed = list(messages)
    if all(isinstance(one, Mapping) for one in listed) and not all(_is_plain(one) for one in listed):
        from tenlines.wire import converting, recognising  # eight formats: only for those who hand one in

        found = recognising.recognise(cast(JsonValue, listed))
        if found is not None:
            imported = converting.imported(cast(JsonValue, listed), found.name)
            return History(imported.messages, (f"the history was {found.reason}", *imported.remarks))
    return History(read_messages(listed))


def _is_plain(message: object) -> bool:
    """Whether a message has the plain form, without anything that only one provider writes."""
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        return False
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    return not {"type", "parts"} & message.keys() and all(_is_plain_part(part) for part in parts)


def _is_plain_part(part: object) -> bool:
    return not isinstance(part, Mapping) or part.get("type") in (None, "text", "image_url")


def read_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """Messages of ours or dicts, as messages. The input is not changed.

    Raises:
        ConfigError: One of them is neither; the message says which and what was expected.
    """
    if isinstance(messages, str | bytes | Mapping):
        raise ConfigError("messages must be a list of messages, not a single one; put it into [ ]")
    return tuple(_message(index, message) for index, message in enumerate(messages))


def _message(index: int, message: Message | Mapping[str, Any]) -> Message:
    if isinstance(message, _MESSAGES):
        return message
    if not isinstance(message, Mapping):
        raise ConfigError(f"message {index} is {type(message).__name__}; expected a dict with 'role' and 'content'")
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            return System(sendable(_text(content)))
        case "user":
            return User(_parts(index, content))
        case "assistant" | "model":
            calls = message.get("tool_calls") or ()
            return Assistant(sendable(_text(content)), tuple(read_call(call) for call in calls))
        case "tool" | "function":
            return Result(
                str(message.get("tool_call_id") or ""),
                str(message.get("name") or ""),
                _OUTCOMES.get(message.get("outcome"), "ok"),
                _parts(index, content),
            )
        case role:
            raise ConfigError(f"message {index} has the role {role!r}; expected system, user, assistant or tool")


def read_call(call: object) -> ToolCall:
    """A tool call in any of the usual dict shapes; arguments may be text, an object, or missing."""
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping):
        raise MalformedReply(f"a tool call must be a dict, not {type(call).__name__}", repr(call))
    inner = call.get("function")
    inner = inner if isinstance(inner, Mapping) else call
    arguments = inner.get("arguments", inner.get("args", inner.get("input")))
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = _json(arguments)
    identity, name = call.get("id"), inner.get("name")
    return ToolCall(
        encodable(identity) if isinstance(identity, str) else "",
        encodable(name) if isinstance(name, str) else "",
        encodable(arguments),
    )


def read_reply(value: object) -> Reply:
    """What a plain function returned for a reply: a `Reply`, a text, or a dict in one of the usual shapes.

    Raises:
        MalformedReply: It is none of these.
    """
    if isinstance(value, Reply):
        return value
    if isinstance(value, str):
        return Reply(sendable(value))
    if not isinstance(value, Mapping):
        raise MalformedReply(
            f"a model must return text, a dict with 'content' or 'tool_calls', or a Reply; got {type(value).__name__}",
            repr(value),
        )
    stop = value.get("stop", value.get("finish_reason"))
    known = _STOPS.get(stop) if stop is None or isinstance(stop, str) else None
    remarks = () if known else (f"the stop reason {stop!r} is not known",)
    text = value.get("text") if value.get("content") is None else value.get("content")
    calls = value.get("tool_calls") or value.get("calls") or ()
    if not isinstance(calls, list | tuple):
        raise MalformedReply(f"'tool_calls' must be a list, not {type(calls).__name__}", repr(calls))
    return Reply(
        sendable(_text(text)),
        tuple(read_call(call) for call in calls),
        known or "unknown",
        _usage(value.get("usage")),
        remarks=remarks,
    )


def _usage(usage: object) -> Usage | None:
    if isinstance(usage, Usage):
        return usage
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        _count(usage, "input", "input_tokens", "prompt_tokens"),
        _count(usage, "output", "output_tokens", "completion_tokens"),
        _count(usage, "cache_read"),
        _count(usage, "cache_write"),
        _count(usage, "reasoning"),
    )


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        if _is_count(value := usage.get(name)):
            return value
    return None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        texts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        return "\n\n".join(text for text in texts if isinstance(text, str))
    return _json(content)


def _parts(index: int, content: object) -> tuple[Part, ...]:
    if isinstance(content, list | tuple):
        return tuple(_part(index, part) for part in content)
    return (Text(sendable(_text(content))),)


def _part(index: int, part: object) -> Part:
    if isinstance(part, _PARTS):
        return part
    if isinstance(part, str):
        return Text(sendable(part))
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return Text(sendable(part["text"]))
    if isinstance(part, Mapping) and part.get("type") == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else image
        if isinstance(url, str):
            return Image("image/*", url=url)
    raise ConfigError(f"message {index} has a part that is not known: {part!r:.100}; expected text or an image_url")


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return str(value)
