"""Where runs fail."""

from __future__ import annotations

from typing import get_args

from journals import Call, Script, read

from tenlines.advise.failures import BAD_ENDINGS, BAD_OUTCOMES, Failures
from tenlines.core.events import Status
from tenlines.core.transcript import Outcome

FINE = Call("look", "{}", "fine")


def failures_of(scripts: list[Script]) -> Failures:
    failures = Failures()
    for run in read(scripts):
        failures.take(run)
    return failures


def test_calls_that_fail_often_are_told_by_tool_and_outcome_with_a_run() -> None:
    bad = Call("send", "{}", "no", "tool_error")
    failures = failures_of([Script([[FINE], [bad]])] * 6 + [Script([[FINE], [Call("send")]])] * 6)
    (found,) = failures.findings("a")
    assert found.subject == "send: tool_error"
    assert found.seen == "6 of 12 calls (50%), in 6 runs, ended as `tool_error`"
    (line,) = failures.outcomes()
    assert (line.tool, line.calls, line.of, line.example) == ("send", 6, 12, "run00000")


def test_timeouts_bad_arguments_and_unknown_tools_are_told_too() -> None:
    slow = Call("send", "{}", "too slow", "timeout")
    wrong = Call("send", "{", "", "invalid_arguments")
    unknown = Call("nope", "{}", "", "unknown_tool")
    scripts = [Script([[FINE], [slow], [wrong], [unknown]])] * 6
    subjects = {found.subject for found in failures_of(scripts).findings("a")}
    assert subjects == {"send: timeout", "send: invalid_arguments", "nope: unknown_tool"}


def test_few_failures_are_none_to_speak_of() -> None:
    bad = Call("send", "{}", "no", "tool_error")
    failures = failures_of([Script([[FINE], [bad]])] * 4 + [Script([[FINE]])] * 30)
    assert failures.findings("a") == []
    assert len(failures.outcomes()) == 1


def test_endings_are_told_with_the_step_after_which_most_came() -> None:
    empty = [Script([[FINE]], answer="")] * 6
    failures = failures_of(empty + [Script([[FINE]])] * 20)
    (found,) = failures.findings("a")
    assert found.subject == "empty_reply"
    assert found.seen == "6 runs of 26 (23%) ended as `empty_reply`, 6 of them after step 4"
    assert [(line.status, line.step, line.runs) for line in failures.endings()] == [
        ("answered", 2, 20),
        ("empty_reply", 4, 6),
    ]


def test_every_failure_has_a_next_move() -> None:
    assert set(BAD_ENDINGS) < set(get_args(Status))
    assert {"answered", "cancelled", "max_steps", "awaiting_approval"} == set(get_args(Status)) - set(BAD_ENDINGS)
    assert set(BAD_OUTCOMES) < set(get_args(Outcome))
