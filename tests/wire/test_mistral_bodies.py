"""Bodies for Mistral unfolded, checked and cured; hostile replies."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hostile import JSON, mostly, objects
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import Image, Reply, Text
from tenlines.errors import MalformedReply, RemoteError
from tenlines.wire.checking import check
from tenlines.wire.mistral import rules
from tenlines.wire.mistral.format import FORMAT
from tenlines.wire.profile import Profile, Target
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Tool

TEXT = mostly(st.text(max_size=3))
CHUNK = objects(
    type=mostly(st.sampled_from(["text", "thinking", "image_url", "input_audio", "reference"])),
    text=TEXT,
    thinking=mostly(st.lists(objects(type=st.just("text"), text=TEXT), max_size=2)),
    image_url=mostly(st.sampled_from(["data:image/png;base64,aGk=", "data:,%", "https://h/i.png"])),
    closed=JSON,
)
CONTENT = mostly(st.text(max_size=3), st.lists(CHUNK, max_size=3))
CALL = objects(
    id=mostly(st.sampled_from(["null", "a"])),
    index=JSON,
    function=objects(name=TEXT, arguments=mostly(st.just("{}"))),
)
MESSAGE = objects(
    role=mostly(st.sampled_from(["system", "user", "assistant", "tool"])),
    content=CONTENT,
    tool_calls=mostly(st.lists(CALL, max_size=3)),
    tool_call_id=TEXT,
    name=TEXT,
    prefix=JSON,
)


THOUGHT: Any = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}

# --- unfolding --------------------------------------------------------------------------------------


@pytest.mark.slow
@given(MESSAGE)
def test_a_message_that_nobody_touched_goes_back_as_it_came(message: Any) -> None:
    before = msgspec.json.encode(message)
    assert msgspec.json.encode(FORMAT.fold(FORMAT.unfold(message, "messages[0]"))) == before


@given(objects(tools=mostly(st.lists(objects(function=JSON, type=JSON)))))
def test_what_stands_beside_goes_back_as_it_came(body: Any) -> None:
    if isinstance(body, dict):
        frame = FORMAT.frame(body)
        assert FORMAT.fold_frame(body, frame.system, frame.tools) is body


def test_blocks_and_their_places() -> None:
    said = FORMAT.unfold(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "h"}]},
                {"type": "text", "text": "x"},
            ],
            "tool_calls": [rules.call("null")],
        },
        "messages[1]",
    )
    assert [(block.kind, block.path, block.text) for block in said.blocks] == [
        ("reasoning", "messages[1].content[0]", "h"),
        ("text", "messages[1].content[1]", "x"),
        ("call", "messages[1].tool_calls[0]", ""),
    ]
    assert said.blocks[2].id == ""
    answer = FORMAT.unfold(rules.result(content=[rules.IMAGE, {"type": "text", "text": "y"}]), "messages[2]")
    (block,) = answer.blocks
    assert (block.id, block.name, block.text, block.path) == ("aaaaaaaa1", "f", "y", "messages[2]")
    assert block.parts == (Image("image/png", b"\x89PNG\r\n\x1a\n"), Text("y"))


def test_a_changed_block_is_written_and_the_others_stay() -> None:
    message: Any = {"role": "assistant", "content": "a", "tool_calls": [rules.call("x"), rules.call("y")], "z": 1}
    turn = FORMAT.unfold(message, "messages[0]")
    changed = (*turn.blocks[:2], Block("call", "", id="n", name="g", arguments="{}"))
    assert FORMAT.fold(msgspec.structs.replace(turn, blocks=changed)) == {
        "role": "assistant",
        "content": "a",
        "z": 1,
        "tool_calls": [rules.call("x"), {**rules.call("n", "g")}],
    }
    answer = FORMAT.unfold(rules.result(), "messages[1]")
    renamed = (msgspec.structs.replace(answer.blocks[0], raw=None, id="n"),)
    assert FORMAT.fold(msgspec.structs.replace(answer, blocks=renamed)) == rules.result("n")


def test_tools_are_changed_and_those_of_the_provider_stay() -> None:
    body: Any = {"tools": [{"type": "web_search"}, rules.tool("f")], "messages": []}
    changed = FORMAT.fold_frame(body, (), [Tool("g", "", "d", {"type": "object", "properties": {}})])
    assert changed["tools"] == [{"type": "web_search"}, rules.tool("g")]


# --- cures ------------------------------------------------------------------------------------------


def cured(body: Any, profile: Profile) -> Any:
    """What the format's own cures make of a body."""
    before = copy.deepcopy(body)
    mended, _ = FORMAT.amend_frame(body, profile)
    turns = [FORMAT.unfold(one, f"messages[{index}]") for index, one in enumerate(body["messages"])]
    turns, _ = FORMAT.amend(turns, profile, (), is_last=True)
    again, changes = FORMAT.amend(turns, profile, (), is_last=True)
    assert again is turns, changes
    assert body == before
    assert FORMAT.amend_frame(mended, profile) == (mended, [])
    return {**mended, "messages": [FORMAT.fold(turn) for turn in turns]}


