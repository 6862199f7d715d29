"""`run_agent`, to the letter of its contract."""

from __future__ import annotations

import asyncio
import copy
import math
import sys
from types import MappingProxyType
from typing import Any

import pytest

from tenlines import run_agent
from tenlines.errors import MalformedReply

STOPPED = "Stopped: reached max steps."


def call(name: str, *args: Any) -> dict[str, Any]:
    move: dict[str, Any] = {"role": "assistant", "type": "tool", "name": name}
    return {**move, "args": args[0]} if args else move


def final(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "type": "final", "content": content}


class Script:
    """A model of given moves that remembers what it was shown."""

    def __init__(self, *moves: Any) -> None:
        self.moves = list(moves)
        self.lists: list[Any] = []
        self.shown: list[list[Any]] = []

    def __call__(self, messages: list[Any]) -> Any:
        self.lists.append(messages)
        self.shown.append(list(messages))
        return self.moves[len(self.shown) - 1]


def test_the_example() -> None:
    model = Script(call("add", {"a": 2, "b": 3}), final("The answer is 5."))
    tools = {"add": lambda args: str(args["a"] + args["b"])}
    assert run_agent(model, tools, "what is 2 + 3?") == "The answer is 5."
    assert model.shown[1] == [
        {"role": "user", "content": "what is 2 + 3?"},
        {"role": "assistant", "type": "tool", "name": "add", "args": {"a": 2, "b": 3}},
        {"role": "tool", "name": "add", "content": "5"},
    ]


def test_the_very_object_of_the_model_is_appended_to_the_same_growing_list() -> None:
    moves = [call("t", {"n": n}) for n in range(5)]
    model = Script(*moves, final("end"))
    run_agent(model, {"t": lambda args: args["n"]}, "go")
    assert len({id(messages) for messages in model.lists}) == 1
    assert [len(shown) for shown in model.shown] == [1, 3, 5, 7, 9, 11]
    for shown in model.shown:
        assert all(one is move for one, move in zip(shown[1::2], moves, strict=False))
        assert model.shown[-1][: len(shown)] == shown
    assert [type(messages) for messages in model.lists] == [list] * 6


def test_the_final_message_is_not_appended_and_its_content_is_returned_as_it_is() -> None:
    content = object()
    model = Script(final(content))
    assert run_agent(model, {}, "go") is content
    assert model.lists[0] == [{"role": "user", "content": "go"}]
    for empty in ("", None, 0, []):
        assert run_agent(Script(final(empty)), {}, "go") == empty


def test_out_of_steps_is_one_exact_sentence() -> None:
    model = Script(*[call("t")] * 20)
    assert run_agent(model, {"t": lambda args: "x"}, "go", max_steps=3) == STOPPED
    assert len(model.shown) == 3
    assert run_agent(Script(*[call("t")] * 20), {"t": lambda args: "x"}, "go") == STOPPED


def test_the_default_is_ten_steps() -> None:
    model = Script(*[call("t")] * 20)
    run_agent(model, {"t": lambda args: "x"}, "go")
    assert len(model.shown) == 10
    assert run_agent(Script(*[call("t")] * 9, final("tenth")), {"t": lambda args: "x"}, "go") == "tenth"


@pytest.mark.parametrize("cap", [0, -3])
def test_without_steps_no_model_is_called(cap: int) -> None:
    model = Script(final("never"))
    assert run_agent(model, {}, "go", max_steps=cap) == STOPPED
    assert run_agent(model, {}, "go", cap) == STOPPED
    assert model.shown == []


def test_the_tool_of_the_last_allowed_step_runs() -> None:
    ran = []
    assert run_agent(Script(call("t")), {"t": ran.append}, "go", 1) == STOPPED
    assert ran == [{}]


@pytest.mark.parametrize("name", ["web", "", "toString", "__class__", "get", "it's", 'a "b"', "é", "a\nb", "<|x|>"])
def test_an_unknown_tool_is_named_in_quotes(name: str) -> None:
    model = Script(call(name), final("end"))
    assert run_agent(model, {"search": lambda args: "x"}, "go") == "end"
    assert model.shown[1][2] == {"role": "tool", "name": name, "content": f"error: unknown tool '{name}'"}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such day"), "error: no such day"),
        (ValueError(), "error: "),
        (KeyError("alpha"), "error: 'alpha'"),
        (StopIteration("x"), "error: x"),
        (OSError(2, "No such file"), "error: [Errno 2] No such file"),
    ],
)
def test_an_exception_becomes_its_text_and_ends_nothing(error: Exception, text: str) -> None:
    def bad(args: Any) -> Any:
        raise error

    model = Script(call("bad"), final("end"))
    assert run_agent(model, {"bad": bad}, "go") == "end"
    assert model.shown[1][2]["content"] == text


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), asyncio.CancelledError()])
def test_what_is_no_exception_stops_the_program(error: BaseException) -> None:
    """Only `Exception`s become text; a request to stop is one."""

    def bad(args: Any) -> Any:
        raise error

    for steps in (1, 5):
        with pytest.raises(type(error)):
            run_agent(Script(call("bad"), final("end")), {"bad": bad}, "go", steps)


