"""What a run will cost, told before it starts: the tokens of each request, with and without a cache and a cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tenlines.core.limits import Price
from tenlines.core.transcript import Usage

TYPICAL_PRICE = Price(input=1e6, output=5e6, cache_read=1e5)
"""What is weighed with where no price is known; its unit is a new input token. Most price lists take a tenth for a
cached token and five times as much for one of output. A server of one's own takes time only, and in much the same
proportions."""


LOOKED_AT = 1_000
"""So many steps are looked at to find out whether a cut ever pays; more where a longer run is asked about."""


class OneCut(NamedTuple):
    """How a forecast cuts a run, once: all exchanges but the newest go."""

    keep: int = 2
    """The newest exchanges, which stay as they are."""
    summary: int = 0
    """Tokens of the summary that the model writes and that takes their place; 0 where they are dropped."""
    question: int = 0
    """Tokens of the question for it."""


_USUAL = OneCut()


class Row(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One request, and all requests up to it. Dollars are None where the price is not known."""

    step: int
    """The step that it is for, from 1."""
    is_summary: bool = False
    """It asks for a summary before that step."""
    input: int
    """Tokens of the request."""
    cached: int
    """Of these: what is read from the cache."""
    new: int
    """Of these: the rest."""
    output: int
    dollars: float | None
    total_input: int
    total_output: int
    total_dollars: float | None


