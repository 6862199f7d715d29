"""Responses bodies: unfolded and folded, checked and cured; and what holds for every transcript."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hostile import COMPARABLE as JSON
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts import SPECS, asking, cuts, transcripts

from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Reply,
    Result,
    System,
    Text,
    User,
)
from tenlines.errors import RemoteError
from tenlines.wire.checking import check
from tenlines.wire.openai_responses.decoding import Reading, decode_response
from tenlines.wire.openai_responses.encoding import IDS
from tenlines.wire.openai_responses.format import FORMAT
from tenlines.wire.openai_responses.stream import StreamDecoder
from tenlines.wire.parts import NOTE_PREFIX, plain_text
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Tool, Turn

SERVERS = ("openai", "deepseek", "vllm", "llama.cpp")
PROFILES = {server: FORMAT.profile({"server": server}) for server in SERVERS}

# --- what models put out ------------------------------------------------------------------------------

NUMBERS = st.integers(0, 10**12)
THOUGHTS = st.builds(
    lambda number, secret, text: {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
        **({"encrypted_content": f"gAAAAA{secret}"} if secret else {}),
    },
    NUMBERS,
    st.text("ab", max_size=2),
    st.text(max_size=3),
)
SPOKEN = st.builds(
    lambda number, text, phase: {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
        **({"phase": phase} if phase else {}),
    },
    NUMBERS,
    st.text(max_size=3),
    st.sampled_from(["", "commentary"]),
)
ACTION = {"type": "search", "query": "x"}
SEARCHES = st.builds(
    lambda number: {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": ACTION}, NUMBERS
)
OTHER = THOUGHTS | SPOKEN | SEARCHES


@st.composite
def opaques(draw: st.DrawFn) -> Opaque:
    """What a reply of this format leaves with a message; for up to three calls."""
    calls = draw(st.integers(0, 3))
    blocks: list[Any] = [{"call": n, "id": f"fc_{draw(NUMBERS)}"} for n in range(calls)]
    for item in draw(st.lists(OTHER, max_size=3)):
        blocks.insert(draw(st.integers(0, len(blocks))), item)
    provider = draw(st.sampled_from(["openai", "deepseek", "vllm", "llama.cpp", "anthropic"]))
    return Opaque(provider, draw(st.sampled_from(["m", "m-2026-11-30", "n"])), {"blocks": blocks})


def target(server: str) -> Target:
    return Target(profile=PROFILES[server], model="m")


def written(messages: list[Message], server: str = "openai") -> dict[str, Any]:
    return FORMAT.talk(target(server)).request(asking(messages), stream=False)


# --- for every transcript -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
@given(messages=transcripts(opaques()))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_breaks_no_rule(server: str, messages: list[Message]) -> None:
    body = written([*messages, User((Text("go on"),))], server)
    found = check(json.loads(json.dumps(body)), FORMAT, PROFILES[server])
    assert [one for one in found if one.rule != "OAI-R-7" or "item" not in one.message] == []


@pytest.mark.slow
@given(transcripts(opaques()), st.sampled_from(SERVERS))
def test_a_request_begins_with_the_one_before(messages: list[Message], server: str) -> None:
    talk, before = FORMAT.talk(target(server)), ""
    systems = sum(isinstance(message, System) for message in messages)
    for end in (end for end in cuts(messages) if end >= systems):
        text = json.dumps(talk.request(asking(messages[:end], new_from=end), stream=False))
        assert text.startswith(before)
        assert text.endswith("]}")
        before = text.removesuffix("]}")
        assert text == json.dumps(written(messages[:end], server))


@pytest.mark.slow
@given(transcripts(opaques()), st.data())
def test_what_was_written_can_be_taken_back(messages: list[Message], data: st.DataObject) -> None:
    ends = cuts(messages)
    if not ends:
        return
    kept = data.draw(st.sampled_from(ends))
    talk = FORMAT.talk(target("openai"))
    talk.request(asking(messages), stream=False)
    changed = [*messages[:kept], User((Text("instead"),))]
    assert talk.request(asking(changed, new_from=kept), stream=False) == written(changed)


def said(turns: list[Turn]) -> dict[str, list[Any]]:
    """Texts, calls and results of a body, each in order."""
    found: dict[str, list[Any]] = {"texts": [], "calls": [], "results": []}
    for turn in turns:
        for block in turn.blocks:
            if block.kind == "text":
                found["texts"].append((turn.role, block.text))
            elif block.kind == "call":
                found["calls"].append((block.id, block.name, block.arguments))
            elif block.kind == "result":
                found["results"].append((block.id, block.text))
    return found


def meant(messages: list[Message]) -> dict[str, list[Any]]:
    """The same of a transcript."""
    found: dict[str, list[Any]] = {"texts": [], "calls": [], "results": []}
    for message in messages:
        match message:
            case System(text):
                found["texts"] += [("system", text)] if text else []
            case Note(text):
                found["texts"].append(("user", NOTE_PREFIX + text))
            case User(parts):
                shown = [plain_text((part,)) for part in parts if not isinstance(part, Image | File)]
                has_media = any(isinstance(part, Image | File) for part in parts)
                texts = [text for text in shown if text]
                found["texts"] += [("user", text) for text in texts or ([] if has_media else [""])]
            case Assistant(text, calls, _):
                found["texts"] += [("assistant", text)] if text else []
                found["calls"] += [(IDS.wire(call.id), call.name, call.arguments) for call in calls]
            case Result(call_id, _, _, parts):
                if any(isinstance(part, Image | File) for part in parts):
                    texts = [plain_text((part,)) for part in parts if isinstance(part, Text | Json)]
                    text = "\n\n".join(text for text in texts if text)
                else:
                    text = plain_text(parts)
                found["results"].append((IDS.wire(call_id), text))
    return found


@pytest.mark.slow
@given(transcripts())
def test_what_is_written_says_what_was_meant(messages: list[Message]) -> None:
    body = written(messages)
    turns = [FORMAT.unfold(item, f"input[{index}]") for index, item in enumerate(body["input"])]
    assert said(turns) == meant(messages)


@pytest.mark.slow
@given(
    st.lists(
        OTHER
        | st.builds(
            lambda n: {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "f", "arguments": "{}"},
            NUMBERS,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_reply_goes_back_as_it_came(output: list[dict[str, Any]]) -> None:
    reply = decode_response({"status": "completed", "output": output}, Reading("openai", "m"))
    messages: list[Message] = [User((Text("hi"),)), Assistant(reply.text, reply.calls, reply.opaque)]
    messages += [Result(call.id, call.name, "ok", (Text("1"),)) for call in reply.calls]
    sent = written(messages)["input"][1:]
    while output and output[-1]["type"] == "reasoning":
        output = output[:-1]
    thoughts = [item for item in output if item["type"] == "reasoning"]
    if thoughts and all(item.get("encrypted_content") for item in thoughts):
        assert sent[: len(output)] == output
    else:
        assert not any(item["type"] == "reasoning" for item in sent)
        assert not any("id" in item for item in sent if item["type"] in ("message", "function_call"))


@pytest.mark.slow
def test_requests_are_what_the_official_types_say() -> None:
    pydantic = pytest.importorskip("pydantic")
    params = pytest.importorskip("openai.types.responses.response_create_params")
    kinds = pydantic.TypeAdapter(params.ResponseCreateParamsNonStreaming)
    kind_of_items = pydantic.TypeAdapter(pytest.importorskip("openai.types.responses").ResponseInputParam)

    @given(transcripts(opaques()))
    @settings(max_examples=40, deadline=None, database=None)
    def holds(messages: list[Message]) -> None:
        body = written(messages)
        kinds.validate_python(body)
        kind_of_items.validate_python([item for item in body["input"] if item["type"] != "web_search_call"])

    holds()


# --- for any JSON -------------------------------------------------------------------------------------


def mostly(*good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The right kind most of the time, anything else at times."""
    return st.one_of(*good, *good, JSON)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.fixed_dictionaries({}, optional=fields))


