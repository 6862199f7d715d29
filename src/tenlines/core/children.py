"""What calls may spend on their own (child runs): an equal share of what the run has left.

It is held until they say what they used. The sum of what is spent and what is held never passes a limit, whatever the
order in which calls start and end, and whatever becomes of them. A call that was given up keeps its share held until
its late end says more. What it was given before a crash stays held for good when it starts again: nobody will ever say
what it had used by then. It is otherwise where the call is one run (`ToolSpec.child`): that run is taken up again, and
says in the end all that it used since it began; so what its call is given anew takes the place of what it was given.

A run under a call that waits for somebody's decision leaves its call open: neither answered nor in doubt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import msgspec

from tenlines.core import events as ev
from tenlines.core.changes import find_call
from tenlines.core.effects import RunnableCall
from tenlines.core.limits import NOTHING, Account, Left, Limits, Reservation, Spent
from tenlines.core.state import Exchange, OpenCall, State, open_exchange, seconds_left
from tenlines.errors import InvalidEvent

_Amount = TypeVar("_Amount", int, float)


ID_LETTERS = "bcdfghjkmnpqrstvwxyz23456789"
"""What the ids of runs are made of: no vowels that could spell something."""
ID_LENGTH = 12


def child_id(key: str) -> str:
    """The id of the run that a call is (`ToolSpec.child`): the same whoever starts it, and whenever.

    Args:
        key: The key of the call, `RUN:STEP:POSITION`.
    """
    return derived_id(key)


def derived_id(text: str) -> str:
    """An id for a run that follows from a text."""
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())
    letters = []
    for _ in range(ID_LENGTH):
        number, index = divmod(number, len(ID_LETTERS))
        letters.append(ID_LETTERS[index])
    return "".join(letters)


def allowances(state: State, exchange: Exchange, reserved: Reservation, now: float) -> dict[int, Left]:
    """What each call that may start and spends is given, by its position: its share of what is left, when the run keeps
    enough for the other calls of the exchange and for one more request of its own."""
    sharers = [place for place, one in enumerate(exchange.calls) if _may_start(one) and _spends(one)]
    left = state.account.left(state.limits, seconds_left(state, now))
    own = reserved.input_tokens + (reserved.output_tokens or 0)
    calls = sum(_may_start(one) and not one.counted for one in exchange.calls)
    kept = Left(1, calls, own, reserved.dollars or 0.0)
    count = len(sharers)
    given: dict[int, Left] = {}
    for rank, place in enumerate(sharers):
        share = Left(
            _share(_beside(left.steps, kept.steps), rank, count),
            _share(_beside(left.tool_calls, kept.tool_calls), rank, count),
            _share(_beside(left.tokens, kept.tokens), rank, count),
            None if left.dollars is None else max(0.0, left.dollars - (kept.dollars or 0.0)) / count,
            left.seconds,
        )
        given[place] = _once_more(state, exchange.calls[place], share, kept)
    return given


def _once_more(state: State, one: OpenCall, share: Left, kept: Left) -> Left:
    """What a call is given: its share; with what it was given before, where its run is taken up again. Less than that,
    where a limit is lower by now."""
    back = _given_before((one,))
    if back is NOTHING:
        return share
    room = state.account.left(state.limits, None, back)

    def amount(name: str) -> Any:
        most, new = getattr(room, name), getattr(share, name)
        return None if most is None else max(0, min(new + (getattr(back, name) or 0), most - getattr(kept, name)))

    return Left(**{name: amount(name) for name in _LIMITED}, seconds=share.seconds)


def _beside(left: int | None, kept: int | None) -> int | None:
    return None if left is None else left - (kept or 0)


def _may_start(one: OpenCall) -> bool:
    return not (one.started or one.outcome or one.refusal or one.paused)


def _spends(one: OpenCall) -> bool:
    """Whether it draws on the limits of its run."""
    return one.spec is not None and one.spec.spends


def _given_before(calls: Iterable[OpenCall]) -> Left:
    """What is set aside for these, as far as it is given back when they start again."""
    back = NOTHING
    for one in calls:
        if one.allowance is not None and one.spec is not None and one.spec.child:
            back = _plus(back, one.allowance)
    return back


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
    left = state.account.left(state.limits, None, _given_before((one,)))
    if left.tool_calls is not None and not one.counted:
        left = msgspec.structs.replace(left, tool_calls=left.tool_calls - 1)  # the call itself
    for name in _LIMITED:
        limit, amount = getattr(state.limits, name), getattr(given, name)
        if (limit is None) != (amount is None) or not 0 <= (amount or 0) <= (getattr(left, name) or 0) * (1 + 1e-9):
            raise InvalidEvent(f"CallStarted gives {one.call.name!r} {amount!r} {name}, of {getattr(left, name)!r}")
    if one.allowance is not None and one.spec.child:
        _give_back(state.account, one.allowance)
    one.allowance = given
    state.account.held, state.account.holders = _plus(state.account.held, given), state.account.holders + 1
    state.account.recount()


def still_fit(state: State, calls: Collection[RunnableCall]) -> bool:
    """Whether calls that were offered together may all still start. They may not where one that has ended used more
    than it was given, which a provider can bring about that counts otherwise than was reserved."""
    if state.account.children == _NOTHING_SPENT or state.exchange is None:
        return True
    counted = state.exchange.calls
    left = state.account.left(state.limits, None, _given_before(counted[call.position] for call in calls))
    given = [call.allowance for call in calls if call.allowance is not None]
    starts = sum(not counted[call.position].counted for call in calls)
    for name in _LIMITED:
        wanted = sum(getattr(one, name) or 0 for one in given) + (starts if name == "tool_calls" else 0)
        room = getattr(left, name)
        if room is not None and wanted > room * (1 + 1e-9):
            return False
    return True


def settle(state: State, one: OpenCall, spent: Spent | None) -> None:
    """A call said what it used, which takes the place of what it was allowed. Where it does not say, that stays held.

    Raises:
        InvalidEvent: It was allowed nothing, or used less than nothing.
    """
    if spent is None:
        return
    if one.allowance is None:
        raise InvalidEvent(f"{one.call.name!r} was given nothing to spend on its own")
    if any(value < 0 for value in (getattr(spent, name) for name in _NUMBERS)):
        raise InvalidEvent(f"a call cannot spend less than nothing: {spent!r}")
    account = state.account
    _give_back(account, one.allowance)
    one.allowance = None
    account.children = account.children.plus(spent)
    account.recount()


def _give_back(account: Account, given: Left) -> None:
    """What was set aside is no longer."""
    account.holders -= 1
    account.held = _minus(account.held, given) if account.holders else NOTHING


def on_child_paused(state: State, event: ev.ChildPaused) -> None:
    """The run under a call waits for somebody's decision, and the call with it."""
    one = find_call(state, event, started=True)
    assert one.spec is not None
    if not state.tools[one.spec.name].child:
        raise InvalidEvent(f"ChildPaused: the call of {one.call.name!r} is no run that could pause")
    one.started, one.paused = False, event
    open_exchange(state).under_way -= 1


