"""What a repair makes of broken bodies: valid ones, with nothing lost in silence and nothing made up."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from broken import broken
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from protocol_vectors import vectors

from tenlines.core.outcomes import unrecorded
from tenlines.errors import ConfigError
from tenlines.wire.checking import check
from tenlines.wire.digest import digest
from tenlines.wire.formats import FORMATS
from tenlines.wire.mending.order import SEPARATOR
from tenlines.wire.mending.turns import NO_MESSAGE, NO_OUTPUT, SYSTEM_PREFIX
from tenlines.wire.parts import CONTINUE, START
from tenlines.wire.profile import Artefact
from tenlines.wire.repairing import Repaired, Repairer, repair

CHAT, ANTHROPIC, RESPONSES, GEMINI = (
    FORMATS[name] for name in ("openai_chat", "anthropic", "openai_responses", "gemini")
)
USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "yes"}
NOTE = {"role": "system", "content": "note"}


def call(call_id: Any, name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*ids: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(one) for one in ids]}


def calling(*made: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


def tool(call_id: Any, content: Any = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*messages: Any, context: Any = None, **body: Any) -> tuple[list[Any], list[str]]:
    """The messages after the repair, and what was done."""
    repaired = repair({**body, "messages": list(messages)}, CHAT, CHAT.profile(context))
    return repaired.body["messages"], told(repaired)


def told(repaired: Repaired) -> list[str]:
    return [f"{one.kind} {one.path}" for one in repaired.changes]


# --- calls and results ------------------------------------------------------------------------------


def test_a_word_between_moves_behind_the_results() -> None:
    messages, done = chat(USER, calls("a"), USER, tool("a"))
    assert messages == [USER, calls("a"), tool("a"), USER]
    assert done == ["PAIR-GAP messages[3]"]


def test_a_word_of_the_model_between_moves_before_the_calls() -> None:
    messages, _ = chat(USER, calls("a"), SAID, tool("a"), USER)
    assert messages == [USER, SAID, calls("a"), tool("a"), USER]


def test_two_calling_messages_in_a_row_each_get_their_results() -> None:
    messages, _ = chat(USER, calls("a"), calls("b"), tool("b", "B"), tool("a", "A"))
    assert messages == [USER, calls("a"), tool("a", "A"), calls("b"), tool("b", "B")]


def test_a_late_result_finds_its_call_behind_another_exchange() -> None:
    messages, _ = chat(USER, calls("a"), USER, calls("b"), tool("b"), tool("a"), USER)
    assert messages == [USER, calls("a"), tool("a"), USER, calls("b"), tool("b"), USER]


def test_a_missing_result_is_filled_in_truthfully() -> None:
    messages, done = chat(USER, calls("a", "b"), tool("b"), USER)
    assert messages == [USER, calls("a", "b"), tool("b"), tool("a", unrecorded("f")), USER]
    assert done == ["PAIR-MISSING messages[1].tool_calls[0]"]
    assert "may" in unrecorded("f")


def test_a_call_at_the_end_is_answered() -> None:
    assert chat(USER, calls("a"))[0] == [USER, calls("a"), tool("a", unrecorded("f"))]


def test_of_two_results_the_last_that_a_tool_gave_stays() -> None:
    messages, done = chat(USER, calls("a"), tool("a", "aborted"), tool("a", "18C"))
    assert messages == [USER, calls("a"), tool("a", "18C")]
    assert done == ["PAIR-DUP messages[2]"]
    messages, _ = chat(USER, calls("a"), tool("a", "18C"), tool("a", unrecorded("f")))
    assert messages == [USER, calls("a"), tool("a", "18C")]


def test_a_stranger_is_given_to_the_only_call_without_a_result() -> None:
    messages, done = chat(USER, calls("a", "b"), tool("a"), tool("x", "18C"))
    assert messages == [USER, calls("a", "b"), tool("a"), tool("b", "18C")]
    assert done == ["PAIR-ORPHAN messages[3]"]


def test_a_stranger_in_doubt_is_dropped_and_quoted() -> None:
    repaired = repair({"messages": [USER, calls("a", "b"), tool("x", "18C")]}, CHAT, CHAT.profile())
    assert [one["tool_call_id"] for one in repaired.body["messages"][2:]] == ["a", "b"]
    dropped = [one.message for one in repaired.changes if one.kind == "PAIR-ORPHAN"]
    assert dropped == ["Dropped a result for 'x', which is no call's: '18C'."]


def test_a_cut_history_loses_its_orphans_only() -> None:
    assert chat(tool("x"), USER, calls("a"), tool("a"))[0] == [USER, calls("a"), tool("a")]


def test_results_stand_in_one_message_and_first() -> None:
    use = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in "abc"]
    answer = [{"type": "tool_result", "tool_use_id": one, "content": one} for one in "abc"]
    words = [{"type": "text", "text": one} for one in ("x", "y")]
    body = {
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            USER,
            {"role": "assistant", "content": use},
            {"role": "user", "content": [words[0], answer[2], answer[0]]},
            {"role": "user", "content": [answer[1], words[1]]},
        ],
    }
    repaired = repair(body, ANTHROPIC, ANTHROPIC.profile(), warnings=True)
    assert repaired.body["messages"] == [
        *body["messages"][:2],
        {"role": "user", "content": [*answer, *words]},
    ]
    assert {one.kind for one in repaired.changes} == {"PAIR-ORDER", "PAIR-SPLIT"}


def test_a_made_result_joins_those_that_are_there() -> None:
    use = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in "ab"]
    body = {
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [USER, {"role": "assistant", "content": use}, {"role": "user", "content": "never mind"}],
    }
    answers = repair(body, ANTHROPIC, ANTHROPIC.profile()).body["messages"][2:]
    blocks = [block for one in answers for block in one["content"]]
    assert [one.get("tool_use_id") for one in blocks] == ["a", "b", None]
    assert all(one["is_error"] for one in blocks[:2])


def test_a_result_that_may_come_at_any_time_is_waited_for() -> None:
    def out(call_id: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": "1"}

    item = {"type": "function_call", "name": "f", "arguments": "{}"}
    items = [USER, {**item, "call_id": "a"}, {**item, "call_id": "b"}, USER, SAID, USER, SAID, USER, out("a")]
    repaired = repair({"input": items}, RESPONSES, RESPONSES.profile())
    given = repaired.body["input"]
    assert told(repaired) == ["PAIR-MISSING input[2]"]
    assert given[3]["call_id"] == "b"
    assert given[:3] + given[4:] == items


# --- ids --------------------------------------------------------------------------------------------


def ids_of(messages: list[Any]) -> tuple[list[str], list[str]]:
    asked = [one["id"] for message in messages for one in message.get("tool_calls", ())]
    return asked, [message["tool_call_id"] for message in messages if message["role"] == "tool"]


@pytest.mark.parametrize(
    ("made", "answers"),
    [
        (("a", "a"), (tool("a", "A"), tool("a", "B"))),
        ((None, None), (tool(None, "A"), tool(None, "B"))),
        (("x" * 41, "y" * 41), (tool("x" * 41, "A"), tool("y" * 41, "B"))),
        (("a", ""), (tool("a", "A"), tool("", "B"))),
    ],
)
def test_ids_are_made_on_both_sides_by_position(made: Any, answers: Any) -> None:
    messages, done = chat(USER, calls(*made), *answers, USER)
    asked, answered = ids_of(messages)
    assert asked == answered
    assert len(set(asked)) == 2
    assert all(asked)
    assert [one["content"] for one in messages[2:4]] == ["A", "B"]
    assert all(one.startswith("ID-") for one in done)


def test_ids_stay_the_same_as_the_history_grows() -> None:
    start = [USER, calls("a", "a"), tool("a"), tool("a")]
    short, _ = chat(*start)
    long, _ = chat(*start, SAID, USER, calls("a", "a"), tool("a"), tool("a"))
    assert long[: len(short)] == short
    asked, answered = ids_of(long)
    assert asked == answered


def test_an_id_that_is_used_again_is_new_where_that_is_demanded() -> None:
    def exchange(number: int) -> list[Any]:
        use = {"type": "tool_use", "id": "call_0", "name": "f", "input": {"n": number}}
        return [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": str(number)}]},
        ]

    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    body = {"tools": tools, "messages": [USER, *exchange(1), *exchange(2)]}
    messages: Any = repair(body, ANTHROPIC, ANTHROPIC.profile()).body["messages"]
    assert messages[:3] == body["messages"][:3]
    assert messages[3]["content"][0]["id"] == messages[4]["content"][0]["tool_use_id"] != "call_0"


def test_ids_of_nine_letters() -> None:
    format = FORMATS["mistral"]
    profile = format.profile({"tokenizer": "v3"})
    body = {"messages": [USER, calls("call_1"), {**tool("call_1"), "name": "f"}]}
    repaired = repair(body, format, profile)
    asked, answered = ids_of(repaired.body["messages"])
    assert asked == answered
    assert len(asked[0]) == 9


# --- arguments and names ----------------------------------------------------------------------------


def test_arguments_become_what_the_format_takes() -> None:
    messages, _ = chat(USER, calling(call("a", arguments={"x": 1})), tool("a"))
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == {"x": 1}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": '{"x": 1}'}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    body = {"tools": tools, "messages": [USER, {"role": "assistant", "content": [use]}, answer]}
    repaired: Any = repair(body, ANTHROPIC, ANTHROPIC.profile()).body["messages"]
    assert repaired[1]["content"][0]["input"] == {"x": 1}


def test_arguments_that_cannot_be_read_are_quoted() -> None:
    made = calling(call("a", arguments='{"city": "Par'))
    repaired = repair({"messages": [USER, made]}, CHAT, CHAT.profile({"server": "llama.cpp"}))
    messages: Any = repaired.body["messages"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert '{"city": "Par' in messages[2]["content"]
    assert any('{"city": "Par' in one.message for one in repaired.changes if one.kind == "ARGS-JSON")
    # a result that is there says what it says
    messages, _ = chat(USER, made, tool("a", "no such city"), context={"server": "llama.cpp"})
    assert messages[2] == tool("a", "no such city")


def test_names_are_mapped_everywhere_alike() -> None:
    tools = [{"type": "function", "function": {"name": "fs.read", "parameters": {"type": "object", "properties": {}}}}]
    made = [calling(call("a", "fs.read"), call("b", "fs_read")), tool("a"), tool("b")]
    body = repair({"tools": tools, "messages": [USER, *made]}, CHAT, CHAT.profile()).body
    messages: Any = body["messages"]
    names = [one["function"]["name"] for one in messages[1]["tool_calls"]]
    assert names[0] == body["tools"][0]["function"]["name"]
    assert names[1] == "fs_read" != names[0]


def test_absent_tools_are_declared() -> None:
    use = [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]
    answer = [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]
    body = {"messages": [USER, {"role": "assistant", "content": use}, {"role": "user", "content": answer}]}
    repaired = repair(body, ANTHROPIC, ANTHROPIC.profile())
    tools: Any = repaired.body["tools"]
    assert [one["name"] for one in tools] == ["f"]
    assert told(repaired) == ["TOOLS-ABSENT tools"]


def test_no_tools_are_better_than_none() -> None:
    assert "tools" not in repair({"messages": [USER], "tools": []}, CHAT, CHAT.profile()).body


# --- texts, roles, order ----------------------------------------------------------------------------


def anthropic(*messages: Any, context: Any = None, **body: Any) -> Repaired:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    return repair({"tools": tools, **body, "messages": list(messages)}, ANTHROPIC, ANTHROPIC.profile(context))


def test_empty_texts_and_messages_are_dropped() -> None:
    empty = {"type": "text", "text": ""}
    words = {"type": "text", "text": "x"}
    blank = {"role": "assistant", "content": [{"type": "text", "text": "\n"}]}
    gone = {"role": "assistant", "content": []}
    body = anthropic(USER, {"role": "assistant", "content": [empty, words]}, USER, blank, gone, USER).body
    assert body["messages"] == [USER, {"role": "assistant", "content": [words]}, USER, USER]


def test_a_conversation_begins_and_ends_with_the_user() -> None:
    repaired = anthropic(SAID, USER, SAID, context={"model": "claude-opus-5"})
    said = json.dumps(repaired.body["messages"])
    places = [said.index(json.dumps(words)) for words in (START, "hi", "yes", CONTINUE)]
    assert [one["role"] for one in repaired.body["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert places[0] < places[2] < places[1] < places[3]


def test_system_messages_go_where_they_may_stand() -> None:
    body: Any = anthropic(NOTE, USER, SAID, NOTE, USER).body
    assert "note" in json.dumps(body["system"])
    assert body["messages"][:2] == [USER, SAID]
    assert SYSTEM_PREFIX + "note" in json.dumps(body["messages"][2])
    assert "hi" in json.dumps(body["messages"][2:])


def test_unknown_roles_are_mapped() -> None:
    messages, done = chat({"role": "human", "content": "hi"}, {"role": "model", "content": "yes"}, USER, 7)
    assert messages == [USER, SAID, USER]
    assert done == ["ROLE-UNKNOWN messages[0]", "ROLE-UNKNOWN messages[1]", "ROLE-UNKNOWN messages[3]"]


def test_a_result_of_another_format_is_a_result() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    body: Any = anthropic(USER, {"role": "assistant", "content": [use]}, tool("a", "18C")).body
    (result,) = body["messages"][2]["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "a")
    assert "18C" in json.dumps(result)


def test_neighbours_that_may_not_stand_side_by_side_are_joined_or_kept_apart() -> None:
    strict = {"server": "strict-template"}
    messages, _ = chat(USER, {"role": "user", "content": "more"}, SAID, USER, context=strict)
    assert [one["role"] for one in messages] == ["user", "assistant", "user"]
    assert "hi" in json.dumps(messages[0])
    assert "more" in json.dumps(messages[0])
    format = FORMATS["mistral"]
    after = {"messages": [USER, calls("abcDEF123"), {**tool("abcDEF123"), "name": "f"}, USER]}
    repaired: Any = repair(after, format, format.profile({"server": "mistral-api"})).body["messages"]
    assert [one["role"] for one in repaired] == ["user", "assistant", "tool", "assistant", "user"]
    assert repaired[3]["content"] in (SEPARATOR, [{"type": "text", "text": SEPARATOR}])


def test_results_that_say_nothing_say_so() -> None:
    messages, _ = chat(USER, calls("a"), {"role": "tool", "tool_call_id": "a"})
    assert messages[2]["content"] == NO_OUTPUT
    silent = {"toolResult": {"toolUseId": "a", "content": [], "status": "error"}}
    use = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    body = {
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [silent]},
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}}]
        },
    }
    bedrock = FORMATS["bedrock"]
    assert NO_MESSAGE in json.dumps(repair(body, bedrock, bedrock.profile()).body)


def test_images_of_tools_are_shown_by_the_user() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    messages, done = chat(USER, calls("a", "b"), tool("a", [{"type": "text", "text": "see"}, image]), tool("b"))
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert "see" in messages[2]["content"]
    assert messages[4]["content"][-1] == image
    assert done == ["MEDIA-PLACE messages[2]"]


# --- reasoning --------------------------------------------------------------------------------------


def thinking(text: str, signature: str = "S" * 40) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def test_foreign_reasoning_is_taken_out() -> None:
    profile = ANTHROPIC.profile({"model": "claude-opus-5"})
    words = {"type": "text", "text": "yes"}
    body = {"messages": [USER, {"role": "assistant", "content": [thinking("hm"), words]}, USER]}
    foreign = Artefact("S" * 40, "someone-else", "other-1")
    repaired = repair(body, ANTHROPIC, profile, [foreign])
    assert repaired.body["messages"] == [USER, {"role": "assistant", "content": [words]}, USER]
    assert (
        repair(body, ANTHROPIC, profile, [replace(foreign, provider="anthropic", model="claude-opus-5")]).body == body
    )


def test_edited_reasoning_takes_what_is_bound_to_it_along() -> None:
    profile = ANTHROPIC.profile({"model": "claude-opus-5"})
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}
    words = {"type": "text", "text": "yes"}
    later = thinking("then", "T" * 40)
    body = {
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            USER,
            {"role": "assistant", "content": [thinking("edited"), use]},
            answer,
            {"role": "assistant", "content": [later, words]},
            USER,
            {"role": "assistant", "content": [thinking("new", "U" * 40), words]},
            USER,
        ],
    }
    made = Artefact("S" * 40, "anthropic", "claude-opus-5", digest(thinking("as it was")))
    repaired: Any = repair(body, ANTHROPIC, profile, [made]).body["messages"]
    kinds = [[block["type"] for block in one["content"]] for one in repaired if one["role"] == "assistant"]
    assert kinds == [["tool_use"], ["text"], ["thinking", "text"]]


# --- as a whole -------------------------------------------------------------------------------------


def test_a_body_without_messages_cannot_be_repaired() -> None:
    with pytest.raises(ConfigError):
        repair({}, CHAT, CHAT.profile())


def test_a_message_in_the_shape_of_another_format_keeps_its_text() -> None:
    body: Any = {"contents": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ["yes"]}]}
    repaired = repair(
        {**body, "contents": [*body["contents"], {"parts": [{"text": "go on"}]}]}, GEMINI, GEMINI.profile()
    )
    assert repaired.body["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "yes"}]},
        {"parts": [{"text": "go on"}]},
    ]


def test_unknown_fields_and_blocks_of_what_is_not_at_fault_survive() -> None:
    odd = {**USER, "x_custom": {"y": 1}}
    messages, _ = chat(odd, calls("a"), {**odd}, tool("a"))
    assert messages[0] == odd
    assert messages[3] == odd


def test_only_errors_are_cured_unless_more_is_asked_for() -> None:
    split = next(one for one in vectors() if one.id == "ANT-18.ok.1")
    body = split.request_fragment
    assert repair(body, ANTHROPIC, ANTHROPIC.profile()).changes == ()
    assert {one.kind for one in repair(body, ANTHROPIC, ANTHROPIC.profile(), warnings=True).changes} == {"PAIR-SPLIT"}


def stream(exchanges: int) -> Iterator[dict[str, Any]]:
    for number in range(exchanges):
        yield USER
        yield calls(f"a{number}")
        if number % 10 != 3:
            yield tool(f"a{number}")
        yield SAID


def test_a_stream_is_repaired_as_it_comes() -> None:
    repairer = Repairer(CHAT, CHAT.profile())
    given, held = [], 0
    for taken, message in enumerate(stream(100), 1):
        given += [CHAT.fold(turn) for turn in repairer.take(CHAT.unfold(message, f"messages[{taken - 1}]"))]
        held = max(held, taken - len(given))
    given += [CHAT.fold(turn) for turn in repairer.close()]
    assert held <= 8
    whole = {"messages": list(stream(100))}
    assert given == repair(whole, CHAT, CHAT.profile()).body["messages"]
    assert len(repairer.changes) == 10


def test_without_a_frame_system_messages_stay_among_the_messages() -> None:
    repairer = Repairer(ANTHROPIC, ANTHROPIC.profile())
    turns = list(repairer.take(ANTHROPIC.unfold(NOTE, "messages[0]")))
    turns += repairer.take(ANTHROPIC.unfold(USER, "messages[1]"))
    turns += repairer.close()
    assert SYSTEM_PREFIX + "note" in json.dumps([ANTHROPIC.fold(turn) for turn in turns])


# --- whatever is broken -----------------------------------------------------------------------------

TARGETS = [(name, None) for name in FORMATS] + [
    ("openai_chat", {"server": "strict-template"}),
    ("openai_chat", {"server": "llama.cpp"}),
    ("openai_chat", {"server": "deepseek", "thinking": True}),
    ("openai_responses", {"server": "deepseek"}),
    ("anthropic", {"model": "claude-opus-5"}),
    ("gemini", {"model_family": "gemini-3"}),
    ("bedrock", {"model_family": "meta.llama"}),
    ("mistral", {"tokenizer": "v3"}),
    ("mistral", {"server": "mistral-api"}),
    ("ollama", {"server": "ollama-cloud"}),
]


def texts(value: Any) -> Iterator[str]:
    """All that is said in messages, wherever it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "context"), TARGETS, ids=str)
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_whatever_is_broken_is_valid_after_one_repair(name: str, context: Any, data: st.DataObject) -> None:
    format = FORMATS[name]
    profile = format.profile(context)
    body = data.draw(broken(format, context))
    before = copy.deepcopy(body)
    repaired = repair(body, format, profile)
    assert body == before
    assert [one for one in check(repaired.body, format, profile) if one.severity == "error"] == []
    again = repair(repaired.body, format, profile)
    assert again.changes == ()
    assert again.body == repaired.body
    if not repaired.changes:
        assert repaired.body == body


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai_chat", "anthropic", "gemini", "bedrock", "mistral", "openai_responses"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_that_was_said_is_lost_in_silence(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    body = data.draw(broken(format))
    entries = body[format.list_field]
    for index, entry in enumerate(entries):
        for kind, key in (("text", "text"), ("content", "content"), ("output", "output")):
            _mark(entry, key, f"{kind}-{index}-mark")
    repaired = repair(body, format, format.profile())
    left = "\n".join([*texts(repaired.body[format.list_field]), *(one.message for one in repaired.changes)])
    left += json.dumps(repaired.body)
    for mark in {one for one in texts(entries) if one.endswith("-mark")}:
        assert mark in left


