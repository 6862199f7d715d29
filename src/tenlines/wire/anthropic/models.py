"""What is known of each Claude model, as data: gathered on 2026-11-30 from the provider's pages and its SDK 2.14.

A model that is not in the table and has an old name is taken for an old one; any other is taken for the newest, since
new models refuse more than they did before.
"""

from __future__ import annotations

import re

AS_OF = "2026-11-30"

TRAITS: dict[str, str] = {
    "marks": "prompt-cache marks are wanted",
    "signed": "it is Anthropic's own: thinking is signed, and marks, servers' tools and budgets are looked at",
    "prefill": "a last assistant message is taken as the beginning of the reply",
    "system-inside": "system messages may stand inside the conversation, at certain places",
    "adaptive": "thinking is asked for as `adaptive`",
    "manual": "thinking is asked for as `enabled`, with a budget of tokens",
    "off": "thinking can be switched off with `disabled`",
    "thinks": "it thinks unless it is told not to",
    "no-adaptive": "`adaptive` is refused",
    "no-manual": "`enabled` is refused",
    "no-disabled": "`disabled` is refused",
    "no-disabled-high": "`disabled` is refused together with the efforts `xhigh` and `max`",
    "no-sampling": "`temperature`, `top_p` and `top_k` are refused",
    "no-forcing": "a tool choice that forces a call is refused, thinking or not",
    "effort": "`output_config.effort` is taken",
    "effort-max": "the effort `max` is taken",
    "effort-xhigh": "the effort `xhigh` is taken",
    "bound": "a thinking block is bound to everything that stood before it",
    "thinking-back": "each assistant message with calls must carry its thinking",
    "empty_final": "a last assistant message may have nothing in it",
    "answer.beside": "`output_config.format` holds replies in words to a schema, also beside tools",
    "compacts": "it summarises a conversation by itself when it is asked to (`compact-2026-01-12`)",
    "compaction-signed": "a signed compaction block stands in the place of what it summarises",
}
"""The traits that profiles of this format may have, and what each says."""

_BASE = frozenset({"marks", "signed"})
_OLD = _BASE | {"prefill", "empty_final", "manual", "off", "no-adaptive"}
_4_6 = _BASE | {"adaptive", "off", "effort", "effort-max", "compacts", "answer.beside"}
_4_7 = _4_6 | {"no-manual", "no-sampling", "effort-xhigh"}
_SONNET_5 = _4_7 | {"thinks"}
_INSIDE = _4_7 | {"system-inside"}
_OPUS_5 = _INSIDE | {"thinks", "no-disabled-high"}
_ALWAYS = (_INSIDE | {"thinks", "no-disabled"}) - {"off"}
_BOUND = (_INSIDE | {"thinks", "bound"}) - {"off"}
_NEWEST = _ALWAYS | {"bound", "no-forcing"}

_MODELS: dict[str, frozenset[str]] = {
    "claude-opus-4-5": _OLD | {"effort"},
    "claude-sonnet-4-6": _4_6,
    "claude-opus-4-6": _4_6,
    "claude-opus-4-7": _4_7,
    "claude-opus-4-8": _INSIDE,
    "claude-sonnet-5": _SONNET_5,
    "claude-opus-5": _OPUS_5,
    "claude-fable-5": _ALWAYS,
    "claude-mythos-5": _ALWAYS,
    "claude-mythos-preview": (_4_6 | {"thinks", "no-disabled"}) - {"off"},
    "claude-sonnet-5-5": _BOUND,
    "claude-haiku-5-5": _BOUND,
    "claude-opus-5-5": _NEWEST,
    "claude-fable-5-1": _NEWEST,
    "claude-mythos-5-1": _NEWEST,
    "claude-fable-5-2": _NEWEST,
    "claude-mythos-5-2": _NEWEST,
}

_NAME = re.compile(r"claude[a-z0-9.-]*")
_EDITION = re.compile(r"[-.](20\d{6}|v\d|latest|\d{3,}).*$")
_OLD_NAME = re.compile(r"claude-(instant|[123](?!\d)|(opus|sonnet|haiku)-[34](?!\d))")

DEFAULT_MAX_TOKENS = 16_384
"""Output limit where neither the run nor the target sets one: the format demands a number. Every model since Claude 3.7
takes this one, and a reply of that length still comes within the ten minutes after which connections are cut."""
_SMALL_MAX_TOKENS = 4_096
_SMALL = re.compile(r"claude-(instant|[12](?!\d)|3-(opus|sonnet|haiku|5))")


def traits_of(model: str) -> frozenset[str]:
    """What is known of a model by its name, whoever serves it; the bare minimum for "" and for other makers' models."""
    name = plain_name(model)
    if not name:
        return _BASE
    known = _MODELS.get(name)
    if known is not None:
        return known
    return _OLD if _OLD_NAME.match(name) else _NEWEST


def plain_name(model: str) -> str:
    """`claude-opus-4-5` of `us.anthropic.claude-opus-4-5-20251101-v1:0`; "" when it is no Claude."""
    found = _NAME.search(model.lower())
    return _EDITION.sub("", found[0]).replace(".", "-") if found else ""


def default_max_tokens(model: str) -> int:
    """The output limit to send for a model where nobody set one."""
    return _SMALL_MAX_TOKENS if _SMALL.match(plain_name(model)) else DEFAULT_MAX_TOKENS
