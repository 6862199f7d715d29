"""Histories that were cut, handed over, stored, or hold what only one provider understands."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from case_context import compaction_of, cuts
from case_formats import TALKING, bodies, errors
from case_laws import encoded
from case_world import CaseModel, World, expand, is_note, says

from tenlines import Agent
from tenlines.core.codec import decode, encode
from tenlines.core.context import Compaction
from tenlines.core.history import first_fault, mend, without_calls
from tenlines.core.transcript import Assistant, Message, Note, Opaque, Text, ToolCall, User
from tenlines.wire.converting import written
from tenlines.wire.formats import FORMATS
from tenlines.wire.plain import read_messages
from tenlines.wire.profile import Target

# --- trimming -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", range(1, 12))
def test_trim_01_a_history_cut_anywhere_is_sent_in_whole_groups(world: World, kept: int) -> None:
    model = CaseModel(world.input["model"])
    agent = Agent(model, journal=world.journal)
    history = world.input["history"][-kept:]
    if world.mode.driver == "sync":
        result = agent.run_sync("u3", messages=history)
    else:
        result = asyncio.run(agent.run("u3", messages=history))
    assert result.status == "answered"
    (request,) = model.requests
    assert first_fault(list(request.messages)) == ""
    assert request.messages[-1] == User((Text("u3"),))
    for format in TALKING:
        target = Target(profile=format.profile({"server": "strict-template"}), model="m")
        body = written(list(request.messages), (), format, target).body
        assert errors(body, format) == [], format.name
        turns = [format.unfold(one, "") for one in body[format.list_field]]  # type: ignore[union-attr]
        assert next(turn.role for turn in turns if turn.role != "system") in ("user", "assistant")
        if format.name in ("gemini", "bedrock", "anthropic"):
            assert turns[0].role == "user"
    dropping = Compaction(strategies=("drop",), keep=kept, at=1)  # its own trimming: whole exchanges, of four
    run = world.play(compaction=dropping).expect()
    assert len(cuts(run)) == (kept < 4)
    (sent,) = run.sent
    assert sent[:2] == world.input["history"][:2]
    said = [message["content"] for message in sent if message["role"] == "user" and not is_note(message)]
    assert said == ["u1", "u2", "u3"]
    results = [message["content"] for message in sent if message["role"] == "tool"]
    assert results == {1: [], 2: ["3"], 3: ["3"]}.get(kept, ["1", "2", "3"])


def test_trim_03_a_history_that_begins_and_ends_with_the_assistant_is_framed_for_those_who_need_it(
    world: World,
) -> None:
    @world.tool
    def t() -> str:
        """Do."""
        return "1"

    history = mend(read_messages(world.input["history"])).messages
    tools = tuple(one.spec for one in world.tools.values())
    for format in TALKING:
        body = written(history, tools, format, Target(profile=format.profile(), model="m")).body
        assert errors(body, format) == [], format.name
    assert mend(history).messages == history, "what is stored is not changed by it"


# --- what only one provider understands -----------------------------------------------------------------

REASONED = {
    "openai_responses": {
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABexample"},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "t", "arguments": "{}"},
        ],
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "step… sk-demo-9999", "signature": "EqQBCkYIBxgCSIG=="},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "a", "name": "t", "input": {}},
        ],
    },
}
"""A reply that reasoned before it called, as two providers send it."""


def reasoned(name: str) -> Any:
    """The reply, read by the provider's own decoder."""
    format = FORMATS[name]
    return format.talk(Target(profile=format.profile(), model="m")).decode(REASONED[name])


def test_opaque_01_reasoning_stands_directly_before_its_call_in_every_request(world: World) -> None:
    @world.tool
    def t() -> str:
        """Do."""
        return "r"

    world.store()
    first = [reasoned("openai_responses"), says("r")]
    run = world.play(model=first, task="go").expect(model_calls=2)
    again = world.play(model=[says("ok")], history=run.result.messages, task="again")
    sent = [
        *bodies(run.model.requests, FORMATS["openai_responses"]),
        *bodies(again.model.requests, FORMATS["openai_responses"]),
    ]
    assert len(sent) == 3
    for body in sent[1:]:
        items = body["input"]
        (place,) = [index for index, item in enumerate(items) if item.get("type") == "reasoning"]
        assert items[place] == REASONED["openai_responses"]["output"][0]  # type: ignore[index]
        assert items[place + 1]["type"] == "function_call"
        assert items[place + 1]["call_id"] == "a"
    assert "rs_1" not in json.dumps(encoded(without_calls(run.result.messages))), "they go together"


