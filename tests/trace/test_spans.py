"""Spans are a view of the log: what each kind of event is to them, and what is said of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from traced_runs import (
    CAREFUL,
    Run,
    check_tree,
    given_up,
    logs_of_every_kind,
    random_logs,
    spans_of,
    undone,
    walked,
)

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.limits import Limits, Price, Spent
from tenlines.core.surroundings import span_id, trace_id
from tenlines.core.transcript import Image, ToolCall, Usage, User
from tenlines.trace.changes import TABLE, Begun, Ended, Marked
from tenlines.trace.conventions import VINTAGES, Name, spellings
from tenlines.trace.past import SpanRecord, changes
from tenlines.trace.redaction import Redaction
from tenlines.trace.spans import INTERRUPTED, Spans

AROUND = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PRICE = Price(input=1_000_000, output=2_000_000)


def named(spans: list[SpanRecord], name: str) -> SpanRecord:
    """The one span of this name."""
    (found,) = [one for one in spans if one.name == name]
    return found


def marks(spans: list[SpanRecord]) -> list[str]:
    """The names of all span events, in order of time."""
    return [mark.name for mark in sorted((mark for one in spans for mark in one.events), key=lambda mark: mark.at)]


# --- the table ------------------------------------------------------------------------------------------


def test_every_kind_of_event_has_a_row() -> None:
    assert set(TABLE) == set(ev.AnyEvent.__args__)
    assert all(row.mark for row in TABLE.values() if row.act == "marks")
    marked = [row.mark for row in TABLE.values() if row.mark]
    assert len(marked) == len(set(marked))


@pytest.mark.slow
def test_every_kind_of_event_does_what_its_row_says() -> None:
    """Begins one span, ends one, or is marked once; over random logs in which all kinds occur."""
    seen: dict[type, set[str]] = {}
    for log in logs_of_every_kind(70):
        spans = Spans()
        for event in log:
            row = TABLE[type(event)]
            changed = spans.take(event)
            did = [type(one) for one in changed]
            if row.act == "begins":
                assert did.count(Begun) == 1
            elif row.act == "ends" and did.count(Ended):
                assert Begun not in did
                assert Marked not in did
            elif row.mark and changed:
                assert [one.name for one in changed if isinstance(one, Marked)] == [row.mark]
            operations = [one.name.split(" ")[0] for one in changed if isinstance(one, Begun)]
            assert operations == ([row.span] if row.act == "begins" else [])
            seen.setdefault(type(event), set()).update(kind.__name__ for kind in did)
    assert set(seen) == set(TABLE)
    for kind, row in TABLE.items():
        wanted = {"begins": "Begun", "ends": "Ended", "marks": "Marked"}[row.act]
        assert wanted in seen[kind], kind


@pytest.mark.slow
@pytest.mark.parametrize("content", [False, True])
def test_the_spans_of_any_log_are_whole_trees(content: bool) -> None:
    count = 0
    for number, log in enumerate(random_logs(40)):
        for length in {len(log) // 3, len(log) // 2, len(log)}:
            count += check_tree(changes(log[:length], VINTAGES[number % 2], content=content))
    assert count > 2000


@pytest.mark.parametrize("vintage", VINTAGES)
def test_only_names_of_the_table_are_used_and_only_values_that_can_be_sent(vintage: Any) -> None:
    known = set(spellings(vintage).values())
    for seed in range(12):
        for one in spans_of(walked("", seed), vintage, content=True):
            for attributes in (one.attributes, *(mark.attributes for mark in one.events)):
                assert set(attributes) <= known
                for value in attributes.values():
                    assert isinstance(value, str | int | float | tuple)
                    assert value != ""
                json.dumps(attributes, allow_nan=False).encode()


def test_the_same_log_gives_the_same_spans() -> None:
    log = walked("money", 5)
    assert spans_of(log) == spans_of(log)


# --- the tree -------------------------------------------------------------------------------------------


def two_steps() -> Run:
    """A call, then the answer."""
    run = Run(limits=Limits(steps=5, dollars=10_000.0), price=PRICE)
    usage = Usage(input=10, output=2, cache_read=8, cache_write=1, reasoning=1)
    run.reply("", ToolCall("c1", "look", '{"a": 1}'), usage=usage, stop="tool_calls", model="m-2")
    run.at += 1
    run.start()
    run.at += 2
    run.returned()
    run.at += 3
    run.reply("42", usage=Usage(input=20, output=4))
    run.finish()
    return run


def test_a_run_is_one_tree() -> None:
    agent, first, call, second = spans_of(two_steps().log)
    assert [one.name for one in (agent, first, call, second)] == [
        "invoke_agent a",
        "chat m",
        "execute_tool look",
        "chat m",
    ]
    assert [one.kind for one in (agent, first, call, second)] == ["internal", "client", "internal", "client"]
    assert {one.parent for one in (first, call, second)} == {agent.span_id}
    assert (agent.parent, agent.trace_id, agent.span_id) == ("", trace_id("r"), span_id("r", 0))
    assert (call.start, call.end) == (101.0, 103.0)
    assert (agent.start, agent.end) == (100.0, 106.0)
    assert {one.fault for one in (agent, first, call, second)} == {None}


def test_what_is_said_of_each_span() -> None:
    agent, first, call, _ = spans_of(two_steps().log)
    assert first.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "m",
        "gen_ai.request.model": "m",
        "gen_ai.request.max_tokens": 4096,
        "gen_ai.conversation.id": "r",
        "gen_ai.response.model": "m-2",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "gen_ai.usage.cache_creation.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "tenlines.run.id": "r",
        "tenlines.step": 1,
        "tenlines.attempt": 1,
        "tenlines.dollars": 14.0,
        "tenlines.left.steps": 4,
        "tenlines.left.dollars": 9986.0,
    }
    assert call.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "r",
        "tenlines.run.id": "r",
        "tenlines.step": 1,
        "tenlines.call": "r:1:0",
        "tenlines.outcome": "ok",
        "tenlines.tool.read_only": True,
    }
    assert agent.attributes["gen_ai.usage.input_tokens"] == 30
    assert agent.attributes["gen_ai.usage.cache_read.input_tokens"] == 8
    assert agent.attributes["tenlines.dollars"] == 42.0
    assert (agent.attributes["tenlines.run.status"], agent.attributes["tenlines.run.steps"]) == ("answered", 2)


def test_the_latest_names_differ_where_the_table_says() -> None:
    released, latest = spans_of(two_steps().log), spans_of(two_steps().log, "latest")
    assert latest[1].attributes["gen_ai.usage.cache_write.input_tokens"] == 1
    assert "gen_ai.usage.cache_creation.input_tokens" not in latest[1].attributes
    gone = set(released[0].attributes) - set(latest[0].attributes)
    assert gone == {
        "gen_ai.provider.name",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
    }


def surrounded(log: list[ev.AnyEvent], **fields: Any) -> list[ev.AnyEvent]:
    """The same run, started in another way."""
    return [msgspec.structs.replace(log[0], **fields), *log[1:]]


def test_a_run_inside_of_a_span_is_part_of_its_trace() -> None:
    changed = list(changes(surrounded(two_steps().log, traceparent=AROUND), "released"))
    roots = [one for one in changed if isinstance(one, Begun) and one.name == "invoke_agent a"]
    assert [(one.trace_id, one.parent, one.flags) for one in roots] == [(AROUND[3:35], AROUND[36:52], "01")]
    assert {one.trace_id for one in changed if isinstance(one, Begun)} == {AROUND[3:35]}


def test_the_conversation_is_the_session_where_there_is_one() -> None:
    spans = spans_of(surrounded(two_steps().log, session="trip", turn=2))
    assert {one.attributes["gen_ai.conversation.id"] for one in spans} == {"trip"}
    assert spans[0].attributes["tenlines.run.turn"] == 2


def test_calls_side_by_side_and_each_end_of_a_call() -> None:
    run = Run().call("look", "look", "look", "nope")
    run.failed(3, "unknown_tool", "There is no tool 'nope'.")
    run.start(0).start(1).start(2)
    run.at += 1
    run.tell(ev.CallTimedOut, step=1, position=1, after_s=1.0, text="look did not finish")
    run.at += 1
    run.tell(ev.CallFailed, step=1, position=2, outcome="tool_error", text="look failed: no", error_type="KeyError")
    run.at += 1
    run.returned(0)
    spans = spans_of(run.log)
    calls = [one for one in spans if one.name == "execute_tool look"]
    assert [(one.start, one.end) for one in calls] == [(100.0, 103.0), (100.0, 101.0), (100.0, 102.0)]
    assert [one.attributes["tenlines.outcome"] for one in calls] == ["ok", "timeout", "tool_error"]
    assert [one.attributes.get("error.type") for one in calls] == [None, "timeout", "KeyError"]
    assert [one.fault for one in calls] == [None, "look did not finish", "look failed: no"]
    (unknown,) = spans[0].events
    assert (unknown.name, unknown.attributes["gen_ai.tool.name"]) == ("tenlines.call.failed", "nope")
    assert unknown.attributes["tenlines.outcome"] == "unknown_tool"


def test_requests_that_fail_have_spans_too() -> None:
    run = Run().ask()
    failure = {"kind": "RateLimited", "message": "slow down", "retryable": True, "status": 429, "usage": Usage(3, 0)}
    run.tell(ev.ModelFailed, step=1, attempt=1, **failure)
    run.at += 100
    run.reply("42")
    agent, first, second = spans_of(run.log)
    assert (first.fault, first.attributes["error.type"]) == ("slow down", "RateLimited")
    assert (first.attributes["http.response.status_code"], first.attributes["tenlines.retryable"]) == (429, True)
    assert first.attributes["gen_ai.usage.input_tokens"] == 3
    assert [one.attributes["tenlines.attempt"] for one in (first, second)] == [1, 2]
    assert (agent.attributes["tenlines.run.requests"], agent.attributes["tenlines.run.steps"]) == (2, 1)


def test_a_run_that_stops_without_an_answer_is_in_error_and_one_that_waits_is_not() -> None:
    capped = Run(limits=Limits(steps=0))
    capped.finish()
    (agent,) = spans_of(capped.log)
    assert (agent.attributes["error.type"], agent.attributes["tenlines.run.status"]) == ("max_steps", "max_steps")
    assert agent.fault
    waiting = Run(CAREFUL).call("pay").question()
    waiting.finish()
    assert spans_of(waiting.log)[0].fault is None


def test_a_crash_ends_what_was_open_and_the_next_owner_has_a_span_of_his_own() -> None:
    run = Run().call("send").start()
    run.at += 10
    run.say("hurry")
    run.at += 1000
    run.resume().refuse_all()
    run.at += 1
    run.reply("42")
    run.finish()
    first, _, call, second, _ = spans_of(run.log)
    assert (first.end, call.end) == (110.0, 110.0), "the last that is known of it"
    assert first.attributes["error.type"] == call.attributes["error.type"] == INTERRUPTED
    assert (second.start, second.name, second.link) == (1110.0, "invoke_agent a", first.span_id)
    assert second.trace_id == first.trace_id
    assert second.attributes["tenlines.run.taken_up"] is True
    assert second.attributes["tenlines.run.steps"] == 1, "what was used since"
    (doubt,) = second.events
    assert (doubt.name, doubt.attributes["tenlines.outcome"]) == ("tenlines.call.abandoned", "in_doubt")
    assert doubt.attributes["gen_ai.tool.name"] == "send"


def test_a_call_that_runs_again_has_a_span_for_each_start() -> None:
    run = Run().call("put").start()
    run.resume().start().returned()
    first, second = (one for one in spans_of(run.log) if one.name == "execute_tool put")
    assert first.span_id != second.span_id
    assert (first.attributes["error.type"], second.fault) == (INTERRUPTED, None)
    assert second.attributes["tenlines.call.starts"] == 2
    assert first.attributes["tenlines.call"] == second.attributes["tenlines.call"]


def test_a_cancelled_request_ends() -> None:
    run = Run().ask().cancel("now")
    _, request = spans_of(run.log)
    assert (request.attributes["error.type"], request.fault) == ("cancelled", "the run was cancelled")


def test_what_people_say_and_decide_is_marked() -> None:
    run = Run(CAREFUL).say("hello").call("pay").question(reason="it is a lot")
    run.finish()
    run.at += 60
    run.decide(by="ann")
    run.at += 60
    run.resume(CAREFUL).start().returned()
    spans = spans_of(run.log)
    assert marks(spans) == ["tenlines.message.queued", "tenlines.approval.asked", "tenlines.approval.given"]
    second = [one for one in spans if one.name == "invoke_agent a"][1]
    (given,) = second.events
    assert (given.at, second.start) == (160.0, 220.0), "it was decided while nobody had the run"
    assert given.attributes["tenlines.by"] == "ann"
    assert given.attributes["gen_ai.tool.name"] == "pay"


def test_a_call_that_is_given_up_ends_in_doubt() -> None:
    _, _, call = spans_of(given_up().log)
    assert (call.attributes["tenlines.outcome"], call.attributes["error.type"]) == ("in_doubt", "in_doubt")


def test_an_undo_is_a_span_under_the_run_of_the_undoing() -> None:
    *_, again, undo = spans_of(undone().log)
    assert (again.attributes["tenlines.undo"], again.attributes["tenlines.by"]) == (True, "ann")
    assert (undo.name, undo.parent, undo.attributes["tenlines.undo"]) == ("execute_tool pay", again.span_id, True)
    assert undo.attributes["error.type"] == "tool_error"


def test_what_children_used_is_on_the_call_and_apart_from_the_runs_own() -> None:
    tools = (ev.ToolSpec("ask", spends=True),)
    run = Run(tools).call("ask").start()
    run.returned(spent=Spent(input_tokens=100, output_tokens=10, dollars=0.5, runs=("q", "p")))
    agent, _, call = spans_of(run.log)
    assert call.attributes["tenlines.children.runs"] == ("q", "p")
    assert call.attributes["tenlines.children.tokens"] == 110
    assert (agent.attributes["tenlines.children.tokens"], agent.attributes["tenlines.children.dollars"]) == (110, 0.5)


# --- content --------------------------------------------------------------------------------------------

CONTENT = {name.value.released for name in Name if name.name.endswith(("MESSAGES", "INSTRUCTIONS", "DEFINITIONS"))}


def test_nothing_of_what_was_said_is_exported_unless_it_is_asked_for() -> None:
    for seed in range(8):
        for one in spans_of(walked("", seed)):
            assert not set(one.attributes) & (CONTENT | {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"})


def test_each_message_is_exported_once() -> None:
    agent, first, call, second = spans_of(two_steps().log, content=True)
    assert json.loads(str(first.attributes["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": "task"}]}
    ]
    asked = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"a": 1}}
    assert json.loads(str(first.attributes["gen_ai.output.messages"])) == [
        {"role": "assistant", "parts": [asked], "finish_reason": "tool_call"}
    ]
    assert json.loads(str(call.attributes["gen_ai.tool.call.arguments"])) == {"a": 1}
    assert json.loads(str(call.attributes["gen_ai.tool.call.result"])) == "done"
    answer = {"type": "tool_call_response", "id": "c1", "response": "done"}
    assert json.loads(str(second.attributes["gen_ai.input.messages"])) == [{"role": "tool", "parts": [answer]}]
    assert json.loads(str(agent.attributes["gen_ai.output.messages"]))[0]["parts"] == [
        {"type": "text", "content": "42"}
    ]
    assert [one["name"] for one in json.loads(str(agent.attributes["gen_ai.tool.definitions"]))][:2] == ["look", "send"]


def test_the_bytes_of_images_are_never_exported() -> None:
    parts = (Image("image/png", b"\x00secret-bytes"), Image("image/png", url="data:image/png;base64,c2VjcmV0"))
    message = User((*parts, Image("image/png", url="https://example.org/a.png")))
    spans = spans_of(surrounded(two_steps().log, messages=(message,)), content=True)
    said = str(spans[0].attributes["gen_ai.input.messages"])
    assert "secret" not in said
    assert "c2VjcmV0" not in said
    assert "AHNl" not in said
    assert "https://example.org/a.png" in said


SECRET = "sk-demo-1111222233334444"


def failing_call() -> Run:
    """A call whose argument is a secret, which its error repeats, and the next reply too."""
    run = Run()
    run.reply("", ToolCall("c1", "send", json.dumps({"token": SECRET, "body": {"note": "keep me"}})))
    run.start()
    error = f"send failed: PermissionError: 401 for {SECRET}"
    run.tell(ev.CallFailed, step=1, position=0, outcome="tool_error", text=error, error_type="PermissionError")
    run.ask()
    run.tell(ev.ModelFailed, step=2, attempt=1, kind="Refused", message=f"not with {SECRET}")
    run.finish()
    return run


@pytest.mark.parametrize("content", [False, True])
def test_a_secret_that_an_error_repeats_is_in_no_span(content: bool) -> None:
    spans = spans_of(failing_call().log, content=content)
    written = msgspec.json.encode(spans).decode()
    assert SECRET not in written
    assert "401 for [redacted]" in written
    assert ("keep me" in written) is content


def test_the_filter_can_be_another_one() -> None:
    shouted = spans_of(failing_call().log, redaction=Redaction((), function=str.upper))
    assert any(one.fault and SECRET.upper() in one.fault for one in shouted)


HOSTILE = "\x1b]0;title\x07\u202eevil\ud800<script>alert(1)</script>\x00" + "x" * 100_000


def test_hostile_texts_are_harmless_and_short() -> None:
    run = Run()
    run.reply(HOSTILE, ToolCall(HOSTILE, HOSTILE, HOSTILE), ToolCall("c", "look", json.dumps({"a": "\x1b[2J" * 9})))
    run.failed(0, "unknown_tool", HOSTILE)
    run.start(1).returned(1, HOSTILE)
    run.ask()
    run.tell(ev.ModelFailed, step=2, attempt=1, kind=HOSTILE, message=HOSTILE)
    run.finish()
    log = surrounded(run.log, agent=HOSTILE, model=HOSTILE, session=HOSTILE, traceparent=HOSTILE)
    log = [codec.as_read(event) for event in log]
    for content in (False, True):
        for one in spans_of(log, content=content):
            texts = [one.name, one.fault or "", *(mark.name for mark in one.events)]
            for attributes in (one.attributes, *(mark.attributes for mark in one.events)):
                texts += [value for value in attributes.values() if isinstance(value, str)]
            for text in texts:
                text.encode()  # half a character would cost the whole batch
                assert len(text) <= 5 * 33_000
                assert "\x1b" not in text
                assert "\x00" not in text


def test_what_nobody_reported_is_left_out() -> None:
    run = Run().reply("42", dollars=0.25)
    run.finish()
    agent, request = spans_of(run.log)
    assert request.attributes["tenlines.dollars"] == 0.25
    assert "gen_ai.usage.input_tokens" not in request.attributes, "nobody said it"
    assert "gen_ai.usage.input_tokens" not in agent.attributes
