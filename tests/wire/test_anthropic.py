"""Anthropic Messages: what requests look like, and that they stay the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import MessageParam, TextBlockParam, ToolChoiceParam, ToolParam
from anthropic.types.thinking_config_param import ThinkingConfigParam
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from transcripts import SPECS, asking, cuts, transcripts

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.anthropic.format import FORMAT
from tenlines.wire.anthropic.models import TRAITS, default_max_tokens, plain_name, traits_of
from tenlines.wire.checking import check
from tenlines.wire.format import Format
from tenlines.wire.profile import Target
from tenlines.wire.turns import Turn

OPUS = "claude-opus-5-5"
MODELS = ("claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5", OPUS)
SIGNATURE = "EqQBCkYIBxgCKkBzaWduYXR1cmU="
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}

MESSAGES: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
SYSTEM: TypeAdapter[Any] = TypeAdapter(list[TextBlockParam])
TOOLS: TypeAdapter[Any] = TypeAdapter(list[ToolParam])
CHOICE: TypeAdapter[Any] = TypeAdapter(ToolChoiceParam)
CONFIG: TypeAdapter[Any] = TypeAdapter(ThinkingConfigParam)


def target(model: str = OPUS, server: str = "", **fields: Any) -> Target:
    return Target(profile=FORMAT.profile({"model": model, "server": server}), model=model, **fields)


def body_of(messages: list[Message], to: Target | None = None, **how: Any) -> dict[str, Any]:
    return FORMAT.talk(to or target()).request(asking(messages, **how), stream=False)


def sent(messages: list[Message], to: Target | None = None, **how: Any) -> list[Any]:
    """The messages of a request, marks set aside."""
    messages_sent: list[Any] = unmarked(body_of(messages, to, **how))["messages"]
    return messages_sent


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [unmarked(one) for one in value] if isinstance(value, list) else value


def call(call_id: str = "a", name: str = "f", arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def result(call_id: str = "a", text: str = "1", outcome: Any = "ok") -> Result:
    return Result(call_id, "f", outcome, (Text(text),))


def thought(*blocks: Any, model: str = OPUS, provider: str = "anthropic", **fields: Any) -> tuple[Opaque]:
    return (Opaque(provider, model, {"blocks": list(blocks), **fields}),)


ASKED = User((Text("Hi"),))


# --- the shape of a request -------------------------------------------------------------------------


def test_a_whole_request() -> None:
    messages: list[Message] = [
        System("Be brief."),
        ASKED,
        Assistant("Let me look.", (call("a", "f", '{"b": 1, "a": [2]}'), call("b"))),
        result("a", "one"),
        result("b", "it broke", "tool_error"),
        User((Text("And now?"),)),
        Note("Two steps are left."),
    ]
    body = body_of(messages, target(max_tokens=500))
    assert unmarked(body) == {
        "model": OPUS,
        "max_tokens": 500,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [
            {"name": spec.name, "description": spec.description, "input_schema": spec.parameters} for spec in SPECS
        ],
        "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"b": 1, "a": [2]}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "it broke", "is_error": True},
                    {"type": "text", "text": "And now?"},
                    {"type": "text", "text": "[note from the runtime] Two steps are left."},
                ],
            },
        ],
    }
    assert list(body)[-1] == "messages"
    assert list(body["messages"][1]["content"][1]["input"]) == ["b", "a"]


def test_a_stream_is_asked_for() -> None:
    talk = FORMAT.talk(target())
    assert talk.request(asking([ASKED]), stream=True)["stream"] is True
    assert "stream" not in talk.request(asking([ASKED]), stream=False)


def test_images_and_files() -> None:
    parts = (
        Image("image/png", b"\x89PNG"),
        Image("image/png", url="https://example.org/a.png"),
        Image("image/png", url="data:image/webp;base64,AAAA"),
        Image("image/tiff", b"II"),
        File("application/pdf", b"%PDF", "a.pdf"),
        File("text/csv", b"a,b"),
        File("application/zip", b"PK", "a.zip"),
        Json({"x": 1}),
        Opaque("openai", "gpt", {}),
        Text(" "),
    )
    blocks = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "AAAA"}},
        {"type": "text", "text": "(image/tiff, 2 bytes, not shown)"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
        {"type": "text", "text": "(a.zip, application/zip, 2 bytes, not shown)"},
        {"type": "text", "text": '{"x": 1}'},
    ]
    messages: list[Message] = [User(parts), Assistant("", (call(),)), Result("a", "f", "ok", parts)]
    found = sent(messages)
    assert found[0]["content"] == blocks
    assert found[2]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": blocks}]
    MESSAGES.validate_python(found)


def test_nothing_empty_is_sent() -> None:
    messages: list[Message] = [
        System(" "),
        User((Text(""),)),
        Assistant(" \n", (call(), call("b"))),
        result("a", " "),
        Result("b", "f", "timeout", ()),
        Assistant("\n"),
        User((Text("go on"),)),
    ]
    body = body_of(messages)
    assert "system" not in body
    assert [block for message in unmarked(body)["messages"] for block in message["content"]] == [
        {"type": "text", "text": "(empty)"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        {"type": "tool_use", "id": "b", "name": "f", "input": {}},
        {"type": "tool_result", "tool_use_id": "a", "content": "(no output)"},
        {"type": "tool_result", "tool_use_id": "b", "content": "(tool failed without a message)", "is_error": True},
        {"type": "text", "text": "go on"},
    ]


def test_who_speaks_first_and_last() -> None:
    texts = [(one["role"], one["content"][0]["text"]) for one in sent([Assistant("Welcome!"), Assistant("Well?")])]
    assert texts == [
        ("user", "(conversation start)"),
        ("assistant", "Welcome!"),
        ("user", "Continue."),
        ("assistant", "Well?"),
        ("user", "Continue."),
    ]
    assert sent([]) == [{"role": "user", "content": [{"type": "text", "text": "(conversation start)"}]}]


def test_ids_and_names_that_do_not_fit_are_mapped_and_found_again() -> None:
    specs = (ToolSpec("fs.read"), ToolSpec("fs_read"))
    talk = FORMAT.talk(target())
    messages = [ASKED, Assistant("", (call("functions.f:0", "fs.read"),)), result("functions.f:0")]
    body = unmarked(talk.request(asking(messages, specs, "fs.read"), stream=False))
    use, answer = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
    assert use["id"] == answer["tool_use_id"] != "functions.f:0"
    assert [tool["name"] for tool in body["tools"]] == [use["name"], "fs_read"]
    reply = talk.decode({"content": [{"type": "tool_use", "id": "x", "name": use["name"], "input": {}}]})
    assert reply.calls == (call("x", "fs.read"),)


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("get_order", {"type": "tool", "name": "get_order"}),
    ],
)
def test_the_choice_of_a_tool(choice: str, written: dict[str, Any]) -> None:
    old = target("claude-sonnet-4-5")
    assert body_of([ASKED], old, tool_choice=choice)["tool_choice"] == CHOICE.validate_python(written)
    forced = {"type": "auto"} if choice not in ("auto", "none") else written
    thinks = target("claude-sonnet-4-5", effort="high")
    assert body_of([ASKED], thinks, tool_choice=choice)["tool_choice"] == forced
    assert body_of([ASKED], target(OPUS), tool_choice=choice)["tool_choice"] == forced
    assert "tool_choice" not in body_of([ASKED], old, tools=(), tool_choice=choice)


def test_tools_that_are_gone_are_declared_as_long_as_they_are_called() -> None:
    messages = [ASKED, Assistant("", (call("a", "g"), call("b", "f"), call("c", "g"))), *map(result, "abc")]
    body = body_of(messages, tools=())
    assert [tool["name"] for tool in TOOLS.validate_python(unmarked(body["tools"]))] == ["g", "f"]
    assert body["tool_choice"] == {"type": "none"}
    assert "tools" not in body_of([ASKED], tools=())


def test_a_later_system_message_is_said_as_a_note() -> None:
    found = body_of([System("A"), System("B"), ASKED, System("C")])
    assert [block["text"] for block in found["system"]] == ["A", "B"]
    assert found["messages"][0]["content"][1]["text"].endswith("C")


# --- parameters -------------------------------------------------------------------------------------


def test_the_output_limit_is_always_there() -> None:
    assert body_of([ASKED])["max_tokens"] == 16_384
    assert body_of([ASKED], target("claude-3-haiku-20240307"))["max_tokens"] == 4_096
    assert body_of([ASKED], target(max_tokens=7))["max_tokens"] == 7
    assert default_max_tokens("anthropic.claude-3-7-sonnet-20250219-v1:0") == 16_384


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("claude-sonnet-4-5", None, {}),
        ("claude-sonnet-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-sonnet-4-5", "max", {"thinking": {"type": "enabled", "budget_tokens": 12288}}),
        ("claude-sonnet-4-5", "none", {}),
        (
            "claude-opus-4-5",
            "high",
            {"thinking": {"type": "enabled", "budget_tokens": 12288}, "output_config": {"effort": "high"}},
        ),
        ("claude-sonnet-4-6", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("claude-opus-4-8", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("claude-opus-4-8", "off", {}),
        ("claude-sonnet-5", "none", {"thinking": {"type": "disabled"}}),
        (OPUS, "minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        (OPUS, "none", {"output_config": {"effort": "low"}}),
        ("claude-fable-9", "max", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
        ("some-other-model", "high", {}),
    ],
)
def test_how_much_to_think(model: str, effort: str | None, expected: dict[str, Any]) -> None:
    body = body_of([ASKED], target(model, effort=effort))
    assert {key: body[key] for key in ("thinking", "output_config") if key in body} == expected
    if "thinking" in expected:
        CONFIG.validate_python(expected["thinking"])


def test_a_budget_leaves_room_for_the_reply() -> None:
    old = target("claude-sonnet-4-5", effort="high", max_tokens=3_000)
    assert body_of([ASKED], old)["thinking"]["budget_tokens"] == 1_976
    assert "thinking" not in body_of([ASKED], target("claude-sonnet-4-5", effort="high", max_tokens=2_000))


def test_a_budget_is_not_set_where_the_turn_began_without_thinking() -> None:
    old = target("claude-sonnet-4-5", effort="high")
    foreign: list[Message] = [ASKED, Assistant("Let me look.", (call(),)), result()]
    assert "thinking" not in body_of(foreign, old)
    assert "thinking" in body_of([*foreign, Assistant("1"), ASKED], old)
    own = Assistant("", (call(),), thought(THINKING, {"call": 0}, model=old.model))
    assert "thinking" in body_of([ASKED, own, result()], old)


def test_temperature_goes_only_where_it_is_taken() -> None:
    assert body_of([ASKED], target("claude-sonnet-4-5", temperature=0.0))["temperature"] == 0.0
    assert "temperature" not in body_of([ASKED], target("claude-sonnet-4-5", temperature=0.0, effort="high"))
    assert "temperature" not in body_of([ASKED], target("claude-opus-4-7", temperature=0.0))


def test_models_are_known_by_any_of_their_names() -> None:
    assert traits_of("us.anthropic.claude-opus-4-5-20251101-v1:0") == traits_of("claude-opus-4-5")
    assert (
        traits_of("anthropic/claude-opus-4.5") == traits_of("claude-opus-4-5@20251101") == traits_of("claude-opus-4-5")
    )
    assert "manual" in traits_of("claude-sonnet-4-20250514")
    assert "prefill" in traits_of("claude-3-5-sonnet-latest")
    assert traits_of("claude-opus-6") == traits_of(OPUS)
    assert plain_name("qwen2.5-coder") == ""
    assert all(traits_of(model) <= set(TRAITS) for model in MODELS)


# --- what goes back as it came ----------------------------------------------------------------------


def test_thinking_goes_back_verbatim_and_in_its_place() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    cited = {"type": "text", "text": "As they say.", "citations": [{"type": "char_location"}]}
    redacted = {"type": "redacted_thinking", "data": "EmwKAhgB"}
    kept = thought(
        THINKING, redacted, search, found, cited, THINKING, {"call": 1, "caller": {"type": "direct"}}, {"call": 0}
    )
    message = Assistant("As they say.", (call("a"), call("b", "f", '{"x": 1}')), kept)
    blocks = sent([ASKED, message, result("a"), result("b")])[1]["content"]
    assert blocks[:6] == [THINKING, redacted, search, found, cited, THINKING]
    assert blocks[6:] == [
        {"type": "tool_use", "id": "b", "name": "f", "input": {"x": 1}, "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]


@pytest.mark.parametrize(
    "kept",
    [
        thought(THINKING, {"call": 0}, model="claude-opus-5"),
        thought(THINKING, {"call": 0}, provider="deepseek"),
        thought(THINKING),
        thought(THINKING, {"call": 0}, {"call": 0}),
        thought(THINKING, {"call": 0}, {"call": 1}),
        thought(THINKING, {"call": -1}),
        (Opaque("anthropic", OPUS, {"reasoning": "x"}),),
        (Opaque("anthropic", OPUS, "x"),),
    ],
)
def test_what_others_made_is_left_out(kept: tuple[Opaque]) -> None:
    blocks = sent([ASKED, Assistant("Hm", (call(),), kept), result()])[1]["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use"]


def test_a_dated_name_is_of_the_same_family() -> None:
    kept = thought(THINKING, {"type": "text", "text": "Hm"}, model="claude-sonnet-4-5-20250929")
    assert sent([ASKED, Assistant("Hm", (), kept), ASKED], target("claude-sonnet-4-5"))[1]["content"][0] == THINKING


def test_what_the_provider_makes_and_then_refuses_is_left_out() -> None:
    unsigned = {"type": "thinking", "thinking": "cut"}
    empty, blank, said = ({"type": "text", "text": text} for text in ("", "\n", "Hm"))
    kept = thought(unsigned, empty, blank, {"call": 0})
    assert sent([ASKED, Assistant("", (call(),), kept), result()])[1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    ]
    assert sent([ASKED, Assistant("Hm", (), thought(blank, said, THINKING)), ASKED])[1]["content"] == [blank, said]
    assert [one["role"] for one in sent([ASKED, Assistant("", (), thought(THINKING)), ASKED])] == ["user"]


def test_a_paused_reply_is_the_last_message_as_it_came() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    paused = Assistant("", (), thought(THINKING, search, pause=True, container="c1"))
    body = body_of([ASKED, paused])
    assert body["messages"][-1] == {"role": "assistant", "content": [THINKING, search]}
    assert body["container"] == "c1"
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    rest = Assistant("So", (), thought(found, {"type": "text", "text": "So"}))
    roles = [one["role"] for one in sent([ASKED, paused, rest, ASKED])]
    assert roles == ["user", "assistant", "assistant", "user"]
    assert [one["role"] for one in sent([ASKED, paused], target("claude-opus-5"))] == ["user"]


def test_servers_that_want_thinking_back_get_it_empty_where_none_is_known() -> None:
    deepseek = target("deepseek-v4-pro", "deepseek")
    messages: list[Message] = [ASKED, Assistant("Hm", (call(),)), result()]
    body = body_of(messages, deepseek)
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "", "signature": ""}
    assert check(body, FORMAT, deepseek.profile) == []
    own = thought(
        {"type": "thinking", "thinking": "x", "signature": ""}, {"call": 0}, model=deepseek.model, provider="deepseek"
    )
    assert sent([ASKED, Assistant("", (call(),), own), result()], deepseek)[1]["content"][0]["thinking"] == "x"
    assert "cache_control" not in json.dumps(body)


# --- marks ------------------------------------------------------------------------------------------


def marks(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        own = [path] if "cache_control" in value else []
        return own + [found for key, one in value.items() for found in marks(one, (*path, key))]
    inner = enumerate(value) if isinstance(value, list) else ()
    return [found for index, one in inner for found in marks(one, (*path, index))]


@pytest.mark.parametrize("system", [True, False])
def test_sixty_steps_with_parallel_calls_keep_the_marks_near_the_end(system: bool) -> None:
    talk = FORMAT.talk(target())
    messages: list[Message] = [System("Be brief."), ASKED] if system else [ASKED]
    ended = -1
    for step in range(60):
        body = talk.request(asking(messages, new_from=len(messages)), stream=False)
        found = marks(body)
        last = len(body["messages"]) - 1
        assert len(found) <= 4
        assert found[0][0] == ("system" if system else "tools")
        assert max(path[1] for path in found if path[0] == "messages") >= last - 2
        assert [path for path in found if path[:2] == ("messages", last)]
        if step:
            assert [path for path in found if path[:2] == ("messages", ended)], "where the last request ended"
        assert not any(body["messages"][path[1]]["content"][path[3]]["type"] == "thinking" for path in found[1:])
        ended = last
        calls = tuple(call(f"c{step}-{number}") for number in range(step % 4))
        messages += [
            Assistant(
                "Hm",
                calls,
                thought(THINKING, {"type": "text", "text": "Hm"}, *({"call": at} for at in range(len(calls)))),
            )
        ]
        messages += [result(one.id) for one in calls] or [ASKED]
        assert marks(talk._encoder.entries) == [], "what is kept never carries a mark"


def test_a_mark_stands_within_reach_when_much_was_called_at_once() -> None:
    many = tuple(call(f"c{number}") for number in range(40))
    body = body_of([ASKED, Assistant("", many), *(result(one.id) for one in many)])
    found = [path[1:] for path in marks(body) if path[0] == "messages"]
    assert found == [(0, "content", 0), (2, "content", 19), (2, "content", 39)]


def test_marks_can_be_done_without() -> None:
    assert marks(body_of([ASKED], target("qwen", "llama.cpp"))) == []


# --- laws -------------------------------------------------------------------------------------------

OPAQUES = st.builds(
    lambda blocks, model: Opaque("anthropic", model, {"blocks": blocks}),
    st.lists(
        st.sampled_from(
            [
                THINKING,
                {"type": "redacted_thinking", "data": "Emw"},
                {"call": 0},
                {"call": 1},
                {"type": "text", "text": " "},
            ]
        ),
        max_size=4,
    ),
    st.sampled_from([OPUS, "claude-sonnet-4-5"]),
)
TARGETS = st.builds(target, st.sampled_from(MODELS), effort=st.sampled_from([None, "high"]))


@pytest.mark.slow
@given(transcripts(OPAQUES), TARGETS, st.sampled_from([SPECS, ()]), st.sampled_from(["auto", "none", "required", "f"]))
def test_every_request_is_taken(messages: list[Message], to: Target, tools: Any, choice: str) -> None:
    for length in cuts(messages):
        body = body_of(messages[:length], to, tools=tools, tool_choice=choice)
        assert [one for one in check(body, FORMAT, to.profile) if one.severity == "error"] == []


@pytest.mark.slow
@given(transcripts(OPAQUES), TARGETS)
def test_requests_have_the_types_of_the_official_package(messages: list[Message], to: Target) -> None:
    body = body_of(messages, to)
    MESSAGES.validate_python(body["messages"])
    TOOLS.validate_python(body["tools"])
    SYSTEM.validate_python(body.get("system", []))


@pytest.mark.slow
@given(transcripts(OPAQUES), TARGETS)
def test_a_request_begins_with_the_one_before_it(messages: list[Message], to: Target) -> None:
    talk, before = FORMAT.talk(to), ""
    for length in cuts(messages):
        is_answered = length < len(messages) and isinstance(messages[length], Assistant)
        if not (is_answered or length == len(messages)):
            continue
        body = unmarked(talk.request(asking(messages[:length], new_from=length), stream=False))
        fresh = unmarked(body_of(messages[:length], to))
        assert body == fresh
        written = json.dumps(body["messages"])
        assert written.startswith(before.removesuffix("]}]"))
        before = written


@pytest.mark.slow
@given(transcripts(OPAQUES), TARGETS, st.data())
def test_what_was_taken_back_leaves_no_trace(messages: list[Message], to: Target, data: st.DataObject) -> None:
    talk = FORMAT.talk(to)
    talk.request(asking(messages), stream=False)
    length = data.draw(st.sampled_from(cuts(messages) or [0]))
    kept = data.draw(st.integers(0, length))
    again = talk.request(asking(messages[:length], new_from=kept), stream=False)
    assert again == body_of(messages[:length], to)


@pytest.mark.slow
@given(transcripts())
def test_words_calls_and_results_are_found_again(messages: list[Message]) -> None:
    body = unmarked(body_of(messages))
    turns = [FORMAT.unfold(one, f"messages[{at}]") for at, one in enumerate(body["messages"])]
    calls = [one for message in messages if isinstance(message, Assistant) for one in message.calls]
    found = [block for turn in turns for block in turn.of("call")]
    assert [(block.name, block.arguments) for block in found] == [
        (one.name, parse_arguments(one.arguments).value) for one in calls
    ]
    ids = dict(zip((one.id for one in calls), (block.id for block in found), strict=True))
    assert len(set(ids.values())) == len(ids)
    given_results = [message for message in messages if isinstance(message, Result)]
    results = [block for turn in turns for block in turn.of("result")]
    assert [(block.id, block.is_error) for block in results] == [
        (ids[one.call_id], one.outcome != "ok") for one in given_results
    ]
    for one, block in zip(given_results, results, strict=True):
        assert all(part.text.strip() in block.text for part in one.parts if isinstance(part, Text))
    said = [one.text for one in messages if isinstance(one, Assistant) and one.text.strip()]
    assert [block.text for turn in turns if turn.role == "assistant" for block in turn.of("text")] == said
    assert _users(turns) == [text for one in messages for text in _said(one)]


def _users(turns: list[Turn]) -> list[str]:
    invented = ("(conversation start)", "Continue.", "(empty)")
    texts = [block.text for turn in turns if turn.role == "user" for block in turn.of("text")]
    return [text for text in texts if text not in invented]


def _said(message: Message) -> list[str]:
    if isinstance(message, Note):
        return [f"[note from the runtime] {message.text}"]
    parts = message.parts if isinstance(message, User) else ()
    return [part.text for part in parts if isinstance(part, Text) and part.text.strip()]


def test_it_is_a_format() -> None:
    format: Format = FORMAT
    assert (format.name, format.list_field) == ("anthropic", "messages")
