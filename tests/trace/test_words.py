"""Numbers and calls in words."""

from __future__ import annotations

import pytest

from tenlines.core.limits import Left, Limits
from tenlines.core.transcript import Usage
from tenlines.trace import words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "<1 ms"), (0.012, "12 ms"), (0.9996, "1.0 s"), (4.24, "4.2 s"), (59.96, "1 min 00 s"), (125, "2 min 05 s")],
)
def test_durations(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


def test_a_clock_that_went_back_is_no_negative_time() -> None:
    assert words.duration(-3) == "<1 ms"


@pytest.mark.parametrize(
    ("seconds", "said"), [(5, "just now"), (65, "1 min ago"), (7300, "2 hours ago"), (90_000, "1 day ago")]
)
def test_ago(seconds: float, said: str) -> None:
    assert words.ago(seconds) == said


def test_tokens_say_what_the_cache_gave_and_what_is_not_known() -> None:
    assert words.tokens(Usage(1000, 20, 850)) == "1,000 tokens in (85% cached), 20 out"
    assert words.tokens(Usage(1000, 20)) == "1,000 tokens in, 20 out"
    assert words.tokens(None) == "tokens not reported"


def test_only_limits_that_are_set_have_something_left() -> None:
    assert words.left(Left(steps=1, dollars=0.5, seconds=65)) == "1 step, $0.5000, 1 min 05 s"
    assert words.limits_words(Limits(steps=None)) == "none"


def test_a_call_is_written_as_one_would_write_it() -> None:
    assert words.call("get", '{"id": "7", "deep": true, "n": null}') == 'get(id="7", deep=true, n=null)'


def test_arguments_that_cannot_be_read_are_shown_as_they_came() -> None:
    assert words.call("get", '{"id": \x1b[2J') == 'get({"id": \\x1b[2J)'


def test_a_long_argument_is_shortened_and_a_full_one_is_not() -> None:
    assert len(words.call("get", '{"t": "' + "x" * 5000 + '"}')) < 100
    assert len(words.call("get", '{"t": "' + "x" * 5000 + '"}', full=True)) > 5000


def test_who_works_on_a_run() -> None:
    assert words.owner("web-2/boot/4711/12/x") == "process 4711 on web-2"
    assert words.owner("") == ""
