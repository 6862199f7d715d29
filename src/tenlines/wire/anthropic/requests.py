"""The parameters of a request beside its messages: output limit, thinking, the choice of a tool."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.answers import held, native
from tenlines.wire.anthropic.blocks import REASONING, first_said, is_compaction
from tenlines.wire.anthropic.models import default_max_tokens
from tenlines.wire.json_values import items, obj
from tenlines.wire.profile import Profile, Target

_OFF = ("none", "off", "disabled")
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 12_288, "xhigh": 24_576, "max": 32_768}
"""Thinking tokens for an effort, for models that take a budget and no word."""
_LEAST_BUDGET = 1_024

COMPACTION_BETA = "compact-2026-01-12"
"""The beta in which the provider summarises a conversation by itself, as its header names it."""
LEAST_COMPACT_AT = 50_000
"""Fewest input tokens at which it can be told to (the provider's page on compaction at a threshold)."""


def max_tokens(target: Target, limit: int | None) -> int:
    """The output limit of a request: the run's own, the target's, or one that the model surely takes."""
    wanted = target.limit(limit)
    return default_max_tokens(target.model) if wanted is None else wanted


def thinking(target: Target, limit: int) -> JsonObject:
    """The parameters that say how much to think; none where nobody said anything.

    The newer models take a word and decide by themselves (`adaptive`), the older ones a budget of tokens (`enabled`),
    which has to leave room for the reply.
    """
    effort, profile = target.effort, target.profile
    if effort is None:
        return {}
    if effort in _OFF:
        return _without_thinking(profile)
    result: JsonObject = {}
    if profile.has("adaptive"):
        result["thinking"] = {"type": "adaptive"}
    elif profile.has("manual"):
        budget = min(_BUDGETS.get(effort, _BUDGETS["high"]), limit - max(_LEAST_BUDGET, limit // 4))
        if budget >= _LEAST_BUDGET:
            result["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if profile.has("effort"):
        result["output_config"] = {"effort": _word(effort, profile)}
    return result


def _without_thinking(profile: Profile) -> JsonObject:
    if not profile.has("thinks"):
        return {}
    if profile.has("off"):
        return {"thinking": {"type": "disabled"}}
    return {"output_config": {"effort": "low"}}  # it cannot be switched off, but it can be kept short


def _word(effort: str, profile: Profile) -> str:
    if effort == "minimal":
        return "low"
    if effort in ("xhigh", "max") and not profile.has(f"effort-{effort}"):
        return "high"
    return effort


def hold_to_schema(body: JsonObject, effect: CallModel, profile: Profile) -> None:
    """Have replies in words fit the schema of the answer, where there is one and it can be said in full."""
    answer = native(effect, profile).answer
    schema = None if answer is None else held(answer.parameters, "anthropic_strict")
    if schema is not None:
        body["output_config"] = {**obj(body.get("output_config")), "format": {"type": "json_schema", "schema": schema}}


def is_manual(parameters: JsonObject) -> bool:
    """Whether thinking is asked for with a budget."""
    config = parameters.get("thinking")
    return isinstance(config, dict) and config.get("type") == "enabled"


def lacks_thinking(messages: list[JsonValue]) -> bool:
    """Whether the reply that is due goes on with a turn that did not begin with thinking: then the provider refuses
    to think in manual mode (ANT-23). A history from elsewhere has such turns."""
    if len(messages) < 2 or not _has_result(messages[-1]):
        return False
    turn = messages[-2]
    first = first_said(turn.get("content")) if isinstance(turn, dict) else None
    return not (isinstance(first, dict) and first.get("type") in REASONING)


def _has_result(message: JsonValue) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and first.get("type") == "tool_result"


def context_management(compact_at: int) -> JsonObject:
    """How the provider is told to summarise by itself. The reply goes on behind its summary."""
    trigger: JsonObject = {"type": "input_tokens", "value": compact_at}
    return {"edits": [{"type": "compact_20260112", "trigger": trigger}]}


def needs_compaction_beta(body: JsonObject) -> bool:
    """Whether a request asks for compaction, or carries a summary of an earlier one: both are in the beta alone."""
    messages = (message for message in items(body.get("messages")) if isinstance(message, dict))
    return "context_management" in body or any(
        is_compaction(block) for message in messages for block in items(message.get("content"))
    )


def tool_choice(wanted: str, wire_name: str, *, may_force: bool) -> JsonObject:
    """How the choice of a tool is written. Where a call may not be forced, the model is left to decide."""
    if wanted in ("auto", "none"):
        return {"type": wanted}
    if not may_force:
        return {"type": "auto"}
    return {"type": "any"} if wanted == "required" else {"type": "tool", "name": wire_name}
