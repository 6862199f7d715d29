"""What every client must live through, whatever its provider: one suite, and a server on loopback that speaks,
checks and breaks a provider's format.

To test a client, write a `Speaker` (the provider's side of its format) and subclass the suite:

```python
class TestMyClient(Scenarios):
    speaker = MySpeaker()
```

The server looks at every request with the checker of the format, and refuses what breaks a rule.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Protocol

import pytest

from tenlines import Agent, RunResult
from tenlines.core import events as ev
from tenlines.ports import Model
from tenlines.testing import FakeClock, RecordingObserver
from tenlines.wire.checking import check
from tenlines.wire.format import Format
from tenlines.wire.profile import Profile

# --- what is said -------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A call in a reply."""

    id: str
    name: str
    arguments: dict[str, Any]


class Said(NamedTuple):
    """A reply of the model, in no format."""

    text: str
    calls: tuple[Call, ...] = ()
    input_tokens: int = 100
    cached_tokens: int = 60
    output_tokens: int = 7
    """`input_tokens` are all of them, the cached ones included: a speaker writes them as its provider counts."""


class Speaker(Protocol):
    """A provider's side of its format.

    Attributes:
        format: The wire format.
        profile: By which requests are checked.
        content_type: Of a stream.
        busy: Status of an answer that says that the server has too much to do (529, 503).
        refusal: What the provider says to a request that breaks a rule, and the rule's id.
        overflow: What it says to a request that is too long.
        artefact: What of a reply with calls must go back verbatim with the next request (a signature); "" for nothing.
        can_hang_up: Whether cancelling a run under asyncio closes the connection (a blocking client cannot).
    """

    format: Format
    profile: Profile
    content_type: str
    busy: int
    refusal: tuple[str, str]
    overflow: str
    artefact: str
    can_hang_up: bool

    def model(self, url: str) -> Model:
        """The client under test, at the root of a server."""
        ...

    def wants_stream(self, path: str, body: Any) -> bool:
        """Whether a request asks for a stream."""
        ...

    def whole(self, said: Said) -> Any:
        """A reply as a whole response: JSON."""
        ...

    def events(self, said: Said) -> list[bytes]:
        """A reply as a stream: bytes, event by event; non-ASCII characters as UTF-8."""
        ...

    def error(self, status: int, message: str) -> Any:
        """An error answer: JSON."""
        ...

    def error_event(self) -> bytes:
        """A word inside a stream that had begun: the server has too much to do."""
        ...


def sse(data: Any, name: str = "") -> bytes:
    """A server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


# --- the server ---------------------------------------------------------------------------------------


class Raw(NamedTuple):
    """An answer, byte by byte."""

    pieces: list[bytes]
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False
    """The connection ends before the body does."""


Fault = Callable[[Speaker, Said, bool], Raw]
"""How an answer goes wrong (or not): of the speaker, what should be said, and whether it is streamed."""


def well(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """As it should be."""
    if is_stream:
        return Raw(speaker.events(said), content_type=speaker.content_type)
    return Raw([json.dumps(speaker.whole(said), ensure_ascii=False).encode()])


def in_single_bytes(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """All is well, but it comes byte by byte."""
    raw = well(speaker, said, is_stream)
    return raw._replace(pieces=[bytes([one]) for one in b"".join(raw.pieces)])


def cut(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """The connection breaks in the middle: of a call, where there is one."""
    raw = well(speaker, said, is_stream)
    body = b"".join(raw.pieces)
    end = body.index(b"zebra") if b"zebra" in body else len(body) // 2
    return raw._replace(pieces=[body[: end + 3]], is_cut=True)


def ended_early(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """The body ends in good order, but too early."""
    return cut(speaker, said, is_stream)._replace(is_cut=False)


def half_a_character(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """A character of two bytes has one, and another character's."""
    raw = well(speaker, said, is_stream)
    return raw._replace(pieces=[piece.replace("é".encode(), b"\xc3(") for piece in raw.pieces])


