"""The alphabet and the scenes of the exhaustive tests about an answer that has a schema."""

from __future__ import annotations

from letters import Letter, end, key, place, reply
from scenes_of_money import OF_CUTS

from tenlines.core import events as ev
from tenlines.core.limits import Limits, Retry
from tenlines.core.transcript import Text, ToolCall

SETTING = ev.Settings(
    limits=Limits(steps=3, tool_calls=1, last_words=True, on_tool_limit="continue"),
    blank_replies=1,
    retry=Retry(attempts=2, first_wait_s=0.0),
)
"""The way to start."""
ANSWERING = (
    ev.ToolSpec("look", read_only=True),
    ev.ToolSpec("give", read_only=True, final=True, answer="object"),
)


def _start(position: int) -> Letter:
    return lambda run, stamp: ev.CallStarted(**stamp, **place(run, position), key=key(run, position))


def _return(position: int) -> Letter:
    return lambda run, stamp: ev.CallReturned(**stamp, **place(run, position), parts=(Text(f"it {position}"),))


def _refuse(position: int, outcome: str) -> Letter:
    return lambda run, stamp: ev.CallFailed(**stamp, **place(run, position), outcome=outcome, text="no")  # type: ignore[arg-type]  # one of them


OF_ANSWERS: dict[str, Letter] = {
    **{word: OF_CUTS[word] for word in ("ask", "fail", "speak", "stop", "drain")},
    "words": reply(text="42"),
    "object": reply(text='{"a": 1}'),
    "object, cut": reply(text='{"a": 1}', stop="length"),
    "nothing": reply(),
    "call": reply(ToolCall("", "look", "{}"), ToolCall("", "give", "{}")),
    "call look": reply(ToolCall("", "look", "{}")),
    "start 0": _start(0),
    "start 1": _start(1),
    "return 0": _return(0),
    "return 1": _return(1),
    "refuse 0": _refuse(0, "not_executed"),
    "invalid 0": _refuse(0, "invalid_arguments"),
    "invalid 1": _refuse(1, "invalid_arguments"),
    "resume": lambda _, stamp: ev.RunResumed(**stamp, tools=ANSWERING),
    "resume, poorer": lambda _, stamp: ev.RunResumed(**stamp, tools=ANSWERING[:1]),
    "raise limits": lambda _, stamp: ev.LimitsRaised(**stamp, limits=Limits(steps=None)),
    "end": end,
}
_LOOKED = ("ask", "call look", "start 0", "return 0")
_TO_THE_LIMIT = (*_LOOKED, "ask", "words", "ask", "call look", "refuse 0")
SCENES_OF_ANSWERS: dict[str, tuple[str, ...]] = {
    "an answer is due": (),
    "words were no answer": ("ask", "words"),
    "an answer beside a call": ("ask", "call"),
    "no tool call is left": _LOOKED,
    "at last words for an answer": _TO_THE_LIMIT,
    "last words are given": (*_TO_THE_LIMIT, "ask", "object"),
}
CASES_OF_ANSWERS = (
    ("an answer is due", 8, 4),
    ("words were no answer", 8, 4),
    ("an answer beside a call", 8, 4),
    ("no tool call is left", 8, 4),
    ("at last words for an answer", 8, 4),
    ("last words are given", 8, 4),
)
"""Scene, settings, depth."""
