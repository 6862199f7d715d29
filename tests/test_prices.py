"""What models cost: the bundled list agrees with its own calculator, and the user's file lies over it."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data import providers
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot

from tenlines import prices
from tenlines.core.limits import Price, Tier
from tenlines.core.transcript import Usage
from tenlines.errors import ConfigError
from tenlines.prices import Priced, price_of, window_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# --- agreement with the calculator of the list ----------------------------------------------------------

MOMENTS = [moment(text) for text in ("2025-06-01 03:00", "2026-08-16 23:59", "2026-11-30 02:00", "2026-11-30 18:00")]


def usages(rng: random.Random) -> Iterator[Usage]:
    """One small request, and one of a size where tiers begin or end."""
    edge = rng.choice([32_000, 128_000, 199_999, 200_000, 256_000, 272_000, 524_288]) + rng.choice([0, 1, 50_000])
    for tokens in (rng.randrange(30_000), edge):
        read = rng.randrange(tokens + 1)
        yield Usage(tokens, rng.randrange(8_000), read, rng.randrange(tokens - read + 1))


def calculated(provider: str, model: str, at: float, usage: Usage) -> float:
    """What the package itself says."""
    counts = genai_prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    when = datetime.fromtimestamp(at, UTC)
    found = genai_prices.calc_price(counts, model, provider_id=provider, genai_request_timestamp=when)
    return float(found.total_price)


def listed() -> Iterator[tuple[str, str]]:
    """Every model of the list: its provider, and a name that it is found by there."""
    for provider in providers:
        for model in provider.models:
            if provider.find_model(model.id, all_providers=providers):
                yield provider.id, model.id


@pytest.mark.slow
def test_every_model_of_the_list_costs_what_its_own_calculator_says(say: Callable[[str], None]) -> None:
    rng, refused, compared, worst = random.Random(7), Counter[str](), 0, 0.0
    for provider, model in listed():
        for at in MOMENTS:
            found = prices.load().of(f"litellm:{provider}/{model}", at)
            if found.price is None:
                refused[provider] += 1
                continue
            for usage in usages(rng):
                difference = abs(found.price.of(usage) - calculated(provider, model, at, usage))
                assert difference < 1e-9, f"{provider}/{model} at {at}: {usage}"
                worst, compared = max(worst, difference), compared + 1
    say(f"prices: {compared:,} costs agree to {worst:.0e} dollars; {refused.total():,} prices cannot be stated")
    assert compared > 15_000
    assert refused.total() < compared / 10


@pytest.mark.slow
def test_the_worst_case_is_the_dearest_way_to_cache_a_request_of_that_size() -> None:
    rng = random.Random(8)
    for provider, model in listed():
        price = price_of(f"litellm:{provider}/{model}", NOON)
        if price is None:
            continue
        tokens, output = next(iter(usages(rng))).input or 0, rng.randrange(8_000)
        ways = [Usage(tokens, output), Usage(tokens, output, tokens, 0), Usage(tokens, output, 0, tokens)]
        dearest = max(calculated(provider, model, NOON, usage) for usage in ways)
        assert price.worst(tokens, output) == pytest.approx(dearest, abs=1e-9), f"{provider}/{model}"


# --- names ----------------------------------------------------------------------------------------------

KNOWN = {
    "openai:gpt-5": (1.25, 10.0, 0.125, None),
    "openai:gpt-5-mini-2025-08-07": (0.25, 2.0, 0.025, None),
    "openai:gpt-4.1": (2.0, 8.0, 0.5, None),
    "anthropic:claude-sonnet-5": (2.0, 10.0, 0.2, 2.5),
    "anthropic:claude-haiku-4-5@20251001": (1.0, 5.0, 0.1, 1.25),
    "anthropic:us.anthropic.claude-haiku-4-5-20251001-v1:0": (1.1, 5.5, 0.11, 1.375),
    "google:gemini-2.5-flash": (0.3, 2.5, 0.03, None),
    "google:models/gemini-2.5-flash": (0.3, 2.5, 0.03, None),
    "bedrock:global.anthropic.claude-haiku-4-5-20251001-v1:0": (1.0, 5.0, 0.1, 1.25),
    "bedrock:eu.anthropic.claude-haiku-4-5-20251001-v1:0": (1.1, 5.5, 0.11, 1.375),
    "bedrock:arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0": (
        1.1,
        5.5,
        0.11,
        1.375,
    ),
    "litellm:gpt-5": (1.25, 10.0, 0.125, None),
    "litellm:anthropic/claude-sonnet-5": (2.0, 10.0, 0.2, 2.5),
    "litellm:azure/gpt-5": (1.25, 10.0, 0.125, None),
    "litellm:openrouter/anthropic/claude-sonnet-5": (2.0, 10.0, 0.2, 2.5),
    "https://api.deepseek.com/v1#deepseek-v3.2-exp": (0.27, 0.41, None, None),
    "https://API.x.ai/v1#grok-3": (3.0, 15.0, 0.75, None),
    "https://openrouter.ai/api/v1#anthropic/claude-sonnet-5": (2.0, 10.0, 0.2, 2.5),
    "https://acme.openai.azure.com/openai/v1#gpt-5": (1.25, 10.0, 0.125, None),
    "local": (0.0, 0.0, None, None),
    "local:small": (0.0, 0.0, None, None),
    "local:/models/mine.gguf": (0.0, 0.0, None, None),
}
"""Name -> input, output, cache read, cache write."""


@pytest.mark.parametrize("model", KNOWN)
def test_a_model_is_found_by_its_name_in_the_journal(model: str) -> None:
    price = price_of(model, NOON)
    assert price is not None
    assert (price.input, price.output, price.cache_read, price.cache_write) == KNOWN[model]


UNKNOWN = [
    "function:answer",
    "scripted",
    "",
    "openai:",
    "openai:gpt-99",
    "ollama:qwen3",
    "http://127.0.0.1:8080/v1#gpt-5",
    "https://models.example.com/v1#claude-sonnet-5",
    "https://api.openai.com/v1",
    "litellm:ollama/claude-like",
    "claude-sonnet-5",
]


@pytest.mark.parametrize("model", UNKNOWN)
def test_what_nobody_lists_has_no_price_and_no_window(model: str) -> None:
    assert price_of(model, NOON) is None
    assert window_of(model) is None


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("litellm:perplexity/sonar", "requests_kcount"),
        ("litellm:perplexity/sonar-deep-research", "output_reasoning_mtok"),
        ("openai:gpt-image-1", "input_image_mtok"),
        ("google:gemini-2.5-flash-image", "output_image_mtok"),
        ("openai:text-embedding-3-small", "without prices of input and output"),
        ("google:gemma-3", "without prices of input and output"),
        ("openai:gpt-99", "does not list openai:gpt-99"),
    ],
)
def test_a_price_that_cannot_be_stated_is_unknown_and_says_why(model: str, why: str) -> None:
    price, source = prices.load().of(model, NOON)
    assert price is None
    assert why in source


def test_a_free_model_of_the_list_is_free() -> None:
    assert price_of("https://openrouter.ai/api/v1#deepseek/deepseek-r1:free", NOON) == Price(input=0, output=0)


def test_a_listed_price_says_where_it_comes_from() -> None:
    source = prices.load().of("openai:gpt-5", NOON).source
    assert source == f"genai-prices {genai_prices.__version__}, openai/gpt-5 as of 2026-11-30 12:00 UTC"


def test_tiers_hold_for_the_whole_of_a_long_request() -> None:
    price = price_of("google:gemini-2.5-pro", NOON)
    assert price == Price(
        input=1.25,
        output=10,
        cache_read=0.125,
        tiers=(Tier(above=200_000, input=2.5, output=15, cache_read=0.25),),
    )
    assert price.of(Usage(200_000, 0)) == pytest.approx(0.25)
    assert price.of(Usage(200_001, 0)) == pytest.approx(0.5000025)


# --- time -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "when", "rates"),
    [
        ("deepseek-chat", "2026-11-30 00:29", (0.135, 0.55)),
        ("deepseek-chat", "2026-11-30 00:30", (0.27, 1.1)),
        ("deepseek-chat", "2026-11-30 16:29", (0.27, 1.1)),
        ("deepseek-chat", "2026-11-30 16:30", (0.135, 0.55)),
        ("deepseek-v4-pro", "2026-08-16 23:59", (0.435, 0.87)),
        ("deepseek-v4-pro", "2026-08-17 00:00", (0.66, 1.98)),
        ("deepseek-v4-pro", "2026-11-30 02:00", (1.32, 3.96)),
    ],
)
def test_the_price_is_that_of_the_day_and_the_hour(model: str, when: str, rates: tuple[float, float]) -> None:
    price = price_of(f"https://api.deepseek.com/v1#{model}", moment(when))
    assert price is not None
    assert (price.input, price.output) == rates


# --- windows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("openai:gpt-5", 400_000),
        ("anthropic:claude-sonnet-5", 1_000_000),
        ("bedrock:eu.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000),
        ("google:gemini-2.5-pro", 1_048_576),  # OpenRouter's list states it, Google's does not
        ("mistral:mistral-large-latest", None),
        ("local", None),
    ],
)
def test_the_window_of_a_model(model: str, window: int | None) -> None:
    assert window_of(model) == window


# --- nothing is fetched -----------------------------------------------------------------------------------

PROBE = """
import json, sys, threading
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
from tenlines.prices import price_of, window_of
late = "genai_prices" not in sys.modules
found = price_of("openai:gpt-5", 1.8e9).input, window_of("openai:gpt-5"), price_of("openai:gpt-99", 1.8e9)
print(json.dumps({"found": found, "late": late, "sockets": sockets, "threads": threading.active_count()}))
"""


@pytest.mark.slow
def test_a_price_is_found_without_a_connection_or_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"found": [1.25, 400_000, None], "late": True, "sockets": [], "threads": 1}


def test_a_list_that_the_application_has_renewed_changes_nothing_here() -> None:
    set_custom_snapshot(DataSnapshot(providers=[], from_auto_update=True))
    try:
        assert price_of("openai:gpt-5-nano", NOON) == Price(input=0.05, output=0.4, cache_read=0.005)
    finally:
        set_custom_snapshot(None)


# --- the user's file --------------------------------------------------------------------------------------

MINE = """
["openai:gpt-5"]
input = 1
output = 8.5
cache_read = 0.25
cache_write = 2
tiers = [{ above = 100_000, input = 2, output = 12, cache_read = 0.5 }, { above = 300_000, input = 4, output = 24 }]

