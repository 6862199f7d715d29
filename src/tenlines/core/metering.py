"""How many tokens the next request holds, and what a reply cost.

The next request holds what the provider counted for the last one, and an estimate of what is new.

The estimate is `transcript.estimate_tokens`. What it is off by for this model and these texts is
learnt from every report. Before the first report `RunStarted.counting` says what is known.
"""

from __future__ import annotations

from tenlines.core.limits import Counting
from tenlines.core.state import State
from tenlines.core.transcript import Usage
from tenlines.errors import InvalidEvent

REFUSED = 0.9
"""Part of a request that a provider refused for its length which it is believed to take in."""
LEAST_RATE, MOST_RATE = 0.25, 5.0
"""An estimated token is at most five bytes of text. No tokenizer makes more than one token of a byte; what a report has
beyond that is a frame that the provider puts around the request, which does not grow with it."""

LEAST_NEW = 50
"""Estimated tokens that have to be new for a report to say what they are worth; of fewer, the frame is the most."""


def begin(state: State, counting: Counting) -> None:
    """What is known before the first request."""
    state.rate, state.margin, state.appended_tokens = counting.rate, counting.margin, 0


def likely(state: State) -> float:
    """Tokens of the next request, as far as one can tell."""
    return max(0.0, state.known_tokens + state.rate * (state.estimated_tokens - state.known_estimate))


def most(state: State) -> int:
    """Tokens of the next request that are reserved: what was not counted yet may be more than it looks."""
    new = state.rate * (state.estimated_tokens - state.known_estimate)
    held = state.known_tokens + (new * state.margin if new > 0 else new)
    return int(held) + 1 if held > 0 else 1


def learn(state: State, usage: Usage | None) -> None:
    """The provider has counted the request that it was just sent.

    The first report says what an estimated token is worth, and each later one what those were worth that are new in it.
    One that is no larger than the last says nothing of that: the provider reads less than it is sent (it compacted on
    its side, or leaves old reasoning out).
    """
    if usage is None or not usage.input or not state.estimated_tokens:
        return
    counted, estimated = float(usage.input), state.estimated_tokens
    if not state.known_estimate:
        state.rate = _within(counted / estimated)
    elif estimated - state.known_estimate >= LEAST_NEW and counted > state.known_tokens:
        worth = (counted - state.known_tokens) / (estimated - state.known_estimate)
        state.rate = (state.rate + _within(worth)) / 2
    state.known_tokens, state.known_estimate = counted, estimated


def _within(rate: float) -> float:
    return LEAST_RATE if rate < LEAST_RATE else MOST_RATE if rate > MOST_RATE else rate


def learn_window(state: State) -> bool:
    """The provider refused the request for its length. Whether anything can be done about it: the transcript is cut to
    what it may take in, if it may be cut."""
    if state.compaction is None:
        return False
    window, held = state.cuts.window, likely(state)
    state.cuts.window = held * REFUSED if window is None else min(window, held * REFUSED)
    return True


def forget_part(state: State, before: int) -> None:
    """The transcript was estimated at `before` and is another one now."""
    gone = before - state.estimated_tokens
    state.known_tokens -= state.rate * gone
    state.known_estimate -= gone
    if state.known_tokens <= 0:  # more went than was counted: what is left is as if it had never been counted
        state.known_tokens, state.known_estimate = 0.0, 0


def check(usage: Usage | None, dollars: float | None) -> None:
    """Raises `InvalidEvent` where something was used that cannot be."""
    least = dollars or 0.0
    if usage is not None:
        read, write = usage.cache_read or 0, usage.cache_write or 0
        least = min(least, usage.input or 0, usage.output or 0, usage.reasoning or 0, read, write)
    if least < 0:
        raise InvalidEvent(f"a request cannot use less than nothing: {usage!r}, dollars={dollars!r}")


def dollars(state: State, usage: Usage | None, said: float | None) -> float | None:
    """What a request cost: what the provider said, else by the price; None where neither is known."""
    price = state.settings.price
    if said is not None:
        return said
    if price is None or usage is None or usage.input is None or usage.output is None:
        return None
    return price.of(usage)
