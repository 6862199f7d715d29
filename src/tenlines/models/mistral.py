"""Mistral's models over the official `mistralai` package: `Mistral("mistral-large-latest")`, with the extra
`tenlines[mistral]`.

The package's own `chat.complete` and `chat.stream` read replies into types of theirs and drop what those lack, so its
inner way is used here, and nowhere else: the method that builds a request (address, key, headers), and the two that
send it.

What may go wrong with a request is listed at `tenlines.models.session.ModelClient`.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import ConfigError, ConnectionFailed, MalformedReply, MissingExtra, RemoteError
from tenlines.models.connections import HttpClients, http_library
from tenlines.models.server_events import aheard, heard
from tenlines.models.session import CONNECT_S, TIMEOUT_S, Heard, ModelClient, no_key
from tenlines.ports import Clock
from tenlines.wire.errors import error_from
from tenlines.wire.mistral.format import FORMAT
from tenlines.wire.profile import Profile, Target

if TYPE_CHECKING:
    from mistralai.client import Mistral as Client

KEY = "MISTRAL_API_KEY"
"""Where the key is looked for."""
_PATH = "/v1/chat/completions"
_HOST = ".mistral.ai"
_INNER = ("_build_request", "_build_request_async", "do_request", "do_request_async", "sdk_configuration")


class Mistral(ModelClient):
    """A model of Mistral: of its own API, or of a server that speaks like it.

    Args:
        model: Name of the model (`mistral-large-latest`).
        client: A ready `mistralai.client.Mistral` to use instead.
        api_key: Key; None takes `MISTRAL_API_KEY` for Mistral's own address, and none for any other.
        base_url: Address of the server, without `/v1`; None for Mistral's own.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        effort: How much the model shall think; None leaves it to the model.
        temperature: Sampling temperature, from 0; None leaves it to the server.
        profile: What the server demands; None takes what the hosted API demands, which every server takes.
        name: How the model is called in the journal.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `mistralai` package is not installed.
        ConfigError: There is no key, or the package is another than we know.
    """

    def __init__(
        self,
        model: str,
        *,
        client: Client | None = None,
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
        sdk = mistral_sdk()
        clients = _Clients(sdk, client) if client is not None else _own_clients(sdk, model, base_url, api_key)
        host = urlsplit(clients.address).netloc
        name = name or (f"mistral:{model}" if host.endswith(_HOST) else f"{clients.address}#{model}")
        target = Target(
            profile=profile or _profile(host, model),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            effort=effort,
        )
        super().__init__(MistralTransport(clients), FORMAT, target, name=name, timeout_s=timeout_s, clock=clock)


def _profile(host: str, model: str) -> Profile:
    """What is known of a server by its address. Thoughts go back to the server that made them, and to no other."""
    found = FORMAT.profile({"model": model, "server": "mistral-api"})
    return found if host.endswith(_HOST) else msgspec.structs.replace(found, provider=host)


# --- the SDK ------------------------------------------------------------------------------------------


class Sdk(NamedTuple):
    """What is used of the package."""

    client: Any
    """Class of the client."""
    body: Any
    """Class of a body that is ready to be sent."""
    context: Any
    """Class of what the package's hooks are told."""
    http: Any
    """The HTTP library that it stands on."""


def mistral_sdk() -> Sdk:
    """The `mistralai` package.

    Raises:
        MissingExtra: It is not installed.
        ConfigError: It is another than we know.
    """
    try:
        from mistralai.client import Mistral as Client
    except ImportError as error:
        raise MissingExtra("this model", "mistral") from error
    try:
        from mistralai.client._hooks import HookContext
        from mistralai.client.utils import SerializedRequestBody
    except ImportError as error:
        raise ConfigError("this version of mistralai is not known here; look for a newer tenlines") from error
    return Sdk(Client, SerializedRequestBody, HookContext, http_library())


# --- the transport ------------------------------------------------------------------------------------


