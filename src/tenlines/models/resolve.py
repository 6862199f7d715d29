"""From what a user writes down as a model to a `Model`."""

from __future__ import annotations

import difflib
import importlib
import os
from typing import Any, cast
from urllib.parse import urlsplit

from tenlines.errors import ConfigError
from tenlines.ports import Model

FORMS = {
    "openai": "openai:NAME (needs OPENAI_API_KEY)",
    "anthropic": "anthropic:NAME (needs ANTHROPIC_API_KEY)",
    "google": "google:NAME (needs GEMINI_API_KEY)",
    "mistral": "mistral:NAME (needs MISTRAL_API_KEY)",
    "bedrock": "bedrock:MODEL_ID (needs AWS credentials)",
    "litellm": "litellm:PROVIDER/NAME (whatever that library reaches)",
    "local": "local (a small model on this machine), or local:PATH (a GGUF file of your own)",
    "ollama": "ollama:NAME (a running Ollama)",
    "http": "http://host:port/v1#NAME (any OpenAI-compatible server; TENLINES_API_KEY is sent when set)",
    "text": "text+MODEL (any of these, with its tools as text: for models without tools of their own), or "
    "text-json+MODEL (the same with blocks of JSON)",
}
"""How a model may be written, by its first word."""

PROVIDERS = {
    "anthropic": ("tenlines.models.anthropic", "Anthropic"),
    "google": ("tenlines.models.google", "Google"),
    "gemini": ("tenlines.models.google", "Google"),
    "mistral": ("tenlines.models.mistral", "Mistral"),
    "bedrock": ("tenlines.models.bedrock", "Bedrock"),
    "litellm": ("tenlines.models.litellm", "LiteLLM"),
}
"""First word of a model -> where its class is. Imported when it is asked for, as each needs an SDK."""

CLIENTS = {
    "openai": ("tenlines.models.openai_compatible", "OpenAICompatible"),
    "anthropic": PROVIDERS["anthropic"],
    "google": PROVIDERS["google"],
    "mistralai": PROVIDERS["mistral"],
    "botocore": PROVIDERS["bedrock"],
}
"""Package of an SDK's client -> our class that takes it."""

API_KEY_VARIABLE = "TENLINES_API_KEY"
"""Holds the key for servers that are named by address; OpenAI's own key is never sent to them."""


def resolve(spec: Any) -> Model:
    """The model that `spec` stands for.

    Args:
        spec: `openai:NAME`, `anthropic:NAME`, `google:NAME`, `mistral:NAME`, `bedrock:MODEL_ID`,
            `litellm:PROVIDER/NAME`, `local`, `local:PATH`, `local:small`, `ollama:NAME`,
            `http(s)://host[:port]/v1#NAME`, `text+` and one of these; a function of the messages; a list of scripted
            replies; or anything with `name` and `session`.

    Raises:
        ConfigError: It stands for none; the message lists the forms.
        MissingExtra: What it needs is not installed.
    """
    if isinstance(spec, str):
        return _from_text(spec.strip())
    package = type(spec).__module__.split(".")[0]
    if package in CLIENTS:
        module, made = CLIENTS[package]
        raise ConfigError(
            f"{type(spec).__name__} is a client, not a model: it does not say which model to ask. "
            f"Write {made}('NAME', client=...) (from {module})."
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
    form, plus, inner = spec.partition("+")
    if plus and form.lower() in ("text", "text-json"):
        from tenlines.models.text_protocol import TextProtocol

        return TextProtocol(inner, "react" if form.lower() == "text" else "json")
    kind, colon, rest = spec.partition(":")
    match kind.lower():
        case "http" | "https" if rest.startswith("//"):
            return _server(spec)
        case "openai" if rest:
            return _openai(rest)
        case known if rest and known in PROVIDERS:
            return _provider(known, rest)
        case "ollama" if rest:
            return _ollama(rest)
        case "local" if rest or not colon:
            from tenlines.models.local import LocalModel

            return LocalModel(rest or None)
        case _:
            raise ConfigError(_unknown(spec))


_MAKERS = {
    "openai": ("gpt", "o1", "o3", "o4", "chatgpt"),
    "anthropic": ("claude",),
    "google": ("gemini",),
    "mistral": ("mistral", "magistral", "codestral", "devstral", "ministral"),
}


_IN_PROGRAMS = {
    "flow": "a workflow: its path is in a program. Go on with it there: flow.resume_sync(RUN).",
    "function": "a function of a program. Go on with the run there: agent.resume_sync(RUN).",
}
"""What stands for a model in the journal and can only be had where it was made."""


def _unknown(spec: str) -> str:
    if not spec:
        return f"the model's name is empty. {_forms()}"
    kind = spec.partition(":")[0].lower()
    if kind in _IN_PROGRAMS and ":" in spec:
        return f"{spec!r} is {_IN_PROGRAMS[kind]}"
    if kind in FORMS:
        return f"{spec!r} is incomplete: write {FORMS[kind]}."
    for maker, beginnings in _MAKERS.items():
        if ":" not in spec and kind.startswith(beginnings):
            return f"{spec!r} is not a model. Did you mean '{maker}:{spec}'? {_forms()}"
    close = difflib.get_close_matches(kind, FORMS, n=1, cutoff=0.6)
    if close:
        return f"{spec!r} is not a model. Did you mean {FORMS[close[0]]}? {_forms()}"
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


def _provider(kind: str, name: str) -> Model:
    module, made = PROVIDERS[kind]
    model: Model = getattr(importlib.import_module(module), made)(name)
    return model


def _ollama(name: str) -> Model:
    from tenlines.models.discover import ollama_address
    from tenlines.models.openai_compatible import OpenAICompatible
    from tenlines.wire.openai_chat.compatible import profile as profile_of

    profile = profile_of({"server": "ollama", "model": name})
    return OpenAICompatible(
        name, f"{ollama_address()}/v1", api_key="ollama", api="chat", profile=profile, name=f"ollama:{name}"
    )


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
    return OpenAICompatible(model, base_url, api_key=key, api="chat", name=f"{base_url}#{model}")


def _only_model(base_url: str, key: str | None) -> str:
    from tenlines.models.discover import model_names

    names = model_names(base_url, key)
    if names is None:
        raise ConfigError(f"{base_url} did not say which models it has; is it running? Name one: {base_url}#NAME")
    if len(names) != 1:
        listed = ", ".join(names[:20]) or "none"
        raise ConfigError(f"{base_url} has {len(names)} models ({listed}); name one: {base_url}#NAME")
    return names[0]