WORDS_BETWEEN_CALLS = [
    {"role": "user", "content": [{"text": "u"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]},
    {"role": "assistant", "content": "kept words"},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "b", "name": "f", "input": {}}}]},
    {"role": "user", "content": [{"text": "wait"}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "r"}]}}]},
]
NO_TYPE = [
    {"role": "user", "content": "u"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"call_id": "c", "output": "kept words"},
]
FOREIGN_FIELD = [{"role": "user", "parts": [{"text": "kept words"}]}, {"role": "user", "content": "u"}]


@pytest.mark.parametrize(
    ("name", "messages"),
    [("bedrock", WORDS_BETWEEN_CALLS), ("openai_responses", NO_TYPE), ("mistral", FOREIGN_FIELD)],
)
def test_words_in_odd_places_are_kept_or_quoted(name: str, messages: list[Any]) -> None:
    format = FORMATS[name]
    repaired = repair({format.list_field: messages}, format, format.profile())
    told = " ".join(one.message for one in repaired.changes)
    assert "kept words" in json.dumps(repaired.body) + told
    if name == "openai_responses":
        assert repaired.body["input"][2] == {"type": "function_call_output", "call_id": "c", "output": "kept words"}


def _mark(value: Any, key: str, mark: str) -> None:
    """Put words that can be found again where a text stands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key and isinstance(inner, str) and value.get("type") not in ("thinking", "reasoning"):
                value[name] = mark
            else:
                _mark(inner, key, mark)
    elif isinstance(value, list):
        for inner in value:
            _mark(inner, key, mark)
