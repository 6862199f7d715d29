"""Converse bodies unfolded, checked and cured; hostile replies."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator
from hostile import JSON, mostly, objects
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import File, Image, Json, Reply, Text
from tenlines.errors import MalformedReply, RemoteError
from tenlines.wire.bedrock import rules
from tenlines.wire.bedrock.binary import from_sdk, to_sdk
from tenlines.wire.bedrock.format import FORMAT
from tenlines.wire.checking import check
from tenlines.wire.profile import Profile, Target
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Tool, Turn

TEXT = mostly(st.text(max_size=3))
MEDIA = objects(format=TEXT, name=TEXT, source=objects(bytes=TEXT, s3Location=objects(uri=TEXT)))
REASONING = objects(reasoningText=objects(text=TEXT, signature=TEXT), redactedContent=TEXT)
USE = objects(toolUseId=TEXT, name=TEXT, input=JSON, type=JSON)
RESULT = objects(toolUseId=TEXT, status=JSON, content=mostly(st.lists(objects(text=TEXT, json=JSON, image=MEDIA))))
BLOCK = st.one_of(
    objects(text=TEXT),
    objects(image=MEDIA),
    objects(document=MEDIA),
    objects(toolUse=USE),
    objects(toolResult=RESULT),
    objects(reasoningContent=REASONING),
    objects(citationsContent=objects(content=mostly(st.lists(objects(text=TEXT), max_size=2)))),
)
CONTENT = mostly(st.lists(BLOCK, max_size=3))
MESSAGE = objects(role=mostly(st.sampled_from(["user", "assistant", "system", "tool"])), content=CONTENT, extra=JSON)

# --- unfolding --------------------------------------------------------------------------------------


@pytest.mark.slow
@given(MESSAGE)
def test_a_message_that_nobody_touched_goes_back_as_it_came(message: Any) -> None:
    before = msgspec.json.encode(message)
    assert msgspec.json.encode(FORMAT.fold(FORMAT.unfold(message, "messages[0]"))) == before


@given(objects(system=CONTENT, toolConfig=objects(tools=mostly(st.lists(objects(toolSpec=JSON, cachePoint=JSON))))))
def test_what_stands_beside_goes_back_as_it_came(body: Any) -> None:
    if isinstance(body, dict):
        frame = FORMAT.frame(body)
        assert msgspec.json.encode(FORMAT.fold_frame(body, frame.system, frame.tools)) == msgspec.json.encode(body)


@pytest.mark.slow
@given(MESSAGE)
def test_what_a_repair_wrote_anew_reads_the_same(message: Any) -> None:
    turn = FORMAT.unfold(message, "messages[0]")
    bare = [
        msgspec.structs.replace(block, raw=None)
        for block in turn.blocks
        if block.kind in ("text", "call", "result") and (block.kind != "result" or block.parts)
    ]
    again = FORMAT.unfold(FORMAT.fold(Turn("assistant", tuple(bare), "messages[0]")), "messages[0]")
    for old, new in zip(bare, again.blocks, strict=True):
        assert (new.kind, new.id, new.name, new.is_error) == (
            old.kind,
            old.id,
            old.name if old.kind == "call" else "",
            (old.is_error),
        )


def test_blocks_and_their_places() -> None:
    turn = FORMAT.unfold(
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "x"}, {"json": {"n": 1}}], "status": "error"}},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"document": {"format": "pdf", "name": "d", "source": {"bytes": b"hi"}}},
                {"cachePoint": {"type": "default"}},
            ],
        },
        "messages[2]",
    )
    assert [(block.kind, block.path) for block in turn.blocks] == [
        ("result", "messages[2].content[0]"),
        ("media", "messages[2].content[1]"),
        ("media", "messages[2].content[2]"),
        ("other", "messages[2].content[3]"),
    ]
    first, second, third, _ = turn.blocks
    assert (first.id, first.parts, first.is_error) == ("a", (Text("x"), Json({"n": 1})), True)
    assert second.parts == (Image("image/png", b"hi"),)
    assert third.parts == (File("application/pdf", b"hi", "d"),)


def test_a_changed_block_is_written_and_the_others_stay() -> None:
    message: Any = {"role": "assistant", "content": [{"text": "a", "x": 1}, {"toolUse": {"toolUseId": "i"}}], "y": 2}
    turn = FORMAT.unfold(message, "messages[0]")
    changed = msgspec.structs.replace(turn, blocks=(turn.blocks[0], Block("call", "", id="j", name="f", arguments={})))
    assert FORMAT.fold(changed) == {
        "role": "assistant",
        "content": [{"text": "a", "x": 1}, {"toolUse": {"toolUseId": "j", "name": "f", "input": {}}}],
        "y": 2,
    }


def test_tools_are_changed_and_marks_stay() -> None:
    mark = {"cachePoint": {"type": "default"}}
    body: Any = {"toolConfig": {"tools": [rules.tool("f"), mark], "toolChoice": {"auto": {}}}, "messages": []}
    frame = FORMAT.frame(body)
    changed = FORMAT.fold_frame(body, (), [*frame.tools, Tool("g", "", "d", {"type": "object"})])
    assert changed["toolConfig"] == {
        "tools": [
            rules.tool("f"),
            mark,
            {"toolSpec": {"name": "g", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
        ],
        "toolChoice": {"auto": {}},
    }
    assert "toolConfig" not in FORMAT.fold_frame({"toolConfig": {"tools": [rules.tool("f")]}}, (), ())
    assert FORMAT.fold_frame({}, [Turn("system", (Block("text", "", text="s"),), "")], ()) == {
        "system": [{"text": "s"}]
    }


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


@pytest.mark.parametrize("rule_id", ["BED-10", "BED-11", "BED-13", "BED-14", "BED-15", "BED-16", "BED-17", "BED-20"])
def test_cures(rule_id: str) -> None:
    rule = next(one for one in FORMAT.rules if one.id == rule_id)
    profile, body = FORMAT.profile(rule.context), json.loads(rule.example)
    assert rule_id in [one.rule for one in check(body, FORMAT, profile)]
    assert [one for one in check(cured(body, profile), FORMAT, profile) if one.rule == rule_id] == []


def test_documents_beside_results_are_moved_behind_a_word_of_the_assistant() -> None:
    profile = FORMAT.profile({"model_family": "anthropic"})
    body: Any = {
        "messages": [rules.USER, rules.said(rules.call()), rules.asked(rules.result(), rules.DOCUMENT)],
        "toolConfig": {"tools": [rules.tool()]},
    }
    assert {one.rule for one in check(body, FORMAT, profile)} == {"BED-13", "BED-17"}
    mended = cured(body, profile)
    assert check(mended, FORMAT, profile) == []
    assert [one["role"] for one in mended["messages"]] == ["user", "assistant", "user", "assistant", "user"]


def test_too_many_and_too_large_files_become_words() -> None:
    profile = FORMAT.profile()
    image: Any = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
    large: Any = {"image": {"format": "png", "source": {"bytes": "A" * 5_200_000}}}
    body: Any = {"messages": [rules.asked(large, *[image] * 21, *[rules.DOCUMENT] * 6, "look")]}
    assert [one.rule for one in check(body, FORMAT, profile)] == ["BED-17"] * 3
    content = cured(body, profile)["messages"][0]["content"]
    assert content[0] == {"text": "(image/png, 3.7 MiB, not shown)"}
    assert sum("image" in block for block in content) == 20
    assert sum("document" in block for block in content) == 5


def test_the_families_that_are_named_by_a_model() -> None:
    for model, family in [
        ("us.anthropic.claude-opus-5-v1:0", "anthropic"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/eu.amazon.nova-pro-v1:0", "amazon.nova"),
        ("global.meta.llama4-scout-v1:0", "meta"),
        ("amazon.titan-text-v1", "amazon"),
        ("us.moonshotai.kimi-k2", "moonshot"),
        ("made-up", ""),
    ]:
        assert rules.family_of({"model": model}) == family
    assert FORMAT.profile({"model_family": "anthropic"}).first == ()
    assert FORMAT.profile().first == ("user",)


def test_what_the_examples_show_the_service_model_takes_for_the_right_shape() -> None:
    converse = get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    for rule in FORMAT.rules:
        if rule.example and rule.id not in ("BED-1", "BED-5", "BED-6", "BED-10", "BED-11"):
            body = {"modelId": "m", **json.loads(rule.example)}
            assert ParamValidator().validate(to_sdk(body), converse).generate_report() == "", rule.id


# --- hostile replies --------------------------------------------------------------------------------

USAGE = objects(inputTokens=JSON, outputTokens=JSON, cacheReadInputTokens=JSON, cacheWriteInputTokens=JSON)
REASON = mostly(st.sampled_from(["end_turn", "tool_use", "max_tokens"]))
RESPONSE = objects(
    output=objects(message=objects(content=CONTENT)),
    stopReason=REASON,
    usage=USAGE,
    trace=JSON,
    __type=JSON,
    Error=objects(Code=JSON, Message=JSON),
)
DELTA = objects(
    text=TEXT,
    toolUse=objects(input=TEXT),
    reasoningContent=objects(text=TEXT, signature=TEXT, redactedContent=TEXT),
    citation=JSON,
    toolResult=JSON,
    image=JSON,
)
INDEX = mostly(st.integers(0, 2))
EVENT = st.one_of(
    objects(messageStart=JSON),
    objects(
        contentBlockStart=objects(contentBlockIndex=INDEX, start=objects(toolUse=USE, toolResult=RESULT, image=JSON))
    ),
    objects(contentBlockDelta=objects(contentBlockIndex=INDEX, delta=DELTA)),
    objects(messageStop=objects(stopReason=REASON)),
    objects(metadata=objects(usage=USAGE, trace=JSON)),
    objects(throttlingException=JSON),
)
TARGET = Target(profile=FORMAT.profile({"model_family": "anthropic"}), model="anthropic.claude-opus-5")


def is_sound(reply: Reply) -> None:
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


@pytest.mark.slow
@given(RESPONSE)
def test_any_response(data: Any) -> None:
    try:
        is_sound(FORMAT.talk(TARGET).decode(data))
    except RemoteError as error:
        assert str(error)  # noqa: PT017


@given(st.lists(EVENT, max_size=6))
def test_any_stream(events: list[Any]) -> None:
    decoder = FORMAT.talk(TARGET).decoder()
    try:
        for data in events:
            decoder.feed(data)
        is_sound(decoder.finish())
    except RemoteError as error:
        assert str(error)  # noqa: PT017


def test_depth_bombs() -> None:
    bomb: Any = {}
    for _ in range(5000):
        bomb = {"a": bomb}
    for block in ({"toolUse": {"toolUseId": "a", "name": "f", "input": bomb}}, {"novel": bomb}):
        with pytest.raises(MalformedReply):
            FORMAT.talk(TARGET).decode({"output": {"message": {"content": [block]}}})
    with pytest.raises(MalformedReply):
        FORMAT.talk(TARGET).decode(bomb)
    assert FORMAT.fold(FORMAT.unfold(bomb, "messages[0]")) is bomb


@given(st.lists(st.binary(max_size=3)), JSON)
def test_the_way_to_the_sdk_and_back(pieces: list[bytes], given_json: Any) -> None:
    content: list[Any] = [{"image": {"format": "png", "source": {"bytes": piece}}} for piece in pieces]
    content.append({"toolUse": {"toolUseId": "a", "name": "f", "input": given_json}})
    content.append({"reasoningContent": {"redactedContent": b"\x00"}})
    body = {"messages": [{"role": "user", "content": content}]}
    assert repr(to_sdk(from_sdk(body))) == repr(body)


PICTURE = {"format": "png", "source": {"bytes": "aGk="}}
THINKING = {"reasoningContent": {"reasoningText": {"text": "h"}}}

# --- repairs ----------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c 1", "", "x" * 70])
GIVEN = st.sampled_from([{}, "{}", "{", {"a": 1}, None, [1]])
ANSWERS = st.sampled_from([[], [{"text": ""}], [{"text": "x"}], None, "s", [{"image": PICTURE}]])
BROKEN = st.one_of(
    st.sampled_from(["", "x", " ", "y"]).map(lambda text: {"text": text}),
    st.builds(rules.call, IDS, st.sampled_from(["f", "g.h", ""]), GIVEN),
    st.builds(
        lambda call_id, fields: {"toolResult": {"toolUseId": call_id, **fields}},
        IDS,
        st.fixed_dictionaries({}, optional={"content": ANSWERS, "status": st.sampled_from(["error", "success"])}),
    ),
    st.sampled_from([rules.DOCUMENT, THINKING, {"cachePoint": {"type": "default"}}]),
)
TURNS = st.one_of(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "user", "assistant", "system", "tool"]),
            "content": st.lists(BROKEN, max_size=4),
        }
    ),
    MESSAGE,
)
TOOLS = st.sampled_from([rules.tool(), {"toolSpec": {"name": "g.h", "description": ""}}, {"cachePoint": {}}])
BODIES = st.fixed_dictionaries(
    {"messages": st.lists(TURNS, max_size=6)},
    optional={
        "system": st.sampled_from([[{"text": ""}], [{"text": "s"}]]),
        "toolConfig": st.fixed_dictionaries(
            {"tools": st.lists(TOOLS, max_size=2)},
            optional={"toolChoice": st.sampled_from([{"none": {}}, {"auto": {}}])},
        ),
    },
)


@pytest.mark.slow
@given(BODIES, st.sampled_from(["", "anthropic", "amazon.nova", "meta.llama", "mistral", "writer", "deepseek"]))
def test_a_repair_leaves_nothing_to_find_and_nothing_to_do(body: Any, family: str) -> None:
    profile = FORMAT.profile({"model_family": family})
    repaired = repair(body, FORMAT, profile).body
    assert check(repaired, FORMAT, profile) == []
    assert repair(repaired, FORMAT, profile).changes == ()
