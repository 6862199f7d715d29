"""A transcript that is cut while a run goes on: by a line for each old result, and by a summary that is asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from driver_doubles import Streaming, Trail, Way, asks, kinds, later, log_of, of, until

from tenlines import Agent, Control, Limits, Reply, RunResult, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.context import Compaction, question
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Note, Result, System, Usage, User
from tenlines.errors import (
    ConnectionFailed,
    ContextTooLong,
    JournalError,
    MalformedReply,
    Overloaded,
    ProtocolRejected,
    RateLimited,
)
from tenlines.models.plain import FunctionModel
from tenlines.testing import FakeClock, RecordingObserver, ScriptedModel

LONG = "word " * 2_000
"""What a tool returns: far more than anything else in the transcript."""
ELIDES = Compaction(strategies=("elide",), keep=1, at=1_000)
SUMMARISES = Compaction(strategies=("summarise",), keep=1, at=1_000)
SUMMARY = "The first page was read; nothing was found."
UP_TO_THE_CUT = [asks("read"), asks("look")]
"""Before the reply to these is asked for, the first exchange is old enough to be cut."""


@tool(read_only=True, repeatable=True, max_result=20_000)
def read() -> str:
    """Returns much."""
    return LONG


@tool(read_only=True)
def look() -> str:
    """Returns little."""
    return "nothing"


TOOLS = [read, look]


@pytest.fixture(params=["plain", "watched"])
def control(request: pytest.FixtureRequest) -> Control | None:
    """With a hand on the run, its requests are waited for in another way."""
    return Control() if request.param == "watched" else None


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end of the test, so that no thread is left behind for long."""
    gate = threading.Event()
    yield gate
    gate.set()


def cutting(replies: Any, compaction: Compaction | None = SUMMARISES, **options: Any) -> Agent:
    """An agent whose transcript is cut before its third step."""
    model = replies if callable(replies) or hasattr(replies, "session") else ScriptedModel(replies)
    return Agent(model, TOOLS, **{"journal": "memory", "compaction": compaction, **options})


def requests(agent: Agent) -> list[CallModel]:
    """What its scripted model was asked."""
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


def is_summary(request: CallModel) -> bool:
    """Whether a summary is asked for."""
    return request.messages[-1] == question(SUMMARISES.summary_tokens)


def text_of(request: CallModel) -> str:
    return str(list(request.messages))


def summarised(result: RunResult) -> list[str]:
    return [one.text for one in result.messages if isinstance(one, Note) and one.summary]


# --- what is recorded ---------------------------------------------------------------------------------


def test_a_cut_is_an_event_and_the_next_request_holds_what_is_left(way: Way, control: Control | None) -> None:
    agent = cutting([*UP_TO_THE_CUT, "done"], ELIDES)
    result = way.run(agent, control=control)
    assert result.answer == "done"
    log = log_of(agent)
    assert kinds(log)[-4:] == ["ContextCompacted", "StepStarted", "ModelReplied", "RunEnded"]
    before, after = requests(agent)[1:]
    assert LONG in text_of(before)
    assert LONG not in text_of(after)
    assert [one.name for one in after.messages if isinstance(one, Result)] == ["read", "look"]
    (step,) = [one for one in of(log, ev.StepStarted) if one.step == 3]
    assert step.changed == after.changed == "the transcript was cut (elide)"
    assert after.new_from <= 2, "a session has to be told of all that changed"


def test_a_summary_is_asked_for_once_its_intent_is_durable_and_takes_the_place_of_what_was(
    way: Way, control: Control | None
) -> None:
    journal = Trail()
    replies = iter([*UP_TO_THE_CUT, Reply(SUMMARY, usage=Usage(3_000, 20)), Reply("done")])

    def model(messages: list[Any], request: CallModel) -> Reply:
        journal.acts("summary" if is_summary(request) else "model")
        return next(replies)

    agent = cutting(model, journal=journal)
    result = way.run(agent, control=control)
    assert journal.too_early == []
    at = journal.trail.index("summary")
    assert journal.trail[at - 2 : at + 4] == [
        "SummaryStarted",
        "commit",
        "summary",
        "SummaryEnded",
        "ContextCompacted",
        "StepStarted",
    ]
    assert [SUMMARY in one for one in summarised(result)] == [True]
    assert [type(one).__name__ for one in result.messages] == ["User", "Note", "Assistant", "Result", "Assistant"]
    assert (result.answer, result.steps) == ("done", 3), "a summary is no step"
    assert result.usage.input == 3_000


