"""What to do next, as commands."""

from __future__ import annotations

import pytest

from tenlines.cli import moves
from tenlines.core.limits import Left, Limits
from tenlines.core.result import RunResult, RunUsage


def result(status: str, reason: str = "", steps: int = 3) -> RunResult:
    usage = RunUsage(900, 100, 0, 0, 0, 0)
    return RunResult("abc", status, reason, None, None, steps, 2, usage, None, (), (), Left(), 0)  # type: ignore[arg-type]


ALL = Limits(steps=3, tool_calls=2, tokens=5000, dollars=0.5, seconds=30)


@pytest.mark.parametrize(
    ("status", "reason", "command"),
    [
        ("max_steps", "", "tenlines resume abc --max-steps 6"),
        ("tool_limit", "", "tenlines resume abc --max-tool-calls 4"),
        ("deadline", "", "tenlines resume abc --timeout 60"),
        ("budget", "4,900 of 5,000 tokens are used; ...", "tenlines resume abc --max-tokens 10000"),
        ("budget", "$0.4 of $0.5 are spent; ...", "tenlines resume abc --max-dollars 1"),
        ("budget", "there is a dollar limit, but the price of this model is not known", ""),
        ("stuck", "", "tenlines resume abc --say ..."),
        ("refused", "", "tenlines resume abc --say ..."),
        ("cancelled", "", "tenlines resume abc"),
        ("model_error", "status 401: bad key", "tenlines resume abc"),
        ("model_error", "status 500", "tenlines resume abc"),
        ("empty_reply", "", "tenlines resume abc"),
        ("truncated_reply", "", "tenlines resume abc"),
        ("context_overflow", "", "tenlines resume abc --compact"),
        ("journal_error", "", "tenlines resume abc"),
    ],
)
def test_every_way_to_stop_says_what_to_do_next(status: str, reason: str, command: str) -> None:
    advice, said = moves.next_move(result(status, reason), ALL, None)
    assert advice
    assert said == command


def test_the_command_names_the_journal_and_is_quoted_for_the_shell() -> None:
    _, command = moves.next_move(result("cancelled"), ALL, "my runs.db")
    assert command == "tenlines resume abc --journal 'my runs.db'"


def test_who_lost_a_race_for_a_run_is_not_told_to_mend_the_journal() -> None:
    lost = result("journal_error", "run abc already has an event 7: another process has taken the run over")
    assert moves.next_move(lost, ALL, None)[1] == "tenlines show abc"


def test_a_run_that_was_kept_in_memory_has_no_command() -> None:
    advice, command = moves.next_move(result("max_steps"), ALL, "memory")
    assert "memory" in advice
    assert command == ""


def test_a_bad_key_is_told_from_a_server_that_is_down() -> None:
    assert "key" in moves.next_move(result("model_error", "the server answered 401"), ALL, None)[0]
    assert "--model" in moves.next_move(result("model_error", "connection refused"), ALL, None)[0]
