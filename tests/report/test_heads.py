"""The run in one look."""

from __future__ import annotations

from typing import get_args

import pytest
from shops import Shop, shop
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core.events import Status
from tenlines.core.limits import Limits
from tenlines.core.transcript import ToolCall
from tenlines.report.heads import STATUS_WORDS
from tenlines.report.model import Head
from tenlines.report.reading import Reading, read_run
from tenlines.trace.story import Story


def head_of(log: list[ev.AnyEvent], reading: Reading | None = None) -> Head:
    return read_run(log, reading).head


def flags(log: list[ev.AnyEvent]) -> dict[str, list[str]]:
    return {flag.text: [link.id for link in flag.links] for flag in head_of(log).flags}


def test_every_status_has_its_words() -> None:
    assert set(STATUS_WORDS) == {"open", *get_args(Status)}


def test_what_was_used_and_what_was_left() -> None:
    head = head_of(shop(12))
    totals = {fact.name: fact.value for fact in head.totals}
    assert (totals["steps"], totals["calls"], totals["tokens in"]) == ("12", "13", "63,840")
    limit = head.limits[0]
    assert (limit.name, limit.left, limit.total) == ("steps", "10", "22")
    assert head.limits[0].used == pytest.approx(12 / 22)


def test_a_limit_of_nothing_is_used_up() -> None:
    run = Run(limits=Limits(steps=0))
    run.finish()
    assert [(limit.left, limit.used) for limit in head_of(run.log).limits] == [("0", 1.0)]


def test_calls_in_doubt_come_first_with_links() -> None:
    run = Run(CAREFUL).call("send").start().resume(CAREFUL).refuse_all()
    found = head_of(run.log).flags[0]
    assert (found.tone, [link.id for link in found.links]) == ("bad", ["call-1-1"])
    assert "1 call in doubt" in found.text


def test_a_call_that_waits_is_flagged() -> None:
    assert flags(Run(CAREFUL).call("pay").question().log)["1 call waiting for a decision"] == ["call-1-1"]


def test_the_same_call_with_the_same_result_is_flagged_and_one_with_another_is_not() -> None:
    run = Run()
    for n, text in enumerate(("same", "same", "other")):
        run.reply("", ToolCall(f"c{n}", "look", '{"a": 1, "b": 2}' if n else '{"b":2,"a":1}')).start().returned(
            text=text
        )
    found = [one for one in flags(run.log).items() if "same result" in one[0]]
    assert found == [("look(b=2, a=1): the same result 2 times", ["call-1-1", "call-2-1"])]


def test_of_many_places_the_first_are_named_and_the_last() -> None:
    run = Run(CAREFUL, repeats=ev.Repeats(told_after=None, invalid_in_a_row=None))
    for _ in range(11):
        run.call("look").start().failed(0, "tool_error")
    links = dict(flags(run.log))["11 calls failed"]
    assert len(links) == 9
    assert links[-1] == "call-11-1"


def test_what_can_be_done_is_said_by_whoever_knows_the_commands() -> None:
    def moves(story: Story) -> list[tuple[str, str]]:
        return [("go on", f"tenlines resume {story.machine.result().run_id}")]

    (move,) = head_of(Run().ask().log, Reading(moves=moves)).moves
    assert (move.why, move.command) == ("go on", "tenlines resume r")


def test_a_price_that_nobody_knows_is_no_zero() -> None:
    run = Run().reply("done")
    totals = {fact.name: (fact.value, fact.note) for fact in head_of(run.log).totals}
    assert totals["cost"] == ("unknown", "price not known")
    assert head_of(run.log).dollars is None


def test_a_late_result_is_flagged() -> None:
    run = Run(CAREFUL).call("send").start()
    run.tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="gone")
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="here I am")
    assert flags(run.log)["1 call came back after being given up"] == ["call-1-1"]


def test_a_moment_that_no_calendar_has_is_a_number() -> None:
    shopping = Shop(0)
    start = ev.RunStarted(seq=0, at=9e11, run_id="r", agent="a", model="m", messages=shopping.log[0].messages)  # type: ignore[union-attr]
    assert ("started", "900000000000 s") in [(fact.name, fact.value) for fact in head_of([start]).facts]