WORDS = mostly(st.text(max_size=3))
TYPES = [
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "item_reference",
    "compaction",
    "compaction_trigger",
    "web_search_call",
    "novelty",
]
PARTS = objects(
    type=mostly(st.sampled_from(["input_text", "output_text", "text", "refusal", "input_image", "input_file", "x"])),
    text=WORDS,
    refusal=WORDS,
    image_url=mostly(st.sampled_from(["https://x", "data:image/png;base64,iVBORw==", "data:x;base64,?"])),
    file_data=mostly(st.sampled_from(["data:text/csv;base64,YSxi", "YSxi"])),
    filename=WORDS,
)
CONTENT = mostly(st.text(max_size=3), st.lists(PARTS, max_size=3))
ITEMS = objects(
    type=mostly(st.sampled_from(TYPES)),
    id=mostly(st.sampled_from(["fc_1", "rs_1", "msg_1", "ctc_1", "", "call_1"])),
    call_id=mostly(st.sampled_from(["a", "b", "", "c" * 70])),
    name=mostly(st.sampled_from(["f", "a.b", "n" * 70])),
    arguments=mostly(st.sampled_from(["{}", "", "{", "[]"])),
    input=WORDS,
    output=CONTENT,
    role=mostly(st.sampled_from(["user", "assistant", "system", "developer", "tool", "model"])),
    content=CONTENT,
    tool_call_id=mostly(st.sampled_from(["a", "b"])),
    summary=mostly(st.just([]), st.lists(objects(type=st.just("summary_text"), text=WORDS), max_size=2)),
    encrypted_content=mostly(st.sampled_from(["gAAAAx", "x", ""])),
    status=JSON,
    phase=JSON,
    call=JSON,
    provider_data=JSON,
)
TOOLS = objects(type=mostly(st.sampled_from(["function", "custom", "web_search"])), name=WORDS, parameters=JSON)
RESPONSES = objects(
    output=mostly(st.lists(ITEMS, max_size=4)),
    status=mostly(st.sampled_from(["completed", "incomplete", "in_progress", "failed"])),
    incomplete_details=objects(reason=mostly(st.sampled_from(["max_output_tokens"]))),
    usage=objects(
        input_tokens=JSON,
        output_tokens=JSON,
        input_tokens_details=objects(cached_tokens=JSON, cache_write_tokens=JSON),
        output_tokens_details=objects(reasoning_tokens=JSON),
    ),
    model=JSON,
    error=JSON,
)


