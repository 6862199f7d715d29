"""Anthropic's models, over the official `anthropic` package: `Anthropic("claude-opus-5")`, with the extra
`tenlines[anthropic]`. Thinking goes back with its signatures, and whoever watches sees it.

What may go wrong with a request is listed at `tenlines.models.session.ModelClient`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError
from tenlines.models.session import TIMEOUT_S, ModelClient, checked_compact_at, no_key
from tenlines.models.stainless import Clients, OwnClients, StainlessTransport, anthropic_sdk
from tenlines.ports import Clock
from tenlines.wire.anthropic.format import FORMAT
from tenlines.wire.anthropic.requests import COMPACTION_BETA, LEAST_COMPACT_AT, needs_compaction_beta
from tenlines.wire.openai_chat.compatible import profile_for_address
from tenlines.wire.profile import Profile, Target

if TYPE_CHECKING:
    import anthropic

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Where the key is looked for."""


class Anthropic(ModelClient):
    """A model that speaks Anthropic Messages: of Anthropic itself, of a cloud, or of a compatible server.

    Args:
        model: Name of the model (`claude-...`).
        client: A ready client of the `anthropic` package to use instead (`anthropic.Anthropic`, or that of a cloud).
            With it alone, async runs call it in a thread.
        async_client: The same for asyncio. With it alone, plain runs use it in an event loop of their own.
        api_key: Key; None takes `ANTHROPIC_API_KEY` for Anthropic's own address, and none for any other.
        base_url: Address of the server, without `/v1`; None for Anthropic's own.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        effort: How much the model shall think (`low`, `medium`, `high`, ...); None leaves it to the model.
        temperature: Sampling temperature, from 0; None leaves it to the server. The newest models take none.
        compact_at: Input tokens, 50,000 or more, from which on the provider summarises by itself what stands before;
            None leaves it as it is. `docs/models.md` says when to use it.
        profile: What the server demands; None takes what is known of the model.
        name: How the model is called in the journal.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
        clock: Tells how far the deadline is.

    Raises:
        MissingExtra: The `anthropic` package is not installed.
        ConfigError: There is no key, or the model does not compact by itself.
    """

    def __init__(
        self,
        model: str,
        *,
        client: anthropic.Anthropic | None = None,
        async_client: anthropic.AsyncAnthropic | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        effort: str | None = None,
        temperature: float | None = None,
        compact_at: int | None = None,
        profile: Profile | None = None,
        name: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        clients = _clients(model, client, async_client, base_url, api_key)
        host = urlsplit(clients.address).netloc
        name = name or (f"anthropic:{model}" if _is_genuine(host) else f"{clients.address}#{model}")
        profile = profile or _profile(host, model)
        target = Target(
            profile=profile,
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            effort=effort,
            compact_at=checked_compact_at(compact_at, profile, LEAST_COMPACT_AT),
        )
        transport = StainlessTransport(clients, "/v1/messages", _BetaHeader(clients))
        super().__init__(transport, FORMAT, target, name=name, timeout_s=timeout_s, clock=clock)


class _BetaHeader:
    """The header of a request that needs a beta. The betas that the client asks for by itself stay in it."""

    def __init__(self, clients: Clients) -> None:
        self._theirs = clients.header(_BETA)

    def __call__(self, body: JsonObject) -> dict[str, str]:
        if not needs_compaction_beta(body):
            return {}
        return {_BETA: f"{self._theirs},{COMPACTION_BETA}" if self._theirs else COMPACTION_BETA}


_BETA = "anthropic-beta"
_CLOUDS = (".amazonaws.com", ".googleapis.com", ".azure.com")


def _is_genuine(host: str) -> bool:
    """Whether Anthropic itself is there, or a cloud that carries its models: they share signatures."""
    return host == "api.anthropic.com" or host.endswith(_CLOUDS)


def _profile(host: str, model: str) -> Profile:
    """What is known of a server by its address. Thinking goes back to the server that made it, and to no other."""
    if _is_genuine(host):
        return FORMAT.profile({"model": model})
    server = profile_for_address(host, model).name
    found = FORMAT.profile({"model": model, "server": server})
    return msgspec.structs.replace(found, provider=host) if server == "compatible" else found


def _clients(
    model: str,
    client: anthropic.Anthropic | None,
    async_client: anthropic.AsyncAnthropic | None,
    base_url: str | None,
    api_key: str | None,
) -> Clients:
    sdk = anthropic_sdk()
    if client or async_client:
        return Clients(sdk, client, async_client)
    if base_url is not None:
        # never send Anthropic's key to another server; most local ones want none
        base_url, api_key = base_url.rstrip("/").removesuffix("/v1"), api_key or "none"
    if api_key is None and not any(os.environ.get(key) for key in KEYS):
        # the SDK would look through files of the user's home; a clear word is better
        raise no_key(f"anthropic:{model}", KEYS[0])
    try:
        return OwnClients(sdk, base_url, api_key)
    except sdk.error as error:
        raise ConfigError(f"{error} Set {KEYS[0]}, or pass api_key=") from error
