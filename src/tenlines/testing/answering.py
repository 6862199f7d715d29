"""An agent whose model is answered from a record."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from tenlines.agent import Agent
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply
from tenlines.errors import OutOfMoves
from tenlines.ports import Journal, Model, OnDelta


def answered_by(agent: Agent, model: Model, journal: Journal) -> Agent:
    """The same agent with another model and another journal."""
    other = copy.copy(agent)
    other.model, other._journal = model, journal
    return other


class RecordedModel:
    """Says at each step what was said there before.

    Args:
        name: What it is called.
        replies: Number of the step -> the reply.
    """

    def __init__(self, name: str, replies: Mapping[int, Reply]) -> None:
        self.name, self.replies = name, replies

    def session(self) -> RecordedModel:
        """The same for every run."""
        return self

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The reply of that step."""
        if request.step not in self.replies:
            raise OutOfMoves(f"no reply to step {request.step} is recorded")
        return self.replies[request.step]

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio."""
        return self.complete(request, on_delta)