@pytest.mark.slow
@given(JSON | ITEMS)
def test_folding_undoes_unfolding(item: Any) -> None:
    turn = FORMAT.unfold(item, "input[0]")
    assert FORMAT.fold(turn) == item
    assert turn.path == "input[0]"


@pytest.mark.slow
@given(objects(instructions=WORDS, tools=mostly(st.lists(TOOLS, max_size=3))).filter(lambda body: type(body) is dict))
def test_folding_the_frame_undoes_unfolding_it(body: dict[str, Any]) -> None:
    frame = FORMAT.frame(body)
    assert FORMAT.fold_frame(body, frame.system, frame.tools) == body


def is_sound(reply: Reply) -> None:
    json.dumps([reply.text, [call.arguments for call in reply.calls], reply.remarks]).encode()
    if reply.opaque:
        json.dumps(reply.opaque[0].payload, ensure_ascii=False).encode()


@pytest.mark.slow
@given(RESPONSES)
def test_a_response_of_any_kind_is_a_reply_or_an_error(data: Any) -> None:
    try:
        reply = decode_response(data)
    except RemoteError as error:
        assert str(error)  # noqa: PT017
        return
    is_sound(reply)
    said_again = Assistant(reply.text, reply.calls, reply.opaque)
    results = [Result(call.id, call.name, "ok", (Text("1"),)) for call in reply.calls]
    written([User((Text("hi"),)), said_again, *results])


