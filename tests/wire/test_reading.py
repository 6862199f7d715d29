"""Bodies of every format become transcripts of ours, and losses are named."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_vectors import vectors
from transcripts import SPECS, asking, cuts, transcripts

from tenlines.core.history import first_fault
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Profile, Target
from tenlines.wire.reading import losses, messages_of, read, read_mended
from tenlines.wire.turns import Block, Turn

PROFILE = FORMATS["openai_chat"].profile()
EVERY = pytest.mark.parametrize("format", FORMATS.values(), ids=lambda one: one.name)


def sent(format: Format, messages: list[Message] | tuple[Message, ...]) -> dict[str, Any]:
    talk = format.talk(Target(profile=format.profile(), model="m"))
    body = talk.request(asking(messages), stream=False)
    return msgspec.json.decode(msgspec.json.encode(body))


def plain(messages: list[Message]) -> list[Message]:
    """The same, with ids that every format takes, no files, no JSON, and no text that is blank: those are written in
    one way only, so a second writing shows whether everything was read."""
    ids: dict[str, str] = {}
    found: list[Message] = []
    for message in messages:
        match message:
            case System(said) | Note(said):
                found.append(type(message)(said.strip() or "s"))
            case User(parts):
                found.append(User(solid(parts)))
            case Assistant(said, calls):
                new = tuple(ToolCall(ids.setdefault(one.id, f"id{len(ids):07}"), "f", one.arguments) for one in calls)
                found.append(Assistant(said.strip() or "a", new))
            case Result(call_id, _, outcome, parts):
                found.append(Result(ids[call_id], "f", outcome, solid(parts)))
    return found


def solid(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    kept = [Text(one.text.strip() or "x") if isinstance(one, Text) else one for one in parts]
    return tuple(one for one in kept if not isinstance(one, File | Json)) or (Text("x"),)


@pytest.mark.slow
@EVERY
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_was_written_is_read_back_and_written_the_same(format: Format, data: st.DataObject) -> None:
    messages = plain(data.draw(transcripts()))
    ends = cuts(messages)
    messages = messages[: ends[-1]] if ends else []
    body = sent(format, messages)
    imported = read_mended(body, format, format.profile())
    assert first_fault(imported.messages) == ""
    assert len(imported.tools) == len(SPECS)
    assert sent(format, imported.messages)[format.list_field] == body[format.list_field]


@pytest.mark.slow
@EVERY
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_whatever_was_written_is_read(format: Format, data: st.DataObject) -> None:
    messages = data.draw(transcripts())
    ends = cuts(messages)
    messages = messages[: ends[-1]] if ends else []
    imported = read_mended(sent(format, messages), format, format.profile())
    calls = [call.arguments for one in messages if isinstance(one, Assistant) for call in one.calls]
    back = [call.arguments for one in imported.messages if isinstance(one, Assistant) for call in one.calls]
    assert [json.loads(one) for one in back] == [json.loads(one) for one in calls]


@pytest.mark.parametrize("vector", [one for one in vectors() if one.wire_format], ids=lambda one: one.id)
def test_every_vector_becomes_a_valid_transcript(vector: Any) -> None:
    imported = read_mended(vector.request_fragment, vector.known, vector.profile)
    assert first_fault(imported.messages) == ""


# --- generic ---------------------------------------------------------------------------------------


def turn(role: Any, *blocks: Block, wire_role: str = "x") -> Turn:
    return Turn(role, blocks, "messages[0]", {}, wire_role)


def text(said: str) -> Block:
    return Block("text", "p", said, text=said)


def call(call_id: str, arguments: Any) -> Block:
    return Block("call", "c", {}, call_id, "f", arguments)


def test_turns_of_any_origin_become_messages() -> None:
    remarks: list[str] = []
    turns = [
        turn("system", text("Be brief.")),
        turn("user", text("hi"), Block("media", "p", {}, parts=(Image("image/png", b"1"),))),
        turn(
            "assistant", Block("reasoning", "r", {}, text="hm"), text("yes"), Block("call", "c", {}, "a", "f", {"x": 1})
        ),
        turn("user", Block("result", "p", {}, "a", "f", text="no", parts=(Text("no"),), is_error=True), text("go on")),
        turn("system", text("In French.")),
    ]
    assert list(messages_of(turns, remarks.append)) == [
        System("Be brief."),
        User((Text("hi"), Image("image/png", b"1"))),
        Assistant("yes", (ToolCall("a", "f", '{"x": 1}'),)),
        Result("a", "f", "tool_error", (Text("no"),)),
        User((Text("go on"),)),
        Note("In French."),
    ]
    assert remarks == [
        "r: reasoning was left out",
        "messages[0]: a system message inside the conversation became a note of the loop",
    ]


def test_items_without_a_role_belong_to_the_message_beside_them() -> None:
    items = [
        turn("assistant", Block("other", "o", {"type": "x"}), wire_role=""),
        turn("assistant", text("a")),
        turn("assistant", call("1", "{}"), wire_role=""),
        turn("assistant", call("2", ""), wire_role=""),
    ]
    said = list(messages_of(items, lambda _: None))
    assert said == [Assistant("a", (ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}")))]
    apart = [turn("assistant", text("a")), turn("assistant", text("b"))]
    assert list(messages_of(apart, lambda _: None)) == [Assistant("a"), Assistant("b")]
    assert list(messages_of(apart, lambda _: None, joins=True)) == [Assistant("a\n\nb")]


def test_a_note_is_a_note_again() -> None:
    format = FORMATS["openai_chat"]
    body = sent(format, [User((Text("hi"),)), Note("you repeat yourself")])
    assert read(body, format, format.profile()).messages == (User((Text("hi"),)), Note("you repeat yourself"))


def test_what_is_no_message_is_said() -> None:
    format = FORMATS["openai_chat"]
    body = {"messages": [7, {"role": "narrator", "content": "Once"}], "temperature": 0}
    imported = read(body, format, format.profile())
    assert imported.messages == (User((Text("Once"),)),)
    assert any("messages[0] is no message" in one for one in imported.remarks)
    assert any("'narrator'" in one for one in imported.remarks)
    assert any("temperature" in one for one in imported.remarks)


def test_signed_thinking_is_kept_as_it_came() -> None:
    format = FORMATS["anthropic"]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "S"}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}}
    body = {
        "model": "claude-opus-4-8",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [thinking, call]}],
    }
    said = read(body, format, format.profile({"model": "claude-opus-4-8"})).messages[1]
    assert isinstance(said, Assistant)
    assert said.calls == (ToolCall("t1", "f", '{"x": 1}'),)
    assert said.opaque == (Opaque("anthropic", "claude-opus-4-8", {"blocks": [thinking, {"call": 0}]}),)


# --- losses ----------------------------------------------------------------------------------------


def test_losses_are_what_the_target_does_not_carry() -> None:
    image, file = Image("image/png", b"1"), File("application/pdf", b"1", "a.pdf")
    messages: list[Message] = [
        User((Text("hi"), image, file)),
        Assistant("", (ToolCall("1", "get.it", "{}"),), (Opaque("p", "m-1", {}),)),
        Result("1", "get.it", "timeout", (image,)),
    ]
    bare = Profile(name="t", format="t", provider="p", as_of="2026-11-30")
    assert losses(messages, bare) == [
        "message 0: an image becomes a line of text",
        "message 0: the file 'a.pdf' becomes a line of text",
        f"message 1: the tool name 'get.it' is written as {_mapped('get.it')!r}",
        "message 1: what m-1 keeps with its reply (reasoning, say) is left out",
        "message 2: that get.it did not succeed (timeout) is said by the text of its result alone",
        "message 2: an image in a result becomes a line of text",
    ]
    full = msgspec.structs.replace(
        bare,
        name_pattern="",
        carries=frozenset({"errors", "images", "files", "result_images", "result_files", "reasoning"}),
    )
    assert losses(messages, full) == []
    assert losses(messages, msgspec.structs.replace(full, model="n-1"))[0].startswith("message 1: what m-1 keeps")


def _mapped(name: str) -> str:
    from tenlines.wire.ids import Names

    return Names(r"[a-zA-Z0-9_-]+").wire(name)


def test_what_was_read_can_be_stored_whatever_it_holds() -> None:
    half = chr(0xD83D)
    image = {"type": "image_url", "image_url": {"url": f"https://h/{half}"}}
    file = {"type": "file", "file": {"filename": half, "file_data": "data:text/plain;base64,aGk="}}
    tool = {"type": "function", "function": {"name": "f", "description": half, "parameters": {half: [half]}}}
    messages = [{"role": half, "content": [image, file]}, {"role": "user", "content": [{"type": half}]}]
    found = read({"messages": messages, "tools": [tool], half: 1}, FORMATS["openai_chat"], PROFILE)
    assert found.remarks
    assert msgspec.json.encode(found)


def test_values_of_results_can_be_stored_however_deep_they_are() -> None:
    deep: Any = chr(0xD83D)
    for _ in range(900):
        deep = [deep]
    for inner in (deep, deep[0]):
        held = {"toolResult": {"toolUseId": "t", "content": [{"json": {"a": inner}}]}}
        body: Any = {"messages": [{"role": "user", "content": [held, {"image": deep}]}]}
        (result, *_) = read(body, FORMATS["bedrock"], FORMATS["bedrock"].profile()).messages
        assert isinstance(result, Result)
        assert result.parts == (Text("(nested too deeply to be shown)"),)
