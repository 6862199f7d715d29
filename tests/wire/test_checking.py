"""Each situation is found where it is, once, and only where a profile calls it a fault."""

from __future__ import annotations

import tracemalloc
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from tenlines.errors import ConfigError
from tenlines.wire.checking import Checker, check
from tenlines.wire.digest import digest
from tenlines.wire.finding.provenance import Prefix
from tenlines.wire.finding.situations import KINDS
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Artefact, Profile, Situation
from tenlines.wire.rules import Rule
from tenlines.wire.turns import Turn

CHAT, ANTHROPIC, RESPONSES = FORMATS["openai_chat"], FORMATS["anthropic"], FORMATS["openai_responses"]
SITUATIONS: tuple[Situation, ...] = get_args(Situation)


class Silent:
    """An inspector with nothing to say."""

    def frame(self, body: Any) -> Any:
        return iter(())

    def take(self, turn: Turn) -> Any:
        return iter(())

    def close(self) -> Any:
        return iter(())


class Every:
    """A real format in which every situation is a rule of its own."""

    def __init__(self, format: Any) -> None:
        self._format = format
        self.rules = tuple(Rule(one, (KINDS[one],), "error", one) for one in SITUATIONS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._format, name)

    def inspector(self, profile: Profile, artefacts: Any = ()) -> Silent:
        return Silent()


def profile(**changed: Any) -> Profile:
    strict = Profile(
        name="t",
        format="t",
        provider="p",
        as_of="2026-11-30",
        faults={one: one for one in SITUATIONS},
        id_pattern=r"[a-z0-9_]+",
        id_max=12,
        system="first",
        first=("user",),
        last=("user", "tool"),
    )
    quiet = {"reasoning.unsigned", "pair.name"} | set(changed.pop("without", ()))
    return replace(strict, faults={one: one for one in SITUATIONS if one not in quiet}, **changed)


def found(messages: list[Any], known: Profile | None = None, *, format: Any = CHAT, **body: Any) -> list[str]:
    """The situations, each with its path."""
    known = known or profile()
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    whole = {"tools": tools, **body, format.list_field: messages}
    return [f"{one.rule} {one.path}" for one in check(whole, Every(format), known)]  # type: ignore[arg-type]


USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "yes"}
NOTE = {"role": "system", "content": "note"}


def call(call_id: Any, name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*ids: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(one) for one in ids]}


