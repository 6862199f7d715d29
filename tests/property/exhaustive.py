"""Every short sequence of events over a small alphabet, legal or not.

An event that is refused leaves the state as it was (that is checked), so a sequence with a refused event in it is
the same as the shorter one without it. Walking the tree of accepted prefixes and trying the whole alphabet at each
node therefore tries every sequence up to that length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from laws import Checked
from letters import Letter, end, key, place, reply
from scenes_of_answers import ANSWERING, CASES_OF_ANSWERS, OF_ANSWERS, SCENES_OF_ANSWERS, SETTING
from scenes_of_money import ALPHABETS, CASES_OF_MONEY_AND_CUTS, SCENES_OF_MONEY_AND_CUTS, SETTINGS, TOOLSETS

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.deciding import binding
from tenlines.core.effects import RunTools, UndoCall
from tenlines.core.limits import Limits, Repeats, Reservation, Retry
from tenlines.core.transcript import Text, ToolCall, User

TOOLS = (
    ev.ToolSpec("look", read_only=True),
    ev.ToolSpec("put", idempotent=True),
    ev.ToolSpec("send"),
    ev.ToolSpec("finish", final=True),
)
STARTS = (
    ev.Settings(limits=Limits(steps=2, last_words=True, tool_calls=1)),
    ev.Settings(
        limits=Limits(steps=3, seconds=5, on_tool_limit="continue"),
        retry=Retry(attempts=2, first_wait_s=1.0),
        repeats=Repeats(told_after=2, invalid_in_a_row=2),
        empty_is_answer=True,
    ),
    ev.Settings(limits=Limits(steps=1, last_words=True), retry=Retry(attempts=2, first_wait_s=0.0)),
    ev.Settings(limits=Limits(steps=2), on_in_doubt="ask", on_stop="undo", approval_expires_s=50.0),
    ev.Settings(limits=Limits(steps=2), on_in_doubt="tell"),
    *SETTINGS,
    SETTING,
)
OF_LEAVE = (
    ev.ToolSpec("look", read_only=True),
    ev.ToolSpec("pay", approve=True, undoable=True),
    ev.ToolSpec("wire", reconcilable=True, undoable=True),
    ev.ToolSpec("pry", read_only=True, approve=True),
)
"""The tools of the last two of these ways to start."""


def _as_refused(position: int) -> Letter:
    """What the machine says itself about a call, or a claim that would not be true."""

    def letter(run: Checked, stamp: dict[str, Any]) -> Any:
        effect = run.effect
        for one in effect.refusals if isinstance(effect, RunTools) else ():
            if one.position == position:
                kind = ev.CallAbandoned if one.outcome in ("in_doubt", "cancelled") else ev.CallFailed
                return kind(**stamp, **place(run, position), outcome=one.outcome, text=one.text)  # type: ignore[arg-type]
        return ev.CallFailed(**stamp, **place(run, position), outcome="not_executed", text="it was not executed")

    return letter


def _send_and_look() -> Letter:
    return reply(ToolCall("a", "send", "{}"), ToolCall("a", "look", "{}"), stop="tool_calls")


ALPHABET: dict[str, Letter] = {
    "ask": lambda run, stamp: ev.StepStarted(
        **stamp, step=run.facts.replies + 1, attempt=run.facts.failures + 1, reserved=Reservation()
    ),
    "ask, stale": lambda run, stamp: ev.StepStarted(**stamp, step=1, attempt=2, reserved=Reservation()),
    "answer": reply(text="42"),
    "say nothing": reply(),
    "call": _send_and_look(),
    "call put and finish": reply(ToolCall("", "put", "{}"), ToolCall("", "finish", "{}")),
    "call wrongly": reply(ToolCall("", "nope", "{}"), ToolCall("", "look", "{"), stop="end"),
    "cut": reply(ToolCall("", "send", "{}"), stop="length"),
    "fail": lambda run, stamp: ev.ModelFailed(
        **stamp, step=run.facts.replies + 1, attempt=run.facts.failures + 1, kind="E", message="no", retryable=True
    ),
    "start 0": lambda run, stamp: ev.CallStarted(**stamp, **place(run, 0), key=key(run, 0)),
    "start 1": lambda run, stamp: ev.CallStarted(**stamp, **place(run, 1), key=key(run, 1)),
    "start 1, wrong key": lambda run, stamp: ev.CallStarted(**stamp, **place(run, 1), key=key(run, 0)),
    "return 0": lambda run, stamp: ev.CallReturned(**stamp, **place(run, 0), parts=(Text("ok"),)),
    "return 1": lambda run, stamp: ev.CallReturned(**stamp, **place(run, 1), parts=(Text("ok"),)),
    "return 2": lambda run, stamp: ev.CallReturned(**stamp, **place(run, 2), parts=(Text("ok"),)),
    "raise 0": lambda run, stamp: ev.CallFailed(
        **stamp, **place(run, 0), outcome="tool_error", text=outcomes.raised("it", "E", "no")
    ),
    "time out 0": lambda run, stamp: ev.CallTimedOut(
        **stamp, **place(run, 0), after_s=1.0, text=outcomes.timed_out("it", 1.0, False)
    ),
    "abandon 0": lambda run, stamp: ev.CallAbandoned(
        **stamp, **place(run, 0), outcome="in_doubt", text=outcomes.interrupted("it", False)
    ),
    "cancel 0": lambda run, stamp: ev.CallAbandoned(
        **stamp, **place(run, 0), outcome="cancelled", text=outcomes.interrupted("it", True)
    ),
    "deny 0": lambda run, stamp: ev.CallFailed(**stamp, **place(run, 0), outcome="denied", text="no"),
    "refuse 0": _as_refused(0),
    "refuse 1": _as_refused(1),
    "late 0": lambda run, stamp: ev.LateResultArrived(**stamp, **place(run, 0), outcome="ok", text="late"),
    "speak": lambda _, stamp: ev.MessageQueued(**stamp, parts=(Text(f"said {stamp['seq']}"),)),
    "drain": lambda _, stamp: ev.CancelRequested(**stamp, mode="drain"),
    "stop": lambda _, stamp: ev.CancelRequested(**stamp, mode="now"),
    "later": lambda _, stamp: ev.MessageQueued(**{**stamp, "at": stamp["at"] + 100}, parts=(Text("later"),)),
    "raise limits": lambda _, stamp: ev.LimitsRaised(**stamp, limits=Limits(steps=4, seconds=None)),
    "lower limits": lambda _, stamp: ev.LimitsRaised(**stamp, limits=Limits(steps=1)),
    "resume": lambda run, stamp: ev.RunResumed(**stamp, tools=TOOLS),
    "resume, poorer": lambda run, stamp: ev.RunResumed(**stamp, tools=TOOLS[:1]),
    "end": end,
    "end, wrongly": lambda _, stamp: ev.RunEnded(**stamp, status="answered", answer="42 and more"),
    "start again": lambda _, stamp: _start(stamp, STARTS[0]),
    "out of turn": lambda _, stamp: ev.MessageQueued(**{**stamp, "seq": stamp["seq"] + 1}, parts=()),
}
"""Each letter is an event for where the run stands; many are wrong there, some are wrong anywhere."""


def _start(stamp: dict[str, Any], settings: ev.Settings) -> ev.RunStarted:
    task, tools = (User((Text("task"),)),), OF_LEAVE if settings in STARTS[3:] else TOOLS
    tools = TOOLSETS[SETTINGS.index(settings)] if settings in SETTINGS else tools
    tools = ANSWERING if settings == SETTING else tools
    return ev.RunStarted(**stamp, run_id="r", agent="a", model="m", messages=task, tools=tools, settings=settings)


def _question(position: int) -> Letter:
    """Somebody is asked about a call."""

    def letter(run: Checked, stamp: dict[str, Any]) -> Any:
        facts = run.facts
        about = "in_doubt" if position < len(facts.open) and facts.open[position].to_person else "call"
        fields = {"about": about, "expires_at": stamp["at"] + 50}
        return ev.ApprovalAsked(**stamp, **place(run, position), digest=digest(run, position), **fields)

    return letter


def _answer(position: int, digest_of: int | None = None, **fields: Any) -> Letter:
    """Somebody decides about a call, or means another one."""
    meant = position if digest_of is None else digest_of

    def letter(run: Checked, stamp: dict[str, Any]) -> Any:
        return ev.ApprovalGiven(**stamp, **place(run, position), digest=digest(run, meant), by="ann", **fields)

    return letter


def digest(run: Checked, position: int) -> str:
    """What an answer about the call has to name."""
    exchange = run.machine.state.exchange
    if exchange is None or position >= len(exchange.calls):
        return "0"
    return binding(run.machine.state, exchange.step, position, exchange.calls[position])


def _next_undo(run: Checked, stamp: dict[str, Any]) -> Any:
    effect = run.effect
    place = (effect.call.step, effect.call.position) if isinstance(effect, UndoCall) else (1, 0)
    return ev.UndoStarted(**stamp, step=place[0], position=place[1], key=f"r:{place[0]}:{place[1]}")


def _undone(outcome: Any) -> Letter:
    def letter(run: Checked, stamp: dict[str, Any]) -> Any:
        step, position = run.facts.in_undo or (1, 0)
        return ev.CallUndone(**stamp, step=step, position=position, outcome=outcome)

    return letter


def _pause(run: Checked, stamp: dict[str, Any]) -> Any:
    """A pause where there may be none; the honest one is the end of this alphabet."""
    return ev.RunEnded(**stamp, status="awaiting_approval", reason="the call of pay waits for somebody's decision")


CHANGED = tuple(msgspec.structs.replace(spec, description="new") for spec in OF_LEAVE)
_SHARED = (
    "ask",
    "answer",
    "start 0",
    "start 1",
    "return 0",
    "return 1",
    "raise 0",
    "abandon 0",
    "refuse 0",
    "refuse 1",
)
OF_LEAVE_ALPHABET: dict[str, Letter] = {
    **{word: ALPHABET[word] for word in (*_SHARED, "refuse 1", "stop", "later", "end")},
    "call pay and look": reply(ToolCall("a", "pay", '{"n":1}'), ToolCall("b", "look", "{}")),
    "call wire and pay": reply(ToolCall("a", "wire", "{}"), ToolCall("b", "pay", "{}")),
    "call pry and pay": reply(ToolCall("a", "pry", "{}"), ToolCall("b", "pay", "{}")),
    "call pry twice": reply(ToolCall("a", "pry", "{}"), ToolCall("b", "pry", "{}")),
    "invalid 0": lambda run, stamp: ev.CallFailed(
        **stamp, **place(run, 0), outcome="invalid_arguments", text="it does not take this"
    ),
    "question 0": _question(0),
    "question 1": _question(1),
    "allow 0": _answer(0, verdict="allow"),
    "allow 0, for a while": _answer(0, verdict="allow", expires_at=160.0),
    "allow 0, edited": _answer(0, verdict="allow", arguments='{"n":2}'),
    "allow 0, late": lambda run, stamp: _answer(0, verdict="allow")(run, {**stamp, "at": stamp["at"] + 100}),
    "deny 0": _answer(0, verdict="deny"),
    "allow 1": _answer(1, verdict="allow"),
    "allow 1, meaning 0": _answer(1, 0, verdict="allow"),
    "not done 0": lambda run, stamp: ev.CallReconciled(**stamp, **place(run, 0), verdict="not_done"),
    "unknown 0": lambda run, stamp: ev.CallReconciled(**stamp, **place(run, 0), verdict="unknown"),
    "pause": _pause,
    "resume": lambda _, stamp: ev.RunResumed(**stamp, tools=OF_LEAVE),
    "resume, changed": lambda _, stamp: ev.RunResumed(**stamp, tools=CHANGED),
    "undo": lambda _, stamp: ev.UndoRequested(**stamp, tools=OF_LEAVE),
    "undo, next": _next_undo,
    "undone": _undone("ok"),
    "not undone": _undone("tool_error"),
}
"""The same for the tools that need leave."""


SCENES: dict[str, tuple[str, ...]] = {
    "from the start": (),
    "in an exchange": ("ask", "call"),
    "beside a final tool": ("ask", "call put and finish"),
    "after a call was given up": ("ask", "call", "start 0", "time out 0"),
    "in the second step": ("ask", "call", "start 0", "return 0", "refuse 1", "start 1", "return 1"),
    "at the last words": ("ask", "call wrongly", "refuse 0", "refuse 1"),
    "before leave": ("ask", "call pay and look"),
    "before leave to read": ("ask", "call pry twice"),
    "passed by": ("ask", "call pry and pay", "allow 1", "allow 0, for a while"),
    "paused": ("ask", "call pay and look", "question 0", "start 1", "return 1", "end"),
    "in doubt": ("ask", "call wire and pay", "allow 1", "start 0", "resume"),
    "in doubt, of what was allowed": ("ask", "call pay and look", "allow 0, edited", "start 0", "resume"),
    "stopped": ("ask", "call wire and pay", "allow 1", "start 0", "return 0", "start 1", "return 1", "stop"),
    "undone": (
        *("ask", "call wire and pay", "allow 1", "start 0", "return 0", "start 1", "return 1", "stop"),
        *("undo, next", "undone", "undo, next", "not undone", "end"),
    ),
    "ended": (
        "ask",
        "call wire and pay",
        "allow 1",
        "start 0",
        "return 0",
        "start 1",
        "return 1",
        "ask",
        "answer",
        "end",
    ),
    **SCENES_OF_MONEY_AND_CUTS,
    **SCENES_OF_ANSWERS,
}
"""Where the enumeration begins: the shortest logs that open what is worth looking at closely. A letter that is
refused under the settings at hand is passed over."""


CASES = (
    ("from the start", 0, 4),
    ("from the start", 1, 5),
    ("in an exchange", 0, 4),
    ("in an exchange", 1, 4),
    ("beside a final tool", 0, 4),
    ("beside a final tool", 1, 4),
    ("after a call was given up", 1, 4),
    ("in the second step", 0, 4),
    ("in the second step", 1, 4),
    ("at the last words", 2, 4),
    ("before leave", 3, 4),
    ("before leave to read", 3, 4),
    ("passed by", 3, 4),
    ("paused", 3, 5),
    ("in doubt", 3, 5),
    ("in doubt", 4, 4),
    ("in doubt, of what was allowed", 3, 5),
    ("stopped", 3, 6),
    ("undone", 3, 4),
    ("ended", 4, 6),
    *CASES_OF_MONEY_AND_CUTS,
    *CASES_OF_ANSWERS,
)
"""Scene, settings, depth: as deep as about a minute allows for all together."""


def scene(name: str, settings: ev.Settings) -> Checked:
    """The run at the beginning of a scene."""
    run = Checked()
    run.take(_start({"seq": 0, "at": 100.0}, settings))
    for word in SCENES[name]:
        run.offer(alphabet_of(run)[word](run, {"seq": len(run.facts.log), "at": 100.0}))
    return run


def alphabet_of(run: Checked) -> dict[str, Letter]:
    """The letters for the tools that the run began with."""
    assert run.facts.start is not None
    settings = run.facts.start.settings
    if settings == SETTING:
        return OF_ANSWERS
    if settings in SETTINGS:
        return ALPHABETS[SETTINGS.index(settings)]
    return OF_LEAVE_ALPHABET if settings in STARTS[3:] else ALPHABET


def enumerate_all(node: Checked, depth: int, words: tuple[str, ...] = ()) -> Iterator[bool]:
    """Every sequence of up to `depth` letters from here. Yields, for each event tried, whether it was accepted."""
    if not depth:
        return
    stamp = {"seq": len(node.facts.log), "at": node.facts.at}
    run: Checked | None = None
    for word, letter in alphabet_of(node).items():
        run = run or node.fork()
        event = letter(run, stamp)
        try:
            accepted = run.offer(event)
        except AssertionError as error:
            raise AssertionError(f"{error or 'a law was broken'} after {' / '.join((*words, word))}") from error
        yield accepted
        if accepted:
            yield from enumerate_all(run, depth - 1, (*words, word))
            run = None
