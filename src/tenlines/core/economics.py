"""What steps cost, and when it pays to make a transcript smaller. Arithmetic on numbers, without messages.

Theory. A request that holds `tokens` is paid in two parts: what its beginning has in common with the request before it
is read from the provider's cache (`Rates.read`), the rest is new (`Rates.write`). Left alone, every step reads all that
was there and writes what is new. A cut takes tokens away from every later step, and pays for that once: everything
behind the first change is new again, and a summary is a request of its own. So a cut

    saves   read * (tokens that go) * (requests still expected, the next one included)
    costs   (write - read) * (tokens behind the first change that a cache held) + (the request for a summary)

and the difference is exact: neither side depends on how much the steps to come will add. That a cut gains at all is
therefore known; only whether a later moment, with more to take away at once, would gain more is a forecast. It rests on
steady growth and on cuts that follow at equal distances, as many as are worth it: with a fixed price for each and a
load that grows evenly, that is the arithmetic of stock orders (F. W. Harris, "How many parts to make at once", 1913),
here with an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tenlines.core.forecasts import TYPICAL_PRICE, forecast, total_input
from tenlines.core.limits import Price

__all__ = [
    "LOOK_AGAIN",
    "Cut",
    "Decision",
    "Rates",
    "Situation",
    "cheapest",
    "decide",
    "forecast",
    "going_on",
    "rates_of",
    "total_input",
]


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


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What a cut is worth: both sides of the arithmetic, in the unit of the rates. The difference is what it gains."""

    index: int
    """Which of the cuts, or -1 for none."""
    saves: float
    """What the steps still expected cost less after it."""
    costs: float
    """What it costs once: to write again what stands behind it, and the summary."""


LOOK_AGAIN = 1.05
"""`decide` is worth asking again when the next request would hold so many times what it held after the last decision.
So all looks at a run together cost a constant share of its work; where growth is even, asking at every step would gain
next to nothing."""

NO_CUT = Decision(-1, 0.0, 0.0)


def rates_of(price: Price | None, tokens: int) -> Rates:
    """The rates of requests of about this size, in dollars a token; without a price, typical ones in input tokens."""
    now = (price or TYPICAL_PRICE).at(tokens)
    read = now.input if now.cache_read is None else now.cache_read
    write = now.input if now.cache_write is None else now.cache_write
    return Rates(read / 1e6, write / 1e6, now.output / 1e6)


def going_on(situation: Situation) -> float:
    """What the input of all steps still expected costs when nothing is cut, in the unit of the rates."""
    tokens, new, growth, _, rates = situation
    later = _steps(situation) - 1
    first = rates.read * (tokens - new) + rates.write * new
    return first + later * (rates.read * (tokens + growth * (later - 1) / 2) + rates.write * growth)


def decide(situation: Situation, cuts: Sequence[Cut], least_gain: float) -> Decision:
    """Which cut to make before the next request, if any.

    A cut is made when it gains enough, and when no later moment promises more. The work does not depend on how long the
    run is.

    Args:
        cuts: Those that are possible now.
        least_gain: Part of the cost of going on that a cut has to save to be worth it (hysteresis).

    Returns:
        The cut, or index -1. Its `saves - costs` is what it gains even if nothing else is ever cut, so a run that
        follows these decisions never costs more than one that goes on, whatever its steps turn out to add, as long as
        it takes no fewer steps than expected.
    """
    least = least_gain * going_on(situation)
    best, most = NO_CUT, 0.0
    for index, cut in enumerate(cuts):
        decision = _weighed(situation, cut, index)
        gain = decision.saves - decision.costs
        if gain > 0 and gain >= least and (total := gain + _repeated(situation, cut, least_gain)) > most:
            best, most = decision, total
    if best.index >= 0 and any(_waiting(situation, cut, least_gain) > most * (1 + _EQUAL) for cut in cuts):
        return NO_CUT
    return best