["http://10.0.0.7:8080/v1#*"]
input = 0.1
output = 0.2
window = 32_768

["http://10.0.0.7:8080/v1#qwen*"]
window = 65_536

["http://10.0.0.7:8080/v1#qwen3"]
input = 0.3
output = 0.4

["anthropic:*"]
window = 150_000

["local"]
input = 0.01
output = 0.01
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(MINE)
    return path


def test_an_entry_of_the_user_wins_over_the_list(file: Path) -> None:
    tiers = (
        Tier(above=100_000, input=2, output=12, cache_read=0.5),
        Tier(above=300_000, input=4, output=24),
    )
    expected = Price(input=1, output=8.5, cache_read=0.25, cache_write=2, tiers=tiers)
    assert prices.load(file).of("openai:gpt-5", NOON) == Priced(expected, f'{file}, ["openai:gpt-5"]')
    assert price_of("local", NOON, file) == Price(input=0.01, output=0.01)


def test_what_the_file_does_not_name_is_found_in_the_list(file: Path) -> None:
    assert price_of("openai:gpt-4.1", NOON, file) == price_of("openai:gpt-4.1", NOON)
    assert window_of("openai:gpt-5", file) == 400_000


@pytest.mark.parametrize(
    ("name", "rates", "window"),
    [
        ("mixtral", (0.1, 0.2), 32_768),
        ("qwen2", (0.1, 0.2), 65_536),
        ("qwen3", (0.3, 0.4), 65_536),
    ],
)
def test_the_exact_name_wins_and_then_the_longest_pattern(
    file: Path, name: str, rates: tuple[float, float], window: int
) -> None:
    price = price_of(f"http://10.0.0.7:8080/v1#{name}", NOON, file)
    assert price is not None
    assert (price.input, price.output) == rates
    assert window_of(f"http://10.0.0.7:8080/v1#{name}", file) == window