def test_the_request_for_a_summary_is_the_next_request_with_a_question_behind_it(way: Way) -> None:
    agent = cutting([*UP_TO_THE_CUT, SUMMARY, "done"])
    way.run(agent)
    _, last, summary, after = requests(agent)
    assert is_summary(summary)
    assert list(summary.messages)[: len(last.messages)] == list(last.messages)
    assert (summary.tools, summary.step, summary.tool_choice) == (last.tools, 3, "auto")
    assert after.step == 3
    assert not is_summary(after)


def test_nothing_of_a_summary_is_shown_to_those_who_watch(way: Way, control: Control | None) -> None:
    seen, model = RecordingObserver(), Streaming(*UP_TO_THE_CUT, SUMMARY, "done")
    agent = cutting(model, observers=[seen])
    assert way.run(agent, control=control).answer == "done"
    assert model.watched == [True, True, False, True]
    assert "".join(delta.text for delta in seen.deltas) == "done"
    assert {"SummaryStarted", "SummaryEnded", "ContextCompacted"} <= {*kinds(seen.events)}


# --- summaries that come to nothing -------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("slow down", retry_after_s=90),
        Overloaded("busy"),
        ConnectionFailed("broke off"),
        ContextTooLong("too long"),
        MalformedReply("not JSON"),
        ProtocolRejected("odd", rule="ANT-25"),
        TimeoutError("too slow"),
        ZeroDivisionError("a bug"),
        asyncio.CancelledError(),
        GeneratorExit(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_summary_that_fails_changes_nothing_and_the_run_goes_on(
    way: Way, control: Control | None, error: BaseException
) -> None:
    clock = FakeClock()
    agent = cutting([*UP_TO_THE_CUT, error, "done"], clock=clock)
    result = way.run(agent, control=control)
    assert result.answer == "done"
    log = log_of(agent)
    assert kinds(log)[-5:] == ["SummaryStarted", "SummaryEnded", "StepStarted", "ModelReplied", "RunEnded"]
    (ended,) = of(log, ev.SummaryEnded)
    assert (ended.kind, ended.reply) == (type(error).__name__, None)
    assert clock.waits == []
    assert any("was not summarised" in one for one in result.warnings)
    assert LONG in str(result.messages)
    third = requests(agent)[-1]
    assert list(third.messages)[: len(requests(agent)[1].messages)] == list(requests(agent)[1].messages)
    assert third.changed == ""


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(""), "it is empty"),
        (asks("look"), "it calls tools"),
        (Reply("I shall not", stop="refusal"), "declined"),
        (Reply("Cut sho", stop="length"), "not finished"),
        (Reply("long " * 4_000), "tokens"),
    ],
    ids=["empty", "calls", "refused", "cut off", "too long"],
)
def test_a_reply_that_is_no_summary_is_paid_for_and_changes_nothing(way: Way, reply: Reply, why: str) -> None:
    paid = msgspec.structs.replace(reply, usage=Usage(3_000, 20))
    agent = cutting([*UP_TO_THE_CUT, paid, "done"])
    result = way.run(agent)
    assert (result.answer, result.steps, result.usage.input) == ("done", 3, 3_000)
    assert any(why in one for one in result.warnings), result.warnings
    assert summarised(result) == []
    assert [record.name for record in result.calls] == ["read", "look"], "nothing that a summary calls is run"


def test_something_else_than_a_reply_is_no_summary(way: Way, control: Control | None) -> None:
    class Odd:
        name = "odd"

        def session(self) -> Any:
            inner = ScriptedModel([*UP_TO_THE_CUT, "done"]).session()

            class Session:
                def complete(self, request: Any, on_delta: Any) -> Any:
                    return "text" if is_summary(request) else inner.complete(request, on_delta)

                async def acomplete(self, request: Any, on_delta: Any) -> Any:
                    return self.complete(request, on_delta)

            return Session()

    agent = cutting(Odd())
    assert way.run(agent, control=control).answer == "done"
    (ended,) = of(log_of(agent), ev.SummaryEnded)
    assert (ended.kind, ended.message) == ("TypeError", "the model gave str, not a Reply")


def test_no_further_summary_is_asked_for_after_two_that_failed_until_the_run_is_resumed(way: Way) -> None:
    replies = [asks("read"), asks("read"), "", asks("read"), "", asks("read"), asks("read")]
    agent = cutting(replies)
    stopped = way.run(agent)
    assert stopped.status == "max_steps"
    assert [is_summary(one) for one in requests(agent)] == [False, False, True, False, True, False, False, False]
    again = cutting([asks("read"), SUMMARY, "done"], journal=agent.journal)
    result = way.resume(again, stopped.run_id)
    assert [is_summary(one) for one in requests(again)] == [False, True, False]
    assert (result.answer, len(summarised(result))) == ("done", 1)


