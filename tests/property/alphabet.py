"""What the small world is made of: a few tools, a few words, a few limits.

Everything is kept small on purpose, so that the interesting meetings (the same id twice, a result after a cancel)
happen often. What comes next is picked by a `Chooser`, so the same world is walked by a seeded generator (fast) and
by hypothesis (which shrinks what it finds).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol, TypeVar

import msgspec

from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.limits import Counting, Limits, Price, Repeats, Retry, Tier
from tenlines.core.transcript import (
    Assistant,
    Json,
    Message,
    Note,
    Opaque,
    Part,
    Reply,
    Result,
    System,
    Text,
    ToolCall,
    Usage,
    User,
)

T = TypeVar("T")


class Chooser(Protocol):
    """Who decides what happens next."""

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        ...


class Seeded:
    """A chooser that is quick: a generator with a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]


LOOK = ev.ToolSpec("look", "Look at it.", {"type": "object"}, read_only=True)
PEEK = ev.ToolSpec("peek", read_only=True)
POLL = ev.ToolSpec("poll", read_only=True, repeatable=True)
PUT = ev.ToolSpec("put", idempotent=True)
SEND = ev.ToolSpec("send")
PUSH = ev.ToolSpec("push", repeatable=True)
FINISH = ev.ToolSpec("finish", final=True)
TELL = ev.ToolSpec("tell", read_only=True, final=True)
TOOLS = (LOOK, PEEK, POLL, PUT, SEND, PUSH, FINISH, TELL)
GIVE = ev.ToolSpec("give", "Give the answer.", read_only=True, final=True, answer="object")
ANSWERING = (LOOK, POLL, PUT, SEND, GIVE)
TOOLSETS = (
    ((TOOLS,) * 8) + (ANSWERING,) * 4 + ((LOOK, SEND), (msgspec.structs.replace(PUT, idempotent=False), LOOK, SEND), ())
)

KNOWN = tuple(spec.name for spec in TOOLS)
NAMES = KNOWN * 3 + ("give", "give", "give", "nope", "", "look<|channel|>", "get weather", "x" * 100)

PAY = ev.ToolSpec("pay", approve=True, undoable=True)
PRY = ev.ToolSpec("pry", read_only=True, approve=True)
KEEP = ev.ToolSpec("keep", approve=True, idempotent=True, undoable=True)
SIGN = ev.ToolSpec("sign", approve=True, reconcilable=True)
SEAL = ev.ToolSpec("seal", approve=True, final=True)
BOOK = ev.ToolSpec("book", undoable=True)
WIRE = ev.ToolSpec("wire", reconcilable=True, undoable=True)
CAREFUL = (LOOK, SEND, PUT, PAY, PRY, KEEP, SIGN, SEAL, BOOK, WIRE)
"""Tools that need leave, that can say what became of a call, that can take it back."""
OTHERWISE = (
    {"pay": {"description": "now"}, "pry": {"description": "now"}, "keep": {"description": "now"}},
    {"pay": {"approve": False}, "sign": {"approve": False}, "send": {"approve": True}},
    {"wire": {"reconcilable": False}, "sign": {"reconcilable": False}, "keep": {"idempotent": False}},
    {"book": {"undoable": False}, "send": {"undoable": True}, "pay": {"idempotent": True}},
    {"book": {"read_only": True}, "keep": {"read_only": True}, "pry": {"read_only": False, "idempotent": True}},
)
"""How the tools of a later owner may differ."""
CAREFUL_NAMES = ("look", "send", "put", "pay", "pay", "pry", "keep", "sign", "book", "wire", "seal")


ASK = ev.ToolSpec("ask", read_only=True, spends=True)
HIRE = ev.ToolSpec("hire", idempotent=True, spends=True)
CREW = ev.ToolSpec("crew", spends=True)
LEND = ev.ToolSpec("lend", approve=True, reconcilable=True, spends=True)
TEAM = ev.ToolSpec("team", read_only=True, spends=True, child=True)
UNIT = ev.ToolSpec("unit", idempotent=True, spends=True, child=True)
HAND = ev.ToolSpec("hand", idempotent=True, spends=True, child=True, final=True)
SPENDING = (LOOK, SEND, ASK, HIRE, CREW, LEND, FINISH, TEAM, UNIT, HAND)
"""Tools that draw on the limits of their run."""
SPENDING_NAMES = ("look", "send", "ask", "ask", "ask", "hire", "hire", "crew", "lend", "team", "team", "unit") * 3 + (
    "finish",
    "hand",
    "hand",
)
SPENDING_SETS = (
    *(SPENDING,) * 5,
    tuple(msgspec.structs.replace(spec, spends=False) for spec in SPENDING),
    tuple(msgspec.structs.replace(spec, spends=not spec.final) for spec in SPENDING),
    tuple(msgspec.structs.replace(spec, child=spec.spends) for spec in SPENDING),
    tuple(msgspec.structs.replace(spec, child=False) for spec in SPENDING),
    (LOOK, ASK, TEAM),
)
"""What a later owner may have of them."""


