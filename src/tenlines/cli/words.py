"""Numbers, calls and endings in words: the same in the live view, in `show` and in the last lines of a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence

from tenlines.cli.screen import clean, one_line
from tenlines.core.events import ContextCompacted
from tenlines.core.limits import Left, Limits, Price
from tenlines.core.outcomes import parse_arguments
from tenlines.core.result import RunResult
from tenlines.core.transcript import Usage

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


def origin(text: str) -> str:
    """Where a fork came from, as the journal has it (`RUN@STEP`), in words."""
    run_id, _, step = text.rpartition("@")
    return f"run {run_id} at step {step}"


# --- endings ------------------------------------------------------------------------------------------


def command(name: str, arguments: Sequence[str], journal: str | None, *options: str) -> str:
    """A command to be copied, with the journal as it was named."""
    named = [] if journal is None else ["--journal", journal]
    return shlex.join(["tenlines", name, *arguments, *named, *options])


def next_move(result: RunResult, limits: Limits, journal: str | None) -> tuple[str, str]:
    """What to do about a run that stopped: why and how, and the command (or "")."""
    if journal == "memory":
        return "the run was kept in memory only and cannot be resumed; leave out --journal memory next time", ""
    if result.status == "journal_error" and "another process" in result.reason:
        return (
            "this process stopped without touching anything; what the other one does",
            f"tenlines show {result.run_id}",
        )
    advice, options = _advice(result, limits)
    return advice, command("resume", [result.run_id], journal, *options) if options is not None else ""


def _advice(result: RunResult, limits: Limits) -> tuple[str, Sequence[str] | None]:
    doubled = _raised(result, limits)
    if doubled is not None:
        return "raise the cap and go on, nothing is repeated", doubled
    if result.status == "model_error":
        return _about_failure(result.reason)
    return _ADVICE.get(result.status, ("go on with it", ()))


def _raised(result: RunResult, limits: Limits) -> Sequence[str] | None:
    """The option that lifts the limit which stopped the run, or None where it was no limit."""
    match result.status:
        case "max_steps" if limits.steps is not None and result.steps >= limits.steps:
            return ("--max-steps", str(max(1, 2 * limits.steps)))
        case "tool_limit" if limits.tool_calls is not None:
            return ("--max-tool-calls", str(max(1, 2 * limits.tool_calls)))
        case "deadline" if limits.seconds is not None:
            return ("--timeout", f"{2 * limits.seconds:g}")
        case "budget" if limits.tokens is not None and "tokens" in result.reason:
            return ("--max-tokens", str(2 * max(limits.tokens, result.usage.total + 1000)))
        case "budget" if limits.dollars is not None and "price" not in result.reason:
            return ("--max-dollars", f"{max(0.01, 2 * limits.dollars):g}")
    return None


def _about_failure(reason: str) -> tuple[str, Sequence[str] | None]:
    lowered = reason.lower()
    if any(word in lowered for word in ("401", "403", "api key", "api_key", "unauthorized", "credit", "quota")):
        return "check the key or the account, then go on", ()
    return "when the model can be reached again go on, or add --model NAME to ask another", ()


_ADVICE: dict[str, tuple[str, Sequence[str] | None]] = {
    "budget": ("give the model's price with --price IN/OUT (dollars per million tokens), or limit --max-tokens", None),
    "max_steps": ("go on with it", ()),
    "stuck": ("tell it what to try instead and go on", ("--say", "...")),
    "refused": ("say it in another way and go on", ("--say", "...")),
    "cancelled": ("go on where it stopped", ()),
    "empty_reply": ("try again, or add --model NAME to ask another model", ()),
    "truncated_reply": ("go on from where the reply was cut off", ()),
    "context_overflow": ("cut what is old and go on; or let tools return less (@tool(max_result=...))", ("--compact",)),
    "journal_error": ("make the journal writable again, then go on", ()),
}
