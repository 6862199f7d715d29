"""What the events of a compaction mean, told as runs."""

from __future__ import annotations

from typing import Any

import pytest
from told_run import Run

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.context import SUMMARY_HEADING, Arithmetic, Compaction
from tenlines.core.effects import CallModel, Compact, Summarise
from tenlines.core.limits import Limits, Retry
from tenlines.core.replay import fold
from tenlines.core.state import Phase
from tenlines.core.transcript import Note, Reply, Result, Text, ToolCall, Usage, User

LONG = "word " * 300
AT = 1_100
ARITHMETIC = Arithmetic(why="asked", tokens_before=9, tokens_after=1, steps=1.0, saves=0.0, costs=0.0, unit="tokens")


def grown(exchanges: int = 4, /, read_results: bool = False, **compaction: Any) -> Run:
    """A run with so many exchanges of some 300 tokens each, that is cut when the fourth is there, and never because
    that pays."""
    chosen = Compaction(**{"at": AT, "keep": 1, "summary_tokens": 100, "least_gain": 99.0, **compaction})
    run = Run(compaction=chosen, limits=Limits(steps=None), read_results=read_results)
    for number in range(exchanges):
        run.exchange(f"{number} {LONG}")
    return run


def summarising(**compaction: Any) -> Run:
    run = grown(strategies=("summarise",), **compaction)
    run.summarise()
    return run


def cut(strategy: str, start: int, end: int, summary: str = "") -> dict[str, Any]:
    return {"strategy": strategy, "start": start, "end": end, "summary": summary, "arithmetic": ARITHMETIC}


# --- cuts -----------------------------------------------------------------------------------------------


def test_old_results_are_left_out_and_everything_else_stays() -> None:
    run = grown(strategies=("elide",))
    before = list(run.messages)
    done = run.compact()
    assert (done.strategy, done.arithmetic.why) == ("elide", "asked")
    changed = [index for index, (one, other) in enumerate(zip(before, run.messages, strict=True)) if one is not other]
    assert changed, "nothing was left out"
    assert all(isinstance(before[index], Result) and done.start <= index < done.end for index in changed)
    assert run.messages[-1] is before[-1], "the newest exchange stays"
    assert isinstance(run.effect, CallModel)


def test_a_request_after_a_cut_is_told_from_the_first_change_on() -> None:
    run = grown(strategies=("elide",))
    run.compact()
    first = next(index for index, one in enumerate(run.messages) if "left out" in getattr(one, "text", ""))
    assert (run.effect.new_from, run.effect.changed) == (first, "the transcript was cut (elide)")


def test_the_view_that_a_model_was_given_is_not_changed_by_a_cut() -> None:
    run = grown(3, strategies=("drop",))
    view, texts = run.effect.messages, [getattr(one, "text", "") for one in run.messages]
    run.exchange(LONG).compact()
    assert [getattr(one, "text", "") for one in view] == texts


def test_old_exchanges_are_dropped_with_a_note_and_words_of_people_stay() -> None:
    run = grown(2, strategies=("drop",)).say("and mind the gap").exchange(LONG).exchange(LONG)
    run.compact()
    kinds = [type(one).__name__ for one in run.messages]
    assert kinds == ["User", "Note", "User", "Assistant", "Result"]
    assert [one.text for one in run.messages if isinstance(one, User)] == ["task", "and mind the gap"]


def test_what_is_left_out_can_be_read_again_where_the_model_has_the_tool() -> None:
    run = grown(strategies=("elide",), read_results=True)
    run.compact()
    assert 'read_result(key="r:1:0") shows it again' in run.messages[2].text


def test_a_cut_makes_the_next_request_smaller_before_anything_was_reported() -> None:
    run = grown(strategies=("drop",))
    before = run.machine.state.estimated_tokens
    run.compact()
    assert run.effect.reserved.input_tokens < before / 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (cut("elide", 3, 3), "ContextCompacted: there are no messages 3 to 3 in a transcript of 9"),
        (cut("elide", 1, 10), "ContextCompacted: there are no messages 1 to 10 in a transcript of 9"),
        (cut("elide", 2, 5), "ContextCompacted: a cut of messages 2 to 5 would split an exchange"),
        (cut("drop", 3, 5), "ContextCompacted: messages 3 to 5 are not the oldest exchanges"),
        (cut("drop", 1, 9), "ContextCompacted: messages 1 to 9 reach into the newest exchange, which stays"),
        (cut("summarise", 1, 5, "We looked."), "ContextCompacted: that summary was not written"),
    ],
)
def test_a_cut_that_would_break_the_transcript_is_refused(fields: dict[str, Any], said: str) -> None:
    assert grown().refuses(ev.ContextCompacted, **fields) == said


