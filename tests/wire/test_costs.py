"""What well-cached runs cost: from the counts as each provider sends them to dollars, against sums done by hand.

Each case is a run of six steps. The sums are in micro-dollars, so that a list price (dollars per million tokens) stands
in them as it is: fresh input, input written to the cache, input read from it, output.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from tenlines.core.limits import Account, Price, Reservation
from tenlines.core.transcript import Usage
from tenlines.prices import price_of
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Target

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


class Step(NamedTuple):
    """What a provider said of one step."""

    said: dict[str, Any]
    micro_dollars: float
    """By hand."""


class Run(NamedTuple):
    """Six steps with one model."""

    model: str
    """Its name in the journal."""
    format: str
    answer: Callable[[dict[str, Any]], dict[str, Any]]
    """A whole response with these counts."""
    steps: tuple[Step, ...]
    micro_dollars: float
    """By hand, of all steps."""
    tokens: int
    """All input and output."""
    server: str = ""
    at: float = NOON


def usages(run: Run) -> list[Usage]:
    """The counts of all steps in the normal form."""
    format, model = FORMATS[run.format], run.model.replace("#", ":").rsplit(":", 1)[-1]
    context: dict[str, str | bool] = {"model": model} | ({"server": run.server} if run.server else {})
    talk = format.talk(Target(profile=format.profile(context), model=model))
    replies = [talk.decode(run.answer(step.said)) for step in run.steps]
    assert not any(reply.remarks for reply in replies)
    return [reply.usage or Usage() for reply in replies]


# --- the shapes of responses ----------------------------------------------------------------------------


def chat(usage: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "18 C"}
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def responses(usage: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "18 C", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [message], "usage": usage}


def anthropic(usage: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "text", "text": "18 C"}]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn", "usage": usage}


def gemini(usage: dict[str, Any]) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": "18 C"}]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}


def bedrock(usage: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"text": "18 C"}]}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}


# --- what each provider counts --------------------------------------------------------------------------


def openai_chat(prompt: int, cached: int, completion: int, reasoning: int) -> dict[str, Any]:
    """Cached tokens are part of the prompt, reasoning is part of the completion."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    }


def openai_responses(tokens: int, cached: int, written: int, output: int) -> dict[str, Any]:
    """Tokens that were read from the cache and such as were written to it are both part of the input."""
    return {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + output,
    }


