"""The guard lets valid requests pass as they are, and none that would be refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import asking, cuts, transcripts

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Assistant, Message, Reply, Result, System, Text, ToolCall, User
from tenlines.wire.checking import Checker, check
from tenlines.wire.finding.forking import Seen, fork
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.guard import GuardedTalk
from tenlines.wire.profile import Target
from tenlines.wire.turns import Turn

EVERY = pytest.mark.parametrize("format", FORMATS.values(), ids=lambda one: one.name)
CHAT = FORMATS["openai_chat"]


def target(format: Format, context: Mapping[str, str | bool] | None = None) -> Target:
    return Target(profile=format.profile(context), model="m")


def encoded(body: Any) -> bytes:
    return msgspec.json.encode(body)


@pytest.mark.slow
@EVERY
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_our_own_talks_write_passes_with_the_same_bytes(format: Format, data: st.DataObject) -> None:
    messages = data.draw(transcripts())
    guarded = GuardedTalk(format.talk(target(format)), format, target(format))
    plain = format.talk(target(format))
    sent = 0
    for end in cuts(messages):
        if not any(isinstance(one, User) for one in messages[:end]):
            continue  # a run always has something that a user said
        effect = asking(messages[:end], new_from=sent)
        expected = encoded(plain.request(effect, stream=False))
        body = guarded.request(effect, stream=False)
        problems = [one for one in check(body, format, format.profile()) if one.severity == "error"]
        assert problems == []
        assert encoded(body) == expected
        sent = end


@pytest.mark.slow
@EVERY
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_fork_goes_its_own_way(format: Format, data: st.DataObject) -> None:
    messages = data.draw(transcripts())
    body = json.loads(encoded(format.talk(target(format)).request(asking(messages), stream=False)))
    expected = check(body, format, format.profile())
    checker = Checker(format, format.profile())
    found = list(checker.frame(body))
    noise = list(enumerate(body[format.list_field]))
    for index, message in noise:
        ahead = checker.fork()
        for other, ahead_message in noise[index:]:
            list(ahead.take(format.unfold(ahead_message, f"x[{other}]")))
        list(ahead.close())
        found += checker.take(format.unfold(message, f"{format.list_field}[{index}]"))
    found += checker.close()
    assert sorted(found, key=repr) == sorted(expected, key=repr)


# --- what is broken ---------------------------------------------------------------------------------


class Broken:
    """A talk that writes what it is told, whatever it is."""

    def __init__(self, *bodies: list[Any], tools: Sequence[Any] = ()) -> None:
        self.bodies, self.tools = list(bodies), list(tools)

    def request(self, effect: CallModel, stream: bool) -> Any:
        body: dict[str, Any] = {"model": "m", "messages": self.bodies.pop(0)}
        return body | ({"tools": self.tools} if self.tools else {})

    def decode(self, data: Any) -> Reply:
        return Reply(text=str(data), remarks=("its own",))

    def decoder(self) -> Any:
        return self

    def feed(self, chunk: Any) -> Any:
        return chunk

    def finish(self) -> Reply:
        return Reply(text="streamed")


HI = {"role": "user", "content": "hi"}
ORPHAN = {"role": "tool", "tool_call_id": "x", "content": "18C"}


def ask(size: int, new_from: int = 0) -> CallModel:
    return asking([User((Text("hi"),))] * size, new_from=new_from)


def guarded(talk: Any) -> GuardedTalk:
    return GuardedTalk(talk, CHAT, target(CHAT))


def test_a_broken_request_is_repaired_and_the_reply_says_so() -> None:
    guard = guarded(Broken([HI, ORPHAN], [HI, ORPHAN, HI], [HI]))
    assert guard.request(ask(2), stream=False)["messages"] == [HI]
    reply = guard.decode("yes")
    assert reply.remarks[-1] == "its own"
    assert reply.remarks[0].startswith("the request was repaired: Dropped a result for 'x'")
    decoder = guard.decoder()
    assert decoder.feed(7) == 7
    assert decoder.finish().remarks == reply.remarks[:-1]
    # the fault is still in the history: it is repaired again
    assert guard.request(ask(3, new_from=2), stream=False)["messages"] == [HI, HI]
    # a new beginning
    assert guard.request(ask(1), stream=False)["messages"] == [HI]
    assert guard.decode("yes").remarks == ("its own",)


def test_a_fault_that_has_become_history_is_still_repaired() -> None:
    history: list[Any] = [HI, ORPHAN]
    bodies = []
    for _ in range(4):
        bodies.append(list(history))
        history = [*history, {"role": "assistant", "content": "yes"}, HI]
    guard = guarded(Broken(*bodies))
    sent = 0
    for body in bodies:
        size = len(body)
        repaired = guard.request(ask(size, new_from=sent), stream=False)
        assert ORPHAN not in repaired["messages"]
        sent = size


def test_a_retry_is_looked_at_again() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"role": "tool", "tool_call_id": "a", "content": "1"}
    guard = guarded(Broken([HI], [HI, calling, answer], [HI, calling, answer, HI], [HI, calling]))
    for size, new_from in ((1, 0), (3, 1), (4, 3)):
        guard.request(ask(size, new_from=new_from), stream=False)
        assert guard.decode("").remarks == ("its own",)
    guard.request(ask(2, new_from=1), stream=False)
    assert "no" in guard.decode("").remarks[0]


def test_many_changes_are_told_in_short() -> None:
    guard = guarded(Broken([HI] + [ORPHAN] * 30))
    guard.request(ask(31), stream=False)
    remarks = guard.decode("").remarks
    assert len(remarks) == 22
    assert remarks[20] == "and 10 more repairs of the request"


def test_a_bad_frame_is_found_whenever_it_comes() -> None:
    talk = Broken([HI], [HI], tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])
    guard = guarded(talk)
    guard.request(ask(1), stream=False)
    assert guard.decode("").remarks == ("its own",)
    talk.tools = [{"type": "function", "function": {"name": "f.g", "parameters": {"type": "object"}}}]
    repaired = guard.request(ask(1), stream=False)
    assert repaired["tools"][0]["function"]["name"] != "f.g"


# --- cost -------------------------------------------------------------------------------------------


class Counting:
    """A format that counts how many messages are unfolded."""

    def __init__(self, format: Format) -> None:
        self._format, self.unfolded = format, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._format, name)

    def unfold(self, message: Any, path: str) -> Turn:
        self.unfolded += 1
        return self._format.unfold(message, path)


@EVERY
def test_a_run_is_looked_at_once(format: Format) -> None:
    counting: Any = Counting(format)
    to = target(format)
    guard = GuardedTalk(format.talk(to), counting, to)
    messages: list[Message] = [System("s"), User((Text("hi"),))]
    steps, sent = 60, 0
    for step in range(steps):
        body = guard.request(asking(messages, new_from=sent), stream=False)
        assert guard.remarked(Reply()).remarks == ()
        sent = len(messages) + 1
        call = ToolCall(f"id{step:07}", "f", '{"x": 1}')
        messages += [Assistant("", (call,)), Result(call.id, "f", "ok", (Text("1"),))]
    assert counting.unfolded <= 3 * len(body[format.list_field]) + 5


def test_what_was_seen_is_shared_with_a_copy_and_not_added_to_by_it() -> None:
    seen = Seen()
    seen.add("a")
    ahead = fork(seen)
    ahead.add("b")
    assert list(ahead) == ["a", "b"]
    assert "a" in ahead
    assert "b" not in seen
