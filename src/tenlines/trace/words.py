"""Numbers and calls in words: the same in the live view, in `show`, in reports and in logs."""

from __future__ import annotations

import json
from collections.abc import Callable

from tenlines.core.events import ContextCompacted
from tenlines.core.limits import Left, Limits, Price
from tenlines.core.outcomes import parse_arguments
from tenlines.core.result import RunResult
from tenlines.core.transcript import Usage
from tenlines.trace.text import clean, one_line

# --- numbers ------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """How long something took: `12 ms`, `4.2 s`, `2 min 05 s`, `3 h 10 min`."""
    if seconds < 0.0005:
        return "<1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def ago(seconds: float) -> str:
    """How long ago something was."""
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count > 1 and name != 'min' else ''} ago"
    return "just now"


def count(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def dollars(amount: float) -> str:
    """Cents where they matter, four digits where the amount is small."""
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}"


def money(amount: float) -> str:
    """The same to more digits: requests cost parts of a cent."""
    return dollars(amount) if amount >= 0.01 or amount == 0 else f"${amount:.6f}"


def rates(price: Price) -> str:
    """The rates of a price, in a sentence."""
    named = [("in", price.input), ("out", price.output), ("from the cache", price.cache_read)]
    named.append(("into it", price.cache_write))
    told = ", ".join(f"${rate:g} {name}" for name, rate in named if rate is not None)
    return f"a million tokens cost {told}{', and more for long requests' if price.tiers else ''}"


def tokens(usage: Usage | None) -> str:
    """The tokens of one reply."""
    if usage is None or (usage.input is None and usage.output is None):
        return "tokens not reported"
    return tokens_of(usage.input or 0, usage.output or 0, usage.cache_read or 0)


def tokens_of(taken: int, written: int, cached: int) -> str:
    """Tokens in and out, with the share of the input that came from the provider's cache."""
    share = f" ({100 * cached / taken:.0f}% cached)" if cached and taken else ""
    return f"{taken:,} tokens in{share}, {written:,} out"


def left(what: Left) -> str:
    """What is left of each limit that is set, or ""."""
    words = [
        None if what.steps is None else count(what.steps, "step"),
        None if what.tool_calls is None else count(what.tool_calls, "call"),
        None if what.tokens is None else count(what.tokens, "token"),
        None if what.dollars is None else dollars(what.dollars),
        None if what.seconds is None else duration(what.seconds),
    ]
    return ", ".join(word for word in words if word)


def limits_words(limits: Limits) -> str:
    """The limits of a run."""
    words = left(Left(limits.steps, limits.tool_calls, limits.tokens, limits.dollars, limits.seconds))
    return words or "none"


STRATEGY = {
    "elide": "old results were left out",
    "drop": "old exchanges were dropped",
    "summarise": "a summary stands for what was done",
}
WHY = {"pays": "", "window": "the model's window is nearly full; ", "asked": "it was longer than was asked for; "}


def cut_words(event: ContextCompacted) -> str:
    """What a cut did, why, and both sides of its arithmetic."""
    sums = event.arithmetic
    show = dollars if sums.unit == "dollars" else lambda amount: f"{amount:,.0f} tokens' worth"
    return (
        f"{STRATEGY[event.strategy]}, from about {sums.tokens_before:,} to {sums.tokens_after:,} tokens; "
        f"{WHY[sums.why]}saves {show(sums.saves)} over {sums.steps:.0f} steps and costs {show(sums.costs)}"
    )


def totals(result: RunResult, seconds: float) -> str:
    """Everything that a run used, in one line."""
    usage = result.usage
    parts = [count(result.steps, "step"), count(result.tool_calls, "call")]
    if usage.total:
        parts.append(tokens_of(usage.input, usage.output, usage.cache_read))
    if usage.unmetered:
        parts.append(f"{count(usage.unmetered, 'reply').replace('replys', 'replies')} without token counts")
    if result.dollars:
        parts.append(dollars(result.dollars))
    elif result.dollars is None and usage.total:
        parts.append("price unknown")
    if result.retries:
        parts.append(f"{result.retries} retried")
    return " · ".join([*parts, duration(seconds)])


# --- calls --------------------------------------------------------------------------------------------

VALUE_CHARS = 60
"""How much of one argument is shown where it is shortened."""


def call(name: str, arguments: str, *, full: bool = False) -> str:
    """A call as one would write it: `get_order(order_id="1042")`. What cannot be read is shown as it came."""
    shown = clean(name) if full else one_line(name, VALUE_CHARS)
    parsed = parse_arguments(arguments).value
    if parsed is None:
        return f"{shown}({clean(arguments) if full else one_line(arguments)})"
    shorten: Callable[[str], str] = clean if full else lambda text: one_line(text, VALUE_CHARS)
    pairs = [f"{shorten(key)}={shorten(json.dumps(value, ensure_ascii=False))}" for key, value in parsed.items()]
    return f"{shown}({', '.join(pairs)})"


def parent(key: str) -> str:
    """The call that a run serves, as a person names it."""
    run_id, step, position = key.rsplit(":", 2) if key.count(":") > 1 else (key, "", "")
    return f"run {run_id}, call {step}.{int(position) + 1}" if position.isdecimal() else key


def origin(text: str) -> str:
    """Where a fork came from, as the journal has it (`RUN@STEP`), in words."""
    run_id, _, step = text.rpartition("@")
    return f"run {run_id} at step {step}"


def owner(text: str) -> str:
    """Who works on a run, as the journal has it, in words: `process 4711 on web-2`, or "" where nobody is named."""
    fields = text.split("/")
    return f"process {fields[2]} on {fields[0]}" if len(fields) == 5 else ""
