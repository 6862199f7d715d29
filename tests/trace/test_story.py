"""Stories of any log."""

from __future__ import annotations

from typing import Any

import pytest
from world import KINDS_OF_WORLD, walk

from tenlines import Agent
from tenlines.report import read_run
from tenlines.trace.redaction import Redaction
from tenlines.trace.story import StepView, Story, read_story


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_WORLD)
def test_every_log_is_a_story_and_a_page(kind: Any) -> None:
    """Random runs, with everything that can happen in them."""
    for seed in range(40):
        log = walk(seed, 40, kind).log
        story, live = read_story(log, Redaction()), Story()
        for event in log:
            live.take(event)
        result = story.machine.result()
        views = [view for item in story.items if isinstance(item, StepView) for view in item.calls]
        ended = {(one.step, one.position): one.outcome for one in views if one.outcome}
        assert {(one.step, one.position): one.outcome for one in result.calls} == {
            place: outcome
            for place, outcome in ended.items()
            if place in {(one.step, one.position) for one in result.calls}
        }
        assert len([item for item in live.items if isinstance(item, StepView)]) >= result.steps
        read_run(log)


def test_words_that_are_the_call_of_finish_are_shown_as_that_call() -> None:
    agent = Agent(['{"answer": 7}'], output=int, journal="memory")
    result = agent.run_sync("How many?")
    (step,) = [one for one in read_story(agent.journal.read(result.run_id)).items if isinstance(one, StepView)]
    assert step.reply is not None
    assert (step.reply.text, [(one.name, one.outcome) for one in step.calls]) == ("", [("finish", "ok")])
