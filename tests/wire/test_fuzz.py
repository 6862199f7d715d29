"""Mutated replies, streams and bodies of every format: a value or an error of ours, never anything else.

For each format 100,000 mutations in all: whole replies, streams whose chunks are mutated, lost, doubled or shuffled,
and request bodies that are unfolded, checked, repaired and read. Seeded, so that a finding can be seen again.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec
import pytest
from corpus import STREAMS, WHOLE

from tenlines.core.transcript import Reply
from tenlines.errors import RemoteError
from tenlines.models.server_events import ChunkReader
from tenlines.wire.checking import check
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.openai_chat.compatible import SERVERS
from tenlines.wire.profile import Profile, Target
from tenlines.wire.reading import read
from tenlines.wire.repairing import repair

Context: TypeAlias = dict[str, str | bool]

VECTORS = Path(__file__).parent.parent / "vectors" / "protocol.jsonl"
NAMES = {"bedrock_converse": "bedrock", "openai_compat": "openai_chat"}
REPLIES, STREAMED, CHECKED, REPAIRED, TARGETED = 45_000, 34_000, 15_000, 3_000, 3_000
TARGETS: dict[str, tuple[Context, ...]] = {
    "openai_chat": (
        {"model_family": "gpt-5.6"},
        {"model_family": "o-series"},
        *({"server": server} for server in SERVERS),
        {"server": "deepseek", "thinking": True},
        {"server": "moonshot", "thinking": True},
        {"server": "llama.cpp", "enable_thinking": True},
    ),
    "openai_responses": ({"server": "deepseek"}, {"server": "vllm"}, {"server": "llama.cpp"}),
    "anthropic": (
        {"model": "claude-opus-4-8"},
        {"model": "claude-opus-5"},
        {"model": "claude-opus-5-5"},
        {"model": "claude-sonnet-4-5"},
        {"model": "claude-sonnet-4-6"},
        {"beta": "compact-2026-09-04"},
        {"server": "llama.cpp"},
        {"server": "deepseek"},
    ),
    "gemini": ({"model_family": "gemini-2.5"}, {"model_family": "gemini-3"}, {"model_family": "gemini-2.0"}),
    "bedrock": (
        {"model_family": "anthropic"},
        {"model_family": "amazon.nova"},
        {"model_family": "meta.llama"},
        {"model_family": "mistral"},
        {"model_family": "deepseek"},
        {"model_family": "writer"},
        {"model": "anthropic.claude-opus-5"},
    ),
    "mistral": (*({"tokenizer": version} for version in ("v2", "v3", "v7", "v11", "v13", "v15")),),
    "ollama": ({"server": "ollama-cloud"},),
    "cohere": ({},),
}
"""Format -> what may be known of the other side, beside nothing."""
LEAVES = (None, True, 0, -1, 1e308, "", " ", "\ud83d", "{", '{"a":1}', "x" * 300, [], {}, [[]], {"type": "text"}, ["x"])


def mutated(value: Any, random: Random) -> Any:
    """The value with one to three places changed; the value itself stays as it is."""
    value = json.loads(json.dumps(value))
    for _ in range(random.randint(1, 3)):
        holders = _holders(value)
        if not holders:
            return copy.deepcopy(random.choice(LEAVES))
        _change(random.choice(holders), random)
    return value


def _holders(value: Any) -> list[Any]:
    """What holds something, from the outside in."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if one and isinstance(one, (dict, list)):
            found.append(one)
            waiting.extend(reversed(one.values() if isinstance(one, dict) else one))
    return found


def _change(holder: Any, random: Random) -> None:
    key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, holder[key])
        case 2 if isinstance(holder, list):
            random.shuffle(holder)
        case 3 if isinstance(holder[key], str):
            holder[key] = holder[key][: random.randint(0, len(holder[key]))]
        case 4:
            holder[key] = [holder[key]]
        case _:
            holder[key] = copy.deepcopy(random.choice(LEAVES))


def sound(reply: Reply) -> None:
    """It is a reply that can be stored, and what it says is of the right kinds."""
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply


def talk_of(format: Format) -> Any:
    return format.talk(Target(profile=format.profile(), model="m"))


def outcomes(action: Callable[[], Reply]) -> str:
    raised: RemoteError | None = None
    try:
        sound(action())
    except RemoteError as error:
        raised = error
    assert raised is None or str(raised)
    return type(raised).__name__ if raised is not None else "Reply"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_whole_replies(name: str) -> None:
    random, talk = Random(name), talk_of(FORMATS[name])
    seen = {outcomes(lambda: talk.decode(mutated(random.choice(WHOLE[name]), random))) for _ in range(REPLIES)}
    assert {"Reply", "MalformedReply"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STREAMS))
