"""What calls may spend on their own (child runs): an equal share of what the run has left.

It is held until they say what they used. The sum of what is spent and what is held never passes a limit, whatever the
order in which calls start and end, and whatever becomes of them. A call that was given up keeps its share held until
its late end says more.
"""

from __future__ import annotations

from tenlines.core.limits import NOTHING, Left, Limits, Reservation, Spent
from tenlines.core.state import Exchange, OpenCall, State, seconds_left
from tenlines.errors import InvalidEvent


def allowance(state: State, exchange: Exchange, position: int, reserved: Reservation, now: float) -> Left:
    """What the call may spend: its share of what is left, when the run keeps enough for one more request of its own."""
    sharers = [place for place, one in enumerate(exchange.calls) if _may_spend(one)]
    rank, count = sharers.index(position), len(sharers)
    left = state.account.left(state.limits, seconds_left(state, now))
    own = reserved.input_tokens + (reserved.output_tokens or 0)
    return Left(
        _share(None if left.steps is None else left.steps - 1, rank, count),
        _share(left.tool_calls, rank, count),
        _share(None if left.tokens is None else left.tokens - own, rank, count),
        None if left.dollars is None else max(0.0, left.dollars - (reserved.dollars or 0.0)) / count,
        left.seconds,
    )


def _may_spend(one: OpenCall) -> bool:
    return one.spec is not None and one.spec.spends and not (one.started or one.outcome or one.refusal)


def _share(amount: int | None, rank: int, count: int) -> int | None:
    """Whole things are shared out; the first ones get what is over."""
    if amount is None:
        return None
    each, over = divmod(max(0, amount), count)
    return each + (rank < over)


def hold(state: State, one: OpenCall, given: Left | None) -> None:
    """Set aside what a call may spend.

    Raises:
        InvalidEvent: It was given nothing where it must be, something where it may not, or more than there is.
    """
    assert one.spec is not None
    if (given is not None) != one.spec.spends:
        raise InvalidEvent(f"CallStarted: {one.call.name!r} spends {'' if one.spec.spends else 'nothing '}on its own")
    if given is None:
        return
    left = state.account.left(state.limits, None)
    if one.allowance is not None:  # it had started before a crash
        left = _plus(left, one.allowance)
    for name in ("steps", "tool_calls", "tokens", "dollars"):
        limit, amount = getattr(state.limits, name), getattr(given, name)
        if (limit is None) != (amount is None) or not 0 <= (amount or 0) <= (getattr(left, name) or 0) * (1 + 1e-9):
            raise InvalidEvent(f"CallStarted gives {one.call.name!r} {amount!r} {name}, of {getattr(left, name)!r}")
    release(state, one)
    one.allowance = given
    state.account.held = _plus(state.account.held, given)
    state.account.holders += 1


def release(state: State, one: OpenCall) -> None:
    """What was set aside for a call is not any more."""
    if one.allowance is None:
        return
    held, given = state.account.held, one.allowance
    one.allowance = None
    state.account.holders -= 1
    if not state.account.holders:
        state.account.held = NOTHING  # exactly: sums of dollars leave a rest
        return
    state.account.held = Left(
        _less(held.steps, given.steps),
        _less(held.tool_calls, given.tool_calls),
        _less(held.tokens, given.tokens),
        None if held.dollars is None else max(0.0, held.dollars - (given.dollars or 0.0)),
    )


def settle(state: State, one: OpenCall, spent: Spent | None) -> None:
    """A call said what it used, which takes the place of what it was allowed."""
    if one.allowance is None and spent is None:
        return
    if spent is not None:
        if one.spec is None or not one.spec.spends:
            raise InvalidEvent(f"{one.call.name!r} does not spend on its own")
        if any(value < 0 for value in (getattr(spent, name) for name in _NUMBERS)):
            raise InvalidEvent(f"a call cannot spend less than nothing: {spent!r}")
    release(state, one)
    if spent is not None:
        state.account.children = state.account.children.plus(spent)


_NUMBERS = tuple(name for name in Spent.__struct_fields__ if name != "runs")


def _plus(first: Left, second: Left) -> Left:
    return Left(
        _sum(first.steps, second.steps),
        _sum(first.tool_calls, second.tool_calls),
        _sum(first.tokens, second.tokens),
        None if first.dollars is None and second.dollars is None else (first.dollars or 0.0) + (second.dollars or 0.0),
    )


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None and second is None else (first or 0) + (second or 0)


def _less(held: int | None, given: int | None) -> int | None:
    return None if held is None else max(0, held - (given or 0))


def bounded(limits: Limits, given: Left) -> Limits:
    """The limits of a run that may use no more than it was given."""
    return Limits(
        steps=_smaller(limits.steps, given.steps),
        tool_calls=_smaller(limits.tool_calls, given.tool_calls),
        tokens=_smaller(limits.tokens, given.tokens),
        dollars=limits.dollars if given.dollars is None else min(given.dollars, limits.dollars or given.dollars),
        seconds=limits.seconds if given.seconds is None else min(given.seconds, limits.seconds or given.seconds),
        on_tool_limit=limits.on_tool_limit,
        last_words=limits.last_words,
    )


def _smaller(first: int | None, second: int | None) -> int | None:
    return first if second is None else second if first is None else min(first, second)
