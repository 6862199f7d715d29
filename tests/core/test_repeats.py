"""Finding loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.limits import Repeats
from tenlines.core.repeats import LONGEST_PERIOD, RepeatTracker, Signature, describe, signature

RULES = Repeats()
Exchange = tuple[Signature | None, ...]


def call(letter: str, result: str = "same") -> Exchange:
    return (signature("look", f'{{"a":"{letter}"}}', "ok", result),)


def watch(exchanges: list[Exchange], rules: Repeats = RULES) -> tuple[int, int]:
    """After how many exchanges the model was first told of a loop, and after how many the run ended; 0 for never."""
    tracker, told = RepeatTracker(), 0
    for number, exchange in enumerate(exchanges, 1):
        finding = tracker.look(exchange, rules)
        if finding.stuck:
            return told, number
        if any("Do something else" in note for note in finding.notes):
            told = told or number
    return told, 0


def rounds(pattern: str, times: int, before: str = "") -> list[Exchange]:
    return [call(letter) for letter in before + pattern * times]


def test_the_same_call_with_the_same_result_is_told_at_the_third_and_ended_at_the_fourth() -> None:
    assert watch(rounds("A", 9)) == (3, 4)


def test_a_cycle_of_two_is_told_after_three_rounds_and_ended_after_four() -> None:
    assert watch(rounds("AB", 9)) == (6, 8)


def test_a_cycle_of_three_is_told_after_three_rounds_and_ended_after_four() -> None:
    assert watch(rounds("ABC", 9)) == (9, 12)


@pytest.mark.parametrize("period", range(1, LONGEST_PERIOD + 1))
def test_every_cycle_up_to_the_longest_is_ended_after_four_rounds(period: int) -> None:
    assert watch(rounds("ABCDEF"[:period], 9)) == (3 * period, 4 * period)


@pytest.mark.parametrize("before", ["X", "XY", "XYZ", "BX", "AX"])
@pytest.mark.parametrize("pattern", ["A", "AB", "ABC"])
def test_a_loop_that_starts_later_ends_after_the_same_number(pattern: str, before: str) -> None:
    period = len(pattern)
    assert watch(rounds(pattern, 9, before)) == (len(before) + 3 * period, len(before) + 4 * period)


@pytest.mark.parametrize("pattern", ["AAAB", "BAAA", "AABA", "AAABB"])
def test_a_short_loop_inside_a_long_one_does_not_hide_the_long_one(pattern: str) -> None:
    told, ended = watch(rounds(pattern, 9))
    assert told
    assert 0 < ended <= 5 * len(pattern)


def test_a_whole_batch_of_calls_that_repeats_is_a_loop() -> None:
    batch = call("A") + call("B")
    assert watch([batch] * 9) == (3, 4)


def test_batches_that_differ_in_one_call_are_no_loop() -> None:
    assert watch([call("A") + call(f"{number}") for number in range(40)]) == (0, 0)


def test_polling_whose_results_change_is_no_loop() -> None:
    assert watch([call("A", f"{number} % done") for number in range(40)]) == (0, 0)


def test_paging_is_no_loop_even_if_every_page_looks_the_same() -> None:
    assert watch([call(f"page {number}") for number in range(40)]) == (0, 0)


def test_a_call_whose_repetition_is_its_job_never_counts() -> None:
    assert watch([(None,)] * 40) == (0, 0)


def test_a_call_that_is_made_often_but_between_others_is_told_once_and_never_ended() -> None:
    tracker = RepeatTracker()
    notes: list[str] = []
    for number in range(60):
        finding = tracker.look(call("test") if number % 2 else call(f"edit {number}"), RULES)
        assert not finding.stuck
        notes += finding.notes
    assert len(notes) == 1
    assert "3 times in this run" in notes[0]


def test_breaking_the_loop_after_being_told_gives_a_full_new_chance() -> None:
    assert watch(rounds("AAAX", 1) + rounds("A", 9)) == (3, 8)


def test_failures_that_differ_only_in_numbers_are_the_same() -> None:
    failures = [(signature("look", "{}", "tool_error", f"pid {number} died"),) for number in range(9)]
    assert watch(failures) == (3, 4)


def test_results_that_differ_only_in_numbers_are_different() -> None:
    assert signature("look", "{}", "ok", "1") != signature("look", "{}", "ok", "2")


def test_calls_that_never_reach_a_tool_end_the_run_at_the_fifth() -> None:
    bad = [(signature("look", f"{{{number}", "invalid_arguments", f"bad {chr(65 + number)}"),) for number in range(9)]
    assert watch(bad) == (0, 5)


def test_a_call_that_reaches_a_tool_starts_that_count_again() -> None:
    bad = [(signature(chr(65 + number), "{}", "unknown_tool", chr(65 + number)),) for number in range(8)]
    assert watch([*bad[:4], call("A"), *bad[4:]]) == (0, 0)


def test_several_invalid_calls_of_one_message_count_each() -> None:
    bad = tuple(signature(chr(65 + number), "{}", "unknown_tool", chr(65 + number)) for number in range(5))
    assert watch([bad]) == (0, 1)


def test_looking_can_be_switched_off() -> None:
    assert watch(rounds("A", 40), Repeats(told_after=None, invalid_in_a_row=None)) == (0, 0)


def test_forgiving_gives_a_full_new_chance() -> None:
    tracker = RepeatTracker()
    for exchange in rounds("A", 3):
        tracker.look(exchange, RULES)
    tracker.forgive()
    assert [bool(tracker.look(exchange, RULES).stuck) for exchange in rounds("A", 4)] == [False, False, False, True]


@given(st.lists(st.sampled_from("ABC"), max_size=60), st.integers(2, 4))
def test_a_run_is_ended_exactly_when_a_cycle_has_had_one_round_more_than_was_told(
    letters: list[str], told_after: int
) -> None:
    rules, tracker, past = Repeats(told_after=told_after), RepeatTracker(), ""
    for letter in letters:
        past += letter
        finding = tracker.look(call(letter), rules)
        stretches = {p: stretch(past, p) for p in range(1, LONGEST_PERIOD + 1)}
        assert bool(finding.stuck) == any(n % p == 0 and n > p * told_after for p, n in stretches.items())
        if any(n == p * told_after for p, n in stretches.items()) and not finding.stuck:
            assert finding.notes
        if finding.stuck:
            return


def stretch(past: str, period: int) -> int:
    first = len(past) - period
    while first > 0 and past[first - 1] == past[first - 1 + period]:
        first -= 1
    return len(past) - first if first >= 0 else 0


@given(st.lists(st.sampled_from("AB"), max_size=200))
def test_what_is_remembered_stays_small(letters: list[str]) -> None:
    tracker = RepeatTracker()
    for letter in letters:
        tracker.look(call(letter), RULES)
    assert len(tracker.tail) <= LONGEST_PERIOD
    assert len(tracker.told) <= LONGEST_PERIOD
    assert len(tracker.counts) <= 2


def test_the_words_for_a_batch_are_few() -> None:
    text = describe(tuple(one for letter in "ABCDE" for one in call(letter)))
    assert "and 2 more" in text
    assert len(describe((signature("look", "x" * 9999, "ok", ""),))) < 200
