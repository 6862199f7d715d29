"""Models of AWS Bedrock over the official `boto3` package, with its Converse operations, which every model there
shares: `Bedrock("eu.anthropic.claude-opus-5-20260301-v1:0")`, with the extra `tenlines[bedrock]`. Credentials and
region are looked for as `boto3` does it.

The package has blocking calls alone, so runs under asyncio call it in a thread: one that is cancelled goes on at once,
and its thread ends at the next piece of the reply, or after `timeout_s`.

What may go wrong with a request is listed at `tenlines.models.session.ModelClient`.
"""

from __future__ import annotations

import copy
import importlib
import math
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import (
    AuthRejected,
    ConfigError,
    ConnectionFailed,
    MalformedReply,
    MissingExtra,
    ProviderError,
    RemoteError,
)
from tenlines.models.connections import is_loopback
from tenlines.models.session import CONNECT_S, TIMEOUT_S, Heard, ModelClient
from tenlines.ports import Clock
from tenlines.wire.bedrock.binary import from_sdk, to_sdk
from tenlines.wire.bedrock.format import FORMAT
from tenlines.wire.errors import error_from
from tenlines.wire.profile import Profile, Target

_SERVICE = "bedrock-runtime"
_MOST_CLIENTS = 4
"""How many clients with a shorter patience are kept."""