def tool(call_id: Any, content: Any = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


CASES: list[tuple[str, list[Any], list[str]]] = [
    ("all is well", [NOTE, USER, calls("a", "b"), tool("b"), tool("a"), SAID, USER], []),
    ("an unknown role", [USER, {"role": "model", "content": "x"}, USER], ["role.unknown messages[1]"]),
    ("no role", [USER, {"content": "x"}, USER], ["role.unknown messages[1]"]),
    ("no message", [USER, 7, USER], ["role.unknown messages[1]", "message.empty messages[1]"]),
    ("a late system message", [USER, NOTE, USER], ["role.system messages[1]"]),
    ("an early assistant", [SAID, USER], ["role.first messages[0]"]),
    ("an assistant at the end", [USER, SAID], ["role.last messages[1]"]),
    ("a system message at the end", [USER, NOTE], ["role.system messages[1]", "role.last messages[1]"]),
    ("a missing result", [USER, calls("a", "b"), tool("b"), USER], ["pair.missing messages[1].tool_calls[0]"]),
    ("an open end", [USER, calls("a")], ["pair.missing messages[1].tool_calls[0]"]),
    ("a word between", [USER, calls("a"), USER, tool("a")], ["pair.gap messages[3]"]),
    ("a word of the model between", [USER, calls("a"), SAID, tool("a")], ["pair.gap messages[3]"]),
    ("other calls between", [USER, calls("a"), calls("b"), tool("a"), tool("b")], ["pair.gap messages[3]"]),
    (
        "two calls, one after the other, and a late result",
        [USER, calls("a"), USER, calls("b"), tool("b"), tool("a")],
        ["pair.gap messages[5]"],
    ),
    (
        "the conversation went on",
        [USER, calls("a"), SAID, USER, tool("a"), USER],
        ["pair.missing messages[1].tool_calls[0]", "pair.orphan messages[4]"],
    ),
    ("two results", [USER, calls("a"), tool("a"), tool("a")], ["pair.repeated messages[3]"]),
    ("a result too late", [USER, calls("a"), tool("a"), USER, tool("a")], ["pair.orphan messages[4]"]),
    ("a stranger", [USER, calls("a"), tool("a"), tool("x")], ["pair.stranger messages[3]"]),
    ("an orphan", [USER, SAID, tool("x"), USER], ["pair.orphan messages[2]"]),
    (
        "no ids",
        [USER, calls(None), {"role": "tool", "content": "1"}],
        ["id.missing messages[1].tool_calls[0]"],
    ),
    ("an id on one side", [USER, calls(None), tool("a")], ["id.missing messages[1].tool_calls[0]"]),
    ("an id on the other side", [USER, calls("a"), tool(None)], ["id.missing messages[2]"]),
    ("an odd id", [USER, calls("A B"), tool("A B")], ["id.pattern messages[1].tool_calls[0]"]),
    ("a long id", [USER, calls("a" * 13), tool("a" * 13)], ["id.length messages[1].tool_calls[0]"]),
    (
        "one id for two calls",
        [USER, calls("a", "a"), tool("a"), tool("a")],
        ["id.repeated messages[1].tool_calls[1]"],
    ),
    (
        "one id for two calls, one result",
        [USER, calls("a", "a"), tool("a")],
        ["id.repeated messages[1].tool_calls[1]", "pair.missing messages[1].tool_calls[1]"],
    ),
    (
        "arguments that are an object",
        [USER, {"role": "assistant", "content": None, "tool_calls": [call("a", arguments={})]}, tool("a")],
        ["args.type messages[1].tool_calls[0]"],
    ),
    (
        "arguments that are no JSON",
        [USER, {"role": "assistant", "content": None, "tool_calls": [call("a", arguments='{"x"')]}, tool("a")],
        ["args.json messages[1].tool_calls[0]"],
    ),
    (
        "arguments that are a list",
        [USER, {"role": "assistant", "content": None, "tool_calls": [call("a", arguments="[]")]}, tool("a")],
        ["args.json messages[1].tool_calls[0]"],
    ),
    (
        "an odd name",
        [USER, {"role": "assistant", "content": None, "tool_calls": [call("a", "f.g")]}, tool("a")],
        ["name.pattern messages[1].tool_calls[0]"],
    ),
    (
        "a long name",
        [USER, {"role": "assistant", "content": None, "tool_calls": [call("a", "f" * 65)]}, tool("a")],
        ["name.length messages[1].tool_calls[0]"],
    ),
    ("an empty text", [USER, {"role": "assistant", "content": ""}, USER], ["text.empty messages[1].content"]),
    ("a blank text", [USER, {"role": "assistant", "content": " \n"}, USER], ["text.blank messages[1]"]),
    (
        "a blank beside a text",
        [{"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "x"}]}],
        [],
    ),
    ("nothing in it", [USER, {"role": "assistant", "content": None}, USER], ["message.empty messages[1]"]),
    (
        "nothing in the last one",
        [USER, {"role": "assistant", "content": None}],
        ["message.empty messages[1]", "role.last messages[1]"],
    ),
    ("no messages", [], ["message.none "]),
    (
        "a result without content",
        [USER, calls("a"), {"role": "tool", "tool_call_id": "a"}],
        ["result.empty messages[2]"],
    ),
    (
        "an image in a result",
        [USER, calls("a"), tool("a", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}])],
        ["media.result messages[2]"],
    ),
    (
        "an image of the model",
        [USER, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}, USER],
        ["media.role messages[1].content[0]"],
    ),
]


