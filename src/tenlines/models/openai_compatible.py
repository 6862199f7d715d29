"""Models behind the OpenAI Chat Completions API: OpenAI itself and every server that speaks like it.

The official SDK does the HTTP; its types stay in this file. Its retries are off: a retry is an event, and the
machine decides on it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.drivers.threads import in_thread, loop_thread
from tenlines.errors import (
    ConfigError,
    ConnectionFailed,
    MalformedReply,
    MissingExtra,
    ProviderError,
    RemoteError,
)
from tenlines.ports import Clock, Delta, OnDelta, SystemClock
from tenlines.wire import constrained
from tenlines.wire.errors import error_from
from tenlines.wire.openai_chat import decoding, encoding
from tenlines.wire.openai_chat import stream as streaming

if TYPE_CHECKING:
    import openai

WireProtocol: TypeAlias = Literal["native", "constrained"]
"""`native`: the server's own tool calling. `constrained`: replies held to a JSON schema, for small models."""

TIMEOUT_S = 600.0
"""Longest silence of the server that is waited for, where the run has no deadline."""
CONNECT_S = 10.0
"""Longest time to get a connection: a server that is down should be known soon."""
_PATH = "/chat/completions"
_NO_EFFORT = re.compile(r"gpt-(5\.[4-9]|[6-9])")
"""OpenAI's models that take function tools on this endpoint only with `reasoning_effort="none"`."""


