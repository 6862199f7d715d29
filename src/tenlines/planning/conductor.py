"""A plan in the place of the model: what is to be done next is the reply. So following a plan is an ordinary run."""

from __future__ import annotations

import msgspec

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply, ToolCall, Usage
from tenlines.errors import PlanStopped
from tenlines.planning.course import Ask, End, Tell, course_of, next_move
from tenlines.planning.setup import PREFIX, Start, read_start
from tenlines.ports import OnDelta

NOTHING = Usage(0, 0, 0, 0, 0)
"""A plan uses no tokens itself."""


class Conductor:
    """Follows plans.

    Args:
        asks: Name of the model that the steps ask.
    """

    def __init__(self, asks: str) -> None:
        self.name = f"{PREFIX}{asks}"

    def session(self) -> Following:
        """One run, from where it is."""
        return Following()


class Following:
    """A plan that is being followed, since its run was begun or taken up."""

    def __init__(self) -> None:
        self._start: Start | None = None
        self._since = 0

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """What is to be done next.

        Raises:
            PlanStopped: Nothing can be done: now, or at all.
        """
        if self._start is None:
            self._start, self._since = read_start(request.messages), len(request.messages)
        match next_move(course_of(request.messages, self._start, self._since), self._start):
            case Ask(calls):
                return Reply("", _calls(request.step, calls), "tool_calls", NOTHING, dollars=0.0)
            case Tell(text):
                return Reply(text, stop="pause", usage=NOTHING, dollars=0.0)
            case End(reason):
                raise PlanStopped(reason)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio; nothing is waited for."""
        return self.complete(request, on_delta)


def _calls(step: int, calls: tuple[tuple[str, object], ...]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(f"{step}.{number}", name, msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(calls, 1)
    )