def test_nothing_is_cut_in_an_exchange() -> None:
    said = grown(3).call("look").refuses(ev.ContextCompacted, **cut("elide", 1, 3))
    assert said == "ContextCompacted cannot happen while the run is awaiting_tools"


def test_nothing_is_cut_where_nobody_wants_it_or_the_run_ends() -> None:
    said = "ContextCompacted: nothing may be cut here"
    assert Run().exchange(LONG).exchange(LONG).refuses(ev.ContextCompacted, **cut("elide", 1, 3)) == said
    assert grown().cancel("drain").refuses(ev.ContextCompacted, **cut("elide", 1, 3)) == said


def test_a_cut_waits_like_the_request_that_it_is_made_for_and_is_then_made() -> None:
    run = Run(
        compaction=Compaction(window=3_000, keep=1, strategies=("drop",), least_gain=99.0), retry=Retry(attempts=3)
    )
    run.exchange(LONG).exchange(LONG).ask().say(LONG * 4)
    fields = {"kind": "RateLimited", "message": "no", "retryable": True, "retry_after_s": 9.0}
    run.tell(ev.ModelFailed, step=3, attempt=1, **fields)
    assert run.refuses(ev.ContextCompacted, **cut("drop", 1, 3)) == "ContextCompacted: nothing may be cut here"
    run.at += 60
    assert run.compact().arithmetic.why == "window"
    assert isinstance(run.effect, CallModel)
    assert run.effect.attempt == 2


# --- summaries ------------------------------------------------------------------------------------------


def test_a_summary_is_asked_for_with_the_very_next_request_and_a_question_behind_it() -> None:
    run = grown(strategies=("summarise",))
    wanted = run.summarise()
    assert [*wanted.request.messages][:-1] == run.messages
    assert isinstance(wanted.request.messages[-1], Note)
    assert (wanted.request.tools, wanted.request.new_from) == (run.machine.state.specs, run.machine.state.sent)
    assert run.machine.state.phase is Phase.SUMMARISING


def test_a_summary_takes_the_place_of_what_it_stands_for() -> None:
    run = summarising().tell(ev.SummaryEnded, reply=Reply("  We looked. ", usage=Usage(900, 20)))
    assert len(run.messages) == 9, "not before the cut is in the log"
    done = run.compact()
    assert (done.strategy, done.summary) == ("summarise", "We looked.")
    assert run.messages[1] == Note(SUMMARY_HEADING + "We looked.", summary=True)
    assert [type(one).__name__ for one in run.messages] == ["User", "Note", "Assistant", "Result"]
    account = run.machine.state.account
    assert (account.steps, account.input_tokens, account.output_tokens) == (4, 900, 20), "it is paid for and no step"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reply": Reply(" ")}, "it is empty"),
        ({"reply": Reply("We looked.", (ToolCall("a", "look", "{}"),))}, "it calls tools"),
        ({"reply": Reply("We looked and", stop="length")}, "it was not finished (length)"),
        ({"reply": Reply("No.", stop="refusal")}, "the model declined to write it"),
        ({"reply": Reply("word " * 500)}, "at most 100 are taken"),
        ({"kind": "RateLimited", "message": "slow down"}, "slow down"),
        ({"kind": "RateLimited"}, "RateLimited"),
        ({}, "the request failed"),
    ],
)
def test_a_summary_that_cannot_be_used_changes_nothing(fields: dict[str, Any], said: str) -> None:
    run = summarising()
    before = list(run.messages)
    run.tell(ev.SummaryEnded, **fields)
    assert run.messages == before
    assert said in run.machine.result().warnings[-1]
    assert isinstance(run.effect, CallModel), "no second one is asked for in the same step"