# --- a hand on the run --------------------------------------------------------------------------------


class Paused:
    """A model that waits at the request for a summary until its gate is opened."""

    def __init__(self, kind: str, gate: threading.Event, replies: Any) -> None:
        self.asked, self.gate, self.replies = threading.Event(), gate, iter(replies)
        self.model = FunctionModel(self.blocking if kind == "blocking" else self.coroutine)
        self.seen: list[CallModel] = []

    def blocking(self, messages: list[Any], request: CallModel) -> Any:
        self.seen.append(request)
        if is_summary(request):
            self.asked.set()
            self.gate.wait(20)
        return next(self.replies)

    async def coroutine(self, messages: list[Any], request: CallModel) -> Any:
        self.seen.append(request)
        if is_summary(request):
            self.asked.set()
            await until(self.gate.is_set)
        return next(self.replies)


class Opens:
    """Opens a gate as soon as an event of a kind is recorded."""

    def __init__(self, gate: threading.Event, kind: type[Any]) -> None:
        self.gate, self.kind = gate, kind

    def on_event(self, event: Any) -> None:
        if isinstance(event, self.kind):
            self.gate.set()


@pytest.mark.parametrize("kind", ["blocking", "coroutine"])
def test_cancel_now_does_not_wait_for_a_summary_which_counts_as_unmetered(
    way: Way, gate: threading.Event, kind: str
) -> None:
    control, paused = Control(), Paused(kind, gate, UP_TO_THE_CUT)
    agent = cutting(paused.model)
    later(lambda: control.cancel(now=True, reason="enough"), paused.asked)
    result = way.run(agent, control=control)
    assert (result.status, result.reason) == ("cancelled", "enough")
    assert kinds(log_of(agent))[-3:] == ["SummaryStarted", "CancelRequested", "RunEnded"]
    assert result.usage.unmetered == 3  # the steps came without counts too
    resumed = way.resume(cutting([SUMMARY, "done"], journal=agent.journal), result.run_id)
    assert (resumed.answer, len(summarised(resumed))) == ("done", 1)


def test_cancel_lets_a_summary_finish_and_asks_nothing_more(way: Way, gate: threading.Event) -> None:
    control, paused = Control(), Paused("blocking", gate, [*UP_TO_THE_CUT, Reply(SUMMARY, usage=Usage(9, 9))])
    agent = cutting(paused.model, observers=[Opens(gate, ev.CancelRequested)])
    later(control.cancel, paused.asked)
    result = way.run(agent, control=control)
    assert result.status == "cancelled"
    assert kinds(log_of(agent))[-4:] == ["SummaryStarted", "CancelRequested", "SummaryEnded", "RunEnded"]
    assert result.usage.total == 18
    again = cutting(["done"], journal=agent.journal)
    assert len(summarised(way.resume(again, result.run_id))) == 1, "what was paid for is used"
    assert [is_summary(one) for one in requests(again)] == [False]


def test_what_is_said_meanwhile_comes_behind_the_summary_word_for_word(way: Way, gate: threading.Event) -> None:
    control, paused = Control(), Paused("blocking", gate, [*UP_TO_THE_CUT, SUMMARY, "done"])
    agent = cutting(paused.model, observers=[Opens(gate, ev.MessageQueued)])
    later(lambda: control.say("in French, please"), paused.asked)
    result = way.run(agent, control=control)
    assert result.answer == "done"
    assert "in French" not in text_of(paused.seen[2])
    assert [type(one).__name__ for one in paused.seen[3].messages] == ["User", "Note", "Assistant", "Result", "User"]
    assert [one.text for one in result.messages if isinstance(one, User)] == ["go", "in French, please"]


def test_limits_that_are_raised_meanwhile_hold_from_then_on(way: Way, gate: threading.Event) -> None:
    control, paused = Control(), Paused("blocking", gate, [*UP_TO_THE_CUT, SUMMARY, "done"])
    agent = cutting(paused.model, observers=[Opens(gate, ev.LimitsRaised)])
    later(lambda: control.raise_limits(Limits(steps=2)), paused.asked)
    assert way.run(agent, control=control).status == "max_steps"


