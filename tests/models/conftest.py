"""A server on loopback that speaks (and breaks) the Chat Completions format, and the real local one."""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tenlines.core.effects import CallModel
from tenlines.core.limits import Left, Reservation
from tenlines.core.transcript import Message, Reply, Text, TranscriptView, User
from tenlines.errors import ConfigError
from tenlines.models import weights
from tenlines.ports import Model, OnDelta

pytest.register_assert_rewrite("scenarios")
sys.path.append(str(Path(__file__).parent.parent / "wire"))  # for `judges`, which make requests
sys.path.insert(0, str(Path(__file__).parent))  # for `scenarios`, which all clients share


@pytest.fixture(scope="session", autouse=True)
def _no_certificates() -> Iterator[None]:
    """No test here speaks TLS, and every client reads all certificates of the machine when it is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda self, *where, **more: None)
        yield


def ask_for(
    *messages: Message,
    tools: tuple[Any, ...] = (),
    tool_choice: str = "auto",
    deadline_at: float | None = None,
    **more: Any,
) -> CallModel:
    """The request of a step."""
    listed = list(messages) or [User((Text("hi"),))]
    return CallModel(
        step=more.get("step", 1),
        attempt=1,
        messages=TranscriptView(listed, len(listed)),
        new_from=more.get("new_from", 0),
        tools=tools,
        tool_choice=tool_choice,
        max_output_tokens=more.get("max_output_tokens"),
        reserved=Reservation(),
        left=Left(),
        deadline_at=deadline_at,
    )


Answer = Callable[[BaseHTTPRequestHandler], None]


class ChatServer:
    """Gives its answers in order, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.paths: list[str] = []
        self.peers: list[Any] = []
        """The other end of each request's connection."""
        self.asked = threading.Event()
        self.hung_up = threading.Event()
        """Set when a client closed the connection while an answer waited for it."""
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # small pieces go out at once, and not when the last one was acknowledged

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                chat.paths.append(self.path)
                chat.peers.append(self.client_address)
                chat.headers.append(self.headers)
                chat.answers.pop(0)(self)

            def do_POST(self) -> None:
                chat.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                chat.asked.set()
                self.do_GET()

        class Http(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, address: Any) -> None:
                """A client that went away."""

        self._http = Http(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.root = f"http://127.0.0.1:{self._http.server_port}"
        self.url = f"{self.root}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()

    # --- answers ------------------------------------------------------------------------------------

    def say(
        self,
        body: bytes | str | Any,
        status: int = 200,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        missing: int = 0,
    ) -> None:
        """Answer with a body; the last `missing` bytes that were promised never come."""
        data = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("content-type", content_type)
            handler.send_header("content-length", str(len(data) + missing))
            for name, value in (headers or {}).items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(data)
            handler.close_connection = missing > 0

        self.answers.append(answer)

    def stream(self, *chunks: Any, is_cut: bool = False, done: bool = True, raw: bytes = b"") -> None:
        """Stream chunks as events. Cut: the connection ends in the middle of the body."""
        events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + ([raw] if raw else [])
        if done and not is_cut:
            events.append(b"data: [DONE]\n\n")

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("content-type", "text/event-stream; charset=utf-8")
            handler.send_header("transfer-encoding", "chunked")
            handler.end_headers()
            for event in events:
                handler.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            if not is_cut:
                handler.wfile.write(b"0\r\n\r\n")
            handler.close_connection = is_cut

        self.answers.append(answer)

    def wait_for_hang_up(self, *chunks: Any) -> None:
        """Send chunks as events, then nothing more until the client goes away."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.connection.settimeout(20)
            try:  # the client may be gone before the first byte is sent
                handler.send_response(200)
                handler.send_header("content-type", "text/event-stream")
                handler.end_headers()
                for chunk in chunks:
                    handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                handler.connection.recv(1)
            except ConnectionError:
                pass
            except TimeoutError:
                return
            self.hung_up.set()
            handler.close_connection = True

        self.answers.append(answer)


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A fresh server."""
    server = ChatServer()
    yield server
    server.close()


Ask = Callable[..., Reply]


@pytest.fixture(params=["plain", "asyncio"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask a model in one of the two colours; both must do the same."""

    def plain(model: Model, effect: CallModel | None = None, on_delta: OnDelta | None = None) -> Reply:
        return model.session().complete(effect or ask_for(), on_delta)

    def with_asyncio(model: Model, effect: CallModel | None = None, on_delta: OnDelta | None = None) -> Reply:
        return asyncio.run(model.session().acomplete(effect or ask_for(), on_delta))

    return plain if request.param == "plain" else with_asyncio


@pytest.fixture
def request_for() -> Callable[..., CallModel]:
    """Builds the request of a step."""
    return ask_for


def _weights(name: str) -> None:
    try:
        weights.fetch(weights.KNOWN[name])
    except ConfigError as error:
        pytest.skip(f"THE REAL LOCAL MODEL WAS NOT TESTED: {error}")


@pytest.fixture(scope="session")
def small_server() -> str:
    """Address of the real llama.cpp with the 0.5B model, one for the whole test run."""
    from tenlines.models.local import LocalModel

    _weights("small")
    return LocalModel("small", threads=1).address()


@pytest.fixture(scope="session")
def local_model() -> Model:
    """The real 1.5B model."""
    from tenlines.models.local import LocalModel

    _weights("local")
    return LocalModel(threads=1)


@pytest.fixture(scope="module")
def frozen() -> Iterator[None]:
    """What is there before the first test (modules, mostly) is not looked at again when garbage is collected."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
