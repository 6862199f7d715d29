"""How many steps runs need, where some were stopped before they had an answer.

A run that was stopped after c steps needs more than c: that is all that is known of it, and leaving it out, or taking
c for what it needed, makes the number too small. The estimate of Kaplan and Meier (1958) uses what is known: at each
step it takes the share of the runs still going that were answered there. Its variance is Greenwood's (1926), the
interval that of its log-log transform (Kalbfleisch and Prentice, 1980), which stays between 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Z = 1.959963984540054
"""Of the normal distribution, for an interval of 95 %."""
TAIL = 0.025
"""What is left out at each end."""
_ROUNDING = 1e-9


class Point(NamedTuple):
    """The estimate after a step at which runs were answered."""

    step: int
    at_risk: int
    """Runs that got to this step."""
    answered: int
    """Of them: those that were answered at it."""
    unanswered: float
    """Share of all runs that need more steps: the survival function."""
    low: float
    high: float
    """Its interval of 95 %."""


class Curve(NamedTuple):
    """The estimate."""

    points: tuple[Point, ...]
    last: int
    """The most steps that any run made."""

    def steps_for(self, share: float) -> int | None:
        """The fewest steps by which this share of runs is answered; None where the curve does not get there."""
        return self._first(share, [point.unanswered for point in self.points])

    def interval_for(self, share: float) -> tuple[int | None, int | None]:
        """The interval of 95 % of that; None for an end that is not known."""
        lows, highs = [point.low for point in self.points], [point.high for point in self.points]
        return self._first(share, lows), self._first(share, highs)

    def _first(self, share: float, levels: Sequence[float]) -> int | None:
        steps = (point.step for point, level in zip(self.points, levels, strict=True) if level <= 1 - share + _ROUNDING)
        return next(steps, None)

    def unanswered_after(self, step: int) -> float:
        """Share of runs that need more steps than this."""
        return next((point.unanswered for point in reversed(self.points) if point.step <= step), 1.0)

    def at_risk(self, step: int) -> int:
        """Runs that got to a step at which some were answered."""
        return next((point.at_risk for point in self.points if point.step == step), 0)


def curve(answered: Mapping[int, int], stopped: Mapping[int, int]) -> Curve:
    """The estimate from counts of runs.

    Args:
        answered: Steps -> how many runs were answered at the last of so many.
        stopped: Steps -> how many runs were stopped after so many, without an answer at the last one.
    """
    at_risk = sum(answered.values()) + sum(stopped.values())
    points, left, greenwood, bounds = list[Point](), 1.0, 0.0, (1.0, 1.0)
    for step in sorted({*answered, *stopped}):
        here = answered.get(step, 0)
        if here:
            left *= (at_risk - here) / at_risk
            if at_risk > here:
                greenwood += here / (at_risk * (at_risk - here))
                bounds = _interval(left, greenwood)
            else:
                bounds = 0.0, bounds[1] * _none_of(at_risk)
            points.append(Point(step, at_risk, here, left, *bounds))
        at_risk -= here + stopped.get(step, 0)
    return Curve(tuple(points), max((*answered, *stopped), default=0))


def _interval(left: float, greenwood: float) -> tuple[float, float]:
    spread = math.exp(Z * math.sqrt(greenwood) / abs(math.log(left)))
    return left**spread, left ** (1 / spread)


def _none_of(count: int) -> float:
    """The most that a share can be of which nothing was seen among so many (Clopper and Pearson, 1934). Greenwood has
    no variance for the step at which the last runs were answered."""
    return float(1 - TAIL ** (1 / count))


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The interval of 95 % of a share (Wilson, 1927)."""
    if not whole:
        return 0.0, 1.0
    share, square = part / whole, Z * Z / whole
    middle, half = share + square / 2, Z * math.sqrt(share * (1 - share) / whole + square / (4 * whole))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))
