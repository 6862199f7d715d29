"""A request for a chat completion, read: what is asked, and what of it this server cannot do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, cast

from msgspec import structs

from tenlines.core.outcomes import encodable
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    JsonObject,
    JsonValue,
    Message,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
    text_of,
)
from tenlines.serve.openai_faults import Fault, unreadable
from tenlines.wire.json_values import string
from tenlines.wire.openai_chat.turns import ROLES, unfold
from tenlines.wire.parts import json_text
from tenlines.wire.turns import Block, Turn


class Asked(NamedTuple):
    """What a request asks for."""

    messages: tuple[Message, ...]
    """The conversation; system messages first."""
    model: str
    stream: bool
    with_usage: bool
    """Whether a stream ends with what was used."""
    max_tokens: int | None
    """Most tokens of each reply of the model."""


def read(body: bytes) -> Asked:
    """Read a request.

    Raises:
        Fault: It cannot be read, or asks for what this server cannot do; it says where.
    """
    asked = _object(body)
    _refuse(asked)
    stream = _flag(asked, "stream")
    options = asked.get("stream_options") or {}
    if not isinstance(options, dict):
        raise unreadable("stream_options", "expected an object")
    return Asked(
        tuple(_messages(asked.get("messages"))),
        string(asked.get("model")),
        stream,
        options.get("include_usage") is True,
        _count(asked, "max_completion_tokens") or _count(asked, "max_tokens"),
    )


def instructed(messages: Sequence[Message], instructions: str) -> tuple[Message, ...]:
    """A conversation under the agent's own instructions: those of the client come behind them."""
    if not instructions:
        return tuple(messages)
    theirs = [one.text for one in messages if isinstance(one, System) and one.text]
    rest = [one for one in messages if not isinstance(one, System)]
    return (System("\n\n".join([instructions, *theirs])), *rest)


def _object(body: bytes) -> JsonObject:
    try:
        # not msgspec: clients write halves of characters (`"\ud83d"`), and what is meant by them can be read
        value = json.loads(body, parse_constant=_no_number)
    except RecursionError:
        raise unreadable("", "the body is nested too deeply") from None
    except ValueError as error:
        raise unreadable("", f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise unreadable("", "the body has to be a JSON object")
    return cast(JsonObject, value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


# --- what is asked beside the messages ----------------------------------------------------------------

_OWN_TOOLS = "the agent has tools of its own, which run on the server; take yours out of the request"
_REFUSED: dict[str, str] = {
    "tools": _OWN_TOOLS,
    "functions": _OWN_TOOLS,
    "logprobs": "replies have no log probabilities",
    "audio": "the agent answers in text",
    "prediction": "the agent's model takes no prediction",
    "web_search_options": _OWN_TOOLS,
}
"""Fields that are refused when they are set: an answer that ignored them would be another one than was asked for."""


def _refuse(asked: JsonObject) -> None:
    for field, why in _REFUSED.items():
        if asked.get(field):
            raise Fault(400, f"{field}: {why}", code="unsupported_parameter", param=field)
    if asked.get("n") not in (None, 1):
        raise Fault(400, "n: a request is one run, with one answer", code="unsupported_parameter", param="n")
    form = asked.get("response_format")
    if form and not (isinstance(form, dict) and form.get("type") == "text"):
        why = "response_format: the agent answers in its own form; leave it out"
        raise Fault(400, why, code="unsupported_parameter", param="response_format")


def _flag(asked: JsonObject, name: str) -> bool:
    value = asked.get(name)
    if value is not None and not isinstance(value, bool):
        raise unreadable(name, "expected true or false")
    return bool(value)


def _count(asked: JsonObject, name: str) -> int | None:
    value = asked.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise unreadable(name, "expected a whole number of 1 or more")
    return value


# --- messages -----------------------------------------------------------------------------------------


def _messages(value: JsonValue) -> Iterator[Message]:
    if not isinstance(value, list) or not value:
        raise unreadable("messages", "expected a list of at least one message")
    for index, message in enumerate(value):
        yield _message(message, f"messages[{index}]")


def _message(message: JsonValue, path: str) -> Message:
    if not isinstance(message, dict):
        raise unreadable(path, "expected an object with `role` and `content`")
    if string(message.get("role")) not in ROLES:
        role = json_text(message.get("role"))[:80]
        raise unreadable(f"{path}.role", f"expected system, developer, user, assistant or tool; got {role}")
    _check_content(message, path)
    turn = unfold(message, path)
    match turn.role:
        case "system":
            return System(encodable(text_of(_parts(turn))))
        case "assistant":
            return Assistant(encodable(text_of(_parts(turn))), tuple(map(_call, turn.of("call"))))
        case "tool":
            (block,) = turn.blocks
            return Result(encodable(block.id), encodable(block.name), "ok", tuple(map(_sound, block.parts)))
        case _:
            return User(_parts(turn))


def _check_content(message: JsonObject, path: str) -> None:
    content = message.get("content")
    if content is None and ROLES[string(message["role"])] == "assistant":
        return
    if not isinstance(content, str | list):
        raise unreadable(f"{path}.content", "expected a text or a list of parts")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        _check_part(part, f"{path}.content[{index}]")


def _check_part(part: JsonValue, path: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind not in ("text", "refusal", "image_url", "input_audio", "file"):
        raise unreadable(path, "expected a part with the `type` text, image_url, input_audio or file")
    if kind in ("text", "refusal"):
        if not isinstance(part.get(kind), str):
            raise unreadable(f"{path}.{kind}", "expected a text")
        return
    (block,) = unfold({"role": "user", "content": [part]}, "").blocks
    if not all(map(_is_there, block.parts)) or not block.parts:
        raise unreadable(f"{path}.{kind}", "its content cannot be read: send it in base64, or as an https address")


def _is_there(part: Part) -> bool:
    """Whether a part has content, or an address that the model's provider may look up."""
    if isinstance(part, Image):
        return bool(part.data) or part.url.lower().startswith(("https://", "http://"))
    return not isinstance(part, File) or bool(part.data)


def _parts(turn: Turn) -> tuple[Part, ...]:
    found: list[Part] = []
    for block in turn.blocks:
        if block.kind == "text":
            found.append(Text(block.text))
        found += block.parts
    return tuple(map(_sound, found))


def _sound(part: Part) -> Part:
    """A part whose texts can be stored."""
    changed: dict[str, Any] = {}
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, str) and encodable(value) != value:
            changed[name] = encodable(value)
    return structs.replace(part, **changed) if changed else part


def _call(block: Block) -> ToolCall:
    given = block.arguments
    arguments = given if isinstance(given, str) and given.strip() else json_text(given or {})
    return ToolCall(encodable(block.id), encodable(block.name), encodable(arguments))
