"""Independent judges of request bodies, made by others, and bodies for them: whole ones and broken ones.

Each judge gives "" for a request that it takes, and its own words for one that it refuses.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from random import Random
from typing import Any, NamedTuple

from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as MessagesRequest
from langchain_core.messages import convert_to_messages
from mistral_judge import judged
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatRequest
from protocol_vectors import vectors
from pydantic import TypeAdapter, ValidationError
from tessera import MalformedTranscriptError
from tessera import inspect as inspected
from transcripts import NAMES, OUTCOMES, asking

from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.finding.situations import is_object_text
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Profile, Target

Body = dict[str, Any]
Judge = Callable[[Body], str]

# --- the judges -------------------------------------------------------------------------------------


def mistral(body: Body) -> str:
    """The open validator of Mistral, as its servers use it, for tokenizers of version 13."""
    try:
        return judged(body, "v13")
    except ValidationError as error:
        return f"not of its types: {error.errors()[0]['msg']}"


def tessera(adapter: str) -> Judge:
    """A library that inspects and repairs transcripts, for one of its two formats."""

    def judge(body: Body) -> str:
        try:
            report = inspected(body["messages"], adapter=adapter)
        except MalformedTranscriptError as error:
            return f"malformed: {error}"
        except (AttributeError, TypeError) as error:
            return f"crashed: {error}"
        return "; ".join(f"{one.defect.value} at {one.message_index}" for one in report.fatal)

    return judge


def langchain(body: Body) -> str:
    """LangChain's reader of messages."""
    try:
        convert_to_messages(body["messages"])
    except (ValueError, NotImplementedError, KeyError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def types(of: Any) -> Judge:
    """The types of the parameters that a provider's own package declares; `max_tokens` is not what is judged."""
    adapter: TypeAdapter[Any] = TypeAdapter(of)

    def judge(body: Body) -> str:
        try:
            _walk(adapter.validate_python({"max_tokens": 1, **body}))
        except ValidationError as error:
            first = error.errors()[0]
            return f"{first['loc']}: {first['msg']}"
        return ""

    return judge


def _walk(value: Any) -> None:
    """Look at everything: iterables are checked only when somebody takes from them."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for inner in value:
            _walk(inner)


JUDGES: dict[str, tuple[str, Judge]] = {
    "mistral-common": ("mistral", mistral),
    "tessera, openai": ("openai_chat", tessera("openai")),
    "tessera, anthropic": ("anthropic", tessera("anthropic")),
    "langchain-core": ("openai_chat", langchain),
    "types of openai": ("openai_chat", types(ChatRequest)),
    "types of anthropic": ("anthropic", types(MessagesRequest)),
}
"""Judge -> the format of the bodies that it judges, and itself."""

# --- where a judge is wrong -------------------------------------------------------------------------


class Wrong(NamedTuple):
    """Something that a judge refuses though the provider takes it."""

    judge: str
    why: str
    example: list[Any]
    """The smallest messages that show it."""
    cure: Callable[[list[Any]], None]
    """Takes it out of messages, and changes nothing else: what is then refused is refused for another reason."""


def _say_something(messages: list[Any]) -> None:
    for message in messages:
        is_alone = message.get("role") == "assistant" and not message.get("tool_calls")
        if is_alone and isinstance(message.get("content"), str | list):
            message["content"] = "x"


def _write_blocks_as_text(messages: list[Any]) -> None:
    for message in messages:
        held = message.get("content")
        for block in held if message.get("role") == "assistant" and isinstance(held, list) else []:
            if block.get("type") not in ("text", "tool_use"):
                held[held.index(block)] = {"type": "text", "text": "x"}


def _name_calls_anew(messages: list[Any]) -> None:
    """Calls of different messages get different ids; results still name the call before them."""
    latest: dict[Any, str] = {}
    for position, message in enumerate(messages):
        if message.get("tool_calls"):
            latest = {}
        for call in message.get("tool_calls") or []:
            if call.get("id"):
                latest[call["id"]] = call["id"] = f"{call['id']} {position}"
        if message.get("role") == "tool" and message.get("tool_call_id") in latest:
            message["tool_call_id"] = latest[message["tool_call_id"]]


def _write_objects(messages: list[Any]) -> None:
    for message in messages:
        for call in message.get("tool_calls") or []:
            given = call["function"].get("arguments")
            if isinstance(given, str) and not is_object_text(given):
                call["function"]["arguments"] = "{}"


def _write_null(messages: list[Any]) -> None:
    for message in messages:
        if message.get("tool_calls"):
            message.setdefault("content", None)


_HI = {"role": "user", "content": "hi"}
_CALLED = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_CALLS = {"role": "assistant", "content": None, "tool_calls": [_CALLED]}
_ANSWER = {"role": "tool", "tool_call_id": "a", "content": "1"}

WRONG = (
    Wrong(
        "tessera, openai",
        "An empty text is content: OpenAI refuses null without calls, and takes this.",
        [{"role": "assistant", "content": ""}, _HI],
        _say_something,
    ),
    Wrong(
        "tessera, openai",
        "It reads content only where it is a text; the parts of this message say something.",
        [{"role": "assistant", "content": [{"type": "text", "text": "hi"}]}],
        _say_something,
    ),
    Wrong(
        "tessera, openai",
        "Results are matched within the exchange; some servers count calls from zero in every reply.",
        [_CALLS, _ANSWER, _CALLS, _ANSWER],
        _name_calls_anew,
    ),
    Wrong(
        "tessera, anthropic",
        "It knows text and calls; compaction, thinking and the provider's own tools are content too.",
        [_HI, {"role": "assistant", "content": [{"type": "compaction", "content": "x"}]}, _HI],
        _write_blocks_as_text,
    ),
    Wrong(
        "langchain-core",
        "What a model wrote as arguments goes back to OpenAI as it is, be it JSON or not.",
        [{**_CALLS, "tool_calls": [{**_CALLED, "function": {"name": "f", "arguments": "{"}}]}, _ANSWER],
        _write_objects,
    ),
    Wrong(
        "langchain-core",
        "A message with calls needs no content; it may be left out, not only null.",
        [{"role": "assistant", "tool_calls": [_CALLED]}, _ANSWER],
        _write_null,
    ),
)
"""All that the judges refuse and we do not."""


def verdict(name: str, body: Body) -> tuple[str, bool]:
    """What a judge has against a body, where it is not wrong; and whether it was wrong in anything."""
    judge = JUDGES[name][1]
    said = judge(body)
    if not said:
        return "", False
    cured = copy.deepcopy(body)
    for one in WRONG:
        if one.judge == name:
            one.cure(cured["messages"])
    return judge(cured), cured != body


def profile_of(name: str) -> Profile:
    """The profile whose bodies are judged."""
    return FORMATS[name].profile({"tokenizer": "v13"} if name == "mistral" else None)


# --- whole bodies -----------------------------------------------------------------------------------


TEXTS = ("", " ", "\n\t ", "hi", "Grüße", "日本", "\N{GRINNING FACE}", '{"x": "\\', "\x00\x1b[0m", "a.b", "Continue")
CALL_IDS = ("call_A1", "functions.f:0", "abcdefghi", "toolu_01", "fc_" + "0" * 50, "chatcmpl-tool-" + "a" * 32)
PARTS: tuple[Part, ...] = (
    Image("image/png", b"\x89PNG"),
    Image("image/jpeg", url="https://example.org/i.jpg"),
    File("application/pdf", b"%PDF", "a.pdf"),
    File("text/csv", b"a,b"),
)


@cache
def transcripts_made(count: int) -> tuple[tuple[Message, ...], ...]:
    """Random transcripts that are valid and may be sent, the same ones in every run."""
    random = Random(count)
    return tuple(tuple(_transcript(random)) for _ in range(count))


def _transcript(random: Random) -> Iterator[Message]:
    taken: set[str] = set()
    for _ in range(random.choice((0, 1, 1, 2))):
        yield System(_text(random))
    for _ in range(random.randint(0, 6)):
        match random.choice(("user", "user", "note", "assistant", "calls", "calls")):
            case "user":
                yield User(_parts(random))
            case "note":
                yield Note(_text(random))
            case "assistant":
                yield Assistant(_text(random))
            case _:
                calls = tuple(_call(random, taken) for _ in range(random.choice((1, 1, 2, 3, 4))))
                yield Assistant(_text(random), calls)
                for call in calls:
                    yield Result(
                        call.id, call.name, random.choice(("ok", *OUTCOMES)), _parts(random, Json(_value(random)))
                    )


def _text(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice(TEXTS)
    return "".join(chr(random.choice((33, 65, 160, 0x4E00, 0x1F600)) + random.randrange(60)) for _ in range(5))


def _call(random: Random, taken: set[str]) -> ToolCall:
    fresh = [one for one in CALL_IDS if one not in taken]
    made = "".join(random.choice("ab1-_.: é") for _ in range(random.randint(1, 10)))
    call_id = random.choice([*fresh, made, made, made])
    while call_id in taken:
        call_id += "z"
    taken.add(call_id)
    arguments = {_text(random)[:3]: _value(random) for _ in range(random.randrange(3))}
    return ToolCall(call_id, random.choice(NAMES), json.dumps(arguments, ensure_ascii=random.random() < 0.5))


def _value(random: Random, depth: int = 0) -> Any:
    kinds = ("text", "number", "null", "list", "object") if depth < 3 else ("text", "number", "null")
    match random.choice(kinds):
        case "text":
            return _text(random)
        case "number":
            return random.choice((0, -7, 2**53, 1.5, True))
        case "list":
            return [_value(random, depth + 1) for _ in range(random.randrange(3))]
        case "object":
            return {_text(random): _value(random, depth + 1) for _ in range(random.randrange(3))}
        case _:
            return None


def _parts(random: Random, *more: Part) -> tuple[Part, ...]:
    if random.random() < 0.5:
        return (Text(_text(random)),)
    kinds = (*PARTS, *more)
    return tuple(
        Text(_text(random)) if random.random() < 0.4 else random.choice(kinds) for _ in range(random.randrange(4))
    )


def encoded(messages: tuple[Message, ...], format: Format, profile: Profile) -> Body:
    """The request that we build, as it goes over the wire."""
    talk = format.talk(Target(profile=profile, model="m", max_tokens=100))
    body: Body = json.loads(json.dumps(talk.request(asking(list(messages)), stream=False)))
    return body


# --- broken bodies ----------------------------------------------------------------------------------


def broken_bodies(name: str, count: int) -> Iterator[Body]:
    """Bodies of a format, ours and those of the vectors, each with one to three faults or more."""
    random, format, profile = Random(name), FORMATS[name], profile_of(name)
    whole = [encoded(messages, format, profile) for messages in transcripts_made(300) if messages]
    whole += [one.request_fragment for one in vectors() if one.wire_format is format]
    for _ in range(count):
        body = copy.deepcopy(random.choice(whole))
        for _ in range(random.randint(1, 3)):
            random.choice(FAULTS)(body[format.list_field], random)
        yield {"model": "m", **body}


def _drop(messages: list[Any], random: Random) -> None:
    if messages:
        del messages[random.randrange(len(messages))]


def _double(messages: list[Any], random: Random) -> None:
    if messages:
        one = copy.deepcopy(random.choice(messages))
        messages.insert(random.randint(0, len(messages)), one)


def _move(messages: list[Any], random: Random) -> None:
    if messages:
        one = messages.pop(random.randrange(len(messages)))
        messages.insert(random.randint(0, len(messages)), one)


def _cut_head(messages: list[Any], random: Random) -> None:
    del messages[: random.randint(0, max(0, len(messages) - 1))]


def _cut_tail(messages: list[Any], random: Random) -> None:
    del messages[random.randint(1, max(1, len(messages))) :]


def _put_between(messages: list[Any], random: Random) -> None:
    said = random.choice(
        [
            {"role": "user", "content": "and?"},
            {"role": "assistant", "content": "well"},
            {"role": "assistant", "content": ""},
            {"role": "system", "content": "be brief"},
        ]
    )
    messages.insert(random.randint(0, len(messages)), copy.deepcopy(said))


def _split(messages: list[Any], random: Random) -> None:
    """The blocks or the calls of one message on two."""
    for index, message in _shuffled(messages, random):
        for field in ("content", "tool_calls"):
            held = message.get(field)
            if isinstance(held, list) and len(held) > 1:
                at = random.randint(1, len(held) - 1)
                messages[index : index + 1] = [{**message, field: held[:at]}, {**message, field: held[at:]}]
                return


def _join(messages: list[Any], random: Random) -> None:
    """What two messages of one role hold, in one."""
    for index, message in _shuffled(messages, random):
        after = messages[index + 1] if index + 1 < len(messages) else {}
        for field in ("content", "tool_calls"):
            mine, other = message.get(field), after.get(field)
            if message.get("role") == after.get("role") and isinstance(mine, list) and isinstance(other, list):
                messages[index : index + 2] = [{**message, field: mine + other}]
                return


def _shuffled(messages: list[Any], random: Random) -> list[tuple[int, Any]]:
    pairs = list(enumerate(messages))
    random.shuffle(pairs)
    return pairs


def _change_id(messages: list[Any], random: Random) -> None:
    holders = list(_holding(messages, ("id", "tool_call_id", "tool_use_id")))
    if not holders:
        return
    holder, field = random.choice(holders)
    other, its = random.choice(holders)
    value = random.choice(["", None, "nobody", "null", other.get(its), other.get(its), _GONE])
    _set(holder, field, value)


def _change_text(messages: list[Any], random: Random) -> None:
    holders = list(_holding(messages, ("content", "text")))
    if holders:
        _set(*random.choice(holders), random.choice(["", "", " ", None, [], _GONE]))


def _change_arguments(messages: list[Any], random: Random) -> None:
    holders = list(_holding(messages, ("arguments", "input")))
    if holders:
        _set(*random.choice(holders), random.choice(["{", "", "null", "[1]", None, {"x": 1}, '{"x": 1}', _GONE]))


def _change_role(messages: list[Any], random: Random) -> None:
    if messages:
        roles = ["user", "assistant", "tool", "system", "developer", "model", "function", "", None, _GONE]
        _set(random.choice(messages), "role", random.choice(roles))


def _change_name(messages: list[Any], random: Random) -> None:
    holders = list(_holding(messages, ("name",)))
    if holders:
        _set(*random.choice(holders), random.choice(["", "f", "a b", "x" * 70, None, _GONE]))


def _double_inside(messages: list[Any], random: Random) -> None:
    """A call, a result or another block twice in its message."""
    for _, message in _shuffled(messages, random):
        for field in ("tool_calls", "content"):
            held = message.get(field)
            if isinstance(held, list) and held:
                held.insert(random.randint(0, len(held)), copy.deepcopy(random.choice(held)))
                return


def _drop_inside(messages: list[Any], random: Random) -> None:
    """A call, a result or another block less in its message."""
    for _, message in _shuffled(messages, random):
        for field in ("tool_calls", "content"):
            held = message.get(field)
            if isinstance(held, list) and held:
                del held[random.randrange(len(held))]
                return


_GONE = object()


def _set(holder: Any, field: str, value: Any) -> None:
    if value is _GONE:
        holder.pop(field, None)
    else:
        holder[field] = copy.deepcopy(value)


def _holding(value: Any, fields: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
    if isinstance(value, dict):
        for field in fields:
            if field in value:
                yield value, field
        for inner in value.values():
            yield from _holding(inner, fields)
    elif isinstance(value, list):
        for inner in value:
            yield from _holding(inner, fields)


FAULTS = (
    _drop,
    _double,
    _move,
    _cut_head,
    _cut_tail,
    _put_between,
    _split,
    _join,
    _change_id,
    _change_id,
    _change_text,
    _change_arguments,
    _change_role,
    _change_name,
    _double_inside,
    _drop_inside,
)
"""The ways in which bodies are broken."""
