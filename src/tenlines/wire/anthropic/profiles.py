"""Whom requests of this format go to: Anthropic and its models, and the servers of others that speak it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenlines.wire.anthropic.blocks import PROVIDER
from tenlines.wire.anthropic.models import AS_OF, traits_of
from tenlines.wire.json_values import string
from tenlines.wire.profile import Profile, Situation

_FAULTS: dict[Situation, str] = {
    "role.unknown": "ANT-1",
    "role.system": "ANT-1",
    "role.first": "ANT-2",
    "role.last": "ANT-4",
    "text.empty": "ANT-7",
    "text.blank": "ANT-8",
    "message.empty": "ANT-9",
    "message.none": "ANT-9",
    "args.type": "ANT-10",
    "args.json": "ANT-10",
    "id.missing": "ANT-11",
    "id.pattern": "ANT-11",
    "id.repeated": "ANT-12",
    "pair.missing": "ANT-13",
    "pair.gap": "ANT-13",
    "pair.orphan": "ANT-14",
    "pair.stranger": "ANT-14",
    "pair.order": "ANT-15",
    "pair.repeated": "ANT-16",
    "role.call": "ANT-17",
    "role.result": "ANT-17",
    "pair.split": "ANT-18",
    "tools.absent": "ANT-19",
    "name.pattern": "ANT-20",
    "name.length": "ANT-20",
    "reasoning.edited": "ANT-22",
    "reasoning.foreign": "ANT-24",
}

_BASE = Profile(
    name="anthropic",
    format="anthropic",
    provider=PROVIDER,
    as_of=AS_OF,
    sources="the provider's documents and SDK 2.14, errors that people quoted",
    faults=_FAULTS,
    unique_ids="history",
    id_pattern=r"[a-zA-Z0-9_-]+",
    results="next",
    results_in="user",
    arguments="object",
    name_pattern=r"[a-zA-Z0-9_-]+",
    name_max=64,
    system="aside",
    first=("user",),
    last=("user",),
    merges=True,
    carries=frozenset({"errors", "images", "files", "result_images", "result_files", "reasoning"}),
)

_LLAMA_CPP = msgspec.structs.replace(
    _BASE,
    name="anthropic:llama.cpp",
    provider="llama.cpp",
    sources="source and behaviour of llama.cpp's server, build 11549",
    faults={
        situation: rule
        for situation, rule in _FAULTS.items()
        if situation in ("role.unknown", "role.system", "message.empty", "message.none", "args.type", "args.json")
    },
    last=(),
)
"""It turns the messages into Chat Completions, and those into the model's own template: it checks no pairs."""

_DEEPSEEK = msgspec.structs.replace(
    _BASE,
    name="anthropic:deepseek",
    provider="deepseek",
    sources="DeepSeek's documents of its compatible endpoint, errors that people quoted",
    faults={situation: rule for situation, rule in _FAULTS.items() if not situation.startswith("reasoning")},
    traits=frozenset({"thinking-back", "manual", "off", "thinks", "effort", "effort-max", "no-forcing"}),
)
"""It thinks by default, forces no call then, and wants the thinking of each message with calls back."""

_SERVERS = {"llama.cpp": _LLAMA_CPP, "llamacpp": _LLAMA_CPP, "deepseek": _DEEPSEEK}


def profile(context: Mapping[str, str | bool] | None = None) -> Profile:
    """The profile for what is known of the target; without anything, the conservative one.

    Bedrock and Vertex carry the same format for the same models, so a `server` of that name changes nothing.
    """
    known = context or {}
    model = _word(known, "model") or _word(known, "model_family")
    server = _SERVERS.get(_word(known, "server").lower())
    if server is not None:
        return msgspec.structs.replace(server, model=model)
    beta = _word(known, "beta")
    traits = traits_of(model) | ({"compaction-signed"} if "compact-2026-09-04" in beta else frozenset())
    faults = dict(_FAULTS)
    last = _BASE.last
    if "prefill" in traits:
        last = ("user", "assistant")
    if "bound" in traits:
        faults["reasoning.prefix"] = "ANT-25"
    if "system-inside" in traits:
        faults["role.system"] = "ANT-6"
        last = ("user", "system")
    return msgspec.structs.replace(
        _BASE,
        name=f"anthropic:{model}" if model else "anthropic",
        model=model,
        faults=faults,
        system="outside" if "system-inside" in traits else "aside",
        last=last,
        traits=frozenset(traits),
    )


def _word(context: Mapping[str, str | bool], key: str) -> str:
    value = context.get(key)
    return string(value)
