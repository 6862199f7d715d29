"""Google's Gemini models, over the official `google-genai` package: the Gemini API (`Google("gemini-3-pro")`) and,
with a client of your own, Vertex AI. It needs the extra `tenlines[google]`.

The package has no public way to send a body as it stands and to read a stream byte by byte: its own reader turns half
a character into another one, and a stream that is let go stays open. So three of its inner methods are used here, and
nowhere else: the one that builds a request, and the two that send it.

What may go wrong with a request is listed at `tenlines.models.session.ModelClient`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import AuthRejected, ConfigError, ConnectionFailed, MalformedReply, MissingExtra, RemoteError
from tenlines.models.connections import HttpClients, http_library, loaded
from tenlines.models.server_events import aheard, heard
from tenlines.models.session import CONNECT_S, TIMEOUT_S, Heard, ModelClient, no_key
from tenlines.ports import Clock
from tenlines.wire.errors import error_from
from tenlines.wire.gemini.format import FORMAT
from tenlines.wire.profile import Profile, Target

if TYPE_CHECKING:
    from google import genai

KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""Where the package looks for a key."""
_INNER = ("_build_request", "_request", "_async_request")
_HOST = ".googleapis.com"


class Google(ModelClient):
    """A Gemini model.

    Args:
        model: Name of the model (`gemini-...`).
        client: A ready `google.genai.Client` to use instead, for Vertex AI, say.
        api_key: Key; None takes `GOOGLE_API_KEY` or `GEMINI_API_KEY` for Google's own address, and none for any other.
        base_url: Address of the server, without the version; None for Google's own.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        effort: How much the model shall think (`low`, `high`, ...); None leaves it to the model.
        temperature: Sampling temperature, from 0; None leaves it to the server.
        profile: What the server demands; None takes what is known of the model.
        name: How the model is called in the journal.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `google-genai` package is not installed.
        ConfigError: There is no key, or the package is another than we know.
    """

    def __init__(
        self,
        model: str,
        *,
        client: genai.Client | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        effort: str | None = None,
        temperature: float | None = None,
        profile: Profile | None = None,
        name: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        sdk = google_sdk()
        clients = _Clients(sdk, client) if client is not None else _own_clients(sdk, model, base_url, api_key)
        is_own = (urlsplit(clients.address).hostname or "").endswith(_HOST)
        name = name or (f"google:{model}" if is_own else f"{clients.address}#{model}")
        context: dict[str, str | bool] = {"model": model}
        if clients.is_vertex:
            context["server"] = "vertex"
        target = Target(
            profile=profile or FORMAT.profile(context),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            effort=effort,
        )
        super().__init__(GoogleTransport(clients, model), FORMAT, target, name=name, timeout_s=timeout_s, clock=clock)


# --- the SDK ------------------------------------------------------------------------------------------


class Sdk(NamedTuple):
    """What is used of the package."""

    module: Any
    types: Any
    errors: Any
    http: Any
    """The HTTP library that it stands on."""


def google_sdk() -> Sdk:
    """The `google-genai` package.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        from google import genai
        from google.genai import errors, types
    except ImportError as error:
        raise MissingExtra("this model", "google") from error
    return Sdk(genai, types, errors, http_library())


# --- the transport ------------------------------------------------------------------------------------


class GoogleTransport:
    """Posts bodies to a model's two methods (`tenlines.models.session.Transport`)."""

    has_sync = True
    has_async = True

    def __init__(self, clients: _Clients, model: str) -> None:
        self._clients, self._path = clients, _resource(model, clients.is_vertex)

    @property
    def address(self) -> str:
        """Where the requests go."""
        return self._clients.address

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Ask, and wait for the whole response."""
        with self._mapped(), self._opened("generateContent", body, timeout_s) as response:
            data: JsonValue = json.loads(b"".join(_pieces(response)))
            return data

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        """Ask for a stream, and yield what comes."""
        with self._mapped(), self._opened("streamGenerateContent?alt=sse", body, timeout_s) as response:
            yield from heard(response, _pieces(response))

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """`send` for asyncio."""
        with self._mapped():
            response = await self._aopened("generateContent", body, timeout_s)
            try:
                data: JsonValue = json.loads(b"".join([piece async for piece in _apieces(response, timeout_s)]))
                return data
            finally:
                await _aclose(response)

    async def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        """`stream` for asyncio."""
        with self._mapped():
            response = await self._aopened("streamGenerateContent?alt=sse", body, timeout_s)
            try:
                async with aclosing(aheard(response, _apieces(response, timeout_s))) as saying:
                    async for said in saying:
                        yield said
            finally:
                await _aclose(response)

    @contextmanager
    def _opened(self, method: str, body: JsonObject, timeout_s: float) -> Iterator[Any]:
        inner = self._clients.inner(self._clients.sync_client)
        request, once = self._built(inner, method, body)
        request.timeout = self._clients.sync_timeout(timeout_s, request.timeout)
        response = inner._request(request, once, stream=True).response_stream
        try:
            yield response
        finally:
            response.close()

    async def _aopened(self, method: str, body: JsonObject, timeout_s: float) -> Any:
        inner = self._clients.inner(await self._clients.async_client())
        request, once = self._built(inner, method, body)
        # its HTTP library may be one whose timeout is for the whole stream; silence is watched here
        request.timeout = self._clients.async_timeout(timeout_s)
        async with asyncio.timeout(timeout_s):
            return (await inner._async_request(request, once, stream=True)).response_stream

    def _built(self, inner: Any, method: str, body: JsonObject) -> tuple[Any, Any]:
        """The request, and the word that it is sent once."""
        once = self._clients.sdk.types.HttpOptions(retry_options={"attempts": 1})
        return inner._build_request("post", f"{self._path}:{method}", dict(body), once), once

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        theirs = (self._clients.sdk.errors.APIError, ValueError, RecursionError, TimeoutError, *_of_libraries())
        try:
            yield
        except theirs as error:
            raise remote_error(self._clients.sdk, error, self.address) from error


def _resource(model: str, is_vertex: bool) -> str:
    """The path of a model; a name that is a path already goes as it is."""
    if model.startswith(("models/", "tunedModels/", "projects/", "publishers/")):
        return model
    if not is_vertex:
        return f"models/{model}"
    publisher, slash, name = model.partition("/")
    return f"publishers/{publisher}/models/{name}" if slash else f"publishers/google/models/{model}"


def _pieces(response: Any) -> Iterator[bytes]:
    """The body of a response of either HTTP library (with a client certificate, the package uses `requests`)."""
    pieces: Iterator[bytes] = (
        response.iter_bytes() if hasattr(response, "iter_bytes") else response.iter_content(chunk_size=None)
    )
    return pieces


async def _apieces(response: Any, timeout_s: float) -> AsyncIterator[bytes]:
    pieces = response.aiter_bytes() if hasattr(response, "aiter_bytes") else response.content.iter_any()
    waiting = aiter(pieces)
    while True:
        async with asyncio.timeout(timeout_s):
            piece = await anext(waiting, None)
        if piece is None:
            return
        yield piece


async def _aclose(response: Any) -> None:
    if hasattr(response, "aclose"):
        await response.aclose()
    else:
        response.close()


# --- clients ------------------------------------------------------------------------------------------


class _Clients:
    """The user's own client: it serves both colours, and every event loop."""

    def __init__(self, sdk: Sdk, client: Any) -> None:
        self.sdk, self.sync_client = sdk, client
        self.inner(client)

    def inner(self, client: Any) -> Any:
        """What sends the requests of a client.

        Raises:
            ConfigError: It is another than we know.
        """
        inner = getattr(client, "_api_client", None)
        if not all(hasattr(inner, name) for name in _INNER):
            version = getattr(self.sdk.module, "__version__", "?")
            raise ConfigError(
                f"{type(client).__name__} of google-genai {version} is not known here; pass a google.genai.Client, "
                "and for a newer version of the package look for a newer tenlines"
            )
        return inner

    @property
    def address(self) -> str:
        """Where the requests go."""
        return str(self.inner(self.sync_client).get_read_only_http_options().get("base_url") or "").rstrip("/")

    @property
    def is_vertex(self) -> bool:
        """Whether Vertex AI is asked."""
        return bool(self.sync_client.vertexai)

    def sync_timeout(self, timeout_s: float, own_s: float | None) -> Any:
        """How long a blocking request waits; a client with a shorter timeout of its own keeps it."""
        return min(timeout_s, own_s or timeout_s)

    async def async_client(self) -> Any:
        """The client for the running event loop."""
        return self.sync_client

    def async_timeout(self, timeout_s: float) -> Any:
        """What the HTTP library is told."""
        return None


class _OwnClients(_Clients):
    """Clients that are made here, over HTTP clients that are made here: one for each event loop, closed with it.

    Raises:
        ValueError: There is no key.
    """

    def __init__(self, sdk: Sdk, base_url: str | None, api_key: str | None) -> None:
        self.sdk, self._base_url, self._api_key = sdk, base_url, api_key
        self._http = HttpClients(sdk.http, base_url)
        try:
            super().__init__(sdk, self._made(self._http.fresh()))
        except BaseException:
            self._http.close()
            raise

    def _made(self, http: Any) -> Any:
        options = self.sdk.types.HttpOptions(
            base_url=self._base_url,
            httpx_client=self._http.blocking,
            httpx_async_client=http,
            retry_options={"attempts": 1},
        )
        return self.sdk.module.Client(api_key=self._api_key, http_options=options)

    def sync_timeout(self, timeout_s: float, own_s: float | None) -> Any:
        """How long a blocking request waits."""
        return self.sdk.http.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))

    def async_timeout(self, timeout_s: float) -> Any:
        """What the HTTP library is told."""
        return self.sync_timeout(timeout_s, None)

    async def async_client(self) -> Any:
        """The client for the running event loop."""
        return await self._http.in_loop(self._made)


