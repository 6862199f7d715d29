"""The endpoint, asked by the clients that people use: OpenAI's own, and LiteLLM."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import openai
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from serve_world import PATIENCE_S, asks, until

from tenlines import Agent, Limits, Reply, Usage, tool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Assistant, File, Image, Result, System, Text, ToolCall, User
from tenlines.errors import ConnectionFailed, ContextTooLong, RateLimited
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Delta, OnDelta
from tenlines.serve import openai_api
from tenlines.serve.openai_api import endpoint
from tenlines.serve.openai_asked import instructed, read
from tenlines.serve.openai_faults import Fault
from tenlines.serve.openai_runs import Offer
from tenlines.serve.openai_told import FINISH, Teller
from tenlines.serve.running import listen
from tenlines.trace.redaction import NONE, Redaction

KEY = "test-key-0123456789"
USED = Usage(input=100, output=20, cache_read=60, reasoning=5)
HI: Any = [{"role": "user", "content": "Where is order 1042?"}]


@tool(read_only=True)
def look(n: int) -> str:
    """Look."""
    return f"row {n}"


@tool(approve=True)
def pay(amount: int, api_key: str = "") -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


PAID: list[int] = []


class Writing:
    """A model that writes its replies piece by piece, where somebody watches; the next one for each result that the
    transcript has.

    Args:
        moves: Replies, texts, or exceptions, which are raised once half of the reply before them was written.
    """

    name = "writing"

    def __init__(self, *moves: Any) -> None:
        self.moves, self.requests = moves, list[CallModel]()

    def session(self) -> Writing:
        return self

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        raise NotImplementedError

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        self.requests.append(request)
        move = self.moves[request.step - 1]
        if callable(move):
            move = await move(request, on_delta)
        if isinstance(move, Exception):
            raise move
        reply = move if isinstance(move, Reply) else Reply(move, usage=USED)
        for at in range(0, len(reply.text), 4) if on_delta else ():
            on_delta(Delta(request.step, reply.text[at : at + 4]))  # type: ignore[misc]
        return reply


class Server(NamedTuple):
    """A server on loopback, and what it stands on."""

    port: int
    journal: MemoryJournal
    server: uvicorn.Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key=KEY, max_retries=0, timeout=PATIENCE_S)

    def ask(self, messages: Any = HI, **more: Any) -> Any:
        with self.client as client:
            return client.chat.completions.create(model="agent", messages=messages, **more)

    def pieces(self, messages: Any = HI, **more: Any) -> list[Any]:
        with self.client as client:
            return list(client.chat.completions.create(model="agent", messages=messages, stream=True, **more))

    def raw(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """A request of one's own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        given = {"Authorization": f"Bearer {KEY}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, text, given)
        answer = connection.getresponse()
        read_text = answer.read()
        connection.close()
        return answer.status, answer.headers, json.loads(read_text) if read_text else None

    def log(self, run_id: str) -> list[ev.AnyEvent]:
        return list(self.journal.read(run_id))


@contextmanager
def serving(model: Any, tools: Sequence[Any] = (look,), shows_steps: bool = False, **more: Any) -> Iterator[Server]:
    """The endpoint on a real server, in a thread."""
    origins, journal = more.pop("origins", ()), MemoryJournal()

    def agent(observers: Sequence[Any]) -> Agent:
        return Agent(model, tools, journal=journal, observers=observers, **more)

    offer = Offer("agent", agent, lambda result: f"resume {result.run_id}", lambda result: ["decide"], shows_steps)
    address = listen(0)
    made = endpoint(offer, KEY, address.port, origins)
    config = uvicorn.Config(
        made.app, http="h11", ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [address.socket]})
    thread.start()
    try:
        until(lambda: server.started, "the server")
        yield Server(address.port, journal, server)
    finally:
        made.end()
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def step(text: str = "Let me look.", **given: Any) -> Reply:
    """A reply that calls `look`, with words beside the call."""
    return Reply(text, asks(("look", given or {"n": 1})).calls, usage=USED)


def content(chunks: Sequence[Any]) -> str:
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


ANSWER = "It is in Basel. ✓"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """An agent that makes two calls and answers."""
    with serving(Writing(step(), step(n=2), ANSWER), instructions="Be brief.") as made:
        yield made


