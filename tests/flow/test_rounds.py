"""A workflow as rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.errors import FlowError
from tenlines.flow.rounds import Failure, Rounds, Want, map_over, together


def ask(name: str, **arguments: Any) -> Want[Any]:
    return Want(name, arguments)


def played(main: Any, answers: Any) -> tuple[list[list[str]], Any]:
    """The rounds of a function, by the names of what is wanted, and what it returned."""
    rounds, names = Rounds(main), []
    while wants := rounds.advance():
        names.append([one.name for one in wants])
        rounds.answer([answers(one) for one in wants])
    assert rounds.is_done
    return names, rounds.value


def echo(want: Want[Any]) -> str:
    return want.name.upper()


def test_one_after_the_other_is_a_round_each() -> None:
    async def main() -> list[str]:
        return [await ask("a"), await ask("b")]

    assert played(main(), echo) == ([["a"], ["b"]], ["A", "B"])


def test_what_is_awaited_together_is_one_round() -> None:
    async def pair(name: str) -> str:
        return str(await ask(name)) + str(await ask(name + name))

    async def main() -> list[str]:
        return await together(pair("a"), ask("b"), pair("c"))

    assert played(main(), echo) == ([["a", "b", "c"], ["aa", "cc"]], ["AAA", "B", "CCC"])


def test_nothing_together_is_nothing() -> None:
    async def main() -> list[str]:
        return await together()

    assert played(main(), echo) == ([], [])


@pytest.mark.parametrize(("at_once", "sizes"), [(None, [5]), (2, [2, 2, 1]), (9, [5]), (1, [1, 1, 1, 1, 1])])
def test_a_map_is_in_order_and_at_most_so_many_at_once(at_once: int | None, sizes: list[int]) -> None:
    async def main() -> list[str]:
        return await map_over(ask, "abcde", at_once=at_once)

    rounds, value = played(main(), echo)
    assert [len(one) for one in rounds] == sizes
    assert value == ["A", "B", "C", "D", "E"]


def test_a_failure_is_raised_where_its_value_was_awaited() -> None:
    async def main() -> str:
        try:
            await ask("bad")
        except ValueError as error:
            return f"caught {error}"
        return "no"

    assert played(main(), lambda want: Failure(ValueError("x")))[1] == "caught x"


def test_of_several_the_others_are_finished_before_the_first_error_is_raised() -> None:
    async def main() -> str:
        try:
            await together(ask("a"), ask("bad 1"), ask("bad 2"))
        except ValueError as error:
            return str(error)
        return "no"

    answers = {"a": "A", "bad 1": Failure(ValueError("first")), "bad 2": Failure(ValueError("second"))}
    assert played(main(), lambda want: answers[want.name]) == ([["a", "bad 1", "bad 2"]], "first")


def test_what_the_function_raises_comes_out() -> None:
    async def main() -> None:
        await ask("a")
        raise KeyError("mine")

    rounds = Rounds(main())
    rounds.answer(["x" for _ in rounds.advance()])
    with pytest.raises(KeyError, match="mine"):
        rounds.advance()


def test_nothing_foreign_can_be_awaited() -> None:
    async def main() -> None:
        await asyncio.sleep(1)

    with pytest.raises(FlowError, match="may await its stages"):
        Rounds(main()).advance()


def test_a_foreign_wait_that_is_caught_is_an_error_like_any_other() -> None:
    async def main() -> str:
        try:
            await asyncio.sleep(0)
        except FlowError:
            return str(await ask("a"))
        return "no"

    assert played(main(), echo) == ([["a"]], "A")


def test_a_function_that_is_given_up_is_closed() -> None:
    closed: list[str] = []

    async def part(name: str) -> None:
        try:
            await ask(name)
        finally:
            closed.append(name)

    async def main() -> None:
        await together(part("a"), part("b"))

    rounds = Rounds(main())
    rounds.advance()
    rounds.close()
    assert sorted(closed) == ["a", "b"]


# --- laws ---------------------------------------------------------------------------------------------------

Tree = Any
"""A name, a list of trees one after the other, or a tuple of trees together."""
names = st.text("abc", min_size=1, max_size=3)
trees = st.recursive(names, lambda one: st.lists(one, max_size=4) | st.lists(one, max_size=4).map(tuple), max_leaves=25)


async def walk(tree: Tree) -> Any:
    if isinstance(tree, str):
        return await ask(tree)
    if isinstance(tree, tuple):
        parts: Sequence[Awaitable[Any]] = [walk(one) for one in tree]
        return await together(*parts)
    return [await walk(one) for one in tree]


def depth(tree: Tree) -> int:
    """How many rounds it takes."""
    if isinstance(tree, str):
        return 1
    depths = [depth(one) for one in tree]
    return max(depths, default=0) if isinstance(tree, tuple) else sum(depths)


def leaves(tree: Tree) -> list[str]:
    return [tree] if isinstance(tree, str) else [leaf for one in tree for leaf in leaves(one)]


def shape(tree: Tree) -> Any:
    return tree.upper() if isinstance(tree, str) else [shape(one) for one in tree]


@given(trees)
def test_every_tree_is_walked_in_as_few_rounds_as_there_can_be(tree: Tree) -> None:
    rounds, value = played(walk(tree), echo)
    assert len(rounds) == depth(tree)
    assert sorted(name for one in rounds for name in one) == sorted(leaves(tree))
    assert value == shape(tree)


@given(trees, st.integers(0, 30))
def test_one_that_is_begun_anew_comes_to_where_it_was(tree: Tree, at: int) -> None:
    def wants(main: Any, until: int) -> list[str]:
        rounds = Rounds(main)
        for _ in range(until):
            asked = rounds.advance()
            rounds.answer([echo(one) for one in asked])
        found = [one.name for one in rounds.advance()]
        rounds.close()
        return found

    until = min(at, depth(tree))
    assert wants(walk(tree), until) == wants(walk(tree), until)
