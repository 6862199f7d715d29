"""Who speaks Responses, and what each of them demands.

Traits of the profiles of this format, beside the ids of the rules that the inspector looks for (`OAI-R-8`):

- `encrypted`: reasoning goes back only encrypted, and has to be asked for so.
- `compacts`: the server summarises a conversation by itself when it is asked to.
- `limit.silent`: a reply that was cut at the limit of output tokens is called completed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenlines.wire.json_values import string
from tenlines.wire.profile import Profile, Situation, family

AS_OF = "2026-11-30"

LEAST_COMPACT_AT = 1_000
"""Fewest tokens at which such a server can be told to (`compact_threshold` in OpenAI's description of the API)."""

_FAULTS: dict[Situation, str] = {
    "role.unknown": "OAI-R-1",
    "args.type": "OAI-R-2",
    "id.length": "OAI-R-3",
    "pair.missing": "OAI-R-4",
    "pair.orphan": "OAI-R-5",
    "pair.stranger": "OAI-R-5",
    "id.missing": "OAI-R-5",
    "id.repeated": "OAI-R-7",
    "pair.repeated": "OAI-R-7",
    "result.empty": "OAI-R-13",
    "name.pattern": "OAI-R-17",
    "name.length": "OAI-R-17",
    "reasoning.foreign": "OAI-R-11",
    "reasoning.edited": "OAI-R-11",
}
_EVERYWHERE = frozenset({"OAI-R-12", "OAI-R-13", "OAI-R-16"})

OPENAI = Profile(
    name="openai_responses",
    format="openai_responses",
    provider="openai",
    as_of=AS_OF,
    sources="types of the official SDK, quoted refusals",
    faults=_FAULTS,
    unique_ids="history",
    id_max=64,
    results="anywhere",
    traits=_EVERYWHERE
    | {"answer.beside", "encrypted", "compacts", *(f"OAI-R-{number}" for number in (7, 8, 9, 10, 11, 15))},
    carries=frozenset({"images", "files", "result_images", "result_files", "reasoning"}),
)

DEEPSEEK = msgspec.structs.replace(
    OPENAI,
    name="openai_responses:deepseek",
    provider="deepseek",
    sources="quoted refusals",
    faults={**_FAULTS, "pair.gap": "OAI-R-6"},
    results="run",
    traits=_EVERYWHERE | {"DSK-4"},
)

STRICT = msgspec.structs.replace(
    OPENAI,
    name="openai_responses:vllm",
    provider="vllm",
    sources="quoted refusals",
    faults={**_FAULTS, "args.json": "OAI-R-18"},
    traits=_EVERYWHERE,
)
"""Servers that turn the items into chat messages and fill a template with them."""

LLAMA_CPP = msgspec.structs.replace(
    STRICT,
    name="openai_responses:llama.cpp",
    provider="llama.cpp",
    sources="tried",
    traits=_EVERYWHERE | {"limit.silent"},
    carries=frozenset({"images", "result_images", "reasoning"}),
)

_SERVERS = {
    "openai": OPENAI,
    "azure": OPENAI,
    "deepseek": DEEPSEEK,
    "vllm": STRICT,
    "sglang": msgspec.structs.replace(STRICT, name="openai_responses:sglang", provider="sglang"),
    "llama.cpp": LLAMA_CPP,
    "llamacpp": LLAMA_CPP,
    "local": LLAMA_CPP,
}


def profile(context: Mapping[str, str | bool]) -> Profile:
    """The profile of a server; of DeepSeek where only its model is known; else OpenAI's own."""
    model = string(context.get("model"))
    server = context.get("server")
    found = _SERVERS.get(server.lower()) if isinstance(server, str) else None
    if found is None:
        found = DEEPSEEK if not server and family(model).startswith("deepseek") else OPENAI
    return msgspec.structs.replace(found, model=model)
