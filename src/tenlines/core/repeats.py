"""Finding loops: the same call with the same result, alone, in a cycle, or as a whole batch.

Two questions are kept apart. *Has this exchange closed a loop?* looks at the tail of the run: exchanges that
repeat with a period of up to `LONGEST_PERIOD`. It leads to a word to the model and then to the end. *Has this
call been made before?* counts over the whole run and leads to a word only, because between equal calls other
things may have happened (a test that is run again after every edit).
"""

from __future__ import annotations

import re

import msgspec

from tenlines.core.limits import Repeats
from tenlines.core.transcript import Outcome

LONGEST_PERIOD = 6
_NUMBERS = re.compile(r"\d+")


class Signature(msgspec.Struct, frozen=True, gc=False):
    """One call with its result, as far as it matters for repetition."""

    name: str
    arguments: str
    """Canonical JSON, or the raw text where that was not JSON."""
    outcome: Outcome
    digest: int
    """Of the three above and the result; compared within one process, never stored."""


def signature(name: str, arguments: str, outcome: Outcome, text: str) -> Signature:
    """Sign a call. Failures are equal when they differ only in numbers (process ids, counters)."""
    if outcome != "ok":
        text = _NUMBERS.sub("#", text)
    return Signature(name, arguments, outcome, hash((name, arguments, outcome, text)))


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What one exchange showed: words for the model, and why the run must end (or "")."""

    notes: tuple[str, ...] = ()
    stuck: str = ""


class RepeatTracker(msgspec.Struct):
    """Grows by a fixed amount a call; looking at an exchange never looks back further than a period."""

    counts: dict[int, int] = {}
    tail: list[int] = []
    """Hashes of the last exchanges, newest last."""
    runs: list[int] = msgspec.field(default_factory=lambda: [0] * LONGEST_PERIOD)
    """runs[p-1]: how many exchanges in a row equal the one p before them."""
    told: list[int] = []
    """Periods that the model was told of and has not broken since."""
    invalid: int = 0

    def look(self, exchange: tuple[Signature | None, ...], rules: Repeats) -> Finding:
        """Take in a closed exchange. None stands for a call of a `repeatable` tool, which never counts."""
        invalid = self._count_invalid(exchange, rules)
        if rules.told_after is None:
            return Finding(stuck=invalid)
        often = self._count_calls(exchange, rules.told_after)
        periods = self._advance(exchange, rules.told_after)
        if not periods:
            return Finding(often, invalid)
        again = [period for period in periods if period in self.told]
        period = (again or periods)[0]
        what = describe(exchange)
        times = self.runs[period - 1] // period + 1
        pattern = (
            f"{what} gave the same result {times} times"
            if period == 1
            else (f"the same {period} exchanges, ending in {what}, came {times} times with the same results")
        )
        if again:
            return Finding(stuck=invalid or pattern)
        self.told.extend(periods)
        word = f"{pattern}. Do something else: other arguments, another tool, or answer with what you know."
        return Finding((word,), invalid)

    def forgive(self) -> None:
        """A person let the run go on: give it a full new chance."""
        self.tail, self.told, self.invalid = [], [], 0
        self.runs = [0] * LONGEST_PERIOD

    def _count_invalid(self, exchange: tuple[Signature | None, ...], rules: Repeats) -> str:
        for one in exchange:
            bad = one is not None and one.outcome in ("invalid_arguments", "unknown_tool")
            self.invalid = self.invalid + 1 if bad else 0
        if rules.invalid_in_a_row is None or self.invalid < rules.invalid_in_a_row:
            return ""
        return f"{self.invalid} calls in a row never reached a tool, the last was {describe(exchange[-1:])}"

    def _count_calls(self, exchange: tuple[Signature | None, ...], told_after: int) -> tuple[str, ...]:
        notes = []
        for one in exchange:
            if one is None:
                continue
            times = self.counts[one.digest] = self.counts.get(one.digest, 0) + 1
            if times == told_after:
                notes.append(
                    f"{describe((one,))} has now given the same result {times} times in this run. "
                    "Calling it again will not help unless something changed in between."
                )
        return tuple(notes)

    def _advance(self, exchange: tuple[Signature | None, ...], told_after: int) -> list[int]:
        """Enter the exchange into the tail; return the periods that have just completed one round too many.

        All of them: a short loop inside a long one (A A A B, A A A B, ...) must not hide the long one. A cycle
        counts only when its round is complete, so that it gets its whole chance.
        """
        digests = tuple([one.digest for one in exchange if one is not None])
        now = hash(digests) if len(digests) == len(exchange) > 0 else -1
        if now == -1 or now not in self.tail:  # nothing repeats: the way of nearly every exchange
            if any(self.runs):
                self.runs = [0] * LONGEST_PERIOD
            self.told.clear()
            self.tail = [*self.tail[1 - LONGEST_PERIOD :], now]
            return []
        found = []
        for period in range(1, LONGEST_PERIOD + 1):
            equal = now != -1 and len(self.tail) >= period and self.tail[-period] == now
            self.runs[period - 1] = self.runs[period - 1] + 1 if equal else 0
            if not equal and period in self.told:
                self.told.remove(period)
            run = self.runs[period - 1]
            if equal and run >= period * (told_after - 1) and run % period == 0:
                found.append(period)
        self.tail.append(now)
        del self.tail[:-LONGEST_PERIOD]
        return found


def describe(exchange: tuple[Signature | None, ...]) -> str:
    """The calls of an exchange in a few words."""
    calls = [f"{one.name}({_short(one.arguments)})" for one in exchange[:3] if one is not None]
    more = f" and {len(exchange) - 3} more" if len(exchange) > 3 else ""
    return ", ".join(calls) + more


def _short(arguments: str) -> str:
    return arguments if len(arguments) <= 120 else f"{arguments[:100]}... ({len(arguments):,} characters)"