def changed(change: dict[str, dict[str, Any]]) -> tuple[ev.ToolSpec, ...]:
    """The careful tools, some of them otherwise."""
    return tuple(msgspec.structs.replace(spec, **change.get(spec.name, {})) for spec in CAREFUL)


CAREFUL_SETS = (*map(changed, OTHERWISE), CAREFUL, CAREFUL[:5], CAREFUL[5:], ())
GOOD = ("{}", '{"a":1}', '{"a":1}', ' {"b": [1, null], "a": ""} ', "", "null", '{"n":123456789012345678901}')
BAD = ('{"a":', "[1]", "3", '"x"', '{"a":NaN}', "{}{}", '{"n":1e999}', '{"a":"\\ud800"}', '{"a":' + "[" * 300)
ARGUMENTS = GOOD * 2 + BAD
IDS = ("a", "a", "b", "c", "", "call_1_0", "a\n")
STOPS: tuple[str, ...] = (
    "length",
    "content_filter",
    "refusal",
    "pause",
    "context_overflow",
    "malformed_call",
    "unknown",
)
WORDS = (
    "half a pair \ud83d",
    "",
    " ",
    "Yes.",
    "Yes.",
    "No.",
    '{"name": "look", "arguments": {}}',
    ' {"a": 1} ',
    "{}{}",
)
USAGES = (None, Usage(), Usage(10, 5), Usage(0, 0), Usage(100, 50, 20, 10, 5), Usage(10, None))
OPAQUE = (Opaque("p", "m", {"sig": "x"}),)
RESULTS: tuple[tuple[Part, ...], ...] = (
    (Text("same"),),
    (Text("same"),),
    (Text("other"),),
    (Text(""),),
    (Text("half a pair \ud83d"),),
    (),
    (Json(0), Text("x"), Json([])),
)
HISTORIES: tuple[tuple[Message, ...], ...] = (
    (User((Text("task"),)),),
    (System("rules"), User((Text("task"),))),
    (
        User((Text("before"),)),
        Assistant("", (ToolCall("a", "look", "{}"), ToolCall("call_1_0", "look", "{}"))),
        Result("a", "look", "ok", (Text("1"),)),
        Result("call_1_0", "look", "ok", (Text("2"),)),
        Note("n"),
        User((Text("task"),)),
    ),
    (),
)
PRICES = (None, Price(input=1, output=2), Price(input=3, output=15, cache_read=0.3, cache_write=3.75))
PRICES_ODD = (Price(input=0, output=0), Price(input=1000, output=2000), Price(input=1, output=1, cache_read=9))
TIERED = Price(input=2, output=8, tiers=(Tier(above=400, input=4, output=9, cache_write=6),))
LONG = tuple("word " * count + "and more" for count in (5, 60, 90, 150, 300, 800))
"""What tools return in long runs: from what is never left out to what fills the window by itself."""
SUMMARIES = ("We looked.", "We looked at it and sent it. " * 8, "Everything. " * 400, "", "  \n", "half \ud83d")


def some_compaction(chooser: Chooser) -> Compaction:
    """All the ways in which a transcript may be made smaller, in a small world."""
    pick = chooser.pick
    return Compaction(
        strategies=pick(
            (
                ("elide",),
                ("drop",),
                ("summarise",),
                ("elide", "summarise"),
                ("summarise", "drop"),
                ("summarise", "elide"),
            )
        ),
        keep=pick((1, 1, 2, 3)),
        window=pick((None,) * 3 + (pick((1, 300, 700)), 1_500, 2_500, 2_500, 4_000, 4_000, 9_000)),
        at=pick((None, None, 60, 400, 1_200)),
        least_gain=pick((0.0, 0.01, 0.3)),
        summary_tokens=pick((50, 90, 200)),
        expected_steps=pick(((), (30,), (3, 12, 40))),
    )


def some_counting(chooser: Chooser) -> Counting:
    """What may be known of tokens before the first request."""
    others = (Counting(rate=0.4, margin=1.1), Counting(rate=3.0, margin=1.0), Counting(rate=60.0, margin=2.0))
    return chooser.pick((Counting(),) * 8 + others)


ROUNDS = ("a", "a", "ab", "ab", "abc", "baaa", "baa", "abac", "P", "aP")


def some_limits(chooser: Chooser) -> Limits:
    """Limits of every kind, none and zero included."""
    pick = chooser.pick
    if pick((True, False)):
        return Limits(
            steps=pick((None, None, 20, 20, 3, 2, 1)), last_words=pick((False, True)), seconds=pick((None, 50))
        )
    return Limits(
        steps=pick((None, 0, 1, 2, 3, 5, 20, 20)),
        tool_calls=pick((None,) * 6 + (0, 1, 2, 3)),
        tokens=pick((None,) * 8 + (0, 300, 2000, 9000)),
        dollars=pick((None,) * 8 + (0, 0.001, 0.1, 5.0)),
        seconds=pick((None,) * 6 + (0, 5, 50)),
        on_tool_limit=pick(("stop", "continue")),
        last_words=pick((False, True)),
    )