def too_fast(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """429, with a time to wait."""
    body = json.dumps(speaker.error(429, "Too many requests.")).encode()
    return Raw([body], 429, headers=(("retry-after", "7"),))


def too_much(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """The server has too much to do."""
    return Raw([json.dumps(speaker.error(speaker.busy, "Overloaded")).encode()], speaker.busy)


def web_page(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """Something stands between, and shows a page."""
    return Raw([b"<html><body>Log in to the guest network</body></html>"], content_type="text/html")


def nothing(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """200, and an empty body."""
    return Raw([b""], content_type=speaker.content_type if is_stream else "application/json")


def error_inside(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
    """A stream that had begun reports an error."""
    if not is_stream:
        return too_much(speaker, said, is_stream)
    raw = well(speaker, said, is_stream)
    return raw._replace(pieces=[*raw.pieces[: len(raw.pieces) // 2], speaker.error_event()])


HARMLESS: list[Fault] = [well, in_single_bytes]
FAULTS: list[Fault] = [
    cut,
    ended_early,
    half_a_character,
    too_fast,
    too_much,
    web_page,
    nothing,
    error_inside,
]


class FormatServer:
    """Speaks for a provider: says what it is to say, in order, refuses what breaks a rule, and fails as told.

    Attributes:
        bodies: Every request.
        headers: Its headers.
        streams: Whether it asked for a stream.
        diagnostics: What the checker found in them.
        faults: Number of a request, from 1 -> how its answer goes wrong. Such an answer counts as not given.
        always: How every answer goes wrong.
        asked: Set when there was a request.
        holds: Set it, and the server says nothing more until the client goes away.
        hung_up: Set when a client closed the connection while an answer waited for it.
    """

    def __init__(self, speaker: Speaker, script: list[Said]) -> None:
        self.speaker, self.script = speaker, list(script)
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.streams: list[bool] = []
        self.diagnostics: list[Any] = []
        self.faults: dict[int, Fault] = {}
        self.always: Fault | None = None
        self.asked = threading.Event()
        self.holds = threading.Event()
        self.hung_up = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # small pieces go out at once, and not when the last one was acknowledged

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.headers.append(self.headers)
                server._answer(self, body)

        class Http(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, address: Any) -> None:
                """A client that went away."""

        self._http = Http(("127.0.0.1", 0), Handler)
        poll = {"poll_interval": 0.01}
        threading.Thread(target=self._http.serve_forever, kwargs=poll, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        self.bodies.append(body)
        self.asked.set()
        is_stream = self.speaker.wants_stream(handler.path, body)
        self.streams.append(is_stream)
        found = [one for one in check(body, self.speaker.format, self.speaker.profile) if one.severity == "error"]
        self.diagnostics += found
        fault = self.always or self.faults.get(len(self.bodies))
        if found:
            _send(
                handler,
                Raw([json.dumps(self.speaker.error(400, f"{found[0].rule}: {found[0].message}")).encode()], 400),
            )
        elif self.holds.is_set():
            self._hold(handler)
        elif fault is not None and fault not in HARMLESS:
            _send(handler, fault(self.speaker, self.script[0], is_stream))
        else:
            _send(handler, (fault or well)(self.speaker, self.script.pop(0), is_stream))

    def _hold(self, handler: BaseHTTPRequestHandler) -> None:
        """Say nothing until the client goes away."""
        handler.connection.settimeout(20)
        try:
            gone = not handler.connection.recv(1)
        except ConnectionError:
            gone = True
        except TimeoutError:
            gone = False
        if gone:
            self.hung_up.set()
        handler.close_connection = True


def _send(handler: BaseHTTPRequestHandler, raw: Raw) -> None:
    handler.send_response(raw.status)
    handler.send_header("content-type", raw.content_type)
    for name, value in raw.headers:
        handler.send_header(name, value)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    for piece in raw.pieces:
        if piece:
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            handler.wfile.flush()
    if not raw.is_cut:
        handler.wfile.write(b"0\r\n\r\n")
    handler.close_connection = raw.is_cut


# --- the suite ----------------------------------------------------------------------------------------

SCRIPT = [
    Said("Let me see, é.", (Call("callAAAA1", "add", {"a": 2, "b": 3, "why": "zebra"}),)),
    Said("It is 5, é.", input_tokens=150, cached_tokens=100),
]
"""One call and its result, then the answer."""

WAYS = ["sync", "aio"]
WATCHED = [False, True]
MANNERS = [("sync", False), ("aio", True)]


class Scenarios:
    """The suite. Subclasses have a `speaker`."""

    speaker: ClassVar[Any]

    @pytest.fixture
    def server(self) -> Iterator[FormatServer]:
        """A server that follows the script."""
        server = FormatServer(self.speaker, SCRIPT)
        yield server
        server.close()

    @pytest.fixture(params=WAYS)
    def way(self, request: pytest.FixtureRequest) -> str:
        """A driver."""
        return str(request.param)

    @pytest.fixture(params=WATCHED, ids=["whole", "streamed"])
    def watched(self, request: pytest.FixtureRequest) -> bool:
        """Whether somebody watches, so that replies are streamed."""
        return bool(request.param)

    @pytest.fixture(params=MANNERS, ids=lambda manner: manner[0])
    def manner(self, request: pytest.FixtureRequest) -> tuple[str, bool]:
        """A driver, watched or not: where it does not matter which goes with which."""
        manner: tuple[str, bool] = request.param
        return manner

    # --- what works -----------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", HARMLESS, ids=lambda fault: fault.__name__)
    def test_a_call_its_result_and_the_answer(self, server: FormatServer, way: str, watched: bool, how: Fault) -> None:
        server.faults = {1: how, 2: how}
        run = _Run(server, way, watched)
        assert run.result.status == "answered", run.result.reason
        assert run.result.answer == "It is 5, é."
        assert run.added == [(2, 3, "zebra")]
        assert server.diagnostics == []
        assert len(server.bodies) == 2
        assert server.streams == [watched, watched]
        assert getattr(self.speaker, "artefact", "") in json.dumps(server.bodies[1])
        usage = run.replies[0].usage
        assert usage is not None
        assert (usage.input, usage.cache_read, usage.output) == (100, 60, 7)
        if watched:
            assert "".join(delta.text for delta in run.seen.deltas if delta.step == 2) == "It is 5, é."

    # --- what can be survived -------------------------------------------------------------------------

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
    def test_a_fault_at_each_step_is_survived(
        self, server: FormatServer, way: str, watched: bool, fault: Fault
    ) -> None:
        server.faults = {1: fault, 3: fault}
        run = _Run(server, way, watched)
        assert run.result.status == "answered", run.result.reason
        assert run.result.answer == "It is 5, é."
        assert run.added == [(2, 3, "zebra")]
        assert len(server.bodies) == 4
        assert server.bodies[0] == server.bodies[1]
        assert server.bodies[2] == server.bodies[3]
        assert server.diagnostics == []
        if fault is too_fast:
            assert run.clock.waits == [7.0, 7.0]

    # --- what cannot ----------------------------------------------------------------------------------

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
    def test_a_fault_that_stays_ends_the_run_with_a_name(
        self, server: FormatServer, manner: tuple[str, bool], fault: Fault
    ) -> None:
        server.always = fault
        run = _Run(server, *manner)
        assert run.result.status == "model_error"
        assert run.result.reason
        assert run.added == []  # nothing of a broken reply is acted on
        assert len(server.bodies) == 4  # the retries are the machine's, and only its

    @pytest.mark.parametrize("status", [400, 401, 404])
    def test_what_will_not_get_better_is_not_asked_again(
        self, server: FormatServer, manner: tuple[str, bool], status: int
    ) -> None:
        server.always = _says(status, "It cannot be.")
        run = _Run(server, *manner)
        assert run.result.status == "model_error"
        assert "It cannot be." in run.result.reason
        assert len(server.bodies) == 1

    def test_a_refusal_names_the_rule(self, server: FormatServer, manner: tuple[str, bool]) -> None:
        text, rule = self.speaker.refusal
        server.always = _says(400, text)
        run = _Run(server, *manner)
        (failure,) = [event for event in run.seen_events() if isinstance(event, ev.ModelFailed)]
        assert failure.rule == rule
        assert run.result.status == "model_error"
        assert rule in run.result.reason

    def test_a_request_that_is_too_long(self, server: FormatServer, manner: tuple[str, bool]) -> None:
        server.always = _says(400, self.speaker.overflow)
        run = _Run(server, *manner)
        assert run.result.status == "context_overflow"
        assert len(server.bodies) == 1

    def test_nobody_is_there(self, server: FormatServer, manner: tuple[str, bool]) -> None:
        server.close()
        run = _Run(server, *manner)
        assert run.result.status == "model_error"
        assert "could not reach" in run.result.reason or "broke off" in run.result.reason

    def test_cancelling_closes_the_connection(self, server: FormatServer) -> None:
        if not self.speaker.can_hang_up:
            pytest.skip("this client blocks, in a thread that is left behind")
        server.holds.set()

        async def main() -> None:
            agent = Agent(self.speaker.model(server.url), journal="memory")
            task = asyncio.create_task(agent.run("Hold on."))
            assert await asyncio.to_thread(server.asked.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert server.hung_up.wait(10)


def _says(status: int, message: str) -> Fault:
    def refuse(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
        return Raw([json.dumps(speaker.error(status, message)).encode()], status)

    return refuse


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
class UserClientScenarios(Scenarios):
    """The suite with a client of the user's, who closes it; nobody does here."""

    @pytest.fixture(autouse=True)
    def _collected(self) -> Iterator[None]:
        yield
        gc.collect()


class _Run:
    """One run of an agent with a tool, to whatever end."""

    def __init__(self, server: FormatServer, way: str, watched: bool) -> None:
        self.added: list[tuple[int, int, str]] = []
        self.clock, self.seen = FakeClock(), RecordingObserver()

        def add(a: int, b: int, why: str) -> str:
            """Add two numbers."""
            self.added.append((a, b, why))
            return str(a + b)

        observers = [self.seen] if watched else []
        model = server.speaker.model(server.url)
        self.agent = Agent(model, [add], journal="memory", observers=observers, clock=self.clock)
        self.result = self._run(way)

    def _run(self, way: str) -> RunResult:
        if way == "aio":
            return asyncio.run(self.agent.run("What is 2 + 3?", raise_on_stop=False))
        return self.agent.run_sync("What is 2 + 3?", raise_on_stop=False)

    def seen_events(self) -> list[Any]:
        """The log."""
        return list(self.agent.journal.read(self.result.run_id))

    @property
    def replies(self) -> list[Any]:
        """What the model said."""
        return [event.reply for event in self.seen_events() if isinstance(event, ev.ModelReplied)]


# --- the exceptions of an SDK -----------------------------------------------------------------------------


def exceptions_of(base: type[Exception], package: str) -> set[type[Exception]]:
    """All exceptions that an SDK has: its base class and what comes from it."""
    found, waiting = {base}, [base]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind not in found and kind.__module__.startswith(package):
                found.add(kind)
                waiting.append(kind)
    return found


def made(kind: type[Exception], given: dict[str, Any]) -> Exception:
    """One of them, with what its constructor asks for."""
    try:
        names = inspect.signature(kind).parameters
    except ValueError:  # it has the constructor of `Exception`
        return kind("m")
    return kind(**{name: given[name] for name in names if name in given})
