"""Mistral over `mistralai`, against a server on loopback that speaks, checks and breaks the format."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mistralai.client import Mistral as Client
from mistralai.client.utils import BackoffStrategy, RetryConfig
from scenarios import SCRIPT, FormatServer, Raw, Said, Scenarios, Speaker, UserClientScenarios, sse

from tenlines.core.transcript import Text, User
from tenlines.errors import (
    AuthRejected,
    ConfigError,
    ConnectionFailed,
    ContextTooLong,
    MalformedReply,
    ProtocolRejected,
    RateLimited,
)
from tenlines.models.mistral import Mistral
from tenlines.ports import Delta, Model
from tenlines.testing import FakeClock
from tenlines.wire.mistral.format import FORMAT

pytestmark = pytest.mark.usefixtures("frozen")

MODEL = "magistral-medium-2509"
THOUGHT: Any = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, zinc."}], "closed": True}


class MistralSpeaker:
    """The provider's side of the format, for a model that thinks."""

    format = FORMAT
    profile = FORMAT.profile({"model": MODEL, "server": "mistral-api"})
    content_type = "text/event-stream; charset=utf-8"
    busy = 503
    refusal = ("Not the same number of function calls and responses", "MIS-5")
    overflow = "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"
    artefact = "Hm, zinc."
    can_hang_up = True

    def model(self, url: str) -> Model:
        return Mistral(MODEL, base_url=url)

    def wants_stream(self, path: str, body: Any) -> bool:
        assert path == "/v1/chat/completions"
        return bool(body.get("stream"))

    def whole(self, said: Said) -> Any:
        message: Any = {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": said.text}]}
        if said.calls:
            message["tool_calls"] = self._calls(said)
        choice = {"index": 0, "message": message, "finish_reason": _reason(said)}
        return {"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": _usage(said)}

    def events(self, said: Said) -> list[bytes]:
        words = said.text.replace(" ", "\0 ").split("\0")
        deltas: list[Any] = [{"role": "assistant", "content": ""}, {"content": [THOUGHT]}]
        deltas += [{"content": word} for word in words]
        chunks = [_chunk(delta) for delta in deltas]
        last: Any = {"content": "", **({"tool_calls": self._calls(said)} if said.calls else {})}
        chunks.append({**_chunk(last, _reason(said)), "usage": _usage(said)})
        return [*map(sse, chunks), sse("[DONE]")]

    def error(self, status: int, message: str) -> Any:
        return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": None}

    def error_event(self) -> bytes:
        return sse(
            {"object": "error", "message": "Service unavailable.", "type": "internal_server_error", "code": "503"}
        )

    def _calls(self, said: Said) -> list[Any]:
        return [
            {
                "id": call.id,
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                "index": 0,
            }
            for call in said.calls
        ]


def _chunk(delta: Any, reason: str | None = None) -> Any:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "x", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}


def _reason(said: Said) -> str:
    return "tool_calls" if said.calls else "stop"


def _usage(said: Said) -> Any:
    total = said.input_tokens + said.output_tokens
    counts = {"prompt_tokens": said.input_tokens, "completion_tokens": said.output_tokens, "total_tokens": total}
    return {**counts, "num_cached_tokens": said.cached_tokens}


def user_client(url: str) -> Client:
    """A client as a user makes it, with retries."""
    patient = RetryConfig("backoff", BackoffStrategy(1, 10, 1.1, 1000), True)
    return Client(api_key="k", server_url=url, retry_config=patient)


class UserClientSpeaker(MistralSpeaker):
    """The same, for a client that the user made."""

    def model(self, url: str) -> Model:
        return Mistral(MODEL, client=user_client(url))


class TestMistral(Scenarios):
    """With a client of ours."""

    speaker = MistralSpeaker()


class TestUserClient(UserClientScenarios):
    """With a client of the user's."""

    speaker = UserClientSpeaker()


# --- what is this client's own ------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)


@pytest.fixture
def server() -> Iterator[FormatServer]:
    """Follows the script."""
    made = FormatServer(MistralSpeaker(), SCRIPT)
    yield made
    made.close()


def answers(status: int, body: Any, **more: Any) -> Any:
    def fault(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
        return Raw([body if isinstance(body, bytes) else json.dumps(body).encode()], status, **more)

    return fault


def test_a_request_as_it_goes_out(
    server: FormatServer, ask: Any, request_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "secret")
    ask(Mistral(MODEL, base_url=f"{server.url}/v1", max_tokens=9, temperature=0.5, effort="high"))
    assert {key: one for key, one in server.bodies[0].items() if key != "messages"} == {
        "model": MODEL,
        "max_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "high",
    }
    assert server.headers[0]["authorization"] == "Bearer none"  # the key is for nobody else
    ask(Mistral(MODEL, base_url=server.url, api_key="k"))
    assert server.headers[1]["authorization"] == "Bearer k"
    assert server.headers[1]["accept"] == "application/json"


def test_the_thoughts_of_a_stream_are_shown_and_kept(server: FormatServer, ask: Any) -> None:
    seen: list[Delta] = []
    reply = ask(Mistral(MODEL, base_url=server.url), None, seen.append)
    assert "".join(delta.reasoning for delta in seen) == "Hm, zinc."
    (kept,) = reply.opaque
    assert kept.payload == {"blocks": [THOUGHT, {"type": "text", "text": "Let me see, é."}, {"call": 0}]}
    assert kept.provider == server.url.removeprefix("http://")


def test_a_server_that_does_not_stream(server: FormatServer, ask: Any) -> None:
    server.faults = {1: answers(200, MistralSpeaker().whole(SCRIPT[1]))}
    seen: list[Delta] = []
    assert ask(Mistral(MODEL, base_url=server.url), None, seen.append).text == "It is 5, é."
    assert [delta.text for delta in seen] == ["It is 5, é."]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"message": "Requests rate limit exceeded"}, RateLimited),
        (401, {"detail": "Unauthorized"}, AuthRejected),
        (400, MistralSpeaker().error(400, MistralSpeaker.overflow), ContextTooLong),
        (400, {"object": "error", "message": "Unexpected role 'user' after role 'tool'"}, ProtocolRejected),
        (422, {"detail": [{"loc": ["body", "model"], "msg": "field required"}]}, Exception),
        (200, b"<html>", MalformedReply),
    ],
)
def test_errors_have_names(server: FormatServer, ask: Any, status: int, body: Any, kind: type[Exception]) -> None:
    server.always = answers(status, body)
    with pytest.raises(kind):
        ask(Mistral(MODEL, base_url=server.url))
    assert len(server.bodies) == 1


def test_silence_is_not_waited_for_longer_than_told(server: FormatServer, ask: Any, request_for: Any) -> None:
    server.holds.set()
    clock = FakeClock()
    with pytest.raises(ConnectionFailed, match="in time"):
        ask(Mistral(MODEL, base_url=server.url, clock=clock), request_for(deadline_at=clock.now() + 0.1))


def test_one_model_serves_several_event_loops(server: FormatServer, request_for: Any) -> None:
    model = Mistral(MODEL, base_url=server.url)
    said = [asyncio.run(model.session().acomplete(request_for(User((Text(word),))), None)).text for word in ("a", "b")]
    assert said == ["Let me see, é.", "It is 5, é."]


def test_without_a_key_and_with_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="needs a key"):
        Mistral(MODEL)
    odd: Any = object()
    with pytest.raises(ConfigError, match="not known here"):
        Mistral(MODEL, client=odd)
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    model = Mistral(MODEL)
    assert (model.name, model.target.profile.provider) == (f"mistral:{MODEL}", "mistral")
