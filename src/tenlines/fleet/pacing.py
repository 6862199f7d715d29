"""How fast models are asked: a rate for each, which holds over all workers of a fleet together.

It is kept by "virtual scheduling" (the generic cell rate algorithm): all that is known of a model is when the next
request to it may be sent. Whoever wants to ask takes that place and moves it on by what the request costs. There is no
queue, no count and no lease; what nobody asks for is nobody's.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import weakref
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply, Usage
from tenlines.drivers.threads import loop_thread
from tenlines.errors import ConfigError
from tenlines.ports import Clock, Model, OnDelta, Session, SystemClock, plain_name

AHEAD_S = 2.0
"""How far ahead a place can be taken. Whoever would have to wait longer asks again: so a run that is cancelled, or a
worker that dies, loses at most so many seconds of the rate."""
LONGEST_S = 30.0
"""After so long somebody who waits asks again in any case."""


class Rate(msgspec.Struct, frozen=True):
    """How fast a model may be asked by the whole fleet.

    Requests are spread evenly. So in any `per_s` seconds at most `requests` are sent, and requests of at most `tokens`
    and one request more. With `burst_s`, each may be more by what the rate allows in `burst_s`.

    Raises:
        ConfigError: A number makes no sense, or nothing is limited.
    """

    requests: float | None = None
    """In `per_s`. None: no limit."""
    tokens: float | None = None
    """Of input and output, in `per_s`. None: no limit."""
    per_s: float = 60.0
    """Seconds."""
    burst_s: float = 0.0
    """Seconds of the rate that may be used at once after a pause."""

    def __post_init__(self) -> None:
        if self.requests is None and self.tokens is None:
            raise ConfigError("this Rate limits nothing: say how many requests or tokens, or leave the model out")
        for name in ("requests", "tokens", "per_s"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < float("inf"):
                raise ConfigError(f"Rate.{name} must be a number above 0, got {value!r}")
        if not 0.0 <= self.burst_s < float("inf"):
            raise ConfigError(f"Rate.burst_s must be a number of seconds from 0 up, got {self.burst_s!r}")

    @property
    def request_s(self) -> float:
        """Seconds of the rate that a request takes."""
        return 0.0 if self.requests is None else self.per_s / self.requests

    def tokens_s(self, tokens: int) -> float:
        """Seconds of the rate that so many tokens take."""
        return 0.0 if self.tokens is None else tokens * self.per_s / self.tokens


# --- places in time -----------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """What is known of a model. Unix seconds."""

    taken_at: float
    """When the last place was taken."""
    send_at: float
    """The last place."""
    requests_at: float
    """Until when the rate of requests is used up."""
    tokens_at: float
    """The same for tokens."""


class Answer(NamedTuple):
    """Whether a place was taken, and how many seconds ahead it is or would have been."""

    is_taken: bool
    ahead_s: float


def booked(schedule: Schedule | None, rate: Rate, tokens: int, now: float) -> Schedule:
    """The next place, with what is left after it.

    Both limits make one place, so that requests which waited for tokens do not come all at once. A clock that was set
    back takes the schedule with it: nobody waits for the time to be made up.

    Args:
        schedule: What is known; None for a model that was never asked.
        rate: Its rate.
        tokens: Of this request.
        now: Unix seconds.
    """
    taken_at, _, requests_at, tokens_at = schedule or Schedule(now, now, now, now)
    back = max(0.0, taken_at - now)
    requests_at, tokens_at = requests_at - back, tokens_at - back
    send = max(now, max(requests_at, tokens_at) - rate.burst_s)
    return Schedule(now, send, max(send, requests_at) + rate.request_s, max(send, tokens_at) + rate.tokens_s(tokens))


class Pace(Protocol):
    """Says when a model may be asked."""

    def limits(self, model: str) -> bool:
        """Whether the model of that plain name (`tenlines.ports.plain_name`) has a rate."""
        ...

    async def take(self, model: str, tokens: int) -> float:
        """Take the next place for one request. Who takes it and does not send has lost it.

        Args:
            model: Its plain name.
            tokens: About how many the request and its reply have.

        Returns:
            Seconds to wait from now on, before the request may be sent. 0 at once where the model has no rate.

        Raises:
            ConnectionFailed: Nobody can say, and it was tried for long: the request was not sent, a repeat may be.
        """
        ...

    def close(self) -> None:
        """Let go of what it holds open."""
        ...


class InLine(ABC):
    """A pace in which those of one process who want to ask a model stand in line: only the first of them asks for a
    place, and asks again while it would be too far ahead.

    Within a process it is first come, first served; among processes nobody is preferred.

    Args:
        rates: Names of models and their rates. `text+NAME` is the same as `NAME`.
        clock: Waits.
    """

    def __init__(self, rates: Mapping[str, Rate], clock: Clock | None = None) -> None:
        self._rates = {plain_name(name): rate for name, rate in rates.items()}
        for name, rate in self._rates.items():
            if not isinstance(rate, Rate):
                raise ConfigError(f"the rate of {name} must be a Rate(requests=..., tokens=...), got {rate!r:.100}")
        self._clock = clock or SystemClock()
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, asyncio.Lock]] = (
            weakref.WeakKeyDictionary()
        )

    def limits(self, model: str) -> bool:
        """Whether the model has a rate."""
        return model in self._rates

    @abstractmethod
    async def ask(self, model: str, rate: Rate, tokens: int) -> Answer:
        """Take the next place, unless it is further ahead than `AHEAD_S`."""

    async def take(self, model: str, tokens: int) -> float:
        """The next place (`Pace.take`)."""
        rate = self._rates.get(model)
        if rate is None:
            return 0.0
        lines = self._lines.setdefault(asyncio.get_running_loop(), defaultdict(asyncio.Lock))
        async with lines[model]:
            while not (answer := await self.ask(model, rate, tokens)).is_taken:
                await self._clock.sleep(_until_near(answer.ahead_s))
        return max(0.0, answer.ahead_s)


def _until_near(ahead_s: float) -> float:
    """Seconds after which to ask again: each waits for another part of `AHEAD_S` to be gone, not all for the same."""
    near = AHEAD_S * secrets.SystemRandom().uniform(0.25, 0.75)
    return min(LONGEST_S, max(0.0, ahead_s - near))


class LocalPace(InLine):
    """Rates that hold within this process alone: for a journal in SQLite, which one worker has to itself.

    Args:
        rates: Names of models and their rates.
        clock: Where the time comes from.

    Raises:
        ConfigError: What is given for a model is no `Rate`.
    """

    def __init__(self, rates: Mapping[str, Rate], clock: Clock | None = None) -> None:
        super().__init__(rates, clock)
        self._schedules: dict[str, Schedule] = {}
        self._booking = threading.Lock()  # runs may be driven in several threads

    async def ask(self, model: str, rate: Rate, tokens: int) -> Answer:
        """Take the next place, unless it is too far ahead."""
        with self._booking:
            now = self._clock.now()
            after = booked(self._schedules.get(model), rate, tokens, now)
            is_near = after.send_at - now <= AHEAD_S
            if is_near:
                self._schedules[model] = after
        return Answer(is_near, after.send_at - now)

    def close(self) -> None:
        """There is nothing to let go of."""


# --- models -------------------------------------------------------------------------------------------


class Paced:
    """A model that is asked no faster than the fleet may ask it. All else is as it was.

    How many tokens a request has is what the run set aside for it; what a reply then used beyond that, or did not use,
    is counted with the next request. The wait counts as part of the request: the time limit of a run holds for it, and
    cancelling ends it, which loses the place that was taken.

    Args:
        model: The model.
        pace: Says when it may be asked. A model without a rate is asked at once.
        clock: Waits.
    """

    def __init__(self, model: Model, pace: Pace, clock: Clock | None = None) -> None:
        self.inner, self._pace = model, pace
        self._clock, self._tally = clock or SystemClock(), _Tally()

    @property
    def name(self) -> str:
        """The model's own."""
        return self.inner.name

    def __getattr__(self, name: str) -> Any:
        """What only some models have."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        found = getattr(self.inner, name)
        return self._begin_with(found) if name == "session_with" else found

    def session(self) -> Session:
        """Begin the conversation of one run."""
        return self._paced(self.inner.session())

    def _begin_with(self, begin: Callable[[Any], Session]) -> Callable[[Any], Session]:
        return lambda stops: self._paced(begin(stops))

    def _paced(self, session: Session) -> Session:
        return _PacedSession(session, self) if self._pace.limits(plain_name(self.name)) else session

    async def turn(self, request: CallModel) -> None:
        """Take a place for the request, and wait for it."""
        wait_s = await self._pace.take(plain_name(self.name), self._tally.due(_set_aside(request)))
        if wait_s > 0:
            await self._clock.sleep(wait_s)

    def settle(self, request: CallModel, reply: Reply) -> None:
        """The request was answered: count what was really used."""
        self._tally.settle(_set_aside(request), reply.usage)


class _PacedSession:
    def __init__(self, inner: Session, model: Paced) -> None:
        self._inner, self._model = inner, model

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Wait for the place of the request, then ask."""
        loop_thread.wait_for(self._model.turn(request))
        reply = self._inner.complete(request, on_delta)
        self._model.settle(request, reply)
        return reply

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio."""
        await self._model.turn(request)
        reply = await self._inner.acomplete(request, on_delta)
        self._model.settle(request, reply)
        return reply


class _Tally:
    """Tokens that were used and not yet paced, or paced and not used (then below 0)."""

    def __init__(self) -> None:
        self._owed = 0
        self._counting = threading.Lock()  # runs may be driven in several threads

    def due(self, tokens: int) -> int:
        with self._counting:
            due = max(0, tokens + self._owed)
            self._owed += tokens - due
        return due

    def settle(self, tokens: int, usage: Usage | None) -> None:
        if usage is None or usage.input is None:
            return
        with self._counting:
            self._owed += usage.input + (usage.output or 0) - tokens


def _set_aside(request: CallModel) -> int:
    """Tokens of a request and its reply, at most or as far as is known."""
    return request.reserved.input_tokens + (request.reserved.output_tokens or 0)
