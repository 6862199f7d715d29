"""A viewer is owed what changed after his mark: each piece once, as it is now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.serve.boards import NOWHERE, Board, Mark, read_mark

IDS = st.sampled_from("abcdef")
ACTS = st.lists(st.one_of(st.lists(IDS, max_size=4), st.sampled_from(["slow", "quick"])), max_size=40)


@given(ACTS)
def test_whoever_looks_whenever_has_at_the_end_what_is_there(acts: list[list[str] | str]) -> None:
    """Two viewers, one of whom looks seldom. `now` is what each piece is; each viewer replaces what he is told."""
    board, now, moment = Board("e"), dict[str, int](), 0
    seen: dict[str, dict[str, int]] = {"slow": {}, "quick": {}}
    marks = {"slow": NOWHERE, "quick": NOWHERE}

    def look(who: str) -> None:
        told = board.since(marks[who])
        assert len(told) == len(set(told))
        assert all(seen[who].get(id) != now[id] for id in told)  # nobody is told what he has
        seen[who].update((id, now[id]) for id in told)
        marks[who] = board.mark
        assert board.since(marks[who]) == []

    for act in [*acts, "slow", "quick"]:
        if isinstance(act, str):
            look(act)
            continue
        moment += 1
        now.update(dict.fromkeys(act, moment))
        assert board.touch(act) == bool(act)
    assert seen["slow"] == seen["quick"] == now


def test_what_changed_comes_in_the_order_in_which_it_changed() -> None:
    board = Board("e")
    for ids in (["a", "b"], ["c"], ["a"]):
        board.touch(ids)
    assert board.since(NOWHERE) == ["b", "c", "a"]
    assert board.since(Mark("e", 2)) == ["a"]
    assert [board.revision_of(id) for id in "abc"] == [3, 1, 2]


def test_the_mark_of_another_board_has_seen_nothing() -> None:
    board = Board("e")
    board.touch("ab")
    assert board.since(Mark("other", 99)) == ["a", "b"]


@given(st.text(alphabet="abc0123456789", min_size=1), st.integers(0, 10**9))
def test_a_mark_comes_back_from_a_browser(epoch: str, revision: int) -> None:
    assert read_mark(str(Mark(epoch, revision))) == Mark(epoch, revision)


@pytest.mark.parametrize("text", ["", "x", "-", "a-", "a-b", "a-\u0661", "a-1e3", "a--1", "a-" + "9" * 40])
def test_what_is_no_mark_has_seen_nothing(text: str) -> None:
    assert read_mark(text) in (NOWHERE, Mark("a-", 1))


@given(st.text())
def test_no_text_is_too_odd_for_a_mark(text: str) -> None:
    assert read_mark(text).revision >= 0
