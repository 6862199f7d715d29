"""What the run of a plan starts from, in its first message: so it can be followed, and resumed, from its log alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tenlines.core.events import Settings, ToolSpec
from tenlines.core.transcript import Json, JsonObject, Message, User, text_of

PREFIX = "plan:"
"""How the model of such a run is called in the journal: this, and the name of the model that its steps ask."""


class Setup(msgspec.Struct, frozen=True):
    """What the steps of a plan are made of."""

    tools: tuple[ToolSpec, ...] = ()
    """The tools that steps may be given."""
    settings: Settings = Settings()
    """Of each step, its limits among them."""
    plan: JsonObject | None = None
    """The plan that was handed in; None where the first call makes one."""

    def message(self) -> User:
        """As it stands in the log, before the task."""
        value = msgspec.to_builtins(self)
        value["tools"] = [{name: said for name, said in one.items() if said} for one in value["tools"]]
        return User((Json(value),))


class Start(NamedTuple):
    """How such a run begins."""

    setup: Setup
    task: str
    size: int
    """How many messages that are."""


def read_start(messages: Sequence[Message]) -> Start:
    """The beginning of such a run.

    Raises:
        ValueError: It is none.
    """
    said = [(index, one) for index, one in enumerate(messages[:3]) if isinstance(one, User)][:2]
    match said:
        case [(_, User((Json(value),))), (index, task)]:
            return Start(msgspec.convert(value, Setup), text_of(task.parts), index + 1)
        case _:
            raise ValueError("the run does not begin as that of a plan: begin it with Planner.run or Planner.run_sync")