@pytest.mark.parametrize("kind", ["blocking", "coroutine"])
def test_the_deadline_ends_a_summary_and_the_run(way: Way, gate: threading.Event, kind: str) -> None:
    paused = Paused(kind, gate, UP_TO_THE_CUT)
    agent = cutting(paused.model)
    result = way.run(agent, limits=Limits(seconds=0.3))
    assert (result.status, len(paused.seen)) == ("deadline", 3)
    (ended,) = of(log_of(agent), ev.SummaryEnded)
    assert ended.kind == "ConnectionFailed"
    assert "did not answer within" in ended.message


# --- what is meant for the program --------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_out_of_a_summary_closes_the_log_first(
    way: Way, control: Control | None, error: type[BaseException]
) -> None:
    journal = Trail()
    agent = cutting([*UP_TO_THE_CUT, error()], journal=journal)
    with pytest.raises(error):
        way.run(agent, control=control)
    assert kinds(log_of(agent))[-3:] == ["SummaryStarted", "CancelRequested", "RunEnded"]
    assert journal.pending == []
    assert way.resume(cutting([SUMMARY, "done"], journal=journal), journal.runs(1)[0].run_id).answer == "done"


def test_ctrl_c_while_a_summary_is_waited_for_closes_the_log_first(way: Way, gate: threading.Event) -> None:
    journal, replies = Trail(), iter(UP_TO_THE_CUT)

    def model(messages: list[Any], request: CallModel) -> Any:
        if is_summary(request):
            threading.Event().wait(0.05)  # until the main thread waits; a signal just before that is seen only after it
            os.kill(os.getpid(), signal.SIGINT)
            gate.wait(20)
        return next(replies)

    agent = cutting(model, journal=journal)
    with pytest.raises(KeyboardInterrupt):
        way.run(agent, control=Control())
    assert kinds(log_of(agent))[-3:] == ["SummaryStarted", "CancelRequested", "RunEnded"]


def test_a_task_that_is_cancelled_in_a_summary_closes_the_log_first(control: Control | None) -> None:
    journal = Trail()

    async def main() -> None:
        replies = iter(UP_TO_THE_CUT)

        async def model(messages: list[Any], request: CallModel) -> Any:
            if is_summary(request):
                task.cancel()
                await asyncio.sleep(30)
            return next(replies)

        task = asyncio.create_task(cutting(FunctionModel(model), journal=journal).run("go", control=control))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (run,) = journal.runs()
    assert run.status == "cancelled"
    assert kinds(journal.read(run.run_id))[-3:] == ["SummaryStarted", "CancelRequested", "RunEnded"]


@pytest.mark.parametrize(
    "kind", [ev.SummaryStarted, ev.SummaryEnded, ev.ContextCompacted], ids=lambda kind: kind.__name__
)
def test_a_journal_that_fails_at_a_cut_stops_the_run_and_nothing_acts_any_more(
    way: Way, control: Control | None, kind: type[Any]
) -> None:
    journal = Trail(fail_on=kind)
    replies = iter([*UP_TO_THE_CUT, Reply(SUMMARY), Reply("never")])

    def model(messages: list[Any], request: CallModel) -> Reply:
        journal.acts("model")
        return next(replies)

    result = way.run(cutting(model, journal=journal), control=control)
    assert result.status == "journal_error"
    assert journal.after_failure == []
    assert journal.trail.count("model") == (2 if kind is ev.SummaryStarted else 3)


def test_a_journal_error_that_a_model_raises_in_a_summary_is_no_failed_summary(way: Way) -> None:
    agent = cutting([*UP_TO_THE_CUT, JournalError("the disk is full")])
    assert way.run(agent).status == "journal_error"


# --- requests that the provider finds too long ----------------------------------------------------------


class Narrow:
    """A model with a window that nobody was told of."""

    name = "narrow"

    def __init__(self, window: int, replies: Any) -> None:
        self.window, self.replies = window, replies
        self.held: list[int] = []

    def session(self) -> Any:
        model = self
        replies = iter(self.replies)

        class Session:
            def complete(self, request: CallModel, on_delta: Any) -> Any:
                held = len(str(list(request.messages))) // 4
                model.held.append(held)
                if held > model.window:
                    raise ContextTooLong(f"{held} tokens are more than {model.window}")
                return next(replies)

            async def acomplete(self, request: CallModel, on_delta: Any) -> Any:
                return self.complete(request, on_delta)

        return Session()


