"""What advice is: a finding says what was seen, what to do, what that saves, and how sure it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from tenlines.advise.facts import Worth

Kind: TypeAlias = Literal["cap", "flood", "repeats", "cache", "failures", "workflow"]
EXAMPLES = 3
"""Runs that are named for each finding."""


class Finding(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One piece of advice."""

    kind: Kind
    group: str
    subject: str
    """What it is about: a tool, an ending, what changed; "" where it is the group."""
    seen: str
    do: str
    saves: str
    tokens: int
    """What it is worth, in tokens: an estimate of what the runs that were looked at would not have used, or used in
    vain."""
    dollars: float | None
    """The same in dollars; None where the price is not known."""
    sure: str
    """How much this rests on."""
    runs: tuple[str, ...]
    """Examples."""


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """What is worth most first: in dollars where all of them are known, else in tokens. It is a total order."""
    found = list(findings)
    in_dollars = all(one.dollars is not None for one in found)

    def key(one: Finding) -> tuple[float, int, str, str, str, float]:
        dollars = -(one.dollars or 0.0)
        return (dollars if in_dollars else 0.0, -one.tokens, one.kind, one.group, one.subject, dollars)

    return sorted(found, key=key)


class Examples:
    """The first few runs that something was seen in."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def add(self, run_id: str) -> None:
        """Name a run, once."""
        if len(self.runs) < EXAMPLES and run_id not in self.runs:
            self.runs.append(run_id)


class Sizes:
    """Sizes in bounded memory: each counts as the nearest number of three digits."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, size: int) -> None:
        """One more."""
        digits = 10 ** max(0, len(str(size)) - 3)
        self._counts[round(size / digits) * digits] += 1

    def quantile(self, share: float) -> int:
        """The smallest size that so many do not exceed; 0 where there are none."""
        wanted, seen = share * self._counts.total(), 0
        for size in sorted(self._counts):
            seen += self._counts[size]
            if seen >= wanted - 1e-9:
                return size
        return 0


def percent(part: float, whole: float) -> str:
    """`12%`, `0.4%`, `<0.1%`."""
    share = 100 * part / whole if whole else 0.0
    if 0 < share < 0.05:
        return "<0.1%"
    return f"{share:.0f}%" if share >= 1 or not share else f"{share:.1f}%"


def worth_words(worth: Worth) -> str:
    """`about 12,000 tokens, $0.0360`."""
    from tenlines.trace.words import dollars

    said = f"about {worth.tokens:,} token{'' if worth.tokens == 1 else 's'}"
    if worth.dollars is None:
        return f"{said} (the price is not known)"
    return f"{said}, {dollars(worth.dollars) if worth.dollars >= 0.01 else f'${worth.dollars:.6f}'}"