def test_the_file_of_the_documentation_says_what_the_page_says(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "money.md").read_text()
    found = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    file = tmp_path / "prices.toml"
    file.write_text(found[1])
    price = price_of("openai:gpt-5", NOON, file)
    assert price is not None
    assert (price.input, price.tiers[0].above) == (1.0, 200_000)
    assert price_of("http://127.0.0.1:8080/v1#any", NOON, file) == Price(input=0, output=0)
    assert (price_of("ollama:qwen3", NOON, file), window_of("ollama:qwen3", file)) == (None, 8_192)


def test_an_entry_with_a_window_alone_leaves_the_price_to_the_list(file: Path) -> None:
    assert window_of("anthropic:claude-sonnet-5", file) == 150_000
    assert price_of("anthropic:claude-sonnet-5", NOON, file) == price_of("anthropic:claude-sonnet-5", NOON)


def test_the_file_is_read_again_when_it_has_changed_and_only_then(file: Path) -> None:
    before = prices.load(file)
    assert prices.load(file) is before
    file.write_text('["openai:gpt-5"]\ninput = 5\noutput = 6\n')
    assert price_of("openai:gpt-5", NOON, file) == Price(input=5, output=6)


def test_the_file_is_found_by_the_variable_and_in_the_folder_of_settings(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert price_of("openai:gpt-5", NOON) != price_of("openai:gpt-5", NOON, file)
    (tmp_path / "tenlines").mkdir()
    (tmp_path / "tenlines" / "prices.toml").write_text('["openai:gpt-5"]\ninput = 5\noutput = 6\n')
    assert price_of("openai:gpt-5", NOON) == Price(input=5, output=6)
    monkeypatch.setenv("TENLINES_PRICES", str(file))
    assert price_of("openai:gpt-5", NOON) == price_of("openai:gpt-5", NOON, file)


def test_a_file_that_was_named_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(ConfigError, match=r"there is no file of prices at .*none\.toml"):
        price_of("openai:gpt-5", NOON, missing)
    monkeypatch.setenv("TENLINES_PRICES", str(missing))
    with pytest.raises(ConfigError, match=r"there is no file of prices at .*none\.toml"):
        window_of("local")


def test_a_place_where_no_file_can_be_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tenlines").write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert price_of("local", NOON) == Price(input=0, output=0)


def test_a_folder_is_not_a_file_of_prices(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path} cannot be read: Is a directory"):
        price_of("local", NOON, tmp_path)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said(file: Path) -> None:
    file.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        price_of("local", NOON, file)


BROKEN = {
    "no toml": ("[openai:gpt-5]\n", r"is not TOML: .*line 1.*stand in quotes"),
    "a word": ('["a"]\ninput = "1"\noutput = 2\n', r'\["a"\], input: Expected `float.*`, got `str`'),
    "a flag": ('["a"]\ninput = true\noutput = 2\n', r'\["a"\], input: Expected `float.*`, got `bool`'),
    "negative": ('["a"]\ninput = -1\noutput = 2\n', r'\["a"\], input: Expected `float` >= 0'),
    "infinite": ('["a"]\ninput = inf\noutput = 2\n', r'\["a"\], input: Expected `float` <= 1000000'),
    "not a number": ('["a"]\ninput = nan\noutput = 2\n', r'\["a"\], input: Expected `float` >= 0'),
    "no output": ('["a"]\ninput = 1\n', r'\["a"\]: Expected both `input` and `output`, or `window` alone'),
    "half beside a window": ('["a"]\ncache_read = 1\nwindow = 5\n', r"Expected both `input` and `output`"),
    "tiers alone": ('["a"]\ntiers = [{above = 1, input = 1, output = 1}]\nwindow = 5\n', r"Expected both"),
    "nothing": ('["a"]\n', r"Expected both `input` and `output`, or `window` alone"),
    "a misspelt key": ('["a"]\ninptu = 1\noutput = 2\n', r'\["a"\]: Object contains unknown field `inptu`'),
    "a misspelt key of a tier": (
        '["a"]\ninput = 1\noutput = 2\ntiers = [{over = 1, input = 1, output = 1}]\n',
        r'\["a"\], tiers\[0\]: Object contains unknown field `over`',
    ),
    "a tier without output": (
        '["a"]\ninput = 1\noutput = 2\ntiers = [{above = 1, input = 1}]\n',
        r'\["a"\], tiers\[0\]: Object missing required field `output`',
    ),
    "tiers that fall": (
        '["a"]\ninput = 1\noutput = 2\n'
        "tiers = [{above = 9, input = 1, output = 1}, {above = 9, input = 2, output = 2}]\n",
        r'\["a"\]: Expected `tiers` in rising order of `above`',
    ),
    "an empty window": ('["a"]\nwindow = 0\n', r'\["a"\], window: Expected `int` >= 1'),
    "a name without quotes": ("[openai.gpt-5]\nwindow = 1\n", r'\["openai"\]: .*`gpt-5`.*stands in quotes'),
    "no table": ("window = 5\n", r'\["window"\]: Expected `object`, got `int`'),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_with_the_place_and_what_was_expected(tmp_path: Path, case: str) -> None:
    file = tmp_path / "mine.toml"
    text, message = BROKEN[case]
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        price_of("local", NOON, file)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b'["a"]\xff')
    with pytest.raises(ConfigError, match=r"mine\.toml is not text in UTF-8"):
        price_of("local", NOON, file)