def tight_limits(chooser: Chooser) -> Limits:
    """Limits that a few requests, and the calls that spend beside them, come up against."""
    pick = chooser.pick
    return Limits(
        steps=pick((None, None, 4, 9, 30)),
        tool_calls=pick((None, None, 3, 8, 30)),
        tokens=pick((None, None, 1_500, 4_000, 20_000)),
        dollars=pick((None, None, 0.008, 0.03, 0.3)),
        on_tool_limit=pick(("stop", "continue", "continue")),
        last_words=pick((False, True)),
    )


def long_settings(chooser: Chooser) -> ev.Settings:
    """A run whose transcript grows and may be cut."""
    pick = chooser.pick
    return ev.Settings(
        limits=pick((Limits(steps=None), Limits(steps=None), Limits(steps=30), tight_limits(chooser))),
        price=pick((PRICES[2], PRICES[2], TIERED)),
        compaction=pick((None,) + (some_compaction(chooser),) * 8),
        read_results=pick((True, False)),
        max_output_tokens=pick((None, None, 20, 400, 5_000)),
        repeats=Repeats(told_after=None, invalid_in_a_row=None),
        retry=pick((Retry(attempts=2, first_wait_s=0.5), Retry(attempts=5))),
        tool_choice=pick(("auto", "auto", "auto", "required", "look")),
        keep_tool_choice=pick((False, True)),
        on_stop=pick(("keep", "keep", "undo")),
    )


def some_settings(chooser: Chooser, careful: bool) -> ev.Settings:
    """Everything that the machine decides by."""
    pick = chooser.pick
    of_leave: dict[str, Any] = {"compaction": pick((None,) * 5 + (some_compaction(chooser),))}
    if careful:
        of_leave["on_in_doubt"] = pick(("tell", "ask", "ask"))
        of_leave["on_stop"] = pick(("keep", "undo"))
        of_leave["approval_expires_s"] = pick((None, None, 5.0, 50.0))
    return ev.Settings(
        **of_leave,
        limits=Limits(steps=9) if careful and pick((True, True, False)) else some_limits(chooser),
        repeats=pick(
            (Repeats(), Repeats(told_after=None, invalid_in_a_row=None), Repeats(told_after=2, invalid_in_a_row=2))
        ),
        retry=pick((Retry(attempts=1), Retry(attempts=2, first_wait_s=0.5), Retry(attempts=3, max_wait_s=1.0))),
        price=pick(PRICES + PRICES_ODD),
        max_parallel=pick((1, 2, 8)),
        max_output_tokens=pick((None, 20)),
        tool_choice=pick(("auto", "auto", "none", "required", "look")),
        keep_tool_choice=pick((False, True)),
        blank_replies=pick((0, 2)),
        empty_is_answer=pick((False, False, True)),
        tell_left=pick((False, False, True)),
    )


def spending_reply(chooser: Chooser) -> Reply:
    """A model that has others work for it."""
    pick = chooser.pick
    how_many = pick((1, 1, 2, 2, 3, 4) * 5 + (0,))
    calls = tuple(ToolCall("", pick(SPENDING_NAMES), pick(GOOD)) for _ in range(how_many))
    return Reply(pick(("", "Yes.")), calls, "tool_calls" if calls else "end", dollars=pick((None,) * 6 + (0.0, 0.002)))


def long_reply(chooser: Chooser) -> Reply:
    """A model that goes on for long."""
    pick = chooser.pick
    names = [pick(("look", "look", "poll", "send")) for _ in range(pick((1, 1, 1, 2, 3) * 4 + (0,)))]
    calls = tuple(ToolCall("", name, pick(('{"a":1}', '{"b":[2]}'))) for name in names)
    stop: Any = (
        pick(("tool_calls",) * 9 + ("length",)) if calls else pick(("pause", "pause", "end", "context_overflow"))
    )
    return Reply(pick(("", "Yes.", "No.")), calls, stop, None, pick(((), (), OPAQUE)), "m")


def some_reply(chooser: Chooser, careful: bool) -> Reply:
    """What a model says: sometimes sense."""
    pick = chooser.pick
    known = CAREFUL_NAMES if careful else KNOWN
    names, arguments = pick((NAMES,) + (known,) * 4), pick((ARGUMENTS,) + (GOOD,) * 4)
    how_many = pick((1, 1, 2, 2, 3, 3, 0) if careful else (0, 1, 1, 2, 2, 3))
    calls = tuple(ToolCall(pick(IDS), pick(names), pick(arguments)) for _ in range(how_many))
    usual = ("tool_calls", "tool_calls", "end", "stop_sequence") if calls else ("end", "end", "stop_sequence")
    stop: Any = pick(usual * 12 + STOPS)
    dollars = pick((None, None, None, 0.0, 0.02))
    return Reply(pick(WORDS), calls, stop, pick(USAGES), pick(((), (), OPAQUE)), "m", dollars, pick(((), ("odd",))))
