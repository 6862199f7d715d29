"""Models behind OpenAI's APIs: OpenAI itself (`OpenAICompatible("gpt-5.6")`), and every server that speaks Chat
Completions as it does (`OpenAICompatible("qwen3", "http://127.0.0.1:8080/v1")`), with the extra `tenlines[openai]`.

What may go wrong with a request is listed at `tenlines.models.session.ModelClient`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.errors import ConfigError
from tenlines.models.session import TIMEOUT_S, ModelClient, Session, checked_compact_at
from tenlines.models.stainless import Clients, OwnClients, StainlessTransport, openai_sdk
from tenlines.ports import Clock
from tenlines.wire import constrained
from tenlines.wire.format import Format, StreamDecoder
from tenlines.wire.openai_chat.compatible import profile_for_address
from tenlines.wire.openai_chat.format import FORMAT as CHAT
from tenlines.wire.openai_responses.format import FORMAT as RESPONSES
from tenlines.wire.openai_responses.profiles import LEAST_COMPACT_AT
from tenlines.wire.profile import Profile, Target

if TYPE_CHECKING:
    import openai

WireProtocol: TypeAlias = Literal["native", "constrained"]
"""`native`: the server's own tool calling. `constrained`: replies held to a JSON schema, for small models."""

Api: TypeAlias = Literal["auto", "chat", "responses"]
"""`chat`: Chat Completions. `responses`: the Responses API. `auto`: Responses for those of OpenAI's own models that
think (GPT-5 and later, the o-series): only there their reasoning goes on over the steps of a run, and the newest take
tools only there. Chat Completions for everything else."""

_PATHS = {"chat": "/chat/completions", "responses": "/responses"}
_THINKING = re.compile(r"(gpt-([5-9]|[1-9]\d)|o\d|codex)(?![a-z])")


class OpenAICompatible(ModelClient):
    """A model of OpenAI or of a compatible server.

    Args:
        model: Name of the model, as the server knows it.
        base_url: Address of the API (`http://127.0.0.1:8080/v1`); None for OpenAI's own.
        api_key: Key; None takes `OPENAI_API_KEY` for OpenAI's own address, and none for any other.
        api: Which of the two APIs: see `Api`.
        client: A ready `openai.OpenAI` to use instead. With it alone, async runs call it in a thread.
        async_client: A ready `openai.AsyncOpenAI`. With it alone, plain runs use it in an event loop of their own.
        protocol: `native` tool calls, or `constrained` replies for small local models (over Chat Completions).
        profile: What the server demands; None takes what is known of the address and the model.
        name: How the model is called in the journal.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        temperature: Sampling temperature, from 0; None leaves it to the server.
        reasoning_effort: As OpenAI's parameter (`low`, `medium`, `high`, ...); None leaves it to the server.
        compact_at: Tokens from which on the server summarises by itself what stands before (Responses, of OpenAI's
            own models); None leaves it as it is. `docs/models.md` says when to use it.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `openai` package is not installed.
        ConfigError: There is no key, an option is unknown, or the server has no such thing.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        api: Api = "auto",
        client: openai.OpenAI | None = None,
        async_client: openai.AsyncOpenAI | None = None,
        protocol: WireProtocol = "native",
        profile: Profile | None = None,
        name: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        compact_at: int | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        _must_be("protocol", protocol, ("native", "constrained"))
        _must_be("api", api, ("auto", "chat", "responses"))
        clients = _clients(client, async_client, base_url, api_key)
        host = urlsplit(clients.address).netloc
        self.api = _api(api, protocol, host, model)
        format: Format = RESPONSES if self.api == "responses" else CHAT
        profile = profile or _profile(format, host, model)
        target = Target(
            profile=profile,
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            effort=reasoning_effort,
            compact_at=checked_compact_at(compact_at, profile, LEAST_COMPACT_AT),
        )
        name = name or (f"openai:{model}" if _is_openai(host) else f"{clients.address}#{model}")
        self.protocol, transport = protocol, StainlessTransport(clients, _PATHS[self.api])
        super().__init__(transport, format, target, name=name, timeout_s=timeout_s, clock=clock)

    def session(self) -> Session:
        """One run's conversation: what was encoded is kept."""
        if self.protocol == "native":
            return super().session()
        talk = _Constrained(self.target)
        return Session(self._transport, talk, self.format, clock=self._clock, timeout_s=self.timeout_s)


def _must_be(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{option} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _is_openai(host: str) -> bool:
    return host == "api.openai.com"


def _api(api: Api, protocol: WireProtocol, host: str, model: str) -> Literal["chat", "responses"]:
    if protocol == "constrained":
        _must_be("api", api, ("auto", "chat"))
        return "chat"
    if api != "auto":
        return api
    return "responses" if _is_openai(host) and _THINKING.match(model) else "chat"


def _profile(format: Format, host: str, model: str) -> Profile:
    """What is known of a server by its address. Reasoning goes back to the server that made it, and to no other."""
    known = profile_for_address(host, model)
    if format is CHAT:
        return known
    if known.name != "compatible":
        return format.profile({"server": known.name, "model": model})
    return msgspec.structs.replace(format.profile({"server": "vllm", "model": model}), provider=host)


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


class _Constrained:
    """Replies held to a JSON schema. Without tools there is nothing to choose between, and a reply is plain text."""

    def __init__(self, target: Target) -> None:
        self._target, self._plain = target, CHAT.talk(target)
        self._writer, self._is_held = constrained.Encoder(), False

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request."""
        messages = self._writer.extend(effect.messages, effect.tools, effect.new_from)
        response_format = self._writer.response_format(effect.tools, effect.tool_choice)
        self._is_held = response_format is not None
        limit = effect.max_output_tokens
        return constrained.encode_request(
            self._target, messages, response_format, max_output_tokens=limit, stream=stream
        )

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        reply = self._plain.decode(data)
        return constrained.read_reply(reply) if self._is_held else reply

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        if self._is_held:
            return constrained.StreamDecoder(self._target.profile.provider, self._target.model)
        return self._plain.decoder()
