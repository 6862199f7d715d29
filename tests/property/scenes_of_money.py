"""Alphabets and scenes for the exhaustive tests: a transcript that is cut, and calls that spend."""

from __future__ import annotations

from typing import Any

import msgspec
from hostile_events import NO_ARITHMETIC
from letters import Letter, end, key, place, reply
from money_facts import KINDS

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel, Compact, RunTools, Summarise
from tenlines.core.limits import Left, Limits, Reservation, Retry, Spent
from tenlines.core.transcript import Reply, Text, ToolCall

CUTTING = Compaction(strategies=("summarise", "drop"), keep=1, at=40, summary_tokens=50)
SETTINGS = (
    ev.Settings(limits=Limits(steps=9), compaction=CUTTING, retry=Retry(attempts=2, first_wait_s=0.0)),
    ev.Settings(limits=Limits(steps=6, tool_calls=6, tokens=6_000)),
    ev.Settings(limits=Limits(steps=9, tokens=9_000)),
)
"""The ways to start."""
LOOK = ev.ToolSpec("look", read_only=True)
TOOLSETS = (
    (LOOK,),
    (ev.ToolSpec("ask", read_only=True, spends=True), ev.ToolSpec("hire", idempotent=True, spends=True), LOOK),
    (
        ev.ToolSpec("team", read_only=True, spends=True, child=True),
        ev.ToolSpec("unit", idempotent=True, spends=True, child=True),
        ev.ToolSpec("hand", idempotent=True, spends=True, child=True, final=True),
        LOOK,
    ),
)
RESULT = (Text("so much was found there that nobody would want to read it twice " * 8),)


# --- a transcript that is cut ---------------------------------------------------------------------------


def _as_wanted(run: Any, stamp: dict[str, Any]) -> Any:
    """The cut, or the summary, that the machine asks for; else one that may or may not be made."""
    match run.effect:
        case Compact() as cut:
            return ev.ContextCompacted(**stamp, **msgspec.structs.asdict(cut))
        case Summarise(start, last, request):
            return ev.SummaryStarted(**stamp, start=start, end=last, reserved=request.reserved)
    return ev.SummaryStarted(**stamp, start=1, end=3, reserved=Reservation())


def _cut(strategy: Any, start: int, last: int, summary: str = "") -> Letter:
    fields = {"strategy": strategy, "start": start, "end": last, "summary": summary, "arithmetic": NO_ARITHMETIC}
    return lambda _, stamp: ev.ContextCompacted(**stamp, **fields)


def _summary(text: str = "", **fields: Any) -> Letter:
    answer = Reply(text, **fields)
    return lambda _, stamp: ev.SummaryEnded(**stamp, reply=answer)


def _ask(run: Any, stamp: dict[str, Any]) -> Any:
    fields = {"step": run.facts.replies + 1, "attempt": run.facts.failures + 1}
    reserved = run.effect.reserved if isinstance(run.effect, CallModel) else Reservation()
    return ev.StepStarted(**stamp, **fields, reserved=reserved)


def _fail(kind: str) -> Letter:
    fields: dict[str, Any] = {"kind": kind, "message": "no", "retryable": True}
    return lambda run, stamp: ev.ModelFailed(
        **stamp, step=run.facts.replies + 1, attempt=run.facts.failures + 1, **fields
    )


def _start(position: int) -> Letter:
    """As the machine offers it, or with nothing to spend."""

    def letter(run: Any, stamp: dict[str, Any]) -> Any:
        offered = run.effect.calls if isinstance(run.effect, RunTools) else ()
        given = next((one.allowance for one in offered if one.position == position), None)
        return ev.CallStarted(**stamp, **place(run, position), key=key(run, position), allowance=given)

    return letter


