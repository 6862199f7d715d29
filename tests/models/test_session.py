"""A session over a transport of the test's own: colours, whole answers, letting go, recognising."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject, JsonValue, Reply, Result, Text, User
from tenlines.errors import ConnectionFailed, MalformedReply, ProtocolRejected, ProviderError
from tenlines.models.session import Heard, Session, Whole, is_whole, open_session
from tenlines.ports import Delta
from tenlines.wire.openai_chat.format import FORMAT
from tenlines.wire.profile import Target

Ask = Callable[..., Reply]
Request = Callable[..., CallModel]

HI: JsonValue = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}
PIECES: list[Heard] = [
    {"choices": [{"delta": {"content": "hel"}}]},
    {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]},
]


class FakeTransport:
    """Answers from memory; remembers the colour, the time and whether streams were closed."""

    address = "memory"

    def __init__(self, heard: list[Heard], has_sync: bool = True, has_async: bool = True) -> None:
        self.heard, self.has_sync, self.has_async = heard, has_sync, has_async
        self.calls: list[tuple[str, float]] = []
        self.bodies: list[Any] = []
        self.closed = threading.Event()
        self.error: Exception | None = None
        self.waits = False

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        assert self.has_sync
        self.calls.append(("send", timeout_s))
        self.bodies.append(body)
        if self.error:
            raise self.error
        return HI

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        assert self.has_async
        self.calls.append(("asend", timeout_s))
        self.bodies.append(body)
        return HI

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        assert self.has_sync
        self.calls.append(("stream", timeout_s))
        try:
            yield from self.heard
        finally:
            self.closed.set()

    async def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        assert self.has_async
        self.calls.append(("astream", timeout_s))
        try:
            for one in self.heard:
                yield one
            if self.waits:
                await asyncio.Event().wait()
        finally:
            self.closed.set()


class _Model:
    def __init__(self, transport: FakeTransport) -> None:
        self.transport, self.name = transport, "fake"

    def session(self) -> Session:
        target = Target(profile=FORMAT.profile({}), model="m")
        return open_session(self.transport, FORMAT, target, timeout_s=9.0)


@pytest.mark.parametrize("colours", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("watched", [False, True])
def test_every_colour_is_served(ask: Ask, request_for: Request, colours: tuple[bool, bool], watched: bool) -> None:
    transport = FakeTransport(PIECES, *colours)
    shown: list[Delta] = []
    reply = ask(_Model(transport), request_for(step=2), shown.append if watched else None)
    assert reply.text == "hello"
    assert shown == ([Delta(2, "hel"), Delta(2, "lo")] if watched else [])
    assert [wait for _, wait in transport.calls] == [9.0]
    assert transport.closed.is_set() is watched


def test_a_whole_answer_to_a_request_for_a_stream(ask: Ask) -> None:
    shown: list[Delta] = []
    assert ask(_Model(FakeTransport([Whole(HI)])), None, shown.append).text == "hello"
    assert shown == [Delta(1, "hello")]


def test_a_stream_is_closed_when_its_chunks_are_no_good(ask: Ask) -> None:
    transport = FakeTransport([7, *PIECES])
    with pytest.raises(MalformedReply):
        ask(_Model(transport), None, lambda _: None)
    assert transport.closed.is_set()


def test_a_stream_is_closed_when_whoever_watches_fails(ask: Ask) -> None:
    transport = FakeTransport(PIECES)

    def fail(delta: Delta) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(_Model(transport), None, fail)
    assert transport.closed.is_set()


def test_cancelling_closes_the_stream(request_for: Request) -> None:
    transport = FakeTransport(PIECES[:1])
    transport.waits = True

    async def main() -> None:
        heard = asyncio.Event()
        session = _Model(transport).session()
        task = asyncio.create_task(session.acomplete(request_for(), lambda _: heard.set()))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert transport.closed.is_set()


def test_a_blocking_stream_stops_at_the_next_piece_when_it_is_given_up(request_for: Request) -> None:
    go = threading.Event()

    class Slow(FakeTransport):
        def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
            try:
                yield PIECES[0]
                assert go.wait(10)
                yield PIECES[0]
                pytest.fail("the thread went on")
            finally:
                self.closed.set()

    transport = Slow([], has_async=False)

    async def main() -> None:
        heard = asyncio.Event()
        session = _Model(transport).session()
        task = asyncio.create_task(session.acomplete(request_for(), lambda _: heard.set()))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    asyncio.run(main())
    assert transport.closed.wait(10)


def test_a_refusal_learns_its_rule(ask: Ask) -> None:
    transport = FakeTransport([], has_async=False)
    said = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    transport.error = ProviderError(f"the server answered 400: {said}", status=400)
    with pytest.raises(ProtocolRejected) as caught:
        ask(_Model(transport))
    assert (caught.value.rule, caught.value.status) == ("OAI-C-9", 400)
    assert caught.value.__cause__ is transport.error


def test_the_deadline_wins_over_the_timeout(ask: Ask, request_for: Request) -> None:
    class _Clock:
        def now(self) -> float:
            return 1000.0

        def wait(self, event: Any, seconds: float) -> None: ...

        async def sleep(self, seconds: float) -> None: ...

    transport = FakeTransport(PIECES)

    class _Timed(_Model):
        def session(self) -> Session:
            return Session(transport, FORMAT.talk(Target(profile=FORMAT.profile({}), model="m")), clock=_Clock())

    ask(_Timed(transport), request_for(deadline_at=1002.5))
    assert transport.calls[0][1] == 2.5
    with pytest.raises(ConnectionFailed, match="deadline"):
        ask(_Timed(transport), request_for(deadline_at=1000.0))
    assert len(transport.calls) == 1


def test_what_would_be_refused_is_repaired_on_its_way_out(ask: Ask, request_for: Request) -> None:
    orphan = Result("c1", "f", "ok", (Text("found"),))
    transport = FakeTransport(PIECES)
    reply = ask(_Model(transport), request_for(User((Text("hi"),)), orphan))
    (body,) = transport.bodies
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert any("the request was repaired" in remark for remark in reply.remarks)


@pytest.mark.parametrize(
    ("content_type", "whole"),
    [
        ("application/json; charset=utf-8", True),
        ("Application/Problem+JSON", True),
        ("text/event-stream", False),
        ("text/plain", False),
        ("", False),
    ],
)
def test_what_is_whole(content_type: str, whole: bool) -> None:
    assert is_whole(content_type) is whole


def test_a_web_page_is_no_stream() -> None:
    with pytest.raises(MalformedReply, match="is the address right"):
        is_whole("text/html; charset=utf-8")


# --- an answer with a schema, while it is written ---------------------------------------------------------

FINISH = ToolSpec("finish", final=True, read_only=True, answer="object")


def _spoken(*texts: str) -> list[Heard]:
    return [
        *({"choices": [{"delta": {"content": text}}]} for text in texts),
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    ]


def _called(name: str, *pieces: str) -> list[Heard]:
    heads: list[JsonObject] = [{"id": "c", "function": {"name": name, "arguments": pieces[0]}}]
    calls: list[JsonObject] = heads + [{"function": {"arguments": piece}} for piece in pieces[1:]]
    chunks: list[Heard] = [{"choices": [{"delta": {"tool_calls": [{"index": 0, **one}]}}]} for one in calls]
    return [*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]


@pytest.mark.parametrize(
    ("heard", "shown"),
    [
        (_called("finish", '{"a"', ": 1}"), [Delta(1, answer='{"a"'), Delta(1, answer=": 1}")]),
        (_called("look", '{"a"', ": 1}"), []),
        (_spoken(" ", '{"a"', ": 1}"), [Delta(1, " "), Delta(1, answer='{"a"'), Delta(1, answer=": 1}")]),
        (_spoken("It is ", '{"a"}'), [Delta(1, "It is "), Delta(1, '{"a"}')]),
    ],
)
def test_what_is_written_of_an_answer_is_shown_apart(
    ask: Ask, request_for: Request, heard: list[Heard], shown: list[Delta]
) -> None:
    seen: list[Delta] = []
    reply = ask(_Model(FakeTransport(heard)), request_for(tools=(FINISH,)), seen.append)
    assert seen == shown
    assert reply == ask(_Model(FakeTransport(heard)), request_for(), lambda _: None), "it is for eyes only"


def test_without_such_a_tool_text_is_text(ask: Ask, request_for: Request) -> None:
    seen: list[Delta] = []
    ask(_Model(FakeTransport(_spoken('{"a"', ": 1}"))), request_for(), seen.append)
    ask(_Model(FakeTransport(_called("finish", "{}"))), request_for(), seen.append)
    assert seen == [Delta(1, '{"a"'), Delta(1, ": 1}")]


def test_an_answer_that_comes_whole_is_shown_whole(ask: Ask, request_for: Request) -> None:
    call = {"id": "c", "function": {"name": "finish", "arguments": '{"a": 1}'}}
    whole: JsonValue = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    seen: list[Delta] = []
    ask(_Model(FakeTransport([Whole(whole)])), request_for(tools=(FINISH,)), seen.append)
    assert seen == [Delta(1, answer='{"a": 1}')]
