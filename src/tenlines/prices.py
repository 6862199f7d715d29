"""What models cost and how many tokens they take in: the one place that knows where this comes from.

First the user's own file, then the list that the `genai-prices` package brings along. Nothing is fetched: the list is
as old as the installed package, and the package's own way to renew it is never started.

The file is TOML, one table for each model or pattern of models (`*`, `?`); dollars per million tokens, `window` in
tokens. An exact name wins, then the longest pattern; price and window are looked for apart, so that an entry may state
only one of them:

```toml
["openai:gpt-5"]
input = 1.25
output = 10
cache_read = 0.125

["http://127.0.0.1:8080/v1#*"]
input = 0
output = 0
window = 32768
```
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import msgspec

from tenlines.core.limits import Price, Tier
from tenlines.errors import ConfigError
from tenlines.ports import plain_name

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice

__all__ = ["Priced", "Prices", "default_file", "load", "price_of", "window_of"]

VARIABLE = "TENLINES_PRICES"
"""Names the user's file."""


class Priced(NamedTuple):
    """The price of a model, and where it comes from."""

    price: Price | None
    source: str
    """Without a price: why it is not known."""


def price_of(model: str, at: float, file: Path | None = None) -> Price | None:
    """What a model costs; None where nobody knows.

    Args:
        model: Its name, as it stands in the journal (`openai:gpt-5`, `https://api.deepseek.com/v1#deepseek-chat`).
        at: When, in Unix seconds: prices change by the day, and some by the hour.
        file: The user's own prices; None takes the usual one, where it is there (`default_file`).

    Raises:
        ConfigError: The file cannot be read, or says what makes no sense.
    """
    return load(file).of(model, at).price


def window_of(model: str, file: Path | None = None) -> int | None:
    """How many tokens a model takes in; None where nobody knows. Arguments and errors are those of `price_of`."""
    return load(file).window(model)


def default_file() -> Path:
    """Where the user's own prices are looked for.

    `$TENLINES_PRICES`, else `tenlines/prices.toml` in `$XDG_CONFIG_HOME`, else in `~/.config`.
    """
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    file = os.environ.get(VARIABLE) or f"{folder}/tenlines/prices.toml"
    return Path(os.path.expanduser(file))  # where nobody has a home, this leaves the name as it is


def load(file: Path | None = None) -> Prices:
    """The prices with the user's file over them. It is read again only when it has changed.

    Args:
        file: None takes the usual one. That one need not be there; a file that was named has to be.

    Raises:
        ConfigError: The file cannot be read, or says what makes no sense.
    """
    is_named = file is not None or bool(os.environ.get(VARIABLE))
    file = file or default_file()
    try:
        found = file.stat()
    except OSError as error:
        if is_named:
            raise ConfigError(
                f"there is no file of prices at {file} ({error.strerror}); write one, or unset {VARIABLE}"
            ) from error
        return _BUNDLED  # also where the folder is somebody else's
    return _read(file, found.st_mtime_ns, found.st_size)


class Prices:
    """What is known of models: the entries of a user's file, and below them the bundled list."""

    def __init__(self, entries: Mapping[str, Entry] | None = None, file: Path | None = None) -> None:
        self._entries, self._file = dict(entries or {}), file
        self._ranked: dict[str, tuple[str, ...]] = {}

    def of(self, model: str, at: float) -> Priced:
        """The price of a model at a time (Unix seconds), and where it comes from."""
        model = plain_name(model)
        for name, entry in self._stated(model):
            if (price := entry.price) is not None:
                return Priced(price, f'{self._file}, ["{name}"]')
        if model == "local" or model.startswith("local:"):
            return Priced(_FREE, "it runs on this machine")
        return _listed_price(model, at)

    def window(self, model: str) -> int | None:
        """How many tokens a model takes in."""
        model = plain_name(model)
        for _, entry in self._stated(model):
            if entry.window is not None:
                return entry.window
        return _listed_window(model)

    def _stated(self, model: str) -> Iterator[tuple[str, Entry]]:
        """The entries that speak of a model, the best first."""
        names = self._ranked.get(model)
        if names is None:
            found = [name for name in self._entries if name == model or fnmatchcase(model, name)]
            names = self._ranked[model] = tuple(sorted(found, key=lambda name: (name != model, -len(name))))
        return ((name, self._entries[name]) for name in names)


_FREE = Price(input=0.0, output=0.0)
_BUNDLED = Prices()

# --- the user's file --------------------------------------------------------------------------------

_Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class EntryTier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `tiers`."""

    above: _Tokens
    input: _Dollars
    output: _Dollars
    cache_read: _Dollars | None = None
    cache_write: _Dollars | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file."""

    input: _Dollars | None = None
    output: _Dollars | None = None
    cache_read: _Dollars | None = None
    cache_write: _Dollars | None = None
    tiers: tuple[EntryTier, ...] = ()
    window: _Tokens | None = None

    def __post_init__(self) -> None:
        has_both = self.input is not None and self.output is not None
        if not has_both and (self.window is None or self._has_rates):
            raise ValueError("Expected both `input` and `output`, or `window` alone")
        starts = [tier.above for tier in self.tiers]
        if starts != sorted(set(starts)):
            raise ValueError("Expected `tiers` in rising order of `above`")

    @property
    def _has_rates(self) -> bool:
        rates = (self.input, self.output, self.cache_read, self.cache_write)
        return bool(self.tiers) or any(rate is not None for rate in rates)

    @property
    def price(self) -> Price | None:
        """What the entry says of the price."""
        if self.input is None or self.output is None:
            return None
        tiers = tuple(Tier(**msgspec.structs.asdict(tier)) for tier in self.tiers)
        return Price(
            input=self.input, output=self.output, cache_read=self.cache_read, cache_write=self.cache_write, tiers=tiers
        )