class OpenAICompatible:
    """A model of OpenAI or of a compatible server.

    Args:
        model: Name of the model, as the server knows it.
        base_url: Address of the API (`http://127.0.0.1:8080/v1`); None for OpenAI's own.
        api_key: Key; None takes `OPENAI_API_KEY` for OpenAI's own address, and none for any other.
        client: A ready `openai.OpenAI` to use instead. With it alone, async runs call it in a thread.
        async_client: A ready `openai.AsyncOpenAI`. With it alone, plain runs use it in an event loop of their own.
        protocol: `native` tool calls, or `constrained` replies for small local models.
        name: How the model is called in the journal.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        temperature: Sampling temperature; None leaves it to the server.
        reasoning_effort: As OpenAI's parameter; None leaves it to the server.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `openai` package is not installed.
        ConfigError: There is no key, or the protocol is unknown.
    """

    def __init__(  # noqa: PLR0913  # the front door to a dozen kinds of server: every option has a name
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        client: openai.OpenAI | None = None,
        async_client: openai.AsyncOpenAI | None = None,
        protocol: WireProtocol = "native",
        name: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        if protocol not in ("native", "constrained"):
            raise ConfigError(f"protocol must be 'native' or 'constrained', got {protocol!r}")
        sdk = _sdk()
        given = client or async_client
        self._clients = _Clients(sdk, client, async_client) if given else _own_clients(sdk, base_url, api_key)
        address = self._clients.address
        host = urlsplit(address).netloc
        self.provider = "openai" if host == "api.openai.com" else host
        self.name = name or (f"openai:{model}" if self.provider == "openai" else f"{address}#{model}")
        self.protocol, self.timeout_s = protocol, timeout_s
        self._clock = clock or SystemClock()
        knows_new_name = self.provider == "openai" or host.endswith(".azure.com")
        self.options = encoding.Options(
            model=model,
            provider=self.provider,
            max_tokens=max_tokens,
            max_tokens_field="max_completion_tokens" if knows_new_name else "max_tokens",
            temperature=temperature,
            reasoning_effort=reasoning_effort,
            effort_with_tools="none" if self.provider == "openai" and _NO_EFFORT.match(model) else None,
        )

    def session(self) -> _Session:
        """One run's conversation: what was encoded is kept."""
        talk = _Constrained(self.options) if self.protocol == "constrained" else _Native(self.options)
        return _Session(self._clients, talk, self._clock, self.timeout_s)


# --- the two protocols ------------------------------------------------------------------------------


class _StreamDecoder(Protocol):
    def feed(self, chunk: JsonValue) -> streaming.Piece: ...
    def finish(self) -> Reply: ...


class _Talk(Protocol):
    """How one run's requests are written and its replies are read."""

    def request(self, effect: CallModel, stream: bool) -> JsonObject: ...
    def decode(self, data: JsonValue) -> Reply: ...
    def decoder(self) -> _StreamDecoder: ...


class _Native:
    def __init__(self, options: encoding.Options) -> None:
        self._options, self._encoder = options, encoding.Encoder(options)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        return encoding.encode_request(
            self._options,
            self._encoder.extend(effect.messages, effect.new_from),
            self._encoder.tools(effect.tools),
            tool_choice=effect.tool_choice,
            max_output_tokens=effect.max_output_tokens,
            stream=stream,
        )

    def decode(self, data: JsonValue) -> Reply:
        return decoding.decode_response(data, self._options.provider, self._options.model)

    def decoder(self) -> _StreamDecoder:
        return streaming.StreamDecoder(self._options.provider, self._options.model)


class _Constrained(_Native):
    """Without tools there is nothing to choose between, and a reply is plain text."""

    def __init__(self, options: encoding.Options) -> None:
        super().__init__(options)
        self._talk, self._is_held = constrained.Encoder(), False

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        messages = self._talk.extend(effect.messages, effect.tools, effect.new_from)
        response_format = self._talk.response_format(effect.tools, effect.tool_choice)
        self._is_held = response_format is not None
        limit = effect.max_output_tokens
        return constrained.encode_request(
            self._options, messages, response_format, max_output_tokens=limit, stream=stream
        )

    def decode(self, data: JsonValue) -> Reply:
        reply = super().decode(data)
        return constrained.read_reply(reply) if self._is_held else reply

    def decoder(self) -> _StreamDecoder:
        if not self._is_held:
            return super().decoder()
        return constrained.StreamDecoder(self._options.provider, self._options.model)


# --- the session ------------------------------------------------------------------------------------


class _Session:
    def __init__(self, clients: _Clients, talk: _Talk, clock: Clock, timeout_s: float) -> None:
        self._clients, self._talk, self._clock, self._timeout_s = clients, talk, clock, timeout_s

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Ask and wait; streamed when somebody watches."""
        client = self._clients.sync_client
        if client is None:
            reply: Reply = loop_thread.wait_for(self.acomplete(request, on_delta))
            return reply
        send = partial(client.post, _PATH, options=self._options(request), cast_to=object)
        body = self._talk.request(request, on_delta is not None)
        with _mapped(self._clients.address):
            if on_delta is None:
                return self._talk.decode(send(body=body))
            stream_cls = self._clients.sdk.Stream[object]
            with send(body=body, stream=True, stream_cls=stream_cls) as stream:
                if _is_whole(stream.response):
                    return self._whole(request, json.loads(stream.response.read()), on_delta)
                decoder = self._talk.decoder()
                for chunk in stream:
                    _show(request, decoder.feed(chunk), on_delta)
                return decoder.finish()

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio. Cancelling it closes the connection."""
        client = await self._clients.async_client()
        if client is None:
            return await self._in_thread(request, on_delta)
        send = partial(client.post, _PATH, options=self._options(request), cast_to=object)
        body = self._talk.request(request, on_delta is not None)
        with _mapped(self._clients.address):
            if on_delta is None:
                return self._talk.decode(await send(body=body))
            stream_cls = self._clients.sdk.AsyncStream[object]
            async with await send(body=body, stream=True, stream_cls=stream_cls) as stream:
                if _is_whole(stream.response):
                    return self._whole(request, json.loads(await stream.response.aread()), on_delta)
                decoder = self._talk.decoder()
                async for chunk in stream:
                    _show(request, decoder.feed(chunk), on_delta)
                return decoder.finish()

    async def _in_thread(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """A blocking client under asyncio: when this is cancelled, its thread stops at the next piece it hears."""
        loop = asyncio.get_running_loop()
        given_up = threading.Event()

        def relay(delta: Delta) -> None:
            if given_up.is_set():
                raise ConnectionFailed("given up by the caller")
            if on_delta is not None:
                loop.call_soon_threadsafe(on_delta, delta)

        try:
            reply: Reply = await in_thread(partial(self.complete, request, on_delta and relay))
            return reply
        finally:
            given_up.set()

    def _whole(self, request: CallModel, data: JsonValue, on_delta: OnDelta) -> Reply:
        """A server that was asked to stream and sent a whole response."""
        reply = self._talk.decode(data)
        if reply.text:
            on_delta(Delta(request.step, reply.text))
        return reply

    def _options(self, request: CallModel) -> Any:
        left = self._timeout_s
        if request.deadline_at is not None:
            left = min(left, request.deadline_at - self._clock.now())
        if left <= 0:
            raise ConnectionFailed("the deadline passed before the model was asked")
        return {"timeout": self._clients.sdk.Timeout(left, connect=min(left, CONNECT_S)), "max_retries": 0}


def _is_whole(response: Any) -> bool:
    kind: str = response.headers.get("content-type", "text/event-stream").split(";")[0].strip()
    if kind.endswith("json"):
        return True
    if kind in ("text/html", "text/xml", "application/xml"):
        raise MalformedReply(f"the server sent {kind} where a stream of events was expected; is the address right?")
    return False  # some servers stream as text/plain or application/octet-stream


def _show(request: CallModel, piece: streaming.Piece, on_delta: OnDelta) -> None:
    if piece.text or piece.reasoning:
        on_delta(Delta(request.step, piece.text, piece.reasoning))


# --- clients ----------------------------------------------------------------------------------------


def _sdk() -> Any:
    try:
        import openai
    except ImportError as error:
        raise MissingExtra("this model", "openai") from error
    return openai


class _Clients:
    """The SDK clients of a model: the user's own, of which one may be missing."""

    def __init__(self, sdk: Any, client: Any, async_client: Any) -> None:
        self.sdk, self.sync_client, self._async_client = sdk, client, async_client

    @property
    def address(self) -> str:
        """Where the requests go."""
        return str((self.sync_client or self._async_client).base_url).rstrip("/")

    async def async_client(self) -> Any:
        """The client for the running event loop, or None."""
        return self._async_client


class _OwnClients(_Clients):
    """Clients that are made here. An async one serves one event loop and is closed when that loop ends."""

    def __init__(self, sdk: Any, client: Any, settings: dict[str, Any], trust_env: bool) -> None:
        super().__init__(sdk, client, None)
        self._settings, self._trust_env = settings, trust_env
        self._by_loop: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()
        self._closer = weakref.finalize(self, client.close)

    async def async_client(self) -> Any:
        loop = asyncio.get_running_loop()
        kept = self._by_loop.get(loop)
        if kept is None:
            http = self.sdk.DefaultAsyncHttpxClient(trust_env=self._trust_env)
            client = self.sdk.AsyncOpenAI(http_client=http, **self._settings)
            # Pooled connections belong to the loop. An event loop closes its async generators when it ends
            # (`shutdown_asyncgens`), and that closes the client.
            keeper = _kept(client, self._by_loop)
            await anext(keeper)
            self._by_loop[loop] = kept = (client, keeper)
        return kept[0]


async def _kept(client: Any, by_loop: weakref.WeakKeyDictionary[Any, Any]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        by_loop.pop(asyncio.get_running_loop(), None)  # the client holds the loop, which would never be freed
        await client.close()


def _own_clients(sdk: Any, base_url: str | None, api_key: str | None) -> _OwnClients:
    if api_key is None and base_url is not None:
        api_key = "none"  # never send OpenAI's key to another server; most local ones want none
    settings = {"base_url": base_url, "api_key": api_key, "max_retries": 0}
    # a proxy from the environment must not stand between us and a server on this machine
    trust_env = not is_loopback(base_url or "")
    try:
        client = sdk.OpenAI(http_client=sdk.DefaultHttpxClient(trust_env=trust_env), **settings)
    except sdk.OpenAIError as error:
        raise ConfigError(f"{error} Set OPENAI_API_KEY, or pass api_key=") from error
    return _OwnClients(sdk, client, settings, trust_env)


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


# --- errors -----------------------------------------------------------------------------------------


@contextmanager
def _mapped(address: str) -> Iterator[None]:
    sdk = _sdk()
    # the SDK lets its HTTP library's own errors through in a few places (an error body that breaks off)
    transport = tuple(sys.modules[name].HTTPError for name in ("httpx", "httpx2") if name in sys.modules)
    try:
        yield
    except (sdk.OpenAIError, ValueError, *transport) as error:
        raise remote_error(error, address) from error


def remote_error(error: Exception, address: str) -> RemoteError:
    """The one place where an exception of the SDK becomes one of ours."""
    sdk = _sdk()
    match error:
        case sdk.APITimeoutError():
            return ConnectionFailed(f"no answer from {address} in time")
        case sdk.APIConnectionError():
            return ConnectionFailed(f"could not reach {address}: {error.__cause__ or error}")
        case sdk.APIResponseValidationError():
            return MalformedReply(f"{address}: {error}", str(error.body))
        case sdk.APIStatusError():
            return error_from(error.status_code, error.body or error.message, error.response.headers)
        case sdk.APIError():
            return error_from(None, {"error": error.body or error.message}, {})
        case sdk.LengthFinishReasonError() | sdk.ContentFilterFinishReasonError() | ValueError():
            return MalformedReply(f"{address} sent what is not valid JSON or UTF-8: {error}", str(error))
        case sdk.OpenAIError():
            return ProviderError(f"{address}: {error}", is_retryable=False)
        case _:
            return ConnectionFailed(f"the connection to {address} broke off: {error}")