def test_opaque_02_a_signed_block_goes_back_first_and_byte_for_byte(world: World) -> None:
    @world.tool
    def t() -> str:
        """Do."""
        return "r"

    run = world.play(model=[reasoned("anthropic"), says("r")]).expect()
    body = bodies(run.model.requests, FORMATS["anthropic"])[1]
    block: Any = REASONED["anthropic"]["content"][0]  # type: ignore[index]
    assert json.dumps(body["messages"][1]["content"][0]) == json.dumps(block)
    assert [json.loads(encode(event)) for event in run.log] == [json.loads(encode(decode(encode(e)))) for e in run.log]
    for name, format in FORMATS.items():
        if name not in ("anthropic",):
            assert "sk-demo-9999" not in json.dumps(bodies(run.model.requests, format)), (
                f"{name} is not shown another's reasoning"
            )


def test_opaque_04_a_call_without_reasoning_is_no_fault_and_none_is_invented(world: World) -> None:
    @world.tool
    def t() -> str:
        """Do."""
        return "r"

    blocks = [{"type": "thinking", "thinking": "t", "signature": "EqQBCkYIBxgCS1=="}, {"type": "text", "text": "x"}]
    signed = Opaque("anthropic", "m", {"blocks": blocks})
    history: list[Message] = [
        *read_messages([{"role": "user", "content": "u1"}]),
        Assistant("x", (), (signed,)),
        *read_messages([{"role": "user", "content": "u2"}]),
        Assistant("", (ToolCall("a", "t", "{}"),)),
        *read_messages([{"role": "tool", "tool_call_id": "a", "content": "r"}]),
    ]
    run = world.play(history=history, task="u3")
    assert run.result.status == "answered"
    (body,) = bodies(run.model.requests, FORMATS["anthropic"])
    kinds = [
        [block["type"] for block in message["content"]]
        for message in body["messages"]
        if message["role"] == "assistant"
    ]
    assert kinds == [["thinking", "text"], ["tool_use"]]

    long: list[Message] = [*history[:2], User((Text(expand(world.input["history"][2]["content"])),)), *history[3:]]
    for strategies in (("elide", "drop"), ("drop",), ("elide", "summarise")):
        compaction = compaction_of(world, keep=1, strategies=strategies)
        trimmed = world.play(history=long, task=None, compaction=compaction).expect()
        assert encoded(trimmed.result.messages)[: len(long)] == encoded(long), "what a person said stays"
    earlier = read_messages(
        [
            {"role": "assistant", "tool_calls": [{"id": "e", "name": "t", "arguments": "{}"}]},
            {"role": "tool", "tool_call_id": "e", "content": "word " * 500},
        ]
    )
    for strategy in ("drop", "elide"):
        forced = Compaction(strategies=(strategy,), keep=2, at=1)
        run = world.play(history=[history[0], *earlier, *history[1:]], task="u3", compaction=forced)
        assert [one.strategy for one in cuts(run)] == [strategy]
        (body,) = bodies(run.model.requests, FORMATS["anthropic"])
        assert errors(body, FORMATS["anthropic"]) == []
        assert "thinking" not in json.dumps(body), "what stood before it is not there any more: it would be refused"


# --- handing over ---------------------------------------------------------------------------------------


def test_hand_04_without_tools_nothing_of_them_is_handed_over(world: World) -> None:
    past = mend(read_messages(world.input["history"])).messages
    spoke = Assistant("", past[1].calls, (Opaque("p", "m", "rs_1"),))  # type: ignore[union-attr]
    whole = [past[0], spoke, *past[2:]]
    summed = [past[0], Note("t was called with SECRETARG and said SECRETRESULT", summary=True), *past[3:]]
    for messages in (whole, summed):
        handed = without_calls(messages)
        run = world.play(history=handed, task="go on", model=world.input["model of the next agent"])
        sent = json.dumps(run.sent)
        assert not any(word in sent for word in ("SECRETARG", "SECRETRESULT", "rs_1", "tool_calls", '"tool"'))
        assert [message["role"] for message in run.sent[0]] == ["user", "assistant", "user"]
