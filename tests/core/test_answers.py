"""Answers that have a schema, by example: what words do, what is forced, last words, the limit of tool calls."""

from __future__ import annotations

import pytest
from told_run import Run

from tenlines.core import events as ev
from tenlines.core.changes import estimate_tools
from tenlines.core.context import Compaction
from tenlines.core.effects import Summarise
from tenlines.core.limits import Limits
from tenlines.core.replay import fold
from tenlines.core.transcript import Assistant, JsonObject, Note, Result, Text, ToolCall, User

GIVE = ev.ToolSpec("give", read_only=True, final=True, answer="object")
TOOLS = (ev.ToolSpec("look", read_only=True), ev.ToolSpec("send"), GIVE)


def given(run: Run, text: str = '{"a":1}') -> Run:
    """The model gives its answer by a call."""
    return run.call("give").start().returned(text=text)


def test_the_answer_is_given_by_a_call_and_the_calls_beside_it_do_not_run() -> None:
    run = Run(TOOLS).call("send", "give").start(1).returned(1, text='{"a":1}')
    (refusal,) = run.effect.refusals
    run.failed(refusal.position, refusal.outcome, refusal.text)
    assert run.finish().answer == '{"a":1}'
    assert [one.outcome for one in run.machine.result().calls] == ["not_executed", "ok"]


def test_words_are_no_answer_and_the_tool_is_forced_until_something_is_called() -> None:
    run = Run(TOOLS).reply("It is one.")
    assert run.messages[-2:] == [Assistant("It is one."), run.messages[-1]]
    assert isinstance(run.messages[-1], Note)
    assert "Call give with the answer" in run.messages[-1].text
    assert run.effect.tool_choice == "give"
    run.call("give").failed(0, "invalid_arguments", "give did not run: a is missing")
    assert run.effect.tool_choice == "auto", "the prefix changes no more than it must"
    assert given(run).finish().status == "answered"


def test_words_for_ever_end_as_stuck_with_the_words_as_partial_answer() -> None:
    run = Run(TOOLS, blank_replies=2).reply("One.").reply("One, I said.").reply("One!")
    end = run.finish()
    assert (end.status, end.answer) == ("stuck", None)
    assert "give" in end.reason
    assert "3" in end.reason
    assert run.machine.result().partial_answer == "One!"
    run.resume(TOOLS)
    assert run.effect.tool_choice == "give"
    assert given(run).finish().status == "answered"


def test_words_and_blank_replies_are_counted_together() -> None:
    run = Run(TOOLS, blank_replies=1).reply("One.").reply("")
    assert run.finish().status == "empty_reply"


@pytest.mark.parametrize("text", ['{"a":1}', ' \n{"a": 1}\n ', "{}"])
def test_a_reply_that_is_one_object_is_the_call(text: str) -> None:
    run = Run(TOOLS).reply(text)
    (call,) = run.effect.calls
    assert (call.name, call.arguments) == ("give", {} if text == "{}" else {"a": 1})
    assert run.start().returned(text="checked").finish().answer == "checked"
    message = run.messages[1]
    assert message == Assistant("", (ToolCall("call_1_0", "give", text.strip()),))


@pytest.mark.parametrize(
    "text", ['{"a":1} Done.', '{"a":1}{"b":2}', '{"a":', "[1]", '"x"', "3", "null", '```json\n{"a":1}\n```', "{a:1}"]
)
def test_anything_else_is_words(text: str) -> None:
    run = Run(TOOLS).reply(text)
    assert run.messages[1] == Assistant(text)
    assert run.effect.tool_choice == "give"


@pytest.mark.parametrize("stop", ["length", "refusal", "pause"])
def test_an_object_in_a_reply_that_is_not_whole_is_no_call(stop: str) -> None:
    run = Run(TOOLS).reply('{"a":1}', stop=stop)
    assert run.messages[1] == Assistant('{"a":1}')


def test_without_such_a_tool_an_object_is_words_as_ever() -> None:
    assert Run().reply('{"a":1}').finish().answer == '{"a":1}'


