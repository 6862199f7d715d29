"""Replies that are empty, cut, refused, or say one thing and do another."""

from __future__ import annotations

from typing import Any, get_args

from case_laws import encoded
from case_world import World, calls, is_note, says

from tenlines import Agent, Limits
from tenlines.core import events as ev
from tenlines.core.transcript import Assistant
from tenlines.models.text_protocol import TextProtocol
from tenlines.wire.text_protocol.reading import Style


def test_empty_01_an_empty_reply_is_asked_for_again(world: World) -> None:
    world.tool(lambda: "3 hits", name="scan")
    run = world.play().expect()
    assert [message["role"] for message in run.sent[2]] == ["user", "assistant", "tool", "user"]
    assert is_note(run.sent[2][-1])
    assert run.result.steps == 3  # each reply is one step
    assert len(run.result.warnings) == 1
    assert "empty" in run.result.warnings[0]


def test_empty_02_a_model_that_stays_empty_ends_the_run(world: World) -> None:
    for nothing in ("", "  \n", None):
        run = world.play(model=lambda request, text=nothing: says(text)).expect()
        assert len(run.model.requests) == 3
        assert run.result.answer is None
        assert (run.result.usage.input, run.result.usage.output) == (300, 30)


def test_empty_04_empty_text_beside_calls_is_no_text(world: World) -> None:
    world.tool(lambda: "r", name="t")
    stored = []
    for text in ("", None, " \n"):
        run = world.play(model=[calls(("a", "t", "{}"), text=text), says("ok")]).expect()
        stored.append(run.result.messages)
        assert run.sent[1][1]["content"] in (None, "")
    assert stored[0] == stored[1] == stored[2]
    past = [{"role": "user", "content": "u"}, {"role": "assistant", "content": ""}]
    mended = world.play(history=past)
    assert [message["role"] for message in mended.sent[0]] == ["user", "user"]
    assert len(mended.result.repairs) == 1


def test_cut_01_calls_of_a_cut_reply_do_not_run(world: World) -> None:
    @world.tool
    def write(path: str, text: str = "") -> str:
        """Write."""
        return "ok"

    run = world.play().expect()
    assert "hit the output limit" in run.call("a").text
    assert "smaller pieces" in run.call("a").text
    assert "missing" not in run.call("a").text


def test_cut_03_a_reply_that_is_cut_again_and_again_ends_the_run(world: World) -> None:
    @world.tool
    def render(svg: str) -> str:
        """Render."""
        return "ok"

    def oversized(request: Any) -> Any:
        return calls((f"a{request.step}", "render", "{}"), stop="length")

    world.play(model=oversized, limits=Limits(steps=40)).expect()


def test_cut_04_no_call_of_a_cut_reply_runs_and_a_cut_answer_is_no_answer(world: World) -> None:
    world.tool(lambda: "x", name="ls")

    @world.tool
    def write(text: str) -> str:
        """Write."""
        return "ok"

    two_calls, cut_text = (variant["model"] for variant in world.input["variants"])
    run = world.play(model=two_calls).expect(status="completed")
    assert [record.outcome for record in run.result.calls] == ["not_executed", "not_executed"]
    assert world.tools["ls"].runs == 0
    cut = world.play(model=cut_text).expect(status="truncated_reply", obs=())
    assert cut.result.answer is None
    assert cut.result.partial_answer == "The answer is forty-"


def test_stop_01_calls_run_whatever_the_stop_reason_beside_them_says(world: World) -> None:
    world.tool(lambda: "r", name="t")
    world.play().expect()


def test_stop_02_text_beside_calls_is_kept_and_is_not_the_answer(world: World) -> None:
    world.tool(lambda: "r", name="t")
    run = world.play().expect()
    assert run.sent[1][1]["content"] == "Let me look."
    assert run.events(ev.ModelReplied)[0].reply.text == "Let me look."


def test_stop_03_a_reply_that_the_provider_calls_malformed_is_asked_for_again(world: World) -> None:
    world.tool(lambda: "r", name="t")
    run = world.play(blank_replies=2).expect()
    assert run.call("x").outcome == "not_executed"
    assert "malformed" in run.call("x").text
    assert len(run.notes) == 2
    malformed = world.input["model"][0]
    endless = world.play(model=lambda request: malformed, blank_replies=2)
    assert endless.result.status == "empty_reply"
    assert "malformed" in endless.result.reason
    assert len(endless.model.requests) == 3


def test_refuse_01_a_filtered_reply_is_not_asked_for_again(world: World) -> None:
    run = world.play().expect()
    assert "filter" in run.result.reason
    after = world.play(history=run.result.messages, task="Something else.", model=[says("Sure.")])
    assert after.result.answer == "Sure."
    assert after.result.repairs == ()


def test_textcall_01_a_call_that_is_written_as_text_is_flagged_and_never_run(world: World) -> None:
    @world.tool
    def ls(p: str) -> str:
        """List."""
        return "x"

    run = world.play().expect()
    assert len(run.model.requests) == 1
    assert world.tools["ls"].runs == 0
    assert "looks like a tool call" in run.result.warnings[0]
    for text in ('{"name": "ls", "arguments": {"p": "a"}}', ' ```\n<tool_call>{"name":"ls"}</tool_call>'):
        other = world.play(model=[says(text)])
        assert len(other.result.warnings) == 1
        assert world.tools["ls"].runs == 0
    assert world.play(model=[says("It is called ls.")]).result.warnings == ()
    assert [one.text for one in run.result.messages if isinstance(one, Assistant)] == [run.result.answer]
    assert encoded(run.result.messages)[-1]["role"] == "assistant"
    for style in get_args(Style):
        read = Agent(TextProtocol([move["text"] for move in world.input["model"]], style), [ls], journal="memory")
        switched_on = read.run_sync(world.input["user"])
        assert [(call.name, call.arguments, call.outcome) for call in switched_on.calls] == [("ls", {"p": "a"}, "ok")]
        assert [one["role"] for one in encoded(switched_on.messages)] == ["user", "assistant", "tool", "assistant"]
        assert switched_on.answer == "x"
        assert switched_on.warnings == ()
