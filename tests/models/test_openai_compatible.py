"""The official SDK against a server on loopback: what works, and everything that breaks."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from scenarios import exceptions_of, made

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, Message, Reply, Result, Text, ToolCall, Usage, User
from tenlines.errors import (
    AuthRejected,
    ConfigError,
    ConnectionFailed,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RemoteError,
)
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.models.stainless import openai_sdk, remote_error
from tenlines.ports import Delta
from tenlines.wire.openai_chat.format import FORMAT as CHAT

ChatServer = Any  # tests/models/conftest.py
Ask = Callable[..., Reply]
Request = Callable[..., CallModel]

TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"x": {"type": "integer"}}})
HI = {
    "model": "m-1",
    "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}},
}


def delta(piece: Any, reason: Any = None) -> Any:
    return {"model": "m-1", "choices": [{"index": 0, "delta": piece, "finish_reason": reason}]}


USAGE = {"choices": [], "usage": HI["usage"]}
CALL_HEAD = delta({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}]})
CALL_TAIL = delta({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]})


def model_at(chat: ChatServer, **options: Any) -> OpenAICompatible:
    return OpenAICompatible("m", chat.url, **options)


# --- what works -------------------------------------------------------------------------------------


def test_a_plain_reply(chat: ChatServer, ask: Ask) -> None:
    chat.say(HI)
    reply = ask(model_at(chat))
    assert reply == Reply(text="hello", usage=Usage(9, 1, 4), model="m-1")
    assert chat.paths == ["/v1/chat/completions"]
    assert chat.bodies == [{"model": "m", "messages": [{"role": "user", "content": "hi"}]}]


def test_a_streamed_reply_is_the_same_and_is_shown_as_it_comes(
    chat: ChatServer, ask: Ask, request_for: Request
) -> None:
    chat.stream(
        delta({"role": "assistant", "content": ""}),
        delta({"content": "hel"}),
        delta({"content": "lo"}),
        delta({}, "stop"),
        USAGE,
    )
    shown: list[Delta] = []
    reply = ask(model_at(chat), request_for(step=3), shown.append)
    assert reply == Reply(text="hello", usage=Usage(9, 1, 4), model="m-1")
    assert shown == [Delta(3, "hel"), Delta(3, "lo")]
    assert chat.bodies[0]["stream_options"] == {"include_usage": True}


def test_calls_and_their_results_go_to_and_fro(chat: ChatServer, ask: Ask, request_for: Request) -> None:
    chat.stream(CALL_HEAD, CALL_TAIL, delta({}, "tool_calls"))
    chat.say(HI)
    model = model_at(chat)
    question = User((Text("go"),))
    reply = ask(model, request_for(question, tools=(TOOL,), max_output_tokens=5), lambda _: None)
    assert reply.calls == (ToolCall("a", "f", '{"x": 1}'),)
    transcript: list[Message] = [question, Assistant("", reply.calls), Result("a", "f", "ok", (Text("one"),))]
    ask(model, request_for(*transcript, tools=(TOOL,), tool_choice="none", new_from=2))
    first, second = chat.bodies
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["tools"] == first["tools"]
    assert (first["tool_choice"], second["tool_choice"]) == ("auto", "none")
    assert first["max_tokens"] == 5


def test_a_session_keeps_what_it_encoded(chat: ChatServer, request_for: Request) -> None:
    for _ in range(2):
        chat.say(HI)
    session = model_at(chat).session()
    messages: list[Message] = [User((Text("a"),))]
    session.complete(request_for(*messages), None)
    messages += [Assistant("b"), User((Text("c"),))]
    session.complete(request_for(*messages, new_from=2), None)
    assert [message["content"] for message in chat.bodies[1]["messages"]] == ["a", "b", "c"]


def test_the_constrained_protocol_sends_a_schema_and_reads_the_object(
    chat: ChatServer, ask: Ask, request_for: Request
) -> None:
    content = '{"tool": "f", "arguments": {"x": 1}}'
    chat.say({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})
    chat.stream(delta({"content": '{"final_ans'}), delta({"content": 'wer": "yes"}'}), delta({}, "stop"))
    model = model_at(chat, protocol="constrained", temperature=0.0)
    reply = ask(model, request_for(tools=(TOOL,)))
    assert (reply.calls, reply.stop) == ((ToolCall("", "f", '{"x": 1}'),), "tool_calls")
    assert chat.bodies[0]["response_format"]["type"] == "json_schema"
    assert "tools" not in chat.bodies[0]
    shown: list[Delta] = []
    assert ask(model, request_for(tools=(TOOL,)), shown.append).text == "yes"
    assert shown == [Delta(1, "yes")]


def test_the_constrained_protocol_without_tools_is_plain_text(chat: ChatServer, ask: Ask) -> None:
    chat.say({"choices": [{"message": {"content": '{"a": 1}'}, "finish_reason": "length"}]})
    chat.stream(delta({"content": "Once upon"}), delta({}, "length"))
    model = model_at(chat, protocol="constrained")
    assert ask(model) == Reply(text='{"a": 1}', stop="length")
    assert "response_format" not in chat.bodies[0]
    shown: list[Delta] = []
    assert ask(model, None, shown.append) == Reply(text="Once upon", stop="length", model="m-1")
    assert shown == [Delta(1, "Once upon")]


def test_a_server_that_does_not_stream_is_understood(chat: ChatServer, ask: Ask) -> None:
    chat.say(HI)
    shown: list[Delta] = []
    assert ask(model_at(chat), None, shown.append).text == "hello"
    assert shown == [Delta(1, "hello")]


def test_one_model_serves_several_event_loops(chat: ChatServer, request_for: Request) -> None:
    model = model_at(chat)
    for _ in range(3):
        chat.say(HI)
        assert asyncio.run(model.session().acomplete(request_for(), None)).text == "hello"


def test_openais_own_key_is_not_sent_to_another_server(
    chat: ChatServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    for _ in range(2):
        chat.say(HI)
    ask(model_at(chat))
    ask(model_at(chat, api_key="own"))
    assert [headers["authorization"] for headers in chat.headers] == ["Bearer none", "Bearer own"]


def test_a_proxy_from_the_environment_is_not_asked_for_a_server_on_this_machine(
    chat: ChatServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    chat.say(HI)
    assert ask(model_at(chat)).text == "hello"


def test_names_and_parameters_of_openai_itself() -> None:
    model = OpenAICompatible("gpt-5.6", api_key="k", api="chat")
    assert (model.name, model.target.profile.provider) == ("openai:gpt-5.6", "openai")
    assert model.target.profile.has("limit.new_name")
    assert model.target.profile.has("effort.none_with_tools")
    other = OpenAICompatible("gpt-5.6", "http://127.0.0.1:1/v1")
    assert (other.name, other.target.profile.provider) == ("http://127.0.0.1:1/v1#gpt-5.6", "127.0.0.1:1")
    assert not other.target.profile.has("limit.new_name")
    assert not other.target.profile.has("effort.none_with_tools")


@pytest.mark.parametrize(
    ("model", "base_url", "api", "chosen"),
    [
        ("gpt-5", None, "auto", "responses"),
        ("gpt-5.6-terra", None, "auto", "responses"),
        ("gpt-6-astra", None, "auto", "responses"),
        ("o3", None, "auto", "responses"),
        ("o4-mini", None, "auto", "responses"),
        ("codex-mini-latest", None, "auto", "responses"),
        ("gpt-4.1", None, "auto", "chat"),
        ("gpt-4o", None, "auto", "chat"),
        ("omni-moderation", None, "auto", "chat"),
        ("gpt-5", "https://api.openai.com/v1", "auto", "responses"),
        ("gpt-5", "http://127.0.0.1:1/v1", "auto", "chat"),
        ("gpt-5", None, "chat", "chat"),
        ("gpt-4o", "http://127.0.0.1:1/v1", "responses", "responses"),
    ],
)
def test_which_of_the_two_apis_is_spoken(model: str, base_url: str | None, api: Any, chosen: str) -> None:
    made = OpenAICompatible(model, base_url, "k", api=api)
    assert (made.api, made.format.name) == (chosen, f"openai_{chosen}")


@pytest.mark.parametrize(
    ("address", "profile"),
    [
        ("https://api.deepseek.com", "deepseek"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://x.openai.azure.com/openai/v1", "azure"),
        ("http://127.0.0.1:1/v1", "compatible"),
    ],
)
def test_the_address_says_what_is_known_of_a_server(address: str, profile: str) -> None:
    assert OpenAICompatible("m", address).target.profile.name == profile


def test_a_profile_of_ones_own_wins() -> None:
    own = CHAT.profile({"server": "vllm", "model": "m"})
    assert OpenAICompatible("m", "https://api.deepseek.com", profile=own).target.profile is own


def test_without_a_key_openai_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        OpenAICompatible("gpt-5")
    with pytest.raises(ConfigError, match="protocol"):
        OpenAICompatible("m", "http://127.0.0.1:1/v1", protocol="xml")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="api must be one of"):
        OpenAICompatible("m", "http://127.0.0.1:1/v1", api="xml")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="api must be one of 'auto', 'chat'"):
        OpenAICompatible("m", "http://127.0.0.1:1/v1", api="responses", protocol="constrained")


# --- compaction by the provider -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"compact_at": 999}, r"at least 1,000 tokens for openai_responses, got 999"),
        ({"compact_at": 1e6}, r"at least 1,000 tokens"),
        ({"compact_at": 100_000, "api": "chat"}, r"does not compact by itself.*Agent\(compaction=True\)"),
        ({"compact_at": 100_000, "protocol": "constrained"}, r"does not compact"),
        ({"compact_at": 100_000, "base_url": "http://127.0.0.1:1/v1"}, r"does not compact"),
        ({"compact_at": 100_000, "base_url": "http://127.0.0.1:1/v1", "api": "responses"}, r"vllm does not compact"),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        OpenAICompatible("gpt-5.6", api_key="k", **options)


def test_the_least_threshold_is_taken() -> None:
    assert OpenAICompatible("gpt-5.6", api_key="k", compact_at=1_000).target.compact_at == 1_000


# --- clients of the user's own ----------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_a_plain_client_alone_serves_both_colours(chat: ChatServer, ask: Ask, streamed: bool) -> None:
    with openai.OpenAI(base_url=chat.url, api_key="mine", http_client=httpx2.Client(trust_env=False)) as client:
        model = OpenAICompatible("m", client=client)
        shown: list[Delta] = []
        if streamed:
            chat.stream(delta({"content": "hello"}), delta({}, "stop"))
        else:
            chat.say(HI)
        assert ask(model, None, shown.append if streamed else None).text == "hello"
        assert [one.text for one in shown] == (["hello"] if streamed else [])
        assert chat.headers[0]["authorization"] == "Bearer mine"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_async_client_alone_serves_a_plain_run(chat: ChatServer, request_for: Request, streamed: bool) -> None:
    limits = httpx2.Limits(max_keepalive_connections=0)  # so that nothing is left open when the test ends
    http = httpx2.AsyncClient(trust_env=False, limits=limits)
    model = OpenAICompatible("m", async_client=openai.AsyncOpenAI(base_url=chat.url, api_key="mine", http_client=http))
    shown: list[Delta] = []
    if streamed:
        chat.stream(delta({"content": "hello"}), delta({}, "stop"))
    else:
        chat.say(HI)
    session = model.session()
    assert session.complete(request_for(), shown.append if streamed else None).text == "hello"
    assert [one.text for one in shown] == (["hello"] if streamed else [])


def test_a_users_client_does_not_retry_either(chat: ChatServer, ask: Ask) -> None:
    with openai.OpenAI(base_url=chat.url, api_key="mine", max_retries=5) as client:
        chat.say({"error": {"message": "busy"}}, 503)
        with pytest.raises(Overloaded):
            ask(OpenAICompatible("m", client=client))
        assert len(chat.bodies) == 1


# --- what breaks ------------------------------------------------------------------------------------


def fails(ask: Ask, chat: ChatServer, kind: type[RemoteError], watch: bool = False) -> Any:
    shown: list[Delta] = []
    with pytest.raises(RemoteError) as caught:
        ask(model_at(chat), None, shown.append if watch else None)
    assert type(caught.value) is kind, repr(caught.value)
    assert len(chat.bodies) == 1  # the SDK did not retry
    return caught.value


@pytest.mark.parametrize("watch", [False, True])
def test_429_with_retry_after(chat: ChatServer, ask: Ask, watch: bool) -> None:
    chat.say({"error": {"message": "slow", "code": "rate_limit_exceeded"}}, 429, headers={"retry-after": "7"})
    error = fails(ask, chat, RateLimited, watch)
    assert (error.status, error.code, error.retry_after_s, error.is_retryable) == (
        429,
        "rate_limit_exceeded",
        7.0,
        True,
    )


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (529, {"error": {"message": "Overloaded", "type": "overloaded_error"}}, Overloaded),
        (500, "", Overloaded),
        (502, "<html>Bad Gateway</html>", Overloaded),
        (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, AuthRejected),
        (400, {"error": {"message": "bad", "type": "invalid_request_error"}}, ProviderError),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, ContextTooLong),
        (500, {"error": {"message": "output does not match the expected peg-native format"}}, MalformedReply),
        (404, [], ProviderError),
    ],
)
def test_error_answers(chat: ChatServer, ask: Ask, status: int, body: Any, kind: type[RemoteError]) -> None:
    chat.say(body, status)
    fails(ask, chat, kind)


def test_an_error_answer_that_breaks_off(chat: ChatServer, ask: Ask) -> None:
    chat.say('{"error": {"mess', 500, missing=50)
    fails(ask, chat, ConnectionFailed, watch=True)


def test_a_stream_that_is_cut_in_the_middle_of_a_call(chat: ChatServer, ask: Ask) -> None:
    chat.stream(CALL_HEAD, is_cut=True)
    assert fails(ask, chat, ConnectionFailed, watch=True).is_retryable


def test_a_stream_that_ends_well_but_too_early(chat: ChatServer, ask: Ask) -> None:
    chat.stream(CALL_HEAD, CALL_TAIL, done=False)
    assert "before the reply was complete" in str(fails(ask, chat, ConnectionFailed, watch=True))


def test_a_response_that_is_cut(chat: ChatServer, ask: Ask) -> None:
    chat.say(json.dumps(HI)[:40], missing=100)
    fails(ask, chat, ConnectionFailed)


def test_json_that_is_broken(chat: ChatServer, ask: Ask) -> None:
    chat.say(json.dumps(HI)[:40])
    assert fails(ask, chat, MalformedReply).is_retryable


@pytest.mark.parametrize("watch", [False, True])
def test_a_web_page_instead_of_an_answer(chat: ChatServer, ask: Ask, watch: bool) -> None:
    chat.say("<html>Welcome</html>", content_type="text/html")
    fails(ask, chat, MalformedReply, watch)


def test_half_a_character_in_a_response(chat: ChatServer, ask: Ask) -> None:
    chat.say(b'{"choices": [{"message": {"content": "\xc3"}}]}')
    fails(ask, chat, MalformedReply)


def test_half_a_character_in_a_stream(chat: ChatServer, ask: Ask) -> None:
    chat.stream(delta({"content": "a"}), raw=b'data: {"choices": [{"delta": {"content": "\xc3"}}]}\n\n')
    fails(ask, chat, MalformedReply, watch=True)


def test_broken_json_in_a_stream(chat: ChatServer, ask: Ask) -> None:
    chat.stream(delta({"content": "a"}), raw=b"data: {oops\n\n")
    fails(ask, chat, MalformedReply, watch=True)


def test_an_error_object_inside_a_stream(chat: ChatServer, ask: Ask) -> None:
    chat.stream(delta({"content": "half"}), {"error": {"message": "overloaded", "code": 529}})
    assert fails(ask, chat, Overloaded, watch=True).status == 529


def test_an_overflow_inside_a_stream(chat: ChatServer, ask: Ask) -> None:
    chat.stream({"error": {"message": "Your input exceeds the context window of this model."}})
    fails(ask, chat, ContextTooLong, watch=True)


def test_nobody_is_there(chat: ChatServer, ask: Ask) -> None:
    chat.close()
    with pytest.raises(ConnectionFailed, match=r"could not reach http://127\.0\.0\.1"):
        ask(model_at(chat))


class _Clock:
    """A deadline is a quarter of a second ahead."""

    def now(self) -> float:
        return 1000.0

    def wait(self, event: threading.Event, seconds: float) -> None:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def test_the_deadline_of_the_run_bounds_the_request(chat: ChatServer, ask: Ask, request_for: Request) -> None:
    chat.wait_for_hang_up(delta({"content": "a"}))
    with pytest.raises(ConnectionFailed, match="in time"):
        ask(model_at(chat, clock=_Clock()), request_for(deadline_at=1000.2), lambda _: None)
    assert chat.hung_up.wait(10)


def test_after_the_deadline_nothing_is_asked(chat: ChatServer, ask: Ask, request_for: Request) -> None:
    with pytest.raises(ConnectionFailed, match="deadline"):
        ask(model_at(chat, clock=_Clock()), request_for(deadline_at=999.0))
    assert not chat.bodies


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_closes_the_connection(chat: ChatServer, request_for: Request, streamed: bool) -> None:
    chat.wait_for_hang_up(delta({"content": "a"}))
    session = model_at(chat).session()

    async def run() -> None:
        heard = asyncio.Event()
        task = asyncio.create_task(session.acomplete(request_for(), (lambda _: heard.set()) if streamed else None))
        if streamed:
            await heard.wait()
        else:
            assert await asyncio.to_thread(chat.asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert chat.hung_up.wait(10)


# --- every exception of the SDK ---------------------------------------------------------------------


def _response(status: int) -> httpx2.Response:
    return httpx2.Response(status, request=httpx2.Request("POST", "http://127.0.0.1/v1"))


def _made(kind: type[Exception]) -> Exception:
    """An instance of any of the SDK's exception classes."""
    given: dict[str, Any] = {
        "request": httpx2.Request("POST", "http://127.0.0.1/v1"),
        "response": _response(getattr(kind, "status_code", 418)),
        "body": {"message": "m"},
        "message": "m",
        "completion": openai.types.chat.ChatCompletion.model_construct(usage=None),
        "unsent_messages": [],
        "symbol": "s",
    }
    return made(kind, given)