def test_streams(name: str) -> None:
    random, talk = Random(name), talk_of(FORMATS[name])

    def one() -> Reply:
        decoder, chunks = talk.decoder(), list(random.choice(STREAMS[name]))
        for _ in range(random.randint(1, 2)):
            index = random.randrange(len(chunks))
            match random.randrange(5):
                case 0:
                    del chunks[index:]
                case 1:
                    chunks.insert(index, chunks[index])
                case 2:
                    random.shuffle(chunks)
                case _:
                    chunks[index] = mutated(chunks[index], random)
            if not chunks:
                break
        for chunk in chunks:
            decoder.feed(chunk)
        reply: Reply = decoder.finish()
        return reply

    assert {"Reply", "ConnectionFailed"} <= {outcomes(one) for _ in range(STREAMED)}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STREAMS.keys() - {"bedrock", "ollama"}))  # whose streams are no such events
def test_streams_of_bytes_say_the_same_wherever_they_are_cut(name: str) -> None:
    random, talk = Random(name), talk_of(FORMATS[name])
    data = b"".join(_event(chunk, random) for chunk in STREAMS[name][0])
    (expected,) = {str(_streamed(talk, [data])), str(_streamed(talk, [data[at : at + 1] for at in range(len(data))]))}
    for at in range(len(data)):
        assert str(_streamed(talk, [data[:at], data[at:]])) == expected, at
    for _ in range(200):
        cuts = sorted({0, len(data), *(random.randrange(len(data)) for _ in range(random.randrange(20)))})
        assert str(_streamed(talk, [data[start:end] for start, end in pairwise(cuts)])) == expected, cuts


def _event(chunk: Any, random: Random) -> bytes:
    end = random.choice(["\n", "\r\n", "\r"])
    text = json.dumps(chunk, ensure_ascii=False)
    head = random.choice(["", f"event: {chunk.get('type', 'x')}{end}", f": keep-alive{end}{end}", f"id: 1{end}"])
    return f"{head}data: {text}{end}{end}".encode()


def _streamed(talk: Any, pieces: list[bytes]) -> Reply:
    """The reply in a stream of bytes that comes in these pieces."""
    reader, decoder = ChunkReader(), talk.decoder()
    for piece in pieces:
        for chunk in reader.feed(piece):
            decoder.feed(chunk)
    for chunk in reader.rest():
        decoder.feed(chunk)
    reply: Reply = decoder.finish()
    return reply


@cache
def bodies(name: str) -> tuple[Any, ...]:
    rows = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    return tuple(row["request_fragment"] for row in rows if NAMES.get(row["format"], row["format"]) == name)


def broken(name: str, count: int, seed: str = "") -> Iterator[tuple[Format, Any]]:
    """Mutated bodies that still have a list of messages."""
    format, random = FORMATS[name], Random(name + seed)
    while count:
        body = mutated(random.choice(bodies(name)), random)
        if isinstance(body, dict) and isinstance(body.get(format.list_field), list):
            count -= 1
            yield format, body


def mended(body: Any, format: Format, profile: Profile) -> None:
    """It comes out without errors, once and for all, and what was done can be stored and shown."""
    done = repair(body, format, profile)
    left = [one for one in check(done.body, format, profile) if one.severity == "error"]
    assert left == [], json.dumps(body)
    assert repair(done.body, format, profile).changes == (), json.dumps(body)
    assert msgspec.json.encode(done.changes)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_bodies_are_checked_and_read_whatever_they_hold(name: str) -> None:
    profile = FORMATS[name].profile()
    for format, body in broken(name, CHECKED):
        assert msgspec.json.encode(check(body, format, profile))
        assert msgspec.json.encode(read(body, format, profile))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_bodies_are_repaired_once_and_for_all(name: str) -> None:
    profile = FORMATS[name].profile()
    for format, body in broken(name, REPAIRED):
        mended(body, format, profile)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_bodies_are_repaired_for_whomever_they_go_to(name: str) -> None:
    profiles = [FORMATS[name].profile(context) for context in TARGETS[name]]
    for index, (format, body) in enumerate(broken(name, TARGETED, "targets")):
        mended(body, format, profiles[index % len(profiles)])
