"""What the alphabets of the exhaustive tests have in common: how an event is made for where the run stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from laws import Checked

from tenlines.core import events as ev
from tenlines.core.effects import Finish
from tenlines.core.transcript import Reply, ToolCall

Letter: TypeAlias = Callable[[Checked, dict[str, Any]], Any]


def place(run: Checked, position: Any) -> dict[str, Any]:
    return {"step": run.facts.replies, "position": position}


def key(run: Checked, position: int) -> str:
    return f"r:{run.facts.replies}:{position}"


def reply(*calls: ToolCall, text: str = "", stop: Any = "end") -> Letter:
    reply = Reply(text, calls, stop)
    return lambda run, stamp: ev.ModelReplied(**stamp, step=run.facts.replies + 1, reply=reply)


def end(run: Checked, stamp: dict[str, Any]) -> Any:
    effect = run.effect
    if isinstance(effect, Finish):
        return ev.RunEnded(**stamp, status=effect.status, reason=effect.reason, answer=effect.answer)
    return ev.RunEnded(**stamp, status="answered", answer="made up")