EVENTS = objects(
    type=mostly(
        st.sampled_from(
            [
                "response.created",
                "response.output_item.added",
                "response.output_item.done",
                "response.output_text.delta",
                "response.output_text.done",
                "response.function_call_arguments.delta",
                "response.reasoning_summary_text.delta",
                "response.completed",
                "response.incomplete",
                "response.failed",
                "error",
            ]
        )
    ),
    item=ITEMS,
    item_id=mostly(st.sampled_from(["fc_1", "rs_1", "msg_1"])),
    output_index=mostly(st.integers(0, 2)),
    content_index=mostly(st.integers(0, 2)),
    delta=WORDS,
    text=WORDS,
    response=RESPONSES,
    output=JSON,
    message=WORDS,
)


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=6))
def test_a_stream_of_any_kind_is_a_reply_or_an_error(events: list[Any]) -> None:
    decoder = StreamDecoder()
    try:
        for event in [*events, {"type": "response.completed"}]:
            decoder.feed(event)
        is_sound(decoder.finish())
    except RemoteError as error:
        assert str(error)  # noqa: PT017


ARTEFACTS = st.lists(
    st.builds(
        Artefact,
        st.sampled_from(["gAAAAx", "rs_1", "fc_1", "msg_1"]),
        st.sampled_from(["", "openai", "deepseek"]),
        partners=st.lists(st.sampled_from(["rs_1", "fc_1", "msg_1"]), max_size=2).map(tuple),
    ),
    max_size=2,
)
BODIES = st.fixed_dictionaries(
    {"input": st.lists(ITEMS, max_size=6)},
    optional={
        "store": st.booleans(),
        "instructions": WORDS,
        "tools": mostly(st.lists(TOOLS, max_size=3)),
        "previous_response_id": mostly(st.text(max_size=2)),
        "conversation": mostly(st.text(max_size=2)),
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
@given(body=BODIES, artefacts=ARTEFACTS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
def test_what_is_repaired_is_without_fault(server: str, body: dict[str, Any], artefacts: list[Artefact]) -> None:
    profile, before = PROFILES[server], json.dumps(body)
    repaired = repair(body, FORMAT, profile, artefacts)
    assert json.dumps(body) == before
    assert check(repaired.body, FORMAT, profile, artefacts) == []
    assert repair(repaired.body, FORMAT, profile, artefacts).changes == ()


# --- turns --------------------------------------------------------------------------------------------


def test_items_of_the_agents_sdk() -> None:
    listed: list[Any] = [
        {"content": "hi", "role": "user"},
        {"id": "rs_1", "summary": [], "type": "reasoning", "provider_data": {"model": "m"}},
        {
            "id": "__fake_id__",
            "content": [{"annotations": [], "text": "Let me see.", "type": "output_text", "logprobs": []}],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
        {
            "arguments": '{"x": 1}',
            "call_id": "call_1",
            "name": "f",
            "type": "function_call",
            "id": "fc_1",
            "provider_data": {"model": "m"},
        },
        {
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "1"}, {"type": "input_image", "image_url": "https://x"}],
            "type": "function_call_output",
        },
        {"id": "ws_1", "action": {"type": "search"}, "status": "completed", "type": "web_search_call"},
    ]
    turns = [FORMAT.unfold(item, f"input[{index}]") for index, item in enumerate(listed)]
    assert [[block.kind for block in turn.blocks] for turn in turns] == [
        ["text"],
        ["reasoning"],
        ["text"],
        ["call"],
        ["result"],
        ["other"],
    ]
    assert [turn.role for turn in turns] == ["user", "assistant", "assistant", "assistant", "tool", "unknown"]
    assert turns[4].blocks[0].parts == (Text("1"), Image("image/*", url="https://x"))
    assert [FORMAT.fold(turn) for turn in turns] == listed
    assert [one.rule for one in check({"input": listed}, FORMAT, PROFILES["openai"])] == ["OAI-R-8"]


def test_paths() -> None:
    turn = FORMAT.unfold({"role": "user", "content": [{"type": "input_text", "text": "a"}, 7]}, "input[3]")
    assert [block.path for block in turn.blocks] == ["input[3].content[0]", "input[3].content[1]"]
    assert FORMAT.unfold({"role": "user", "content": "a"}, "input[3]").blocks[0].path == "input[3].content"


def test_a_changed_call_is_not_the_servers_any_more() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}", "namespace": "n"}
    turn = FORMAT.unfold(item, "input[0]")
    changed = Turn("assistant", (Block("call", "input[0]", id="b", name="f", arguments="{}"),), "input[0]", turn.raw)
    assert FORMAT.fold(changed) == {
        "type": "function_call",
        "call_id": "b",
        "name": "f",
        "arguments": "{}",
        "namespace": "n",
    }


def test_a_custom_call_keeps_its_input_when_its_id_changes() -> None:
    item = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x = 1"}
    block = FORMAT.unfold(item, "input[0]").blocks[0]
    assert block.arguments == '{"input": "x = 1"}'
    changed = Block("call", "input[0]", id="b", name="f", arguments=block.arguments)
    assert FORMAT.fold(Turn("assistant", (changed,), "input[0]", item)) == {**item, "call_id": "b"}


def test_turns_that_a_repair_made() -> None:
    made = Block("result", "input[1]", id="a", text="none", parts=(Text("none"),), is_synthetic=True)
    assert FORMAT.fold(Turn("tool", (made,), "input[1]")) == {
        "type": "function_call_output",
        "call_id": "a",
        "output": "none",
    }
    text = Block("text", "input[1]", text="hi")
    assert FORMAT.fold(Turn("user", (text,), "input[1]")) == {"type": "message", "role": "user", "content": "hi"}
    said_it = FORMAT.fold(Turn("assistant", (text, text), "input[1]"))
    assert said_it == {"type": "message", "role": "assistant", "content": "hihi"}


def test_the_frame() -> None:
    own = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
    search = {"type": "web_search"}
    body: dict[str, Any] = {"instructions": "Be brief.", "tools": [search, own], "input": []}
    frame = FORMAT.frame(body)
    assert [turn.blocks[0].text for turn in frame.system] == ["Be brief."]
    assert [(tool.name, tool.path) for tool in frame.tools] == [("f", "tools[1]")]
    renamed = Tool("g", "tools[1]", "", {"type": "object"})
    folded = FORMAT.fold_frame(body, (), (renamed, renamed))
    new = {"type": "function", "name": "g", "parameters": {"type": "object"}, "strict": False}
    assert folded == {"tools": [search, new, new], "input": []}


# --- rules, cures and profiles ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [rule for rule in FORMAT.rules if rule.example], ids=lambda rule: rule.id)
def test_every_example_shows_its_rule_and_is_cured(rule: Any) -> None:
    profile, body = FORMAT.profile(rule.context), json.loads(rule.example)
    found = check(body, FORMAT, profile)
    assert rule.id in [one.rule for one in found]
    assert all(one.kind in rule.kinds for one in found if one.rule == rule.id)
    repaired = repair(body, FORMAT, profile)
    assert repaired.changes
    assert check(repaired.body, FORMAT, profile) == []


def test_every_rule_that_a_profile_names_exists() -> None:
    known = {rule.id for rule in FORMAT.rules}
    for profile in PROFILES.values():
        assert set(profile.faults.values()) <= known
    assert {rule_id for _, rule_id in FORMAT.rejections} <= known


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ({}, "openai_responses"),
        ({"server": "deepseek"}, "openai_responses:deepseek"),
        ({"model": "deepseek-v4"}, "openai_responses:deepseek"),
        ({"server": "vllm", "model": "deepseek-v4"}, "openai_responses:vllm"),
        ({"server": "nobody knows"}, "openai_responses"),
        ({"server": True}, "openai_responses"),
    ],
)
def test_profiles(context: dict[str, str | bool], name: str) -> None:
    profile: Profile = FORMAT.profile(context)
    assert profile.name == name
    assert profile.model == context.get("model", "")


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAx"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "1"}
USER = {"type": "message", "role": "user", "content": "hi"}