def anthropic_messages(fresh: int, written: int, read: int, output: int) -> dict[str, Any]:
    """The three kinds of input stand beside each other."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }


def google(prompt: int, cached: int, candidates: int, thoughts: int) -> dict[str, Any]:
    """Cached tokens are part of the prompt, thoughts stand beside the visible output."""
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": cached,
        "candidatesTokenCount": candidates,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": prompt + candidates + thoughts,
    }


def deepseek(hit: int, missed: int, completion: int) -> dict[str, Any]:
    """The prompt, and its two parts."""
    return {
        "prompt_tokens": hit + missed,
        "prompt_cache_hit_tokens": hit,
        "prompt_cache_miss_tokens": missed,
        "completion_tokens": completion,
        "total_tokens": hit + missed + completion,
    }


def converse(fresh: int, written: int, read: int, output: int) -> dict[str, Any]:
    """The three kinds of input stand beside each other."""
    return {
        "inputTokens": fresh,
        "cacheWriteInputTokens": written,
        "cacheReadInputTokens": read,
        "outputTokens": output,
        "totalTokens": fresh + written + read + output,
    }


def xai(prompt: int, cached: int, completion: int, reasoning: int) -> dict[str, Any]:
    """As OpenAI's, but reasoning stands beside the completion."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion + reasoning,
        "prompt_tokens_details": {"cached_tokens": cached, "text_tokens": prompt},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def mistral(prompt: int, cached: int, completion: int) -> dict[str, Any]:
    """Cached tokens are part of the prompt."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


RUNS = {
    # GPT-5: input 1.25, cached 0.125, output 10
    "OpenAI Chat": Run(
        "openai:gpt-5",
        "openai_chat",
        chat,
        (
            Step(openai_chat(2_000, 0, 100, 64), 2_000 * 1.25 + 100 * 10),
            Step(openai_chat(2_600, 1_920, 100, 0), 680 * 1.25 + 1_920 * 0.125 + 100 * 10),
            Step(openai_chat(3_200, 2_560, 100, 0), 640 * 1.25 + 2_560 * 0.125 + 100 * 10),
            Step(openai_chat(3_800, 3_072, 100, 64), 728 * 1.25 + 3_072 * 0.125 + 100 * 10),
            Step(openai_chat(4_400, 3_712, 100, 0), 688 * 1.25 + 3_712 * 0.125 + 100 * 10),
            Step(openai_chat(5_000, 4_352, 100, 0), 648 * 1.25 + 4_352 * 0.125 + 100 * 10),
        ),
        micro_dollars=14_682,
        tokens=21_600,
    ),
    # GPT-5.6 Sol: input 4, written to the cache 5, cached 0.4, output 20
    "OpenAI Responses": Run(
        "openai:gpt-5.6",
        "openai_responses",
        responses,
        (
            Step(openai_responses(2_000, 0, 1_920, 50), 80 * 4 + 1_920 * 5 + 50 * 20),
            Step(openai_responses(2_600, 1_920, 640, 50), 40 * 4 + 640 * 5 + 1_920 * 0.4 + 50 * 20),
            Step(openai_responses(3_200, 2_560, 512, 50), 128 * 4 + 512 * 5 + 2_560 * 0.4 + 50 * 20),
            Step(openai_responses(3_800, 3_072, 640, 50), 88 * 4 + 640 * 5 + 3_072 * 0.4 + 50 * 20),
            Step(openai_responses(4_400, 3_712, 640, 50), 48 * 4 + 640 * 5 + 3_712 * 0.4 + 50 * 20),
            Step(openai_responses(5_000, 4_352, 640, 50), 8 * 4 + 640 * 5 + 4_352 * 0.4 + 50 * 20),
        ),
        micro_dollars=38_774.4,
        tokens=21_300,
    ),
    # Claude Sonnet 5: input 2, written to the cache 2.50, cached 0.20, output 10
    "Anthropic": Run(
        "anthropic:claude-sonnet-5",
        "anthropic",
        anthropic,
        (
            Step(anthropic_messages(7, 12_000, 0, 500), 7 * 2 + 12_000 * 2.5 + 500 * 10),
            Step(anthropic_messages(8, 900, 12_000, 120), 8 * 2 + 900 * 2.5 + 12_000 * 0.2 + 120 * 10),
            Step(anthropic_messages(8, 700, 12_900, 80), 8 * 2 + 700 * 2.5 + 12_900 * 0.2 + 80 * 10),
            Step(anthropic_messages(8, 650, 13_600, 95), 8 * 2 + 650 * 2.5 + 13_600 * 0.2 + 95 * 10),
            Step(anthropic_messages(8, 810, 14_250, 60), 8 * 2 + 810 * 2.5 + 14_250 * 0.2 + 60 * 10),
            Step(anthropic_messages(8, 400, 15_060, 300), 8 * 2 + 400 * 2.5 + 15_060 * 0.2 + 300 * 10),
        ),
        micro_dollars=63_856,
        tokens=84_472,
    ),
    # Gemini 2.5 Flash: input 0.30, cached 0.03, output 2.50 (thoughts included)
    "Gemini": Run(
        "google:gemini-2.5-flash",
        "gemini",
        gemini,
        (
            Step(google(3_000, 0, 60, 140), 3_000 * 0.3 + 200 * 2.5),
            Step(google(3_500, 2_900, 60, 40), 600 * 0.3 + 2_900 * 0.03 + 100 * 2.5),
            Step(google(4_000, 3_400, 60, 40), 600 * 0.3 + 3_400 * 0.03 + 100 * 2.5),
            Step(google(4_500, 3_900, 60, 0), 600 * 0.3 + 3_900 * 0.03 + 60 * 2.5),
            Step(google(5_000, 4_400, 60, 40), 600 * 0.3 + 4_400 * 0.03 + 100 * 2.5),
            Step(google(5_500, 4_900, 60, 240), 600 * 0.3 + 4_900 * 0.03 + 300 * 2.5),
        ),
        micro_dollars=4_535,
        tokens=26_360,
    ),
    # DeepSeek V4 Pro at two in the morning (UTC), one of its dear hours: input 1.32, cached 0.044, output 3.96
    "DeepSeek": Run(
        "https://api.deepseek.com/v1#deepseek-v4-pro",
        "openai_chat",
        chat,
        (
            Step(deepseek(0, 2_000, 100), 2_000 * 1.32 + 100 * 3.96),
            Step(deepseek(1_984, 600, 100), 600 * 1.32 + 1_984 * 0.044 + 100 * 3.96),
            Step(deepseek(2_560, 600, 100), 600 * 1.32 + 2_560 * 0.044 + 100 * 3.96),
            Step(deepseek(3_136, 600, 100), 600 * 1.32 + 3_136 * 0.044 + 100 * 3.96),
            Step(deepseek(3_712, 600, 100), 600 * 1.32 + 3_712 * 0.044 + 100 * 3.96),
            Step(deepseek(4_288, 600, 100), 600 * 1.32 + 4_288 * 0.044 + 100 * 3.96),
        ),
        micro_dollars=9_665.92,
        tokens=21_280,
        server="deepseek",
        at=datetime(2026, 11, 30, 2, tzinfo=UTC).timestamp(),
    ),
    # Claude Haiku 4.5 in a region of Europe: input 1.10, written to the cache 1.375, cached 0.11, output 5.50
    "Bedrock": Run(
        "bedrock:eu.anthropic.claude-haiku-4-5-20251001-v1:0",
        "bedrock",
        bedrock,
        (
            Step(converse(10, 8_000, 0, 100), 10 * 1.1 + 8_000 * 1.375 + 100 * 5.5),
            Step(converse(10, 400, 8_000, 100), 10 * 1.1 + 400 * 1.375 + 8_000 * 0.11 + 100 * 5.5),
            Step(converse(10, 400, 8_400, 100), 10 * 1.1 + 400 * 1.375 + 8_400 * 0.11 + 100 * 5.5),
            Step(converse(10, 400, 8_800, 100), 10 * 1.1 + 400 * 1.375 + 8_800 * 0.11 + 100 * 5.5),
            Step(converse(10, 400, 9_200, 100), 10 * 1.1 + 400 * 1.375 + 9_200 * 0.11 + 100 * 5.5),
            Step(converse(10, 400, 9_600, 100), 10 * 1.1 + 400 * 1.375 + 9_600 * 0.11 + 100 * 5.5),
        ),
        micro_dollars=21_956,
        tokens=54_660,
    ),
    # Grok 4: input 3, cached 0.75, output 15 (reasoning included)
    "xAI": Run(
        "https://api.x.ai/v1#grok-4-0709",
        "openai_chat",
        chat,
        (
            Step(xai(2_000, 4, 20, 180), 1_996 * 3 + 4 * 0.75 + 200 * 15),
            Step(xai(2_500, 1_984, 20, 80), 516 * 3 + 1_984 * 0.75 + 100 * 15),
            Step(xai(3_000, 2_496, 20, 80), 504 * 3 + 2_496 * 0.75 + 100 * 15),
            Step(xai(3_500, 2_992, 20, 80), 508 * 3 + 2_992 * 0.75 + 100 * 15),
            Step(xai(4_000, 3_488, 20, 0), 512 * 3 + 3_488 * 0.75 + 20 * 15),
            Step(xai(4_500, 4_000, 20, 280), 500 * 3 + 4_000 * 0.75 + 300 * 15),
        ),
        micro_dollars=37_131,
        tokens=20_320,
        server="xai",
    ),
    # Mistral Large 3: input 0.50, cached 0.05, output 1.50
    "Mistral": Run(
        "mistral:mistral-large-2512",
        "mistral",
        chat,
        (
            Step(mistral(2_000, 0, 100), 2_000 * 0.5 + 100 * 1.5),
            Step(mistral(2_600, 1_984, 100), 616 * 0.5 + 1_984 * 0.05 + 100 * 1.5),
            Step(mistral(3_200, 2_560, 100), 640 * 0.5 + 2_560 * 0.05 + 100 * 1.5),
            Step(mistral(3_800, 3_136, 100), 664 * 0.5 + 3_136 * 0.05 + 100 * 1.5),
            Step(mistral(4_400, 3_712, 100), 688 * 0.5 + 3_712 * 0.05 + 100 * 1.5),
            Step(mistral(5_000, 4_352, 100), 648 * 0.5 + 4_352 * 0.05 + 100 * 1.5),
        ),
        micro_dollars=4_315.2,
        tokens=21_600,
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_each_step_and_the_run_cost_what_the_sum_by_hand_says(name: str) -> None:
    run = RUNS[name]
    price, account = price_of(run.model, run.at), Account()
    assert price is not None
    for step, usage in zip(run.steps, usages(run), strict=True):
        dollars = price.of(usage)
        assert dollars * 1e6 == pytest.approx(step.micro_dollars, rel=1e-9)
        account.settle(usage, dollars, Reservation())
    assert (account.steps, account.unpriced, account.unmetered) == (6, 0, 0)
    assert account.dollars * 1e6 == pytest.approx(run.micro_dollars, rel=1e-9)
    assert account.tokens == run.tokens


@pytest.mark.parametrize("name", RUNS)
def test_the_cache_is_what_makes_a_run_cheap(name: str) -> None:
    """The same run, had nothing been cached, costs more: a decoder that loses what was read would go unnoticed above
    where a provider's cached tokens cost as much as others."""
    run = RUNS[name]
    price = price_of(run.model, run.at)
    assert price is not None
    assert price.cache_read is not None
    assert price.cache_read < price.input
    uncached = sum(price.of(Usage(usage.input, usage.output)) for usage in usages(run))
    assert uncached * 1e6 > run.micro_dollars * 1.2


