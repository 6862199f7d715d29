"""What must hold for a run that was killed and carried on: its log and the world outside say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isclose
from typing import Any

from crash_family import effects_of, problems_of_family, unrecorded
from crash_money import sum_of
from crash_world import COMPENSATIONS, CUT_TO, PLAIN, Asked, Case, Outside, answer_to, digests, run_of

from tenlines.core import events as ev
from tenlines.core.context import question
from tenlines.core.events import AnyEvent
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.result import CallRecord, RunResult
from tenlines.core.transcript import Assistant, Message, Result
from tenlines.journal.integrity import check_runs
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import Journal

Place = tuple[int, int]
Done = dict[tuple[str, str], list[str]]


def problems_of(case: Case, journal: Journal, task: str, before: Sequence[AnyEvent] = ()) -> list[str]:
    """Everything that is wrong with a run that is through.

    Args:
        before: Its log as it stood when a process died.
    """
    run = run_of(journal, task)
    if run is None:
        return ["the run is not in the journal"]
    log = list(journal.read(run.run_id))
    result = fold(log).result()
    done = Outside(case.effects).seen(f"{task}/")
    wrong = [f"the log was changed at event {old.seq}" for old, new in zip(before, log, strict=False) if old != new]
    if len(log) < len(before):
        wrong.append("the log has lost its end")
    if not (run.status == result.status == case.status):
        wrong.append(f"it ended as {result.status} ({result.reason}), the list says {run.status}")
    if result.status == "answered" and result.answer != answer_to(result.messages):
        wrong.append(f"the answer is {result.answer!r}")
    wrong += problems_of_transcript(result.messages)
    doubts = doubts_of(log)
    for record in result.calls:
        wrong += [f"{record.name} {record.step}.{record.position}: {one}" for one in _of_call(record, done, doubts)]
    if not case.family:
        wrong += _of_what_nobody_asked_for(result, done)
    wrong += _of_undo(case, result, done)
    wrong += _of_money(case, journal, task, log)
    if case.family:
        outside = Outside(case.effects)
        wrong += [*problems_of_family(journal, task, log), *effects_of(outside, task)]
        wrong += unrecorded(journal, outside, task)
    if case.settings.compaction is not None:
        wrong += _of_requests(Outside(case.effects).asked(task), log)
    return wrong


def problems_of_intents(case: Case, log: Sequence[AnyEvent], task: str) -> list[str]:
    """What was done although the log, as a process left it behind, does not say that it was about to be done."""
    if case.family:
        return []  # they are in the logs of the runs that did it
    done = Outside(case.effects).seen(f"{task}/")
    called = {event.key for event in log if isinstance(event, ev.CallStarted)}
    undone = {event.key for event in log if isinstance(event, ev.UndoStarted)}
    return [
        f"{what} {item} was done with {key} before its intent was durable"
        for (what, item), keys in done.items()
        for key in keys
        if key not in (undone if what in COMPENSATIONS.values() else called)
    ]


def damage_of(case: Case) -> list[str]:
    """What is wrong with the whole journal, in which so many died."""
    journal = case.journal()
    findings = journal.check() if isinstance(journal, SqliteJournal) else check_runs(journal)
    wrong = [f"{one.run_id}: {one.what}" for one in findings]
    journal.close()
    return wrong


def doubts_of(log: Sequence[AnyEvent]) -> dict[Place, str]:
    """The calls of plain tools that had started and had no end when a new process came; and how each was settled."""
    names: dict[Place, str] = {}
    open_calls: dict[Place, None] = {}
    doubts: dict[Place, str] = {}
    for event in log:
        if isinstance(event, ev.ModelReplied):
            names |= {(event.step, n): call.name for n, call in enumerate(event.reply.calls)}
        elif isinstance(event, ev.CallStarted):
            open_calls[event.step, event.position] = None
        elif isinstance(event, ev.RunResumed):
            doubts |= dict.fromkeys((one for one in open_calls if names[one] in PLAIN), "open")
            open_calls.clear()
        elif isinstance(event, ev.ApprovalGiven) and (event.step, event.position) in doubts:
            doubts[event.step, event.position] = event.verdict
        elif isinstance(event, ev.CallReturned | ev.CallFailed | ev.CallAbandoned):
            open_calls.pop((event.step, event.position), None)
            if isinstance(event, ev.CallAbandoned) and doubts.get((event.step, event.position)) == "open":
                doubts[event.step, event.position] = event.outcome
    return doubts


def problems_of_transcript(messages: Sequence[Message]) -> Iterator[str]:
    """Behind each reply stands one result for each of its calls, in order."""
    open_calls: list[str] = []
    for one in messages:
        if isinstance(one, Result):
            if open_calls[:1] != [one.call_id]:
                yield f"a result of {one.call_id!r} stands where {open_calls[:1]} is due"
            open_calls = open_calls[1:]
        elif open_calls:
            yield f"a {type(one).__name__} stands before the result of {open_calls[0]}"
        if isinstance(one, Assistant):
            open_calls = [call.id for call in one.calls]
    if open_calls:
        yield f"{open_calls} have no result"


def _of_call(record: CallRecord, done: Done, doubts: dict[Place, str]) -> Iterator[str]:
    """What its result claims, and what happened."""
    item: Any = (record.arguments or {}).get("item")
    keys = done.get((record.name, item), [])
    doubt = doubts.get((record.step, record.position))
    yield from _of_effects(record, keys)
    if record.name == "burn":
        if record.outcome != "denied" or keys:
            yield f"it was never allowed, and is {record.outcome} with {len(keys)} effects"
    elif doubt == "deny":
        if record.outcome not in ("denied", "in_doubt") or not keys or "may have" not in record.text:
            yield f"somebody saw that it was done, and it is {record.outcome}: {record.text}"
    elif doubt in ("open", "in_doubt"):
        if (doubt, record.outcome) != ("in_doubt", "in_doubt") or "may have. Check" not in record.text:
            yield f"it is in doubt, and is said to be {record.outcome}: {record.text}"
    elif record.outcome != "ok":
        yield f"it is {record.outcome} without reason: {record.text}"


def _of_effects(record: CallRecord, keys: Sequence[str]) -> Iterator[str]:
    """Once for each key where the service knows keys; once at all elsewhere; and never claimed without having been."""
    if record.name in ("look", "peek", "scan", "note", "scout", "lead", "crew"):
        return
    times = len(set(keys)) if record.name in ("put", "post", "staff") else len(keys)
    if times > 1:
        yield f"it was done {times} times, with the keys {keys}"
    if record.outcome == "ok" and not times:
        yield "its result claims that it was done, and it was not"


def _of_what_nobody_asked_for(result: RunResult, done: Done) -> Iterator[str]:
    asked = {(one.name, (one.arguments or {}).get("item")) for one in result.calls}
    asked |= {(COMPENSATIONS[name], item) for name, item in asked if name in COMPENSATIONS}
    yield from (f"{one} was done, and stands in no transcript" for one in done if one not in asked)


def _of_undo(case: Case, result: RunResult, done: Done) -> Iterator[str]:
    """Every effect that can be taken back is, once for each key, with the key of the call."""
    is_undone = case.undo or (case.settings.on_stop == "undo" and result.status != "answered")
    for (what, item), keys in done.items():
        if what not in COMPENSATIONS:
            continue
        taken_back = set(done.get((COMPENSATIONS[what], item), ()))
        if taken_back != (set(keys) if is_undone else set()):
            yield f"{what} {item} was done with {keys} and taken back with {taken_back}"
    standing = [one.name for one in result.standing if one.name in COMPENSATIONS]
    if is_undone and (standing or any(one.outcome != "ok" for one in result.undone)):
        yield f"not undone: {standing}, {result.undone}"


# --- money --------------------------------------------------------------------------------------------


def _of_money(case: Case, journal: Journal, task: str, log: Sequence[AnyEvent]) -> Iterator[str]:
    """No limit is passed at any event; what a call was given stays held until it says what it used."""
    sums, wrong = sum_of(log)
    yield from wrong
    account = fold(log).state.account
    held, children = account.held.dollars or 0.0, account.children
    if not (isclose(held, sums.held["dollars"]) and isclose(children.dollars, sums.children["dollars"])):
        yield f"the account holds {held}, the sums say {sums.held}; children {children.dollars}, {sums.children}"
    lost = sum(
        isinstance(event, ev.RunResumed) and isinstance(before, ev.StepStarted | ev.SummaryStarted)
        for before, event in pairwise(log)
    )
    if account.unmetered != lost:
        yield f"{lost} requests were under way when a process died, {account.unmetered} are counted as unmetered"
    if case.settings.price is not None:
        spent = sum(_dollars(journal, run.run_id) for run in journal.runs() if run.task.startswith(f"{task}/"))
        if spent > (children.dollars + held) * (1 + 1e-9):
            yield f"the runs under it cost {spent}; it counts {children.dollars} and holds {held}"
        if not held and not isclose(spent, children.dollars):
            yield f"the runs under it cost {spent}, it was charged with {children.dollars}"


def _dollars(journal: Journal, run_id: str) -> float:
    return fold(journal.read(run_id)).state.account.dollars


# --- requests -----------------------------------------------------------------------------------------


def _of_requests(asked: Sequence[Asked], log: Sequence[AnyEvent]) -> Iterator[str]:
    """What the model was sent is what the log says; each request begins with the one before it, unless it says why not;
    and what was cut is sent no more."""
    cuts = sum(isinstance(event, ev.ContextCompacted) for event in log)
    if not cuts:
        yield "nothing was cut"
    intents = _intended(log)
    gone: set[str] = set()
    before: Asked | None = None
    for one in asked:
        for step, messages, is_gone in intents:
            gone |= is_gone
            if (step, messages) == (one.step, one.messages):
                break
        else:
            yield f"step {one.step} was sent {len(one.messages)} messages that its intent does not say"
        if still := gone.intersection(one.messages):
            yield f"step {one.step} was sent {len(still)} messages that were cut"
        if before is not None and not one.changed:
            shared = before.messages[: len(before.messages) - before.is_summary]
            if one.messages[: len(shared)] != shared:
                yield f"step {one.step} does not begin with the request before it, and does not say why"
        before = one


def _intended(log: Sequence[AnyEvent]) -> Iterator[tuple[int, tuple[str, ...], set[str]]]:
    """The requests that were to be made, with the messages that were cut since the one before."""
    machine, gone = Machine(), set[str]()
    for event in log:
        state = machine.state
        messages = digests(state.messages) if isinstance(event, ev.ContextCompacted) else ()
        machine.replay(event)
        if isinstance(event, ev.ContextCompacted):
            gone |= {*messages} - {*digests(state.messages)}
        elif isinstance(event, ev.StepStarted):
            yield event.step, digests(state.messages), gone
        elif isinstance(event, ev.SummaryStarted):
            yield state.account.steps + 1, digests([*state.messages, question(CUT_TO)]), gone