# --- the official client ------------------------------------------------------------------------------


def test_a_whole_answer_is_one_run_in_the_journal(server: Server) -> None:
    done = server.ask()
    choice = done.choices[0]
    assert (choice.message.content, choice.message.role, choice.finish_reason) == (ANSWER, "assistant", "stop")
    assert done.usage.model_dump(exclude_none=True) == {
        "prompt_tokens": 300,
        "completion_tokens": 60,
        "total_tokens": 360,
        "prompt_tokens_details": {"cached_tokens": 180},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    run_id = done.id.removeprefix("chatcmpl-")
    assert (done.model, done.object, done._request_id) == ("agent", "chat.completion", run_id)
    assert done.tenlines["status"] == "answered"
    log = server.log(run_id)
    assert [type(one).__name__ for one in log].count("CallReturned") == 2
    assert done.created == int(log[0].at)


def test_a_streamed_answer_comes_in_the_pieces_of_the_last_reply_alone(server: Server) -> None:
    chunks = server.pieces(stream_options={"include_usage": True})
    assert content(chunks) == ANSWER
    assert [one.choices[0].delta.content for one in chunks[:5]] == ["", "It i", "s in", " Bas", "el. "]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in chunks[:-1]] == [*[None] * (len(chunks) - 2), "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 360)
    assert all(one.usage is None for one in chunks[:-1])
    assert len({(one.id, one.created, one.object) for one in chunks}) == 1


def test_without_being_asked_for_there_is_no_usage_in_a_stream(server: Server) -> None:
    chunks = server.pieces()
    assert all(one.choices and one.usage is None for one in chunks)
    assert "usage" not in chunks[0].model_dump(exclude_unset=True)


def test_the_asynchronous_client_and_two_conversations_at_once(server: Server) -> None:
    async def both() -> tuple[Any, str]:
        async with openai.AsyncOpenAI(base_url=server.url, api_key=KEY, max_retries=0) as client:
            create = client.chat.completions.create

            async def streamed() -> str:
                stream = await create(model="agent", messages=HI, stream=True)
                return "".join([one.choices[0].delta.content or "" async for one in stream])

            return await asyncio.gather(create(model="agent", messages=HI), streamed())

    whole, streamed = asyncio.run(both())
    assert (whole.choices[0].message.content, streamed) == (ANSWER, ANSWER)


def test_conversations_go_on_beside_one_another() -> None:
    together = threading.Barrier(3, timeout=PATIENCE_S)

    @tool(read_only=True)
    def meet() -> str:
        """Wait for the others."""
        together.wait()
        return "met"

    def model(messages: Any) -> Any:
        said = [one["content"] for one in messages if one["role"] == "user"]
        return f"for {said[0]}" if messages[-1]["role"] == "tool" else {"tool_calls": [{"id": "c", "name": "meet"}]}

    with serving(model, [meet]) as server:
        answers: dict[int, str] = {}

        def ask(number: int) -> None:
            answers[number] = server.ask([{"role": "user", "content": str(number)}]).choices[0].message.content

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(PATIENCE_S)
    assert answers == {0: "for 0", 1: "for 1", 2: "for 2"}


def test_the_models_are_the_agent(server: Server) -> None:
    with server.client as client:
        assert [one.id for one in client.models.list()] == ["agent"]
        assert client.models.retrieve("agent").owned_by == "tenlines"
        with pytest.raises(openai.NotFoundError, match="'agent'"):
            client.models.retrieve("gpt-5")
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="gpt-5", messages=HI)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


LITELLM = """
import os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
url, key = sys.argv[1:]
how = dict(model="openai/agent", api_base=url, api_key=key, messages=[{"role": "user", "content": "Where?"}])
done = litellm.completion(**how)
print(done.choices[0].message.content, done.usage.total_tokens)
print("".join(one.choices[0].delta.content or "" for one in litellm.completion(stream=True, **how)))
"""


@pytest.mark.slow
def test_litellm_asks_it_too(server: Server) -> None:
    words = [sys.executable, "-W", "ignore", "-c", LITELLM, server.url, KEY]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{ANSWER} 360", ANSWER], done.stderr[-2000:]
