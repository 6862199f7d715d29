"""The chat template of a real model takes what we write: the real llama.cpp fills it, and goes on from there."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from judges import encoded, transcripts_made
from msgspec import structs

from tenlines.core.transcript import Assistant, File, Image, Message, Note, Result, Text, User
from tenlines.wire.checking import check
from tenlines.wire.formats import FORMATS

pytestmark = [pytest.mark.slow, pytest.mark.local_model]

COUNT, ANSWERED = 200, 10
CHAT = FORMATS["openai_chat"]
PROFILES = pytest.mark.parametrize("server", ["llama.cpp", "compatible"])


def transcripts() -> list[tuple[Message, ...]]:
    """Random ones without images and files, which this model does not take; each with something to answer at its end,
    so that it is never empty."""
    return [
        (*(_told(message) for message in messages), User((Text(f"Question {index}?"),)))
        for index, messages in enumerate(transcripts_made(COUNT))
    ]


def _told(message: Message) -> Message:
    if not isinstance(message, User | Result):
        return message
    return structs.replace(message, parts=tuple(one for one in message.parts if not isinstance(one, Image | File)))


@PROFILES
def test_the_template_takes_every_transcript(small_server: str, server: str) -> None:
    profile = CHAT.profile({"server": server})
    with httpx2.Client(base_url=small_server.removesuffix("/v1"), trust_env=False, timeout=60) as client:
        for messages in transcripts():
            body = encoded(messages, CHAT, profile)
            assert [one for one in check(body, CHAT, profile) if one.severity == "error"] == []
            answer = client.post("/apply-template", json=body)
            assert answer.status_code == 200, f"{answer.text}: {json.dumps(body)}"
            missing = [one for one in said(messages) if one not in answer.json()["prompt"]]
            assert missing == [], json.dumps(body)


def said(messages: tuple[Message, ...]) -> list[str]:
    """What of a transcript has to be in the prompt: what was said, the names of calls and the keys of arguments."""
    found: list[str] = []
    for message in messages:
        match message:
            case User(parts) | Result(_, _, _, parts):
                found += [part.text.strip() for part in parts if isinstance(part, Text)]
            case Note(text):
                found.append(text.strip())
            case Assistant(text, calls):
                found += [text.strip(), *(call.name for call in calls)]
                found += [json.dumps(key, ensure_ascii=False) for call in calls for key in json.loads(call.arguments)]
            case _:
                pass
    return [one for one in found if one]


@PROFILES
def test_the_model_goes_on_from_them(small_server: str, server: str) -> None:
    profile = CHAT.profile({"server": server})
    calling = [one for one in transcripts() if any(isinstance(message, Result) for message in one)]
    shortest = sorted(calling, key=lambda one: len(str(one)))[:ANSWERED]
    with httpx2.Client(base_url=small_server, trust_env=False, timeout=60) as client:
        for messages in shortest:
            body: dict[str, Any] = encoded(messages, CHAT, profile)
            body |= {"max_tokens": 1, "tools": body["tools"][:1]}
            body.pop("max_completion_tokens", None)
            answer = client.post("chat/completions", json=body)
            assert answer.status_code == 200, f"{answer.text}: {json.dumps(body)}"
            assert answer.json()["usage"]["completion_tokens"] == 1
