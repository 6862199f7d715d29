"""The one table of names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from tenlines.trace.changes import TABLE
from tenlines.trace.conventions import (
    CAPTURE,
    OPT_IN,
    Metric,
    ModelNames,
    Name,
    Spelling,
    model_names,
    spellings,
    vintage_of,
    wants_content,
)

RELEASED = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
MEASURED = {value for name, value in vars(gen_ai_metrics).items() if name.startswith("GEN_AI_")}


def test_the_released_names_are_those_of_the_official_package() -> None:
    mine = {name for name in spellings("released").values() if name.startswith("gen_ai.")}
    assert mine <= RELEASED
    assert {one.value.name.released for one in Metric} - {"", "tenlines.cost"} <= MEASURED


def test_what_the_conventions_have_no_name_for_says_whose_name_it_is() -> None:
    for name in Name:
        for spelled in name.value:
            assert re.match(r"(gen_ai|tenlines|server|error|http)\.|$", spelled), spelled


def test_every_name_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text()
    told, whole = set(), ""
    for name in re.findall(r"`([a-z_.]+)`", page):
        whole = whole if name.startswith(".") else name
        # `tenlines.left.steps`, `.tokens`: the second is short for what begins as the first
        told |= {name, whole.rpartition(".")[0] + name, whole.removesuffix(".input_tokens") + name}
    wanted = {spelled for name in (*Name, *Metric) for spelled in _spelled(name)} - {""}
    assert wanted - told == set()
    assert {row.mark for row in TABLE.values()} - told == {""}


def _spelled(name: Name | Metric) -> Spelling:
    return name.value if isinstance(name, Name) else name.value.name


def test_no_two_names_are_one() -> None:
    for vintage in ("released", "latest"):
        spelled = [text for name, text in spellings(vintage).items() if not name.name.startswith("AGENT_")]
        assert len(spelled) == len(set(spelled))
        metrics = [one.value.name.of(vintage) for one in Metric if one.value.name.of(vintage)]
        assert len(metrics) == len(set(metrics))


def test_the_buckets_are_those_of_the_conventions() -> None:
    assert Metric.TOKENS.value.buckets == (
        1,
        4,
        16,
        64,
        256,
        1024,
        4096,
        16384,
        65536,
        262144,
        1048576,
        4194304,
        16777216,
        67108864,
    )
    assert Metric.OPERATION.value.buckets[0] == 0.01
    assert Metric.OPERATION.value.buckets[-1] == pytest.approx(81.92)
    assert Metric.AGENT.value.buckets[-1] == pytest.approx(409.6)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("", "released"),
        ("http", "released"),
        ("gen_ai_latest_experimental", "latest"),
        ("http , gen_ai_latest_experimental", "latest"),
    ],
)
def test_which_names_the_variable_asks_for(said: str, wanted: str) -> None:
    assert vintage_of({OPT_IN: said}) == wanted
    assert vintage_of({}) == "released"


@pytest.mark.parametrize("said", ["true", "True", "1", "SPAN_ONLY", "span_and_event"])
def test_content_is_wanted(said: str) -> None:
    assert wants_content({CAPTURE: said})


@pytest.mark.parametrize("said", ["", "false", "NO_CONTENT", "EVENT_ONLY", "yes please"])
def test_content_is_not_wanted(said: str) -> None:
    assert not wants_content({CAPTURE: said})
    assert not wants_content({})


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("openai:gpt-5", ModelNames("openai", "gpt-5")),
        ("anthropic:claude-sonnet-5", ModelNames("anthropic", "claude-sonnet-5")),
        ("google:gemini-3", ModelNames("gcp.gemini", "gemini-3")),
        ("mistral:large", ModelNames("mistral_ai", "large")),
        ("bedrock:anthropic.claude-v2:1", ModelNames("aws.bedrock", "anthropic.claude-v2:1")),
        ("litellm:xai/grok-4", ModelNames("x_ai", "grok-4")),
        ("litellm:groq/a/b", ModelNames("groq", "a/b")),
        ("local", ModelNames("local", "local")),
        ("local:/models/some.gguf", ModelNames("local", "some.gguf")),
        ("ollama:qwen3", ModelNames("ollama", "qwen3")),
        ("http://127.0.0.1:8080/v1#qwen", ModelNames("openai", "qwen", "127.0.0.1", 8080)),
        ("https://me:secret@host.example/v1#m", ModelNames("openai", "m", "host.example", 443)),
        ("http://[::1]:11434/v1#m", ModelNames("openai", "m", "::1", 11434)),
        ("function:reply", ModelNames("function", "reply")),
        ("scripted", ModelNames("scripted", "scripted")),
        ("", ModelNames("", "")),
    ],
)
def test_models_in_the_words_of_the_conventions(name: str, wanted: ModelNames) -> None:
    assert model_names(name) == wanted