def _sdk_exceptions() -> list[type[Exception]]:
    found = exceptions_of(openai.OpenAIError, "openai")
    listed = [getattr(openai, name) for name in openai.__all__]
    found.update(one for one in listed if inspect.isclass(one) and issubclass(one, Exception))
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", _sdk_exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_sdk_becomes_one_of_ours(kind: type[Exception]) -> None:
    mapped = remote_error(openai_sdk(), _made(kind), "http://127.0.0.1/v1")
    assert isinstance(mapped, RemoteError)
    assert str(mapped)


EXPECTED = {
    "APIConnectionError": ConnectionFailed,
    "APITimeoutError": ConnectionFailed,
    "AuthenticationError": AuthRejected,
    "PermissionDeniedError": AuthRejected,
    "OAuthError": AuthRejected,
    "RateLimitError": RateLimited,
    "ConflictError": Overloaded,
    "BadRequestError": ProviderError,
    "NotFoundError": ProviderError,
    "UnprocessableEntityError": ProviderError,
    "APIResponseValidationError": MalformedReply,
    "LengthFinishReasonError": MalformedReply,
    "ContentFilterFinishReasonError": MalformedReply,
    "OpenAIError": ProviderError,
}


@pytest.mark.parametrize(("name", "kind"), EXPECTED.items())
def test_what_the_exceptions_of_the_sdk_mean(name: str, kind: type[RemoteError]) -> None:
    source = getattr(openai, name, None) or next(one for one in _sdk_exceptions() if one.__name__ == name)
    assert type(remote_error(openai_sdk(), _made(source), "http://127.0.0.1/v1")) is kind
