"""The profiles of the servers that speak Chat Completions, as dated data. A new server is a new entry here.

What is not known of a server is taken from `compatible`, the conservative profile: what it warns of is accepted by
some server and refused by another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from tenlines.wire.openai_chat.compatible_rules import REJECTIONS, RULES
from tenlines.wire.openai_chat.rules import AS_OF, FAULTS, openai_profile
from tenlines.wire.profile import Profile, Situation, TurnRole

__all__ = ["REJECTIONS", "RULES", "profile", "profile_for_address"]

Context: TypeAlias = Mapping[str, str | bool]

# --- what many have in common -----------------------------------------------------------------------

_COMMON: dict[Situation, str] = {
    **{key: rule for key, rule in FAULTS.items() if key != "id.length"},
    "pair.missing": "CMP-2",
    "pair.gap": "CMP-2",
    "pair.orphan": "CMP-2",
    "pair.stranger": "CMP-2",
    "pair.repeated": "CMP-2",
    "id.repeated": "CMP-6",
    "tools.empty": "CMP-7",
    "media.result": "CMP-5",
}
_PARSED: dict[Situation, str] = {"args.json": "CMP-3"}
_TEMPLATE: dict[Situation, str] = {
    "role.system": "CMP-8",
    "role.follows": "CMP-8",
    "role.first": "CMP-8",
    "role.last": "CMP-8",
}
_WARNED: dict[Situation, str] = {
    "role.system": "GEN-1",
    "role.follows": "GEN-1",
    "role.first": "GEN-1",
    "role.last": "GEN-9",
    "id.pattern": "GEN-2",
    "tools.absent": "GEN-7",
    "text.empty": "GEN-8",
    "text.blank": "GEN-8",
}
_ALTERNATING: dict[TurnRole, tuple[TurnRole, ...]] = {
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user", "tool"),
}

_CHECKED = frozenset({"OAI-C-3", "OAI-C-4", "OAI-C-5", "OAI-C-6", "OAI-C-19"})
_LOCAL = frozenset({"content.blank", "turns.joined", "turns.continued"})
"""Behind a server on one's own machine there is a chat template, and many of them want the roles to alternate."""
_CAREFUL = _LOCAL | {"content.filled"}


class _Server(NamedTuple):
    """What sets a server apart."""

    sources: str
    traits: frozenset[str] = frozenset()
    faults: Mapping[Situation, str] = _PARSED
    shape: _Shape | None = None


class _Shape(NamedTuple):
    """Where roles may stand."""

    system: Literal["first", "anywhere"] = "anywhere"
    first: tuple[TurnRole, ...] = ()
    last: tuple[TurnRole, ...] = ()
    followers: Mapping[TurnRole, tuple[TurnRole, ...]] = {}
    merges: bool = False


_STRICT = _Shape("first", ("user",), ("user", "tool"), _ALTERNATING, merges=True)

# --- the servers ------------------------------------------------------------------------------------


def _vllm(context: Context) -> _Server:
    faults: Mapping[Situation, str] = {} if _is_newer_than(str(context.get("version", "")), (0, 25)) else _PARSED
    return _Server("source of vLLM's chat_utils; bug reports", _LOCAL | {"answer.alone"}, faults)


def _is_newer_than(version: str, last: tuple[int, int]) -> bool:
    """Whether a version, or a bound of versions (`<=0.25`, `>0.25`), lies behind another one."""
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None or version.lstrip().startswith("<"):
        return False
    numbers = (int(found[1]), int(found[2]))
    return numbers > last or (version.lstrip().startswith(">") and "=" not in version and numbers == last)


def _llama_cpp(context: Context) -> _Server:
    traits = _LOCAL | {"LCP-1", "LCP-2", "answer.alone"}
    if context.get("enable_thinking") is True or context.get("thinking") is True:
        traits |= {"thinks"}
    return _Server("source of llama.cpp's server and chat templates", traits, {**_PARSED, "message.empty": "LCP-1"})


def _deepseek(context: Context) -> _Server:
    sources = "DeepSeek's guides to thinking and to the cache; error texts that users quoted"
    model = _model(context)
    if re.search(r"(^|[^a-z])r1([^a-z0-9]|$)", model):
        return _Server(sources, frozenset({"content.blank", "reasoning.never", "DSK-2"}))
    if not _thinks(context, without=r"deepseek-chat|deepseek-coder|v[23](\.\d)?$"):
        return _Server(sources, frozenset({"content.blank"}))
    traits = {"content.blank", "reasoning.every", "choice.never_required", "choice.never_named", "DSK-1", "DSK-3"}
    return _Server(sources, frozenset(traits))


def _moonshot(context: Context) -> _Server:
    sources = "error texts that users quoted; the chat template of Kimi K2"
    traits = frozenset({"content.blank", "ids.native"})
    if not _thinks(context, without=r"moonshot-v1|kimi-k2-(\d|instruct|turbo)"):
        return _Server(sources, traits)
    return _Server(sources, traits | {"reasoning.calls", "choice.never_named", "KIM-1", "CMP-9"})


def _mimo(context: Context) -> _Server:
    traits = frozenset({"content.blank"})
    if _thinks(context, without=r"$^"):
        traits |= {"reasoning.calls", "KIM-1"}
    return _Server("error texts that users quoted", traits)


def _thinks(context: Context, without: str) -> bool:
    """Whether a model thinks: as said; else yes, but for the names of those that do not."""
    said = context.get("thinking", context.get("enable_thinking"))
    return said if isinstance(said, bool) else re.search(without, _model(context)) is None


def _model(context: Context) -> str:
    return str(context.get("model") or context.get("model_family") or "").rsplit("/", 1)[-1].lower()


