"""What frameworks write to disk, read as turns. The samples were written by the frameworks themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.core.transcript import File, Image, Json, Text
from tenlines.wire.dumps import agents, ai_sdk, langchain, otel, pydantic_ai
from tenlines.wire.dumps.dump import Dump
from tenlines.wire.dumps.sources import SOURCES, TITLES
from tenlines.wire.turns import Block, Turn

SAMPLES = Path(__file__).parent / "samples"
PIXEL = "iVBORw0KGgo="


def sample(name: str) -> Any:
    return json.loads((SAMPLES / f"{name}.json").read_text())


def shape(dump: Dump) -> list[Any]:
    """Roles and what is said, in the fewest words."""
    return [(turn.role, *[_short(block) for block in turn.blocks]) for turn in dump.turns]


def _short(block: Block) -> Any:
    match block.kind:
        case "call":
            return ("call", block.id, block.name, block.arguments)
        case "result":
            return ("error" if block.is_error else "result", block.id, block.parts[0] if block.parts else None)
        case "reasoning":
            return ("thought", block.text, block.signature)
        case "media":
            return block.parts[0] if block.parts else "media"
        case "text":
            return block.text
        case _:
            return block.kind


IMAGE = Image("image/png", b"\x89PNG\r\n\x1a\n")


# --- LangChain ----------------------------------------------------------------------------------------------

LANGCHAIN = [
    ("system", "Be short."),
    ("user", "Where is order 1042?", IMAGE),
    (
        "assistant",
        ("thought", "Look it up.", "sig-1"),
        "Let me see.",
        ("call", "c1", "get_order", {"order_id": "1042"}),
        ("call", "c2", "get_order", '{"order'),
    ),
    ("tool", ("result", "c1", Text('{"status":"shipped"}'))),
    ("tool", ("error", "c2", Text("no"))),
    ("assistant", "It is on its way."),
]


@pytest.mark.parametrize("name", ["langchain_dict", "langchain_dumpd", "langchain_flat"])
def test_the_three_spellings_of_langchain_say_the_same(name: str) -> None:
    dump = langchain.read(sample(name))
    assert shape(dump)[:6] == LANGCHAIN
    assert dump.turns[3].blocks[0].name == "get_order"


def test_chunks_old_functions_and_removals() -> None:
    dump = langchain.read({"messages": sample("langchain_dict")})
    assert shape(dump)[6:] == [("assistant", "x"), ("tool", ("result", "", Text("y"))), ("unknown", "z")]
    assert dump.turns[-1].wire_role == "critic"
    assert dump.remarks == ("messages[9] asks for the removal of a message; it is left out.",)


def test_calls_that_stand_only_among_the_extras() -> None:
    call = {"id": "c9", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    old = {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": [call]}}}
    older = {"type": "ai", "content": "", "additional_kwargs": {"function_call": {"name": "f", "arguments": "{}"}}}
    assert shape(langchain.read([old, older])) == [
        ("assistant", ("call", "c9", "f", '{"a": 1}')),
        ("assistant", ("call", "", "f", "{}")),
    ]


def test_reasoning_beside_the_content_and_results_in_pieces() -> None:
    ai = {"type": "ai", "content": "x", "additional_kwargs": {"reasoning_content": "why"}}
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    tool = {"type": "tool", "tool_call_id": "c", "content": ["text", picture, {"rows": 3}]}
    dump = langchain.read([ai, tool])
    assert shape(dump)[0] == ("assistant", ("thought", "why", ""), "x")
    assert dump.turns[1].blocks[0].parts == (Text("text"), IMAGE, Json({"rows": 3}))


# --- Vercel AI SDK ------------------------------------------------------------------------------------------

AI_SDK = [
    ("user", "Where is order 1042?", IMAGE),
    (
        "assistant",
        ("thought", "Look it up.", "sig-1"),
        "Let me see.",
        ("call", "c1", "get_order", {"order_id": "1042"}),
        ("call", "c2", "get_order", {"order_id": "9"}),
        ("call", "c3", "get_tracking", {"n": 1}),
    ),
    ("tool", ("result", "c1", Json({"status": "shipped", "tracking": "TRK77"}))),
    ("tool", ("error", "c2", Text("An error occurred."))),
    ("tool", ("error", "c3", Text("An error occurred."))),
    ("assistant", "It is on its way."),
]


def test_messages_of_the_user_interface() -> None:
    assert shape(ai_sdk.read(sample("ai_sdk_ui"))) == AI_SDK
    assert ai_sdk.read({"id": "chat", "messages": sample("ai_sdk_ui")}).turns[0].path == "messages[0]"


def test_messages_for_models() -> None:
    dump = ai_sdk.read(sample("ai_sdk_model"))
    flat = [one for turn in shape(dump) for one in turn[1:]]
    assert flat == ["Be short.", *(one for turn in AI_SDK for one in turn[1:])]
    assert [turn.role for turn in dump.turns] == ["system", "user", "assistant", "tool", "assistant"]


def test_version_four_in_both_of_its_spellings() -> None:
    done = {"state": "result", "step": 0, "toolCallId": "c1", "toolName": "look", "args": {"a": 1}, "result": "found"}
    begun = {"state": "call", "toolCallId": "c2", "toolName": "look", "args": {}}
    attached = [{"url": f"data:image/png;base64,{PIXEL}", "contentType": "image/png", "name": "p"}]
    user = {"role": "user", "content": "hi", "experimental_attachments": attached}
    old = {"role": "assistant", "content": "so", "reasoning": "why", "toolInvocations": [done, begun]}
    parts = [
        {"type": "step-start"},
        {"type": "reasoning", "reasoning": "why", "details": [{"type": "text", "text": "why", "signature": "s"}]},
        {"type": "tool-invocation", "toolInvocation": done},
        {"type": "step-start"},
        {"type": "text", "text": "so"},
    ]
    new = {"role": "assistant", "content": "so", "parts": parts, "toolInvocations": [done]}
    calls = ("call", "c1", "look", {"a": 1}), ("call", "c2", "look", {})
    assert shape(ai_sdk.read([user, old])) == [
        ("user", "hi", IMAGE),
        ("assistant", ("thought", "why", ""), "so", *calls),
        ("tool", ("result", "c1", Text("found"))),
    ]
    assert shape(ai_sdk.read([new])) == [
        ("assistant", ("thought", "why", "s"), calls[0]),
        ("tool", ("result", "c1", Text("found"))),
        ("assistant", "so"),
    ]


def test_states_without_a_result_have_none() -> None:
    def part(state: str, **more: Any) -> dict[str, Any]:
        return {"type": "dynamic-tool", "toolName": "f", "toolCallId": state, "state": state, "input": {}, **more}

    parts = [
        part("input-available"),
        part("approval-requested"),
        part("output-denied", approval={"id": "1", "approved": False, "reason": "no"}),
        {**part("output-available", output=1), "preliminary": True},
        {**part("output-available", output=2), "type": "tool-web", "providerExecuted": True},
        {"type": "data-weather", "data": {}},
    ]
    dump = ai_sdk.read([{"role": "assistant", "parts": parts}])
    assert [turn.role for turn in dump.turns] == ["assistant", "tool"]
    assert [block.kind for block in dump.turns[0].blocks] == ["call", "call", "call", "call", "other", "other"]
    assert dump.turns[1].blocks[0].text == "The call was denied: no"


# --- Pydantic AI --------------------------------------------------------------------------------------------


def test_a_history_of_pydantic_ai() -> None:
    assert shape(pydantic_ai.read(sample("pydantic_ai"))) == [
        ("system", "Use the tools."),
        ("system", "Be short."),
        (
            "user",
            "Where is order 1042?",
            Image("image/png", b"\x89PNG"),
            Image("image/png", b"", "https://example.org/a.png"),
        ),
        (
            "assistant",
            ("thought", "Look it up.", "sig-1"),
            "Let me see.",
            ("call", "c1", "get_order", '{"order_id": "9"}'),
            ("call", "c2", "get_order", {"order_id": "1042"}),
        ),
        ("tool", ("error", "c1", Text("no order 9"))),
        ("tool", ("result", "c2", Json({"status": "shipped"}))),
        ("assistant", ("call", "c3", "get_order", {"order_id": 1})),
        ("tool", ("error", "c3", Text("order_id: Input should be a valid string"))),
        ("assistant", "It is on its way."),
    ]


def test_older_retries_and_instructions_that_change() -> None:
    def request(*parts: Any, instructions: str | None = None) -> Any:
        return {"kind": "request", "parts": list(parts), "instructions": instructions}

    retry = {"part_kind": "retry-prompt", "content": "no", "tool_name": "f", "tool_call_id": "c"}
    plain = {"part_kind": "retry-prompt", "content": [{"loc": ["a", 0], "msg": "bad"}], "tool_name": None}
    pdf = {"kind": "binary", "data": "-_-_", "media_type": "application/pdf"}
    returned = {"part_kind": "tool-return", "content": ["see", pdf], "tool_name": "f", "tool_call_id": "d"}
    dump = pydantic_ai.read([request(retry, plain, instructions="A"), request(returned, instructions="B")])
    assert shape(dump)[:3] == [("system", "B"), ("tool", ("error", "c", Text("no"))), ("user", "a.0: bad")]
    assert dump.turns[3].blocks[0].parts == (Text("see"), File("application/pdf", b"\xfb\xff\xbf"))
    assert dump.remarks == ("[1].instructions replace earlier ones, which are left out.",)


# --- OpenAI Agents SDK --------------------------------------------------------------------------------------


def test_a_session_of_the_agents_sdk() -> None:
    call = {"order_id": "1042"}
    assert shape(agents.read(sample("agents_items"))) == [
        ("user", "Where is order 1042?"),
        ("assistant", ("call", "c1", "get_order", '{"order_id":"1042"}')),
        ("tool", ("result", "c1", Text('{"status":"shipped"}'))),
        ("assistant", ("call", "c2", "refund", json.dumps(call).replace(" ", ""))),
        ("tool", ("result", "c2", Text("ok"))),
        ("assistant", "It is on its way."),
    ]


def test_the_state_of_a_run_that_waits_for_a_yes() -> None:
    dump = agents.read(sample("agents_state"))
    assert [turn.role for turn in dump.turns] == ["user", "assistant", "tool", "assistant"]
    assert dump.turns[-1].blocks[0].id == "c2"
    assert dump.turns[-1].path == "generated_items[2].raw_item"


def test_items_of_the_sdk_for_javascript() -> None:
    call = {"type": "function_call", "callId": "c1", "name": "f", "arguments": "{}", "status": "completed"}
    result = {"type": "function_call_result", "callId": "c1", "name": "f", "output": {"type": "text", "text": "ok"}}
    assert shape(agents.read([call, result])) == [
        ("assistant", ("call", "c1", "f", "{}")),
        ("tool", ("result", "c1", Text("ok"))),
    ]


# --- OpenTelemetry ------------------------------------------------------------------------------------------

SPAN: dict[str, Any] = {
    otel.SYSTEM: [{"type": "text", "content": "Be short."}],
    otel.INPUT: [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "Where?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
                {"type": "tool_call", "id": "c2", "name": "f", "arguments": {"a": 2}},
            ],
        },
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "c1", "response": {"b": 2}},
                {"type": "tool_call_response", "id": "c2", "response": "no"},
            ],
        },
    ],
    otel.OUTPUT: [{"role": "assistant", "parts": [{"type": "text", "content": "There."}], "finish_reason": "stop"}],
    otel.TOOLS: [{"type": "function", "name": "f", "description": "Look", "parameters": {"type": "object"}}],
}
OTEL = [
    ("system", "Be short."),
    ("user", "Where?", IMAGE),
    ("assistant", ("thought", "Hm.", ""), ("call", "c1", "f", {"a": 1}), ("call", "c2", "f", {"a": 2})),
    ("tool", ("result", "c1", Json({"b": 2}))),
    ("tool", ("result", "c2", Text("no"))),
    ("assistant", "There."),
]


def tagged(value: Any) -> Any:
    """A value as OTLP writes it."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, int):
        return {"intValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [tagged(one) for one in value]}}
    return {"kvlistValue": {"values": [{"key": key, "value": tagged(one)} for key, one in value.items()]}}


@pytest.mark.parametrize(
    "span",
    [
        SPAN,
        {"name": "chat", "attributes": {key: json.dumps(value) for key, value in SPAN.items()}},
        {"attributes": [{"key": key, "value": tagged(json.dumps(value))} for key, value in SPAN.items()]},
        {"attributes": [{"key": key, "value": tagged(value)} for key, value in SPAN.items()]},
    ],
    ids=["values", "texts", "otlp texts", "otlp values"],
)
def test_a_span_in_all_its_spellings(span: Any) -> None:
    dump = otel.read(span)
    assert shape(dump) == OTEL
    assert [(tool.name, tool.description, tool.parameters) for tool in dump.tools] == [
        ("f", "Look", {"type": "object"})
    ]


def test_a_bare_list_of_messages() -> None:
    assert shape(otel.read(SPAN[otel.INPUT])) == OTEL[1:5]


# --- all of them --------------------------------------------------------------------------------------------

KEYS = [
    "type",
    "role",
    "content",
    "parts",
    "data",
    "tool_calls",
    "args",
    "id",
    "name",
    "kwargs",
    "lc",
    "toolInvocation",
    "toolCallId",
    "state",
    "input",
    "output",
    "kind",
    "part_kind",
    "tool_name",
    "attributes",
    "key",
    "value",
    "response",
    "messages",
    "text",
    "source",
    "url",
]
WORDS = [
    "human",
    "ai",
    "tool",
    "assistant",
    "user",
    "constructor",
    "text",
    "tool-f",
    "dynamic-tool",
    "output-available",
    "request",
    "response",
    "tool-return",
    "user-prompt",
    "tool_call",
    "tool_call_response",
    "image",
    "file",
    "function_call",
]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.sampled_from(WORDS)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=15,
)


@pytest.mark.parametrize("name", SOURCES)
@given(value=st.one_of(JSON, st.lists(JSON, max_size=3)))
@settings(max_examples=60, deadline=None)
def test_any_json_is_read(value: Any, name: str) -> None:
    before = json.dumps(value)
    dump = SOURCES[name](value)
    assert all(isinstance(turn, Turn) for turn in dump.turns)
    assert json.dumps(value) == before


def test_every_source_has_a_title() -> None:
    assert TITLES.keys() == SOURCES.keys()


SECOND = [name.removesuffix(".json") for name in sorted(file.name for file in SAMPLES.glob("*.json"))]


@pytest.mark.parametrize("name", [one for one in SECOND if one.startswith(tuple(SOURCES))])
def test_nothing_of_a_sample_is_left_without_a_place(name: str) -> None:
    value = sample(name)
    source = next(one for one in SOURCES if name.startswith(one))
    dump = SOURCES[source](value)
    assert dump.turns
    assert all(turn.path for turn in dump.turns)
    assert not [block for turn in dump.turns for block in turn.blocks if block.kind == "other"]
