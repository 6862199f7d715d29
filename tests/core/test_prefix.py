"""What is said of the beginning of a request that is not as it was."""

from __future__ import annotations

import pytest
from told_run import CAREFUL, TOOLS, Run

from tenlines.core import events as ev
from tenlines.core.prefix import beginning_change, system_change, tools_change
from tenlines.core.transcript import System, Text, User

LOOK, SEND = ev.ToolSpec("look"), ev.ToolSpec("send")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((LOOK, SEND), (LOOK, SEND), ""),
        ((), (), ""),
        ((LOOK,), (LOOK, SEND), "the tools: send new"),
        ((LOOK, SEND), (SEND,), "the tools: look gone"),
        ((LOOK, SEND), (SEND, LOOK), "the order of the tools"),
        ((LOOK,), (ev.ToolSpec("look", "Look twice."),), "the tools: look described otherwise"),
        ((LOOK,), (ev.ToolSpec("look", parameters={"type": "object"}),), "the tools: look described otherwise"),
        ((LOOK,), (SEND,), "the tools: look gone, send new"),
    ],
)
def test_tools_are_compared_as_a_model_is_sent_them(
    before: tuple[ev.ToolSpec, ...], after: tuple[ev.ToolSpec, ...], said: str
) -> None:
    assert tools_change(before, after) == said


def test_what_a_model_is_not_sent_of_a_tool_does_not_matter() -> None:
    assert tools_change((LOOK,), (ev.ToolSpec("look", read_only=True, approve=True, spends=True),)) == ""


def test_instructions_that_differ_are_shown_from_the_first_difference_on() -> None:
    said = system_change([System("Be brief.")], [System("Be kind.")])
    assert said == "the instructions, from character 3 on: 'kind.', was 'brief.'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It is 2026-01-31.", "It is 2026-02-01."),
        ("It is 9:05.", "It is 17:40."),
        ("Now: 1760000000", "Now: 1760000001"),
    ],
)
def test_a_clock_in_the_instructions_is_named_with_its_cure(before: str, after: str) -> None:
    said = system_change([System(before)], [System(after)])
    assert said == "the instructions: a date or time in them (put it into the newest message instead)"


def test_words_of_people_are_no_instructions() -> None:
    assert system_change([System("s"), User((Text("a"),))], [System("s"), User((Text("b"),))]) == ""


def test_instructions_that_go_on_longer_differ_where_the_shorter_ends() -> None:
    assert system_change([System("Go")], [System("Go on")]) == "the instructions, from character 2 on: ' on', was ''"


def test_tools_come_first_as_a_provider_has_them() -> None:
    said = beginning_change(([System("a")], (LOOK,)), ([System("b")], (SEND,)))
    assert said.startswith("the tools: look gone, send new; the instructions, from character 0 on: ")


# --- in a run -------------------------------------------------------------------------------------------


def test_nothing_is_said_of_a_request_that_begins_as_the_one_before() -> None:
    run = Run().exchange()
    assert (run.effect.changed, run.effect.new_from) == ("", 2)


def test_other_tools_after_a_resume_are_said_until_a_request_is_answered() -> None:
    run = Run().exchange().resume(TOOLS[:1])
    said = "the tools: send, put, finish, tell gone"
    assert run.effect.changed == said
    run.ask().tell(ev.ModelFailed, step=2, attempt=1, kind="RateLimited", message="no", retryable=True)
    run.at += 60
    assert run.effect.changed == said, "no cache has what was not answered"
    assert run.call("look").start().returned().effect.changed == ""


def test_tools_that_came_back_before_anything_was_asked_have_not_changed() -> None:
    run = Run().exchange().resume(TOOLS[:1]).resume(CAREFUL).resume(TOOLS)
    assert run.effect.changed == ""


def test_a_tool_that_is_forced_no_more_is_said() -> None:
    run = Run(tool_choice="look")
    assert run.effect.changed == "", "there is no request before the first"
    assert run.exchange().effect.changed == "the tool choice is 'auto', it was 'look'"


def test_what_is_left_out_is_said() -> None:
    run = Run().exchange().ask()
    fields = {"kind": "ProtocolRejected", "message": "no", "violation": "RSN-EDITED"}
    run.tell(ev.ModelFailed, step=2, attempt=1, **fields)
    assert (run.effect.changed, run.effect.new_from) == ("reasoning is left out", 0)