def _fixed(server: _Server) -> Callable[[Context], _Server]:
    return lambda _: server


_REPORTS = "error texts that users quoted"
_AUDIT = "what others wrote about the provider"

SERVERS: Mapping[str, Callable[[Context], _Server]] = {
    "compatible": _fixed(_Server("what every format accepts", _CAREFUL | {"CMP-9"}, {**_PARSED, **_WARNED}, _STRICT)),
    "strict-template": _fixed(_Server("chat templates of open models", _CAREFUL, {**_PARSED, **_TEMPLATE}, _STRICT)),
    "vllm": _vllm,
    "sglang": _fixed(_Server("source of SGLang; bug reports", _LOCAL)),
    "llama.cpp": _llama_cpp,
    "ollama": _fixed(_Server("Ollama's guide to its compatible endpoint; bug reports", _LOCAL)),
    "deepseek": _deepseek,
    "moonshot": _moonshot,
    "mimo": _mimo,
    "minimax": _fixed(_Server(_REPORTS, frozenset({"content.blank"}))),
    "groq": _fixed(_Server("Groq's list of errors; error texts that users quoted")),
    "openrouter": _fixed(
        _Server(
            "OpenRouter's guide to reasoning; error texts that users quoted",
            frozenset({"content.filled"}),
            {**_PARSED, "tools.absent": "OPR-1"},
        )
    ),
    "xai": _fixed(_Server(_AUDIT)),
    "gemini": _fixed(_Server("Google's guide to its compatible endpoint", frozenset({"content.filled"}))),
    "mistral-backed": _fixed(
        _Server(
            "mistral-common's validator; error texts that users quoted",
            frozenset({"content.filled", "turns.continued", "user.after_results.never", "ids.nine"}),
            {**_PARSED, "role.follows": "CMP-5"},
            _Shape(followers={"tool": ("assistant", "tool")}),
        )
    ),
    "qwen": _fixed(_Server(_AUDIT, frozenset({"content.blank", "choice.never_required", "CMP-9"}))),
    "glm": _fixed(_Server(_AUDIT, frozenset({"content.blank", "choice.auto_only", "CMP-9"}))),
    "meta": _fixed(_Server(_AUDIT, frozenset({"choice.auto_only", "CMP-9"}))),
}

_ALIASES = {
    "llamacpp": "llama.cpp",
    "llama-server": "llama.cpp",
    "llama-cpp": "llama.cpp",
    "ollama-cloud": "ollama",
    "kimi": "moonshot",
    "moonshotai": "moonshot",
    "xiaomi": "mimo",
    "minimax-like": "minimax",
    "grok": "xai",
    "x-ai": "xai",
    "dashscope": "qwen",
    "zai": "glm",
    "zhipu": "glm",
    "scaleway": "mistral-backed",
    "llama-api": "meta",
}


def profile(context: Context) -> Profile:
    """The profile of a server; OpenAI's own when none is named, and the conservative one for a name nobody knows."""
    words = str(context.get("server") or "").lower().split()
    name = words[0].strip("():,") if words else ""
    if name in ("", "openai", "azure"):
        return openai_profile({**context, "server": name})
    name = _ALIASES.get(name, name)
    if name not in SERVERS:
        name = "compatible"
    server = SERVERS[name](context)
    shape = server.shape or _Shape()
    return Profile(
        name=name,
        format="openai_chat",
        provider=name,
        as_of=AS_OF,
        sources=server.sources,
        model=_model(context),
        faults={**_COMMON, **server.faults},
        id_pattern="[a-zA-Z0-9_-]{1,40}" if "id.pattern" in server.faults else "",
        system=shape.system,
        first=shape.first,
        last=shape.last,
        followers=dict(shape.followers),
        merges=shape.merges,
        traits=_CHECKED | server.traits,
        carries=frozenset({"images"} if "reasoning.never" in server.traits else {"images", "reasoning"}),
    )


# --- by address -------------------------------------------------------------------------------------

_HOSTS: tuple[tuple[str, str], ...] = (
    (r"api\.openai\.com", "openai"),
    (r"(openai|services\.ai|cognitiveservices)\.azure\.com", "azure"),
    (r"api\.deepseek\.com", "deepseek"),
    (r"api\.moonshot\.(ai|cn)|api\.kimi\.com", "moonshot"),
    (r"(api|token-plan[\w-]*)\.xiaomimimo\.com", "mimo"),
    (r"api\.minimaxi?\.(io|com|chat)", "minimax"),
    (r"api\.groq\.com", "groq"),
    (r"openrouter\.ai", "openrouter"),
    (r"api\.x\.ai", "xai"),
    (r"generativelanguage\.googleapis\.com", "gemini"),
    (r"dashscope[\w-]*\.aliyuncs\.com", "qwen"),
    (r"(open\.bigmodel\.cn|api\.z\.ai)", "glm"),
    (r"api\.llama\.com", "meta"),
    (r"api\.scaleway\.ai|api\.mistral\.ai", "mistral-backed"),
    (r"ollama\.com", "ollama"),
)


def profile_for_address(host: str, model: str) -> Profile:
    """The profile for a server at an address.

    Args:
        host: Its host, with or without a port. Nothing is known of a server on this machine.
        model: The model that is asked.
    """
    bare = host.rsplit("@", 1)[-1].lower().split(":")[0]
    server = next((name for pattern, name in _HOSTS if re.search(rf"(^|\.)({pattern})$", bare)), "compatible")
    found = profile({"server": server, "model": model})
    # what a server nobody knows has made goes back to that server alone
    return msgspec.structs.replace(found, provider=host) if server == "compatible" else found
