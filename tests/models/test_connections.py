"""Connections: let go when a server leaves its stream open, and one client for each loop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tenlines.core.transcript import Reply
from tenlines.models.connections import ByLoop
from tenlines.models.openai_compatible import OpenAICompatible

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}
DONE = b"data: [DONE]\n\n"
Twice = Callable[..., list[Reply]]


@pytest.fixture(params=["plain", "asyncio"])
def twice(request: pytest.FixtureRequest, request_for: Any) -> Twice:
    """Ask twice, streamed, with one client of a user's."""

    def plain(url: str) -> list[Reply]:
        with openai.OpenAI(api_key="k", base_url=url) as client:
            session = OpenAICompatible("m", client=client).session()
            return [session.complete(request_for(), lambda delta: None) for _ in range(2)]

    async def with_asyncio(url: str) -> list[Reply]:
        async with openai.AsyncOpenAI(api_key="k", base_url=url) as client:
            session = OpenAICompatible("m", async_client=client).session()
            return [await session.acomplete(request_for(), lambda delta: None) for _ in range(2)]

    return plain if request.param == "plain" else lambda url: asyncio.run(with_asyncio(url))


def left_open(gone: list[bool], then: bytes = b"") -> Callable[[Any], None]:
    """A stream with its closing word, and no end; perhaps somebody goes on talking."""

    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        event = f"data: {json.dumps(CHUNK)}\n\n".encode() + DONE
        handler.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        handler.connection.settimeout(0.01)
        until = time.monotonic() + 10
        handler.close_connection = True
        while time.monotonic() < until:
            try:
                if then:
                    handler.wfile.write(f"{len(then):x}\r\n".encode() + then + b"\r\n")
                if not handler.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        gone.append(time.monotonic() < until)

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("then", [b"", b": still here\n\n"], ids=["silent", "talking"])
def test_a_stream_that_is_left_open_is_not_waited_for(chat: Any, twice: Twice, then: bytes) -> None:
    gone: list[bool] = []
    chat.answers += [left_open(gone, then), left_open(gone, then)]
    begun = time.monotonic()
    assert [reply.text for reply in twice(chat.url)] == ["Hi.", "Hi."]
    assert time.monotonic() - begun < 5
    assert len(set(chat.peers)) == 2
    until = time.monotonic() + 5
    while len(gone) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert gone == [True, True]


def test_a_client_for_each_loop_is_closed_with_it() -> None:
    closed: list[Any] = []

    async def close(client: Any) -> None:
        closed.append(client)

    clients: ByLoop[int] = ByLoop(close)

    async def main() -> None:
        first = await clients.get(lambda: len(closed))
        assert await clients.get(lambda: 99) == first
        assert len(clients) == 1

    asyncio.run(main())
    asyncio.run(main())
    assert closed == [0, 1]
    assert not len(clients)
