"""From what a person writes to the format and the profile that it means: `anthropic:claude-opus-5`, `vllm`."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from tenlines.core.transcript import JsonValue
from tenlines.errors import ConfigError
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.json_values import string
from tenlines.wire.openai_chat.compatible import SERVERS
from tenlines.wire.profile import Profile

ALIASES = {
    "openai": "openai_chat",
    "chat": "openai_chat",
    "responses": "openai_responses",
    "claude": "anthropic",
    "google": "gemini",
    "vertex": "gemini",
    "converse": "bedrock",
}
"""Other words for formats."""


class Goal(NamedTuple):
    """Whom something is for."""

    format: Format
    profile: Profile
    model: str
    """The model that was named, or ""."""


def goal(text: str) -> Goal:
    """What a name stands for.

    Args:
        text: A format (`anthropic`, `openai_responses`), a server that speaks Chat Completions (`vllm`, `deepseek`),
            either of them with a model behind a colon (`bedrock:amazon.nova-pro`), or for Mistral a tokenizer
            (`mistral:v13`). Where a server has a format of its own too, `ollama/v1` and `gemini/v1` are the side of
            it that speaks Chat Completions.

    Raises:
        ConfigError: It stands for nothing; the message lists what there is.
    """
    head, _, rest = text.strip().partition(":")
    name = format_name(head)
    if name in FORMATS:
        format = FORMATS[name]
        is_tokenizer = name == "mistral" and re.fullmatch(r"v\d+", rest)
        context = {"tokenizer" if is_tokenizer else "model": rest} if rest else {}
        return Goal(format, format.profile(context), "" if is_tokenizer else rest)
    name = name.removesuffix("/v1")
    if name in SERVERS:
        format = FORMATS["openai_chat"]
        return Goal(format, format.profile({"server": name, "model": rest}), rest)
    raise ConfigError(_unknown(text, head))


def format_name(text: str) -> str:
    """The name of a format or a server, where people have other words for it."""
    name = text.strip().lower()
    return ALIASES.get(name, name)


def own_goal(value: JsonValue, name: str) -> Goal:
    """Whom a transcript in the format of that name was written for, as far as it says so itself."""
    model = value.get("model", value.get("modelId")) if isinstance(value, dict) else None
    return _of_model(name, string(model))


def as_history(goal: Goal) -> Goal:
    """The same for messages without a request around them: they may end with a reply, for what comes next is still to
    be said, and nothing is known of the tools."""
    known = goal.profile
    faults = {what: rule for what, rule in known.faults.items() if what != "tools.absent"}
    return goal._replace(profile=replace(known, faults=faults, traits=known.traits | {"history"}))


@lru_cache(maxsize=64)  # a log names few models, many times
def _of_model(name: str, model: str) -> Goal:
    format = FORMATS[name]
    return Goal(format, format.profile({"model": model} if model else None), model)


def _unknown(text: str, head: str) -> str:
    names = [*FORMATS, *ALIASES, *SERVERS]
    close = difflib.get_close_matches(head.lower(), names, n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]}?" if close else ""
    return (
        f"{text!r} is no format and no server that is known here.{hint} "
        f"Formats: {', '.join(FORMATS)}. Servers: {', '.join(SERVERS)}. "
        "A model may follow: anthropic:claude-opus-5, vllm:NAME, mistral:v13."
    )
