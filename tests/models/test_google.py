"""Gemini over `google-genai`, against a server on loopback that speaks, checks and breaks the format."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import types
from scenarios import SCRIPT, FormatServer, Raw, Said, Scenarios, Speaker, UserClientScenarios, sse

from tenlines import Agent
from tenlines.core.transcript import Text, User
from tenlines.errors import (
    AuthRejected,
    ConfigError,
    ConnectionFailed,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    RateLimited,
)
from tenlines.models.google import Google
from tenlines.ports import Model
from tenlines.testing import RecordingObserver
from tenlines.wire.gemini.format import FORMAT

pytestmark = [
    pytest.mark.usefixtures("frozen"),
    pytest.mark.filterwarnings(
        "ignore:Inheritance class Aiohttp:DeprecationWarning"
    ),  # the package's own, about itself
]

MODEL = "gemini-3-pro-preview"
HI = User((Text("hi"),))
STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GeminiSpeaker:
    """The provider's side of `generateContent`."""

    format = FORMAT
    profile = FORMAT.profile({"model": MODEL})
    content_type = "text/event-stream"
    busy = 503
    refusal = (
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn.",
        "GEM-5",
    )
    overflow = "The input token count (9009) exceeds the maximum number of tokens allowed (8192)."
    can_hang_up = True
    artefact = "c2ln"

    def model(self, url: str) -> Model:
        return Google(MODEL, base_url=url)

    def wants_stream(self, path: str, body: Any) -> bool:
        base, _, method = path.partition(":")
        assert base.endswith(f"/models/{MODEL}")
        assert method in ("generateContent", "streamGenerateContent?alt=sse")
        return method.startswith("stream")

    def whole(self, said: Said) -> Any:
        return self._chunk([{"text": said.text}, *self._calls(said)], said, is_last=True)

    def events(self, said: Said) -> list[bytes]:
        words = said.text.replace(" ", "\0 ").split("\0")
        chunks = [self._chunk([{"text": word}], said) for word in words]
        chunks += [self._chunk([call], said) for call in self._calls(said)]
        chunks.append(self._chunk([{"text": "", "thoughtSignature": "bGF0ZQ=="}], said, is_last=True))
        return [sse(chunk) for chunk in chunks]

    def error(self, status: int, message: str) -> Any:
        return {"error": {"code": status, "message": message, "status": STATUS[status]}}

    def error_event(self) -> bytes:
        return sse(self.error(503, "The model is overloaded."))

    def _calls(self, said: Said) -> list[Any]:
        calls: list[Any] = [
            {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in said.calls
        ]
        return [{**call, "thoughtSignature": "c2ln"} if not index else call for index, call in enumerate(calls)]

    def _chunk(self, parts: Any, said: Said, is_last: bool = False) -> Any:
        usage = {
            "promptTokenCount": said.input_tokens,
            "cachedContentTokenCount": said.cached_tokens,
            "candidatesTokenCount": said.output_tokens - 2 if is_last else 1,
            "thoughtsTokenCount": 2 if is_last else 0,
        }
        candidate: Any = {"content": {"role": "model", "parts": parts}, "index": 0}
        if is_last:
            candidate["finishReason"] = "STOP"
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}


class UserClientSpeaker(GeminiSpeaker):
    """The same, for a client that the user made: its asyncio side stands on another HTTP library."""

    def model(self, url: str) -> Model:
        options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=5))
        return Google(MODEL, client=genai.Client(api_key="k", http_options=options))


class TestGoogle(Scenarios):
    """With a client of ours."""

    speaker = GeminiSpeaker()


class TestUserClient(UserClientScenarios):
    """With a client of the user's."""

    speaker = UserClientSpeaker()


# --- what is this client's own ------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[FormatServer]:
    """Follows the script."""
    made = FormatServer(GeminiSpeaker(), SCRIPT)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)


def answers(status: int, body: Any, **more: Any) -> Any:
    def fault(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
        return Raw([body if isinstance(body, bytes) else json.dumps(body).encode()], status, **more)

    return fault


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "API key not valid.", AuthRejected),
        (400, "The input token count (9009) exceeds the maximum number of tokens allowed (8192).", ContextTooLong),
        (429, "Quota.", RateLimited),
        (503, "The model is overloaded.", Overloaded),
    ],
)
def test_error_answers(server: FormatServer, ask: Any, status: int, message: str, kind: Any) -> None:
    server.always = answers(status, GeminiSpeaker().error(status, message))
    with pytest.raises(kind, match=message[:9]) as caught:
        ask(Google(MODEL, base_url=server.url))
    assert caught.value.status == status


def test_the_time_to_wait_stands_in_the_details(server: FormatServer, ask: Any) -> None:
    error = GeminiSpeaker().error(429, "Quota exceeded for a metric.")
    error["error"]["details"] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13.5s"},
    ]
    server.always = answers(429, error)
    with pytest.raises(RateLimited) as caught:
        ask(Google(MODEL, base_url=server.url))
    assert caught.value.retry_after_s == 13.5
    assert len(server.bodies) == 1


