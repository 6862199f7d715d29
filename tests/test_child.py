"""Agents as tools: their calls are runs, which are started, taken up or read, and stop and wait with their caller."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "drivers"))

from driver_doubles import WAYS, Way, asks, log_of, of

from tenlines import Agent, CallContext, Control, Limits, Price, Reply, Settings, Usage, tool
from tenlines.child import CALLER_STOPPED, ChildTool, unanswered
from tenlines.core import events as ev
from tenlines.core.children import child_id
from tenlines.core.effects import CallModel
from tenlines.core.limits import NOTHING
from tenlines.core.replay import fold
from tenlines.core.transcript import Note, Result, User
from tenlines.errors import ConfigError, JournalConflict, JournalError
from tenlines.journal.memory import MemoryJournal
from tenlines.models.plain import FunctionModel
from tenlines.ports import Journal
from tenlines.testing import RecordingObserver

TASK = '{"task": "find out"}'


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """Each driver of the run that calls."""
    way: Way = request.param
    return way


@tool(read_only=True)
def look() -> str:
    """Looks."""
    return "seen"


@tool
def send() -> str:
    """Acts."""
    return "sent"


def scripted(*replies: Any) -> FunctionModel:
    """A model whose reply depends on nothing but the step, so that it goes on where another process stopped."""

    def model(messages: list[Any], request: CallModel) -> Reply:
        reply = replies[min(request.step, len(replies)) - 1]
        return reply if isinstance(reply, Reply) else Reply(reply, usage=Usage(100, 10))

    return FunctionModel(model)


def child_of(*replies: Any, tools: Iterable[Any] = (look,), **options: Any) -> Agent:
    """An agent for another one to use."""
    return Agent(scripted(*replies), [*tools], journal=MemoryJournal(), **{"name": "helper", **options})


def parent_of(tools: Any, *replies: Any, **options: Any) -> Agent:
    """An agent that uses others."""
    options = {"journal": MemoryJournal(), **options}
    return Agent(scripted(*replies), tools if isinstance(tools, list) else [tools], **options)


def child_log(agent: Agent, key_end: str = "1:0", run_id: str | None = None) -> list[Any]:
    """The log of the run that a call is."""
    run_id = run_id or next(run.run_id for run in agent.journal.runs() if run.agent == "agent")
    return log_of(agent, child_id(f"{run_id}:{key_end}"))


# --- the tool -------------------------------------------------------------------------------------------


def test_the_tool_takes_a_task_and_is_named_after_the_agent() -> None:
    spec = child_of("42").as_tool().spec
    assert (spec.name, spec.child, spec.spends, spec.idempotent, spec.final) == ("helper", True, True, True, False)
    assert spec.parameters["properties"].keys() == {"task"}
    assert spec.parameters["required"] == ["task"]
    assert "the agent helper" in spec.description


def test_a_name_that_no_tool_can_have_is_made_one() -> None:
    assert child_of("42", name="my helper").as_tool().spec.name == "my_helper"


def test_the_task_is_made_by_a_plain_function() -> None:
    async def later() -> str:
        return "x"

    with pytest.raises(ConfigError, match="task= of helper has to be a plain function that returns the task"):
        child_of("42").as_tool(task=later)  # type: ignore[arg-type]


def test_a_function_of_typed_parameters_may_make_the_task() -> None:
    def brief(topic: str, words: int = 200) -> str:
        """Writes about a topic."""
        return f"Write {words} words on {topic}."

    helper = child_of("written")
    agent = parent_of(helper.as_tool("write", task=brief), asks("write", write='{"topic": "rain"}'), "done")
    assert agent.tools["write"].spec.description == "Writes about a topic."
    agent.run_sync("go")
    (start, *_) = child_log(agent)
    assert start.messages[-1] == User(parts=start.messages[-1].parts)
    assert start.messages[-1].parts[0].text == "Write 200 words on rain."


def test_arguments_that_do_not_fit_start_no_run(way: Way) -> None:
    agent = parent_of(child_of("42").as_tool(), asks("helper", helper='{"task": 5}'), "done")
    result = way.run(agent)
    assert result.calls[0].outcome == "invalid_arguments"
    assert len(agent.journal.runs()) == 1


def test_an_agent_that_acts_cannot_run_beside_others() -> None:
    with pytest.raises(ConfigError, match=r"helper cannot run beside others, .* do not only read: send"):
        child_of("42", tools=[look, send]).as_tool(parallel=True)
    specs = [child_of("42", tools=[one]).as_tool().spec for one in (look, send)]
    assert [spec.read_only for spec in specs] == [True, False]
    assert not child_of("42").as_tool(parallel=False).spec.read_only


def test_a_tool_that_no_agent_has_says_what_to_do() -> None:
    helper = child_of("42").as_tool()
    with pytest.raises(ConfigError, match="give it to one, as in Agent"):
        asyncio.run(helper.call(helper.check({"task": "x"}), CallContext("r:1:0", "helper", None)))  # type: ignore[arg-type]


# --- how it ends ----------------------------------------------------------------------------------------


def test_a_call_is_a_run_of_its_own_in_the_journal_of_its_caller(way: Way) -> None:
    helper = child_of(asks("look"), "42")
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    result = way.run(agent)
    assert (result.answer, result.calls[0].text) == ("done", "42")
    assert helper.journal.runs() == []
    start, *_, end = child_log(agent)
    assert (start.parent, start.agent, end.answer) == (f"{result.run_id}:1:0", "helper", "42")
    assert result.calls[0].child == ev.ChildRun(start.run_id, "answered")
    assert result.children.runs == (start.run_id,)
    assert result.children.steps == 2


def test_a_child_without_an_answer_is_no_success_and_says_what_it_had(way: Way) -> None:
    helper = child_of(asks("look"), limits=Limits(steps=2))
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    (record,) = way.run(agent).calls
    assert record.outcome == "tool_error"
    assert record.text == (
        "helper stopped without an answer (max_steps): the limit of 2 steps was reached without an answer. "
        "It said nothing so far; its last calls gave: look: seen; look: seen"
    )
    assert record.child is not None
    assert (record.child.status, record.child.reason) == (
        "max_steps",
        "the limit of 2 steps was reached without an answer",
    )


def test_what_a_child_without_an_answer_did_is_named() -> None:
    helper = child_of(Reply("Half.", asks("send").calls), tools=[send], limits=Limits(steps=1))
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    text = agent.run_sync("go").calls[0].text
    assert text.endswith("What it had so far: Half. What it did, or may have done, stands: send.")


def test_a_child_that_came_to_nothing_says_so() -> None:
    helper = child_of("x", limits=Limits(steps=0))
    result = helper.run_sync("go", raise_on_stop=False)
    assert unanswered("helper", result).endswith("It had nothing so far.")


def test_its_own_limits_hold_within_its_share() -> None:
    helper = child_of(asks("look"))
    agent = parent_of(helper.as_tool(limits=Limits(steps=3)), asks("helper", helper=TASK), "done")
    agent.run_sync("go", limits=Limits(steps=9))
    assert child_log(agent)[0].settings.limits.steps == 3
    agent.run_sync("go", limits=Limits(steps=4))
    assert child_log(agent, run_id=agent.journal.runs()[1].run_id)[0].settings.limits.steps == 2


# --- taken up, or read ----------------------------------------------------------------------------------


class Cut:
    """A journal of which another process sees only the first events of some runs, as if this one had died then."""

    def __init__(self, inner: Journal, run_id: str, events: int, child: int | None = None) -> None:
        self.journal = MemoryJournal()
        for run in reversed(inner.runs()):
            last = events if run.run_id == run_id else child
            for event in list(inner.read(run.run_id))[:last]:
                self.journal.append(run.run_id, event)
            self.journal.commit(run.run_id)


PRICED = Settings(price=Price(input=1.0, output=2.0), max_output_tokens=100)


@pytest.mark.parametrize("seen", range(1, 10))
def test_after_a_crash_the_same_run_is_taken_up_wherever_it_was_and_paid_once(way: Way, seen: int) -> None:
    helper = child_of(asks("look"), "42", settings=PRICED).as_tool()
    agent = parent_of(helper, asks("helper", helper=TASK), "done", settings=PRICED)
    first = way.run(agent, limits=Limits(dollars=1.0, steps=20))
    whole = child_log(agent)
    assert len(whole) == 8
    cut = Cut(agent.journal, first.run_id, 4, seen - 1)
    if seen == 1:  # the child had not begun
        cut.journal = Cut(agent.journal, first.run_id, 4, 0).journal
    again = parent_of(helper, asks("helper", helper=TASK), "done", settings=PRICED, journal=cut.journal)
    result = way.resume(again, first.run_id)
    assert (result.status, result.answer, result.calls[0].text) == ("answered", "done", "42")
    assert len(again.journal.runs()) == 2
    account = fold(again.journal.read(first.run_id)).state.account
    assert (account.held, account.holders) == (NOTHING, 0)
    child = fold(child_log(again)).state.account
    assert account.children.dollars == pytest.approx(child.dollars)
    assert (account.children.steps, account.children.presumed_tokens) == (2, child.presumed_tokens)
    if seen == 9:
        assert child_log(again) == whole, "one that has ended is only read"


def test_a_child_that_ended_at_a_limit_is_only_read(way: Way) -> None:
    helper = child_of(asks("look"), limits=Limits(steps=2)).as_tool()
    agent = parent_of(helper, asks("helper", helper=TASK), "done")
    first = way.run(agent)
    cut = Cut(agent.journal, first.run_id, 4)
    again = parent_of(helper, asks("helper", helper=TASK), "done", journal=cut.journal)
    result = way.resume(again, first.run_id)
    assert result.calls[0].child == first.calls[0].child
    assert child_log(again) == child_log(agent)


class Lost(MemoryJournal):
    """Loses the log of some runs after a while."""

    run_id, after = "", 3

    async def acommit(self, run_id: str) -> None:
        """As long as it goes well."""
        if run_id == self.run_id and sum(1 for _ in self.read(run_id)) >= self.after:
            raise JournalConflict(f"run {run_id} belongs to somebody else")
        await super().acommit(run_id)


def test_a_run_stops_where_the_log_of_its_child_cannot_be_written(way: Way) -> None:
    class Found(Lost):
        """Those of children."""

        def append(self, run_id: str, event: Any) -> None:
            """Remember whose they are."""
            if isinstance(event, ev.RunStarted) and event.parent:
                self.run_id = run_id
            super().append(run_id, event)

    helper = child_of(asks("look"), "42")
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done", journal=Found())
    result = way.run(agent)
    assert result.status == "journal_error"
    assert "which is the call" in result.reason
    assert [run.status for run in agent.journal.runs()] == ["open", "open"]


def test_what_a_child_used_whose_log_cannot_be_read_stays_set_aside() -> None:
    helper = child_of("42").as_tool().under(parent_of([], "x"))
    ctx = CallContext("r:1:0", "helper", None, ev.Left())

    class Broken(MemoryJournal):
        """Gives nothing back."""

        def read(self, run_id: str, from_seq: int = 0) -> Any:
            """Fails."""
            raise JournalError("the disk is gone")

    assert helper._caller is not None
    helper._caller._journal = Broken()
    with pytest.raises(JournalError, match="the disk is gone"):
        asyncio.run(helper.call(helper.check({"task": "x"}), ctx))  # type: ignore[arg-type]
    assert ctx.spent is None


# --- stopping -------------------------------------------------------------------------------------------


def stopping(after: Callable[[Control], None], control: Control) -> Any:
    """A tool that says that it began, and waits until it is given up."""
    begun = threading.Event()

    @tool(read_only=True)
    async def wait(ctx: CallContext) -> str:
        """Waits."""
        if not begun.is_set():
            begun.set()
            after(control)
        await asyncio.sleep(0.05)
        return "waited"

    return wait


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("now", [False, True], ids=["drain", "now"])
def test_cancelling_a_run_cancels_those_under_it_and_their_logs_say_so(way: Way, now: bool, depth: int) -> None:
    control = Control()
    wait = stopping(lambda one: one.cancel(now=now, reason="enough"), control)
    helper = child_of(asks("wait"), "42", tools=[wait], name="helper")
    if depth == 2:
        helper = child_of(asks("inner", inner=TASK), "43", tools=[helper.as_tool("inner")])
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    result = way.run(agent, control=control)
    assert (result.status, result.reason) == ("cancelled", "enough")
    ends = {run.agent: log_of(agent, run.run_id)[-1] for run in agent.journal.runs()}
    assert all(isinstance(end, ev.RunEnded) and end.status == "cancelled" for end in ends.values())
    assert ends["helper"].reason == CALLER_STOPPED
    (record,) = result.calls
    if now and not way.is_async:
        assert record.outcome == "cancelled", "it only reads"
        (late,) = of(log_of(agent, result.run_id), ev.LateResultArrived)
        assert late.spent is not None
        assert (late.outcome, late.child.status) == ("tool_error", "cancelled")
    else:
        assert (record.outcome, record.child.status) == ("tool_error", "cancelled")
    assert fold(log_of(agent, result.run_id)).state.account.holders == 0


@pytest.mark.slow
def test_a_call_that_is_given_up_cancels_its_run(way: Way) -> None:
    helper = child_of(asks("wait"), "42", tools=[stopping(lambda _: None, Control())])

    @tool(read_only=True)
    async def pause() -> str:
        """Lets the other one close its log."""
        await asyncio.sleep(0.1)
        return "ok"

    tools = [helper.as_tool(timeout_s=0.02), pause]
    agent = parent_of(tools, asks("helper", helper=TASK), asks("pause"), "done")
    result = way.run(agent)
    assert (result.status, result.calls[0].outcome) == ("answered", "timeout")
    end = child_log(agent)[-1]
    assert (end.status, end.reason) == ("cancelled", CALLER_STOPPED)


@pytest.mark.slow
def test_the_time_limit_of_a_run_ends_those_under_it(way: Way) -> None:
    helper = child_of(
        asks("wait"),
        tools=[stopping(lambda _: None, Control())],
        settings=Settings(repeats=ev.Repeats(told_after=None)),
    )
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    result = way.run(agent, limits=Limits(seconds=0.2, steps=None))
    assert result.status == "deadline"
    assert child_log(agent)[-1].status in ("deadline", "cancelled")
    assert fold(log_of(agent, result.run_id)).state.account.holders == 0


@pytest.mark.slow
def test_a_child_that_stopped_with_its_caller_goes_on_with_it_and_one_that_a_person_stopped_does_not(way: Way) -> None:
    helper = child_of(asks("look"), "42").as_tool()
    agent = parent_of(helper, asks("helper", helper=TASK), "done")
    first = way.run(agent)
    for reason, ended in ((CALLER_STOPPED, "answered"), ("stopped by CancelledError", "answered"), ("no", "cancelled")):
        cut = Cut(agent.journal, first.run_id, 4, 2)
        run_id, log = child_id(f"{first.run_id}:1:0"), child_log(agent)
        stop = ev.CancelRequested(seq=2, at=log[1].at, mode="now", reason=reason)
        cut.journal.append(run_id, stop)
        cut.journal.append(run_id, ev.RunEnded(seq=3, at=log[1].at, status="cancelled", reason=reason))
        again = parent_of(helper, asks("helper", helper=TASK), "done", journal=cut.journal)
        result = way.resume(again, first.run_id)
        assert result.calls[0].child.status == ended  # type: ignore[union-attr]


@pytest.mark.parametrize("seen", [0, 3, 8], ids=["never began", "was at work", "had ended"])
def test_what_is_held_for_a_call_that_was_given_up_is_settled_when_its_run_is_taken_up(way: Way, seen: int) -> None:
    helper = child_of(asks("look"), "42", settings=PRICED).as_tool()
    replies = (asks("helper", helper=TASK), "done")
    agent = parent_of(helper, *replies, settings=PRICED)
    first = way.run(agent, limits=Limits(dollars=1.0, steps=20))
    cut = Cut(agent.journal, first.run_id, 4, seen)
    at = log_of(agent, first.run_id)[3].at
    cut.journal.append(first.run_id, ev.CallTimedOut(seq=4, at=at, step=1, position=0, after_s=1.0, text="too late"))
    again = parent_of(helper, *replies, settings=PRICED, journal=cut.journal)
    result = way.resume(again, first.run_id)
    assert (result.status, result.calls[0].outcome) == ("answered", "timeout")
    account = fold(log_of(again, first.run_id)).state.account
    assert (account.held, account.holders) == (NOTHING, 0)
    if seen == 0:
        assert (result.calls[0].child, account.children.steps) == (None, 0)
        assert len(again.journal.runs()) == 1
    else:
        assert result.calls[0].child is not None
        assert result.calls[0].child.status == ("cancelled" if seen == 3 else "answered")
        assert account.children.dollars == pytest.approx(fold(child_log(again)).state.account.dollars)
        assert child_log(again)[-1].status == result.calls[0].child.status


def test_what_is_said_to_a_run_stays_with_it(way: Way) -> None:
    control = Control()
    helper = child_of(asks("wait"), "42", tools=[stopping(lambda one: one.say("hello"), control)])
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    result = way.run(agent, control=control)
    assert of(child_log(agent), ev.MessageQueued) == []
    assert len(of(log_of(agent, result.run_id), ev.MessageQueued)) == 1


# --- waiting for people ---------------------------------------------------------------------------------


@tool(approve=True)
def pay() -> str:
    """Pays."""
    return "paid"


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_run_waits_with_the_one_under_it_and_goes_on_when_that_is_decided(way: Way, depth: int, verdict: str) -> None:
    helper = child_of(asks("pay"), "42", tools=[pay])
    if depth == 2:
        helper = child_of(asks("helper", helper=TASK), "43", tools=[helper.as_tool()])
    tools, replies = [helper.as_tool(), look], (asks("helper", "look", helper=TASK), "done")
    agent = parent_of(tools, *replies)
    result = way.run(agent)
    assert result.status == "awaiting_approval"
    assert result.pending == ()
    (paused,) = result.paused
    assert paused.run_id == child_id(f"{result.run_id}:1:0")
    (waiting,) = paused.waiting
    assert (waiting.place, waiting.name) == ("1.1", "pay")
    assert waiting.run_id == paused.run_id if depth == 1 else child_id(f"{paused.run_id}:1:0")
    again = parent_of(tools, *replies, journal=agent.journal)  # another process
    undecided = way.resume(again, result.run_id)
    assert (undecided.status, undecided.paused) == ("awaiting_approval", (paused,))
    if verdict == "allow":
        again.approve(waiting.run_id, by="ann")
    else:
        again.deny(waiting.run_id, by="ann", reason="not today")
    result = way.resume(again, result.run_id)
    assert (result.status, result.answer, result.calls[0].text) == ("answered", "done", "42" if depth == 1 else "43")
    assert len(agent.journal.runs()) == depth + 1
    assert result.children.steps == 2 * depth
    (ended,) = [
        one for one in of(log_of(agent, waiting.run_id), ev.CallReturned if verdict == "allow" else ev.CallFailed)
    ]
    assert getattr(ended, "outcome", "ok") == ("ok" if verdict == "allow" else "denied")


def test_a_child_that_was_resumed_by_itself_meanwhile_is_read(way: Way) -> None:
    helper = child_of(asks("pay"), "42", tools=[pay])
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    result = way.run(agent)
    (paused,) = result.paused
    alone = Agent(helper.model, [pay], journal=agent.journal)
    alone.approve(paused.run_id)
    assert alone.resume_sync(paused.run_id).answer == "42"
    before = log_of(agent, paused.run_id)
    assert way.resume(agent, result.run_id).answer == "done"
    assert log_of(agent, paused.run_id) == before


def test_the_call_itself_may_need_leave() -> None:
    agent = parent_of(child_of("42").as_tool(approve=True), asks("helper", helper=TASK), "done")
    result = agent.run_sync("go")
    assert [one.name for one in result.pending] == ["helper"]
    assert len(agent.journal.runs()) == 1
    agent.approve(result.run_id)
    assert agent.resume_sync(result.run_id).answer == "done"


# --- handing over ---------------------------------------------------------------------------------------


def test_handing_over_comes_after_the_other_calls_and_its_answer_is_the_answer(way: Way) -> None:
    archive = child_of("Filed: seen.", tools=[], name="archive", instructions="You file.")
    tools = [look, archive.as_tool("to_archive", final=True, history=True)]
    agent = parent_of(tools, asks("to_archive", "look"), "never", instructions="You look.")
    result = way.run(agent, "look, then file it")
    assert (result.status, result.answer) == ("answered", "Filed: seen.")
    assert [(one.name, one.outcome) for one in result.calls] == [("to_archive", "ok"), ("look", "ok")]
    said = [one for one in child_log(agent)[0].messages if not isinstance(one, Note)]
    assert [type(one).__name__ for one in said] == ["System", "User", "Assistant", "Result", "Result"]
    assert said[0].text == "You file."
    handed, seen = (one for one in said if isinstance(one, Result))
    assert handed.parts[0].text == "The conversation is handed over to archive."  # type: ignore[union-attr]
    assert seen.parts[0].text == "seen"  # type: ignore[union-attr]


def test_who_hands_over_may_say_more_and_is_asked_again_where_nothing_came_of_it(way: Way) -> None:
    archive = child_of(asks("look"), name="archive", limits=Limits(steps=1))
    tools = [look, archive.as_tool("to_archive", final=True, history=True)]
    agent = parent_of(tools, asks("to_archive", "to_archive", to_archive='{"task": "file it"}'), "I could not.")
    result = way.run(agent)
    assert (result.status, result.answer) == ("answered", "I could not.")
    assert [one.outcome for one in result.calls] == ["tool_error", "tool_error"]
    *_, handed, waits, task = child_log(agent)[0].messages
    assert (handed.outcome, waits.outcome, task.parts[0].text) == ("ok", "not_executed", "file it")


# --- watching -------------------------------------------------------------------------------------------


class Watching:
    """Has an observer of its own for each run."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}

    def for_run(self, run_id: str, past: Iterable[Any]) -> Any:
        """One that writes down what happens in a run."""
        own = RecordingObserver()
        self.seen[run_id] = own.events
        return own


