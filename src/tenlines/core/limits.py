"""What a run may use, what is left of it, and the reserve-then-settle account that makes limits hold."""

from __future__ import annotations

from typing import Literal

import msgspec

from tenlines.core.transcript import Usage


class Limits(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One budget for a run. None means no limit of that kind.

    Every limit is checked before the thing it limits; the last allowed reply is always looked at.
    """

    steps: int | None = 20
    """Replies of the model, the final answer included."""
    tool_calls: int | None = None
    """Calls that really start a tool."""
    tokens: int | None = None
    """Input and output tokens over all requests, as the provider reports them."""
    dollars: float | None = None
    """US dollars over all requests. Needs a known price: without one the run does not start."""
    seconds: float | None = None
    """Wall-clock time that the run is worked on; the time between a stop and a resume is not counted."""
    on_tool_limit: Literal["stop", "continue"] = "stop"
    """When a call would pass `tool_calls`: end as `tool_limit`, or refuse the call and let the model answer."""
    last_words: bool = False
    """At the step limit, ask once more, without tools, for what is known so far (`result.partial_answer`)."""

    def __post_init__(self) -> None:
        for name in ("steps", "tool_calls", "tokens", "dollars", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"Limits.{name} must be a number from 0 up, or None for no limit; got {value!r}")


class Retry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How failed requests are repeated. A provider's `retry-after` always wins over a shorter wait."""

    attempts: int = 4
    """Requests for one step, the first included."""
    first_wait_s: float = 1.0
    """Doubled each time, with up to a quarter of jitter."""
    max_wait_s: float = 60.0


class Repeats(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """When repetition is a loop. The same call counts only with the same result."""

    told_after: int | None = 3
    """Tell the model after so many equal calls (or periods of a cycle); one more ends the run as `stuck`."""
    invalid_in_a_row: int | None = 5
    """End as `stuck` when so many calls in a row never reached a tool (unknown tool, invalid arguments)."""


class Tier(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Other prices for long requests, in US dollars per million tokens."""

    above: int
    """They hold for the whole of a request with more input tokens than this."""
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Price(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """None: cached tokens cost as much as others."""
    cache_write: float | None = None
    """None: as `input`."""
    tiers: tuple[Tier, ...] = ()
    """In rising order of `above`."""

    def at(self, input_tokens: int) -> Price | Tier:
        """The prices of a request with so many input tokens."""
        for tier in reversed(self.tiers):
            if input_tokens > tier.above:
                return tier
        return self

    def of(self, usage: Usage) -> float:
        """Dollars of one reply. Cached tokens are part of `usage.input` and are charged once."""
        tokens = usage.input or 0
        price = self.at(tokens) if self.tiers else self
        read, write = usage.cache_read or 0, usage.cache_write or 0
        read_price = price.input if price.cache_read is None else price.cache_read
        write_price = price.input if price.cache_write is None else price.cache_write
        total = max(0, tokens - read - write) * price.input + read * read_price + write * write_price
        return (total + (usage.output or 0) * price.output) / 1e6

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """The most that a request of up to this size can cost, whichever part of it is cached or put into the cache."""
        input_price, output_price = self.dearest(input_tokens)
        return (input_tokens * input_price + output_tokens * output_price) / 1e6

    def dearest(self, input_tokens: int) -> tuple[float, float]:
        """The most that a token of the input and one of the output cost in a request of up to this size."""
        reached: tuple[Price | Tier, ...] = (self, *(tier for tier in self.tiers if tier.above < input_tokens))
        return (
            max(max(price.input, price.cache_read or 0.0, price.cache_write or 0.0) for price in reached),
            max(price.output for price in reached),
        )


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """The worst case of one request, set aside before it is made. Tokens are estimates."""

    input_tokens: int = 0
    output_tokens: int | None = None
    dollars: float | None = None


class Counting(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How the tokens of a first request are guessed. After it, the provider's reports say more."""

    rate: float = 1.0
    """Tokens for each estimated one (`transcript.estimate_tokens`)."""
    margin: float = 1.5
    """What no provider has counted yet is reserved so many times over."""
    source: str = ""
    """Where the rate comes from: the name of a tokenizer, or earlier runs; "" for nowhere."""

    def __post_init__(self) -> None:
        if not (0 < self.rate <= 1_000 and 1 <= self.margin <= 1_000):
            raise ValueError(
                f"Counting takes a rate above 0 and a margin from 1 up, both to 1,000; got {self.rate!r}, "
                f"{self.margin!r}"
            )


class Spent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a call used of the limits of its run, beside being a call: the use of the runs under it."""

    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Replies whose price is not known."""
    unmetered: int = 0
    """Replies that came without token counts."""
    presumed_tokens: int = 0
    """What was set aside where nobody said what was used: it counts as used, and is in no sum."""
    presumed_dollars: float = 0.0
    runs: tuple[str, ...] = ()
    """The runs."""

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @property
    def all_tokens(self) -> int:
        """What counts against a limit: also what nobody reported."""
        return self.tokens + self.presumed_tokens

    @property
    def all_dollars(self) -> float:
        """The same of dollars."""
        return self.dollars + self.presumed_dollars

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Left(msgspec.Struct, frozen=True, gc=False):
    """What is left of each limit; None where there is none."""

    steps: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None

    def sentence(self) -> str:
        """The limits in words, for the model and for people."""
        words = [
            f"{value:.2f} dollars" if name == "dollars" else f"{value:,.0f} {name.replace('_', ' ')}"
            for name in ("steps", "tool_calls", "tokens", "dollars", "seconds")
            if (value := getattr(self, name)) is not None
        ]
        return ", ".join(words) or "no limits"


NOTHING = Left()
"""Nothing set aside."""


def _unsaid(usage: Usage | None, reserved: Reservation) -> int:
    """Tokens that were set aside for what a report leaves out."""
    unsaid = reserved.input_tokens if usage is None or usage.input is None else 0
    return unsaid + ((reserved.output_tokens or 0) if usage is None or usage.output is None else 0)


class Account(msgspec.Struct):
    """What a run has used. Changed by the machine alone."""

    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Replies whose price is not known."""
    unmetered: int = 0
    """Replies that came without token counts."""
    retries: int = 0
    presumed_tokens: int = 0
    """What was set aside for requests of which nobody said what they used: it counts as used, and is in no sum."""
    presumed_dollars: float = 0.0
    children: Spent = Spent()
    """What the runs under its calls have used, beside the run's own use above."""
    held: Left = NOTHING
    """What is set aside for calls that may still spend it."""
    holders: int = 0
    """How many such calls there are."""

    also_steps: int = 0
    also_tool_calls: int = 0
    also_tokens: int = 0
    also_dollars: float = 0.0
    """What of each counts beside the run's own reported use: of children, set aside, presumed. See `recount`."""

    def recount(self) -> None:
        """Add up what counts beside the run's own reported use; whoever changes a part of that calls this."""
        children, held = self.children, self.held
        self.also_steps = children.steps + (held.steps or 0)
        self.also_tool_calls = children.tool_calls + (held.tool_calls or 0)
        self.also_tokens = self.presumed_tokens + children.all_tokens + (held.tokens or 0)
        self.also_dollars = self.presumed_dollars + children.all_dollars + (held.dollars or 0.0)

    @property
    def tokens(self) -> int:
        """Tokens that are used up or set aside, input and output together."""
        return self.input_tokens + self.output_tokens + self.also_tokens

    def settle(self, usage: Usage | None, dollars: float | None, reserved: Reservation) -> None:
        """Enter what one reply really used."""
        self.steps += 1
        self.enter(usage, dollars, reserved)

    def enter(self, usage: Usage | None, dollars: float | None, reserved: Reservation) -> None:
        """Enter what a request used, whether it became a step or broke off. Where nobody says it, or not all of it, as
        much as was reserved counts as used."""
        if usage is None or usage.input is None or usage.output is None:
            self.unmetered += 1
            self.presumed_tokens += _unsaid(usage, reserved)
            self.recount()
        if usage is not None:
            self.input_tokens += usage.input or 0
            self.output_tokens += usage.output or 0
            self.cache_read += usage.cache_read or 0
            self.cache_write += usage.cache_write or 0
            self.reasoning += usage.reasoning or 0
        if dollars is None:
            self.unpriced += 1
            if reserved.dollars:
                self._presume(reserved.dollars)
        else:
            self.dollars += dollars

    def lose(self, reserved: Reservation) -> None:
        """A request was made, and nobody will ever say what it used."""
        self.unmetered += 1
        self.presumed_tokens += _unsaid(None, reserved)
        self._presume(reserved.dollars)

    def _presume(self, dollars: float | None) -> None:
        self.presumed_dollars += dollars or 0.0
        self.recount()

    @property
    def all_steps(self) -> int:
        """Steps that are used up or set aside, those of children included."""
        return self.steps + self.also_steps

    @property
    def all_tool_calls(self) -> int:
        """The same of calls."""
        return self.tool_calls + self.also_tool_calls

    @property
    def all_dollars(self) -> float:
        """The same of dollars."""
        return self.dollars + self.also_dollars

    @property
    def doubt(self) -> str:
        """A few words where what is used is not all reported."""
        unsaid = self.unmetered + self.children.unmetered
        return f" or set aside for what nobody reported ({unsaid} replies)" if unsaid else ""

    def left(self, limits: Limits, seconds: float | None, back: Left = NOTHING) -> Left:
        """What `limits` leaves, never below zero, once `back` is given back."""
        steps, calls = self.all_steps - (back.steps or 0), self.all_tool_calls - (back.tool_calls or 0)
        tokens, dollars = self.tokens - (back.tokens or 0), self.all_dollars - (back.dollars or 0.0)
        return Left(
            None if limits.steps is None else max(0, limits.steps - steps),
            None if limits.tool_calls is None else max(0, limits.tool_calls - calls),
            None if limits.tokens is None else max(0, limits.tokens - tokens),
            None if limits.dollars is None else max(0.0, limits.dollars - dollars),
            None if seconds is None else max(0.0, seconds),
        )

    @property
    def spent(self) -> Spent:
        """What the run and its children used, as a call is charged with it."""
        own = Spent(
            steps=self.steps,
            tool_calls=self.tool_calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read=self.cache_read,
            cache_write=self.cache_write,
            reasoning=self.reasoning,
            dollars=self.dollars,
            unpriced=self.unpriced,
            unmetered=self.unmetered,
            presumed_tokens=self.presumed_tokens,
            presumed_dollars=self.presumed_dollars,
        )
        return own.plus(self.children)

    @property
    def charged(self) -> Spent:
        """The same for whoever has to pay for it: what is held for calls that were given up may still be spent."""
        if not self.holders:
            return self.spent
        held = self.held
        open_ = Spent(
            steps=held.steps or 0,
            tool_calls=held.tool_calls or 0,
            presumed_tokens=held.tokens or 0,
            presumed_dollars=held.dollars or 0.0,
            unpriced=1,
            unmetered=1,
        )
        return self.spent.plus(open_)


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Whether the next request fits: the reservation, or why not."""

    reserved: Reservation = Reservation()
    max_output_tokens: int | None = None
    refusal: str = ""


UNPRICED = (
    "there is a dollar limit, but the price of this model is not known: state it (Settings.price, --price, or the file "
    "of prices), or limit tokens instead"
)

BOUNDED_OUTPUT = 4096
"""Most tokens of a reply where there is a limit on tokens or dollars and nothing else was said. Every provider's
models take this; more (`Settings.max_output_tokens`) would be reserved in full at every request."""


def _reply_room(account: Account, limits: Limits, input_tokens: int) -> int | None:
    """Tokens that the limit leaves for the reply to such a request; None where there is no limit."""
    return None if limits.tokens is None else limits.tokens - account.tokens - input_tokens


def has_room(account: Account, limits: Limits, price: Price | None, input_tokens: int) -> bool:
    """Whether `reserve` would find a place for such a request; without a word on how much, or why not."""
    room = _reply_room(account, limits, input_tokens)
    if room is not None and room <= 0:
        return False
    return limits.dollars is None or not reserve(account, limits, price, input_tokens, None).refusal


def reserve(
    account: Account, limits: Limits, price: Price | None, input_tokens: int, max_output_tokens: int | None
) -> Verdict:
    """Fit the worst case of the next request into the budget, or say why it does not fit.

    A limit on tokens or dollars also bounds the reply that is asked for, so that what was reserved holds.
    """
    output = max_output_tokens
    if output is None and (limits.tokens is not None or limits.dollars is not None):
        output = BOUNDED_OUTPUT
    room = _reply_room(account, limits, input_tokens)
    if room is not None:
        if room <= 0:
            used = f"{account.tokens:,} of {limits.tokens:,} tokens are used{account.doubt}"
            return Verdict(refusal=f"{used}; the next request needs about {input_tokens:,} more")
        output = min(output or room, room)
    if limits.dollars is None:
        return Verdict(Reservation(input_tokens, output), output)
    if price is None:
        return Verdict(refusal=UNPRICED)
    money = limits.dollars - account.all_dollars - price.worst(input_tokens, 0)
    output_price = price.dearest(input_tokens)[1]
    room = int(max(0.0, min(money * 1e6 / output_price, 1 << 31))) if output_price > 0 else 1 << 31
    if money < 0 or room <= 0:
        spent, worst = f"${account.all_dollars:.4f} of ${limits.dollars:.4f}", price.worst(input_tokens, 1)
        return Verdict(refusal=f"{spent} are spent{account.doubt}; the next request needs ${worst:.4f}")
    if output_price > 0:
        output = min(output or room, room)
    return Verdict(Reservation(input_tokens, output, price.worst(input_tokens, output or 0)), output)