@pytest.mark.parametrize("rule_id", ["MIS-1", "MIS-3", "MIS-7", "MIS-9"])
def test_cures(rule_id: str) -> None:
    rule = next(one for one in FORMAT.rules if one.id == rule_id)
    profile, body = FORMAT.profile(rule.context), json.loads(rule.example)
    assert rule_id in [one.rule for one in check(body, FORMAT, profile)]
    assert check(cured(body, profile), FORMAT, profile) == []


def test_a_prefix_may_only_be_the_last_message() -> None:
    profile = FORMAT.profile()
    first: Any = {"role": "assistant", "content": "The", "prefix": True}
    body = {"messages": [rules.USER, first, rules.USER, first]}
    assert [(one.rule, one.path) for one in check(body, FORMAT, profile)] == [("MIS-3", "messages[1]")]
    assert cured(body, profile)["messages"] == [rules.USER, {"role": "assistant", "content": "The"}, rules.USER, first]


def test_thoughts_and_images_of_older_versions() -> None:
    thought: Any = {
        "role": "assistant",
        "content": [THOUGHT, {"type": "text", "text": "x"}],
    }
    body = {"messages": [{"role": "user", "content": [rules.IMAGE]}, thought, rules.USER]}
    for tokenizer, found in (("v2", 2), ("v7", 1), ("v11", 0)):
        profile = FORMAT.profile({"tokenizer": tokenizer})
        assert [one.rule for one in check(body, FORMAT, profile)] == ["MIS-11"] * found
        assert check(cured(body, profile), FORMAT, profile) == []
    mended = cured(body, FORMAT.profile({"tokenizer": "v2"}))["messages"]
    assert mended[0] == {"role": "user", "content": [{"type": "text", "text": "(image/png, 8 bytes, not shown)"}]}
    assert mended[1] == {"role": "assistant", "content": [{"type": "text", "text": "x"}]}


def test_calls_in_the_very_first_message() -> None:
    body: Any = {"messages": [rules.calling(rules.call()), rules.result()]}
    profile = FORMAT.profile({"tokenizer": "v13"})
    assert [one.rule for one in check(body, FORMAT, profile)] == ["MIS-1"]
    assert cured(body, profile)["messages"][0] == {"role": "user", "content": "(conversation start)"}


