"""The endpoint on a real server in a thread, and a model that writes its replies piece by piece."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import openai
from serve_world import PATIENCE_S, asks

from tenlines import Agent, Reply, Usage, tool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Delta, OnDelta
from tenlines.serve.openai_api import endpoint
from tenlines.serve.openai_runs import Offer
from tenlines.serve.running import listen, server_of

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
            if isinstance(move, Reply):
                return move
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
    begun = threading.Event()
    server = server_of(made.app, made.end, begun.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [address.socket]}, daemon=True)
    thread.start()
    try:
        assert begun.wait(PATIENCE_S)
        yield Server(address.port, journal)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def step(text: str = "Let me look.", **given: Any) -> Reply:
    """A reply that calls `look`, with words beside the call."""
    return Reply(text, asks(("look", given or {"n": 1})).calls, usage=USED)


def content(chunks: Sequence[Any]) -> str:
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


ANSWER = "It is in Basel. ✓"


def paying() -> Any:
    return serving(Writing(Reply(calls=asks(("pay", {"amount": 5, "api_key": "sk-planted-0"})).calls), "Paid."), [pay])


def says(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}