OF_CUTS: dict[str, Letter] = {
    "ask": _ask,
    "answer": reply(text="42"),
    "call": reply(ToolCall("", "look", "{}"), stop="tool_calls"),
    "start 0": _start(0),
    "return 0": lambda run, stamp: ev.CallReturned(**stamp, **place(run, 0), parts=RESULT),
    "as wanted": _as_wanted,
    "summary": _summary("We looked."),
    "summary, blank": _summary(" "),
    "summary, too long": _summary("word " * 400),
    "summary, cut off": _summary("We", stop="length"),
    "no summary": lambda _, stamp: ev.SummaryEnded(**stamp, kind="E"),
    "elide": _cut("elide", 1, 3),
    "elide half": _cut("elide", 1, 2),
    "drop": _cut("drop", 1, 3),
    "drop all": _cut("drop", 0, 5),
    "put in place": _cut("summarise", 1, 3, "We looked."),
    "put in another": _cut("summarise", 1, 3, "We did not."),
    "fail": _fail("E"),
    "fail, too long": _fail("ContextTooLong"),
    "speak": lambda _, stamp: ev.MessageQueued(**stamp, parts=(Text(f"said {stamp['seq']}"),)),
    "stop": lambda _, stamp: ev.CancelRequested(**stamp, mode="now"),
    "drain": lambda _, stamp: ev.CancelRequested(**stamp, mode="drain"),
    "resume": lambda _, stamp: ev.RunResumed(**stamp, tools=TOOLSETS[0]),
    "resume, small": lambda _, stamp: ev.RunResumed(
        **stamp, tools=TOOLSETS[0], compaction=Compaction(window=400, keep=1)
    ),
    "end": end,
}


# --- calls that spend -----------------------------------------------------------------------------------


def _greedy(run: Any, stamp: dict[str, Any]) -> Any:
    """Everything that is left, for the first call."""
    limits = run.facts.limits
    left: dict[str, Any] = {}
    for kind in KINDS:
        limit = getattr(limits, kind)
        left[kind] = None if limit is None else max(0, limit - run.facts.used(kind))
    return ev.CallStarted(**stamp, **place(run, 0), key=key(run, 0), allowance=Left(**left))


def _spent(run: Any, position: int, share: float) -> Spent | None:
    """A share of what the call was given; None where it was given nothing."""
    purses = [one for one in run.facts.money.open if one.place == (run.facts.replies, position)]
    if not purses:
        return Spent()
    given = purses[-1].given
    amounts = {kind: int((getattr(given, kind) or 0) * share) for kind in ("steps", "tool_calls")}
    return Spent(**amounts, input_tokens=int((given.tokens or 0) * share))


def _return(position: int, share: float) -> Letter:
    return lambda run, stamp: ev.CallReturned(
        **stamp, **place(run, position), parts=(Text("ok"),), spent=_spent(run, position, share)
    )


OF_SPENDING: dict[str, Letter] = {
    "ask": _ask,
    "answer": reply(text="42"),
    "call ask and ask": reply(ToolCall("", "ask", "{}"), ToolCall("", "ask", "{}")),
    "call hire and look": reply(ToolCall("", "hire", "{}"), ToolCall("", "look", "{}")),
    "start 0": _start(0),
    "start 1": _start(1),
    "start 0, greedy": _greedy,
    "return 0, half": _return(0, 0.5),
    "return 0, all": _return(0, 1.0),
    "return 0, more": _return(0, 2.0),
    "return 0, silent": lambda run, stamp: ev.CallReturned(**stamp, **place(run, 0), parts=(Text("ok"),)),
    "return 1": _return(1, 1.0),
    "return 1, silent": lambda run, stamp: ev.CallReturned(**stamp, **place(run, 1), parts=(Text("ok"),)),
    "time out 0": lambda run, stamp: ev.CallTimedOut(
        **stamp, **place(run, 0), after_s=1.0, text=outcomes.timed_out("it", 1.0, False)
    ),
    "late 0": lambda run, stamp: ev.LateResultArrived(
        **stamp, **place(run, 0), outcome="ok", text="late", spent=_spent(run, 0, 0.5)
    ),
    "stop": lambda _, stamp: ev.CancelRequested(**stamp, mode="now"),
    "lower limits": lambda _, stamp: ev.LimitsRaised(**stamp, limits=Limits(steps=3, tokens=500)),
    "other limits": lambda _, stamp: ev.LimitsRaised(**stamp, limits=Limits(steps=None, dollars=0.5)),
    "resume": lambda _, stamp: ev.RunResumed(**stamp, tools=TOOLSETS[1]),
    "resume, thrifty": lambda _, stamp: ev.RunResumed(**stamp, tools=TOOLSETS[1][2:]),
    "end": end,
}