@lru_cache(maxsize=8)
def _read(file: Path, changed: int, size: int) -> Prices:
    """The file as it was at this change."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the file of prices {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not text in UTF-8: {error.reason} at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f'{file} is not TOML: {error}. Names of models stand in quotes: ["openai:gpt-5"]') from error
    return Prices({name: _entry(file, name, value) for name, value in data.items()}, file)


def _entry(file: Path, name: str, value: Any) -> Entry:
    try:
        return msgspec.convert(value, Entry)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        where = f", {place.strip('.`')}" if place else ""
        raise ConfigError(
            f'{file}, ["{name}"]{where}: {what}. An entry states input, output, cache_read, cache_write (dollars per '
            "million tokens), tiers (each with above, in tokens) and window (tokens); its name stands in quotes."
        ) from error


# --- the bundled list -------------------------------------------------------------------------------

_PROVIDERS = {
    "openai": ("openai",),
    "anthropic": ("anthropic", "aws"),  # a client of Bedrock asks for Anthropic's models by the names of Bedrock
    "google": ("google",),
    "mistral": ("mistral",),
    "bedrock": ("aws",),
}
"""First word of a model -> what the list calls the provider."""

_LITELLM = {"azure_ai": "azure", "fireworks_ai": "fireworks"}
"""litellm's name of a provider -> the list's, where the list does not know it."""

_RATES = {name: f"{name}_mtok" for name in ("input", "output", "cache_read", "cache_write")}
"""Our name of a price -> the list's."""

_NEVER_BILLED = frozenset(
    {
        "cache_write_1h_mtok",  # caching is asked for with the usual time to live, five minutes
        "web_searches_kcount",  # tools that run at the provider are never asked for
        "storage_searches_kcount",
        "input_audio_mtok",  # the messages of a run have no audio
        "cache_audio_read_mtok",
        "output_audio_mtok",
        "audio_hours",
        "input_audio_hours",
    }
)
"""What a request of ours never uses. A price for anything else that is not in `_RATES` (a fee for each request, images,
reasoning apart from other output) cannot be stated by a `Price`, and the model counts as one whose price is unknown."""


class _Listed(NamedTuple):
    provider: str
    name: str
    """As it was asked for."""
    info: ModelInfo


@lru_cache(maxsize=1)
def _list() -> DataSnapshot:
    """The list as it came with the package, also where the application around us renews its own copy."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


@lru_cache(maxsize=1)
def _version() -> str:
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"


@lru_cache(maxsize=1024)
def _listed(model: str) -> _Listed | None:
    """The entry of a model."""
    if "://" in model:
        address, _, name = model.partition("#")
        return _find(name, url=address.lower())
    kind, _, name = model.partition(":")
    if kind == "litellm":
        provider, slash, rest = name.partition("/")
        return _find(rest, _LITELLM.get(provider, provider)) if slash else _find(name)
    for provider in _PROVIDERS.get(kind, ()):
        if found := _find(name.removeprefix("models/"), provider):
            return found
    return None


def _find(name: str, provider: str | None = None, url: str | None = None) -> _Listed | None:
    if not name:
        return None
    try:
        found, info = _list().find_provider_model(name, None, provider, url)
    except LookupError:
        return None
    return _Listed(found.id, name, info)


def _listed_price(model: str, at: float) -> Priced:
    listed = _listed(model)
    if listed is None:
        return Priced(None, f"{_version()} does not list {model}")
    name = f"{listed.provider}/{listed.info.id}"
    when = datetime.fromtimestamp(at, UTC)
    rates = _stated_rates(listed.info.get_prices(when))
    if not rates and listed.info.id.endswith(":free"):
        return Priced(_FREE, f"{_version()}, {name}")
    others = sorted(set(rates) - set(_RATES.values()))
    if others:
        return Priced(None, f"{_version()} prices {name} by more than plain tokens: {', '.join(others)}")
    if not {"input_mtok", "output_mtok"} <= set(rates):
        return Priced(None, f"{_version()} lists {name} without prices of input and output")
    return Priced(_converted(rates), f"{_version()}, {name} as of {when:%Y-%m-%d %H:%M} UTC")


def _stated_rates(prices: ModelPrice) -> dict[str, Any]:
    """Decimals and tiered prices by the list's names, without those that never apply."""
    return {key: value for key, value in vars(prices).items() if value is not None and key not in _NEVER_BILLED}


def _converted(rates: Mapping[str, Any]) -> Price:
    """A price of ours. In the list each kind of token may have tiers of its own; each holds for the whole request."""
    starts = {tier.start for rate in rates.values() for tier in getattr(rate, "tiers", ())}
    tiers = tuple(Tier(above=start, **_rates_at(rates, start + 1)) for start in sorted(starts))
    return Price(**_rates_at(rates, 0), tiers=tiers)


def _rates_at(rates: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    return {ours: _rate_at(rates[key], tokens) for ours, key in _RATES.items() if key in rates}


def _rate_at(rate: Any, tokens: int) -> float:
    reached = [tier.price for tier in getattr(rate, "tiers", ()) if tokens > tier.start]
    return float(reached[-1] if reached else getattr(rate, "base", rate))


def _listed_window(model: str) -> int | None:
    """The window of a model. Where its own provider does not state it, OpenRouter may, under the same name."""
    listed = _listed(model)
    if listed is None:
        return None
    if listed.info.context_window is None and (maker := _MAKERS.get(listed.provider)):
        listed = _find(f"{maker}/{listed.name}", "openrouter") or listed
    return listed.info.context_window


_MAKERS = {"openai": "openai", "google": "google", "mistral": "mistralai"}
"""The list's name of a provider -> OpenRouter's."""
