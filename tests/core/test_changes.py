"""What several events do alike, by example."""

from __future__ import annotations

from told_run import TOOLS, Run

from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.limits import Limits
from tenlines.core.transcript import Assistant, Result, User


def test_what_a_person_says_waits_until_the_exchange_is_closed() -> None:
    run = Run().call("look").start().say("hurry").returned()
    assert [type(message) for message in run.messages] == [User, Assistant, Result, User]


def test_a_run_asked_for_last_words_gives_them_as_a_partial_answer() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned()
    assert run.effect.tool_choice == "none"
    run.reply("as far as I know")
    assert run.finish().status == "max_steps"
    assert run.machine.result().partial_answer == "as far as I know"


def test_two_tools_of_one_name_are_refused_on_resume_as_at_the_start() -> None:
    assert "'look'" in Run().refuses(ev.RunResumed, tools=(TOOLS[0], TOOLS[0]))


def test_raising_another_limit_does_not_cost_the_last_words() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned()
    run.tell(ev.LimitsRaised, limits=Limits(steps=1, last_words=True, dollars=None, tokens=9_000))
    assert isinstance(run.effect, CallModel)
