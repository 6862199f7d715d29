"""Counting tokens exactly: which tokenizer a model has, what it counts, and what a request of it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines import counting
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    Image,
    Json,
    JsonValue,
    Message,
    Note,
    Opaque,
    Result,
    System,
    Text,
    ToolCall,
    User,
    estimate_text,
    estimate_tokens,
)
from tenlines.counting import Tokenizer, count_request, first_count, tokenizer_for, vocabulary
from tenlines.models import weights

# --- which tokenizer --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-5", "o200k_base"),
        ("openai:gpt-5.1-codex", "o200k_base"),
        ("openai:gpt-4o-mini", "o200k_base"),
        ("openai:gpt-4.1", "o200k_base"),
        ("openai:o3", "o200k_base"),
        ("openai:o4-mini-2025-04-16", "o200k_base"),
        ("openai:ft:gpt-4o-2024-08-06:shop::abc", "o200k_base"),
        ("openai:gpt-4", "cl100k_base"),
        ("openai:gpt-4-turbo", "cl100k_base"),
        ("openai:gpt-3.5-turbo", "cl100k_base"),
        ("litellm:azure/gpt-4o", "o200k_base"),
        ("ollama:gpt-oss:20b", "o200k_harmony"),
        ("http://127.0.0.1:8080/v1#openai/gpt-oss-120b", "o200k_harmony"),
        ("local", "qwen3"),
        ("local:small", "qwen3"),
        ("local:/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "qwen3"),
        ("ollama:qwen3:8b", "qwen3"),
        ("https://host/v1#Qwen/Qwen3-30B-A3B", "qwen3"),
        ("ollama:llama3.1", "llama3"),
        ("http://host/v1#meta-llama/Llama-3.3-70B-Instruct", "llama3"),
    ],
)
def test_a_model_has_its_tokenizer_by_its_name_in_the_journal(model: str, name: str) -> None:
    assert vocabulary(model) == name


@pytest.mark.parametrize(
    "model",
    [
        "",
        "openai:",
        "openai:gpt-50",
        "openai:gpt-6",
        "openai:o1x",
        "anthropic:claude-sonnet-5",
        "google:gemini-3",
        "mistral:mistral-large-latest",
        "ollama:qwen3.5:9b",
        "http://host/v1#llama-30b",
        "http://host/v1",
        "function:o1",
        "gpt-5",
        "scripted",
        "local:/models/my.gguf",
    ],
)
def test_a_model_that_is_not_known_has_none(model: str) -> None:
    assert tokenizer_for(model) is None
    assert first_count(model, [System("x")], ()) is None


def test_the_local_models_are_of_the_family_that_their_tokenizer_is_of() -> None:
    assert {known.name[:7] for known in weights.KNOWN.values()} == {"qwen2.5"}
    assert {vocabulary("local" if name == "local" else f"local:{name}") for name in weights.KNOWN} == {"qwen3"}


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra `tokens` were not installed."""
    counting._load.cache_clear()
    monkeypatch.setitem(sys.modules, "quicktok", None)
    yield
    counting._load.cache_clear()


@pytest.mark.usefixtures("no_package")
def test_without_the_extra_no_model_has_one() -> None:
    assert vocabulary("openai:gpt-5") == "o200k_base"
    assert tokenizer_for("openai:gpt-5") is None
    assert first_count("openai:gpt-5", [System("x")], ()) is None


SILENT = """
import sys

def forbidden(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(event)

sys.addaudithook(forbidden)
import tenlines
import tenlines.counting
print(sorted({"quicktok", "numpy", "tiktoken", "tokenizers"} & set(sys.modules)))
print(tenlines.counting.first_count("openai:gpt-5", [], ()))
print("quicktok" in sys.modules, "numpy" in sys.modules)
"""


@pytest.mark.slow
def test_the_package_is_loaded_at_first_use_and_nothing_is_downloaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SILENT)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["[]", "(3, 'o200k_base')", "True False"]


# --- what it counts ---------------------------------------------------------------------------------


