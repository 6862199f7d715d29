"""Random transcripts with long results, and with replies that carry what their makers keep with them.

What a maker keeps is made in the form in which each format's decoder hands it on, so that encoders write it back.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import NamedTuple

from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Opaque,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Profile, Target
from tenlines.wire.targets import goal


class Aim(NamedTuple):
    """Whom requests are for."""

    format: Format
    profile: Profile
    target: Target

    def __repr__(self) -> str:
        return f"{self.target.profile.name}:{self.target.model}"


def aim(name: str, effort: str | None = None, **context: str | bool) -> Aim:
    """An aim by its name in `targets.goal`, or a format with what else is known of the other side."""
    format, profile, model = goal(name)
    if context:
        profile = format.profile({"model": model, **context})
    return Aim(format, profile, Target(profile=profile, model=model or "m", max_tokens=20_000, effort=effort))


AIMS = (
    *map(aim, FORMATS),
    *(aim(name) for name in ("compatible", "strict-template", "vllm", "llama.cpp", "deepseek", "deepseek:deepseek-r1")),
    *(aim(name) for name in ("moonshot:kimi-k2.5", "mimo", "openrouter", "gemini/v1", "mistral-backed", "groq")),
    *(aim("openai_responses", server=name) for name in ("deepseek", "vllm", "llama.cpp")),
    aim("anthropic:claude-opus-5-5", "high"),
    aim("anthropic:claude-opus-5"),
    aim("anthropic:claude-sonnet-4-5", "high"),
    *(aim("anthropic", server=name) for name in ("deepseek", "llama.cpp")),
    *(aim(f"gemini:gemini-{name}") for name in ("2.0-flash", "2.5-pro", "3-pro")),
    *(aim(f"bedrock:{name}") for name in ("us.anthropic.claude-opus-5-5-v1:0", "amazon.nova-pro-v1:0")),
    *(aim(f"bedrock:{name}") for name in ("meta.llama3-70b", "mistral.mistral-large", "writer.palmyra", "deepseek.r1")),
    *(aim(f"mistral:v{number}") for number in (1, 3, 7, 11, 13, 15)),
)
"""Every format, for several of those that speak it."""

_NUMBERS = count()


def signature() -> str:
    """One that looks genuine and that no other block has."""
    return base64.b64encode(f"signed with care: {next(_NUMBERS):06}".encode()).decode()


# --- what makers keep -------------------------------------------------------------------------------


def _calls(number: int) -> list[JsonValue]:
    return [{"call": position} for position in range(number)]


def _anthropic(text: str, calls: int) -> JsonObject:
    thought: JsonValue = {"type": "thinking", "thinking": "hm", "signature": signature()}
    hidden: JsonValue = {"type": "redacted_thinking", "data": signature()}
    said: list[JsonValue] = [{"type": "text", "text": text}] if text else []
    return {"blocks": [thought, hidden, *said, *_calls(calls)]}


def _bedrock(text: str, calls: int) -> JsonObject:
    thought: JsonValue = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": signature()}}}
    said: list[JsonValue] = [{"text": text}] if text else []
    return {"blocks": [thought, *said, *_calls(calls)]}


def _gemini(text: str, calls: int) -> JsonObject:
    said: list[JsonValue] = [{"text": text or "so", **({} if calls else {"thoughtSignature": signature()})}]
    signed = [{"call": at, **({} if at else {"thoughtSignature": signature()})} for at in range(calls)]
    return {"blocks": [*said, *signed]}


def _responses(text: str, calls: int) -> JsonObject:
    number = next(_NUMBERS)
    thought: JsonValue = {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [],
        "encrypted_content": f"gAAAAAB{signature()}",
    }
    said: JsonValue = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text or "so"}],
    }
    return {"blocks": [thought, said, *({"call": at, "id": f"fc_{number}_{at}"} for at in range(calls))]}


def _chat(text: str, calls: int) -> JsonObject:
    return {"reasoning_content": "hm"}


def _openrouter(text: str, calls: int) -> JsonObject:
    detail: JsonValue = {
        "type": "reasoning.text",
        "text": "hm",
        "signature": signature(),
        "format": "anthropic-claude-v1",
    }
    return {"reasoning": "hm", "reasoning_details": [detail]}


def _mistral(text: str, calls: int) -> JsonObject:
    thought: JsonValue = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    return {"blocks": [thought, {"type": "text", "text": text or "so"}, *_calls(calls)]}


def _thinking(text: str, calls: int) -> JsonObject:
    return {"thinking": "hm"}


_KEPT: dict[str, Callable[[str, int], JsonObject]] = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "openai_responses": _responses,
    "openai_chat": _chat,
    "mistral": _mistral,
    "cohere": _thinking,
    "ollama": _thinking,
}


def said(aim: Aim, text: str, calls: tuple[ToolCall, ...] = ()) -> Assistant:
    """A reply with what its maker keeps."""
    make = _openrouter if aim.profile.provider == "openrouter" else _KEPT[aim.format.name]
    return Assistant(text, calls, (Opaque(aim.profile.provider, aim.target.model, make(text, len(calls))),))


# --- transcripts ------------------------------------------------------------------------------------

NAMES = ("f", "get_order", "look-up", "_x")
_LONG = '{"order": 1042, "state": "sent"}, ' * 40
_MEDIA: tuple[Part, ...] = (
    Image("image/png", b"\x89PNG"),
    Image("image/jpeg", url="https://example.org/i.jpg"),
    File("application/pdf", b"%PDF", "a.pdf"),
)


def transcript(random: Random, aim: Aim, units: int) -> list[Message]:
    """A closed transcript: the words of people and instructions are all different, so that each can be looked for."""
    number = count()
    messages: list[Message] = [System(f"rule {next(number)}!") for _ in range(random.choice((0, 1, 1, 2)))]
    messages += [User((Text(f"task {next(number)}!"),)) for _ in range(random.choice((0, 1, 1, 2)))]
    messages += exchange(random, aim, next(number), long=1.0)
    for _ in range(units - 1):
        match random.choice(("user", "note", "reply", "calls", "calls", "calls")):
            case "user":
                messages.append(User((Text(f"word {next(number)}!"), *random.sample(_MEDIA, random.choice((0, 0, 1))))))
            case "note":
                messages.append(Note("hurry"))
            case "reply":
                messages.append(_reply(random, aim, random.choice(("so", "well then", "\N{GRINNING FACE}")), ()))
            case _:
                messages += exchange(random, aim, next(number))
    return messages


def exchange(random: Random, aim: Aim, number: int, long: float = 0.5) -> Iterator[Message]:
    """A reply with calls and their results."""
    calls = tuple(
        ToolCall(f"call{number:03}{position:02}", random.choice(NAMES), json.dumps({"x": number}))
        for position in range(random.choice((1, 1, 2, 3)))
    )
    yield _reply(random, aim, random.choice(("", "", "I look")), calls)
    for call in calls:
        text = _LONG if random.random() < long else "17"
        parts = random.choice(((Text(text),), (Text(text),), (Json({"all": [text]}),), (Text(text), *_MEDIA), ()))
        yield Result(call.id, call.name, random.choice(("ok", "ok", "tool_error", "timeout")), parts)


def _reply(random: Random, aim: Aim, text: str, calls: tuple[ToolCall, ...]) -> Assistant:
    always = aim.profile.has("DSK-4")  # it wants the reasoning of every reply, and there is nothing to put in its place
    return said(aim, text, calls) if always or random.random() < 0.6 else Assistant(text, calls)