def test_after_two_failures_no_summary_is_asked_for_until_somebody_resumes_the_run() -> None:
    run = summarising().tell(ev.SummaryEnded, kind="RateLimited")
    run.exchange(LONG).summarise()
    run.tell(ev.SummaryEnded, kind="RateLimited")
    run.exchange(LONG)
    assert isinstance(run.effect, CallModel)
    assert isinstance(run.resume().effect, Summarise)


def test_a_summary_with_its_heading_is_shorter_than_what_it_replaces() -> None:
    chosen = Compaction(at=10_000, keep=1, summary_tokens=100, least_gain=99.0)
    run = Run(compaction=chosen).say("word " * 200).exchange("short").exchange("as short")
    first = next(index for index, one in enumerate(run.messages) if not isinstance(one, User))
    run.tell(ev.SummaryStarted, start=0, end=first + 2, reserved=run.effect.reserved)
    run.tell(ev.SummaryEnded, reply=Reply("We looked."))
    assert "with its heading; what it stands for has" in run.machine.result().warnings[-1], "what people said stays"


def test_a_second_summary_in_the_same_step_is_refused() -> None:
    run = summarising().tell(ev.SummaryEnded, kind="RateLimited")
    fields = {"start": 1, "end": 7, "reserved": run.effect.reserved}
    assert run.refuses(ev.SummaryStarted, **fields) == "SummaryStarted: no summary may be asked for now"


def test_what_people_say_meanwhile_comes_behind_it_once() -> None:
    run = summarising().say("hurry up").tell(ev.SummaryEnded, reply=Reply("We looked."))
    run.compact()
    assert [one.text for one in run.messages if isinstance(one, User)] == ["task", "hurry up"]
    assert isinstance(run.messages[-1], User)


@pytest.mark.parametrize("mode", ["drain", "now"])
def test_a_cancel_ends_the_run_and_a_resume_asks_for_the_summary_again(mode: str) -> None:
    run = summarising().cancel(mode)
    if mode == "drain":
        run.tell(ev.SummaryEnded, kind="RateLimited")
    assert run.finish().status == "cancelled"
    assert isinstance(run.resume().effect, Summarise)


def test_a_crash_in_a_summary_leaves_the_run_as_it_was_before_it() -> None:
    run = summarising()
    before = list(run.messages)
    run.resume()
    assert run.messages == before
    assert run.machine.state.account.unmetered == 5, "four replies without counts, and a request that nobody counted"
    run.summarise()


def test_a_summary_that_was_written_before_a_crash_is_used_after_it() -> None:
    run = summarising().tell(ev.SummaryEnded, reply=Reply("We looked.")).resume()
    assert isinstance(run.effect, Compact)
    assert run.compact().summary == "We looked."


def test_a_forced_tool_does_not_keep_a_summary_from_being_written() -> None:
    chosen = Compaction(at=AT, keep=1, least_gain=99.0, strategies=("summarise",), summary_tokens=100)
    run = Run(compaction=chosen, tool_choice="look", keep_tool_choice=True)
    for number in range(4):
        run.exchange(f"{number} {LONG}")
    request = run.summarise().request
    assert request.tool_choice == "none"
    assert request.changed == "the tool choice is 'none', it was 'look'"


def test_a_summary_is_asked_for_only_where_it_is_paid_for() -> None:
    run = grown(strategies=("summarise", "drop"))
    assert isinstance(run.effect, Summarise)
    used = run.machine.state.account.tokens
    run.tell(ev.LimitsRaised, limits=Limits(steps=None, tokens=used + 2_100))
    assert run.compact().strategy == "drop", "the question does not fit into what is left; the request behind it does"


def test_a_summary_cannot_be_given_back() -> None:
    said = summarising().refuses(ev.SummaryEnded, reply=Reply("We looked.", usage=Usage(-1, 0)))
    assert said.startswith("a request cannot use less than nothing: ")


def test_the_log_tells_it_all_again() -> None:
    run = summarising().tell(ev.SummaryEnded, reply=Reply("We looked."))
    run.compact()
    run.exchange(LONG)
    again = fold(codec.decode(codec.encode(event)) for event in run.log)
    assert again.state == run.machine.state
    assert isinstance(run.messages[-1].parts[0], Text)