def known(model: str) -> Tokenizer:
    tokenizer = tokenizer_for(model)
    assert tokenizer is not None
    assert tokenizer.name == vocabulary(model)
    return tokenizer


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k", "qwen"),
    [
        ("", 0, 0, 0),
        ("antidisestablishmentarianism", 6, 6, 6),
        ("2 + 2 = 4", 7, 7, 7),
        ("お誕生日おめでとう", 8, 9, 7),
        ("tiktoken is great!", 6, 6, 6),
        ("0123456789", 4, 4, 10),
        ("<|endoftext|>", 7, 7, 7),
        ("\ud800x", 2, 2, 2),
    ],
)
def test_counts_are_those_that_the_makers_publish(text: str, o200k: int, cl100k: int, qwen: int) -> None:
    """The second to fifth are the examples of OpenAI's cookbook."""
    counted = [known(model).count(text) for model in ("openai:gpt-5", "openai:gpt-4", "local")]
    assert counted == [o200k, cl100k, qwen]


WEATHER = ToolSpec(
    "get_current_weather",
    "Get the current weather in a given location",
    {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
            "unit": {
                "type": "string",
                "description": "The unit of temperature to return",
                "enum": ["celsius", "fahrenheit"],
            },
        },
        "required": ["location"],
    },
)
ASKED: list[Message] = [
    System("You are a helpful assistant that can answer to questions about the weather."),
    User((Text("What's the weather like in San Francisco?"),)),
]


def test_a_request_with_a_tool_takes_what_openai_says_that_it_was_charged() -> None:
    """The example of OpenAI's cookbook: 101 prompt tokens, counted and as the API reported them."""
    assert count_request(known("openai:gpt-4o"), ASKED, [WEATHER]) == 101


QWEN_PROMPT = """\
<|im_start|>system
Be brief.

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call><|im_end|>
<|im_start|>user
And now?<|im_end|>
{exchanges}<|im_start|>assistant
"""
QWEN_EXCHANGE = """\
<|im_start|>assistant
<tool_call>
{"name": "get_current_weather", "arguments": {"location": "Graz"}}
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
18 degrees, and no wind.
</tool_response><|im_end|>
"""


@pytest.mark.parametrize("exchanges", [0, 1, 10])
def test_a_request_to_a_local_server_takes_what_its_chat_template_makes_of_it(
    exchanges: int, say: Callable[[str], None]
) -> None:
    """The template is that of Qwen 2.5; its markers are one token each."""
    about = {"name": WEATHER.name, "description": WEATHER.description, "parameters": WEATHER.parameters}
    tools = json.dumps({"type": "function", "function": about})
    prompt = QWEN_PROMPT.format(tools=tools, exchanges=QWEN_EXCHANGE * exchanges)
    marks = prompt.count("<|im_start|>") + prompt.count("<|im_end|>")
    text = prompt.replace("<|im_start|>", "").replace("<|im_end|>", "")
    true = known("local").count(text) + marks
    messages: list[Message] = [System("Be brief."), User((Text("And now?"),))]
    for _ in range(exchanges):
        messages.append(Assistant("", (ToolCall("a", WEATHER.name, '{"location": "Graz"}'),)))
        messages.append(Result("a", WEATHER.name, "ok", (Text("18 degrees, and no wind."),)))
    counted = count_request(known("local"), messages, [WEATHER])
    say(f"counted {counted} tokens of a request that is {true}")
    assert 0.95 < counted / true < 1.05


def test_everything_that_is_sent_is_counted() -> None:
    tokenizer = known("openai:gpt-5")
    word = "parcel " * 100
    bare = count_request(tokenizer, [], ())
    value: JsonValue = {"words": word}
    for message in (
        System(word),
        Note(word),
        User((Text(word),)),
        User((Json(value),)),
        Assistant(word),
        Assistant("", (ToolCall("a", "look", word),)),
        Assistant("", (ToolCall("a", word, "{}"),)),
        Result("a", "look", "ok", (Text(word), Text(""))),
        Assistant(opaque=(Opaque("p", "m", {"thinking": word}),)),
    ):
        assert count_request(tokenizer, [message], ()) > bare + 100, message
    assert count_request(tokenizer, [User((Image("image/png", b"x"),))], ()) > 1_000


