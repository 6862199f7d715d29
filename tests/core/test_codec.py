"""Events as JSON text, and back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.context import Arithmetic, Compaction
from tenlines.core.limits import Counting, Left, Limits, Price, Reservation, Spent, Tier
from tenlines.core.transcript import File, Image, Json, Opaque, Reply, Text, ToolCall, Usage, User
from tenlines.errors import JournalFormatError

VECTORS = Path(__file__).parent.parent / "vectors" / "events"

OF_THE_FIRST_FORMAT: tuple[ev.AnyEvent, ...] = (
    ev.RunStarted(
        seq=0,
        at=1.5,
        run_id="r",
        agent="a",
        model="m",
        messages=(User((Text("hi"), Image("image/png", b"\x00\xff"), File("text/plain", b"x", "x.txt"))),),
        tools=(ev.ToolSpec("look", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}),),
        settings=ev.Settings(limits=Limits(steps=None, dollars=0.5), price=Price(input=1, output=2)),
        repairs=("mended",),
    ),
    ev.StepStarted(seq=1, at=2.0, step=1, attempt=1, reserved=Reservation(10, 20, 0.5)),
    ev.ModelFailed(seq=2, at=2.0, step=1, attempt=1, kind="RateLimited", message="no", retryable=True, status=429),
    ev.ModelReplied(
        seq=3,
        at=2.0,
        step=1,
        reply=Reply("t", (ToolCall("", "look", "{"),), "tool_calls", Usage(1), (Opaque("p", "m", {"a": [1]}),)),
    ),
    ev.CallStarted(seq=4, at=2.0, step=1, position=0, key="r:1:0"),
    ev.CallReturned(seq=5, at=2.0, step=1, position=0, parts=(Json({"a": None}), Text("")), full="x"),
    ev.CallFailed(seq=6, at=2.0, step=1, position=1, outcome="tool_error", text="t", error_type="E", detail="d"),
    ev.CallTimedOut(seq=7, at=2.0, step=1, position=2, after_s=0.5, text="t"),
    ev.CallAbandoned(seq=8, at=2.0, step=1, position=3, outcome="in_doubt", text="t"),
    ev.LateResultArrived(seq=9, at=2.0, step=1, position=3, outcome="ok", text="t"),
    ev.MessageQueued(seq=10, at=2.0, parts=(Text("say"),)),
    ev.LimitsRaised(seq=11, at=2.0, limits=Limits(steps=0)),
    ev.CancelRequested(seq=12, at=2.0, mode="now", reason="x"),
    ev.RunEnded(seq=13, at=2.0, status="cancelled", reason="x"),
    ev.RunResumed(seq=14, at=2.0, tools=(ev.ToolSpec("look"),)),
)


REFUSED = ev.ModelFailed(
    seq=15,
    at=2.0,
    step=1,
    attempt=1,
    kind="ProtocolRejected",
    message="no",
    rule="ANT-25",
    violation="RSN-PREFIX",
    usage=Usage(3),
)


TOOL = ev.ToolSpec("pay", "Pay.", approve=True, undoable=True, reconcilable=True, timeout_s=2.5, source="shop.py")
CAREFULLY = ev.Settings(on_in_doubt="ask", on_stop="undo", approval_expires_s=3600.0)
STARTED = msgspec.structs.replace(
    OF_THE_FIRST_FORMAT[0],
    tools=(TOOL,),
    settings=CAREFULLY,
    owner="host boot 1 2.0 n",
    session="s",
    turn=2,
    origin="q@3",
)
OF_LEAVE: tuple[ev.AnyEvent, ...] = (
    ev.RunResumed(seq=16, at=2.0, tools=(TOOL,), owner="host boot 2 3.0 n"),
    ev.CallReconciled(seq=17, at=2.0, step=1, position=0, verdict="unknown", text="no answer"),
    ev.ApprovalAsked(
        seq=18, at=2.0, step=1, position=0, digest="d", about="in_doubt", reason="it is a lot", expires_at=9.5
    ),
    ev.ApprovalGiven(
        seq=19,
        at=2.0,
        step=1,
        position=0,
        digest="d",
        verdict="allow",
        by="ann",
        reason="fine",
        arguments='{"n":1}',
        expires_at=9.5,
    ),
    ev.UndoRequested(seq=20, at=2.0, by="ann", reason="wrong", tools=(TOOL,), owner="host boot 3 4.0 n"),
    ev.UndoStarted(seq=21, at=2.0, step=1, position=0, key="r:1:0"),
    ev.CallUndone(seq=22, at=2.0, step=1, position=0, outcome="timeout", text="late"),
    ev.RunEnded(seq=23, at=2.0, status="awaiting_approval", reason="x"),
)
"""What the third format brought: six kinds, and new fields of older ones."""

OF_THE_THIRD_FORMAT = (STARTED, *OF_THE_FIRST_FORMAT[1:], REFUSED, *OF_LEAVE)

SPENT = Spent(steps=2, input_tokens=10, output_tokens=3, dollars=0.25, runs=("q",))
COMPACTED = msgspec.structs.replace(
    STARTED,
    settings=ev.Settings(
        compaction=Compaction(strategies=("elide",), window=1000, expected_steps=(3, 4)),
        read_results=True,
        price=Price(input=1, output=2, tiers=(Tier(above=10, input=2, output=4),)),
    ),
    parent="q:1:0",
    counting=Counting(rate=1.5, margin=1.1, source="o200k_base"),
    changed="the order of the tools",
)
OF_MONEY: tuple[ev.AnyEvent, ...] = (
    ev.StepStarted(seq=24, at=2.0, step=1, attempt=1, reserved=Reservation(10), changed="the order of the tools"),
    ev.CallStarted(seq=25, at=2.0, step=1, position=0, key="r:1:0", allowance=Left(3, None, 100, 0.5, 9.0)),
    ev.CallReturned(seq=26, at=2.0, step=1, position=0, parts=(), spent=SPENT),
    ev.CallFailed(seq=27, at=2.0, step=1, position=1, outcome="tool_error", text="t", spent=SPENT),
    ev.LateResultArrived(seq=28, at=2.0, step=1, position=3, outcome="ok", text="t", spent=SPENT),
    ev.RunResumed(seq=29, at=2.0, compaction=Compaction(at=500)),
    ev.SummaryStarted(seq=30, at=2.0, start=1, end=5, reserved=Reservation(10, 20, 0.5)),
    ev.SummaryEnded(seq=31, at=2.0, reply=Reply("so far", usage=Usage(10, 5))),
    ev.SummaryEnded(seq=32, at=2.0, kind="RateLimited", message="no", usage=Usage(3)),
    ev.ContextCompacted(
        seq=33,
        at=2.0,
        strategy="summarise",
        start=1,
        end=5,
        summary="so far",
        arithmetic=Arithmetic(
            why="pays", tokens_before=900, tokens_after=300, steps=6.5, saves=0.5, costs=0.25, unit="dollars"
        ),
    ),
)
"""What the fourth format brought: three kinds, and new fields of older ones."""

OF_THE_FOURTH_FORMAT = (COMPACTED, *OF_THE_THIRD_FORMAT[1:], *OF_MONEY)

OF_LETTERS: tuple[ev.AnyEvent, ...] = (
    ev.MessageQueued(seq=34, at=2.0, parts=(Text("say"),), by="ann", mail=1),
    ev.CancelRequested(seq=35, at=2.0, mode="drain", reason="x", by="ann", mail=2),
)
"""What the fifth format brought: new fields of two kinds."""

SURROUNDED = msgspec.structs.replace(
    STARTED, seq=36, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)
"""What it also brought: a new field of one more."""

OF_CHILDREN: tuple[ev.AnyEvent, ...] = (
    ev.RunResumed(seq=37, at=2.0, tools=(ev.ToolSpec("hire", spends=True, child=True),)),
    ev.ChildPaused(seq=38, at=2.0, step=1, position=0, run_id="c", waiting=(ev.WaitingCall("d", "2.1", "pay"),)),
    ev.CallReturned(seq=39, at=2.0, step=1, position=0, parts=(), child=ev.ChildRun("c", "answered")),
    ev.CallFailed(
        seq=40, at=2.0, step=1, position=1, outcome="tool_error", text="t", child=ev.ChildRun("d", "budget", "r")
    ),
    ev.LateResultArrived(
        seq=41, at=2.0, step=1, position=2, outcome="ok", text="t", child=ev.ChildRun("e", "cancelled", "r")
    ),
)
"""And of runs that are calls: one kind, and new fields of others."""

OF_ANSWERS = (ev.RunResumed(seq=42, at=2.0, tools=(ev.ToolSpec("give", final=True, read_only=True, answer="object"),)),)
"""And of answers with a schema: a new field of tools."""

OF_THE_FIFTH_FORMAT = (*OF_THE_FOURTH_FORMAT, *OF_LETTERS, SURROUNDED, *OF_CHILDREN, *OF_ANSWERS)
SUBMITTED = msgspec.structs.replace(STARTED, seq=43, version="2", queue="default")
ONE_OF_EACH = (*OF_THE_FIFTH_FORMAT, SUBMITTED)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_every_kind_of_event_comes_back_as_it_went(event: ev.AnyEvent) -> None:
    assert codec.decode(codec.encode(event)) == event


def test_the_examples_hold_one_event_of_every_kind() -> None:
    assert {type(event) for event in ONE_OF_EACH} == set(ev.AnyEvent.__args__)


def test_a_newer_format_is_refused_with_the_next_move() -> None:
    with pytest.raises(JournalFormatError, match="upgrade tenlines"):
        codec.decode(b"{}", ev.SCHEMA + 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"type":"Nope"}',
        b'{"type":"MessageQueued","seq":0,"at":1}',
        b"\xff",
        b"[" * 9999,
    ],
)
def test_what_is_no_event_is_a_format_error(body: bytes) -> None:
    with pytest.raises(JournalFormatError):
        codec.decode(body)


@pytest.mark.parametrize("schema", [0, -1])
def test_a_format_that_never_was_is_a_format_error(schema: int) -> None:
    with pytest.raises(JournalFormatError):
        codec.decode(b'{"type":"MessageQueued","seq":0,"at":1,"parts":[]}', schema)


@pytest.mark.parametrize("schema", codec.SCHEMAS)
def test_the_vectors_of_every_format_keep_loading(schema: int) -> None:
    lines = (VECTORS / f"schema-{schema}.jsonl").read_bytes().splitlines()
    events = tuple(codec.decode(line, schema) for line in lines)
    if schema == 1:
        assert events == OF_THE_FIRST_FORMAT
    elif schema == 2:
        assert events == (*OF_THE_FIRST_FORMAT, REFUSED)
    elif schema == 3:
        assert events == OF_THE_THIRD_FORMAT
    elif schema == 4:
        assert events == OF_THE_FOURTH_FORMAT
    elif schema == 5:
        assert events == OF_THE_FIFTH_FORMAT
    else:
        assert events == ONE_OF_EACH


def test_a_field_that_an_older_format_did_not_have_is_at_its_default() -> None:
    line = (VECTORS / "schema-1.jsonl").read_bytes().splitlines()[0]
    start = codec.decode(line, 1)
    assert isinstance(start, ev.RunStarted)
    assert (start.owner, start.session, start.turn, start.origin) == ("", "", 0, "")
    assert (start.settings.on_in_doubt, start.settings.on_stop, start.settings.approval_expires_s) == (
        "tell",
        "keep",
        None,
    )
    assert {start.tools[0].approve, start.tools[0].undoable, start.tools[0].reconcilable} == {False}


def test_each_format_says_in_one_sentence_what_it_changed() -> None:
    assert sorted(codec.SCHEMAS) == list(range(1, ev.SCHEMA + 1))
    assert all(text.endswith(".") for text in codec.SCHEMAS.values())