def test_a_request_that_is_too_long_is_cut_and_asked_again(way: Way, control: Control | None) -> None:
    clock, replies = FakeClock(), [asks("read"), asks("read"), asks("look"), Reply("done")]
    model = Narrow(4_000, replies)
    agent = cutting(model, Compaction(strategies=("elide",), keep=1, least_gain=1.0), clock=clock)  # no cut pays
    result = way.run(agent, control=control)
    assert (result.answer, result.steps) == ("done", 4)
    log = log_of(agent)
    at = kinds(log).index("ModelFailed")
    assert kinds(log)[at - 1 : at + 4] == [
        "StepStarted",
        "ModelFailed",
        "ContextCompacted",
        "StepStarted",
        "ModelReplied",
    ]
    assert sum(one > model.window for one in model.held) == 1
    assert clock.waits == []


@pytest.mark.parametrize("strategies", [("elide",), ("drop",), ("elide", "drop")], ids="+".join)
def test_where_nothing_is_left_to_cut_the_run_ends_after_a_few_requests(
    way: Way, control: Control | None, strategies: Any
) -> None:
    model = Narrow(0, [])
    model.window = 10_000
    replies = [asks("read"), asks("read"), asks("look")]
    model.replies = replies

    class Shrinks:
        """From the fourth request on nothing fits."""

        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.StepStarted) and event.step == 4:
                model.window = 10

    agent = cutting(model, Compaction(strategies=strategies, keep=1), observers=[Shrinks()])
    result = way.run(agent, control=control)
    assert result.status == "context_overflow"
    assert "nothing more can be left out" in result.reason
    failures = of(log_of(agent), ev.ModelFailed)
    assert 1 <= len(failures) <= 6
    assert all(one.kind == "ContextTooLong" for one in failures)
    held = model.held[3:]
    assert held == sorted(held, reverse=True)
    assert len(set(held)) == len(held), "the same request is not sent again"


def test_a_task_that_is_too_long_by_itself_is_asked_once(way: Way) -> None:
    model = Narrow(10, [])
    result = way.run(cutting(model, Compaction(strategies=("elide",))), "much " * 1_000)
    assert (result.status, len(model.held)) == ("context_overflow", 1)


def test_without_compaction_too_long_is_the_end_at_once(way: Way, control: Control | None) -> None:
    agent = cutting([asks("read"), ContextTooLong("too long for this model"), "never"], None)
    result = way.run(agent, control=control)
    assert (result.status, result.reason) == ("context_overflow", "too long for this model")
    assert len(requests(agent)) == 2
    again = cutting(["done"], None, journal=agent.journal)
    assert way.resume(again, result.run_id).answer == "done", "another model may take it"


def test_what_people_said_and_the_instructions_stay_whatever_is_cut(way: Way) -> None:
    control = Control()

    @tool(read_only=True, max_result=20_000)
    def read() -> str:
        """Returns much."""
        if not said:
            said.append("in French, please")
            control.say(said[0])
        return LONG

    said: list[str] = []
    replies = [asks("read"), asks("read"), SUMMARY, asks("read"), SUMMARY, "oui"]
    agent = Agent(replies, [read], instructions="Be brief.", journal="memory", compaction=SUMMARISES)
    result = way.run(agent, control=control)
    assert result.answer == "oui"
    assert len(of(log_of(agent), ev.ContextCompacted)) == 2
    assert [one.text for one in result.messages if isinstance(one, System | User)] == ["Be brief.", "go", *said]
    assert len(summarised(result)) == 1


def test_a_call_that_was_cut_is_not_run_again(way: Way) -> None:
    """Its id and its key stay taken."""
    ran: list[str] = []

    @tool(max_result=20_000)
    def read(page: int) -> str:
        """Acts."""
        ran.append(str(page))
        return LONG

    calls = [Reply(calls=(ToolCall("same", "read", f'{{"page": {page}}}'),)) for page in range(4)]
    agent = Agent(
        [*calls, "done"], [read], journal="memory", compaction=Compaction(strategies=("drop",), keep=1, at=1_000)
    )
    result = way.run(agent)
    assert ran == ["0", "1", "2", "3"]
    assert len({record.id for record in result.calls}) == 4
    assert [record.step for record in result.calls] == [1, 2, 3, 4], "what was cut is in the result all the same"


def test_an_observer_may_ask_for_the_transcript_that_was(way: Way) -> None:
    views: list[Any] = []

    def model(messages: list[Any], request: CallModel) -> Any:
        views.append((len(request.messages), request.messages))
        return [*UP_TO_THE_CUT, Reply("done")][len(views) - 1]

    way.run(cutting(model, ELIDES))
    assert [len(view) for _, view in views] == [length for length, _ in views]
    assert [LONG in str(list(view)) for _, view in views] == [False, True, False]