@pytest.mark.parametrize(("messages", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_situations(messages: list[Any], expected: list[str]) -> None:
    assert sorted(found(messages)) == sorted(expected)


def test_nothing_is_a_fault_that_the_profile_does_not_name() -> None:
    for _, messages, _ in CASES:
        assert found(messages, profile(without=set(SITUATIONS))) == []


def test_followers() -> None:
    known = profile(followers={"user": ("assistant",), "tool": ("assistant",)}, without={"role.last"})
    assert found([USER, USER], known) == ["role.follows messages[1]"]
    assert found([USER, calls("a"), tool("a"), USER], known) == ["role.follows messages[3]"]
    assert found([USER, SAID, SAID], known) == []


def test_a_system_message_outside_of_exchanges_only() -> None:
    known = profile(system="outside", without={"pair.gap"})
    assert found([USER, calls("a"), NOTE, tool("a")], known) == ["role.system messages[2]"]
    assert found([USER, calls("a"), tool("a"), NOTE, USER], known) == []
    assert found([USER, NOTE, USER], profile(system="anywhere")) == []
    assert found([NOTE, USER], profile(system="aside")) == ["role.system messages[0]"]


def test_ids_that_are_new_in_the_whole_history() -> None:
    twice = [USER, calls("a"), tool("a"), USER, calls("a"), tool("a")]
    assert found(twice) == []
    assert found(twice, profile(unique_ids="history")) == ["id.repeated messages[4].tool_calls[0]"]


def test_an_assistant_may_end_with_nothing_where_that_is_fine() -> None:
    last = [USER, {"role": "assistant", "content": None}]
    known = profile(traits=frozenset({"empty_final"}), without={"role.last"})
    assert found(last, known) == []
    assert found([*last, USER], known) == ["message.empty messages[1]"]


def test_tools() -> None:
    once = [USER, calls("a"), tool("a"), calls("b"), tool("b")]
    assert found(once, tools=None) == ["tools.absent messages[1].tool_calls[0]"]
    assert found([USER], tools=[]) == ["tools.empty tools"]
    odd = [{"type": "function", "function": {"name": "f.g", "parameters": {}}}]
    assert found([USER], tools=odd) == ["name.pattern tools[0]"]


def test_without_a_frame_nothing_is_said_of_tools() -> None:
    checker = Checker(Every(CHAT), profile())  # type: ignore[arg-type]
    said = []
    for index, message in enumerate([USER, calls("a"), tool("a"), USER]):
        said += checker.take(CHAT.unfold(message, f"messages[{index}]"))
    said += checker.close()
    assert [one.rule for one in said if one.rule.startswith("tools")] == []


def test_what_is_only_good_to_know_is_not_reported() -> None:
    every = Every(CHAT)
    every.rules = tuple(replace(one, severity="info") for one in every.rules)
    assert check({"messages": []}, every, profile()) == []  # type: ignore[arg-type]


# --- results in user messages -----------------------------------------------------------------------

BLOCKS = {"without": {"pair.beside"}, "results": "next", "results_in": "user"}


def uses(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in ids]}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": [_block(one) for one in blocks]}


def _block(one: Any) -> Any:
    if isinstance(one, dict):
        return one
    if one.startswith("text"):
        return {"type": "text", "text": one}
    return {"type": "tool_result", "tool_use_id": one, "content": "1"}


BLOCK_CASES: list[tuple[str, list[Any], list[str]]] = [
    ("all is well", [USER, uses("a", "b"), user("b", "a", "text"), uses("c"), user("c")], []),
    ("split", [USER, uses("a", "b"), user("a"), user("b")], ["pair.split messages[3]"]),
    ("text first", [USER, uses("a"), user("text", "a")], ["pair.order messages[2].content[0]"]),
    ("text between", [USER, uses("a"), user("text"), user("a")], ["pair.gap messages[3].content[0]"]),
    ("answered by words", [USER, uses("a"), user("text")], ["pair.missing messages[1].content[0]"]),
    (
        "a result beside its call",
        [USER, {"role": "assistant", "content": [*uses("a")["content"], _block("a")]}, user("a")],
        ["role.result messages[1].content[1]"],
    ),
    (
        "a call in a user message",
        [{"role": "user", "content": uses("a")["content"]}, user("a")],
        ["role.call messages[0].content[0]"],
    ),
    (
        "an error that says nothing",
        [USER, uses("a"), user({"type": "tool_result", "tool_use_id": "a", "content": [], "is_error": True})],
        ["result.silent messages[2].content[0]"],
    ),
]


@pytest.mark.parametrize(
    ("messages", "expected"), [one[1:] for one in BLOCK_CASES], ids=[one[0] for one in BLOCK_CASES]
)
def test_situations_in_blocks(messages: list[Any], expected: list[str]) -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    known = profile(arguments="object", **BLOCKS)
    assert sorted(found(messages, known, format=ANTHROPIC, tools=tools)) == sorted(expected)


def test_neighbours_that_are_one_message_to_the_provider() -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    body = [USER, uses("a"), uses("b"), user("a", "b")]
    apart = profile(arguments="object", **BLOCKS)
    assert found(body, apart, format=ANTHROPIC, tools=tools) == ["pair.gap messages[3].content[0]"]
    assert found(body, replace(apart, merges=True), format=ANTHROPIC, tools=tools) == []


def test_a_result_names_its_tool() -> None:
    named = replace(profile(), faults={"pair.name": "pair.name"})
    assert found([USER, calls("a"), tool("a")], named) == ["pair.name messages[2]"]
    assert found([USER, calls("a"), {**tool("a"), "name": "g"}], named) == ["pair.name messages[2]"]
    assert found([USER, calls("a"), {**tool("a"), "name": "f"}], named) == []


def test_results_by_themselves() -> None:
    known = profile(arguments="object", results="next", results_in="user")
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    assert found([USER, uses("a"), user("a", "text")], known, format=ANTHROPIC, tools=tools) == [
        "pair.beside messages[2].content[1]"
    ]


# --- items ------------------------------------------------------------------------------------------

ITEM = {"type": "function_call", "name": "f", "arguments": "{}"}


def out(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "1"}


def test_items_side_by_side_are_one_assistant_turn() -> None:
    known = profile()
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    items = [USER, {**ITEM, "call_id": "a"}, {**ITEM, "call_id": "b"}, out("a"), out("b")]
    assert found(items, known, format=RESPONSES, tools=tools) == []
    items.insert(3, SAID)
    assert found(items, known, format=RESPONSES, tools=tools) == ["pair.gap input[4]", "pair.gap input[5]"]


def test_results_anywhere() -> None:
    known = profile(results="anywhere")
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    late = [USER, {**ITEM, "call_id": "a"}, USER, SAID, USER, out("a")]
    assert found(late, known, format=RESPONSES, tools=tools) == []
    assert found([*late, out("a")], known, format=RESPONSES, tools=tools) == ["pair.repeated input[6]"]
    assert found([*late, out("x")], known, format=RESPONSES, tools=tools) == ["pair.orphan input[6]"]
    assert found(late[:-1], known, format=RESPONSES, tools=tools) == ["pair.missing input[1]"]
    again = [*late, {**ITEM, "call_id": "a"}, out("a")]
    assert found(again, known, format=RESPONSES, tools=tools) == []
    assert found([out("x")], known, format=RESPONSES, tools=tools, previous_response_id="r") == []


# --- provenance -------------------------------------------------------------------------------------


def test_where_reasoning_came_from() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "S"}
    body = {"system": "s", "messages": [USER, {"role": "assistant", "content": [thinking]}, USER]}
    known = profile(model="m-1", without={"role.last"}, results_in="user")
    prefix = Prefix(body, ANTHROPIC)
    prefix.add(ANTHROPIC.unfold(USER, "messages[0]"))
    made = Artefact("S", "p", "m-1-20260101", digest(thinking), prefix.value)

    def said(artefact: Artefact, changed: dict[str, Any] | None = None) -> list[str]:
        return [one.rule for one in check({**body, **(changed or {})}, Every(ANTHROPIC), known, [artefact])]  # type: ignore[arg-type]

    assert said(made) == []
    assert said(replace(made, model="n-1")) == ["reasoning.foreign"]
    assert said(replace(made, provider="q")) == ["reasoning.foreign"]
    assert said(replace(made, digest=digest({}))) == ["reasoning.edited"]
    assert said(made, {"system": "t"}) == ["reasoning.prefix"]
    assert said(replace(made, prefix=""), {"system": "t"}) == []


