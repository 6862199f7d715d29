"""Paths: loops are one stage, and few paths cover nearly all runs or none are named."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from journals import Call, Script, aimless, read, spec

from tenlines.advise.paths import LEAST_ANSWERED, Paths, walk

STEPS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=2), max_size=9)


def script(*steps: str, **fields: object) -> Script:
    """`script("ab", "c")`: one reply calls a and b, the next one c."""
    return Script([[Call(name) for name in step] for step in steps], **fields)  # type: ignore[arg-type]


def walked(*steps: str) -> tuple[str, ...]:
    """The path, a word for each stage."""
    return tuple("".join(stage) for stage in walk(next(read([script(*steps)]))).path)


def paths_of(scripts: list[Script]) -> Paths:
    paths = Paths()
    for run in read(scripts):
        paths.take(run)
    return paths


def test_what_comes_again_at_once_is_one_loop() -> None:
    assert walked("a", "b", "c") == ("a", "b", "c")
    assert walked("a", "b", "b", "b", "c") == ("a", "b", "c")
    assert walked("a", "b", "a", "b", "c") == ("a", "b", "c")
    assert walked("a", "b", "c", "a", "b", "c") == ("a", "b", "c")
    assert walked("a", "b", "a", "c") == ("a", "b", "a", "c")
    assert walked("aa", "b") == walked("a", "b")
    assert walked("ba") == ("ab",)
    assert walked() == ()


def test_a_loop_of_several_stages_is_named_by_its_ends() -> None:
    way = walk(next(read([script("c", "a", "b", "a", "b", "c")])))
    assert (way.path, way.loops) == ((("c",), ("a",), ("b",), ("c",)), frozenset({(1, 2)}))
    assert [len(calls) for calls in way.calls] == [1, 2, 2, 1]


def test_a_tool_that_ends_the_run_is_the_answer_and_no_stage() -> None:
    tools = (spec("look"), msgspec.structs.replace(spec("finish"), final=True))
    run = next(read([Script([[Call("look")], [Call("finish", "{}", "so")]], tools=tools)]))
    assert run.is_answered
    assert walk(run).path == (("look",),)


@given(STEPS)
def test_every_call_is_in_one_stage_and_nothing_is_left_to_draw_together(steps: list[list[str]]) -> None:
    run = next(read([script(*map("".join, steps))]))
    way = walk(run)
    assert sum(len(calls) for calls in way.calls) == len(run.calls)
    assert all(one != other for one, other in zip(way.path, way.path[1:], strict=False))
    assert walked(*map("".join, way.path)) == tuple("".join(stage) for stage in way.path)
    assert all(0 <= first < last < len(way.path) for first, last in way.loops)


def test_one_path_covers_all_and_its_entropy_is_nothing() -> None:
    paths = paths_of([script("a", "b")] * LEAST_ANSWERED)
    assert [(one.path, one.runs) for one in paths.covering()] == [((("a",), ("b",)), LEAST_ANSWERED)]
    assert paths.entropy() == 0


def test_a_second_path_is_a_way_too_and_rare_ones_are_left_out() -> None:
    paths = paths_of([script("a", "b")] * 20 + [script("a", "c")] * 18 + [script("c", "a")] * 2)
    assert [one.runs for one in paths.covering()] == [20, 18]
    assert 1 < paths.entropy() < 1.3


def test_too_few_runs_too_many_ways_and_one_tool_alone_are_no_workflow() -> None:
    few = paths_of([script("a", "b")] * (LEAST_ANSWERED - 1))
    assert (few.covering(), few.waiting) == ([], "29 answered runs, 30 are needed")
    ways = [script(*pair) for pair in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"))]
    assert paths_of(ways * 20).covering() == []
    assert paths_of([script(*"a" * n) for n in (1, 2, 3, 4)] * 20).covering() == []
    assert paths_of([script()] * 50).covering() == []
    random = Random(1)
    assert paths_of([aimless(random) for _ in range(100)]).covering() == []


def test_runs_without_an_answer_take_no_path() -> None:
    assert paths_of([script("a", "b", answer=None)] * 40).answered == 0


def test_very_long_runs_count_and_take_no_path() -> None:
    long = script(*(["a", "b", "c", "b"] * 16), cap=100)
    paths = paths_of([long] * 10 + [script("a", "b")] * 40)
    assert (paths.answered, paths.covering()) == (50, [])