def test_what_was_made_together_stays_together() -> None:
    made = (Artefact("rs_1", "openai", partners=("fc_1",)),)
    both: dict[str, Any] = {"input": [USER, THOUGHT, CALL, OUTPUT]}
    assert check(both, FORMAT, PROFILES["openai"], made) == []
    alone: dict[str, Any] = {"input": [USER, CALL, OUTPUT]}
    assert [one.rule for one in check(alone, FORMAT, PROFILES["openai"], made)] == ["OAI-R-9"]
    repaired = repair(alone, FORMAT, PROFILES["openai"], made).body["input"]
    assert repaired == [USER, {key: value for key, value in CALL.items() if key != "id"}, OUTPUT]


def test_reasoning_of_another_model_goes_and_so_do_the_ids_behind_it() -> None:
    made = (Artefact("gAAAAx", "openai", "gpt-5.5", partners=("fc_1",)),)
    profile = FORMAT.profile({"server": "openai", "model": "gpt-5.6"})
    body: dict[str, Any] = {"input": [USER, THOUGHT, CALL, OUTPUT]}
    assert [one.rule for one in check(body, FORMAT, profile, made)] == ["OAI-R-11"]
    repaired = repair(body, FORMAT, profile, made).body["input"]
    assert repaired == [USER, {key: value for key, value in CALL.items() if key != "id"}, OUTPUT]