# --- bodies -----------------------------------------------------------------------------------------


def test_a_body_without_messages_is_no_request() -> None:
    for body in ({}, {"messages": None}, {"messages": {"0": USER}}, {"messages": "hi"}):
        with pytest.raises(ConfigError, match="'messages'"):
            check(body, CHAT, CHAT.profile())
    assert check({"input": "hi"}, RESPONSES, RESPONSES.profile()) == []


def test_diagnostics_come_by_position() -> None:
    messages = [USER, calls("a"), *[USER] * 10, calls("b" * 41)]
    found = check({"messages": messages, "tools": [], "tool_choice": "auto"}, CHAT, CHAT.profile())
    assert [one.path for one in found] == [
        "tools",
        "tool_choice",
        "messages[1].tool_calls[0]",
        "messages[12].tool_calls[0]",
        "messages[12].tool_calls[0]",
    ]


# --- cost -------------------------------------------------------------------------------------------


def peak(format: Any, exchanges: int) -> int:
    checker = Checker(format, format.profile())
    tracemalloc.start()
    for index in range(exchanges):
        for message in (calls(f"a{index}"), tool(f"a{index}"), SAID, USER):
            assert list(checker.take(format.unfold(message, f"messages[{index}]"))) == []
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.slow
def test_memory_does_not_grow_with_the_history() -> None:
    assert peak(CHAT, 3000) < 200_000


@pytest.mark.slow
def test_a_reply_with_very_many_calls_takes_no_longer_than_it_must() -> None:
    ids = [f"a{number}" for number in range(5000)]
    messages = [USER, calls(*ids), *[tool(one) for one in reversed(ids)]]
    assert found(messages) == []
    nameless = [USER, calls(*[None] * 5000), *[{"role": "tool", "content": "1"} for _ in ids]]
    assert found(nameless, profile(without={"id.missing"})) == []
