"""A crash after every record of a run, one at a time, and what comes of resuming it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from tenlines.agent import Agent, outcome
from tenlines.core import events as ev
from tenlines.core.replay import fold
from tenlines.core.result import CallRecord, RunResult
from tenlines.core.transcript import Part
from tenlines.errors import InvalidEvent
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Journal
from tenlines.testing.answering import RecordedModel, answered_by, as_recorded
from tenlines.testing.crashing import SimulatedCrash, crash_after

DriverName: TypeAlias = Literal["sync", "asyncio"]
SHOWN = 8
"""Faults that are listed in one error."""


class CrashReport(msgspec.Struct, frozen=True):
    """What came of one crash."""

    driver: DriverName
    record: int
    """After how many durable records it came; 0 for the run that was left undisturbed."""
    at_once: bool
    """Whether nothing acted on the last of them any more."""
    result: RunResult
    """Of the run after it was resumed."""
    log: tuple[ev.AnyEvent, ...]

    @property
    def in_doubt(self) -> tuple[CallRecord, ...]:
        """The calls of which nobody knows whether they took effect."""
        return tuple(call for call in self.result.calls if call.outcome == "in_doubt")

    @property
    def place(self) -> str:
        """Where it came, in words."""
        if not self.record:
            return f"{self.driver}, undisturbed"
        last = type(self.log[self.record - 1]).__name__ if self.record <= len(self.log) else "the last"
        moment = ", before anything acted on it" if self.at_once else ""
        return f"{self.driver}, after record {self.record} ({last}){moment}"


Check: TypeAlias = Callable[[CrashReport], object]


def crash_everywhere(
    make_agent: Callable[[], Agent], task: str | Sequence[Part], *, check: Check | None = None
) -> list[CrashReport]:
    """Run an agent undisturbed; then let it crash after every record, and let another one resume what is left.

    Each with both drivers. The model is asked in the first run only, all others have its replies. Where a record is
    the intent to run or undo a call there are two crashes: before the tool began, and after it had run. What runs in a
    thread at a crash goes on, as something far away would.

    What has to hold for every crash: the log can be folded; the run ends like the undisturbed one, with the same answer
    and the same outcomes, unless a call is in doubt; a call whose tool is not `read_only`, `idempotent` or able to
    `reconcile` starts once at most, and is in doubt where it has no end.

    Args:
        make_agent: Makes the agent, each time anew, as a new process would. Its journal is not used.
        task: What is to be done. The agent has to answer it, or to come to where a person has to decide.
        check: Called after each crash and resume, and after each undisturbed run, for what only you know: count here
            what your tools did. What it raises ends everything.

    Returns:
        A report of every crash, the undisturbed runs first.

    Raises:
        AssertionError: Something of this does not hold; the message says what, and after which record.
        RunStopped: The undisturbed run ended without an answer.
    """
    trial = _Trial(make_agent, task, check)
    names: tuple[DriverName, ...] = ("sync", "asyncio")
    undisturbed = [trial.undisturbed(driver) for driver in names]
    faults: list[str] = []
    reports = list(undisturbed)
    for before in undisturbed:
        for record, at_once in _moments(before.log):
            report = trial.disturbed(before.driver, record, at_once)
            reports.append(report)
            faults += [f"{report.place}: {fault}" for fault in _faults(before, report)]
    if faults:
        more = [f"... and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise AssertionError("\n".join([f"{len(faults)} faults after crashes:", *faults[:SHOWN], *more]))
    return reports


def _moments(log: Sequence[ev.AnyEvent]) -> Iterator[tuple[int, bool]]:
    """After which records a process can die, and whether at once."""
    for record, event in enumerate(log[:-1], 1):
        yield record, False
        if isinstance(event, ev.CallStarted | ev.UndoStarted):
            yield record, True


class _Trial:
    """One agent and one task, run again and again."""

    def __init__(self, make_agent: Callable[[], Agent], task: str | Sequence[Part], check: Check | None) -> None:
        self.make_agent, self.task, self.check = make_agent, task, check
        self.model: RecordedModel | None = None

    def undisturbed(self, driver: DriverName) -> CrashReport:
        journal = MemoryJournal()
        agent = self._agent(journal)
        result = outcome(self._run(driver, agent), True)
        report = self._report(driver, 0, False, result, journal)
        if self.model is None:
            self.model = as_recorded(agent.model.name, report.log)
        return report

    def disturbed(self, driver: DriverName, record: int, at_once: bool) -> CrashReport:
        journal = crash_after(record=record, at_once=at_once)
        with contextlib.suppress(SimulatedCrash):
            self._run(driver, self._agent(journal))
        *_, run = journal.runs()  # those that began later are calls of it
        result = self._resume(driver, self._agent(journal.survivor), run.run_id)
        return self._report(driver, record, at_once, result, journal.survivor)

    def _agent(self, journal: Journal) -> Agent:
        agent = self.make_agent()
        return answered_by(agent, self.model or agent.model, journal)

    def _run(self, driver: DriverName, agent: Agent) -> RunResult:
        if driver == "sync":
            return agent.run_sync(self.task, raise_on_stop=False)
        return asyncio.run(agent.run(self.task, raise_on_stop=False))

    def _resume(self, driver: DriverName, agent: Agent, run_id: str) -> RunResult:
        if driver == "sync":
            return agent.resume_sync(run_id, raise_on_stop=False)
        return asyncio.run(agent.resume(run_id, raise_on_stop=False))

    def _report(
        self, driver: DriverName, record: int, at_once: bool, result: RunResult, journal: Journal
    ) -> CrashReport:
        report = CrashReport(driver, record, at_once, result, tuple(journal.read(result.run_id)))
        if self.check is not None:
            try:
                self.check(report)
            except Exception as error:
                error.add_note(f"this was the check of: {report.place}")
                raise
        return report


# --- what has to hold ---------------------------------------------------------------------------------


def _faults(undisturbed: CrashReport, report: CrashReport) -> Iterator[str]:
    try:
        fold(report.log)
    except InvalidEvent as error:
        yield f"the log is not that of a run: {error}"
    yield from _started_again(report)
    doubtful = {(call.step, call.position) for call in report.in_doubt}
    doubtful |= {(call.step, call.position) for call in report.result.pending if call.about == "in_doubt"}
    for place in _cut(report) - doubtful:
        yield f"the call at {_words(place)} has no end, and is not reported as in doubt"
    if not doubtful:
        yield from _ended_otherwise(undisturbed.result, report.result)


def _started_again(report: CrashReport) -> Iterator[str]:
    """Calls that ran twice though nothing says that they may."""
    started = Counter((event.step, event.position) for event in report.log if isinstance(event, ev.CallStarted))
    plain = _plain(report)
    for place, times in started.items():
        if times > 1 and place in plain:
            yield f"the call at {_words(place)} started {times} times"


def _cut(report: CrashReport) -> set[tuple[int, int]]:
    """Plain calls that had started when the process died, and have no end before it."""
    before = report.log[: report.record]
    started = {(event.step, event.position) for event in before if isinstance(event, ev.CallStarted)}
    ended = {
        (event.step, event.position)
        for event in before
        if isinstance(event, ev.CallReturned | ev.CallFailed | ev.CallTimedOut | ev.CallAbandoned)
    }
    return (started - ended) & _plain(report)


def _plain(report: CrashReport) -> set[tuple[int, int]]:
    """Calls of tools that may not be repeated, and cannot say what became of a call."""
    start = report.log[0]
    assert isinstance(start, ev.RunStarted)
    plain = {spec.name for spec in start.tools if not (spec.read_only or spec.idempotent or spec.reconcilable)}
    return {
        (event.step, position)
        for event in report.log
        if isinstance(event, ev.ModelReplied)
        for position, call in enumerate(event.reply.calls)
        if call.name in plain
    }


def _ended_otherwise(undisturbed: RunResult, result: RunResult) -> Iterator[str]:
    if result.status != undisturbed.status:
        yield f"it ended as {result.status} ({result.reason}), undisturbed as {undisturbed.status}"
    elif result.answer != undisturbed.answer:
        yield f"it answered {result.answer!r:.200}, undisturbed {undisturbed.answer!r:.200}"
    before = {(call.step, call.position): call.outcome for call in undisturbed.calls}
    for call in result.calls:
        was = before.get((call.step, call.position), call.outcome)
        if call.outcome != was:
            where = _words((call.step, call.position))
            yield f"the call of {call.name} at {where} ended as {call.outcome}: {call.text:.200}"


def _words(place: tuple[int, int]) -> str:
    return f"{place[0]}.{place[1] + 1}"
