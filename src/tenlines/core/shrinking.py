"""Whether the transcript is made smaller before the next request, and how. Asking changes nothing.

`context` knows which cuts are possible, `economics` what each is worth, this file when that is asked: when the context
or the number of steps has grown by `LOOK_AGAIN` since the last time, so that all looks together cost a constant share
of the run's work; and at once where the model's window leaves no choice.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from tenlines.core import context, metering
from tenlines.core.context import Arithmetic, Compaction, Span
from tenlines.core.economics import LOOK_AGAIN, Cut, Decision, Situation, cheapest, decide, rates_of
from tenlines.core.effects import Compact, Finish
from tenlines.core.limits import BOUNDED_OUTPUT, reserve
from tenlines.core.state import State
from tenlines.core.transcript import Assistant, Note, estimate_tokens

Why: TypeAlias = Literal["pays", "window", "asked"]

ROOM = 0.75
"""A cut that the window forces leaves at least a quarter of it free, where one can."""
WORTH = 0.25
"""Part of a request that a strategy must be able to take away to be used before those that come after it."""
FLOOR = 1.25
"""After a cut, `Compaction.at` asks for another when the request has grown by a quarter: one that did not help is not
made again at every step."""
UNKNOWN_STEPS = 10.0
"""Requests that are expected where neither earlier runs nor limits say anything."""
MOST_FAILURES = 2
"""Summaries in a row that came to nothing, after which none is asked for any more."""


class Wanted(NamedTuple):
    """A summary has to be asked for."""

    span: Span


class _Ground(NamedTuple):
    """What a decision rests on."""

    compaction: Compaction
    situation: Situation
    sizes: list[int]
    scale: float
    """Tokens for each estimated one."""
    output: int
    """Tokens that the reply may take."""


def shrink(state: State) -> Compact | Wanted | Finish | None:
    """The cut to make now; or that there is no way on; or None, to ask the model."""
    compaction = state.compaction
    if compaction is None:
        return None
    now, output = metering.likely(state), room_for_output(state)
    growth = _growth(state)
    why = _pressure(state, compaction, now, growth, output)
    if why is None and not _is_due(state, now) and state.cuts.summary is None:
        return None
    sizes = [estimate_tokens(message) for message in state.messages]
    scale = now / max(1, state.estimated_tokens)
    new = _new(state, now, sizes, scale)
    situation = Situation(now, new, growth, _steps(state, compaction), rates_of(state.settings.price, int(now)))
    ground = _Ground(compaction, situation, sizes, scale, output)
    if state.cuts.summary is not None:
        return _with_summary(state, ground, why or "pays")
    groups = _groups(state, ground)
    if why is not None:
        return _forced(state, ground, groups, why)
    options = _preferred(groups, WORTH * state.estimated_tokens)
    decision = decide(situation, [_as_cut(state, ground, span) for span in options], compaction.least_gain)
    return None if decision.index < 0 else _made(state, ground, options[decision.index], decision, "pays")


def _new(state: State, now: float, sizes: list[int], scale: float) -> float:
    """Tokens that no request held before: by the report on the last one, or by what was sent where there is none."""
    if not state.account.steps:
        return now
    return max(0.0, now - state.known_tokens) if state.known_estimate else scale * sum(sizes[state.sent :])


def _growth(state: State) -> float:
    steps = state.account.steps
    return state.rate * state.appended_tokens / steps if steps else 0.0


def room_for_output(state: State) -> int:
    """Tokens that a reply, or a summary, may take."""
    window = state.cuts.window
    most = state.settings.max_output_tokens or BOUNDED_OUTPUT
    return most if window is None else min(most, int(window / 4))


def most_output(state: State, asked: int) -> int | None:
    """Tokens that a reply to a request of so many may have in the window; None where that is not known."""
    window = state.cuts.window
    return None if window is None else max(1, room_for_output(state), int(window) - asked)


def _steps(state: State, compaction: Compaction) -> float:
    """Requests still expected, the next one included: from earlier runs, else from the limits."""
    done, limit = state.account.steps, state.limits.steps
    room = None if limit is None else float(max(1, limit - state.account.all_steps))
    still = [steps - done for steps in compaction.expected_steps if steps > done]
    guess = sum(still) / len(still) if still else UNKNOWN_STEPS if room is None else room
    return guess if room is None else min(guess, room)


def _pressure(state: State, compaction: Compaction, now: float, growth: float, output: int) -> Why | None:
    """What leaves no choice: after one more step nobody could ask for a summary, or more is held than was wanted."""
    cuts, held = state.cuts, float(metering.most(state))
    if not cuts.is_fresh:  # what was just cut for the steps to come has only to hold the next one
        held = max(held, _soon(state, now, growth) + _question_tokens(compaction))
    if cuts.window is not None and held + output > cuts.window:
        return "window"
    is_asked = compaction.at is not None and now > max(compaction.at, cuts.floor) and _is_due(state, now)
    return "asked" if is_asked else None


def _soon(state: State, now: float, growth: float) -> float:
    """What would be set aside for the request after the next one.

    Before the first reply of a run that is the next turn of the conversation, in which again nothing is counted yet: it
    grows by as much as each reply so far, with its results and what was said to it.
    """
    if state.account.steps:
        return now + growth * state.margin
    first = next((at for at, one in enumerate(state.messages) if isinstance(one, Assistant)), len(state.messages))
    talk = state.messages[first:]
    replies = sum(isinstance(one, Assistant) for one in talk)
    added = state.rate * sum(map(estimate_tokens, talk)) / max(1, replies)
    return (now + added) * state.margin


def note_look(state: State) -> None:
    """A request goes out: when it is looked again whether a cut pays."""
    assert state.compaction is not None
    state.cuts.is_fresh = False
    now, at = metering.likely(state), state.compaction.at
    if _is_due(state, now):
        look_again(state, now)
    if at is not None and now < at:
        state.cuts.look_at = min(state.cuts.look_at, at)


def look_again(state: State, now: float) -> None:
    """The next look is due when the request, or the number of steps, has grown by so much."""
    done = state.account.steps
    state.cuts.look_at, state.cuts.look_at_step = now * LOOK_AGAIN, max(done + 1.0, done * LOOK_AGAIN)


def _is_due(state: State, now: float) -> bool:
    return now >= state.cuts.look_at or state.account.steps >= state.cuts.look_at_step


# --- which cut ---------------------------------------------------------------------------------------


def _forced(state: State, ground: _Ground, groups: list[list[Span]], why: Why) -> Compact | Wanted | Finish | None:
    """The cut that makes enough room: by the first strategy that can, as cheaply as it can."""
    window = state.cuts.window if why == "window" else None
    for share in (ROOM, 1.0):
        room = float("inf") if window is None else share * (window - ground.output)
        for options in groups:
            fitting = [span for span in options if _reserved(state, ground, span) <= room]
            if fitting:
                decision = cheapest(ground.situation, [_as_cut(state, ground, span) for span in fitting])
                return _made(state, ground, fitting[decision.index], decision, why)
    if window is None or metering.most(state) + ground.output <= window:
        return None
    span, now = context.last_resort(state.messages, ground.sizes), ground.situation.tokens
    after = now if span is None else _as_cut(state, ground, span).tokens
    if after + ground.output > window:
        return Finish("context_overflow", _too_long(metering.most(state), ground.output, window), None)
    if span is None:
        return None  # it is more only if what is new was estimated too low, and nothing can be done about that
    return _made(state, ground, span, cheapest(ground.situation, [_as_cut(state, ground, span)]), why)


def _reserved(state: State, ground: _Ground, span: Span) -> float:
    """What would be set aside for the next request after a cut."""
    now, after = ground.situation.tokens, _as_cut(state, ground, span).tokens
    if state.known_tokens <= now - after:  # nothing of what is left would count as counted
        return after * state.margin
    return after + metering.most(state) - now


def _too_long(held: int, output: int, window: float) -> str:
    return (
        f"the next request may hold {held:,} tokens and its reply {output:,}, and the model takes in {window:,.0f}; "
        "nothing more can be left out: limit what tools return (max_result) or the reply (max_output_tokens), let "
        'compaction "drop" what is old, or resume with a model that takes in more'
    )


def _groups(state: State, ground: _Ground) -> list[list[Span]]:
    """The cuts that are possible, by strategy, in the order of preference."""
    found = context.spans(state.messages, ground.sizes, ground.compaction)
    groups = [[span for span in found if span.strategy == one] for one in ground.compaction.strategies]
    return [one for one in groups if one and (one[0].strategy != "summarise" or may_summarise(state))]


def _preferred(groups: list[list[Span]], worth: float) -> list[Span]:
    """The cuts of the first strategy that can take away so much; of the one that can take away most where none can."""
    for one in groups:
        if _most_taken(one) >= worth:
            return one
    return max(groups, key=_most_taken, default=[])


def _most_taken(options: list[Span]) -> int:
    return max(span.tokens - span.left for span in options)


def _question_tokens(compaction: Compaction) -> int:
    return estimate_tokens(context.question(compaction.summary_tokens))


def may_summarise(state: State) -> bool:
    """Whether a summary may be asked for before the next request: it must fit, be paid for, and have a chance."""
    cuts, settings = state.cuts, state.settings
    assert state.compaction is not None
    if cuts.failures >= MOST_FAILURES or cuts.tried_at == state.account.steps:
        return False
    asked = metering.most(state) + _question_tokens(state.compaction)
    if cuts.window is not None and asked + room_for_output(state) > cuts.window:
        return False
    return not reserve(state.account, state.limits, settings.price, asked, room_for_output(state)).refusal


def _as_cut(state: State, ground: _Ground, span: Span) -> Cut:
    before = state.tools_tokens + sum(ground.sizes[: span.start])
    now, summary = ground.situation.tokens, span.strategy == "summarise"
    left = span.left if summary else span.left * ground.scale
    question = _question_tokens(ground.compaction) if summary else 0
    return Cut(
        before * ground.scale,
        max(0.0, now - span.tokens * ground.scale + left),
        1.0 if span.strategy != "elide" else 1.0 - span.left / max(1, span.tokens),
        float(question),
        float(ground.compaction.summary_tokens) if summary else 0.0,
    )


def _made(state: State, ground: _Ground, span: Span, decision: Decision, why: Why) -> Compact | Wanted:
    if span.strategy == "summarise":
        return Wanted(span)
    return _compact(state, ground, span, decision, why, "")


def _compact(state: State, ground: _Ground, span: Span, decision: Decision, why: Why, summary: str) -> Compact:
    after = _as_cut(state, ground, span).tokens
    arithmetic = Arithmetic(
        why=why,
        tokens_before=int(ground.situation.tokens),
        tokens_after=int(after),
        steps=ground.situation.steps,
        saves=decision.saves,
        costs=decision.costs,
        unit="tokens" if state.settings.price is None else "dollars",
    )
    return Compact(span.strategy, span.start, span.end, arithmetic, summary)


def _with_summary(state: State, ground: _Ground, why: Why) -> Compact:
    """The summary is there and can be put in its place."""
    assert state.cuts.summary is not None
    start, end, text = state.cuts.summary
    span = Span("summarise", start, end, sum(ground.sizes[start:end]), estimate_tokens(Note(text, summary=True)))
    cut = _as_cut(state, ground, span)._replace(written=float(span.left))
    return _compact(state, ground, span, cheapest(ground.situation, [cut]), why, text)
