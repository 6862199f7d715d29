"""From what a user writes down as a model to a `Model`."""

from __future__ import annotations

import difflib
import os
from typing import Any, cast
from urllib.parse import urlsplit

from tenlines.errors import ConfigError
from tenlines.ports import Model

FORMS = {
    "openai": "openai:NAME (needs OPENAI_API_KEY)",
    "local": "local (a small model on this machine), or local:PATH (a GGUF file of your own)",
    "ollama": "ollama:NAME (a running Ollama)",
    "http": "http://host:port/v1#NAME (any OpenAI-compatible server; TENLINES_API_KEY is sent when set)",
}
"""How a model may be written, by its first word."""

API_KEY_VARIABLE = "TENLINES_API_KEY"
"""Holds the key for servers that are named by address; OpenAI's own key is never sent to them."""


def resolve(spec: Any) -> Model:
    """The model that `spec` stands for.

    Args:
        spec: `openai:NAME`, `local`, `local:PATH`, `local:small`, `ollama:NAME`, `http(s)://host[:port]/v1#NAME`;
            a function of the messages; a list of scripted replies; or anything with `name` and `session`.

    Raises:
        ConfigError: It stands for none; the message lists the forms.
        MissingExtra: What it needs is not installed.
    """
    if isinstance(spec, str):
        return _from_text(spec.strip())
    if type(spec).__module__.split(".")[0] in ("openai", "anthropic", "google"):
        raise ConfigError(
            f"{type(spec).__name__} is a client, not a model: it does not say which model to ask. "
            "Write OpenAICompatible('NAME', client=...) (from tenlines.models.openai_compatible) for an OpenAI client."
        )
    if isinstance(spec, type):
        raise ConfigError(f"{spec.__name__} is a class, not a model; make one: {spec.__name__}(...)")
    if hasattr(spec, "session") and hasattr(spec, "name"):
        return cast(Model, spec)  # the port, by its shape
    return _plain(spec)


def _plain(spec: Any) -> Model:
    from tenlines.models.plain import FunctionModel, ScriptedModel

    if callable(spec):
        return FunctionModel(spec)
    if isinstance(spec, list | tuple):
        return ScriptedModel(spec)
    raise ConfigError(f"{spec!r:.200} is not a model. {_forms()}")


def _forms() -> str:
    listed = "; ".join(FORMS.values())
    return f"A model is one of: {listed}; a function of the messages; a list of scripted replies."


def _from_text(spec: str) -> Model:
    kind, colon, rest = spec.partition(":")
    match kind.lower():
        case "http" | "https" if rest.startswith("//"):
            return _server(spec)
        case "openai" if rest:
            return _openai(rest)
        case "ollama" if rest:
            return _ollama(rest)
        case "local" if rest or not colon:
            from tenlines.models.local import LocalModel

            return LocalModel(rest or None)
        case "anthropic" | "google" | "gemini":
            raise ConfigError(
                f"{spec!r}: this provider's own format is not supported yet. Its OpenAI-compatible endpoint, or a "
                f"gateway in front of it, works as http(s)://host/v1#NAME. {_forms()}"
            )
        case _:
            raise ConfigError(_unknown(spec))


def _unknown(spec: str) -> str:
    if not spec:
        return f"the model's name is empty. {_forms()}"
    kind = spec.partition(":")[0].lower()
    if kind in FORMS:
        return f"{spec!r} is incomplete: write {FORMS[kind]}."
    close = difflib.get_close_matches(kind, FORMS, n=1, cutoff=0.6)
    if close:
        return f"{spec!r} is not a model. Did you mean {FORMS[close[0]]}? {_forms()}"
    if ":" not in spec and kind.startswith(("gpt", "o1", "o3", "o4", "chatgpt")):
        return f"{spec!r} is not a model. Did you mean 'openai:{spec}'? {_forms()}"
    if spec.endswith(".gguf"):
        return f"{spec!r} is not a model. Did you mean 'local:{spec}'? {_forms()}"
    return f"{spec!r} is not a model. {_forms()}"


def _openai(name: str) -> Model:
    from tenlines.models.openai_compatible import OpenAICompatible

    if not os.environ.get("OPENAI_API_KEY"):
        raise ConfigError(
            f"openai:{name} needs a key: set OPENAI_API_KEY. Without one, use local (a small model on this machine) "
            "or a server of your own: http://host:port/v1#NAME."
        )
    return OpenAICompatible(name, name=f"openai:{name}")


def _ollama(name: str) -> Model:
    from tenlines.models.discover import ollama_address
    from tenlines.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(name, f"{ollama_address()}/v1", api_key="ollama", name=f"ollama:{name}")


def _server(spec: str) -> Model:
    from tenlines.models.openai_compatible import OpenAICompatible

    url, _, name = spec.partition("#")
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        has_host = False
    if not has_host:
        raise ConfigError(f"{spec!r} is not an address; write {FORMS['http']}.")
    base_url = url.rstrip("/") if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/v1"
    key = os.environ.get(API_KEY_VARIABLE)
    model = name or _only_model(base_url, key)
    return OpenAICompatible(model, base_url, api_key=key, name=f"{base_url}#{model}")


def _only_model(base_url: str, key: str | None) -> str:
    from tenlines.models.discover import model_names

    names = model_names(base_url, key)
    if names is None:
        raise ConfigError(f"{base_url} did not say which models it has; is it running? Name one: {base_url}#NAME")
    if len(names) != 1:
        listed = ", ".join(names[:20]) or "none"
        raise ConfigError(f"{base_url} has {len(names)} models ({listed}); name one: {base_url}#NAME")
    return names[0]