def test_a_message_without_content() -> None:
    profile = FORMAT.profile({"tokenizer": "v13"})
    body: Any = {"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "user", "content": ""}]}
    assert [(one.rule, one.path) for one in check(body, FORMAT, profile)] == [("MIS-7", "messages[0]")]
    assert cured(body, profile)["messages"][0] == {"role": "user", "content": "(empty)"}


def test_profiles() -> None:
    assert FORMAT.profile({"tokenizer": "v13"}).name == "mistral:v13"
    assert FORMAT.profile({"tokenizer": "odd", "model": "m"}).name == "mistral"
    hosted = FORMAT.profile({"tokenizer": "v15", "server": "mistral-api"})
    assert hosted.followers["tool"] == ("assistant", "tool")
    assert "media.result" not in hosted.faults


# --- hostile replies --------------------------------------------------------------------------------

USAGE = objects(
    prompt_tokens=JSON,
    completion_tokens=JSON,
    num_cached_tokens=JSON,
    prompt_tokens_details=objects(cached_tokens=JSON),
)
RESPONSE = objects(
    choices=mostly(
        st.lists(
            objects(
                message=MESSAGE, delta=MESSAGE, finish_reason=mostly(st.sampled_from(["stop", "tool_calls", "error"]))
            ),
            max_size=2,
        )
    ),
    usage=USAGE,
    model=JSON,
    error=JSON,
    object=mostly(st.just("error")),
)
TARGET = Target(profile=FORMAT.profile(), model="mistral-large-2512")


def is_sound(reply: Reply) -> None:
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


@pytest.mark.slow
@given(RESPONSE)
def test_any_response(data: Any) -> None:
    try:
        is_sound(FORMAT.talk(TARGET).decode(data))
    except RemoteError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.slow
@given(st.lists(RESPONSE, max_size=5))
def test_any_stream(chunks: list[Any]) -> None:
    decoder = FORMAT.talk(TARGET).decoder()
    try:
        for data in chunks:
            decoder.feed(data)
        is_sound(decoder.finish())
    except RemoteError as error:
        assert str(error)  # noqa: PT017


def test_depth_bombs() -> None:
    bomb: Any = {}
    for _ in range(5000):
        bomb = {"a": bomb}
    chunk = {"type": "novel", "bomb": bomb}
    decoder = FORMAT.talk(TARGET).decoder()
    decoder.feed({"choices": [{"delta": {"content": [chunk]}, "finish_reason": "stop"}]})
    with pytest.raises(MalformedReply):
        decoder.finish()
    for message in ({"content": [chunk]}, {"tool_calls": [{"function": {"name": "f", "arguments": bomb}}]}):
        with pytest.raises(MalformedReply):
            FORMAT.talk(TARGET).decode({"choices": [{"message": message}]})


# --- fields -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "mended", "places"),
    [
        ({"role": "user", "content": "x", "tool_call_id": "a"}, {"role": "user", "content": "x"}, ["tool_call_id"]),
        (
            {"role": "assistant", "content": "x", "refusal": None, "name": "y"},
            {"role": "assistant", "content": "x"},
            ["refusal", "name"],
        ),
        (
            {"role": "user", "content": [{"type": "text"}, {"type": "text", "text": "x"}]},
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            ["content[0]"],
        ),
    ],
)
def test_a_message_has_the_fields_of_its_role_and_text_that_is_text(
    message: Any, mended: Any, places: list[str]
) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}, message, {"role": "user", "content": "so?"}]}
    found = check(body, FORMAT, FORMAT.profile())
    assert [(one.rule, one.path) for one in found] == [("MIS-13", f"messages[1].{place}") for place in places]
    assert repair(body, FORMAT, FORMAT.profile()).body["messages"][1] == mended


@pytest.mark.parametrize("name", ["", "a b", "n" * 65, 7])
def test_a_result_has_the_name_of_its_tool_or_none(name: Any) -> None:
    called, answer = rules.calling(rules.call()), {**rules.result(), "name": name}
    body: Any = {"messages": [rules.USER, called, answer], "tools": [rules.tool()]}
    assert [one.rule for one in check(body, FORMAT, FORMAT.profile())] == ["MIS-8"]
    assert repair(body, FORMAT, FORMAT.profile()).body["messages"][2] == rules.result()


@pytest.mark.parametrize("function", [{"name": "f"}, {"name": "f", "arguments": None}, {"name": "f", "arguments": [1]}])
def test_a_call_has_arguments(function: Any) -> None:
    called = {"role": "assistant", "tool_calls": [{"id": "aaaaaaaa1", "function": function}]}
    body: Any = {"messages": [rules.USER, called, rules.result()], "tools": [rules.tool()]}
    assert [one.rule for one in check(body, FORMAT, FORMAT.profile())] == ["MIS-13"]
    assert check(repair(body, FORMAT, FORMAT.profile()).body, FORMAT, FORMAT.profile()) == []
