"""What must hold in every run: G3 to G6 of a log and its result, V1 to V8 of everything that is sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from tenlines import RunResult, Usage
from tenlines.core import events as ev
from tenlines.core.context import question
from tenlines.core.effects import CallModel
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.transcript import Message, Note, Result, System, User
from tenlines.wire.openai_chat.encoding import Encoder, plain_target

_QUESTION = question(0).text.partition(". ")[0]


def encoded(messages: Iterable[Message]) -> list[Any]:
    """Messages as they go over the wire."""
    return list(Encoder(plain_target()).extend(list(messages)))


def asks_for_summary(request: CallModel) -> bool:
    """Whether a request is a run's own, with the question for a summary behind it."""
    last = request.messages[-1]
    return isinstance(last, Note) and last.text.startswith(_QUESTION)


# --- one request ----------------------------------------------------------------------------------------


def assert_valid(messages: list[dict[str, Any]]) -> None:
    """V1 to V8."""
    ids: set[str] = set()
    owed: list[str] = []
    for message in messages:
        role = message["role"]
        assert (role == "tool") == bool(owed), "V2, V3: results stand right after their calls, and nowhere else"
        if role == "tool":
            assert message["tool_call_id"] == owed.pop(0), "V2: results in call order"
            assert isinstance(message["content"], str)
        for call in message.get("tool_calls", ()):
            assert call["id"], "V1: an id is not empty"
            assert call["id"] not in ids, "V1: ids are unique"
            ids.add(call["id"])
            owed.append(call["id"])
            assert isinstance(json.loads(call["function"]["arguments"], parse_constant=_refuse), dict), "V6"
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"]), "V7"
        if role == "assistant":
            assert message.get("tool_calls") or (message["content"] or "").strip(), "V4: it says something"
    assert not owed, "V2: every call has its result"
    json.loads(json.dumps(messages, ensure_ascii=False, allow_nan=False).encode(), parse_constant=_refuse)  # V5
    roles = [message["role"] for message in messages]
    systems = roles.count("system")
    assert "system" not in roles[systems:], "V8: system messages first"
    assert roles[systems : systems + 1] in ([], ["user"]), "V8: then a user message"


def _refuse(constant: str) -> None:
    raise AssertionError(f"V5: {constant} is not JSON")


# --- all requests of a run ------------------------------------------------------------------------------


def check_requests(requests: list[CallModel], log: list[ev.AnyEvent]) -> None:
    """Each is valid, and begins with the one that was answered before: up to where the log says that the transcript was
    cut. One that failed, or that asked for a summary, is no part of the conversation."""
    cuts = [event.start for event in log if isinstance(event, ev.ContextCompacted)]
    last: CallModel | None = None
    before: list[Any] = []
    for request in requests:
        if last is not None and last.step < request.step:
            before = encoded(last.messages)
        if last is not None and cuts and "the transcript was cut" in request.changed:
            before = encoded(last.messages[: min(cuts)])
        sent = encoded(request.messages)
        assert_valid(sent)
        assert sent[: len(before)] == before, "a request begins with the one before"
        last = last if asks_for_summary(request) else request


def check_log(log: list[ev.AnyEvent], result: RunResult) -> None:
    """G3: valid at every prefix, and what people said stays. The log gives the result, which is a view of it."""
    machine, known = Machine(), -1
    said: list[Message] = []
    for event in log:
        machine.apply(event)
        messages = machine.state.messages
        if len(messages) != known or isinstance(event, ev.ContextCompacted):
            known = len(messages)
            assert_valid(encoded(messages))
            kept = [one for one in messages if isinstance(one, System | User)]
            assert kept[: len(said)] == said, "what people said stays word for word"
            said = kept
    again = msgspec.structs.replace(fold(log).result(), observer_errors=result.observer_errors)
    assert again == result


# --- sums -----------------------------------------------------------------------------------------------


def check_sums(log: list[ev.AnyEvent], result: RunResult) -> None:
    """G4 to G6: every call has one answer, sums cover all, limits hold."""
    replies = [event.reply for event in log if isinstance(event, ev.ModelReplied)]
    start = log[0]
    assert isinstance(start, ev.RunStarted)
    limits = [start.settings.limits, *(event.limits for event in log if isinstance(event, ev.LimitsRaised))][-1]
    closed = replies[:-1] if result.status == "awaiting_approval" else replies
    asked = Counter((step, place) for step, reply in enumerate(closed, 1) for place in range(len(reply.calls)))
    assert Counter((record.step, record.position) for record in result.calls) == asked
    if not any(isinstance(event, ev.ContextCompacted) for event in log):
        in_messages = [one for one in result.messages[len(start.messages) :] if isinstance(one, Result)]
        assert len(in_messages) == asked.total()
    assert result.steps == len(replies)
    used = _used(log)
    assert result.usage.input == sum(one.input or 0 for one in used) + result.children.input_tokens
    assert result.usage.output == sum(one.output or 0 for one in used) + result.children.output_tokens
    started = {(event.step, event.position) for event in log if isinstance(event, ev.CallStarted)}
    assert result.tool_calls == len(started)
    assert limits.steps is None or result.steps <= limits.steps + limits.last_words
    assert limits.tool_calls is None or result.tool_calls <= limits.tool_calls
    assert limits.tokens is None or result.usage.total <= limits.tokens
    assert limits.dollars is None or (result.dollars or 0.0) <= limits.dollars


def _used(log: list[ev.AnyEvent]) -> list[Usage]:
    """What each request of the run itself used: answered, broken off, or for a summary."""
    answers = [event.reply for event in log if isinstance(event, ev.ModelReplied | ev.SummaryEnded) and event.reply]
    broken = [
        event.usage
        for event in log
        if isinstance(event, ev.ModelFailed) or (isinstance(event, ev.SummaryEnded) and not event.reply)
    ]
    return [one or Usage() for one in (*(reply.usage for reply in answers), *broken)]
