"""A simulated crash loses what a real one loses; crashing everywhere finds what a resume must not do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recorded_runs import DRIVERS, Office, asks, run

from tenlines import Agent, CallContext, RunStopped, Settings, tool
from tenlines.core import events as ev
from tenlines.core.transcript import User
from tenlines.errors import RateLimited
from tenlines.journal import open_journal
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import NOT_DONE
from tenlines.testing import CrashReport, ScriptedModel, SimulatedCrash, crash_after, crash_everywhere
from tenlines.testing.everywhere import _faults

SCRIPT = [
    asks(("look", '{"city":"Oslo"}'), ("look", '{"city":"Bergen"}')),
    asks(("send", '{"to":"me"}'), ("put", '{"key":"k"}')),
    asks(("book", '{"to":"Oslo"}'), ("fail", '{"why":"no"}')),
    "done",
]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


# --- the journal --------------------------------------------------------------------------------------


def events(count: int) -> list[Any]:
    start = ev.RunStarted(seq=0, at=0.0, run_id="r", agent="a", model="m", messages=(User(()),))
    queued = [ev.MessageQueued(seq=seq, at=0.0, parts=()) for seq in range(1, count)]
    return [start, *queued]


def committed(journal: Any, way: str) -> None:
    if way == "sync":
        journal.commit("r")
    else:
        asyncio.run(journal.acommit("r"))


@pytest.mark.parametrize("way", DRIVERS)
def test_what_was_not_committed_is_lost_and_what_comes_after_the_crash_is_refused(way: str) -> None:
    journal = crash_after(record=2)
    first, second, third, fourth = events(4)
    journal.append("r", first)
    journal.append("r", second)
    committed(journal, way)
    assert [*journal.survivor.read("r")] == [*journal.read("r")] == [first, second]
    committed(journal, way)  # with nothing to commit, nothing is done
    for event in (third, fourth):
        with pytest.raises(SimulatedCrash, match="after record 2"):
            journal.append("r", event)
    with pytest.raises(SimulatedCrash):
        committed(journal, way)
    assert [*journal.survivor.read("r")] == [first, second]
    assert journal.is_dead


@pytest.mark.parametrize("way", DRIVERS)
def test_a_crash_in_the_middle_of_a_commit_keeps_what_was_durable_by_then(way: str) -> None:
    journal = crash_after(record=2)
    for event in events(3):
        journal.append("r", event)
    with pytest.raises(SimulatedCrash):
        committed(journal, way)
    assert len([*journal.survivor.read("r")]) == 2
    assert journal.runs()[0].events == 2


@pytest.mark.parametrize("way", DRIVERS)
def test_a_crash_at_once_comes_before_anything_acts_on_the_record(office: Office, way: str) -> None:
    for at_once, done in ((True, []), (False, ["send:me"])):
        journal = crash_after(record=4, at_once=at_once)
        agent = Agent([asks(("send", '{"to":"me"}'))], office.tools, journal=journal)
        with pytest.raises(SimulatedCrash):
            run(way, agent)
        assert type([*journal.survivor.read(journal.runs()[0].run_id)][-1]) is ev.CallStarted
        assert office.done == done


def test_a_store_of_files_can_be_what_survives(office: Office, tmp_path: Path) -> None:
    store = open_journal(tmp_path / "journal.db")
    with pytest.raises(SimulatedCrash):
        Agent(SCRIPT, office.tools, journal=crash_after(record=7, journal=store)).run_sync("go")
    (left,) = store.runs()
    assert (left.events, left.status) == (7, "open")
    store.close()


def test_nothing_that_catches_exceptions_catches_a_crash() -> None:
    assert not issubclass(SimulatedCrash, Exception)


# --- everywhere ---------------------------------------------------------------------------------------


def test_an_agent_stands_a_crash_after_every_record(office: Office) -> None:
    model = ScriptedModel(SCRIPT)
    seen: list[str] = []

    def check(report: CrashReport) -> None:
        done = office.done
        seen.append(report.place)
        assert done.count("send:me") <= 1
        assert done.count("put:k") == 1
        assert done.count("book:Oslo") == 1
        if not any(call.name == "send" for call in report.in_doubt):
            assert "send:me" in done
        office.trail.unlink()

    reports = crash_everywhere(lambda: Agent(model, office.tools), "go", check=check)
    assert len(model.requests) == len(SCRIPT), "the model is asked in the first run only"
    assert [report.place for report in reports[:2]] == ["sync, undisturbed", "asyncio, undisturbed"]
    assert sorted(seen) == sorted(report.place for report in reports)
    assert "sync, after record 10 (CallStarted), before anything acted on it" in seen
    for driver in DRIVERS:
        mine = [report for report in reports if report.driver == driver]
        assert {report.record for report in mine} == set(range(len(mine[0].log)))
        doubtful = [(report.record, report.at_once) for report in mine if report.in_doubt]
        starts = [
            event.seq + 1
            for event in mine[0].log
            if isinstance(event, ev.CallStarted) and (event.step, event.position) in ((2, 0), (3, 1))
        ]
        assert doubtful == [(record, at_once) for record in starts for at_once in (False, True)]


def test_what_a_driver_must_never_do_is_a_fault_of_the_log(office: Office) -> None:
    reports = crash_everywhere(lambda: Agent([asks(("send", '{"to":"me"}')), "done"], office.tools), "go")
    undisturbed, cut = reports[0], next(report for report in reports if report.in_doubt)
    assert [*_faults(undisturbed, cut)] == []
    start = next(event for event in cut.log if isinstance(event, ev.CallStarted))
    doubled = msgspec.structs.replace(cut, log=(*cut.log, start))
    assert "the call at 1.1 started 2 times" in [*_faults(undisturbed, doubled)]
    assert next(_faults(undisturbed, doubled)).startswith("the log is not that of a run: ")
    silent = msgspec.structs.replace(cut, result=undisturbed.result)
    assert [*_faults(undisturbed, silent)] == ["the call at 1.1 has no end, and is not reported as in doubt"]
    other = msgspec.structs.replace(undisturbed.result, answer="other")
    assert [*_faults(undisturbed, msgspec.structs.replace(undisturbed, result=other))] == [
        "it answered 'other', undisturbed 'done'"
    ]
    stopped = msgspec.structs.replace(undisturbed.result, status="stuck", reason="again")
    assert [*_faults(undisturbed, msgspec.structs.replace(undisturbed, result=stopped))] == [
        "it ended as stuck (again), undisturbed as answered"
    ]


def broken(office: Office) -> Any:
    @tool(idempotent=True)
    def put(key: str) -> str:
        """It says that it may be repeated, and refuses to be."""
        if f"put:{key}" in office.done:
            raise FileExistsError(key)
        return office.note(f"put:{key}")

    return put


def test_a_tool_that_breaks_its_promise_is_found(office: Office) -> None:
    def make_agent() -> Agent:
        return Agent([asks(("put", '{"key":"k"}')), "done"], [broken(office)])

    with pytest.raises(AssertionError) as caught:
        crash_everywhere(make_agent, "go", check=lambda _: office.trail.unlink(missing_ok=True))
    first, *faults = str(caught.value).splitlines()
    assert first == "2 faults after crashes:"
    assert faults[0] == (
        "sync, after record 4 (CallStarted): the call of put at 1.1 ended as tool_error: put failed: FileExistsError: k"
    )
    assert faults[1].startswith("asyncio, after record 4 (CallStarted): ")


def test_an_effect_that_is_doubled_is_found_by_the_check_which_says_where(office: Office) -> None:
    @tool(idempotent=True)
    def put(key: str) -> str:
        """It says that it may be repeated, and does it twice."""
        return office.note(f"put:{key}")

    def check(report: CrashReport) -> None:
        assert office.done == ["put:k"]
        office.trail.unlink()

    with pytest.raises(AssertionError) as caught:
        crash_everywhere(lambda: Agent([asks(("put", '{"key":"k"}')), "done"], [put]), "go", check=check)
    assert caught.value.__notes__ == ["this was the check of: sync, after record 4 (CallStarted)"]


def test_a_reconciliation_that_does_not_know_leaves_the_call_in_doubt(office: Office) -> None:
    found: list[str] = []

    def find(ctx: CallContext) -> Any:
        found.append(ctx.key)
        return NOT_DONE if not office.done else "it is sent"

    @tool(reconcile=find)
    def send(to: str) -> str:
        """Send a letter."""
        return office.note(f"send:{to}")

    def check(report: CrashReport) -> None:
        assert office.done == ["send:me"]
        assert not report.in_doubt
        office.trail.unlink()

    reports = crash_everywhere(lambda: Agent([asks(("send", '{"to":"me"}')), "done"], [send]), "go", check=check)
    assert len(found) == 4, "before and after the effect, with both drivers"
    assert {report.result.answer for report in reports} == {"done"}


def test_a_run_that_comes_to_rest_at_a_question_comes_to_rest_again(office: Office) -> None:
    def make_agent() -> Agent:
        return Agent(SCRIPT, office.tools, policy={"send": "ask", "*": "allow"})

    reports = crash_everywhere(make_agent, "go")
    assert {report.result.status for report in reports} == {"awaiting_approval"}
    assert {report.result.pending[0].name for report in reports} == {"send"}


def test_a_doubt_that_a_person_has_to_settle_is_no_fault(office: Office) -> None:
    def make_agent() -> Agent:
        return Agent([asks(("send", '{"to":"me"}')), "done"], office.tools, settings=Settings(on_in_doubt="ask"))

    reports = crash_everywhere(make_agent, "go")
    asked = [report for report in reports if report.result.status == "awaiting_approval"]
    assert {(report.driver, report.record) for report in asked} == {("sync", 4), ("asyncio", 4)}


def test_an_agent_that_fails_undisturbed_is_no_subject(office: Office) -> None:
    with pytest.raises(RunStopped):
        crash_everywhere(lambda: Agent([RateLimited("no", is_retryable=False)], journal=MemoryJournal()), "go")


def test_the_journal_of_the_agent_is_not_used(office: Office) -> None:
    journal = MemoryJournal()
    crash_everywhere(lambda: Agent(["done"], journal=journal), "go")
    assert journal.runs() == []