def test_the_same_call_twice_is_one_call() -> None:
    body: dict[str, Any] = {"input": [USER, THOUGHT, CALL, CALL, OUTPUT]}
    assert repair(body, FORMAT, PROFILES["openai"]).body["input"] == [USER, THOUGHT, CALL, OUTPUT]
    body = {"input": [USER, THOUGHT, CALL, OUTPUT, CALL, OUTPUT]}
    assert repair(body, FORMAT, PROFILES["openai"]).body["input"] == [USER, THOUGHT, CALL, OUTPUT]


def test_a_stored_conversation_may_hold_what_is_not_here() -> None:
    body: dict[str, Any] = {"previous_response_id": "resp_1", "input": [OUTPUT]}
    assert check(body, FORMAT, PROFILES["openai"]) == []


def test_a_long_output_is_shortened() -> None:
    body: dict[str, Any] = {"input": [USER, CALL, {**OUTPUT, "output": "x" * 10_485_761}]}
    assert [one.rule for one in check(body, FORMAT, PROFILES["openai"])] == ["OAI-R-13"]
    repaired = repair(body, FORMAT, PROFILES["openai"])
    assert check(repaired.body, FORMAT, PROFILES["openai"]) == []


def test_specs_are_known() -> None:
    tools = written([User((Text("hi"),))])["tools"]
    assert [tool["name"] for tool in tools] == [spec.name for spec in SPECS]


def test_the_very_same_object_twice_is_twice() -> None:
    body: dict[str, Any] = {"input": [USER, THOUGHT, THOUGHT, CALL, OUTPUT]}
    repaired = repair(body, FORMAT, PROFILES["openai"]).body
    assert repaired["input"] == [USER, THOUGHT, CALL, OUTPUT]
