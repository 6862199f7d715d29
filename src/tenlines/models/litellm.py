"""Any of the models that the `litellm` library reaches, with its names: `LiteLLM("groq/llama-4")`.

The library takes Chat Completions and translates. What it cannot carry (reasoning of some providers) is lost; where
there is a client of our own for a provider, that one is better. It needs the extra `tenlines[litellm]`.

What may go wrong with a request is listed at `tenlines.models.session.ModelClient`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, closing, contextmanager
from typing import Any

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import ConfigError, ConnectionFailed, MalformedReply, MissingExtra, RemoteError
from tenlines.models.session import TIMEOUT_S, Heard, ModelClient
from tenlines.ports import Clock
from tenlines.wire.errors import error_from
from tenlines.wire.openai_chat.format import FORMAT
from tenlines.wire.profile import Profile, Target

_LOCAL_MAP = "LITELLM_LOCAL_MODEL_COST_MAP"
"""The library's switch: without it, importing it asks a server for prices."""


class LiteLLM(ModelClient):
    """A model through the `litellm` library. Its import takes seconds, and is put off until the first request.

    Args:
        model: The library's name of the model, with its provider: `groq/llama-4`, `openrouter/...`.
        api_key: The key; None leaves it to the library, which looks for the provider's own variable.
        base_url: Address of the server, where the provider's own is not meant.
        profile: What the other side demands; None takes OpenAI's rules, which the library translates from.
        name: How the model is called in the journal.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        temperature: Sampling temperature, from 0; None leaves it to the server.
        reasoning_effort: As OpenAI's parameter (`low`, `medium`, `high`, ...); None leaves it to the server.
        timeout_s: Seconds after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `litellm` package is not installed.
        ConfigError: The name is empty.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        profile: Profile | None = None,
        name: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        _must_be_there()
        if not model.strip():
            raise ConfigError("the name of the model is empty: write it as litellm does, PROVIDER/MODEL")
        name = name or f"litellm:{model}"
        target = Target(
            profile=profile or _profile(model),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            effort=reasoning_effort,
        )
        transport = _Transport(name, {"api_key": api_key, "base_url": base_url})
        super().__init__(transport, FORMAT, target, name=name, timeout_s=timeout_s, clock=clock)


def _profile(model: str) -> Profile:
    """OpenAI's rules without its limits on parameters: the library knows which model takes which."""
    base = FORMAT.profile({})
    return msgspec.structs.replace(base, name="litellm", provider="litellm", model=model, traits=frozenset())


def _must_be_there() -> None:
    from importlib.util import find_spec

    if find_spec("litellm") is None:
        raise MissingExtra("this model", "litellm")


def _library() -> Any:
    os.environ.setdefault(_LOCAL_MAP, "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    litellm.suppress_debug_info = True  # else it prints to the screen at every error
    return litellm


class _Transport:
    has_sync = has_async = True

    def __init__(self, address: str, settings: dict[str, str | None]) -> None:
        self.address = address
        self._settings = {key: value for key, value in settings.items() if value is not None}

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Ask, and wait for the whole response."""
        with self._mapped():
            return _plain(_library().completion(**self._how(body, timeout_s)))

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """`send` for asyncio."""
        with self._mapped():
            return _plain(await _library().acompletion(**self._how(body, timeout_s)))

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        """Ask for a stream, and yield what comes."""
        with self._mapped(), closing(_library().completion(**self._how(body, timeout_s))) as stream:
            for chunk in stream:
                yield _chunk(chunk, stream)

    async def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        """`stream` for asyncio."""
        with self._mapped():
            async with aclosing(await _library().acompletion(**self._how(body, timeout_s))) as stream:
                async for chunk in stream:
                    yield _chunk(chunk, stream)

    def _how(self, body: JsonObject, timeout_s: float) -> dict[str, Any]:
        return {**body, **self._settings, "timeout": timeout_s, "num_retries": 0, "max_retries": 0}

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        import httpx
        import openai  # the library's exceptions are made of that package's

        try:
            yield
        except (openai.OpenAIError, httpx.HTTPError, ValueError) as error:
            raise _remote_error(error, self.address) from error


def _plain(response: Any) -> JsonValue:
    data: JsonValue = response.model_dump()
    return data


def _chunk(chunk: Any, stream: Any) -> JsonValue:
    """A chunk. The library ends every stream as if it were complete, also one that broke off: that is taken back."""
    data: JsonValue = chunk.model_dump()
    heard = getattr(stream, "received_finish_reason", ""), getattr(stream, "intermittent_finish_reason", None)
    choices = data.get("choices") if isinstance(data, dict) else None
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and heard == (None, None):
            choice["finish_reason"] = None
    return data


def _remote_error(error: Exception, address: str) -> RemoteError:
    """What an exception of the library stands for; often it is only a wrapper that says 500."""
    import httpx
    import openai

    status = getattr(error, "status_code", None)
    message = getattr(error, "message", None) or str(error)
    causes = tuple(_causes(error))
    if any(isinstance(cause, openai.APITimeoutError | httpx.TimeoutException) for cause in causes):
        return ConnectionFailed(f"no answer from {address} in time")
    if any(isinstance(cause, openai.APIConnectionError | httpx.TransportError) for cause in causes):
        return ConnectionFailed(f"the connection to {address} broke off: {message}")
    if any(isinstance(cause, openai.APIResponseValidationError | ValueError) for cause in causes):
        return MalformedReply(f"{address} sent what could not be read: {message}", message)
    return error_from(status if isinstance(status, int) else None, message, _headers(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that it was made of."""
    cause: BaseException | None = error
    for _ in range(8):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _headers(error: Exception) -> dict[str, str]:
    for holder in (error, getattr(error, "response", None)):
        for name in ("litellm_response_headers", "headers"):
            headers = getattr(holder, name, None)
            if headers:
                return {str(key).lower(): str(value) for key, value in dict(headers).items()}
    return {}
