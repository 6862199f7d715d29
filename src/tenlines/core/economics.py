"""What steps cost, and when it pays to make a transcript smaller. Arithmetic on numbers; nothing here knows of messages.

Theory. A request that holds `tokens` is paid in two parts: what its beginning has in common with the request before it
is read from the provider's cache (`Rates.read`), the rest is new (`Rates.write`). Left alone, every step reads all that
was there and writes what is new. A cut takes tokens away from every later step, and pays for that once: everything
behind the first change is new again, and a summary is a request of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenlines.core.limits import Price


class Rates(NamedTuple):
    """What a token costs, in any one unit."""

    read: float
    """An input token that is in the cache."""
    write: float
    """An input token that is not, and is put there."""
    output: float


class Situation(NamedTuple):
    """A run between two steps."""

    tokens: float
    """What the next request holds if nothing is cut."""
    new: float
    """Of these: what no request held before, at the end."""
    growth: float
    """Tokens that each step adds."""
    steps: float
    """Requests that are still expected, the next one included."""
    rates: Rates


class Cut(NamedTuple):
    """A way to make the next request smaller."""

    prefix: float
    """Tokens in front of the first change; they stay in the cache."""
    tokens: float
    """What the next request holds after it."""
    removable: float
    """Which part of the growth a later cut of this kind could take away as well, 0 to 1."""
    asked: float = 0.0
    """Tokens of the question for a summary; 0 where none is written. The summary request also reads all the rest."""
    written: float = 0.0
    """Output tokens of the summary."""


class Decision(NamedTuple):
    """What a cut is worth, with both sides of the arithmetic, in the unit of the rates."""

    index: int
    """Which of the cuts, or -1 for none."""
    saves: float
    """What the steps still expected cost less after it."""
    costs: float
    """What it costs once: to write again what stands behind it, and the summary."""


def rates_of(price: Price | None, tokens: int) -> Rates:
    """The rates of requests of about this size, in dollars a token; without a price, typical ones in input tokens."""
    raise NotImplementedError


def decide(situation: Situation, cuts: Sequence[Cut], least_gain: float) -> Decision:
    """Which cut to make before the next request, if any.

    Args:
        least_gain: Part of the cost of going on that a cut has to save to be worth it (hysteresis).
    """
    raise NotImplementedError


def cheapest(situation: Situation, cuts: Sequence[Cut]) -> Decision:
    """The cut that costs least where one has to be made."""
    raise NotImplementedError
