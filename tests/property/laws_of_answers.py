"""The laws of answers that have a schema: words end no run, the tool that takes the answer is asked for, and the last
words are given by it.

Judged from the log alone, at every prefix of it. That its calls are like any others is said by the other laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Finish, RunTools, Summarise, UndoCall
from tenlines.core.state import Phase
from tenlines.core.transcript import Note

if TYPE_CHECKING:
    from laws import Checked


def words_are_no_answer_where_it_has_a_schema(run: Checked) -> None:
    """They are asked about, a few times; then the run ends, and says why."""
    facts, effect, event = run.facts, run.effect, run.event
    if facts.giver is None or facts.start is None or not isinstance(event, ev.ModelReplied):
        return
    if not facts.is_wordy:
        return
    assert any(facts.giver.name in one.text for one in run.kept[-3:] if isinstance(one, Note)), "it is not asked for"
    if facts.wordy > facts.start.settings.blank_replies:
        assert isinstance(effect, Finish | UndoCall), "words for ever"
        assert not isinstance(effect, Finish) or effect.status == "stuck"


def the_tool_that_takes_the_answer_is_forced_after_words(run: Checked) -> None:
    """Until something is called, and no longer."""
    effect, facts = run.effect, run.facts
    if not isinstance(effect, CallModel) or run.phase is not Phase.READY or facts.giver is None:
        return
    assert facts.start is not None
    if facts.finish_due:
        assert effect.tool_choice == facts.giver.name, "it may answer in words again"
    elif facts.limits.steps is None or facts.used("steps") < facts.limits.steps:
        assert effect.tool_choice in ("auto", facts.start.settings.tool_choice), "forced without a reason"


def a_summary_is_words(run: Checked) -> None:
    """It would be the answer else, where words are held to its schema."""
    if isinstance(run.effect, Summarise) and run.facts.giver is not None:
        assert run.effect.request.tool_choice == "none", "a summary is asked for where the answer is"


def last_words_are_no_answer(run: Checked) -> None:
    """What is given past the step limit is as partial as words would be."""
    facts = run.facts
    if facts.last_words is None or facts.ended is None or facts.is_asking or facts.open:
        return
    if isinstance(run.event, ev.RunEnded) and facts.ended.status == "max_steps":
        assert run.machine.result().partial_answer == (facts.last_words or None), "the last words are lost"


def last_words_can_be_given(run: Checked) -> None:
    facts, giver = run.facts, run.facts.giver
    if not isinstance(run.effect, RunTools) or giver is None or not facts.words_only or facts.nothing_starts(run.now):
        return
    for one in run.effect.refusals:
        call = facts.open[one.position]
        assert call.name != giver.name or call.is_refused or call.gone, "the last words are refused"


def the_answer_costs_no_tool_call(run: Checked) -> None:
    assert run.machine.state.account.tool_calls == run.facts.starts, "tool calls are counted wrong"


LAWS_OF_ANSWERS = (
    words_are_no_answer_where_it_has_a_schema,
    the_tool_that_takes_the_answer_is_forced_after_words,
    a_summary_is_words,
    last_words_are_no_answer,
    last_words_can_be_given,
    the_answer_costs_no_tool_call,
)
