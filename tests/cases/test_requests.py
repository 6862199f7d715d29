"""Requests that fail, break off, stream oddly, or stop beginning like the one before."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from case_context import cuts
from case_laws import encoded
from case_world import Played, World, calls, says

from tenlines import Limits, Retry
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Assistant, User
from tenlines.testing import FakeClock
from tenlines.wire.anthropic.format import FORMAT as ANTHROPIC
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Target


def retries(world: World) -> Retry:
    """The case's `max retries`, as requests in all."""
    return Retry(attempts=1 + world.input["opts"]["max retries"])


# --- retry ----------------------------------------------------------------------------------------------


def test_retry_01_a_provider_is_given_the_time_that_it_asked_for(world: World) -> None:
    clock = FakeClock()
    run = world.play(clock=clock, retry=retries(world)).expect()
    assert len(clock.waits) == 2
    assert all(30 <= wait <= 45 for wait in clock.waits)
    assert [type(message) for message in run.result.messages] == [User, Assistant]
    assert run.result.steps == 1


def test_retry_03_what_passes_is_waited_out_and_leaves_no_trace(world: World) -> None:
    @world.tool
    def t() -> str:
        """Do."""
        return "r"

    clock = FakeClock()
    run = world.play(clock=clock, retry=retries(world)).expect()
    first, second = clock.waits
    assert first < second <= 60 * 1.25
    assert run.result.retries == 2
    assert [message["role"] for message in run.sent[-1]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("variant", range(3))
def test_retry_04_what_cannot_pass_is_not_asked_again(world: World, variant: int) -> None:
    fault = world.input["variants"][variant]
    status = world.expected["status"].split("; ")[variant]
    run = world.play(model=lambda _: fault, clock=FakeClock(), retry=retries(world)).expect(status=status)
    (failed,) = run.events(ev.ModelFailed)
    assert failed.status == fault["raise"]["status"]
    assert failed.code == fault["raise"].get("code", "")
    assert str(failed.status) in run.result.reason
    assert run.result.messages == (User(run.result.messages[0].parts),)  # type: ignore[union-attr]
    if variant == 0:
        asked = {"role": "assistant", **calls(("a", "t", "{}"))}
        result = {"role": "tool", "tool_call_id": "a", "content": "word " * 2_000}
        compaction = Compaction(expected_steps=(1,))
        again = world.play(
            history=[{"role": "user", "content": "u"}, asked, result],
            model=lambda _: fault,
            clock=FakeClock(),
            retry=retries(world),
            compaction=compaction,
        ).expect(status=status, model_calls=2)
        assert len(cuts(again)) == 1
        assert "left out to save room" in again.sent[1][2]["content"]


def test_retry_06_a_broken_attempt_is_not_in_the_stored_transcript(world: World) -> None:
    world.store()
    run = world.play(clock=FakeClock()).expect()
    assert [message["role"] for message in encoded(run.result.messages)] == ["user", "assistant"]
    assert run.result.messages[-1] == Assistant("Hello")


# --- streams --------------------------------------------------------------------------------------------


def test_stream_01_two_calls_under_one_index_are_two_calls(world: World) -> None:
    @world.tool(read_only=True)
    def read(path: str) -> str:
        """Read."""
        return path

    world.play().expect()


@pytest.mark.parametrize("attempts", [1, 2])
def test_stream_03_a_call_that_broke_off_never_runs(world: World, attempts: int) -> None:
    @world.tool
    def write(text: str) -> str:
        """Write."""
        return f"wrote {text}"

    run = world.play(clock=FakeClock(), retry=Retry(attempts=attempts))
    if attempts == 2:
        run.expect()
        assert world.tools["write"].given == [{"text": "chapter"}]
    else:
        run.expect(status="provider_error", model_calls=1, tool_runs={"write": 0})
    assert not any("chap" in call.raw_arguments and "chapter" not in call.raw_arguments for call in run.result.calls)


def test_stream_05_a_call_that_is_sent_twice_is_one_call(world: World) -> None:
    @world.tool
    def set(v: str) -> str:
        """Set."""
        return v

    run = world.play().expect()
    whole = [calls(("A", "set", '{"v":"1"}'), ("B", "set", '{"v":"2"}')), says("ok")]
    again = world.play(model=whole)
    assert again.result.messages == run.result.messages


# --- usage ----------------------------------------------------------------------------------------------


def test_usage_01_a_reply_without_counts_is_said_and_breaks_nothing(world: World) -> None:
    @world.tool
    def t() -> str:
        """Do."""
        return "r"

    moves = json.loads(json.dumps(world.input["model"]))
    moves[0]["usage"], moves[1]["usage"] = {"input": 10, "output": 5}, {}
    run = world.play(model=moves).expect()
    assert (run.result.usage.input, run.result.usage.output) == (10, 5)
    assert run.result.usage.unmetered == 1
    limited = world.play(model=moves, limits=Limits(tokens=10_000)).expect()
    assert limited.result.usage.total == 15
    assert limited.result.usage.unmetered == 1, "which says that the sum is not all that was used"
    assert 5_700 < limited.result.left.tokens < 10_000 - 15 - 4_096, "as much as was set aside may be gone"
    refused = world.play(model=moves, limits=Limits(tokens=10))
    refused.expect(status="budget", model_calls=0)
    assert refused.result.left.tokens == 10, "what a request holds is estimated where nothing was reported"


def test_usage_03_growing_counts_are_taken_once_and_those_of_a_broken_attempt_count(world: World) -> None:
    run = world.play(clock=FakeClock(), retry=retries(world)).expect()
    (failed,), (replied,) = run.events(ev.ModelFailed), run.events(ev.ModelReplied)
    assert (failed.usage.input, failed.usage.output) == (100, 1)
    assert (replied.reply.usage.input, replied.reply.usage.output) == (100, 2)
    assert (run.result.usage.input, run.result.usage.output) == (200, 3)


# --- the prefix -----------------------------------------------------------------------------------------


def bodies(run: Played, name: str) -> list[str]:
    """Every request in a format, as JSON text: tools and system, then the messages."""
    format = FORMATS[name]
    talk = format.talk(Target(profile=format.profile(), model="m"))
    out = []
    for request in run.model.requests:
        body = talk.request(request, stream=False)
        rest = {key: value for key, value in body.items() if key != format.list_field}
        out.append(json.dumps(rest) + without_marks(json.dumps(body[format.list_field])))
    return out


def without_marks(text: str) -> str:
    """Cache marks move forward with the messages; they are no part of what is cached."""
    return text.replace(', "cache_control": {"type": "ephemeral"}', "").replace(
        ', {"cachePoint": {"type": "default"}}', ""
    )


@pytest.mark.parametrize("name", FORMATS)
def test_cache_01_each_request_begins_with_the_one_before(world: World, name: str) -> None:
    @world.tool
    def b() -> str:
        """B."""
        return "1"

    @world.tool
    def a() -> str:
        """A."""
        return "2"

    clock = FakeClock(during=lambda _: None)

    def slow(request: CallModel) -> Any:
        clock.advance(90.0)
        return world.input["model"][request.step - 1]

    run = world.play(model=slow, clock=clock).expect()
    sent = bodies(run, name)
    assert len(sent) == 3
    for before, after in itertools.pairwise(sent):
        assert after.startswith(before.rstrip("]}"))
        assert len(after) > len(before)
    later = world.play(model=world.input["model"], clock=FakeClock(start=5.0))
    assert bodies(later, name) == sent, "nothing in a request comes from the clock or from the run's id"


ORDER_SCRIPT = """
import json, sys
from tenlines import Agent, tool
from tenlines.core.transcript import Reply
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Target

def made(name):
    def f(x: int, y: str = "") -> str: return name
    f.__name__ = name
    return tool(f)

class Model:
    name = "m"
    def session(self): return self
    def complete(self, request, on_delta):
        for one in FORMATS.values():
            talk = one.talk(Target(profile=one.profile(), model="m"))
            print(json.dumps(talk.request(request, False)))
        return Reply("hi")

names = sys.argv[1].split(",")
Agent(Model(), [made(name) for name in (set(names) if sys.argv[2] == "set" else names)], journal=None).run_sync("go")
"""


@pytest.mark.slow
@pytest.mark.driver("sync")
def test_cache_02_the_order_in_which_tools_are_given_is_the_order_in_every_process(
    world: World, tmp_path: Path
) -> None:
    def sent(names: str, seed: str) -> str:
        command = [sys.executable, "-c", ORDER_SCRIPT, names, "list"]
        environment = {"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert sent("a,b,c", "1") == sent("a,b,c", "2")
    assert len(sent("a,b,c", "1").splitlines()) == len(FORMATS)
    other = sent("c,a,b", "1")
    assert other != sent("a,b,c", "1"), "the order given is kept, as `docs/concepts.md` says"


def test_cache_04_marks_are_few_and_move_with_the_conversation(world: World) -> None:
    @world.tool(read_only=True, repeatable=True)
    def t() -> str:
        """Do."""
        return "r"

    def rule(request: CallModel) -> Any:
        if request.step == 61:
            return says("ok")
        several = 3 if request.step % 4 == 0 else 1
        return calls(*((f"{request.step}-{i}", "t", "{}") for i in range(several)))

    run = world.play(model=rule, limits=Limits(steps=70)).expect()
    talk = ANTHROPIC.talk(Target(profile=ANTHROPIC.profile(), model="claude-sonnet-5"))
    for number, request in enumerate(run.model.requests, 1):
        body = talk.request(request, stream=False)
        text = json.dumps(body)
        assert text.count('"cache_control"') <= 4
        messages: Any = body["messages"]
        if number >= 10:
            assert any('"cache_control"' in json.dumps(message) for message in messages[-3:])