def test_a_blank_reply_is_asked_for_again_with_the_tool_named() -> None:
    run = Run(TOOLS).reply("")
    assert run.messages[-1] == Note("Your last reply was empty. Call a tool, or give the answer by calling give.")
    assert Run(TOOLS, empty_is_answer=True).reply("").messages[-1] == run.messages[-1], "an empty answer fits no schema"


def test_what_a_person_says_meanwhile_goes_before_the_note() -> None:
    run = Run(TOOLS).ask().say("Mind the rain.")
    run.tell(ev.ModelReplied, step=1, reply=ev.Reply("One."))
    assert run.messages[-1] == User((Text("Mind the rain."),))
    assert run.effect.tool_choice == "auto"


def test_last_words_are_given_by_the_tool_and_are_partial() -> None:
    run = Run(TOOLS, limits=Limits(steps=1, last_words=True)).exchange()
    assert isinstance(run.messages[-1], Note)
    assert "Call give now" in run.messages[-1].text
    assert run.effect.tool_choice == "give"
    run.call("look", "give").start(1).returned(1, text='{"a":1}')
    (refusal,) = run.effect.refusals
    run.failed(0, refusal.outcome, refusal.text)
    end = run.finish()
    assert (end.status, end.answer) == ("max_steps", None)
    assert run.machine.result().partial_answer == '{"a":1}'
    assert [one.outcome for one in run.messages if isinstance(one, Result)][-2:] == ["not_executed", "ok"]


def test_they_stay_that_where_a_crash_came_before_the_call_ran() -> None:
    run = Run(TOOLS, limits=Limits(steps=1, last_words=True)).exchange().call("give").resume(TOOLS)
    assert run.start().returned(text='{"a":1}').finish().status == "max_steps"
    assert run.machine.result().partial_answer == '{"a":1}'
    run.resume(TOOLS).tell(ev.LimitsRaised, limits=Limits(steps=9))
    assert given(run).finish().status == "answered"


def test_last_words_in_words_are_as_partial() -> None:
    run = Run(TOOLS, limits=Limits(steps=1, last_words=True)).exchange().reply("One, I think.")
    assert run.finish().status == "max_steps"
    assert run.machine.result().partial_answer == "One, I think."


def test_the_answer_costs_no_tool_call_and_can_be_given_past_their_limit() -> None:
    run = Run(TOOLS, limits=Limits(tool_calls=1, on_tool_limit="continue")).call("look", "look").start().returned()
    (refusal,) = run.effect.refusals
    assert "call give with what you have" in refusal.text
    run.failed(1, refusal.outcome, refusal.text)
    assert given(run).finish().status == "answered"
    assert run.machine.result().tool_calls == 1


def test_the_log_says_it_all() -> None:
    run = Run(TOOLS).reply("One.")
    assert fold(run.log).state == run.machine.state
    run.reply('{"a":1}')
    assert fold(run.log).state == run.machine.state


def test_a_question_about_any_other_tool_is_bound_as_it_was_before() -> None:
    run = Run((ev.ToolSpec("pay", approve=True),)).call("pay")
    assert run.digest() == "c7bfe2142a0a9258d5e78503e949b8b5"


def test_a_summary_is_asked_for_where_nothing_can_be_called() -> None:
    cutting = Compaction(strategies=("summarise",), keep=1, at=40, summary_tokens=50)
    run = Run(TOOLS, compaction=cutting, limits=Limits(steps=9))
    while not isinstance(run.effect, Summarise):
        run.exchange("so much was found there that nobody would want to read it twice " * 8)
    assert run.effect.request.tool_choice == "none", "else the summary would be an answer"


def test_the_schema_of_an_answer_is_reserved_for_twice_since_it_may_go_out_twice() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string", "description": "what it is " * 9}}}
    plain = ev.ToolSpec("give", parameters=schema)
    once, twice = estimate_tools([plain]), estimate_tools([ev.ToolSpec("give", parameters=schema, answer="object")])
    assert once < twice < 2 * once
