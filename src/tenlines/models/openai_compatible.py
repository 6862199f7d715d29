"""Models behind the OpenAI Chat Completions API: OpenAI itself and every server that speaks like it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.errors import ConfigError
from tenlines.models.session import TIMEOUT_S, Session
from tenlines.models.stainless import Clients, OwnClients, StainlessTransport, openai_sdk
from tenlines.ports import Clock
from tenlines.wire import constrained
from tenlines.wire.format import StreamDecoder
from tenlines.wire.openai_chat import decoding, encoding
from tenlines.wire.openai_chat import stream as streaming
from tenlines.wire.openai_chat.format import FORMAT

if TYPE_CHECKING:
    import openai

WireProtocol: TypeAlias = Literal["native", "constrained"]
"""`native`: the server's own tool calling. `constrained`: replies held to a JSON schema, for small models."""

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
        self._transport = StainlessTransport(_clients(client, async_client, base_url, api_key), _PATH)
        address = self._transport.address
        host = urlsplit(address).netloc
        self.provider = "openai" if host == "api.openai.com" else host
        self.name = name or (f"openai:{model}" if self.provider == "openai" else f"{address}#{model}")
        self.protocol, self.timeout_s = protocol, timeout_s
        self._clock = clock
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

    def session(self) -> Session:
        """One run's conversation: what was encoded is kept."""
        talk = _Constrained(self.options) if self.protocol == "constrained" else _Native(self.options)
        return Session(self._transport, talk, FORMAT, clock=self._clock, timeout_s=self.timeout_s)


def _clients(
    client: openai.OpenAI | None, async_client: openai.AsyncOpenAI | None, base_url: str | None, api_key: str | None
) -> Clients:
    sdk = openai_sdk()
    if client or async_client:
        return Clients(sdk, client, async_client)
    if api_key is None and base_url is not None:
        api_key = "none"  # never send OpenAI's key to another server; most local ones want none
    try:
        return OwnClients(sdk, base_url, api_key)
    except sdk.error as error:
        raise ConfigError(f"{error} Set OPENAI_API_KEY, or pass api_key=") from error


# --- the two protocols ------------------------------------------------------------------------------


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

    def decoder(self) -> StreamDecoder:
        return streaming.StreamDecoder(self._options.provider, self._options.model)


class _Constrained(_Native):
    """Without tools there is nothing to choose between, and a reply is plain text."""

    def __init__(self, options: encoding.Options) -> None:
        super().__init__(options)
        self._writer, self._is_held = constrained.Encoder(), False

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        messages = self._writer.extend(effect.messages, effect.tools, effect.new_from)
        response_format = self._writer.response_format(effect.tools, effect.tool_choice)
        self._is_held = response_format is not None
        limit = effect.max_output_tokens
        return constrained.encode_request(
            self._options, messages, response_format, max_output_tokens=limit, stream=stream
        )

    def decode(self, data: JsonValue) -> Reply:
        reply = super().decode(data)
        return constrained.read_reply(reply) if self._is_held else reply

    def decoder(self) -> StreamDecoder:
        if not self._is_held:
            return super().decoder()
        return constrained.StreamDecoder(self._options.provider, self._options.model)
