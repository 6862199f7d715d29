"""The laws in the worlds about money and cuts: calls that spend under tight limits, and transcripts that are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from endless import drive_on
from hypothesis import given, settings
from hypothesis import strategies as st
from test_machine_laws import told
from world import LONGER, Kind, World, walk

from tenlines.core import events as ev
from tenlines.core import metering
from tenlines.core.limits import Counting
from tenlines.core.state import State
from tenlines.core.transcript import Usage

WALKS = {"money": 3_000, "long": 1_500}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(WALKS))
def test_every_law_holds_where_money_is_tight_and_where_transcripts_are_cut(
    kind: Kind, counts: Counter[str], say: Callable[[str], None]
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(WALKS[kind]):
        world = checked(seed, kind)
        seen.update(what_happened(world))
        counts["random event sequences"] += 1
        counts["events in random sequences"] += len(world.log)
    assert min(seen[name] for name in FREQUENT[kind]) >= WALKS[kind] / 20, f"too little happens: {seen}"
    say(f"{kind}: " + ", ".join(f"{seen[name]:,} {name}" for name in sorted(seen)))


FREQUENT = {
    "money": ("allowances", "given up with an allowance", "started again after a crash", "late ends that say"),
    "long": ("cuts", "summaries", "summaries that fail", "refused for their length"),
}


def checked(seed: int, kind: Kind) -> World:
    """A walk; a law that is broken says which, and what happened."""
    try:
        return walk(seed, LONGER, kind)
    except AssertionError as error:
        pytest.fail(f"walk({seed}, {LONGER}, {kind!r}): {error or 'a law was broken'}")


def what_happened(world: World) -> Counter[str]:
    """How often the things happen that these worlds are about."""
    seen: Counter[str] = Counter()
    for event in world.log:
        match event:
            case ev.CallStarted(allowance=allowance) if allowance is not None:
                seen["allowances"] += 1
            case ev.LateResultArrived(spent=spent) if spent is not None:
                seen["late ends that say"] += 1
            case ev.ContextCompacted():
                seen["cuts"] += 1
            case ev.SummaryEnded(reply=reply):
                seen["summaries" if reply is not None else "summaries that fail"] += 1
            case ev.ModelFailed(kind="ContextTooLong"):
                seen["refused for their length"] += 1
    starts = Counter(one.place for one in world.run.facts.money.purses)
    seen["started again after a crash"] += sum(number - 1 for number in starts.values())
    given_up = {(one.step, one.position) for one in world.log if isinstance(one, ev.CallTimedOut | ev.CallAbandoned)}
    seen["given up with an allowance"] += len(given_up & starts.keys())
    return seen


@pytest.mark.parametrize("kind", ["", "money", "long"])
def test_a_few_walks_of_each_kind_keep_every_law(kind: Kind) -> None:
    for seed in range(25):
        checked(seed, kind)


@pytest.mark.parametrize("kind", ["", "money", "long"])
def test_from_anywhere_a_run_goes_on_or_ends_and_never_turns_in_a_circle(kind: Kind, counts: Counter[str]) -> None:
    """A model that never ends and never writes a summary: each step takes a bounded number of effects."""
    go_on(range(10), kind, counts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "money", "long"])
def test_from_very_many_places_a_run_goes_on_or_ends(kind: Kind, counts: Counter[str]) -> None:
    go_on(range(10, 150), kind, counts)


def go_on(seeds: range, kind: Kind, counts: Counter[str]) -> None:
    for seed in seeds:
        for moves in (5, 20, LONGER):
            counts["effects of runs that were driven on"] += drive_on(walk(seed, moves, kind))


# --- the reckoning of tokens -----------------------------------------------------------------------------

COUNTS = st.one_of(st.none(), st.integers(0, 1 << 50))
USED = st.one_of(st.none(), st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS))
APPENDED = st.one_of(st.integers(0, 50), st.integers(0, 10**9))
CUT = st.floats(0, 1)
MOVES = st.lists(st.one_of(USED, APPENDED, CUT.map(lambda part: ("cut", part))), max_size=15)
COUNTING = st.builds(Counting, rate=st.floats(1e-6, 1_000), margin=st.floats(1, 1_000))


@settings(max_examples=100)
@given(counting=COUNTING, moves=MOVES)
def test_no_report_does_any_harm(counting: Counting, moves: list[Any]) -> None:
    state = State()
    metering.begin(state, counting)
    for move in moves:
        before = (metering.likely(state), metering.most(state))
        if isinstance(move, tuple):
            whole = state.estimated_tokens
            state.estimated_tokens = int(whole * move[1])
            metering.forget_part(state, whole)
            most = max(before[0], state.rate * state.estimated_tokens)  # as if nothing of it had ever been counted
            assert metering.likely(state) <= most * (1 + 1e-9) + 1e-6, "a cut made the next request larger"
        elif isinstance(move, int):
            state.estimated_tokens += move
            assert metering.likely(state) >= before[0], "what was appended made the next request smaller"
            assert metering.most(state) >= before[1], "less is reserved for more"
        else:
            metering.learn(state, move)
            if move is not None and move.input and state.estimated_tokens:
                assert metering.likely(state) == move.input, "the report is not where the next estimate starts"
        assert 0 <= metering.likely(state) < float("inf")
        assert metering.most(state) >= max(1, metering.likely(state))
        assert isinstance(metering.most(state), int)
        assert 0 < state.rate <= max(counting.rate, metering.MOST_RATE)


def test_a_failing_walk_of_these_kinds_is_told_as_code() -> None:
    assert "ev.CallStarted(" in told(walk(1, LONGER, "money")) + told(walk(2, LONGER, "money"))
