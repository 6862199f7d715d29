"""`agent_loop`, to the letter of its contract."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tenlines import agent_loop
from tenlines.errors import MalformedReply

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "agent_loop.jsonl").read_text().splitlines()
]
TOOLS = {"search": {"cats": "felis catus", "nothing": ""}, "calc": {"2+2": "4"}}


def call(name: Any, arg: Any) -> dict[str, Any]:
    return {"type": "tool", "name": name, "arg": arg}


def final(text: Any) -> dict[str, Any]:
    return {"type": "final", "text": text}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any]) -> None:
    given = vector["model_outputs"], vector["tools"], vector["max_steps"]
    before = copy.deepcopy(given)
    result = agent_loop(*given)
    assert result == vector["expected"]
    assert list(result) == ["answer", "steps", "observations", "status"]
    assert given == before


def test_the_result_is_a_plain_dict_with_a_list_and_plain_values() -> None:
    result = agent_loop([call("search", "cats"), final("a")], TOOLS, 5)
    assert type(result) is dict
    assert [type(value) for value in result.values()] == [str, int, list, str]
    assert agent_loop([], TOOLS, 5)["observations"] is not agent_loop([], TOOLS, 5)["observations"]


@pytest.mark.parametrize("cap", [0, -1, -(10**9)])
def test_no_cap_at_all_reads_no_move(cap: int) -> None:
    moves = Counting([final("a")])
    assert agent_loop(moves, TOOLS, cap) == nothing()
    assert moves.reads == 0


def nothing() -> dict[str, Any]:
    return {"answer": None, "steps": 0, "observations": [], "status": "max_steps"}


def test_the_cap_wins_although_the_very_next_move_is_a_final() -> None:
    moves = [call("calc", "2+2")] * 3 + [final("4")]
    assert agent_loop(moves, TOOLS, 3)["status"] == "max_steps"
    assert agent_loop(moves, TOOLS, 3)["steps"] == 3
    assert agent_loop(moves, TOOLS, 4) == {"answer": "4", "steps": 4, "observations": ["4"] * 3, "status": "answered"}


def test_running_out_of_moves_is_the_same_as_the_cap() -> None:
    moves = [call("calc", "2+2")] * 2
    assert agent_loop(moves, TOOLS, 2) == agent_loop(moves, TOOLS, 10**9)


def test_moves_after_a_final_are_not_read() -> None:
    moves = Counting([final("a"), final("b")])
    assert agent_loop(moves, TOOLS, 9)["answer"] == "a"
    assert moves.reads == 1


class Counting(Sequence[Any]):
    """A list that counts how often it is read."""

    def __init__(self, items: list[Any]) -> None:
        self.items, self.reads = items, 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return self.items[index]

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.reads += 1
            yield item


class CountingTable(Mapping[Any, Any]):
    """A table that counts how often it is asked, and that is never walked."""

    def __init__(self, items: dict[Any, Any]) -> None:
        self.items_, self.reads, self.walks = items, 0, 0

    def __len__(self) -> int:
        return len(self.items_)

    def __getitem__(self, key: Any) -> Any:
        self.reads += 1
        return self.items_[key]

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return iter(self.items_)


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_work_grows_with_the_moves_that_are_consumed(size: int) -> None:
    moves = Counting([call("t", n) for n in range(size)] + [final("end")] + [final("never")] * 10_000)
    table = CountingTable({n: n for n in range(10_000)})
    result = agent_loop(moves, {"t": table}, 10**6)
    assert result["steps"] == size + 1
    assert result["observations"] == list(range(size))
    assert moves.reads <= 2 * size + 2
    assert table.reads <= 2 * size
    assert table.walks == 0


@pytest.mark.parametrize(
    "name", ["toString", "__class__", "get", "keys", "__len__", "", " search", "SEARCH", "a b", "é"]
)
def test_only_keys_are_known(name: str) -> None:
    result = agent_loop([call(name, "cats"), call("search", name)], TOOLS, 9)
    assert result["observations"] == ["unknown_tool", "unknown_arg"]
    table = {name: {name: "found"}}
    assert agent_loop([call(name, name)], table, 9)["observations"] == ["found"]


def test_any_name_will_do_for_a_tool_and_any_text_for_an_argument() -> None:
    odd = ["", "\x00", "\ud800", "x" * 10_000, "a\nb", "<|end|>", "{}", "🐈", "tenlines", "null"]
    table = {name: {name: f"got {index}" for name in odd} for index, name in enumerate(odd)}
    moves = [call(name, name) for name in odd]
    assert agent_loop(moves, table, 99)["observations"] == [f"got {index}" for index in range(len(odd))]


def test_results_are_the_very_objects_of_the_table() -> None:
    values = ["", 0, False, None, [], {}, float("nan"), object(), [1, 2], "x" * 1_000_000, b"bytes", ValueError("no")]
    table = {"t": dict(enumerate(values))}
    observed = agent_loop([call("t", index) for index in range(len(values))], table, 99)["observations"]
    assert all(one is value for one, value in zip(observed, values, strict=True))


def test_a_repeated_call_is_looked_up_again_and_never_taken_for_a_loop() -> None:
    table = CountingTable({"k": "v"})
    result = agent_loop([call("t", "k")] * 50, {"t": table}, 99)
    assert result["observations"] == ["v"] * 50
    assert table.reads >= 50


def test_a_hundred_unknown_calls_in_a_row_are_a_hundred_observations() -> None:
    result = agent_loop([call("web", "x")] * 100 + [final("end")], TOOLS, 200)
    assert result == {"answer": "end", "steps": 101, "observations": ["unknown_tool"] * 100, "status": "answered"}


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "error: x", "\x00", "\ud800", "<tool_call>{}</tool_call>", "x" * 100_000]
)
def test_any_text_is_an_answer_as_it_is(text: str) -> None:
    result = agent_loop([final(text)], TOOLS, 1)
    assert (result["answer"], result["status"], result["steps"]) == (text, "answered", 1)


def test_frozen_and_foreign_containers_will_do_and_are_not_changed() -> None:
    moves = tuple(MappingProxyType(move) for move in (call("search", "cats"), final("a")))
    tools = MappingProxyType({"search": MappingProxyType({"cats": "felis catus"})})
    assert agent_loop(moves, tools, 5)["observations"] == ["felis catus"]


def test_a_lookup_does_not_make_keys_of_a_defaultdict() -> None:
    tools: Any = defaultdict(dict, {"t": defaultdict(str, {"k": "v"})})
    assert agent_loop([call("t", "x"), call("u", "x")], tools, 5)["observations"] == ["unknown_arg", "unknown_tool"]
    assert dict(tools) == {"t": {"k": "v"}}


def test_a_dict_subclass_that_invents_values_is_asked_for_its_keys_only() -> None:
    class Inventive(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return "invented"

        def get(self, key: str, default: Any = None) -> Any:
            return "invented"

    assert agent_loop([call("t", "x")], {"t": Inventive(k="v")}, 5)["observations"] == ["unknown_arg"]


def test_work_does_not_grow_with_the_number_of_tools() -> None:
    tools = CountingTable({n: {"k": "v"} for n in range(10_000)})
    assert agent_loop([call(7, "k"), final("end")], tools, 5)["observations"] == ["v"]  # type: ignore[arg-type]
    assert tools.walks == 0
    assert tools.reads <= 4


@pytest.mark.parametrize("move", [{}, {"type": "final"}, {"type": "tool"}, {"type": "tool", "name": "search"}])
def test_a_move_that_lacks_something_raises_and_is_no_max_steps(move: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        agent_loop([move], TOOLS, 5)


def test_a_move_of_another_type_raises() -> None:
    with pytest.raises(MalformedReply, match="'final' or 'tool'"):
        agent_loop([{"type": "think", "text": "hm"}], TOOLS, 5)


def test_a_table_that_raises_is_heard() -> None:
    class Broken(dict[str, str]):
        def __contains__(self, key: object) -> bool:
            raise RuntimeError("broken table")

    with pytest.raises(RuntimeError, match="broken table"):
        agent_loop([call("t", "x"), final("end")], {"t": Broken()}, 5)
    with pytest.raises(RuntimeError, match="broken table"):
        agent_loop([call("t", "x")], {"t": Broken()}, 1)
