"""The transport over the official `openai` and `anthropic` SDKs, which have the same generated core.

Their types stay in this file. They do the connections, the headers and the keys; the stream of events is read here,
since they drop what they do not know.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import AuthRejected, ConnectionFailed, MalformedReply, MissingExtra, ProviderError, RemoteError
from tenlines.models.connections import ByLoop, is_loopback, loaded
from tenlines.models.server_events import aheard, heard
from tenlines.models.session import CONNECT_S, Heard
from tenlines.wire.errors import error_from

_HTTP = ("httpx", "httpx2")
"""The HTTP libraries that the SDKs may stand on."""

# --- the SDKs -----------------------------------------------------------------------------------------


class Sdk(NamedTuple):
    """What differs between the two SDKs: three names."""

    module: Any
    client: Any
    """Class of the blocking client."""
    async_client: Any
    error: type[Exception]
    """Base of the exceptions."""


def openai_sdk() -> Sdk:
    """The `openai` package.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingExtra("this model", "openai") from error
    return Sdk(openai, openai.OpenAI, openai.AsyncOpenAI, openai.OpenAIError)


def anthropic_sdk() -> Sdk:
    """The `anthropic` package.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import anthropic
    except ImportError as error:
        raise MissingExtra("this model", "anthropic") from error
    return Sdk(anthropic, anthropic.Anthropic, anthropic.AsyncAnthropic, anthropic.AnthropicError)


# --- the transport ------------------------------------------------------------------------------------


class StainlessTransport:
    """Posts bodies to one path of an API (`tenlines.models.session.Transport`).

    Args:
        clients: The SDK clients.
        path: The path, behind their address.
        headers: What a body needs beside the client's own headers.
    """

    def __init__(
        self, clients: Clients, path: str, headers: Callable[[JsonObject], dict[str, str]] | None = None
    ) -> None:
        self._clients, self._path, self._headers = clients, path, headers

    @property
    def address(self) -> str:
        """Where the requests go."""
        return self._clients.address

    @property
    def has_sync(self) -> bool:
        """Whether there is a blocking client."""
        return self._clients.has_sync

    @property
    def has_async(self) -> bool:
        """Whether there is an asyncio client."""
        return self._clients.has_async

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Ask, and wait for the whole response."""
        with self._mapped():
            answer = self._clients.sync_client.post(self._path, **self._how(body, timeout_s))
            return _json_of(answer)

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """`send` for asyncio."""
        with self._mapped():
            client = await self._clients.async_client()
            return _json_of(await client.post(self._path, **self._how(body, timeout_s)))

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        """Ask for a stream, and yield what comes."""
        post, kind = self._clients.sync_client.post, self._clients.sdk.module.Stream[object]
        how = self._how(body, timeout_s)
        with self._mapped(), post(self._path, stream=True, stream_cls=kind, **how) as stream:
            yield from heard(stream.response, stream.response.iter_bytes())

    async def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        """`stream` for asyncio."""
        kind = self._clients.sdk.module.AsyncStream[object]
        how = self._how(body, timeout_s)
        with self._mapped():
            post = (await self._clients.async_client()).post
            async with (
                await post(self._path, stream=True, stream_cls=kind, **how) as stream,
                aclosing(aheard(stream.response, stream.response.aiter_bytes())) as saying,
            ):
                async for said in saying:
                    yield said

    def _how(self, body: JsonObject, timeout_s: float) -> dict[str, Any]:
        timeout = self._clients.sdk.module.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))
        options: dict[str, Any] = {"timeout": timeout, "max_retries": 0}
        if self._headers is not None:
            options["headers"] = self._headers(body)
        return {"body": body, "cast_to": object, "options": options}

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        # the SDK lets its HTTP library's own errors through in a few places (an error body that breaks off)
        sdk = self._clients.sdk
        theirs: tuple[type[Exception], ...] = (sdk.error, ValueError, RecursionError, *loaded("HTTPError", *_HTTP))
        try:
            yield
        except theirs as error:
            raise remote_error(sdk, error, self.address) from error


def _json_of(answer: Any) -> JsonValue:
    """The SDK parses a response by its content type; some servers send JSON as plain text."""
    if isinstance(answer, str) and answer.lstrip().startswith("{"):
        answer = json.loads(answer)
    value: JsonValue = answer
    return value


