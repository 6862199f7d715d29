"""Going on from any state with a model that never comes to an end, and never writes a summary that can be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from alphabet import LONG
from world import World

from tenlines.core import events as ev
from tenlines.core.effects import RunnableCall
from tenlines.core.state import Phase
from tenlines.core.transcript import Reply, Text, ToolCall, Usage

T = TypeVar("T")

STEPS = 6
"""So many more replies, unless the run ends before."""
MOST_EFFECTS = 12
"""What one step may take, beside three for each call and what is left to be undone: a summary and its end, two cuts,
the request and its end."""


class First:
    """A chooser that chooses nothing."""

    def pick(self, options: Sequence[T]) -> T:
        return options[0]


class Endless(World):
    """The world of a run, from where it stands, with such a model."""

    def __init__(self, world: World) -> None:
        super().__init__(First(), world.kind)
        self.run, self.now = world.run.fork(), world.now
        self.running, self.in_undo = dict(world.running), world.in_undo
        self.purses.honest = False

    def answer_request(self) -> None:
        started = next(event for event in reversed(self.log) if isinstance(event, ev.StepStarted))
        reply = Reply("", (ToolCall("", "look", '{"a":1}'),), "tool_calls", Usage(self.run.words or 1, 10))
        self.run.take(ev.ModelReplied(**self.stamp(), step=started.step, reply=reply))

    def answer_summary(self) -> None:
        self.run.take(ev.SummaryEnded(**self.stamp(), kind="RateLimited", message="not now"))

    def end_call(self, call: RunnableCall) -> None:
        del self.running[call.step, call.position]
        parts = (Text(f"{len(self.log)} {LONG[-1]}"),)
        self.run.take(ev.CallReturned(**self.stamp(), step=call.step, position=call.position, parts=parts))


def drive_on(world: World) -> int:
    """Until the run ends or has taken some more steps. How many effects that took."""
    endless, taken, since = Endless(world), 0, 0
    facts = endless.run.facts
    last = facts.replies + STEPS
    while endless.run.phase is not Phase.ENDED and facts.replies < last:
        before = facts.replies
        endless.drive()
        taken, since = taken + 1, 0 if facts.replies > before else since + 1
        bound = MOST_EFFECTS + 3 * len(facts.open) + 2 * len(facts.acted)
        assert since <= bound, f"{since} effects, and no step was made"
    return taken
