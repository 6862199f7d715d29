"""An agent whose model is answered from a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenlines.agent import Agent
from tenlines.core import events as ev
from tenlines.core.context import question
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Note, Reply
from tenlines.errors import OutOfMoves
from tenlines.ports import Journal, Model, OnDelta


def answered_by(agent: Agent, model: Model, journal: Journal) -> Agent:
    """The same agent with another model and another journal."""
    other = agent._recording_in(journal)
    other.model = model
    return other


class RecordedModel:
    """Says at each step what was said there before.

    Args:
        name: What it is called.
        replies: Number of the step -> the reply.
        summaries: Number of the step before which a summary was asked for -> the summary.
        asked: The question for a summary, by which such a request is known; None where there are none.
    """

    def __init__(
        self,
        name: str,
        replies: Mapping[int, Reply],
        summaries: Mapping[int, Reply] | None = None,
        asked: Note | None = None,
    ) -> None:
        self.name, self.replies, self.summaries, self.asked = name, replies, summaries or {}, asked

    def session(self) -> RecordedModel:
        """The same for every run."""
        return self

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The reply of that step, or the summary before it."""
        is_summary = self.asked is not None and request.messages[-1] == self.asked
        replies, what = (self.summaries, "summary before") if is_summary else (self.replies, "reply to")
        if request.step not in replies:
            raise OutOfMoves(f"no {what} step {request.step} is recorded")
        return replies[request.step]

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio."""
        return self.complete(request, on_delta)


def as_recorded(name: str, log: Iterable[ev.AnyEvent]) -> RecordedModel:
    """A model that says what was said in a run."""
    replies: dict[int, Reply] = {}
    summaries: dict[int, Reply] = {}
    asked: Note | None = None
    for event in log:
        if isinstance(event, ev.RunStarted) and event.settings.compaction is not None:
            asked = question(event.settings.compaction.summary_tokens)
        elif isinstance(event, ev.ModelReplied):
            replies[event.step] = event.reply
        elif isinstance(event, ev.SummaryEnded) and event.reply is not None:
            summaries[len(replies) + 1] = event.reply
    return RecordedModel(name, replies, summaries, asked)
