"""The same call with the same result, made again in the same run."""

from __future__ import annotations

import msgspec
from journals import Call, Script, read, spec

from tenlines.advise.repeated import Repeated

ONE = Call("look", '{"a": 1, "b": 2}', "it is so")
SAME = Call("look", '{"b":2, "a":1}', "it is so")
OTHER = Call("look", '{"a": 3}', "it is so")
CHANGED = Call("look", '{"a": 1, "b": 2}', "it is otherwise")


def repeated_of(scripts: list[Script]) -> Repeated:
    repeated = Repeated()
    for run in read(scripts):
        repeated.take(run)
    return repeated


def test_a_repeat_is_the_same_tool_arguments_and_result_whatever_the_spelling() -> None:
    (found,) = repeated_of([Script([[ONE], [OTHER], [SAME]])] * 6).findings("a")
    assert found.subject == "look"
    assert found.seen.startswith("6 of its 18 calls (33%), in 6 runs")
    assert "description" in found.do


def test_its_cost_is_the_request_that_asked_for_it_and_what_its_result_was_later() -> None:
    scripts = [Script([[ONE], [SAME], [OTHER]])] * 6
    (found,) = repeated_of(scripts).findings("a")
    (run,) = read(scripts[:1])
    usage, carried = run.ledger.steps[1].usage, run.ledger.calls[1].carried
    assert usage is not None
    assert found.tokens == 6 * ((usage.input or 0) + (usage.output or 0) + carried)


def test_a_call_beside_others_costs_its_part_of_the_request() -> None:
    alone = repeated_of([Script([[ONE], [SAME]])] * 6).findings("a")[0]
    beside = repeated_of([Script([[ONE], [SAME, OTHER]])] * 6).findings("a")[0]
    assert beside.tokens < alone.tokens


def test_another_result_in_the_end_is_polling() -> None:
    (found,) = repeated_of([Script([[ONE], [ONE], [ONE], [CHANGED]])] * 6).findings("a")
    assert "polled" in found.do
    assert "repeatable=True" in found.do


def test_repeatable_tools_other_runs_and_single_repeats_do_not_count() -> None:
    polls = msgspec.structs.replace(spec("look"), repeatable=True)
    assert repeated_of([Script([[ONE], [SAME]], tools=(polls,))] * 9).findings("a") == []
    assert repeated_of([Script([[ONE]])] * 50).findings("a") == []
    assert repeated_of([Script([[ONE], [SAME]])] * 4).findings("a") == []
    assert repeated_of([Script([[ONE], *[[SAME]] * 9])] * 2).findings("a") == []


def test_failures_that_differ_in_numbers_are_repeats() -> None:
    first = Call("look", "{}", "process 17 died", "tool_error")
    again = Call("look", "{}", "process 42 died", "tool_error")
    assert len(repeated_of([Script([[first], [again]])] * 5).findings("a")) == 1
