"""Chat Completions bodies, unfolded and folded; what the inspector finds, and what cures it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.core.transcript import File, Image, Text
from tenlines.wire.checking import check
from tenlines.wire.openai_chat.format import FORMAT
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Tool, Turn

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
PART = st.one_of(
    JSON,
    st.sampled_from(
        [
            {"type": "text", "text": "a"},
            {"type": "refusal", "refusal": "no"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "image_url", "image_url": "https://example.org/i.png"},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f-1"}},
            {"type": "thinking", "thinking": "hm"},
        ]
    ),
)
CALL = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"id": JSON, "type": st.just("function"), "function": st.fixed_dictionaries({"name": JSON, "arguments": JSON})}
    ),
    st.just({"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}),
)
MESSAGE = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "model", 3])},
        optional={
            "content": JSON | st.lists(PART, max_size=3),
            "tool_calls": JSON | st.lists(CALL, max_size=2),
            "function_call": st.none() | st.just({"name": "f", "arguments": "{}"}),
            "tool_call_id": JSON,
            "name": JSON,
            "reasoning_content": JSON,
            "x-unknown": JSON,
        },
    ),
)


def unfold(message: Any) -> Turn:
    return FORMAT.unfold(message, "messages[0]")


# --- there and back ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(MESSAGE)
def test_what_nobody_touched_goes_back_as_it_came(message: Any) -> None:
    turn = unfold(message)
    assert FORMAT.fold(turn) == message
    assert all(block.path.startswith("messages[0]") for block in turn.blocks)


@settings(max_examples=60)
@given(MESSAGE)
def test_what_is_written_from_fields_is_read_as_the_same(message: Any) -> None:
    turn = unfold(message)
    bare = Turn(
        turn.role,
        tuple(
            Block(one.kind, one.path, None, one.id, one.name, one.arguments, one.text, one.parts)
            if one.kind in ("text", "call", "result")
            else one
            for one in turn.blocks
        ),
        turn.path,
        turn.raw,
        turn.wire_role,
    )
    again = unfold(FORMAT.fold(bare))
    if turn.role != "unknown":
        assert [(one.kind, one.id, one.name, one.arguments, one.text) for one in again.blocks] == [
            (one.kind, one.id, one.name, one.arguments, one.text) for one in turn.blocks
        ]


def test_the_blocks_of_a_message() -> None:
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}, {"type": "odd"}],
        "reasoning_content": "hm",
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "sig"}},
            }
        ],
    }
    assert [(one.kind, one.path, one.text, one.name, one.signature) for one in unfold(message).blocks] == [
        ("reasoning", "messages[0].reasoning_content", "hm", "", ""),
        ("text", "messages[0].content[0]", "a", "", ""),
        ("other", "messages[0].content[1]", "", "", ""),
        ("call", "messages[0].tool_calls[0]", "", "f", "sig"),
    ]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("hi", (Text("hi"),)),
        ("", (Text(""),)),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], (Text("a"), Text("b"))),
        (None, ()),
    ],
)
def test_a_result_is_one_block(content: Any, parts: Any) -> None:
    (block,) = unfold({"role": "tool", "tool_call_id": "c", "content": content}).blocks
    assert (block.kind, block.id, block.parts) == ("result", "c", parts)


@pytest.mark.parametrize(
    ("part", "parts"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            (Image("image/png", b"hi"),),
        ),
        ({"type": "image_url", "image_url": "https://h/i"}, (Image("image/*", url="https://h/i"),)),
        ({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}}, (File("audio/mp3", b"hi"),)),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
            (File("application/pdf", b"hi", "a.pdf"),),
        ),
        ({"type": "file", "file": {"file_id": "f-1"}}, ()),
        ({"type": "input_audio", "input_audio": {"data": "?"}}, ()),
    ],
)
def test_media_are_read_and_written(part: Any, parts: Any) -> None:
    (block,) = unfold({"role": "user", "content": [part]}).blocks
    assert (block.kind, block.parts) == ("media", parts)
    if parts and not isinstance(part.get("image_url"), str):
        made = Turn("user", (Block("media", "", parts=parts),), "messages[0]")
        assert FORMAT.fold(made) == {"role": "user", "content": [part]}


def test_a_call_in_the_old_form_has_its_result() -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    assert check({"messages": messages}, FORMAT, FORMAT.profile()) == []
    call, result = (unfold(message).blocks[0] for message in messages[1:])
    assert call.id == result.id != ""
    made = Turn("tool", (Block("result", "x", id=result.id, name="f", parts=(Text("2"),)),), "x")
    assert FORMAT.fold(made) == {"role": "function", "name": "f", "content": "2"}


def test_a_changed_call_keeps_what_blocks_do_not_hold() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}, "note": 1},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}", "more": 2}},
        ],
        "other": 3,
    }
    turn = unfold(message)
    blocks = tuple(
        Block("call", one.path, id=f"{one.id}2", name=one.name, arguments=one.arguments) for one in turn.blocks
    )
    changed: Any = FORMAT.fold(Turn("assistant", blocks, turn.path, message, "assistant"))
    message["tool_calls"][0]["id"], message["tool_calls"][1]["id"] = "a2", "b2"  # type: ignore[index]
    assert changed == message


def test_a_message_that_becomes_a_users_loses_what_only_results_have() -> None:
    raw = {"role": "tool", "tool_call_id": "c", "content": "1"}
    made = Turn("user", (Block("text", "messages[0]", text="a result"),), "messages[0]", raw, "tool")
    assert FORMAT.fold(made) == {"role": "user", "content": "a result"}


@pytest.mark.parametrize("role", ["developer", "system"])
def test_a_changed_system_message_keeps_its_word_for_the_role(role: str) -> None:
    turn = unfold({"role": role, "content": "a"})
    made = Turn("system", (Block("text", "messages[0].content", text="b"),), turn.path, turn.raw, turn.wire_role)
    assert FORMAT.fold(made) == {"role": role, "content": "b"}


# --- tools ------------------------------------------------------------------------------------------

OWN = {"type": "web_search"}
DECLARED = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def test_tools_are_read_and_written_and_the_providers_own_stay() -> None:
    body: Any = {"tools": [OWN, DECLARED], "messages": []}
    (tool,) = FORMAT.frame(body).tools
    assert (tool.name, tool.path, tool.description, tool.parameters) == ("f", "tools[1]", "d", {"type": "object"})
    assert FORMAT.fold_frame(body, (), (tool,)) is body
    renamed = Tool("g", "tools[1]")
    assert FORMAT.fold_frame(body, (), (renamed, tool))["tools"] == [
        OWN,
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
        DECLARED,
    ]


# --- cures ------------------------------------------------------------------------------------------


def cured(body: Any, **context: str | bool) -> Any:
    """What the format itself cures, without the general repairs."""
    profile = FORMAT.profile(context)
    amended, changes = FORMAT.amend_frame(body, profile)
    assert FORMAT.amend_frame(amended, profile) == (amended, [])
    turns = [FORMAT.unfold(one, f"messages[{index}]") for index, one in enumerate(body["messages"])]
    turns, more = FORMAT.amend(turns, profile, (), is_last=True)
    assert FORMAT.amend(turns, profile, (), is_last=True) == (turns, [])
    assert changes or more
    amended["messages"] = [FORMAT.fold(turn) for turn in turns]
    assert check(amended, FORMAT, profile) == []
    return amended


USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "hello"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def test_too_many_tools_lose_those_that_were_not_called() -> None:
    tools = [{"type": "function", "function": {"name": f"t{number}"}} for number in range(130)]
    call = {"id": "a", "type": "function", "function": {"name": "t129", "arguments": "{}"}}
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}]
    messages.append({"role": "tool", "tool_call_id": "a", "content": "1"})
    names = [tool["function"]["name"] for tool in cured({"messages": messages, "tools": tools})["tools"]]
    assert names == [f"t{number}" for number in range(127)] + ["t129"]


def test_parameters_that_do_not_go_together() -> None:
    without = cured({"messages": [USER], "tool_choice": "auto", "parallel_tool_calls": True})
    assert without == {"messages": [USER]}
    assert cured({"messages": [USER], "tools": "f", "tool_choice": "auto"}) == {"messages": [USER]}
    effort = cured({"messages": [USER], "tools": [TOOL], "reasoning_effort": "high"}, model="gpt-5.6")
    assert effort["reasoning_effort"] == "none"
    limit = cured({"messages": [USER], "max_tokens": 5, "temperature": 1, "stop": "x"}, model="o4-mini")
    assert limit == {"messages": [USER], "max_completion_tokens": 5}
    choice = cured({"messages": [USER], "tools": [TOOL], "tool_choice": "required"}, server="deepseek", thinking=True)
    assert choice["tool_choice"] == "auto"


def test_a_strict_tool_gets_a_strict_schema() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": parameters}}
    (mended,) = cured({"messages": [USER], "tools": [tool]})["tools"]
    assert mended["function"]["parameters"]["required"] == ["a"]
    assert mended["function"]["parameters"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("message", "mended"),
    [
        ({"role": "user", "content": {"text": "hi"}}, USER),
        ({"role": "user", "content": 3}, {"role": "user", "content": ""}),
        ({**SAID, "tool_calls": []}, SAID),
        ({**SAID, "reasoning_content": "hm"}, SAID),
        ({"role": "assistant", "content": None, "reasoning": "hm"}, {"role": "assistant", "content": ""}),
        ({**USER, "name": "Ada L."}, {**USER, "name": "Ada_L"}),
        ({**USER, "name": "?"}, USER),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "x"}, 3]},
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
        ),
    ],
)
def test_messages(message: Any, mended: Any) -> None:
    assert cured({"messages": [message, USER]})["messages"] == [mended, USER]


def test_a_call_without_a_type_is_a_functions() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "a", "content": "1"}
    body = {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, result]}
    assert cured(body)["messages"][1]["tool_calls"] == [{**call, "type": "function"}]


def test_reasoning_that_must_be_there_is_filled_in_and_that_which_must_not_is_taken_out() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]
    body = {"messages": messages, "tools": [TOOL]}
    assert cured(body, server="deepseek", thinking=True)["messages"][1]["reasoning_content"] == ""
    said = {"messages": [USER, {**SAID, "reasoning_content": "hm"}, USER]}
    assert cured(said, server="deepseek", model="deepseek-r1")["messages"][1] == SAID


def test_llama_cpp_neither_continues_nor_gets_tools_without_parameters() -> None:
    body = cured({"messages": [USER, SAID, SAID], "tools": [{"type": "function"}]}, server="llama.cpp")
    assert body["messages"][3]["role"] == "user"
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.slow
@given(st.lists(MESSAGE, max_size=4), st.dictionaries(st.sampled_from(["tools", "tool_choice", "max_tokens"]), JSON))
def test_inspecting_and_amending_are_total(messages: list[Any], fields: dict[str, Any]) -> None:
    for context in ({}, {"model": "o4-mini"}, {"server": "llama.cpp"}, {"server": "deepseek"}, {"server": "x"}):
        profile = FORMAT.profile(context)
        body = {**fields, "messages": messages}
        check(body, FORMAT, profile)
        FORMAT.amend_frame(body, profile)
        turns = [FORMAT.unfold(one, f"messages[{index}]") for index, one in enumerate(messages)]
        once, _ = FORMAT.amend(turns, profile, (), is_last=True)
        assert FORMAT.amend(once, profile, (), is_last=True) == (once, [])
        json.dumps([FORMAT.fold(turn) for turn in once])


def test_calls_in_a_user_message_are_found_and_moved() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked: Any = {"role": "user", "content": "hi", "tool_calls": [call]}
    body: Any = {"messages": [asked, {"role": "tool", "tool_call_id": "c1", "content": "1"}]}
    profile = FORMAT.profile()
    assert [(one.rule, one.path) for one in check(body, FORMAT, profile)] == [("OAI-C-6", "messages[0].tool_calls[0]")]
    assert repair(body, FORMAT, profile).body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        body["messages"][1],
    ]
