"""Keeping the transcript small: what may be cut from it, and what it is after a cut.

A cut works on whole exchanges and on a stretch `messages[start:end]` of the transcript. What people said (`User`) and
the standing instructions (`System`) always stay, word for word; so does the newest part. Whether a cut pays is decided
elsewhere (`economics`); nothing here knows of money.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from tenlines.core.transcript import Message

Strategy: TypeAlias = Literal["elide", "drop", "summarise"]
"""`elide`: old results become a line that says what was there. `drop`: old exchanges go, with a note on what they were.
`summarise`: they are replaced by a summary that the model itself writes."""


class Compaction(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """When and how a transcript is made smaller."""

    strategies: tuple[Strategy, ...] = ("elide", "drop", "summarise")
    """Which may be used; of those that are worth it, the one that costs least over the steps still expected."""
    keep: int = 2
    """The newest exchanges, which are left as they are."""
    window: int | None = None
    """Tokens that the model takes in, the reply included; None where nobody knows."""
    at: int | None = None
    """Make it smaller whenever a request would hold more tokens than this, whether it pays or not."""
    least_gain: float = 0.01
    """A cut must save at least this part of what the steps still expected would cost without it."""
    summary_tokens: int = 1_000
    """Longest summary. A longer one is not taken."""
    expected_steps: tuple[int, ...] = ()
    """How many steps earlier runs of this kind took, each; without them the limits say how many may still come."""

    def __post_init__(self) -> None:
        unknown = [one for one in self.strategies if one not in ("elide", "drop", "summarise")]
        if unknown or not self.strategies:
            raise ValueError(f"Compaction.strategies takes 'elide', 'drop' and 'summarise'; got {self.strategies!r}")
        for name, least in (("keep", 1), ("window", 1), ("at", 1), ("summary_tokens", 50), ("least_gain", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"Compaction.{name} must be at least {least}, got {value!r}")


class Span(NamedTuple):
    """A cut that could be made: `messages[start:end]` would change."""

    strategy: Strategy
    start: int
    end: int
    tokens: int
    """Estimate of what stands there now."""
    left: int
    """Estimate of what will stand there; for a summary, the longest that is taken."""


def spans(messages: Sequence[Message], sizes: Sequence[int], compaction: Compaction) -> list[Span]:
    """Every cut that is possible, for each strategy."""
    raise NotImplementedError


def shortened(messages: Sequence[Message], keep: int) -> int:
    """Where the newest exchanges begin that are left as they are."""
    raise NotImplementedError


def cut(messages: Sequence[Message], span: Span, summary: str, keys: Mapping[str, str]) -> list[Message]:
    """The transcript after a cut: a new list."""
    raise NotImplementedError