_LIMITED = ("steps", "tool_calls", "tokens", "dollars")
_NOTHING_SPENT = Spent()
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


def _minus(held: Left, given: Left) -> Left:
    return Left(
        _less(held.steps, given.steps),
        _less(held.tool_calls, given.tool_calls),
        _less(held.tokens, given.tokens),
        None if held.dollars is None else max(0.0, held.dollars - (given.dollars or 0.0)),
    )


def _less(held: int | None, given: int | None) -> int | None:
    return None if held is None else max(0, held - (given or 0))


def left_for(given: Left, spent: Spent, aside: Collection[Limits]) -> Left:
    """What a run under a call may use of its allowance, beside what the call has used and what is set aside for other
    runs under it."""

    def amount(name: str, used: float) -> Any:
        whole = getattr(given, name)
        return None if whole is None else max(0, whole - used - sum(getattr(one, name) or 0 for one in aside))

    amounts = (spent.steps, spent.tool_calls, spent.all_tokens, spent.all_dollars)
    return msgspec.structs.replace(
        given, **{name: amount(name, used) for name, used in zip(_LIMITED, amounts, strict=True)}
    )


def bounded(limits: Limits, given: Left) -> Limits:
    """The limits of a run that may use no more than it was given."""
    return Limits(
        steps=_smaller(limits.steps, given.steps),
        tool_calls=_smaller(limits.tool_calls, given.tool_calls),
        tokens=_smaller(limits.tokens, given.tokens),
        dollars=_smaller(limits.dollars, given.dollars),
        seconds=_smaller(limits.seconds, given.seconds),
        on_tool_limit=limits.on_tool_limit,
        last_words=limits.last_words,
    )


def _smaller(first: _Amount | None, second: _Amount | None) -> _Amount | None:
    return first if second is None else second if first is None else min(first, second)