@pytest.mark.parametrize(
    "value", ["", None, 0, False, [], {"a": 1}, 3.5, float("nan"), object(), b"x", "\ud800", {1, 2}]
)
def test_a_result_is_passed_on_as_the_tool_returned_it(value: Any) -> None:
    model = Script(call("t"), final("end"))
    assert run_agent(model, {"t": lambda args: value}, "go") == "end"
    assert model.shown[1][2]["content"] is value
    assert list(model.shown[1][2]) == ["role", "name", "content"]


def test_args_are_passed_on_as_they_are_and_may_be_missing() -> None:
    given: list[Any] = []
    args = {"a": object()}
    weird: Any = ["not", "a", "dict"]
    model = Script(call("t", args), call("t"), call("t", {}), call("t", weird), call("t", None), final("end"))
    run_agent(model, {"t": given.append}, "go")
    assert given[0] is args
    assert given[1:3] == [{}, {}]
    assert given[3] is weird
    assert "args" not in model.moves[1]


def test_a_tool_that_changes_its_args_changes_the_models_own_object_and_nothing_of_the_callers() -> None:
    def greedy(args: Any) -> str:
        args["seen"] = True
        return "ok"

    tools = {"t": greedy}
    move = call("t", {"a": 1})
    run_agent(Script(move, final("end")), tools, "go")
    assert tools == {"t": greedy}
    assert move["args"] == {"a": 1, "seen": True}


@pytest.mark.parametrize(
    "error", [ValueError("no model"), RuntimeError(), KeyError("k"), ConnectionError("down"), StopIteration()]
)
def test_an_exception_of_the_model_reaches_the_caller(error: Exception) -> None:
    def model(messages: list[Any]) -> Any:
        raise error

    with pytest.raises(type(error)) as caught:
        run_agent(model, {}, "go")
    assert caught.value is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit(), asyncio.CancelledError()])
def test_a_request_to_stop_out_of_the_model_reaches_the_caller(error: BaseException) -> None:
    def model(messages: list[Any]) -> Any:
        raise error

    with pytest.raises(type(error)):
        run_agent(model, {}, "go")


def test_a_model_that_fails_later_is_asked_once_and_not_again() -> None:
    model = Script(call("t"))
    with pytest.raises(IndexError):
        run_agent(model, {"t": lambda args: "x"}, "go")
    assert len(model.shown) == 2


def test_repeats_are_nobodys_business_here() -> None:
    model = Script(*[call("t", {"a": 1})] * 40, final("end"))
    assert run_agent(model, {"t": lambda args: "same"}, "go", max_steps=50) == "end"
    assert all(message["role"] in ("user", "assistant", "tool") for message in model.shown[-1])
    unknown = Script(*[call("web")] * 40, final("end"))
    assert run_agent(unknown, {}, "go", max_steps=50) == "end"


def test_the_callers_own_things_are_not_changed() -> None:
    moves = [call("t", {"a": [1, 2]}), call("nobody"), final("end")]
    before = copy.deepcopy(moves)
    message: Any = ["a message", {"that": "is a list"}]
    tools = MappingProxyType({"t": lambda args: "x"})
    model = Script(*moves)
    run_agent(model, tools, message)
    assert moves == before
    assert message == ["a message", {"that": "is a list"}]
    assert model.shown[0][0]["content"] is message


def test_frozen_moves_will_do() -> None:
    move = MappingProxyType(call("t", MappingProxyType({"a": 1})))
    model = Script(move, MappingProxyType(final("end")))
    assert run_agent(model, {"t": lambda args: args["a"]}, "go") == "end"
    assert model.shown[1][1] is move


def test_two_conversations_share_nothing() -> None:
    tools = {"t": lambda args: "x"}
    first, second = Script(call("t"), final("a")), Script(call("t"), final("b"))
    assert (run_agent(first, tools, "one"), run_agent(second, tools, "two")) == ("a", "b")
    assert first.lists[0] is not second.lists[0]
    assert second.shown[0] == [{"role": "user", "content": "two"}]


def test_a_tool_may_run_another_agent() -> None:
    inner = Script(call("t"), final("from inside"))
    tools = {"t": lambda args: "x"}
    outer = Script(call("ask"), final("from outside"))
    ask = {"ask": lambda args: run_agent(inner, tools, "inner")}
    assert run_agent(outer, ask, "outer") == "from outside"
    assert outer.shown[1][2]["content"] == "from inside"


def test_a_move_of_another_type_or_shape_raises() -> None:
    with pytest.raises(MalformedReply, match="'final' or 'tool'"):
        run_agent(Script({"role": "assistant", "type": "think"}), {}, "go")
    for move in ({}, {"type": "final"}, {"type": "tool"}):
        with pytest.raises(KeyError):
            run_agent(Script(move), {}, "go")
    with pytest.raises(TypeError):
        run_agent(Script("text"), {}, "go")


@pytest.mark.parametrize("cap", [sys.maxsize, 10**30, math.inf])
def test_the_cap_may_be_as_large_as_one_likes(cap: Any) -> None:
    assert run_agent(Script(call("t"), final("end")), {"t": lambda args: "x"}, "go", cap) == "end"


def test_any_key_may_be_the_name_of_a_tool() -> None:
    odd: list[Any] = ["", "\x00", "\ud800", "x" * 10_000, "unknown", 7, None, ("a", 1)]
    tools = {name: (lambda args, name=name: name) for name in odd}
    model = Script(*[call(name) for name in odd], final("end"))
    assert run_agent(model, tools, "go", 99) == "end"
    assert [message["content"] for message in model.shown[-1] if message["role"] == "tool"] == odd
