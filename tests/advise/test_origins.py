"""Where arguments come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from journals import Call, Script, read

from tenlines.advise.origins import Origin, Origins
from tenlines.advise.paths import walk


def origins_of(made: Callable[[int], tuple[str, list[list[Call]]]], runs: int = 20) -> list[list[Origin]]:
    """What is found over runs that a function makes from their number: the task, and the steps."""
    found: Origins | None = None
    for number in range(runs):
        task, steps = made(number)
        run = next(read([Script(steps, task=task)]))
        way = walk(run)
        found = found or Origins(way.path)
        found.take(task, way.calls)
    assert found is not None
    return [found.of(stage) for stage in range(len(steps))]


def call(tool: str, result: str = "fine", **arguments: Any) -> list[Call]:
    """A step with one call."""
    return [Call(tool, msgspec.json.encode(arguments).decode(), result)]


def test_constants_the_task_earlier_results_and_the_model() -> None:
    def made(number: int) -> tuple[str, list[list[Call]]]:
        order, code = 1000 + number, f"TRK-{number:04}"
        first = call("get", f"order {order}: {code}, paid", id=str(order), verbose=True)
        return f"Where is order {order}?", [first, call("track", code=code, lang="en", note=f"by number {number}!")]

    first, second = origins_of(made)
    assert [(one.argument, one.source, one.words) for one in first] == [
        ("id", "task", "from the task"),
        ("verbose", "constant", "always the same"),
    ]
    assert [(one.argument, one.source, one.stage) for one in second] == [
        ("code", "result", 0),
        ("lang", "constant", None),
        ("note", "model", None),
    ]
    assert (second[1].value, second[0].value, second[0].words) == ("en", None, "from the result of stage 1")


def test_the_newest_result_that_has_it_is_taken() -> None:
    def made(number: int) -> tuple[str, list[list[Call]]]:
        return "do it", [call("a", f"id {number:03}x"), call("b", f"id {number:03}x"), call("c", id=f"{number:03}x")]

    assert origins_of(made)[2][0].stage == 1


def test_numbers_are_looked_for_as_words() -> None:
    def made(number: int) -> tuple[str, list[list[Call]]]:
        return f"Order {500 + number}", [call("a", id=500 + number, part=(500 + number) // 10)]

    assert [(one.argument, one.source) for one in origins_of(made)[0]] == [("id", "task"), ("part", "model")]


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, None, "x", "y" * 300, "  "])
def test_what_would_be_found_by_chance_or_not_as_it_stands_is_not_looked_for(value: Any) -> None:
    def made(number: int) -> tuple[str, list[list[Call]]]:
        given = value if number else "otherwise"
        return f"{value} {number}", [call("a", q=given)]

    assert origins_of(made, runs=10)[0][0].source == "model"


def test_nearly_all_is_enough_and_less_is_not() -> None:
    def made(odd: int) -> Callable[[int], tuple[str, list[list[Call]]]]:
        return lambda number: ("do it", [call("a", lang="en" if number >= odd else f"l{number}")])

    (found,) = origins_of(made(2), runs=40)[0]
    assert (found.source, found.value) == ("constant", "en")
    assert origins_of(made(3), runs=40)[0][0].source == "model"


def test_all_rounds_of_a_loop_have_to_have_it() -> None:
    def made(number: int) -> tuple[str, list[list[Call]]]:
        return f"{number:03}a and {number:03}b", [
            [*call("read", id=f"{number:03}a"), *call("read", id=f"{number:03}b")]
        ]

    assert origins_of(made)[0][0].source == "task"