class Bedrock(ModelClient):
    """A model of AWS Bedrock.

    Args:
        model: Id of the model, of an inference profile, or the ARN of one.
        client: A ready `boto3.client("bedrock-runtime")` to use instead. Its own timeouts hold; its retries do not,
            since a retry is an event of the run, but for the calls that are made here alone.
        region: Region of AWS; None takes the one of the environment or of the user's settings.
        base_url: Address of the service; None for that of the region.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        effort: How much the model shall think (`low`, `medium`, `high`, ...); None leaves it to the model.
        temperature: Sampling temperature, from 0; None leaves it to the service.
        profile: What the model demands; None takes what is known of its family. Needed for the ARN of an application's
            own inference profile, which does not say what model is behind it.
        name: How the model is called in the journal.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `boto3` package is not installed.
        ConfigError: No region is set.
    """

    def __init__(
        self,
        model: str,
        *,
        client: Any = None,
        region: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        effort: str | None = None,
        temperature: float | None = None,
        profile: Profile | None = None,
        name: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        sdk = aws_sdk()
        clients = _Clients(client) if client is not None else _OwnClients(sdk, model, (region, base_url), timeout_s)
        name = name or (f"bedrock:{model}" if not is_loopback(clients.address) else f"{clients.address}#{model}")
        target = Target(
            profile=profile or FORMAT.profile({"model": model}),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            effort=effort,
        )
        super().__init__(BedrockTransport(sdk, clients), FORMAT, target, name=name, timeout_s=timeout_s, clock=clock)


# --- the SDK ------------------------------------------------------------------------------------------


class Sdk(NamedTuple):
    """What is used of the packages."""

    module: Any
    config: Any
    """Class of the settings of a client."""
    errors: Any
    parser_error: type[Exception]
    """A stream that is none."""
    parse_error: type[Exception]
    """A response that is none."""
    http_error: type[Exception]
    """Base of what the HTTP library below raises in the middle of a stream."""


def aws_sdk() -> Sdk:
    """The `boto3` package, and what it stands on.

    Raises:
        MissingExtra: It is not installed.
    """
    try:  # by name: the packages bring no types
        return Sdk(
            importlib.import_module("boto3"),
            importlib.import_module("botocore.config").Config,
            importlib.import_module("botocore.exceptions"),
            importlib.import_module("botocore.eventstream").ParserError,
            importlib.import_module("botocore.parsers").ResponseParserError,
            importlib.import_module("urllib3.exceptions").HTTPError,
        )
    except ImportError as error:
        raise MissingExtra("this model", "bedrock") from error


# --- the transport ------------------------------------------------------------------------------------


class BedrockTransport:
    """Calls the two operations (`tenlines.models.session.Transport`). Bytes become base64 text here, and back."""

    has_sync = True
    has_async = False

    def __init__(self, sdk: Sdk, clients: _Clients) -> None:
        self._sdk, self._clients = sdk, clients

    @property
    def address(self) -> str:
        """Where the requests go."""
        return self._clients.address

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Ask, and wait for the whole response."""
        with self._mapped():
            data: JsonValue = from_sdk(self._clients.client(timeout_s).converse(**to_sdk(body)))
            return data

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        """Ask for a stream, and yield what comes."""
        with self._mapped():
            response = self._clients.client(timeout_s).converse_stream(**to_sdk(body))
            with closing(response["stream"]) as events:
                for event in events:
                    yield from_sdk(event)

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Never called: there are no asyncio calls."""
        raise NotImplementedError

    def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        """Never called: there are no asyncio calls."""
        raise NotImplementedError

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        sdk = self._sdk
        theirs = (
            sdk.errors.ClientError,
            sdk.errors.BotoCoreError,
            sdk.parser_error,
            sdk.parse_error,
            sdk.http_error,
            ValueError,
            RecursionError,
            OSError,
        )
        try:
            yield
        except theirs as error:
            raise remote_error(sdk, error, self.address) from error


# --- clients ------------------------------------------------------------------------------------------


class _Clients:
    """The user's own client."""

    def __init__(self, client: Any) -> None:
        self._client = _without_retries(client)

    @property
    def address(self) -> str:
        """Where the requests go."""
        meta = getattr(self._client, "meta", None)
        return str(getattr(meta, "endpoint_url", "") or "").rstrip("/") or "AWS Bedrock"

    def client(self, timeout_s: float) -> Any:
        """The client for a request that may take so long."""
        return self._client


def _without_retries(client: Any) -> Any:
    """A twin of a client that asks once; the client itself stays as it is. What is none of botocore's goes as it is."""
    endpoint: Any = getattr(client, "__dict__", {}).get("_endpoint")
    emitter = getattr(endpoint, "__dict__", {}).get("_event_emitter")
    if emitter is None:
        return client
    quiet = copy.copy(emitter)
    quiet.unregister(f"needs-retry.{_SERVICE}", unique_id=f"retry-config-{_SERVICE}")
    once = copy.copy(endpoint)
    once._event_emitter = quiet
    twin = object.__new__(type(client))
    twin.__dict__.update(client.__dict__, _endpoint=once)
    return twin


class _OwnClients(_Clients):
    """Clients that are made here. How long one waits is fixed when it is made, so there are others for requests that
    have less time.

    Raises:
        ConfigError: No region is set.
    """

    def __init__(self, sdk: Sdk, model: str, where: tuple[str | None, str | None], timeout_s: float) -> None:
        self._sdk, self._timeout_s, self._lock = sdk, timeout_s, threading.Lock()
        self._region, self._base_url = where
        self._hasty: dict[int, Any] = {}
        try:
            self._client = self._made(timeout_s)
        except sdk.errors.NoRegionError as error:
            raise ConfigError(
                f"bedrock:{model} needs a region: set AWS_DEFAULT_REGION, or pass region= or client=. Without AWS, use "
                "local (a small model on this machine)."
            ) from error
        except ValueError as error:
            raise ConfigError(f"bedrock:{model}: {error}") from error

    def client(self, timeout_s: float) -> Any:
        """The client for a request that may take so long."""
        if timeout_s >= self._timeout_s:
            return self._client
        seconds = math.ceil(timeout_s)
        with self._lock:
            if seconds not in self._hasty:
                if len(self._hasty) >= _MOST_CLIENTS:
                    self._hasty.pop(next(iter(self._hasty)))
                self._hasty[seconds] = self._made(seconds)
            return self._hasty[seconds]

    def _made(self, timeout_s: float) -> Any:
        settings: dict[str, Any] = {
            "retries": {"total_max_attempts": 1, "mode": "standard"},
            "read_timeout": timeout_s,
            "connect_timeout": min(timeout_s, CONNECT_S),
        }
        if is_loopback(self._base_url or ""):
            settings["proxies"] = {}  # a proxy from the environment must not stand between us and this machine
        config = self._sdk.config(**settings)
        # a session of its own: the default one is not safe to use from several threads
        session = self._sdk.module.session.Session()
        return session.client(_SERVICE, region_name=self._region, endpoint_url=self._base_url, config=config)


# --- errors -------------------------------------------------------------------------------------------


def remote_error(sdk: Sdk, error: Exception, address: str) -> RemoteError:
    """The one place where an exception of these packages becomes one of ours."""
    kinds = sdk.errors
    match error:
        case kinds.ClientError():
            known = error.response.get("ResponseMetadata") or {}
            is_in_stream = isinstance(error, kinds.EventStreamError)
            status = None if is_in_stream else known.get("HTTPStatusCode")
            return error_from(status, {"Error": error.response.get("Error")}, known.get("HTTPHeaders") or {})
        case kinds.ParamValidationError():
            return error_from(400, {"Error": {"Code": "ValidationException", "Message": str(error)}}, {})
        case kinds.NoCredentialsError() | kinds.PartialCredentialsError() | kinds.CredentialRetrievalError():
            return AuthRejected(f"{address}: {error}")
        case kinds.UnauthorizedSSOTokenError() | kinds.SSOError() | kinds.TokenRetrievalError():
            return AuthRejected(f"{address}: {error}")
        case kinds.EndpointConnectionError() | kinds.ConnectTimeoutError() | kinds.ProxyConnectionError():
            return ConnectionFailed(f"could not reach {address}: {error}")
        case kinds.ReadTimeoutError():
            return ConnectionFailed(f"no answer from {address} in time")
        case kinds.HTTPClientError() | OSError():
            return ConnectionFailed(f"the connection to {address} broke off: {error}")
        case _ if isinstance(error, sdk.http_error):
            in_time = "Timeout" in type(error).__name__
            words = (
                f"no answer from {address} in time" if in_time else f"the connection to {address} broke off: {error}"
            )
            return ConnectionFailed(words)
        case _ if isinstance(error, (sdk.parser_error, sdk.parse_error, ValueError, RecursionError)):
            return MalformedReply(f"{address} sent what is not valid JSON or no stream of events: {error}", str(error))
    return ProviderError(f"{address}: {error}", is_retryable=False)