def test_who_watches_runs_apart_also_sees_those_under_a_call(way: Way) -> None:
    watching, plain = Watching(), RecordingObserver()
    helper = child_of(asks("look"), "42")
    outer = child_of(asks("helper", helper=TASK), "43", tools=[helper.as_tool()], name="outer")
    agent = parent_of(outer.as_tool(), asks("outer", outer=TASK), "done", observers=(watching, plain))
    result = way.run(agent)
    assert {run: log_of(agent, run) for run in watching.seen} == watching.seen
    assert len(watching.seen) == 3
    assert plain.events == log_of(agent, result.run_id)


# --- taking back ----------------------------------------------------------------------------------------


def test_undoing_a_run_undoes_what_those_under_it_did(way: Way) -> None:
    undone: list[str] = []

    def cancel(ctx: CallContext) -> None:
        undone.append(ctx.key)

    @tool(undo=cancel)
    def book() -> str:
        """Books."""
        return "booked"

    helper = child_of(asks("book"), "42", tools=[book])
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    result = way.run(agent)
    back = agent.undo_sync(result.run_id)
    assert [one.outcome for one in back.undone] == ["ok"]
    assert undone == [f"{child_id(f'{result.run_id}:1:0')}:1:0"]


def test_a_run_of_which_something_stands_is_not_said_to_be_undone(way: Way) -> None:
    @tool(undo=lambda: None)
    def book() -> str:
        """Books."""
        return "booked"

    helper = child_of(asks("book", "send"), "42", tools=[book, send])
    agent = parent_of(helper.as_tool(), asks("helper", helper=TASK), "done")
    run_id = way.run(agent).run_id
    (one,) = agent.undo_sync(run_id).undone
    assert (one.outcome, one.text.endswith("this stands, or may stand: send")) == ("tool_error", True)


def test_a_copy_of_the_tool_keeps_its_file() -> None:
    agent = parent_of(child_of("42").as_tool().loaded_from("crew.py"), "x")
    (made,) = agent.tools.values()
    assert isinstance(made, ChildTool)
    assert (made.spec.source, repr(made)) == ("crew.py", "<agent helper as tool helper>")