def _own_clients(sdk: Sdk, model: str, base_url: str | None, api_key: str | None) -> _OwnClients:
    if base_url is not None and api_key is None and not (urlsplit(base_url).hostname or "").endswith(_HOST):
        api_key = "none"  # never send Google's key to another server
    theirs: tuple[type[Exception], ...] = (ValueError, *loaded("GoogleAuthError", "google.auth.exceptions"))
    try:
        return _OwnClients(sdk, base_url, api_key)
    except theirs as error:
        raise no_key(f"google:{model}", *KEYS, why=f" ({error})") from error


# --- errors -------------------------------------------------------------------------------------------


def remote_error(sdk: Sdk, error: Exception, address: str) -> RemoteError:
    """The one place where an exception of the package becomes one of ours."""
    if isinstance(error, sdk.errors.APIError):
        return error_from(error.code, error.details, getattr(error.response, "headers", None) or {})
    if isinstance(error, (TimeoutError, *loaded("TimeoutException", "httpx", "httpx2"))):
        return ConnectionFailed(f"no answer from {address} in time")
    if isinstance(error, loaded("TransportError", "google.auth.exceptions")):
        return ConnectionFailed(f"could not get a token for {address}: {error}")
    if isinstance(error, loaded("GoogleAuthError", "google.auth.exceptions")):
        return AuthRejected(f"{address}: {error}")
    if isinstance(error, ValueError | RecursionError):
        return MalformedReply(f"{address} sent what is not valid JSON or UTF-8: {error}", str(error))
    if isinstance(error, loaded("ConnectError", "httpx", "httpx2") + loaded("ClientConnectorError", "aiohttp")):
        return ConnectionFailed(f"could not reach {address}: {error}")
    return ConnectionFailed(f"the connection to {address} broke off: {error}")


def _of_libraries() -> tuple[type[Exception], ...]:
    """The bases of what the libraries below the package raise."""
    return (
        loaded("HTTPError", "httpx", "httpx2")
        + loaded("ClientError", "aiohttp")
        + loaded("RequestException", "requests")
        + loaded("GoogleAuthError", "google.auth.exceptions")
    )