# --- calls that are runs --------------------------------------------------------------------------------


def _paused(position: int) -> Letter:
    waiting = (ev.WaitingCall("c", "1.1", "pay"),)
    return lambda run, stamp: ev.ChildPaused(**stamp, **place(run, position), run_id="c", waiting=waiting)


PLAIN = tuple(msgspec.structs.replace(spec, child=False) for spec in TOOLSETS[2])
OF_CHILDREN: dict[str, Letter] = {
    **{word: OF_SPENDING[word] for word in ("ask", "answer", "start 0", "start 1", "return 0, half", "return 0, all")},
    **{word: OF_SPENDING[word] for word in ("return 0, silent", "return 1", "time out 0", "late 0", "stop", "end")},
    "call team twice": reply(ToolCall("", "team", "{}"), ToolCall("", "team", "{}")),
    "call unit and look": reply(ToolCall("", "unit", "{}"), ToolCall("", "look", "{}")),
    "call hand and look": reply(ToolCall("", "hand", "{}"), ToolCall("", "look", "{}")),
    "pause 0": _paused(0),
    "pause 1": _paused(1),
    "raise 0": lambda run, stamp: ev.CallFailed(
        **stamp, **place(run, 0), outcome="tool_error", text=outcomes.raised("it", "E", "no"), spent=_spent(run, 0, 1.0)
    ),
    "give up 0": lambda run, stamp: ev.CallAbandoned(
        **stamp, **place(run, 0), outcome="in_doubt", text=outcomes.interrupted("it", False)
    ),
    "resume": lambda _, stamp: ev.RunResumed(**stamp, tools=TOOLSETS[2]),
    "resume, plain": lambda _, stamp: ev.RunResumed(**stamp, tools=PLAIN),
}

ALPHABETS = (OF_CUTS, OF_SPENDING, OF_CHILDREN)
"""For each of `SETTINGS`."""

_EXCHANGE = ("ask", "call", "start 0", "return 0")
SCENES_OF_MONEY_AND_CUTS: dict[str, tuple[str, ...]] = {
    "after an exchange": _EXCHANGE,
    "before a cut": _EXCHANGE * 2,
    "in a summary": (*_EXCHANGE * 2, "as wanted"),
    "calls that spend": ("ask", "call ask and ask"),
    "one that spends and one that does not": ("ask", "call hire and look"),
    "given up, and may still spend": ("ask", "call ask and ask", "start 0", "start 1", "time out 0"),
    "started once and again": ("ask", "call hire and look", "start 0", "resume"),
    "two runs": ("ask", "call team twice", "start 0"),
    "a run that waits": ("ask", "call unit and look", "start 0", "pause 0"),
    "a run taken up": ("ask", "call team twice", "start 0", "start 1", "pause 0", "resume"),
    "handed over": ("ask", "call hand and look"),
}
CASES_OF_MONEY_AND_CUTS = (
    ("after an exchange", 5, 4),
    ("before a cut", 5, 4),
    ("in a summary", 5, 4),
    ("calls that spend", 6, 5),
    ("one that spends and one that does not", 6, 4),
    ("given up, and may still spend", 6, 5),
    ("started once and again", 6, 4),
    ("two runs", 7, 4),
    ("a run that waits", 7, 5),
    ("a run taken up", 7, 4),
    ("handed over", 7, 5),
)
"""Scene, settings, depth."""