def test_a_stream_that_comes_as_a_list_of_chunks(server: FormatServer, ask: Any) -> None:
    speaker = GeminiSpeaker()
    chunks = [
        speaker._chunk([{"text": "It is"}], SCRIPT[1]),
        speaker._chunk([{"text": " 5."}], SCRIPT[1], is_last=True),
    ]
    server.always = answers(200, chunks)
    heard: list[Any] = []
    assert ask(Google(MODEL, base_url=server.url), None, heard.append).text == "It is 5."
    assert [delta.text for delta in heard] == ["It is 5."]


@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
def test_what_is_no_answer_at_all(server: FormatServer, ask: Any, content_type: str) -> None:
    server.always = answers(200, b"<html></html>", content_type=content_type)
    for on_delta in (None, print):
        with pytest.raises(MalformedReply):
            ask(Google(MODEL, base_url=server.url), None, on_delta)


def test_the_body_goes_out_as_the_format_wrote_it(server: FormatServer, ask: Any, request_for: Any) -> None:
    model = Google(MODEL, base_url=server.url, max_tokens=99, effort="low")
    request = request_for(HI)
    ask(model, request)
    assert json.dumps(server.bodies[0]) == json.dumps(FORMAT.talk(model.target).request(request, False))
    assert server.bodies[0]["generationConfig"] == {"maxOutputTokens": 99, "thinkingConfig": {"thinkingLevel": "LOW"}}


def test_a_signature_that_came_late_goes_back_where_it_stood(server: FormatServer) -> None:
    def add(a: int, b: int, why: str) -> int:
        """Add."""
        return a + b

    agent = Agent(Google(MODEL, base_url=server.url), [add], journal="memory", observers=[RecordingObserver()])
    assert agent.run_sync("What is 2 + 3?").answer == "It is 5, é."
    (step,) = [content for content in server.bodies[1]["contents"] if content["role"] == "model"]
    assert [part.get("thoughtSignature") for part in step["parts"]] == [None, "c2ln", "bGF0ZQ=="]


def test_the_key_of_the_environment_goes_to_google_alone(
    server: FormatServer, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    ask(Google(MODEL, base_url=server.url))
    assert server.headers[0]["x-goog-api-key"] == "none"
    assert Google(MODEL)._transport.address == "https://generativelanguage.googleapis.com"
    assert Google(MODEL).name == f"google:{MODEL}"
    assert Google(MODEL, base_url=server.url).name == f"{server.url}#{MODEL}"


def test_without_a_key_the_ways_out_are_named() -> None:
    with pytest.raises(ConfigError, match=r"GOOGLE_API_KEY or GEMINI_API_KEY.*local"):
        Google(MODEL)


def test_something_else_than_a_client() -> None:
    with pytest.raises(ConfigError, match="not known"):
        Google(MODEL, client=object())  # type: ignore[arg-type]


def test_vertex_has_paths_and_a_profile_of_its_own() -> None:
    options = types.HttpOptions(base_url="http://127.0.0.1:9")
    client = genai.Client(vertexai=True, api_key="k", http_options=options)
    model = Google(MODEL, client=client)
    assert model.target.profile.has("vertex")
    inner: Any = client._api_client
    request, _ = model._transport._built(inner, "generateContent", {})
    assert request.url.endswith(f"/publishers/google/models/{MODEL}:generateContent")


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("speaker", [GeminiSpeaker(), UserClientSpeaker()], ids=["own", "user's"])
def test_silence_is_given_up(server: FormatServer, speaker: Any, is_streamed: bool, ask: Any) -> None:
    server.holds.set()
    model = speaker.model(server.url)
    model.timeout_s = 0.1
    with pytest.raises(ConnectionFailed, match="in time"):
        ask(model, None, print if is_streamed else None)
    assert server.hung_up.wait(5)


def test_letting_a_stream_go_closes_its_connection(server: FormatServer) -> None:
    gone = threading.Event()

    class Talking(GeminiSpeaker):
        def events(self, said: Said) -> list[bytes]:
            return self._for_ever(said)  # type: ignore[return-value]

        def _for_ever(self, said: Said) -> Iterator[bytes]:
            try:
                while not gone.wait(0.001):
                    yield sse(self._chunk([{"text": "and "}], said))
            finally:
                gone.set()

    server.speaker = Talking()
    for model in (Google(MODEL, base_url=server.url), UserClientSpeaker().model(server.url)):
        gone.clear()
        server.script = list(SCRIPT)
        stream = model._transport.stream({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, 10)  # type: ignore[attr-defined]
        next(stream)
        stream.close()
        assert gone.wait(5)


def test_one_model_serves_many_event_loops_and_leaves_nothing_open(server: FormatServer, request_for: Any) -> None:
    server.script = list(SCRIPT) * 3
    model = Google(MODEL, base_url=server.url)
    for _ in range(3):
        asyncio.run(model.session().acomplete(request_for(HI), None))
    clients: Any = model._transport._clients
    assert not clients._http.by_loop
    del model, clients
    gc.collect()  # an open socket would be a warning here, and so an error
