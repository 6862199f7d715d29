"""The laws of money: what is spent, held and reserved passes no limit, as long as nobody uses more than he was given.

Judged from the log alone, at every prefix of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from money_facts import KINDS

from tenlines.core import events as ev
from tenlines.core import metering
from tenlines.core.deciding import reservation
from tenlines.core.effects import CallModel, RunTools, Summarise
from tenlines.core.limits import Left
from tenlines.core.state import Phase

if TYPE_CHECKING:
    from laws import Checked

CENT = 1e-9
"""Dollars that do not count: sums of fractions differ by their order."""


def at_request(effect: Any) -> CallModel | None:
    """The request that an effect asks for."""
    return effect.request if isinstance(effect, Summarise) else effect if isinstance(effect, CallModel) else None


def the_account_is_what_the_log_says(run: Checked) -> None:
    facts, account = run.facts, run.machine.state.account
    money = facts.money
    assert account.all_steps == facts.used("steps"), "steps are counted otherwise"
    assert account.all_tool_calls == facts.used("tool_calls"), "calls are counted otherwise"
    assert account.tokens == facts.used("tokens"), "tokens are counted otherwise"
    assert abs(account.all_dollars - facts.used("dollars")) <= CENT * (1 + facts.used("dollars"))
    assert account.children == money.children or abs(account.children.dollars - money.children.dollars) <= CENT
    assert account.holders == len(money.open), "what is set aside is for others"
    assert (account.unmetered, account.unpriced) == (money.unmetered, money.unpriced), "what is not known is not said"
    if not money.open:
        assert account.held == Left(), "something is set aside for nobody"
        assert account.charged == account.spent
    for kind in KINDS:
        assert getattr(account.left(facts.limits, None), kind) is None or getattr(facts.limits, kind) is not None


def committed(run: Checked) -> dict[str, float]:
    """What is spent, set aside for calls, and reserved for the request under way."""
    return {kind: run.facts.used(kind) + run.facts.money.of_request(kind) for kind in KINDS}


def nothing_is_taken_on_past_a_limit(run: Checked) -> None:
    """What is committed passes no limit. It may be past one that was lowered; then it does not grow, but by what
    somebody used beyond what he was given."""
    facts, now = run.facts, committed(run)
    for kind in KINDS:
        limit = getattr(facts.limits, kind)
        if limit is None:
            continue
        past = kind == "steps" and facts.words_only and facts.limits.last_words
        allowed = max(limit + past, run.committed[kind] + facts.money.excess.get(kind, 0))
        slack = CENT * (1 + allowed) if kind == "dollars" else 0
        assert now[kind] <= allowed + slack, f"{now[kind]} {kind} are taken on, of {limit}"


def what_calls_are_offered_fits_together(run: Checked) -> None:
    """All calls of one effect may start, and there is enough for the calls beside them and for one more request."""
    effect, facts = run.effect, run.facts
    if not isinstance(effect, RunTools):
        return
    for call in effect.calls:
        spends = facts.tools[call.name].spends
        assert (call.allowance is not None) == spends, "a call that spends is given nothing, or another something"
    given = [call.allowance for call in effect.calls if call.allowance is not None]
    if not given:
        return
    new = sum(not facts.open[call.position].runs for call in effect.calls)
    own = reservation(run.machine.state)
    need = {
        "steps": 1,
        "tool_calls": new,
        "tokens": own.reserved.input_tokens + (own.reserved.output_tokens or 0),
        "dollars": own.reserved.dollars or 0.0,
    }
    for kind in KINDS:
        limit, shares = getattr(facts.limits, kind), [getattr(one, kind) for one in given]
        if limit is None:
            assert shares == [None] * len(shares), f"{kind} are given, and there is no limit"
            continue
        assert all(share >= 0 for share in shares)
        _are_equal(run, effect, kind, need[kind])
        if sum(shares):
            taken = facts.used(kind) - _given_back(run, effect, kind) + sum(shares) + need[kind]
            assert taken <= limit + CENT * (1 + limit), f"too many {kind} are given"
    _leaves_nothing_over(run, effect, need)


def _given_back(run: Checked, effect: RunTools, kind: str) -> float:
    """What is set aside for the calls of this effect that are one run, which is taken up again."""
    calls = (run.facts.open[call.position] for call in effect.calls if call.allowance is not None)
    return run.facts.money.held_for({one.place for one in calls if one.is_one_run}, kind)


def _are_equal(run: Checked, effect: RunTools, kind: str, need: float) -> None:
    """Each has as much as the others, beside what it had before; unless a limit is lower by now."""
    if getattr(run.facts.limits, kind) - run.facts.used(kind) < need and _given_back(run, effect, kind):
        return
    shares = []
    for call in effect.calls:
        if call.allowance is not None:
            one = run.facts.open[call.position]
            had = run.facts.money.held_for({one.place}, kind) if one.is_one_run else 0
            shares.append(getattr(call.allowance, kind) - had)
    assert min(shares) >= -CENT, "a run that is taken up is given less than it had"
    assert max(shares) - min(shares) <= (1 if kind != "dollars" else CENT), "the shares are not equal"


def _leaves_nothing_over(run: Checked, effect: RunTools, need: dict[str, float]) -> None:
    """Where nothing else waits, all is given that is left."""
    facts = run.facts
    offered = {call.position for call in effect.calls}
    if any(not one.outcome and not one.paused and one.position not in offered for one in facts.open):
        return
    for kind in ("steps", "tool_calls", "tokens"):
        limit = getattr(facts.limits, kind)
        if limit is not None:
            over = limit - facts.used(kind) + _given_back(run, effect, kind) - need[kind]
            shares = sum(getattr(call.allowance, kind) for call in effect.calls if call.allowance is not None)
            if over >= _given_back(run, effect, kind):
                assert shares == over, f"{kind} are kept back for nobody"
            elif not _given_back(run, effect, kind):
                assert not shares


def an_unknown_price_is_not_zero(run: Checked) -> None:
    """With a limit on dollars a model without a known price is asked nothing; and what is not known is not told."""
    facts, state = run.facts, run.machine.state
    if facts.start is None:
        return
    request = at_request(run.effect)
    if request is not None and run.phase is Phase.READY and facts.limits.dollars is not None:
        assert facts.start.settings.price is not None, "the model is asked, and nobody knows what that costs"
        assert request.reserved.dollars is not None
    if isinstance(run.event, ev.RunEnded | ev.LateResultArrived):
        is_known = not facts.money.unpriced and not facts.money.children.unpriced and not facts.money.open
        dollars = run.machine.result().dollars
        assert (dollars is not None) == is_known, "the cost is told and not known, or the other way round"
        charged, spent = state.account.charged, state.account.spent
        for kind in KINDS:
            assert getattr(charged, kind) >= getattr(spent, kind), "whoever pays is told of less than was used"
            told, used = getattr(charged, kind) + getattr(charged, f"presumed_{kind}", 0), facts.used(kind)
            assert abs(told - used) <= CENT * (1 + used), f"whoever pays is told of {told} {kind}, not of {used}"
        assert bool(charged.unpriced) == (not is_known)


def requests_are_reckoned_from_the_last_report(run: Checked) -> None:
    state, meter = run.machine.state, run.meter
    if run.facts.start is None:
        return
    likely, most = metering.likely(state), metering.most(state)
    assert 0 <= likely < float("inf"), "no number of tokens"
    assert abs(likely - meter.likely) <= 1e-6 * (1 + likely), f"{likely} tokens are likely, not {meter.likely}"
    assert abs(most - meter.most) <= 1 + 1e-9 * most, f"at most {most} tokens are reserved, not {meter.most}"
    assert most >= likely, "less is reserved than is likely"
    assert state.rate > 0
    if run.event is not None and isinstance(run.event, ev.ModelReplied) and not run.facts.open:
        usage = run.event.reply.usage
        new = state.estimated_tokens - meter.at
        if usage is not None and usage.input and meter.known == usage.input:
            assert abs(likely - usage.input - state.rate * new) < 1e-6 * (1 + likely), "the report counts for nothing"
    if isinstance(run.effect, CallModel) and run.phase is Phase.READY:
        assert run.effect.reserved.input_tokens == most, "the reservation is not for what would be sent"


def what_grows_only_grows(run: Checked) -> None:
    """Whatever is appended makes the next request larger, in both reckonings."""
    if isinstance(run.event, ev.ModelReplied | ev.ContextCompacted | ev.RunStarted | ev.RunResumed | ev.UndoRequested):
        return
    state, before = run.machine.state, run.reckoned
    assert metering.likely(state) >= before[0], "the next request became smaller, and nothing was cut"
    assert metering.most(state) >= before[1], "less is reserved, and nothing was cut"


LAWS_OF_MONEY = (
    the_account_is_what_the_log_says,
    nothing_is_taken_on_past_a_limit,
    what_calls_are_offered_fits_together,
    an_unknown_price_is_not_zero,
    requests_are_reckoned_from_the_last_report,
    what_grows_only_grows,
)