# --- two sums that everybody can do in the head -------------------------------------------------------------


def test_cached_tokens_that_are_part_of_the_input_are_charged_once() -> None:
    talk = FORMATS["openai_chat"].talk(Target(profile=FORMATS["openai_chat"].profile({}), model="m"))
    usage = talk.decode(chat(openai_chat(1_000, 800, 100, 0))).usage
    assert usage == Usage(1_000, 100, 800, None, 0)
    account, price = Account(), Price(input=1.0, output=2.0, cache_read=0.1)
    account.settle(usage, price.of(usage), Reservation())
    assert account.dollars * 1e6 == pytest.approx(480)  # 200 * 1.0 + 800 * 0.1 + 100 * 2.0
    assert account.tokens == 1_100


def test_cached_tokens_that_stand_beside_the_input_are_charged_too() -> None:
    talk = FORMATS["anthropic"].talk(Target(profile=FORMATS["anthropic"].profile({}), model="m"))
    usage = talk.decode(anthropic(anthropic_messages(7, 12_000, 0, 500))).usage
    assert usage == Usage(12_007, 500, 0, 12_000)
    price = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
    assert price.of(usage) * 1e6 == pytest.approx(52_521)  # 7 * 3.0 + 12,000 * 3.75 + 500 * 15.0