# --- clients ------------------------------------------------------------------------------------------


class Clients:
    """The SDK clients of a model: the user's own, of which one may be missing."""

    def __init__(self, sdk: Sdk, client: Any, async_client: Any) -> None:
        self.sdk, self.sync_client, self._async_client = sdk, client, async_client

    @property
    def address(self) -> str:
        """Where the requests go."""
        return str((self.sync_client or self._async_client).base_url).rstrip("/")

    @property
    def has_sync(self) -> bool:
        """Whether there is a blocking client."""
        return self.sync_client is not None

    @property
    def has_async(self) -> bool:
        """Whether there is an asyncio client."""
        return self._async_client is not None

    def header(self, name: str) -> str:
        """A header that the client sends with every request, by its name in small letters; "" when it is not there."""
        headers = (self.sync_client or self._async_client).default_headers
        return next((text for key, text in headers.items() if key.lower() == name and isinstance(text, str)), "")

    async def async_client(self) -> Any:
        """The client for the running event loop."""
        return self._async_client


class OwnClients(Clients):
    """Clients that are made here. An async one serves one event loop and is closed when that loop ends.

    Args:
        sdk: The SDK.
        base_url: Address of the API; None for the provider's own.
        api_key: The key; None leaves it to the SDK, which looks into the environment.

    Raises:
        Exception: The SDK's own, when it finds no key.
    """

    has_async = True

    def __init__(self, sdk: Sdk, base_url: str | None, api_key: str | None) -> None:
        # a proxy from the environment must not stand between us and a server on this machine
        is_near = is_loopback(base_url or "")
        self._trust_env = not is_near
        self._settings: dict[str, Any] = {"base_url": base_url, "api_key": api_key, "max_retries": 0}
        if is_near:
            # small servers close idle connections without a word, and a new one costs nothing here
            self._settings["default_headers"] = {"Connection": "close"}
        http = sdk.module.DefaultHttpxClient(trust_env=self._trust_env)
        try:
            client = sdk.client(http_client=http, **self._settings)
        except sdk.error:
            http.close()
            raise
        super().__init__(sdk, client, None)
        self._by_loop: ByLoop[Any] = ByLoop(lambda client: client.close())
        self._closer = weakref.finalize(self, client.close)

    async def async_client(self) -> Any:
        """The client for the running event loop."""
        return await self._by_loop.get(self._async_made)

    def _async_made(self) -> Any:
        http = self.sdk.module.DefaultAsyncHttpxClient(trust_env=self._trust_env)
        return self.sdk.async_client(http_client=http, **self._settings)


# --- errors -------------------------------------------------------------------------------------------


def remote_error(sdk: Sdk, error: Exception, address: str) -> RemoteError:
    """The one place where an exception of these SDKs becomes one of ours."""
    kinds = sdk.module
    match error:
        case kinds.APIStatusError():
            return error_from(error.status_code, error.body or error.message, error.response.headers)
        case kinds.APIResponseValidationError():
            return MalformedReply(f"{address}: {error}", str(error.body))
        case kinds.APIError() if not isinstance(error, kinds.APIConnectionError):
            return error_from(None, {"error": error.body or error.message}, {})
        case _ if type(error).__name__ in ("LengthFinishReasonError", "ContentFilterFinishReasonError"):
            return MalformedReply(f"{address}: {error}")
        case ValueError() | RecursionError():
            return MalformedReply(f"{address} sent what is not valid JSON or UTF-8: {error}", str(error))
        case _ if type(error).__name__ in ("CredentialsError", "IdentityTokenFileError"):
            return AuthRejected(f"{address}: {error}")
    return _broken_connection(sdk, error, address)


def _broken_connection(sdk: Sdk, error: Exception, address: str) -> RemoteError:
    if isinstance(error, (sdk.module.APITimeoutError, *loaded("TimeoutException", *_HTTP))):
        return ConnectionFailed(f"no answer from {address} in time")
    if isinstance(error, sdk.module.APIConnectionError):
        return ConnectionFailed(f"could not reach {address}: {error.__cause__ or error}")
    if isinstance(error, sdk.error):
        return ProviderError(f"{address}: {error}", is_retryable=False)
    return ConnectionFailed(f"the connection to {address} broke off: {error}")