class MistralTransport:
    """Posts bodies to the chat completions (`tenlines.models.session.Transport`)."""

    has_sync = True
    has_async = True

    def __init__(self, clients: _Clients) -> None:
        self._clients, self._sdk = clients, clients.sdk

    @property
    def address(self) -> str:
        """Where the requests go."""
        return self._clients.address

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Ask, and wait for the whole response."""
        with self._mapped(), self._opened(body, timeout_s) as response:
            data: JsonValue = json.loads(response.read())
            return data

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        """Ask for a stream, and yield what comes."""
        with self._mapped(), self._opened(body, timeout_s) as response:
            yield from heard(response, response.iter_bytes())

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """`send` for asyncio."""
        with self._mapped():
            response = await self._aopened(body, timeout_s)
            try:
                data: JsonValue = json.loads(await response.aread())
                return data
            finally:
                await response.aclose()

    async def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        """`stream` for asyncio."""
        with self._mapped():
            response = await self._aopened(body, timeout_s)
            try:
                async with aclosing(aheard(response, response.aiter_bytes())) as saying:
                    async for said in saying:
                        yield said
            finally:
                await response.aclose()

    @contextmanager
    def _opened(self, body: JsonObject, timeout_s: float) -> Iterator[Any]:
        client = self._clients.sync_client
        request = self._built(client, client._build_request, body, timeout_s)
        response = client.do_request(self._told(client), request, lambda code: False, stream=True)
        try:
            if response.status_code >= 400:
                raise _refusal(response, response.read())
            yield response
        finally:
            response.close()

    async def _aopened(self, body: JsonObject, timeout_s: float) -> Any:
        client = await self._clients.async_client()
        request = self._built(client, client._build_request_async, body, timeout_s)
        response = await client.do_request_async(self._told(client), request, lambda code: False, stream=True)
        if response.status_code < 400:
            return response
        try:
            raise _refusal(response, await response.aread())
        finally:
            await response.aclose()

    def _built(self, client: Any, build: Any, body: JsonObject, timeout_s: float) -> Any:
        """The request, with the address, the key and the headers of the package."""
        content = json.dumps(body, ensure_ascii=False).encode()
        request = build(
            method="POST",
            path=_PATH,
            base_url=None,
            url_variables=None,
            request=None,
            request_body_required=True,
            request_has_path_params=False,
            request_has_query_params=False,
            user_agent_header="user-agent",
            accept_header_value="text/event-stream" if body.get("stream") else "application/json",
            security=client.sdk_configuration.security,
            get_serialized_body=lambda: self._sdk.body(media_type="application/json", content=content),
        )
        timeout = self._sdk.http.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))
        request.extensions["timeout"] = timeout.as_dict()
        return request

    def _told(self, client: Any) -> Any:
        """What the package's hooks are told; versions differ in how much that is."""
        facts = {
            "config": client.sdk_configuration,
            "base_url": "",
            "operation_id": "chat_completion_v1_chat_completions_post",
            "oauth2_scopes": None,
            "security_source": client.sdk_configuration.security,
            "tags": ["chat"],
            "extensions": None,
        }
        wanted = inspect.signature(self._sdk.context).parameters
        return self._sdk.context(**{name: fact for name, fact in facts.items() if name in wanted})

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except (self._sdk.http.HTTPError, self._sdk.http.StreamError, ValueError, RecursionError) as error:
            raise remote_error(self._sdk, error, self.address) from error


def _refusal(response: Any, data: bytes) -> RemoteError:
    text = data.decode(errors="replace")
    try:
        body: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        body = text
    return error_from(response.status_code, body, response.headers)


# --- clients ------------------------------------------------------------------------------------------


class _Clients:
    """The user's own client: it serves both colours, and every event loop.

    Raises:
        ConfigError: It is another than we know.
    """

    def __init__(self, sdk: Sdk, client: Any) -> None:
        if not all(hasattr(client, name) for name in _INNER):
            raise ConfigError(
                f"{type(client).__name__} is not known here; pass a mistralai.client.Mistral, and for a newer version "
                "of the package look for a newer tenlines"
            )
        self.sdk, self.sync_client = sdk, client

    @property
    def address(self) -> str:
        """Where the requests go."""
        return str(self.sync_client.sdk_configuration.get_server_details()[0]).rstrip("/")

    async def async_client(self) -> Any:
        """The client for the running event loop."""
        return self.sync_client


class _OwnClients(_Clients):
    """Clients that are made here, over HTTP clients that are made here: one for each event loop, closed with it."""

    def __init__(self, sdk: Sdk, base_url: str | None, api_key: str | None) -> None:
        self.sdk, self._settings = sdk, {"api_key": api_key, "server_url": base_url}
        self._http = HttpClients(sdk.http, base_url)
        super().__init__(sdk, self._made(self._http.fresh()))

    def _made(self, http: Any) -> Any:
        return self.sdk.client(client=self._http.blocking, async_client=http, **self._settings)

    async def async_client(self) -> Any:
        """The client for the running event loop."""
        return await self._http.in_loop(self._made)


def _own_clients(sdk: Sdk, model: str, base_url: str | None, api_key: str | None) -> _OwnClients:
    if base_url is not None:
        # never send Mistral's key to another server; most local ones want none
        base_url, api_key = base_url.rstrip("/").removesuffix("/v1"), api_key or "none"
    api_key = api_key or os.environ.get(KEY)
    if not api_key:
        raise no_key(f"mistral:{model}", KEY)
    return _OwnClients(sdk, base_url, api_key)


# --- errors -------------------------------------------------------------------------------------------


def remote_error(sdk: Sdk, error: Exception, address: str) -> RemoteError:
    """The one place where an exception of the package or of its HTTP library becomes one of ours."""
    match error:
        case sdk.http.ConnectError() | sdk.http.ConnectTimeout():
            return ConnectionFailed(f"could not reach {address}: {error}")
        case sdk.http.TimeoutException():
            return ConnectionFailed(f"no answer from {address} in time")
        case sdk.http.HTTPError() | sdk.http.StreamError():
            return ConnectionFailed(f"the connection to {address} broke off: {error}")
    return MalformedReply(f"{address} sent what is not valid JSON or UTF-8: {error}", str(error))