def test_tools_are_counted_at_any_depth() -> None:
    tokenizer = known("openai:gpt-5")
    inner = {"type": "object", "properties": {"street": {"type": "string", "description": "parcel " * 100}}}
    flat = count_request(tokenizer, [], [ToolSpec("send", "", inner)])
    for deep in (
        {"type": "object", "properties": {"to": inner}},
        {"type": "object", "properties": {"to": {"type": "array", "items": inner}}},
        {"type": "object", "properties": {"to": {"$ref": "#/$defs/A"}}, "$defs": {"A": inner}},
        {"anyOf": [inner, {"type": "null"}]},
    ):
        assert count_request(tokenizer, [], [ToolSpec("send", "", deep)]) >= flat
    assert count_request(tokenizer, [], [ToolSpec("odd", "", {"properties": {"x": True}, "enum": [1]})]) > 12


# --- the first request ------------------------------------------------------------------------------


def test_a_first_count_names_its_tokenizer() -> None:
    assert first_count("openai:gpt-4o", ASKED, [WEATHER]) == (101, "o200k_base")


def test_of_a_long_request_a_sample_is_counted() -> None:
    prose, table = "Nobody has seen the parcel since Monday. " * 5_000, "104.27;9.50;-3.18\n" * 20_000
    messages = [User((Text(prose),)), User((Text(table),))]
    first = first_count("openai:gpt-4o", messages, ())
    assert first is not None
    true = count_request(known("openai:gpt-4o"), messages, ())
    assert first[1] == "o200k_base, of a sample"
    assert abs(first[0] / true - 1) < 0.02


# --- how far off estimates are ----------------------------------------------------------------------

SENTENCES = """
    Please look again at the order which was sent to the wrong street on Monday because nothing about it and the parcel
    never arrived from a warehouse of the carrier having returned between Graz and an address
"""
WORDS = st.sampled_from(SENTENCES.split())
PROSE = st.lists(st.lists(WORDS, min_size=4, max_size=20).map(lambda words: " ".join(words) + ". "), min_size=3).map(
    "".join
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 10**6),
            "name": st.lists(WORDS, min_size=1, max_size=4).map(" ".join),
            "paid": st.booleans(),
            "total": st.decimals(0, 1000, places=2).map(float),
        }
    ),
    min_size=3,
)


@settings(max_examples=25)
@given(PROSE)
def test_the_estimate_of_prose_is_less_than_double_and_no_less_than_two_thirds_of_the_truth(text: str) -> None:
    for model in ("openai:gpt-5", "openai:gpt-4", "local"):
        assert 1 / 2 < known(model).count(text) / estimate_text(text) < 1.5


@settings(max_examples=25)
@given(ROWS, st.sampled_from([None, 2]))
def test_the_estimate_of_json_is_less_than_double_and_no_less_than_two_thirds_of_the_truth(
    rows: list[JsonValue], indent: int | None
) -> None:
    text = json.dumps(rows, indent=indent)
    for model in ("openai:gpt-5", "openai:gpt-4", "local"):
        assert 1 / 2 < known(model).count(text) / estimate_text(text) < 1.5


def test_the_estimate_of_a_request_is_near_its_count() -> None:
    messages: list[Message] = list(ASKED)
    for number in range(10):
        messages.append(Assistant("", (ToolCall(f"{number}", WEATHER.name, '{"location": "Graz"}'),)))
        messages.append(Result(f"{number}", WEATHER.name, "ok", (Text(f"{number} degrees, and no wind."),)))
    counted = count_request(known("openai:gpt-5"), messages, ())
    assert 2 / 3 < counted / sum(map(estimate_tokens, messages)) < 1.5


@pytest.mark.slow
def test_the_benchmark_prints_its_tables_and_ordinary_texts_are_within_what_a_run_reserves(tmp_path: Path) -> None:
    script, out = Path(__file__).parent.parent / "benchmarks" / "counting.py", tmp_path / "figures.json"
    run = subprocess.run(
        [sys.executable, str(script), "--quick", "--out", str(out)], capture_output=True, text=True, check=True
    )
    assert "More than 1.5 times the estimate" in run.stdout
    report = json.loads(out.read_text())
    assert len(report["ratios"]) > 35
    beyond = [row["kind"] for row in report["ratios"] if row["o200k_base x"] > 1.5]
    assert beyond == ["rare Chinese characters"]
    assert [row["tokenizer"] for row in report["counting"]] == ["o200k_base"]
