"""Repetition: what is a loop, what is not, and that nothing is answered from a cache."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat
from typing import Any

from case_world import World, calls, gives, is_note, says

from tenlines import Limits, Repeats


def test_rep_01_an_endless_repeat_is_told_once_and_then_ends_the_run(world: World) -> None:
    @world.tool
    def read(path: str, limit: int) -> str:
        """Read."""
        return "same text"

    def stubborn(request: Any) -> Any:
        return calls((f"r{request.step}", "read", '{"path":"h","limit":50}'))

    run = world.play(model=stubborn, limits=Limits(steps=50)).expect()
    assert len(run.notes) == 1
    assert sum(is_note(message) for message in run.sent[-1]) == 1
    assert "Do something else" in run.notes[0]
    assert run.result.calls[-1].outcome == "ok"
    for word in ("read", '"path":"h"', "4 times"):
        assert word in run.result.reason

    def better(request: Any) -> Any:
        return says("Nothing new.") if request.step > 3 else stubborn(request)

    changed = world.play(model=better, limits=Limits(steps=50))
    assert changed.result.answer == "Nothing new."


def test_rep_03_calls_that_never_reach_a_tool_count_too(world: World) -> None:
    @world.tool
    def w(body: str) -> str:
        """Write."""
        return "ok"

    run = world.play(model=lambda request: calls((f"w{request.step}", "w", "{}")), limits=Limits(steps=50)).expect()
    assert "w({})" in run.result.reason


def test_rep_04_a_repetition_is_counted_from_its_first_call_wherever_it_begins(world: World) -> None:
    """And failures that differ in a number only are the same failure."""
    for name in ("x1", "x2", "x3"):
        world.tool(gives(name), name=name)
    suffixes: list[Iterator[str]] = []

    @world.tool
    def r(c: int) -> str:
        """Raise."""
        raise SyntaxError(f"unterminated string{next(suffixes[-1])}")

    def late(request: Any) -> Any:
        step = request.step
        return calls((f"x{step}", f"x{step}", "{}")) if step < 4 else calls((f"r{step}", "r", '{"c":1}'))

    def early(request: Any) -> Any:
        return calls((f"r{request.step}", "r", '{"c":1}'))

    counts = set()
    for way in (repeat(""), map(" (process {})".format, count(4000))):
        suffixes.append(way)
        for model in (early, late):
            before = world.tools["r"].runs
            world.play(model=model, limits=Limits(steps=50)).expect()
            counts.add(world.tools["r"].runs - before)
    assert counts == {4}


def test_cyc_01_a_cycle_of_two_is_seen(world: World) -> None:
    world.tool(lambda: "A", name="a")
    world.tool(lambda: "B", name="b")

    def alternate(request: Any) -> Any:
        return calls((f"c{request.step}", "ab"[request.step % 2 - 1], "{}"))

    run = world.play(model=alternate, limits=Limits(steps=60)).expect()
    warned = next(n for n, sent in enumerate(run.sent) if any("exchanges" in str(m["content"]) for m in sent))
    assert warned <= 6  # three full periods


def test_cyc_03_a_call_that_fails_the_same_way_between_others_leads_to_a_word(world: World) -> None:
    """The run goes on to its step limit, since something may have changed between the equal calls."""
    world.tool(lambda: "1 failed", name="test")

    @world.tool
    def read(f: int) -> str:
        """Read."""
        return f"file {f}"

    def alternate(request: Any) -> Any:
        step = request.step
        return calls((f"t{step}", "test", "{}")) if step % 2 else calls((f"r{step}", "read", f'{{"f": {step}}}'))

    run = world.play(model=alternate, limits=Limits(steps=60)).expect()
    assert run.result.status == "max_steps"
    (note,) = run.notes
    assert "test({})" in note
    assert "3 times" in note
    assert not any(is_note(message) for message in run.sent[4])
    assert is_note(run.sent[5][-1])  # right after the third equal result


def test_poll_01_polling_that_makes_progress_is_left_alone(world: World) -> None:
    states = iter([*(f"{number}0%" for number in range(1, 10)), "done"])
    world.tool(lambda: next(states), name="status")

    def poll(request: Any) -> Any:
        done = "done" in str(request.messages[-1])
        return says("finished") if done else calls((f"s{request.step}", "status", "{}"))

    run = world.play(model=poll, limits=Limits(steps=30)).expect()
    assert run.notes == []


def test_poll_03_paging_is_left_alone(world: World) -> None:
    @world.tool
    def page(cursor: int) -> str:
        """Page."""
        return f"rows {cursor}"

    def pages(request: Any) -> Any:
        n = request.step - 1
        return calls((f"p{n}", "page", f'{{"cursor":{n}}}')) if n < 12 else says("done")

    run = world.play(model=pages, limits=Limits(steps=30), repeats=Repeats(told_after=3)).expect()
    assert run.notes == []


def test_dedupe_01_nothing_is_answered_from_a_cache(world: World) -> None:
    files: list[str] = []
    world.tool(lambda: list(files), name="ls", read_only=True)

    @world.tool(idempotent=True)
    def touch() -> str:
        """Touch."""
        files.append("x")
        return "ok"

    world.play().expect()
    assert files == ["x", "x"]