def cheapest(situation: Situation, cuts: Sequence[Cut]) -> Decision:
    """The cut that costs least over the steps still expected, where one has to be made. It may cost more than it saves.

    Of equal ones the first is taken; index -1 where there is none.
    """
    weighed = [_weighed(situation, cut, index) for index, cut in enumerate(cuts)]
    return max(weighed, key=lambda one: one.saves - one.costs, default=NO_CUT)


# --- how cuts are weighed -------------------------------------------------------------------------------

_EQUAL = 1e-9
"""Moments whose gains differ by less than this part are equally good, and the earlier one is taken."""


def _steps(situation: Situation) -> float:
    """There is always a next request."""
    return max(1.0, situation.steps)


def _weighed(situation: Situation, cut: Cut, index: int) -> Decision:
    """Both sides of a cut before the next request."""
    tokens, new, _, _, rates = situation
    costs = (rates.write - rates.read) * (cut.tokens - cut.prefix - new)
    if cut.asked or cut.written:
        costs += rates.read * (tokens - new) + rates.write * (new + cut.asked) + rates.output * cut.written
    return Decision(index, rates.read * (tokens - cut.tokens) * _steps(situation), costs)


def _waiting(situation: Situation, cut: Cut, least_gain: float) -> float:
    """What such a cut would gain at the best later moment, cuts after it included.

    The gain is concave in how long one waits, so the next look and the best moment for a single cut are enough.
    """
    read, write, _ = situation.rates
    growth, steps, unit = situation.growth, _steps(situation), 2 * read * cut.removable
    if not unit * growth > 0:
        return 0.0
    stock = (situation.tokens - cut.tokens) / growth  # in steps that it took, or would have taken, to gather
    summary = read if cut.asked or cut.written else 0.0
    peak = (read * (cut.removable * steps - stock) - (write - read) * (1 - cut.removable) - summary) / unit
    soonest = _next_look(situation)
    moments = {soonest, float(round(max(soonest, min(peak, steps))))}
    return max(_after(situation, cut, wait, least_gain) for wait in moments)


def _after(situation: Situation, cut: Cut, wait: float, least_gain: float) -> float:
    """What a cut gains after so many steps: as much stays protected as now, so all that came in between can go too."""
    tokens, _, growth, steps, rates = situation
    if wait >= steps:
        return 0.0
    later = Situation(tokens + wait * growth, growth, growth, steps - wait, rates)
    grown = cut._replace(tokens=cut.tokens + (1 - cut.removable) * wait * growth)
    weighed = _weighed(later, grown, 0)
    return weighed.saves - weighed.costs + _repeated(later, grown, least_gain)


def _next_look(situation: Situation) -> float:
    """Steps until it is worth asking again."""
    return max(1.0, -(-min((LOOK_AGAIN - 1) * situation.tokens / situation.growth, _steps(situation)) // 1))


def _repeated(situation: Situation, cut: Cut, least_gain: float) -> float:
    """What further cuts of this kind would gain after this one.

    With `cuts` of them at equal distances over the steps, what can be taken away never grows for longer than one
    distance; each is paid for.
    """
    tokens, _, growth, _, (read, write, output) = situation
    steps, kept = _steps(situation), 1 - cut.removable
    grows = growth * cut.removable
    if not read * grows > 0:
        return 0.0
    protected = max(0.0, cut.tokens - cut.prefix - (tokens - cut.tokens) * kept / cut.removable)
    once, each_step = (write - read) * (protected - growth), (write - read) * kept * growth
    if cut.asked or cut.written:
        once += read * (cut.tokens - growth) + write * (growth + cut.asked) + output * cut.written
        each_step += read * growth
    load = read * grows * steps**2 / 2
    # not closer than looks, nor than cuts that are worth `least_gain`
    most = steps / max(_next_look(situation), least_gain * cut.tokens / grows)
    ideal = (max(0.0, load - each_step * steps) / once) ** 0.5 if once > 0 else most
    spans = int(min(most, ideal))
    gains = [load * (1 - 1 / n) - (n - 1) * (once + each_step * steps / n) for n in (spans, spans + 1) if 0 < n <= most]
    return max(0.0, *gains) if gains else 0.0