class CutRun(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the whole run costs with one cut."""

    after: int
    """The step that it comes after."""
    input: int
    output: int
    dollars: float | None


class Forecast(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a run of so many steps costs, told before it starts."""

    without_cache: tuple[Row, ...]
    """Every input token is paid in full. One row for each step."""
    with_cache: tuple[Row, ...]
    """What the request before held is read from the cache. One row for each step."""
    with_cut: tuple[Row, ...]
    """The same with the best cut; the request for a summary has a row of its own. Empty where `best` is None."""
    cuts: tuple[CutRun, ...]
    """The whole run with a cache and one cut, for each step that the cut may come after."""
    best: int | None
    """The step after which a cut makes the run cheapest; None where every cut makes it dearer."""
    break_even: int | None
    """The fewest steps that a run must have for a cut to pay; None where none pays in `LOOKED_AT` steps, or as many as
    were asked about."""


def total_input(prompt: int, per_step: int, steps: int) -> int:
    """Input tokens of a run whose first request holds `prompt` tokens, and each later one `per_step` more.

    They grow with the square of the steps: n * prompt + per_step * n * (n - 1) / 2.
    """
    return steps * prompt + per_step * (steps * (steps - 1) // 2)


def forecast(
    prompt: int, per_step: int, steps: int, price: Price | None = None, *, output: int = 0, cut: OneCut = _USUAL
) -> Forecast:
    """What a run would cost: without a cache, with one, and with a cut.

    Args:
        prompt: Tokens of the first request: instructions, tools, the task.
        per_step: Tokens that each step adds to the next request: the reply, and the results of its calls.
        steps: Requests, the last answer included.
        price: None where nobody knows; then dollars are None, and whether a cut pays is told from typical prices.
        output: Tokens of each reply. (They are paid when they are written; as input they are part of `per_step`.)
        cut: What a cut leaves.

    Returns:
        Each request with its tokens and dollars. Dollars are those of `Price.of`.

    Raises:
        ValueError: A number is negative, or there is no step.
    """
    if steps < 1 or min(prompt, per_step, output, *cut) < 0:
        raise ValueError(
            f"a forecast needs at least one step and no negative number; got {prompt=}, {per_step=}, {steps=}"
        )
    longest = max(steps, LOOKED_AT)
    course = _Course(_Shape(prompt, per_step, output, cut), price, longest)
    chances = range(cut.keep + 1, steps)
    best = min(chances, key=lambda after: course.cost(after, steps), default=0)
    if not best or not course.pays(best, steps):
        best = 0
    alone = course.alone(steps)
    return Forecast(
        without_cache=_rows(alone, price, is_cached=False),
        with_cache=_rows(alone, price, is_cached=True),
        with_cut=_rows(course.cut(best, steps), price, is_cached=True) if best else (),
        cuts=tuple(course.cut_run(after, steps) for after in chances),
        best=best or None,
        break_even=course.break_even(longest),
    )


_ROUNDING = 1e-9


class _Request(NamedTuple):
    step: int
    input: int
    cached: int
    output: int
    is_summary: bool = False

    def usage(self, *, is_cached: bool) -> Usage:
        if not is_cached:
            return Usage(self.input, self.output)
        return Usage(self.input, self.output, self.cached, self.input - self.cached)


class _Shape(NamedTuple):
    prompt: int
    per_step: int
    output: int
    cut: OneCut

    @property
    def left(self) -> int:
        """Tokens of the first request after a cut, whenever it was."""
        return self.prompt + self.cut.summary + self.cut.keep * self.per_step


class _Course:
    """The requests of a run with a cut and without one, and what they cost."""

    def __init__(self, shape: _Shape, price: Price | None, longest: int) -> None:
        self._shape, self._price, self._is_priced = shape, price or TYPICAL_PRICE, price is not None
        self._before = self._costs(self.alone(longest))
        self._behind = self._costs(self.behind(0, longest))

    def alone(self, last: int) -> list[_Request]:
        """The steps up to `last`, when nothing is cut."""
        prompt, grows, output, _ = self._shape
        later = [_Request(n, prompt + grows * (n - 1), prompt + grows * (n - 2), output) for n in range(2, last + 1)]
        return [_Request(1, prompt, 0, output), *later]

    def behind(self, after: int, last: int) -> list[_Request]:
        """The steps behind a cut: the first one finds only the beginning in the cache."""
        prompt, grows, output, _ = self._shape
        left = self._shape.left
        first = _Request(after + 1, left, prompt, output)
        later = range(after + 2, last + 1)
        return [
            first,
            *(_Request(n, left + grows * (n - after - 1), left + grows * (n - after - 2), output) for n in later),
        ]

    def summary(self, after: int) -> list[_Request]:
        """The request for a summary, where there is one: all that the next step would have held, and the question."""
        prompt, grows, _, cut = self._shape
        held = prompt + grows * after
        return [_Request(after + 1, held + cut.question, held - grows, cut.summary, True)] if cut.summary else []

    def cut(self, after: int, steps: int) -> list[_Request]:
        """All requests of a run with one cut."""
        return [*self.alone(after), *self.summary(after), *self.behind(after, steps)]

    def cost(self, after: int, steps: int) -> float:
        """What they cost."""
        return (
            self._before[after] + sum(self._dollars(one) for one in self.summary(after)) + self._behind[steps - after]
        )

    def pays(self, after: int, steps: int) -> bool:
        """Whether that is less than without the cut, by more than rounding makes of it."""
        return self._before[steps] - self.cost(after, steps) > _ROUNDING * self._before[steps]

    def break_even(self, longest: int) -> int | None:
        """The fewest steps for which some cut pays. Where it pays for some, it does for more."""
        first = self._shape.cut.keep + 1
        low, high = 1, longest + 1
        while low < high:
            steps = (low + high) // 2
            if any(self.pays(after, steps) for after in range(first, steps)):
                high = steps
            else:
                low = steps + 1
        return low if low <= longest else None

    def cut_run(self, after: int, steps: int) -> CutRun:
        """The totals of a run with one cut."""
        prompt, grows, output, cut = self._shape
        asked = sum(one.input for one in self.summary(after))
        return CutRun(
            after=after,
            input=total_input(prompt, grows, after) + asked + total_input(self._shape.left, grows, steps - after),
            output=steps * output + cut.summary,
            dollars=self.cost(after, steps) if self._is_priced else None,
        )

    def _dollars(self, request: _Request) -> float:
        return self._price.of(request.usage(is_cached=True))

    def _costs(self, requests: list[_Request]) -> list[float]:
        sums = [0.0]
        for one in requests:
            sums.append(sums[-1] + self._dollars(one))
        return sums


def _rows(requests: Iterable[_Request], price: Price | None, *, is_cached: bool) -> tuple[Row, ...]:
    rows: list[Row] = []
    taken, written, spent = 0, 0, None if price is None else 0.0
    for one in requests:
        dollars = None if price is None else price.of(one.usage(is_cached=is_cached))
        cached = one.cached if is_cached else 0
        taken, written = taken + one.input, written + one.output
        spent = None if spent is None or dollars is None else spent + dollars
        rows.append(
            Row(
                step=one.step,
                is_summary=one.is_summary,
                input=one.input,
                cached=cached,
                new=one.input - cached,
                output=one.output,
                dollars=dollars,
                total_input=taken,
                total_output=written,
                total_dollars=spent,
            )
        )
    return tuple(rows)
