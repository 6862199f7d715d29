"""The client of Anthropic's models: keys, addresses, clients of the user's own, and every exception of the SDK."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest
from scenarios import Said, exceptions_of, made, sse
from speakers import AnthropicSpeaker

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply
from tenlines.errors import (
    AuthRejected,
    ConfigError,
    ConnectionFailed,
    MalformedReply,
    MissingExtra,
    Overloaded,
    ProviderError,
    RateLimited,
    RemoteError,
)
from tenlines.models.anthropic import Anthropic
from tenlines.models.stainless import anthropic_sdk, remote_error
from tenlines.ports import Delta

ChatServer = Any  # tests/models/conftest.py
Ask = Callable[..., Reply]
Request = Callable[..., CallModel]

MODEL = "claude-opus-5"
SPEAKER = AnthropicSpeaker()
HELLO = Said("hello")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


# --- keys and addresses -------------------------------------------------------------------------------


def test_without_a_key_it_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"anthropic:claude-opus-5 needs a key: set ANTHROPIC_API_KEY.*local"):
        Anthropic(MODEL)


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_the_key_comes_from_the_environment(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "k")
    model = Anthropic(MODEL)
    assert (model.name, model.address) == ("anthropic:claude-opus-5", "https://api.anthropic.com")
    assert model.target.profile.provider == "anthropic"
    assert model.target.profile.model == MODEL


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tenlines\[anthropic\]'"):
        Anthropic(MODEL, api_key="k")


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_the_address_with_or_without_its_version(chat: ChatServer, ask: Ask, ending: str) -> None:
    chat.say(SPEAKER.whole(HELLO))
    model = Anthropic(MODEL, base_url=f"{chat.root}{ending}")
    assert model.name == f"{chat.root}#{MODEL}"
    assert ask(model).text == "hello"
    assert chat.paths == ["/v1/messages"]


def test_anthropics_own_key_is_not_sent_to_another_server(
    chat: ChatServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    for key in (None, "own"):
        chat.say(SPEAKER.whole(HELLO))
        ask(Anthropic(MODEL, base_url=chat.root, api_key=key))
    sent = [" ".join(headers.values()) for headers in chat.headers]
    assert not any("secret" in one for one in sent)
    assert "own" in sent[1]


def test_a_proxy_from_the_environment_is_not_asked_for_a_server_on_this_machine(
    chat: ChatServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    chat.say(SPEAKER.whole(HELLO))
    assert ask(Anthropic(MODEL, base_url=chat.root)).text == "hello"


@pytest.mark.parametrize(
    ("address", "name", "provider"),
    [
        ("https://api.deepseek.com/anthropic", "anthropic:deepseek", "deepseek"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", f"anthropic:{MODEL}", "anthropic"),
        ("http://127.0.0.1:1", f"anthropic:{MODEL}", "127.0.0.1:1"),
    ],
)
def test_the_address_says_what_is_known_of_a_server(address: str, name: str, provider: str) -> None:
    profile = Anthropic(MODEL, base_url=address).target.profile
    assert (profile.name, profile.provider) == (name, provider)


def test_what_is_set_is_sent(chat: ChatServer, ask: Ask) -> None:
    chat.say(SPEAKER.whole(HELLO))
    ask(Anthropic("claude-opus-4-8", base_url=chat.root, max_tokens=77, effort="low"))
    (body,) = chat.bodies
    assert (body["model"], body["max_tokens"]) == ("claude-opus-4-8", 77)
    assert body["output_config"] == {"effort": "low"}


# --- compaction by the provider -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "address", "compact_at", "why"),
    [
        (MODEL, None, 49_999, r"at least 50,000 tokens for anthropic:claude-opus-5, got 49999"),
        (MODEL, None, True, r"at least 50,000 tokens"),
        ("claude-opus-4-5", None, 100_000, r"anthropic:claude-opus-4-5 does not compact.*Agent\(compaction=True\)"),
        (MODEL, "https://api.deepseek.com/anthropic", 100_000, r"anthropic:deepseek does not compact"),
        ("m", "http://127.0.0.1:1", 100_000, r"anthropic:m does not compact"),
    ],
)
def test_what_cannot_be_asked_for(model: str, address: str | None, compact_at: int, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Anthropic(model, base_url=address, api_key="k", compact_at=compact_at)


def test_the_least_threshold_is_taken() -> None:
    assert Anthropic(MODEL, api_key="k", compact_at=50_000).target.compact_at == 50_000


def test_no_beta_is_asked_for_where_none_is_used(chat: ChatServer, ask: Ask) -> None:
    chat.say(SPEAKER.whole(HELLO))
    ask(Anthropic(MODEL, base_url=chat.root))
    assert "anthropic-beta" not in chat.headers[0]
    assert "context_management" not in chat.bodies[0]


@pytest.mark.parametrize("name", ["anthropic-beta", "Anthropic-Beta"])
def test_the_betas_of_the_users_own_client_stay(chat: ChatServer, ask: Ask, name: str) -> None:
    http = httpx2.Client(trust_env=False)
    own = {name: "context-1m-2025-08-07"}
    with anthropic.Anthropic(base_url=chat.root, api_key="k", http_client=http, default_headers=own) as client:
        for compact_at in (None, 100_000):
            chat.say(SPEAKER.whole(HELLO))
            ask(Anthropic(MODEL, client=client, compact_at=compact_at, profile=SPEAKER.profile))
    betas = [set(",".join(headers.get_all("anthropic-beta")).replace(" ", "").split(",")) for headers in chat.headers]
    assert betas == [{"context-1m-2025-08-07"}, {"context-1m-2025-08-07", "compact-2026-01-12"}]


# --- clients of the user's own ------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_a_plain_client_alone_serves_both_colours(chat: ChatServer, ask: Ask, streamed: bool) -> None:
    http = httpx2.Client(trust_env=False)
    with anthropic.Anthropic(base_url=chat.root, api_key="mine", http_client=http, max_retries=5) as client:
        _answer(chat, streamed)
        shown: list[Delta] = []
        assert ask(Anthropic(MODEL, client=client), None, shown.append if streamed else None).text == "hello"
        assert "mine" in " ".join(chat.headers[0].values())


@pytest.mark.parametrize("streamed", [False, True])
def test_an_async_client_alone_serves_a_plain_run(chat: ChatServer, request_for: Request, streamed: bool) -> None:
    limits = httpx2.Limits(max_keepalive_connections=0)  # so that nothing is left open when the test ends
    http = httpx2.AsyncClient(trust_env=False, limits=limits)
    client = anthropic.AsyncAnthropic(base_url=chat.root, api_key="mine", http_client=http)
    _answer(chat, streamed)
    shown: list[Delta] = []
    session = Anthropic(MODEL, async_client=client).session()
    assert session.complete(request_for(), shown.append if streamed else None).text == "hello"
    assert [one.text for one in shown if one.text] == (["hello"] if streamed else [])


def _answer(chat: ChatServer, streamed: bool) -> None:
    if streamed:
        chat.stream(raw=b"".join(SPEAKER.events(HELLO)), done=False)
    else:
        chat.say(SPEAKER.whole(HELLO))


def test_a_users_client_does_not_retry_either(chat: ChatServer, ask: Ask) -> None:
    with anthropic.Anthropic(base_url=chat.root, api_key="mine", max_retries=5) as client:
        chat.say(SPEAKER.error(529, "Overloaded"), 529)
        with pytest.raises(Overloaded):
            ask(Anthropic(MODEL, client=client))
        assert len(chat.bodies) == 1


# --- streams of compatible servers --------------------------------------------------------------------


def test_events_without_a_name_and_of_unknown_kinds_are_understood(chat: ChatServer, ask: Ask) -> None:
    unnamed = b"".join(event.partition(b"\n")[2] for event in SPEAKER.events(HELLO))
    chat.stream(raw=sse({"type": "something_new"}, "something_new") + unnamed, done=False)
    shown: list[Delta] = []
    assert ask(Anthropic(MODEL, base_url=chat.root), None, shown.append).text == "hello"
    assert "".join(one.text for one in shown) == "hello"


def test_a_server_that_does_not_stream_is_understood(chat: ChatServer, ask: Ask) -> None:
    chat.say(SPEAKER.whole(HELLO))
    shown: list[Delta] = []
    assert ask(Anthropic(MODEL, base_url=chat.root), None, shown.append).text == "hello"
    assert [one.text for one in shown] == ["hello"]


def test_json_that_calls_itself_plain_text(chat: ChatServer, ask: Ask) -> None:
    chat.say(json.dumps(SPEAKER.whole(HELLO)), content_type="text/plain")
    assert ask(Anthropic(MODEL, base_url=chat.root)).text == "hello"


# --- every exception of the SDK -----------------------------------------------------------------------


def _made(kind: type[Exception]) -> Exception:
    request = httpx2.Request("POST", "http://127.0.0.1/v1/messages")
    given: dict[str, Any] = {
        "request": request,
        "response": httpx2.Response(getattr(kind, "status_code", 418), request=request),
        "body": {"type": "error", "error": {"type": "e", "message": "m"}},
        "message": "m",
        **dict.fromkeys(("library", "extra", "action", "toolset_name"), "x"),
    }
    return made(kind, given)


def _sdk_exceptions() -> list[type[Exception]]:
    found = exceptions_of(anthropic.AnthropicError, "anthropic")
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", _sdk_exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_sdk_becomes_one_of_ours(kind: type[Exception]) -> None:
    mapped = remote_error(anthropic_sdk(), _made(kind), "http://127.0.0.1")
    assert isinstance(mapped, RemoteError)
    assert str(mapped)


EXPECTED = {
    "APIConnectionError": ConnectionFailed,
    "APITimeoutError": ConnectionFailed,
    "AuthenticationError": AuthRejected,
    "PaymentRequiredError": AuthRejected,
    "PermissionDeniedError": AuthRejected,
    "CredentialsError": AuthRejected,
    "RateLimitError": RateLimited,
    "OverloadedError": Overloaded,
    "ConflictError": Overloaded,
    "RequestTimeoutError": Overloaded,
    "BadRequestError": ProviderError,
    "NotFoundError": ProviderError,
    "APIResponseValidationError": MalformedReply,
    "AnthropicError": ProviderError,
}


@pytest.mark.parametrize(("name", "kind"), EXPECTED.items())
def test_what_the_exceptions_of_the_sdk_mean(name: str, kind: type[RemoteError]) -> None:
    source = next(one for one in _sdk_exceptions() if one.__name__ == name)
    assert type(remote_error(anthropic_sdk(), _made(source), "http://127.0.0.1")) is kind
